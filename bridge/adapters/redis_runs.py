"""Which runs there are, and the one lease per run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bridge.adapters.keys import Keys
from bridge.adapters.redis_door import Door
from bridge.adapters.redis_lines import flat, handed_in, ring
from bridge.adapters.redis_scripts import (
    ACQUIRE,
    BURY,
    CREATE,
    FENCED,
    FINISH,
    FINISHED,
    HELD,
    LEAD,
    LEAVE,
    LIVEN,
    MARK,
    RENEW,
    UNKNOWN,
)
from bridge.errors import FencedError, FinishedError, HeldError
from bridge.model import FINAL, News, Platform, RunId, RunRecord, RunStatus, ThreadRef
from bridge.ports import Standing
from bridge.wire import decode_record, encode_record

LISTED = 200
"""Most runs that `everyone` names."""
LINGER_MS = 3_600_000
"""How long after its last start `live` goes on looking at a run that has ended: it may be starting again."""
PAGE = 1_000
"""Commands in one round trip."""


class RedisRuns:
    """`Runs` on hashes, with the scripts of the lease."""

    def __init__(self, door: Door, keys: Keys) -> None:
        self._door, self._keys = door, keys

    async def create(self, record: RunRecord) -> bool:
        run = record.run
        keys = self._keys.record(run), self._keys.state(run)
        bare = encode_record(replace(record, thread=None))  # the thread has fields of its own: `bind` changes it
        made = bool(await self._door.run(CREATE, keys, bare))
        # Also when the name was taken: the process that took it may have died before it came here.
        await self._door.run(LIVEN, [self._keys.live], run, also=("ZADD", self._keys.runs, "NX", record.created, run))
        if made and record.thread:
            await self.bind(run, record.thread)
        return made

    async def record(self, run: RunId) -> RunRecord | None:
        key = self._keys.record(run)
        raw, platform, thread = await self._door.do("HMGET", key, "record", "platform", "thread")
        if raw is None:
            return None
        record = decode_record(raw)
        if platform is None:
            return record
        return replace(record, thread=ThreadRef(Platform(platform.decode()), thread.decode()))

    async def bind(self, run: RunId, thread: ThreadRef) -> None:
        record = await self.record(run)
        if record is None:
            raise LookupError(f"no such run: {run}")
        await self._door.do("SET", self._keys.thread(thread), run)
        await self._door.do("HSET", self._keys.record(run), "platform", thread.platform, "thread", thread.key)
        if record.thread and record.thread != thread:
            await self._door.run(LEAVE, [self._keys.thread(record.thread)], run)

    async def run_of(self, thread: ThreadRef) -> RunId | None:
        run = await self._door.do("GET", self._keys.thread(thread))
        return RunId(run.decode()) if run else None

    async def standing(self, run: RunId) -> Standing | None:
        # As a transaction: a status of before a clean end and a lease of after it would look like a lost runner.
        state, owner = await self._door.all_of([("HGETALL", self._keys.state(run)), ("GET", self._keys.lease(run))])
        if b"status" not in state:
            return None
        return Standing(
            status=state[b"status"].decode(),
            fence=int(state.get(b"fence", 0)),
            owner=owner.decode() if owner else "",
            since=int(state.get(b"since", 0)) / 1000,
        )

    async def live(self) -> set[RunId]:
        now, flat_pairs = await self._door.all_of(
            [("TIME",), ("ZRANGE", self._keys.live, 0, -1, "WITHSCORES")], atomic=False
        )
        old = now[0] * 1000 - LINGER_MS
        candidates = [
            (RunId(run.decode()), float(at)) for run, at in zip(flat_pairs[::2], flat_pairs[1::2], strict=True)
        ]
        found: set[RunId] = set()
        for at in range(0, len(candidates), PAGE):
            page = candidates[at : at + PAGE]
            states = await self._door.all_of(
                [("HGET", self._keys.state(run), "status") for run, _ in page], atomic=False
            )
            for (run, started), status in zip(page, states, strict=True):
                if status is not None and status.decode() not in FINAL:
                    found.add(run)
                elif started < old:
                    await self._door.run(BURY, [self._keys.live], run, started)
        return found

    async def everyone(self) -> list[RunId]:
        runs = await self._door.do("ZREVRANGE", self._keys.runs, 0, LISTED - 1)
        return [RunId(run.decode()) for run in runs]

    async def acquire(self, run: RunId, *, owner: str, ttl: float, reopen: bool = False) -> int:
        code, fence = await self._door.run(ACQUIRE, self._lease(run), owner, _ms(ttl), int(reopen))
        if code == UNKNOWN:
            raise LookupError(f"no such run: {run}")
        if code == FINISHED:
            raise FinishedError(f"run {run} has ended")
        if code == HELD:
            raise HeldError(f"run {run} is held by another runner")
        return int(fence)

    async def renew(self, run: RunId, *, owner: str, fence: int, ttl: float) -> None:
        if await self._door.run(RENEW, self._lease(run), owner, fence, _ms(ttl)) == FENCED:
            raise FencedError(f"run {run}: attempt {fence} is not the newest")

    async def mark(self, run: RunId, status: RunStatus, *, fence: int) -> None:
        code = await self._door.run(MARK, [self._keys.state(run)], fence, status)
        if code == UNKNOWN:
            raise LookupError(f"no such run: {run}")
        if code == FENCED:
            raise FencedError(f"run {run}: attempt {fence} is not the newest")

    async def finish(self, run: RunId, status: RunStatus, news: Sequence[News], *, fence: int) -> None:
        keys = self._keys.state(run), self._keys.events(run), self._keys.lease(run)
        answer = await self._door.run(FINISH, keys, fence, status, *flat(news), also=ring(self._keys, run))
        if answer[0] == UNKNOWN:
            raise LookupError(f"no such run: {run}")
        handed_in(answer, run, fence)

    async def leave(self, account: str, *, owner: str) -> None:
        await self._door.run(LEAVE, [self._keys.lead(account)], owner)

    async def leader(self, account: str) -> str:
        owner = await self._door.do("GET", self._keys.lead(account))
        return owner.decode() if owner else ""

    async def lead(self, account: str, *, owner: str, ttl: float) -> bool:
        return bool(await self._door.run(LEAD, [self._keys.lead(account)], owner, _ms(ttl)))

    def _lease(self, run: RunId) -> tuple[str, str]:
        return self._keys.state(run), self._keys.lease(run)


def _ms(seconds: float) -> int:
    return max(1, round(seconds * 1000))
