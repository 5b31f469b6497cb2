"""The store of a runtime: what a resume gets back is healed, and the cost that the program counts on from is noted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from claude_agent_sdk import SessionKey, SessionStoreEntry

from flower.stores.heal import heal_orphans
from flower.stores.sqlite import SqliteSessionStore


class ResumableSessionStore(SqliteSessionStore):
    """Gives a resume its transcript with a result for every tool call that was cut (behaviour 13.4, point 5).

    Args:
        orphan: says what stands for a result that never came; asked at each load, since the language may change.
    """

    def __init__(self, path: str | Path, *, orphan: Callable[[], str]) -> None:
        super().__init__(path)
        self._orphan = orphan
        self.carried: dict[str, float] = {}
        """US dollars from which the program goes on counting, for each session that was loaded."""

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        entries = await super().load(key)
        if entries is None:
            return None
        if not key.get("subpath"):
            self.carried[key["session_id"]] = _carried(entries)
        return heal_orphans(entries, self._orphan())


def _carried(entries: list[SessionStoreEntry]) -> float:
    states = [cast("dict[str, Any]", entry) for entry in entries if entry.get("type") == "cost-state"]
    return float(states[-1].get("totalCostUSD") or 0.0) if states else 0.0
