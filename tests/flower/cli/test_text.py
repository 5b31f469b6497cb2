"""Text for a terminal: nothing but colours gets through, and no line is wider than it may be (API 16.10)."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from flower.cli.text import RESET, clean, clusters, cut, cut_left, one_line, plain, width, wrap

COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
PARTS = [
    *(
        "\x1b",
        "[",
        "]",
        "\x1b[",
        "31",
        ";",
        "m",
        "2J",
        "\x1b]0;",
        "\x07",
        "\x1b\\",
        "\x1bP",
        "\x9b",
        "\x9c",
        "?",
        "\n",
        "\r",
    ),
    *("中", "é", "e\u0301", "\u200d", "👩", "\u202e", "\ud800", "\x1b[31m", "\x1b[0m", " ", "word"),
]
HOSTILE = st.lists(st.one_of(st.text(st.characters()), st.sampled_from(PARTS))).map("".join)


def columns(text: str) -> int:
    """Measure a line the plain way, without asking the code under test."""
    total = 0
    for char in COLOUR.sub("", text):
        if unicodedata.category(char) not in ("Mn", "Me") and char not in "\u200c\u200d":
            total += 2 if unicodedata.east_asian_width(char) in "WFA" else 1
    return total


@pytest.mark.parametrize(
    ("hostile", "kept"),
    [
        ("a\x1b[2Jb", "ab"),
        ("a\x1b[?25lb", "ab"),
        ("a\x1b]0;title\x07b", "ab"),
        ("a\x1b]8;;http://x\x1b\\b", "ab"),
        ("a\x1b]52;c;aGk=\x9cb", "ab"),
        ("a\x1bP1$q\x1b\\b", "ab"),
        ("a\x1b_apc\x1b\\b", "ab"),
        ("a\x1b^pm\x1b\\b", "ab"),
        ("a\x1bXsos\x1b\\b", "ab"),
        ("a\x1bktitle\x1b\\b", "ab"),
        ("a\x1bcb", "ab"),
        ("a\x1b7b\x1b8", "ab"),
        ("a\x1b(0b", "ab"),
        ("a\x9b2Jb", "ab"),
        ("a\x9b31mb", "ab"),
        ("a\x9d0;t\x9cb", "ab"),
        ("a\x90q\x9cb", "ab"),
        ("a\x84b", "ab"),
        ("a\x1b[>4;2mb", "ab"),
        ("a\x1b[31", "a"),
        ("a\x1b", "a"),
        ("a\x1b(", "a"),
        ("a\x1b]0;never ends\nb", "a\nb"),
        ("a\x1b[" + "1;" * 100 + "mb", "ab"),
        ("\x1b\x1b[31m[2J", "\x1b[31m[2J"),
        ("\x1b\x07[2J", "[2J"),
        ("\x1b[3\x1b[2J1m", "1m"),
        ("a\x00b\x08c\x7fd", "abcd"),
        ("a\tb", "a    b"),
        ("a\r\nb\rc\x85d\u2028e", "a\nb\nc\nd\ne"),
        ("user\u202etxt.exe", "usertxt.exe"),
        ("pay\u200bpal\u2066\ufeff", "paypal"),
        ("pay\u200dpal", "paypal"),
        ("tag\U000e0041", "tag"),
        ("half \ud83d pair", "half  pair"),
    ],
)
def test_what_could_move_the_cursor_or_lie_is_dropped_as_a_whole(hostile: str, kept: str) -> None:
    assert clean(hostile) == kept


@pytest.mark.parametrize(
    "kept", ["\x1b[31mred\x1b[0m", "\x1b[38;5;12m", "\x1b[4:3m", "\x1b[m", "中文 é", "👩\u200d💻", "می\u200cخواهم"]
)
def test_colours_and_joined_characters_stay(kept: str) -> None:
    assert clean(kept) == kept


@given(HOSTILE)
@example("\x1b[3\x1b[2J1m")
@example("\x9b\x1b]\x1b[m")
def test_no_escape_but_colours_and_no_control_survive(hostile: str) -> None:
    cleaned = clean(hostile)
    assert clean(cleaned) == cleaned
    bare = COLOUR.sub("", cleaned)
    assert not [char for char in bare if unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") and char != "\n"]
    assert not set(bare) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200b\ufeff")


@given(HOSTILE, st.integers(0, 60))
def test_a_cut_line_is_no_wider_than_the_width_and_closes_its_colours(hostile: str, most: int) -> None:
    for line in clean(hostile).split("\n"):
        short = cut(line, most)
        assert columns(short) <= most
        assert width(short) <= most
        last = COLOUR.findall(short)[-1:]
        assert not last or last == [RESET] or re.fullmatch(r"\x1b\[(0*(;0*)*)?m", last[0])


@given(HOSTILE, st.integers(8, 60))
def test_wrapped_text_loses_nothing_and_fits(hostile: str, most: int) -> None:
    text = clean(hostile)
    rows = wrap(text, most, first="* ", rest="  ")
    for row in rows:
        assert columns(row) <= most
        last = COLOUR.findall(row)[-1:]
        assert not last or re.fullmatch(r"\x1b\[[0:]*(;[0:]*)*m", last[0])
    shown = "".join(plain(row).removeprefix("* ") for row in rows)
    # A tower of marks on one character is the only thing that may be shortened.
    if max(map(len, clusters(plain(text))), default=0) < 12:
        assert re.sub(r"\s", "", shown) == re.sub(r"\s", "", plain(text))


@given(HOSTILE, st.integers(0, 40))
def test_cut_from_the_left_the_end_stays(hostile: str, most: int) -> None:
    line = one_line(hostile)
    short = cut_left(line, most)
    assert columns(short) <= most
    assert short == line or short.startswith("..."[:most])


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_characters_put_together_are_the_text(text: str) -> None:
    assert "".join(clusters(text)) == text


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("abc", 3),
        ("中文", 4),
        ("（）", 4),
        ("…·→é", 8),
        ("e\u0301", 1),
        ("\x1b[1mab\x1b[0m", 2),
        ("❤\ufe0f", 2),
        ("", 0),
    ],
)
def test_wide_full_and_ambiguous_are_two_columns_and_marks_none(text: str, count: int) -> None:
    assert width(text) == count


@pytest.mark.parametrize("whole", ["é", "e\u0301", "👩\u200d❤\ufe0f\u200d👨", "🇩🇪", "👍🏽", "नि", "中"])
def test_what_a_reader_takes_for_one_character_is_one(whole: str) -> None:
    assert list(clusters(f"a{whole}b")) == ["a", whole, "b"]


def test_words_stay_whole_and_wide_text_breaks_anywhere_but_before_a_comma() -> None:
    assert wrap("some words of prose", 11) == ["some words", "of prose"]
    assert wrap("一二三四五，六", 10) == ["一二三四", "五，六"]
    assert wrap("averylongwordwithoutblanks", 10) == ["averylongw", "ordwithout", "blanks"]
    assert wrap("a\n\nb", 10, first="* ", rest="  ") == ["* a", "  ", "  b"]


def test_a_colour_goes_on_in_the_next_line_and_ends_with_the_text() -> None:
    assert wrap("\x1b[31mred words\x1b[0m end", 5) == ["\x1b[31mred\x1b[0m", "\x1b[31mwords\x1b[0m", "end"]


def test_a_tower_of_marks_is_not_written_out() -> None:
    assert len(cut("e" + "\u0301" * 5000, 40)) < 20


def test_one_line_has_single_blanks_and_no_colours() -> None:
    assert one_line(" a\n\tb \x1b[31mc\x1b[0m ") == "a b c"
