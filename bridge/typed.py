"""Commands typed in a thread: `!stop words` (product 1.6). Pure.

What begins with `!` is a command if the word behind it is one, or is so near to one that it must be a slip: a slip is
never mail to the agent. Anything else (`!nice work`) is ordinary words (TH-8).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

BUILT = ("stop", "end", "kill", "continue", "status", "help", "answer", "skip")
LATER = (
    *("asks", "cost", "files", "get", "log", "diff", "budget", "timeout", "quiet", "normal", "verbose"),
    *("watch", "unwatch", "hand", "invite", "catchup", "model"),
)
"""Commands of the product that answer «not built yet»."""

LONG = 6
"""Commands of so many letters may have two slips in them, shorter ones a single one."""

_BANG = re.compile(r"[!！﹗ǃ]+")
_NAME = re.compile(r"[A-Za-z]+")
_JOINT = " \t\n,.:;-–—−‐‑…。，：；、"
"""What people put between a command and its words; typographic dashes come from phones."""


@dataclass(frozen=True, slots=True)
class TypedCommand:
    """A command and what stands behind it, blanks and joints taken off."""

    name: str
    rest: str


@dataclass(frozen=True, slots=True)
class Mistyped:
    """Nearly a command."""

    name: str
    near: str


def read_typed(text: str) -> TypedCommand | Mistyped | None:
    """Read a command; None: the words are no command."""
    text = text.strip()
    bang = _BANG.match(text)
    if bang is None:
        return None
    behind = text[bang.end() :]
    word = _NAME.match(behind.lstrip())
    if word is None:
        return None
    name = word[0].lower()
    if name in BUILT or name in LATER:  # `! stop` and `!!stop` too: nobody in a hurry should have to type it again
        return TypedCommand(name, _rest(behind.lstrip()[word.end() :]))
    near = nearest(name)
    return Mistyped(name, near) if near else None


def nearest(name: str) -> str:
    """Return the command that a slip was meant to be, or nothing: `stopp`, `sotp` and `stp` are near, `nice` is not."""
    slips = {known: _slips(name, known) for known in (*BUILT, *LATER)}
    best = min(slips, key=lambda known: slips[known])
    return best if slips[best] <= (2 if len(best) >= LONG else 1) else ""


def _slips(typed: str, meant: str) -> int:
    """Count the slips of a thumb: a letter too many, too few, wrong, or two in the wrong order."""
    before: list[int] = []
    row = list(range(len(meant) + 1))
    for i, char in enumerate(typed, 1):
        before, last = row, before
        row = [i]
        for j, wanted in enumerate(meant, 1):
            least = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (char != wanted))
            if i > 1 and j > 1 and char == meant[j - 2] and typed[i - 2] == wanted:
                least = min(least, last[j - 2] + 1)
            row.append(least)
    return row[-1]


def _rest(text: str) -> str:
    rest = text.strip().lstrip(_JOINT).strip()
    return rest if any(char.isalnum() for char in rest) else ""
