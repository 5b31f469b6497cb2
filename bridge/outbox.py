"""What goes out next: the difference between what should stand in the threads and what is known to stand there. Pure.

A post is never dropped and never made twice: one whose outcome is not known is looked for before it is repeated. An
edit that was overtaken is never sent, since only the newest card is ever compared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import assert_never

from bridge.model import Abilities, Card, PlaceRef, Posted, RunId
from bridge.pacer import Pacer
from bridge.slots import Slot, Urgency
from bridge.view import View, settle_slot


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """Post this slot. If its outcome was unknown, it has been looked for, or the platform cannot look."""

    run: RunId
    place: PlaceRef
    slot: Slot
    urgency: Urgency
    again: bool = False
    """An earlier try may have got through (the platform cannot look): mark it so that people understand a double."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """It was meant to be posted and nobody knows whether it was: look (`Chat.find`) before a repeat."""

    run: RunId
    place: PlaceRef
    slot: Slot
    posted: Posted
    urgency: Urgency


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """The post shows an older card: replace it."""

    run: RunId
    place: PlaceRef
    slot: Slot
    posted: Posted
    urgency: Urgency


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Nothing can go out before this moment."""

    until: float


Job = Post | Look | Edit


@lru_cache(maxsize=4_096)
def digest(card: Card) -> str:
    """Name what a card shows. Equal cards have equal digests, in every process."""
    return hashlib.sha256(repr(card).encode("utf-8", "surrogatepass")).hexdigest()[:24]


def jobs(
    run: RunId,
    place: PlaceRef,
    slots: Sequence[Slot],
    posted: Mapping[str, Posted],
    *,
    lookup: bool = True,
    in_flight: Collection[str] = (),
    absent: Collection[str] = (),
) -> tuple[Job, ...]:
    """Return what is open in one thread: the next post, and all edits.

    Args:
        run: whose thread it is.
        place: where the thread is; posts are counted there.
        slots: what should stand in the thread, in its order.
        posted: what is known of its slots.
        lookup: whether the platform can look for a post.
        in_flight: slots for which a call is under way.
        absent: slots that were looked for and are not there.
    """
    found: list[Job] = []
    missing = [slot for slot in slots if (known := posted.get(slot.name)) is None or known.post is None]
    if missing and not any(slot.name in in_flight for slot in missing):
        slot = _next(missing)
        found.append(_first(run, place, slot, posted, slot.urgency, lookup=lookup, absent=absent))
    for slot in slots:
        known = posted.get(slot.name)
        if known is None or known.post is None or slot.name in in_flight or known.digest == digest(slot.card):
            continue
        urgency = Urgency.PROSE if slot.urgency is Urgency.ASK and slot.name != "card" else Urgency.EDIT
        found.append(Edit(run=run, place=place, slot=slot, posted=known, urgency=urgency))
    return tuple(found)


def _next(missing: Sequence[Slot]) -> Slot:
    """Choose what is posted next in one thread: its card, then what is urgent, then the rest in the thread's order.

    No ask waits behind anything else, the prose of its own run included (rulings R13).
    """
    if missing[0].name == "card":
        return missing[0]
    return next((slot for slot in missing if slot.urgency is Urgency.ASK), missing[0])


def _first(
    run: RunId,
    place: PlaceRef,
    slot: Slot,
    posted: Mapping[str, Posted],
    urgency: Urgency,
    *,
    lookup: bool,
    absent: Collection[str],
) -> Post | Look:
    intended = posted.get(slot.name)
    if intended is None or slot.name in absent:
        return Post(run=run, place=place, slot=slot, urgency=urgency)
    if lookup:
        return Look(run=run, place=place, slot=slot, posted=intended, urgency=urgency)
    return Post(run=run, place=place, slot=slot, urgency=urgency, again=True)


class Outbox:
    """Chooses among the jobs of all runs of one account: urgency first, then whoever was served longest ago.

    Holds no slots and nothing that a restart would lose; `now` is handed in.
    """

    def __init__(self, abilities: Abilities) -> None:
        self.pacer = Pacer(abilities)
        self._turn = 0
        self._served: dict[RunId, int] = {}
        self._edited: dict[tuple[RunId, str], int] = {}

    def next(self, jobs: Iterable[Job], now: float) -> Job | Wait | None:
        """Return the job to do now, or how long to wait for the first; None: there is nothing to do."""
        best: tuple[tuple[int, int, int], Job] | None = None
        earliest: float | None = None
        for job in jobs:
            at = self._ready(job, now)
            if at > now:
                earliest = at if earliest is None else min(earliest, at)
                continue
            rank = self._rank(job)
            if best is None or rank < best[0]:
                best = (rank, job)
        if best is not None:
            return best[1]
        return None if earliest is None else Wait(until=earliest)

    def sent(self, job: Job, now: float) -> None:
        """Note that a job's call was made, whatever came of it."""
        self._turn += 1
        match job:
            case Post():
                self.pacer.posted(job.place, now)
                self._served[job.run] = self._turn
            case Edit():
                self.pacer.edited(now)
                self._edited[job.run, job.slot.name] = self._turn
            case Look():
                pass
            case _:
                assert_never(job)

    def forget(self, run: RunId) -> None:
        """A run has left: nothing of it is remembered."""
        self._served.pop(run, None)
        for key in [key for key in self._edited if key[0] == run]:
            del self._edited[key]

    def _ready(self, job: Job, now: float) -> float:
        match job:
            case Post():
                return self.pacer.post_at(job.place, now, urgent=job.urgency <= Urgency.ASK)
            case Edit():
                return self.pacer.edit_at(now)
            case Look():
                return self.pacer.look_at(now)
            case _:
                assert_never(job)

    def _rank(self, job: Job) -> tuple[int, int, int]:
        if isinstance(job, Edit):
            return (job.urgency, 1, self._edited.get((job.run, job.slot.name), 0))
        return (job.urgency, 0, self._served.get(job.run, 0))


def settle(view: View, slots: Sequence[Slot], posted: Mapping[str, Posted]) -> tuple[View, frozenset[str]]:
    """Take out of the view what stands in the thread for good.

    Returns the view, and the names of slots that can be forgotten with it (`Threads.save`). A text in several parts
    goes when all of them stand.
    """
    open_groups = {slot.group for slot in slots if not (slot.final and _stands(slot, posted))}
    done = [slot for slot in slots if slot.group not in open_groups]
    for group in dict.fromkeys(slot.group for slot in done):
        view = settle_slot(view, group)
    return view, frozenset(slot.name for slot in done)


def _stands(slot: Slot, posted: Mapping[str, Posted]) -> bool:
    known = posted.get(slot.name)
    return known is not None and known.post is not None and known.digest == digest(slot.card)
