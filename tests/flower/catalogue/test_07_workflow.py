"""Behaviour 28.7, each item a test:

*Workflow:* the `on_fail` table; skip writes nothing; `ValueError` for `resume_from`; labels; gate once, not when `ok`
is false; `StepAbort`; `on_reject` resume, empty return, no session; async callbacks; step object unchanged; second run
of one object; duck-typed runtime without lineage.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flower.core.agent import AgentSpec
from flower.core.events import Event
from flower.core.runtime import StepResult
from flower.workflow.base import Ctx, Step, StepAbort, Workflow
from tests.fakes.runtime import FakeRuntime, LastingRuntime, Said

SPEC = AgentSpec("role", "Do it.")
NEVER: Callable[[StepResult, Ctx], bool] = lambda _result, _ctx: False  # noqa: E731 - reads as a word in a table


def step(name: str = "a", prompt: str | Callable[[Ctx], str] = "go", **kw: Any) -> Step:
    return Step(name, SPEC, prompt, **kw)


# -- the `on_fail` table ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("on_fail", "left", "failed_at", "goes_on"),
    [("stop", None, "a", False), ("skip", None, None, True), ("continue", "half", None, True)],
)
async def test_the_on_fail_table(on_fail: str, left: str | None, failed_at: str | None, goes_on: bool) -> None:
    first = step("a", on_fail=on_fail, reduce=lambda _result, _ctx: "reduced")
    ctx = await Workflow([first, step("b")]).run(FakeRuntime([Said("half", ok=False, error="it broke"), "two"]))
    assert ctx.get("a") == left
    assert ctx.get("_failed_at") == failed_at
    assert ("b" in ctx) is goes_on
    assert ctx["_results"]["a"].error == "it broke"


@pytest.mark.parametrize("on_fail", ["stop", "skip", "continue"])
async def test_the_on_fail_table_counts_for_a_refused_step_too(on_fail: str) -> None:
    ctx = await Workflow([step("a", on_fail=on_fail, gate=NEVER), step("b")]).run(FakeRuntime(["half", "two"]))
    assert (ctx.get("a"), ctx.get("_failed_at"), "b" in ctx) == {
        "stop": (None, "a", False),
        "skip": (None, None, True),
        "continue": ("half", None, True),
    }[on_fail]


# -- skip writes nothing ------------------------------------------------------------------------------------------


async def test_skip_writes_nothing() -> None:
    seen: list[str] = []

    async def no(_ctx: Ctx) -> bool:
        return False

    ctx = await Workflow([step(when=no)]).run(FakeRuntime([]), on_step=lambda step, _result: seen.append(step.name))
    assert ("a" in ctx, ctx["_results"], seen) == (False, {}, [])


async def test_skip_writes_nothing_so_whoever_reads_it_gets_a_key_error() -> None:
    flow = Workflow([step("a", on_fail="skip"), step("b", lambda ctx: ctx["a"])])
    with pytest.raises(KeyError, match="a"):
        await flow.run(FakeRuntime([Said("half", ok=False)]))


# -- `ValueError` for `resume_from` -------------------------------------------------------------------------------


async def test_value_error_for_resume_from() -> None:
    with pytest.raises(ValueError, match="没有产生 session"):
        await Workflow([step(resume_from="nobody")]).run(FakeRuntime(["never said"]))


async def test_value_error_for_resume_from_a_step_that_was_skipped() -> None:
    flow = Workflow([step("a", when=lambda _ctx: False), step("b", resume_from="a")])
    with pytest.raises(ValueError, match="没有产生 session"):
        await flow.run(FakeRuntime(["never said"]))


async def test_resume_from_resumes_and_forks() -> None:
    runtime = FakeRuntime(["1", "2", "3"])
    await Workflow([step("a"), step("b", resume_from="a"), step("c", resume_from="a", fork=True)]).run(runtime)
    assert [(call.resume, call.fork) for call in runtime.calls] == [(None, False), ("s1", False), ("s1", True)]


# -- labels -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("on_reject", "labels"),
    [(None, ["a", "a#retry1", "a#retry2"]), (lambda _r, _c: "again", ["a", "a#round2", "a#round3"])],
)
async def test_labels(on_reject: Any, labels: list[str]) -> None:
    runtime = FakeRuntime(["1", "2", "3"])
    await Workflow([step(gate=NEVER, on_reject=on_reject, retries=2)]).run(runtime)
    assert runtime.steps == labels


async def test_labels_with_a_suffix_never_enter_the_lineage(tmp_path: Path) -> None:
    runtime = LastingRuntime(["1", Said("2", session="later")], workspace=tmp_path)
    ctx = await Workflow([step(gate=lambda r, _c: r.text == "2", retries=1)]).run(runtime)
    assert runtime.steps == ["a", "a#retry1"]
    assert ctx["_lineage"].steps == {"a": "later"}


# -- gate once, not when `ok` is false ----------------------------------------------------------------------------


async def test_gate_once_not_when_ok_is_false() -> None:
    asked: list[str] = []

    async def gate(result: StepResult, _ctx: Ctx) -> bool:
        asked.append(result.text)
        return result.text == "3"

    ctx = await Workflow([step(gate=gate, retries=5)]).run(FakeRuntime([Said("1", ok=False), "2", "3"]))
    assert asked == ["2", "3"]
    assert ctx["a"] == "3"


# -- `StepAbort` --------------------------------------------------------------------------------------------------


async def test_step_abort() -> None:
    def gate(_result: StepResult, _ctx: Ctx) -> bool:
        raise StepAbort("no use")

    runtime = FakeRuntime(["one"])
    ctx = await Workflow([step(gate=gate, retries=5)]).run(runtime)
    assert (ctx["_aborted"], ctx["_failed_at"], runtime.steps) == ("no use", "a", ["a"])


async def test_step_abort_follows_on_fail() -> None:
    def gate(_result: StepResult, _ctx: Ctx) -> bool:
        raise StepAbort("no use")

    ctx = await Workflow([step("a", gate=gate, on_fail="continue"), step("b")]).run(FakeRuntime(["one", "two"]))
    assert (ctx["a"], ctx["b"], ctx["_aborted"], ctx.get("_failed_at")) == ("one", "two", "no use", None)


async def test_any_other_exception_of_a_gate_propagates() -> None:
    def broken(_result: StepResult, _ctx: Ctx) -> bool:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await Workflow([step(gate=broken)]).run(FakeRuntime(["x"]))


# -- `on_reject` resume, empty return, no session -----------------------------------------------------------------


async def test_on_reject_resume() -> None:
    async def feedback(result: StepResult, _ctx: Ctx) -> str:
        return f"not enough: {result.text}"

    runtime = FakeRuntime(["one", "two", "three"])
    gate = lambda result, _ctx: result.text == "three"  # noqa: E731
    await Workflow([step(gate=gate, on_reject=feedback, retries=2, fork=True)]).run(runtime)
    assert [(call.step, call.prompt, call.resume, call.fork) for call in runtime.calls] == [
        ("a", "go", None, False),
        ("a#round2", "not enough: one", "s1", False),
        ("a#round3", "not enough: two", "s1", False),
    ]


async def test_on_reject_empty_return() -> None:
    runtime = FakeRuntime(["one", "two"])
    ctx = await Workflow([step(gate=NEVER, on_reject=lambda _r, _c: "", retries=1)]).run(runtime)
    assert [(call.step, call.prompt, call.resume) for call in runtime.calls] == [
        ("a", "go", None),
        ("a#round2", "go", None),
    ]
    assert ctx["_failed_at"] == "a"


async def test_on_reject_no_session() -> None:
    class Mute(FakeRuntime):
        async def run(self, *args: Any, **kw: Any) -> StepResult:
            result = await super().run(*args, **kw)
            result.session_id = None
            return result

    runtime = Mute([Said(ok=False), Said(ok=False)])
    ctx = await Workflow([step(on_reject=lambda _r, _c: "words", retries=1)]).run(runtime)
    assert [(call.prompt, call.resume) for call in runtime.calls] == [("go", None), ("go", None)]
    assert ctx["_sessions"] == {}


# -- async callbacks ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_async", [False, True])
async def test_async_callbacks(is_async: bool) -> None:
    """`gate`, `when` and `on_reject` may be either; `prompt`, `resume_prompt` and `reduce` are plain functions."""
    called: list[str] = []

    def either(name: str, answer: Callable[..., Any]) -> Callable[..., Any]:
        def plain(*args: Any) -> Any:
            called.append(name)
            return answer(*args)

        async def later(*args: Any) -> Any:
            return plain(*args)

        return later if is_async else plain

    one = step(
        when=either("when", lambda _ctx: True),
        gate=either("gate", lambda result, _ctx: result.text == "2"),
        on_reject=either("on_reject", lambda _result, _ctx: "again"),
        reduce=lambda result, _ctx: f"reduced {result.text}",
        retries=1,
    )
    runtime = FakeRuntime(["1", "2"])
    ctx = await Workflow([one]).run(runtime)
    assert called == ["when", "gate", "on_reject", "gate"]
    assert [(call.prompt, call.resume) for call in runtime.calls] == [("go", None), ("again", "s1")]
    assert ctx["a"] == "reduced 2"


async def test_async_when_that_says_no() -> None:
    async def no(_ctx: Ctx) -> bool:
        return False

    assert "a" not in await Workflow([step(when=no)]).run(FakeRuntime([]))


# -- step object unchanged ----------------------------------------------------------------------------------------


async def test_step_object_unchanged() -> None:
    one = step(gate=NEVER, on_reject=lambda _r, _c: "again", retries=1, resume_prompt="on")
    before = copy.copy(one)
    await Workflow([one]).run(FakeRuntime(["x", "y"]))
    assert one == before


# -- second run of one object -------------------------------------------------------------------------------------


async def test_second_run_of_one_object() -> None:
    flow = Workflow([step("a", lambda ctx: f"had {ctx.get('a')}")])
    await flow.run(FakeRuntime(["one"]))
    runtime = FakeRuntime(["two"])
    ctx = await flow.run(runtime)
    assert [(call.prompt, call.resume) for call in runtime.calls] == [("had one", "s1")]
    assert ctx["a"] == "two"


async def test_second_run_of_one_object_returns_the_very_context() -> None:
    flow = Workflow([step()], context={"mine": 1})
    first = await flow.run(FakeRuntime(["x"]))
    second = await flow.run(FakeRuntime(["y"]))
    assert first is second is flow.context
    assert (second["mine"], second["a"]) == (1, "y")


# -- duck-typed runtime without lineage ---------------------------------------------------------------------------


async def test_duck_typed_runtime_without_lineage() -> None:
    """Only `run` is required, and it is only ever called with these words (API 14.3)."""
    given: list[dict[str, Any]] = []

    class Least:
        async def run(self, spec: AgentSpec, prompt: str, **words: Any) -> StepResult:
            given.append(words)
            return StepResult(step=words["step_name"], ok=True, text="fine", session_id="s")

    seen: list[Event] = []
    ctx = await Workflow([step()]).run(Least(), on_event=seen.append)
    assert [sorted(words) for words in given] == [["fork", "on_event", "resume", "step_name"]]
    assert (ctx["a"], "_lineage" in ctx, "_woke" in ctx) == ("fine", False, False)
    assert seen[0].payload == {"index": 1, "total": 1, "resumed": False, "woke": 1}
    assert ctx["_sessions"] == {"a": "s"}


async def test_duck_typed_runtime_has_no_lineage_keys() -> None:
    ctx = await Workflow([step()]).run(FakeRuntime(["x"]))
    assert "_lineage" not in ctx
    assert "_woke" not in ctx
