"""Side questions at the terminal: what is shown of an answer and of a failure, and what waits at the end."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from flower import Runtime
from flower.cli import aside
from flower.cli.aside import ASIDE_PROMPT, Recent, asides, ask_aside
from flower.core.runtime import StepResult
from flower.workflow import aside as oracle
from flower.workflow.aside import Recent as Original


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
    monkeypatch.delenv("FLOWER_LANG", raising=False)
    made = Runtime(workspace=tmp_path / "ws", run_dir=tmp_path / "run")
    yield made
    made.close()


def answering(monkeypatch: pytest.MonkeyPatch, result: StepResult, *, after: asyncio.Event | None = None) -> list[str]:
    asked: list[str] = []

    async def answer(question: str, **_: Any) -> StepResult:
        asked.append(question)
        if after is not None:
            await after.wait()
        return result

    monkeypatch.setattr(oracle, "ask_aside", answer)
    return asked


def test_there_is_one_definition() -> None:
    assert Recent is Original
    assert "{question}" in ASIDE_PROMPT


async def test_a_failure_is_one_line_and_nothing_else(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answering(monkeypatch, StepResult(step="旁路问答", error="OSError: disk\nfull \x1b[2J"))
    await ask_aside("how far?", runtime, Recent())
    assert capsys.readouterr().out == "# 旁路问答失败:OSError: disk full\n"


async def test_an_answer_has_a_heading_and_its_cost(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answering(monkeypatch, StepResult(step="旁路问答", ok=True, text="Half-way.", cost_usd=0.0123))
    await ask_aside("how far?", runtime, Recent())
    assert capsys.readouterr().out == "# 旁路\nHalf-way.\n($0.0123,没有打扰正在跑的运行)\n"


async def test_it_really_cannot_be_asked_without_a_credential(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    await ask_aside("how far?", runtime, Recent())
    assert capsys.readouterr().out.startswith("# 旁路问答失败:RuntimeError: 缺少凭证")


async def test_open_questions_are_waited_for_and_it_is_said(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gate = asyncio.Event()
    asked = answering(monkeypatch, StepResult(step="旁路问答", ok=True, text="Done."), after=gate)
    async with asides(runtime, Recent()) as questions:
        await asyncio.to_thread(questions.ask, "one")
        await asyncio.to_thread(questions.ask, "two")
        while len(asked) < 2:  # noqa: ASYNC110 - the questions say nothing when they begin
            await asyncio.sleep(0)
        asyncio.get_running_loop().call_later(0.05, gate.set)
    shown = capsys.readouterr().out
    assert shown.startswith("(等 2 条旁路问答收尾…)\n")
    assert shown.count("Done.") == 2


async def test_a_question_that_does_not_come_back_is_given_up(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(aside.Asides.settle, "__defaults__", (0.05,))
    answering(monkeypatch, StepResult(step="旁路问答"), after=asyncio.Event())
    async with asides(runtime, Recent()) as questions:
        questions.ask("one")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert capsys.readouterr().out == "(等 1 条旁路问答收尾…)\n# 旁路问答:运行已经结束,这一条没有回答:one\n"


async def test_a_question_that_comes_while_others_are_waited_for_is_waited_for_no_longer_than_they(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(aside.Asides.settle, "__defaults__", (0.1,))
    answering(monkeypatch, StepResult(step="旁路问答"), after=asyncio.Event())
    async with asyncio.timeout(5), asides(runtime, Recent()) as questions:
        questions.ask("one")
        asyncio.get_running_loop().call_later(0.05, questions.ask, "two")
    assert capsys.readouterr().out.splitlines() == [
        "(等 1 条旁路问答收尾…)",
        "# 旁路问答:运行已经结束,这一条没有回答:one",
        "# 旁路问答:运行已经结束,这一条没有回答:two",
    ]


async def test_a_question_behind_the_end_is_refused(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = answering(monkeypatch, StepResult(step="旁路问答", ok=True))
    async with asides(runtime, Recent()) as questions:
        pass
    questions.ask("late")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert asked == []
    assert capsys.readouterr().out == "# 旁路问答:运行已经结束,这一条没有回答:late\n"


async def test_what_the_block_raises_comes_out_as_it_is(runtime: Runtime) -> None:
    with pytest.raises(LookupError, match="of the run"):
        async with asides(runtime, Recent()):
            raise LookupError("of the run")
