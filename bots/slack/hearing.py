"""From what Slack delivers to what it is answered: read it, have it kept, and only then confirm it (rulings R15).

Knows no library: `chat.py` hands in payloads and carries the answers back.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from bots.slack import inbound, outbound
from bots.slack.inbound import FormRequest, Me, Silence
from bridge.errors import BridgeError, ChatError
from bridge.model import Inbound, PersonId, PlaceRef, Summons, ThreadRef
from bridge.ports import Accept

log = logging.getLogger(__name__)

ACCEPT_SECONDS = 2.6
"""From the arrival of a payload to the end of its accepting. The bridge keeps a shorter deadline of its own (2.2 s,
rulings R15) and takes back what came too late; this one is for an accept that hangs. Slack waits three seconds."""
FORM_SECONDS = 2.4
"""A trigger dies after three seconds."""
TOLD_KEPT = 1_000


@dataclass(frozen=True, slots=True)
class Reply:
    """What Slack gets. Not `confirmed`: nothing, so that an event comes again and a command is seen to have failed."""

    confirmed: bool
    body: Mapping[str, Any] | None = None


TAKEN = Reply(True)
NOT_TAKEN = Reply(False)


class Voice(Protocol):
    """How a person who is not heard is told so."""

    async def whisper(self, where: PlaceRef | ThreadRef, person: PersonId, text: str, *, private: str = "") -> None: ...

    async def open_form(self, asked: FormRequest) -> None: ...

    async def name_of(self, person: PersonId) -> str:
        """The display name of a person, or an empty string where it cannot be told quickly. Never raises."""
        ...


class Hearing:
    """Answers the payloads of one connection. Payloads of one thread are accepted in the order in which they came."""

    def __init__(self, accept: Accept, voice: Voice, *, me: Me, phrases: outbound.Phrases) -> None:
        self._accept = accept
        self._voice = voice
        self._me = me
        self._phrases = phrases
        self._lanes = _Lanes()
        self._told: dict[str, None] = {}

    async def answer(self, body: Mapping[str, Any]) -> Reply:
        """Deal with one payload, the mapping that it is in Socket Mode. Takes its place in the order before it waits.

        A redelivery is dealt with like any other: it may be the only copy that came through (DL-2).
        """
        if body.get("type") == "event_callback":
            return await self._event(inbound.read_event(body, self._me))
        if "command" in body:
            return await self._command(inbound.read_command(body, self._me, now=time.time()))
        return await self._interaction(inbound.read_interaction(body, self._me, now=time.time()), body)

    async def _event(self, heard: Inbound | Silence) -> Reply:
        if isinstance(heard, Silence):
            return _passed_over(heard)
        if await self._take(heard):
            return TAKEN
        if heard.id not in self._told:  # it may come again, and then it is enough to have said it once
            self._told[heard.id] = None
            if len(self._told) > TOLD_KEPT:
                self._told.pop(next(iter(self._told)))
            await self._tell(heard, self._phrases.away_words)
        return NOT_TAKEN

    async def _command(self, heard: Summons | Silence) -> Reply:
        if isinstance(heard, Silence):
            return _passed_over(heard)
        if await self._take(heard):
            return Reply(True, outbound.received(heard.text, self._phrases))
        await self._tell(heard, self._phrases.away, private=heard.private)
        return NOT_TAKEN

    async def _interaction(self, heard: Inbound | FormRequest | Silence, body: Mapping[str, Any]) -> Reply:
        private = str(body.get("response_url") or "")
        if heard is Silence.EMPTY:
            return Reply(True, outbound.form_error(self._phrases.empty_form))
        if isinstance(heard, Silence):
            return _passed_over(heard)
        if isinstance(heard, FormRequest):
            return await self._open_form(heard, private=private)
        if await self._take(heard):
            return TAKEN
        if body.get("type") == "view_submission":
            return Reply(True, outbound.form_error(self._phrases.away))
        await self._tell(heard, self._phrases.away, private=private)
        return NOT_TAKEN

    async def _take(self, heard: Inbound) -> bool:
        """Have it kept; False after any trouble."""
        place = heard.place if isinstance(heard, Summons) else heard.thread
        try:
            async with asyncio.timeout(ACCEPT_SECONDS), self._lanes.at(place.key):
                return await self._accept(await self._named(heard))
        except (BridgeError, TimeoutError) as err:
            log.warning("slack.not_taken", extra={"id": heard.id, "why": str(err) or "too slow"})
        except Exception:  # boundary: one inbound must not end the hearing of the others
            log.exception("slack.not_taken", extra={"id": heard.id})
        return False

    async def _named(self, heard: Inbound) -> Inbound:
        """Put the author's name in, which Slack leaves out of messages."""
        if heard.author.name:
            return heard
        name = await self._voice.name_of(heard.author.id)
        return dataclasses.replace(heard, author=dataclasses.replace(heard.author, name=name))

    async def _open_form(self, asked: FormRequest, *, private: str) -> Reply:
        try:
            async with asyncio.timeout(FORM_SECONDS):
                await self._voice.open_form(asked)
        except (ChatError, TimeoutError) as err:
            log.warning("slack.form_failed", extra={"why": str(err) or "too slow"})
            await self._whisper(asked.thread, asked.author.id, self._phrases.form_failed, private=private)
        return TAKEN

    async def _tell(self, heard: Inbound, words: str, *, private: str = "") -> None:
        where = heard.place if isinstance(heard, Summons) else heard.thread
        await self._whisper(where, heard.author.id, words, private=private)

    async def _whisper(self, where: PlaceRef | ThreadRef, person: PersonId, words: str, *, private: str) -> None:
        try:
            await self._voice.whisper(where, person, words, private=private)
        except ChatError as err:
            log.warning("slack.word_not_said", extra={"why": str(err)})


def _passed_over(why: Silence) -> Reply:
    log.debug("slack.passed_over", extra={"why": why.value})
    return TAKEN


class _Lanes:
    """One at a time per key, in the order in which they came. Remembers nothing of keys at which nobody is."""

    def __init__(self) -> None:
        self._lanes: dict[str, tuple[asyncio.Lock, int]] = {}

    @contextlib.asynccontextmanager
    async def at(self, key: str) -> AsyncIterator[None]:
        lock, waiting = self._lanes.get(key, (asyncio.Lock(), 0))
        self._lanes[key] = (lock, waiting + 1)
        try:
            async with lock:
                yield
        finally:
            _, waiting = self._lanes[key]
            if waiting == 1:
                del self._lanes[key]
            else:
                self._lanes[key] = (lock, waiting - 1)
