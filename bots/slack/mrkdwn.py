"""The bridge's formatted text as Slack's mrkdwn, in texts that fit a section each. Pure.

`&`, `<` and `>` of foreign text are escaped on every path, so that nothing in it can ring anybody, name a channel or
hide where a link goes (RE-4). What mrkdwn has no escape for (`*`, `_`, `~` and back-ticks around a word) is kept
literal by a hair space behind the mark.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import Literal, assert_never
from urllib.parse import urlsplit

from bridge.model import PersonId
from bridge.rich import (
    Block,
    Break,
    Code,
    Fence,
    Heading,
    Item,
    Link,
    Listing,
    Mention,
    Paragraph,
    Quote,
    Rule,
    Span,
    Spans,
    Table,
    Text,
    When,
)

SECTION = 3_000
"""Most characters of a section's text."""
INDENT = "\u00a0" * 4
"""Of what stands inside a list; ordinary blanks may be folded into one."""
HAIR = "\u200a"
ZERO_WIDTH = "\u200b"
_MARKS = "*_~`"

Names = Mapping[PersonId, str]
"""Display names of people who are shown without being rung."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Mrkdwn of one block, or the bare text of a fence."""

    text: str
    kind: Literal["text", "head", "fence", "rule"] = "text"


class Pen:
    """Writes a tree as pieces of mrkdwn, and remembers who was mentioned so that it rings."""

    def __init__(self, *, rings: frozenset[PersonId], names: Names, zones: bool) -> None:
        self.mentioned: set[PersonId] = set()
        self._rings = rings
        self._names = names
        self._zones = zones

    def blocks(self, blocks: Iterable[Block], *, depth: int = 0) -> list[Piece]:
        return [piece for block in blocks for piece in self._block(block, depth)]

    def _block(self, block: Block, depth: int) -> list[Piece]:
        match block:
            case Paragraph(spans=spans):
                return [Piece(text)] if (text := self._spans(spans)).strip() else []
            case Heading(spans=spans):
                bold = tuple(Text(s.text, True, s.emphasis, s.struck) if isinstance(s, Text) else s for s in spans)
                return [Piece(text, "head")] if (text := self._spans(bold)).strip() else []
            case Fence(text=text):
                return [Piece(text, "fence")]
            case Listing():
                return self._listing(block, depth)
            case Quote(blocks=inner):
                return [_quoted(piece) for piece in _merged(self.blocks(inner, depth=depth), "\n\n")]
            case Table():
                return [Piece(_aligned(block, self._names), "fence")]
            case Rule():
                return [Piece("", "rule")]
            case _:
                assert_never(block)

    def _listing(self, block: Listing, depth: int) -> list[Piece]:
        """Bullets and numbers by hand: mrkdwn has no lists. Code inside an item leaves the indentation."""
        pieces: list[Piece] = []
        for number, item in enumerate(block.items, block.start):
            mark = f"{number}." if block.ordered else "•◦▪"[min(depth, 2)]
            pieces += self._item(item, mark, depth)
        return _merged(pieces, "\n")

    def _item(self, item: Item, mark: str, depth: int) -> list[Piece]:
        tick = "" if item.ticked is None else "☑ " if item.ticked else "☐ "
        inner = self.blocks(item.blocks, depth=depth + 1)
        if not inner or inner[0].kind not in ("text", "head"):
            inner = [Piece(""), *inner]
        made = []
        for at, piece in enumerate(inner):
            lines = piece.text.split("\n")
            first = f"{mark} {tick}{lines[0]}" if at == 0 else f"{INDENT}{lines[0]}"
            lines = [first.rstrip(), *(f"{INDENT}{line}" for line in lines[1:])]
            made.append(Piece("\n".join(lines)) if piece.kind in ("text", "head") else piece)
        return made

    def _spans(self, spans: Spans) -> str:
        written, was_marked = "", False
        for span in spans:
            text, is_marked = self._span(span)
            if not text:
                continue
            begins = is_marked and text[0] in _MARKS
            ended = was_marked and written[-1:] in _MARKS
            # Marks count beside blanks and punctuation only: a space without width stands in for them.
            if written and ((begins and (ended or written[-1].isalnum())) or (ended and text[0].isalnum())):
                written += ZERO_WIDTH
            written, was_marked = written + text, is_marked
        return written

    def _span(self, span: Span) -> tuple[str, bool]:
        match span:
            case Text():
                return _styled(span), span.strong or span.emphasis or span.struck
            case Code(text=text):
                return _code(text), True
            case Link():
                return _link(span), False
            case Break():
                return "\n", False
            case When(at=at):
                return _when(at, zones=self._zones), False
            case Mention():
                return self._mention(span), False
            case _:
                assert_never(span)

    def _mention(self, span: Mention) -> str:
        person = PersonId(span.person)
        if person in self._rings and is_user(person):
            self.mentioned.add(person)
            return ring(person)
        return literal("@" + _shown_name(span, self._names))


def _styled(span: Text) -> str:
    marks = "*" * span.strong + "_" * span.emphasis + "~" * span.struck
    if not marks:
        return literal(span.text)
    return "\n".join(_wrapped(line, marks) for line in span.text.split("\n"))


def _wrapped(line: str, marks: str) -> str:
    core = line.strip()
    if not core:
        return line
    lead, trail = line[: len(line) - len(line.lstrip())], line[len(line.rstrip()) :]
    return f"{lead}{marks}{literal(core)}{marks[::-1]}{trail}"


def _code(text: str) -> str:
    """Write code in a line. A back-tick inside it has no way to be said and becomes its look-alike."""
    shown = one_line(text).replace("`", "ˋ")
    return f"`{escape(shown)}`" if shown else ""


def _link(span: Link) -> str:
    """Write a link. A text that looks like another address stands beside the address, never over it."""
    label, address = one_line(span.text), span.url.strip()
    if not _is_address(address):
        return literal(f"{label} ({address})" if address and address != label else label)
    target = escape(re.sub(r"[\s|]", lambda found: f"%{ord(found[0]):02X}", address))
    if not label or label == address:
        return f"<{target}>"
    if _ADDRESS_LIKE.search(label):
        return f"{literal(label, links=False)} (<{target}>)"
    return f"<{target}|{escape(label).replace('|', '¦')}>"


def _when(at: float, *, zones: bool) -> str:
    moment = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"<!date^{int(at)}^{{date_short_pretty}} {{time}}|{moment}>" if zones else moment


def ring(person: PersonId) -> str:
    return f"<@{person.rpartition('/')[2]}>"


def is_user(person: PersonId) -> bool:
    return re.fullmatch(r"[A-Z0-9]+/[UW][A-Z0-9]+", person) is not None


def _shown_name(span: Mention, names: Names) -> str:
    return one_line(span.name or names.get(PersonId(span.person), "")) or span.person.rpartition("/")[2]


def spans_in(block: Block) -> Iterator[Span]:
    match block:
        case Paragraph(spans=spans) | Heading(spans=spans):
            yield from spans
        case Listing(items=items):
            yield from (span for item in items for inner in item.blocks for span in spans_in(inner))
        case Quote(blocks=blocks):
            yield from (span for inner in blocks for span in spans_in(inner))
        case Table(head=head, rows=rows):
            yield from (span for row in (head, *rows) for cell in row for span in cell)
        case Fence() | Rule():
            return
        case _:
            assert_never(block)


def _merged(pieces: Iterable[Piece], joint: str) -> list[Piece]:
    """Make one piece of texts that follow each other."""
    merged: list[Piece] = []
    for is_text, run in groupby(pieces, key=lambda piece: piece.kind in ("text", "head")):
        found = list(run)
        merged += [Piece(joint.join(piece.text for piece in found))] if is_text else found
    return merged


def _quoted(piece: Piece) -> Piece:
    if piece.kind not in ("text", "head"):
        return piece
    return Piece("\n".join(f"> {line}" for line in piece.text.split("\n")), piece.kind)


# -- tables -----------------------------------------------------------------------------------------------------


def _aligned(table: Table, names: Names) -> str:
    """Write a table in columns of one width each, for a font whose characters are all as wide."""
    rows = [[_bare(cell, names) for cell in row] for row in (table.head, *table.rows)]
    columns = max((len(row) for row in rows), default=0)
    full = [row + [""] * (columns - len(row)) for row in rows]
    widths = [max(_width(row[at]) for row in full) for at in range(columns)]
    full.insert(1, ["-" * width for width in widths])
    lines = [
        "  ".join(cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)) for row in full
    ]
    return "\n".join(line.rstrip() for line in lines)


def _bare(spans: Spans, names: Names) -> str:
    return one_line("".join(_bare_span(span, names) for span in spans))


def _bare_span(span: Span, names: Names) -> str:
    match span:
        case Text(text=text) | Code(text=text):
            return text
        case Link(text=text, url=url):
            return url if text in ("", url) else f"{text} ({url})"
        case Break():
            return " "
        case When(at=at):
            return _when(at, zones=False)
        case Mention():
            return "@" + _shown_name(span, names)
        case _:
            assert_never(span)


def _width(text: str) -> int:
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


# -- cutting and packing ----------------------------------------------------------------------------------------


def cut_pieces(pieces: Iterable[Piece]) -> list[Piece]:
    """Make every piece fit a section, and fences finished."""
    made: list[Piece] = []
    for piece in pieces:
        if piece.kind == "fence":
            made += [Piece(f"```\n{part}\n```", "fence") for part in _parts(_fenced(piece.text), SECTION - 8)]
        elif piece.kind == "rule":
            made.append(piece)
        else:
            made += [Piece(part, piece.kind) for part in _parts(piece.text, SECTION)]
    return made


def _fenced(text: str) -> str:
    """Escape code, and keep back-ticks in it from ending the fence."""
    return escape(text.replace("```", f"`{ZERO_WIDTH}`{ZERO_WIDTH}`").strip("\n")) or " "


def _parts(text: str, most: int) -> Iterator[str]:
    """Cut rendered text at lines, else at blanks, else anywhere but inside an escape or a link."""
    while len(text) > most:
        at = text.rfind("\n", 1, most + 1)
        at = at if at > 0 else text.rfind(" ", most // 2, most + 1)
        if at > 0:
            yield text[:at]
            text = text[at + 1 :]
            continue
        at = most
        for opening, closing in (("&", ";"), ("<", ">")):
            start = text.rfind(opening, 0, at)
            if start > 0 and closing not in text[start:at]:
                at = start
        yield text[:at]
        text = text[at:]
    if text.strip():
        yield text


def sections(pieces: Iterable[Piece]) -> Iterator[str]:
    """Join pieces into texts that fit a section each."""
    text, before = "", ""
    for piece in pieces:
        joint = "" if not text else "\n\n" if before == piece.kind == "text" or piece.kind == "head" else "\n"
        if len(text) + len(joint) + len(piece.text) > SECTION:
            yield text
            text, joint = "", ""
        text, before = text + joint + piece.text, piece.kind
    if text:
        yield text


# -- literal text -----------------------------------------------------------------------------------------------

_ADDRESS = re.compile(r"https?://[^\s<>\"'`|]+")
_ADDRESS_LIKE = re.compile(r"(?i)\b(?:[a-z][a-z0-9+.-]*://|www\.|(?:[a-z0-9-]+\.)+[a-z]{2,}(?:[/:?#]|$|(?=\s)))")
_TRAILING = ".,;:!?)]}*_~"
_OPENING = re.compile(r"(?<![^\W_])([*_~`])(?=[^\s])")


def escape(text: str) -> str:
    """Escape what Slack reads as mark-up of its own."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def literal(text: str, *, links: bool = True) -> str:
    """Write text so that every character is shown as it is. Bare web addresses become links to themselves."""
    written, done = "", 0
    for found in _ADDRESS.finditer(text) if links else ():
        address = found[0].rstrip(_TRAILING)
        if _is_address(address):
            written += f"{_quiet(text[done : found.start()])}<{escape(address)}>"
            done = found.start() + len(address)
    return written + _quiet(text[done:])


def _quiet(text: str) -> str:
    calm = re.sub(r"(?m)^(\s*)>", rf"\1{ZERO_WIDTH}>", text)
    calm = _OPENING.sub(lambda found: _unless_alone(found), calm)
    return escape(calm)


def _unless_alone(found: re.Match[str]) -> str:
    rest = found.string[found.end() :].partition("\n")[0]
    return found[1] + HAIR if found[1] in rest else found[1]


def _is_address(address: str) -> bool:
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return (parts.scheme in ("http", "https") and bool(parts.netloc)) or (parts.scheme == "mailto" and bool(parts.path))


def one_line(text: str) -> str:
    return " ".join(text.split())


def cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"
