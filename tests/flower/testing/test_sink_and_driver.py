"""A sink that keeps events, and a driver that answers questions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from flower import AgentSpec, Ask, Event, HumanChannel, Step, StepResult, Workflow
from flower.testing import RecordingSink, StillWaitingError, UnansweredError, play


async def test_what_does_not_come_is_said_with_what_came() -> None:
    sink = RecordingSink()
    sink(Event("text", "hello"))
    with pytest.raises(TimeoutError, match=r"did not come within 0\.01 s; last came text: hello"):
        await sink.wait_for("ask", timeout=0.01)


async def test_a_sink_finds_what_came_and_waits_for_what_comes() -> None:
    sink = RecordingSink()
    sink(Event("text", "one"))
    assert (await sink.wait_for("text")).text == "one"
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(sink.wait_for(lambda event: event.text == "two", after=1))
        await asyncio.sleep(0)
        sink(Event("text", "two"))
        assert (await waiting).text == "two"


async def test_a_sink_tells_the_main_agent_from_its_subagents() -> None:
    sink = RecordingSink()
    sink(Event("text", "main", payload={"subagent": False}))
    sink(Event("text", "sub", payload={"subagent": True}))
    assert sink.texts() == ["main"]
    assert sink.texts(subagents=True) == ["main", "sub"]


class AskingRuntime:
    """A runtime whose only step asks the questions of a list."""

    def __init__(self, channel: HumanChannel, questions: list[str]) -> None:
        self.channel, self.questions = channel, questions

    async def run(self, spec: AgentSpec, prompt: str, *, step_name: str | None = None, **_: Any) -> StepResult:
        answers = [await self.channel.ask(question, ["yes", "no"]) for question in self.questions]
        return StepResult(step=step_name or spec.name, ok=True, text="/".join(ask.answer for ask in answers))


def asking(*questions: str) -> tuple[Workflow, AskingRuntime]:
    channel = HumanChannel()
    flow = Workflow([Step("ask", AgentSpec("asker", ""), "go")], channel=channel)
    return flow, AskingRuntime(channel, list(questions))


async def test_a_question_without_an_answer_fails_the_test_and_does_not_hang_it() -> None:
    flow, runtime = asking("one?", "two?")
    with pytest.raises(UnansweredError, match=r"no answer was given for: 'two\?'"):
        await play(flow, runtime, answers=["yes"])


@pytest.mark.parametrize(
    ("answers", "text"),
    [(["yes", "no"], "yes/no"), (lambda ask: ask.options[-1], "no/no")],
    ids=["in order", "by a function"],
)
async def test_questions_are_answered(answers: list[str | None] | Callable[[Ask], str], text: str) -> None:
    flow, runtime = asking("one?", "two?")
    played = await play(flow, runtime, answers=answers)
    assert played.ok
    assert played.context["ask"] == text
    assert [ask.state for ask in played.asks] == ["answered", "answered"]


async def test_none_skips_a_question() -> None:
    flow, runtime = asking("one?")
    played = await play(flow, runtime, answers=[None])
    assert [ask.state for ask in played.asks] == ["declined"]


async def test_what_an_answering_function_raises_fails_the_test_and_does_not_hang_it() -> None:
    def answer(ask: Ask) -> str:
        raise LookupError(f"no answer to {ask.question}")

    flow, runtime = asking("one?")
    with pytest.raises(LookupError, match=r"no answer to one\?"):
        await play(flow, runtime, answers=answer)


async def test_what_happens_beside_comes_out_with_its_own_cause() -> None:
    async def beside() -> None:
        raise KeyError("beside") from ValueError("the cause")

    flow, runtime = asking("one?")
    with pytest.raises(KeyError) as caught:
        await play(flow, runtime, answers=["yes"], beside=beside)
    assert isinstance(caught.value.__cause__, ValueError)


async def test_who_waits_beside_for_what_never_comes_fails_the_test_at_the_end_of_the_workflow() -> None:
    sink = RecordingSink()

    async def beside() -> None:
        await sink.wait_for("handoff", timeout=3600)

    flow, runtime = asking("one?")
    with pytest.raises(StillWaitingError, match="still waits for something that never came"):
        await play(flow, runtime, answers=["yes"], beside=beside, sink=sink)


async def test_what_happens_beside_begins_before_the_first_step_and_can_answer_by_itself() -> None:
    sink, seen = RecordingSink(), []

    async def beside() -> None:
        seen.append(len(sink.events))
        question = await sink.wait_for("ask")
        assert flow.channel is not None
        seen.append(flow.channel.answer(question.payload["id"], "from beside"))

    async def never(_: Ask) -> str:
        await asyncio.Event().wait()
        raise AssertionError("nobody sets that event")

    flow, runtime = asking("one?")
    played = await play(flow, runtime, answers=never, beside=beside, sink=sink)
    assert seen == [0, True]
    assert played.context["ask"] == "from beside"


async def test_a_person_may_take_time_and_may_be_too_late() -> None:
    over = asyncio.Event()

    async def late(ask: Ask) -> str:
        if ask.question == "one?":
            await over.wait()
        else:
            over.set()
            await asyncio.sleep(0)
        return f"to {ask.question}"

    flow, runtime = asking("one?", "two?")
    runtime.channel.timeout_s = 0.05
    played = await play(flow, runtime, answers=late)
    assert [ask.state for ask in played.asks] == ["timeout", "answered"]
    assert played.too_late == ["q1"]
