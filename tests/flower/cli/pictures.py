"""Pictures of the terminal program for the docs: `python -m tests.flower.cli.pictures [FOLDER]`.

Plays a scripted run under tmux, takes what the window shows with its colours, and has a headless Chromium draw it.
"""

from __future__ import annotations

import asyncio
import html
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path

from tests.flower.cli.stories import ASK, INBOX, Play, parts, playing
from tests.flower.cli.tmux import ROOT, Terminal

FONT, GLYPH, LINE, EDGE = 15, 9.03, 19, 12
"""Pixels: DejaVu Sans Mono is 0.602 as wide as high."""

_SGR = re.compile(r"\x1b\[([0-9;]*)m")
_COLOURS = ("#2e3440", "#e5707e", "#8fc98b", "#e3c078", "#7aa8e0", "#c792d9", "#6fc7cf", "#d8dee9")
_BRIGHT = ("#7b8494", "#ff8b98", "#a8e6a3", "#ffd88f", "#95c2fa", "#e0aef0", "#8be4ec", "#ffffff")
_PAGE = """<!doctype html><meta charset="utf-8"><style>
html, body {{ margin: 0; background: #1d2129 }}
pre {{ margin: 0; padding: {edge}px; color: #d8dee9; font: {font}px/{line}px "DejaVu Sans Mono", monospace }}
</style><pre>{text}</pre>"""

PROGRAM = """\
import sys


def primes(count):
    found, number = [], 2
    while len(found) < count:
        if all(number % each for each in found):
            found.append(number)
        number += 1
    return found


print(*primes(int(sys.argv[1])))
"""


def page_of(capture: str) -> str:
    """Make a page of what `tmux capture-pane -e` gives: colours, bold and dim come through."""
    return _PAGE.format(edge=EDGE, font=FONT, line=LINE, text="".join(_spans(capture)))


def _spans(capture: str) -> Iterator[str]:
    style: dict[str, str] = {}
    pieces = _SGR.split(capture)
    for index, piece in enumerate(pieces):
        if index % 2:
            _apply(piece, style)
        elif piece:
            css = ";".join(f"{key}:{value}" for key, value in style.items())
            yield f'<span style="{css}">{html.escape(piece)}</span>' if css else html.escape(piece)


def _apply(codes: str, style: dict[str, str]) -> None:
    for code in (int(each or 0) for each in codes.split(";")):
        if code == 0:
            style.clear()
        elif code == 1:
            style["font-weight"] = "bold"
        elif code == 2:
            style["opacity"] = "0.6"
        elif code == 22:
            style.pop("font-weight", None)
            style.pop("opacity", None)
        elif 30 <= code <= 37:
            style["color"] = _COLOURS[code - 30]
        elif 90 <= code <= 97:
            style["color"] = _BRIGHT[code - 90]
        elif code == 39:
            style.pop("color", None)


def draw(capture: str, file: Path, *, columns: int) -> None:
    """Write a PNG of a window.

    Raises:
        FileNotFoundError: there is no Chromium; `bash tests/system/install.sh` installs it.
    """
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        raise FileNotFoundError("chromium is needed: bash tests/system/install.sh")
    rows = len(capture.split("\n"))
    size = f"{round(columns * GLYPH) + 2 * EDGE},{rows * LINE + 2 * EDGE}"
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        page.write_text(page_of(capture), encoding="utf-8")
        words = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={folder}/home"]
        shot = [f"--window-size={size}", f"--screenshot={file}", page.as_uri()]
        subprocess.run([browser, *words, *shot], check=True, capture_output=True, timeout=60)


STORY = parts(
    [
        {
            "name": "looks",
            "think": "The brief is clear. The coder writes it, and I look at the result.",
            "say": "The brief is clear. I have it written first, then I look at what it prints.",
            "call": {
                "Agent": {
                    "description": "write primes.py",
                    "prompt": "Write primes.py: prints the first N primes, N is its argument.",
                    "subagent_type": "coder",
                }
            },
        },
        {"name": "mail", "say": "Written and tried. Now the inbox.", "call": {INBOX: {}}},
        {"name": "tells", "say": "primes.py prints the first hundred primes; it takes 4 ms."},
    ],
    clarify=[
        {
            "name": "asks",
            "say": "I have looked at the directory: it is empty. One thing is open.",
            "call": {
                ASK: {
                    "question": "How many prime numbers is the command to print when no number is given?",
                    "options": ["ten", "a hundred", "none: print how it is used"],
                }
            },
        },
        {
            "name": "brief",
            "expect": {"result": r"/(?P<count>.+)/"},
            "say": "## Goal\nA command primes.py that prints ${count} primes by default\n\n"
            "## Acceptance criteria\n- python3 primes.py 4 prints 2 3 5 7\n\n"
            "## Bounds\nstandard library only\n\n## Unknowns and assumptions\nnone\n",
        },
    ],
)
STORY["coder"] = {
    "match": {"agent": "sub"},
    "lines": [
        {"call": {"Write": {"file_path": "${workspace}/primes.py", "content": PROGRAM}}},
        {"name": "tries", "call": {"Bash": {"command": "python3 primes.py 4", "description": "try it"}}},
        {"name": "reports", "say": "primes.py is written; `python3 primes.py 4` prints 2 3 5 7."},
    ],
}


async def shoot(play: Play, folder: Path, wanted: Collection[str], *, columns: int, rows: int, suffix: str) -> None:
    """Play the run once in a window of this size and take the wanted pictures of it."""
    with play.flower("A command that prints prime numbers", columns=columns, rows=rows) as window:

        def take(name: str) -> None:
            if name in wanted:
                draw(_trimmed(window), folder / f"terminal-{name}{suffix}.png", columns=columns)

        async with play.model.paused("clarify.brief"):
            await window.wait_for("Your answer")
            await asyncio.sleep(0.5)
            take("question")
            window.enter("2")
        async with play.model.paused("work.mail"):
            await play.model.asked("work.mail", timeout=60)
            await window.wait_for("type = add a wish")
            window.type("and sort them, largest first")
            await window.wait_for("largest first")
            await asyncio.sleep(0.5)
            take("running")
            window.press("Enter")
            await window.wait_for(r"\+ ")
        await window.wait_for("exit: ")
        take("end")


def _trimmed(window: Terminal) -> str:
    """The window without the test shell's own last words."""
    lines = window.screen(colours=True).split("\n")
    kept = [line for line in lines if not re.match(r"(exit|modes): ", line)]
    return "\n".join(kept).rstrip()


async def main(folder: Path) -> None:
    """Make all pictures."""
    for columns, rows, suffix, wanted in (
        (80, 21, "", ("question", "running", "end")),
        (50, 26, "-narrow", ("running",)),
    ):
        with tempfile.TemporaryDirectory(prefix="primes-") as home:
            async with playing(Path(home), STORY, strict=False) as play:
                await shoot(play, folder, wanted, columns=columns, rows=rows, suffix=suffix)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images"))
