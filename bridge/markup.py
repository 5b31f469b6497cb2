"""Markdown as models write it -> the neutral tree of `bridge.rich`. Total and pure: any text gives blocks.

No content is lost: what is not taken as mark-up stays literal, raw HTML and links to anything but web and mail
included. What a link shows never disagrees with where it leads (product 4).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token

from bridge.hostile import clean
from bridge.rich import (
    Block,
    Break,
    Code,
    Fence,
    Heading,
    Item,
    Link,
    Listing,
    Paragraph,
    Quote,
    Rule,
    Span,
    Spans,
    Table,
    Text,
)

SCHEMES = ("http", "https", "mailto")
DEEPEST = 40
"""Levels of nesting that are parsed; a text that goes deeper is shown as it is."""
LONGEST = 400_000
"""Characters that are parsed; a longer text is shown as it is."""

_TICK = re.compile(r"\[([ xX])\][ \t]+")
_ADDRESS = re.compile(r"^\s*(?:[a-z][a-z0-9+.-]*:|[\w-]+(?:\.[\w-]+)+(?:[:/?#]|\s*$)|[^\s@]+@[^\s@]+\.\w+\s*$)", re.I)


class _Parser(MarkdownIt):
    """The parser, with links only to what a person may be sent to."""

    def validateLink(self, url: str) -> bool:  # noqa: N802 - the library's name
        return _allowed(url)


def _parser() -> MarkdownIt:
    parser = _Parser("commonmark", {"html": False, "maxNesting": DEEPEST})
    parser.enable(["table", "strikethrough"])
    parser.disable("reference")  # definitions are content; taken as mark-up they would vanish
    return parser


_PARSER = _parser()


def blocks(text: str) -> tuple[Block, ...]:
    """Read Markdown. Never raises; an empty text gives no blocks."""
    text = clean(text)
    if len(text) > LONGEST:
        return literal(text)
    tokens = _PARSER.parse(text)
    if any(token.level >= DEEPEST - 1 for token in tokens):
        return literal(text)  # the parser gives up there, and would drop the rest
    return tuple(_blocks(_Reader(tokens, text.split("\n"))))


def literal(text: str) -> tuple[Block, ...]:
    """Show a text as it is: paragraphs at blank lines, no mark-up read."""
    return tuple(
        Paragraph(_lines(part.strip("\n"))) for part in re.split(r"\n[ \t]*\n", clean(text)) if part.strip("\n")
    )


def spans(text: str) -> Spans:
    """Read one line of Markdown, for texts that must not become blocks."""
    (inline,) = _PARSER.parseInline(clean(text))
    return tuple(_spans(inline.children or []))


def _lines(text: str) -> Spans:
    found: list[Span] = []
    for number, line in enumerate(text.split("\n")):
        if number:
            found.append(Break())
        if line:
            found.append(Text(line))
    return tuple(found)


# -- blocks -----------------------------------------------------------------------------------------------------


class _Reader:
    """Walks over the flat list of tokens."""

    def __init__(self, tokens: list[Token], source: list[str]) -> None:
        self._tokens, self.source, self._at = tokens, source, 0

    def next(self) -> Token | None:
        if self._at >= len(self._tokens):
            return None
        self._at += 1
        return self._tokens[self._at - 1]

    def until(self, closing: str, level: int) -> _Reader:
        """Give what stands before the closing token of that level, and pass over both."""
        start = self._at
        while (token := self.next()) is not None:
            if token.type == closing and token.level == level:
                return _Reader(self._tokens[start : self._at - 1], self.source)
        return _Reader(self._tokens[start:], self.source)


def _blocks(reader: _Reader) -> Iterator[Block]:
    while (token := reader.next()) is not None:
        yield from _block(token, reader)


def _block(token: Token, reader: _Reader) -> Iterator[Block]:
    if token.nesting != 1:
        return _leaf(token)
    return _container(token, reader.until(token.type.replace("_open", "_close"), token.level))


def _leaf(token: Token) -> Iterator[Block]:
    match token.type:
        case "fence" | "code_block":
            yield Fence(token.content.removesuffix("\n"), language=token.info.strip())
        case "hr":
            yield Rule()
        case "inline":
            yield from _paragraph(tuple(_spans(token.children or [])))
        case _:
            if token.content:
                yield Paragraph(_lines(token.content))


def _container(token: Token, inner: _Reader) -> Iterator[Block]:
    match token.type:
        case "paragraph_open":
            yield from _paragraph(_inline(inner))
        case "heading_open":
            yield Heading(_inline(inner), level=int(token.tag[1:]))
        case "bullet_list_open":
            yield Listing(tuple(_items(inner)))
        case "ordered_list_open":
            start = token.attrGet("start")
            yield Listing(tuple(_items(inner)), ordered=True, start=1 if start is None else int(start))
        case "blockquote_open":
            yield Quote(tuple(_blocks(inner)))
        case "table_open":
            yield _table(inner, token)
        case _:
            yield from _blocks(inner)


def _paragraph(found: Spans) -> Iterator[Block]:
    if found:
        yield Paragraph(found)


def _inline(reader: _Reader) -> Spans:
    token = reader.next()
    return tuple(_spans(token.children or [])) if token is not None else ()


def _items(reader: _Reader) -> Iterator[Item]:
    while (token := reader.next()) is not None:
        yield _ticked(tuple(_blocks(reader.until("list_item_close", token.level))))


def _ticked(inner: tuple[Block, ...]) -> Item:
    """Read `[ ]` and `[x]` at the start of an item as a box to tick."""
    match inner:
        case (Paragraph(spans=(Text() as first, *rest)), *others) if box := _TICK.match(first.text):
            kept = first.text[box.end() :]
            body: Spans = (replace(first, text=kept), *rest) if kept else tuple(rest)
            return Item((Paragraph(body), *others), ticked=box[1] != " ")
        case _:
            return Item(inner)


def _table(reader: _Reader, opening: Token) -> Block:
    rows: list[tuple[Spans, ...]] = []
    while (token := reader.next()) is not None:
        if token.type == "tr_open":
            rows.append(tuple(_cells(reader.until("tr_close", token.level))))
    first, last = opening.map or [0, 0]
    lines = reader.source[first:last]
    # A row with more cells than the head loses them in the parser: then the source is shown.
    if any(len(_split_row(line)) > len(rows[0]) for line in lines[2:]):
        return Fence("\n".join(lines))
    return Table(rows[0], tuple(rows[1:]))


def _split_row(line: str) -> list[str]:
    line = line.strip().lstrip("> ")
    cells = re.split(r"(?<!\\)\|", line.removeprefix("|"))
    return cells[:-1] if len(cells) > 1 and not cells[-1].strip() else cells


def _cells(reader: _Reader) -> Iterator[Spans]:
    while (token := reader.next()) is not None:
        yield _inline(reader.until(token.type.replace("_open", "_close"), token.level))


# -- inside a line ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Style:
    strong: int = 0
    emphasis: int = 0
    struck: int = 0

    def text(self, text: str) -> Text:
        return Text(text, strong=self.strong > 0, emphasis=self.emphasis > 0, struck=self.struck > 0)


_STYLES = {"strong": "strong", "em": "emphasis", "s": "struck"}


def _spans(tokens: list[Token]) -> Iterator[Span]:
    style = _Style()
    at = 0
    while at < len(tokens):
        token = tokens[at]
        at += 1
        name, _, end = token.type.rpartition("_")
        if name in _STYLES and end in ("open", "close"):
            part = _STYLES[name]
            style = replace(style, **{part: getattr(style, part) + token.nesting})
        elif token.type == "link_open":
            closing = _closing(tokens, at)
            yield from _link(tokens[at:closing], token)
            at = closing + 1
        else:
            yield from _span(token, style)


def _closing(tokens: list[Token], at: int) -> int:
    while at < len(tokens) and tokens[at].type != "link_close":
        at += 1
    return at


def _span(token: Token, style: _Style) -> Iterator[Span]:
    match token.type:
        case "code_inline":
            yield Code(token.content)
        case "softbreak" | "hardbreak":
            yield Break()
        case "image":
            url = str(token.attrGet("src") or "")
            yield from _shown_link(_plain(token.children or []) or url, url, str(token.attrGet("title") or ""))
        case _:
            if token.content:
                yield style.text(token.content)


def _link(inner: list[Token], opening: Token) -> Iterator[Span]:
    url = str(opening.attrGet("href") or "")
    yield from _shown_link(_plain(inner), url, str(opening.attrGet("title") or ""))


def _shown_link(text: str, url: str, title: str) -> Iterator[Span]:
    if not _allowed(url):  # an address that a reference or an angle bracket brought in
        yield Text(f"{text} ({url})" if url and url != text else text)
    else:
        yield Link(_honest(text, url), url)
    if title:
        yield Text(f" ({title})")


def _plain(tokens: list[Token]) -> str:
    parts: list[str] = []
    for token in tokens:
        if token.type in ("softbreak", "hardbreak"):
            parts.append(" ")
        elif token.type == "image":
            source = str(token.attrGet("src") or "")
            parts.append(" ".join(each for each in (_plain(token.children or []), f"({source})") if each))
        else:
            parts.append(token.content)
    return "".join(parts)


def _allowed(url: str) -> bool:
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        return False
    scheme = parts.scheme.lower()
    return scheme in SCHEMES and (scheme == "mailto" or bool(parts.netloc))


def _honest(text: str, url: str) -> str:
    """Return what a link may show: its text, and its real target beside it where the text looks like another one."""
    shown = text.strip()
    if not shown:
        return url
    if not _ADDRESS.match(shown) or _same(shown, url):
        return text
    return f"{text} → {url}"


def _same(shown: str, url: str) -> bool:
    wanted, real = (re.sub(r"^(?:https?://|mailto:)", "", each.strip(), flags=re.I) for each in (shown, url))
    host, _, rest = wanted.partition("/")
    real_host, _, real_rest = real.partition("/")
    return host.lower() == real_host.lower() and (not rest or rest.rstrip("/") == real_rest.rstrip("/"))
