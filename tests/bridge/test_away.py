"""Waiting for a store that is away."""

from __future__ import annotations

import asyncio

import pytest

from bridge.away import AWAY_SECONDS, until_it_is_back
from bridge.errors import StoreAwayError, StoreRefusedError
from tests.fakes.clock import FakeClock


class Door:
    """Refuses as often as it has errors, then takes."""

    def __init__(self, *errors: Exception) -> None:
        self.errors, self.calls = list(errors), 0

    async def __call__(self) -> None:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)


async def test_another_refusal_is_raised_and_not_tried_again() -> None:
    door = Door(StoreRefusedError("wrong password"))

    with pytest.raises(StoreRefusedError, match="wrong password"):
        await until_it_is_back(door, FakeClock())

    assert door.calls == 1


async def test_a_store_that_is_away_is_asked_again_after_a_pause_until_it_takes() -> None:
    clock, door = FakeClock(), Door(StoreAwayError("away"), StoreAwayError("still away"))

    waiting = asyncio.create_task(until_it_is_back(door, clock))
    for tries in (1, 2, 3):
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert door.calls == tries
        assert waiting.done() == (tries == 3)
        clock.advance(AWAY_SECONDS)
    await waiting
