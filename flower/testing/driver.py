"""Plays a workflow to its end, with somebody who answers and somebody who acts: for tests of people's own workflows."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from flower.core.events import Event
from flower.core.human import Ask, HumanChannel
from flower.testing.sink import RecordingSink
from flower.workflow.base import Runs, Workflow

Answer = str | None
"""What a person says to a question; None skips it."""
Answers = Sequence[Answer] | Callable[[Ask], Answer | Awaitable[Answer]]
Beside = Callable[[], Awaitable[None]]


class UnansweredError(AssertionError):
    """The workflow asked more than there were answers for."""


class StillWaitingError(AssertionError):
    """The workflow is over, and what was to happen beside it has not happened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What came of a workflow."""

    context: dict[str, Any]
    """What `Workflow.run` returned: results by step name, and the keys with an underscore."""
    sink: RecordingSink
    asks: list[Ask]
    """Every question, with its state and its answer."""
    too_late: list[str]
    """Ids of the questions whose answer came when nobody waited for it any more."""

    @property
    def ok(self) -> bool:
        """Whether no step stopped the workflow."""
        return self.context.get("_failed_at") is None

    @property
    def events(self) -> list[Event]:
        return self.sink.events


@dataclass(slots=True)
class _Person:
    """Answers the questions of a channel, in their order or by a function."""

    channel: HumanChannel
    answers: Answers
    sink: RecordingSink
    tasks: asyncio.TaskGroup
    given: int = 0
    unanswered: list[str] = field(default_factory=list)
    too_late: list[str] = field(default_factory=list)
    thinking: list[asyncio.Task[None]] = field(default_factory=list)

    def __call__(self, event: Event) -> None:
        self.sink(event)
        if event.kind == "ask" and event.payload.get("state") == "asked":
            self._answer(event.payload["id"])

    def _answer(self, name: str) -> None:
        ask = next(each for each in self.channel.asks if each.id == name)
        number, self.given = self.given, self.given + 1
        if callable(self.answers):
            # In a task, also where it does not wait: what it raised in the sink, the channel would keep to itself.
            self.thinking.append(self.tasks.create_task(self._asked(self.answers, ask)))
            return
        if number < len(self.answers):
            answer = self.answers[number]
        else:
            self.unanswered.append(ask.question)
            answer = None
        self._say(name, answer)

    async def _asked(self, answers: Callable[[Ask], Answer | Awaitable[Answer]], ask: Ask) -> None:
        answer = answers(ask)
        self._say(ask.id, await answer if inspect.isawaitable(answer) else answer)

    def _say(self, name: str, answer: Answer) -> None:
        heard = self.channel.decline(name) if answer is None else self.channel.answer(name, answer)
        if not heard:
            self.too_late.append(name)


async def play(
    workflow: Workflow,
    runtime: Runs,
    *,
    answers: Answers = (),
    beside: Beside | None = None,
    sink: RecordingSink | None = None,
) -> Played:
    """Run a workflow to its end, answer what it asks, and do beside it what a test wants done.

    The runtime stays open. The workflow's channel must have no sink of its own. Call it on the loop on which the
    model, the runtime and the sink were made.

    Args:
        answers: what is said to the questions, in their order, or a function of the question; None skips one. An
            async function is a person who takes time: the question waits until it returns, or until its own time is
            over. What it was still thinking about when the workflow ended is dropped.
        beside: started with the workflow and before its first step: waits for a point of the story
            (`ScriptedModel.at`) or for an event (`RecordingSink.wait_for`) and then interrupts, sends mail, ends.
            What it raises ends the workflow and comes out of here.
        sink: keeps the events; give one if `beside` wants to wait for them.

    Raises:
        UnansweredError: more was asked than there are answers for; those questions were skipped.
        StillWaitingError: the workflow ended before `beside` did: it waits for what never came.
        Exception: whatever `Workflow.run`, `answers` or `beside` raises.
    """
    heard = sink or RecordingSink()
    channel = workflow.channel
    trouble: BaseException | None = None
    try:
        async with asyncio.TaskGroup() as tasks:
            person = _Person(channel, answers, heard, tasks) if channel is not None else None
            acting = tasks.create_task(_awaited(beside)) if beside is not None else None
            await asyncio.sleep(0)  # lets `beside` reach its first wait, so that it misses nothing
            context = await workflow.run(runtime, on_event=person or heard)
            for each in person.thinking if person is not None else ():
                each.cancel()
            if acting is not None and not acting.done():
                acting.cancel()
                raise StillWaitingError("the workflow ended, and `beside` still waits for something that never came")
    except BaseExceptionGroup as group:
        trouble = _first(group)
    if trouble is not None:
        raise trouble  # outside of the handler, so that its own cause and context stay
    if person is not None and person.unanswered:
        raise UnansweredError("no answer was given for: " + "; ".join(map(repr, person.unanswered)))
    return Played(
        context=context,
        sink=heard,
        asks=list(channel.asks) if channel is not None else [],
        too_late=person.too_late if person is not None else [],
    )


async def _awaited(beside: Beside) -> None:
    await beside()


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """What a test wants to see: the one thing that went wrong, not the group that carried it."""
    inner = group.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner
