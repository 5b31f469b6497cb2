"""Tool calls that were cut get a result, or every later resume would be refused (behaviour 13.4, point 5)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, cast

from claude_agent_sdk import SessionStoreEntry

ORPHAN_TEXT = "[这一步被打断了,没有结果。需要的话重做。]"

_COPIED = ("sessionId", "cwd", "gitBranch", "version", "agentId", "isSidechain", "userType", "entrypoint")


def heal_orphans(entries: Sequence[SessionStoreEntry], *, text: str = ORPHAN_TEXT) -> list[SessionStoreEntry]:
    """Give each `tool_use` without a `tool_result` one that says that it was cut.

    The result stands in a new `user` entry right behind the assistant's, and what pointed to the assistant points to
    the new entry. The input stays as it is; healing what is healed changes nothing, and the same input always gets
    the same new ids.
    """
    answered = {str(block.get("tool_use_id")) for entry in entries for block in _blocks(entry, "tool_result")}
    healed: list[SessionStoreEntry] = []
    moved: dict[str, str] = {}
    for entry in entries:
        parent = moved.get(_field(entry, "parentUuid") or "")
        healed.append(entry if parent is None else _with(entry, parentUuid=parent))
        orphans = [str(block.get("id")) for block in _blocks(entry, "tool_use") if str(block.get("id")) not in answered]
        if orphans:
            result = _result(entry, orphans, text)
            healed.append(result)
            if name := entry.get("uuid"):
                moved[name] = result["uuid"]
    return healed


def _blocks(entry: SessionStoreEntry, kind: str) -> Iterator[dict[str, Any]]:
    """The content blocks of one kind, where the entry is of the role that may carry them."""
    if entry.get("type") != ("assistant" if kind == "tool_use" else "user"):
        return
    message = _field(entry, "message")
    content = message.get("content") if isinstance(message, dict) else None
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") == kind:
            yield block


def _result(assistant: SessionStoreEntry, orphans: list[str], text: str) -> SessionStoreEntry:
    name = hashlib.sha256("\n".join([str(assistant.get("uuid")), *orphans]).encode()).hexdigest()[:12]
    content = [{"type": "tool_result", "tool_use_id": call, "content": text, "is_error": False} for call in orphans]
    copied = {field: _field(assistant, field) for field in _COPIED if field in assistant}
    return _with(
        {"type": "user", "uuid": f"heal-{name}"},
        parentUuid=assistant.get("uuid"),
        message={"role": "user", "content": content},
        **copied,
    )


def _field(entry: SessionStoreEntry, name: str) -> Any:
    """A field that the SDK's type does not name: entries are open."""
    return cast("dict[str, Any]", entry).get(name)


def _with(entry: SessionStoreEntry, **fields: Any) -> SessionStoreEntry:
    return cast("SessionStoreEntry", {**entry, **fields})
