"""One attempt of a step: one SDK client, one prompt, up to the result of that prompt (rulings R4).

`Fold` is the pure half, from messages to an outcome. `Conversation` is the shell: it opens the client, feeds the fold,
cuts where a person asked for it or the context is full, and closes.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
from collections.abc import AsyncIterable, AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import anyio
from claude_agent_sdk import (
    AssistantMessage,
    ClaudeSDKError,
    Message,
    ResultMessage,
    SystemMessage,
    UserMessage,
)

from flower.core.agent import HandoffPolicy
from flower.core.events import Event, normalize
from flower.core.level import Level
from flower.core.next_move import HANDOFF_DUE, INTERRUPTED, SESSION_FILE, Ending
from flower.core.steering import Steers
from flower.stores.sqlite import SessionFileError

log = logging.getLogger(__name__)

DRAIN_SECONDS = 10.0
"""How long a cut attempt waits for the result that carries its cost."""
LEAVE_SECONDS = 3.0
"""The same when the owner of the run was cancelled and nobody has time."""
CLOSE_SECONDS = 25.0
"""More than the SDK's own steps from end of input to SIGKILL take together."""
PATIENCE_SECONDS = 10.0
"""How long *end* waits for a message boundary, then cuts all the same."""

SILENCE_SECONDS = 900.0
"""How long the model may say nothing at all while no tool runs and nobody is asked.

A stream that went silent is noticed late by the program or not at all (SDK facts 10); a long answer without partial
messages is silent too, for some minutes.
"""

_STOPPED = "hook_stopped"
"""The program's word for a turn that a hook ended."""

_NOTIFICATION = "task-notification"


class SilenceError(TimeoutError):
    """Nothing came for too long."""


class Client(Protocol):
    """What an attempt needs of `ClaudeSDKClient`."""

    async def connect(self) -> None: ...
    async def query(self, prompt: AsyncIterable[dict[str, Any]]) -> None: ...
    def receive_messages(self) -> AsyncIterator[Message]: ...
    async def interrupt(self) -> None: ...
    async def disconnect(self) -> None: ...


# -- the pure half ------------------------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class Fold:
    """Folds the messages of one attempt. No I/O; `price` is the one thing that it asks.

    Args:
        prompt: uuid of the prompt; the attempt ends with the result that names it.
        price: turns a session's cumulative cost into what was not booked yet.
        level: how full the context is; goes on from attempt to attempt.
        near: makes the event that says that the context will be full soon.
    """

    prompt: str
    price: Callable[[str, float], float]
    level: Level = field(default_factory=lambda: Level(HandoffPolicy(enabled=False, window=0)))
    near: Callable[[], Event] | None = None
    session: str | None = None
    texts: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    cost_usd: float = 0.0
    num_turns: int = 0
    answer: str = ""
    """The id of the main thread's newest answer; each of its blocks is a message of its own."""
    calls: set[str] = field(default_factory=set)
    """Tool calls of the main thread that have no result yet."""
    answered: set[str] = field(default_factory=set)
    """Those that have."""
    result: ResultMessage | None = None
    """The result of the own prompt."""
    cut: str = ""
    """Why the attempt was cut, as an error of `next_move`; what comes after that is booked and not told."""
    raised: BaseException | None = None
    """What the SDK or a sink raised."""
    api: AssistantMessage | None = None
    """The last synthetic message of an API error, which names its kind."""

    def new_session(self, message: Message) -> str | None:
        """Return the session's id if the message is the first to name it."""
        found = getattr(message, "session_id", None)
        if not found:
            data = getattr(message, "data", None)
            found = data.get("session_id") if isinstance(data, dict) else None
        if not found or found == self.session:
            return None
        self.session = str(found)
        return self.session

    def is_full_before(self, message: Message) -> bool:
        """Whether to hand over at the boundary before this message.

        What is running is let finish: waiting for it costs no context, cutting it loses its work. So the blocks of one
        answer belong together, and open calls are waited for. The good end of the own prompt wins (D7).
        """
        match message:
            case ResultMessage():
                done = self._is_own(message) and not message.is_error and message.terminal_reason != _STOPPED
                return self._is_full() and not done
            case AssistantMessage(message_id=str(answer)) if answer == self.answer:
                return False
            case AssistantMessage() | UserMessage():
                return self._is_full()
            case _:
                return False

    def is_full_behind(self, message: Message) -> bool:
        """Whether to hand over behind this message: it held the last result that was waited for."""
        return isinstance(message, UserMessage) and not message.parent_tool_use_id and self._is_full()

    def _is_full(self) -> bool:
        return self.level.due and self.session is not None and not self.calls

    def take(self, message: Message) -> list[Event]:
        """Fold a message and return the events to tell; after a cut, those of results only."""
        events = normalize(message)
        if isinstance(message, ResultMessage):
            self._book(message, events[0])
            return events
        if self.cut:
            return []
        if isinstance(message, AssistantMessage):
            if message.error:
                self.api = message
            if not message.parent_tool_use_id:
                self.answer = message.message_id or ""
        full_soon = False
        for event in events:
            full_soon |= self._see(event)
        return [*events, self.near()] if full_soon and self.near is not None else events

    def fail(self, error: BaseException) -> None:
        """Note an exception of the SDK or of a sink; the first one counts."""
        if self.raised is None:
            self.raised = error

    @property
    def program_failed(self) -> bool:
        """Whether it was the SDK or its program that raised; then the program's last words say more."""
        return isinstance(self.raised, ClaudeSDKError)

    def ending(self) -> Ending:
        """Return how the attempt ended, a cut left aside."""
        result = self.result
        if self.raised is not None:
            kind = SESSION_FILE if _is_of_the_session_file(self.raised) else ""
            return dataclasses.replace(self._failed(f"{type(self.raised).__name__}: {self.raised}"), kind=kind)
        if result is None:
            return self._failed(self.errors[-1] if self.errors else "the program ended without a result")
        if not result.is_error:
            return Ending(ok=True)
        kind = (self.api.error if self.api is not None else None) or result.subtype
        return dataclasses.replace(
            self._failed(self._said(result)),
            status=result.api_error_status,
            kind=kind,
            reason=result.terminal_reason or "",
        )

    def _failed(self, error: str) -> Ending:
        return Ending(ok=False, error=error, errors=tuple(self.errors))

    def _said(self, result: ResultMessage) -> str:
        if self.errors:
            return self.errors[-1]
        words = "; ".join(result.errors or []) or result.result or ""
        return f"{words} [{result.subtype}]".strip()

    def _book(self, message: ResultMessage, event: Event) -> None:
        if message.total_cost_usd is not None:
            # Told as what this turn cost: the SDK's own figure is that of the whole session (trap 1).
            event.payload["cost_usd"] = self.price(message.session_id, message.total_cost_usd)
            self.cost_usd += event.payload["cost_usd"]
        self.num_turns += message.num_turns
        self.calls.clear()
        if self._is_own(message):
            self.result = message

    def _is_own(self, message: ResultMessage) -> bool:
        named = message.user_message_uuids or ([message.user_message_uuid] if message.user_message_uuid else [])
        if named:
            return self.prompt in named
        # Interrupted and failed turns may name no prompt at all; those of background tasks say what they are.
        return message.origin is None or message.origin.get("kind") != _NOTIFICATION

    def _see(self, event: Event) -> bool:
        """Take an event in; whether it is the one by which the context will be full soon."""
        if event.kind == "error":
            self.errors.append(event.text)
        if event.kind == "error" or event.payload.get("subagent"):
            return False
        if event.kind == "text":
            self.texts.append(event.text)
        elif event.kind == "tool_call":
            self.calls.add(event.payload["id"])
        elif event.kind == "tool_result":
            self.calls.discard(event.payload["tool_use_id"])
            self.answered.add(event.payload["tool_use_id"])
        return self.level.rise(event.payload.get("context", 0))


# -- the shell ----------------------------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class Conversation:
    """One client's life. Opened, read and closed by the one task that runs `run`.

    Args:
        silence: seconds after which nothing is expected any more.
        silent: the error of such an attempt. Placeholder: minutes.
        on_session: told a session's id the moment it is known; whatever it raises is the caller's to catch.
        tell: takes each event; what it raises fails the attempt (behaviour 5.2).
    """

    client: Client
    text: str
    fold: Fold
    steering: Steers
    silence: float
    silent: str
    on_session: Callable[[str], None]
    tell: Callable[[Event], None]
    _look: asyncio.Event = field(default_factory=asyncio.Event)
    _leaving: bool = False
    _talked: bool = False
    _bound: asyncio.Timeout | None = None

    async def run(self) -> None:
        """Hold the conversation. Agent failures are in the fold; raises nothing but for a cancellation."""
        try:
            await self.client.connect()
            # Ended while the program started: nothing was said yet, so nothing is cut.
            if not self._leaving and not self.steering.ended:
                await self._talk()
            elif self.steering.ended:
                self.fold.cut = INTERRUPTED
        except Exception as err:
            log.debug("attempt.failed", exc_info=True)
            self.fold.fail(err)
        finally:
            await self._close()

    def leave(self) -> None:
        """Cut at once: the owner was cancelled. The conversation ends within a bound."""
        self._leaving = True
        if self.fold.cut:
            self._limit()
        self._look.set()

    async def _talk(self) -> None:
        with self.steering.heard(self._look.set):
            async with asyncio.TaskGroup() as group:
                cutter = group.create_task(self._cut_when_asked(), name="flower.cutter")
                try:
                    await self._read()
                finally:
                    cutter.cancel()

    async def _read(self) -> None:
        """Send the prompt and read up to its result. Exceptions go to the fold, not into the task group."""
        self._talked = True
        bound = self._bound = asyncio.timeout(self.silence)
        try:
            async with bound:
                await self.client.query(_as_stream(self.text, self.fold.prompt))
                async with contextlib.aclosing(self.client.receive_messages()) as messages:  # type: ignore[type-var]  # an AsyncIterator by its type, a generator in fact
                    async for message in messages:
                        self._take(message)
                        if self.fold.result is not None:
                            return
        except Exception as err:  # boundary: whatever the SDK or a sink raises is how this attempt ended
            if bound.expired() and self.fold.cut:
                log.warning("attempt.no_result_after_cut")
            elif bound.expired():
                self.fold.fail(SilenceError(self.silent.format(minutes=round(self.silence / 60))))
            else:
                log.debug("attempt.failed", exc_info=True)
                self.fold.fail(err)
        finally:
            self._bound = None

    def _take(self, message: Message) -> None:
        """Fold one message, in the order of behaviour 7.4: the session's id, then a due cut, then the events."""
        if session := self.fold.new_session(message):
            self.on_session(session)
            self._look.set()
        if not self.fold.cut:
            self._cut_at_boundary(message)
        for event in self.fold.take(message):
            self.tell(event)
        if not self.fold.cut and self.fold.is_full_behind(message):
            self._begin_cut(HANDOFF_DUE)
        if not self.fold.cut and self._bound is not None:
            # While a tool runs or a person is asked, silence is as it should be.
            quiet = self.silence + _announced_wait(message)
            self._bound.reschedule(None if self.fold.calls else asyncio.get_running_loop().time() + quiet)

    def _cut_at_boundary(self, message: Message) -> None:
        if self.fold.is_full_before(message):
            self._begin_cut(HANDOFF_DUE)
        # Without a session there is nothing to go on with, so an interrupt is kept until there is one (rulings R3).
        elif self.fold.session and self.steering.wants_cut(boundary=True, busy=False):
            self._begin_cut(INTERRUPTED)

    def _begin_cut(self, why: str) -> None:
        self.fold.cut = why
        self._limit()
        self._look.set()

    def _limit(self) -> None:
        """Limit how long the result of a cut is waited for."""
        if self._bound is not None:
            seconds = LEAVE_SECONDS if self._leaving else DRAIN_SECONDS
            self._bound.reschedule(asyncio.get_running_loop().time() + seconds)

    async def _cut_when_asked(self) -> None:
        """Wait until a cut is wanted, here or at a boundary, and have the program carry it out."""
        patience_over = False
        while not self.fold.cut:
            if self._cut_is_due(patience_over):
                self._begin_cut(INTERRUPTED)
                break
            try:
                async with asyncio.timeout(PATIENCE_SECONDS if self.steering.ended else None):
                    await self._look.wait()
            except TimeoutError:
                patience_over = True
            self._look.clear()
        try:
            await self.client.interrupt()
        except Exception:  # the SDK raises a bare Exception; the bound of the reader ends the attempt all the same
            log.warning("attempt.interrupt_failed", exc_info=True)

    def _cut_is_due(self, patience_over: bool) -> bool:
        if self._leaving or (patience_over and self.steering.ended):
            return True
        return bool(self.fold.session) and self.steering.wants_cut(boundary=False, busy=bool(self.fold.calls))

    async def _close(self) -> None:
        if self._talked and self.fold.result is None:
            await self._stop_work()
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await self.client.disconnect()
        except TimeoutError:
            log.warning("attempt.close_gave_up")
        except Exception:  # closing must not hide how the attempt ended
            log.warning("attempt.close_failed", exc_info=True)

    async def _stop_work(self) -> None:
        """Have the program stop what it does: after the end of input alone it would finish its turn."""
        with contextlib.suppress(Exception):
            async with asyncio.timeout(LEAVE_SECONDS):
                await self.client.interrupt()


def _announced_wait(message: Message) -> float:
    """Return how long the program says that it waits before it tries again, in seconds (case CO-1)."""
    if not isinstance(message, SystemMessage) or message.subtype != "api_retry":
        return 0.0
    delay = message.data.get("retry_delay_ms")
    return max(0.0, delay / 1000) if isinstance(delay, int | float) else 0.0


def _is_of_the_session_file(error: BaseException | None) -> bool:
    """Whether the store's file is what is wrong; the SDK wraps what a store raises."""
    while error is not None:
        if isinstance(error, SessionFileError):
            return True
        error = error.__cause__ or error.__context__
    return False


async def sheltered(conversation: Conversation) -> None:
    """Run a conversation in a task of its own, so that a cancellation finds time to close the program in good order.

    The task is owned here: it is over, or was itself cancelled, when this returns.
    """
    task = asyncio.get_running_loop().create_task(conversation.run(), name="flower.conversation")
    try:
        await asyncio.wait({task})
    except asyncio.CancelledError:
        conversation.leave()
        await _outlast(task, LEAVE_SECONDS + CLOSE_SECONDS)
        raise
    await task


async def _outlast(task: asyncio.Task[None], seconds: float) -> None:
    """Wait for a task whatever cancellations arrive meanwhile, then cancel it."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    with anyio.CancelScope(shield=True):
        while not task.done() and (left := until - loop.time()) > 0:
            with contextlib.suppress(asyncio.CancelledError):  # the one that brought us here is raised again
                await asyncio.wait({task}, timeout=left)
    if not task.done():
        log.warning("attempt.abandoned")
        task.cancel()


async def _as_stream(text: str, uuid: str) -> AsyncIterator[dict[str, Any]]:
    """Return a prompt that can be found again: in a dict with a uuid of its own (SDK facts 3, traps 16 and 17)."""
    yield {
        "type": "user",
        "message": {"role": "user", "content": text},
        "parent_tool_use_id": None,
        "uuid": uuid,
    }
