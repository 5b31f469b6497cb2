"""Field cases that flower itself must hold, with the real SDK and its bundled program."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import AgentDefinition

from flower.core.resilience import Resilience
from flower.stores.sqlite import SqliteSessionStore
from flower.testing import Fault, RecordingSink, cost, same_session
from flower.workflow.aside import Recent, ask_aside
from flower.workflow.base import Step, Workflow
from tests.sdk.stage import Stage, marked, spec, stage

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


@pytest.mark.case("CO-4")
async def test_a_spent_budget_stops_with_the_work_kept_and_a_raised_one_goes_on_with_it(tmp_path: Path) -> None:
    """The helper is what is dear here: 100,000 tokens of input with this model, 0.20 dollars a call."""
    dear = {"input": 100_000, "output": 0}
    delegate = {"description": "d", "prompt": "do", "subagent_type": "coder"}
    make = {"call": {"Bash": {"command": "echo made >> made.txt"}}, "usage": dear}
    parts: dict[str, Any] = {
        "coder": {"match": {"agent": "sub"}, "lines": [make, {"say": "The report.", "usage": dear}]},
        "main": {
            "lines": [
                {"call": {"Agent": delegate}},
                {"say": "never"},
            ],
            "anytime": [
                {
                    "when": {"prompt": "finish up"},
                    "expect": {"session": "same", "history": "The report."},
                    "say": "Done.",
                    "then": "end",
                }
            ],
        },
    }
    async with stage(tmp_path, **parts) as here, here.runtime() as runtime:
        runtime.budget_usd = 0.3
        agents = {"coder": AgentDefinition(description="codes", prompt="CODER", tools=["Bash"], model="inherit")}
        agent = spec(allowed_tools=["Bash", "Agent"], agents=agents)
        first = await runtime.run(agent, "go")
        assert (first.ok, first.attempts) == (False, 1)
        assert first.cost_usd == pytest.approx(cost(here.model.tokens))
        assert first.cost_usd > 0.3
        asked = len(here.model.asked_of())
        refused = await runtime.run(agent, "finish up", resume=first.session_id)
        assert not refused.ok
        assert str(refused.error).startswith("预算(budget)用完了:上限 $0.30,已花 $0.40")
        assert len(here.model.asked_of()) == asked
        runtime.budget_usd = 1.0
        second = await runtime.run(agent, "finish up", resume=first.session_id)
        assert (second.ok, second.text, second.session_id) == (True, "Done.", first.session_id)
    assert (tmp_path / "ws" / "made.txt").read_text(encoding="utf-8") == "made\n"


@pytest.mark.case("SS-7")
async def test_a_question_about_a_run_starts_no_work(tmp_path: Path) -> None:
    """Whatever the oracle tries with its hands is refused, and no run begins or goes on."""
    tries = [
        {"Bash": {"command": "touch by-bash"}},
        {"Write": {"file_path": "${workspace}/by-write", "content": "x"}},
        {"Edit": {"file_path": "${workspace}/there", "old_string": "a", "new_string": "b"}},
    ]
    parts: dict[str, Any] = {
        "oracle": {
            "match": {"opening": "is it done"},
            "lines": [*({"call": each} for each in tries), {"expect": {"error": True}, "say": "Not yet."}],
        },
        "main": {"lines": ["Half of it."]},
    }
    async with stage(tmp_path, **parts) as here, here.runtime() as runtime:
        recent = Recent()
        (here.workspace / "there").write_text("a", encoding="utf-8")
        await runtime.run(spec(), "go", on_event=recent)
        before = runtime.manifest_path.read_bytes()
        places: dict[str, Any] = {"workspace": here.workspace, "run_dir": here.run_dir}
        answer = await ask_aside("is it done?", **places, recent=recent)
        assert (answer.ok, answer.text) == (True, "Not yet.")
        assert [asked.results[0].error for asked in here.model.asked_of("oracle")[1:]] == [True, True, True]
        assert "Half of it." in here.model.asked_of("oracle")[0].prompt
        assert len(here.model.asked_of("main")) == 1
        assert runtime.manifest_path.read_bytes() == before
        left = sorted(file.name for file in here.workspace.iterdir() if file.is_file())
        assert (left, (here.workspace / "there").read_text(encoding="utf-8")) == (["there"], "a")


def held() -> tuple[list[str], int, int, list[str]]:
    """What this process holds: open files, threads, tasks, children (dead ones too)."""
    gc.collect()
    files = []
    for number in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            files.append(str(number.readlink()).partition(":[")[0])
    children = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == os.getpid():
                children.append(entry.name)
    return sorted(files), threading.active_count(), len(asyncio.all_tasks()), children


@pytest.mark.case("OP-6")
async def test_runs_that_have_ended_leave_nothing_behind_in_the_process(tmp_path: Path) -> None:
    """Well ended, failed, cut, and cancelled ones, four at a time: afterwards all is as after the first of them."""
    lines = [{"call": {"Bash": {"command": "echo x"}}}, "Done."]

    async def one(here: Stage, how: str, number: int) -> None:
        async with here.runtime(run_dir=here.home / f"{how}-{number}", resilience=False) as runtime:
            sink = RecordingSink()
            task = asyncio.create_task(runtime.run(spec(), how, on_event=sink))
            if how == "cancelled":
                await sink.wait_for("tool_call")
                task.cancel()
            elif how == "ended":
                await sink.wait_for("tool_call")
                runtime.end()
            await asyncio.wait({task})

    async with stage(tmp_path, lines, strict=False) as here:
        await one(here, "first", 0)
        before = held()
        for number in range(3):
            async with asyncio.TaskGroup() as group:
                for how in ("well", "again", "cancelled", "ended"):
                    group.create_task(one(here, how, number))
        await here.model.settled()
        await asyncio.sleep(0.2)  # connections of the model server close a moment later
        assert held() == before
