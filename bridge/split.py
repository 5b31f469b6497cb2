"""Long text in parts that a platform takes: cut at blocks, paragraphs, lines, words; code keeps its fences. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TypeVar, assert_never

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

__all__ = ["Blocks", "Measure", "Split", "plain", "size", "split"]

X = TypeVar("X")
Blocks = tuple[Block, ...]
Measure = Callable[[Blocks], int]
"""Characters that blocks have when they are rendered. Must not shrink when something is added."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """A text in parts. `over` says that there are more than wanted: then `head` and a file would say it better."""

    parts: tuple[Blocks, ...]
    over: bool = False
    head: Blocks = ()
    """The first paragraph, to stand before a file that holds all."""


def split(blocks: Blocks, *, limit: int, measure: Measure | None = None, max_parts: int = 0) -> Split:
    """Cut blocks into parts of at most `limit`; the parts together hold the whole, in order (RE-1, RE-2).

    A single character that is already over the limit stands alone in a part. An empty text has no parts.

    Args:
        blocks: the whole.
        limit: of what `measure` says of a part.
        measure: `size`, if left out.
        max_parts: more parts than this are `over`; 0: any number is right.
    """
    cutter = _Cutter(limit=limit, measure=measure or size)
    parts = tuple(cutter.parts(blocks))
    over = 0 < max_parts < len(parts)
    head = next((part[:1] for part in parts), ())
    return Split(parts=parts, over=over, head=head if over else ())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cutter:
    limit: int
    measure: Measure

    def fits(self, blocks: Blocks) -> bool:
        return self.measure(blocks) <= self.limit

    def parts(self, blocks: Blocks) -> Iterator[Blocks]:
        part: Blocks = ()
        for block in blocks:
            for piece in self.pieces_below(part, block):
                if part and not self.fits((*part, piece)):
                    done, part = _keep_heading(part)
                    yield done
                    if part and not self.fits((*part, piece)):
                        yield part
                        part = ()
                part = (*part, piece)
        if part:
            yield part

    def pieces_below(self, part: Blocks, block: Block) -> Iterator[Block]:
        """Cut a block that is too long for a part of its own; its first piece fills up the part that is begun."""
        if self.fits((block,)):
            return iter((block,))
        if part and 3 * self.measure(part) < 2 * self.limit:
            return self.cut(block, _Cutter(limit=self.limit, measure=lambda blocks: self.measure((*part, *blocks))))
        return self.cut(block, self)

    def pieces(self, blocks: Blocks) -> Iterator[Block]:
        return (piece for block in blocks for piece in self.pieces_below((), block))

    def cut(self, block: Block, first: _Cutter) -> Iterator[Block]:
        """Cut a block; `first` says what its first piece may hold."""
        match block:
            case Paragraph() | Heading():
                yield from self.cut_spans(block, first)
            case Fence():
                yield from self.cut_fence(block, first)
            case Listing():
                yield from self.cut_list(block, first)
            case Quote():
                inner = _Cutter(limit=self.limit, measure=lambda blocks: self.measure((Quote(blocks),)))
                yield from (Quote(part) for part in inner.parts(block.blocks))
            case Table():
                yield from self.cut_table(block, first)
            case Rule():
                yield block
            case _:
                assert_never(block)

    def most(self, whole: Sequence[X], make: Callable[[Sequence[X]], Block]) -> int:
        """Return how many from the start of `whole` fit into one block; at least 1, so that there is progress."""
        if not whole:
            return 0
        low, high = 1, 2
        while high < len(whole) and self.fits((make(whole[:high]),)):
            low, high = high, high * 2
        high = min(high, len(whole))
        return bisect_left(range(low + 1, high + 1), True, key=lambda n: not self.fits((make(whole[:n]),))) + low

    def cut_spans(self, block: Paragraph | Heading, cutter: _Cutter) -> Iterator[Block]:
        def make(part: Sequence[Span]) -> Block:
            return replace(block, spans=_join(part))

        def whole(span: Span) -> Span:
            """A link that is too long to stand in one piece is said in words, which can be cut."""
            if isinstance(span, Link) and not self.fits((make((span,)),)):
                return Text(_plain_span(span))
            return span

        atoms = [atom for span in block.spans for atom in _atoms(whole(span))]
        while atoms:
            count = cutter.most(atoms, make)
            pieces = list(_atoms(atoms[0], longest=1)) if count == 1 and not self.fits((make(atoms[:1]),)) else []
            if len(pieces) > 1:  # a word that no part can hold
                atoms = [*pieces, *atoms[1:]]
                continue
            end = _good_end(atoms, count)
            if spans := _trim(_join(atoms[:end])):
                yield replace(block, spans=spans)
            atoms, cutter = atoms[end:], self

    def cut_fence(self, block: Fence, cutter: _Cutter) -> Iterator[Block]:
        def make(part: Sequence[str]) -> Fence:
            return replace(block, text="\n".join(part))

        lines = block.text.split("\n")
        while lines:
            count = cutter.most(lines, make)
            head = make(lines[:count])
            if count == 1 and not self.fits((head,)):
                yield from self.cut_line(block, lines[0])
            else:
                yield head
            lines, cutter = lines[count:], self

    def cut_line(self, block: Fence, line: str) -> Iterator[Block]:
        def make(part: Sequence[str]) -> Fence:
            return replace(block, text="".join(part))

        while line:
            count = self.most(line, make)
            yield make(line[:count])
            line = line[count:]

    def cut_list(self, block: Listing, cutter: _Cutter) -> Iterator[Block]:
        last = block.start + len(block.items)

        def make(part: Sequence[Item]) -> Listing:
            return replace(block, items=tuple(part), start=last)  # the longest number of the list

        items = block.items
        while items:
            count = cutter.most(items, make)
            head = replace(block, items=items[:count], start=last - len(items))
            if count == 1 and not self.fits((make(items[:1]),)):
                yield from self.cut_item(head)
            else:
                yield head
            items, cutter = items[count:], self

    def cut_item(self, only: Listing) -> Iterator[Block]:
        """Cut a list of one item: the mark stands before its first part, the others follow as plain blocks."""
        (item,) = only.items

        def listing(blocks: Blocks) -> Listing:
            return replace(only, items=(Item(blocks, ticked=item.ticked),))

        inner = _Cutter(limit=self.limit, measure=lambda blocks: self.measure((listing(blocks),)))
        for number, part in enumerate(inner.parts(item.blocks)):
            if number == 0:
                yield listing(part)
            else:
                yield from part

    def cut_table(self, block: Table, cutter: _Cutter) -> Iterator[Block]:
        def make(part: Sequence[tuple[Spans, ...]]) -> Table:
            return Table(block.head, tuple(part))

        rows = block.rows
        if not rows:
            yield from self.pieces(_rows_in_words(block))
        while rows:
            count = cutter.most(rows, make)
            head = make(rows[:count])
            if count == 1 and not self.fits((head,)):
                yield from self.pieces(_rows_in_words(head))
            else:
                yield head
            rows, cutter = rows[count:], self


def _keep_heading(part: Blocks) -> tuple[Blocks, Blocks]:
    """Let a heading go with what follows it, into the next part."""
    if len(part) > 1 and isinstance(part[-1], Heading):
        return part[:-1], part[-1:]
    return part, ()


def _atoms(span: Span, *, longest: int = 40) -> Iterator[Span]:
    """Take a span apart into what can stand alone: words with the blanks behind them, long ones in pieces."""
    match span:
        case Text():
            yield from (replace(span, text=piece) for piece in _words(span.text, longest))
        case Code():
            yield from (Code(piece) for piece in _words(span.text, longest))
        case _:
            yield span


def _words(text: str, longest: int) -> Iterator[str]:
    start = 0
    for at, char in enumerate(text):
        ends = char.isspace() and not text[at + 1 : at + 2].isspace()
        if ends or at + 1 - start >= longest:
            yield text[start : at + 1]
            start = at + 1
    if start < len(text):
        yield text[start:]


def _join(atoms: Sequence[Span]) -> Spans:
    joined: list[Span] = []
    for _, run in groupby(atoms, key=_look):
        alike = list(run)
        first = alike[0]
        whole = "".join(atom.text for atom in alike if isinstance(atom, Text | Code))
        if isinstance(first, Text):
            joined.append(replace(first, text=whole))
        elif isinstance(first, Code):
            joined.append(Code(whole))
        else:
            joined += alike
    return tuple(joined)


def _look(span: Span) -> tuple[bool, ...] | None:
    """What neighbours must share to become one span again; None: this one stands alone."""
    if isinstance(span, Text):
        return (span.strong, span.emphasis, span.struck)
    return () if isinstance(span, Code) else None


def _good_end(atoms: Sequence[Span], count: int) -> int:
    """Move a cut back to the nearest line end, then sentence end, in the second half of what fits."""
    if count >= len(atoms):
        return count
    for ends in (_ends_line, _ends_sentence, _ends_word):
        for at in range(count, count // 2, -1):
            if ends(atoms[at - 1]):
                return at
    return count


def _ends_line(atom: Span) -> bool:
    return isinstance(atom, Break)


def _ends_sentence(atom: Span) -> bool:
    if not isinstance(atom, Text):
        return False
    text = atom.text.rstrip()
    return text.endswith(("。", "！", "？", "；")) or (text.endswith((".", "!", "?", ";")) and text != atom.text)


def _ends_word(atom: Span) -> bool:
    return isinstance(atom, Text) and atom.text[-1:].isspace()


def _trim(spans: Spans) -> Spans:
    """Take line breaks off both ends of a cut-off paragraph."""
    start, end = 0, len(spans)
    while start < end and isinstance(spans[start], Break):
        start += 1
    while end > start and isinstance(spans[end - 1], Break):
        end -= 1
    return spans[start:end]


def _rows_in_words(table: Table) -> Blocks:
    """Say the rows of a table as paragraphs, a line per cell, for rows that no table can hold."""
    if not table.rows:
        return tuple(Paragraph(cell) for cell in table.head if cell)
    return tuple(
        Paragraph((*head, Text(": "), *cell))
        for row in table.rows
        for head, cell in zip((*table.head, *[()] * len(row)), row, strict=False)
        if cell
    )


# -- how long, and in plain words -------------------------------------------------------------------------------


def size(blocks: Blocks) -> int:
    """Count the characters of blocks as a platform would: marks, indents and escapes included, a bit high."""
    return sum(_size(block) + 2 for block in blocks)


def _size(block: Block) -> int:
    match block:
        case Paragraph() | Heading():
            return _size_of_spans(block.spans) + 2
        case Fence():
            return _escaped(block.text) + len(block.language) + 9
        case Listing():
            return sum(size(item.blocks) + 8 + 4 * _lines_in(item.blocks) for item in block.items)
        case Quote():
            return size(block.blocks) + 2 * _lines_in(block.blocks)
        case Table():
            widths = [max((_size_of_spans(cell) for cell in column), default=0) for column in _columns(block)]
            return (sum(widths) + 3 * len(widths) + 1) * (len(block.rows) + 2) + 8
        case Rule():
            return 4
        case _:
            assert_never(block)


def _columns(table: Table) -> list[list[Spans]]:
    rows = (table.head, *table.rows)
    return [[row[at] for row in rows if at < len(row)] for at in range(max(len(row) for row in rows))]


def _lines_in(blocks: Blocks) -> int:
    return plain(blocks).count("\n") + 1


def _size_of_spans(spans: Spans) -> int:
    return sum(_size_of_span(span) for span in spans)


def _size_of_span(span: Span) -> int:
    match span:
        case Text():
            return _escaped(span.text) + 2 * (span.strong + span.emphasis + span.struck)
        case Code():
            return _escaped(span.text) + 2
        case Link():
            return _escaped(span.text) + _escaped(span.url) + 3
        case Break():
            return 1
        case When():
            return 70
        case Mention():
            return len(span.person) + len(span.name) + 4
        case _:
            assert_never(span)


def _escaped(text: str) -> int:
    return len(text) + 4 * text.count("&") + 3 * (text.count("<") + text.count(">"))


def plain(blocks: Blocks) -> str:
    """Say blocks in plain text: for notifications, for whispers, and to compare."""
    return "\n\n".join(_plain(block) for block in blocks)


def _plain(block: Block) -> str:
    match block:
        case Paragraph() | Heading():
            return plain_spans(block.spans)
        case Fence():
            return block.text
        case Listing():
            return "\n".join(
                f"{f'{number}.' if block.ordered else '•'}{_box(item)} {plain(item.blocks)}"
                for number, item in enumerate(block.items, block.start)
            )
        case Quote():
            return plain(block.blocks)
        case Table():
            return "\n".join(" | ".join(plain_spans(cell) for cell in row) for row in (block.head, *block.rows))
        case Rule():
            return "—"
        case _:
            assert_never(block)


def _box(item: Item) -> str:
    return "" if item.ticked is None else (" [x]" if item.ticked else " [ ]")


def plain_spans(spans: Spans) -> str:
    """Say spans in plain text. A point in time is left out: only a reader's own device can say it well."""
    return "".join(_plain_span(span) for span in spans)


def _plain_span(span: Span) -> str:
    match span:
        case Text() | Code():
            return span.text
        case Link():
            return span.text if span.text == span.url else f"{span.text} ({span.url})"
        case Break():
            return "\n"
        case When():
            return ""
        case Mention():
            return span.name or span.person
        case _:
            assert_never(span)
