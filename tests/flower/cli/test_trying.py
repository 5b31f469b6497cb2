"""The page says how to try the program without an account: a person who types exactly that gets a run that succeeds."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.flower.cli.tmux import RESTORED, ROOT, terminal

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]

PAGE = ROOT / "docs" / "flower-terminal.md"
PORT = "8787"
PRIMES = ["2", "3", "5", "7", "11", "13", "17", "19", "23", "29"]
PATH = f"{Path(sys.executable).parent}:{os.environ['PATH']}"


def blocks() -> list[str]:
    section = PAGE.read_text(encoding="utf-8").split("\n## Try it without an account\n")[1].split("\n## ")[0]
    return re.findall(r"^```\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)


def free_port() -> str:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return str(held.getsockname()[1])


@asynccontextmanager
async def served(line: str, home: Path) -> AsyncIterator[None]:
    """What the page says for the first terminal."""
    process = await asyncio.create_subprocess_exec(
        *shlex.split(line),
        stdout=asyncio.subprocess.PIPE,
        env={"PATH": PATH, "PYTHONPATH": str(ROOT), "HOME": str(home)},
    )
    assert process.stdout is not None
    try:
        assert (await process.stdout.readline()).startswith(b"ready http://127.0.0.1:")
        yield
    finally:
        process.terminate()
        await process.wait()


async def test_what_the_page_says_makes_a_run_that_succeeds(tmp_path: Path) -> None:
    (model, person), port = blocks(), free_port()
    assert model.count(PORT) == person.count(PORT) == 1  # the one thing that is changed: it may be taken here
    place = tmp_path / "empty"
    place.mkdir()
    script = tmp_path / "lines"
    script.write_text(person.replace(PORT, port), encoding="utf-8")
    async with served(model.replace(PORT, port).strip(), tmp_path):
        with terminal(
            ["source", str(script)], env={"PATH": PATH, "HOME": str(tmp_path), "FLOWER_NO_UPDATE": "1"}, cwd=place
        ) as window:
            answered = 0
            while not re.search(r"exit: \d", window.text()):
                if "Your answer (" in window.screen():
                    window.enter("1")
                    answered += 1
                    await window.wait_gone(r"Your answer \(")
                await asyncio.sleep(0.05)
            shown = await window.wait_for(RESTORED)
    assert "exit: 0" in shown
    assert "Total cost $" in shown
    assert answered > 0
    assert (place / "primes.out").read_text(encoding="utf-8").split() == PRIMES
