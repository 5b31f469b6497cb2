"""A user of its own for each runner, with the least rights (rulings R8, infra facts 3).

A runner appends its events, rings the bell, holds its lease and status, and reads its commands and record. It cannot
write a command, read a bell, or touch another run, not even from inside a script.
"""

from __future__ import annotations

import hashlib
import re
import secrets

from bridge.adapters.keys import Keys
from bridge.adapters.redis_door import Door
from bridge.adapters.redis_scripts import LIVEN
from bridge.errors import StoreRefusedError
from bridge.model import RunId

_RUN = re.compile(r"[a-z0-9]+")

OWN = (
    "+ping",
    "+multi",
    "+exec",
    "+discard",
    "+evalsha",
    "+script|load",
    "+time",
    "+exists",
    "+get",
    "+set",
    "+del",
    "+hget",
    "+hset",
    "+hgetall",
    "+hincrby",
    "+xadd",
    "+xrange",
    "+xinfo|stream",
)
"""Commands on the run's own events, state and lease. A key that a script gets needs both read and write."""


def user_of(run: RunId) -> str:
    return f"run-{run}"


class RedisCredentials:
    """`Credentials` as ACL users. Needs an administrator's user itself."""

    def __init__(self, door: Door, keys: Keys) -> None:
        self._door, self._keys = door, keys

    async def grant(self, run: RunId) -> tuple[str, str]:
        if not _RUN.fullmatch(run):
            raise ValueError(f"not the name of a run: {run!r}")
        password = secrets.token_urlsafe(32)
        digest = hashlib.sha256(password.encode()).hexdigest()
        await self._set_user(run, digest)
        await self._save()
        await self._door.do("SET", self._keys.user(run), digest)
        await self._door.run(LIVEN, [self._keys.live], run)  # it is about to be started
        return user_of(run), password

    async def revoke(self, run: RunId) -> None:
        await self._door.do("ACL DELUSER", user_of(run))
        await self._save()
        await self._door.do("DEL", self._keys.user(run))

    async def restore(self, runs: set[RunId]) -> None:
        """Make the users of these runs again, with the passwords that their runners have.

        For a server without an `aclfile`, which forgets its users when it restarts.
        """
        for run in runs:
            digest = await self._door.do("GET", self._keys.user(run))
            if digest and not await self._door.do("ACL GETUSER", user_of(run)):
                await self._set_user(run, digest.decode())

    async def keeps_users(self) -> bool:
        """Whether the server has a file for its users."""
        try:
            answer = await self._door.do("CONFIG GET", "aclfile")
        except StoreRefusedError:  # a hosted server may hide its configuration; then it keeps users in its own way
            return False
        return bool(answer and answer.get("aclfile"))

    async def _set_user(self, run: RunId, digest: str) -> None:
        keys = self._keys
        rights = (
            *(f"%RW~{key}" for key in (keys.state(run), keys.events(run), keys.lease(run))),
            *OWN,
            # Selectors: these commands on these keys, and nothing else on them.
            f"(%R~{keys.commands(run)} +xread +xrange)",
            f"(%R~{keys.record(run)} +hmget)",
            f"(%W~{keys.bell(run)} +xadd)",
        )
        try:
            # The hash, not the password: it must not stand in a slow log or under MONITOR.
            await self._door.do("ACL SETUSER", user_of(run), "reset", "on", f"#{digest}", "resetchannels", *rights)
        except StoreRefusedError as err:
            raise StoreRefusedError(
                f"no user for run {run}: {err} Each runner gets a user of its own, so ours needs the right "
                "to ACL SETUSER and ACL DELUSER."
            ) from err

    async def _save(self) -> None:
        if await self.keeps_users():
            await self._door.do("ACL SAVE")
