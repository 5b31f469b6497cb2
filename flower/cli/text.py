"""Text for a terminal: cleaned of what could move the cursor or lie, measured, cut and wrapped. Pure.

What models and tools write is hostile: it may hold any escape sequence, unfinished ones included. Only colours (SGR)
come through, and no line leaves a colour open. Widths err on the wide side, so that a line never runs over.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

__all__ = ["ELLIPSIS", "RESET", "clean", "clusters", "cut", "cut_left", "one_line", "plain", "unseen", "width", "wrap"]

RESET = "\x1b[0m"
ELLIPSIS = "..."

_TAB = " " * 4
_LINE_ENDS = re.compile("\r\n?|[\n\v\f\x85\u2028\u2029]")
_SGR = re.compile(r"\x1b\[[0-9;:]{0,64}m")
# One pass, so that what is left of one sequence never makes another. A string (OSC, DCS, ...) without its end takes
# the rest of its line, no more: a terminal would swallow everything after it.
_SEQUENCE = re.compile(
    r"(?P<sgr>\x1b\[[0-9;:]{0,64}m)"
    r"|(?:\x1b[\]PX^_k]|[\x90\x98\x9d-\x9f])[^\x07\x18\x1a\x1b\x9c\n]*(?:\x07|\x18|\x1a|\x9c|\x1b\\|(?=\x1b)|$|(?=\n))"
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    r"|\x1b[ -/]*[0-~]?"
)
# Controls, halves of surrogate pairs, and characters that nobody sees but that reorder, hide or pad text.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ud800-\udfff\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
# Joiners shape scripts and emoji; between plain letters they only hide.
_IDLE_JOINER = re.compile("(^|[\x00-\x7f])[\u200c\u200d]+", re.MULTILINE)

_JOINER, _EMOJI_STYLE = "\u200d", "\ufe0f"
_JOINERS = frozenset("\u200c\u200d")
_LONGEST = 12
"""Code points in what counts as one character; more marks than that are a tower, and are left out."""

_NEVER_FIRST = frozenset("，。、；：？！）」』】》〉〕”’…—,.;:?!)]}%")
_NEVER_LAST = frozenset("（「『【《〈〔“‘([{")
_MOST_COLOURS = 8
"""Codes that are opened again on the next line; more than that only an attack uses."""


def clean(text: str) -> str:
    r"""Drop every escape sequence but SGR, and every control or invisible character; line ends become `\n`."""
    text = _LINE_ENDS.sub("\n", text)
    text = _SEQUENCE.sub(lambda found: found["sgr"] or "", text).replace("\t", _TAB)
    # An escape that is left begins a colour: nothing else got through.
    kept = "".join(part if part.startswith("\x1b") else _UNSEEN.sub("", part) for part in _parts(text))
    return kept if kept.isascii() else _IDLE_JOINER.sub(r"\1", kept)


def unseen(char: str) -> bool:
    """Say whether nobody would see a character: controls and invisible ones, not joiners."""
    return char == "\t" or char == "\n" or _UNSEEN.match(char) is not None


def plain(text: str) -> str:
    """Drop colours too. Takes cleaned text."""
    return _SGR.sub("", text) if "\x1b" in text else text


def one_line(text: str) -> str:
    """Clean a text and make one line without colours of it, single blanks between its words."""
    return " ".join(plain(clean(text)).split())


def width(text: str) -> int:
    """Count the columns of one line of cleaned text; wide, full and ambiguous characters are two (API 16.10)."""
    if text.isascii() and "\x1b" not in text:
        return len(text)
    return sum(columns for _, columns in _pieces(text))


def clusters(text: str) -> Iterator[str]:
    """Split a text without colours into what a reader takes for single characters, marks and joined emoji included."""
    start = 0
    for at in range(1, len(text)):
        if not _joined(text[at - 1], text[at], at - start):
            yield text[start:at]
            start = at
    if text:
        yield text[start:]


def cut(text: str, most: int) -> str:
    """Cut one line of cleaned text to `most` columns, with an ellipsis where something is missing."""
    if text.isascii() and "\x1b" not in text and len(text) <= most:
        return text
    pieces = list(_pieces(text))
    short = sum(columns for _, columns in pieces) > most
    room = max(0, most - len(ELLIPSIS)) if short else most
    kept: list[str] = []
    opened: list[str] = []
    for piece, columns in pieces:
        if columns > room:
            break
        room -= columns
        kept.append(piece)
        _note(opened, piece)
    if short:
        kept.append(ELLIPSIS[:most])
    return "".join(kept) + (RESET if opened else "")


def cut_left(text: str, most: int) -> str:
    """Cut one line without colours from its beginning: of a path the end matters."""
    if width(text) <= most:
        return text
    room, kept = max(0, most - len(ELLIPSIS)), ""
    for piece, columns in reversed(list(_pieces(text))):
        if columns > room:
            break
        room -= columns
        kept = piece + kept
    return ELLIPSIS[:most] + kept


def wrap(text: str, most: int, *, first: str = "", rest: str = "") -> list[str]:
    """Wrap cleaned text to lines of at most `most` columns, at blanks where there are some, between wide characters.

    Args:
        first, rest: stand before the first line and before all others, and count.
    """
    lines: list[str] = []
    opened: list[str] = []
    for source in text.split("\n"):
        head = rest if lines else first
        lines += _wrapped(source, most, head, rest, opened)
    return lines


def _wrapped(source: str, most: int, first: str, rest: str, opened: list[str]) -> Iterator[str]:
    """Wrap one line. `opened` holds the colours in force, from line to line."""
    head, line = first, _Line(max(2, most - width(first)))
    later = max(2, most - width(rest))
    for piece, columns in _pieces(source, min(line.room, later)):
        while not line.takes(piece, columns):
            yield head + _coloured(line.broken(), opened)
            head, line.room = rest, later
    yield head + _coloured(line.pieces, opened)


class _Line:
    """A line that is being filled, and where it may be broken."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.pieces: list[str] = []
        self.columns = 0
        self._break: tuple[int, int] | None = None
        self._broken = False

    def takes(self, piece: str, columns: int) -> bool:
        """Take a piece; False where there is no room for it. The blank at a break is taken and dropped."""
        if self.pieces and _breakable(self.pieces[-1], piece):
            self._break = len(self.pieces), self.columns
        if piece == " " and self._broken and not self.columns:
            return True
        if self.columns + columns > self.room:
            return False
        self.pieces.append(piece)
        self.columns += columns
        return True

    def broken(self) -> list[str]:
        """Give away what stands before the last place to break at, and keep what stands behind it."""
        at, before = self._break or (len(self.pieces), self.columns)
        given, self.pieces = self.pieces[:at], self.pieces[at:]
        self.columns -= before
        self._break, self._broken = None, True
        return given


def _breakable(before: str, after: str) -> bool:
    if before == " ":
        return after != " "
    if after == " " or before[0] == "\x1b":
        return after == " "
    if after in _NEVER_FIRST or before in _NEVER_LAST:
        return False
    return _ideograph(before[0]) or _ideograph(after[0])


def _coloured(pieces: list[str], opened: list[str]) -> str:
    """Join the pieces of one line: colours still open are opened again at its head and closed at its end."""
    again = "".join(opened)
    for piece in pieces:
        _note(opened, piece)
    return again + "".join(pieces).rstrip(" ") + (RESET if opened else "")


def _note(opened: list[str], piece: str) -> None:
    """Keep the list of colours in force."""
    if not piece.startswith("\x1b"):
        return
    codes = piece[2:-1].replace(":", ";").split(";")
    if codes[0].lstrip("0") == "":
        opened.clear()
    if any(code.lstrip("0") for code in codes):
        opened.append(piece)
        del opened[:-_MOST_COLOURS]


def _parts(text: str) -> Iterator[str]:
    """Split cleaned text into colours and what stands between them."""
    at = 0
    for found in _SGR.finditer(text):
        if found.start() > at:
            yield text[at : found.start()]
        yield found[0]
        at = found.end()
    yield text[at:]


def _pieces(text: str, widest: int = 2 * _LONGEST) -> Iterator[tuple[str, int]]:
    """Split one line of cleaned text into colours and characters, each with its columns."""
    for part in _parts(text):
        if part.startswith("\x1b"):
            yield part, 0
            continue
        for cluster in part if part.isascii() else clusters(part):
            columns = _columns(cluster[:_LONGEST])
            if columns <= widest:
                yield cluster[:_LONGEST], columns
            else:
                yield from ((char, _columns(char)) for char in cluster[:_LONGEST])


def _columns(cluster: str) -> int:
    columns = sum(map(_char_columns, cluster))
    return max(2, columns) if _EMOJI_STYLE in cluster else columns


def _joined(before: str, char: str, length: int) -> bool:
    """Say whether `char` belongs to the character that `before` is part of."""
    if char.isascii():
        return False
    if char in _JOINERS or unicodedata.category(char) in ("Mn", "Me", "Mc") or "\U0001f3fb" <= char <= "\U0001f3ff":
        return True
    if length >= _LONGEST - 1:
        return False
    if before == _JOINER:
        return _char_columns(char) == 2 or unicodedata.category(char) == "So"
    return _is_flag(before) and _is_flag(char) and length == 1


def _is_flag(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


@lru_cache(maxsize=4096)
def _char_columns(char: str) -> int:
    if char.isascii():
        return 1
    category = unicodedata.category(char)
    if category in ("Mn", "Me") or char in _JOINERS:
        return 0
    # Whatever this Unicode does not know yet may be an emoji to a newer terminal.
    if category == "Cn" or _is_flag(char):
        return 2
    return 2 if unicodedata.east_asian_width(char) in "WFA" else 1


@lru_cache(maxsize=4096)
def _ideograph(char: str) -> bool:
    return not char.isascii() and unicodedata.east_asian_width(char) in "WF"
