"""A line as it is typed: bytes from a terminal in, finished lines out. Pure."""

from __future__ import annotations


class LineEditor:
    """Edit one line. `feed` takes bytes in any pieces, as a terminal in cbreak mode sends them."""

    def __init__(self) -> None:
        self.buf, self.pos = "", 0
        self.eof = False

    def feed(self, data: bytes) -> str | None:
        r"""Take bytes; return a finished line, `""` at the end of input, else None.

        As with `readline()` a finished line ends with `"\n"`, so an empty line is `"\n"`. One call returns at most one
        line and keeps the rest: call again with `b""` until it returns None.
        """
        return None

    def reset(self) -> None:
        """Forget what was typed, half a sequence included."""
        self.buf, self.pos = "", 0
