from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from flower.core.disk import append, freeze, read_object, read_whole, write_whole


def test_half_of_a_pair_does_not_cost_the_file(tmp_path: Path) -> None:
    target = tmp_path / "a.md"
    write_whole(target, "a\ud800b")
    assert target.read_text(encoding="utf-8") == "a\\ud800b"
    assert [path.name for path in tmp_path.iterdir()] == ["a.md"]


def test_a_folder_in_the_place_of_the_file_is_an_error_and_stays(tmp_path: Path) -> None:
    (tmp_path / "a.md" / "inside").mkdir(parents=True)
    with pytest.raises(OSError, match="directory"):
        write_whole(tmp_path / "a.md", "new")
    assert (tmp_path / "a.md" / "inside").is_dir()
    assert [path.name for path in tmp_path.iterdir()] == ["a.md"]


def test_parents_are_made_and_the_resolved_path_comes_back(tmp_path: Path) -> None:
    written = write_whole(tmp_path / "x" / ".." / "deep" / "a.md", "文")
    assert written == (tmp_path / "deep" / "a.md").resolve()
    assert written.read_text(encoding="utf-8") == "文"


def test_the_mode_of_an_existing_file_is_kept(tmp_path: Path) -> None:
    target = tmp_path / "a.md"
    target.write_text("old", encoding="utf-8")
    target.chmod(0o640)
    write_whole(target, "new")
    assert target.stat().st_mode & 0o777 == 0o640


def test_bytes_are_written_as_they_are(tmp_path: Path) -> None:
    assert write_whole(tmp_path / "a", b"\xff\r\n\0").read_bytes() == b"\xff\r\n\0"
    assert write_whole(tmp_path / "b", "a\r\nb\n").read_bytes() == b"a\r\nb\n"


def test_a_link_stays_and_what_it_leads_to_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "real.md").write_text("old")
    (tmp_path / "link.md").symlink_to("real.md")
    assert write_whole(tmp_path / "link.md", "new") == (tmp_path / "real.md").resolve()
    assert (tmp_path / "link.md").is_symlink()
    assert (tmp_path / "real.md").read_text() == "new"


def test_a_link_to_nothing_makes_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "link.md").symlink_to("deep/real.md")
    write_whole(tmp_path / "link.md", "new")
    assert (tmp_path / "deep" / "real.md").read_text() == "new"


def test_links_in_a_circle_are_an_error_of_the_disk(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="symbolic links"):
        write_whole(tmp_path / "a", "new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_what_is_no_file_is_not_replaced_by_one(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        write_whole(tmp_path / "pipe", "new")
    assert (tmp_path / "pipe").is_fifo()
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


def test_a_file_in_the_place_of_a_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"File exists|Not a directory"):
        write_whole(tmp_path / "file" / "a.md", "new")


def test_a_special_mode_is_kept_whatever_new_files_get(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    (tmp_path / "a").chmod(0o604)
    before = os.umask(0o077)
    try:
        write_whole(tmp_path / "a", "new")
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o7777 == 0o604


@pytest.mark.parametrize(("before", "meanwhile"), [(0o600, 0o600), (0o644, 0o600), (None, 0o644)])
def test_what_replaces_a_closed_file_is_closed_from_its_first_byte_on(
    before: int | None, meanwhile: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, seen, synced = tmp_path / "a", [], os.fsync
    if before is not None:
        target.touch()
        target.chmod(before)

    def look(number: int) -> None:
        seen.append(os.fstat(number).st_mode & 0o777)
        synced(number)

    monkeypatch.setattr(os, "fsync", look)
    mask = os.umask(0o022)
    try:
        write_whole(target, "secret")
    finally:
        os.umask(mask)
    assert seen == [meanwhile]
    assert target.stat().st_mode & 0o777 == (before or 0o644)


def test_reading_a_file_that_is_not_there_gives_nothing(tmp_path: Path) -> None:
    assert read_whole(tmp_path / "missing") is None
    assert read_whole(tmp_path / "missing" / "deeper") is None


def test_reading_gives_the_bytes_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"\xff\0")
    (tmp_path / "link").symlink_to("real")
    assert read_whole(tmp_path / "link") == b"\xff\0"


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        read_whole(tmp_path / "pipe")


@pytest.mark.parametrize("data", [b"", b"{", b"[1]", b"null", b"\xff\xfe", b"[" * 100_000])
def test_a_file_that_holds_no_object_reads_as_an_empty_one(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "state.json").write_bytes(data)
    assert read_object(tmp_path / "state.json") == {}


def test_what_is_no_file_reads_as_an_empty_object(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert [read_object(tmp_path / name) for name in ("missing", "pipe", ".")] == [{}, {}, {}]


def test_an_object_is_read_with_and_without_a_byte_order_mark(tmp_path: Path) -> None:
    for data in (b'{"a": 1}', b'\xef\xbb\xbf{"a": 1}'):
        (tmp_path / "state.json").write_bytes(data)
        assert read_object(tmp_path / "state.json") == {"a": 1}


def test_reading_a_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        read_whole(tmp_path)


@pytest.mark.parametrize("encoding", ["gbk", "utf-16"])
def test_a_document_that_cannot_be_read_is_moved_aside_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, encoding: str
) -> None:
    path = tmp_path / "a.md"
    for words in ("目标", "边界"):
        path.write_bytes(words.encode(encoding))
        freeze(path, lambda _before: "new")
    first, second = sorted(each for each in tmp_path.iterdir() if each != path)
    assert first.name.startswith("a.md.unreadable-")
    assert {first.read_bytes(), second.read_bytes()} == {"目标".encode(encoding), "边界".encode(encoding)}
    assert path.read_text(encoding="utf-8") == "new"
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 2
    assert all(str(path) in line and ".unreadable-" in line for line in caplog.messages)


def test_a_document_that_cannot_be_replaced_is_where_it_was(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a.md").write_bytes(b"\xff")

    def broken(_before: str) -> str:
        raise OSError("no")

    with pytest.raises(OSError, match="no"):
        freeze(tmp_path / "a.md", broken)
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("a.md", b"\xff")]
    assert caplog.messages == []


def test_a_readable_document_is_replaced_by_what_is_made_of_it(tmp_path: Path) -> None:
    append(tmp_path / "deep" / "a.md", "head\n", "one\n")
    append(tmp_path / "deep" / "a.md", "head\n", "two\n")
    freeze(tmp_path / "deep" / "a.md", lambda before: before.upper())
    freeze(tmp_path / "deep" / "b.md", lambda before: f"<{before}>")
    texts = {each.name: each.read_text(encoding="utf-8") for each in (tmp_path / "deep").iterdir()}
    assert texts == {"a.md": "HEAD\nONE\nTWO\n", "b.md": "<>"}
