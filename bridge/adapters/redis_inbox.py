"""What people did: one stream per platform, read as a group with one consumer of a stable name (RD-5, RD-6)."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from bridge.adapters.doubts import Doubts
from bridge.adapters.keys import Keys
from bridge.adapters.redis_door import Door, Entry
from bridge.adapters.redis_scripts import ACCEPT, GROUP, WITHDRAW
from bridge.errors import BadMessageError
from bridge.model import Inbound, Platform, Summons
from bridge.wire import decode_inbound, encode_inbound

log = logging.getLogger(__name__)

READERS, TAKER = "bridge", "taker"
REMEMBERED_MS = 7 * 24 * 3_600_000
"""How long an id is known: longer than any platform delivers again."""
DEAD = 1_000
"""Unreadable entries that are kept for people to look at."""
PAGE = 100


class RedisInbox:
    """`Inbox` on streams. What is accepted and not done is exactly what stands in the stream."""

    def __init__(self, door: Door, keys: Keys) -> None:
        self._door, self._keys = door, keys
        self._doubts = Doubts()
        self._in_step: set[Platform] = set()
        """Platforms of which nothing is pending in the store but what `_ready` and `_out` hold."""
        self._ready: dict[Platform, dict[str, Inbound]] = {}
        """By receipt, oldest first: read from the store, not handed out yet."""
        self._out: dict[Platform, set[str]] = {}
        """Receipts handed out and not done."""

    async def accept(self, inbound: Inbound) -> bool:
        with self._doubts.accepting(inbound.id):
            body = encode_inbound(inbound)
            return bool(await self._door.run(ACCEPT, self._streams(inbound), inbound.id, body, REMEMBERED_MS))

    async def withdraw(self, inbound: Inbound) -> None:
        await self._door.run(WITHDRAW, self._streams(inbound), inbound.id)
        for ready in self._ready.values():
            for receipt in [receipt for receipt, one in ready.items() if one.id == inbound.id]:
                del ready[receipt]
        self._doubts.clear(inbound.id)

    async def take(self, platform: Platform, *, wait: float) -> list[tuple[str, Inbound]]:
        await self._door.patiently(lambda: self._fetch(platform, wait))
        ready = self._ready[platform]
        await self._doubts.landed([inbound.id for inbound in ready.values()])
        taken = [(receipt, inbound) for receipt, inbound in ready.items() if inbound.id not in self._doubts]
        for receipt, _ in taken:
            del ready[receipt]
            self._out[platform].add(receipt)
        return taken

    async def done(self, platform: Platform, receipt: str) -> None:
        stream = self._keys.inbox(platform)
        await self._door.all_of([("XACK", stream, READERS, receipt), ("XDEL", stream, receipt)])
        self._out.get(platform, set()).discard(receipt)

    async def _fetch(self, platform: Platform, wait: float) -> None:
        """Bring into `_ready` what is pending (once, and after any trouble), then what is new."""
        ready = self._ready.setdefault(platform, {})
        self._out.setdefault(platform, set())
        if platform not in self._in_step:
            await self._door.run(GROUP, [self._keys.inbox(platform)], READERS)
            await self._fetch_pending(platform)
        # An answer that never reaches us leaves its entries pending: after anything but success we look there again.
        self._in_step.discard(platform)
        nothing_yet = all(inbound.id in self._doubts for inbound in ready.values())
        entries = await self._read(platform, ">", wait=wait if nothing_yet else 0.0)
        await self._keep(platform, entries)
        self._in_step.add(platform)

    async def _fetch_pending(self, platform: Platform) -> None:
        after = "0"
        while entries := await self._read(platform, after, wait=0.0):
            after = entries[-1][0]
            await self._keep(platform, entries)

    async def _read(self, platform: Platform, after: str, *, wait: float) -> list[Entry]:
        stream = self._keys.inbox(platform)
        answer = await self._door.read_streams({stream: after}, count=PAGE, wait=wait, group=(READERS, TAKER))
        return answer.get(stream, [])

    async def _keep(self, platform: Platform, entries: Iterable[Entry]) -> None:
        for receipt, fields in entries:
            if receipt in self._out[platform] or receipt in self._ready[platform]:
                continue  # looked at again after some trouble, or given again by a group that was made anew
            if fields is None:  # withdrawn while it was pending
                await self.done(platform, receipt)
                continue
            try:
                self._ready[platform][receipt] = decode_inbound(fields.get(b"m", b""))
            except BadMessageError as err:
                await self._bury(platform, receipt, fields.get(b"m", b""), str(err))

    async def _bury(self, platform: Platform, receipt: str, body: bytes, why: str) -> None:
        stream, dead = self._keys.inbox(platform), self._keys.inbox_dead(platform)
        log.warning("inbound.unreadable", extra={"platform": platform, "receipt": receipt})
        await self._door.all_of(
            [
                ("XADD", dead, "MAXLEN", "~", DEAD, "*", "m", body, "why", why),
                ("XACK", stream, READERS, receipt),
                ("XDEL", stream, receipt),
            ]
        )

    def _streams(self, inbound: Inbound) -> tuple[str, str]:
        platform = platform_of(inbound)
        return self._keys.inbox(platform), self._keys.inbox_ids(platform)


def platform_of(inbound: Inbound) -> Platform:
    return inbound.place.platform if isinstance(inbound, Summons) else inbound.thread.platform
