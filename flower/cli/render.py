"""What a person sees of a run in the terminal: events in, lines out.

`lines` decides and is pure but for the `State` it is given; `Render` keeps that state and writes to the screen. The
look is for somebody who watches for hours: prose is wrapped and whole, calls take one line, and what a person has to
act on stands apart.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from flower.cli import asking, course, talking
from flower.cli.page import Page, State
from flower.cli.screen import Screen, standard
from flower.core.events import Event

__all__ = ["Render", "State", "lines", "render"]


class Render:
    """Show events on `screen`. A callable on `Event`, on the loop's thread; never raises.

    Kinds that it does not know are ignored. The receipt of a person's mail comes from here too (the `queued` event),
    so the input thread prints none.

    Args:
        verbose: also show subagents' prose, prompts and successful results.
    """

    def __init__(self, verbose: bool = False) -> None:
        self.verbose = verbose
        self.screen: Screen = standard()
        self.state = State(began=_now())

    def __call__(self, ev: Event) -> None:
        try:
            shown = lines(ev, self.state, now=_now(), columns=self.screen.width, verbose=self.verbose)
        except Exception as err:  # noqa: BLE001 - boundary: a sink that raises burns the attempts of a run (behaviour 5.2)
            said = self.state.said.terminal.cannot_show.format(kind=ev.kind, error=type(err).__name__)
            shown = [f"! {said}"]
        if shown:
            self.screen.write("".join(line + "\n" for line in shown))


def render(ev: Event, *, verbose: bool = False) -> None:
    """Show one event on standard output, as `Render` does."""
    Render(verbose)(ev)


def lines(ev: Event, state: State, *, now: datetime, columns: int, verbose: bool = False) -> list[str]:
    """Return the lines that show an event, none wider than `columns`; none for a kind that is not known.

    Args:
        state: what was shown before; changed.
        now: with a time zone.
        verbose: also show subagents' prose, prompts and successful results.
    """
    show = _KINDS.get(ev.kind)
    if show is None:
        return []
    page = Page(ev=ev, state=state, now=now, columns=columns, verbose=verbose)
    show(page)
    if page.rows:
        asking.keep_in_sight(page)
        state.blank = not page.rows[-1]
    return page.rows


_KINDS: dict[str, Callable[[Page], None]] = {
    "text": talking.text,
    "thinking": talking.thinking,
    "prompt": talking.prompt,
    "tool_call": talking.tool_call,
    "tool_result": talking.tool_result,
    "task": course.task,
    "system": course.system,
    "reset": course.reset,
    "result": course.result,
    "error": course.error,
    "retry": course.retry,
    "ask": asking.ask,
    "step": course.step,
    "handoff": course.handoff,
}
"""`unknown` is left out with purpose: a person can do nothing about it."""


def _now() -> datetime:
    return datetime.now(tz=UTC).astimezone()
