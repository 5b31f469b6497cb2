from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flower.core.lineage import Lineage


def stored(run_dir: Path, **fields: object) -> None:
    run_dir.mkdir(exist_ok=True)
    (run_dir / "lineage.json").write_text(json.dumps(fields), encoding="utf-8")


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"steps": {"a": "s"}}', b"[" * 100_000, b'"text"']
)
def test_a_broken_file_counts_as_absent(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "lineage.json").write_bytes(content)
    lineage = Lineage.open(tmp_path, tmp_path / "ws")
    assert (lineage.steps, lineage.woke) == ({}, 0)


def test_a_missing_file_and_a_missing_folder_count_as_absent(tmp_path: Path) -> None:
    lineage = Lineage.open(tmp_path / "runs", tmp_path)
    assert lineage == Lineage((tmp_path / "runs" / "lineage.json").resolve(), str(tmp_path.resolve()))
    assert not (tmp_path / "runs").exists()


def test_another_workspace_counts_as_absent(tmp_path: Path) -> None:
    stored(tmp_path, workspace=str(tmp_path / "other"), woke=3, steps={"干活": "s"})
    assert Lineage.open(tmp_path, tmp_path / "ws").steps == {}


def test_a_file_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    stored(tmp_path, workspace=str(tmp_path.resolve()), woke=3, steps={"干活": "s"})
    file = tmp_path / "lineage.json"
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert Lineage.open(tmp_path, tmp_path).steps == {"干活": "s"}


def test_entries_that_make_no_sense_are_dropped_and_the_others_kept(tmp_path: Path) -> None:
    steps = {"": "s", "a": "", "b": None, "c": 1, "干活": "s"}
    stored(tmp_path, workspace=str(tmp_path.resolve()), woke="many", steps=steps)
    lineage = Lineage.open(tmp_path, tmp_path)
    assert (lineage.steps, lineage.woke) == ({"干活": "s"}, 0)


@pytest.mark.parametrize("steps", [None, [], "text", 3])
def test_steps_of_another_kind_are_no_steps(tmp_path: Path, steps: object) -> None:
    stored(tmp_path, workspace=str(tmp_path.resolve()), woke=2, steps=steps)
    lineage = Lineage.open(tmp_path, tmp_path)
    assert (lineage.steps, lineage.woke) == ({}, 2)


def test_what_is_remembered_is_on_disk_at_once_in_the_specified_form(tmp_path: Path) -> None:
    lineage = Lineage.open(tmp_path / "runs", tmp_path)
    lineage.remember("干活", "s-1")
    assert (tmp_path / "runs" / "lineage.json").read_text(encoding="utf-8") == (
        '{\n  "workspace": "' + str(tmp_path.resolve()) + '",\n  "woke": 0,\n  "steps": {\n    "干活": "s-1"\n  }\n}\n'
    )
    assert Lineage.open(tmp_path / "runs", tmp_path) == lineage


def test_empty_arguments_are_ignored(tmp_path: Path) -> None:
    lineage = Lineage.open(tmp_path, tmp_path)
    lineage.remember("", "s")
    lineage.remember("干活", "")
    assert lineage.steps == {}
    assert not lineage.path.exists()


def test_each_wake_is_counted_on_disk(tmp_path: Path) -> None:
    assert Lineage.open(tmp_path, tmp_path).bump() == 1
    assert Lineage.open(tmp_path, tmp_path).bump() == 2


def test_a_disk_that_cannot_be_written_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file where the folder should be")
    lineage = Lineage.open(tmp_path / "runs", tmp_path)
    lineage.remember("干活", "s")
    assert lineage.bump() == 1
    assert lineage.steps == {"干活": "s"}


def test_a_name_that_is_no_unicode_text_is_kept_all_the_same(tmp_path: Path) -> None:
    lineage = Lineage.open(tmp_path, tmp_path)
    lineage.remember("a", "s")
    lineage.remember("\ud800", "s")
    assert Lineage.open(tmp_path, tmp_path).steps == {"a": "s", "\ud800": "s"}


def test_archiving_moves_the_file_and_the_extras_that_exist_and_begins_anew(tmp_path: Path) -> None:
    lineage = Lineage.open(tmp_path / "runs", tmp_path)
    lineage.remember("干活", "s")
    lineage.bump()
    (tmp_path / "需求.md").write_text("brief")
    moved = lineage.archive(tmp_path / "archive", extra=[tmp_path / "需求.md", tmp_path / "目标.md"])
    assert moved.parent == tmp_path / "archive"
    assert re.fullmatch(r"\d{8}-\d{6}", moved.name)
    assert sorted(path.name for path in moved.iterdir()) == ["lineage.json", "需求.md"]
    assert json.loads((moved / "lineage.json").read_text(encoding="utf-8"))["steps"] == {"干活": "s"}
    assert (lineage.steps, lineage.woke) == ({}, 0)
    assert not lineage.path.exists()
    assert not (tmp_path / "需求.md").exists()


def test_two_archivings_within_one_second_keep_both(tmp_path: Path) -> None:
    lineage = Lineage.open(tmp_path / "runs", tmp_path)
    kept = []
    for number in range(4):
        lineage.remember("干活", f"s-{number}")
        kept.append(lineage.archive(tmp_path / "archive"))
    sessions = [json.loads((folder / "lineage.json").read_text(encoding="utf-8"))["steps"]["干活"] for folder in kept]
    assert len(set(kept)) == 4
    assert sessions == ["s-0", "s-1", "s-2", "s-3"]


def test_extras_of_one_name_are_both_kept(tmp_path: Path) -> None:
    paths = [tmp_path / name / "a.md" for name in ("x", "y", "z")]
    for path in paths:
        path.parent.mkdir()
        path.write_text(path.parent.name)
    moved = Lineage.open(tmp_path, tmp_path).archive(tmp_path / "archive", extra=paths)
    assert sorted(path.read_text() for path in moved.iterdir()) == ["x", "y", "z"]


DIES = """
import os, signal, sys
from pathlib import Path
from flower.core.lineage import Lineage

moves = [int(sys.argv[1])]

def hook(event, _args):
    if event == "shutil.move":
        moves[0] -= 1
        if moves[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(hook)
place = Path(sys.argv[2])
Lineage.open(place, place).archive(place / "archive", extra=[place / "brief", place / "goal"])
"""


@pytest.mark.parametrize(
    ("move", "left"), [(1, {"lineage.json", "brief", "goal"}), (2, {"brief", "goal"}), (3, {"brief"}), (4, set())]
)
def test_an_archiving_that_is_killed_leaves_nothing_without_what_it_was_made_from(
    tmp_path: Path, move: int, left: set[str]
) -> None:
    Lineage.open(tmp_path, tmp_path).remember("干活", "s")
    for name in ("brief", "goal"):
        (tmp_path / name).write_text(name)
    done = subprocess.run([sys.executable, "-c", DIES, str(move), str(tmp_path)], check=False)
    assert done.returncode == (0 if move == 4 else -9)
    assert {path.name for path in tmp_path.iterdir() if path.is_file()} == left
    (archived,) = (tmp_path / "archive").iterdir()
    assert {path.name for path in archived.iterdir()} == {"lineage.json", "brief", "goal"} - left


def test_after_half_an_archiving_no_old_session_is_written_again(tmp_path: Path) -> None:
    lineage = Lineage.open(tmp_path, tmp_path)
    lineage.remember("干活", "s")
    (tmp_path / "archive").mkdir()
    inside = tmp_path / "archive"  # a folder cannot be moved into itself
    with pytest.raises(shutil.Error):
        lineage.archive(tmp_path / "archive", extra=[inside])
    lineage.remember("新的", "t")
    assert Lineage.open(tmp_path, tmp_path).steps == {"新的": "t"}


@given(st.dictionaries(st.text(min_size=1), st.text(min_size=1)), st.integers(min_value=0, max_value=10**6))
def test_what_was_written_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, steps: dict[str, str], woke: int
) -> None:
    run_dir = tmp_path_factory.mktemp("runs")
    lineage = Lineage.open(run_dir, run_dir)
    lineage.steps, lineage.woke = dict(steps), woke
    assert lineage.bump() == woke + 1
    again = Lineage.open(run_dir, run_dir)
    assert (again.steps, again.woke) == (steps, woke + 1)


def test_a_process_that_is_killed_while_it_writes_leaves_a_whole_file(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys\n"
        "from flower.core.lineage import Lineage\n"
        "lineage = Lineage.open(sys.argv[1], sys.argv[1])\n"
        "lineage.remember('a', 's')\n"
        "print('ready', flush=True)\n"
        "while True:\n"
        "    lineage.remember('b', 'x' * 5000)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.kill()
    assert Lineage.open(tmp_path, tmp_path).steps["a"] == "s"
