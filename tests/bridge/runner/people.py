"""Commands as people give them, for the runner's tests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bridge.commands import Answer, Command, Consult, Decline, End, Hold, Interrupt, Resume, Say
from bridge.model import MessageRef, News, Person
from tests.contracts.values import ANNA, BEN, THREAD

__all__ = ["ANNA", "BEN", "Told", "answer", "consult", "decline", "end", "hold", "interrupt", "resume", "say"]


def _act(name: str, by: Person, at: float) -> dict[str, Any]:
    return {"id": name, "by": by, "at": at, "message": MessageRef(THREAD, f"msg-{name}")}


def answer(name: str, ask: str, text: str, *, fence: int = 1, by: Person = ANNA, at: float = 5.0) -> Answer:
    return Answer(**_act(name, by, at), fence=fence, ask=ask, text=text)


def decline(name: str, ask: str, *, fence: int = 1, by: Person = ANNA, at: float = 5.0) -> Decline:
    return Decline(**_act(name, by, at), fence=fence, ask=ask)


def say(name: str, text: str, *, by: Person = ANNA, at: float = 5.0) -> Say:
    return Say(**_act(name, by, at), text=text)


def interrupt(name: str, text: str, *, by: Person = ANNA, at: float = 5.0) -> Interrupt:
    return Interrupt(**_act(name, by, at), text=text)


def hold(name: str, *, by: Person = ANNA, at: float = 5.0) -> Hold:
    return Hold(**_act(name, by, at))


def resume(name: str, text: str = "", *, by: Person = ANNA, at: float = 5.0) -> Resume:
    return Resume(**_act(name, by, at), text=text)


def end(name: str, reason: str = "", *, by: Person = ANNA, at: float = 5.0) -> End:
    return End(**_act(name, by, at), reason=reason)


def consult(name: str, question: str, *, by: Person = ANNA, at: float = 5.0) -> Consult:
    return Consult(**_act(name, by, at), question=question)


@dataclass(slots=True)
class Told:
    """What a teller handed on; can be waited on."""

    news: list[News] = field(default_factory=list)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def __call__(self, item: News) -> None:
        self.news.append(item)
        self._changed.set()

    async def until(self, wanted: Callable[[News], bool], *, within: float = 5.0) -> News:
        """Return the first item for which `wanted` is true."""
        async with asyncio.timeout(within):
            while True:
                if found := next((item for item in self.news if wanted(item)), None):
                    return found
                self._changed.clear()
                await self._changed.wait()

    def receipts(self, command: Command | str) -> list[tuple[str, str]]:
        """State and reason of each receipt of a command, in order."""
        name = command if isinstance(command, str) else command.id
        return [
            (item.payload["state"], item.text)
            for item in self.news
            if item.kind == "receipt" and item.payload["command"] == name
        ]

    @property
    def runs(self) -> list[str]:
        """States of the run, in order."""
        return [item.payload["state"] for item in self.news if item.kind == "run"]

    @property
    def asks(self) -> list[tuple[str, str]]:
        """Id and state of each ask's news, in order; mail left out."""
        return [
            (item.payload["id"], item.payload["state"])
            for item in self.news
            if item.kind == "ask" and item.payload.get("kind") != "mail"
        ]

    @property
    def mail(self) -> list[tuple[str, str, str]]:
        """Command, state and text of each mail's news, in order."""
        return [
            (item.payload["command"], item.payload["state"], item.text)
            for item in self.news
            if item.kind == "ask" and item.payload.get("kind") == "mail"
        ]
