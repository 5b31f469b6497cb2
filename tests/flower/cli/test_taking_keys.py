"""Taking a terminal's keys and giving them back, on a pseudo-terminal."""

from __future__ import annotations

import contextlib
import os
import pty
import termios
from collections.abc import Iterator

import pytest

from flower.cli.terminal import Keys, read_line


@pytest.fixture
def program() -> Iterator[int]:
    """The program's side of a terminal."""
    keyboard, program = pty.openpty()
    yield program
    for each in (keyboard, program):
        with contextlib.suppress(OSError):
            os.close(each)


def mode(fd: int) -> tuple[bool, bool, bytes]:
    """Whole lines, echo, and the key that interrupts."""
    flags = termios.tcgetattr(fd)
    key = flags[6][termios.VINTR]
    assert isinstance(key, bytes)
    return bool(flags[3] & termios.ICANON), bool(flags[3] & termios.ECHO), key


COOKED, RAW = (True, True, b"\x03"), (False, False, b"\x00")


def test_where_there_is_no_terminal_nothing_happens() -> None:
    out, into = os.pipe()
    for fd in (None, out, into, 9999):
        keys = Keys(fd)
        for act in (keys.take, keys.wake, keys.rest, keys.give_back):
            act()
        assert not keys.taken
        assert keys.in_front
    os.close(out)
    os.close(into)


def test_it_is_given_back_as_it_was_however_often(program: int) -> None:
    keys = Keys(program)
    keys.take()
    keys.take()
    assert (mode(program), keys.taken) == (RAW, True)
    keys.give_back()
    keys.give_back(at_once=True)
    assert (mode(program), keys.taken) == (COOKED, False)


def test_line_ends_and_suspending_stay_with_the_terminal(program: int) -> None:
    Keys(program).take()
    flags = termios.tcgetattr(program)
    assert flags[0] & termios.ICRNL
    assert flags[3] & termios.ISIG
    assert flags[6][termios.VSUSP] == b"\x1a"


def test_while_it_rests_nobody_takes_it(program: int) -> None:
    keys = Keys(program)
    keys.take()
    keys.rest()
    keys.take()
    assert mode(program) == COOKED
    keys.wake()
    assert mode(program) == RAW
    keys.give_back()
    assert mode(program) == COOKED


def test_what_a_shell_changed_meanwhile_is_taken_again_and_the_first_state_given_back(program: int) -> None:
    keys = Keys(program)
    keys.take()
    flags = termios.tcgetattr(program)
    flags[3] |= termios.ICANON | termios.ECHO
    flags[6][termios.VINTR] = b"\x07"
    termios.tcsetattr(program, termios.TCSANOW, flags)
    keys.wake()  # stopped by SIGSTOP and continued: no handler ran before
    assert mode(program) == RAW
    keys.give_back()
    assert mode(program) == COOKED


def test_a_line_is_read_and_what_follows_it_stays() -> None:
    out, into = os.pipe()
    os.write(into, "一\r\n\nrest\xff".encode())
    assert read_line(out) == "一"
    assert read_line(out) == ""
    os.close(into)
    assert read_line(out) == "restÿ"
    assert read_line(out) is None
    os.close(out)
    assert read_line(out) is None
    assert read_line(None) is None
