"""One run at a time in a run folder: two would go on in the same sessions, and each write over the other's lineage."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from pathlib import Path

from flower import texts

if sys.platform != "win32":
    import fcntl

FILE = "run.lock"


class Occupied(contextlib.AbstractContextManager["Occupied"]):
    """Holds a run folder from `claim` to the end of the block; the system lets go of it when the process ends.

    Where a disk or a system knows no such locks, nothing is held: a run must not fail for that.
    """

    def __init__(self, run_dir: str | Path) -> None:
        self._path = Path(run_dir).resolve() / FILE
        self._file: int | None = None

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def look(self) -> None:
        """As `claim` where a run was here before; makes nothing, so that whoever changes their mind leaves no trace.

        Raises:
            SystemExit: another process is at work here; with words.
        """
        if self._path.exists():
            self.claim()

    def claim(self) -> None:
        """Hold the folder, and make it if need be. Twice is harmless.

        Raises:
            SystemExit: another process is at work here; with words.
            OSError: the folder cannot be written.
        """
        if self._file is not None or sys.platform == "win32":
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o644)
        try:
            if stat.S_ISREG(os.fstat(file).st_mode):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.truncate(file, 0)
                os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
        except BlockingIOError:
            holder = _holder(file)
            os.close(file)
            said = texts.current().commands
            raise SystemExit(said.occupied.format(place=self._path.parent, process=holder)) from None
        except OSError:  # no locks on this disk, or no room for a number
            pass
        self._file = file


def _holder(file: int) -> str:
    """The number of the process that has the lock, `?` where it has not written it yet."""
    number = os.pread(file, 20, 0).decode("ascii", "replace").strip()
    return number if number.isdecimal() else "?"
