"""The cards of one question: its text in full, something to tap, and how it was settled (product 1.4). Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bridge.actions import Choose, InWords, Skip, encode
from bridge.hostile import clean, one_line
from bridge.model import Abilities, Button, Card, PersonId, RunId, Settled
from bridge.rich import Item, Listing, Paragraph, Text, When, line
from bridge.split import Blocks, split
from bridge.view import AskView
from bridge.wording import SUMMARY, Wording, fill

RESERVE = 2_200
"""Characters kept free in the last card of a question, for its outcome and the answer."""
TWO = 2
"""Buttons that every question has beside its options: in words, skip."""


def ask_cards(
    ask: AskView,
    *,
    run: RunId,
    title: str,
    rings: tuple[PersonId, ...],
    words: Wording,
    abilities: Abilities,
    settled: Settled | None,
) -> tuple[Card, ...]:
    """Return the cards of a question. The last one carries the buttons or the outcome; nothing of the text is left out.

    The text is cut in the same places while the question is open and after it was settled, so that only the last card
    changes.
    """
    choices = Choices(ask=ask, run=run, words=words, abilities=abilities)
    body: Blocks = (*words.markdown(ask.question), *choices.listing())
    room = max(400, min(abilities.post_limit, abilities.edit_limit) - RESERVE)
    parts = split(body, limit=room).parts or ((),)
    texts, question = words.texts.asks, words.line(ask.question, 100)
    cards = [
        Card(
            summary=one_line(texts.summary.format(title=title, number=ask.label, question=question), SUMMARY),
            body=(_head(texts.continued.format(number=ask.label, part=number, parts=len(parts))), *part),
        )
        for number, part in enumerate(parts[:-1], 1)
    ]
    template = texts.continued if len(parts) > 1 else texts.asks
    head = _head(template.format(number=ask.label, part=len(parts), parts=len(parts)))
    last: Blocks = (head, *parts[-1])
    if ask.open and settled is None:
        return (*cards, _open(ask, last, title=title, rings=rings, words=words, choices=choices))
    return (*cards, _closed(ask, last, words=words, settled=settled))


def _head(text: str) -> Paragraph:
    return Paragraph((Text(text, strong=True),))


def _open(
    ask: AskView, body: Blocks, *, title: str, rings: tuple[PersonId, ...], words: Wording, choices: Choices
) -> Card:
    texts = words.texts.asks
    waits = line(texts.waits_until, When(ask.until), ".") if ask.until is not None else line(texts.waits)
    question = words.line(ask.question, 100)
    return Card(
        summary=one_line(texts.summary.format(title=title, number=ask.label, question=question), SUMMARY),
        body=(*body, waits),
        note=choices.how(),
        buttons=tuple(choices.buttons()),
        rings=rings,
    )


def _closed(ask: AskView, body: Blocks, *, words: Wording, settled: Settled | None) -> Card:
    texts = words.texts.asks
    state = ask.state if not ask.open or settled is None else settled.how
    waiting = ask.open  # settled from chat, and the run has not said so yet
    template = {
        "answered": texts.sent if waiting else texts.answered,
        "declined": texts.declined_sent if waiting else texts.declined,
        "timeout": texts.timeout,
        "over_budget": texts.over_budget,
        "withdrawn": texts.withdrawn,
    }[state]
    by = ask.by or (settled.by if settled is not None and settled.how == state else None)
    at = ask.settled if not ask.open else (settled.at if settled is not None else ask.at)
    outcome = Paragraph((*fill(template, who=words.who(by)), Text(" · "), When(at)))
    # What flower tells the agent when nobody answers is not an answer of anybody's.
    answer = (ask.answer or (settled.text if settled is not None else "")) if state == "answered" else ""
    said = template.format(who=words.name(by)) + (f": {words.line(answer, 100)}" if answer else "")
    return Card(
        summary=one_line(texts.settled_summary.format(number=ask.label, outcome=said), SUMMARY),
        body=(*body, outcome, *words.quote(answer)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """The options of a question as buttons, and as a list where buttons cannot say them in full (AS-9, R21)."""

    ask: AskView
    run: RunId
    words: Wording
    abilities: Abilities

    @property
    def labels(self) -> tuple[str, ...]:
        """The options as they are shown, in full."""
        return tuple(" ".join(clean(self.words.hide(option)).split()) for option in self.ask.options)

    @property
    def room(self) -> int:
        """How many options can have a button."""
        return max(0, self.abilities.buttons - TWO)

    @property
    def numbered(self) -> bool:
        """Whether the buttons alone would not do: too long, too many, or two that look the same."""
        labels = self.labels
        return (
            len(labels) > self.room
            or any(len(label) > self.abilities.label_limit for label in labels)
            or len({label.casefold() for label in labels}) < len(labels)
        )

    def listing(self) -> Blocks:
        if not self.labels or not self.numbered:
            return ()
        items = tuple(Item((Paragraph((Text(label),)),)) for label in self.labels)
        return (Listing(items, ordered=True),)

    def buttons(self) -> Iterator[Button]:
        ask, texts = self.ask, self.words.texts.asks
        if self.abilities.buttons < TWO:
            return
        for number, label in enumerate(self.labels[: self.room]):
            action = encode(Choose(run=self.run, fence=ask.fence, ask=ask.id, option=number))
            shown = f"{number + 1}. {label}" if self.numbered else label
            yield Button(action=action, label=one_line(shown, max(self.abilities.label_limit, 3)))
        if self.abilities.forms:
            action = encode(InWords(run=self.run, fence=ask.fence, ask=ask.id))
            prompt = texts.words_prompt.format(number=ask.label) + ": " + self.words.line(ask.question, 200)
            yield Button(action=action, label=texts.words, form=prompt)
        yield Button(action=encode(Skip(run=self.run, fence=ask.fence, ask=ask.id)), label=texts.skip)

    def how(self) -> str:
        """Say how to answer."""
        texts = self.words.texts.asks
        if not self.labels:
            return texts.typed_answer
        if len(self.labels) > self.room:
            return texts.more_numbers.format(shown=self.room) if self.room else texts.number_answer
        return texts.number_answer if self.numbered else ""
