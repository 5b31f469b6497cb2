"""A runner that is killed leaves no working agent behind (rulings R26); one that is told to stop ends in good order."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sqlite3
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol

import pytest

from tests.bridge.runner.people import end, hold, interrupt, resume
from tests.bridge.runner.real import RealRun, real_run, until
from tests.fakes.redis import RealRedis
from tests.sdk.stage import LOOP, cut

pytestmark = [pytest.mark.real, pytest.mark.timeout(60)]

LOOP_SECONDS = 8.0
RUNS_LONG = [
    {"name": "run", "say": "I run it.", "call": {"Bash": {"command": f"echo hi > begun.txt; {LOOP}"}}},
    "Done.",
]
WRITES = {"Bash": {"command": "echo hi > written.txt"}}


class OnStage(Protocol):
    def __call__(self, lines: list[Any], **how: Any) -> AbstractAsyncContextManager[RealRun]: ...


@pytest.fixture
def on_stage(shared_redis: RealRedis, tmp_path: Path) -> OnStage:
    def opened(lines: list[Any], **how: Any) -> AbstractAsyncContextManager[RealRun]:
        return real_run(shared_redis, tmp_path / "h", lines, **how)

    return opened


def words(count: int) -> str:
    return " ".join(f"word{number}" for number in range(count))


async def nothing_goes_on(run: RealRun, *, within: float = 6.0) -> None:
    await until(lambda: run.processes == [], "all processes of the run are gone", within=within)


async def test_killed_in_the_middle_of_a_long_answer_the_call_at_its_end_is_not_made(on_stage: OnStage) -> None:
    # 2,000 words at 800 characters a second: 19 seconds. A dying turn would make the call (SDK facts 11).
    lines = [{"name": "talk", "say": words(2_000), "call": WRITES, "pace": 800}, "Done."]
    async with on_stage(lines, speed=1.0) as run:
        await run.start()
        await run.model.asked("main.talk")
        await asyncio.sleep(1.0)  # in mid-stream
        os.kill(run.pid, signal.SIGKILL)
        await nothing_goes_on(run)
        asked = len(run.model.requests)
        await asyncio.sleep(1.0)
        assert len(run.model.requests) == asked == 1
        assert run.model.requests[0].outcome == "cut"
        assert not (run.workspace / "written.txt").exists()


async def test_killed_while_a_command_runs_the_command_does_not_finish(on_stage: OnStage) -> None:
    async with on_stage(RUNS_LONG) as run:
        await run.start()
        await until((run.workspace / "begun.txt").exists, "the command runs")
        began = asyncio.get_running_loop().time()
        os.kill(run.pid, signal.SIGKILL)
        await nothing_goes_on(run)
        assert asyncio.get_running_loop().time() - began < LOOP_SECONDS  # it did not end by being over
        assert not (run.workspace / "done.txt").exists()
        assert len(run.model.requests) == 1


def stored(run: RealRun, words: str) -> bool:
    """Whether the transcripts of a run hold these words."""
    with contextlib.closing(sqlite3.connect(run.folder / "flower" / "sessions.db")) as db:
        found: int = db.execute("SELECT COUNT(*) FROM entries WHERE payload LIKE ?", (f"%{words}%",)).fetchone()[0]
    return found > 0


async def test_killed_and_started_again_the_same_session_goes_on(on_stage: OnStage) -> None:
    # The scripted model says a line again whose tool was cut; the second time there is nothing left to wait for.
    command = f"test -e begun.txt || {{ echo hi > begun.txt; {LOOP}; }}"
    lines = [{"name": "run", "say": "I run it.", "call": {"Bash": {"command": command}}}, "It was cut, so I looked."]
    async with on_stage(lines) as run:
        await run.start()
        await until((run.workspace / "begun.txt").exists, "the command runs")
        await until(lambda: stored(run, "I run it."), "the session is in the store: its mirror is a moment behind")
        os.kill(run.pid, signal.SIGKILL)
        await nothing_goes_on(run)
        await run.start(reopen=True, words="go on")
        done = await run.state("done", within=40)
        assert (done.fence, done.payload["text"]) == (2, "I run it.\nIt was cut, so I looked.")
        news = await run.news()
        assert [item.seq for item in news] == list(range(1, len(news) + 1))
        assert len({asked.session for asked in run.model.requests}) == 1


@pytest.mark.case("ST-1")
async def test_told_to_stop_while_a_command_runs_it_writes_down_first_and_leaves_nothing(on_stage: OnStage) -> None:
    async with on_stage(RUNS_LONG) as run:
        await run.start()
        await until((run.workspace / "begun.txt").exists, "the command runs")
        os.kill(run.pid, signal.SIGTERM)
        lost = await run.state("lost")
        assert lost.text == "the runner was told to stop"
        assert [item.payload["state"] for item in await run.news() if item.kind == "run"][-2:] == ["stopping", "lost"]
        await nothing_goes_on(run)
        assert not (run.workspace / "done.txt").exists()
        standing = await run.store.runs.standing(run.run)
        assert standing is not None
        assert (standing.status, standing.owner) == ("lost", "")


@pytest.mark.case("SS-1")
async def test_hold_cuts_a_running_command_within_two_seconds_and_words_go_on_in_the_same_session(
    on_stage: OnStage,
) -> None:
    async with on_stage(RUNS_LONG, anytime=[cut("use B")]) as run:
        await run.start()
        await until((run.workspace / "begun.txt").exists, "the command runs")
        await run.do(hold("c1"))
        await run.state("held", within=2.0)
        await run.do(resume("c2", "use B"))
        done = await run.state("done")
        assert done.payload["text"] == "I heard: use B"
        assert not (run.workspace / "done.txt").exists()


@pytest.mark.case("SS-1")
async def test_stop_with_words_cuts_a_running_command_at_once_as_nothing_else_is_pending(on_stage: OnStage) -> None:
    async with on_stage(RUNS_LONG, anytime=[cut("use B")]) as run:
        await run.start()
        await until((run.workspace / "begun.txt").exists, "the command runs")
        await run.do(interrupt("c1", "use B"))
        done = await run.state("done", within=6.0)  # less than the command takes
        assert done.payload["text"] == "I heard: use B"
        assert not (run.workspace / "done.txt").exists()


async def test_a_person_ends_a_run_whose_command_runs(on_stage: OnStage) -> None:
    async with on_stage(RUNS_LONG) as run:
        await run.start()
        await until((run.workspace / "begun.txt").exists, "the command runs")
        await run.do(end("c1", "enough"))
        ended = await run.state("ended", within=6.0)
        assert ended.text == "enough"
        assert ended.payload["cost_usd"] > 0
        await nothing_goes_on(run)
        assert not (run.workspace / "done.txt").exists()
