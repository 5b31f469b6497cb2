"""When the machine dies, not just the server: what is documented of `everysec` and `always` is so (rulings R19).

The bytes that had not been synced are taken away: a small library under the server notes how long each file was at its
last sync, and after kill -9 the append-only file is cut back to that length.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from bridge.adapters.redis_server import Sync, ensure_server, find_server, stop_server
from bridge.ports import Store
from tests.contracts.values import RUN, news, record
from tests.fakes.redis import RealRedis

pytestmark = [pytest.mark.real, pytest.mark.timeout(60)]

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int note(const char *name, int fd) {
  struct stat before;
  fstat(fd, &before);  /* what comes while the sync runs does not count as synced */
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
  int result = real(fd);
  char link[64], path[4096], line[4200];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (result == 0 && length > 0) {
    path[length] = 0;
    int log = open(getenv("SYNC_LOG"), O_WRONLY | O_APPEND | O_CREAT, 0600);
    int size = snprintf(line, sizeof line, "%lld %s\n", (long long)before.st_size, path);
    if (write(log, line, size) != size) abort();
    close(log);
  }
  return result;
}
int fsync(int fd) { return note("fsync", fd); }
int fdatasync(int fd) { return note("fdatasync", fd); }
"""


class Machine:
    """A server whose unsynced bytes can be lost."""

    def __init__(self, folder: Path, sync: Sync) -> None:
        compiler = shutil.which("cc")
        assert compiler, "this test needs a C compiler. Install it with: apt-get install gcc libc6-dev"
        self._log, self._sync = folder / "syncs", sync
        library = folder / "shim.so"
        (folder / "shim.c").write_text(SHIM)
        subprocess.run([compiler, "-shared", "-fPIC", "-o", library, folder / "shim.c", "-ldl"], check=True)
        self._program = folder / "server"
        self._program.write_text(
            f'#!/bin/sh\nexport SYNC_LOG="{self._log}" LD_PRELOAD="{library}"\nexec "{find_server()}" "$@"\n'
        )
        self._program.chmod(0o755)
        self.home = folder / "home"
        self.start()
        self.server = RealRedis(self.home)

    def start(self) -> None:
        ensure_server(self.home, binary=self._program, sync=self._sync)

    @property
    def synced(self) -> int:
        """Length of the append-only file at its last sync."""
        lines = [line.split(" ", 1) for line in self._log.read_text().splitlines()]
        return max([int(size) for size, path in lines if path == str(self.file)], default=0)

    @property
    def file(self) -> Path:
        return next((self.home / "redis" / "appendonlydir").glob("*.incr.aof"))

    def cut_power(self) -> int:
        """Kill the server and take away what was not synced. Returns how many bytes went."""
        self.server.kill()
        lost = self.file.stat().st_size - self.synced
        os.truncate(self.file, self.synced)
        return lost


async def append_until(store: Store, acknowledged: list[float], until: float) -> None:
    """Append one by one, noting when each was acknowledged."""
    while time.monotonic() < until:
        seq = len(acknowledged) + 1
        await store.events.append(RUN, [news(seq, fence=1)], fence=1)
        acknowledged.append(time.monotonic())


async def test_everysec_may_lose_the_last_second_and_the_runner_can_hand_it_in_again(tmp_path: Path) -> None:
    machine = await asyncio.to_thread(Machine, tmp_path, "everysec")
    acknowledged: list[float] = []
    async with machine.server.open() as store:
        await store.runs.create(record())
        await store.runs.acquire(RUN, owner="a", ttl=600)
        user = await store.credentials.grant(RUN)
        await append_until(store, acknowledged, time.monotonic() + 2.5)
        before = machine.synced
        while machine.synced == before:  # go on until a sync has just been, so that there is something to lose
            await append_until(store, acknowledged, time.monotonic() + 0.02)
        await append_until(store, acknowledged, time.monotonic() + 0.4)
    lost_bytes = await asyncio.to_thread(machine.cut_power)
    ended = time.monotonic()
    await asyncio.to_thread(machine.start)
    async with machine.server.open(user=user) as runner:  # the users have a file of their own
        kept = await runner.events.last(RUN)
        assert [item.seq for item in await runner.events.read(RUN, count=100_000)] == list(range(1, kept + 1))
        assert lost_bytes > 0
        assert kept < len(acknowledged), "nothing was lost: this test would not see a loss"
        assert all(ended - moment < 2.5 for moment in acknowledged[kept:]), "older than a second or two, and lost"
        assert kept > len(acknowledged) / 4
        with pytest.raises(ValueError, match=f"goes up to {kept}"):  # it is told, and does not go on over the hole
            await runner.events.append(RUN, [news(len(acknowledged) + 1, fence=1)], fence=1)
        journal = [news(seq, fence=1) for seq in range(kept + 1, len(acknowledged) + 2)]
        assert await runner.events.append(RUN, journal, fence=1) == len(acknowledged) + 1
    await asyncio.to_thread(stop_server, machine.home)


async def test_always_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    machine = await asyncio.to_thread(Machine, tmp_path, "always")
    acknowledged: list[float] = []
    async with machine.server.open() as store:
        await store.runs.create(record())
        await store.runs.acquire(RUN, owner="a", ttl=600)
        await append_until(store, acknowledged, time.monotonic() + 1.0)
    await asyncio.to_thread(machine.cut_power)
    await asyncio.to_thread(machine.start)
    async with machine.server.open() as store:
        assert await store.events.last(RUN) >= len(acknowledged) > 10
    await asyncio.to_thread(stop_server, machine.home)
