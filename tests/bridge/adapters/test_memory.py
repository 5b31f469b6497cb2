"""What the store in memory offers to tests beyond the ports: faults."""

from __future__ import annotations

import asyncio

import pytest

from bridge.adapters.memory import MemoryStore
from bridge.errors import HeldError, StoreAwayError
from tests.contracts.values import RUN, SLACK, news, record, words


async def test_a_store_that_is_away_says_so_and_keeps_nothing() -> None:
    store = MemoryStore()
    store.away = True
    with pytest.raises(StoreAwayError):
        await store.inbox.accept(words(1))
    with pytest.raises(StoreAwayError):
        await store.events.append(RUN, [news(1)], fence=0)
    with pytest.raises(StoreAwayError):
        async with store.open():
            pass
    store.away = False
    assert await store.inbox.take(SLACK, wait=0) == []
    assert await store.events.last(RUN) == 0


async def test_going_away_ends_a_read_that_waits() -> None:
    store = MemoryStore()
    reading = asyncio.create_task(store.commands.read(RUN, wait=60))
    await asyncio.sleep(0.01)
    store.away = True
    with pytest.raises(StoreAwayError):
        await reading


@pytest.mark.case("RD-10")
async def test_an_answer_that_comes_too_late_leaves_a_doubt_and_nobody_acts_on_it() -> None:
    store = MemoryStore()
    store.slow = 0.1
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.075):  # its effect comes after 0.05 s, its answer after 0.1 s
            await store.inbox.accept(words(1))
    store.slow = 0.0
    assert await store.inbox.take(SLACK, wait=0) == []
    async with store.open() as later:
        assert len(await later.inbox.take(SLACK, wait=0)) == 1, "it had its effect"
    await store.inbox.withdraw(words(1))
    assert await store.inbox.take(SLACK, wait=0) == []


async def test_leases_follow_the_clock_that_was_given() -> None:
    now = 1_000.0
    store = MemoryStore(clock=lambda: now)
    await store.runs.create(record())
    await store.runs.acquire(RUN, owner="a", ttl=20)
    now = 1_019.9
    with pytest.raises(HeldError):
        await store.runs.acquire(RUN, owner="b", ttl=20)
    now = 1_020.0
    assert await store.runs.acquire(RUN, owner="b", ttl=20) == 2
