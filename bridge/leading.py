"""One bot per account: two on one account would post everything twice, so one holds a lease and the others wait."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

from bridge.clock import Clock
from bridge.errors import BridgeError, StateError, StoreAwayError
from bridge.ports import Runs

LEASE_SECONDS = 10.0
PATIENCE_SECONDS = 15.0
"""How long a new bot waits for the lease of one that was killed on another machine."""
LOOK_SECONDS = 0.5


class Lead:
    """The lease of one account, as one process holds it."""

    def __init__(self, runs: Runs, account: str, *, owner: str, clock: Clock) -> None:
        self._runs, self._account, self._owner, self._clock = runs, account, owner, clock
        self._until = 0.0

    @property
    def sure(self) -> bool:
        """Whether the lease is certainly ours now.

        It is not after the store was away, or this process stood still, for longer than the lease: another bot may have
        taken over and posted what we do not know of. Nothing is posted then until the lease is ours again.
        """
        return self._clock.now() < self._until

    @contextlib.asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Take the lease, and give it up at the end. A predecessor that was killed elsewhere lets it run out.

        Raises:
            BridgeError: another bot has it and keeps it.
        """
        patience = self._clock.now() + PATIENCE_SECONDS
        leader = await self._runs.leader(self._account)
        if is_dead(leader):  # killed on this machine: nobody has to wait for its lease to run out
            await self._runs.leave(self._account, owner=leader)
        while not await self._extend():
            if self._clock.now() > patience:
                raise BridgeError(
                    f"another bot serves {self._account} on this state store; stop it first, or give this one another"
                    " FLOWER_CHAT_HOME"
                )
            await self._clock.sleep(LOOK_SECONDS)
        try:
            yield
        finally:
            with contextlib.suppress(StateError):
                await self._runs.leave(self._account, owner=self._owner)

    async def keep(self) -> None:
        """Extend the lease until cancelled; a store that is away is waited for.

        Raises:
            BridgeError: another bot has taken over.
        """
        while True:
            await self._clock.sleep(LEASE_SECONDS / 4)
            with contextlib.suppress(StoreAwayError):
                if not await self._extend():
                    raise BridgeError(
                        f"another bot has taken over {self._account}; this one stops, to say nothing twice"
                    )

    async def _extend(self) -> bool:
        asked = self._clock.now()  # before the call: the answer may have been long on its way
        ours = await self._runs.lead(self._account, owner=self._owner, ttl=LEASE_SECONDS)
        self._until = asked + LEASE_SECONDS if ours else 0.0
        return ours


def owner_name(pid: int) -> str:
    """Name a process so that its successor on the same machine can tell whether it still lives."""
    namespace = Path("/proc/self/ns/pid")
    where = namespace.stat().st_ino if namespace.exists() else 0
    return f"bot:{os.uname().nodename}:{where}:{pid}"


def is_dead(owner: str) -> bool:
    """Whether a lease's owner was a process of this machine that lives no more; False where it cannot be told."""
    home, _, pid = owner.rpartition(":")
    if not pid.isdecimal() or owner_name(int(pid)).rpartition(":")[0] != home:
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        return False
    return False
