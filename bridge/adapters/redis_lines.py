"""Events up and commands down, on streams (infra facts 5)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from itertools import chain
from typing import Any

from bridge.adapters.keys import BELLS, Keys
from bridge.adapters.redis_door import Door, Entry
from bridge.adapters.redis_scripts import APPEND, FENCED, GAP, LAST, SEND
from bridge.commands import Command
from bridge.errors import BadMessageError, FencedError
from bridge.model import News, RunId
from bridge.ports import Ordered
from bridge.wire import decode_command, decode_news, encode_command, encode_news

log = logging.getLogger(__name__)

GUARD = 10_000
"""Entries of a bell, and commands and their ids of one run, that are kept at least."""
RINGS = 1_000
"""Rings of one bell that are read at once."""


def flat(news: Sequence[News]) -> list[Any]:
    """Seq and bytes in turn, as the scripts take them.

    Raises:
        ValueError: a `seq` is below 1.
    """
    if any(item.seq < 1 for item in news):
        raise ValueError("seq counts from 1")
    return list(chain.from_iterable((item.seq, encode_news(item)) for item in news))


def ring(keys: Keys, run: RunId) -> tuple[Any, ...]:
    return ("XADD", keys.bell(run), "MAXLEN", "~", GUARD, "*", "r", run)


def handed_in(answer: list[int], run: RunId, fence: int) -> int:
    """Read the answer of a script that appends: the last seq, or what was wrong."""
    code, number = answer
    if code == FENCED:
        raise FencedError(f"run {run}: attempt {fence} has been followed by attempt {number}")
    if code == GAP:
        raise ValueError(f"run {run}: the line goes up to {number}, and the news leave a gap behind it")
    return number


class RedisEventLine:
    """`EventLine` on one stream per run and sixteen bells."""

    def __init__(self, door: Door, keys: Keys) -> None:
        self._door, self._keys = door, keys
        self._heard: dict[str, str] = {}
        self._reported: dict[RunId, int] = {}

    async def append(self, run: RunId, news: Sequence[News], *, fence: int) -> int:
        keys = self._keys.state(run), self._keys.events(run)
        also = ring(self._keys, run) if news else ()
        answer = await self._door.run(APPEND, keys, fence, *flat(news), also=also)
        return handed_in(answer, run, fence)

    async def read(self, run: RunId, *, after: int = 0, count: int = 500) -> list[News]:
        found: list[News] = []
        while not found:
            entries = await self._door.do("XRANGE", self._keys.events(run), f"({after}-0", "+", "COUNT", count)
            if not entries:
                break
            found = [item for entry, fields in entries if (item := self._news(run, entry, fields))]
            after = int(entries[-1][0].partition(b"-")[0])
        return found

    async def last(self, run: RunId) -> int:
        return int(await self._door.run(LAST, [self._keys.events(run)]))

    async def trim(self, run: RunId, *, below: int) -> None:
        await self._door.do("XTRIM", self._keys.events(run), "MINID", "=", f"{below}-0")

    async def rung(self, *, wait: float) -> set[RunId]:
        if len(self._heard) < BELLS:
            self._heard = await self._now()
        rings = await self._door.patiently(lambda: self._door.read_streams(self._heard, count=RINGS, wait=wait))
        for bell, entries in rings.items():
            self._heard[bell] = entries[-1][0]
        return {
            RunId(fields[b"r"].decode())
            for entries in rings.values()
            for _, fields in entries
            if fields and b"r" in fields
        }

    async def _now(self) -> dict[str, str]:
        bells = self._keys.bells
        newest = await self._door.all_of([("XREVRANGE", bell, "+", "-", "COUNT", 1) for bell in bells], atomic=False)
        return {bell: entries[0][0].decode() if entries else "0-0" for bell, entries in zip(bells, newest, strict=True)}

    def _news(self, run: RunId, entry: bytes, fields: dict[bytes, bytes]) -> News | None:
        seq = int(entry.partition(b"-")[0])
        try:
            return decode_news(fields.get(b"m", b""))
        except BadMessageError:
            if seq > self._reported.get(run, 0):
                self._reported[run] = seq
                log.warning("event.unreadable", extra={"run": run, "seq": seq})
            return None


class RedisCommandLine:
    """`CommandLine` on one stream per run."""

    def __init__(self, door: Door, keys: Keys) -> None:
        self._door, self._keys = door, keys
        self._reported: dict[RunId, str] = {}

    async def send(self, run: RunId, command: Command) -> bool:
        keys = self._keys.commands(run), self._keys.command_ids(run)
        return bool(await self._door.run(SEND, keys, command.id, encode_command(command), GUARD))

    async def read(self, run: RunId, *, after: str = "", wait: float = 0.0) -> list[Ordered]:
        stream = self._keys.commands(run)
        seen = _entry(after) if after else "0-0"
        while True:
            position = seen
            answer = await self._door.patiently(
                lambda: self._door.read_streams({stream: position}, count=RINGS, wait=wait)  # noqa: B023 - awaited here
            )
            entries = answer.get(stream, [])
            found = [ordered for entry in entries if (ordered := self._ordered(run, entry))]
            if found or not entries:
                return found
            seen = entries[-1][0]  # nothing readable so far

    def _ordered(self, run: RunId, entry: Entry) -> Ordered | None:
        position = _position(entry[0])
        try:
            return Ordered(position, decode_command((entry[1] or {}).get(b"m", b"")))
        except BadMessageError:
            if position > self._reported.get(run, ""):
                self._reported[run] = position
                log.warning("command.unreadable", extra={"run": run, "position": position})
            return None


def _position(entry: str) -> str:
    """Make a text out of a stream id that grows in the order of texts, too."""
    ms, _, number = entry.partition("-")
    return f"{int(ms):015d}-{int(number):010d}"


def _entry(position: str) -> str:
    ms, _, number = position.partition("-")
    return f"{int(ms)}-{int(number or 0)}"
