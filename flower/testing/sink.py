"""A sink that keeps what it hears, and can wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from flower.core.events import Event, EventKind

Wanted = Callable[[Event], bool]


class RecordingSink:
    """Takes events as `on_event` does. It and its waiting belong to one event loop."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._waiting: list[tuple[Wanted, asyncio.Future[Event]]] = []

    def __call__(self, event: Event) -> None:
        self.events.append(event)
        for wanted, heard in self._waiting:
            if not heard.done() and wanted(event):
                heard.set_result(event)

    def of(self, *kinds: EventKind) -> list[Event]:
        """Return the events of some kinds, in order."""
        return [event for event in self.events if event.kind in kinds]

    def texts(self, *, subagents: bool = False) -> list[str]:
        """Return what the main agent said, and its subagents if asked for."""
        return [event.text for event in self.of("text") if subagents or not event.payload.get("subagent")]

    async def wait_for(self, wanted: EventKind | Wanted, *, timeout: float = 10.0, after: int = 0) -> Event:
        """Return the first event of a kind, or for which `wanted` is true, at or behind position `after`.

        Raises:
            TimeoutError: it did not come; says what came last.
        """
        fits: Wanted = wanted if callable(wanted) else lambda event: event.kind == wanted
        if found := next((event for event in self.events[after:] if fits(event)), None):
            return found
        heard: asyncio.Future[Event] = asyncio.get_running_loop().create_future()
        self._waiting.append((fits, heard))
        try:
            async with asyncio.timeout(timeout):
                return await heard
        except TimeoutError:
            last = "; ".join(f"{event.kind}: {str(event)[:60]}" for event in self.events[-5:]) or "nothing"
            raise TimeoutError(f"the event did not come within {timeout:g} s; last came {last}") from None
        finally:
            self._waiting.remove((fits, heard))
