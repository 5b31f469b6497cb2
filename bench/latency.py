"""From a runner's event to the call at the chat API, beside a bare append-to-read of the same Redis (R14)."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import redis.asyncio

from bridge.adapters.redis_server import ensure_server, stop_server
from bridge.adapters.redis_store import open_redis
from bridge.clock import SystemClock
from bridge.model import Card, News, PlaceRef, PostRef, RunId, ThreadRef
from bridge.ports import Store
from bridge.service import Bridge
from bridge.settings import Settings, WorkspaceSettings
from bridge.starting import Starter
from tests.fakes.chat import ANNA, PLACE, FakeChat
from tests.fakes.launcher import FakeLauncher

EVENTS = 1_500
EVERY = 0.01
"""100 events a second."""


async def measure() -> dict[str, float]:
    """Return milliseconds `p50_ms`, `p99_ms` of posts of new slots, the same of bare Redis, and their ratio."""
    with tempfile.TemporaryDirectory(prefix="fb-") as folder:
        server = await asyncio.to_thread(ensure_server, Path(folder))
        try:
            bare = await _bare(server.url, server.username, server.password)
            async with open_redis(server.url, username=server.username, password=server.password) as store:
                ours = await _ours(store, Path(folder))
        finally:
            await asyncio.to_thread(stop_server, Path(folder))
    return {
        "p50_ms": round(_percentile(ours, 50), 2),
        "p99_ms": round(_percentile(ours, 99), 2),
        "redis_p50_ms": round(_percentile(bare, 50), 2),
        "redis_p99_ms": round(_percentile(bare, 99), 2),
        "redis_ratio": round(_percentile(ours, 50) / _percentile(bare, 50), 2),
        "events": EVENTS,
    }


async def _ours(store: Store, home: Path) -> list[float]:
    chat = _Timed()
    settings = Settings(home=home, workspaces={"w": WorkspaceSettings(path=home / "w", fresh=True)})
    bridge = Bridge(chat, store, FakeLauncher(), settings=settings, store_url="", account="bench")
    starter = Starter(store, FakeLauncher(), settings, store_url="", owner="bench", clock=SystemClock())
    record = await starter.create(seed="1", place=PLACE, starter=ANNA, request="bench", workspace="w", options={})
    until = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(bridge.run(until=until))
        await chat.until(lambda chat: chat.roots(), within=10)
        fence = await store.runs.acquire(record.run, owner="runner", ttl=60)
        written = await _write(store, record.run, fence)
        await chat.until(lambda _: len(chat.seen) >= EVENTS, within=60)
        until.set()
    return [(chat.seen[seq] - at) * 1e3 for seq, at in written.items()]


async def _write(store: Store, run: RunId, fence: int) -> dict[int, float]:
    seq, written = await store.events.last(run), {}
    begin = time.perf_counter()
    for number in range(EVENTS):
        await asyncio.sleep(max(0.0, begin + number * EVERY - time.perf_counter()))
        seq += 1
        news = News(seq=seq, fence=fence, at=time.time(), kind="text", text=f"line {seq}", payload={"label": "Work"})
        written[seq] = time.perf_counter()
        await store.events.append(run, [news], fence=fence)
    return written


class _Timed(FakeChat):
    """Notes when the call for each text arrives."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[int, float] = {}

    async def post(self, where: PlaceRef | ThreadRef, card: Card, *, once: str) -> tuple[PostRef, float]:
        _, _, slot = once.partition("/")
        if slot.startswith("say:"):
            self.seen[int(slot.split(":")[1])] = time.perf_counter()
        return await super().post(where, card, once=once)


async def _bare(url: str, username: str, password: str) -> list[float]:
    """One writer, one blocked reader, nothing else."""
    taken: list[float] = []
    async with (
        redis.asyncio.from_url(url, username=username, password=password, protocol=2) as writer,
        redis.asyncio.from_url(url, username=username, password=password, protocol=2) as reader,
        asyncio.TaskGroup() as group,
    ):
        group.create_task(_read(reader, taken))
        await asyncio.sleep(0.1)
        begin = time.perf_counter()
        for number in range(EVENTS):
            await asyncio.sleep(max(0.0, begin + number * EVERY - time.perf_counter()))
            await writer.xadd("bench", {"at": repr(time.perf_counter()), "filler": "x" * 250})
    return taken


async def _read(reader: redis.asyncio.Redis, taken: list[float]) -> None:
    after = "$"
    while len(taken) < EVENTS:
        answer: Any = await reader.xread({"bench": after}, block=5_000)
        for _, entries in answer:
            for entry, fields in entries:
                taken.append((time.perf_counter() - float(fields[b"at"])) * 1e3)
                after = entry


def _percentile(values: list[float], percent: int) -> float:
    return statistics.quantiles(values, n=100)[percent - 1]
