"""Entries of a transcript as the bundled program writes them, for the tests of the stores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from claude_agent_sdk import SessionStoreEntry


def fields(entry: SessionStoreEntry) -> dict[str, Any]:
    return cast("dict[str, Any]", entry)


def made(kind: str, uuid: str | None, parent: str | None, content: Any, **more: Any) -> SessionStoreEntry:
    message = {"role": kind, "content": content}
    return cast("SessionStoreEntry", {"type": kind, "uuid": uuid, "parentUuid": parent, "message": message, **more})


def use(call: str, name: str = "Bash", **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call, "name": name, "input": given}


def answer(call: str, content: Any = "ok", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call, "content": content, **more}


def denied(uuid: str, parent: str | None, call: str) -> SessionStoreEntry:
    """The refusal of a call by a hook."""
    said = answer(call, "PreToolUse:Bash hook error: delegate it", is_error=True)
    more = {"toolDenialKind": "permission-rule", "toolUseResult": "Error: delegate it"}
    return made("user", uuid, parent, [said], **more)


def api_error(uuid: str | None, parent: str | None, **more: Any) -> SessionStoreEntry:
    entry = made("assistant", uuid, parent, [{"type": "text", "text": "API Error: 529"}], isApiErrorMessage=True)
    fields(entry)["message"]["model"] = "<synthetic>"
    return cast("SessionStoreEntry", {**entry, **more})


def chained(*exchanges: tuple[dict[str, Any], dict[str, Any]]) -> list[SessionStoreEntry]:
    """Calls and their results, one entry each, in one chain."""
    entries: list[SessionStoreEntry] = [made("user", "start", None, "go")]
    for number, (call, result) in enumerate(exchanges):
        entries.append(made("assistant", f"a{number}", entries[-1].get("uuid"), [call]))
        entries.append(made("user", f"u{number}", f"a{number}", [result]))
    return entries


def told(entries: Sequence[SessionStoreEntry]) -> list[Any]:
    """What the results say, in order."""
    found = [fields(entry).get("message") for entry in entries]
    contents = [message.get("content") for message in found if isinstance(message, dict)]
    blocks = [block for content in contents if isinstance(content, list) for block in content]
    return [block.get("content") for block in blocks if isinstance(block, dict) and block.get("type") == "tool_result"]


HOSTILE: list[Any] = [
    {},
    {"type": "x"},
    {"type": "user"},
    {"type": "user", "message": None},
    {"type": "user", "message": "text"},
    {"type": "user", "message": {}},
    {"type": "user", "message": {"content": None}},
    {"type": "user", "message": {"content": "text"}},
    {"type": "user", "message": {"content": {"type": "tool_result", "tool_use_id": "t"}}},
    {"type": "user", "message": {"content": ["text", None, 7, [], {}, {"type": None}]}},
    {"type": "user", "message": {"content": [{"type": "tool_result"}]}, "toolDenialKind": "permission-rule"},
    {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": ["t"], "content": 7}]}},
    {"type": "user", "message": {"content": []}, "toolDenialKind": ["permission-rule"]},
    {"type": "assistant", "message": {"content": [{"type": "tool_use"}]}},
    {"type": "assistant", "message": {"content": [{"type": "tool_use", "id": {}, "name": 1, "input": "ls"}]}},
    {
        "type": "assistant",
        "message": {"content": [{"type": "tool_use", "id": "h", "name": "Bash", "input": {"command": 1}}]},
    },
    {"type": "assistant", "uuid": 7, "parentUuid": ["x"], "message": {"model": ["<synthetic>"]}},
    {"type": "cost-state", "totalCostUSD": "much"},
    {"type": "last-prompt", "leafUuid": None},
]
"""Entries of a shape that nobody expects."""
