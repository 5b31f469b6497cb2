"""Whether a folder can have worktrees, asked of git itself (behaviour 22, API 14.7)."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from flower import texts
from flower.core import worktrees
from flower.core.roles import worker
from flower.core.worktrees import settings, trouble
from tests.fakes.repository import git, repository


@pytest.fixture(autouse=True)
def nobodys_configuration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")


def other_git(folder: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    """Put a git of ours in front."""
    folder.mkdir()
    (folder / "git").write_text(f"#!{sys.executable}\n{body}\n", encoding="utf-8")
    (folder / "git").chmod(0o700)
    monkeypatch.setenv("PATH", str(folder))


def test_a_folder_outside_a_repository_is_told_to_begin_one(tmp_path: Path) -> None:
    assert trouble(tmp_path) == (
        f"--isolate 要求 {tmp_path} 是 git 仓库(每个 subagent 要分一份 worktree)。先 git init,或者去掉 --isolate。"
    )


def test_a_folder_that_is_not_there_is_no_repository(tmp_path: Path) -> None:
    assert "git init" in (trouble(tmp_path / "missing") or "")


def test_a_file_in_the_place_of_the_folder_is_no_repository(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "git init" in (trouble(tmp_path / "file") or "")


def test_a_repository_without_a_commit_has_nothing_to_branch_off(tmp_path: Path) -> None:
    empty = repository(tmp_path / "ws", committed=False)
    assert "git commit" in (trouble(empty.path) or "")
    empty.commit("a.txt", "a")
    assert trouble(empty.path) is None
    empty.git("checkout", "--quiet", "--orphan", "nothing-yet")
    assert "git commit" in (trouble(empty.path) or "")


def test_a_folder_inside_a_repository_is_sent_to_its_root(tmp_path: Path) -> None:
    root = repository(tmp_path / "ws").path
    (root / "deep" / "sub").mkdir(parents=True)
    told = trouble(root / "deep" / "sub")
    assert told is not None
    assert f"换成 {root}," in told
    assert str(root / "deep" / "sub") in told


def test_a_bare_repository_has_no_work_tree(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--bare", "bare.git")
    assert "裸仓库" in (trouble(tmp_path / "bare.git") or "")


def test_the_inside_of_a_git_folder_has_no_work_tree(tmp_path: Path) -> None:
    assert "裸仓库" in (trouble(repository(tmp_path / "ws").path / ".git") or "")


def test_a_broken_repository_is_explained_in_gits_own_words(tmp_path: Path) -> None:
    broken = repository(tmp_path / "ws")
    (broken.path / ".git" / "config").write_text("[core\n")
    told = trouble(broken.path)
    assert told is not None
    assert "git 拒绝了" in told
    assert "bad config line 1" in told
    assert "\n" not in told


def test_without_git_a_person_is_told_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ready = repository(tmp_path / "ws")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "找不到 git" in (trouble(ready.path) or "")


def test_a_git_that_cannot_be_started_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ready = repository(tmp_path / "ws")
    other_git(tmp_path / "bin", monkeypatch, "")
    (tmp_path / "bin" / "git").write_bytes(b"#!/nonexistent/interpreter\n")
    assert "No such file" in (trouble(ready.path) or "")


def test_a_git_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ready = repository(tmp_path / "ws")
    other_git(tmp_path / "bin", monkeypatch, "import time; time.sleep(60)")
    monkeypatch.setattr(worktrees, "_PATIENCE", 0.2)
    assert "0.2 秒没有回音" in (trouble(ready.path) or "")


@pytest.mark.parametrize("name", ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR"])
def test_a_hook_that_started_us_does_not_lead_git_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    ready, other = repository(tmp_path / "ws"), repository(tmp_path / "other", committed=False)
    monkeypatch.setenv(name, str(other.path / ".git"))
    assert trouble(ready.path) is None


def test_a_worktree_and_a_detached_head_will_do(tmp_path: Path) -> None:
    ready = repository(tmp_path / "ws")
    ready.git("worktree", "add", "--quiet", str(tmp_path / "linked"))
    assert trouble(tmp_path / "linked") is None
    ready.git("checkout", "--quiet", "--detach")
    assert trouble(ready.path) is None


def test_a_name_with_everything_in_it_will_do(tmp_path: Path) -> None:
    assert trouble(repository(tmp_path / "-名 with 'quotes'\nand a line").path) is None


def test_looking_leaves_no_trace(tmp_path: Path) -> None:
    ready = repository(tmp_path / "ws")
    before = sorted(str(path) for path in tmp_path.rglob("*"))
    assert trouble(ready.path) is None
    assert sorted(str(path) for path in tmp_path.rglob("*")) == before


def test_in_english_it_says_the_same(tmp_path: Path) -> None:
    with texts.speaking("en"):
        told = trouble(tmp_path)
    assert told == (
        f"--isolate needs {tmp_path} to be a git repository (each subagent gets a worktree of its own). "
        "Run git init first, or leave out --isolate."
    )


def test_only_where_somebody_is_marked_the_program_needs_a_setting() -> None:
    plain, marked = worker("d", "p"), worker("d", "p", isolate=True)
    assert settings(None) is None
    assert settings({"coder": plain}) is None
    assert json.loads(settings({"coder": marked, "merger": plain}) or "") == {"worktree": {"baseRef": "head"}}
