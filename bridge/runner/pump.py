"""Carries news from the journal to the event line, for as long as it takes (product 2, rule 6)."""

from __future__ import annotations

import asyncio
import logging

from bridge.model import News, RunId
from bridge.ports import EventLine
from bridge.runner.journal import Journal
from bridge.runner.patience import patiently

log = logging.getLogger(__name__)


class Pump:
    """Hands in what the journal has, in order, and waits when there is nothing new.

    `written` may be called from any thread; everything else belongs to the loop's thread.

    Args:
        after: the newest `seq` that the line had before us.
    """

    def __init__(self, journal: Journal, line: EventLine, run: RunId, *, fence: int, after: int = 0) -> None:
        self._journal, self._line, self._run, self._fence = journal, line, run, fence
        self._loop = asyncio.get_running_loop()
        self._written = asyncio.Event()
        self._moved = asyncio.Condition()
        self._offset = 0
        self.handed_in = after
        """The newest `seq` that the line is known to have."""

    def written(self) -> None:
        """Say that the journal has something new, or cannot write what it has. From any thread."""
        self._loop.call_soon_threadsafe(self._written.set)

    async def run(self) -> None:
        """Carry until cancelled.

        Raises:
            FencedError: a newer attempt owns the run.
            ValueError: the line has lost news that not even the journal has.
        """
        while True:
            self._written.clear()
            while await self._carry():
                pass
            # On a full disk people must hear of it all the same: what cannot be written goes to the line unwritten.
            # When the disk takes again it is written, and handed in a second time, which changes nothing.
            if stuck := [news for news in self._journal.stuck() if news.seq > self.handed_in]:
                await self._hand_in(stuck)
            await self._written.wait()

    async def caught_up(self, seq: int) -> None:
        """Wait until `seq` has been handed in. Ends only so, or by cancellation."""
        async with self._moved:
            await self._moved.wait_for(lambda: self.handed_in >= seq)

    async def again(self) -> None:
        """Hand in everything once more, when `run` has been cancelled: the line has lost some of it."""
        self._offset = 0
        while await self._carry():
            pass

    async def _carry(self) -> bool:
        news, offset = self._journal.read(self._offset)
        if not news:
            return False
        try:
            await self._hand_in(news)
        except ValueError:
            # The line ends before where we were: its server lost its last second in a power cut. We have it all.
            if self._offset == 0:
                raise
            log.warning("pump.line_lost_news", extra={"run": self._run, "before": news[0].seq})
            self._offset = 0
            return True
        self._offset = offset
        self._journal.acknowledge(news[-1].seq)
        return True

    async def _hand_in(self, news: list[News]) -> None:
        await patiently(self._line.append, self._run, news, fence=self._fence)
        async with self._moved:
            self.handed_in = max(self.handed_in, news[-1].seq)
            self._moved.notify_all()
