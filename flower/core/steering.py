"""What people want of a run while it works: cut it and go on with their words, or end it. Thread-safe, no I/O."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Protocol


class Steers(Protocol):
    """What an attempt asks of whoever steers it."""

    @property
    def ended(self) -> bool: ...
    def wants_cut(self, *, boundary: bool, busy: bool) -> bool: ...
    def heard(self, listener: Callable[[], object]) -> contextlib.AbstractContextManager[None]: ...


class Steering:
    """What people want of a runtime: cut and go on with words, or end. Any thread may call anything here."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._words: list[str] | None = None
        self._now = False
        self._ended = False
        self._listeners: list[tuple[asyncio.AbstractEventLoop, Callable[[], object]]] = []

    @property
    def ended(self) -> bool:
        """Whether the run was ended; stays so."""
        return self._ended

    @property
    def interrupted(self) -> bool:
        """Whether an interrupt waits to be taken up."""
        return self._words is not None

    @property
    def wanted(self) -> bool:
        """Whether people want the turn that runs to stop."""
        return self._ended or self.interrupted

    def interrupt(self, words: str, *, now: bool) -> None:
        """Ask for a cut. Words that come before the cut are kept together; the same words twice count once."""
        with self._lock:
            kept = self._words or []
            said = words.strip()
            self._words = [*kept, said] if said and said not in kept else kept
            self._now |= now
        self._tell()

    def end(self) -> None:
        """End the run."""
        with self._lock:
            self._ended = True
        self._tell()

    def take(self) -> str | None:
        """Consume the pending interrupt; its words, or None if there is none."""
        with self._lock:
            words, self._words, self._now = self._words, None, False
        return None if words is None else "\n\n".join(words)

    def wants_cut(self, *, boundary: bool, busy: bool) -> bool:
        """Whether to cut here.

        Args:
            boundary: a message has just arrived.
            busy: the main thread waits for a tool or for a person.
        """
        if self._ended:
            return boundary or busy
        return self.interrupted and (boundary or self._now)

    @contextlib.contextmanager
    def heard(self, listener: Callable[[], object]) -> Iterator[None]:
        """Have `listener` called on this loop's thread whenever people want something new."""
        entry = (asyncio.get_running_loop(), listener)
        with self._lock:
            self._listeners.append(entry)
        try:
            yield
        finally:
            with self._lock:
                self._listeners.remove(entry)

    def _tell(self) -> None:
        with self._lock:
            listeners = list(self._listeners)
        for loop, listener in listeners:
            with contextlib.suppress(RuntimeError):  # a closed loop has nothing to cut any more
                loop.call_soon_threadsafe(listener)


class OnlyEnds:
    """The same person's wishes, for a turn that an interrupt may not cut: it waits for the turn behind this one."""

    def __init__(self, steering: Steering) -> None:
        self._steering = steering

    @property
    def ended(self) -> bool:
        return self._steering.ended

    def wants_cut(self, *, boundary: bool, busy: bool) -> bool:
        return self.ended and (boundary or busy)

    def heard(self, listener: Callable[[], object]) -> contextlib.AbstractContextManager[None]:
        return self._steering.heard(listener)
