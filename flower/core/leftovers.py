"""What a program that died alone left running: its tools, found by the mark that their environment carries (R26).

A tool that goes on beside its own repetition does everything twice.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

MARK = "FLOWER_ATTEMPT"
"""The variable that every process of an attempt carries."""


def end(attempt: str) -> int:
    """Kill every process that carries the mark of an attempt but this one; returns how many. Linux only, never raises.

    Call it when the attempt's program is gone: what is left then belongs to nobody.
    """
    found = list(_marked(f"{MARK}={attempt}".encode()))
    for process in found:
        with contextlib.suppress(OSError):
            os.kill(process, signal.SIGKILL)
    return len(found)


def _marked(mark: bytes) -> Iterator[int]:
    if not sys.platform.startswith("linux"):
        return
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            with contextlib.suppress(OSError):  # gone meanwhile, or somebody else's
                if mark in (folder / "environ").read_bytes().split(b"\0"):
                    yield int(folder.name)
