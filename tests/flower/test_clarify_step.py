"""A step that clarifies and freezes (behaviour 20.2, API 14.4)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flower import texts
from flower.core.agent import AgentSpec
from flower.core.human import HumanChannel
from flower.texts import workflow as catalogue
from flower.workflow.base import Workflow
from flower.workflow.clarify import BRIEF_KEY, CLARIFY_RESUME, MISSING_KEY, clarify_step
from tests.fakes.runtime import FakeRuntime, LastingRuntime, Said

ANSWER = """好的,下面是确认书。

## 目标
做一个 X

## 验收标准
- 跑 x,看到 y

## 边界
不碰 z

## 未知与假设
无
"""
BLOCK = "## 目标\n做一个 X\n\n## 验收标准\n- 跑 x,看到 y\n\n## 边界\n不碰 z\n\n## 未知与假设\n无"


@pytest.fixture
def brief(tmp_path: Path) -> Path:
    return tmp_path.resolve() / "notes" / "需求.md"


@pytest.fixture
def channel() -> HumanChannel:
    return HumanChannel()


def text_of(path: Path) -> str:
    """The content of a file; empty if there is none."""
    return path.read_text(encoding="utf-8") if path.exists() else ""


def replace_in(path: Path, old: str, new: str) -> None:
    path.write_text(text_of(path).replace(old, new), encoding="utf-8")


async def clarified(brief: Path, runtime: FakeRuntime, **kw: Any) -> dict[str, Any]:
    step = clarify_step(HumanChannel(), brief_path=brief, prompt="做一个 X", **kw)
    return await Workflow([step]).run(runtime)


async def test_a_section_in_a_fence_that_never_closes_is_missing(brief: Path) -> None:
    ctx = await clarified(brief, FakeRuntime([ANSWER.replace("## 未知与假设", "```\n## 未知与假设")]))
    assert ctx[MISSING_KEY] == ["未知与假设"]


async def test_a_complete_answer_is_frozen_and_only_its_sections_go_on(brief: Path) -> None:
    ctx = await clarified(brief, FakeRuntime([ANSWER]))
    assert ctx["确认需求"] == BLOCK
    assert ctx[BRIEF_KEY].path == brief
    assert text_of(brief).endswith("## 未知与假设\n\n无\n")
    assert "好的" not in text_of(brief)


async def test_a_brief_with_a_placeholder_is_clarified_again(brief: Path) -> None:
    await clarified(brief, FakeRuntime([ANSWER]))
    replace_in(brief, "不碰 z", "(未填)")
    runtime = FakeRuntime([ANSWER])
    await clarified(brief, runtime)
    assert runtime.steps == ["确认需求"]


async def test_asking_can_be_wanted_always(brief: Path) -> None:
    await clarified(brief, FakeRuntime([ANSWER]))
    ctx = await clarified(brief, FakeRuntime([ANSWER.replace("做一个 X", "做一个 Y")]), always_ask=True)
    assert ctx[BRIEF_KEY].goal == "做一个 Y"


async def test_words_sent_while_clarifying_reach_the_next_step(brief: Path) -> None:
    channel = HumanChannel(amend_path=brief)

    class Interrupted(FakeRuntime):
        async def run(self, *args: Any, **kw: Any) -> Any:
            channel.send("也要支持 Y")
            return await super().run(*args, **kw)

    step = clarify_step(channel, brief_path=brief, prompt="做一个 X")
    ctx = await Workflow([step], channel=channel).run(Interrupted([ANSWER]))
    assert ctx["确认需求"].startswith(BLOCK)
    assert ctx["确认需求"].endswith("\n也要支持 Y")
    assert "也要支持 Y" in text_of(brief)


async def test_a_clarification_that_died_halfway_is_not_begun_anew(brief: Path, tmp_path: Path) -> None:
    await clarified(brief, LastingRuntime([Said(ok=False)], workspace=tmp_path))
    again = LastingRuntime([ANSWER], workspace=tmp_path)
    await clarified(brief, again)
    assert [(call.prompt, call.resume) for call in again.calls] == [(CLARIFY_RESUME, "s1")]


def test_the_words_for_going_on_are_the_constant_itself(channel: HumanChannel, brief: Path) -> None:
    step = clarify_step(channel, brief_path=brief, prompt="x")
    assert step.resume_prompt is CLARIFY_RESUME
    assert "不是重新开始" in CLARIFY_RESUME
    assert "别再问一遍" in CLARIFY_RESUME
    with texts.speaking("en"):
        assert clarify_step(channel, brief_path=brief, prompt="x").resume_prompt == catalogue.EN.clarify_resume


def test_a_spec_of_ones_own_is_used_as_it_is(channel: HumanChannel, brief: Path) -> None:
    own = AgentSpec("own", "Ask.")
    assert clarify_step(channel, brief_path=brief, prompt="x", spec=own).spec is own


def test_the_role_gets_what_is_left_over(channel: HumanChannel, brief: Path) -> None:
    step = clarify_step(
        channel, brief_path=brief, prompt="x", name="问", instructions="只问三个", max_turns=9, can_read=False
    )
    assert (step.name, step.spec.name, step.spec.max_turns) == ("问", "问", 9)
    assert step.spec.allowed_tools == ["mcp__human__ask"]
    assert step.spec.instructions.endswith("\n只问三个")


def test_the_step_is_an_ordinary_one(channel: HumanChannel, brief: Path) -> None:
    step = clarify_step(channel, brief_path=brief, prompt="x", on_fail="skip", retries=2)
    assert (step.resume_from, step.fork, step.on_reject) == (None, False, None)
    assert (step.on_fail, step.retries) == ("skip", 2)


async def test_an_english_answer_is_read_and_written_in_english(brief: Path) -> None:
    with texts.speaking("en"):
        ctx = await clarified(
            brief,
            FakeRuntime(
                ["## Goal\nX\n## Acceptance criteria\n- y\n## Bounds\nnone\n## Unknowns and assumptions\nnone\n"]
            ),
            name="Clarify",
        )
    assert ctx["Clarify"].startswith("## Goal\nX\n\n## Acceptance criteria\n- y")
    assert "## Acceptance criteria" in text_of(brief)
