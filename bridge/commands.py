"""What a person can do to a run: a closed union, matched to the end with `assert_never` (house style 14).

The words are those of rulings R22: *interrupt* (go on with words), *hold* (wait for a person), *end*, *kill*.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from bridge.model import MessageRef, Person


@dataclass(frozen=True, slots=True, kw_only=True)
class _Act:
    id: str
    """Of the inbound that caused it; the same act that arrives twice has one effect."""
    by: Person
    at: float
    message: MessageRef | None = None
    """The person's message, for receipts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(_Act):
    """Answer an ask. `ask` is flower's id (`q1`), `fence` the attempt that asked (rulings R2)."""

    fence: int
    ask: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Decline(_Act):
    """Skip an ask: the agent decides."""

    fence: int
    ask: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Say(_Act):
    """Mail for the agent's inbox. Does not interrupt."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupt(_Act):
    """Cut, and go on in the same session with these words (rulings R3)."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold(_Act):
    """Cut at once, then wait for a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume(_Act):
    """A held run goes on, with or without words."""

    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class End(_Act):
    """End the run: state written down, accounts saved, process ended. It can be continued later."""

    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Consult(_Act):
    """Ask the oracle, beside the run."""

    question: str


Command = Answer | Decline | Say | Interrupt | Hold | Resume | End | Consult

NAMES: dict[str, type[Command]] = {cls.__name__.lower(): cls for cls in get_args(Command)}
"""Name on the wire -> class. Derived, so that it cannot lag behind the union."""
