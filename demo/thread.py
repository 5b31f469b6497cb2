"""Reads a run's thread from the emulator, slot by slot: what people see, not what we think we sent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from demo.emulator import Emulator, buttons, shown_text

T = TypeVar("T")
Message = dict[str, Any]
LOOK_SECONDS = 0.1


class NotSeenError(Exception):
    """Something that should have come to be seen did not."""


async def until(look: Callable[[], Awaitable[T | None]], *, within: float, what: str) -> T:
    """Look until there is something; polls, since neither the emulator nor a run folder has an event to wait on.

    Raises:
        NotSeenError: it did not come in `within` seconds.
    """
    deadline = asyncio.get_running_loop().time() + within
    while True:
        if found := await look():
            return found
        if asyncio.get_running_loop().time() > deadline:
            raise NotSeenError(f"not seen within {within:.0f} s: {what}")
        await asyncio.sleep(LOOK_SECONDS)


def slot_of(message: Message) -> tuple[str, str]:
    """Return run and slot of one of the bot's messages, from the key in its first block; ("", "") for others."""
    blocks = message.get("blocks") or [{}]
    key = str(blocks[0].get("block_id") or "")
    run, _, rest = key.partition("/")
    slot, _, revision = rest.rpartition("/")
    return (run, slot) if slot and revision else ("", "")


@dataclass(slots=True)
class Thread:
    """One run's thread in a channel."""

    slack: Emulator
    channel: str
    run: str
    root: str

    async def messages(self) -> list[Message]:
        """All of the thread, the card first."""
        return [
            each
            for each in await self.slack.messages(self.channel)
            if each["ts"] == self.root or each.get("thread_ts") == self.root
        ]

    async def slots(self) -> dict[str, Message]:
        """The bot's messages by slot."""
        return {slot: each for each in await self.messages() if (slot := slot_of(each)[1])}

    async def doubled(self) -> list[str]:
        """Slots that stand more than once."""
        names = [slot_of(each)[1] for each in await self.messages()]
        return sorted({name for name in names if name and names.count(name) > 1})

    async def text(self) -> str:
        """All words of the thread."""
        return "\n".join(shown_text(each) for each in await self.messages())

    async def card(self) -> str:
        """Words of the card."""
        return shown_text((await self.slots())["card"])

    async def say(self, who: str, text: str) -> str:
        """Write into the thread; returns the message's ts."""
        return await self.slack.say(who, self.channel, text, self.root)

    async def press(self, who: str, slot: str, action: str) -> None:
        """Press a button of a slot."""
        await self.slack.press(who, self.channel, (await self.slots())[slot]["ts"], action)

    async def wait_for(self, words: str, *, within: float, what: str = "") -> Message:
        """Wait for a message with these words in it (case does not matter)."""

        async def look() -> Message | None:
            found = (each for each in await self.messages() if words.lower() in shown_text(each).lower())
            return next(found, None)

        return await until(look, within=within, what=what or f"a message with {words!r}")

    async def wait_for_ask(self, *, within: float, besides: frozenset[str] = frozenset()) -> tuple[str, Message]:
        """Wait for an ask that can be answered; returns its slot and message."""

        async def look() -> tuple[str, Message] | None:
            for slot, message in (await self.slots()).items():
                if slot.startswith("ask:") and slot not in besides and buttons(message):
                    return slot, message
            return None

        return await until(look, within=within, what="an open question with buttons")

    async def reactions(self, ts: str) -> set[str]:
        """Names of the reactions on a message."""
        message = next((each for each in await self.messages() if each["ts"] == ts), {})
        return {str(each["name"]) for each in message.get("reactions") or ()}


async def wait_for_thread(
    slack: Emulator, channel: str, *, within: float, besides: frozenset[str] = frozenset()
) -> Thread:
    """Wait for the card of a run that is not among `besides` (run names)."""

    async def look() -> Thread | None:
        for message in await slack.messages(channel):
            run, slot = slot_of(message)
            if slot == "card" and run not in besides:
                return Thread(slack, channel, run, str(message["ts"]))
        return None

    return await until(look, within=within, what="the card of a new run")
