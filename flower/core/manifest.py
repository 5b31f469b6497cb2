"""The accounts file of a run folder: one row per step attempt, merged across processes (behaviour 15.5)."""

from __future__ import annotations

import contextlib
import json
import logging
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from flower.core.disk import write_whole

if sys.platform != "win32":
    import fcntl

log = logging.getLogger(__name__)

FILE = "manifest.json"

Row = Mapping[str, Any]

LOCK_SECONDS = 2.0
"""How long a writer waits for another process; then it writes all the same, since the file is replaced whole."""


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Read the rows; a missing or broken file counts as empty."""
    try:
        rows = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError):  # the last is what a deep nest of brackets gives
        return []
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def spent_in(run_dir: str | Path) -> float:
    """Return what the steps in a run folder's manifest cost, those of all processes, US dollars."""
    costs = (row.get("cost_usd") for row in rows_of(Path(run_dir) / FILE))
    return sum(float(cost) for cost in costs if isinstance(cost, int | float))


def merged(rows: Sequence[Row], run: str, own: Sequence[Row]) -> list[Row]:
    """Replace the rows of `run` by `own`; those of other runs stay, before them."""
    return [*(row for row in rows if row.get("run") != run), *({**row, "run": run} for row in own)]


def write(path: Path, run: str, own: Sequence[Row], *, wait: float = LOCK_SECONDS) -> None:
    """Put the rows of this process into the file. Blocks for at most `wait` seconds and the write itself.

    Raises:
        OSError: it could not be written; the file is as it was.
    """
    with alone(path.with_name(f".{path.name}.lock"), wait):
        _keep_broken(path)
        text = json.dumps(merged(rows_of(path), run, own), indent=2, ensure_ascii=False)
        write_whole(path, f"{text}\n")


def _keep_broken(path: Path) -> None:
    """Put a file that is no manifest aside: it counts as empty, and the next write would be the end of its accounts."""
    with contextlib.suppress(OSError):
        if path.stat().st_size and not rows_of(path) and path.read_bytes().strip() != b"[]":
            aside = path.with_name(f"{path.name}.{time.strftime('%Y%m%d-%H%M%S')}.broken")
            path.rename(aside)
            log.warning("manifest.broken kept=%s", aside)


@contextlib.contextmanager
def alone(lock: Path, wait: float) -> Iterator[None]:
    """Keep other processes out while the file is read and replaced, or two of them would lose a row (D15)."""
    if sys.platform == "win32":
        yield
        return
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("a", encoding="utf-8") as file:
        until = time.monotonic() + wait
        # Never without a bound: a signal handler may come here while the interrupted code holds the lock.
        while not _locked(file.fileno()) and time.monotonic() < until:
            time.sleep(0.01)
        yield


def _locked(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
