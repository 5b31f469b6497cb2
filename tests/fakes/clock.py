"""A clock that stands still until a test moves it."""

from __future__ import annotations

import asyncio
import heapq


class FakeClock:
    """`sleep` returns when `advance` has moved the time far enough."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self._now = now
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = 0

    def now(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        self._count += 1
        future = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now + seconds, self._count, future))
        await future

    def advance(self, seconds: float) -> None:
        """Move the time; who waited long enough goes on."""
        self._now += seconds
        while self._sleepers and self._sleepers[0][0] <= self._now:
            _, _, future = heapq.heappop(self._sleepers)
            if not future.done():
                future.set_result(None)
