"""Carries news from the journal to the event line, for as long as it takes (product 2, rule 6)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from bridge.errors import StoreAwayError
from bridge.model import RunId
from bridge.ports import EventLine
from bridge.runner.journal import Journal

log = logging.getLogger(__name__)

RETRY = (0.2, 0.5, 1.0, 2.0, 5.0)
"""Seconds before the next try while the store is away; the last one repeats."""


class Pump:
    """Hands in what the journal has, in order, and waits when there is nothing new.

    `written` may be called from any thread; everything else belongs to the loop's thread.
    """

    def __init__(self, journal: Journal, line: EventLine, run: RunId, *, fence: int) -> None:
        self._journal, self._line, self._run, self._fence = journal, line, run, fence
        self._loop = asyncio.get_running_loop()
        self._written = asyncio.Event()
        self._moved = asyncio.Condition()
        self._offset = 0
        self.handed_in = 0
        """The newest `seq` that the line has from us."""

    def written(self) -> None:
        """Say that the journal has something new. From any thread."""
        self._loop.call_soon_threadsafe(self._written.set)

    async def run(self, *, on_away: Callable[[bool], None] = lambda _: None) -> None:
        """Carry until cancelled.

        Raises:
            FencedError: a newer attempt owns the run.
        """
        while True:
            self._written.clear()
            while await self._carry(on_away):
                pass
            await self._written.wait()

    async def caught_up(self, seq: int) -> None:
        """Wait until `seq` has been handed in. Ends only so, or by cancellation."""
        async with self._moved:
            await self._moved.wait_for(lambda: self.handed_in >= seq)

    async def _carry(self, on_away: Callable[[bool], None]) -> bool:
        news, offset = self._journal.read(self._offset)
        if not news:
            return False
        tries = 0
        while True:
            try:
                await self._line.append(self._run, news, fence=self._fence)
                break
            except StoreAwayError:
                if tries == 0:
                    log.warning("pump.store_away", extra={"run": self._run})
                    on_away(True)
                await asyncio.sleep(RETRY[min(tries, len(RETRY) - 1)])
                tries += 1
        if tries:
            on_away(False)
        self._offset = offset
        self._journal.acknowledge(news[-1].seq)
        async with self._moved:
            self.handed_in = news[-1].seq
            self._moved.notify_all()
        return True
