"""Real servers for tests: started in a folder of the test, killed, frozen and started again at will."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from itertools import count
from pathlib import Path

import pytest

from bridge.adapters.redis_server import ServerAddress, Sync, ensure_server, stop_server
from bridge.adapters.redis_store import RedisStore, open_redis

_numbers = count(1)


class RealRedis:
    """A server of our own kind (`ensure_server`) that a test may mistreat."""

    def __init__(self, home: Path, *, sync: Sync = "everysec") -> None:
        self.home, self._sync = home, sync
        self.address = self.start()

    def start(self) -> ServerAddress:
        return ensure_server(self.home, sync=self._sync)

    @property
    def pid(self) -> int:
        return int((self.home / "redis" / "server.pid").read_text())

    @property
    def socket(self) -> Path:
        return Path(self.address.url.removeprefix("unix://").partition("?")[0])

    def kill(self) -> None:
        """SIGKILL; returns when the process is gone."""
        pid = self.pid
        watch = os.pidfd_open(pid)
        os.kill(pid, signal.SIGKILL)
        _wait_readable(watch)

    def freeze(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def stop(self) -> None:
        stop_server(self.home)

    def fresh_prefix(self) -> str:
        """Keys of one test, out of sight of the others on the same server."""
        return f"test{next(_numbers)}"

    def open(
        self, *, prefix: str = "flower", url: str = "", user: tuple[str, str] | None = None
    ) -> AbstractAsyncContextManager[RedisStore]:
        """Open the store as the administrator, or as `user` (name, password); `url` goes through a proxy."""
        name, password = user or (self.address.username, self.address.password)
        return open_redis(url or self.address.url, username=name, password=password, prefix=prefix)


def _wait_readable(descriptor: int) -> None:
    try:
        assert select.select([descriptor], [], [], 10)[0], "the process did not end"
    finally:
        os.close(descriptor)


@pytest.fixture(scope="session")
def shared_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealRedis]:
    """One server for all tests that leave it alive. Import it into a conftest to use it."""
    server = RealRedis(tmp_path_factory.mktemp("redis"))
    yield server
    server.stop()


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[RealRedis]:
    """A server that the test may kill."""
    server = RealRedis(tmp_path)
    yield server
    server.stop()
