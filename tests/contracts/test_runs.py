"""`Runs`: which runs there are, one lease per run, one leader per account."""

from __future__ import annotations

import asyncio

import pytest

from bridge.errors import FencedError, FinishedError, HeldError
from bridge.model import FINAL, RunId, RunStatus, ThreadRef
from bridge.ports import Standing, Store
from tests.contracts.values import OTHER, RUN, SLACK, THREAD, OpenStore, news, record

LATER = ThreadRef(SLACK, "T1/C2/1700000009.000000")


async def standing(store: Store, run: RunId = RUN) -> Standing:
    found = await store.runs.standing(run)
    assert found is not None
    return found


async def expired(store: Store) -> None:
    """Let a lease of a millisecond run out. It ends by the store's clock, which tells nobody."""
    async with asyncio.timeout(5):
        while (await standing(store)).owner:  # noqa: ASYNC110 - see above
            await asyncio.sleep(0.005)


async def test_a_new_run_is_queued_and_held_by_nobody(store: Store) -> None:
    assert await store.runs.create(record()) is True
    assert await store.runs.record(RUN) == record()
    found = await standing(store)
    assert (found.status, found.fence, found.owner) == ("queued", 0, "")
    assert found.since > 1_700_000_000


async def test_a_name_is_taken_once(store: Store) -> None:
    await store.runs.create(record(created=1.0))
    assert await store.runs.create(record(created=2.0)) is False
    assert await store.runs.record(RUN) == record(created=1.0)


async def test_of_many_who_create_one_succeeds(store: Store) -> None:
    async with asyncio.TaskGroup() as group:
        tries = [group.create_task(store.runs.create(record(created=float(number)))) for number in range(10)]
    assert sorted(one.result() for one in tries) == [False] * 9 + [True]


async def test_an_unknown_run_has_nothing(store: Store) -> None:
    assert await store.runs.record(RUN) is None
    assert await store.runs.standing(RUN) is None
    assert await store.runs.run_of(THREAD) is None
    with pytest.raises(LookupError):
        await store.runs.acquire(RUN, owner="a", ttl=30)
    with pytest.raises(LookupError):
        await store.runs.bind(RUN, THREAD)
    with pytest.raises(LookupError):
        await store.runs.mark(RUN, "lost", fence=0)
    with pytest.raises(LookupError):
        await store.runs.finish(RUN, "failed", [], fence=0)
    with pytest.raises(FencedError):
        await store.runs.renew(RUN, owner="a", fence=0, ttl=30)


# -- threads ----------------------------------------------------------------------------------------------------


@pytest.mark.case("TH-3")
async def test_a_run_and_its_thread_find_each_other(store: Store) -> None:
    await store.runs.create(record())
    await store.runs.bind(RUN, THREAD)
    await store.runs.bind(RUN, THREAD)
    assert await store.runs.record(RUN) == record(thread=THREAD)
    assert await store.runs.run_of(THREAD) == RUN
    found = await store.runs.record(RUN)
    assert found
    assert found.thread
    assert found.thread.key == "T1/C1/1700000000.001700"


async def test_a_thread_that_is_known_at_the_start_is_bound(store: Store) -> None:
    await store.runs.create(record(thread=THREAD))
    assert await store.runs.record(RUN) == record(thread=THREAD)
    assert await store.runs.run_of(THREAD) == RUN


async def test_another_thread_replaces_the_first(store: Store) -> None:
    await store.runs.create(record(thread=THREAD))
    await store.runs.bind(RUN, LATER)
    assert await store.runs.run_of(LATER) == RUN
    assert await store.runs.run_of(THREAD) is None
    assert await store.runs.record(RUN) == record(thread=LATER)


async def test_a_thread_that_went_to_another_run_stays_there(store: Store) -> None:
    await store.runs.create(record(thread=THREAD))
    await store.runs.create(record(OTHER))
    await store.runs.bind(OTHER, THREAD)
    await store.runs.bind(RUN, LATER)
    assert await store.runs.run_of(THREAD) == OTHER


# -- lists ------------------------------------------------------------------------------------------------------


async def test_everyone_is_listed_newest_first(store: Store) -> None:
    await store.runs.create(record(RUN, created=10.0))
    await store.runs.create(record(OTHER, created=20.5))
    await store.runs.create(record(RunId("aa"), created=20.25))
    assert await store.runs.everyone() == [OTHER, "aa", RUN]


async def test_only_the_newest_two_hundred_are_listed(store: Store) -> None:
    async with asyncio.TaskGroup() as group:
        for number in range(205):
            group.create_task(store.runs.create(record(RunId(f"r{number}"), created=float(number))))
    listed = await store.runs.everyone()
    assert (len(listed), listed[0], listed[-1]) == (200, "r204", "r5")
    assert len(await store.runs.live()) == 205


async def test_live_are_those_that_have_not_ended(store: Store) -> None:
    assert await store.runs.live() == set()
    await store.runs.create(record(RUN))
    await store.runs.create(record(OTHER))
    await store.runs.acquire(RUN, owner="a", ttl=30)
    assert await store.runs.live() == {RUN, OTHER}
    await store.runs.mark(RUN, "lost", fence=1)
    assert await store.runs.live() == {RUN, OTHER}
    await store.runs.finish(RUN, "ended", [], fence=1)
    assert await store.runs.live() == {OTHER}
    await store.runs.acquire(RUN, owner="b", ttl=30, reopen=True)
    assert await store.runs.live() == {RUN, OTHER}


# -- the lease --------------------------------------------------------------------------------------------------


async def test_taking_a_run_gives_the_first_number_and_makes_it_running(store: Store) -> None:
    await store.runs.create(record())
    assert await store.runs.acquire(RUN, owner="a", ttl=30) == 1
    found = await standing(store)
    assert (found.status, found.fence, found.owner) == ("running", 1, "a")


async def test_a_held_run_is_refused_to_others(store: Store) -> None:
    await store.runs.create(record())
    await store.runs.acquire(RUN, owner="a", ttl=30)
    with pytest.raises(HeldError):
        await store.runs.acquire(RUN, owner="b", ttl=30)
    assert (await standing(store)).owner == "a"
    assert (await standing(store)).fence == 1


async def test_of_many_who_want_a_run_one_gets_it(store: Store) -> None:
    await store.runs.create(record())

    async def want(owner: str) -> int:
        try:
            return await store.runs.acquire(RUN, owner=owner, ttl=30)
        except HeldError:
            return 0

    async with asyncio.TaskGroup() as group:
        tries = [group.create_task(want(f"o{number}")) for number in range(12)]
    assert sorted(one.result() for one in tries) == [0] * 11 + [1]


async def test_the_holder_who_asks_again_keeps_number_and_status(store: Store) -> None:
    await store.runs.create(record())
    await store.runs.acquire(RUN, owner="a", ttl=30)
    await store.runs.mark(RUN, "held", fence=1)
    assert await store.runs.acquire(RUN, owner="a", ttl=30) == 1
    assert (await standing(store)).status == "held"


@pytest.mark.case("ST-9")
async def test_a_lease_that_ran_out_leaves_the_run_to_others_with_the_next_number(store: Store) -> None:
    await store.runs.create(record())
    await store.runs.acquire(RUN, owner="a", ttl=0.001)
    await expired(store)
    found = await standing(store)
    assert (found.status, found.owner) == ("running", "")
    assert await store.runs.acquire(RUN, owner="b", ttl=30) == 2


async def test_renewing_takes_the_lease_again_also_after_it_ran_out(store: Store) -> None:
    await store.runs.create(record())
    await store.runs.acquire(RUN, owner="a", ttl=0.001)
    await expired(store)
    await store.runs.renew(RUN, owner="a", fence=1, ttl=30)
    assert (await standing(store)).owner == "a"
    with pytest.raises(HeldError):
        await store.runs.acquire(RUN, owner="b", ttl=30)


async def test_a_holder_of_before_a_take_over_can_do_nothing_more(store: Store) -> None:
    await store.runs.create(record())
    await store.runs.acquire(RUN, owner="a", ttl=0.001)
    await expired(store)
    await store.runs.acquire(RUN, owner="b", ttl=30)
    with pytest.raises(FencedError):
        await store.runs.renew(RUN, owner="a", fence=1, ttl=30)
    with pytest.raises(FencedError):
        await store.runs.mark(RUN, "held", fence=1)
    with pytest.raises(FencedError):
        await store.events.append(RUN, [news(1, fence=1)], fence=1)
    with pytest.raises(FencedError):
        await store.runs.finish(RUN, "done", [news(1, fence=1)], fence=1)
    found = await standing(store)
    assert (found.status, found.fence, found.owner) == ("running", 2, "b")
    assert await store.events.last(RUN) == 0


async def test_a_status_keeps_its_time_while_it_holds(store: Store) -> None:
    await store.runs.create(record())
    await store.runs.mark(RUN, "starting", fence=0)
    first = await standing(store)
    await asyncio.sleep(0.01)
    await store.runs.mark(RUN, "starting", fence=0)
    assert await standing(store) == first
    await store.runs.mark(RUN, "lost", fence=0)
    assert (await standing(store)).since > first.since


# -- the end ----------------------------------------------------------------------------------------------------


async def test_finishing_writes_news_and_status_and_gives_the_lease_up(store: Store) -> None:
    await store.runs.create(record())
    await store.runs.acquire(RUN, owner="a", ttl=30)
    await store.runs.finish(RUN, "done", [news(1, fence=1), news(2, fence=1)], fence=1)
    found = await standing(store)
    assert (found.status, found.fence, found.owner) == ("done", 1, "")
    assert await store.events.read(RUN) == [news(1, fence=1), news(2, fence=1)]


async def test_finishing_twice_is_finishing_once(store: Store) -> None:
    await store.runs.create(record())
    await store.runs.acquire(RUN, owner="a", ttl=30)
    await store.runs.finish(RUN, "failed", [news(1, fence=1)], fence=1)
    first = await standing(store)
    await store.runs.finish(RUN, "failed", [news(1, fence=1)], fence=1)
    assert await standing(store) == first
    assert await store.events.read(RUN) == [news(1, fence=1)]


async def test_finishing_with_a_gap_changes_nothing(store: Store) -> None:
    await store.runs.create(record())
    await store.runs.acquire(RUN, owner="a", ttl=30)
    with pytest.raises(ValueError, match="gap"):
        await store.runs.finish(RUN, "done", [news(2, fence=1)], fence=1)
    found = await standing(store)
    assert (found.status, found.owner) == ("running", "a")


@pytest.mark.parametrize("status", sorted(FINAL))
async def test_a_run_that_has_ended_is_taken_only_to_continue_it(store: Store, status: RunStatus) -> None:
    await store.runs.create(record())
    await store.runs.acquire(RUN, owner="a", ttl=30)
    await store.runs.finish(RUN, status, [], fence=1)
    with pytest.raises(FinishedError):
        await store.runs.acquire(RUN, owner="b", ttl=30)
    assert await store.runs.acquire(RUN, owner="b", ttl=30, reopen=True) == 2
    assert (await standing(store)).status == "running"


async def test_a_lost_run_is_taken_without_reopening(store: Store) -> None:
    await store.runs.create(record())
    await store.runs.acquire(RUN, owner="a", ttl=30)
    await store.runs.finish(RUN, "lost", [], fence=1)
    assert await store.runs.acquire(RUN, owner="b", ttl=30) == 2


async def test_a_renewal_that_comes_after_the_end_does_not_hold_the_run(store: Store) -> None:
    await store.runs.create(record())
    await store.runs.acquire(RUN, owner="a", ttl=30)
    await store.runs.finish(RUN, "done", [], fence=1)
    await store.runs.renew(RUN, owner="a", fence=1, ttl=30)
    assert (await standing(store)).owner == ""
    assert await store.runs.acquire(RUN, owner="b", ttl=30, reopen=True) == 2


@pytest.mark.case("ST-4")
async def test_the_next_process_reads_all_of_it(open_store: OpenStore, store: Store) -> None:
    await store.runs.create(record(thread=THREAD))
    await store.runs.acquire(RUN, owner="a", ttl=30)
    async with open_store() as later:
        assert await later.runs.record(RUN) == record(thread=THREAD)
        assert await later.runs.run_of(THREAD) == RUN
        assert await standing(later) == await standing(store)
        assert await later.runs.live() == {RUN}


# -- one leader per account -------------------------------------------------------------------------------------


async def test_one_leads_an_account_until_it_leaves(store: Store) -> None:
    assert await store.runs.lead("slack-T1", owner="a", ttl=30) is True
    assert await store.runs.lead("slack-T1", owner="b", ttl=30) is False
    assert await store.runs.lead("slack-T1", owner="a", ttl=30) is True
    assert await store.runs.lead("slack-T2", owner="b", ttl=30) is True
    await store.runs.leave("slack-T1", owner="b")
    assert await store.runs.lead("slack-T1", owner="b", ttl=30) is False
    await store.runs.leave("slack-T1", owner="a")
    await store.runs.leave("slack-T1", owner="a")
    assert await store.runs.lead("slack-T1", owner="b", ttl=30) is True


@pytest.mark.case("DL-8")
async def test_who_leads_an_account_can_be_asked(store: Store) -> None:
    assert await store.runs.leader("slack-T1") == ""
    await store.runs.lead("slack-T1", owner="a", ttl=30)
    assert await store.runs.leader("slack-T1") == "a"
    await store.runs.leave("slack-T1", owner="a")
    assert await store.runs.leader("slack-T1") == ""


async def test_a_leader_that_falls_silent_is_followed(store: Store) -> None:
    await store.runs.lead("slack-T1", owner="a", ttl=0.001)
    async with asyncio.timeout(5):
        while not await store.runs.lead("slack-T1", owner="b", ttl=30):  # noqa: ASYNC110 - ends by the store's clock
            await asyncio.sleep(0.005)
    assert await store.runs.lead("slack-T1", owner="a", ttl=30) is False
