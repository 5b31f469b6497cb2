"""How a run ended, as one value for the thread: status, verdict, cost, files."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bridge.model import RunStatus

SKIPPED = frozenset({".git", ".flower", "__pycache__", "node_modules", ".venv"})
MOST_FILES = 50
MOST_LOOKED_AT = 20_000
"""Files of a workspace that are compared at most; a larger one tells no changed files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The end of a run."""

    status: RunStatus
    reason: str = ""
    verdict: Mapping[str, Any] | None = None
    unverifiable: tuple[str, ...] = ()
    text: str = ""
    steps: tuple[Mapping[str, Any], ...] = ()
    cost_usd: float | None = None
    """All attempts, without the oracle, US dollars; None: not known."""
    aside_usd: float | None = None
    """Oracle questions of all attempts."""
    files: tuple[str, ...] = field(default_factory=tuple)


def status_of(ctx: Mapping[str, Any]) -> tuple[RunStatus, str]:
    """Name the end of a workflow that ended by itself: done, goal not reached, failed; and why."""
    failed_at = ctx.get("_failed_at")
    if failed_at is None:
        return "done", ""
    result = (ctx.get("_results") or {}).get(failed_at)
    if aborted := ctx.get("_aborted"):
        return "not_reached", str(aborted)
    verdict = ctx.get("_verdict")
    if result is not None and result.ok and verdict is not None and not verdict.achieved:
        return "not_reached", str(verdict.reason)
    return "failed", str(getattr(result, "error", None) or f"step {failed_at} did not pass")


def verdict_of(verdict: Any) -> dict[str, Any]:
    """Return flower's `Verdict` as it stands in payloads."""
    return {"state": verdict.state, "reason": verdict.reason, "failed": list(verdict.failed)}


def payload_of(ended: Outcome) -> dict[str, Any]:
    """Return the end as it stands in the payload of the last news (docs/wire.md); what is not known is left out."""
    costs = {"cost_usd": ended.cost_usd, "aside_usd": ended.aside_usd}
    return {
        "verdict": ended.verdict,
        "unverifiable": list(ended.unverifiable),
        "text": ended.text,
        "steps": [dict(step) for step in ended.steps],
        "files": list(ended.files),
        **{name: cost for name, cost in costs.items() if cost is not None},
    }


def cost_of(manifest: Path) -> float | None:
    """Add up what the rows of a manifest cost, those of all attempts, US dollars. None: it cannot be read."""
    try:
        rows = json.loads(manifest.read_text(encoding="utf-8"))
        return round(sum(float(row.get("cost_usd") or 0.0) for row in rows), 6)
    except FileNotFoundError:
        return 0.0
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def snapshot(workspace: Path) -> dict[str, tuple[int, int]] | None:
    """List the files of a workspace with size and time of change; None when there are too many to compare."""
    found: dict[str, tuple[int, int]] = {}
    for folder, folders, names in os.walk(workspace):
        folders[:] = [name for name in folders if name not in SKIPPED]
        for name in names:
            path = Path(folder, name)
            try:
                stat = path.lstat()
            except OSError:
                continue
            found[str(path.relative_to(workspace))] = (stat.st_size, stat.st_mtime_ns)
            if len(found) > MOST_LOOKED_AT:
                return None
    return found


def changed(
    before: Mapping[str, tuple[int, int]] | None, after: Mapping[str, tuple[int, int]] | None
) -> tuple[str, ...]:
    """Name the files that are new or different, sorted, at most fifty."""
    if before is None or after is None:
        return ()
    return tuple(sorted(name for name, facts in after.items() if before.get(name) != facts)[:MOST_FILES])
