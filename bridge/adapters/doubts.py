"""Accepts of this process whose outcome is not known: nobody acts on what may yet be withdrawn (rulings R15).

An accept that is cut off by its deadline may have been kept all the same. Until it has been withdrawn (or accepted
again) its inbound is held back from the taker in the same process.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager


class Doubts:
    """Ids of inbounds between being sent to the store and being known to be there."""

    def __init__(self) -> None:
        self._flying: Counter[str] = Counter()
        self._landed = asyncio.Event()
        self._unknown: set[str] = set()

    @contextmanager
    def accepting(self, inbound: str) -> Iterator[None]:
        """Hold an accept call; leaving by an exception or a cancellation makes its outcome unknown."""
        self._flying[inbound] += 1
        try:
            yield
        except BaseException:
            self._unknown.add(inbound)
            raise
        else:
            self._unknown.discard(inbound)
        finally:
            self._flying[inbound] -= 1
            self._flying += Counter()  # drops the zeros
            self._landed.set()
            self._landed = asyncio.Event()

    def clear(self, inbound: str) -> None:
        """It has been withdrawn."""
        self._unknown.discard(inbound)

    async def landed(self, inbounds: Collection[str]) -> None:
        """Wait until no accept of these is on its way. Ends with the accepts, which have deadlines of their own."""
        while any(inbound in self._flying for inbound in inbounds):
            await self._landed.wait()

    def __contains__(self, inbound: str) -> bool:
        return inbound in self._unknown
