"""What a person sees of a run in the terminal: events in, lines out."""

from __future__ import annotations

from flower.cli.screen import Screen, standard
from flower.core.events import Event


class Render:
    """Show events on `screen`. A callable on `Event`; never raises.

    The receipt of a person's mail comes from here too (the `queued` event), so the input thread prints none.
    """

    def __init__(self, verbose: bool = False) -> None:
        self.verbose = verbose
        self.screen: Screen = standard()

    def __call__(self, ev: Event) -> None:
        self.screen.write(str(ev))


def render(ev: Event, *, verbose: bool = False) -> None:
    """Show one event."""
    Render(verbose)(ev)
