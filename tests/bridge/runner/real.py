"""A runner as it really is: a process with the bundled program below it, a real Redis, and a scripted model here."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bridge.adapters.redis_store import RedisStore
from bridge.commands import Command
from bridge.launch.local import LocalLauncher
from bridge.model import News, RunId
from bridge.ports import Order
from flower.testing import ScriptedModel, read_story, scripted_env
from tests.bridge.runner.rig import FLOWS
from tests.contracts.values import record
from tests.fakes.redis import RealRedis
from tests.sdk.stage import marked

ROOT = Path(__file__).parents[3]


@dataclass(slots=True)
class RealRun:
    """One run on a real server."""

    run: RunId
    home: Path
    server: RealRedis
    store: RedisStore
    model: ScriptedModel
    launcher: LocalLauncher
    flow: str = f"{FLOWS}:one"

    @property
    def folder(self) -> Path:
        return self.home / "run"

    @property
    def workspace(self) -> Path:
        return self.home / "ws"

    @property
    def pid(self) -> int:
        return int((self.folder / "runner.pid").read_text().split()[0])

    @property
    def processes(self) -> list[int]:
        """Everything of this run that lives."""
        return marked(self.run)

    async def start(self, **changes: Any) -> None:
        """Start a runner, as a bot does."""
        user, password = await self.store.credentials.grant(self.run)
        usual: dict[str, Any] = {
            "run": self.run,
            "folder": self.folder,
            "workspace": self.workspace,
            "flow": self.flow,
            "request": "write a program",
            "options": {},
            "store_url": self.server.address.url,
            "store_user": user,
            "store_password": password,
            "lease_ttl": 4.0,
        }
        await self.launcher.start(Order(**{**usual, **changes}))

    async def do(self, *commands: Command) -> None:
        for command in commands:
            await self.store.commands.send(self.run, command)

    async def news(self) -> list[News]:
        return await self.store.events.read(self.run, count=5_000)

    async def until(self, wanted: Callable[[News], bool], *, within: float = 20.0) -> News:
        """Wait for a piece of news."""
        try:
            async with asyncio.timeout(within):
                while True:
                    if found := next((item for item in await self.news() if wanted(item)), None):
                        return found
                    await self.store.events.rung(wait=1.0)
        except TimeoutError:
            log = (self.folder / "runner.log").read_text()[-2_000:]
            raise AssertionError(f"it was not told; the runner's log ends: {log}") from None

    async def state(self, state: str, *, within: float = 20.0) -> News:
        return await self.until(lambda item: item.kind == "run" and item.payload["state"] == state, within=within)


@contextlib.asynccontextmanager
async def real_run(
    server: RealRedis, home: Path, lines: list[Any], *, anytime: Sequence[Any] = (), speed: float = 0.0
) -> AsyncIterator[RealRun]:
    """Have everything for a run, with a story of `lines`; at the end nothing of it is left.

    Args:
        anytime: lines for what can happen at any point.
        speed: 0 answers at once, 1 keeps the paces of the lines.
    """
    run = RunId(f"r{secrets.token_hex(4)}")
    story = read_story({"parts": {"main": {"lines": lines, "anytime": list(anytime)}}})
    async with (
        ScriptedModel(story, speed=speed) as model,
        server.open() as store,
    ):
        variables = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            **scripted_env(model, home / "home"),
        }
        launcher = LocalLauncher(env=variables)
        await store.runs.create(record(run))
        queued = News(seq=1, fence=0, at=1.0, kind="run", payload={"state": "queued"})
        await store.events.append(run, [queued], fence=0)
        real = RealRun(run, home, server, store, model, launcher)
        try:
            yield real
        finally:
            await launcher.kill(run, real.folder)


async def until(look: Callable[[], bool], what: str, *, within: float = 20.0) -> None:
    """Wait for something that has no event: files, processes."""
    deadline = asyncio.get_running_loop().time() + within
    while not look():
        assert asyncio.get_running_loop().time() < deadline, f"not within {within:g} s: {what}"
        await asyncio.sleep(0.05)
