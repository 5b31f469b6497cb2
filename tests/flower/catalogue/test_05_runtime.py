"""Behaviour 28.5, each item a test:

*Runtime:* transient → wait, resume with `resume_prompt`; fatal → no retry; unknown with and without `retry_unknown`;
offline give-up suffix; text/cost/turn sums; ids taken early; `on_session` exceptions swallowed; manifest merge with
foreign rows and broken files; `rescue`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import UserMessage

from flower.core.events import Event
from flower.core.manifest import merged
from flower.core.resilience import Resilience
from flower.core.runtime import Runtime
from tests.fakes.client import Item, Own, Until, init, say
from tests.flower.scene import SPEC, Calm, Make, call, lost, rows, told

RESUME = "上一轮在中途被打断,没有跑完。检查一下工作台里已经落盘的东西,从中断处接着做,不要重头来过。"


@dataclass
class Noted(Resilience):
    """Notes in which order it is asked, and waits for nothing."""

    order: list[str] = field(default_factory=list)

    async def wait_online(self, notify: Callable[[str], object] | None = None) -> bool:
        self.order.append("wait")
        return True

    def delay_for(self, attempt: int) -> float:
        self.order.append(f"delay {attempt}")
        return 0.0


# -- transient → wait, resume with `resume_prompt` ----------------------------------------------------------------


async def test_transient_waits_and_resumes_with_resume_prompt(make: Make) -> None:
    runtime = make(
        [init(), say("half"), lost(), Own(is_error=True, total=0.1)], [init(), say("whole"), Own(total=0.15)]
    )
    events: list[Event] = []
    step = await runtime.run(SPEC, "go", on_event=events.append)
    assert runtime.resumed == [None, "S"]
    assert runtime.prompts == ["go", RESUME]
    assert (step.ok, step.attempts, step.resumed, step.text) == (True, 2, True, "whole")
    assert step.errors == ["API Error: ECONNRESET"]
    assert step.cost_usd == pytest.approx(0.15)
    (retry,) = [event for event in events if event.kind == "retry"]
    assert (retry.text, retry.payload) == ("第 1 次失败(transient),准备重试", {"step": "coder", "attempt": 1})


async def test_transient_waits_for_the_network_then_for_the_delay_of_each_attempt(make: Make) -> None:
    noted = Noted(resume_prompt="mine")
    failing: list[Item] = [init(), lost(), Own(is_error=True)]
    runtime = make(failing, failing, [init(), Own()], resilience=noted)

    def sink(event: Event) -> None:
        if event.kind == "retry":
            noted.order.append(event.text)

    step = await runtime.run(SPEC, "go", on_event=sink)
    assert noted.order == [
        *("第 1 次失败(transient),准备重试", "wait", "delay 1"),
        *("第 2 次失败(transient),准备重试", "wait", "delay 2"),
    ]
    assert runtime.prompts == ["go", "mine", "mine"]
    assert runtime.resumed == [None, "S", "S"]
    assert (step.ok, step.attempts, step.resumed) == (True, 3, True)


async def test_transient_without_a_session_repeats_the_original_call(make: Make) -> None:
    runtime = make([ConnectionError("ECONNREFUSED")], [init(), Own()])
    step = await runtime.run(SPEC, "go")
    assert runtime.prompts == ["go", "go"]
    assert (step.ok, step.attempts, step.resumed) == (True, 2, False)


async def test_transient_error_texts_never_reach_the_model(make: Make) -> None:
    """Behaviour 14: the resume prompt holds no detail of the error."""
    runtime = make([init(), say("half"), lost("API Error: secret gateway"), Own(is_error=True)], [init(), Own()])
    step = await runtime.run(SPEC, "go")
    assert "secret gateway" not in "".join(runtime.prompts) + step.text
    assert step.errors == ["API Error: secret gateway"]


# -- fatal → no retry ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["401 unauthorized", "credit balance too low", "Invalid API key · connection"])
async def test_fatal_is_not_retried(make: Make, text: str) -> None:
    runtime = make([init(), lost(text), Own(is_error=True)])
    step = await runtime.run(SPEC, "go")
    assert (step.ok, step.attempts, step.error) == (False, 1, text)


# -- unknown with and without `retry_unknown` ---------------------------------------------------------------------


@pytest.mark.parametrize(("retry_unknown", "attempts"), [(True, 3), (False, 1)])
async def test_unknown_with_and_without_retry_unknown(make: Make, retry_unknown: bool, attempts: int) -> None:
    odd: list[Item] = [init(), ValueError("odd")]
    runtime = make(odd, odd, odd, resilience=Calm(max_attempts=3, retry_unknown=retry_unknown))
    events: list[Event] = []
    step = await runtime.run(SPEC, "go", on_event=events.append)
    assert (step.ok, step.attempts, step.error) == (False, attempts, "ValueError: odd")
    assert told(events, "retry") == [f"第 {n} 次失败(unknown),准备重试" for n in range(1, attempts)]


# -- offline give-up suffix ---------------------------------------------------------------------------------------


async def test_offline_give_up_suffix(make: Make) -> None:
    runtime = make([init(), lost(), Own(is_error=True)], resilience=Calm(online=False))
    events: list[Event] = []
    step = await runtime.run(SPEC, "go", on_event=events.append)
    assert step.error == "API Error: ECONNRESET | 网络在 60 分钟 内未恢复"
    assert told(events, "retry") == [
        "第 1 次失败(transient),准备重试",
        "host:443 不可达,等待恢复(最多 60 分钟)",
    ]


# -- text/cost/turn sums ------------------------------------------------------------------------------------------


async def test_text_cost_turn_sums_over_retries_and_interrupts(make: Make) -> None:
    """`total_cost_usd` is cumulative over the session (API 2): what is booked is the difference."""
    runtime = make(
        [init(), say("one"), say("two"), lost(), Own(is_error=True, total=0.25, turns=3)],
        [init(), say("three"), lambda: runtime.interrupt("x", now=True), Until()],
        [init(), say("four"), say(" five "), Own(total=1.0, turns=2)],
    )
    runtime.after_cut = Own(total=0.5, turns=4, is_error=True, subtype="error_during_execution")
    step = await runtime.run(SPEC, "go")
    assert (step.cost_usd, step.num_turns) == (1.0, 9)
    assert step.text == "four\n five"
    assert runtime.total_cost() == 1.0


async def test_text_of_subagents_prompts_and_errors_never_enters(make: Make) -> None:
    below = say("below", parent_tool_use_id="toolu_1")
    runtime = make([init(), say("main"), below, UserMessage(content="brief"), lost(), say("more"), Own()])
    assert (await runtime.run(SPEC, "go")).text == "main\nmore"


async def test_text_that_is_empty_never_overwrites_an_earlier_one(make: Make) -> None:
    runtime = make(
        [init(), say("half"), ValueError("odd")], [init(), ValueError("odd")], resilience=Calm(max_attempts=2)
    )
    assert (await runtime.run(SPEC, "go")).text == "half"


# -- ids taken early ----------------------------------------------------------------------------------------------


async def test_ids_taken_early(make: Make) -> None:
    order: list[str] = []
    runtime = make([init(), say("x"), Own()])
    runtime.on_session = lambda session: order.append(f"session {session}")

    def sink(event: Event) -> None:
        flying = runtime.current
        assert flying is not None
        order.append(f"{event.kind} while {flying.session_id}")

    await runtime.run(SPEC, "go", on_event=sink)
    assert order == ["session S", "system while S", "text while S", "result while S"]


async def test_ids_taken_early_from_whichever_message_has_one(make: Make) -> None:
    cutting: list[Item] = [say("x", session_id="T"), lambda: runtime.interrupt("y", now=True), Until()]
    runtime = make(cutting, [init("T"), Own(session="T")])
    runtime.after_cut = Own(is_error=True, session="T")
    assert (await runtime.run(SPEC, "go")).session_id == "T"
    assert runtime.resumed == [None, "T"]


# -- `on_session` exceptions swallowed ----------------------------------------------------------------------------


async def test_on_session_exceptions_swallowed(make: Make) -> None:
    order: list[str] = []

    def listen(session: str) -> None:
        order.append(session)
        raise ValueError("disk full")

    runtime = make([init(), say("x"), Own()])
    runtime.on_session = listen
    assert (await runtime.run(SPEC, "go", on_event=lambda event: order.append(event.kind))).ok
    assert order == ["S", "system", "text", "result"]


# -- manifest merge with foreign rows and broken files ------------------------------------------------------------


async def test_manifest_merge_with_foreign_rows(make: Make) -> None:
    first, second = make([init(), Own(total=0.25)]), make([init("T"), Own(total=0.5, session="T")], [init("U"), Own()])
    foreign = {"step": "older", "run": "20250101-000000-abcdef", "cost_usd": 9.0, "a field of another version": [1]}
    first.manifest_path.write_text(json.dumps([foreign]), encoding="utf-8")
    await second.run(SPEC, "go", step_name="B")
    await first.run(SPEC, "go", step_name="A")
    await second.run(SPEC, "go", step_name="C")
    assert [(row["step"], row["run"]) for row in rows(first)] == [
        *(("older", "20250101-000000-abcdef"), ("A", first.run_id)),
        *(("B", second.run_id), ("C", second.run_id)),
    ]
    assert rows(first)[0] == foreign
    text = first.manifest_path.read_text(encoding="utf-8")
    assert text.startswith('[\n  {\n    "step": "older"')


@pytest.mark.parametrize(
    "broken", [b"", b"{", b"null", b"{}", b'"text"', b"[1, null, [], {}]", b"\xff\xfe", b"[" * 100_000]
)
async def test_manifest_merge_with_broken_files(make: Make, broken: bytes) -> None:
    runtime = make([init(), Own(total=0.25)])
    runtime.manifest_path.write_bytes(broken)
    assert (await runtime.run(SPEC, "go", step_name="A")).ok
    assert [row["step"] for row in rows(runtime) if "step" in row] == ["A"]


def test_manifest_merge_is_a_function_of_the_rows() -> None:
    there = [{"run": "x", "step": "1"}, {"run": "y", "step": "2"}, {"step": "of nobody"}]
    assert merged(there, "x", [{"step": "3"}]) == [*there[1:], {"run": "x", "step": "3"}]


# -- `rescue` -----------------------------------------------------------------------------------------------------


async def test_rescue(make: Make) -> None:
    seen: list[dict[str, Any]] = []

    def signal() -> None:
        runtime.rescue()
        seen.extend(rows(runtime))

    runtime = make([init(), signal, Own()])
    await runtime.run(SPEC, "go", step_name="A")
    (row,) = seen
    assert (row["step"], row["session_id"], row["error"]) == ("A", "S", "killed-by-signal")
    assert row["ended_at"] >= row["started_at"] > 0


async def test_rescue_is_idempotent(make: Make) -> None:
    def twice() -> None:
        runtime.rescue()
        runtime.rescue()

    runtime = make([init(), twice, Own(total=0.25)])
    step = await runtime.run(SPEC, "go", step_name="A")
    assert runtime.results == [step]
    (row,) = rows(runtime)
    # It went on after all: the row is put right.
    assert (row["step"], row["ok"], row["error"], row["cost_usd"]) == ("A", True, None, 0.25)


def test_rescue_never_raises(make: Make) -> None:
    runtime = make()
    runtime.manifest_path.mkdir()
    runtime.close()
    runtime.rescue()


async def test_rescue_leaves_an_error_that_is_known_already(make: Make) -> None:
    runtime = make([init(), call(), lambda: runtime.interrupt("x", now=True), Until()], [init(), Own()])
    seen: list[str | None] = []

    async def signalled(_words: str) -> None:
        runtime.rescue()
        seen.extend(row["error"] for row in rows(runtime))

    runtime.on_interrupted = signalled
    await runtime.run(SPEC, "go")
    assert seen == [Runtime.INTERRUPTED]


async def test_rescue_without_a_step_in_flight_writes_nothing_new(make: Make, tmp_path: Path) -> None:
    runtime = make([init(), Own()])
    runtime.rescue()
    assert not any(row for row in (rows(runtime) if runtime.manifest_path.exists() else []))
    await runtime.run(SPEC, "go", step_name="A")
    runtime.rescue()
    assert [row["step"] for row in rows(runtime)] == ["A"]
    assert [row["error"] for row in rows(runtime)] == [None]
