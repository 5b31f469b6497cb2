"""The starter flow over a runtime that runs nothing: its answers, its folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flower.workflow.base import Workflow
from flower.workflow.starter import starter_flow
from tests.fakes.runtime import LastingRuntime, Said

BRIEF = "## 目标\n做一个 X\n\n## 验收标准\n- 跑 x\n\n## 边界\n不碰 z\n\n## 未知与假设\n无\n"
GOAL = "## 目标\n做出 X\n\n## 判定清单\n- 跑 a,看到 b\n"
ACHIEVED = "## 结论\n达成\n\n## 理由\n好\n\n## 未通过\n(无)\n"
NOT_YET = "## 结论\n未达成\n\n## 理由\n少测试\n\n## 未通过\n- 跑 a\n"
WHOLE = [BRIEF, GOAL, "做完了", ACHIEVED]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    place = tmp_path / "ws"
    place.mkdir()
    return place


def flow(workspace: Path, ask: str = "", **kw: Any) -> Workflow:
    return starter_flow(ask, workspace=workspace, run_dir=workspace / "runs", **kw)


def runtime(workspace: Path, *script: Said | str) -> LastingRuntime:
    return LastingRuntime(script, workspace=workspace)


def notes(workspace: Path) -> Path:
    return workspace / ".flower" / "notes"


def files(root: Path) -> dict[str, tuple[bytes, float]]:
    return {
        str(file.relative_to(root)): (file.read_bytes(), file.stat().st_mtime)
        for file in sorted(root.rglob("*"))
        if file.is_file()
    }
