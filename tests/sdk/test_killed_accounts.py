"""A process killed in mid-turn, twice: what it spent stands in the accounts of the one that goes on."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sqlite3
import sys
from pathlib import Path

import pytest

from flower.testing import ScriptedModel, cost
from tests.sdk.stage import Stage, stage

pytestmark = [pytest.mark.real, pytest.mark.timeout(90)]

WAIT = "touch runs; for i in $(seq 1 200); do [ -e go ] && break; sleep 0.1; done"
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


async def run_until(here: Stage, times: int | None, *, tmp: Path) -> None:
    """Run the flow in a process of its own; kill it in the command of the line that waits, asked for so often."""
    runs = here.workspace / "runs"
    runs.unlink(missing_ok=True)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", SCRIPT, str(here.workspace), str(here.run_dir)),
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "TMPDIR": str(tmp)},
    )
    if times is not None:
        await here.model.asked("main.wait", times)
        async with asyncio.timeout(30):
            while not (runs.exists() and mirrored(here, times)):  # noqa: ASYNC110 - files have no event to wait on
                await asyncio.sleep(0.05)
        process.send_signal(signal.SIGKILL)
    await process.wait()


def mirrored(here: Stage, times: int) -> bool:
    """Whether the store has the line that waits so often: it trails the program by a moment."""
    with contextlib.closing(sqlite3.connect(here.run_dir / "sessions.db")) as store:
        query = "SELECT COUNT(*) FROM entries WHERE payload LIKE '%Now wait.%'"
        return bool(store.execute(query).fetchone()[0] >= times)


async def test_no_kill_loses_an_account(tmp_path: Path) -> None:
    lines = [
        {"say": "First.", "call": {"Bash": {"command": "echo one"}}},
        {"name": "wait", "say": "Now wait.", "call": {"Bash": {"command": WAIT}}},
        {"say": "Done."},
    ]
    tmp = tmp_path / "tmp"  # other runs on this machine put their folders into its own
    tmp.mkdir()
    async with stage(tmp_path, lines) as here:
        await run_until(here, 1, tmp=tmp)
        await run_until(here, 2, tmp=tmp)
        (here.workspace / "go").touch()
        await run_until(here, None, tmp=tmp)
        spent = cost(here.model.tokens)
        asked: ScriptedModel = here.model
    (row,) = json.loads((here.run_dir / "manifest.json").read_text(encoding="utf-8"))
    assert row["ok"]
    assert len(asked.tokens) >= 4
    assert row["cost_usd"] == pytest.approx(spent, abs=1e-6)
    assert not list((here.run_dir / "unbooked").iterdir())
    assert not list(tmp.glob("claude-resume-*"))
