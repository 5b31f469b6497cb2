"""A view as cards: the slots of a thread, in its order, each with what should stand in it. Pure.

The same view, settings and minute give the same slots: a figure that grows by itself moves once a minute.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from bridge.ask_cards import ask_cards
from bridge.end_card import EndCard
from bridge.hostile import one_line
from bridge.line_cards import LINE_URGENCY, LineCards
from bridge.model import Abilities, Card, MessageRef, PersonId, Settled, Sign
from bridge.rich import Paragraph, Text
from bridge.root_card import RootCard
from bridge.slots import Slot, Urgency
from bridge.split import Blocks, plain, split
from bridge.status import help_text, status_text
from bridge.texts import Texts
from bridge.texts.units import money
from bridge.view import Activity, AskView, End, Line, Oracle, Say, View, ask_key
from bridge.wording import SUMMARY, Wording, fill, reply_blocks

__all__ = ["Slot", "Urgency", "help_text", "reply", "signs", "slots", "status_text"]

HEAD_ROOM = 300
"""Characters of a post that a note, a heading or a mention may need beside prose."""


def slots(
    view: View,
    *,
    texts: Texts,
    abilities: Abilities,
    now: float,
    settlements: Mapping[str, Settled] | None = None,
    secrets: Collection[str] = (),
) -> tuple[Slot, ...]:
    """Return what should stand in the thread, the root first, then in the order in which it happened.

    Args:
        view: the folded news.
        texts: the catalogue of the thread's language.
        abilities: of the platform.
        now: Unix seconds.
        settlements: how asks were settled from chat, by `ask_key`; such an ask shows it before the run says so.
        secrets: what must never be shown, beside whatever looks like a token.
    """
    drawing = _Drawing(
        view=view,
        words=Wording(texts=texts, secrets=frozenset(secrets)),
        abilities=abilities,
        now=now,
        settlements=settlements or {},
    )
    return tuple(drawing.slots())


def signs(view: View) -> tuple[tuple[MessageRef, Sign], ...]:
    """Return which receipts should stand on people's own messages."""
    return tuple((receipt.message, receipt.sign) for receipt in view.receipts)


def reply(text: str) -> Card:
    """Make the card of a reply of ours: a paragraph a line, code in back-ticks."""
    return Card(summary=one_line(text.replace("`", ""), SUMMARY), body=reply_blocks(text))


@lru_cache(maxsize=256)
def _parts(words: Wording, text: str, limit: int) -> tuple[Blocks, ...]:
    """Read and cut prose; kept, since a thread that cannot be posted to is drawn again and again."""
    return split(words.markdown(text), limit=limit).parts


FEW = 3
"""Calls that make a stretch worth a message of its own; one or two looks are noise (product 1.3)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drawing:
    """Draws one view."""

    view: View
    words: Wording
    abilities: Abilities
    now: float
    settlements: Mapping[str, Settled] = field(default_factory=dict)

    # -- all of them ----------------------------------------------------------------------------------------

    def slots(self) -> Iterator[Slot]:
        yield Slot(name="card", card=self.root(), urgency=Urgency.ASK)
        view = self.view
        found: list[tuple[int, tuple[Slot, ...]]] = []
        found += [(each.seq, tuple(self.prose("say", each.seq, self.say_parts(each)))) for each in view.says]
        busy = (each for each in view.activities if each.calls >= FEW or each.subagents)
        found += [(each.seq, (self.activity(each),)) for each in busy]
        found += [(each.seq, (self.line(each),)) for each in view.lines]
        found += [(each.seq, tuple(self.ask(each))) for each in view.asks]
        found += [(each.seq, tuple(self.oracle(each))) for each in view.oracles]
        found += [(each.seq, (self.end(each),)) for each in view.ends]
        for _, group in sorted(found, key=lambda each: each[0]):
            yield from group

    @property
    def open_asks(self) -> tuple[AskView, ...]:
        """Open, and not settled from chat a moment ago."""
        view = self.view
        return tuple(ask for ask in view.open_asks if ask_key(view.run, ask.fence, ask.id) not in self.settlements)

    @property
    def rings(self) -> tuple[PersonId, ...]:
        starter = self.view.starter
        return (starter.id,) if starter is not None and starter.id else ()

    @property
    def room(self) -> int:
        return max(200, self.abilities.post_limit - HEAD_ROOM)

    @property
    def lines(self) -> LineCards:
        return LineCards(words=self.words, room=self.room)

    def summary(self, text: str) -> str:
        return self.words.line(text, SUMMARY) or "…"

    def root(self) -> Card:
        return RootCard(
            view=self.view,
            words=self.words,
            abilities=self.abilities,
            minute=self.now // 60 * 60,
            open_asks=self.open_asks,
        ).draw()

    def line(self, told: Line) -> Slot:
        urgency = LINE_URGENCY.get(told.what, Urgency.PROSE)
        return Slot(name=f"line:{told.seq}", card=self.lines.draw(told), urgency=urgency, final=True)

    def end(self, end: End) -> Slot:
        title = self.words.title(self.view)
        card = EndCard(end=end, title=title, words=self.words, room=self.room, rings=self.rings).draw()
        return Slot(name=f"end:{end.seq}", card=card, urgency=Urgency.END, final=True)

    # -- prose and activity ---------------------------------------------------------------------------------

    def say_parts(self, say: Say) -> tuple[Blocks, ...]:
        return _parts(self.words, say.text, self.room)

    def prose(self, kind: str, seq: int, parts: tuple[Blocks, ...]) -> Iterator[Slot]:
        """A slot per part; the parts together hold the whole text."""
        for number, part in enumerate(parts, 1):
            note = "" if len(parts) == 1 else self.words.texts.thread.part.format(part=number, parts=len(parts))
            yield Slot(
                name=f"{kind}:{seq}:{number}",
                whole=f"{kind}:{seq}",
                card=Card(summary=self.summary(plain(part)), body=part, note=note),
                urgency=Urgency.PROSE,
                final=True,
            )

    def activity(self, activity: Activity) -> Slot:
        texts, words = self.words.texts.thread, self.words
        parts: list[str] = []
        if activity.calls:
            parts.append(texts.one_call if activity.calls == 1 else texts.calls.format(n=activity.calls))
        if activity.subagents:
            one = activity.subagents == 1
            parts.append(texts.one_subagent if one else texts.subagents.format(n=activity.subagents))
        if activity.open and activity.now and not self.view.over:
            parts.append(texts.now.format(what=words.line(activity.now, 80)))
        said = " · ".join(parts)
        card = Card(
            summary=self.summary(f"{texts.activity_now}: {said}"), body=(Paragraph((Text(said, emphasis=True),)),)
        )
        return Slot(name=f"activity:{activity.seq}", card=card, urgency=Urgency.PROSE, final=not activity.open)

    # -- asks, the oracle -----------------------------------------------------------------------------------

    def ask(self, ask: AskView) -> Iterator[Slot]:
        key = ask_key(self.view.run, ask.fence, ask.id)
        cards = ask_cards(
            ask,
            run=self.view.run,
            title=self.words.title(self.view),
            rings=self.rings,
            words=self.words,
            abilities=self.abilities,
            settled=self.settlements.get(key),
        )
        whole = f"ask:{ask.fence}:{ask.id}"
        for number, card in enumerate(cards, 1):
            last = number == len(cards)
            yield Slot(
                name=whole if last else f"{whole}:{number}",
                whole=whole,
                card=card,
                urgency=Urgency.ASK,
                final=not ask.open,
            )

    def oracle(self, oracle: Oracle) -> Iterator[Slot]:
        texts, words = self.words.texts.thread, self.words
        whole = f"oracle:{oracle.seq}"
        if oracle.state != "answered":
            yield Slot(name=whole, card=self.oracle_line(oracle), urgency=Urgency.PROSE, final=True)
            return
        head = Paragraph(fill(texts.oracle_answer_to, who=words.who(oracle.by)))
        note = texts.oracle_cost.format(cost=money(oracle.cost))
        body = (head, *words.quote(oracle.question, 300), *words.markdown(oracle.text))
        parts = split(body, limit=self.room).parts
        for number, part in enumerate(parts, 1):
            yield Slot(
                name=whole if number == 1 else f"{whole}:{number}",
                whole=whole,
                card=Card(
                    summary=self.summary(f"{texts.oracle_answer}: {oracle.text}"),
                    body=part,
                    note=note if number == len(parts) else texts.part.format(part=number, parts=len(parts)),
                ),
                urgency=Urgency.PROSE,
                final=True,
            )

    def oracle_line(self, oracle: Oracle) -> Card:
        texts, words = self.words.texts.thread, self.words
        if oracle.state == "failed":
            spans = fill(texts.oracle_failed, why=words.line(oracle.text, 500))
            return self.lines.told(spans, words.quote(oracle.question, 300))
        return self.lines.told(fill(texts.oracle_asked, who=words.who(oracle.by)), words.quote(oracle.question))
