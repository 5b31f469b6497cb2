"""What a runtime tells of its surroundings, once: a model that nobody asked for, a plugin that is not there."""

from __future__ import annotations

from flower import texts
from flower.core import env
from flower.core.events import Event

_SPOKEN = ("text", "thinking", "tool_call")


class Notices:
    """Remembers what was told. For the loop's thread."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def first(self, matter: str) -> bool:
        """Whether nothing was told of this matter yet; from now on it counts as told."""
        new = matter not in self._told
        self._told.add(matter)
        return new

    def after(self, event: Event, *, chosen: str | None) -> Event | None:
        """Return what is to be told behind an event.

        Args:
            chosen: the model that the spec or the runtime names; the environment's does not count then.
        """
        if event.kind == "system" and event.text == "init":
            return self._plugins(event)
        if event.kind == "system" and event.text == "mirror_error":
            text = texts.current().running.mirror_lost.format(error=event.payload.get("error", "?"))
            return Event("error", text, payload={"mirror_lost": True})
        served = event.payload.get("model")
        if served and event.kind in _SPOKEN and not event.payload.get("subagent"):
            return self._model(str(served), chosen)
        return None

    def _plugins(self, event: Event) -> Event | None:
        """The program runs on without a plugin that it cannot load, and says so here only (SDK facts 5, R25)."""
        errors = event.payload.get("plugin_errors")
        if not errors or not self.first("plugins"):
            return None
        text = texts.current().running.plugin_broken.format(errors="; ".join(map(str, errors)))
        return Event("error", text, payload={"plugin_errors": errors})

    def _model(self, served: str, chosen: str | None) -> Event | None:
        """The window is guessed from the name, so another model often means a wrong window (D21)."""
        want = env.main_model()
        if not self.first("model") or not want or chosen or want.lower() == served.lower():
            return None
        text = texts.current().running.model_mismatch.format(want=want, served=served)
        return Event("error", text, payload={"model_mismatch": True, "want": want, "served": served})
