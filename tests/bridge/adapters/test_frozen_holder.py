"""A runner that was frozen past its lease and thaws after the take-over finds itself shut out (rulings R19)."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys

import pytest

from tests.contracts.values import RUN, news, record
from tests.fakes.redis import RealRedis

pytestmark = pytest.mark.real

HOLDER = """
import asyncio, json, sys
from bridge.adapters.redis_store import open_redis
from bridge.errors import FencedError
from bridge.model import News, RunId

async def main(url, name, password, run):
    async with open_redis(url, username=name, password=password) as store:
        fence = await store.runs.acquire(run, owner="old", ttl=0.5)
        seq = await store.events.last(run)
        try:
            while True:
                seq += 1
                item = News(seq=seq, fence=fence, at=1.0, kind="text", text="old")
                await store.events.append(run, [item], fence=fence)
                print(seq, flush=True)
                await store.runs.renew(run, owner="old", fence=fence, ttl=0.5)
        except FencedError:
            try:
                await store.runs.finish(run, "done", [], fence=fence)
            except FencedError:
                sys.exit(75)

asyncio.run(main(*json.loads(sys.stdin.readline())))
"""


@pytest.mark.parametrize("frozen_after", [1, 7, 40])
async def test_a_frozen_holder_is_fenced_when_it_thaws(shared_redis: RealRedis, frozen_after: int) -> None:
    async with shared_redis.open() as store:
        run = type(RUN)(f"frozen{frozen_after}")
        await store.runs.create(record(run))
        holder = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", HOLDER), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert holder.stdin
        assert holder.stdout
        login = [shared_redis.address.url, *await store.credentials.grant(run), run]
        holder.stdin.write(json.dumps(login).encode() + b"\n")
        for _ in range(frozen_after):
            await holder.stdout.readline()
        holder.send_signal(signal.SIGSTOP)
        async with asyncio.timeout(10):
            while (standing := await store.runs.standing(run)) and standing.owner:  # noqa: ASYNC110 - by its time
                await asyncio.sleep(0.02)
        assert await store.runs.acquire(run, owner="new", ttl=60) == 2
        last = await store.events.last(run)
        await store.events.append(run, [news(last + 1, fence=2)], fence=2)
        holder.send_signal(signal.SIGCONT)
        async with asyncio.timeout(10):
            await holder.communicate()
        assert holder.returncode == 75
        line = await store.events.read(run, count=100_000)
        assert [item.seq for item in line] == list(range(1, last + 2))
        assert [item.fence for item in line] == [1] * last + [2]
        found = await store.runs.standing(run)
        assert found
        assert (found.status, found.owner, found.fence) == ("running", "new", 2)
