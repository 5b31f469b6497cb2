"""A bot over fakes, a runner that a test plays by hand, and a crash at any call."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

from bridge.adapters.memory import MemoryStore
from bridge.commands import Command
from bridge.errors import ChatUnknownError, StoreAwayError
from bridge.model import Abilities, Inbound, News, PlaceRef, RunId, RunStatus, ThreadRef
from bridge.ports import Chat, Store
from bridge.service import Bridge
from bridge.settings import Settings, WorkspaceSettings
from bridge.split import plain
from tests.fakes.chat import ABILITIES, PLACE, FakeChat, FakePost
from tests.fakes.launcher import FakeLauncher

C = TypeVar("C", bound=Command)
T = TypeVar("T")

SPEED = 50.0
"""Seconds of the world in one of ours: pauses of a second cost 20 ms."""
LEASE = 20.0


class QuickClock:
    """Time that runs faster. Implements `bridge.clock.Clock`."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def now(self) -> float:
        return 1_700_000_000.0 + (time.monotonic() - self._began) * SPEED

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds / SPEED)


@dataclass
class World:
    """What outlives a bot process: the platform, the store, the runners."""

    home: Path
    abilities: Abilities = ABILITIES
    may_steer: tuple[str, ...] = ("T1/U2",)
    clock: QuickClock = field(default_factory=QuickClock)
    launcher: FakeLauncher = field(default_factory=FakeLauncher)
    bridges: list[Bridge] = field(default_factory=list)
    """Every bot process that there was, the newest last."""

    def __post_init__(self) -> None:
        self.memory = MemoryStore(clock=self.clock.now)
        self.chat = FakeChat(now=self.clock.now, abilities=self.abilities)
        self.settings = Settings(
            home=self.home,
            workspaces={
                "demo": WorkspaceSettings(path=self.home / "demo", fresh=True),
                "site": WorkspaceSettings(path=self.home / "site"),
                "zh": WorkspaceSettings(path=self.home / "zh", fresh=True, language="zh"),
            },
            default_workspace="demo",
            may_start=("T1/U1", "T1/U2"),
            may_steer=self.may_steer,
            lease_seconds=LEASE,
            accept_seconds=0.2,
        )

    def bridge(self, store: Store, chat: Chat | None = None) -> Bridge:
        return Bridge(
            chat or self.chat,
            store,
            self.launcher,
            settings=self.settings,
            store_url="redis://x",
            account=self.chat.account,
            clock=self.clock,
        )

    @contextlib.asynccontextmanager
    async def bot(self, crash: Crash | None = None) -> AsyncIterator[Bridge]:
        """Run a bot process; it is stopped in order, unless it has crashed."""
        async with self.memory.open() as store, asyncio.TaskGroup() as group:
            until = asyncio.Event()
            if crash is None:
                bridge = self.bridge(store)
                task = group.create_task(bridge.run(until=until))
            else:
                bridge = self.bridge(crash.store(store), crash.chat(self.chat))
                task = crash.task = group.create_task(bridge.run(until=until))
            self.bridges.append(bridge)
            try:
                yield bridge
            finally:
                until.set()
                if crash is not None and crash.dead.is_set():
                    task.cancel()

    async def started(self, request: str = "write primes", *, place: PlaceRef = PLACE) -> Runner:
        """Start a run from chat, take it up as its runner, and wait for its thread."""
        number = len(self.launcher.orders) + 1
        await self.chat.summon(request, place=place)
        runner = await self.taken_up(number)
        await self.thread(runner.run)
        return runner

    async def taken_up(self, number: int = 1) -> Runner:
        """Wait for the order with this number, take the lease and begin."""
        await until(lambda: len(self.launcher.orders) >= number)
        order = self.launcher.orders[number - 1]
        runner = Runner(self.memory, order.run)
        await runner.begin(reopen=order.reopen)
        return runner

    async def thread(self, run: RunId) -> ThreadRef:
        """Wait until a run's card has opened its thread."""

        async def bound() -> ThreadRef | None:
            record = await self.memory.runs.record(run)
            return record.thread if record is not None else None

        return await until(bound)

    async def accepted(self, inbound: Inbound) -> None:
        """Deliver as a platform does: again and again until it is taken."""
        while True:
            with contextlib.suppress(RuntimeError, AssertionError):  # it crashed in between
                if await self.chat.deliver(inbound):
                    return
            await asyncio.sleep(0.005)

    def said(self, thread: ThreadRef) -> list[str]:
        """What stands in a thread below its card, as plain text."""
        return [said(post) for post in self.chat.thread(thread)[1:]]

    def find(self, words: str) -> FakePost | None:
        return next((post for post in self.chat.posts if words in said(post)), None)

    async def post(self, words: str) -> FakePost:
        """Wait for a post that says this."""
        await self.chat.until(lambda _: self.find(words))
        found = self.find(words)
        assert found is not None
        return found

    async def whispered(self, words: str) -> str:
        """Wait for a private word that says this; returns who got it."""
        await self.chat.until(lambda chat: any(words in each.text for each in chat.whispers))
        return next(str(each.person) for each in self.chat.whispers if words in each.text)

    async def left(self, run: RunId) -> None:
        """Wait until a run that is over has left the desk and all memory of the newest bot."""
        bridge = self.bridges[-1]
        await until(lambda: run not in bridge._desk._lives)
        assert run not in bridge._showing._sights

    async def quiet(self) -> None:
        """Wait until every inbound is done."""
        boxes = self.memory._data.boxes
        await until(lambda: not boxes[self.chat.platform].items)


class Runner:
    """The runner of one run, played by hand. It outlives bots; the store it has is never away for it."""

    def __init__(self, store: Store, run: RunId) -> None:
        self.store, self.run, self.fence = store, run, 0
        self.position = ""
        self._asked = 0

    async def begin(self, *, reopen: bool = False) -> None:
        self.fence = await self.store.runs.acquire(self.run, owner=f"runner:{id(self)}", ttl=10_000, reopen=reopen)
        await self.tell("run", state="working", attempt=self.fence, resumed=self.fence > 1)

    async def tell(self, kind: str, text: str = "", **payload: Any) -> None:
        last = await self.store.events.last(self.run)
        news = News(seq=last + 1, fence=self.fence, at=1_700_000_000.0 + last, kind=kind, text=text, payload=payload)
        await self.store.events.append(self.run, [news], fence=self.fence)

    async def says(self, *texts: str) -> None:
        for text in texts:
            await self.tell("text", text, subagent=False, label="Work")

    async def asks(self, question: str, *options: str) -> str:
        self._asked += 1
        name = f"q{self._asked}"
        await self.tell("ask", question, id=name, options=list(options), state="asked", answer="")
        return name

    async def answered(self, ask: str, answer: str, by: str = "Anna") -> None:
        who = {"id": "T1/U1" if by == "Anna" else "T1/U2", "name": by}
        await self.tell("ask", "", id=ask, options=[], state="answered", answer=answer, by=who)

    async def held(self) -> None:
        await self.tell("run", state="held", by={"id": "T1/U1", "name": "Anna"})
        await self.store.runs.mark(self.run, "held", fence=self.fence)

    async def ends(self, status: RunStatus = "done", text: str = "") -> None:
        last = await self.store.events.last(self.run)
        payload: dict[str, Any] = {"state": status, "verdict": None, "unverifiable": [], "files": []}
        end = News(seq=last + 1, fence=self.fence, at=1_700_000_000.0 + last, kind="run", text=text, payload=payload)
        await self.store.runs.finish(self.run, status, [end], fence=self.fence)

    async def dies(self) -> None:
        """Let its lease be gone, without a word."""
        await self.store.runs.renew(self.run, owner=f"runner:{id(self)}", fence=self.fence, ttl=0.001)

    async def lives(self) -> None:
        """Renew its lease."""
        await self.store.runs.renew(self.run, owner=f"runner:{id(self)}", fence=self.fence, ttl=10_000)

    async def heard(self, kind: type[C]) -> C:
        """Wait for the next command, which must be of this kind."""
        orders = await self.store.commands.read(self.run, after=self.position, wait=5.0)
        assert orders, f"no {kind.__name__} came"
        self.position = orders[0].position
        command = orders[0].command
        assert isinstance(command, kind), command
        return command

    async def commands(self) -> list[Command]:
        """All that was ever sent to the run."""
        return [each.command for each in await self.store.commands.read(self.run)]


async def until(condition: Callable[[], T | Awaitable[T | None] | None], *, within: float = 5.0) -> T:
    """Wait for something that has no event of its own; returns it."""
    async with asyncio.timeout(within):
        while True:
            looked = condition()
            found = await looked if isinstance(looked, Awaitable) else looked
            if found:
                return found
            await asyncio.sleep(0.002)


def said(post: FakePost) -> str:
    return plain(post.card.body)


WRITES = {
    "events": ("append",),
    "commands": ("send",),
    "runs": ("create", "bind", "acquire", "mark", "finish"),
    "inbox": ("accept", "done"),
    "threads": ("note", "save", "settle"),
    "credentials": ("grant",),
    "chat": ("post", "find", "edit", "whisper", "sign"),
}


class Crash:
    """Kills a bot process at its n-th call that changes something, or the first of a name, before or after the effect.

    Nothing that it does afterwards gets through: what a killed process has in its `finally`s does not happen.
    """

    def __init__(self, at: int | str, *, after: bool) -> None:
        self.calls = 0
        self.dead = asyncio.Event()
        self.task: asyncio.Task[None]
        self._at, self._after = at, after
        self.log: list[str] = []

    def store(self, store: Store) -> Store:
        return cast("Store", _Ports(self, store))

    def chat(self, chat: Chat) -> Chat:
        return cast("Chat", _Port(self, chat, "chat"))

    async def call(self, name: str, counts: bool, method: Callable[..., Awaitable[Any]], *args: Any, **kw: Any) -> Any:
        self._check(name)
        if counts:
            self.calls += 1
            self.log.append(name)
        hit = counts and self._at in (self.calls, name)
        if hit and not self._after:
            self._die(name)
        result = await method(*args, **kw)
        if hit:
            self._die(name)
        self._check(name)
        return result

    def kill(self) -> None:
        """Kill it now."""
        self.dead.set()
        self.task.cancel()

    def _die(self, name: str) -> None:
        self.kill()
        self._check(name)

    def _check(self, name: str) -> None:
        if self.dead.is_set():
            raise ChatUnknownError("dead") if name.startswith("chat.") else StoreAwayError("dead")


class _Ports:
    def __init__(self, crash: Crash, store: Store) -> None:
        self._crash, self._store = crash, store

    def __getattr__(self, name: str) -> Any:
        return _Port(self._crash, getattr(self._store, name), name)


class _Port:
    def __init__(self, crash: Crash, port: Any, name: str) -> None:
        self._crash, self._port, self._name = crash, port, name

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        if not callable(found) or name in ("link", "listen"):
            return found

        async def call(*args: Any, **kw: Any) -> Any:
            counts = name in WRITES[self._name]
            return await self._crash.call(f"{self._name}.{name}", counts, found, *args, **kw)

        return call
