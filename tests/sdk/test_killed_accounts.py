"""A process killed in mid-turn, twice: what it spent stands in the accounts of the one that goes on."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import tempfile
from pathlib import Path

import pytest

from flower.testing import ScriptedModel, cost
from tests.sdk.stage import Stage, stage

pytestmark = [pytest.mark.real, pytest.mark.timeout(90)]

WAIT = "for i in $(seq 1 200); do [ -e go ] && break; sleep 0.1; done"
SCRIPT = """
import asyncio, sys
from tests.sdk.stage import spec
from flower import Lineage, Runtime, Step, Workflow

async def main(workspace, run_dir):
    runtime = Runtime(workspace=workspace, run_dir=run_dir)
    await Workflow([Step("work", spec(), "begin", resume_prompt="carry on")]).run(runtime)
    runtime.close()

asyncio.run(main(*sys.argv[1:]))
"""


async def run_until(here: Stage, times: int | None) -> None:
    """Run the flow in a process of its own; kill it once the line that waits was asked for so often."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", SCRIPT, str(here.workspace), str(here.run_dir)),
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    if times is not None:
        await here.model.asked("main.wait", times)
        await asyncio.sleep(1.0)  # until the command runs and the store has what was said
        process.send_signal(signal.SIGKILL)
    await process.wait()


def folders_of_resumed_programs() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob("claude-resume-*"))


async def test_no_kill_loses_an_account(tmp_path: Path) -> None:
    lines = [
        {"say": "First.", "call": {"Bash": {"command": "echo one"}}},
        {"name": "wait", "say": "Now wait.", "call": {"Bash": {"command": WAIT}}},
        {"say": "Done."},
    ]
    before = folders_of_resumed_programs()
    async with stage(tmp_path, lines) as here:
        await run_until(here, 1)
        await run_until(here, 2)
        (here.workspace / "go").touch()
        await run_until(here, None)
        spent = cost(here.model.tokens)
        asked: ScriptedModel = here.model
    (row,) = json.loads((here.run_dir / "manifest.json").read_text(encoding="utf-8"))
    assert row["ok"]
    assert len(asked.tokens) >= 4
    assert row["cost_usd"] == pytest.approx(spent, abs=1e-6)
    assert not list((here.run_dir / "unbooked").iterdir())
    assert folders_of_resumed_programs() <= before
