"""Work that keeps its order within a lane, while lanes go on beside one another."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Hashable

Work = Callable[[], Coroutine[None, None, None]]


class Lanes:
    """Runs work in a task group, one task a lane that has work. Remembers nothing of lanes that have none.

    Work that raises ends the group: what may fail has its boundary inside.
    """

    def __init__(self, group: asyncio.TaskGroup, *, name: str) -> None:
        self._group, self._name = group, name
        self._waiting: dict[Hashable, deque[Work]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = False

    def put(self, lane: Hashable, work: Work) -> None:
        """Do this after all that was put into the lane before."""
        if lane in self._waiting:
            self._waiting[lane].append(work)
            return
        self._waiting[lane] = deque([work])
        self._start(self._drive(lane))

    def beside(self, work: Coroutine[None, None, None]) -> None:
        """Do this now, after nobody."""
        self._start(work)

    async def drain(self, within: float) -> None:
        """Finish what has begun, and begin nothing more; what is not done within so many seconds is cancelled."""
        self._closing = True
        late = set(self._tasks)
        while late and within > 0:  # what ends may have put something beside
            before = asyncio.get_running_loop().time()
            await asyncio.wait(late, timeout=within)
            within -= asyncio.get_running_loop().time() - before
            late = set(self._tasks)
        for task in late:
            task.cancel()

    async def _drive(self, lane: Hashable) -> None:
        waiting = self._waiting[lane]
        try:
            while waiting and not self._closing:
                await waiting.popleft()()
        finally:
            del self._waiting[lane]

    def _start(self, work: Coroutine[None, None, None]) -> None:
        try:
            task = self._group.create_task(work, name=self._name)
        except RuntimeError:  # the group has ended: whoever calls us now is too late
            work.close()
            return
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
