"""What attempts spent that no row of the manifest holds yet, so that a kill loses no account.

A step enters the manifest when it is over. Until then each of its attempts has a small file in the run folder. The
start script adds where the program keeps its transcript: the program writes its own count (`cost-state`) into it when
it ends, also when it ends because its parent was killed. The next process that runs the step takes all of that over.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from flower.core.manifest import LOCK_SECONDS, alone

FOLDER = "unbooked"
_PATIENCE_SECONDS = 5.0
"""How long the program of a killed process may take to end and to write its count."""
_LOOK_SECONDS = 0.05
_SUFFIX = re.compile(r"#(?:round|retry)\d+$|(?<=·判定)#\d+$|(?<=·verdict)#\d+$")
_RESUMED = "claude-resume-"
"""How the SDK names the folder in which it gives a resumed program its transcript."""


@dataclass(slots=True, kw_only=True)
class Spent:
    """US dollars and turns."""

    cost_usd: float = 0.0
    num_turns: int = 0


@dataclass(slots=True, kw_only=True)
class _Record:
    """What stands in an attempt's file."""

    step: str
    owner: int
    since: str
    """When the owner started, as the system tells it: a number is used again."""
    session: str = ""
    counted: float = 0.0
    """Where the program's count began."""
    over: bool = False
    """Whether the attempt ended, so that `cost_usd` is all of it."""
    cost_usd: float = 0.0
    num_turns: int = 0
    adopted: list[str] = field(default_factory=list)
    """Files of records whose cost is in this one."""


@dataclass(slots=True)
class Entry:
    """One attempt. What cannot be written is given up: accounts of a killed run are worth less than the run."""

    path: Path
    _record: _Record

    @property
    def note(self) -> Path:
        """Where the start script writes number and place of the program."""
        return self.path.with_suffix(".note")

    def named(self, session: str, counted: float) -> None:
        """Note the session, and where the program's count of it began."""
        self._record.session, self._record.counted = session, counted
        self.write()

    def over(self, spent: Spent, *, adopted: Sequence[str] = ()) -> None:
        """Note what the attempt came to, and which records are in that."""
        self._record.adopted = list(adopted)
        self._record.over, self._record.cost_usd, self._record.num_turns = True, spent.cost_usd, spent.num_turns
        self.write()
        _remove(self.note)

    @property
    def is_over(self) -> bool:
        return self._record.over

    def drop(self) -> None:
        """The manifest holds it now."""
        _remove(self.path)
        _remove(self.note)

    def write(self) -> None:
        """Put the record on disk, or try to."""
        draft = self.path.with_suffix(".draft")
        with contextlib.suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            draft.write_text(json.dumps(asdict(self._record)), encoding="utf-8")
            draft.replace(self.path)


@dataclass(slots=True)
class CostJournal:
    """The attempts of one runtime that are in no account yet. `rescue` may be called from a signal handler.

    Args:
        folder: the run's.
        run_id: that of the runtime.
    """

    folder: Path
    run_id: str
    _mine: list[tuple[int, Entry]] = field(default_factory=list)

    def begin(self, step: str, owner: object) -> Entry:
        """Open the account of an attempt.

        Args:
            step: label of the step.
            owner: the result that the attempt belongs to.
        """
        record = _Record(step=_plain(step), owner=os.getpid(), since=_since(os.getpid()))
        entry = Entry(self._place / f"{self.run_id}.{secrets.token_hex(4)}.json", record)
        self._mine.append((id(owner), entry))
        entry.write()
        return entry

    def booked(self, owner: object) -> None:
        """The step stands in the manifest: its attempts need no account of their own any more."""
        for _, entry in self._of(owner):
            entry.drop()
        self._mine = [each for each in self._mine if each[0] != id(owner)]

    def rescue(self) -> None:
        """The steps in flight stand in the manifest, but for what a program that still runs has not reported."""
        for _, entry in list(self._mine):
            if entry.is_over:
                entry.drop()

    async def adopt(self, step: str, owner: object) -> Spent:
        """Take over what killed processes spent on a step, and return it. Waits a little for their programs to end."""
        if not self._place.is_dir():
            return Spent()
        await self._settle()
        with alone(self.folder / f".{FOLDER}.lock", LOCK_SECONDS):
            left = [(path, record) for path, record in self._others() if record.over and record.step == _plain(step)]
            if not left:
                return Spent()
            records = [record for _, record in left]
            sum_ = Spent(cost_usd=sum(r.cost_usd for r in records), num_turns=sum(r.num_turns for r in records))
            # From here on the others count as taken over, also if this process is killed before they are gone.
            self.begin(step, owner).over(sum_, adopted=[path.name for path, _ in left])
            for path, _ in left:
                _remove(path)
        return sum_

    async def _settle(self) -> None:
        """Have the record of every attempt of a dead process say what it came to, and remove what it left behind."""
        until = asyncio.get_running_loop().time() + _PATIENCE_SECONDS
        for path, record in list(self._others()):
            if record.over:
                continue
            spent = await _came_to(path, record, self.folder, until)
            if spent is not None:
                entry = Entry(path, record)
                entry.over(spent)

    @property
    def _place(self) -> Path:
        return self.folder / FOLDER

    def _of(self, owner: object) -> list[tuple[int, Entry]]:
        return [each for each in self._mine if each[0] == id(owner)]

    def _others(self) -> list[tuple[Path, _Record]]:
        """The records of processes that are gone, but for those that somebody has taken over."""
        found = [(path, record) for path in sorted(self._place.glob("*.json")) if (record := _read(path)) is not None]
        taken = {name for _, record in found for name in record.adopted}
        return [each for each in found if each[0].name not in taken and not _lives(each[1].owner, each[1].since)]


async def _came_to(path: Path, record: _Record, folder: Path, until: float) -> Spent | None:
    """Return what an attempt of a dead process spent; None while its program still runs."""
    number, place, since = _noted(path.with_suffix(".note"))
    while number and _lives(number, since):
        if asyncio.get_running_loop().time() > until:
            return None
        await asyncio.sleep(_LOOK_SECONDS)  # nothing tells us when a process that is not our child ends
    home = Path(place) if place else folder / "claude"
    total = await asyncio.to_thread(_total, home, record.session)
    if home.name.startswith(_RESUMED):  # the SDK would have removed it: it holds a whole transcript
        await asyncio.to_thread(shutil.rmtree, home, ignore_errors=True)
    return Spent(cost_usd=max(0.0, total - record.counted))


def _total(home: Path, session: str) -> float:
    """The program's own count in the transcript of a session; 0 if it wrote none."""
    total = 0.0
    for transcript in home.glob(f"projects/*/{session}.jsonl") if session else ():
        with contextlib.suppress(OSError), transcript.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if '"cost-state"' in line:
                    total = _count_in(line, total)
    return total


def _count_in(line: str, otherwise: float) -> float:
    try:
        entry: Any = json.loads(line)
        return float(entry["totalCostUSD"]) if entry.get("type") == "cost-state" else otherwise
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return otherwise


def _read(path: Path) -> _Record | None:
    try:
        return _Record(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RecursionError):
        return None


def _noted(path: Path) -> tuple[int, str, str]:
    """Number of the program, where it keeps its transcript, and when it started, as far as the start script knew."""
    try:
        number, place, since = [*path.read_text(encoding="utf-8").split("\n"), "", ""][:3]
        return int(number), place, since
    except (OSError, ValueError):
        return 0, "", ""


def _plain(step: str) -> str:
    """A step's name without the number of its round."""
    return _SUFFIX.sub("", step)


def _lives(process: int, since: str) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's
        return True
    found = _since(process)
    return found != "gone" and (not since or not found or found == since)


def _since(process: int) -> str:
    """When a process started; empty where the system does not say, `gone` for one that is only waited for."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()
    return "gone" if fields[0] == "Z" else fields[19]


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
