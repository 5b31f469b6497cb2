"""The values that cross the bridge: who said what where, and what should stand in a thread.

Everything here is frozen and knows no platform. A `key` is opaque: only the adapter that made it may read it
(house style 13); none of them ever becomes a number (field case TH-3).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NewType

from bridge.rich import Block

Platform = NewType("Platform", str)
"""Name of a chat platform, as its adapter says it: `slack`."""

RunId = NewType("RunId", str)
"""Name of one run, short enough to be typed: `k3f9qa`. Lower-case letters and digits only."""

PersonId = NewType("PersonId", str)
"""Full identity of a person on a platform, workspace included. Opaque; allow-lists hold these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Somebody on a platform. `name` is for display only and may be empty or hostile text."""

    id: PersonId
    name: str = ""


@dataclass(frozen=True, slots=True)
class PlaceRef:
    """A channel or room, where a thread can be opened."""

    platform: Platform
    key: str


@dataclass(frozen=True, slots=True)
class ThreadRef:
    """One conversation. `key` is opaque: only the adapter that made it may read it."""

    platform: Platform
    key: str


@dataclass(frozen=True, slots=True)
class PostRef:
    """A message that we posted. The root of a thread (the card) has the thread that it opened."""

    thread: ThreadRef
    key: str


@dataclass(frozen=True, slots=True)
class MessageRef:
    """A message that a person wrote: receipts are put on it."""

    thread: ThreadRef
    key: str


# -- what people do ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """A message in a thread. `id` is the platform's own and the same when the message is delivered again."""

    id: str
    thread: ThreadRef
    message: MessageRef
    author: Person
    text: str
    at: float
    """When the platform took the message, in its own clock, Unix seconds. Comparable with `Posted.at`."""
    mentions_us: bool = False
    """Whether the text began with a mention of the bot (which the adapter has taken off)."""
    mentions_other: bool = False
    """Whether the first mention in the text is of another person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tap:
    """A pressed button, or a form sent from one. `action` is what `Button.action` said."""

    id: str
    thread: ThreadRef
    author: Person
    action: str
    text: str = ""
    """What was typed into the form; empty for a plain button."""
    at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Summons:
    """A wish addressed to the bot outside a run's thread: a slash command or a mention."""

    id: str
    place: PlaceRef
    author: Person
    text: str
    at: float
    private: str = ""
    """Opaque handle for a private reply, where the platform gave one."""


Inbound = Words | Tap | Summons

# -- what a thread shows ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Button:
    """Something to tap. `action` is short and carries no secret (SL-7)."""

    action: str
    label: str
    style: Literal["plain", "primary", "danger"] = "plain"
    form: str = ""
    """Not empty: pressing it opens a form with this prompt; what is typed comes back in `Tap.text`."""
    confirm: str = ""
    """Not empty: the platform asks this before it counts the press."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One message as it should stand. Adapters render it; nobody else knows a platform's markup.

    All strings are plain text from people, models and ourselves: the adapter escapes every one of them.
    """

    summary: str
    """One plain line: the notification on a phone and what a screen reader says first."""
    body: tuple[Block, ...] = ()
    note: str = ""
    """Small print below the body: figures, who and when."""
    buttons: tuple[Button, ...] = ()
    rings: tuple[PersonId, ...] = ()
    """People whom the platform should notify with this message."""


Sign = Literal["received", "delivered", "refused"]
"""Receipt on a person's own message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """What a platform can do, as data (house style 16). Figures are the platform's published ones."""

    post_limit: int
    """Most characters of rendered text in one post; longer prose is split before."""
    edit_limit: int
    """Most characters of rendered text in an edited post."""
    buttons: int
    """Most buttons in one card."""
    label_limit: int
    """Characters of a button that are shown in full on a phone."""
    forms: bool
    whispers: bool
    signs: bool
    lookup: bool
    """Whether `Chat.find` can tell if a post whose answer was lost is there."""
    post_every: float
    """Seconds between two posts in one place, in the long run."""
    post_burst: int
    edit_every: float
    """Seconds between two edits in the whole workspace, in the long run."""
    edit_burst: int


# -- what a run tells -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """One thing that happened in a run, in the order in which it happened there. See docs/wire.md.

    `kind` is one of flower's event kinds or one of the runner's own (`run`, `receipt`, `oracle`, `step_end`); readers
    must pass over kinds that they do not know.
    """

    seq: int
    """From 1, without a gap, over all attempts of the run. It is also the position in the event line."""
    fence: int
    """Number of the attempt that said it; 0 is the bot itself before the first runner."""
    at: float
    kind: str
    text: str = ""
    tool: str = ""
    payload: Mapping[str, Any] = field(default_factory=dict)


RunStatus = Literal["queued", "starting", "running", "held", "lost", "done", "not_reached", "failed", "ended"]
"""Coarse state of a run, kept beside its lease. `FINAL` ones take no new runner except by *continue*."""

FINAL: frozenset[str] = frozenset({"done", "not_reached", "failed", "ended"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """What is known of a run from its start on. Written once; who may steer is decided from it."""

    run: RunId
    thread: ThreadRef | None
    place: PlaceRef
    request: str
    workspace: str
    """Name of the workspace in the settings."""
    folder: str
    """Absolute path of the run folder (events log, flower's `run_dir`)."""
    starter: Person
    created: float
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the start as typed: `budget`, `asks`, `timeout`, `new`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Posted:
    """What we know of one slot of a thread: a message with a name of its own, posted at most once."""

    name: str
    once: str
    """The key under which the platform can find it."""
    post: PostRef | None = None
    """None: a post was intended and its outcome is not known."""
    digest: str = ""
    """Of the card that was shown last."""
    at: float = 0.0
    """When the platform took it, in its own clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """How an ask was settled from chat: the first one wins, and is kept (AS-4)."""

    ask: str
    """Identity on the wire: run, fencing number, ask id (rulings R2)."""
    by: Person
    how: Literal["answered", "declined"]
    text: str
    at: float
