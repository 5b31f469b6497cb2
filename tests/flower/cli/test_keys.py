"""Typing a line: bytes in any pieces, one finished line at a time (API 16.7)."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from flower.cli.keys import LineEditor

PARTS = [
    *(b"\x1b", b"\x1b[", b"\x1b]", b"\x1bO", b"\x1b[200~", b"\x1b[201~", b"\x1b[D", b"\x1b[3~"),
    *(b"\x7f", b"\r", b"\n", b"\x04", b"\x15", b"\xff", b"word"),
    *(text.encode() for text in ("中", "e\u0301", "👍🏽")),
]
KEYS = st.lists(st.one_of(st.binary(max_size=4), st.sampled_from(PARTS))).map(b"".join)


def typed(*pieces: bytes) -> LineEditor:
    editor = LineEditor()
    for piece in pieces:
        assert editor.feed(piece) is None
    return editor


def all_lines(editor: LineEditor, data: bytes) -> list[str]:
    lines = []
    while (line := editor.feed(data)) is not None:
        lines.append(line)
        data = b""
    return lines


@pytest.mark.parametrize("junk", [b"\xff\xfe", b"\xc3(", b"\xe4\xb8", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80"])
def test_invalid_utf8_never_raises_and_what_follows_is_read(junk: bytes) -> None:
    editor = LineEditor()
    (line,) = all_lines(editor, junk + b"ok\r")
    assert line.endswith("ok\n")


def test_a_finished_line_ends_with_a_newline_and_an_empty_one_is_only_that() -> None:
    editor = LineEditor()
    assert editor.feed(b"yes\n") == "yes\n"
    assert editor.feed(b"\n") == "\n"
    assert (editor.buf, editor.pos) == ("", 0)


def test_one_call_gives_one_line_and_keeps_the_rest() -> None:
    editor = LineEditor()
    assert editor.feed(b"a\nb\nc") == "a\n"
    assert editor.feed(b"") == "b\n"
    assert editor.feed(b"") is None
    assert editor.buf == "c"


def test_a_return_and_a_newline_behind_it_are_one_line_end() -> None:
    assert all_lines(LineEditor(), b"a\r\nb\r\n\r\n") == ["a\n", "b\n", "\n"]


def test_the_end_of_input_counts_on_an_empty_line_only() -> None:
    editor = typed(b"a\x04")
    assert (editor.buf, editor.eof) == ("a", False)
    assert editor.feed(b"\x7f\x04") == ""
    assert editor.eof
    editor.reset()
    assert not editor.eof


def test_utf8_arrives_in_any_pieces() -> None:
    editor = typed(*(bytes([byte]) for byte in "你好é👍🏽".encode()))
    assert (editor.buf, editor.pos) == ("你好é👍🏽", 5)


@pytest.mark.parametrize("whole", ["é", "e\u0301", "你", "👍🏽", "🇩🇪", "👩\u200d💻"])
@pytest.mark.parametrize("key", [b"\x7f", b"\x08"])
def test_backspace_deletes_one_character_not_a_byte_not_a_column(whole: str, key: bytes) -> None:
    assert typed(f"a{whole}".encode(), key).buf == "a"


def test_backspace_at_the_start_and_delete_at_the_end_do_nothing() -> None:
    assert typed(b"\x7fa\x1b[3~").buf == "a"


@pytest.mark.parametrize(
    ("keys", "cursor"),
    [
        (b"\x1b[D", 2),
        (b"\x1bOD", 2),
        (b"\x1b[D\x1b[C", 3),
        (b"\x1b[C", 3),
        (b"\x1b[H", 0),
        (b"\x1b[1~", 0),
        (b"\x1bOH", 0),
        (b"\x01", 0),
        (b"\x01\x05", 3),
        (b"\x01\x1b[F", 3),
        (b"\x01\x1b[4~", 3),
        (b"\x1b[A", 3),
        (b"\x1b[B", 3),
        (b"\x1b[1;5D", 3),
        (b"\x1b[5~", 3),
        (b"\x02\x0b\x0c", 3),
        (b"\x1bb", 3),
        (b"\x1b]11;rgb:0/0/0\x07", 3),
        (b"\x1b]11;rgb:0/0/0\x1b\\", 3),
        (b"\x1b[[A", 3),
        (b"\x1b[?1;2c", 3),
    ],
)
@pytest.mark.parametrize("piecewise", [False, True])
def test_keys_move_the_cursor_and_others_do_nothing(keys: bytes, cursor: int, piecewise: bool) -> None:
    pieces = [bytes([byte]) for byte in keys] if piecewise else [keys]
    editor = typed("一b三".encode(), *pieces)
    assert (editor.buf, editor.pos) == ("一b三", cursor)


def test_typing_and_deleting_happen_at_the_cursor() -> None:
    assert typed(b"ac", b"\x1b[D", b"b").buf == "abc"
    assert typed("一二三".encode(), b"\x1b[H\x1b[3~").buf == "二三"
    assert typed(b"gone\x15new").buf == "new"


def test_a_lone_escape_does_not_eat_the_end_of_the_line() -> None:
    assert LineEditor().feed(b"ab\x1b\r") == "ab\n"
    assert LineEditor().feed("a\x1b[你\r".encode()) == "a你\n"
    assert LineEditor().feed(b"a\x1b]b\r") == "a\n"


@pytest.mark.parametrize("piecewise", [False, True])
def test_a_paste_of_many_lines_is_one_line_until_return_is_pressed(piecewise: bool) -> None:
    paste = b"\x1b[200~one\r\ntwo\n\tthree\x04\x1b\x1b[201~"
    editor = typed(*([bytes([byte]) for byte in paste] if piecewise else [paste]))
    assert editor.buf == "one two  three"
    assert editor.feed(b"\r") == "one two  three\n"


def test_what_looks_like_the_end_of_a_paste_is_no_end() -> None:
    assert typed(b"\x1b[200~a\x1b[20\x1b[201~b").buf == "a[20b"


def test_a_paste_without_end_is_forgotten_by_reset() -> None:
    editor = typed(b"\x1b[200~a\r")
    editor.reset()
    assert editor.feed(b"b\r") == "b\n"


def test_invisible_characters_are_not_typed() -> None:
    assert typed("a\u202eb\u200bc\x9b".encode()).buf == "abc"


def test_a_line_stops_growing() -> None:
    assert len(typed(b"\x1b[200~" + b"x" * 150_000).buf) == 100_000


@given(KEYS, st.integers(1, 5))
@example(b"\x1b[200~\x1b[20\x1b", 1)
def test_any_bytes_in_any_pieces_give_the_same(data: bytes, size: int) -> None:
    whole, pieces = LineEditor(), LineEditor()
    expected = all_lines(whole, data)
    got = [line for at in range(0, len(data), size) for line in all_lines(pieces, data[at : at + size])]
    assert got == expected
    assert (pieces.buf, pieces.pos) == (whole.buf, whole.pos)
    assert 0 <= whole.pos <= len(whole.buf)
    for line in [*expected, whole.buf]:
        assert "\x1b" not in line
        assert "\n" not in line[:-1]
        line.encode()
