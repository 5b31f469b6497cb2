"""What the scripted model was asked: kept, waited for, and judged at the end."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any

from flower.testing.conversation import Conversation, Result
from flower.testing.director import Plan, Refusal, require
from flower.testing.story import Story

KEPT_BODIES = 500
"""Requests of which the whole body is kept; of older ones only what was read out of it."""


class StoryFailedError(AssertionError):
    """Something was asked of the model that the story does not know, or a request that the API would refuse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A request that the story had no answer for."""

    at: float
    session: str = ""
    agent: str = ""
    part: str = ""
    line: str = ""
    why: str
    asked: str = ""
    """The beginning of what the agent was told last."""

    def __str__(self) -> str:
        who = ".".join(filter(None, (self.part, self.line))) or "nobody in the story"
        return f"{who}: {self.why}; asked: {self.asked!r}"


@dataclass(slots=True, kw_only=True)
class Asked:
    """One request to the model, as it was heard and what became of it."""

    number: int
    at: float
    conversation: Conversation
    part: str = ""
    line: str = ""
    prompt: str = ""
    """What was said to the agent since its last answer, without reminders."""
    results: tuple[Result, ...] = ()
    outcome: str = "waiting"
    """`waiting`, then `served`, `refused`, `error <status>`, `drop`, `hang`, `break`, or `cut` where the program
    left."""
    sent: int = 0
    """Events of the answer that have been sent so far."""

    @property
    def session(self) -> str:
        return self.conversation.session

    @property
    def agent(self) -> str:
        return self.conversation.agent

    @property
    def label(self) -> str:
        return f"{self.part}.{self.line}"

    @property
    def result(self) -> str:
        """The text of the newest tool results."""
        return "\n".join(result.text for result in self.results)

    def is_of(self, what: str) -> bool:
        """Whether it belongs to a part (`work`), to a line (`work.plan`) or to an alternative (`work.fork/2`).

        The name of a place stands for all its alternatives; a line said behind one of `anytime` has both names.
        """
        part, _, line = what.partition(".")
        if part and self.part != part:
            return False
        return not line or any(line in (said, said.partition("/")[0]) for said in self.line.split("+"))


def same_session(*asked: Asked) -> bool:
    """Whether requests belong to one conversation of one agent."""
    return len({(each.session, each.agent) for each in asked}) == 1


@dataclass(slots=True)
class _Waiter:
    what: str
    times: int
    heard: asyncio.Future[Asked] = field(repr=False)


class Hearing:
    """The requests so far, and the failures among them. Belongs to one event loop."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self.requests: list[Asked] = []
        self.failures: list[Failure] = []
        self._waiters: list[_Waiter] = []

    def hear(self, conversation: Conversation, decision: Plan | Refusal) -> Asked:
        """Keep a request, and wake who waits for it."""
        position = max((n for n, turn in enumerate(conversation.turns) if turn.is_answer), default=-1)
        news = conversation.since(position)
        asked = Asked(
            number=len(self.requests) + 1,
            at=time.time(),
            conversation=conversation,
            part=decision.part,
            line=decision.line,
            prompt=news.prompt,
            results=news.results,
        )
        self.requests.append(asked)
        if len(self.requests) > KEPT_BODIES:
            _forget_body(self.requests[-KEPT_BODIES - 1])
        self._wake()
        return asked

    def fail(self, asked: Asked, why: str) -> Failure:
        """Keep a failure. The program repeats a refused request a few times within a moment; that is one."""
        asked.outcome = "refused"
        failure = Failure(
            at=asked.at,
            session=asked.session,
            agent=asked.agent,
            part=asked.part,
            line=asked.line,
            why=why,
            asked=(asked.prompt or asked.result)[:300],
        )
        known = {(old.session, old.agent, str(old)) for old in self.failures}
        if (failure.session, failure.agent, str(failure)) not in known:
            self.failures.append(failure)
        return failure

    def fail_unheard(self, why: str) -> None:
        """Keep a failure of a request that was none to the model."""
        self.failures.append(Failure(at=time.time(), why=why))

    def of(self, what: str, session: str | None) -> list[Asked]:
        return [each for each in self.requests if each.is_of(what) and session in (None, each.session)]

    async def wait(self, what: str, times: int, timeout: float) -> Asked:
        """See `ScriptedModel.asked`."""
        require(self._story, what)
        waiter = _Waiter(what, times, asyncio.get_running_loop().create_future())
        self._waiters.append(waiter)
        try:
            self._wake()
            async with asyncio.timeout(timeout):
                return await waiter.heard
        except TimeoutError:
            last = ", ".join(each.label for each in self.requests[-10:]) or "nothing"
            count = len(self.of(what, None))
            raise TimeoutError(f"{what} was asked {count} times in {timeout:g} s, not {times}; last: {last}") from None
        finally:
            self._waiters.remove(waiter)

    def check(self) -> None:
        """Raises StoryFailedError with every failure, if there is one."""
        if self.failures:
            raise StoryFailedError("the story failed:\n" + "\n".join(f"- {each}" for each in self.failures))

    def conversations(self) -> list[dict[str, Any]]:
        """Who said which lines, as plain values, in the order of their beginnings."""
        found: dict[tuple[str, str], dict[str, Any]] = {}
        for each in self.requests:
            entry = found.setdefault(
                (each.session, each.agent),
                {"session": each.session, "agent": each.agent, "part": each.part, "lines": [], "model": ""},
            )
            entry["lines"].append({"line": each.line, "outcome": each.outcome})
            entry["model"] = each.conversation.model
        return list(found.values())

    def _wake(self) -> None:
        for waiter in self._waiters:
            found = self.of(waiter.what, None)
            if len(found) >= waiter.times and not waiter.heard.done():
                waiter.heard.set_result(found[waiter.times - 1])


def _forget_body(asked: Asked) -> None:
    old = asked.conversation
    asked.conversation = Conversation(
        session=old.session,
        agent=old.agent,
        parent=old.parent,
        model=old.model,
        stream=old.stream,
        system="",
        tools=old.tools,
        turns=(),
    )
