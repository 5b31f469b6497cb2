"""What happens after an attempt: finish, go on with people's words, hand over, or try again. Pure (behaviour 15.3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from flower.core.handoff import is_overflow

INTERRUPTED = "interrupted-by-human"
ENDED = "ended-by-human"
HANDOFF_DUE = "context-full-handoff"

SESSION_FILE = "session_file"
NO_WORKSPACE = "no_workspace"
"""Our own kinds of failure, which trying again does not mend: the file of the transcripts, the workspace."""

_FATAL = frozenset({400, 401, 403, 404, 413})
_PASSING = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
_FULL = frozenset({"blocking_limit", "prompt_too_long"})
"""Reasons for which the program ends a turn whose context does not fit (SDK facts 14)."""


class End(Enum):
    """What `Runtime.on_interrupted` answers to end the run: `Runtime.END`."""

    END = "end"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How an attempt ended.

    `error` is what it says to people. `status` and `kind` are what the API answered and how the program calls it,
    where there is such a thing; they are trusted more than any wording (SDK facts 3, trap 8).
    """

    ok: bool
    error: str | None = None
    status: int | None = None
    kind: str = ""
    reason: str = ""
    """How the program itself says that the turn ended (`terminal_reason`)."""
    errors: tuple[str, ...] = ()
    """The synthetic error texts of this attempt alone (D14)."""

    @property
    def full(self) -> bool:
        """Whether it failed because the context does not fit."""
        return not self.ok and (self.reason in _FULL or is_overflow(self.error, *self.errors))


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """The step is over, well or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoOn:
    """A person cut the attempt; the same session goes on with their words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandOff:
    """The context is full; a fresh session takes over.

    `overflow`: it does not fit any more, so the full session cannot even write the handoff.
    """

    overflow: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """Wait until it can work, then go on in the same session, or start over where there is none."""

    kind: str


Move = Finish | GoOn | HandOff | Retry


def after(
    ending: Ending,
    *,
    session: str | None,
    tried: int,
    limit: int,
    hands_over: bool,
    classify: Callable[[str | None], str],
    retryable: Callable[[str], bool],
) -> Move:
    """Decide what follows an attempt.

    Args:
        session: the session that can be resumed.
        tried: attempts so far that count; interrupts do not.
        limit: attempts in all; 1 when failures are not retried.
        hands_over: whether a full context is handed over.
        classify: fatal, transient or unknown, from an error's text.
        retryable: which of these are tried again.
    """
    if ending.ok or ending.error == ENDED:
        return Finish()
    if ending.error == INTERRUPTED:
        return GoOn() if session else Finish()
    if session and ending.error == HANDOFF_DUE:
        return HandOff(overflow=False)
    if session and hands_over and ending.full:
        return HandOff(overflow=True)
    kind = kind_of(ending, classify)
    return Retry(kind=kind) if tried < limit and retryable(kind) else Finish()


def kind_of(ending: Ending, classify: Callable[[str | None], str]) -> str:
    """Classify a failure: by the API's status where there is one, else by its words."""
    if ending.status in _FATAL or ending.kind in (SESSION_FILE, NO_WORKSPACE):
        return "fatal"
    if ending.status in _PASSING:
        return "transient"
    return classify(f"{ending.error or ''} {ending.kind}".strip())


def budget_left(limits: list[tuple[float | None, float]]) -> float | None:
    """Return what the tightest of several limits leaves, US dollars; None without a limit.

    Args:
        limits: pairs of a limit (or None) and what was spent against it.
    """
    return min((limit - spent for limit, spent in limits if limit is not None), default=None)
