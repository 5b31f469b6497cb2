"""When an interrupt cuts: at once where a person or a tool is waited for, else at the next message (rulings R3)."""

from __future__ import annotations

import asyncio
from typing import Protocol

from flower.core.events import Event

BOUNDARY_SECONDS = 10.0
"""How long the next message is waited for before the turn is cut at once."""

ASK_TOOL = "mcp__human__ask"
_AGENTS = ("Agent", "Task")
_OVER = ("result", "retry", "step")
"""Events after which nothing that was called before is pending any more."""


class Cut(Protocol):
    """What carries an interrupt out: `Runtime.interrupt`."""

    def __call__(self, message: str = "", *, now: bool = False) -> None: ...


class Interrupts:
    """The interrupts of one run. Made on the loop; `see` belongs to its thread, the call may come from any.

    Args:
        interrupt: `Runtime.interrupt`.
    """

    def __init__(self, interrupt: Cut) -> None:
        self._interrupt = interrupt
        self._loop = asyncio.get_running_loop()
        self._calls: dict[str, str] = {}
        self._late: asyncio.TimerHandle | None = None

    def see(self, ev: Event) -> None:
        """Learn from an event what is pending. Never raises."""
        if ev.kind in _OVER:
            self._calls.clear()
            if ev.kind != "result" and self._late is not None:  # the words have arrived
                self._late.cancel()
                self._late = None
        elif ev.payload.get("subagent"):
            return
        elif ev.kind == "tool_call":
            self._calls[str(ev.payload.get("id"))] = ev.tool
        elif ev.kind == "tool_result":
            self._calls.pop(str(ev.payload.get("tool_use_id")), None)

    def __call__(self, words: str) -> bool:
        """Interrupt with these words; whether a question that waits goes with the turn.

        Whoever says nothing only wants to be past the prompt: the question stays for them to answer. A subagent at
        work gets until the next message, since cutting loses what it has not finished.
        """
        tools = list(self._calls.values())
        asking = ASK_TOOL in tools
        now = bool(words) if asking else bool(tools) and not any(tool in _AGENTS for tool in tools)
        self._interrupt(words, now=now)
        if not now and not asking:
            self._loop.call_soon_threadsafe(self._wait, words)
        return now and asking

    def _wait(self, words: str) -> None:
        if self._late is None:
            self._late = self._loop.call_later(BOUNDARY_SECONDS, self._lose_patience, words)

    def _lose_patience(self, words: str) -> None:
        self._late = None
        self._interrupt(words, now=True)
