"""Side questions: the window of events that the oracle gets, and that it can never hurt the run (behaviour 8)."""

from __future__ import annotations

from pathlib import Path

import pytest

from flower import texts
from flower.core.events import Event
from flower.workflow.aside import Recent, ask_aside


def test_an_empty_window_says_so() -> None:
    assert Recent().render() == "(还没有事件)"
    with texts.speaking("en"):
        assert Recent().render() == "(no events yet)"


def test_each_event_is_one_line_that_says_who() -> None:
    recent = Recent()
    recent(Event("text", "first\nsecond", payload={"subagent": False}))
    recent(Event("tool_call", "ls", "Bash", {"subagent": True}))
    recent(Event("step", "干活"))
    assert recent.render() == "[text·主线程] first second\n[tool_call/Bash·subagent] ls\n[step·主线程] 干活"
    with texts.speaking("en"):
        assert recent.render().splitlines()[0] == "[text·main thread] first second"


def test_thinking_and_prompts_are_left_out() -> None:
    recent = Recent()
    recent.add(Event("thinking", "hm"))
    recent.add(Event("prompt", "go"))
    assert recent.render() == "(还没有事件)"


def test_the_window_holds_the_last_sixty_and_two_hundred_characters_of_each() -> None:
    recent = Recent()
    for number in range(61):
        recent.add(Event("text", f"{number:03d} " + "x" * 300))
    lines = recent.render().splitlines()
    assert len(lines) == 60
    assert lines[0] == "[text·主线程] 001 " + "x" * 196
    assert len(Recent(3)._events) == 0


async def test_a_side_question_that_cannot_be_asked_is_a_result_and_not_an_exception(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "FLOWER_ENV", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    result = await ask_aside("where are we?", workspace=tmp_path, run_dir=tmp_path / "run", recent=Recent())
    assert (result.step, result.ok) == ("旁路问答", False)
    assert result.error is not None
    assert result.error.startswith("RuntimeError: 缺少凭证")
    assert not (tmp_path / "run" / "manifest.json").exists()


async def test_a_folder_that_cannot_be_made_is_a_result_too(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("in the way", encoding="utf-8")
    result = await ask_aside("?", workspace=tmp_path, run_dir=tmp_path / "run", recent=Recent())
    assert result.error is not None
    assert result.error.startswith("NotADirectoryError")
    assert result.ended_at >= result.started_at > 0
