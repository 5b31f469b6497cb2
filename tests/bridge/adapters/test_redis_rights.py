"""What the user of a runner may do, and what it is refused: plainly, and from inside a script (rulings R8)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, NoPermissionError, ResponseError

from bridge.adapters.keys import Keys
from bridge.adapters.redis_store import RedisStore
from bridge.commands import Say
from bridge.errors import StoreRefusedError
from bridge.model import RunId
from tests.contracts.values import ANNA, OTHER, RUN, SLACK, THREAD, news, posted, record, settled, words
from tests.fakes.redis import RealRedis

pytestmark = pytest.mark.real

PREFIX = "rights"
KEYS = Keys(PREFIX)
SAY = Say(id="c1", by=ANNA, at=1.0, text="hello")

# Command, and which of its words are keys (for the script that declares them).
REFUSED: list[tuple[Any, ...]] = [
    # forging or hiding commands
    ("XADD", KEYS.commands(RUN), "*", "m", "{}"),
    ("XDEL", KEYS.commands(RUN), "0-1"),
    ("XTRIM", KEYS.commands(RUN), "MAXLEN", "0"),
    ("DEL", KEYS.commands(RUN)),
    ("EXPIRE", KEYS.commands(RUN), "0"),
    ("XGROUP", "CREATE", KEYS.commands(RUN), "g", "0"),
    ("RENAME", KEYS.events(RUN), KEYS.commands(RUN)),
    ("COPY", KEYS.events(RUN), KEYS.commands(RUN), "REPLACE"),
    ("ZADD", KEYS.command_ids(RUN), "1", "c9"),
    # who may steer
    ("HSET", KEYS.record(RUN), "record", "{}"),
    ("HDEL", KEYS.record(RUN), "record"),
    ("DEL", KEYS.record(RUN)),
    ("SET", KEYS.record(RUN), "x"),
    # what belongs to bots
    ("HGETALL", KEYS.asks(RUN)),
    ("HSET", KEYS.asks(RUN), "q1", "{}"),
    ("HSET", KEYS.slots(RUN), "card", "{}"),
    ("HGETALL", KEYS.view(RUN)),
    ("GET", KEYS.user(RUN)),
    ("SET", KEYS.user(RUN), "x"),
    ("XADD", KEYS.inbox(SLACK), "*", "id", "x", "m", "{}"),
    ("XRANGE", KEYS.inbox(SLACK), "-", "+"),
    ("SET", KEYS.thread(THREAD), "x"),
    ("GET", KEYS.thread(THREAD)),
    ("SET", KEYS.lead("slack-T1"), "x"),
    ("DEL", KEYS.lead("slack-T1")),
    ("ZADD", KEYS.runs, "1", "x"),
    ("ZREM", KEYS.live, RUN),
    # bells: it may ring its own, and nothing else
    ("XRANGE", KEYS.bell(RUN), "-", "+"),
    ("XREAD", "STREAMS", KEYS.bell(RUN), "0"),
    ("XTRIM", KEYS.bell(RUN), "MAXLEN", "0"),
    ("DEL", KEYS.bell(RUN)),
    ("SET", KEYS.bell(RUN), "x"),
    ("XADD", KEYS.bell(OTHER), "*", "r", OTHER),
    # another run
    ("XADD", KEYS.events(OTHER), "*", "m", "{}"),
    ("XRANGE", KEYS.events(OTHER), "-", "+"),
    ("HGETALL", KEYS.state(OTHER)),
    ("HSET", KEYS.state(OTHER), "status", "done"),
    ("SET", KEYS.lease(OTHER), "me"),
    ("GET", KEYS.lease(OTHER)),
    ("XADD", KEYS.commands(OTHER), "*", "m", "{}"),
    ("XREAD", "STREAMS", KEYS.commands(OTHER), "0"),
    ("HMGET", KEYS.record(OTHER), "record"),
    # keys of nobody, and another prefix
    ("SET", "anything", "x"),
    ("GET", f"flower:run:{{{RUN}}}:lease"),
    # the server
    ("KEYS", "*"),
    ("SCAN", "0"),
    ("RANDOMKEY",),
    ("DBSIZE",),
    ("FLUSHALL",),
    ("FLUSHDB",),
    ("CONFIG", "GET", "*"),
    ("CONFIG", "SET", "dir", "/"),
    ("DEBUG", "SLEEP", "0"),
    ("ACL", "LIST"),
    ("ACL", "WHOAMI"),
    ("ACL", "SETUSER", "run-k3f9qa", "allkeys"),
    ("CLIENT", "LIST"),
    ("CLIENT", "KILL", "TYPE", "normal"),
    ("INFO",),
    ("MONITOR",),
    ("SHUTDOWN", "NOSAVE"),
    ("SAVE",),
    ("BGREWRITEAOF",),
    ("REPLICAOF", "127.0.0.1", "1"),
    ("MODULE", "LIST"),
    ("FUNCTION", "FLUSH"),
    ("SCRIPT", "FLUSH"),
    ("EVAL", "return 1", "0"),
    ("PUBLISH", "c", "x"),
    ("SELECT", "1"),
    ("SWAPDB", "0", "1"),
    ("MOVE", KEYS.events(RUN), "1"),
    ("DUMP", KEYS.events(RUN)),
    ("SLOWLOG", "GET"),
    ("LATENCY", "RESET"),
]
RUNS_ANYTHING = "return redis.call(unpack(ARGV))"


@pytest.fixture
async def store(shared_redis: RealRedis) -> AsyncIterator[RedisStore]:
    """The administrator's view, with two runs that have everything."""
    async with shared_redis.open(prefix=PREFIX) as store:
        for run in (RUN, OTHER):
            await store.runs.create(record(run, thread=THREAD))
            await store.commands.send(run, SAY)
            await store.threads.note(run, posted("card"))
            await store.threads.settle(run, settled("q1"))
        await store.inbox.accept(words(1))
        yield store
        for run in (RUN, OTHER):
            await store.credentials.revoke(run)


@pytest.fixture
async def runner(shared_redis: RealRedis, store: RedisStore) -> AsyncIterator[Any]:
    """A bare client with the rights of RUN's runner."""
    name, password = await store.credentials.grant(RUN)
    client: Any = Redis(
        unix_socket_path=str(shared_redis.socket),
        username=name,
        password=password,
        protocol=2,
        driver_info=None,
        retry=Retry(NoBackoff(), 0),
    )
    yield client
    await client.aclose()


def name_of(command: tuple[Any, ...]) -> str:
    return " ".join(map(str, command[:3]))


async def contents(store: RedisStore, shared_redis: RealRedis) -> dict[bytes, bytes | None]:
    """Everything that the server holds, as bytes."""
    address = shared_redis.address
    async with Redis(
        unix_socket_path=str(shared_redis.socket), username=address.username, password=address.password, protocol=2
    ) as client:
        admin: Any = client
        return {key: await admin.dump(key) async for key in admin.scan_iter(f"{PREFIX}:*")}


async def refused_in_a_script(runner: Any, command: tuple[Any, ...], keys: list[Any]) -> None:
    sha = await runner.execute_command("SCRIPT LOAD", RUNS_ANYTHING)
    with pytest.raises(ResponseError) as caught:
        await runner.execute_command("EVALSHA", sha, len(keys), *keys, *command)
    said = str(caught.value).lower()
    assert "permission" in said or "not allowed from script" in said or "unknown" in said, said


@pytest.mark.parametrize("command", REFUSED, ids=name_of)
async def test_a_runner_is_refused_plainly_and_from_inside_a_script(
    store: RedisStore, runner: Any, shared_redis: RealRedis, command: tuple[Any, ...]
) -> None:
    before = await contents(store, shared_redis)
    # DEBUG is switched off for everybody, and says so before rights are looked at.
    with pytest.raises(ResponseError if command[0] == "DEBUG" else NoPermissionError):
        await runner.execute_command(*command)
    await refused_in_a_script(runner, command, keys=[])
    await refused_in_a_script(runner, command, keys=[word for word in command[1:] if f"{PREFIX}:" in str(word)])
    assert await contents(store, shared_redis) == before


@pytest.mark.parametrize("login", [("default", ""), ("admin", "guess"), ("run-zz8w2b", "guess"), ("guess",)])
async def test_a_runner_does_not_become_somebody_else(store: RedisStore, runner: Any, login: tuple[str, ...]) -> None:
    await store.credentials.grant(OTHER)
    with pytest.raises(AuthenticationError):
        await runner.execute_command("AUTH", *login)
    with pytest.raises(NoPermissionError):
        await runner.execute_command("GET", KEYS.lease(OTHER))


async def test_a_runner_does_all_its_work(store: RedisStore, shared_redis: RealRedis) -> None:
    user = await store.credentials.grant(RUN)
    async with shared_redis.open(prefix=PREFIX, user=user) as own:
        await own.runs.acquire(RUN, owner="a", ttl=30, reopen=True)
        standing = await own.runs.standing(RUN)
        assert standing
        fence = standing.fence
        last = await own.events.last(RUN)
        assert await own.events.append(RUN, [news(last + 1, fence=fence)], fence=fence) == last + 1
        assert await own.events.read(RUN, after=last) == [news(last + 1, fence=fence)]
        await own.runs.renew(RUN, owner="a", fence=fence, ttl=30)
        await own.runs.mark(RUN, "held", fence=fence)
        assert [ordered.command for ordered in await own.commands.read(RUN, wait=5)] == [SAY]
        assert await own.commands.read(RUN, after="9" * 15, wait=0.01) == []
        assert await own.runs.record(RUN) == await store.runs.record(RUN)
        await own.runs.finish(RUN, "done", [news(last + 2, fence=fence)], fence=fence)
    found = await store.runs.standing(RUN)
    assert found
    assert found.status == "done"


async def test_a_runner_wakes_the_bot(store: RedisStore, shared_redis: RealRedis) -> None:
    await store.events.rung(wait=0)
    user = await store.credentials.grant(RUN)
    async with shared_redis.open(prefix=PREFIX, user=user) as own:
        fence = await own.runs.acquire(RUN, owner="b", ttl=30, reopen=True)
        await own.events.append(RUN, [news(await own.events.last(RUN) + 1)], fence=fence)
        assert RUN in await store.events.rung(wait=10)
        with pytest.raises(StoreRefusedError):
            await own.commands.send(RUN, SAY)
        await own.runs.finish(RUN, "done", [], fence=fence)


async def test_the_password_of_before_opens_nothing(store: RedisStore, shared_redis: RealRedis) -> None:
    old = await store.credentials.grant(RUN)
    await store.credentials.grant(RUN)
    with pytest.raises(StoreRefusedError):
        async with shared_redis.open(prefix=PREFIX, user=old):
            pass


async def test_a_revoked_user_is_out_at_once(store: RedisStore, shared_redis: RealRedis) -> None:
    user = await store.credentials.grant(RUN)
    async with shared_redis.open(prefix=PREFIX, user=user) as own:
        await own.events.last(RUN)
        await store.credentials.revoke(RUN)
        with pytest.raises(StoreRefusedError):
            await own.events.last(RUN)


@pytest.mark.parametrize("run", ["", "*", "a b", "A", "a:b", "a}", "../x", "run-1", "k3f9qa\n"])
async def test_a_name_that_is_no_run_gets_no_user(store: RedisStore, run: str) -> None:
    with pytest.raises(ValueError, match="not the name of a run"):
        await store.credentials.grant(RunId(run))


@pytest.mark.case("SE-4")
async def test_the_server_never_saw_the_password(store: RedisStore, shared_redis: RealRedis) -> None:
    _, password = await store.credentials.grant(RUN)
    for file in (shared_redis.home / "redis").rglob("*"):
        if file.is_file():
            assert password.encode() not in file.read_bytes(), file
