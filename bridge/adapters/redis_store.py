"""All state ports over one Redis, opened together."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from bridge.adapters.keys import Keys
from bridge.adapters.redis_credentials import RedisCredentials
from bridge.adapters.redis_door import Door
from bridge.adapters.redis_inbox import RedisInbox
from bridge.adapters.redis_lines import RedisCommandLine, RedisEventLine
from bridge.adapters.redis_runs import RedisRuns
from bridge.adapters.redis_threads import RedisThreads
from bridge.errors import StoreRefusedError
from bridge.ports import CommandLine, Credentials, EventLine, Inbox, Runs, Threads

OLDEST = (7, 0)
"""Rights on single keys, and what a stream knows of its readers, came with it."""

CONNECTIONS = 4
"""Opened in advance by a bot; a runner needs one at a time, and there may be thousands."""


@dataclass(frozen=True, slots=True)
class RedisStore:
    """`Store` over Redis."""

    events: EventLine
    commands: CommandLine
    runs: Runs
    inbox: Inbox
    threads: Threads
    credentials: Credentials


@asynccontextmanager
async def open_redis(
    url: str, *, username: str | None = None, password: str | None = None, prefix: str = "flower"
) -> AsyncIterator[RedisStore]:
    """Open the state store. `url` is `redis://`, `rediss://` or `unix://`; all keys begin with `prefix`.

    Works with an administrator's user, and with a runner's own (for whom all that belongs to bots is refused).

    Raises:
        SettingsError: the URL is not understood.
        StoreAwayError: nobody answers there.
        StoreRefusedError: wrong user or password, a server before 7.0, or not Redis at all.
    """
    door = Door(url, username=username, password=password)
    try:
        await door.try_once("PING")
        runner = door.user.startswith("run-")
        if not runner:
            await _check_version(door)
        await door.warm(0 if runner else CONNECTIONS)
        keys = Keys(prefix)
        runs, credentials = RedisRuns(door, keys), RedisCredentials(door, keys)
        if not runner and not await credentials.keeps_users():
            await credentials.restore(await runs.live())
        yield RedisStore(
            events=RedisEventLine(door, keys),
            commands=RedisCommandLine(door, keys),
            runs=runs,
            inbox=RedisInbox(door, keys),
            threads=RedisThreads(door, keys),
            credentials=credentials,
        )
    finally:
        await door.close()


async def _check_version(door: Door) -> None:
    about = await door.do("INFO", "server")
    said = str(about.get("redis_version", ""))
    found = re.match(r"(\d+)\.(\d+)", said)
    if found is None or tuple(map(int, found.groups())) < OLDEST:
        raise StoreRefusedError(
            f"the server at {door.where} is version {said or 'unknown'}, and 7.0 or newer is needed. "
            "Upgrade it, or leave the address out: then a server comes along."
        )
