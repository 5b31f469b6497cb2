"""An answer as the API sends it: whole, or as a stream of events. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flower.testing.director import Plan
from flower.testing.story import Usage

ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_SIGNATURE = "c2NyaXB0ZWQ="
_WHOLE = 4000
"""Characters of a delta where nobody watches."""
_TICKS = 10
"""Deltas a second where somebody does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """One event of a stream."""

    name: str
    data: Mapping[str, Any]
    wait: float = 0.0
    """Seconds to wait before it."""
    block: int = -1
    characters: int = 0
    """How much of the answer it carries, of which block; what a lost answer costs depends on it."""
    thinking: bool = False
    """Whether it belongs to a block of thinking."""

    def encoded(self) -> bytes:
        # Escaped, so that a story may hold what a model can really send and UTF-8 cannot: half a surrogate pair.
        body = json.dumps({"type": self.name, **self.data})
        return f"event: {self.name}\ndata: {body}\n\n".encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A plan with its ids: what goes over the wire."""

    id: str
    model: str
    blocks: Sequence[Mapping[str, Any]]
    stop: str
    usage: Mapping[str, int]
    pace: float | None = None

    def message(self) -> dict[str, Any]:
        """The whole message, for a request without a stream."""
        return self._message(list(self.blocks), self.stop, self.usage)

    def beats(self) -> Iterator[Beat]:
        """The events in the API's order."""
        start = self._message([], None, {**self.usage, "output_tokens": 1})
        yield Beat(name="message_start", data={"message": start})
        for n, block in enumerate(self.blocks):
            yield from self._block(n, block)
        delta = {"delta": {"stop_reason": self.stop, "stop_sequence": None}, "usage": dict(self.usage)}
        yield Beat(name="message_delta", data=delta)
        yield Beat(name="message_stop", data={})

    def _message(self, content: list[Any], stop: str | None, usage: Mapping[str, int]) -> dict[str, Any]:
        return {
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": content,
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": dict(usage),
        }

    def _block(self, n: int, block: Mapping[str, Any]) -> Iterator[Beat]:
        empty, deltas = _parts(block)
        thinks = block["type"] == "thinking"
        # The program counts a tool's name among the characters of its block.
        named = len(str(block["name"])) if block["type"] == "tool_use" else 0
        begin = {"index": n, "content_block": empty}
        yield Beat(name="content_block_start", data=begin, block=n, characters=named, thinking=thinks)
        for kind, field, text in deltas:
            pace = None if kind == "input_json_delta" else self.pace
            for piece in _pieces(text, pace):
                yield Beat(
                    name="content_block_delta",
                    data={"index": n, "delta": {"type": kind, field: piece}},
                    wait=len(piece) / pace if pace else 0.0,
                    block=n,
                    characters=0 if kind == "signature_delta" else len(piece),
                    thinking=thinks,
                )
        yield Beat(name="content_block_stop", data={"index": n}, block=n, thinking=thinks)


def blocks_of(plan: Plan, calls: Sequence[str]) -> list[dict[str, Any]]:
    """The content of a plan's answer. `calls` are the ids of its tool calls."""
    blocks: list[dict[str, Any]] = []
    if plan.think:
        blocks.append({"type": "thinking", "thinking": plan.think, "signature": _SIGNATURE})
    if plan.say:
        blocks.append({"type": "text", "text": plan.say})
    for name, call in zip(calls, plan.call, strict=True):
        blocks.append({"type": "tool_use", "id": name, "name": call.tool, "input": dict(call.input)})
    return blocks


def stop_of(plan: Plan) -> str:
    return plan.stop or ("tool_use" if plan.call else "end_turn")


def reported(usage: Usage) -> dict[str, int]:
    """Usage in the API's words."""
    return {
        "input_tokens": usage.input or 0,
        "cache_creation_input_tokens": usage.cache_write or 0,
        "cache_read_input_tokens": usage.cache_read or 0,
        "output_tokens": usage.output or 0,
    }


def error_body(status: int, message: str, *, kind: str = "", request: str = "") -> dict[str, Any]:
    """The body of an HTTP error."""
    named = kind or ERROR_TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")
    return {"type": "error", "error": {"type": named, "message": message}, "request_id": request}


def charged_when_lost(sent: Sequence[Beat], *, broke: bool = False) -> int:
    """Output tokens that the program reckons for an answer that did not come to its end; 0: it charges nothing at all.

    A third of each block's characters, at least 1, when it cut the stream itself or lost it. After an error event
    (`broke`) it charges 1 if a block was complete and one that is no thinking had begun, and else nothing. Measured,
    SDK 0.2.189.
    """
    if broke:
        complete = any(beat.name == "content_block_stop" for beat in sent)
        return int(complete and any(beat.block >= 0 and not beat.thinking for beat in sent))
    characters: dict[int, int] = {}
    for beat in sent:
        characters[beat.block] = characters.get(beat.block, 0) + beat.characters
    return max(1, sum(round(count / 3) for count in characters.values())) if sent else 0


def _parts(block: Mapping[str, Any]) -> tuple[dict[str, Any], list[tuple[str, str, str]]]:
    """Return a block as it starts, and what is then added: kind of delta, its field, the text."""
    match block["type"]:
        case "text":
            return {"type": "text", "text": ""}, [("text_delta", "text", block["text"])]
        case "thinking":
            deltas = [
                ("thinking_delta", "thinking", block["thinking"]),
                ("signature_delta", "signature", block["signature"]),
            ]
            return {"type": "thinking", "thinking": "", "signature": ""}, deltas
        case _:
            given = json.dumps(block["input"], ensure_ascii=False)
            empty = {"type": "tool_use", "id": block["id"], "name": block["name"], "input": {}}
            return empty, [("input_json_delta", "partial_json", given)]


def _pieces(text: str, pace: float | None) -> Iterator[str]:
    size = max(1, round(pace / _TICKS)) if pace else _WHOLE
    for start in range(0, len(text), size):
        yield text[start : start + size]
