"""Behaviour 28.3, each item a test:

*Wiring:* channel wired iff all three conditions; own sink kept; `on_step` once per executed step also on failure; sink
raising in each class of event (5.2).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flower.core.agent import AgentSpec
from flower.core.events import Event
from flower.core.human import HumanChannel
from flower.core.runtime import StepResult
from flower.workflow.base import Step, Workflow
from flower.workflow.goal import goal_step
from tests.fakes.client import Item, Own, Until, init, say
from tests.fakes.people import Heard
from tests.fakes.runtime import FakeRuntime, Said
from tests.flower.scene import SPEC, Calm, Make, call, lost, rows, windowed


def step(name: str = "a", **kw: Any) -> Step:
    return Step(name, AgentSpec(name="role", instructions="Do it."), "go", **kw)


# -- channel wired iff all three conditions -----------------------------------------------------------------------


@pytest.mark.parametrize("has_channel", [True, False])
@pytest.mark.parametrize("somebody_listens", [True, False])
@pytest.mark.parametrize("has_own_sink", [True, False])
async def test_channel_wired_iff_all_three_conditions(
    has_channel: bool, somebody_listens: bool, has_own_sink: bool
) -> None:
    own, others = Heard(), Heard()
    channel = HumanChannel(on_event=own if has_own_sink else None)
    flow = Workflow([step()], channel=channel if has_channel else None)
    await flow.run(FakeRuntime(["x"]), on_event=others if somebody_listens else None)
    wired = has_channel and somebody_listens and not has_own_sink
    assert channel.on_event is (others if wired else own if has_own_sink else None)


# -- own sink kept ------------------------------------------------------------------------------------------------


async def test_own_sink_kept_and_questions_do_not_also_go_to_the_workflows() -> None:
    own, others = Heard(), Heard()
    channel = HumanChannel(on_event=own, timeout_s=0)
    await Workflow([step()], channel=channel).run(FakeRuntime(["x"]), on_event=others)
    await channel.ask("A?")
    assert channel.on_event is own
    assert own.states == [("q1", "timeout")]
    assert [event.kind for event in others.events] == ["step"]


async def test_own_sink_kept_once_wired_also_from_a_second_run() -> None:
    first, second = Heard(), Heard()
    channel = HumanChannel()
    flow = Workflow([step()], channel=channel)
    await flow.run(FakeRuntime(["x"]), on_event=first)
    await flow.run(FakeRuntime(["x"]), on_event=second)
    assert channel.on_event is first


# -- `on_step` once per executed step also on failure -------------------------------------------------------------


async def test_on_step_once_per_executed_step_also_on_failure() -> None:
    seen: list[tuple[str, str, bool]] = []
    runtime = FakeRuntime([Said("1", ok=False), "2", Said("3", ok=False)])

    def note(step: Step, result: StepResult) -> None:
        assert flow.context["_results"][step.name] is result
        seen.append((step.name, result.text, result.ok))

    flow = Workflow([step("a", retries=2), step("b", on_fail="skip")])
    await flow.run(runtime, on_step=note)
    assert seen == [("a", "2", True), ("b", "3", False)]


async def test_on_step_not_for_a_step_that_when_skipped() -> None:
    seen: list[str] = []
    flow = Workflow([step("a", when=lambda _ctx: False), step("b")])
    await flow.run(FakeRuntime([Said("x", ok=False)]), on_step=lambda step, _result: seen.append(step.name))
    assert seen == ["b"]


# -- sink raising in each class of event (5.2) --------------------------------------------------------------------


def broken_at(wanted: Callable[[Event], bool]) -> Callable[[Event], None]:
    def sink(event: Event) -> None:
        if wanted(event):
            raise ValueError("no screen")

    return sink


@pytest.mark.parametrize("kind", ["system", "text", "tool_call", "result"])
async def test_sink_raising_at_what_normalize_made_fails_the_attempt(make: Make, kind: str) -> None:
    script: list[Item] = [init(), say("x"), call(), Own()]
    runtime = make(script, script, script, resilience=Calm(max_attempts=3))
    step = await runtime.run(SPEC, "go", on_event=broken_at(lambda event: event.kind == kind))
    assert (step.ok, step.error, step.attempts) == (False, "ValueError: no screen", 3)
    assert [client.closed for client in runtime.clients] == [True] * 3
    assert [row["attempts"] for row in rows(runtime)] == [3]


async def test_sink_raising_at_a_near_handoff_fails_the_attempt(make: Make) -> None:
    runtime = make([init(), say("x", usage={"input_tokens": 140_000}), Own()], handoff=windowed(), resilience=False)
    step = await runtime.run(SPEC, "go", on_event=broken_at(lambda event: event.kind == "handoff"))
    assert (step.ok, step.error, step.attempts) == (False, "ValueError: no screen", 1)


async def test_sink_raising_at_a_retry_leaves_run(make: Make) -> None:
    runtime = make([init(), lost(), Own(is_error=True)])
    with pytest.raises(ValueError, match="no screen"):
        await runtime.run(SPEC, "go", on_event=broken_at(lambda event: event.kind == "retry"))
    assert [row["error"] for row in rows(runtime)] == ["API Error: ECONNRESET"]


async def test_sink_raising_at_the_resume_after_an_interrupt_leaves_run(make: Make) -> None:
    runtime = make([init(), lambda: runtime.interrupt("x", now=True), Until()])
    with pytest.raises(ValueError, match="no screen"):
        await runtime.run(SPEC, "go", on_event=broken_at(lambda event: event.kind == "retry"))


@pytest.mark.parametrize("phase", ["writing", "done"])
async def test_sink_raising_at_a_handoff_leaves_run(make: Make, phase: str) -> None:
    full: list[Item] = [init(), say("x", usage={"input_tokens": 160_000}), say("boundary"), Until()]
    document: list[Item] = [init(), say("## 现在在做什么\n1\n## 下一步\n2"), Own()]
    runtime = make(full, document, handoff=windowed())
    async with asyncio.timeout(5):
        with pytest.raises(ValueError, match="no screen"):
            await runtime.run(SPEC, "go", on_event=broken_at(lambda event: event.payload.get("phase") == phase))
    assert len(rows(runtime)) == 1


async def test_sink_raising_at_a_step_leaves_the_workflow() -> None:
    with pytest.raises(ValueError, match="no screen"):
        await Workflow([step()]).run(FakeRuntime(["x"]), on_event=broken_at(lambda event: event.kind == "step"))


async def test_sink_raising_at_the_goal_warning_leaves_the_workflow(tmp_path: Path) -> None:
    goal = "## 目标\nX\n## 判定清单\n- a [此环境无法验证:no screen]"
    flow = Workflow([goal_step(HumanChannel(), goal_path=tmp_path / "goal.md")])
    with pytest.raises(ValueError, match="no screen"):
        await flow.run(FakeRuntime([goal]), on_event=broken_at(lambda event: event.kind == "task"))


async def test_sink_raising_at_an_ask_or_at_mail_is_noted_and_the_run_goes_on() -> None:
    channel = HumanChannel(timeout_s=0)
    flow = Workflow([step()], channel=channel)
    await flow.run(FakeRuntime(["x"]), on_event=broken_at(lambda event: event.kind == "ask"))
    assert (await channel.ask("A?")).state == "timeout"
    assert channel.send("hello") is not None
    assert channel.ui_errors == ["ValueError: no screen"] * 2
