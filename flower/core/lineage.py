"""Which session each step ended in, across processes (behaviour 18.1)."""

from __future__ import annotations

import contextlib
import json
import shutil
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Self

from flower.core.disk import read_object, write_whole

_FILE = "lineage.json"


@dataclass
class Lineage:
    """Step name to session id, and how often the run was woken.

    Continuity is a bonus: what cannot be read counts as absent, and what cannot be written is given up silently.
    The file is overwritten as a whole, so parallel runs need a `run_dir` each.
    """

    path: Path
    workspace: str
    steps: dict[str, str] = field(default_factory=dict)
    woke: int = 0

    @classmethod
    def open(cls, run_dir: str | Path, workspace: str | Path) -> Self:
        """The lineage of this workspace in `run_dir`; an empty one where the file is missing, broken or another's."""
        path, place = Path(run_dir).resolve() / _FILE, str(Path(workspace).resolve())
        stored = read_object(path)
        if stored.get("workspace") != place:
            return cls(path, place)
        steps, woke = stored.get("steps"), stored.get("woke")
        if not isinstance(steps, dict):
            steps = {}
        return cls(
            path,
            place,
            {step: session for step, session in steps.items() if step and session and isinstance(session, str)},
            woke if isinstance(woke, int) and woke > 0 else 0,
        )

    def remember(self, step: str, session_id: str) -> None:
        """Write at once, so that a kill between the first message and the end of a step loses nothing."""
        if step and session_id:
            self.steps[step] = session_id
            self._write()

    def bump(self) -> int:
        """One more wake; returns the number."""
        self.woke += 1
        self._write()
        return self.woke

    def archive(self, into: Path, *, extra: list[Path] | None = None) -> Path:
        """Move the file, and those of `extra` that exist, to a new folder below `into`, and begin anew.

        The file goes first and `extra` from its end, so that each document goes after those that were made from it:
        whatever a kill leaves is what a run could have left. Two archivings within one second get two folders (D16).
        Nothing is deleted.

        Raises:
            OSError: something could not be moved. Unlike a lost memory this must be known: the old documents
                would be taken for the new.
        """
        target = _new_folder(Path(into), datetime.now().astimezone().strftime("%Y%m%d-%H%M%S"))
        _move(self.path, target)
        self.steps.clear()
        self.woke = 0
        for path in reversed(extra or []):
            _move(path, target)
        return target

    def _write(self) -> None:
        stored = {"workspace": self.workspace, "woke": self.woke, "steps": self.steps}
        with contextlib.suppress(OSError):
            write_whole(self.path, json.dumps(stored, ensure_ascii=False, indent=2) + "\n")


def _new_folder(into: Path, stamp: str) -> Path:
    into.mkdir(parents=True, exist_ok=True)
    folder = into / stamp
    for number in count(2):
        try:
            folder.mkdir()
            break
        except FileExistsError:
            folder = into / f"{stamp}-{number}"
    return folder


def _move(path: Path, into: Path) -> None:
    if path.exists():
        shutil.move(path, _free(into / path.name))


def _free(path: Path) -> Path:
    """The path, or one beside it where two files of one name are archived together."""
    for number in count(2):
        if not path.exists():
            break
        path = path.with_name(f"{number}-{path.name}")
    return path
