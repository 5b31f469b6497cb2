"""Commands typed in a thread, by thumbs on phones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.typed import BUILT, LATER, Mistyped, TypedCommand, nearest, read_typed


@pytest.mark.parametrize(
    "text",
    [
        "",
        "stop",
        "please !stop",
        "!",
        "! ",
        "!!",
        "!?",
        "!1",
        "!42 times",
        "¡stop!",
        "!好",
        "hello!",
        "!@alice",
        "?stop",
    ],
)
def test_these_are_no_commands(text: str) -> None:
    assert read_typed(text) is None


@pytest.mark.case("TH-8")
@pytest.mark.parametrize(
    "text", ["!nice work", "!wow", "!great, thanks", "!amazing", "!important: use tabs", "!hello there", "!ok", "!yes"]
)
def test_words_that_happen_to_begin_with_a_bang_are_words(text: str) -> None:
    assert read_typed(text) is None


@pytest.mark.case("TH-8")
@pytest.mark.parametrize(
    "text", ["!stop", "!STOP", "!Stop", "  !stop", "\u00a0!stop ", "！stop", "!stop.", "!stop!", "!stop …"]
)
def test_case_blanks_and_a_full_stop_do_not_matter(text: str) -> None:
    assert read_typed(text) == TypedCommand("stop", "")


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("!stop use tabs", "use tabs"),
        ("!stop: use tabs", "use tabs"),
        ("!stop, use tabs", "use tabs"),
        ("!stop — use tabs", "use tabs"),
        ("!stop\nuse tabs\n\nand two blanks", "use tabs\n\nand two blanks"),
        ("!stop改用空格", "改用空格"),
        ("!stop “use tabs”", "“use tabs”"),
        ("!stop 2", "2"),
        ("!stop ?", ""),
        ("!stop :)", ""),
    ],
)
def test_what_stands_behind_a_command_are_its_words(text: str, rest: str) -> None:
    assert read_typed(text) == TypedCommand("stop", rest)


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("!stopp", "stop"),
        ("!sotp use tabs", "stop"),
        ("!stpo", "stop"),
        ("!contniue", "continue"),
        ("!stauts", "status"),
        ("!anwser q2 yes", "answer"),
        ("!skipp", "skip"),
        ("!kil", "kill"),
    ],
)
def test_a_slip_is_never_mail_but_is_asked_about(text: str, near: str) -> None:
    match read_typed(text):
        case Mistyped(near=meant):
            assert meant == near
        case other:
            pytest.fail(f"{text!r} was read as {other}")


@pytest.mark.parametrize("name", LATER)
def test_commands_that_are_not_built_yet_are_known(name: str) -> None:
    assert read_typed(f"!{name}") == TypedCommand(name, "")


@pytest.mark.parametrize("name", BUILT)
def test_one_letter_too_many_too_few_or_doubled_is_near(name: str) -> None:
    assert name in (nearest(name + name[-1]), nearest(name[0] + name), nearest(name[:-1]))


@given(st.text(max_size=40))
def test_any_text_is_read(text: str) -> None:
    read = read_typed(text)

    assert read is None or read.name.isascii()


@pytest.mark.parametrize(("text", "name"), [("! stop", "stop"), ("!!stop", "stop"), ("!  end now", "end")])
def test_a_command_typed_in_a_hurry_is_that_command(text: str, name: str) -> None:
    found = read_typed(text)
    assert isinstance(found, TypedCommand)
    assert found.name == name
