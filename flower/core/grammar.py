"""The parser that all documents share: headings, fences, lists (behaviour 19). Pure, and never raises on any text.

It keeps the sections whose names it knows and drops everything else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_FENCE = re.compile(r"\s*(?P<mark>`{3,}|~{3,})(?P<info>.*)$")
_RULE = re.compile(r"\s*(?P<mark>[-*_])(?:\s*(?P=mark)){2,}\s*$")
# A mark needs a blank behind it, or Chinese text: "-v", "3.5" and "**bold**" begin with none.
_BULLET = re.compile(
    r"""
    \s* (?: [-*+] (?: \s+ | (?=[^\x00-\x7f]) ) | \d+ (?: [、)\uff09]\s* | \. (?: \s+ | (?=[^\x00-\x7f]) ) ) )?
    (?: \[[ xX]\]\s+ )? (?P<item>.*)
    """,
    re.VERBOSE,
)
_ADDENDUM = re.compile(r"##\s+\S.*[(\uff08]\d{1,2}:\d{2}:\d{2}[)\uff09]\s*$")


class Grammar:
    """Finds the sections of one kind of document.

    Args:
        names: a key for each section, and its names; whichever is longest wins on a line, in any order given here.
    """

    def __init__(self, names: Mapping[str, Sequence[str]]) -> None:
        self._keys = {name.casefold(): key for key, aliases in names.items() for name in aliases}
        longest_first = sorted((re.escape(name) for name in self._keys), key=len, reverse=True)
        # Possessive blanks: a long line of them must not cost more than its length.
        self._heading = re.compile(
            rf"""
            (?P<hashes>\#{{1,6}})? \s*+ (?P<bold>\*\*|__)? \s*+
            (?P<number>\d++\s*+[.\u3001)\uff09])? \s*+ (?P<inner>\*\*|__)?
            (?P<name>{"|".join(longest_first)})
            (?P<close>\*\*|__)? \s*+ (?P<colon>[:\uff1a])? (?P<late>\*\*|__)?
            (?P<rest>.*)
            """,
            re.VERBOSE | re.IGNORECASE,
        )

    def sections(self, text: str) -> dict[str, str]:
        """Each section that is there, by key. Of a repeated one the first with content is taken."""
        bodies: list[tuple[str, list[str]]] = []
        for line in without_fences(text).split("\n"):
            if (opened := self._open(line)) is not None:
                key, rest = opened
                bodies.append((key, [rest] if rest else []))
            elif bodies:
                bodies[-1][1].append(line)
        found: dict[str, str] = {}
        for key, lines in bodies:
            if not found.get(key):
                found[key] = body(lines)
        return found

    def _open(self, line: str) -> tuple[str, str] | None:
        """Key and text on the same line, if the line is a heading."""
        match = self._heading.fullmatch(line.strip())
        key = self._keys.get(match["name"].casefold()) if match else None
        if match is None or key is None:
            return None
        rest = match["rest"].strip()
        if match["hashes"] and not rest.strip("#"):
            rest = ""
        # A sentence that merely begins with a name must not open a section (D17).
        begun, ended = match["bold"] or match["inner"], match["close"] or match["late"]
        apart = match["colon"] or (begun and ended) or not rest or (_blank_after_name(match) and _marked(match))
        if not apart:
            return None
        if begun and not ended:
            rest = rest.removesuffix(begun).rstrip()
        return key, rest


def _blank_after_name(match: re.Match[str]) -> bool:
    return match.string[match.end("name") :][:1].isspace()


def _marked(match: re.Match[str]) -> bool:
    """Is there a mark in front that lets text follow a blank?

    A number is one for Chinese names only: "3. 边界 …" is a heading, "1. Reason about …" an item of a list.
    """
    return bool(match["hashes"]) or (bool(match["number"]) and not match["name"].isascii())


def without_fences(text: str) -> str:
    """The text without fenced code; from a fence that is never closed on, everything is gone."""
    return "\n".join(_outside_fences(text)[0])


def open_fence(text: str) -> int:
    """The number of the line in which a fence begins that is never closed; 0 if each is."""
    return _outside_fences(text)[1]


def _outside_fences(text: str) -> tuple[list[str], int]:
    kept: list[str] = []
    closing: str | None = None
    opened = 0
    for number, line in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), 1):
        fence = _FENCE.match(line)
        if closing is None:
            if fence is None or (fence["mark"][0] == "`" and "`" in fence["info"]):
                kept.append(line)
            else:
                closing, opened = fence["mark"], number
        elif fence is not None and fence["mark"].startswith(closing) and not fence["info"].strip():
            closing = None
    return kept, opened if closing is not None else 0


def body(lines: Sequence[str]) -> str:
    """A section's text: lines trimmed at the right, rules dropped, runs of blank lines made one."""
    trimmed = "\n".join(line.rstrip() for line in lines if not _RULE.match(line))
    return re.sub(r"\n{3,}", "\n\n", trimmed).strip()


def items(text: str) -> list[str]:
    """One item a line, without its list mark."""
    found = (_BULLET.fullmatch(line) for line in text.split("\n"))
    return [item for match in found if match is not None and (item := match["item"].strip())]


def split_addenda(text: str) -> tuple[str, str]:
    """The document, and what was added to it while a run went on: from the first such heading on, verbatim.

    The heading is `## <label>(<HH:MM:SS>)` (behaviour 6.11); the label is free.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for number, line in enumerate(lines):
        if _ADDENDUM.match(line):
            return "\n".join(lines[:number]), "\n".join(lines[number:]).strip("\n")
    return text, ""


def addenda(text: str) -> list[str]:
    """The single additions in a text, each with its heading."""
    found: list[list[str]] = []
    for line in split_addenda(text)[1].split("\n"):
        if _ADDENDUM.match(line):
            found.append([line])
        elif found:
            found[-1].append(line)
    return ["\n".join(lines).strip("\n") for lines in found]
