"""Behaviour 30.11, the table of parser samples; traces 30.1 to 30.10 are in tests/sdk/test_traces.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from flower.core.brief import Brief
from flower.core.goal import ACHIEVED, NOT_YET, UNREACHABLE, Goal, Verdict
from flower.core.handoff import Handoff, degraded


@pytest.fixture(autouse=True)
def chinese(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FLOWER_LANG", raising=False)


def test_30_11_four_forms_of_headings() -> None:
    brief = Brief.parse("## 目标\nA\n**验收标准**\nB\n边界:C\n4. 未知项与假设\nD")
    assert brief == Brief("A", "B", "C", "D")
    assert brief.complete()


def test_30_11_three_sections_the_fourth_inside_an_unclosed_fence() -> None:
    brief = Brief.parse("## 目标\nA\n## 验收标准\nB\n## 边界\nC\n```\n## 未知与假设\nD")
    assert brief.missing() == ["未知与假设"]


def test_30_11_a_fenced_block_before_the_real_one() -> None:
    assert Brief.parse("```\n## 边界\nwrong\n```\n## 边界\nC").bounds == "C"


def test_30_11_twice_the_first_empty() -> None:
    assert Brief.parse("## 目标\n\n## 目标\nA").goal == "A"


def test_30_11_a_file_written_from_an_incomplete_brief_loaded_again(tmp_path: Path) -> None:
    incomplete = Brief(goal="A", bounds="C")
    loaded = Brief.load(incomplete.write(tmp_path / "需求.md"))
    assert loaded is not None
    assert loaded.missing() == incomplete.missing() == ["验收标准", "未知与假设"]
    assert loaded == incomplete


@pytest.mark.parametrize(
    ("text", "state", "ok"),
    [
        ("## 结论\n达成", ACHIEVED, True),
        ("在这个环境里无法验证", UNREACHABLE, True),
        ("1", ACHIEVED, True),
        ("0", NOT_YET, True),
        ("true", ACHIEVED, True),
        ("看起来可以", "", False),
        ("", "", False),
    ],
)
def test_30_11_verdicts(text: str, state: str, ok: bool) -> None:
    verdict = Verdict.parse(text)
    assert (verdict.state, verdict.ok) == (state, ok)


def test_30_11_a_verdict_with_its_failed_items() -> None:
    verdict = Verdict.parse("结论:未达成\n理由:…\n未通过\n- x")
    assert verdict == Verdict(NOT_YET, "…", ["x"])


def test_30_11_a_goal_item_that_cannot_be_verified() -> None:
    item = "look at the screen [此环境无法验证:no display]"
    assert Goal("A", ["run x", item]).unverifiable == [item]


def test_30_11_a_handoff_with_only_its_first_section() -> None:
    handoff = Handoff.parse("## 现在在做什么\nA")
    assert (handoff.complete(), handoff.missing()) == (False, ["下一步"])
    substitute = degraded("干活", "the task", why="下一步")
    assert (substitute.complete(), substitute.degraded) == (True, True)
