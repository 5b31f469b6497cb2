"""What steps came to and what they cost: the results of one runtime, and the sums that stand behind them."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flower.core import manifest

log = logging.getLogger(__name__)

KILLED = "killed-by-signal"
RESCUE_WAIT = 0.2
"""Seconds that a signal handler waits for another process's lock."""


@dataclass
class StepResult:
    """The outcome of a step (behaviour 15.2). A failed step is a result, not an exception."""

    step: str
    session_id: str | None = None
    ok: bool = False
    cost_usd: float = 0.0
    num_turns: int = 0
    text: str = ""
    error: str | None = None
    started_at: float = 0.0
    ended_at: float = 0.0
    attempts: int = 1
    errors: list[str] = field(default_factory=list)
    resumed: bool = False
    retired: list[str] = field(default_factory=list)
    context: int = 0

    @property
    def duration_s(self) -> float:
        """Seconds from start to end; 0.0 for a step that has not ended."""
        return round(self.ended_at - self.started_at, 2) if self.ended_at else 0.0


class Books:
    """The accounts of one runtime. `rescue` may be called from a signal handler, the rest from the loop's thread.

    Args:
        path: the manifest.
        run_id: marks this runtime's rows in it.
    """

    def __init__(self, path: Path, run_id: str) -> None:
        self._path, self._run_id = path, run_id
        self._totals: dict[str, float] = {}
        self.results: list[StepResult] = []
        """Steps that are over, in order."""
        self.flying: list[StepResult] = []
        """Steps that are not."""

    def open(self, result: StepResult) -> None:
        self.flying.append(result)

    def close(self, result: StepResult, store: Any) -> bool:
        """Enter a step that is over; whether it stands in the manifest now.

        A manifest that cannot be written is logged: the step is over all the same.
        """
        self.flying = [each for each in self.flying if each is not result]
        result.ended_at = time.time()
        self._enter(result)
        try:
            self._write(manifest.LOCK_SECONDS)
        except OSError:
            log.exception("books.not_written")
            return False
        self._note_totals(store)
        return True

    def rescue(self) -> bool:
        """Enter the steps in flight as killed; whether they stand in the manifest now.

        Short, never raises; twice is harmless.
        """
        for result in list(self.flying):
            if not result.ended_at:
                result.ended_at = time.time()
                result.error = result.error or KILLED
            self._enter(result)
        with contextlib.suppress(Exception):
            self._write(RESCUE_WAIT)
            return True
        return False

    def spent(self) -> float:
        """Return what all steps cost so far, those in flight too, US dollars."""
        unfinished = [each for each in self.flying if not self._has(each)]
        return sum(each.cost_usd for each in [*self.results, *unfinished])

    def pricing(self, store: Any, resume: str | None) -> Callable[[str, float], float]:
        """Return how the results of one attempt are priced: what each adds to the program's own count.

        `total_cost_usd` is the sum over a session as far as the program knows it (SDK facts 3, trap 1).

        Args:
            store: the runtime's; one without a table of costs will do.
            resume: the session that the attempt goes on with.
        """
        last: dict[str, float] = {}

        def price(session: str, total: float) -> float:
            before = last[session] if session in last else self._counted_before(store, resume or session)
            last[session] = self._totals[session] = total
            return total - before if total >= before else total  # a cleared conversation begins at nothing again

        return price

    def _counted_before(self, store: Any, session: str) -> float:
        """Return where the program's count began.

        It goes on from the `cost-state` entry of the transcript that it was given. The program writes that entry when
        it exits, after the SDK has closed the mirror, so a session out of our own store mostly begins at nothing.
        Where nothing was loaded from our store, the last total known counts.
        """
        carried: float | None = getattr(store, "carried", {}).pop(session, None)
        if carried is not None:
            return carried
        if session in self._totals:
            return self._totals[session]
        cost_of = getattr(store, "cost_of", None)
        return float(cost_of(session)) if cost_of is not None else 0.0

    def _enter(self, result: StepResult) -> None:
        if not self._has(result):
            self.results.append(result)

    def _has(self, result: StepResult) -> bool:
        return any(each is result for each in self.results)

    def _write(self, wait: float) -> None:
        rows = [{**dataclasses.asdict(result), "duration_s": result.duration_s} for result in self.results]
        manifest.write(self._path, self._run_id, rows, wait=wait)

    def _note_totals(self, store: Any) -> None:
        """Note what stands in the accounts now; for a session that another process goes on with from elsewhere."""
        book = getattr(store, "book_cost", None)
        if book is None:
            return
        try:
            for session, total in list(self._totals.items()):
                book(session, total)
        except Exception:  # the step is over and booked, whatever has become of the store
            log.exception("books.totals_not_noted")
