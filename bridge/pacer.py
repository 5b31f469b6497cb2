"""When something may go out: budgets of posts and edits, and pauses that the platform asked for. No I/O and no clock.

Posts are counted per place, edits per workspace, as the platform publishes them (`Abilities`). A part of the burst is
kept for what is urgent, so that an ask never waits behind prose that came a moment earlier.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from bridge.model import Abilities, PlaceRef

FORGET = 4_096
"""Places that are remembered at most; a full bucket says no more than none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """Tokens that come back with time."""

    every: float
    """Seconds until one more is there. 0: there is no limit."""
    burst: int
    level: float
    at: float
    """When `level` was true."""

    def refilled(self, now: float) -> Bucket:
        if self.every <= 0:
            return replace(self, level=float(self.burst), at=now)
        level = min(float(self.burst), self.level + max(0.0, now - self.at) / self.every)
        return replace(self, level=level, at=max(now, self.at))

    def ready(self, now: float, *, kept: int = 0) -> float:
        """When a token can be taken so that `kept` are left over; `now` if it can be at once."""
        level = self.refilled(now).level
        wanted = min(1 + kept, self.burst)
        if self.every <= 0 or level >= wanted - 1e-9:
            return now
        return now + (wanted - level) * self.every

    def taken(self, now: float) -> Bucket:
        """Take a token, also one that is not there yet: what was sent was sent."""
        filled = self.refilled(now)
        return replace(filled, level=filled.level - 1)


class Pacer:
    """Budgets of one account.

    Args:
        abilities: figures of the platform.
        kept: posts of the burst that only urgent things may use.
    """

    def __init__(self, abilities: Abilities, *, kept: int = 1) -> None:
        self._abilities = abilities
        self._kept = max(0, min(kept, abilities.post_burst - 1))
        self._posts: dict[PlaceRef, Bucket] = {}
        self._edits = self._full(abilities.edit_every, abilities.edit_burst, 0.0)
        self._post_pauses: dict[PlaceRef, float] = {}
        self._edit_pause = 0.0
        self._pause = 0.0

    @staticmethod
    def _full(every: float, burst: int, now: float) -> Bucket:
        return Bucket(every=every, burst=max(1, burst), level=float(max(1, burst)), at=now)

    def _bucket(self, place: PlaceRef, now: float) -> Bucket:
        found = self._posts.get(place)
        return found or self._full(self._abilities.post_every, self._abilities.post_burst, now)

    def post_at(self, place: PlaceRef, now: float, *, urgent: bool) -> float:
        """When the next post may go to a place; `now` if at once."""
        paused = max(self._pause, self._post_pauses.get(place, 0.0))
        return max(paused, self._bucket(place, now).ready(now, kept=0 if urgent else self._kept))

    def edit_at(self, now: float) -> float:
        """When the next edit may go out; `now` if at once."""
        return max(self._pause, self._edit_pause, self._edits.ready(now))

    def look_at(self, now: float) -> float:
        """When the next look for a post may go out; `now` if at once."""
        return max(now, self._pause)

    def posted(self, place: PlaceRef, now: float) -> None:
        """Note that a post was sent, whatever came of it."""
        self._posts[place] = self._bucket(place, now).taken(now)
        if len(self._posts) > FORGET:
            self._forget(now)

    def edited(self, now: float) -> None:
        """Note that an edit was sent, whatever came of it."""
        self._edits = self._edits.taken(now)

    def pause_posts(self, place: PlaceRef, *, until: float) -> None:
        """The platform wants no posts in a place before `until`. A shorter pause never ends a longer one."""
        self._post_pauses[place] = max(until, self._post_pauses.get(place, 0.0))

    def pause_edits(self, *, until: float) -> None:
        """The platform wants no edits before `until`."""
        self._edit_pause = max(until, self._edit_pause)

    def pause(self, *, until: float) -> None:
        """The platform wants nothing at all before `until`, or cannot be reached."""
        self._pause = max(until, self._pause)

    def _forget(self, now: float) -> None:
        kept = {place: bucket for place, bucket in self._posts.items() if bucket.refilled(now).level < bucket.burst}
        self._posts = kept
        self._post_pauses = {place: until for place, until in self._post_pauses.items() if until > now}
