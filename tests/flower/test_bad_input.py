"""What a person gets who hands over something broken: words that say what it is and what to do, and no traceback.

| input | held by |
| --- | --- |
| broken `lineage.json` | here, `cli/test_places.py`, `test_lineage.py` |
| broken `manifest.json` | `cli/test_go.py`, `cli/test_places.py`, `test_manifest.py` |
| broken `sessions.db` | here, `cli/test_go.py`, `test_sqlite.py`, `test_runtime.py` |
| documents with an open fence, incomplete, no text | here, `test_brief.py`, `test_clarify_step.py` |
| a flow file that raises on import | `cli/test_loading.py`, `cli/test_go.py` |
| isolation in what is no repository | `cli/test_go.py`, `test_worktrees.py`, `sdk/test_isolation_real.py` |
| an unreadable `.env` | `test_env.py`, `cli/test_setup.py` |
| unknown switches | `cli/test_parser.py` |
| a model that answers garbage | here, `sdk/test_hostile_real.py`, `test_verdict.py`, `catalogue/test_06_handoff.py` |
| 50 MB, halves of pairs, NUL in tool output | `sdk/test_hostile_real.py`, `test_unicode.py` |
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from flower.cli import go
from flower.cli.occupied import Occupied
from flower.cli.parser import build_parser
from flower.cli.places import look_into
from tests.flower.cli.stories import BRIEF, Play, parts, playing
from tests.flower.cli.tmux import ROOT

WHOLE = "## 目标\nA\n## 验收标准\n- B\n## 边界\nC\n## 未知与假设\nD\n"
OPEN = "## 目标\nA\n## 验收标准\n- B\n## 边界\n```\nC\n## 未知与假设\nD\n"
REDONE = "这一步会重做并盖掉它;要留着它,就先补好再跑。"


# -- frozen documents ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("brief", "told"),
    [
        (OPEN, f"不完整,缺:边界, 未知与假设。第 6 行的围栏没有关上,它后面的都不算。{REDONE}"),
        ("## 目标\nA\n", f"不完整,缺:验收标准, 边界, 未知与假设。{REDONE}"),
        ("it is all gone", f"不完整,缺:目标, 验收标准, 边界, 未知与假设。{REDONE}"),
        (b"\xff\xfe", "读不了:不是 UTF-8 文本(原文件会改名留着)。这一步会重做。"),
    ],
    ids=["an open fence", "sections missing", "no section", "no text"],
)
def test_a_brief_that_a_person_broke_is_named_with_what_it_lacks(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    brief: str | bytes,
    told: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    path = tmp_path / ".flower" / "notes" / "需求.md"
    path.parent.mkdir(parents=True)
    path.write_bytes(brief if isinstance(brief, bytes) else brief.encode())
    before = path.read_bytes()
    with pytest.raises(SystemExit, match="诉求是空的"), Occupied("runs") as occupied:
        go._starter(parsed("go"), occupied)
    assert "".join(capsys.readouterr().out.split()) == "".join(f"! {path} {told}".split())
    assert path.read_bytes() == before


def parsed(*argv: str) -> argparse.Namespace:
    return build_parser().parse_args(argv)


@pytest.mark.parametrize(
    ("goal", "told"),
    [
        ("## 目标\nA\n~~~\n## 判定清单\n- B\n", "缺:判定清单。第 3 行的围栏没有关上"),
        ("## 目标\nA\n", "缺:判定清单。这一步"),
    ],
)
def test_a_goal_that_a_person_broke_is_named_too(tmp_path: Path, goal: str, told: str) -> None:
    (tmp_path / "brief.md").write_text(WHOLE, encoding="utf-8")
    (tmp_path / "goal.md").write_text(goal, encoding="utf-8")
    (note,) = look_into(tmp_path / "brief.md", tmp_path / "goal.md")
    assert note.startswith(f"! {tmp_path / 'goal.md'} 不完整,{told}")


@pytest.mark.parametrize(
    "brief",
    [
        None,
        "",
        WHOLE,
        f"\ufeff{WHOLE}",
        "# 运行中的补充\n\n## 运行中补充(12:00:00)\nand red\n```\n",
        f"{WHOLE}\n## x(12:00:00)\n```\n",
    ],
    ids=["none", "empty", "whole", "a byte order mark", "additions alone", "a fence in an addition"],
)
def test_of_what_is_whole_or_not_yet_written_nothing_is_said(tmp_path: Path, brief: str | None) -> None:
    if brief is not None:
        (tmp_path / "brief.md").write_text(brief, encoding="utf-8")
    assert look_into(tmp_path / "brief.md", tmp_path / "goal.md") == []


def test_a_document_that_may_not_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "brief.md").mkdir()
    assert look_into(tmp_path / "brief.md", tmp_path / "goal.md") == [
        f"! {tmp_path / 'brief.md'} 读不了:Is a directory。这一步会重做。"
    ]


# -- with the real program ----------------------------------------------------------------------------------------


async def ran(play: Play, *words: str) -> tuple[int, list[str]]:
    """Run `flower` where nobody is; its exit code and what it says, unfolded."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "flower.cli", *words),
        cwd=play.workspace,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **play.env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    out, _ = await process.communicate()
    said = out.decode()
    assert "Traceback" not in said
    assert process.returncode is not None
    return process.returncode, said.splitlines()


def manifest(play: Play) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((play.workspace / "runs" / "manifest.json").read_text(encoding="utf-8"))
    return rows


SETTLED = [BRIEF.replace("${count}", "seven")]
ALL = "Goal, Acceptance criteria, Bounds, Unknowns and assumptions"


@pytest.mark.real
@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("story", "told"),
    [
        (
            parts([], clarify=["%$# \ud800"]),
            [f"! What was written is incomplete, it lacks: {ALL}.", "Stopped at step 'Clarify'"],
        ),
        (
            {**parts([], clarify=SETTLED), "goal": {"match": {"opening": "Job A"}, "lines": ["\0"]}},
            ["! What was written is incomplete, it lacks: Goal, Checklist.", "Stopped at step 'Goal'"],
        ),
        (
            {**parts(["Worked."], clarify=SETTLED), "verdict": {"match": {"opening": "Job B"}, "lines": ["{}"]}},
            ["  The judge gave no clear conclusion; this is treated as not achieved.", "Stopped at step 'Work'"],
        ),
    ],
    ids=["clarifier", "goal", "judge"],
)
async def test_garbage_of_a_model_stops_the_run_and_says_what_is_missing(
    tmp_path: Path, story: dict[str, Any], told: list[str]
) -> None:
    async with playing(tmp_path, story) as play:
        code, said = await ran(play, "--timeout", "0", "--rounds", "1", "primes")
        assert code == 1
        assert [line for line in said if line in told] == told
        assert all(row["ok"] for row in manifest(play))


@pytest.mark.real
@pytest.mark.timeout(60)
async def test_a_session_store_that_broke_between_two_runs_is_told_and_the_accounts_stay(tmp_path: Path) -> None:
    """Its head is whole, so it opens; what it holds is not."""
    async with playing(tmp_path, {"main": {"lines": ["word " * 20_000, "never"]}}) as play:
        assert (await ran(play, "once", "go"))[0] == 0
        (first,) = manifest(play)
        store = play.workspace / "runs" / "sessions.db"
        whole = bytearray(store.read_bytes())
        assert len(whole) > 12 * 4096
        whole[8 * 4096 :] = b"\xa5" * (len(whole) - 8 * 4096)
        store.write_bytes(whole)
        code, said = await ran(play, "once", "go on", "--resume", first["session_id"])
        assert code == 1
        assert "sessions.db" in " ".join(said)
        assert "damaged" in " ".join(said)
        assert manifest(play)[0] == first
        assert len(play.model.asked_of()) == 1
        assert store.read_bytes()[8 * 4096 :] == whole[8 * 4096 :]


@pytest.mark.real
@pytest.mark.timeout(60)
async def test_with_a_broken_lineage_a_run_begins_with_new_sessions_and_says_so(tmp_path: Path) -> None:
    async with playing(tmp_path, parts(["Worked."], clarify=SETTLED)) as play:
        (play.workspace / "runs").mkdir()
        lineage = play.workspace / "runs" / "lineage.json"
        lineage.write_text('{"workspace": ', encoding="utf-8")
        code, said = await ran(play, "--timeout", "0", "primes")
        assert code == 0
        assert said[0].startswith("! runs/lineage.json makes no sense")
        assert set(json.loads(lineage.read_text(encoding="utf-8"))["steps"]) == {"Clarify", "Goal", "Work"}
