"""Processes die in mid-run: nothing is lost, nothing is said twice, and the thread says what happened."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from bridge.adapters.redis_server import ensure_server
from bridge.adapters.redis_store import open_redis
from bridge.model import RunId
from demo.emulator import buttons, shown_text
from demo.stage import Stage
from demo.thread import Message, Thread, until, wait_for_thread
from tests.stories.conftest import OnStage
from tests.stories.history import missing_or_twice, questions, told

pytestmark = [pytest.mark.real, pytest.mark.timeout(150)]

REQUEST = "Write a small program that prints the first ten primes"
FIRST = "One number per line"


async def begin(here: Stage) -> tuple[Thread, Path]:
    """Start a run and wait for its card."""
    await here.slack.command("alice", "runs", REQUEST)
    thread = await wait_for_thread(here.slack, "runs", within=20)
    return thread, here.home / "runs" / thread.run


async def answer_first(thread: Thread) -> str:
    slot, _ = await thread.wait_for_ask(within=30)
    await thread.press("alice", slot, FIRST)
    return slot


async def wait_for_end(thread: Thread, *, within: float = 60) -> str:
    async def look() -> str | None:
        ends = (shown_text(m) for slot, m in (await thread.slots()).items() if slot.startswith("end:"))
        return next(ends, None)

    return await until(look, within=within, what="the end message")


@pytest.mark.case("ST-7")
async def test_a_bot_killed_in_mid_run_says_everything_once_when_it_comes_back(on_stage: OnStage) -> None:
    async with on_stage() as here:
        thread, run = await begin(here)
        first = await answer_first(thread)
        for _ in range(3):  # three times in the busiest stretch: between an intention, a post, and its note
            await asyncio.sleep(1.3)
            await here.kill_bot()
            await asyncio.sleep(0.5)
            await here.start_bot()
        second, _ = await thread.wait_for_ask(within=60, besides=frozenset({first}))
        await here.kill_bot()
        await here.start_bot()
        await thread.press("alice", second, "Keep it at ten")  # AS-5: a button of before the restart
        end = await wait_for_end(thread, within=90)
        assert "goal achieved" in end
        assert await thread.doubled() == []
        assert await missing_or_twice(thread, run) == {}
        assert len(questions(run)) == 2


@pytest.mark.case("ST-7")
async def test_a_run_that_ends_while_no_bot_is_there_is_told_when_one_comes(on_stage: OnStage) -> None:
    async with on_stage() as here:
        thread, run = await begin(here)
        first = await answer_first(thread)
        second, _ = await thread.wait_for_ask(within=40, besides=frozenset({first}))
        await here.tell_model("pause", "work.report")
        await thread.press("alice", second, "Keep it at ten")
        await until(lambda: _asked(here, "work.report"), within=10, what="the answer reached the agent")
        await here.kill_bot()
        await here.tell_model("release", "work.report")
        await until(lambda: _ended(run), within=40, what="the run ended by itself")
        await here.start_bot()
        assert "goal achieved" in await wait_for_end(thread)
        assert await missing_or_twice(thread, run) == {}
        assert await thread.doubled() == []


@pytest.mark.case("AS-12")
async def test_a_killed_runner_is_said_within_30_s_and_continue_takes_up_the_same_sessions(on_stage: OnStage) -> None:
    async with on_stage(lease=8) as here:
        thread, run = await begin(here)
        first = await answer_first(thread)
        open_ask, message = await thread.wait_for_ask(within=40, besides=frozenset({first}))
        old_button = buttons(message)[0]
        pid = here.runner_pid(run)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        asked_before = len(await here.asked())
        await thread.wait_for("has not been heard of", within=30)
        withdrawn = await until(lambda: _closed(thread, open_ask), within=10, what="the question is closed")
        assert "Withdrawn" in shown_text(withdrawn)
        # R26: nothing of the run goes on working. While an ask waits, the program itself makes one last request as it
        # is told to end (decision 0008); what the model answers to that is carried out by nobody.
        assert len(await here.asked()) <= asked_before + 1
        before = {asked["session"] for asked in await here.asked("work")}

        await thread.say("alice", "!continue")
        again, _ = await thread.wait_for_ask(within=40, besides=frozenset({first, open_ask}))
        after = {asked["session"] for asked in await here.asked("work")}
        assert before == after  # the model's own view: the same session goes on
        assert len(after) == 1

        # R2: the button of before the kill has the same text, and flower's id may be the same: it answers nothing now.
        await here.slack.press_raw("alice", "runs", withdrawn["ts"], old_button)
        await asyncio.sleep(1.5)
        assert buttons((await thread.slots())[again])
        await thread.press("alice", again, "Keep it at ten")
        assert "goal achieved" in await wait_for_end(thread, within=90)
        assert await thread.doubled() == []


async def test_a_runner_killed_while_its_subagent_works_leaves_no_working_agent_behind(on_stage: OnStage) -> None:
    async with on_stage(lease=5) as here:
        thread, run = await begin(here)
        await here.tell_model("pause", "coder-program.run")  # the program is written, its running is held back
        await answer_first(thread)
        await until(lambda: _asked(here, "coder-program.run"), within=30, what="the subagent is about to run it")
        pid = here.runner_pid(run)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await asyncio.sleep(1.0)
        await here.tell_model("release", "coder-program.run")
        asked = len(await here.asked())
        await thread.wait_for("has not been heard of", within=30)
        assert len(await here.asked()) == asked
        assert not (here.workspace(run) / "primes.out").exists()


async def test_a_runner_frozen_past_its_lease_writes_nothing_when_it_thaws(on_stage: OnStage) -> None:
    async with on_stage(lease=4) as here:
        thread, run = await begin(here)
        first = await answer_first(thread)
        await thread.wait_for_ask(within=40, besides=frozenset({first}))
        pid = here.runner_pid(run)
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        await thread.wait_for("has not been heard of", within=30)
        last, lines = await _last_seq(here, run), len(told(run))
        os.kill(pid, signal.SIGCONT)
        await until(lambda: _gone(pid), within=20, what="the thawed runner leaves")
        assert await _last_seq(here, run) == last
        assert len(told(run)) == lines
        assert await thread.doubled() == []


async def _closed(thread: Thread, slot: str) -> Message | None:
    message = (await thread.slots())[slot]
    return None if buttons(message) else message


async def _asked(here: Stage, what: str) -> bool:
    return bool(await here.asked(what))


async def _ended(run: Path) -> bool:
    return any(item["kind"] == "run" and item["payload"].get("state") == "done" for item in told(run))


async def _gone(pid: int) -> bool:
    return _state(pid) in ("", "Z")


def _state(pid: int) -> str:
    """State letter of a process; empty: there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return ""


async def _last_seq(here: Stage, run: Path) -> int:
    server = await asyncio.to_thread(ensure_server, here.home / "redis")
    async with open_redis(server.url, username=server.username, password=server.password) as store:
        return await store.events.last(RunId(run.name))
