from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from bridge.adapters.memory import MemoryStore
from bridge.desk import TAIL, Desk
from bridge.errors import StoreAwayError
from bridge.model import News, Platform, RunId
from bridge.ports import Store
from bridge.view import settle_slot
from tests.contracts.values import RUN, SLACK, THREAD, posted, record, settled


async def told(store: MemoryStore, count: int, *, run: RunId = RUN) -> None:
    await store.runs.create(record(run))
    first = await store.events.last(run) + 1
    news = [
        News(seq=seq, fence=0, at=float(seq), kind="text", text=f"Number {seq}.", payload={"label": "Work"})
        for seq in range(first, first + count)
    ]
    await store.events.append(run, news, fence=0)


class Counting:
    """Counts calls of the store, and can be told to do something before one."""

    def __init__(self, port: Any, calls: dict[str, int], before: Callable[[str], None]) -> None:
        self._port, self._calls, self._before = port, calls, before

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        if not callable(found):
            return Counting(found, self._calls, self._before)

        async def call(*args: Any, **kw: Any) -> Any:
            self._calls[name] = self._calls.get(name, 0) + 1
            self._before(name)
            return await found(*args, **kw)

        return call


def counting(store: MemoryStore, before: Callable[[str], None] = lambda _: None) -> tuple[Store, dict[str, int]]:
    calls: dict[str, int] = {}
    return cast("Store", Counting(store, calls, before)), calls


async def test_a_run_that_is_asked_for_twice_at_once_is_loaded_once() -> None:
    memory = MemoryStore()
    await told(memory, 3)
    store, calls = counting(memory)
    desk = Desk(store, SLACK)
    async with asyncio.TaskGroup() as group:
        both = [group.create_task(desk.get(RUN)) for _ in range(3)]
    assert len({id(task.result()) for task in both}) == 1
    assert calls["slots"] == 1
    assert dict(desk._loading) == {}


async def test_a_run_that_loads_slowly_does_not_hold_up_another() -> None:
    memory = MemoryStore()
    await told(memory, 3)
    await told(memory, 3, run=RunId("second"))
    go = asyncio.Event()
    desk = Desk(memory, SLACK)
    read = memory.events.read

    async def slow(run: RunId, *, after: int = 0, count: int = 500) -> list[News]:
        if run == RUN:
            await go.wait()
        return await read(run, after=after, count=count)

    memory.events.read = slow  # type: ignore[method-assign]
    async with asyncio.TaskGroup() as group:
        first = group.create_task(desk.get(RUN))
        assert await desk.get(RunId("second")) is not None
        assert not first.done()
        go.set()


async def test_nobody_sees_half_a_picture() -> None:
    memory = MemoryStore()
    await told(memory, 1_200)
    seen: list[int] = []
    store, _ = counting(memory, lambda name: seen.append(len(desk.lives)) if name == "read" else None)
    desk = Desk(store, SLACK)
    live = await desk.get(RUN)
    assert live is not None
    assert live.view.seq == 1_200
    assert set(seen) == {0}


async def test_a_run_of_another_platform_is_not_ours() -> None:
    memory = MemoryStore()
    await told(memory, 1)
    desk = Desk(memory, Platform("elsewhere"))
    assert await desk.get(RUN) is None
    async with desk.using(RUN) as live:
        assert live is None
    assert desk.lives == []


async def test_a_run_that_does_not_exist_is_none() -> None:
    assert await Desk(MemoryStore(), SLACK).get(RunId("nobody")) is None


async def test_who_uses_a_run_uses_the_one_that_is_on_the_desk() -> None:
    memory = MemoryStore()
    await told(memory, 1)
    desk = Desk(memory, SLACK)
    live = await desk.get(RUN)
    assert live is not None
    read = memory.events.read

    async def leaving(run: RunId, *, after: int = 0, count: int = 500) -> list[News]:
        desk.leave(live)  # somebody clears the desk while we look
        return await read(run, after=after, count=count)

    memory.events.read = leaving  # type: ignore[method-assign]
    async with desk.using(RUN) as used:
        assert used is not None
        assert desk.lives == [used]
        assert used.users == 1
    assert used.users == 0


async def test_a_checkpoint_keeps_the_view_forgets_slots_and_cuts_the_line() -> None:
    memory = MemoryStore()
    await told(memory, 1_000)
    desk = Desk(memory, SLACK)
    live = await desk.get(RUN)
    assert live is not None
    await desk.note(live, posted("say:1:1"))
    await desk.note(live, posted("card"))
    live.gone.add("say:1:1")
    await desk.checkpoint(live)
    assert set(await memory.threads.slots(RUN)) == {"card"} == set(live.slots)
    assert live.gone == set()
    assert (await memory.events.read(RUN))[0].seq == 1_000 - TAIL
    again = await Desk(memory, SLACK).get(RUN)
    assert again is not None
    assert again.view == live.view


async def test_a_checkpoint_that_fails_is_made_up_for() -> None:
    memory = MemoryStore()
    await told(memory, 1)
    desk = Desk(memory, SLACK)
    live = await desk.get(RUN)
    assert live is not None
    await desk.note(live, posted("say:1:1"))
    await desk.checkpoint(live, now=True)
    live.view, live.changed = settle_slot(live.view, "say:1"), True
    live.gone.add("say:1:1")
    memory.away = True
    with pytest.raises(StoreAwayError):
        await desk.checkpoint(live, now=True)
    memory.away = False
    await desk.checkpoint(live, now=True)
    again = await Desk(memory, SLACK).get(RUN)
    assert again is not None
    assert again.view.says == ()
    assert again.slots == {}


async def test_nothing_is_kept_when_nothing_has_changed() -> None:
    memory = MemoryStore()
    await told(memory, 1)
    store, calls = counting(memory)
    desk = Desk(store, SLACK)
    live = await desk.get(RUN)
    assert live is not None
    for _ in range(3):
        await desk.checkpoint(live, now=True)
    assert calls["save"] == 1


async def test_of_two_settlements_the_first_counts_for_both() -> None:
    memory = MemoryStore()
    await told(memory, 1)
    desk = Desk(memory, SLACK)
    live = await desk.get(RUN)
    assert live is not None
    first, second = settled("k/1/q1", text="A"), settled("k/1/q1", text="B")
    assert await desk.settled(live, first) == first
    assert await desk.settled(live, second) == first
    assert live.settlements == {"k/1/q1": first}


@pytest.mark.case("TH-3")
async def test_a_thread_that_was_bound_is_known_after_a_restart() -> None:
    memory = MemoryStore()
    await told(memory, 1)
    desk = Desk(memory, SLACK)
    live = await desk.get(RUN)
    assert live is not None
    post = posted("card").post
    assert post is not None
    await desk.bind(live, post)
    again = await Desk(memory, SLACK).get(RUN)
    assert again is not None
    assert live.record.thread == again.record.thread == THREAD
    assert THREAD.key.endswith(".001700")
