"""The one way to Redis: clients, retries, and foreign errors made ours (house style 18).

Nothing that leaves this module is a redis-py exception, and no message carries a password.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from redis import exceptions as foreign
from redis.asyncio import BlockingConnectionPool, ConnectionPool, Redis
from redis.asyncio.connection import parse_url
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialWithJitterBackoff, NoBackoff

from bridge.adapters.redis_scripts import EVERY, Script
from bridge.errors import SettingsError, StateError, StoreAwayError, StoreRefusedError

log = logging.getLogger(__name__)

T = TypeVar("T")
Entry = tuple[str, Mapping[bytes, bytes] | None]
"""Id and fields of a stream entry; None: it was deleted while somebody had it pending (RD-7)."""

SOCKET_SECONDS = 5.0
"""How long an answer to an ordinary command may take."""
OPERATION_SECONDS = 8.0
"""How long an ordinary operation may take, repetitions on new connections included."""
CONNECT_SECONDS = 2.0
BLOCK_SECONDS = 5.0
"""How long one blocking read waits in the server; longer waits are several reads."""
SILENCE_SECONDS = BLOCK_SECONDS + 5.0
"""A blocked connection that says nothing for so long is dead, half-open for instance (RD-2, RD-3)."""
WAITING = 10_000
"""Reads that may wait at the same time. A server takes as many clients unless told otherwise."""
PATIENCE_SECONDS = 10.0
"""How long a blocking read bears a store that is away before it says so."""

_LATER = (
    "MISCONF",
    "OOM",
    "READONLY",
    "LOADING",
    "MASTERDOWN",
    "CLUSTERDOWN",
    "TRYAGAIN",
    "BUSY",
    "NOREPLICAS",
    "NOGROUP",
)
"""Error codes after which the same work succeeds later: a full disk, a replica that is being promoted, a lost group."""


class Door:
    """Two clients of one server: one for commands, one for reads that wait, each with connections of its own (RD-8).

    An ordinary command is repeated on a new connection when its answer does not come; hence every write of ours is
    harmless when it happens twice. A reading task that is cancelled costs its connection and nothing else (RD-1).
    """

    def __init__(self, url: str, *, username: str | None = None, password: str | None = None) -> None:
        options = _options(url, username, password)
        self.user: str = options.get("username") or "default"
        self.where = _place(url)
        self._pool = BlockingConnectionPool(
            **options,
            max_connections=32,
            timeout=SOCKET_SECONDS,
            socket_timeout=SOCKET_SECONDS,
            retry=Retry(ExponentialWithJitterBackoff(cap=1, base=0.05), 8),
        )
        self._waiting = ConnectionPool(
            **options, max_connections=WAITING, socket_timeout=SILENCE_SECONDS, retry=Retry(NoBackoff(), 0)
        )
        self._single = ConnectionPool(**options, socket_timeout=SOCKET_SECONDS, retry=Retry(NoBackoff(), 0))
        self._redis: Any = Redis(connection_pool=self._pool)
        self._reader: Any = Redis(connection_pool=self._waiting)

    async def close(self) -> None:
        """Close all connections; never raises."""
        for pool in (self._pool, self._waiting, self._single):
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    await pool.disconnect()
            except (foreign.RedisError, OSError, TimeoutError):
                log.warning("redis.close_failed", extra={"store": self.where})

    async def try_once(self, *command: Any) -> Any:
        """Run a command without any repetition, so that a wrong address is said at once."""
        once: Any = Redis(connection_pool=self._single)
        return await self._said(once.execute_command(*command), OPERATION_SECONDS)

    async def warm(self, connections: int) -> None:
        """Open connections and hand in the scripts before they are needed.

        With a store that is slow by two seconds, an accept has the time for one round trip, not for a login (R15).
        """
        await self.all_of([("SCRIPT LOAD", script.text) for script in EVERY], atomic=False)
        async with asyncio.TaskGroup() as group:
            for _ in range(connections):
                group.create_task(self._touch())

    async def do(self, *command: Any) -> Any:
        """Run one command."""
        return await self._said(self._redis.execute_command(*command), OPERATION_SECONDS)

    async def all_of(self, commands: Sequence[Sequence[Any]], *, atomic: bool = True) -> list[Any]:
        """Run commands in one round trip; `atomic`: as a transaction. The first refusal is raised."""
        answers = await self._pipe(commands, atomic=atomic)
        for answer in answers:
            if isinstance(answer, Exception):
                raise self._ours(answer)
        return answers

    async def run(self, script: Script, keys: Sequence[str], *args: Any, also: Sequence[Any] = ()) -> Any:
        """Run a script, and the command `also` behind it in the same round trip."""
        command = ("EVALSHA", script.sha, len(keys), *keys, *args)
        commands = [command, also] if also else [command]
        answers = await self._pipe(commands, atomic=False)
        if isinstance(answers[0], foreign.NoScriptError):  # the server was started anew, and has forgotten
            await self.do("SCRIPT LOAD", script.text)
            answers = await self._pipe(commands, atomic=False)
        for answer in answers:
            if isinstance(answer, Exception):
                raise self._ours(answer)
        return answers[0]

    async def read_streams(
        self, after: Mapping[str, str], *, count: int, wait: float, group: tuple[str, str] | None = None
    ) -> dict[str, list[Entry]]:
        """Read behind the given ids, per stream; waits at most `wait` seconds for the first entry.

        With a `group` (and consumer) it is not repeated when an answer is lost: the caller must look at what is
        pending before it asks for new entries again.
        """
        head = ("XREADGROUP", "GROUP", *group) if group else ("XREAD",)
        tail = ("STREAMS", *after.keys(), *after.values())
        clock = asyncio.get_running_loop().time
        until = clock() + wait
        while True:
            left = until - clock()
            if left <= 0:
                answer = await self._said(self._reader.execute_command(*head, "COUNT", count, *tail), OPERATION_SECONDS)
                return _entries(answer)
            block = max(1, int(min(left, BLOCK_SECONDS) * 1000))
            answer = await self._said(
                self._reader.execute_command(*head, "COUNT", count, "BLOCK", block, *tail), SILENCE_SECONDS + 1
            )
            if answer or left <= BLOCK_SECONDS:
                return _entries(answer)

    async def patiently(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Repeat a reading attempt while the store is away, at most `PATIENCE_SECONDS`; a restart passes unnoticed."""
        clock = asyncio.get_running_loop().time
        until, pause = clock() + PATIENCE_SECONDS, 0.05
        while True:
            try:
                return await attempt()
            except StoreAwayError as away:
                if clock() >= until:
                    raise
                log.info("redis.read_again", extra={"store": self.where, "why": str(away)})
            await asyncio.sleep(pause)
            pause = min(1.0, pause * 2)

    async def _touch(self) -> None:
        with suppress(StoreAwayError):  # who needs the connection will say so
            await self.do("PING")

    async def _pipe(self, commands: Sequence[Sequence[Any]], *, atomic: bool) -> list[Any]:
        async def execute() -> list[Any]:
            async with self._redis.pipeline(transaction=atomic) as pipe:
                for command in commands:
                    pipe.execute_command(*command)
                answers: list[Any] = await pipe.execute(raise_on_error=False)
                return answers

        return await self._said(execute(), OPERATION_SECONDS)

    async def _said(self, work: Awaitable[T], within: float) -> T:
        task = asyncio.current_task()
        before = task.cancelling() if task is not None else 0
        try:
            async with asyncio.timeout(within):
                answer = await work
        except (foreign.RedisError, OSError, TimeoutError) as err:
            _obey(task, before)
            raise self._ours(err) from err
        _obey(task, before)
        return answer

    def _ours(self, err: BaseException) -> StateError:
        """Say in our words what went wrong, where, and what helps."""
        first = _first(err)
        said = str(first) or type(first).__name__
        match first:
            case foreign.AuthenticationError() | foreign.AuthorizationError():
                return StoreRefusedError(
                    f"{self.where} refuses the user {self.user!r}. Check the user name and the password."
                )
            case foreign.NoPermissionError():
                return StoreRefusedError(f"{self.where} does not allow this to the user {self.user!r}: {said}")
            case foreign.InvalidResponse():
                return StoreRefusedError(
                    f"what answers at {self.where} is not Redis ({said[:80]}). Check host, port and scheme of the URL."
                )
            case foreign.ResponseError() if not said.startswith(_LATER) and not isinstance(
                first, foreign.OutOfMemoryError | foreign.ReadOnlyError | foreign.ClusterDownError
            ):
                return StoreRefusedError(f"{self.where} says no: {said}")
            case foreign.RedisError() | OSError() | TimeoutError() if said != type(first).__name__:
                return StoreAwayError(f"the state store {self.where} cannot be used now: {said}")
            case _:
                return StoreAwayError(f"the state store {self.where} did not answer in time")


def _obey(task: asyncio.Task[Any] | None, before: int) -> None:
    """Pass on a cancellation that came during a call and was swallowed below us (seen: 6 of 40 at random moments).

    Without this a loop that is told to end makes another lap, and then waits for ever.
    """
    if task is not None and task.cancelling() > before:
        raise asyncio.CancelledError


def _first(err: BaseException) -> BaseException:
    """Return the error behind one that was made of it: redis-py wraps a refused login into a lost connection."""
    while isinstance(err.__cause__, foreign.RedisError):
        err = err.__cause__
    return err


def _options(url: str, username: str | None, password: str | None) -> dict[str, Any]:
    options: dict[str, Any] = {}
    with suppress(ValueError):  # its text may quote a part of a password
        options = dict(parse_url(url)) if "://" in url else {}
    if not options:
        raise SettingsError(
            f"the address of the state store, {_place(url)}, is not understood. "
            "It looks like redis://host:6379/0, rediss://host:6380/0 or unix:///path/of/socket?db=0."
        )
    if username is not None:
        options["username"] = username
    if password is not None:
        options["password"] = password
    # RESP2: with RESP3 redis-py 8.1 fails the first command on a connection that the server closed (infra facts 3).
    return options | {"protocol": 2, "socket_connect_timeout": CONNECT_SECONDS, "driver_info": None}


def _place(url: str) -> str:
    """Return the address without the parts that can hold a password, also when it is malformed."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2].partition('?')[0]}" if rest else "(no scheme)"


def _entries(answer: Any) -> dict[str, list[Entry]]:
    return {stream.decode(): [(entry.decode(), fields) for entry, fields in items] for stream, items in answer or ()}
