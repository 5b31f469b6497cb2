from __future__ import annotations

from pathlib import Path

import pytest

from flower.core.disk import write_whole


def test_a_text_that_cannot_be_encoded_leaves_the_old_file_and_no_draft(tmp_path: Path) -> None:
    target = tmp_path / "a.md"
    target.write_text("old", encoding="utf-8")
    with pytest.raises(UnicodeEncodeError):
        write_whole(target, "\ud800")
    assert target.read_text(encoding="utf-8") == "old"
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
