"""What becomes of the program when its parent dies: the line marked T of the facts page, section 11."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import claude_agent_sdk
import pytest

from tests.sdk.stage import Stage, marked, stage

pytestmark = [pytest.mark.real, pytest.mark.timeout(60)]

BUNDLED = Path(claude_agent_sdk.__file__).with_name("_bundled") / "claude"

PARENT = """
import asyncio, sys, threading, time
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient

async def main():
    workspace, program = sys.argv[1], sys.argv[2]
    env = {"CLAUDE_CODE_MAX_RETRIES": "0"}
    options = ClaudeAgentOptions(cwd=workspace, cli_path=program or None, model="claude-sonnet-5-5", env=env,
                                 setting_sources=[], allowed_tools=["Bash"])
    client = ClaudeSDKClient(options)
    await client.connect()
    await client.query("go")
    if sys.argv[3] == "main":
        async for message in client.receive_messages():
            pass
    await asyncio.sleep(2.0)

if sys.argv[3] == "main":
    asyncio.run(main())
else:
    # The loop stops in mid-turn and its thread ends, without a word to the client; the process lives on.
    def play():
        loop = asyncio.new_event_loop()
        loop.run_until_complete(main())
    thread = threading.Thread(target=play)
    thread.start()
    thread.join()
    print("the thread has ended", flush=True)
    time.sleep(60)
"""


def wrapper(folder: Path, kill: str) -> str:
    setpriv = shutil.which("setpriv")
    assert setpriv, "setpriv is missing: apt-get install util-linux"
    path = folder / "program.sh"
    path.write_text(f'#!/bin/sh\nexec {setpriv} --pdeathsig {kill} -- "{BUNDLED}" "$@"\n', encoding="utf-8")
    path.chmod(0o700)
    return str(path)


@asynccontextmanager
async def parent(
    here: Stage, program: str, thread: str = "main"
) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """A process with a client of its own; with it the marker that all its offspring carries."""
    marker = uuid.uuid4().hex
    here.workspace.mkdir(exist_ok=True)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "ignore", "-c", PARENT, str(here.workspace), program, thread),
        env={**os.environ, "FLOWER_RUN": marker},
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield process, marker
    finally:
        for pid in marked(marker):
            os.kill(pid, signal.SIGKILL)
        await process.wait()


async def gone(marker: str, seconds: float) -> None:
    async with asyncio.timeout(seconds):
        while marked(marker):  # noqa: ASYNC110 - nothing tells us when somebody else's child is gone
            await asyncio.sleep(0.02)


async def there(file: Path) -> None:
    async with asyncio.timeout(20):
        while not file.exists():  # noqa: ASYNC110, ASYNC240 - another process writes it
            await asyncio.sleep(0.02)


STREAM: dict[str, Any] = {"name": "first", "say": "word " * 1000, "pace": 50}
LONG = "touch begun; for i in $(seq 1 40); do sleep 0.1; done; touch done"
BASH: dict[str, Any] = {"name": "first", "call": {"Bash": {"command": LONG}}}


async def killed(here: Stage, process: asyncio.subprocess.Process, first: dict[str, Any]) -> None:
    await here.model.asked("main.first", timeout=20)
    if first is BASH:
        await there(here.workspace / "begun")
    else:
        await asyncio.sleep(0.3)
    process.kill()
    await process.wait()


@pytest.mark.parametrize("first", [STREAM, BASH], ids=["in mid-stream", "while Bash runs"])
async def test_a_program_that_the_kernel_ends_with_its_parent_asks_no_more_and_ends_its_bash(
    tmp_path: Path, first: dict[str, Any]
) -> None:
    async with stage(tmp_path, [first, "More."], speed=1.0) as here:
        async with parent(here, wrapper(tmp_path, "TERM")) as (process, marker):
            await killed(here, process, first)
            await gone(marker, 10)
        assert [asked.label for asked in here.model.asked_of()] == ["main.first"]
        assert not (here.workspace / "done").exists()


async def test_without_it_the_program_finishes_its_tool_and_asks_once_more(tmp_path: Path) -> None:
    """The other half: without it the tests above would pass of themselves."""
    async with stage(tmp_path, [BASH, "More."]) as here, parent(here, "") as (process, _):
        await killed(here, process, BASH)
        await here.model.asked("main.2", timeout=30)
        assert (here.workspace / "done").exists()


async def test_a_program_that_is_killed_instead_leaves_its_bash_alive(tmp_path: Path) -> None:
    async with stage(tmp_path, [BASH, "More."]) as here:
        async with parent(here, wrapper(tmp_path, "KILL")) as (process, marker):
            await killed(here, process, BASH)
            await gone(marker, 30)
        assert (here.workspace / "done").exists()
        assert [asked.label for asked in here.model.asked_of()] == ["main.first"]


async def test_the_end_of_the_thread_that_started_it_counts_as_the_end_of_its_parent(tmp_path: Path) -> None:
    async with (
        stage(tmp_path, [STREAM, "More."], speed=1.0) as here,
        parent(here, wrapper(tmp_path, "TERM"), "other") as (process, marker),
    ):
        await here.model.asked("main.first", timeout=20)
        assert len(marked(marker)) == 2
        assert process.stdout is not None
        assert await process.stdout.readline() == b"the thread has ended\n"
        async with asyncio.timeout(10):
            while marked(marker) != [process.pid]:  # noqa: ASYNC110 - nothing tells us
                await asyncio.sleep(0.02)
        assert process.returncode is None
