"""What a request to the model says: the bundled program's JSON as plain values. Pure.

The program sends a whole conversation with every request, in more shapes than its own kind: consecutive messages of
one role, `system` messages between the others, reminders inside texts and tool results, and answers that it made up
itself. All of that is evened out here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from flower import texts

INTERRUPTED = "[Request interrupted by user"
"""How the program tells the model of a cut; stands in a user message."""

BROKEN = "Your response above was cut off mid-stream"
"""How the program tells the model that a stream broke behind a block that had come whole; stands in a reminder."""

_MADE_UP = frozenset({"No response requested.", "(no content)", ""})
"""Answers that the program puts into a conversation itself, where two user messages would stand together."""

_CUT_MARKS = (
    "doesn't want to proceed with this tool use",
    "doesn't want to take this action",
    INTERRUPTED,
    *(texts.of(language).stores.orphan for language in texts.LANGUAGES),
    *(texts.of(language).stores.interrupted for language in texts.LANGUAGES),
)
"""In the result of a tool call that was cut; the last ones are what flower's stores put in place of a result."""

_REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)
_WORKSPACE = re.compile(r"^\W*(?:Primary working|Working) directory: *(?P<path>\S.*?)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one tool call, without the program's reminders."""

    call: str
    text: str
    error: bool = False

    @property
    def cut(self) -> bool:
        """Whether the call did not run to its end because somebody stopped it."""
        return any(mark in self.text for mark in _CUT_MARKS)


@dataclass(frozen=True, slots=True)
class Turn:
    """Consecutive messages of one role, put together."""

    role: Literal["user", "assistant"]
    texts: tuple[str, ...] = ()
    results: tuple[Result, ...] = ()
    calls: tuple[str, ...] = ()
    """Ids of the tool calls, in order."""
    broken: bool = False
    """The program says that the stream of the answer before it broke."""

    @property
    def text(self) -> str:
        return "\n".join(self.texts).strip()

    @property
    def is_answer(self) -> bool:
        """Whether a model said it, and not the program in its place."""
        return self.role == "assistant" and (bool(self.calls) or self.text not in _MADE_UP)


@dataclass(frozen=True)
class Conversation:
    """One request to the model."""

    session: str
    agent: str
    """Id of the subagent that asks; empty for the main agent."""
    parent: str
    """Id of the subagent that sent this one; empty in the first generation."""
    model: str
    stream: bool
    system: str
    tools: tuple[str, ...]
    turns: tuple[Turn, ...]
    body: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def workspace(self) -> str:
        """The working directory that the program names, empty if it names none."""
        found = _WORKSPACE.search(self.system) or _WORKSPACE.search(self.history)
        return found["path"] if found else ""

    @cached_property
    def history(self) -> str:
        """All texts and tool results, oldest first."""
        return "\n".join(text for turn in self.turns for text in _all_texts(turn))

    @cached_property
    def opening(self) -> str:
        """The first thing that was said to the agent."""
        return next((turn.text for turn in self.turns if turn.role == "user"), "")

    def since(self, position: int) -> News:
        """What was said to the agent after turn number `position` (-1: all of it)."""
        fresh = [turn for turn in self.turns[position + 1 :] if turn.role == "user"]
        said = [text for turn in fresh for text in turn.texts]
        return News(
            prompt="\n".join(text for text in said if not text.startswith(INTERRUPTED)).strip(),
            results=tuple(result for turn in fresh for result in turn.results),
            interrupted=any(text.startswith(INTERRUPTED) for text in said),
            broken=any(turn.broken for turn in fresh),
        )


@dataclass(frozen=True, slots=True)
class News:
    """What the agent has not answered yet."""

    prompt: str
    results: tuple[Result, ...] = ()
    interrupted: bool = False
    broken: bool = False

    @property
    def result(self) -> str:
        return "\n".join(result.text for result in self.results)


def read(body: Mapping[str, Any], headers: Mapping[str, str]) -> Conversation:
    """Read a request. `headers` have lower-case names. Never raises on a body that `request_rules` finds sound."""
    messages = [each for each in body.get("messages") or [] if isinstance(each, Mapping)]
    asides = [text for each in messages if each.get("role") == "system" for text in _texts(each.get("content"))]
    return Conversation(
        session=headers.get("x-claude-code-session-id", ""),
        agent=headers.get("x-claude-code-agent-id", ""),
        parent=headers.get("x-claude-code-parent-agent-id", ""),
        model=str(body.get("model", "")),
        stream=bool(body.get("stream")),
        system="\n".join([*_texts(body.get("system")), *asides]),
        tools=tuple(str(tool.get("name", "")) for tool in body.get("tools") or [] if isinstance(tool, Mapping)),
        turns=tuple(_turns(messages)),
        body=body,
    )


def without_reminders(text: str) -> str:
    """Take off what the program adds to texts for the model."""
    return _REMINDER.sub("", text).strip()


def _turns(messages: Sequence[Mapping[str, Any]]) -> Iterator[Turn]:
    role: Any = None
    content: list[Any] = []
    for message in messages:
        if message.get("role") not in ("user", "assistant"):
            continue
        if message["role"] != role and content:
            yield _turn(role, content)
            content = []
        role = message["role"]
        content += _blocks(message.get("content"))
    if content:
        yield _turn(role, content)


def _turn(role: Literal["user", "assistant"], content: Sequence[Mapping[str, Any]]) -> Turn:
    raw = [str(block.get("text", "")) for block in content if block.get("type") == "text"]
    said = [without_reminders(text) for text in raw]
    return Turn(
        role,
        texts=tuple(text for text in said if text),
        results=tuple(_result(block) for block in content if block.get("type") == "tool_result"),
        calls=tuple(str(block.get("id", "")) for block in content if block.get("type") == "tool_use"),
        broken=role == "user" and any(BROKEN in text for text in raw),
    )


def _result(block: Mapping[str, Any]) -> Result:
    text = without_reminders("\n".join(_texts(block.get("content"))))
    return Result(str(block.get("tool_use_id", "")), text, error=bool(block.get("is_error")))


def _blocks(content: Any) -> list[Mapping[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content or [] if isinstance(block, Mapping)]


def _texts(content: Any) -> list[str]:
    return [str(block.get("text", "")) for block in _blocks(content) if block.get("type") == "text"]


def _all_texts(turn: Turn) -> list[str]:
    return [*(result.text for result in turn.results), *turn.texts]
