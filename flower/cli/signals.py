"""What signals do to a run at a terminal (API 16.8). Handlers neither read nor print: a lock may be held already."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from flower.cli.stdin import Reader

_ENDING = ("SIGHUP", "SIGTERM", "SIGQUIT")
_TIDY = b"\x1b[?2004l\r\x1b[K"
"""Stop marking what is pasted, and take the input line away."""


@contextlib.contextmanager
def handled(reader: Reader, *, rescue: Callable[[], None], requested: threading.Event) -> Iterator[None]:
    """Handle signals in this block; afterwards everything is as before. On the main thread only.

    A first Ctrl-C sets `requested`, for the reader to ask why; another one, or one that nobody hears, goes to whoever
    handled it before (asyncio ends the run with `KeyboardInterrupt`). Signals that end the process write the accounts
    and give the terminal back first. Suspending gives the terminal back for the time being. A signal that was ignored
    stays ignored (nohup).

    Args:
        rescue: closes the books of what is in flight; short, never raises.
    """
    with contextlib.ExitStack() as stack:
        for name in _ENDING:
            _put(stack, name, lambda number, _frame: _die(number, reader, rescue))
        if reader.keys.used:
            _put(stack, "SIGINT", _Asking(reader, requested))
            _put(stack, "SIGTSTP", lambda number, _frame: _rest(number, reader))
            _put(stack, "SIGCONT", lambda _number, _frame: _wake(reader))
        yield


class _Asking:
    """Ctrl-C: once it asks for words, twice it ends."""

    def __init__(self, reader: Reader, requested: threading.Event) -> None:
        self._reader, self._requested = reader, requested
        self._before: Any = signal.getsignal(signal.SIGINT)

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self._reader.listening and not self._requested.is_set():
            self._requested.set()
        elif callable(self._before):
            self._before(number, frame)
        else:
            raise KeyboardInterrupt


def _put(stack: contextlib.ExitStack, name: str, handler: Callable[[int, FrameType | None], None]) -> None:
    number: Any = getattr(signal, name, None)
    if number is None or signal.getsignal(number) is signal.SIG_IGN:
        return
    before = signal.signal(number, handler)
    stack.callback(signal.signal, number, before)


def _die(number: int, reader: Reader, rescue: Callable[[], None]) -> None:
    rescue()
    _leave(reader)
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _rest(number: int, reader: Reader) -> None:
    """Stop as anybody would; what comes after it runs when we are continued."""
    again = signal.getsignal(number)
    _leave(reader)
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    signal.signal(number, again)
    _wake(reader)


def _leave(reader: Reader) -> None:
    if reader.keys.taken:
        reader.keys.rest()
        with contextlib.suppress(OSError, ValueError):
            os.write(sys.stdout.fileno(), _TIDY)


def _wake(reader: Reader) -> None:
    reader.keys.wake()
    reader.redraw()
