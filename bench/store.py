"""Seconds and memory of loading a long session for a resume: expired, trimmed, pruned, healed."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, cast

from claude_agent_sdk import SessionStoreEntry

from flower.stores.sqlite import SqliteSessionStore

SIZES = (25_000, 50_000, 100_000)
BIG = 20_000
USUAL = 600

LOAD = """
import asyncio, sys, time
from flower.stores.prune import PruningSessionStore
from flower.stores.sqlite import SqliteSessionStore

def mib(name):
    return next(int(line.split()[1]) / 1024 for line in open("/proc/self/status") if line.startswith(name))

path, workspace, pruning = sys.argv[1], sys.argv[2], sys.argv[3] == "pruning"
store = PruningSessionStore(path, workspace) if pruning else SqliteSessionStore(path)
bare = mib("VmRSS")
began, begun = time.perf_counter(), time.process_time()
entries = asyncio.run(store.load({"project_key": "p", "session_id": "s"}))
took, worked = time.perf_counter() - began, time.process_time() - begun
print(took, worked, mib("VmRSS") - bare, mib("VmHWM") - bare, len(entries))
store.close()
"""


@dataclass(frozen=True, slots=True)
class Load:
    """What one load in a process of its own took: seconds, seconds of the processor, MiB after it, MiB at its peak."""

    seconds: float
    worked: float
    resident: float
    peak: float
    left: float


async def measure() -> dict[str, float]:
    """For each size in entries: seconds, MiB at the peak above the entries themselves, and seconds once files exist.

    The entries' own memory is that of a plain load, once it is done. `ratio` is how much more work an entry of the
    largest session is than one of the smallest; 1 is linear. `plain_ratio` is the same for a load that changes nothing.
    """
    figures: dict[str, float] = {}
    work: dict[str, list[float]] = {"ratio": [], "plain_ratio": []}
    for size in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "sessions.db"
            await _build(path, size)
            plain, first, again = [await _load(path, kind) for kind in ("plain", "pruning", "pruning")]
        name = f"{size // 1000}k"
        figures |= {
            f"{name}_s": round(first.seconds, 2),
            f"{name}_again_s": round(again.seconds, 2),
            f"{name}_plain_s": round(plain.seconds, 2),
            f"{name}_entries_mib": round(plain.resident, 1),
            f"{name}_above_mib": round(max(0.0, first.peak - plain.resident), 1),
            f"{name}_left": first.left,
        }
        work["ratio"].append(first.worked / size)
        work["plain_ratio"].append(plain.worked / size)
    return figures | {name: round(each[-1] / each[0], 2) for name, each in work.items()}


async def _load(path: Path, kind: str) -> Load:
    command = [sys.executable, "-c", LOAD, str(path), str(path.parent / "ws"), kind]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    return Load(*map(float, out.split()))


async def _build(path: Path, size: int) -> None:
    store = SqliteSessionStore(path)
    entries = _session(size)
    while batch := list(islice(entries, 500)):
        await store.append({"project_key": "p", "session_id": "s"}, batch)
    store.close()


def _session(size: int) -> Iterator[SessionStoreEntry]:
    """Turns of a call and its result; of a hundred calls 50 look, 4 have a big result, 3 are denied, 2 were cut, 1 has
    no result at all, and one error of the API comes with them."""
    made = 0
    parent: str | None = None
    for number in range(size):
        for entry in _turn(number, parent):
            if made == size:
                return
            made += 1
            parent = cast("str", entry["uuid"])
            yield cast("SessionStoreEntry", entry)


def _turn(number: int, parent: str | None) -> Iterator[dict[str, Any]]:
    kind, call = number % 100, f"toolu_{number:024d}"
    if kind == 99:
        yield _entry("assistant", f"e{number}", parent, [{"type": "text", "text": "API Error"}], isApiErrorMessage=True)
        parent = _uuid(f"e{number}")
    looks = kind < 50
    given = {"command": f"git log --oneline -{number}" if looks else f"make target-{number}"}
    use = {"type": "tool_use", "id": call, "name": "Bash", "input": given}
    yield _entry("assistant", f"a{number}", parent, [use])
    if kind == 98:
        return
    result: dict[str, Any] = {"type": "tool_result", "tool_use_id": call, "content": f"{number} " + "x" * USUAL}
    more: dict[str, Any] = {}
    if kind in (60, 70, 80, 90):
        result["content"] = f"{number} " + "line of output\n" * (BIG // 15)
    elif kind in (61, 71, 81):
        result |= {"content": "PreToolUse:Bash hook error: delegate it", "is_error": True}
        more = {"toolDenialKind": "permission-rule", "toolUseResult": "Error: delegate it"}
    elif kind in (62, 72):
        result |= {"content": "[Request interrupted by user for tool use]", "is_error": True}
    yield _entry("user", f"u{number}", _uuid(f"a{number}"), [result], **more)


def _entry(kind: str, name: str, parent: str | None, content: list[Any], **more: Any) -> dict[str, Any]:
    usual = {"sessionId": "s", "cwd": "/work", "version": "2", "gitBranch": "main", "userType": "external"}
    stamp = "2026-01-01T00:00:00.000Z"
    message = {"role": kind, "content": content}
    links = {"uuid": _uuid(name), "parentUuid": parent}
    return {"type": kind, **links, "timestamp": stamp, **usual, "message": message, **more}


def _uuid(name: str) -> str:
    return f"{name:0>36}"
