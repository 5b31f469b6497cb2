"""A line as it is typed: bytes from a terminal in, finished lines out. Pure."""

from __future__ import annotations

import codecs
from collections import deque
from collections.abc import Callable
from typing import ClassVar

from flower.cli.text import clusters, unseen

__all__ = ["LineEditor"]

_LONGEST = 100_000
"""Characters that a line holds; what is typed or pasted beyond that is dropped."""
_LONGEST_SEQUENCE = 64

_ESC, _BEL = "\x1b", "\x07"
_PASTE_BEGINS, _PASTE_ENDS = "200~", _ESC + "[201~"


class LineEditor:
    """Edit one line (API 16.7). Takes bytes in any pieces, as a terminal in cbreak mode sends them; never raises.

    What is pasted between the marks of bracketed paste (`Screen.pasting`) stays one line: its line ends become blanks.

    Attributes:
        buf: what is typed so far.
        pos: the cursor, in characters of `buf`.
        eof: the end of input was typed; `reset` takes it back.
    """

    def __init__(self) -> None:
        self.reset()

    def feed(self, data: bytes) -> str | None:
        r"""Take bytes; return a finished line, `""` at the end of input, else None.

        As with `readline()` a finished line ends with `"\n"`, so an empty line is `"\n"`. One call returns at most one
        line and keeps the rest: call again with `b""` until it returns None.
        """
        self._coming.extend(self._decoder.decode(data))
        while self._coming:
            line = self._state(self._coming.popleft())
            if line is not None:
                return line
        return None

    def reset(self) -> None:
        """Forget what was typed, half a sequence and half a paste included."""
        self.buf, self.pos, self.eof = "", 0, False
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._coming: deque[str] = deque()
        self._sequence = ""
        self._after_return = False
        self._state: Callable[[str], str | None] = self._typed

    # -- states: each takes a character, and gives a line when one is finished ------------------------------------

    def _typed(self, char: str) -> str | None:
        repeated, self._after_return = self._after_return and char == "\n", char == "\r"
        if repeated:  # the second half of a line end
            return None
        if char in "\r\n":
            return self._finished()
        if char == "\x04":
            return self._ended()
        if char == _ESC:
            self._go(self._escaped)
        elif char in self._KEYS:
            self._KEYS[char](self)
        elif not unseen(char):
            self._insert(char)
        return None

    def _escaped(self, char: str) -> str | None:
        if char == _ESC:
            return None
        opened = {"[": self._in_sequence, "O": self._in_application_key, **dict.fromkeys("]PX^_", self._in_string)}
        self._go(opened.get(char, self._typed))
        if char in opened:
            return None
        # Escape and a letter is one key; anything else was typed after a lone Escape.
        return None if " " <= char <= "~" else self._typed(char)

    def _in_sequence(self, char: str) -> str | None:
        if "@" <= char <= "~":
            self._sequence_ends(self._sequence + char)
            return None
        if not " " <= char <= "?":
            self._go(self._typed)
            return self._typed(char)
        if len(self._sequence) < _LONGEST_SEQUENCE:
            self._sequence += char
        return None

    def _sequence_ends(self, sequence: str) -> None:
        self._go(self._typed)
        if sequence == "[":
            self._go(self._swallowing)  # a function key of the plain console: one letter follows
        elif sequence == _PASTE_BEGINS:
            self._go(self._pasted)
        elif sequence in self._SEQUENCES:
            self._SEQUENCES[sequence](self)

    def _in_application_key(self, char: str) -> str | None:
        self._go(self._typed)
        if not " " <= char <= "~":
            return self._typed(char)
        if char in self._SEQUENCES:
            self._SEQUENCES[char](self)
        return None

    def _swallowing(self, char: str) -> str | None:
        self._go(self._typed)
        return None if " " <= char <= "~" else self._typed(char)

    def _in_string(self, char: str) -> str | None:
        """Pass over what a terminal reports. A return ends it: it may have been a key pressed together with Alt."""
        if char in "\r\n":
            self._go(self._typed)
            return self._typed(char)
        if char == _BEL:
            self._go(self._typed)
        elif char == _ESC:
            self._go(self._escaped)
        return None

    def _pasted(self, char: str) -> str | None:
        mark = self._sequence + char
        if mark == _PASTE_ENDS:
            self._go(self._typed)
        elif _PASTE_ENDS.startswith(mark):
            self._sequence = mark
        else:
            # What only began like the mark: an escape begins anew, the rest is pasted text.
            self._sequence = _ESC if char == _ESC else ""
            for each in mark.removesuffix(_ESC) if self._sequence else mark:
                self._paste(each)
        return None

    def _paste(self, char: str) -> None:
        joined, self._after_return = self._after_return and char == "\n", char == "\r"
        if char in "\r\n\t\v\f\x85\u2028\u2029":
            if not joined:
                self._insert(" ")
        elif not unseen(char):
            self._insert(char)

    def _go(self, state: Callable[[str], str | None]) -> None:
        self._state, self._sequence, self._after_return = state, "", False

    # -- what keys do ---------------------------------------------------------------------------------------------

    def _finished(self) -> str:
        line = self.buf + "\n"
        self.buf, self.pos = "", 0
        return line

    def _ended(self) -> str | None:
        if self.buf:
            return None
        self.eof = True
        return ""

    def _insert(self, char: str) -> None:
        if len(self.buf) < _LONGEST:
            self.buf = self.buf[: self.pos] + char + self.buf[self.pos :]
            self.pos += 1

    def _before(self) -> int:
        """Where the character left of the cursor begins."""
        return self.pos - len(_last(self.buf[: self.pos]))

    def _after(self) -> int:
        """Where the character right of the cursor ends."""
        return self.pos + len(next(clusters(self.buf[self.pos :]), ""))

    def _backspace(self) -> None:
        start = self._before()
        self.buf, self.pos = self.buf[:start] + self.buf[self.pos :], start

    def _delete(self) -> None:
        self.buf = self.buf[: self.pos] + self.buf[self._after() :]

    def _left(self) -> None:
        self.pos = self._before()

    def _right(self) -> None:
        self.pos = self._after()

    def _home(self) -> None:
        self.pos = 0

    def _end(self) -> None:
        self.pos = len(self.buf)

    def _clear(self) -> None:
        self.buf, self.pos = "", 0

    _KEYS: ClassVar[dict[str, Callable[[LineEditor], None]]] = {
        "\x7f": _backspace,
        "\x08": _backspace,
        "\x01": _home,
        "\x05": _end,
        "\x15": _clear,
    }
    _SEQUENCES: ClassVar[dict[str, Callable[[LineEditor], None]]] = {
        "D": _left,
        "C": _right,
        "H": _home,
        "1~": _home,
        "7~": _home,
        "F": _end,
        "4~": _end,
        "8~": _end,
        "3~": _delete,
    }


def _last(text: str) -> str:
    """Return the last character of a text with its marks."""
    return deque(clusters(text[-64:]), maxlen=1).pop() if text else ""
