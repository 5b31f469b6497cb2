"""A terminal whose keys arrive one by one, given back as it was in every way out. Knows nothing of lines or runs.

Ctrl-C arrives as a byte: the kernel would send the signal to the whole process group, and the agent's program would
stop its turn before a person has said why.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
from typing import Any

if sys.platform != "win32":
    import termios

INTERRUPT = b"\x03"


def is_terminal() -> bool:
    """Whether somebody can type: standard input is there, open, and a terminal."""
    try:
        return sys.stdin is not None and sys.stdin.isatty()
    except ValueError:  # closed
        return False


def knows_keys() -> bool:
    """Whether somebody can type at a terminal that can show it: a dumb one cannot move its cursor."""
    return is_terminal() and os.environ.get("TERM") != "dumb"  # noqa: TID251 - the terminal's name, no setting


def input_fd() -> int | None:
    """Return the descriptor of standard input; None where there is none."""
    try:
        return sys.stdin.fileno()
    except (AttributeError, OSError, ValueError):
        return None


class Keys:
    """Keys instead of lines, on one descriptor. All methods may be called from any thread and from signal handlers,
    any number of times; none raises. Where there is no such terminal they do nothing.
    """

    def __init__(self, fd: int | None) -> None:
        self._fd = fd
        self._before: list[Any] | None = None
        self._resting = False

    @property
    def used(self) -> bool:
        """Whether there is a terminal whose keys these are."""
        return self._fd is not None

    @property
    def taken(self) -> bool:
        """Whether the terminal is changed now."""
        return self._before is not None

    @property
    def in_front(self) -> bool:
        """Whether this process may read: a read from the background would stop it."""
        if self._fd is None or sys.platform == "win32":
            return True
        try:
            return os.tcgetpgrp(self._fd) == os.getpgrp()
        except OSError:  # no terminal: nothing stops anybody
            return True

    def take(self) -> None:
        """Have keys arrive at once, unseen and one by one; line ends and job control stay as they are."""
        if self._fd is None or self._before is not None or self._resting or sys.platform == "win32":
            return
        if not self.in_front:
            return
        with contextlib.suppress(OSError, ValueError, termios.error):
            before = termios.tcgetattr(self._fd)
            mode = termios.tcgetattr(self._fd)
            mode[3] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN)
            never = os.fpathconf(self._fd, "PC_VDISABLE").to_bytes(1, "little")
            mode[6][termios.VMIN], mode[6][termios.VTIME], mode[6][termios.VINTR] = 1, 0, never
            # Noted first: a signal between the two must find what to go back to.
            self._before = before
            atexit.register(self.give_back)
            termios.tcsetattr(self._fd, termios.TCSADRAIN, mode)

    def give_back(self, *, at_once: bool = False) -> None:
        """Set the terminal back. `at_once` does not wait for output, which may be held (Ctrl-S)."""
        before, self._before = self._before, None
        if before is None or self._fd is None or sys.platform == "win32":
            return
        atexit.unregister(self.give_back)
        with contextlib.suppress(OSError, ValueError, termios.error):
            termios.tcsetattr(self._fd, termios.TCSANOW if at_once else termios.TCSADRAIN, before)

    def rest(self) -> None:
        """Set the terminal back, and leave it alone until `wake`: somebody else will use it."""
        self._resting = True
        self.give_back(at_once=True)

    def wake(self) -> None:
        """Take the terminal again, or as soon as it is ours: whoever had it meanwhile may have changed it."""
        self._resting = False
        before, self._before = self._before, None
        self.take()
        if before is not None:
            self._before = before


def read_line(fd: int | None) -> str | None:
    """Read one line in the terminal's own way, or from a pipe; None at the end of input.

    Byte by byte, so that what comes after the line stays for the next reader. Blocks; Ctrl-C raises
    `KeyboardInterrupt`.
    """
    if fd is None:
        return None
    line = bytearray()
    while True:
        try:
            byte = os.read(fd, 1)
        except OSError:  # closed, or the terminal is gone
            byte = b""
        if byte == b"\n":
            break
        if not byte:
            if not line:
                return None
            break
        line += byte
    return line.decode("utf-8", "replace").rstrip("\r")


def ask_line(question: str) -> str | None:
    """Show a question and read the line behind it; None at the end of input. Blocks for a person."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.write(question)
        sys.stdout.flush()
    return read_line(input_fd())
