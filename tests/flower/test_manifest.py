"""The manifest: grows across processes and loses no row (behaviour 15.5)."""

from __future__ import annotations

import json
import multiprocessing
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flower.core import manifest


def test_the_rows_of_other_runs_stay_and_ones_own_are_replaced(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    manifest.write(path, "r1", [{"step": "A"}])
    manifest.write(path, "r2", [{"step": "B"}])
    manifest.write(path, "r1", [{"step": "A"}, {"step": "干活"}])
    assert json.loads(path.read_text(encoding="utf-8")) == [
        {"step": "B", "run": "r2"},
        {"step": "A", "run": "r1"},
        {"step": "干活", "run": "r1"},
    ]


def test_it_is_written_for_people_too(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    manifest.write(path, "r1", [{"step": "干活"}])
    assert path.read_text(encoding="utf-8") == '[\n  {\n    "step": "干活",\n    "run": "r1"\n  }\n]\n'


@pytest.mark.parametrize("content", [b"", b"[{", b"{}", b"null", b"\xff\xfe", b'[1, "two", null]'])
def test_a_broken_file_counts_as_empty(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "manifest.json"
    path.write_bytes(content)
    assert manifest.rows_of(path) == []
    manifest.write(path, "r1", [{"step": "A"}])
    assert manifest.rows_of(path) == [{"step": "A", "run": "r1"}]


def test_a_missing_file_counts_as_empty(tmp_path: Path) -> None:
    assert manifest.rows_of(tmp_path / "none.json") == []


def _many(path: Path, run: str) -> None:
    for number in range(1, 11):
        manifest.write(path, run, [{"step": str(n)} for n in range(number)])


def test_processes_that_write_at_the_same_time_lose_no_row(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    spawn = multiprocessing.get_context("fork")
    writers = [spawn.Process(target=_many, args=(path, f"r{n}")) for n in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(15)
    assert [writer.exitcode for writer in writers] == [0] * 4
    rows = manifest.rows_of(path)
    assert sorted(row["run"] for row in rows) == [f"r{n}" for n in range(4) for _ in range(10)]


def test_a_lock_that_is_never_given_up_only_costs_the_wait(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    with manifest.alone(tmp_path / ".manifest.json.lock", 1.0):
        began = time.monotonic()
        manifest.write(path, "r1", [{"step": "A"}], wait=0.05)
        assert time.monotonic() - began < 1.0
    assert manifest.rows_of(path) == [{"step": "A", "run": "r1"}]


rows = st.lists(st.fixed_dictionaries({"step": st.text(max_size=3), "run": st.sampled_from("abc")}), max_size=6)


@given(rows, st.sampled_from("abc"), st.lists(st.fixed_dictionaries({"step": st.text(max_size=3)}), max_size=4))
def test_merging_keeps_the_others_in_order_and_is_harmless_twice(
    before: list[dict[str, Any]], run: str, own: list[dict[str, Any]]
) -> None:
    once = manifest.merged(before, run, own)
    assert [row for row in once if row["run"] != run] == [row for row in before if row["run"] != run]
    assert [row["step"] for row in once if row["run"] == run] == [row["step"] for row in own]
    assert manifest.merged(once, run, own) == once


def test_accounts_behind_a_byte_order_mark_are_accounts(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    path.write_text('\ufeff[{"step": "a", "run": "old", "cost_usd": 100.0}]', encoding="utf-8")
    manifest.write(path, "new", [{"step": "b"}])
    assert [row["step"] for row in manifest.rows_of(path)] == ["a", "b"]


def test_a_file_that_is_no_manifest_is_kept_beside_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    path.write_text('[{"step": "a", "cost_', encoding="utf-8")
    manifest.write(path, "new", [{"step": "b"}])
    assert [row["step"] for row in manifest.rows_of(path)] == ["b"]
    (kept,) = tmp_path.glob("manifest.json.*.broken")
    assert kept.read_text(encoding="utf-8") == '[{"step": "a", "cost_'
