"""Field cases that flower itself must hold, with the real SDK and its bundled program."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import AgentDefinition

from flower.core.resilience import Resilience
from flower.stores.sqlite import SqliteSessionStore
from flower.testing import Fault, RecordingSink, cost, same_session
from flower.workflow.base import Step, Workflow
from tests.sdk.stage import marked, spec, stage

pytestmark = [pytest.mark.real, pytest.mark.timeout(60)]

RESUME = "上一轮在中途被打断,没有跑完。检查一下工作台里已经落盘的东西,从中断处接着做,不要重头来过。"


async def gone(marker: str) -> None:
    async with asyncio.timeout(10):
        while marked(marker):  # noqa: ASYNC110 - nothing tells us when somebody else's child is gone
            await asyncio.sleep(0.05)


@pytest.mark.case("AG-1")
@pytest.mark.parametrize("pipes", ["> left.txt 2>&1", ""], ids=["on its own", "with the agent's pipes open"])
async def test_a_child_that_the_agent_left_behind_holds_up_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pipes: str
) -> None:
    marker = f"left-{os.getpid()}"
    left = f"nohup sh -c 'for i in $(seq 1 600); do sleep 0.1; done' {pipes} & echo started"
    lines = [{"call": {"Bash": {"command": left}}}, {"expect": {"result": "started"}, "say": "Done."}]
    async with stage(tmp_path, lines) as here, here.runtime() as runtime:
        monkeypatch.setenv("FLOWER_RUN", marker)
        async with asyncio.timeout(15):
            step = await runtime.run(spec(), "go")
        assert (step.ok, step.text) == (True, "Done.")
        # It works on: the group of the run is its owner's to end (SDK facts 11).
        assert marked(marker)
        for pid in marked(marker):
            os.kill(pid, signal.SIGKILL)
        await gone(marker)


@pytest.mark.case("AG-2")
async def test_a_helper_that_was_to_run_in_the_background_is_waited_for(tmp_path: Path) -> None:
    slow = "for i in $(seq 1 10); do sleep 0.1; done; echo built > built.txt"
    delegate = {"description": "d", "prompt": "do", "subagent_type": "coder", "run_in_background": True}
    parts: dict[str, Any] = {
        "coder": {"match": {"agent": "sub"}, "lines": [{"call": {"Bash": {"command": slow}}}, "The report."]},
        "main": {"lines": [{"call": {"Agent": delegate}}, {"expect": {"result": "The report."}, "say": "Done."}]},
    }
    async with stage(tmp_path, **parts) as here, here.runtime() as runtime:
        agents = {"coder": AgentDefinition(description="codes", prompt="CODER", tools=["Bash"], model="inherit")}
        step = await runtime.run(spec(allowed_tools=["Bash", "Agent"], agents=agents), "go")
        assert (step.ok, step.text) == (True, "Done.")
        assert (here.workspace / "built.txt").exists()
        assert step.cost_usd == pytest.approx(cost(here.model.tokens))


@pytest.mark.case("AG-8")
async def test_a_program_that_was_killed_is_started_anew_with_its_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = f"died-{os.getpid()}"
    lines = [
        {"say": "Looking.", "call": {"Bash": {"command": "echo made >> made.txt; echo made"}}},
        {"name": "second", "expect": {"session": "same", "history": ["THE TASK", "Looking."]}, "say": "Done."},
    ]
    async with stage(tmp_path, lines) as here, here.runtime() as runtime:
        monkeypatch.setenv("FLOWER_RUN", marker)
        sink = RecordingSink()
        here.model.pause("main.second")
        running = asyncio.create_task(runtime.run(spec(), "THE TASK", on_event=sink))
        await here.model.asked("main.second")
        key: Any = {"project_key": runtime.project_key, "session_id": here.model.asked_of()[0].session}
        store = SqliteSessionStore(here.run_dir / "sessions.db")
        async with asyncio.timeout(10):
            while "tool_result" not in str(await store.load(key)):  # noqa: ASYNC110 - the mirror trails by a moment
                await asyncio.sleep(0.05)
        store.close()
        for pid in marked(marker):
            os.kill(pid, signal.SIGKILL)
        await sink.wait_for("retry")
        here.model.release("main.second")
        step = await running
        assert (step.ok, step.text, step.attempts, step.resumed) == (True, "Done.", 2, True)
        assert here.model.asked_of()[-1].prompt == RESUME
        assert same_session(*here.model.asked_of())
    assert (tmp_path / "ws" / "made.txt").read_text(encoding="utf-8") == "made\n"


@pytest.mark.case("ST-6")
async def test_a_first_turn_that_failed_does_not_poison_the_next_start(tmp_path: Path) -> None:
    lines = [{"name": "first", "say": "Now it works."}]
    async with stage(tmp_path, lines) as here:
        fault = Fault(kind="error", status=400, type="invalid_request_error", message="no", times=20)
        here.model.inject("main.first", fault)
        flow = [Step("a", spec(), "THE TASK")]
        async with here.runtime(resilience=False) as runtime:
            assert (await Workflow(flow).run(runtime))["_failed_at"] == "a"
        here.model._steering._injected.clear()
        async with here.runtime(resilience=False) as runtime:
            context = await Workflow(flow).run(runtime)
        assert context.get("_failed_at") is None
        assert context["a"] == "Now it works."
        assert "THE TASK" in here.model.asked_of()[-1].conversation.history


@pytest.mark.case("CO-1")
async def test_a_limit_of_the_account_is_waited_out_with_what_was_done(tmp_path: Path) -> None:
    lines = [
        {"call": {"Bash": {"command": "echo made >> made.txt; echo made"}}},
        {
            "fail": {"status": 429, "type": "rate_limit_error", "message": "limit", "retry_after": 1, "times": 5},
            "expect": {"session": "same", "history": "made"},
            "say": "Done.",
        },
    ]
    async with stage(tmp_path, lines) as here, here.runtime() as runtime:
        sink = RecordingSink()
        step = await runtime.run(spec(), "go", on_event=sink)
        assert (step.ok, step.text, step.attempts, step.resumed) == (True, "Done.", 2, True)
        assert [event.text for event in sink.of("retry")] == ["第 1 次失败(transient),准备重试"]
    assert (tmp_path / "ws" / "made.txt").read_text(encoding="utf-8") == "made\n"


@pytest.mark.case("CO-1")
async def test_a_wait_that_the_program_announced_is_no_silence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An account that opens again in hours says so in `retry-after`, and the program waits that long by itself."""
    limit = {"status": 429, "type": "rate_limit_error", "message": "limit", "retry_after": 5, "times": 1}
    lines = [{"name": "first", "fail": limit, "say": "Done."}]
    async with stage(tmp_path, lines) as here, here.runtime(resilience=Resilience(enabled=False)) as runtime:
        async with here.model.paused("main.first"):
            running = asyncio.create_task(runtime.run(spec(), "go"))
            await here.model.asked("main.first", timeout=30)
            # From here on, so that the start of the program is not counted: it takes what it takes.
            monkeypatch.setattr("flower.core.attempt.SILENCE_SECONDS", 2.5)
        step = await running
        assert (step.ok, step.text, step.errors) == (True, "Done.", [])
