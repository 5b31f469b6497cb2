from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from bridge.runner.outcome import Outcome, changed, cost_of, payload_of, snapshot, status_of, verdict_of
from flower import StepResult, Verdict

GOOD = StepResult(step="Work", ok=True)
BAD = StepResult(step="Work", error="529 overloaded")


@pytest.mark.parametrize(
    ("ctx", "ended"),
    [
        ({}, ("done", "")),
        ({"_results": {"Work": GOOD}}, ("done", "")),
        ({"_failed_at": "Work", "_results": {"Work": BAD}}, ("failed", "529 overloaded")),
        ({"_failed_at": "Work", "_results": {"Work": GOOD}}, ("failed", "step Work did not pass")),
        ({"_failed_at": "Work"}, ("failed", "step Work did not pass")),
        ({"_failed_at": "Work", "_aborted": "nobody answered", "_results": {"Work": GOOD}},
         ("not_reached", "nobody answered")),
        ({"_failed_at": "Work", "_results": {"Work": GOOD}, "_verdict": Verdict("not_yet", "no test")},
         ("not_reached", "no test")),
        ({"_failed_at": "Work", "_results": {"Work": BAD}, "_verdict": Verdict("not_yet", "no test")},
         ("failed", "529 overloaded")),
        # The last judging passed, and what failed is something else.
        ({"_failed_at": "Ship", "_results": {"Ship": StepResult(step="Ship", ok=True)},
          "_verdict": Verdict("achieved", "all there")}, ("failed", "step Ship did not pass")),
    ],
)  # fmt: skip
def test_how_a_workflow_ended_by_itself(ctx: dict[str, Any], ended: tuple[str, str]) -> None:
    assert status_of(ctx) == ended


def test_a_verdict_in_a_payload() -> None:
    assert verdict_of(Verdict("not_yet", "no test", ["a test"])) == {
        "state": "not_yet",
        "reason": "no test",
        "failed": ["a test"],
    }


def test_figures_that_are_not_known_are_left_out() -> None:
    assert "cost_usd" not in payload_of(Outcome(status="failed"))
    assert payload_of(Outcome(status="done", cost_usd=0.5, aside_usd=0.0)) == {
        "verdict": None,
        "unverifiable": [],
        "text": "",
        "steps": [],
        "files": [],
        "cost_usd": 0.5,
        "aside_usd": 0.0,
    }


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        (None, 0.0),
        ("[]", 0.0),
        (json.dumps([{"cost_usd": 0.25}, {"cost_usd": None}, {"cost_usd": 1}, {}]), 1.25),
        ("", None),
        ("{", None),
        ("7", None),
        ('["a row"]', None),
        ('[{"cost_usd": "much"}]', None),
    ],
)
def test_what_a_run_cost_in_all_or_that_it_is_not_known(tmp_path: Path, text: str | None, cost: float | None) -> None:
    books = tmp_path / "manifest.json"
    if text is not None:
        books.write_text(text)
    assert cost_of(books) == cost


def test_new_and_changed_files_are_named_and_what_is_ours_is_not(tmp_path: Path) -> None:
    (tmp_path / "kept.txt").write_text("as it was")
    (tmp_path / "edited.txt").write_text("before")
    (tmp_path / "gone.txt").write_text("soon")
    before = snapshot(tmp_path)
    (tmp_path / "edited.txt").write_text("afterwards")
    (tmp_path / "gone.txt").unlink()
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "new.py").write_text("new")
    for skipped in (".git", ".flower", "node_modules"):
        (tmp_path / skipped).mkdir()
        (tmp_path / skipped / "new").write_text("new")
    assert changed(before, snapshot(tmp_path)) == ("edited.txt", "src/new.py")


def test_a_dangling_link_and_a_folder_that_is_not_there_are_no_trouble(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("nowhere")
    assert changed({}, snapshot(tmp_path)) == ("link",)
    assert snapshot(tmp_path / "missing") == {}


def test_at_most_fifty_files_are_named(tmp_path: Path) -> None:
    for number in range(60):
        (tmp_path / f"{number:02d}").write_text("new")
    assert len(changed({}, snapshot(tmp_path))) == 50


def test_a_workspace_with_too_many_files_tells_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridge.runner.outcome.MOST_LOOKED_AT", 3)
    for number in range(5):
        (tmp_path / str(number)).write_text("x")
    assert snapshot(tmp_path) is None
    assert changed({}, None) == changed(None, {}) == ()


def test_a_name_that_is_no_text_is_told_all_the_same(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.txt")).write_text("x")
    (name,) = changed({}, snapshot(tmp_path))
    assert name.endswith(".txt")
