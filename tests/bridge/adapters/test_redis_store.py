"""Opening the state store: whatever is wrong is said in one line with its cure, and no line carries a password."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from bridge.adapters.redis_store import open_redis
from bridge.errors import BridgeError, SettingsError, StoreAwayError, StoreRefusedError
from tests.fakes.redis import RealRedis

PASSWORD = "hunter2-hunter2"


async def opening(url: str, **login: str) -> BridgeError:
    with pytest.raises(BridgeError) as caught:
        async with asyncio.timeout(15), open_redis(url, **login):
            pass
    told = "".join(traceback.format_exception(caught.value))
    assert PASSWORD not in told
    assert "hunter2" not in str(caught.value)
    return caught.value


@asynccontextmanager
async def answering(answer: Callable[[bytes], bytes]) -> AsyncIterator[str]:
    """A server on loopback that is not Redis, or an odd one."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(4096):
            writer.write(answer(data))
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:6379",
        "http://localhost:6379",
        f"redis://:{PASSWORD}@localhost:port/0",
        f"redis://:{PASSWORD}#x@localhost:6379/0",
        f"redis:/:{PASSWORD}@localhost",
        f"amqp://user:{PASSWORD}@localhost",
        f"redis://user:hunter2/hunter2?{PASSWORD}@[::1",
    ],
)
async def test_an_address_that_is_not_understood(url: str) -> None:
    err = await opening(url)
    assert isinstance(err, SettingsError | StoreAwayError)
    if isinstance(err, SettingsError):
        assert "redis://host:6379/0" in str(err)


async def test_nobody_listens() -> None:
    async with answering(lambda _: b"") as place:
        pass
    err = await opening(f"redis://user:{PASSWORD}@{place}/0")
    assert isinstance(err, StoreAwayError)
    assert place in str(err)


async def test_no_such_socket() -> None:
    assert isinstance(await opening("unix:///nowhere/s", username="u", password=PASSWORD), StoreAwayError)


async def test_something_else_answers() -> None:
    async with answering(lambda _: b"HTTP/1.1 400 Bad Request\r\n\r\n") as place:
        err = await opening(f"redis://{place}/0")
    assert isinstance(err, StoreRefusedError)
    assert "not Redis" in str(err)


async def test_somebody_who_never_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridge.adapters.redis_door.SOCKET_SECONDS", 0.1)
    async with answering(lambda _: b"") as place:
        err = await opening(f"redis://{place}/0")
    assert isinstance(err, StoreAwayError)


@pytest.mark.parametrize("version", ["6.2.14", "5.0.0", "unheard-of"])
async def test_too_old_a_server(version: str) -> None:
    def answer(request: bytes) -> bytes:
        about = f"redis_version:{version}\r\n".encode()
        return b"$%d\r\n%b\r\n" % (len(about), about) if b"INFO" in request else b"+PONG\r\n"

    async with answering(answer) as place:
        err = await opening(f"redis://{place}/0")
    assert isinstance(err, StoreRefusedError)
    assert version in str(err)
    assert "7.0" in str(err)


@pytest.mark.real
@pytest.mark.parametrize("login", [{}, {"username": "admin", "password": PASSWORD}, {"username": "nobody"}])
async def test_a_wrong_login(shared_redis: RealRedis, login: dict[str, str]) -> None:
    err = await opening(shared_redis.address.url, **login)
    assert isinstance(err, StoreRefusedError)


@pytest.mark.real
async def test_a_login_in_the_address_works_and_is_never_shown(
    shared_redis: RealRedis, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    address = shared_redis.address
    url = f"unix://{address.username}:{address.password}@{shared_redis.socket}?db=0"
    async with open_redis(url) as store:
        assert await store.runs.everyone() is not None
        assert address.password not in repr(store)
    assert address.password not in repr(address)
    assert address.password not in caplog.text


@pytest.mark.real
async def test_a_login_beside_the_address_wins(shared_redis: RealRedis) -> None:
    address = shared_redis.address
    url = f"unix://somebody:{PASSWORD}@{shared_redis.socket}"
    async with open_redis(url, username=address.username, password=address.password) as store:
        assert await store.runs.live() is not None
