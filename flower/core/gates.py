"""Hooks that hold an agent back: no call begins, or no further request is sent, while somebody says so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from flower.core.guard import denied, hook_on, on_main_thread

Hooks = dict[str, list[Any]]

_LOOKERS = ("Glob", "Grep", "Read", "TodoWrite")
"""Tools that change nothing outside the conversation: they may as well end, and a hook costs each call 2 ms."""
_TURNS = 100
"""Turns of the loop that a hook grants to the task that reads."""


def tool_gate(when: Callable[[], bool], words: str, *, lookers: bool = False) -> Hooks:
    """Return a hook that lets no call begin while `when` says so.

    A cut comes with the next message, and with a message that calls a tool the tool begins at once: a short one
    would be over before the cut arrives. Having a hook for these calls also means that, should this process be killed,
    the program refuses the calls that come after (SDK facts 11).

    Args:
        words: told to the model for each call that is refused.
        lookers: hold back also what only looks.
    """

    async def hold_back(_data: Mapping[str, Any]) -> dict[str, Any]:
        return denied(words) if when() else {}

    # Not a list of names: what a server or a later version of the program brings is held back too.
    others = None if lookers else f"^(?!(?:{'|'.join(_LOOKERS)})$)"
    return {"PreToolUse": [hook_on(others, hold_back)]}


def turn_stop(when: Callable[[], bool], answered: AbstractSet[str], words: str) -> Hooks:
    """Return a hook that ends the turn after the results of an answer's calls, while `when` says so.

    Between these results and the next request to the model nothing is lost and nothing is paid for; a cut from outside
    comes a moment later, when the request is under way.

    Args:
        answered: the calls whose results were read; grows while the attempt runs.
        words: what the program notes as the reason.
    """

    async def stop(data: Mapping[str, Any]) -> dict[str, Any]:
        if not on_main_thread(data):
            return {}
        calls = {call.get("tool_use_id") for call in data.get("tool_calls") or []}
        # The results have arrived, but the task that reads them may not have had its turn yet.
        for _ in range(_TURNS):
            if calls <= answered:
                break
            await asyncio.sleep(0)
        return {"continue_": False, "stopReason": words} if when() else {}

    return {"PostToolBatch": [hook_on(None, stop)]}
