from __future__ import annotations

import asyncio

from bridge.lanes import Lanes


async def test_a_lane_keeps_its_order_and_lanes_do_not_wait_for_one_another() -> None:
    done: list[str] = []
    go = asyncio.Event()

    async def slow() -> None:
        await go.wait()
        done.append("a1")

    async def quick(name: str) -> None:
        done.append(name)

    async with asyncio.TaskGroup() as group:
        lanes = Lanes(group, name="test")
        lanes.put("a", slow)
        lanes.put("a", lambda: quick("a2"))
        lanes.put("b", lambda: quick("b1"))
        await asyncio.sleep(0.01)
        assert done == ["b1"]
        go.set()
    assert done == ["b1", "a1", "a2"]


async def test_a_lane_without_work_is_not_remembered() -> None:
    async def nothing() -> None:
        pass

    async with asyncio.TaskGroup() as group:
        lanes = Lanes(group, name="test")
        for number in range(100):
            lanes.put(number, nothing)
    assert lanes._waiting == {}
    assert lanes._tasks == set()


async def test_draining_finishes_what_has_begun_and_begins_nothing_more() -> None:
    done: list[str] = []

    async def work(name: str) -> None:
        await asyncio.sleep(0.01)
        done.append(name)

    async with asyncio.TaskGroup() as group:
        lanes = Lanes(group, name="test")
        lanes.put("a", lambda: work("a1"))
        lanes.put("a", lambda: work("a2"))
        lanes.beside(work("beside"))
        await asyncio.sleep(0)
        await lanes.drain(1.0)
    assert sorted(done) == ["a1", "beside"]


async def test_draining_gives_up_what_takes_too_long() -> None:
    async def for_ever() -> None:
        await asyncio.Event().wait()

    async with asyncio.timeout(1), asyncio.TaskGroup() as group:
        lanes = Lanes(group, name="test")
        lanes.put("a", for_ever)
        await asyncio.sleep(0)
        await lanes.drain(0.01)


async def test_work_that_comes_after_the_end_is_dropped_without_a_word() -> None:
    async def nothing() -> None:
        pass

    async with asyncio.TaskGroup() as group:
        lanes = Lanes(group, name="test")
    lanes.beside(nothing())
    lanes.put("a", nothing)
    assert lanes._tasks == set()
