"""The program is killed in mid-tool, this process lives: the tool must not go on beside its repetition."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from tests.sdk.stage import spec, stage

pytestmark = [pytest.mark.real, pytest.mark.timeout(60)]

SLOW = "echo start >> ticks; for i in $(seq 1 20); do sleep 0.1; done; echo end >> ticks"


async def test_the_tool_of_a_killed_program_ends_with_it(tmp_path: Path) -> None:
    lines = [{"say": "Slow.", "call": {"Bash": {"command": SLOW}}}, {"say": "Done."}]
    async with stage(tmp_path, lines) as here, here.runtime() as runtime:
        running = asyncio.create_task(runtime.run(spec(), "go"))
        ticks = here.workspace / "ticks"
        async with asyncio.timeout(20):
            while not ticks.exists():  # noqa: ASYNC110 - a file of another process tells nobody
                await asyncio.sleep(0.05)
            (note,) = (here.run_dir / "unbooked").glob("*.note")
            await asyncio.sleep(0.5)  # until the store has what was said
        os.kill(int(note.read_text(encoding="utf-8").split("\n")[0]), signal.SIGKILL)
        step = await running
        await asyncio.sleep(2.5)  # the first one would be over by now
        said = ticks.read_text(encoding="utf-8").split()
    assert step.ok
    assert said == ["start", "start", "end"]
