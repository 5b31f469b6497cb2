"""The end of a run: a message of its own, since edits ring nobody (product 1.3). Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bridge.model import Card, PersonId
from bridge.rich import Block, Paragraph, Quote, Text, line
from bridge.split import plain, size
from bridge.texts.units import money
from bridge.view import End
from bridge.wording import SUMMARY, Wording, fill, shortened

MOST_POINTS = 20
"""Files, and points of a verdict, that are named; more are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndCard:
    """Draws one end."""

    end: End
    title: str
    words: Wording
    room: int
    """Characters of a post."""
    rings: tuple[PersonId, ...]

    def draw(self) -> Card:
        texts, words = self.words.texts.thread, self.words
        end, title = self.end, self.title
        template = {
            "done": texts.end_done,
            "not_reached": texts.end_not_reached,
            "failed": texts.end_failed,
        }.get(end.state, texts.end_ended)
        head = fill(template, title=Text(title, strong=True), who=words.who(end.by))
        body: list[Block] = [Paragraph(head)]
        if end.reason:
            body.append(Paragraph(fill(texts.end_reason, why=words.line(end.reason, 500))))
        body += self.verdict()
        body += self.files()
        figures = texts.end_figures.format(cost=money(end.cost), time=words.texts.units.duration(end.duration))
        if end.aside:
            figures += " · " + texts.end_aside.format(cost=money(end.aside))
        last = (line(figures), Paragraph(fill(texts.end_how)))
        whole = (*shortened(tuple(body), self.room - size(last)), *last)
        return Card(summary=words.line(plain((Paragraph(head),)), SUMMARY), body=whole, rings=self.rings)

    def verdict(self) -> Iterator[Block]:
        end, texts, words = self.end, self.words.texts.thread, self.words
        heads = {"achieved": texts.achieved, "not_yet": texts.not_yet, "unreachable": texts.unreachable}
        if end.verdict in heads:
            yield Paragraph((Text(heads[end.verdict], strong=True),))
            if end.verdict_reason and end.verdict_reason != end.reason:
                yield Quote(shortened(words.markdown(end.verdict_reason), 800))
            if end.failed:
                yield line(texts.missing)
                yield self.words.points(end.failed[:MOST_POINTS])
        if end.unverifiable:
            yield line(texts.end_unverified)
            yield self.words.points(end.unverifiable[:MOST_POINTS])

    def files(self) -> Iterator[Block]:
        end, texts = self.end, self.words.texts.thread
        if not end.files:
            return
        yield line(texts.end_files)
        yield self.words.points(end.files[:MOST_POINTS])
        if len(end.files) > MOST_POINTS:
            yield line(texts.end_more_files.format(n=len(end.files) - MOST_POINTS))
