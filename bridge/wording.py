"""From templates of the catalogue and text from outside to spans and lines. Pure.

Everything that came from people, models or files goes through `Wording`: it is cleaned, and secrets in it are hidden.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from string import Formatter

from bridge.hostile import clean, clean_name, mask, one_line
from bridge.markup import blocks, literal, spans
from bridge.model import Person
from bridge.rich import Block, Break, Code, Item, Listing, Mention, Paragraph, Quote, Span, Spans, Text, coded
from bridge.split import Blocks, size, split
from bridge.texts import Texts
from bridge.view import State, View

SUMMARY = 150
"""Characters of a notification."""
TITLE = 80
"""Characters of a request that stand for it."""


def fill(template: str, **values: str | Span) -> Spans:
    """Fill a template of ours; back-ticks in the template, and only there, mark code.

    What is filled in is literal: neither braces nor back-ticks are read from it.
    """
    made: list[Span] = []
    code: str | None = None
    for text, name, _, _ in Formatter().parse(template):
        for number, piece in enumerate(text.split("`")):
            if number:
                code = _close(made, code)
            if code is not None:
                code += piece
            elif piece:
                made.append(Text(piece))
        if name is None:
            continue
        value = values[name]
        if code is not None and isinstance(value, str):
            code += value
        elif value != "":
            made.append(Text(value) if isinstance(value, str) else value)
    return tuple(made)


def _close(made: list[Span], code: str | None) -> str | None:
    """Begin code at a back-tick, or end it."""
    if code is None:
        return ""
    made.append(Code(code))
    return None


def reply_blocks(text: str) -> tuple[Block, ...]:
    """Make a paragraph of a reply, its lines kept; back-ticks mark code, nothing else is read from it."""
    spans: list[Span] = []
    for said in clean(text).split("\n"):
        if said.strip():
            spans += [*([Break()] if spans else []), *coded(said)]
    return (Paragraph(tuple(spans)),)


def shortened(body: Blocks, most: int) -> Blocks:
    """Keep what fits into so many characters, for texts that are told beside others; a cut is marked."""
    if size(body) <= most:
        return body
    first = next(iter(split(body, limit=most).parts), ())
    return (*first, Paragraph((Text("…"),)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """Words of one language, and the secrets that must not be in them."""

    texts: Texts
    secrets: Collection[str] = ()

    def hide(self, text: str) -> str:
        return mask(text, self.secrets)

    def line(self, text: str, most: int) -> str:
        """Text from outside in one line."""
        return one_line(self.hide(text), most)

    def literal(self, text: str) -> tuple[Block, ...]:
        """Text from outside as it is."""
        return literal(self.hide(text))

    def quote(self, text: str, most: int = 1_500) -> tuple[Block, ...]:
        """What somebody said, as a quotation; a very long one is cut, and the cut is marked."""
        said = self.literal(text.strip())
        return (Quote(shortened(said, most)),) if said else ()

    def points(self, points: Iterable[object]) -> Block:
        """A judge's points as a list, a line each; it writes Markdown."""
        return Listing(tuple(Item((Paragraph(spans(self.line(str(point), 300))),)) for point in points))

    def markdown(self, text: str) -> tuple[Block, ...]:
        """Prose of a model."""
        return blocks(self.hide(text))

    def name(self, person: Person | None) -> str:
        """Say who somebody is in plain text; the word for somebody where no name is known."""
        if person is None:
            return self.texts.card.somebody
        if not person.id:  # the run itself, for instance when the disk is full
            return self.texts.card.itself
        return clean_name(self.hide(person.name)) or self.texts.card.somebody

    def who(self, person: Person | None) -> Span:
        """Show who somebody is; adapters put the platform's own name there."""
        if person is None or not person.id:
            return Text(self.name(person))
        return Mention(person.id, clean_name(self.hide(person.name)))

    def title(self, view: View) -> str:
        return self.line(view.request, TITLE) or str(view.run)

    def state(self, view: View, *, waiting: bool = False) -> str:
        """Say the state of a run in the words of product 1.2."""
        card = self.texts.card
        if view.state == "working":
            return self._working(view, waiting=waiting)
        plain: dict[State, str] = {
            "queued": card.queued,
            "starting": card.starting,
            "restarting": card.restarting,
            "lost": card.lost,
            "done": card.done,
            "not_reached": card.not_reached,
            "failed": card.failed,
        }
        by_person: dict[State, str] = {
            "held": card.paused_by,
            "stopping": card.stopping_by,
            "ended": card.stopped_by,
        }
        return plain.get(view.state) or by_person[view.state].format(who=self.name(view.by))

    def _working(self, view: View, *, waiting: bool) -> str:
        card = self.texts.card
        if waiting:
            return card.waiting
        if view.cutting:
            return card.stopping
        if view.reconnecting:
            return card.reconnecting
        return card.checking if view.judging else card.working

    def step(self, view: View) -> str:
        """Say where the run is: `Work 3/3, round 2 of 3`. Empty before the first step."""
        if not view.step:
            return ""
        card, name = self.texts.card, self.line(view.step, 40)
        step = card.step.format(step=name, index=view.index, total=view.total) if view.total else name
        if view.rounds:
            # The verdict of round 1 is followed by round 2, unless it was the last word.
            return card.step_rounds.format(step=step, round=max(1, view.round), rounds=view.rounds)
        return card.step_round.format(step=step, round=view.round) if view.round > 1 else step
