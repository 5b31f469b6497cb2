"""What the bridge needs from chat and from the state store, in the bridge's words (house style 4).

Every implementation of a port runs through its suite in `tests/contracts`. All methods are coroutines of the event
loop's thread; none blocks the loop. State methods raise `StoreAwayError` when the store cannot be reached in time and
`StoreRefusedError` when it says no.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from bridge.commands import Command
from bridge.model import (
    Abilities,
    Card,
    Inbound,
    MessageRef,
    News,
    PersonId,
    PlaceRef,
    Platform,
    Posted,
    PostRef,
    RunId,
    RunRecord,
    RunStatus,
    Settled,
    Sign,
    ThreadRef,
)

Accept = Callable[[Inbound], Awaitable[bool]]
"""Takes an inbound into the state store. True: it is kept, tell the platform «received». False: it is not kept, and
nothing of it will ever happen; tell the platform nothing, and the person a word."""


class Chat(Protocol):
    """One platform account. Errors are the `ChatError`s; no foreign exception gets through (house style 18)."""

    platform: Platform
    abilities: Abilities

    async def listen(self, accept: Accept) -> None:
        """Hand on what people say until cancelled, a thread's words in the platform's order.

        The platform is told «received» only after `accept` has returned True. What comes again, after a crash or a
        slow confirmation, has the same `id`. Returns only by cancellation; raises `ChatGoneError` when the account
        itself is refused.
        """
        ...

    async def post(self, where: PlaceRef | ThreadRef, card: Card, *, once: str) -> tuple[PostRef, float]:
        """Post a card; in a place it opens a thread. Returns the post and when the platform took it (its clock).

        `once` is carried with the post so that `find` can see it. Never repeats a call whose answer was lost: that
        raises `ChatUnknownError`, and the caller looks first.
        """
        ...

    async def find(self, where: PlaceRef | ThreadRef, once: str, *, since: float) -> tuple[PostRef, float] | None:
        """Look for a post made under `once` at or after `since` (Unix seconds). None: it is not there."""
        ...

    async def edit(self, post: PostRef, card: Card, *, once: str) -> None:
        """Replace a post's card. Harmless when repeated. `once` is the key the post was made with."""
        ...

    async def whisper(self, where: PlaceRef | ThreadRef, person: PersonId, text: str, *, private: str = "") -> None:
        """Say something that only this person sees. `private` is the handle that came with a `Summons`."""
        ...

    async def sign(self, message: MessageRef, sign: Sign) -> None:
        """Put a receipt on a person's message. Harmless when repeated; a newer sign may stand beside an older."""
        ...

    def link(self, post: PostRef) -> str:
        """Address of a post for people, or an empty string. Does no I/O."""
        ...


class EventLine(Protocol):
    """Events of runs, upwards. One line per run, positions are `News.seq`."""

    async def append(self, run: RunId, news: Sequence[News], *, fence: int) -> int:
        """Append what the line does not have yet and ring the bell; all or nothing. Returns the line's last `seq`.

        `fence` is the number of the attempt that writes now (it may hand in older news of an earlier attempt).
        Items whose `seq` the line already has are passed over; a gap before the first new one is a `ValueError`.

        Raises:
            FencedError: `fence` is not the run's newest number. Nothing was written.
        """
        ...

    async def read(self, run: RunId, *, after: int = 0, count: int = 500) -> list[News]:
        """Items with `seq` > `after`, in order, at most `count`. What was trimmed is simply not there."""
        ...

    async def last(self, run: RunId) -> int:
        """The newest `seq`; 0 for a run that has none."""
        ...

    async def trim(self, run: RunId, *, below: int) -> None:
        """Forget items with `seq` < `below`. `last` stays what it was."""
        ...

    async def rung(self, *, wait: float) -> set[RunId]:
        """Runs that got news since the last call; waits at most `wait` seconds for the first. One listener only.

        A bell may be lost (a crash between event and bell) and may ring for nothing: callers sweep live runs now and
        then. The first call starts at now, not in the past.
        """
        ...


@dataclass(frozen=True, slots=True)
class Ordered:
    """A command and where it stands in its run's line. `position` is opaque, and grows."""

    position: str
    command: Command


class CommandLine(Protocol):
    """Commands to runs, downwards. One line per run."""

    async def send(self, run: RunId, command: Command) -> bool:
        """Append a command. False: a command with this `id` is already in the line, nothing was added."""
        ...

    async def read(self, run: RunId, *, after: str = "", wait: float = 0.0) -> list[Ordered]:
        """Commands behind `after` (empty: from the start); waits at most `wait` seconds for the first.

        Entries that cannot be decoded are passed over and reported to the log once; they block nobody.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where a run stands: its status, who holds it."""

    status: RunStatus
    fence: int
    """Number of the newest attempt; 0 before the first."""
    owner: str
    """Of the lease; empty: nobody holds it now."""
    since: float
    """Unix seconds (of the state store's clock) since when the status holds."""


class Runs(Protocol):
    """Which runs there are, and the one lease per run (infra facts 7.5, 8)."""

    async def create(self, record: RunRecord) -> bool:
        """Note a new run with status `queued`. False: that name is taken, nothing changed."""
        ...

    async def record(self, run: RunId) -> RunRecord | None: ...

    async def bind(self, run: RunId, thread: ThreadRef) -> None:
        """Note the run's thread, both ways. Repeating it is harmless; another thread replaces the first."""
        ...

    async def run_of(self, thread: ThreadRef) -> RunId | None: ...

    async def standing(self, run: RunId) -> Standing | None: ...

    async def live(self) -> set[RunId]:
        """Runs whose status is not final."""
        ...

    async def everyone(self) -> list[RunId]:
        """All runs that are known, newest first, at most 200."""
        ...

    async def acquire(self, run: RunId, *, owner: str, ttl: float, reopen: bool = False) -> int:
        """Take the run and get the next fencing number; the status becomes `running`.

        The same owner asking again extends the lease and keeps its number. `reopen` lifts a final status (*continue*).

        Raises:
            HeldError: another owner holds it.
            FinishedError: the status is final and `reopen` is false.
            LookupError: no such run.
        """
        ...

    async def renew(self, run: RunId, *, owner: str, fence: int, ttl: float) -> None:
        """Extend the lease, also after it ran out: only a newer number shuts a holder out.

        Raises:
            FencedError: a newer attempt has been made.
        """
        ...

    async def mark(self, run: RunId, status: RunStatus, *, fence: int) -> None:
        """Change the status.

        Raises:
            FencedError: `fence` is not the newest number.
        """
        ...

    async def finish(self, run: RunId, status: RunStatus, news: Sequence[News], *, fence: int) -> None:
        """Append the last news, set a final (or `lost`) status and give the lease up, in one step.

        Repeating it with the same arguments is harmless.

        Raises:
            FencedError: `fence` is not the newest number. Nothing was written.
        """
        ...

    async def leave(self, account: str, *, owner: str) -> None:
        """Give up the lease that `lead` took."""
        ...

    async def leader(self, account: str) -> str:
        """Who holds the account's lease; an empty string: nobody."""
        ...

    async def lead(self, account: str, *, owner: str, ttl: float) -> bool:
        """Take or extend the lease of one account's outbox and reconciler. False: another owner has it."""
        ...


class Inbox(Protocol):
    """What people did, accepted before the platform hears «received», and acted on once."""

    async def accept(self, inbound: Inbound) -> bool:
        """Keep it. False: this `id` is already kept (a redelivery); also fine. One write, atomic."""
        ...

    async def withdraw(self, inbound: Inbound) -> None:
        """Take back an accept whose outcome is not known: afterwards this `id` is never handed out."""
        ...

    async def take(self, platform: Platform, *, wait: float) -> list[tuple[str, Inbound]]:
        """What is accepted and not done, oldest first, with a receipt for `done`.

        The first call after a start gives again what an earlier process took and did not finish. Later calls give
        new ones only, waiting at most `wait` seconds. One taker per platform.
        """
        ...

    async def done(self, platform: Platform, receipt: str) -> None:
        """It was acted on. Repeating it is harmless."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A folded view as it was after `seq`. `data` is opaque to the store; `version` is the fold's (rulings R10)."""

    seq: int
    version: int
    data: bytes


class Threads(Protocol):
    """What was posted in the threads of a run, the folded view, and how asks were settled."""

    async def checkpoint(self, run: RunId) -> Checkpoint | None: ...

    async def save(self, run: RunId, checkpoint: Checkpoint, *, forget: Collection[str] = ()) -> None:
        """Keep a checkpoint and forget the named slots, in one step. An older `seq` than the kept one is ignored."""
        ...

    async def slots(self, run: RunId) -> dict[str, Posted]: ...

    async def note(self, run: RunId, posted: Posted) -> None:
        """Keep what is known of one slot (intended, posted, edited). Replaces what was known under its name."""
        ...

    async def settle(self, run: RunId, settled: Settled) -> Settled:
        """Settle an ask once: the first settlement is kept and returned to everybody who comes later (AS-4)."""
        ...

    async def settlements(self, run: RunId) -> Mapping[str, Settled]:
        """By ask identity."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What a launcher needs to start a runner. Travels to it outside the environment (rulings R8)."""

    run: RunId
    folder: Path
    workspace: Path
    flow: str
    """`starter`, or `module:attr`."""
    request: str
    words: str = ""
    """What a person said when they continued the run."""
    reopen: bool = False
    language: Literal["en", "zh"] = "en"
    options: Mapping[str, object]
    store_url: str
    store_user: str
    store_password: str = field(repr=False)
    lease_ttl: float = 20.0


class Launcher(Protocol):
    """Starts runners that outlive us, and ends what is left of them."""

    async def start(self, order: Order) -> None:
        """Start a runner, detached. Returns when the process exists, not when it works.

        Raises:
            LaunchError: it could not be started; says why and what to do. Nothing is left running.
        """
        ...

    async def kill(self, run: RunId, folder: Path) -> bool:
        """End the whole process tree of the run's runner, at once. False: there was none."""
        ...


class Credentials(Protocol):
    """Gives each runner a user of its own in the state store, with the least rights (rulings R8)."""

    async def grant(self, run: RunId) -> tuple[str, str]:
        """Make or renew the runner's user; returns name and password. Survives a restart of the store."""
        ...

    async def revoke(self, run: RunId) -> None:
        """Remove the user. Harmless when there is none."""
        ...


class Store(Protocol):
    """All state ports of one store, opened together."""

    @property
    def events(self) -> EventLine: ...

    @property
    def commands(self) -> CommandLine: ...

    @property
    def runs(self) -> Runs: ...

    @property
    def inbox(self) -> Inbox: ...

    @property
    def threads(self) -> Threads: ...

    @property
    def credentials(self) -> Credentials: ...
