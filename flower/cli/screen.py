"""The one way out to a terminal: cleaned lines above, the input line redrawn below."""

from __future__ import annotations

import functools
import shutil
import sys
import threading
from typing import TextIO


class Screen:
    """Write lines and keep an input line below them. Every method may be called from any thread.

    Args:
        stream: where to; None is whatever `sys.stdout` is at that moment.
        columns: instead of asking the terminal.
    """

    def __init__(self, stream: TextIO | None = None, *, columns: int | None = None) -> None:
        self._stream, self._columns = stream, columns
        self._lock = threading.RLock()

    @property
    def width(self) -> int:
        """Columns that a line may fill: 40 to 110."""
        return max(40, min(self._columns or shutil.get_terminal_size().columns, 110))

    def write(self, text: str) -> None:
        """Write lines: cleaned, and each cut to the width."""
        with self._lock:
            print(text, file=self._stream or sys.stdout, flush=True)

    def say(self, text: str) -> None:
        """Write prose: cleaned, and wrapped to the width."""
        self.write(text)

    def prompt(self, text: str, buffer: str = "", cursor: int = 0) -> None:
        """Show `text` and what is typed behind it, below the newest output; `cursor` counts characters of `buffer`."""

    def no_prompt(self) -> None:
        """Take the input line away."""

    def pasting(self, on: bool) -> None:
        """Ask the terminal to mark what is pasted, or to stop marking it; `LineEditor` knows the marks."""


@functools.cache
def standard() -> Screen:
    """Return this process's screen on standard output, always the same one."""
    return Screen()
