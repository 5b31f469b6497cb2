"""Every text that a person reads in a thread, in English and in Chinese (product 5).

One module a topic, in each a frozen dataclass and its two values `EN` and `ZH`, so that the type checker sees a missing
entry. `{name}` in an entry is filled in by whoever uses it; what is filled in is never read as a template again.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridge.texts import asks, card, helping, replies, thread, units

__all__ = ["LANGUAGES", "Texts", "of"]

LANGUAGES = ("en", "zh")


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """One language's catalogue."""

    language: str
    card: card.CardTexts
    thread: thread.ThreadTexts
    asks: asks.AskTexts
    replies: replies.ReplyTexts
    helping: helping.HelpTexts
    units: units.UnitTexts


_CATALOGUES = {
    "en": Texts(
        language="en",
        card=card.EN,
        thread=thread.EN,
        asks=asks.EN,
        replies=replies.EN,
        helping=helping.EN,
        units=units.EN,
    ),
    "zh": Texts(
        language="zh",
        card=card.ZH,
        thread=thread.ZH,
        asks=asks.ZH,
        replies=replies.ZH,
        helping=helping.ZH,
        units=units.ZH,
    ),
}


def of(language: str) -> Texts:
    """The catalogue of `language`.

    Raises:
        ValueError: no such catalogue.
    """
    try:
        return _CATALOGUES[language]
    except KeyError:
        raise ValueError(f"no texts in {language!r}; there are {', '.join(LANGUAGES)}") from None
