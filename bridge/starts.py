"""The words that start a run: the request, and options behind `--` (product 1.1). Pure.

Nothing starts by accident: an option that is not known, is there twice, or lacks its value is refused. The request
itself is kept to the character, quotes and line ends included.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from bridge.texts import Texts

LONGEST = 20_000
"""Characters of a request."""

KNOWN = ("workspace", "flow", "budget", "asks", "timeout", "new")
LATER = ("isolate", "watch")
RESERVED = ("help", "list", "status", "asks", "digest", "catchup", "board", "follow", "stop-all")
"""Words that alone are a wish to the bot and no request (product 1.1): nothing starts by accident."""
EXAMPLES = {"workspace": "site", "flow": "starter", "budget": "5", "asks": "3", "timeout": "45m"}

# Phones make one dash of two: a long dash stuck to a word counts when the word is an option, or nearly one.
_OPTION = re.compile(r"(?<!\S)(?:(?P<two>--)|[—–])(?P<name>[A-Za-z][A-Za-z-]*)?(?=[\s=]|$)")
_VALUE = re.compile(r"""(?:[ \t]*=[ \t]*|\s+)(?P<value>"[^"\n]*"|“[^”\n]*”|„[^“\n]*“|'[^'\n]*'|‘[^’\n]*’|\S+)""")
_QUOTED = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|\"[^\"\n]*\"|“[^”\n]*”", re.S)
_SPAN = re.compile(r"(?:(\d{1,4})\s*h)?\s*(?:(\d{1,5})\s*m(?:in)?)?\s*(?:(\d{1,6})\s*s)?", re.I)
NEAR = 0.7


@dataclass(frozen=True, slots=True, kw_only=True)
class StartWish:
    """What somebody wants to be started."""

    request: str
    workspace: str = ""
    """Empty: the default one. Whether it exists is for the settings to say."""
    flow: str = ""
    budget: float | None = None
    """US dollars."""
    asks: int | None = None
    """Most questions; None: as many as it likes."""
    timeout: float | None = None
    """Seconds that a question waits; 0: it does not wait; None: the default."""
    new: bool = False

    @property
    def options(self) -> dict[str, Any]:
        """What was typed, for `RunRecord.options`; what was left out is not there."""
        typed: dict[str, Any] = {}
        if self.flow:
            typed["flow"] = self.flow
        for name in ("budget", "asks", "timeout"):
            if (value := getattr(self, name)) is not None:
                typed[name] = value
        if self.new:
            typed["new"] = True
        return typed


@dataclass(frozen=True, slots=True)
class Problem:
    """Why nothing is started, for the person, with the cure."""

    text: str


def parse_start(text: str, texts: Texts) -> StartWish | Problem:
    """Read the words of a start.

    Options may stand anywhere in front of, in or behind the request, but not in quotes or code. A bare `--` ends them:
    what stands behind it belongs to the request.
    """
    return _Start(texts).read(text)


class _Refused(Exception):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


@dataclass(frozen=True, slots=True)
class _Start:
    texts: Texts

    def read(self, text: str) -> StartWish | Problem:
        replies = self.texts.replies
        if (word := text.strip().lower()) in RESERVED:
            return Problem(replies.start_help if word == "help" else replies.start_later.format(word=word))
        try:
            values, request = self.take_apart(text)
        except _Refused as refused:
            return Problem(refused.text)
        if not any(char.isalnum() for char in request):
            return Problem(replies.start_empty)
        if len(request) > LONGEST:
            return Problem(replies.start_too_long.format(n=len(request), most=LONGEST))
        return replace(StartWish(request=request), **values)

    def take_apart(self, text: str) -> tuple[dict[str, Any], str]:
        """Return the values of the options, and the text without them."""
        quoted = [match.span() for match in _QUOTED.finditer(text)]
        values: dict[str, Any] = {}
        kept: list[str] = []
        at = 0
        while (option := self.next_option(text, at, quoted)) is not None:
            kept.append(text[at : option.start()])
            name = option["name"]
            if name is None:  # a bare --
                at = option.end()
                break
            name = self.known(name.lower())
            if name in values:
                raise _Refused(self.texts.replies.start_twice.format(option=name))
            values[name], at = self.value(name, text, option.end())
        kept.append(text[at:])
        return values, _joined(kept)

    def next_option(self, text: str, at: int, quoted: list[tuple[int, int]]) -> re.Match[str] | None:
        for found in _OPTION.finditer(text, at):
            if any(start <= found.start() < end for start, end in quoted):
                continue
            name = (found["name"] or "").lower()
            if found["two"] is not None or (name and (name in (*KNOWN, *LATER) or _nearest(name))):
                return found
        return None

    def known(self, name: str) -> str:
        replies = self.texts.replies
        if name in LATER:
            raise _Refused(replies.start_not_built.format(option=name))
        if name in KNOWN:
            return name
        if near := _nearest(name):
            raise _Refused(replies.start_unknown_near.format(option=name, near=near))
        known = ", ".join(f"--{each}" for each in KNOWN)
        raise _Refused(replies.start_unknown.format(option=name, known=known))

    def value(self, name: str, text: str, at: int) -> tuple[Any, int]:
        if name == "new":
            return True, at
        found = _VALUE.match(text, at)
        if found is None or _OPTION.match(found["value"]):
            raise _Refused(self.texts.replies.start_needs_value.format(option=name, example=EXAMPLES[name]))
        typed = found["value"]
        value = typed[1:-1] if len(typed) > 1 and typed[0] in "\"“„'‘" else typed
        read, expected = _READERS[name]
        parsed = read(value)
        if parsed is None:
            wanted = getattr(self.texts.replies, expected)
            raise _Refused(self.texts.replies.start_bad_value.format(option=name, value=value[:40], expected=wanted))
        return parsed, found.end()


def _joined(parts: list[str]) -> str:
    """Put the request together again where an option was taken out of it."""
    whole = ""
    for part in parts:
        if whole and not whole[-1].isspace() and part and not part[0].isspace():
            whole += " "
        whole += part if not whole or whole[-1].isspace() is False else part.lstrip(" \t")
    return whole.strip()


def _nearest(name: str) -> str:
    found = difflib.get_close_matches(name, (*KNOWN, *LATER), n=1, cutoff=NEAR)
    return found[0] if found else ""


def _name(value: str) -> str | None:
    return value if value.strip() and "\n" not in value else None


def _dollars(value: str) -> float | None:
    try:
        amount = float(value.strip().removeprefix("$").removesuffix("$"))
    except ValueError:
        return None
    return amount if math.isfinite(amount) and 0 < amount <= 1_000_000 else None


def _count(value: str) -> int | None:
    return int(value) if value.isascii() and value.isdecimal() and len(value) <= 4 else None


def _seconds(value: str) -> float | None:
    if value == "0":
        return 0.0
    found = _SPAN.fullmatch(value.strip())
    if found is None or not any(found.groups()):
        return None
    hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return float(hours * 3_600 + minutes * 60 + seconds)


_READERS: dict[str, tuple[Callable[[str], Any], str]] = {
    "workspace": (_name, "expected_name"),
    "flow": (_name, "expected_name"),
    "budget": (_dollars, "expected_budget"),
    "asks": (_count, "expected_asks"),
    "timeout": (_seconds, "expected_timeout"),
}
