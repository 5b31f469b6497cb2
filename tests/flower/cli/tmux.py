"""A real terminal for tests: a tmux server of one's own with one window, typed into and read like a screen."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
PATIENCE = 40.0
"""Seconds that a text may take to appear: starting the program is CPU work, and other tests run beside."""


MODES = "stty -a | tr ' ;' '\\n\\n' | grep -xE -e '-?(echo|icanon|isig)' | xargs echo modes:"
AFTER = f'echo "exit: $?"; {MODES}; exec cat'
RESTORED = r"modes: isig icanon echo"
"""What the window says when a program has given the terminal back as it was."""


class NotSeenError(AssertionError):
    """A text did not appear; holds what was on the screen instead."""


@dataclass(frozen=True, slots=True)
class Terminal:
    """One window. `type` sends text as it is, `press` names keys (`Enter`, `C-c`, `BSpace`)."""

    socket: str
    folder: str

    def type(self, text: str) -> None:
        self._tmux("send-keys", "-t", "0", "-l", "--", text)

    def press(self, *keys: str) -> None:
        self._tmux("send-keys", "-t", "0", "--", *keys)

    def enter(self, text: str) -> None:
        self.type(text)
        self.press("Enter")

    def text(self) -> str:
        """What the window shows and what has scrolled out of it."""
        return self._tmux("capture-pane", "-p", "-t", "0", "-S", "-2000").rstrip()

    def screen(self, *, colours: bool = False) -> str:
        """What the window shows, blanks at line ends included where they are coloured."""
        return self._tmux("capture-pane", "-p", *(["-e"] if colours else []), "-t", "0").rstrip()

    async def wait_for(self, pattern: str, *, times: int = 1, patience: float = PATIENCE) -> str:
        """Wait until a regular expression is found so often, and return everything there is."""
        until = time.monotonic() + patience
        while len(re.findall(pattern, text := self.text())) < times:
            if time.monotonic() > until:
                raise NotSeenError(f"{pattern!r} did not appear {times}x in:\n{text}")
            await asyncio.sleep(0.05)
        return text

    async def wait_gone(self, pattern: str, *, patience: float = PATIENCE) -> str:
        """Wait until the window no longer shows it."""
        until = time.monotonic() + patience
        while re.search(pattern, shown := self.screen()):
            if time.monotonic() > until:
                raise NotSeenError(f"{pattern!r} did not go away:\n{shown}")
            await asyncio.sleep(0.05)
        return shown

    def cursor(self) -> tuple[int, int]:
        """Column and row of the cursor."""
        column, row = self._tmux("display-message", "-p", "-t", "0", "#{cursor_x} #{cursor_y}").split()
        return int(column), int(row)

    def resize(self, columns: int, rows: int = 40) -> None:
        self._tmux("resize-window", "-t", "0", "-x", str(columns), "-y", str(rows))

    def _tmux(self, *words: str) -> str:
        env = {**os.environ, "TMUX_TMPDIR": self.folder}
        done = subprocess.run(
            ["tmux", "-u", "-L", self.socket, *words], env=env, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise AssertionError(f"tmux {words[0]}: {done.stderr.strip()}")
        return done.stdout


@contextlib.contextmanager
def terminal(
    command: Sequence[str], *, env: Mapping[str, str], cwd: Path, columns: int = 80, rows: int = 40
) -> Iterator[Terminal]:
    """Run a shell in a window that runs `command`, then shows `exit: <status>` and the terminal's modes.

    Only `env` and a path are handed on. The server and everything in it is gone at the end.
    """
    if shutil.which("tmux") is None:
        raise AssertionError("these tests need tmux: bash tests/system/install.sh")
    given = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "PYTHONPATH": str(ROOT), "PS1": "$ ", **env}
    with tempfile.TemporaryDirectory(prefix="flower-tmux-") as folder:
        window = Terminal("test", folder)
        script = f"{shlex.join(command)}; {AFTER}"
        launch = ["env", "-i", *(f"{key}={value}" for key, value in given.items()), "TERM=xterm-256color"]
        # The window's shell has job control, as a person's has.
        window._tmux(
            *("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows), "-c", str(cwd)),
            *launch,
            *("bash", "--norc", "--noprofile", "-ic", script),
        )
        try:
            yield window
        finally:
            with contextlib.suppress(AssertionError):
                window._tmux("kill-server")


PROGRAM = [sys.executable, "-m", "flower.cli"]
