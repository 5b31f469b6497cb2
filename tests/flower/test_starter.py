"""The flow that needs no code, and waking up in its directory (behaviour 18 and 22, API 14.7)."""

from __future__ import annotations

import asyncio
import inspect
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from flower import texts
from flower.core.brief import Brief
from flower.core.goal import Goal
from flower.core.guard import wants_isolation
from flower.core.lineage import Lineage
from flower.core.runtime import StepResult
from flower.workflow.clarify import CLARIFY_RESUME
from flower.workflow.starter import starter_flow, wake_state
from tests.fakes.repository import repository
from tests.fakes.runtime import LastingRuntime, Said
from tests.fakes.starter import ACHIEVED, BRIEF, GOAL, NOT_YET, WHOLE, files, flow, notes, runtime, workspace

__all__ = ["workspace"]

BRIEF_EN = "## Goal\nX\n\n## Acceptance criteria\n- run x\n\n## Bounds\nnot z\n\n## Unknowns and assumptions\nnone\n"
GOAL_EN = "## Goal\nX works\n\n## Checklist\n- run a, see b\n"
ACHIEVED_EN = "## Conclusion\nACHIEVED\n\n## Reason\nseen\n\n## Failed\n(none)\n"


# Bad input first.


@pytest.mark.parametrize("ask", ["", "  \n"])
def test_a_new_directory_needs_a_request(workspace: Path, ask: str) -> None:
    with pytest.raises(ValueError, match="要给一句诉求,例如 flower '帮我做一个 X'"):
        flow(workspace, ask)


def test_half_a_brief_is_no_reason_to_wake(workspace: Path) -> None:
    Brief(goal="X").write(notes(workspace) / "需求.md")
    with pytest.raises(ValueError, match="诉求"):
        flow(workspace)


def test_isolation_outside_a_repository_is_refused_before_money_is_spent(workspace: Path) -> None:
    with pytest.raises(ValueError, match="git init") as refused:
        flow(workspace, "做 X", isolate=True)
    assert str(refused.value) == (
        f"--isolate 要求 {workspace} 是 git 仓库(每个 subagent 要分一份 worktree)。先 git init,或者去掉 --isolate。"
    )
    assert list(workspace.iterdir()) == []


def test_isolation_without_a_commit_is_refused_and_writes_nothing(workspace: Path) -> None:
    empty = repository(workspace, committed=False)
    with pytest.raises(ValueError, match="至少有一个提交"):
        flow(empty.path, "做 X", isolate=True)
    assert [place.name for place in workspace.parent.iterdir()] == ["ws"]


def test_isolation_in_a_folder_of_a_repository_is_sent_to_its_root(workspace: Path) -> None:
    repository(workspace)
    (workspace / "sub").mkdir()
    with pytest.raises(ValueError, match=re.escape(f"换成 {workspace}")):
        flow(workspace / "sub", "做 X", isolate=True)
    assert [place.name for place in (workspace / "sub").iterdir()] == []


def test_a_place_beside_the_repository_that_cannot_be_written_is_explained(workspace: Path) -> None:
    repository(workspace)
    (workspace.parent / ".flower-ws").write_text("in the way")
    with pytest.raises(
        ValueError, match=r"工作台在仓库外面的 .*/\.flower-ws,但那里写不了:(Not a directory|File exists)"
    ):
        flow(workspace, "做 X", isolate=True)


def test_an_unknown_language_is_refused(workspace: Path) -> None:
    with pytest.raises(ValueError, match="zh, en"):
        flow(workspace, "do X", lang="fr")


# The three steps.


def test_the_parts_are_the_specified_ones(workspace: Path) -> None:
    built = flow(workspace, "做 X", max_asks=3, timeout_s=None)
    assert (built.name, [step.name for step in built.steps]) == ("starter", ["确认需求", "设定目标", "干活"])
    assert built.workbench is not None
    assert built.channel is not None
    assert built.workbench.root == (workspace / ".flower").resolve()
    assert built.channel.log_path == (notes(workspace) / "问答记录.md").resolve()
    assert built.channel.amend_path == (notes(workspace) / "需求.md").resolve()
    assert (built.channel.max_asks, built.channel.timeout_s) == (3, None)
    assert sorted(place.name for place in built.workbench.root.iterdir()) == ["artifacts", "notes", "scripts"]
    work = built.steps[2]
    assert (work.spec.name, list(work.spec.agents or {}), work.spec.delegate_only) == ("协调者", ["coder"], True)
    assert (work.retries, built.steps[0].retries, built.steps[1].retries) == (2, 0, 0)


def test_the_worker_is_told_what_the_default_says(workspace: Path) -> None:
    agents = flow(workspace, "做 X").steps[2].spec.agents
    assert agents is not None
    assert agents["coder"].prompt.startswith("你负责实现。每改一处就跑一次验证,别攒到最后。\n\n")
    assert agents["coder"].description == "写代码与测试。要动手实现的活派给它。"
    own = flow(workspace, "做 X", worker_prompt="慢慢来", lang="en").steps[2].spec.agents
    assert own is not None
    assert own["coder"].prompt.startswith("慢慢来\n\n")


def test_steps_can_be_left_out(workspace: Path) -> None:
    assert [step.name for step in flow(workspace, "做 X", goal=False).steps] == ["确认需求", "干活"]
    assert [step.name for step in flow(workspace, "做 X", clarify_only=True).steps] == ["确认需求"]
    unguarded = flow(workspace, "做 X", goal=False).steps[1]
    assert (unguarded.gate, unguarded.retries) == (None, 0)


def test_the_judge_runs_things_only_if_it_may(workspace: Path) -> None:
    for may in (False, True):
        built = flow(workspace, "做 X", judge_can_run=may)
        gate: Any = built.steps[2].gate
        assert ("Bash" in gate.__self__.spec.allowed_tools) is may
        assert ("Bash" in built.steps[1].spec.allowed_tools) is may


def test_instructions_are_for_the_one_who_asks(workspace: Path) -> None:
    built = flow(workspace, "做 X", instructions="只用 Python")
    assert built.steps[0].spec.instructions.endswith("\n只用 Python")
    assert "只用 Python" not in built.steps[2].spec.instructions


async def test_a_whole_run(workspace: Path) -> None:
    rt = runtime(workspace, BRIEF, GOAL, "第一轮", NOT_YET, "第二轮", ACHIEVED)
    ctx = await flow(workspace, "做一个 X").run(rt)
    assert rt.steps == ["确认需求", "设定目标", "干活", "干活·判定#1", "干活#round2", "干活·判定#2"]
    assert "做一个 X" in rt.calls[0].prompt
    assert "不碰 z" in rt.calls[1].prompt
    assert "不碰 z" in rt.calls[2].prompt
    assert "跑 a,看到 b" in rt.calls[2].prompt
    assert (ctx["干活"], ctx["_goal_rounds"], ctx.get("_failed_at")) == ("第二轮", 2, None)
    assert set(Lineage.open(rt.run_dir, workspace).steps) == {"确认需求", "设定目标", "干活"}


async def test_work_without_a_goal_gets_the_brief_alone(workspace: Path) -> None:
    rt = runtime(workspace, BRIEF, "做完了")
    await flow(workspace, "做一个 X", goal=False).run(rt)
    assert "不碰 z" in rt.calls[1].prompt
    assert "判定" not in rt.calls[1].prompt


# Waking.


async def test_waking_without_words_just_carries_on(workspace: Path) -> None:
    await flow(workspace, "做一个 X").run(runtime(workspace, *WHOLE))
    before = (notes(workspace) / "需求.md").read_bytes()
    rt = runtime(workspace, "又做了", ACHIEVED)
    await flow(workspace).run(rt)
    assert [(call.step, call.resume) for call in rt.calls] == [("干活", "s3"), ("干活·判定#1", None)]
    assert "接着上次的干" in rt.calls[0].prompt
    assert "判定清单" not in rt.calls[0].prompt
    assert (notes(workspace) / "需求.md").read_bytes() == before


async def test_words_at_waking_reach_all_three_places(workspace: Path) -> None:
    await flow(workspace, "做一个 X").run(runtime(workspace, *WHOLE))
    rt = runtime(workspace, GOAL.replace("跑 a,看到 b", "高亮代码块"), "又做了", ACHIEVED)
    ctx = await flow(workspace, "还要高亮代码块").run(rt)
    assert [(call.step, call.resume) for call in rt.calls] == [
        ("设定目标", "s2"),
        ("干活", "s3"),
        ("干活·判定#1", None),
    ]
    brief = (notes(workspace) / "需求.md").read_text(encoding="utf-8")
    assert "## 唤醒时追加(" in brief
    assert brief.endswith("还要高亮代码块\n")
    assert "还要高亮代码块" in ctx["确认需求"]
    assert "还要高亮代码块" in rt.calls[0].prompt
    assert "还要高亮代码块\n\n---\n\n" in rt.calls[1].prompt
    assert "- 高亮代码块" in rt.calls[1].prompt


async def test_words_that_are_in_the_brief_already_change_nothing_and_are_still_said(workspace: Path) -> None:
    await flow(workspace, "做一个 X").run(runtime(workspace, *WHOLE))
    before = (notes(workspace) / "需求.md").read_bytes()
    rt = runtime(workspace, "又做了", ACHIEVED)
    await flow(workspace, "不碰 z").run(rt)
    assert rt.steps == ["干活", "干活·判定#1"]
    assert "不碰 z" in rt.calls[0].prompt
    assert (notes(workspace) / "需求.md").read_bytes() == before


MORE = GOAL.replace("跑 a,看到 b", "高亮代码块")


class Killed(BaseException):
    """Stands for SIGKILL in the middle of a step: nothing of the workflow runs after it."""


class Mortal(LastingRuntime):
    """Dies in the step of this name, once its session is known."""

    def __init__(self, *script: str, workspace: Path, dies: str) -> None:
        super().__init__(script, workspace=workspace)
        self._dies = dies

    async def run(self, *args: Any, **kw: Any) -> StepResult:
        result = await super().run(*args, **kw)
        if result.step == self._dies:
            raise Killed
        return result


@pytest.mark.parametrize("again", ["", "还要高亮代码块"], ids=["without words", "the same words"])
async def test_a_start_killed_while_it_sets_the_goal_anew_is_made_up_for(workspace: Path, again: str) -> None:
    await flow(workspace, "做一个 X").run(runtime(workspace, *WHOLE))
    with pytest.raises(Killed):
        await flow(workspace, "还要高亮代码块").run(Mortal(MORE, workspace=workspace, dies="设定目标"))
    rt = runtime(workspace, MORE, "又做了", ACHIEVED)
    await flow(workspace, again).run(rt)
    assert rt.steps == ["设定目标", "干活", "干活·判定#1"]
    assert "还要高亮代码块" in rt.calls[0].prompt
    assert all("- 高亮代码块" in call.prompt for call in rt.calls[1:])
    os.utime(notes(workspace) / "目标.md", (1, 1))  # what was set is set, also where the clocks of two disks disagree
    after = runtime(workspace, "r", ACHIEVED)
    await flow(workspace, again).run(after)
    assert after.steps == ["干活", "干活·判定#1"]


async def test_a_goal_that_a_person_wrote_since_is_not_derived_again(workspace: Path) -> None:
    await flow(workspace, "做一个 X").run(runtime(workspace, *WHOLE))
    flow(workspace, "还要高亮代码块")
    (due,) = (workspace / "runs").glob("goal-due")
    os.utime(due, (1, 1))
    rt = runtime(workspace, "r", ACHIEVED)
    await flow(workspace).run(rt)
    assert rt.steps == ["干活", "干活·判定#1"]


async def test_words_said_while_there_was_no_goal_to_set_reach_the_next_one(workspace: Path) -> None:
    await flow(workspace, "做一个 X").run(runtime(workspace, *WHOLE))
    await flow(workspace, "还要高亮代码块", goal=False).run(runtime(workspace, "又做了"))
    rt = runtime(workspace, MORE, "又做了", ACHIEVED)
    await flow(workspace).run(rt)
    assert rt.steps == ["设定目标", "干活", "干活·判定#1"]


async def test_looking_at_a_goal_that_is_due_writes_nothing(workspace: Path) -> None:
    await flow(workspace, "做一个 X").run(runtime(workspace, *WHOLE))
    flow(workspace, "还要高亮代码块")
    before = files(workspace)
    assert wake_state(workspace, run_dir=workspace / "runs")["checks"] == 1
    assert files(workspace) == before


ANEW = """
import os, signal, sys
from flower.workflow.starter import starter_flow

moves = [int(sys.argv[1])]

def hook(event, _args):
    if event == "shutil.move":
        moves[0] -= 1
        if moves[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(hook)
starter_flow("做一个 Y", workspace=sys.argv[2], run_dir=sys.argv[2] + "/runs", new=True)
"""


@pytest.mark.parametrize(
    ("move", "steps"),
    [
        (1, [("设定目标", "s2"), ("干活", "s3")]),
        (2, [("设定目标", None), ("干活", None)]),
        (3, [("设定目标", None), ("干活", None)]),
        (4, [("确认需求", None), ("设定目标", None), ("干活", None)]),
    ],
)
async def test_after_a_new_beginning_that_was_killed_nothing_old_is_mixed_with_the_new(
    workspace: Path, move: int, steps: list[tuple[str, str | None]]
) -> None:
    await flow(workspace, "做一个 X").run(runtime(workspace, *WHOLE))
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", ANEW, str(move), str(workspace))
    assert await process.wait() == (0 if move == 4 else -9)
    fresh = BRIEF.replace("做一个 X", "做一个 Y")
    rt = runtime(workspace, *([fresh] if move == 4 else []), MORE, "做了", ACHIEVED)
    ctx = await flow(workspace, "做一个 Y").run(rt)
    assert [(call.step, call.resume) for call in rt.calls[:-1]] == steps
    assert ("做一个 X" in ctx["确认需求"]) is (move != 4)
    assert "做一个 Y" in ctx["确认需求"]
    assert ctx["_goal"].checks == ["高亮代码块"]


async def test_each_wake_has_all_its_rounds(workspace: Path) -> None:
    await flow(workspace, "做一个 X", rounds=1).run(runtime(workspace, BRIEF, GOAL, "r", NOT_YET))
    rt = runtime(workspace, "r", NOT_YET, "r", ACHIEVED)
    ctx = await flow(workspace, rounds=2).run(rt)
    assert (ctx["_goal_rounds"], ctx.get("_failed_at")) == (2, None)


async def test_a_run_killed_while_clarifying_goes_on_there_and_loses_no_words(workspace: Path) -> None:
    await flow(workspace, "做一个 X").run(runtime(workspace, Said(ok=False)))
    rt = runtime(workspace, *WHOLE)
    ctx = await flow(workspace, "也要 Y").run(rt)
    assert [(call.step, call.prompt, call.resume) for call in rt.calls[:1]] == [("确认需求", CLARIFY_RESUME, "s1")]
    assert "也要 Y" in ctx["确认需求"]
    assert "也要 Y" in rt.calls[1].prompt


async def test_a_changed_file_is_the_truth(workspace: Path) -> None:
    await flow(workspace, "做一个 X").run(runtime(workspace, *WHOLE))
    brief = notes(workspace) / "需求.md"
    brief.write_text(brief.read_text(encoding="utf-8").replace("不碰 z", "不碰 w"), encoding="utf-8")
    ctx = await flow(workspace).run(runtime(workspace, "r", ACHIEVED))
    assert "不碰 w" in ctx["确认需求"]


def test_the_place_of_the_workbench_with_isolation_is_beside_the_repository(workspace: Path) -> None:
    state = wake_state(workspace, run_dir=workspace / "runs", isolate=True)
    assert state["brief"] == workspace.resolve().parent / ".flower-ws" / "notes" / "需求.md"


def test_with_isolation_the_coder_is_apart_and_somebody_can_bring_its_work_together(workspace: Path) -> None:
    repository(workspace)
    built = flow(workspace, "做 X", isolate=True)
    assert built.workbench is not None
    assert (built.workbench.root, built.workbench.external) == (workspace.resolve().parent / ".flower-ws", True)
    spec = built.steps[2].spec
    agents = spec.agents or {}
    assert {name: wants_isolation(agent) for name, agent in agents.items()} == {"coder": True, "merger": False}
    assert "worktreeBranch" in spec.instructions
    assert "merger" in spec.instructions
    assert agents["coder"].prompt.startswith(
        "你负责实现。每改一处就跑一次验证,别攒到最后。\n\n你在自己的 git worktree 里"
    )
    assert sorted(place.name for place in workspace.iterdir()) == [".git", "base.txt"]


async def test_an_isolated_run_is_taken_up_again_in_its_own_place(workspace: Path) -> None:
    repository(workspace)
    await flow(workspace, "做一个 X", isolate=True).run(runtime(workspace, *WHOLE))
    assert wake_state(workspace, run_dir=workspace / "runs", isolate=True)["waking"] is True
    assert wake_state(workspace, run_dir=workspace / "runs")["waking"] is False
    rt = runtime(workspace, "又做了", ACHIEVED)
    await flow(workspace, isolate=True).run(rt)
    assert [(call.step, call.resume) for call in rt.calls][:1] == [("干活", "s3")]


def test_looking_does_not_ask_git_and_does_not_refuse(workspace: Path) -> None:
    assert wake_state(workspace, run_dir=workspace / "runs", isolate=True)["waking"] is False
    assert list(workspace.parent.iterdir()) == [workspace]


# Languages.


async def test_in_english_names_files_and_words_are_english(workspace: Path) -> None:
    rt = runtime(workspace, BRIEF_EN, GOAL_EN, "done", ACHIEVED_EN)
    built = flow(workspace, "make an X", lang="en")
    ctx = await built.run(rt)
    assert rt.steps == ["Clarify", "Goal", "Work", "Work·verdict#1"]
    assert ctx.get("_failed_at") is None
    assert sorted(file.name for file in notes(workspace).iterdir()) == ["brief.md", "goal.md"]
    assert built.channel is not None
    assert built.channel.log_path == notes(workspace).resolve() / "qa.md"
    assert (notes(workspace) / "brief.md").read_text(encoding="utf-8").startswith("# Brief\n")
    english = [call.prompt + call.spec.instructions for call in rt.calls]
    assert [char for char in "".join(english) if "\u4e00" <= char <= "\u9fff"] == []
    coder = (rt.calls[2].spec.agents or {})["coder"]
    assert coder.prompt.startswith("You implement. Verify after each change")
    assert [char for char in coder.prompt + coder.description if "\u4e00" <= char <= "\u9fff"] == []


async def test_an_english_run_speaks_english_only_while_it_runs(workspace: Path) -> None:
    await flow(workspace, "make an X", lang="en").run(runtime(workspace, BRIEF_EN, GOAL_EN, "done", ACHIEVED_EN))
    assert texts.current().language == "zh"


def test_an_english_run_with_isolation_is_english(workspace: Path) -> None:
    repository(workspace)
    spec = flow(workspace, "make an X", lang="en", isolate=True).steps[2].spec
    said = [spec.instructions, *(agent.prompt + agent.description for agent in (spec.agents or {}).values())]
    assert [char for char in "".join(said) if "\u4e00" <= char <= "\u9fff"] == []


async def test_words_at_waking_are_english_too(workspace: Path) -> None:
    await flow(workspace, "make an X", lang="en").run(runtime(workspace, BRIEF_EN, GOAL_EN, "done", ACHIEVED_EN))
    rt = runtime(workspace, GOAL_EN.replace("run a, see b", "colours"), "more", ACHIEVED_EN)
    await flow(workspace, "with colours", lang="en").run(rt)
    assert rt.steps == ["Goal", "Work", "Work·verdict#1"]
    assert "## Added when woken (" in (notes(workspace) / "brief.md").read_text(encoding="utf-8")
    assert rt.calls[1].prompt.startswith("Carry on where you left off. The person now says:\n\nwith colours")
    assert "- colours" in rt.calls[1].prompt


def test_the_environment_can_say_the_language(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOWER_LANG", "en")
    built = flow(workspace, "make an X")
    assert [step.name for step in built.steps] == ["Clarify", "Goal", "Work"]
    assert built.language == "en"
    assert wake_state(workspace)["brief"].name == "brief.md"
    assert [step.name for step in flow(workspace, "做 X", lang="zh").steps] == ["确认需求", "设定目标", "干活"]


def test_names_that_were_given_stay(workspace: Path) -> None:
    built = flow(workspace, "make an X", lang="en", brief_name="b.md", log_name="l.md")
    assert built.channel is not None
    assert built.channel.amend_path == notes(workspace).resolve() / "b.md"
    assert built.channel.log_path == notes(workspace).resolve() / "l.md"


def test_a_brief_in_the_other_language_is_found(workspace: Path) -> None:
    Brief("X", "y", "z", "none").write(notes(workspace) / "brief.md")
    Goal("X", ["a", "b"]).write(notes(workspace) / "goal.md")
    state = wake_state(workspace, run_dir=workspace / "runs")
    assert (state["waking"], state["checks"], state["brief"].name) == (True, 2, "brief.md")
    assert flow(workspace).steps[0].name == "确认需求"


def test_the_signature_is_the_specified_one_and_lang() -> None:
    defaults = {name: each.default for name, each in inspect.signature(starter_flow).parameters.items()}
    assert defaults == {
        "ask": inspect.Parameter.empty,
        "workspace": ".",
        "run_dir": "runs",
        "new": False,
        "isolate": False,
        "clarify_only": False,
        "goal": True,
        "rounds": 3,
        "judge_can_run": False,
        "max_asks": None,
        "timeout_s": 1800.0,
        "instructions": "",
        "worker_prompt": "你负责实现。每改一处就跑一次验证,别攒到最后。",
        "brief_name": "需求.md",
        "goal_name": "目标.md",
        "log_name": "问答记录.md",
        "lang": None,
    }
