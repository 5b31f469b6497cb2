"""Redis is late, falls silent, restarts, forgets: nothing is lost, nothing is taken for something else."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
from redis.asyncio import Redis

from bridge.adapters import redis_door
from bridge.adapters.keys import Keys
from bridge.adapters.redis_store import RedisStore
from bridge.commands import Say
from bridge.errors import StoreAwayError
from tests.contracts.values import ANNA, RUN, SLACK, news, posted, record, words
from tests.fakes.redis import RealRedis
from tests.fakes.slow_redis import SlowRedis, slow_redis

pytestmark = pytest.mark.real

ACCEPT_SECONDS = 2.2
"""The deadline of rulings R15."""


def say(number: int) -> Say:
    return Say(id=f"s{number}", by=ANNA, at=float(number), text=f"remark {number}")


@pytest.fixture
def prefix(shared_redis: RealRedis) -> str:
    return shared_redis.fresh_prefix()


@pytest.fixture
async def admin(shared_redis: RealRedis) -> AsyncIterator[Any]:
    """A bare client beside the adapter."""
    address = shared_redis.address
    async with Redis(
        unix_socket_path=str(shared_redis.socket), username=address.username, password=address.password, protocol=2
    ) as client:
        yield client


@pytest.fixture
async def proxy(shared_redis: RealRedis) -> AsyncIterator[SlowRedis]:
    async with slow_redis(shared_redis.socket) as proxy:
        yield proxy


@pytest.fixture
async def far(shared_redis: RealRedis, proxy: SlowRedis, prefix: str) -> AsyncIterator[RedisStore]:
    """The store behind the proxy."""
    async with shared_redis.open(url=proxy.url, prefix=prefix) as store:
        yield store


@pytest.fixture
async def near(shared_redis: RealRedis, prefix: str) -> AsyncIterator[RedisStore]:
    """Another process, with nothing in between."""
    async with shared_redis.open(prefix=prefix) as store:
        yield store


# -- late -------------------------------------------------------------------------------------------------------


@pytest.mark.case("DL-4")
async def test_two_seconds_late_is_accepted_in_time(far: RedisStore, near: RedisStore, proxy: SlowRedis) -> None:
    proxy.late_requests = proxy.late_answers = 1.0
    async with asyncio.timeout(ACCEPT_SECONDS):
        assert await far.inbox.accept(words(1)) is True
    assert [inbound for _, inbound in await near.inbox.take(SLACK, wait=0)] == [words(1)]


async def test_four_seconds_late_is_withdrawn_and_never_acted_on(
    far: RedisStore, near: RedisStore, proxy: SlowRedis
) -> None:
    proxy.late_requests, proxy.late_answers = 0.5, 3.5  # the server has it long before the deadline
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(ACCEPT_SECONDS):
            await far.inbox.accept(words(1))
    proxy.late_requests = proxy.late_answers = 0.0
    assert await far.inbox.take(SLACK, wait=0) == [], "its own process must not act on it now"
    await far.inbox.withdraw(words(1))
    assert await far.inbox.take(SLACK, wait=0) == []
    assert await near.inbox.take(SLACK, wait=0) == []


async def test_an_accept_that_overtakes_nothing_is_void_when_it_arrives_after_its_withdrawal(
    far: RedisStore, near: RedisStore, proxy: SlowRedis
) -> None:
    proxy.late_requests = 1.0
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await far.inbox.accept(words(1))
    await near.inbox.withdraw(words(1))
    proxy.late_requests = 0.0
    await asyncio.sleep(1.2)  # the proxy may still deliver it: nobody tells when
    assert await near.inbox.take(SLACK, wait=0) == []


async def test_a_doubtful_inbound_does_not_hold_up_the_others(
    far: RedisStore, near: RedisStore, proxy: SlowRedis
) -> None:
    proxy.late_answers = 1.0
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await far.inbox.accept(words(1))
    proxy.late_answers = 0.0
    await near.inbox.accept(words(2))
    assert [inbound for _, inbound in await far.inbox.take(SLACK, wait=5)] == [words(2)]
    assert await far.inbox.accept(words(1)) is False  # delivered again by the platform: now it is certain
    assert [inbound for _, inbound in await far.inbox.take(SLACK, wait=5)] == [words(1)]


# -- cut --------------------------------------------------------------------------------------------------------


@pytest.mark.case("RD-1")
async def test_a_cancelled_call_does_not_shift_the_answers_of_the_next(far: RedisStore, proxy: SlowRedis) -> None:
    await far.events.append(RUN, [news(1), news(2), news(3)], fence=0)
    proxy.late_answers = 0.2
    for _ in range(6):
        cut = asyncio.create_task(far.events.last(RUN))
        await proxy.next_request()
        cut.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cut
    proxy.late_answers = 0.0
    await far.threads.note(RUN, posted("card"))
    for _ in range(20):
        assert await far.threads.slots(RUN) == {"card": posted("card")}
        assert await far.events.last(RUN) == 3
        assert await far.runs.standing(RUN) is None


async def test_a_lost_answer_is_asked_for_again_and_nothing_is_doubled(
    far: RedisStore, near: RedisStore, proxy: SlowRedis
) -> None:
    await far.runs.create(record())
    proxy.late_answers = 30.0
    async with asyncio.TaskGroup() as group:
        calls = [
            group.create_task(far.events.append(RUN, [news(1)], fence=0)),
            group.create_task(far.commands.send(RUN, say(1))),
        ]
        await asyncio.sleep(0.2)  # the server has done its part
        proxy.late_answers = 0.0
        proxy.cut()
    assert calls[0].result() == 1
    assert await near.events.read(RUN) == [news(1)]
    assert [ordered.command for ordered in await near.commands.read(RUN)] == [say(1)]


async def test_every_idle_connection_was_closed_by_the_server_and_the_next_commands_work(
    near: RedisStore, admin: Any
) -> None:
    for _ in range(3):
        await near.commands.read(RUN, wait=0.01)
        await admin.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        assert await near.events.last(RUN) == 0
        assert await near.commands.read(RUN, wait=0.01) == []
        assert await near.inbox.take(SLACK, wait=0.01) == []


async def test_what_the_taker_was_given_and_never_got_comes_again(
    far: RedisStore, near: RedisStore, proxy: SlowRedis
) -> None:
    assert await far.inbox.take(SLACK, wait=0) == []
    proxy.late_answers = 30.0
    taking = asyncio.create_task(far.inbox.take(SLACK, wait=20))
    await proxy.next_request()
    await near.inbox.accept(words(1))
    await asyncio.sleep(0.2)  # the server has handed it out; its answer is on the way for half a minute
    proxy.late_answers = 0.0
    proxy.cut()
    assert [inbound for _, inbound in await taking] == [words(1)]
    assert await far.inbox.take(SLACK, wait=0) == []


# -- silent -----------------------------------------------------------------------------------------------------


@pytest.mark.case("RD-2")
async def test_a_quiet_line_is_no_outage(
    near: RedisStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(redis_door, "BLOCK_SECONDS", 0.2)
    caplog.set_level(logging.INFO)
    assert await near.commands.read(RUN, wait=1.0) == []  # five reads, one after the other
    assert await near.events.rung(wait=0.5) == set()
    assert not [line for line in caplog.records if line.name.startswith("bridge")]


@pytest.mark.case("RD-8")
async def test_more_reads_wait_than_a_pool_allows_by_default(
    near: RedisStore, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with asyncio.TaskGroup() as group:
        readers = [group.create_task(near.commands.read(RUN, wait=10)) for _ in range(150)]
        await asyncio.sleep(0.3)  # so that all of them wait indeed
        await near.commands.send(RUN, say(1))
    assert [len(reader.result()) for reader in readers] == [1] * 150
    assert not [line for line in caplog.records if line.name.startswith("bridge")]


def test_a_blocking_read_ends_before_its_connection_counts_as_dead() -> None:
    assert redis_door.BLOCK_SECONDS + 5 <= redis_door.SILENCE_SECONDS


@pytest.mark.case("RD-3")
async def test_a_half_open_connection_is_noticed_and_nothing_is_missed(
    shared_redis: RealRedis, near: RedisStore, proxy: SlowRedis, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_door, "BLOCK_SECONDS", 0.3)
    monkeypatch.setattr(redis_door, "SILENCE_SECONDS", 0.6)
    async with shared_redis.open(url=proxy.url, prefix=prefix) as far:
        await near.commands.send(RUN, say(1))
        [first] = await far.commands.read(RUN, wait=5)
        reading = asyncio.create_task(far.commands.read(RUN, after=first.position, wait=20))
        await proxy.next_request()
        proxy.silent = True
        await near.commands.send(RUN, say(2))
        await near.commands.send(RUN, say(3))
        await asyncio.sleep(0.7)  # longer than the silence that is borne
        proxy.silent = False
        async with asyncio.timeout(3):
            found = await reading
    assert [ordered.command for ordered in found] == [say(2), say(3)]


@pytest.mark.case("RD-10")
async def test_a_store_that_is_away_is_said_within_seconds(
    far: RedisStore, proxy: SlowRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_door, "PATIENCE_SECONDS", 0.5)
    proxy.refusing = True
    proxy.cut()
    async with asyncio.timeout(9):
        with pytest.raises(StoreAwayError):
            await far.inbox.accept(words(1))
        with pytest.raises(StoreAwayError):
            await far.commands.read(RUN, wait=0.1)
    proxy.refusing = False
    assert await far.inbox.accept(words(1)) is True


# -- forgetful --------------------------------------------------------------------------------------------------


async def test_scripts_are_handed_in_again_when_the_server_forgot_them(near: RedisStore, admin: Any) -> None:
    await near.runs.create(record())
    await admin.execute_command("SCRIPT FLUSH")
    assert await near.runs.acquire(RUN, owner="a", ttl=30) == 1
    assert await near.events.append(RUN, [news(1, fence=1)], fence=1) == 1


async def test_a_group_that_is_gone_is_made_again_from_what_is_not_done(
    near: RedisStore, admin: Any, prefix: str
) -> None:
    await near.inbox.accept(words(1))
    await near.inbox.accept(words(2))
    [(one, _), (two, _)] = await near.inbox.take(SLACK, wait=0)
    await near.inbox.done(SLACK, one)
    await admin.execute_command("XGROUP DESTROY", Keys(prefix).inbox(SLACK), "bridge")
    await near.inbox.accept(words(3))
    assert [inbound for _, inbound in await near.inbox.take(SLACK, wait=5)] == [words(3)]
    await near.inbox.done(SLACK, two)


async def test_a_store_that_lost_everything_starts_anew(near: RedisStore, admin: Any, prefix: str) -> None:
    await near.inbox.accept(words(1))
    await near.inbox.take(SLACK, wait=0)
    for key in await admin.keys(f"{prefix}:*"):
        await admin.delete(key)
    assert await near.inbox.accept(words(2)) is True
    assert [inbound for _, inbound in await near.inbox.take(SLACK, wait=5)] == [words(2)]


@pytest.mark.case("RD-7")
async def test_a_pending_entry_without_its_data_is_cleared(
    near: RedisStore, shared_redis: RealRedis, admin: Any, prefix: str
) -> None:
    stream = Keys(prefix).inbox(SLACK)
    await near.inbox.accept(words(1))
    await near.inbox.accept(words(2))
    [(receipt, _), _] = await near.inbox.take(SLACK, wait=0)
    await admin.xdel(stream, receipt)
    async with shared_redis.open(prefix=prefix) as later:
        assert [inbound for _, inbound in await later.inbox.take(SLACK, wait=0)] == [words(2)]
    assert (await admin.xpending(stream, "bridge"))["pending"] == 1


# -- unreadable -------------------------------------------------------------------------------------------------


async def test_an_unreadable_inbound_goes_aside_with_its_reason_and_blocks_nobody(
    near: RedisStore, admin: Any, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    keys = Keys(prefix)
    await admin.xadd(keys.inbox(SLACK), {"id": "x", "m": b"\xffsecret words"})
    await near.inbox.accept(words(1))
    [(receipt, inbound)] = await near.inbox.take(SLACK, wait=0)
    assert inbound == words(1)
    await near.inbox.done(SLACK, receipt)
    [(_, dead)] = await admin.xrange(keys.inbox_dead(SLACK))
    assert dead[b"m"] == b"\xffsecret words"
    assert dead[b"why"]
    assert await admin.xlen(keys.inbox(SLACK)) == 0
    assert [line.message for line in caplog.records if line.name.startswith("bridge")] == ["inbound.unreadable"]
    assert "secret words" not in caplog.text


async def test_unreadable_commands_are_passed_over_and_reported_once(
    near: RedisStore, admin: Any, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    stream = Keys(prefix).commands(RUN)
    await admin.xadd(stream, {"m": b'{"v": 99}'})
    await admin.xadd(stream, {"other": b"x"})
    assert await near.commands.read(RUN, wait=0.05) == []
    await near.commands.send(RUN, say(1))
    for _ in range(3):
        assert [ordered.command for ordered in await near.commands.read(RUN, wait=5)] == [say(1)]
    assert [line.message for line in caplog.records if line.name.startswith("bridge")] == ["command.unreadable"] * 2


async def test_unreadable_news_are_passed_over_and_reported_once(
    near: RedisStore, admin: Any, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    await near.events.append(RUN, [news(1)], fence=0)
    for seq in (2, 3):
        await admin.xadd(Keys(prefix).events(RUN), {"m": b"garbage"}, id=f"{seq}-0")
    await near.events.append(RUN, [news(4)], fence=0)
    for _ in range(2):
        assert await near.events.read(RUN) == [news(1), news(4)]
        assert await near.events.read(RUN, after=1, count=1) == [news(4)]
    assert [line.message for line in caplog.records if line.name.startswith("bridge")] == ["event.unreadable"] * 2


# -- restarts ---------------------------------------------------------------------------------------------------


@pytest.mark.case("RD-3")
async def test_reads_that_wait_go_on_across_a_restart_of_the_server(own_redis: RealRedis) -> None:
    async with own_redis.open() as store:
        await store.runs.create(record())
        assert await store.inbox.take(SLACK, wait=0) == []
        assert await store.events.rung(wait=0) == set()
        async with asyncio.TaskGroup() as group:
            commands = group.create_task(store.commands.read(RUN, wait=20))
            rung = group.create_task(store.events.rung(wait=20))
            taken = group.create_task(store.inbox.take(SLACK, wait=20))
            await asyncio.sleep(0.1)  # so that they wait indeed
            await asyncio.to_thread(own_redis.kill)
            await asyncio.to_thread(own_redis.start)
            await store.commands.send(RUN, say(1))
            await store.events.append(RUN, [news(1)], fence=0)
            await store.inbox.accept(words(1))
        assert [ordered.command for ordered in commands.result()] == [say(1)]
        assert rung.result() == {RUN}
        assert [inbound for _, inbound in taken.result()] == [words(1)]


async def test_kill_9_loses_nothing_that_was_acknowledged_and_users_stay(own_redis: RealRedis) -> None:
    async with own_redis.open() as store:
        await store.runs.create(record())
        user = await store.credentials.grant(RUN)
        async with own_redis.open(user=user) as runner:
            fence = await runner.runs.acquire(RUN, owner="a", ttl=60)
            acknowledged = 0
            for round_ in range(3):
                writing = asyncio.create_task(write(runner, fence, acknowledged, stop_after=150))
                await asyncio.sleep(0.05 * round_)  # somewhere in between
                await asyncio.to_thread(own_redis.kill)
                await asyncio.to_thread(own_redis.start)
                acknowledged = await writing
            assert await runner.events.last(RUN) == acknowledged == 450
        assert [item.seq for item in await store.events.read(RUN, count=1000)] == list(range(1, 451))
        async with own_redis.open(user=user) as again:
            assert await again.events.last(RUN) == 450


async def write(runner: RedisStore, fence: int, after: int, *, stop_after: int) -> int:
    """Append one by one, as if each answer mattered; returns the last number that was acknowledged."""
    for seq in range(after + 1, after + stop_after + 1):
        assert await runner.events.append(RUN, [news(seq, fence=fence)], fence=fence) == seq
    return after + stop_after


async def test_a_server_that_forgets_its_users_gets_them_again_from_the_next_bot(own_redis: RealRedis) -> None:
    async with own_redis.open() as store:
        await store.runs.create(record())
        user = await store.credentials.grant(RUN)
    # A server without a file for its users: as a hosted one after its restart.
    users = own_redis.home / "redis" / "users.acl"
    kept = [line for line in users.read_text().splitlines() if not line.startswith("user run-")]
    users.write_text("\n".join([*kept, ""]))
    own_redis.kill()
    own_redis.start()
    async with own_redis.open() as bot:
        await bot.credentials.restore(await bot.runs.live())  # type: ignore[attr-defined]  # beyond the port
    async with own_redis.open(user=user) as runner:
        assert await runner.runs.acquire(RUN, owner="a", ttl=30) == 1
