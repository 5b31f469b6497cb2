"""What people type while a run works: what a line means, and the thread that reads all the time (API 16.7).

Lines that nobody reads would lie in the buffer and answer the next question unseen; so the thread reads always, and a
line means what it means at the moment it is finished.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, assert_never

from flower import texts
from flower.cli.keys import LineEditor
from flower.cli.screen import Screen, standard
from flower.cli.terminal import INTERRUPT, Keys, input_fd, knows_keys

THREAD = "flower-stdin"
POLL_SECONDS = 0.2
HEARD_SECONDS = 1.0
"""How long the main thread may take to hear Ctrl-C before the keys behind it count as if it had not been pressed."""

_CHUNK = 4096


class Question(Protocol):
    """What a line needs to know of a question that waits."""

    id: str
    options: list[str]


class Channel(Protocol):
    """What the thread needs of a channel; everything may be called from any thread."""

    def pending(self) -> Sequence[Question]: ...
    def answer(self, ask_id: str, text: str) -> bool: ...
    def decline(self, ask_id: str, reason: str = "") -> bool: ...
    def send(self, text: str) -> object: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupt:
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Decline:
    ask: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Aside:
    question: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Help:
    """A question mark alone: what one can do here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    ask: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    text: str


Meaning = Interrupt | Decline | Aside | Help | Answer | Mail


def meaning(line: str, *, interrupting: bool, pending: Sequence[Question]) -> Meaning | None:
    """What a finished line does; None is nothing.

    Args:
        interrupting: a person has pressed Ctrl-C and is saying why.
        pending: the questions that wait, oldest first.
    """
    said = line.strip()
    if interrupting:
        return Interrupt(words=said)
    if not said:
        return Decline(ask=pending[0].id) if pending else None
    if said[0] in "?？":  # both widths: a missed one would put a side question into the brief (D8)
        question = said[1:].strip()
        return Aside(question=question) if question else Help()
    if pending:
        return Answer(ask=pending[0].id, text=_chosen(said, pending[0].options))
    return Mail(text=said)


def _chosen(said: str, options: Sequence[str]) -> str:
    """The option that digits stand for; digits of any script, since an input method may be on."""
    if said.isdecimal() and len(said) <= 4 and 1 <= int(said) <= len(options):
        return options[int(said) - 1]
    return said


class Lines:
    """Whole lines out of a pipe, with the interface of `LineEditor`."""

    def __init__(self) -> None:
        self.buf, self.pos = "", 0
        self._bytes = b""

    def feed(self, data: bytes) -> str | None:
        """Take bytes; return a finished line with its end, or None."""
        self._bytes += data
        line, end, rest = self._bytes.partition(b"\n")
        if not end:
            return None
        self._bytes = rest
        return line.decode("utf-8", "replace").rstrip("\r") + "\n"

    def rest(self) -> str:
        """Return what came after the last line end."""
        return self._bytes.decode("utf-8", "replace")


class Reader:
    """The thread, from `start` to `finish`. Everything it calls is called from that thread.

    Args:
        channel: None where the workflow has none.
        on_aside: takes a side question.
        on_interrupt: takes the words of an interrupt, which may be empty; True says that the questions that wait are
            withdrawn with the turn.
        requested: set when a person has asked for an interrupt; cleared when the words are there. What was half
            typed is put aside for so long.
        on_end: called when the input ends, after the questions that wait were declined.
        line: where the input line is drawn, if not on `screen`.
        on_terminal: keys and an input line; else whole lines. None looks at standard input and at TERM.
    """

    def __init__(
        self,
        channel: Channel | None,
        *,
        on_aside: Callable[[str], Any] | None = None,
        on_interrupt: Callable[[str], Any] | None = None,
        requested: threading.Event | None = None,
        on_end: Callable[[], Any] | None = None,
        screen: Screen | None = None,
        line: Screen | None = None,
        fd: int | None = None,
        on_terminal: bool | None = None,
    ) -> None:
        self.stop = threading.Event()
        self._channel, self._on_aside, self._on_interrupt = channel, on_aside, on_interrupt
        self._on_end = on_end
        self._requested = requested or threading.Event()
        self._screen = screen or standard()
        self._line = line or self._screen
        self._fd = input_fd() if fd is None else fd
        self._on_terminal = knows_keys() if on_terminal is None else on_terminal
        self.keys = Keys(self._fd if self._on_terminal else None)
        self._lines: LineEditor | Lines = LineEditor() if self._on_terminal else Lines()
        self._half: tuple[str, int] | None = None
        """What was typed when an interrupt was asked for, and the cursor in it: no part of what is said now."""
        self._shown: object = None
        self._thread = threading.Thread(target=self._work, name=THREAD, daemon=True)

    @property
    def listening(self) -> bool:
        """Whether somebody can still say something."""
        return self._thread.is_alive() and not self.stop.is_set()

    def start(self) -> None:
        # Before the thread: what is typed from now on is not echoed in the middle of the output.
        self.keys.take()
        self._thread.start()

    def finish(self) -> None:
        """End the thread and give the terminal back. Blocks for about one poll; twice is harmless."""
        self.stop.set()
        if self._thread.ident is not None and self._thread is not threading.current_thread():
            self._thread.join(POLL_SECONDS * 10)
        self.keys.give_back()

    def redraw(self) -> None:
        """Have the input line drawn anew at the next look: somebody else wrote on the terminal."""
        self._shown = None

    # -- the thread -----------------------------------------------------------------------------------------------

    def _work(self) -> None:
        try:
            while not self.stop.is_set():
                self._put_aside()
                self._show()
                data = self._read()
                if data is not None and not self._heard(data):
                    break
        finally:
            if self._on_terminal:
                self._line.no_prompt()
                self._line.pasting(False)
            self.keys.give_back()

    def _read(self) -> bytes | None:
        """Return what was typed, None for nothing yet, empty at the end of input."""
        if self._fd is None:
            return b""
        if not self.keys.in_front:
            self.stop.wait(POLL_SECONDS)
            return None
        if self._on_terminal:
            self.keys.take()  # it may have come to the foreground again
        try:
            if not select.select([self._fd], [], [], POLL_SECONDS)[0]:
                return None
            return os.read(self._fd, _CHUNK) if self.keys.in_front else None
        except (OSError, ValueError):  # the terminal is gone, or somebody closed it
            return b""

    def _heard(self, data: bytes) -> bool:
        """Take what was read; False at the end of input."""
        if not data:
            return self._close()
        first, *others = data.split(INTERRUPT) if self._on_terminal else [data]
        if not self._feed(first):
            return False
        for more in others:
            self._press_interrupt()
            if self.stop.is_set() or not self._feed(more):
                return False
        return True

    def _press_interrupt(self) -> None:
        """Pass Ctrl-C on, and wait until it was heard: the keys behind it must not answer a question instead."""
        heard = self.stop if self._requested.is_set() else self._requested
        # To the main thread: another one would not wake the loop.
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        heard.wait(HEARD_SECONDS)

    def _put_aside(self) -> None:
        """Put what is half typed aside while a person says why they interrupt."""
        if self._half is None and self._requested.is_set() and isinstance(self._lines, LineEditor):
            self._half = self._lines.buf, self._lines.pos
            self._lines.buf, self._lines.pos = "", 0

    def _give_back(self) -> None:
        if self._half is not None:
            (self._lines.buf, self._lines.pos), self._half = self._half, None

    def _feed(self, data: bytes) -> bool:
        self._put_aside()
        line = self._lines.feed(data)
        while line is not None:
            if not line:
                return self._close()
            self._act(line)
            line = self._lines.feed(b"")
        return True

    def _close(self) -> bool:
        if isinstance(self._lines, Lines) and (rest := self._lines.rest()):
            self._act(rest)
        if self._requested.is_set():
            self._act("")
        if self._channel is not None:
            for ask in self._channel.pending():
                self._channel.decline(ask.id, texts.current().commands.input_closed)
        if self._on_end is not None:
            self._on_end()
        return False

    def _act(self, line: str) -> None:
        pending = self._channel.pending() if self._channel is not None else []
        meant = meaning(line, interrupting=self._requested.is_set(), pending=pending)
        if meant is None:
            return
        try:
            self._carry_out(meant)
        except Exception as err:  # noqa: BLE001 - boundary: one line that fails must not end the reading
            self._screen.say(texts.current().commands.failed.format(kind=type(err).__name__, error=err))

    def _carry_out(self, meant: Meaning) -> None:
        channel = self._channel
        match meant:
            case Interrupt(words=words):
                self._requested.clear()
                self._give_back()
                self._interrupt(words)
            case Aside(question=question):
                if self._on_aside is not None:
                    self._on_aside(question)
            case Help():
                self._screen.say(texts.current().commands.keys)
            case Decline(ask=ask) if channel is not None:
                channel.decline(ask)
            case Answer(ask=ask, text=text) if channel is not None:
                channel.answer(ask, text)
            case Mail(text=text) if channel is not None:
                channel.send(text)
            case Decline() | Answer() | Mail():
                self._screen.say(texts.current().commands.no_channel)
            case _:
                assert_never(meant)

    def _interrupt(self, words: str) -> None:
        said = texts.current().commands
        count = len(self._channel.pending()) if self._channel is not None else 0
        withdrawn = self._on_interrupt is not None and self._on_interrupt(words) is True
        self._screen.say(said.interrupted)
        if count:
            self._screen.say(said.withdrawn if withdrawn else said.still_asking.format(count=count))

    def _show(self) -> None:
        """Draw the input line where it is not what it should be: a question came, a key was typed, the window grew."""
        if not self._on_terminal or not self.keys.taken:
            return
        said = texts.current().commands
        asking = self._channel is not None and bool(self._channel.pending())
        if self._requested.is_set():
            text, short = said.interrupt_prompt, said.interrupt_short
        elif asking:
            text, short = said.answer_prompt, said.answer_short
        else:
            text, short = said.say_prompt, said.say_short
        wanted = (text, self._lines.buf, self._lines.pos, self._line.width)
        if self._shown is None:
            self._line.pasting(True)
        if wanted != self._shown:
            self._shown = wanted
            self._line.prompt(text, self._lines.buf, self._lines.pos, short=short)


def answer_from_stdin(
    channel: Channel | None,
    *,
    on_aside: Callable[[str], Any] | None = None,
    on_interrupt: Callable[[str], Any] | None = None,
    interrupt_req: threading.Event | None = None,
) -> threading.Event:
    """Have standard input answer, speak up and interrupt, in a daemon thread `flower-stdin`.

    Returns at once; set the event to stop the thread, which then gives the terminal back within a poll (0.2 s). The
    callbacks are called from that thread.

    Args:
        on_aside: takes a side question, without its question mark.
        on_interrupt: takes the words of an interrupt, which may be empty.
        interrupt_req: set by whoever hears Ctrl-C; the next line is then what the person wants to say.
    """
    reader = Reader(channel, on_aside=on_aside, on_interrupt=on_interrupt, requested=interrupt_req)
    reader.start()
    return reader.stop


@contextlib.contextmanager
def reading(reader: Reader) -> Iterator[Reader]:
    """Read from here to the end of the block, however that comes."""
    reader.start()
    try:
        yield reader
    finally:
        reader.finish()
