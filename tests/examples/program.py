"""Starts an example as a person does, in a process of its own, and leads it to a scripted model."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from flower.testing import ScriptedModel, inherited, scripted_env

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
WAIT_SECONDS = 60.0
CREDENTIALS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A program that is over."""

    status: int
    out: str
    err: str


@dataclass(slots=True)
class Program:
    """A program that runs."""

    process: asyncio.subprocess.Process

    async def line(self) -> str:
        """Return the next line of its output."""
        assert self.process.stdout is not None
        async with asyncio.timeout(WAIT_SECONDS):
            return (await self.process.stdout.readline()).decode()

    async def until(self, words: str) -> str:
        """Read its output up to a line that holds `words`, and return what was read."""
        read = ""
        while True:
            line = await self.line()
            assert line, f"it ended before it said {words!r}; it said:\n{read}"
            read += line
            if words in line:
                return read

    async def type(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())
        await self.process.stdin.drain()

    def close_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    async def end(self) -> Ended:
        """Wait until it is over."""
        async with asyncio.timeout(WAIT_SECONDS):
            out, err = await self.process.communicate()
        assert self.process.returncode is not None
        return Ended(status=self.process.returncode, out=out.decode(), err=err.decode())


def surroundings(model: ScriptedModel | None, home: Path) -> Mapping[str, str]:
    """An environment in which flower finds this checkout, and the program the model; none without a model."""
    ours = {name: value for name, value in os.environ.items() if name not in inherited(os.environ)}
    # An address where nobody listens: without a model nothing is to be asked.
    led = scripted_env(model or "http://127.0.0.1:9", home)
    if model is None:
        led = {name: value for name, value in led.items() if name not in CREDENTIALS}
    return {**ours, **led, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}


@contextlib.asynccontextmanager
async def started(name: str, *args: str, model: ScriptedModel | None, place: Path) -> AsyncIterator[Program]:
    """Start an example in `place`; it is killed at the end if it still runs."""
    (place / "here").mkdir(exist_ok=True)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(EXAMPLES / name),
        *args,
        cwd=place / "here",
        env=surroundings(model, place / "home"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=1 << 20,
    )
    try:
        yield Program(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def ran(name: str, *args: str, model: ScriptedModel | None, place: Path) -> Ended:
    """Run an example to its end, with nothing to read."""
    async with started(name, *args, model=model, place=place) as program:
        program.close_input()
        return await program.end()


def wrong(ended: Ended, *, status: int, words: str) -> None:
    """Assert that a person's mistake got clear words and no traceback."""
    assert (ended.status, "Traceback" in ended.err) == (status, False), ended.err
    assert words in ended.err, ended.err
