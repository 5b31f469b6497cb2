"""What the real API would refuse: the shape of a conversation. Pure.

A resume that went wrong shows here and nowhere else: a tool call without its result, a result of no call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")
_MOST_BREAKPOINTS = 4


def flaws(body: Any) -> list[str]:
    """Say what is wrong with a request to `/v1/messages`, worst first; empty if nothing is."""
    if not isinstance(body, Mapping):
        return ["the request body is not a JSON object"]
    return [*_head(body), *_messages(body.get("messages")), *_tools(body.get("tools")), *_breakpoints(body)]


def _head(body: Mapping[str, Any]) -> Iterator[str]:
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield "model: Field required"
    tokens = body.get("max_tokens")
    if not isinstance(tokens, int) or tokens < 1:
        yield "max_tokens: must be a positive number"


def _messages(messages: Any) -> Iterator[str]:
    if not isinstance(messages, list) or not messages:
        yield "messages: at least one message is required"
        return
    spoken = [(n, each) for n, each in enumerate(messages) if not _is(each, "system")]
    for n, message in spoken:
        yield from _message(n, message)
    if not spoken or not _is(spoken[0][1], "user"):
        yield "messages: first message must use the user role"
    elif not _is(spoken[-1][1], "user"):
        yield "messages: the conversation must end with a user message"
    yield from _pairs([message for _, message in spoken])


def _message(n: int, message: Any) -> Iterator[str]:
    if not (_is(message, "user") or _is(message, "assistant")):
        yield f"messages.{n}: role must be user or assistant"
        return
    content = message.get("content")
    if not content or not isinstance(content, str | list):
        yield f"messages.{n}: all messages must have non-empty content"
        return
    for m, block in enumerate(_blocks(message)):
        yield from _block(f"messages.{n}.content.{m}", block, str(message["role"]))


def _block(place: str, block: Mapping[str, Any], role: str) -> Iterator[str]:
    kind = block.get("type")
    if not isinstance(kind, str):
        yield f"{place}: type is missing"
    if kind == "text" and not str(block.get("text") or "").strip():
        yield f"{place}: text content blocks must be non-empty"
    if kind == "tool_use" and role != "assistant":
        yield f"{place}: tool_use blocks can only be in assistant messages"
    if kind == "tool_result" and role != "user":
        yield f"{place}: tool_result blocks can only be in user messages"
    if kind == "thinking" and not block.get("signature"):
        yield f"{place}: thinking blocks need their signature"


def _pairs(messages: Sequence[Any]) -> Iterator[str]:
    """Each call has its result in the very next user turn, and each result its call in the turn before."""
    waiting: list[str] = []
    known: set[str] = set()
    for role, blocks in _turns(messages):
        if role == "assistant":
            calls = [str(block.get("id")) for block in blocks if block.get("type") == "tool_use"]
            yield from (f"tool_use ids must be unique: {name}" for name in calls if name in known)
            known.update(calls)
            waiting = calls
            continue
        results = [str(block.get("tool_use_id")) for block in blocks if block.get("type") == "tool_result"]
        if missing := [name for name in waiting if name not in results]:
            yield f"tool_use ids were found without tool_result blocks immediately after: {', '.join(missing)}"
        if strange := [name for name in results if name not in waiting]:
            yield f"unexpected tool_use_id found in tool_result blocks: {', '.join(strange)}"
        if twice := sorted({name for name in results if results.count(name) > 1}):
            yield f"each tool_use must have a single result, found several for: {', '.join(twice)}"
        if results and not _leads(blocks):
            yield "tool_result blocks must come first in the message that follows tool_use blocks"
        waiting = []
    if waiting:
        yield f"tool_use ids were found without tool_result blocks: {', '.join(waiting)}"


def _leads(blocks: Sequence[Mapping[str, Any]]) -> bool:
    kinds = [block.get("type") == "tool_result" for block in blocks]
    return kinds == sorted(kinds, reverse=True)


def _turns(messages: Sequence[Any]) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    """The API reads consecutive messages of one role as one, so a split message is no flaw."""
    role, blocks = "", list[Mapping[str, Any]]()
    for message in messages:
        if not isinstance(message, Mapping):
            continue
        if message.get("role") != role and blocks:
            yield role, blocks
            blocks = []
        role = str(message.get("role"))
        blocks = [*blocks, *_blocks(message)]
    if blocks:
        yield role, blocks


def _tools(tools: Any) -> Iterator[str]:
    named = [str(tool.get("name", "")) for tool in _listed(tools) if isinstance(tool, Mapping)]
    yield from (f"tools: {name!r} is no name of a tool" for name in named if not _NAME.fullmatch(name))
    if twice := sorted({name for name in named if named.count(name) > 1}):
        yield f"tools: names must be unique, found twice: {', '.join(twice)}"


def _breakpoints(body: Mapping[str, Any]) -> Iterator[str]:
    places = [*_blocks({"content": body.get("system")}), *_listed(body.get("tools"))]
    places += [block for message in _listed(body.get("messages")) for block in _blocks(message)]
    count = sum(1 for place in places if isinstance(place, Mapping) and place.get("cache_control"))
    if count > _MOST_BREAKPOINTS:
        yield f"a maximum of {_MOST_BREAKPOINTS} blocks with cache_control may be provided, found {count}"


def _is(message: Any, role: str) -> bool:
    return isinstance(message, Mapping) and message.get("role") == role


def _blocks(message: Any) -> list[Mapping[str, Any]]:
    content = message.get("content") if isinstance(message, Mapping) else None
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, Mapping)] if isinstance(content, list) else []


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
