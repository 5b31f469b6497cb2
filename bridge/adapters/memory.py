"""All state ports in memory: the fake of every test, and a store for trials inside one process.

One `MemoryStore` is shared by the "processes" of a test: each takes its own view with `open`, as a process that starts
would. Values cross it as the bytes of the wire, so that what cannot travel fails here as well. It enforces no rights.
Faults are brought about by `away` and `slow`.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import OrderedDict, defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TypeVar

from bridge.adapters.doubts import Doubts
from bridge.commands import Command
from bridge.errors import FencedError, FinishedError, HeldError, StoreAwayError
from bridge.model import (
    FINAL,
    Inbound,
    News,
    Platform,
    Posted,
    RunId,
    RunRecord,
    RunStatus,
    Settled,
    Summons,
    ThreadRef,
)
from bridge.ports import (
    Checkpoint,
    CommandLine,
    Credentials,
    EventLine,
    Inbox,
    Ordered,
    Runs,
    Standing,
    Threads,
)
from bridge.wire import (
    decode_command,
    decode_inbound,
    decode_news,
    decode_posted,
    decode_record,
    decode_settled,
    encode_command,
    encode_inbound,
    encode_news,
    encode_posted,
    encode_record,
    encode_settled,
)

T = TypeVar("T")

LISTED = 200


@dataclass(slots=True)
class _Line:
    """Events of one run, by seq."""

    last: int = 0
    items: dict[int, bytes] = field(default_factory=dict)

    def check(self, run: RunId, news: Sequence[News]) -> list[tuple[int, bytes]]:
        """Return what is new in `news`; raises what `EventLine.append` says."""
        if any(item.seq < 1 for item in news):
            raise ValueError("seq counts from 1")
        fresh: list[tuple[int, bytes]] = []
        reached = self.last
        for item in news:
            if item.seq > reached + 1:
                raise ValueError(f"run {run}: the line goes up to {reached}, and the news leave a gap behind it")
            if item.seq == reached + 1:
                reached = item.seq
                fresh.append((item.seq, encode_news(item)))
        return fresh

    def add(self, fresh: Sequence[tuple[int, bytes]]) -> None:
        self.items.update(fresh)
        self.last = max([self.last, *(seq for seq, _ in fresh)])


@dataclass(slots=True)
class _Lease:
    owner: str
    until: float


@dataclass(slots=True)
class _Run:
    record: bytes
    created: float
    since: float
    thread: ThreadRef | None = None
    status: RunStatus = "queued"
    fence: int = 0
    lease: _Lease | None = None


@dataclass(slots=True)
class _Commands:
    ids: set[str] = field(default_factory=set)
    items: list[tuple[str, bytes]] = field(default_factory=list)


@dataclass(slots=True)
class _Box:
    """Inbounds of one platform that are accepted and not done, by receipt."""

    ids: set[str] = field(default_factory=set)
    items: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    count: int = 0


@dataclass(slots=True)
class _Desk:
    """What belongs to the threads of one run."""

    checkpoint: Checkpoint | None = None
    slots: dict[str, bytes] = field(default_factory=dict)
    asks: dict[str, bytes] = field(default_factory=dict)


class _Data:
    """What all views share."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.away = False
        self.slow = 0.0
        self.lines: dict[RunId, _Line] = defaultdict(_Line)
        self.commands: dict[RunId, _Commands] = defaultdict(_Commands)
        self.runs: dict[RunId, _Run] = {}
        self.links: dict[ThreadRef, RunId] = {}
        self.leads: dict[str, _Lease] = {}
        self.boxes: dict[Platform, _Box] = defaultdict(_Box)
        self.desks: dict[RunId, _Desk] = defaultdict(_Desk)
        self.users: dict[RunId, str] = {}
        self.rings: OrderedDict[RunId, int] = OrderedDict()
        self.rung = 0
        self._changed = asyncio.Event()

    def change(self) -> None:
        """Wake everybody who waits for something."""
        self._changed.set()
        self._changed = asyncio.Event()

    def ring(self, run: RunId) -> None:
        self.rung += 1
        self.rings[run] = self.rung
        self.rings.move_to_end(run)
        self.change()

    def holder(self, lease: _Lease | None) -> str:
        return lease.owner if lease and lease.until > self.clock() else ""

    def lease(self, owner: str, ttl: float) -> _Lease:
        return _Lease(owner, self.clock() + ttl)

    @asynccontextmanager
    async def call(self) -> AsyncIterator[None]:
        """Surround one operation: its effect comes after half of `slow`, its answer after the other half."""
        self._check()
        await asyncio.sleep(self.slow / 2)
        self._check()
        yield
        if self.slow:
            await asyncio.sleep(self.slow / 2)
            self._check()

    async def until(self, look: Callable[[], T], wait: float) -> T:
        """Return what `look` finds; waits at most `wait` seconds for something that is not empty."""
        clock = asyncio.get_running_loop().time
        end = clock() + wait
        while True:
            self._check()
            found, changed, left = look(), self._changed, end - clock()
            if found or left <= 0:
                return found
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await changed.wait()

    def _check(self) -> None:
        if self.away:
            raise StoreAwayError("the store in memory is away")


class _Events:
    def __init__(self, data: _Data) -> None:
        self._data = data
        self._heard: int | None = None

    async def append(self, run: RunId, news: Sequence[News], *, fence: int) -> int:
        async with self._data.call():
            known = self._data.runs.get(run)
            newest = known.fence if known else 0
            if fence != newest:
                raise FencedError(f"run {run}: attempt {fence} has been followed by attempt {newest}")
            line = self._data.lines[run]
            line.add(line.check(run, news))
            if news:
                self._data.ring(run)
            return line.last

    async def read(self, run: RunId, *, after: int = 0, count: int = 500) -> list[News]:
        async with self._data.call():
            line = self._data.lines[run]
            first = min(line.items, default=line.last + 1)
            wanted = range(max(after + 1, first), min(max(after + 1, first) + count, line.last + 1))
            return [decode_news(line.items[seq]) for seq in wanted]

    async def last(self, run: RunId) -> int:
        async with self._data.call():
            return self._data.lines[run].last

    async def trim(self, run: RunId, *, below: int) -> None:
        async with self._data.call():
            line = self._data.lines[run]
            line.items = {seq: raw for seq, raw in line.items.items() if seq >= below}

    async def rung(self, *, wait: float) -> set[RunId]:
        async with self._data.call():
            if self._heard is None:
                self._heard = self._data.rung
            runs = await self._data.until(self._since, wait)
            self._heard = self._data.rung
            return runs

    def _since(self) -> set[RunId]:
        found: set[RunId] = set()
        for run, number in reversed(self._data.rings.items()):
            if number <= (self._heard or 0):
                break
            found.add(run)
        return found


class _CommandLine:
    def __init__(self, data: _Data) -> None:
        self._data = data

    async def send(self, run: RunId, command: Command) -> bool:
        async with self._data.call():
            line = self._data.commands[run]
            if command.id in line.ids:
                return False
            line.items.append((f"{len(line.items) + 1:010d}", encode_command(command)))
            line.ids.add(command.id)
            self._data.change()
            return True

    async def read(self, run: RunId, *, after: str = "", wait: float = 0.0) -> list[Ordered]:
        def look() -> list[Ordered]:
            items = self._data.commands[run].items
            return [Ordered(position, decode_command(raw)) for position, raw in items if position > after]

        async with self._data.call():
            return await self._data.until(look, wait)


class _Runs:
    def __init__(self, data: _Data) -> None:
        self._data = data

    async def create(self, record: RunRecord) -> bool:
        async with self._data.call():
            if record.run in self._data.runs:
                return False
            raw = encode_record(replace(record, thread=None))
            self._data.runs[record.run] = _Run(raw, record.created, self._data.clock())
            if record.thread:
                self._bind(record.run, record.thread)
            return True

    async def record(self, run: RunId) -> RunRecord | None:
        async with self._data.call():
            known = self._data.runs.get(run)
            return replace(decode_record(known.record), thread=known.thread) if known else None

    async def bind(self, run: RunId, thread: ThreadRef) -> None:
        async with self._data.call():
            self._bind(run, thread)

    async def run_of(self, thread: ThreadRef) -> RunId | None:
        async with self._data.call():
            return self._data.links.get(thread)

    async def standing(self, run: RunId) -> Standing | None:
        async with self._data.call():
            known = self._data.runs.get(run)
            if known is None:
                return None
            owner = self._data.holder(known.lease)
            return Standing(status=known.status, fence=known.fence, owner=owner, since=known.since)

    async def live(self) -> set[RunId]:
        async with self._data.call():
            return {name for name, run in self._data.runs.items() if run.status not in FINAL}

    async def everyone(self) -> list[RunId]:
        async with self._data.call():
            runs = sorted(((run.created, name) for name, run in self._data.runs.items()), reverse=True)
            return [name for _, name in runs[:LISTED]]

    async def acquire(self, run: RunId, *, owner: str, ttl: float, reopen: bool = False) -> int:
        async with self._data.call():
            known = self._known(run)
            if known.status in FINAL and not reopen:
                raise FinishedError(f"run {run} has ended")
            holder = self._data.holder(known.lease)
            if holder and holder != owner:
                raise HeldError(f"run {run} is held by another runner")
            known.lease = self._data.lease(owner, ttl)
            if not holder:
                known.fence += 1
            if not holder or known.status in FINAL:
                self._set_status(known, "running")
            return known.fence

    async def renew(self, run: RunId, *, owner: str, fence: int, ttl: float) -> None:
        async with self._data.call():
            known = self._data.runs.get(run)
            if known is None or fence < 1 or known.fence != fence:
                raise FencedError(f"run {run}: attempt {fence} is not the newest")
            if known.status not in FINAL:
                known.lease = self._data.lease(owner, ttl)

    async def mark(self, run: RunId, status: RunStatus, *, fence: int) -> None:
        async with self._data.call():
            self._set_status(self._of_fence(run, fence), status)

    async def finish(self, run: RunId, status: RunStatus, news: Sequence[News], *, fence: int) -> None:
        async with self._data.call():
            known = self._of_fence(run, fence)
            line = self._data.lines[run]
            line.add(line.check(run, news))
            self._set_status(known, status)
            known.lease = None
            self._data.ring(run)

    async def leave(self, account: str, *, owner: str) -> None:
        async with self._data.call():
            if self._data.holder(self._data.leads.get(account)) == owner:
                del self._data.leads[account]

    async def leader(self, account: str) -> str:
        async with self._data.call():
            return self._data.holder(self._data.leads.get(account))

    async def lead(self, account: str, *, owner: str, ttl: float) -> bool:
        async with self._data.call():
            if self._data.holder(self._data.leads.get(account)) not in ("", owner):
                return False
            self._data.leads[account] = self._data.lease(owner, ttl)
            return True

    def _known(self, run: RunId) -> _Run:
        known = self._data.runs.get(run)
        if known is None:
            raise LookupError(f"no such run: {run}")
        return known

    def _of_fence(self, run: RunId, fence: int) -> _Run:
        known = self._known(run)
        if known.fence != fence:
            raise FencedError(f"run {run}: attempt {fence} is not the newest")
        return known

    def _set_status(self, known: _Run, status: RunStatus) -> None:
        if known.status != status:
            known.status, known.since = status, self._data.clock()

    def _bind(self, run: RunId, thread: ThreadRef) -> None:
        known = self._known(run)
        if known.thread and self._data.links.get(known.thread) == run:
            del self._data.links[known.thread]
        self._data.links[thread] = run
        known.thread = thread


class _Inbox:
    def __init__(self, data: _Data) -> None:
        self._data = data
        self._doubts = Doubts()
        self._out: set[tuple[Platform, str]] = set()
        """Handed out by this process."""

    async def accept(self, inbound: Inbound) -> bool:
        with self._doubts.accepting(inbound.id):
            async with self._data.call():
                box = self._data.boxes[_platform_of(inbound)]
                if inbound.id in box.ids:
                    return False
                box.count += 1
                box.items[f"{box.count:010d}"] = inbound.id, encode_inbound(inbound)
                box.ids.add(inbound.id)
                self._data.change()
                return True

    async def withdraw(self, inbound: Inbound) -> None:
        async with self._data.call():
            box = self._data.boxes[_platform_of(inbound)]
            box.ids.add(inbound.id)
            box.items = {receipt: item for receipt, item in box.items.items() if item[0] != inbound.id}
        self._doubts.clear(inbound.id)

    async def take(self, platform: Platform, *, wait: float) -> list[tuple[str, Inbound]]:
        async with self._data.call():
            ready = await self._data.until(lambda: self._waiting(platform), wait)
            await self._doubts.landed([name for name, _ in ready.values()])
            # Looked at again: what was withdrawn meanwhile is gone.
            ready = self._waiting(platform)
            self._out |= {(platform, receipt) for receipt in ready}
            return [(receipt, decode_inbound(raw)) for receipt, (_, raw) in ready.items()]

    async def done(self, platform: Platform, receipt: str) -> None:
        async with self._data.call():
            self._data.boxes[platform].items.pop(receipt, None)
            self._out.discard((platform, receipt))

    def _waiting(self, platform: Platform) -> dict[str, tuple[str, bytes]]:
        items = self._data.boxes[platform].items
        return {
            receipt: item
            for receipt, item in items.items()
            if (platform, receipt) not in self._out and item[0] not in self._doubts
        }


class _Threads:
    def __init__(self, data: _Data) -> None:
        self._data = data

    async def checkpoint(self, run: RunId) -> Checkpoint | None:
        async with self._data.call():
            return self._data.desks[run].checkpoint

    async def save(self, run: RunId, checkpoint: Checkpoint, *, forget: Collection[str] = ()) -> None:
        async with self._data.call():
            desk = self._data.desks[run]
            if desk.checkpoint and desk.checkpoint.seq > checkpoint.seq:
                return
            desk.checkpoint = checkpoint
            for name in forget:
                desk.slots.pop(name, None)

    async def slots(self, run: RunId) -> dict[str, Posted]:
        async with self._data.call():
            return {name: decode_posted(raw) for name, raw in self._data.desks[run].slots.items()}

    async def note(self, run: RunId, posted: Posted) -> None:
        async with self._data.call():
            self._data.desks[run].slots[posted.name] = encode_posted(posted)

    async def settle(self, run: RunId, settled: Settled) -> Settled:
        async with self._data.call():
            return decode_settled(self._data.desks[run].asks.setdefault(settled.ask, encode_settled(settled)))

    async def settlements(self, run: RunId) -> Mapping[str, Settled]:
        async with self._data.call():
            return {ask: decode_settled(raw) for ask, raw in self._data.desks[run].asks.items()}


class _Credentials:
    def __init__(self, data: _Data) -> None:
        self._data = data

    async def grant(self, run: RunId) -> tuple[str, str]:
        async with self._data.call():
            self._data.users[run] = secrets.token_urlsafe(32)
            return f"run-{run}", self._data.users[run]

    async def revoke(self, run: RunId) -> None:
        async with self._data.call():
            self._data.users.pop(run, None)


class MemoryStore:
    """`Store` in memory. `clock` gives Unix seconds and decides about leases."""

    events: EventLine
    commands: CommandLine
    runs: Runs
    inbox: Inbox
    threads: Threads
    credentials: Credentials

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._look_at(_Data(clock))

    @asynccontextmanager
    async def open(self) -> AsyncIterator[MemoryStore]:
        """Give another process its view of the same data: what one has taken and not done, the next takes again."""
        view = MemoryStore.__new__(MemoryStore)
        view._look_at(self._data)  # noqa: SLF001 - our own class
        async with self._data.call():
            pass
        yield view

    @property
    def away(self) -> bool:
        """While true every operation raises `StoreAwayError`, waiting reads included."""
        return self._data.away

    @away.setter
    def away(self, away: bool) -> None:
        self._data.away = away
        self._data.change()

    @property
    def slow(self) -> float:
        """Seconds that an operation takes; its effect comes in the middle of them."""
        return self._data.slow

    @slow.setter
    def slow(self, seconds: float) -> None:
        self._data.slow = seconds

    def _look_at(self, data: _Data) -> None:
        self._data = data
        self.events = _Events(data)
        self.commands = _CommandLine(data)
        self.runs = _Runs(data)
        self.inbox = _Inbox(data)
        self.threads = _Threads(data)
        self.credentials = _Credentials(data)


def _platform_of(inbound: Inbound) -> Platform:
    return inbound.place.platform if isinstance(inbound, Summons) else inbound.thread.platform
