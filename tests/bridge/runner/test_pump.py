from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bridge.adapters.memory import MemoryStore
from bridge.errors import FencedError, StoreRefusedError
from bridge.model import News
from bridge.runner import patience
from bridge.runner.journal import Journal
from bridge.runner.pump import Pump
from tests.contracts.values import RUN, news, record


class Line:
    """A journal and a pump that carries it into a line which has one item already."""

    def __init__(self, store: MemoryStore, folder: Path, *, after: int = 1) -> None:
        self.store = store
        self.journal = Journal(folder, 1, on_written=lambda: self.pump.written(), on_trouble=lambda _: None)
        self.pump = Pump(self.journal, store.events, RUN, fence=1, after=after)

    @contextlib.asynccontextmanager
    async def carrying(self) -> AsyncIterator[asyncio.Task[None]]:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self.pump.run())
            try:
                yield task
            finally:
                task.cancel()

    async def seqs(self) -> list[int]:
        return [item.seq for item in await self.store.events.read(RUN, count=2_000)]


@pytest.fixture
async def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Line]:
    monkeypatch.setattr(patience, "RETRY", (0.01,))
    store = MemoryStore()
    await store.runs.create(record())
    await store.events.append(RUN, [of_us(1, fence=0)], fence=0)
    await store.runs.acquire(RUN, owner="us", ttl=60.0)
    line = Line(store, tmp_path)
    yield line
    line.journal.close()


def of_us(seq: int, *, fence: int = 1) -> News:
    return news(seq, fence=fence)


async def test_nothing_to_hand_in_is_caught_up_at_once(line: Line) -> None:
    async with line.carrying(), asyncio.timeout(5):
        await line.pump.caught_up(1)


async def test_more_than_a_batch_goes_in_order_and_is_noted(line: Line, tmp_path: Path) -> None:
    async with line.carrying(), asyncio.timeout(10):
        for seq in range(2, 1_302):
            line.journal.append(of_us(seq))
        await line.pump.caught_up(1_301)
    assert await line.seqs() == list(range(1, 1_302))
    assert (tmp_path / "log" / "0001.acked").read_text() == "1301"


async def test_a_store_that_refuses_us_for_a_while_is_waited_for(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    refusals = iter([True, True, False])
    append = line.store.events.append

    async def refusing(*args: object, **kw: object) -> int:
        if next(refusals, False):
            raise StoreRefusedError("no such user")
        return await append(*args, **kw)  # type: ignore[arg-type]  # passed on as they come

    monkeypatch.setattr(line.store.events, "append", refusing)
    async with line.carrying(), asyncio.timeout(5):
        line.journal.append(of_us(2))
        await line.pump.caught_up(2)
    assert await line.seqs() == [1, 2]


async def test_a_newer_attempt_stops_it(line: Line) -> None:
    line.store._data.runs[RUN].lease = None
    await line.store.runs.acquire(RUN, owner="another", ttl=60.0)
    line.journal.append(of_us(2))
    with pytest.raises(ExceptionGroup) as caught:
        async with line.carrying() as task, asyncio.timeout(5):
            await asyncio.wait({task})
    assert caught.group_contains(FencedError)
    assert await line.seqs() == [1]


async def test_what_the_line_lost_is_handed_in_again(line: Line) -> None:
    async with line.carrying(), asyncio.timeout(5):
        for seq in (2, 3, 4):
            line.journal.append(of_us(seq))
        await line.pump.caught_up(4)
        kept = line.store._data.lines[RUN]
        kept.last, kept.items = 2, {seq: raw for seq, raw in kept.items.items() if seq <= 2}
        line.journal.append(of_us(5))
        await line.pump.caught_up(5)
    assert await line.seqs() == [1, 2, 3, 4, 5]


async def test_what_nobody_has_any_more_is_an_error_and_no_endless_loop(line: Line) -> None:
    kept = line.store._data.lines[RUN]
    kept.last, kept.items = 0, {}
    line.journal.append(of_us(2))
    with pytest.raises(ExceptionGroup) as caught:
        async with line.carrying() as task, asyncio.timeout(5):
            await asyncio.wait({task})
    assert caught.group_contains(ValueError)


async def test_when_it_has_been_cancelled_everything_can_be_handed_in_once_more(line: Line) -> None:
    async with line.carrying(), asyncio.timeout(5):
        line.journal.append(of_us(2))
        await line.pump.caught_up(2)
    kept = line.store._data.lines[RUN]
    kept.last, kept.items = 1, {1: kept.items[1]}
    await line.pump.again()
    assert await line.seqs() == [1, 2]
