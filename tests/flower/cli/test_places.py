"""What is wrong with folders and files is told before a run begins, and no accounts are lost."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path

import pytest

from flower.cli.places import look_over, shown, usable


def test_nothing_is_said_about_what_is_not_there_or_sound(tmp_path: Path) -> None:
    assert look_over(tmp_path / "none") == []
    (tmp_path / "manifest.json").write_text("[]", encoding="utf-8")
    (tmp_path / "lineage.json").write_text("{}", encoding="utf-8-sig")
    assert look_over(tmp_path) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lineage.json", "manifest.json"]


@pytest.mark.parametrize("content", [b"", b"{", b"{}", b"\xff\xfe", b"\xef\xbb\xbf[]", b"[" * 5000])
def test_accounts_that_make_no_sense_are_kept_under_another_name(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "manifest.json").write_bytes(content)
    (note,) = look_over(tmp_path)
    (kept,) = tmp_path.iterdir()
    assert kept.read_bytes() == content
    assert kept.name.endswith(".broken")
    assert kept.name in note
    assert look_over(tmp_path) == []


def test_a_lineage_that_makes_no_sense_is_told_and_stays(tmp_path: Path) -> None:
    (tmp_path / "lineage.json").write_text(json.dumps([1]), encoding="utf-8")
    (note,) = look_over(tmp_path)
    assert note.startswith(f"! {tmp_path / 'lineage.json'} 读不懂")
    assert (tmp_path / "lineage.json").exists()


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (PermissionError(13, "Permission denied", "/ws/.flower"), "/ws/.flower 用不了:Permission denied"),
        (OSError(30, "Read-only file system", "/ws"), "/ws 用不了:Read-only file system"),
        (OSError("odd"), "/srv/space 用不了:odd"),
        (sqlite3.DatabaseError("file is not a database"), "out/sessions.db 不是完好的会话库:file is not a database"),
    ],
)
def test_what_the_disk_refuses_is_told(error: Exception, told: str) -> None:
    with pytest.raises(SystemExit) as ending, usable(workspace="/srv/space", run_dir="out"):
        raise error
    assert str(ending.value.code).startswith(told)


def test_a_path_that_is_no_text_is_refused() -> None:
    with pytest.raises(SystemExit) as ending, usable(workspace=os.fsdecode(b"/tmp/\xff"), run_dir="out"):
        pass
    assert ending.value.code == (
        r"'/tmp/\udcff' 用不了:路径不是 UTF-8。要一个能写的目录;用 -w 换工作目录,用 -r 换运行目录。"
    )


def test_the_home_directory_is_shown_as_a_tilde(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert shown(Path("/home/me/proj")) == "~/proj"
    assert shown(Path("/home/me2/proj")) == "/home/me2/proj"
