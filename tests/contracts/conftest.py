"""Every suite runs on memory and on a real Redis."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from functools import partial

import pytest

from bridge.adapters.memory import MemoryStore
from bridge.ports import Store
from tests.contracts.values import OpenStore
from tests.fakes.redis import RealRedis, shared_redis

__all__ = ["shared_redis"]


@pytest.fixture(params=["memory", pytest.param("redis", marks=pytest.mark.real)])
def open_store(request: pytest.FixtureRequest) -> Iterator[OpenStore]:
    """What a process calls when it starts; each call is another process with the same state."""
    if request.param == "memory":
        yield MemoryStore().open
        return
    server: RealRedis = request.getfixturevalue("shared_redis")
    yield partial(server.open, prefix=server.fresh_prefix())


@pytest.fixture
async def store(open_store: OpenStore) -> AsyncIterator[Store]:
    async with open_store() as store:
        yield store
