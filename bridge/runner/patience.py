"""Waits for a state store that is away: it comes back, and a run goes on meanwhile (product 2, rule 6)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

from bridge.errors import StoreAwayError, StoreRefusedError

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

RETRY = (0.2, 0.5, 1.0, 2.0, 5.0)
"""Seconds before the next try; the last one repeats."""


async def patiently(call: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Await a call of the store again and again while the store is away. Ends only so, or by cancellation.

    A store that refuses us counts as away too: a server that was started anew without its users refuses everybody until
    a bot has made them again. Whoever wants to shut a runner out gives the run to another one, which fences it.

    Raises:
        Exception: whatever else the call raises.
    """
    tries, said = 0, ""
    while True:
        try:
            return await call(*args, **kwargs)
        except (StoreAwayError, StoreRefusedError) as err:
            if type(err).__name__ != said:  # once for an outage, not once a try
                said = type(err).__name__
                log.warning("store.unusable", extra={"why": str(err)})
            await asyncio.sleep(RETRY[min(tries, len(RETRY) - 1)])
            tries += 1
