"""`EventLine`: order, no gap, nothing twice, a fence, bells."""

from __future__ import annotations

import asyncio

import pytest

from bridge.errors import FencedError
from bridge.model import News
from bridge.ports import Store
from tests.contracts.values import OTHER, RUN, OpenStore, news, record


async def test_a_gap_is_refused_and_nothing_is_written(store: Store) -> None:
    await store.events.append(RUN, [news(1)], fence=0)
    with pytest.raises(ValueError, match="goes up to 1"):
        await store.events.append(RUN, [news(3)], fence=0)
    with pytest.raises(ValueError, match="goes up to 3"):
        await store.events.append(RUN, [news(2), news(3), news(5)], fence=0)
    assert await store.events.read(RUN) == [news(1)]
    assert await store.events.last(RUN) == 1


@pytest.mark.parametrize("seq", [0, -1])
async def test_news_count_from_one(store: Store, seq: int) -> None:
    with pytest.raises(ValueError, match="from 1"):
        await store.events.append(RUN, [news(seq)], fence=0)
    assert await store.events.last(RUN) == 0


async def test_a_fence_that_is_not_the_newest_writes_nothing(store: Store) -> None:
    await store.runs.create(record())
    assert await store.runs.acquire(RUN, owner="a", ttl=30) == 1
    for fence in (0, 2):
        with pytest.raises(FencedError):
            await store.events.append(RUN, [news(1)], fence=fence)
    assert await store.events.last(RUN) == 0
    assert await store.events.append(RUN, [news(1, fence=1)], fence=1) == 1


async def test_a_later_attempt_hands_in_news_of_an_earlier_one(store: Store) -> None:
    await store.runs.create(record())
    await store.runs.acquire(RUN, owner="a", ttl=0.001)
    await asyncio.sleep(0.01)  # the lease runs out by the store's clock: no event tells it
    assert await store.runs.acquire(RUN, owner="b", ttl=30) == 2
    old_and_new = [news(1, fence=1), news(2, fence=2)]
    assert await store.events.append(RUN, old_and_new, fence=2) == 2
    assert await store.events.read(RUN) == old_and_new


async def test_what_is_appended_is_read_in_order_with_all_its_fields(store: Store) -> None:
    rich = News(
        seq=2,
        fence=0,
        at=1.5,
        kind="tool_call",
        text="很长\u2028的",
        tool="Bash",
        payload={"input": {"command": "ls"}, "n": [1, None, 2.5]},
    )
    assert await store.events.append(RUN, [news(1), rich], fence=0) == 2
    assert await store.events.read(RUN) == [news(1), rich]


async def test_a_repeated_append_changes_nothing(store: Store) -> None:
    assert await store.events.append(RUN, [news(1), news(2)], fence=0) == 2
    assert await store.events.append(RUN, [news(1), news(2)], fence=0) == 2
    assert await store.events.append(RUN, [news(1), news(2), news(2), news(3)], fence=0) == 3
    assert await store.events.read(RUN) == [news(1), news(2), news(3)]


async def test_the_first_of_two_items_with_one_number_stays(store: Store) -> None:
    await store.events.append(RUN, [news(1)], fence=0)
    await store.events.append(RUN, [news(1, kind="thinking"), news(2)], fence=0)
    assert [item.kind for item in await store.events.read(RUN)] == ["text", "text"]


async def test_an_empty_append_only_tells_the_last_number(store: Store) -> None:
    assert await store.events.append(RUN, [], fence=0) == 0
    await store.events.append(RUN, [news(1)], fence=0)
    assert await store.events.append(RUN, [], fence=0) == 1


async def test_reading_goes_on_after_a_number_in_pages(store: Store) -> None:
    await store.events.append(RUN, [news(seq) for seq in range(1, 8)], fence=0)
    assert [item.seq for item in await store.events.read(RUN, after=2, count=3)] == [3, 4, 5]
    assert [item.seq for item in await store.events.read(RUN, after=5)] == [6, 7]
    assert await store.events.read(RUN, after=7) == []
    assert await store.events.read(RUN, after=99) == []


async def test_a_run_without_news_is_empty(store: Store) -> None:
    assert await store.events.last(RUN) == 0
    assert await store.events.read(RUN) == []


async def test_what_was_trimmed_is_gone_and_numbers_go_on(store: Store) -> None:
    await store.events.append(RUN, [news(seq) for seq in range(1, 6)], fence=0)
    await store.events.trim(RUN, below=4)
    assert [item.seq for item in await store.events.read(RUN)] == [4, 5]
    assert [item.seq for item in await store.events.read(RUN, count=1)] == [4]


@pytest.mark.case("RD-4")
async def test_numbers_go_on_when_everything_was_trimmed(store: Store) -> None:
    await store.events.append(RUN, [news(1), news(2)], fence=0)
    await store.events.trim(RUN, below=99)
    assert await store.events.read(RUN) == []
    assert await store.events.last(RUN) == 2
    assert await store.events.append(RUN, [news(1), news(2), news(3)], fence=0) == 3
    assert await store.events.read(RUN) == [news(3)]


async def test_trimming_a_run_without_news_does_nothing(store: Store) -> None:
    await store.events.trim(RUN, below=3)
    assert await store.events.append(RUN, [news(1)], fence=0) == 1


async def test_runs_have_lines_of_their_own(store: Store) -> None:
    await store.events.append(RUN, [news(1)], fence=0)
    await store.events.append(OTHER, [news(1), news(2)], fence=0)
    assert await store.events.last(RUN) == 1
    assert await store.events.last(OTHER) == 2


async def test_a_bell_wakes_the_one_who_waits(store: Store) -> None:
    assert await store.events.rung(wait=0) == set()
    async with asyncio.TaskGroup() as group:
        heard = group.create_task(store.events.rung(wait=10))
        await store.events.append(RUN, [news(1)], fence=0)
    assert heard.result() == {RUN}
    assert await store.events.rung(wait=0) == set()


async def test_rings_between_two_calls_are_heard_once_each(store: Store) -> None:
    await store.events.rung(wait=0)
    await store.events.append(RUN, [news(1)], fence=0)
    await store.events.append(RUN, [news(2)], fence=0)
    await store.events.append(OTHER, [news(1)], fence=0)
    heard: set[str] = set()
    while heard != {RUN, OTHER}:
        some = await store.events.rung(wait=10)
        assert some, "a bell was lost"
        heard |= some
    assert await store.events.rung(wait=0) == set()


async def test_a_listener_starts_at_now(open_store: OpenStore, store: Store) -> None:
    await store.events.append(RUN, [news(1)], fence=0)
    async with open_store() as later:
        assert await later.events.rung(wait=0) == set()
        await store.events.append(RUN, [news(2)], fence=0)
        assert await later.events.rung(wait=10) == {RUN}


async def test_waiting_for_a_bell_ends_by_its_time(store: Store) -> None:
    async with asyncio.timeout(5):
        assert await store.events.rung(wait=0.05) == set()


async def test_the_last_news_ring_as_well(store: Store) -> None:
    await store.runs.create(record())
    await store.runs.acquire(RUN, owner="a", ttl=30)
    await store.events.rung(wait=0)
    await store.runs.finish(RUN, "done", [news(1, fence=1)], fence=1)
    assert await store.events.rung(wait=10) == {RUN}
