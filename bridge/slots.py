"""One message of a thread, as it should stand."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from bridge.model import Card


class Urgency(IntEnum):
    """What goes first (product 2, rule 4)."""

    ASK = 0
    """Asks, stop receipts, and the card that opens a thread."""
    END = 1
    PROSE = 2
    EDIT = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """One message of a thread."""

    name: str
    card: Card
    urgency: Urgency
    final: bool = False
    """The card can never change again: once it stands in the thread, the slot can be forgotten."""
    whole: str = ""
    """Name of what this is a part of; parts are forgotten together. Empty: it is no part."""

    @property
    def group(self) -> str:
        return self.whole or self.name
