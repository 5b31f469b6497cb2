"""Requests as the bundled program makes them, for tests without it."""

from __future__ import annotations

from typing import Any

Message = dict[str, Any]


def user(*texts: str) -> Message:
    return {"role": "user", "content": [{"type": "text", "text": text} for text in texts]}


def says(text: str) -> Message:
    return {"role": "assistant", "content": [{"type": "text", "text": text}]}


def uses(name: str, call: str, given: dict[str, Any] | None = None, *, text: str = "") -> Message:
    content: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    return {
        "role": "assistant",
        "content": [*content, {"type": "tool_use", "id": call, "name": name, "input": given or {}}],
    }


def gives(call: str, text: str, *, error: bool = False, then: str = "") -> Message:
    content: list[dict[str, Any]] = [
        {"type": "tool_result", "tool_use_id": call, "content": text, **({"is_error": True} if error else {})}
    ]
    return {"role": "user", "content": [*content, *([{"type": "text", "text": then}] if then else [])]}


def body(*messages: Message, system: str = "You are Main.", tools: tuple[str, ...] = ("Bash",), **more: Any) -> Message:
    return {
        "model": "claude-sonnet-5-5",
        "max_tokens": 1000,
        "system": [{"type": "text", "text": system}],
        "tools": [{"name": name, "input_schema": {"type": "object"}} for name in tools],
        "messages": list(messages),
        **more,
    }


def headers(session: str = "s1", agent: str = "") -> dict[str, str]:
    return {"x-claude-code-session-id": session, **({"x-claude-code-agent-id": agent} if agent else {})}
