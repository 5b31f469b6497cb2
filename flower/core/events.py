"""What the SDK said, as events: `normalize` turns one SDK message into plain values, and nothing else knows both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from claude_agent_sdk import (
    AssistantMessage,
    ConversationResetMessage,
    ResultMessage,
    SystemMessage,
    TaskProgressMessage,
    TaskStartedMessage,
    TaskUpdatedMessage,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)

from flower.core.unicode import well_formed

EventKind = Literal[
    "text",
    "thinking",
    "tool_call",
    "tool_result",
    "task",
    "system",
    "reset",
    "result",
    "error",
    "retry",
    "prompt",
    "ask",
    "step",
    "handoff",
    "unknown",
]
"""Grows by contract: a consumer keeps a branch for kinds that it does not know."""

SYNTHETIC = "<synthetic>"
"""The model of messages that the bundled program writes itself, for instance after a lost connection."""

_SUMMARY_CHARS, _RESULT_CHARS = 200, 500
_SUMMARY_KEYS = ("file_path", "command", "pattern")
_CONTEXT_KEYS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_BOUNDARIES = {"compact_boundary": "压缩", "microcompact_boundary": "微压缩"}
_DEEPEST = 40
_PLAIN = (int, float, bool, type(None))


@dataclass
class Event:
    """The one thing that a user interface needs to know.

    `kind`, `text`, `tool` and `payload` can be written as JSON. `raw` (the SDK message, or an `Ask`) cannot, and no
    consumer may need it.
    """

    kind: EventKind
    text: str = ""
    tool: str = ""
    payload: dict[str, Any] = field(default_factory=dict)
    raw: Any = None

    def __str__(self) -> str:
        if self.kind == "tool_call":
            return f"[{self.tool}] {self.text}"
        return self.text or f"<{self.kind}>"


def normalize(message: Any) -> list[Event]:
    """Return what a message says, in order. Pure; never raises, whatever the message is (behaviour 4.3)."""
    match message:
        case AssistantMessage() if _is_api_error(message):
            return [Event("error", _joined_text(message), payload={"synthetic": True}, raw=message)]
        case AssistantMessage():
            return list(_of_blocks(message, "text"))
        case UserMessage():
            return list(_of_blocks(message, "prompt"))
        case ResultMessage():
            return [_of_result(message)]
        case TaskStartedMessage() | TaskProgressMessage() | TaskUpdatedMessage():  # they are SystemMessages too
            return [Event("task", payload={"kind": type(message).__name__}, raw=message)]
        case ConversationResetMessage():
            return [Event("reset", "conversation reset", raw=message)]
        case SystemMessage():
            return [_of_system(message)]
        case _:
            return [Event("unknown", type(message).__name__, raw=message)]


def _is_api_error(message: AssistantMessage) -> bool:
    if getattr(message, "isApiErrorMessage", False) or message.model == SYNTHETIC:
        return True
    return any(_says_api_error(getattr(message, name, None)) for name in ("raw", "_raw"))


def _says_api_error(raw: Any) -> bool:
    if not isinstance(raw, Mapping):
        return False
    inner = raw.get("message")
    return bool(raw.get("isApiErrorMessage")) or (isinstance(inner, Mapping) and inner.get("model") == SYNTHETIC)


def _joined_text(message: AssistantMessage) -> str:
    content: Any = message.content
    if isinstance(content, str):
        return well_formed(content)
    return well_formed("".join(block.text for block in _listed(content) if isinstance(block, TextBlock)))


def _of_blocks(message: AssistantMessage | UserMessage, prose: EventKind) -> Iterator[Event]:
    content: Any = message.content
    meta = _meta(message)
    if isinstance(content, str):
        yield Event(prose, well_formed(content), payload=meta, raw=message)
        return
    for block in _listed(content):
        event = _of_block(block, prose)
        if event is not None:
            event.payload |= meta
            event.raw = message
            yield event


def _of_block(block: Any, prose: EventKind) -> Event | None:
    match block:
        case TextBlock():
            return Event(prose, well_formed(block.text))
        case ThinkingBlock():
            return Event("thinking", well_formed(block.thinking))
        case ToolUseBlock():
            given = _plain(block.input)
            return Event("tool_call", _summary(given), block.name, {"id": block.id, "input": given})
        case ToolResultBlock():
            text = well_formed(block.content[:_RESULT_CHARS]) if isinstance(block.content, str) else ""
            payload = {"tool_use_id": block.tool_use_id, "is_error": bool(block.is_error)}
            return Event("tool_result", text, payload=payload)
        case _:
            return None


def _summary(given: Any) -> str:
    if not isinstance(given, Mapping):
        return ""
    first = next((given[key] for key in _SUMMARY_KEYS if given.get(key)), "")
    return str(first)[:_SUMMARY_CHARS]


def _meta(message: AssistantMessage | UserMessage) -> dict[str, Any]:
    """Return what every event of a message carries (behaviour 4.4)."""
    parent = message.parent_tool_use_id
    meta: dict[str, Any] = {"subagent": bool(parent)}
    if parent:
        meta["parent_tool_use_id"] = parent
    usage = getattr(message, "usage", None)
    if usage:
        # All three: on a cache hit `input_tokens` alone is near zero.
        meta["context"] = sum(_count(usage, key) for key in _CONTEXT_KEYS)
    model = getattr(message, "model", None)
    if model and model != SYNTHETIC:
        meta["model"] = model
    return meta


def _count(usage: Any, key: str) -> int:
    value = usage.get(key) if isinstance(usage, Mapping) else getattr(usage, key, None)
    return value if isinstance(value, int) else 0


def _of_result(message: ResultMessage) -> Event:
    payload = {
        "session_id": message.session_id,
        "cost_usd": message.total_cost_usd,
        "num_turns": message.num_turns,
        "is_error": bool(message.is_error),
    }
    if str(message.terminal_reason or "").startswith("aborted"):
        payload["cut"] = True  # somebody stopped the turn: an error to the program, none to a person
    return Event("result", message.subtype, payload=payload, raw=message)


def _of_system(message: SystemMessage) -> Event:
    data = _plain(message.data)
    if not isinstance(data, dict):
        data = {}
    word = _BOUNDARIES.get(message.subtype)
    if word is None:
        return Event("system", message.subtype, payload=data, raw=message)
    found = data.get("compact_metadata") or data.get("compactMetadata")
    facts = found if isinstance(found, dict) else {}
    payload = {
        "trigger": facts.get("trigger", "?"),
        "pre_tokens": facts.get("pre_tokens", facts.get("preTokens")),
        "post_tokens": facts.get("post_tokens", facts.get("postTokens")),
        "micro": message.subtype.startswith("micro"),
        "subtype": message.subtype,
    }
    text = f"{word}({payload['trigger']}) {payload['pre_tokens']} → {payload['post_tokens']} tokens"
    return Event("reset", text, payload=payload, raw=message)


def _listed(content: Any) -> list[Any]:
    return content if isinstance(content, list) else []


def _plain(value: Any, depth: int = 0) -> Any:
    """Copy a value into what JSON can hold; what it cannot becomes its text."""
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, _PLAIN):
        return value
    if depth < _DEEPEST:
        if isinstance(value, Mapping):
            return {well_formed(str(key)): _plain(inner, depth + 1) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [_plain(inner, depth + 1) for inner in value]
    return type(value).__name__
