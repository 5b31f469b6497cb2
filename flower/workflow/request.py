"""What a run in this run folder was first asked for: until it is clarified, no document says so."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from flower.core.disk import write_whole

FILE = "request.json"


def remember_request(run_dir: str | Path, workspace: str | Path, request: str) -> None:
    """Keep the request of a run that begins. A bonus, as the lineage is: what cannot be written is given up."""
    stored = {"workspace": str(Path(workspace).resolve()), "request": request}
    with contextlib.suppress(OSError):
        write_whole(Path(run_dir) / FILE, json.dumps(stored, ensure_ascii=False, indent=2) + "\n")


def recall_request(run_dir: str | Path, workspace: str | Path) -> str:
    """The request that this workspace's run began with; empty where it is not known."""
    try:
        stored = json.loads((Path(run_dir) / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return ""
    if not isinstance(stored, dict) or stored.get("workspace") != str(Path(workspace).resolve()):
        return ""
    request = stored.get("request")
    return request if isinstance(request, str) else ""
