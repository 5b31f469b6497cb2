"""What a button means, as a short token that the platform carries and gives back (`Button.action`, `Tap.action`).

A token names the run, and for an ask the attempt that asked: a button of an older attempt decodes to that attempt, and
can never hit a question of a newer one (rulings R2). It holds no secret and no words of people. Pure.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Literal, assert_never, get_args

from bridge.model import RunId

Verb = Literal["hold", "continue", "end", "oracle"]
"""What can be done to a run. `stop` is read as `hold`: a bare stop cuts and waits (product 1.6)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OnRun:
    """A button of the card."""

    verb: Verb
    run: RunId


@dataclass(frozen=True, slots=True, kw_only=True)
class Choose:
    """An option of an ask. `option` counts from 0."""

    run: RunId
    fence: int
    ask: str
    option: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InWords:
    """The form that answers an ask."""

    run: RunId
    fence: int
    ask: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    """Let the agent decide."""

    run: RunId
    fence: int
    ask: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PickAnswer:
    """Words that could be an answer are one, to this ask. `note` names the message (`note_of`)."""

    run: RunId
    fence: int
    ask: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PickMail:
    """Words that could be an answer are a note for the agent."""

    run: RunId
    note: str


Action = OnRun | Choose | InWords | Skip | PickAnswer | PickMail

LONGEST = 200
"""Characters of a token; platforms take 255."""

_PART = re.compile(r"[A-Za-z0-9_.-]+")


def note_of(id: str) -> str:  # noqa: A002 - the word of the wire
    """Name a person's message in a token: short, and the same when it is delivered again."""
    return hashlib.sha256(id.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def encode(action: Action) -> str:
    """Return the token of an action.

    Raises:
        ValueError: a part holds characters that no run, ask or note has.
    """
    parts: list[str]
    match action:
        case OnRun():
            parts = [action.verb, action.run]
        case Choose():
            parts = ["answer", action.run, str(action.fence), action.ask, str(action.option)]
        case InWords():
            parts = ["words", action.run, str(action.fence), action.ask]
        case Skip():
            parts = ["skip", action.run, str(action.fence), action.ask]
        case PickAnswer():
            parts = ["pick", action.run, str(action.fence), action.ask, action.note]
        case PickMail():
            parts = ["mail", action.run, action.note]
        case _:
            assert_never(action)
    token = ":".join(parts)
    if len(token) > LONGEST or not all(_PART.fullmatch(part) for part in parts):
        raise ValueError(f"not an action: {token[:LONGEST]!r}")
    return token


def decode(token: str) -> Action | None:
    """Read a token; None: it is none of ours, or of a version that we do not speak."""
    if len(token) > LONGEST:
        return None
    name, *parts = token.split(":")
    if not all(_PART.fullmatch(part) for part in parts):
        return None
    match (name, parts):
        case ("stop", [run]):
            return OnRun(verb="hold", run=RunId(run))
        case (("hold" | "continue" | "end" | "oracle") as verb, [run]) if verb in get_args(Verb):
            return OnRun(verb=verb, run=RunId(run))
        case ("mail", [run, note]):
            return PickMail(run=RunId(run), note=note)
        case (_, [run, fence, ask, *rest]) if (number := _number(fence)) is not None:
            return _on_ask(name, RunId(run), number, ask, rest)
        case _:
            return None


def _on_ask(name: str, run: RunId, fence: int, ask: str, rest: list[str]) -> Action | None:
    match (name, rest):
        case ("answer", [option]) if (number := _number(option)) is not None:
            return Choose(run=run, fence=fence, ask=ask, option=number)
        case ("words", []):
            return InWords(run=run, fence=fence, ask=ask)
        case ("skip", []):
            return Skip(run=run, fence=fence, ask=ask)
        case ("pick", [note]):
            return PickAnswer(run=run, fence=fence, ask=ask, note=note)
        case _:
            return None


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 and str(int(text)) == text else None
