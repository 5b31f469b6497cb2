"""The screen: one way out, whatever happens to the stream, and no mixed lines on one terminal (API 16.10)."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import io
import os
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flower import texts
from flower.cli import screen as module
from flower.cli.screen import Screen, standard
from flower.cli.text import width

ROOT = Path(__file__).parents[3]
PROMPT = "(直接说 = 加需求,下个检查点送达;? 开头 = 顺便问一句,不打扰它干活) > "


class Terminal:
    """A pseudo-terminal: `stream` writes to it, `seen` is what reached it."""

    def __init__(self, columns: int) -> None:
        self.master, self.slave = pty.openpty()
        self.resize(columns)
        self.stream = open(self.slave, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - a descriptor
        self.seen = b""

    def resize(self, columns: int) -> None:
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def read(self) -> str:
        """Return what came since the last call."""
        came = b""
        while select.select([self.master], [], [], 0.05)[0]:
            came += os.read(self.master, 65536)
        return came.decode()

    def close(self) -> None:
        self.stream.close()
        os.close(self.slave)
        os.close(self.master)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Terminal]:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    opened = Terminal(80)
    yield opened
    opened.close()


class Failing(io.StringIO):
    """A stream that cannot be written to."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error, self.tried = error, 0

    def write(self, text: str) -> int:
        self.tried += 1
        raise self.error


def rows_of(data: str) -> list[str]:
    """Return the lines that stay on a terminal: what was erased is gone."""
    rows = [re.split(r"\r\x1b\[J", row)[-1].rstrip("\r") for row in data.split("\n")]
    return [row for row in rows if row]


# -- bad streams ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [errno.EPIPE, errno.EIO, errno.EBADF])
def test_a_reader_that_went_is_written_to_no_more(code: int) -> None:
    stream = Failing(OSError(code, "gone"))
    screen = Screen(stream)
    screen.write("a")
    screen.write("b")
    assert stream.tried == 1


def test_a_full_disk_may_have_room_again_later() -> None:
    stream = Failing(OSError(errno.ENOSPC, "full"))
    screen = Screen(stream)
    screen.write("a")
    screen.write("b")
    assert stream.tried == 2


def test_a_closed_stream_and_none_at_all_are_borne(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    for screen in (Screen(closed), Screen()):
        monkeypatch.setattr(sys, "stdout", None)
        screen.write("a")
        screen.prompt("> ")
        screen.no_prompt()
        assert screen.width >= 40


def test_a_closed_pipe_ends_neither_the_program_nor_its_exit() -> None:
    code = (
        "import sys, time\n"
        "from flower.cli.screen import Screen\n"
        "s = Screen()\n"
        "s.write('first'); sys.stdin.readline()\n"
        "for n in range(1000): s.write('more' * 10)\n"
        "print('went on', file=sys.stderr)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as program:
        assert program.stdin and program.stdout and program.stderr  # noqa: PT018 - for the type checker
        assert program.stdout.readline() == b"first\n"
        program.stdout.close()
        program.stdin.write(b"\n")
        program.stdin.close()
        assert program.stderr.read() == b"went on\n"
    assert program.returncode == 0


def test_an_ascii_stream_gets_marks_for_what_it_cannot_hold() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    Screen(stream).write("问 a\ud800")
    assert raw.getvalue() == b"? a\n"


# -- not a terminal ---------------------------------------------------------------------------------------------------


def test_elsewhere_lines_are_plain_and_there_is_no_prompt() -> None:
    stream = io.StringIO()
    screen = Screen(stream)
    screen.prompt("> ", "typed", 2)
    screen.pasting(True)
    screen.write("\x1b[31mred\x1b[0m\n\nend\x1b[2J")
    screen.no_prompt()
    assert stream.getvalue() == "red\n\nend\n"


@pytest.mark.parametrize(("columns", "shown"), [(1, 40), (40, 40), (77, 77), (110, 110), (500, 110)])
def test_the_width_is_between_40_and_110(columns: int, shown: int) -> None:
    assert Screen(io.StringIO(), columns=columns).width == shown


def test_written_lines_are_cut_and_prose_is_wrapped() -> None:
    stream = io.StringIO()
    screen = Screen(stream, columns=40)
    screen.write("x" * 50 + "\nshort")
    screen.say("+ " + "word " * 12, rest="  ")
    assert stream.getvalue().splitlines() == [
        "x" * 37 + "...",
        "short",
        "+ word word word word word word word",
        "  word word word word word",
    ]


def test_fifty_million_characters_are_not_all_looked_at() -> None:
    stream = io.StringIO()
    Screen(stream, columns=80).write("\x1b[31m" * 10_000_000)
    assert stream.getvalue().count("\n") == 1


@given(st.text(st.characters()))
def test_no_line_is_wider_than_the_screen(text: str) -> None:
    stream = io.StringIO()
    screen = Screen(stream, columns=40)
    screen.write(text)
    screen.say(text)
    assert all(width(line) <= 40 for line in stream.getvalue().split("\n"))


def test_standard_is_one_screen_on_what_stdout_is_now(capsys: pytest.CaptureFixture[str]) -> None:
    assert standard() is standard()
    standard().write("here")
    assert capsys.readouterr().out == "here\n"


# -- a terminal -------------------------------------------------------------------------------------------------------


def test_the_prompt_stands_below_the_newest_output_with_the_cursor_in_place(terminal: Terminal) -> None:
    screen = Screen(terminal.stream)
    screen.write("one")
    screen.prompt("> ", "ab你d", 3)
    assert terminal.read() == "\r\x1b[Jone\r\n\r\x1b[J> ab你d\r> ab你"
    screen.write("two")
    assert terminal.read() == "\r\x1b[Jtwo\r\n> ab你d\r> ab你"
    screen.no_prompt()
    screen.no_prompt()
    assert terminal.read() == "\r\x1b[J"


@pytest.mark.parametrize("cursor", [0, 1, 30, 60, 99, 100, 1000])
@pytest.mark.parametrize("columns", [20, 50, 80])
def test_a_prompt_wider_than_the_terminal_scrolls_around_the_cursor(
    terminal: Terminal, cursor: int, columns: int
) -> None:
    terminal.resize(columns)
    typed = "".join(chr(0x4E00 + at) for at in range(100))
    Screen(terminal.stream).prompt(PROMPT, typed, cursor)
    row = terminal.read().removeprefix("\r\x1b[J")
    whole, *left = row.split("\r")
    assert width(whole) < columns
    before = left[0] if left else whole
    assert whole.startswith(before)
    at = min(cursor, 100)
    assert at == 0 or before.endswith(typed[at - 1])
    assert at == 100 or whole.removeprefix(before).startswith((typed[at], "..."))


@pytest.mark.parametrize("language", ["zh", "en"])
def test_where_the_prompt_does_not_fit_one_sees_all_the_same_what_enter_will_do(
    language: str, terminal: Terminal
) -> None:
    said = texts.of(language).commands
    screen = Screen(terminal.stream)
    for long, short in (
        (said.say_prompt, said.say_short),
        (said.answer_prompt, said.answer_short),
        (said.interrupt_prompt, said.interrupt_short),
    ):
        screen.prompt(long, "x" * 60, 60, short=short)
        assert terminal.read() == f"\r\x1b[J{short}{'x' * 60}"
    assert len({said.say_short, said.answer_short, said.interrupt_short}) == 3


def test_a_prompt_that_is_too_long_keeps_its_mark(terminal: Terminal) -> None:
    terminal.resize(50)
    Screen(terminal.stream).prompt(PROMPT)
    assert terminal.read().endswith("... > ")


def test_the_width_follows_the_window_and_a_prompt_that_was_broken_is_erased_whole(terminal: Terminal) -> None:
    screen = Screen(terminal.stream)
    screen.prompt("> ", "x" * 70, 70)
    terminal.read()
    terminal.resize(50)
    assert screen.width == 50
    screen.no_prompt()
    assert terminal.read() == "\x1b[A\r\x1b[J"


def test_hostile_typing_and_prompts_are_cleaned(terminal: Terminal) -> None:
    Screen(terminal.stream).prompt("a\x1b[2J\n> ", "b\x1b]0;t\x07c\nd", 99)
    assert terminal.read() == "\r\x1b[Ja > bc d"


def test_colours_come_through_unless_no_color_is_set(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(terminal.stream)
    screen.write("\x1b[31mred")
    assert "\x1b[31mred\x1b[0m" in terminal.read()
    monkeypatch.setenv("NO_COLOR", "1")
    screen.write("\x1b[31mred")
    assert terminal.read() == "\r\x1b[Jred\r\n"
    monkeypatch.setenv("TERM", "dumb")
    screen.write("\x1b[31mred")
    assert terminal.read() == "red\r\n"


def test_pastes_are_marked_on_request(terminal: Terminal) -> None:
    screen = Screen(terminal.stream)
    screen.pasting(True)
    screen.pasting(False)
    assert terminal.read() == "\x1b[?2004h\x1b[?2004l"


# -- several writers --------------------------------------------------------------------------------------------------


def test_threads_never_mix_lines(terminal: Terminal) -> None:
    screen, seen = Screen(terminal.stream), io.StringIO()
    done = threading.Event()

    def drain() -> None:
        while not done.is_set():
            seen.write(terminal.read())

    reader = threading.Thread(target=drain)
    reader.start()

    def write(name: int) -> None:
        for _ in range(50):
            screen.write(f"{name}" * 60)

    writers = [threading.Thread(target=write, args=(name,)) for name in range(4)]
    for writer in writers:
        writer.start()
        screen.prompt("> ", "typing")
    for writer in writers:
        writer.join()
    done.set()
    reader.join()
    screen.no_prompt()
    rows = rows_of(seen.getvalue() + terminal.read())
    assert sorted(rows) == sorted(f"{n}" * 60 for n in range(4) for _ in range(50))


IN_PIECES = """
import os, sys
from flower.cli.screen import Screen

class Pieces:
    encoding = "utf-8"
    def isatty(self): return True
    def fileno(self): return 1
    def flush(self): pass
    def write(self, text):
        data = text.encode()
        for at in range(0, len(data), 16):
            os.write(1, data[at : at + 16])

screen, name = Screen(Pieces()), sys.argv[1]
screen.prompt(name + " > ", "typed")
for n in range(120):
    screen.write(f"{name}{n:03}" * 10)
screen.no_prompt()
"""
"""A program whose terminal takes a few bytes at a time: without a lock, two of them mix."""


def test_two_programs_on_one_terminal_never_mix_lines(terminal: Terminal, tmp_path: Path) -> None:
    surroundings = {**os.environ, "TMPDIR": str(tmp_path), "TERM": "xterm"}
    programs = [
        subprocess.Popen([sys.executable, "-c", IN_PIECES, name], cwd=ROOT, stdout=terminal.slave, env=surroundings)
        for name in "AB"
    ]
    seen = ""
    while any(program.poll() is None for program in programs):
        seen += terminal.read()
    seen += terminal.read()
    assert [program.returncode for program in programs] == [0, 0]
    assert sorted(rows_of(seen)) == sorted(f"{name}{n:03}" * 10 for name in "AB" for n in range(120))
    (lock,) = tmp_path.iterdir()
    assert lock.stat().st_mode & 0o777 == 0o600


def lock_path(terminal: Terminal) -> Path:
    Screen(terminal.stream).write("")
    (path,) = Path(tempfile.gettempdir()).iterdir()
    terminal.read()
    return path


def test_a_lock_that_is_never_given_back_does_not_prevent_output(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert module.LOCK_SECONDS == 2.0
    monkeypatch.setattr(module, "LOCK_SECONDS", 0.05)
    with lock_path(terminal).open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        screen = Screen(terminal.stream)
        screen.write("out")
        # Its owner was stopped, say: only the first line waits, or this one would take longer than a test may.
        monkeypatch.setattr(module, "LOCK_SECONDS", 600.0)
        screen.write("again")
    assert rows_of(terminal.read()) == ["out", "again"]


def test_a_planted_link_is_not_followed(terminal: Terminal, tmp_path: Path) -> None:
    path = lock_path(terminal)
    victim = tmp_path / "victim"
    path.unlink()
    path.symlink_to(victim)
    Screen(terminal.stream).write("out")
    assert "out" in terminal.read()
    assert not victim.exists()


@pytest.mark.parametrize("planted", ["a pipe", "a folder", "a second name of another file"])
def test_a_lock_file_that_is_no_plain_file_of_ours_is_not_used(
    terminal: Terminal, planted: str, tmp_path: Path
) -> None:
    path = lock_path(terminal)
    path.unlink()
    if planted == "a pipe":
        os.mkfifo(path)
    elif planted == "a folder":
        path.mkdir()
    else:
        (tmp_path / "other").write_text("")
        path.hardlink_to(tmp_path / "other")
    with pytest.raises(OSError, match=path.name):
        module._lock_file(os.ttyname(terminal.slave))
    Screen(terminal.stream).write("out")
    assert "out" in terminal.read()


def test_no_descriptor_is_left_open(terminal: Terminal) -> None:
    def opened() -> int:
        return sum(1 for fd in range(256) if is_open(fd))

    screen = Screen(terminal.stream)
    screen.write("a")
    before = opened()
    for _ in range(20):
        screen.write("a")
    assert opened() == before


def is_open(fd: int) -> bool:
    with contextlib.suppress(OSError):
        os.fstat(fd)
        return True
    return False
