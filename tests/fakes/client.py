"""A scripted client in the place of the SDK's, and a runtime that uses it: no program, no network.

A script is a list of what one attempt receives. Beside messages it may hold an exception (raised there), a callable
(called there, for whoever wants to act at that moment), and a `Until` (nothing more comes until it is set).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from claude_agent_sdk import AssistantMessage, ClaudeAgentOptions, Message, ResultMessage, SystemMessage, TextBlock

from flower.core.runtime import Runtime


@dataclass(frozen=True, slots=True, kw_only=True)
class Own:
    """The result of the attempt's own prompt: its uuid is filled in."""

    total: float | None = 0.0
    turns: int = 1
    is_error: bool = False
    subtype: str = "success"
    session: str = "S"
    status: int | None = None
    errors: tuple[str, ...] = ()
    reason: str = "completed"


class Until:
    """Nothing more comes until it is set, or the client is interrupted."""

    def __init__(self) -> None:
        self.event = asyncio.Event()


ABORTED = Own(is_error=True, subtype="error_during_execution", reason="aborted_tools", total=None)
"""What the program says after an interrupt; without a cost, so that tests need not reckon with it."""

Item = Message | Own | Exception | Until | Callable[[], object]


def init(session: str = "S") -> SystemMessage:
    return SystemMessage(subtype="init", data={"session_id": session})


def say(text: str, **kw: Any) -> AssistantMessage:
    return AssistantMessage(content=[TextBlock(text)], model=kw.pop("model", "m"), **kw)


def result(own: Own, uuids: list[str] | None) -> ResultMessage:
    return ResultMessage(
        subtype=own.subtype,
        duration_ms=1,
        duration_api_ms=1,
        is_error=own.is_error,
        num_turns=own.turns,
        session_id=own.session,
        total_cost_usd=own.total,
        errors=list(own.errors) or None,
        api_error_status=own.status,
        terminal_reason=own.reason,
        user_message_uuids=uuids,
    )


@dataclass(slots=True)
class ScriptedClient:
    """One attempt's client. Remembers what was asked of it."""

    options: ClaudeAgentOptions
    script: Sequence[Item]
    after_cut: Own | None = ABORTED
    """The result that follows an interrupt; None: the program never answers it."""
    prompts: list[dict[str, Any]] = field(default_factory=list)
    interrupts: int = 0
    connected: bool = False
    closed: bool = False
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when closing begins."""
    may_close: asyncio.Event | None = None
    """Closing waits for it."""
    _cut: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def prompt(self) -> str:
        """What the attempt said."""
        return str(self.prompts[0]["message"]["content"])

    async def connect(self) -> None:
        self.connected = True

    async def query(self, prompt: AsyncIterable[dict[str, Any]]) -> None:
        self.prompts += [each async for each in prompt]

    async def receive_messages(self) -> AsyncIterator[Message]:
        uuids = [self.prompts[0]["uuid"]]
        for item in self.script:
            if isinstance(item, Until):
                await self._first(item.event, self._cut)
                if self._cut.is_set():
                    break
            elif isinstance(item, Exception):
                raise item
            elif isinstance(item, Own):
                yield result(item, uuids)
            elif callable(item):
                item()
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            else:
                yield item
            if self._cut.is_set():
                break
        if not self._cut.is_set():
            return
        if self.after_cut is None:
            await asyncio.Event().wait()
        else:
            yield result(replace(self.after_cut, session=self._session()), [])

    def _session(self) -> str:
        named = [item.data["session_id"] for item in self.script if isinstance(item, SystemMessage)]
        named += [item.session_id for item in self.script if isinstance(item, AssistantMessage) and item.session_id]
        return str(named[-1]) if named else ABORTED.session

    async def interrupt(self) -> None:
        self.interrupts += 1
        self._cut.set()

    async def disconnect(self) -> None:
        self.closing.set()
        if self.may_close is not None:
            await self.may_close.wait()
        self.closed = True

    @staticmethod
    async def _first(*events: asyncio.Event) -> None:
        tasks = [asyncio.create_task(event.wait()) for event in events]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()


class ScriptedRuntime(Runtime):
    """A runtime whose model says what the scripts say, one script an attempt. What is left over is a mistake."""

    def __init__(self, *scripts: Sequence[Item], **kw: Any) -> None:
        super().__init__(**kw)
        self.scripts = list(scripts)
        self.clients: list[ScriptedClient] = []
        self.after_cut: Own | None = ABORTED
        """What follows an interrupt, in every client; None: nothing ever does."""

    def _client(self, options: ClaudeAgentOptions) -> ScriptedClient:
        client = ScriptedClient(options, self.scripts.pop(0), self.after_cut)
        self.clients.append(client)
        return client

    @property
    def prompts(self) -> list[str]:
        return [client.prompt for client in self.clients]

    @property
    def resumed(self) -> list[str | None]:
        return [client.options.resume for client in self.clients]
