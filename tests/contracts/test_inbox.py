"""`Inbox`: kept before it is confirmed, handed out until it is done, acted on once."""

from __future__ import annotations

import asyncio

import pytest

from bridge.model import Inbound, Platform
from bridge.ports import Store
from tests.contracts.values import SLACK, OpenStore, summons, tap, words

MATRIX = Platform("matrix")


def only(taken: list[tuple[str, Inbound]]) -> list[Inbound]:
    return [inbound for _, inbound in taken]


async def test_what_was_accepted_is_handed_out_oldest_first(store: Store) -> None:
    everything: list[Inbound] = [words(1, "数据\n"), tap(2), summons(3)]
    for inbound in everything:
        assert await store.inbox.accept(inbound) is True
    assert only(await store.inbox.take(SLACK, wait=0)) == everything


@pytest.mark.case("DL-1")
async def test_a_redelivery_is_not_a_second_message(store: Store) -> None:
    assert await store.inbox.accept(words(1)) is True
    assert await store.inbox.accept(words(1)) is False
    assert only(await store.inbox.take(SLACK, wait=0)) == [words(1)]
    assert await store.inbox.accept(words(1)) is False
    assert await store.inbox.take(SLACK, wait=0) == []


async def test_a_redelivery_after_it_was_done_is_not_done_again(store: Store) -> None:
    await store.inbox.accept(words(1))
    [(receipt, _)] = await store.inbox.take(SLACK, wait=0)
    await store.inbox.done(SLACK, receipt)
    assert await store.inbox.accept(words(1)) is False
    assert await store.inbox.take(SLACK, wait=0) == []


@pytest.mark.case("RD-5")
async def test_what_a_dead_process_took_and_did_not_finish_comes_again(open_store: OpenStore) -> None:
    async with open_store() as first:
        for number in (1, 2, 3):
            await first.inbox.accept(words(number))
        taken = await first.inbox.take(SLACK, wait=0)
        await first.inbox.done(SLACK, taken[1][0])
    async with open_store() as second:
        await second.inbox.accept(words(4))
        assert only(await second.inbox.take(SLACK, wait=0)) == [words(1), words(3), words(4)]
        assert await second.inbox.take(SLACK, wait=0) == []


async def test_a_long_backlog_comes_again_in_order(open_store: OpenStore) -> None:
    everything = [words(number) for number in range(1, 251)]
    async with open_store() as first:
        for inbound in everything:
            await first.inbox.accept(inbound)
        assert len(await first.inbox.take(SLACK, wait=0)) >= 1
    async with open_store() as second:
        found: list[Inbound] = []
        while some := only(await second.inbox.take(SLACK, wait=0)):
            found += some
        assert found == everything


async def test_done_is_done_and_may_be_said_twice(open_store: OpenStore) -> None:
    async with open_store() as first:
        await first.inbox.accept(words(1))
        [(receipt, _)] = await first.inbox.take(SLACK, wait=0)
        await first.inbox.done(SLACK, receipt)
        await first.inbox.done(SLACK, receipt)
    async with open_store() as second:
        assert await second.inbox.take(SLACK, wait=0) == []


async def test_a_taker_is_woken(store: Store) -> None:
    async with asyncio.TaskGroup() as group:
        taken = group.create_task(store.inbox.take(SLACK, wait=10))
        await asyncio.sleep(0.05)  # so that it waits indeed
        await store.inbox.accept(words(1))
    assert only(taken.result()) == [words(1)]


async def test_waiting_ends_by_its_time(store: Store) -> None:
    async with asyncio.timeout(5):
        assert await store.inbox.take(SLACK, wait=0.05) == []


async def test_a_taker_that_was_cancelled_takes_everything_later(store: Store) -> None:
    waiting = asyncio.create_task(store.inbox.take(SLACK, wait=10))
    await asyncio.sleep(0.05)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await store.inbox.accept(words(1))
    assert only(await store.inbox.take(SLACK, wait=5)) == [words(1)]


async def test_platforms_do_not_see_each_other(store: Store) -> None:
    await store.inbox.accept(words(1))
    assert await store.inbox.take(MATRIX, wait=0) == []
    assert only(await store.inbox.take(SLACK, wait=0)) == [words(1)]


async def test_what_was_withdrawn_is_never_handed_out(open_store: OpenStore) -> None:
    async with open_store() as store:
        await store.inbox.accept(words(1))
        await store.inbox.accept(words(2))
        await store.inbox.withdraw(words(1))
        await store.inbox.withdraw(words(1))
        assert only(await store.inbox.take(SLACK, wait=0)) == [words(2)]
    async with open_store() as later:
        assert only(await later.inbox.take(SLACK, wait=0)) == [words(2)]


async def test_an_accept_that_arrives_after_its_withdrawal_is_void(store: Store) -> None:
    await store.inbox.withdraw(words(1))
    await store.inbox.accept(words(1))
    assert await store.inbox.take(SLACK, wait=0) == []


async def test_withdrawing_what_was_already_taken_does_not_bring_it_back(open_store: OpenStore) -> None:
    async with open_store() as store:
        await store.inbox.accept(words(1))
        [(receipt, _)] = await store.inbox.take(SLACK, wait=0)
        await store.inbox.withdraw(words(1))
        await store.inbox.done(SLACK, receipt)
    async with open_store() as later:
        assert await later.inbox.take(SLACK, wait=0) == []
