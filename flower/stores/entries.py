"""Reading entries of a transcript, whose shape nobody guarantees, and changing copies of them; pure.

An entry may lack a message, its content may be anything, ids may be missing. What does not look as expected is
handed on as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from claude_agent_sdk import SessionStoreEntry

Block = dict[str, Any]

_CARRIERS = {"tool_use": "assistant", "tool_result": "user"}


def field(entry: SessionStoreEntry, name: str) -> Any:
    """A field that the SDK's type does not name: entries are open."""
    return cast("dict[str, Any]", entry).get(name)


def named(entry: SessionStoreEntry, name: str) -> str | None:
    """A field that names an entry, None unless it is a text that says something."""
    value = field(entry, name)
    return value if isinstance(value, str) and value else None


def changed(entry: SessionStoreEntry, *without: str, **fields: Any) -> SessionStoreEntry:
    """A copy with other fields, and without some."""
    kept = {name: value for name, value in entry.items() if name not in without}
    return cast("SessionStoreEntry", {**kept, **fields})


def with_content(entry: SessionStoreEntry, content: list[Any], *without: str) -> SessionStoreEntry:
    return changed(entry, *without, message={**field(entry, "message"), "content": content})


def untouchable(entry: SessionStoreEntry) -> bool:
    """Summaries of a compaction and what the program says to itself stay as they are (API 10)."""
    return bool(field(entry, "isCompactSummary") or field(entry, "isMeta"))


def content_of(entry: SessionStoreEntry) -> list[Any]:
    """The blocks of its message; empty if it has none, or a text."""
    message = field(entry, "message")
    content = message.get("content") if isinstance(message, dict) else None
    return content if isinstance(content, list) else []


def blocks(entry: SessionStoreEntry, kind: str) -> Iterator[tuple[int, Block]]:
    """Place and block, for all of one kind, where the entry is of the role that may carry them."""
    if entry.get("type") == _CARRIERS[kind]:
        for place, block in enumerate(content_of(entry)):
            if isinstance(block, dict) and block.get("type") == kind:
                yield place, block


def call_of(block: Block) -> str | None:
    """The id of the call that a `tool_use` is, or that a `tool_result` answers."""
    value = block.get("id" if block.get("type") == "tool_use" else "tool_use_id")
    return value if isinstance(value, str) and value else None


def text_of(content: Any) -> str | None:
    """The plain text of a result; None where there is anything else in it, so that nothing is lost.

    One text comes back as it is, several joined.
    """
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return None
    parts: list[str] = []
    for block in content:
        text = block.get("text") if isinstance(block, dict) and block.get("type") == "text" else None
        if not isinstance(text, str):
            return None
        parts.append(text)
    return "".join(parts)


def is_api_error(entry: SessionStoreEntry) -> bool:
    """Whether the program made this entry up to tell of an error of the API (behaviour 13.4, point 2)."""
    message = field(entry, "message")
    model = message.get("model") if isinstance(message, dict) else None
    return bool(field(entry, "isApiErrorMessage")) or model == "<synthetic>"


def is_denial(entry: SessionStoreEntry) -> str | None:
    """The id of the call that was denied by a rule or a hook; None if the entry tells of no such thing.

    The mark stands on the entry, so of several results in it the first that is an error is meant.
    """
    if field(entry, "toolDenialKind") != "permission-rule":
        return None
    results = [block for _, block in blocks(entry, "tool_result") if call_of(block)]
    refused = [block for block in results if block.get("is_error")]
    return call_of((refused or results)[0]) if results else None
