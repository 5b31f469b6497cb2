"""What was posted in the threads of a run, the folded view, and how asks were settled."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from bridge.adapters.keys import Keys
from bridge.adapters.redis_door import Door
from bridge.adapters.redis_scripts import SAVE
from bridge.model import Posted, RunId, Settled
from bridge.ports import Checkpoint
from bridge.wire import decode_posted, decode_settled, encode_posted, encode_settled


class RedisThreads:
    """`Threads` on hashes of the run."""

    def __init__(self, door: Door, keys: Keys) -> None:
        self._door, self._keys = door, keys

    async def checkpoint(self, run: RunId) -> Checkpoint | None:
        seq, version, data = await self._door.do("HMGET", self._keys.view(run), "seq", "version", "data")
        if seq is None:
            return None
        return Checkpoint(seq=int(seq), version=int(version), data=data)

    async def save(self, run: RunId, checkpoint: Checkpoint, *, forget: Collection[str] = ()) -> None:
        keys = self._keys.view(run), self._keys.slots(run)
        await self._door.run(SAVE, keys, checkpoint.seq, checkpoint.version, checkpoint.data, *forget)

    async def slots(self, run: RunId) -> dict[str, Posted]:
        slots = await self._door.do("HGETALL", self._keys.slots(run))
        return {name.decode(): decode_posted(raw) for name, raw in slots.items()}

    async def note(self, run: RunId, posted: Posted) -> None:
        await self._door.do("HSET", self._keys.slots(run), posted.name, encode_posted(posted))

    async def settle(self, run: RunId, settled: Settled) -> Settled:
        key = self._keys.asks(run)
        answers = await self._door.all_of(
            [("HSETNX", key, settled.ask, encode_settled(settled)), ("HGET", key, settled.ask)]
        )
        return decode_settled(answers[1])

    async def settlements(self, run: RunId) -> Mapping[str, Settled]:
        settled = await self._door.do("HGETALL", self._keys.asks(run))
        return {ask.decode(): decode_settled(raw) for ask, raw in settled.items()}
