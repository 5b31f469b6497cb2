"""Which ask do words answer, and with which of its options? Pure; where it cannot be told, nothing is guessed."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from bridge.actions import PickAnswer, PickMail, encode
from bridge.hostile import one_line
from bridge.model import Abilities, Button, Card, RunId, Words
from bridge.rich import Item, Listing, Paragraph, Text, line
from bridge.view import AskView, View
from bridge.wording import Wording, fill

_WIDE_DIGITS = {0xFF10 + digit: str(digit) for digit in range(10)}
_NUMBER = re.compile(r"(?:option\s*|选项\s*|#|№)?([0-9]{1,3})\s*[.)、。]?", re.I)
_BY_NUMBER = re.compile(r"(?:q\s*#?|#)\s*([0-9]{1,6})\b[\s:,.\-–—]*|([0-9]{1,6})(?=[\s:,.]|$)[\s:,.\-–—]*", re.I)
_ALIKE = str.maketrans({
    **dict.fromkeys("‘’‛′`´", "'"),
    **dict.fromkeys("“”„«»″", '"'),
    **dict.fromkeys("‐‑‒–—−", "-"),
    "\u00a0": " ",
    "…": "...",
})  # fmt: skip


def plain_form(text: str) -> str:
    """Make texts equal that differ only in what phones change: quotes, dashes, case, blanks, a full stop."""
    text = unicodedata.normalize("NFKC", text.translate(_ALIKE)).translate(_ALIKE)
    return " ".join(text.casefold().split()).strip(" .!。！")


def option_of(options: Sequence[str], text: str) -> str | None:
    """Return the option that a text names by its number or its label; None: none, or more than one."""
    wanted = plain_form(text)
    found = {at for at, option in enumerate(options) if plain_form(option) == wanted}
    number = _NUMBER.fullmatch(text.strip().translate(_WIDE_DIGITS))
    if number is not None and 0 < int(number[1]) <= len(options):
        found.add(int(number[1]) - 1)
    return options[found.pop()] if len(found) == 1 else None


def by_number(rest: str) -> tuple[int | None, str]:
    """Split what stands behind `!answer` and `!skip`: the number of an ask, where there is one, and the words."""
    found = _BY_NUMBER.match(rest)
    if found is None:
        return None, rest
    return int(found[1] or found[2]), rest[found.end() :].strip()


def number_of(view: View, number: int) -> AskView | None:
    """Find an ask by what people call it."""
    return next((ask for ask in (*view.asks, *view.past) if ask.number == number), None)


def pick_card(
    said: Words, asks: Sequence[AskView], *, run: RunId, note: str, words: Wording, abilities: Abilities
) -> Card:
    """Ask what words are: an answer, and to which question, or a note for the agent."""
    texts = words.texts.asks
    shown = asks[: max(0, abilities.buttons - 1)]
    buttons = [
        Button(
            action=encode(PickAnswer(run=run, fence=ask.fence, ask=ask.id, note=note)),
            label=texts.pick_answer.format(number=ask.label),
        )
        for ask in shown
    ]
    buttons.append(Button(action=encode(PickMail(run=run, note=note)), label=texts.pick_mail))
    items = tuple(
        Item((Paragraph((Text(f"{ask.label}: ", strong=True), Text(words.line(ask.question, 200)))),)) for ask in asks
    )
    body = (
        Paragraph(fill(texts.pick_quote, who=words.who(said.author))),
        *words.quote(said.text, 500),
        line(texts.pick_body),
        Listing(items),
    )
    return Card(summary=one_line(texts.pick_summary, 150), body=body, buttons=tuple(buttons[: abilities.buttons]))
