"""Whatever is called, memory and Redis give the same answers; and a line is what a plain list would be."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bridge.adapters.memory import MemoryStore
from bridge.errors import LeaseError
from bridge.model import RunStatus
from bridge.ports import Store
from tests.contracts.values import OTHER, RUN, SLACK, news, posted, record, settled, words
from tests.fakes.redis import RealRedis

Call = Callable[[Store], Coroutine[Any, Any, Any]]
QUICK = settings(
    max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

runs = st.sampled_from([RUN, OTHER])
owners = st.sampled_from(["a", "b"])
fences = st.integers(0, 3)
statuses: st.SearchStrategy[RunStatus] = st.sampled_from(["starting", "held", "lost", "done", "failed"])
windows = st.tuples(st.integers(1, 8), st.integers(0, 5)).map(lambda w: list(range(w[0], w[0] + w[1])))


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, Call]:
    """One call of any port, with a name for the report."""
    run, owner, fence, status = draw(runs), draw(owners), draw(fences), draw(statuses)
    seqs, reopen, number = draw(windows), draw(st.booleans()), draw(st.integers(1, 3))
    items = [news(seq, fence=fence) for seq in seqs]
    made: dict[str, Call] = {
        f"create {run}": lambda s: s.runs.create(record(run, created=float(number))),
        f"acquire {run} {owner} {reopen}": lambda s: s.runs.acquire(run, owner=owner, ttl=60, reopen=reopen),
        f"renew {run} {owner} {fence}": lambda s: s.runs.renew(run, owner=owner, fence=fence, ttl=60),
        f"mark {run} {status} {fence}": lambda s: s.runs.mark(run, status, fence=fence),
        f"finish {run} {status} {fence} {seqs}": lambda s: s.runs.finish(run, status, items, fence=fence),
        f"append {run} {seqs} {fence}": lambda s: s.events.append(run, items, fence=fence),
        f"trim {run} {number}": lambda s: s.events.trim(run, below=number),
        f"read {run} {number}": lambda s: s.events.read(run, after=number, count=3),
        f"accept {number}": lambda s: s.inbox.accept(words(number)),
        f"withdraw {number}": lambda s: s.inbox.withdraw(words(number)),
        "take": take,
        f"note {run} {number}": lambda s: s.threads.note(run, posted(f"text:{number}")),
        f"settle {run} {number}": lambda s: s.threads.settle(run, settled(f"q{number}", text=owner)),
        f"lead {owner}": lambda s: s.runs.lead("slack", owner=owner, ttl=60),
        f"leave {owner}": lambda s: s.runs.leave("slack", owner=owner),
    }
    return draw(st.sampled_from(sorted(made.items(), key=lambda pair: pair[0])))


async def take(store: Store) -> list[Any]:
    """Receipts are each store's own; they are made good at once."""
    taken = await store.inbox.take(SLACK, wait=0)
    for receipt, _ in taken:
        await store.inbox.done(SLACK, receipt)
    return [inbound for _, inbound in taken]


async def answer(store: Store, call: Call) -> Any:
    try:
        return await call(store)
    except (LeaseError, LookupError, ValueError) as err:
        return type(err)


async def picture(store: Store) -> list[Any]:
    """Everything that can be asked, without times."""
    found: list[Any] = [await store.runs.live(), await store.runs.everyone()]
    for run in (RUN, OTHER):
        standing = await store.runs.standing(run)
        found.append((standing.status, standing.fence, standing.owner) if standing else None)
        found += [await store.events.last(run), await store.events.read(run), await store.runs.record(run)]
        found += [await store.threads.slots(run), await store.threads.settlements(run)]
    return found


@pytest.mark.real
@QUICK
@given(st.lists(calls(), min_size=3, max_size=25))
def test_memory_and_redis_give_the_same_answers(shared_redis: RealRedis, made: list[tuple[str, Call]]) -> None:
    async def both() -> None:
        async with shared_redis.open(prefix=shared_redis.fresh_prefix()) as redis, MemoryStore().open() as memory:
            for name, call in [("create", lambda s: s.runs.create(record())), *made]:
                assert await answer(redis, call) == await answer(memory, call), name
                assert await picture(redis) == await picture(memory), name

    asyncio.run(both())


@settings(max_examples=200, deadline=None)
@given(st.lists(windows, max_size=12))
def test_a_line_is_what_a_plain_list_would_be(made: list[list[int]]) -> None:
    async def append_all() -> None:
        store = MemoryStore()
        reached = 0
        for seqs in made:
            items = [news(seq) for seq in seqs]
            if seqs and seqs[0] > reached + 1:
                with pytest.raises(ValueError, match="gap"):
                    await store.events.append(RUN, items, fence=0)
            else:
                reached = max([reached, *seqs])
                assert await store.events.append(RUN, items, fence=0) == reached
            assert [item.seq for item in await store.events.read(RUN)] == list(range(1, reached + 1))

    asyncio.run(append_all())
