"""Formatted text as a neutral tree. `bridge.markup` makes it from Markdown, adapters render it.

Plain strings in it are literal: no mark-up of any platform is ever read from them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

# -- inside a line ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Text:
    text: str
    strong: bool = False
    emphasis: bool = False
    struck: bool = False


@dataclass(frozen=True, slots=True)
class Code:
    text: str


@dataclass(frozen=True, slots=True)
class Link:
    text: str
    url: str


@dataclass(frozen=True, slots=True)
class Break:
    """A new line inside a paragraph."""


@dataclass(frozen=True, slots=True)
class When:
    """A point in time, shown in each reader's own zone where the platform can. Unix seconds."""

    at: float


@dataclass(frozen=True, slots=True)
class Mention:
    """A person, shown by name. Whether it rings is decided by `Card.rings` alone."""

    person: str
    name: str = ""


Span = Text | Code | Link | Break | When | Mention
Spans = tuple[Span, ...]

# -- blocks -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Paragraph:
    spans: Spans


@dataclass(frozen=True, slots=True)
class Heading:
    spans: Spans
    level: int = 2


@dataclass(frozen=True, slots=True)
class Fence:
    """Preformatted text."""

    text: str
    language: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    blocks: tuple[Block, ...]
    ticked: bool | None = None
    """None: an ordinary item; else a check-list item."""


@dataclass(frozen=True, slots=True)
class Listing:
    items: tuple[Item, ...]
    ordered: bool = False
    start: int = 1


@dataclass(frozen=True, slots=True)
class Quote:
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Table:
    head: tuple[Spans, ...]
    rows: tuple[tuple[Spans, ...], ...] = field(default_factory=tuple)


@dataclass(frozen=True, slots=True)
class Rule:
    """A horizontal line."""


Block = Paragraph | Heading | Fence | Listing | Quote | Table | Rule


def line(*parts: str | Span) -> Paragraph:
    """Make a paragraph from literal strings and spans."""
    return Paragraph(tuple(Text(part) if isinstance(part, str) else part for part in parts))


def coded(text: str) -> Spans:
    """Read one line of our own words: back-ticks mark code, everything else is literal."""
    pieces = text.split("`")
    if len(pieces) % 2 == 0:  # an odd back-tick is a back-tick
        pieces = [*pieces[:-2], f"{pieces[-2]}`{pieces[-1]}"]
    return tuple(Code(piece) if at % 2 else Text(piece) for at, piece in enumerate(pieces) if piece)
