"""What a line means, and the thread that reads: with pipes and pseudo-terminals, without a program (API 16.7)."""

from __future__ import annotations

import contextlib
import io
import os
import pty
import signal
import termios
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from flower import texts
from flower.cli.screen import Screen
from flower.cli.stdin import (
    THREAD,
    Answer,
    Aside,
    Decline,
    Help,
    Interrupt,
    Lines,
    Mail,
    Meaning,
    Reader,
    answer_from_stdin,
    meaning,
    reading,
)

PATIENCE = 10.0


@dataclass
class Waiting:
    """A question that waits."""

    id: str
    options: list[str] = field(default_factory=list)


@dataclass
class Heard:
    """A channel that writes down what it is told; questions wait until they are answered."""

    waiting: list[Waiting] = field(default_factory=list)
    said: list[tuple[str, ...]] = field(default_factory=list)
    fails: bool = False

    def pending(self) -> list[Waiting]:
        return list(self.waiting)

    def answer(self, ask_id: str, text: str) -> bool:
        return self._settle("answer", ask_id, text)

    def decline(self, ask_id: str, reason: str = "") -> bool:
        return self._settle("decline", ask_id, reason)

    def send(self, text: str) -> None:
        if self.fails:
            raise OSError("no room")
        self.said.append(("send", text))

    def _settle(self, what: str, ask_id: str, text: str) -> bool:
        self.waiting = [ask for ask in self.waiting if ask.id != ask_id]
        self.said.append((what, ask_id, text))
        return True


TWO = [Waiting("q1", ["CLI", "library"]), Waiting("q2", ["no"])]
PLAIN = [Waiting("q1")]


@pytest.mark.parametrize(
    ("line", "pending", "meant"),
    [
        ("", [], None),
        ("  \t", [], None),
        ("", TWO, Decline(ask="q1")),
        ("   ", PLAIN, Decline(ask="q1")),
        ("?", [], Help()),
        ("？ ", TWO, Help()),
        ("?how far", [], Aside(question="how far")),
        ("？到哪了", [], Aside(question="到哪了")),
        ("  ? how far ", TWO, Aside(question="how far")),
        ("what?", [], Mail(text="what?")),
        ("1", [], Mail(text="1")),
        ("1", TWO, Answer(ask="q1", text="CLI")),
        (" 2 ", TWO, Answer(ask="q1", text="library")),
        ("２", TWO, Answer(ask="q1", text="library")),
        ("0", TWO, Answer(ask="q1", text="0")),
        ("3", TWO, Answer(ask="q1", text="3")),
        ("-1", TWO, Answer(ask="q1", text="-1")),
        ("1.", TWO, Answer(ask="q1", text="1.")),
        ("²", TWO, Answer(ask="q1", text="²")),
        ("1", PLAIN, Answer(ask="q1", text="1")),
        ("9" * 5000, TWO, Answer(ask="q1", text="9" * 5000)),
        (" add tests ", [], Mail(text="add tests")),
    ],
)
def test_what_a_line_means(line: str, pending: list[Waiting], meant: Meaning | None) -> None:
    assert meaning(line, interrupting=False, pending=pending) == meant


@pytest.mark.parametrize("line", ["", "stop it", "?how far", "2", "  stop it "])
def test_while_a_person_interrupts_every_line_is_what_they_want_to_say(line: str) -> None:
    for pending in ([], TWO):
        assert meaning(line, interrupting=True, pending=pending) == Interrupt(words=line.strip())


def test_lines_come_out_of_a_pipe_in_any_pieces() -> None:
    lines = Lines()
    assert lines.feed("一".encode()[:1]) is None
    assert lines.feed("一".encode()[1:] + b"\r\ntwo\n\xff") == "一\n"
    assert lines.feed(b"") == "two\n"
    assert lines.feed(b"") is None
    assert lines.rest() == "�"


@contextlib.contextmanager
def piped() -> Iterator[tuple[int, int]]:
    """A pipe: what is read from, what is written to."""
    out, into = os.pipe()
    try:
        yield out, into
    finally:
        for each in (out, into):
            with contextlib.suppress(OSError):
                os.close(each)


def until(true: Callable[[], bool]) -> None:
    """Wait for a condition; fails when it does not come true."""
    late = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < late
        time.sleep(0.01)


def ended(reader: Reader) -> bool:
    return not reader._thread.is_alive()


def test_a_pipe_answers_speaks_up_and_declines_what_is_open_at_its_end() -> None:
    channel, shown = Heard(waiting=list(TWO)), io.StringIO()
    asked: list[str] = []
    with piped() as (out, into):
        reader = Reader(channel, on_aside=asked.append, screen=Screen(shown, columns=80), fd=out, on_terminal=False)
        with reading(reader):
            os.write(into, b"2\n?wie weit\n\nand sort")
            until(lambda: len(channel.said) == 2)
            os.close(into)
            until(lambda: ended(reader))
    assert channel.said == [("answer", "q1", "library"), ("decline", "q2", ""), ("send", "and sort")]
    assert asked == ["wie weit"]
    assert shown.getvalue() == ""  # no prompt where nobody looks


def test_every_question_that_waits_at_the_end_of_input_is_declined_with_the_reason() -> None:
    channel = Heard(waiting=list(TWO))
    with piped() as (out, into):
        os.close(into)
        reader = Reader(channel, screen=Screen(io.StringIO()), fd=out, on_terminal=False)
        with reading(reader):
            until(lambda: ended(reader))
    assert channel.said == [("decline", "q1", "输入已关闭"), ("decline", "q2", "输入已关闭")]
    assert not reader.listening


def test_a_closed_descriptor_is_the_end_of_input() -> None:
    with piped() as (out, into):
        os.close(out)
        channel = Heard(waiting=list(PLAIN))
        reader = Reader(channel, screen=Screen(io.StringIO()), fd=out, on_terminal=False)
        with reading(reader):
            until(lambda: ended(reader))
        assert channel.said == [("decline", "q1", "输入已关闭")]
        assert into


def test_a_line_that_fails_is_told_and_the_reading_goes_on() -> None:
    channel, shown = Heard(fails=True), io.StringIO()
    with piped() as (out, into):
        reader = Reader(channel, screen=Screen(shown, columns=80), fd=out, on_terminal=False)
        with reading(reader):
            os.write(into, b"first\n")
            until(lambda: "OSError: no room" in shown.getvalue())
            channel.fails = False
            os.write(into, b"second\n")
            until(lambda: channel.said == [("send", "second")])


def test_a_workflow_without_a_channel_says_that_nothing_was_sent() -> None:
    shown = io.StringIO()
    with piped() as (out, into), texts.speaking("zh"):
        reader = Reader(None, screen=Screen(shown, columns=110), fd=out, on_terminal=False)
        with reading(reader):
            os.write(into, b"hello\n")
            until(lambda: "没有收件箱" in shown.getvalue())


def test_an_interrupt_takes_the_next_line_and_says_what_it_costs() -> None:
    channel, shown, requested = Heard(waiting=list(TWO)), io.StringIO(), threading.Event()
    words: list[str] = []
    with piped() as (out, into):
        reader = Reader(
            channel,
            on_interrupt=words.append,
            requested=requested,
            screen=Screen(shown, columns=80),
            fd=out,
            on_terminal=False,
        )
        with reading(reader):
            requested.set()
            os.write(into, b"not the Makefile\n2\n")
            until(lambda: bool(channel.said))
    assert words == ["not the Makefile"]
    assert not requested.is_set()
    assert channel.said[0] == ("answer", "q1", "library")
    assert shown.getvalue().splitlines() == [
        "! 已打断这一轮。正在跑的 subagent 会丢掉半成品。",
        "(有 2 个提问还等着,打断不影响它们)",
    ]


def test_an_interrupt_that_was_begun_is_carried_out_when_the_input_ends() -> None:
    words: list[str] = []
    requested = threading.Event()
    requested.set()
    with piped() as (out, into):
        os.close(into)
        reader = Reader(
            Heard(),
            on_interrupt=words.append,
            requested=requested,
            screen=Screen(io.StringIO()),
            fd=out,
            on_terminal=False,
        )
        with reading(reader):
            until(lambda: ended(reader))
    assert words == [""]


class Shown(Screen):
    """A screen that keeps what stands in the input line."""

    def __init__(self) -> None:
        super().__init__(io.StringIO(), columns=80)
        self.lines: list[tuple[str, str, int]] = []

    def prompt(self, text: str, buffer: str = "", cursor: int = 0, *, short: str = "") -> None:
        self.lines.append((text, buffer, cursor))


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """A pseudo-terminal: the side of the program, the side of the keyboard."""
    keyboard, program = pty.openpty()
    yield program, keyboard
    for each in (program, keyboard):
        with contextlib.suppress(OSError):
            os.close(each)


def is_raw(fd: int) -> bool:
    return not termios.tcgetattr(fd)[3] & (termios.ICANON | termios.ECHO)


def test_the_prompt_says_what_a_line_would_mean_and_what_was_typed_stays(terminal: tuple[int, int]) -> None:
    said = texts.of("zh").commands
    channel, screen, requested = Heard(), Shown(), threading.Event()
    program, keyboard = terminal
    reader = Reader(
        channel,
        on_interrupt=lambda words: channel.said.append(("interrupt", words)),
        requested=requested,
        screen=screen,
        fd=program,
        on_terminal=True,
    )
    with reading(reader):
        assert is_raw(program)
        until(lambda: screen.lines == [(said.say_prompt, "", 0)])
        os.write(keyboard, "好".encode())
        until(lambda: screen.lines[-1] == (said.say_prompt, "好", 1))
        channel.waiting = [Waiting("q1")]
        until(lambda: screen.lines[-1] == (said.answer_prompt, "好", 1))
        requested.set()
        until(lambda: screen.lines[-1] == (said.interrupt_prompt, "", 0))
        os.write(keyboard, b"!\n")
        until(lambda: bool(channel.said))
        until(lambda: screen.lines[-1] == (said.answer_prompt, "好", 1))
    assert channel.said == [("interrupt", "!")]
    assert not is_raw(program)


def test_control_c_is_a_key_that_signals_this_process_alone(terminal: tuple[int, int]) -> None:
    program, keyboard = terminal
    channel, heard = Heard(), []
    before = signal.signal(signal.SIGINT, lambda *_: heard.append(threading.current_thread()))
    try:
        reader = Reader(channel, screen=Shown(), fd=program, on_terminal=True)
        with reading(reader):
            os.write(keyboard, b"ab\x03c\n")
            until(lambda: bool(channel.said))
            until(lambda: bool(heard))
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == [threading.main_thread()]
    assert channel.said == [("send", "abc")]


@contextlib.contextmanager
def asking_why(requested: threading.Event, *, late: float = 0.0) -> Iterator[None]:
    """Have Ctrl-C ask for an interrupt, as in a run; `late` is how long the main thread is busy before."""

    def heard(*_: object) -> None:
        time.sleep(late)
        requested.set()

    before = signal.signal(signal.SIGINT, heard)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("typed", [b"\x031\n", b"\x03\n"])
def test_words_that_arrive_together_with_control_c_interrupt_and_answer_nothing(
    typed: bytes, terminal: tuple[int, int]
) -> None:
    program, keyboard = terminal
    channel, words, requested = Heard(waiting=list(TWO)), list[str](), threading.Event()
    reader = Reader(
        channel, on_interrupt=words.append, requested=requested, screen=Shown(), fd=program, on_terminal=True
    )
    with asking_why(requested, late=0.1), reading(reader):
        os.write(keyboard, typed)
        until(lambda: bool(words))
    assert words == [typed[1:].decode().strip()]
    assert channel.said == []


def test_what_was_half_typed_is_no_part_of_the_interrupt_and_comes_back(terminal: tuple[int, int]) -> None:
    program, keyboard = terminal
    channel, words, requested = Heard(waiting=list(TWO)), list[str](), threading.Event()
    reader = Reader(
        channel, on_interrupt=words.append, requested=requested, screen=Shown(), fd=program, on_terminal=True
    )
    with asking_why(requested), reading(reader):
        os.write(keyboard, b"2\x03and document it\n")
        until(lambda: bool(words))
        os.write(keyboard, b"\n")
        until(lambda: bool(channel.said))
    assert words == ["and document it"]
    assert channel.said == [("answer", "q1", "library")]


def test_questions_that_go_with_the_turn_are_not_said_to_wait() -> None:
    shown, requested = io.StringIO(), threading.Event()
    with piped() as (out, into):
        reader = Reader(
            Heard(waiting=list(TWO)),
            on_interrupt=lambda _words: True,
            requested=requested,
            screen=Screen(shown, columns=80),
            fd=out,
            on_terminal=False,
        )
        with reading(reader):
            requested.set()
            os.write(into, b"never mind\n")
            until(lambda: shown.getvalue().count("\n") == 2)
    assert shown.getvalue().splitlines()[1] == texts.of("zh").commands.withdrawn


def test_a_question_mark_alone_says_what_one_can_do() -> None:
    shown = io.StringIO()
    with piped() as (out, into), texts.speaking("en"):
        reader = Reader(Heard(), screen=Screen(shown, columns=110), fd=out, on_terminal=False)
        with reading(reader):
            os.write(into, "？\n".encode())
            until(lambda: "Ctrl-Z" in shown.getvalue())


def test_whoever_started_the_reading_is_told_of_its_end() -> None:
    channel, told = Heard(waiting=list(PLAIN)), list[list[tuple[str, ...]]]()
    with piped() as (out, into):
        os.close(into)
        reader = Reader(
            channel,
            on_end=lambda: told.append(list(channel.said)),
            screen=Screen(io.StringIO()),
            fd=out,
            on_terminal=False,
        )
        with reading(reader):
            until(lambda: ended(reader))
    assert told == [[("decline", "q1", "输入已关闭")]]


def test_control_d_ends_the_reading_and_gives_the_terminal_back(terminal: tuple[int, int]) -> None:
    program, keyboard = terminal
    channel = Heard(waiting=list(PLAIN))
    reader = Reader(channel, screen=Shown(), fd=program, on_terminal=True)
    with reading(reader):
        os.write(keyboard, b"\x04")
        until(lambda: ended(reader))
        assert not is_raw(program)
    assert channel.said == [("decline", "q1", "输入已关闭")]


def test_a_terminal_that_goes_away_is_the_end_of_input(terminal: tuple[int, int]) -> None:
    program, keyboard = terminal
    reader = Reader(Heard(), screen=Shown(), fd=program, on_terminal=True)
    with reading(reader):
        os.close(keyboard)
        until(lambda: ended(reader))


def test_the_terminal_is_given_back_when_the_block_fails(terminal: tuple[int, int]) -> None:
    program, _ = terminal
    reader = Reader(Heard(), screen=Shown(), fd=program, on_terminal=True)
    with pytest.raises(ZeroDivisionError), reading(reader):
        assert 1 / (1 - is_raw(program))
    assert not is_raw(program)


def test_answer_from_stdin_reads_in_a_daemon_thread_until_its_event_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    channel = Heard()
    with piped() as (out, into), open(out, closefd=False) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        stop = answer_from_stdin(channel)
        (thread,) = [each for each in threading.enumerate() if each.name == THREAD]
        assert thread.daemon
        os.write(into, b"hello\n")
        until(lambda: channel.said == [("send", "hello")])
        stop.set()
        until(lambda: not thread.is_alive())


@pytest.mark.parametrize(("name", "taken"), [("dumb", False), ("xterm", True)])
def test_a_dumb_terminal_keeps_its_own_lines(
    name: str, taken: bool, terminal: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    program, keyboard = terminal
    channel = Heard()
    monkeypatch.setenv("TERM", name)
    with open(program, closefd=False) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        with reading(Reader(channel, screen=Screen(io.StringIO()))):
            assert is_raw(program) is taken
            os.write(keyboard, b"hello\n")
            until(lambda: channel.said == [("send", "hello")])
