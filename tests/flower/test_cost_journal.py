"""What a killed process spent is taken over by the next one that runs the step."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from flower.core import cost_journal
from flower.core.cost_journal import FOLDER, CostJournal, Entry, Spent

GONE = 2**22 + 1
"""No process has this number."""


def entries(folder: Path) -> list[Path]:
    return sorted((folder / FOLDER).iterdir()) if (folder / FOLDER).exists() else []


def dead(entry: Entry) -> None:
    """Make an entry one of a process that is gone."""
    stored = json.loads(entry.path.read_text(encoding="utf-8"))
    entry.path.write_text(json.dumps({**stored, "owner": GONE, "since": "1"}), encoding="utf-8")


def transcript(home: Path, session: str, *lines: object) -> None:
    place = home / "projects" / "-ws"
    place.mkdir(parents=True, exist_ok=True)
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    (place / f"{session}.jsonl").write_text(text, encoding="utf-8")


def state(total: object) -> dict[str, object]:
    return {"type": "cost-state", "totalCostUSD": total}


async def test_what_stands_in_the_manifest_has_no_account_of_its_own(tmp_path: Path) -> None:
    unbooked, step, other = CostJournal(tmp_path, "r1"), object(), object()
    unbooked.begin("work", step).over(Spent(cost_usd=1.0))
    unbooked.begin("work", step)
    unbooked.begin("other", other)
    assert len(entries(tmp_path)) == 3
    unbooked.booked(step)
    assert len(entries(tmp_path)) == 1


async def test_a_dead_process_leaves_what_its_attempts_came_to_and_what_its_program_counted(tmp_path: Path) -> None:
    first = CostJournal(tmp_path, "r1")
    over, cut = first.begin("干活#round2", first), first.begin("干活", first)
    over.over(Spent(cost_usd=1.0, num_turns=3))
    cut.named("S", 0.25)
    cut.note.write_text(f"{GONE}\n{tmp_path / 'claude'}\n", encoding="utf-8")
    transcript(tmp_path / "claude", "S", state(0.1), {"type": "user"}, state(0.75))
    elsewhere = first.begin("设定目标", first)
    elsewhere.over(Spent(cost_usd=9.0))
    for entry in (over, cut, elsewhere):
        dead(entry)
    second = CostJournal(tmp_path, "r2")
    spent = await second.adopt("干活", second)
    assert (spent.cost_usd, spent.num_turns) == (1.5, 3)
    # It is this process's own now, in case that this one is killed too.
    assert await CostJournal(tmp_path, "r3").adopt("干活", object()) == Spent()
    second.booked(second)
    assert [path.name for path in entries(tmp_path)] == [elsewhere.path.name]


async def test_a_process_that_lives_keeps_its_own(tmp_path: Path) -> None:
    CostJournal(tmp_path, "r1").begin("work", object()).over(Spent(cost_usd=1.0))
    assert await CostJournal(tmp_path, "r2").adopt("work", object()) == Spent()
    assert len(entries(tmp_path)) == 1


async def test_a_number_that_another_process_has_now_is_a_dead_one(tmp_path: Path) -> None:
    first = CostJournal(tmp_path, "r1")
    entry = first.begin("work", first)
    entry.over(Spent(cost_usd=1.0))
    stored = json.loads(entry.path.read_text(encoding="utf-8"))
    assert stored["owner"] == os.getpid()
    entry.path.write_text(json.dumps({**stored, "since": "1"}), encoding="utf-8")
    assert (await CostJournal(tmp_path, "r2").adopt("work", object())).cost_usd == 1.0


async def test_the_program_of_a_dead_process_is_waited_for_and_its_folder_removed(tmp_path: Path) -> None:
    home = tmp_path / "claude-resume-x"
    first = CostJournal(tmp_path, "r1")
    entry = first.begin("work", first)
    entry.named("S", 0.0)
    transcript(home, "S", {"type": "user"})
    late = tmp_path / "late.py"
    late.write_text("import sys, time\ntime.sleep(0.5)\nopen(sys.argv[1], 'a').write(sys.argv[2])\n", encoding="utf-8")
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, str(late), str(home / "projects/-ws/S.jsonl"), "\n" + json.dumps(state(0.5)))
    )
    entry.note.write_text(f"{program.pid}\n{home}\n", encoding="utf-8")
    dead(entry)
    spent = await CostJournal(tmp_path, "r2").adopt("work", object())
    await program.wait()
    assert spent.cost_usd == 0.5
    assert not home.exists()


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{",
        '{"type": "cost-state"}',
        '{"type": "cost-state", "totalCostUSD": "x"}',
        '["cost-state"]',
        '"cost-state"',
    ],
)
async def test_a_transcript_that_says_nothing_costs_nothing(tmp_path: Path, line: str) -> None:
    first = CostJournal(tmp_path, "r1")
    entry = first.begin("work", first)
    entry.named("S", 0.0)
    transcript(tmp_path / "claude", "S", line)
    dead(entry)
    assert (await CostJournal(tmp_path, "r2").adopt("work", object())).cost_usd == 0.0


@pytest.mark.parametrize("content", ["", "{", "[]", '{"step": "work"}', '{"nonsense": 1}', "\0"])
async def test_a_broken_record_is_passed_over(tmp_path: Path, content: str) -> None:
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "r1.x.json").write_text(content, encoding="utf-8")
    assert await CostJournal(tmp_path, "r2").adopt("work", object()) == Spent()


async def test_a_rescue_leaves_the_attempt_that_runs(tmp_path: Path) -> None:
    """Its program has not said yet what it cost; the row of the manifest holds the others."""
    first = CostJournal(tmp_path, "r1")
    first.begin("work", first).over(Spent(cost_usd=1.0))
    running = first.begin("work", first)
    first.rescue()
    assert entries(tmp_path) == [running.path]


async def test_a_folder_that_cannot_be_written_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / FOLDER).write_text("in the way", encoding="utf-8")
    journal = CostJournal(tmp_path, "r1")
    journal.begin("work", journal).over(Spent(cost_usd=1.0))
    journal.booked(journal)
    assert (tmp_path / FOLDER).read_text(encoding="utf-8") == "in the way"
    assert await CostJournal(tmp_path, "r2").adopt("work", object()) == Spent()


@pytest.mark.parametrize(
    ("left", "taken"),
    [
        *(("work#round2", "work"), ("work#retry1", "work")),
        *(("干活·判定#1", "干活·判定#2"), ("Work·verdict#3", "Work·verdict#1")),
        ("issue#12", "issue#12"),
    ],
)
async def test_rounds_of_a_step_are_one_step(tmp_path: Path, left: str, taken: str) -> None:
    first = CostJournal(tmp_path, "r1")
    entry = first.begin(left, first)
    entry.over(Spent(cost_usd=1.0))
    dead(entry)
    assert (await CostJournal(tmp_path, "r2").adopt(taken, object())).cost_usd == 1.0


async def test_a_number_in_a_name_is_no_round(tmp_path: Path) -> None:
    first = CostJournal(tmp_path, "r1")
    entry = first.begin("issue#12", first)
    entry.over(Spent(cost_usd=1.0))
    dead(entry)
    assert await CostJournal(tmp_path, "r2").adopt("issue#13", object()) == Spent()


async def test_a_program_whose_number_another_process_has_now_is_not_waited_for(tmp_path: Path) -> None:
    first = CostJournal(tmp_path, "r1")
    entry = first.begin("work", first)
    entry.named("S", 0.0)
    transcript(tmp_path / "claude", "S", state(0.5))
    entry.note.write_text(f"{os.getpid()}\n{tmp_path / 'claude'}\n1\n", encoding="utf-8")
    dead(entry)
    assert (await CostJournal(tmp_path, "r2").adopt("work", object())).cost_usd == 0.5


async def test_a_program_that_still_runs_is_left_for_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cost_journal, "_PATIENCE_SECONDS", 0.1)
    first = CostJournal(tmp_path, "r1")
    for _ in range(3):
        entry = first.begin("work", first)
        entry.named("S", 0.0)
        entry.note.write_text(f"{os.getpid()}\n{tmp_path / 'claude'}\n\n", encoding="utf-8")
        dead(entry)
    assert await CostJournal(tmp_path, "r2").adopt("work", object()) == Spent()
    assert len([path for path in entries(tmp_path) if path.suffix == ".note"]) == 3


async def test_a_take_over_that_was_itself_killed_counts_once(tmp_path: Path) -> None:
    """Killed after it wrote down the sum, before the records in it were gone."""
    first = CostJournal(tmp_path, "r1")
    left = first.begin("work", first)
    left.over(Spent(cost_usd=1.0))
    dead(left)
    kept = left.path.read_text(encoding="utf-8")
    second = CostJournal(tmp_path, "r2")
    await second.adopt("work", second)
    left.path.write_text(kept, encoding="utf-8")
    (mine,) = [path for path in entries(tmp_path) if path.name.startswith("r2")]
    stored = json.loads(mine.read_text(encoding="utf-8"))
    mine.write_text(json.dumps({**stored, "owner": GONE, "since": "1"}), encoding="utf-8")
    assert (await CostJournal(tmp_path, "r3").adopt("work", object())).cost_usd == 1.0


async def test_what_a_resumed_program_left_behind_goes_also_if_its_step_never_runs_again(tmp_path: Path) -> None:
    home = tmp_path / "claude-resume-y"
    first = CostJournal(tmp_path, "r1")
    entry = first.begin("judge", first)
    entry.named("S", 0.0)
    transcript(home, "S", state(0.5))
    entry.note.write_text(f"{GONE}\n{home}\n\n", encoding="utf-8")
    dead(entry)
    assert await CostJournal(tmp_path, "r2").adopt("work", object()) == Spent()
    assert not home.exists()
    assert (await CostJournal(tmp_path, "r3").adopt("judge", object())).cost_usd == 0.5
