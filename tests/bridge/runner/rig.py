"""A runner in this process: the real host on a store in memory, and a model that plays scripts instead of a program."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bridge.adapters.memory import MemoryStore
from bridge.commands import Command
from bridge.model import News, RunId
from bridge.ports import Order, Standing
from bridge.runner.host import host
from flower import texts
from tests.bridge.runner.people import Told
from tests.contracts.values import RUN, record
from tests.fakes.client import Item, ScriptedRuntime

FLOWS = "tests.bridge.runner.flows"


@dataclass(slots=True, eq=False)
class Running:
    """A host at work."""

    task: asyncio.Task[int]

    async def code(self, *, within: float = 10.0) -> int:
        """Wait for its end; returns the exit code."""
        async with asyncio.timeout(within):
            return await asyncio.shield(self.task)


@dataclass(slots=True)
class Rig:
    """One run and its attempts."""

    home: Path
    store: MemoryStore = field(default_factory=MemoryStore)
    scripts: list[Sequence[Item]] = field(default_factory=list)
    """What the model says, one script an attempt of a step."""
    runtimes: list[ScriptedRuntime] = field(default_factory=list)
    run: RunId = RUN

    @property
    def folder(self) -> Path:
        return self.home / "run"

    @property
    def workspace(self) -> Path:
        return self.home / "ws"

    @property
    def prompts(self) -> list[str]:
        """All that the model was told, in order."""
        return [prompt for runtime in self.runtimes for prompt in runtime.prompts]

    def runtime(self, **kw: Any) -> ScriptedRuntime:
        """Stand in for `Runtime`."""
        self.runtimes.append(made := ScriptedRuntime(*self.scripts, **kw))
        return made

    def order(self, **changes: Any) -> Order:
        usual: dict[str, Any] = {
            "run": self.run,
            "folder": self.folder,
            "workspace": self.workspace,
            "flow": f"{FLOWS}:one",
            "request": "write a program",
            "options": {},
            "store_url": "",
            "store_user": "",
            "store_password": "",
            "lease_ttl": 2.0,
        }
        return Order(**{**usual, **changes})

    async def create(self) -> None:
        """Do what a bot does before the first start."""
        await self.store.runs.create(record(self.run))
        await self.store.events.append(self.run, [self.of_the_bot(1, "queued")], fence=0)
        await self.starting()

    async def starting(self, *, at: float = 2.0) -> None:
        """Do what a bot does before each start."""
        standing = await self.standing()
        last = await self.store.events.last(self.run)
        item = self.of_the_bot(last + 1, "starting", fence=standing.fence, at=at)
        await self.store.events.append(self.run, [item], fence=standing.fence)

    @staticmethod
    def of_the_bot(seq: int, state: str, *, fence: int = 0, at: float = 1.0, **facts: Any) -> News:
        return News(seq=seq, fence=fence, at=at, kind="run", payload={"state": state, **facts})

    @contextlib.asynccontextmanager
    async def attempt(self, **changes: Any) -> AsyncIterator[Running]:
        """Start a runner. At the end it must be over; one that is not is cancelled (as a test failed)."""
        with texts.speaking("en"):
            async with asyncio.TaskGroup() as group:
                running = Running(group.create_task(host(self.order(**changes), self.store)))
                try:
                    yield running
                finally:
                    running.task.cancel()

    async def do(self, *commands: Command) -> None:
        for command in commands:
            await self.store.commands.send(self.run, command)

    async def news(self) -> list[News]:
        found: list[News] = []
        while batch := await self.store.events.read(self.run, after=found[-1].seq if found else 0):
            found += batch
        return found

    async def told(self) -> Told:
        """Return the news with the questions that tests ask of them."""
        return Told(await self.news())

    async def until(self, wanted: Callable[[News], bool], *, within: float = 8.0) -> News:
        """Wait for a piece of news."""
        news: list[News] = []
        try:
            async with asyncio.timeout(within):
                while True:
                    news = await self.news()
                    if found := next((item for item in news if wanted(item)), None):
                        return found
                    await self.store.events.rung(wait=1.0)
        except TimeoutError:
            said = [f"{item.kind}:{item.payload.get('state', '')} {item.text[:40]}" for item in news]
            raise AssertionError(f"it was not told; last came {said[-8:]}") from None

    async def state(self, state: str, *, within: float = 8.0) -> News:
        """Wait until the run has come into a state."""
        return await self.until(lambda item: item.kind == "run" and item.payload["state"] == state, within=within)

    async def receipt(self, command: str, state: str) -> News:
        return await self.until(
            lambda item: item.kind == "receipt" and (item.payload["command"], item.payload["state"]) == (command, state)
        )

    async def standing(self) -> Standing:
        standing = await self.store.runs.standing(self.run)
        assert standing is not None
        return standing

    def log(self, attempt: int = 1) -> list[dict[str, Any]]:
        """Return what an attempt wrote to its disk."""
        path = self.folder / "log" / f"{attempt:04d}.ndjson"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


async def on_disk(rig: Rig, wanted: Callable[[dict[str, Any]], bool], *, attempt: int = 1, within: float = 8.0) -> None:
    """Wait until an attempt has written something down; a file has no event to wait on."""
    async with asyncio.timeout(within):
        while not any(wanted(item) for item in rig.log(attempt)):  # noqa: ASYNC110 - see above
            await asyncio.sleep(0.02)
