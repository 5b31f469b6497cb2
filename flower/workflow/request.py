"""What a run in this run folder was first asked for: until it is clarified, no document says so."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from flower.core.disk import read_object, write_whole

FILE = "request.json"


def remember_request(run_dir: str | Path, workspace: str | Path, request: str) -> None:
    """Keep the request of a run that begins. A bonus, as the lineage is: what cannot be written is given up."""
    stored = {"workspace": str(Path(workspace).resolve()), "request": request}
    with contextlib.suppress(OSError):
        write_whole(Path(run_dir) / FILE, json.dumps(stored, ensure_ascii=False, indent=2) + "\n")


def recall_request(run_dir: str | Path, workspace: str | Path) -> str:
    """The request that this workspace's run began with; empty where it is not known."""
    stored = read_object(Path(run_dir) / FILE)
    if stored.get("workspace") != str(Path(workspace).resolve()):
        return ""
    request = stored.get("request")
    return request if isinstance(request, str) else ""
