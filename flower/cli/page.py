"""The lines of one event while they are put together, and what is known of the run they belong to."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeGuard

from flower import texts
from flower.cli.text import RESET, clean, cut, plain, width, wrap
from flower.core.events import Event
from flower.texts.terminal import TerminalTexts

BOLD, DIM, RED, GREEN, YELLOW, BLUE, CYAN = "1", "2", "31", "32", "33", "34", "36"
LOUD = "1;33"
"""What waits for a person."""
MOST_SUMMARY = 2_000
"""Characters of a text that are looked at for one row; more cannot be seen."""


_MOST_PROSE = 100_000
"""Characters of one text that are shown; more is an accident, and would hold up the run."""
_MOST_OPEN = 1_000
_HEADING = re.compile(r"^#{1,6} +(?P<text>\S.*)$", re.MULTILINE)
_BULLET = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)、])\s+|\s+|>\s+")


@dataclass(slots=True, kw_only=True)
class State:
    """What is known of a run, and of what was shown last. Changes with each event that goes through `lines`."""

    began: datetime
    said: texts.Texts = field(default_factory=texts.current)
    cost: float = 0.0
    context: int = 0
    calls: dict[str, str] = field(default_factory=dict)
    """Tools that are at work, by the id of their call."""
    agents: dict[str, int] = field(default_factory=dict)
    """Subagents that are at work, by the id of their call, and the number that each is shown with."""
    agents_seen: int = 0
    questions: dict[str, Event] = field(default_factory=dict)
    """Questions that wait, by id, oldest first."""
    posed: str = ""
    """The question that was shown last as the one to answer."""
    rows_since: int = 0
    """Lines shown since."""
    last: str = ""
    """What was shown last: a kind of event, or the id of a question."""
    blank: bool = True
    """Whether the last line shown was empty."""
    status: tuple[str, ...] = ()
    status_at: datetime | None = None


@dataclass(slots=True, kw_only=True)
class Page:
    """The lines of one event while they are put together."""

    ev: Event
    state: State
    now: datetime
    columns: int
    verbose: bool
    rows: list[str] = field(default_factory=list)

    @property
    def words(self) -> TerminalTexts:
        return self.state.said.terminal

    @property
    def payload(self) -> Mapping[str, Any]:
        return self.ev.payload

    @property
    def subagent(self) -> bool:
        return bool(self.payload.get("subagent"))

    @property
    def margin(self) -> str:
        """What stands before every line of a subagent; a number where several are at work."""
        if not self.subagent:
            return ""
        number = self.state.agents.get(str(self.payload.get("parent_tool_use_id")))
        return f"| {number} " if number and len(self.state.agents) > 1 else "| "

    def gap(self) -> None:
        """Leave one line empty."""
        if not (self.rows[-1] == "" if self.rows else self.state.blank):
            self.rows.append("")

    def row(self, icon: str, text: str, colour: str = "") -> None:
        """Add one line, cut to the width."""
        self.rows.append(painted(cut(f"{self.margin}{icon} {text}", self.columns), colour))

    def block(self, icon: str, text: str, colour: str = "", *, indent: int = 0) -> None:
        """Add wrapped text without colours of its own, with the icon before its first line."""
        margin = self.margin + " " * indent
        head = f"{margin}{icon} " if icon else margin
        rest = margin + " " * (len(icon) + 1 if icon else 0)
        for row in wrapped(plain(prose(text, self.words)), self.columns, head, rest):
            self.rows.append(painted(row, colour))

    def status(self) -> None:
        """Add the line of figures: when, how long, how full, how dear."""
        state = self.state
        figures = [lasted(self.now - state.began)]
        if state.context:
            figures.append(self.words.context.format(size=size(state.context)))
        if state.cost:
            figures.append(dollars(state.cost))
        state.status, state.status_at = tuple(figures[1:]), self.now
        self.gap()
        self.rows.append(painted(cut(f". {self.now:%H:%M} · {' · '.join(figures)}", self.columns), DIM))


def prose(text: str, words: TerminalTexts) -> str:
    over = len(text) - _MOST_PROSE
    return clean(text if over <= 0 else f"{text[:_MOST_PROSE]}\n{words.left_out.format(count=over)}")


def with_headings(text: str) -> str:
    """Return prose whose headings stand out instead of carrying marks."""
    return _HEADING.sub(_raised, text)


def _raised(heading: re.Match[str]) -> str:
    """A heading without its marks."""
    return painted(plain(heading["text"]), BOLD)


def wrapped(text: str, columns: int, head: str, rest: str) -> Iterator[str]:
    """Wrap prose, lines of lists below their text; several empty lines in a row become one."""
    empty = False
    for line in text.split("\n"):
        if not plain(line).strip():
            if not empty:
                yield rest.rstrip()
            empty = True
            continue
        empty = False
        bullet = _BULLET.match(line)
        hang = " " * min(width(bullet[0]), columns // 3) if bullet else ""
        yield from wrap(line.rstrip(), columns, first=head, rest=rest + hang)
        head = rest


def painted(row: str, colour: str) -> str:
    return f"\x1b[{colour}m{row}{RESET}" if colour and row else row


def remember(table: dict[str, Any], key: str, value: Any) -> None:
    """Remember what has begun. What never ends, for instance after an interrupt, is forgotten in time."""
    table[key] = value
    if len(table) > _MOST_OPEN:
        del table[next(iter(table))]


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def string(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def finite(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and math.isfinite(value)


def size(tokens: int) -> str:
    return f"{tokens / 1000:.1f}K"


def dollars(cost: float) -> str:
    return f"${cost:.2f}" if cost >= 0.1 else f"${cost:.4f}"


def lasted(passed: timedelta) -> str:
    seconds = max(0, int(passed.total_seconds()))
    hours, minutes = divmod(seconds // 60, 60)
    return f"{hours}h{minutes:02}m" if hours else f"{minutes}m{seconds % 60:02}s"
