"""Steps and the workflow that runs them (behaviour 17 and 18, API 14.1 to 14.3)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flower.core.agent import AgentSpec
from flower.core.events import Event
from flower.core.runtime import Runtime, StepResult
from flower.workflow.base import Ctx, Step, StepAbort, StepEnded, Workflow
from tests.fakes.runtime import FakeRuntime, LastingRuntime, Said

SPEC = AgentSpec("role", "Do it.")
NEVER: Callable[[StepResult, Ctx], bool] = lambda _result, _ctx: False  # noqa: E731 - reads as a word in a table


def step(name: str = "a", prompt: str | Callable[[Ctx], str] = "go", **kw: Any) -> Step:
    return Step(name, SPEC, prompt, **kw)


def lineage(runtime: LastingRuntime) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((runtime.run_dir / "lineage.json").read_text(encoding="utf-8"))
    return content


# Bad input first.


def test_a_step_that_fails_in_an_unknown_way_is_refused() -> None:
    with pytest.raises(ValueError, match="on_fail 是 'ignore'"):
        step(on_fail="ignore")


# The way through.


async def test_a_step_leaves_its_text_under_its_name() -> None:
    ctx = await Workflow([step("a"), step("b", lambda ctx: f"after {ctx['a']}")]).run(FakeRuntime(["one", "two"]))
    assert (ctx["a"], ctx["b"]) == ("one", "two")
    assert ctx.get("_failed_at") is None
    assert {name: result.text for name, result in ctx["_results"].items()} == {"a": "one", "b": "two"}
    assert ctx["_sessions"] == {"a": "s1", "b": "s2"}


async def test_the_context_is_the_workflows_own() -> None:
    flow = Workflow([step()], context={"given": 1})
    assert await flow.run(FakeRuntime(["x"])) is flow.context
    assert flow.context["given"] == 1


async def test_a_prompt_sees_what_came_before() -> None:
    runtime = FakeRuntime(["one", "two"])
    await Workflow([step("a"), step("b", lambda ctx: f"after {ctx['a']}")]).run(runtime)
    assert [call.prompt for call in runtime.calls] == ["go", "after one"]


async def test_reduce_decides_what_is_left() -> None:
    ctx = await Workflow([step(reduce=lambda result, _ctx: result.text.upper())]).run(FakeRuntime(["one"]))
    assert ctx["a"] == "ONE"


async def test_gates_and_callbacks_get_the_runtime_and_the_sink() -> None:
    def sink(_event: Event) -> None: ...

    runtime = FakeRuntime(["x"])
    ctx = await Workflow([step()]).run(runtime, on_event=sink)
    assert (ctx["_runtime"], ctx["_on_event"]) == (runtime, sink)


async def test_a_step_is_announced_before_it_runs() -> None:
    seen: list[Event] = []
    await Workflow([step("a"), step("b", when=lambda _ctx: False), step("c")]).run(
        FakeRuntime(["x", "y"]), on_event=seen.append
    )
    assert [(event.kind, event.text, event.payload) for event in seen] == [
        ("step", "a", {"index": 1, "total": 3, "resumed": False, "woke": 1}),
        ("step", "c", {"index": 3, "total": 3, "resumed": False, "woke": 1}),
    ]


# Failing.


async def test_a_plain_retry_starts_over_exactly_as_the_first_attempt_did() -> None:
    rendered: list[int] = []

    def prompt(_ctx: Ctx) -> str:
        rendered.append(1)
        return "go"

    runtime = FakeRuntime(["source", Said("1", ok=False), Said("2", ok=False), "3"])
    await Workflow([step("a"), step("b", prompt, resume_from="a", fork=True, retries=2)]).run(runtime)
    assert [(call.step, call.prompt, call.resume, call.fork) for call in runtime.calls[1:]] == [
        ("b", "go", "s1", True),
        ("b#retry1", "go", "s1", True),
        ("b#retry2", "go", "s1", True),
    ]
    assert rendered == [1]


async def test_a_rejected_branch_is_not_branched_again() -> None:
    runtime = FakeRuntime(["source", "branch", "on"])
    judged: dict[str, Any] = {"gate": lambda r, _c: r.text == "on", "on_reject": lambda _r, _c: "more", "retries": 1}
    branch = step("b", resume_from="a", fork=True, **judged)
    await Workflow([step("a"), branch]).run(runtime)
    assert [(call.resume, call.fork) for call in runtime.calls] == [(None, False), ("s1", True), ("s2", False)]


async def test_nobody_is_asked_what_to_say_after_the_last_rejection() -> None:
    asked: list[str] = []

    def feedback(result: StepResult, _ctx: Ctx) -> str:
        asked.append(result.text)
        return "again"

    await Workflow([step(gate=NEVER, on_reject=feedback, retries=1)]).run(FakeRuntime(["one", "two"]))
    assert asked == ["one"]


# Ended by a person.


@pytest.mark.parametrize("on_fail", ["stop", "skip", "continue"])
async def test_a_run_ended_by_a_person_ends_whatever_its_step_says(on_fail: str) -> None:
    seen: list[str] = []
    runtime = FakeRuntime([Said("half", ok=False, error="ended-by-human")])
    flow = Workflow(
        [step("a", retries=3, on_fail=on_fail, gate=NEVER, on_reject=lambda _r, _c: "again"), step("b")],
    )
    ctx = await flow.run(runtime, on_step=lambda step, _result: seen.append(step.name))
    assert (ctx["_failed_at"], runtime.steps, seen) == ("a", ["a"], ["a"])
    assert "_aborted" not in ctx


async def test_a_run_ended_while_it_is_judged_ends() -> None:
    def gate(_result: StepResult, _ctx: Ctx) -> bool:
        raise StepEnded(Runtime.ENDED)

    runtime = FakeRuntime(["one"])
    ctx = await Workflow([step("a", gate=gate, retries=3, on_fail="continue"), step("b")]).run(runtime)
    assert (ctx["_failed_at"], runtime.steps, "_aborted" in ctx) == ("a", ["a"], False)


# Objects that live longer than one run.


async def test_a_good_second_run_is_not_called_failed_for_the_first() -> None:
    flow = Workflow([step()])
    assert (await flow.run(FakeRuntime([Said(ok=False)])))["_failed_at"] == "a"
    assert (await flow.run(FakeRuntime(["fine"]))).get("_failed_at") is None
    flow.context["_aborted"] = "no use"
    assert "_aborted" not in await flow.run(FakeRuntime(["fine"]))


# Continuity.


async def test_a_session_is_written_down_the_moment_it_is_known(tmp_path: Path) -> None:
    class Dies(LastingRuntime):
        async def run(self, *args: Any, **kw: Any) -> StepResult:
            await super().run(*args, **kw)
            raise KeyboardInterrupt

    runtime = Dies(["x"], workspace=tmp_path)
    with pytest.raises(KeyboardInterrupt):
        await Workflow([step()]).run(runtime)
    assert lineage(runtime)["steps"] == {"a": "s1"}
    assert runtime.on_session is None


async def test_a_session_of_this_process_is_not_replaced_by_a_recorded_one(tmp_path: Path) -> None:
    await Workflow([step()]).run(LastingRuntime(["one"], workspace=tmp_path))
    flow = Workflow([step()], context={"_sessions": {"a": "mine"}})
    again = LastingRuntime(["two"], workspace=tmp_path)
    await flow.run(again)
    assert again.calls[0].resume == "mine"


async def test_without_continuity_sessions_are_new_and_nothing_is_written(tmp_path: Path) -> None:
    await Workflow([step()]).run(LastingRuntime(["one"], workspace=tmp_path))
    again = LastingRuntime(["two"], workspace=tmp_path)
    ctx = await Workflow([step()], continuous=False).run(again)
    assert again.calls[0].resume is None
    assert "_lineage" not in ctx
    assert lineage(again)["woke"] == 1


async def test_resume_from_is_stronger_than_the_lineage_and_no_continuation(tmp_path: Path) -> None:
    flow = [step("a"), step("b", resume_from="a", resume_prompt="carry on")]
    await Workflow(flow).run(LastingRuntime(["1", Said("2", session="own")], workspace=tmp_path))
    again = LastingRuntime(["3", "4"], workspace=tmp_path)
    await Workflow(flow).run(again)
    assert [(call.step, call.prompt, call.resume) for call in again.calls] == [("a", "go", "s1"), ("b", "go", "s1")]


async def test_the_session_that_took_over_in_a_step_is_the_one_remembered(tmp_path: Path) -> None:
    class HandsOver(LastingRuntime):
        async def run(self, *args: Any, **kw: Any) -> StepResult:
            result = await super().run(*args, **kw)
            result.session_id = "successor"
            return result

    runtime = HandsOver(["one"], workspace=tmp_path)
    ctx = await Workflow([step()]).run(runtime)
    assert lineage(runtime)["steps"] == {"a": "successor"}
    assert ctx["_sessions"] == {"a": "successor"}


# Whatever happens to the attempts.

ATTEMPTS = st.lists(st.sampled_from(["fails", "rejected", "passes", "aborts", "ended"]), min_size=1, max_size=4)
STEPS = st.lists(
    st.tuples(ATTEMPTS, st.integers(-1, 3), st.sampled_from(["stop", "skip", "continue"]), st.booleans()),
    min_size=1,
    max_size=4,
)


@given(plan=STEPS)
def test_each_step_has_one_end_and_the_books_agree(plan: list[tuple[list[str], int, str, bool]]) -> None:
    """Against a naive reading of the table in behaviour 17.2."""
    script: list[Said | str] = []
    steps, reported, expected_calls, expected_left, failed_at = [], [], [], {}, None

    def gate(result: StepResult, _ctx: Ctx) -> bool:
        if result.text == "aborts":
            raise StepAbort("no use")
        return result.text == "passes"

    for number, (attempts, retries, on_fail, speaks) in enumerate(plan):
        name = f"s{number}"
        on_reject = (lambda _r, _c: "again") if speaks else None
        steps.append(step(name, retries=retries, on_fail=on_fail, gate=gate, on_reject=on_reject))
        if failed_at is not None:
            continue
        happens = [*attempts, *["passes"] * 4][: max(0, retries) + 1]
        cut = next((at for at, end in enumerate(happens) if end in ("passes", "aborts", "ended")), len(happens) - 1)
        happens = happens[: cut + 1]
        script += [Said(end, ok=end not in ("fails", "ended"), error=ERRORS.get(end)) for end in happens]
        labels = [name, *(f"{name}#round{n + 1}" if speaks else f"{name}#retry{n}" for n in range(1, 5))]
        expected_calls += labels[: len(happens)]
        if happens[-1] == "passes" or (on_fail == "continue" and happens[-1] != "ended"):
            expected_left[name] = happens[-1]
        elif happens[-1] == "ended" or on_fail == "stop":
            failed_at = name

    runtime = FakeRuntime(script)
    ctx = asyncio.run(Workflow(steps).run(runtime, on_step=lambda step, _result: reported.append(step.name)))
    assert runtime.steps == expected_calls
    assert {name: text for name, text in ctx.items() if not name.startswith("_")} == expected_left
    assert ctx.get("_failed_at") == failed_at
    assert reported == list(ctx["_results"]) == list(ctx["_sessions"])


ERRORS = {"ended": "ended-by-human", "fails": "it broke"}
