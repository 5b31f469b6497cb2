"""What a bot process knows of each run now: record, folded view, slots. A cache over the state store, nothing more."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import weakref
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from itertools import pairwise

from bridge.model import MessageRef, Platform, Posted, PostRef, RunId, RunRecord, Settled, Sign
from bridge.ports import Checkpoint, Store
from bridge.view import VERSION, View, dump, fold, load

log = logging.getLogger(__name__)

CHECKPOINT_EVERY = 200
"""News between two checkpoints of a busy run."""
TAIL = 300
"""News that stay in the line below the checkpoint, for whoever looks (a new attempt, a person)."""


@dataclass(slots=True)
class Live:
    """One run as this process knows it."""

    record: RunRecord
    view: View
    slots: dict[str, Posted] = field(default_factory=dict)
    settlements: dict[str, Settled] = field(default_factory=dict)
    saved: int = 0
    """`seq` of the kept checkpoint."""
    gone: set[str] = field(default_factory=set)
    """Slots that stand for good and leave the store with the next checkpoint."""
    signed: set[tuple[MessageRef, Sign]] = field(default_factory=set)
    """Receipts that this process has put; putting one again is harmless."""
    changed: bool = False
    """Something was settled since the last checkpoint."""
    users: int = 0
    """How many tasks work with it now; it stays on the desk as long as there is one."""

    @property
    def run(self) -> RunId:
        return self.record.run

    @property
    def root(self) -> PostRef | None:
        """The card's post, once it stands."""
        card = self.slots.get("card")
        return card.post if card is not None else None


class Desk:
    """Loads runs of one platform on demand, keeps them folded, and writes checkpoints (rulings R10)."""

    def __init__(self, store: Store, platform: Platform) -> None:
        self._store, self._platform = store, platform
        self._lives: dict[RunId, Live] = {}
        self._loading: weakref.WeakValueDictionary[RunId, asyncio.Lock] = weakref.WeakValueDictionary()
        """Who loads a run holds its lock; the lock lives as long as somebody waits for it."""

    @property
    def lives(self) -> list[Live]:
        """The runs that are on the desk now."""
        return list(self._lives.values())

    async def get(self, run: RunId) -> Live | None:
        """Return a run, read up to now; None: there is no such run on this platform."""
        if (live := self._lives.get(run)) is not None:
            await self.catch_up(live)
            return live
        lock = self._loading.setdefault(run, asyncio.Lock())
        async with lock:  # two pictures of one run would post everything twice
            if (live := self._lives.get(run)) is None and (live := await self._load(run)) is not None:
                # Read up to now before anybody sees it: half a picture must not be shown.
                await self.catch_up(live)
                self._lives[run] = live
        return live

    @contextlib.asynccontextmanager
    async def using(self, run: RunId) -> AsyncIterator[Live | None]:
        """Work with a run, read up to now, that nobody takes off the desk meanwhile."""
        live = await self.get(run)
        if live is None:
            yield None
            return
        live = self._lives.setdefault(run, live)  # it may have left between the last read and here
        live.users += 1
        try:
            yield live
        finally:
            live.users -= 1

    async def catch_up(self, live: Live) -> bool:
        """Fold what is new. Returns whether there was anything."""
        before = live.view.seq
        while batch := await self._store.events.read(live.run, after=live.view.seq):
            if batch[0].seq > live.view.seq + 1 or any(b.seq != a.seq + 1 for a, b in pairwise(batch)):
                log.error("desk.gap", extra={"run": live.run, "after": live.view.seq, "got": batch[0].seq})
            for news in batch:
                live.view = fold(live.view, news)
        return live.view.seq != before

    async def note(self, live: Live, posted: Posted) -> None:
        """Keep what is known of a slot: in the store first, then here."""
        await self._store.threads.note(live.run, posted)
        live.slots[posted.name] = posted

    async def settled(self, live: Live, settled: Settled) -> Settled:
        """Settle an ask once; returns the settlement that counts (AS-4)."""
        winner = await self._store.threads.settle(live.run, settled)
        live.settlements[settled.ask] = winner
        return winner

    async def checkpoint(self, live: Live, *, now: bool = False) -> None:
        """Keep the view when it is due: every so many news, or `now`."""
        fresh = live.view.seq - live.saved
        if not (fresh or live.changed) or not (now or fresh >= CHECKPOINT_EVERY):
            return
        gone, view = set(live.gone), live.view
        live.changed = False  # what changes while we wait is for the next one
        checkpoint = Checkpoint(seq=view.seq, version=VERSION, data=dump(view))
        try:
            await self._store.threads.save(live.run, checkpoint, forget=gone)
        except BaseException:
            live.changed = True
            raise
        live.saved = view.seq
        for name in gone:
            live.slots.pop(name, None)
        live.gone -= gone
        if view.seq > TAIL:
            await self._store.events.trim(live.run, below=view.seq - TAIL)

    def leave(self, live: Live) -> None:
        """Take a run off the desk; it is loaded again when somebody asks for it."""
        self._lives.pop(live.run, None)

    async def bind(self, live: Live, post: PostRef) -> None:
        """Note the thread that the card opened."""
        await self._store.runs.bind(live.run, post.thread)
        live.record = dataclasses.replace(live.record, thread=post.thread)

    async def _load(self, run: RunId) -> Live | None:
        record = await self._store.runs.record(run)
        if record is None or record.place.platform != self._platform:
            return None
        # Before the view: a slot that is known and needed no more does no harm, one that is needed and not known does.
        slots = await self._store.threads.slots(run)
        view, saved = View(run=run), 0
        kept = await self._store.threads.checkpoint(run)
        if kept is not None:
            if (loaded := load(kept.data)) is not None:
                view, saved = loaded, kept.seq
            else:
                log.warning("desk.checkpoint_unreadable", extra={"run": run, "version": kept.version})
        return Live(
            record=record,
            view=view,
            slots=slots,
            settlements=dict(await self._store.threads.settlements(run)),
            saved=saved,
        )
