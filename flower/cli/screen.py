"""The one way out to a terminal: cleaned lines above, the input line redrawn below them.

Several programs may write to one terminal: a lock file named after its device keeps their lines apart (API 16.10).
Nothing that happens to the stream ends a run: a closed pipe is only the end of what is shown.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import shutil
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from flower.cli.text import ELLIPSIS, clean, cut, cut_left, plain, width, wrap

if sys.platform != "win32":
    import fcntl

__all__ = ["LOCK_SECONDS", "Screen", "standard"]

NARROWEST, WIDEST = 40, 110
LOCK_SECONDS = 2.0
"""How long another program is waited for; after that the lines are written all the same."""

_LOCK_STEP = 0.01
_MOST = 1_000_000
"""Characters of one text that are looked at; no person reads more, and cleaning takes time."""

_READER_GONE = (errno.EPIPE, errno.EIO, errno.ENXIO, errno.EBADF)
_ERASE = "\r\x1b[J"
_LINE_UP = "\x1b[A"
_PASTE_ON, _PASTE_OFF = "\x1b[?2004h", "\x1b[?2004l"
_MARK = "> "
"""Says that one may type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prompt:
    text: str
    buffer: str
    cursor: int
    short: str


class Screen:
    """Write lines and keep an input line below them. Every method may be called from any thread; none raises.

    On a terminal a call waits at most `LOCK_SECONDS` for other programs, and for as long as the terminal takes no
    bytes. Elsewhere lines are plain and there is no input line.

    Args:
        stream: where to; None is whatever `sys.stdout` is at that moment.
        columns: instead of asking the terminal.
    """

    def __init__(self, stream: TextIO | None = None, *, columns: int | None = None) -> None:
        self._given, self._columns = stream, columns
        # Reentrant: a stream may write through us while it is written to.
        self._lock = threading.RLock()
        self._prompt: _Prompt | None = None
        self._drawn = self._drawn_cursor = 0
        self._gone: TextIO | None = None
        self._waited_in_vain = False

    @property
    def width(self) -> int:
        """Columns that a line may fill: 40 to 110. Changes with the window."""
        return max(NARROWEST, min(self._available(), WIDEST))

    @property
    def coloured(self) -> bool:
        """Whether colours come through: on a terminal that knows them, unless NO_COLOR says otherwise."""
        return self._live() and not os.environ.get("NO_COLOR")  # noqa: TID251 - a convention of terminals, no setting

    def write(self, text: str) -> None:
        """Write lines: cleaned, and each cut to the width."""
        self._put([cut(line, self.width) for line in _lines(text)])

    def say(self, text: str, *, rest: str = "") -> None:
        """Write prose: cleaned, and wrapped to the width; `rest` stands before every line but the first."""
        self._put(wrap("\n".join(_lines(text)), self.width, rest=rest))

    def prompt(self, text: str, buffer: str = "", cursor: int = 0, *, short: str = _MARK) -> None:
        """Show `text` and what is typed behind it, below the newest output.

        Args:
            cursor: where it stands, in characters of `buffer`.
            short: instead of `text`, where that does not fit beside what is typed.
        """
        with self._lock:
            self._prompt = _Prompt(text=text, buffer=buffer, cursor=max(0, min(cursor, len(buffer))), short=short)
            if self._live():
                self._send(self._erase() + self._draw())

    def no_prompt(self) -> None:
        """Take the input line away."""
        with self._lock:
            had, self._prompt = self._prompt, None
            if had is not None and self._live():
                self._send(self._erase())

    def pasting(self, on: bool) -> None:
        """Ask the terminal to mark what is pasted, or to stop marking it; `LineEditor` knows the marks."""
        with self._lock:
            if self._live():
                self._send(_PASTE_ON if on else _PASTE_OFF)

    def _put(self, lines: list[str]) -> None:
        with self._lock:
            if not self.coloured:
                lines = [plain(line) for line in lines]
            block = "".join(line + "\n" for line in lines)
            self._send(self._erase() + block + self._draw() if self._live() else block)

    # -- the input line -------------------------------------------------------------------------------------------

    def _erase(self) -> str:
        """Erase the input line. After the window was narrowed, a terminal may have broken it over several rows."""
        columns = max(1, self._available())
        rows = self._drawn_cursor // columns if self._drawn > columns else 0
        self._drawn = self._drawn_cursor = 0
        return _LINE_UP * rows + _ERASE

    def _draw(self) -> str:
        if self._prompt is None:
            return ""
        # One column stays free: a full row would move the cursor to the next one.
        left, right = _input_line(self._prompt, min(self.width, self._available()) - 1)
        self._drawn_cursor, self._drawn = width(left), width(left + right)
        left, right = (each if self.coloured else plain(each) for each in (left, right))
        # The left part again, rather than columns counted: terminals differ in how wide some characters are.
        return left + right + ("\r" + left if right else "")

    # -- the stream -----------------------------------------------------------------------------------------------

    @property
    def _stream(self) -> TextIO:
        return self._given or sys.stdout

    def _live(self) -> bool:
        """Whether the stream is a terminal that can move its cursor."""
        try:
            return self._stream.isatty() and os.environ.get("TERM") != "dumb"  # noqa: TID251 - the terminal's name
        except (AttributeError, ValueError):  # no standard output at all, or a closed one
            return False

    def _available(self) -> int:
        if self._columns is not None:
            return self._columns
        try:
            return os.get_terminal_size(self._stream.fileno()).columns or NARROWEST * 2
        except (AttributeError, ValueError, OSError):
            return shutil.get_terminal_size((WIDEST, 24)).columns

    def _send(self, data: str) -> None:
        stream = self._stream
        if stream is None or stream is self._gone:
            return
        with self._alone(stream):
            try:
                stream.write(_encodable(data, stream))
                stream.flush()
            except BlockingIOError:  # its reader is slow and it may not wait: this much is lost
                pass
            except ValueError:  # closed by somebody else
                self._gone = stream
            except OSError as err:
                # A full disk behind a redirection may have room again later; a reader that went stays away.
                if err.errno in _READER_GONE:
                    self._lose(stream)

    def _lose(self, stream: TextIO) -> None:
        """The reader has gone. What is still buffered must not be written at exit: that would fail, and be told."""
        self._gone = stream
        with contextlib.suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)

    @contextlib.contextmanager
    def _alone(self, stream: TextIO) -> Iterator[None]:
        """Keep other programs on the same terminal out, as far as that can be had in time."""
        # A program that was stopped with the lock in its hands is waited for once, not at every line.
        held = _locked(stream, 0.0 if self._waited_in_vain else LOCK_SECONDS)
        self._waited_in_vain = held is None
        try:
            yield
        finally:
            if held is not None:
                os.close(held)


@functools.cache
def standard() -> Screen:
    """Return this process's screen on standard output, always the same one."""
    return Screen()


def _lines(text: str) -> list[str]:
    if len(text) > _MOST:
        text = text[:_MOST] + ELLIPSIS
    return clean(text).removesuffix("\n").split("\n")


def _encodable(data: str, stream: TextIO) -> str:
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        return data.encode(encoding, "replace").decode(encoding)
    except LookupError:
        return data.encode("ascii", "replace").decode("ascii")


def _input_line(prompt: _Prompt, room: int) -> tuple[str, str]:
    """Return what stands left and right of the cursor, together at most `room` columns wide."""
    label = clean(prompt.text).replace("\n", " ")
    left, right = (_typed(part) for part in (prompt.buffer[: prompt.cursor], prompt.buffer[prompt.cursor :]))
    if width(label) + width(left + right) > room:
        # Once somebody types, one word for what Enter will do helps more than half a sentence.
        label = clean(prompt.short).replace("\n", " ") if left or right else _short(label, room)
    return _window(label, left, right, room - width(label))


def _window(label: str, left: str, right: str, room: int) -> tuple[str, str]:
    """Show the part of what is typed that is around the cursor; the label stays."""
    if width(left + right) <= room:
        return label + left, right
    ahead = min(width(right), max(room // 4, room - width(left)))
    left = cut_left(left, room - ahead)
    return label + left, cut(right, room - width(left))


def _short(label: str, room: int) -> str:
    """Cut a label, but keep the mark at its end that says that one may type."""
    if width(label) <= room:
        return label
    mark = f" {_MARK}" if plain(label).endswith(f" {_MARK}") else " "
    return cut(label, max(0, room - len(mark))) + mark


def _typed(text: str) -> str:
    return plain(clean(text)).replace("\n", " ")


def _locked(stream: TextIO, seconds: float) -> int | None:
    """Return the lock of the terminal behind `stream`, to be closed; None where there is none, or not in time."""
    if sys.platform == "win32":  # no such locks: lines of two programs may mix there
        return None
    try:
        file = _lock_file(os.ttyname(stream.fileno()))
    except (AttributeError, OSError, ValueError):
        return None
    until = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() < until:
                time.sleep(_LOCK_STEP)
                continue
        except OSError:
            pass
        else:
            return file
        os.close(file)
        return None


def _lock_file(device: str) -> int:
    """Open the lock file of a terminal.

    The temporary directory belongs to everybody, so a file that somebody planted there is not used: no link is
    followed, and it has to be a file of our own.

    Raises:
        OSError: it cannot be opened, or it is not ours.
    """
    name = f"flower-{os.getuid()}{device.replace('/', '-')}.lock"
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    file = os.open(Path(tempfile.gettempdir()) / name, flags, 0o600)
    found = os.fstat(file)
    if found.st_uid == os.getuid() and stat.S_ISREG(found.st_mode) and found.st_nlink == 1:
        return file
    os.close(file)
    raise PermissionError(f"{name} in the temporary directory is not a lock file of this user")
