"""What a bot does while the store is away: it waits, and loses nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from bridge.clock import Clock
from bridge.errors import StoreAwayError

AWAY_SECONDS = 1.0
"""Pause before the store is asked again."""


async def until_it_is_back(call: Callable[[], Awaitable[object]], clock: Clock) -> None:
    """Call until the store takes it. Anything but `StoreAwayError` is raised on.

    Args:
        call: one call to the store that may be repeated.
        clock: waits between the tries.
    """
    while True:
        try:
            await call()
        except StoreAwayError:
            await clock.sleep(AWAY_SECONDS)
        else:
            return
