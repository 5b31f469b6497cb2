"""Plays a workflow to its end, answering its questions: for tests of people's own workflows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from flower.core.events import Event
from flower.core.human import Ask, HumanChannel
from flower.testing.sink import RecordingSink
from flower.workflow.base import Runs, Workflow

Answer = str | None
"""What a person says to a question; None skips it."""
Answers = Sequence[Answer] | Callable[[Ask], Answer]


class UnansweredError(AssertionError):
    """The workflow asked more than there were answers for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What came of a workflow."""

    context: dict[str, Any]
    sink: RecordingSink
    asks: list[Ask]

    @property
    def ok(self) -> bool:
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
    given: int = 0
    unanswered: list[str] = field(default_factory=list)

    def __call__(self, event: Event) -> None:
        self.sink(event)
        if event.kind == "ask" and event.payload.get("state") == "asked":
            self._answer(event.payload["id"])

    def _answer(self, name: str) -> None:
        ask = next(each for each in self.channel.asks if each.id == name)
        if callable(self.answers):
            answer = self.answers(ask)
        elif self.given < len(self.answers):
            answer = self.answers[self.given]
        else:
            self.unanswered.append(ask.question)
            answer = None
        self.given += 1
        if answer is None:
            self.channel.decline(name)
        else:
            self.channel.answer(name, answer)


async def play(
    workflow: Workflow, runtime: Runs, *, answers: Answers = (), sink: RecordingSink | None = None
) -> Played:
    """Run a workflow and answer what it asks, in order, or by a function of the question.

    The runtime stays open. The workflow's channel must have no sink of its own.

    Raises:
        UnansweredError: more was asked than there are answers for; those questions were skipped.
        Exception: whatever `Workflow.run` raises.
    """
    heard = sink or RecordingSink()
    channel = workflow.channel
    person = _Person(channel, answers, heard) if channel is not None else None
    context = await workflow.run(runtime, on_event=person or heard)
    if person is not None and person.unanswered:
        raise UnansweredError("no answer was given for: " + "; ".join(map(repr, person.unanswered)))
    return Played(context=context, sink=heard, asks=list(channel.asks) if channel is not None else [])
