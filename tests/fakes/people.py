"""Who hears what a human channel tells, and agents that use its tools as the SDK does."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from flower.core.events import Event
from flower.core.human import Ask, HumanChannel

WAIT = 5.0
"""Seconds after which something that should come has not come."""


class Heard:
    """A sink that keeps what it hears and on which thread."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.threads: list[int] = []

    def __call__(self, event: Event) -> None:
        self.events.append(event)
        self.threads.append(threading.get_ident())

    @property
    def states(self) -> list[tuple[str, str]]:
        return [(event.payload["id"], event.payload["state"]) for event in self.events]


async def asked(channel: HumanChannel, number: int = 1) -> list[Ask]:
    """Wait until that many questions wait."""
    async with asyncio.timeout(WAIT):
        while len(channel.pending()) < number:  # noqa: ASYNC110 - a turn of the loop, not a wait
            await asyncio.sleep(0)
    return channel.pending()


async def use(channel: HumanChannel, name: str, **args: Any) -> str:
    """Call a tool as the SDK does, and return the text that the agent reads."""
    tools = {each.name: each for each in (channel._ask_tool(), channel._inbox_tool())}
    reply = await tools[name].handler(args)
    assert "is_error" not in reply
    (block,) = reply["content"]
    return str(block["text"])


class Answering(HumanChannel):
    """A channel with a person in front of it who says these things, in this order, and then nothing more."""

    def __init__(self, *answers: str) -> None:
        super().__init__(on_event=self._hear, timeout_s=5.0)
        self._answers = list(answers)

    def _hear(self, event: Event) -> None:
        if event.payload.get("state") == "asked":
            if self._answers:
                self.answer(event.payload["id"], self._answers.pop(0))
            else:
                self.decline(event.payload["id"])
