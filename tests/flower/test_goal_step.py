"""A step that freezes the checklist (behaviour 21.3 and 21.4, API 14.5)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flower import texts
from flower.core.human import HumanChannel
from flower.workflow.base import Workflow
from flower.workflow.goal import GOAL_KEY, goal_step
from tests.fakes.runtime import FakeRuntime

ANSWER = "先看了环境。\n\n## 目标\n做出 X\n\n## 判定清单\n- 跑 a,看到 b\n- 看屏幕 [此环境无法验证:没有显示器]\n"
PLAIN = "## 目标\n做出 X\n\n## 判定清单\n- 跑 a,看到 b\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path.resolve() / "notes" / "目标.md"


def text_of(path: Path) -> str:
    """The content of a file; empty if there is none."""
    return path.read_text(encoding="utf-8") if path.exists() else ""


async def derived(path: Path, runtime: FakeRuntime, *, brief: str | None = "需求在此", **kw: Any) -> dict[str, Any]:
    flow = Workflow([goal_step(HumanChannel(), goal_path=path, **kw)])
    if brief is not None:
        flow.context["确认需求"] = brief
    return await flow.run(runtime)


async def test_a_complete_goal_is_frozen_and_only_it_goes_on(path: Path) -> None:
    ctx = await derived(path, FakeRuntime([PLAIN]))
    assert ctx["设定目标"] == "## 目标\n做出 X\n\n## 判定清单\n- 跑 a,看到 b"
    assert ctx[GOAL_KEY].checks == ["跑 a,看到 b"]
    assert text_of(path) == "# 目标\n\n做出 X\n\n# 判定清单\n\n- 跑 a,看到 b\n"


async def test_the_brief_is_what_it_is_derived_from(path: Path) -> None:
    runtime = FakeRuntime([PLAIN])
    await derived(path, runtime)
    assert "需求在此" in runtime.calls[0].prompt


async def test_without_a_brief_it_is_said_that_there_is_none(path: Path) -> None:
    runtime = FakeRuntime([PLAIN])
    await derived(path, runtime, brief=None)
    assert "(没有确认书)" in runtime.calls[0].prompt


async def test_braces_in_a_brief_are_text(path: Path) -> None:
    runtime = FakeRuntime([PLAIN])
    await derived(path, runtime, brief="打印 {brief} 和 {0}")
    assert "打印 {brief} 和 {0}" in runtime.calls[0].prompt


async def test_a_complete_goal_on_disk_is_taken_and_the_step_skipped(path: Path) -> None:
    await derived(path, FakeRuntime([PLAIN]))
    runtime = FakeRuntime([])
    ctx = await derived(path, runtime)
    assert (ctx[GOAL_KEY].statement, runtime.calls) == ("做出 X", [])
    assert ctx["设定目标"] == "## 目标\n做出 X\n\n## 判定清单\n- 跑 a,看到 b"


async def test_a_goal_can_be_derived_again_with_the_full_brief(path: Path) -> None:
    await derived(path, FakeRuntime([PLAIN]))
    runtime = FakeRuntime([PLAIN.replace("做出 X", "做出 Y")])
    ctx = await derived(path, runtime, always_set=True)
    assert "需求在此" in runtime.calls[0].prompt
    assert ctx[GOAL_KEY].statement == "做出 Y"
    assert "做出 Y" in text_of(path)


async def test_the_warning_stops_nothing_and_needs_somebody_to_listen(path: Path) -> None:
    ctx = await derived(path, FakeRuntime([ANSWER]))
    assert ctx.get("_failed_at") is None


def test_the_judge_may_run_things_only_when_told(path: Path) -> None:
    plain = goal_step(HumanChannel(), goal_path=path)
    running = goal_step(HumanChannel(), goal_path=path, can_run=True)
    assert "Bash" not in plain.spec.allowed_tools
    assert "Bash" in running.spec.allowed_tools
    assert plain.resume_prompt is None


async def test_in_english_it_reads_and_writes_english(path: Path) -> None:
    with texts.speaking("en"):
        step = goal_step(HumanChannel(), goal_path=path, brief_key="Clarify", name="Goal")
        runtime = FakeRuntime(["## Goal\nX works\n\n## Checklist\n- run a, see b\n"])
        ctx = await Workflow([step], context={"Clarify": "the brief"}).run(runtime)
    assert "the brief" in runtime.calls[0].prompt
    assert ctx["Goal"] == "## Goal\nX works\n\n## Checklist\n- run a, see b"
