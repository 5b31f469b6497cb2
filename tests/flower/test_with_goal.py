"""A judge behind a working step (behaviour 21.5, 30.7 and 30.8, API 14.6)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from flower import texts
from flower.core.agent import AgentSpec
from flower.core.events import Event
from flower.core.goal import Goal
from flower.core.human import HumanChannel
from flower.workflow.base import Step, Workflow
from flower.workflow.goal import GOAL_KEY, ROUND_KEY, VERDICT_KEY, with_goal
from tests.fakes.people import Answering
from tests.fakes.runtime import FakeRuntime, LastingRuntime, Said

NOT_YET = "## 结论\n未达成\n\n## 理由\n少了测试\n\n## 未通过\n- 跑 b,看到 c\n"
ACHIEVED = "## 结论\n达成\n\n## 理由\n都看到了\n\n## 未通过\n(无)\n"
UNREACHABLE = "## 结论\n无法达成\n\n## 理由\n没有显示器\n\n## 未通过\n- 看屏幕\n"
ACCEPT, CHANGE, WRONG = "接受这个结果,就这样往下走", "修改目标", "你判断错了,继续做"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    goal = tmp_path / "目标.md"
    Goal("做出 X", ["跑 a,看到 b", "跑 b,看到 c"]).write(goal)
    return goal


def work(**kw: Any) -> Step:
    return Step("干活", AgentSpec("协调者", "Do it."), "go", **kw)


def text_of(path: Path) -> str:
    """The content of a file; empty if there is none."""
    return path.read_text(encoding="utf-8") if path.exists() else ""


def put(path: Path, text: str) -> None:
    """What a person's editor does."""
    path.write_text(text, encoding="utf-8")


async def judged(
    path: Path,
    script: Sequence[Said | str],
    channel: HumanChannel | None = None,
    on_event: Any = None,
    **kw: Any,
) -> tuple[dict[str, Any], FakeRuntime]:
    runtime = FakeRuntime(script)
    step = with_goal(work(), channel or HumanChannel(timeout_s=0), goal_path=path, **kw)
    return await Workflow([step]).run(runtime, on_event=on_event), runtime


# Nobody passes for want of a judge.


@pytest.mark.parametrize("verdict", ["", "看起来可以", "## 结论\n\n## 理由\n"])
async def test_a_verdict_that_is_not_clear_is_no_pass(path: Path, verdict: str) -> None:
    ctx, _ = await judged(path, ["report", verdict], rounds=1)
    assert ctx["_failed_at"] == "干活"
    assert (ctx[VERDICT_KEY].ok, "没给出明确结论" in ctx[VERDICT_KEY].reason) == (False, True)


async def test_a_judge_that_broke_down_is_no_pass_and_says_what_broke(path: Path) -> None:
    ctx, _ = await judged(path, ["report", Said(ok=False, error="ResultError: 529")], rounds=1)
    assert ctx["_failed_at"] == "干活"
    assert "ResultError: 529" in ctx[VERDICT_KEY].reason


async def test_a_reason_given_by_the_judge_is_kept(path: Path) -> None:
    ctx, _ = await judged(path, ["report", "## 结论\n大概\n\n## 理由\n没看懂"], rounds=1)
    assert ctx[VERDICT_KEY].reason == "没看懂"


# Rounds.


async def test_a_rejected_round_goes_on_and_each_verdict_is_a_new_session(path: Path, tmp_path: Path) -> None:
    runtime = LastingRuntime(["第一轮", NOT_YET, "第二轮", ACHIEVED], workspace=tmp_path)
    reported: list[str] = []
    step = with_goal(work(), HumanChannel(), goal_path=path)
    ctx = await Workflow([step]).run(runtime, on_step=lambda _step, result: reported.append(result.step))
    assert [(call.step, call.resume) for call in runtime.calls] == [
        ("干活", None),
        ("干活·判定#1", None),
        ("干活#round2", "s1"),
        ("干活·判定#2", None),
    ]
    assert json.loads((runtime.run_dir / "lineage.json").read_text(encoding="utf-8"))["steps"] == {"干活": "s1"}
    assert reported == ["干活#round2"]
    assert (ctx["干活"], ctx[ROUND_KEY], ctx[VERDICT_KEY].achieved) == ("第二轮", 2, True)


async def test_a_rejection_says_what_is_missing(path: Path) -> None:
    _, runtime = await judged(path, ["第一轮", NOT_YET, "第二轮", ACHIEVED])
    feedback = runtime.calls[2].prompt
    assert "少了测试" in feedback
    assert "跑 b,看到 c" in feedback
    assert "接着做" in feedback


async def test_a_round_that_failed_is_not_judged(path: Path) -> None:
    ctx, runtime = await judged(path, [Said(ok=False), "zweite", ACHIEVED], rounds=2)
    assert runtime.steps == ["干活", "干活#round2", "干活·判定#1"]
    assert ctx.get("_failed_at") is None


async def test_the_judge_gets_goal_and_report_and_is_told_not_to_trust_it(path: Path) -> None:
    _, runtime = await judged(path, ["我做完了 {}", ACHIEVED])
    prompt = runtime.calls[1].prompt
    for part in ("做出 X", "跑 a,看到 b", "我做完了 {}", "现场", "不要凭回话"):
        assert part in prompt


async def test_a_judge_without_goal_or_report_is_told_so(tmp_path: Path) -> None:
    _, runtime = await judged(tmp_path / "nothing.md", [Said("", session="x"), ACHIEVED])
    assert "(没有目标)" in runtime.calls[1].prompt
    assert "(这一轮没有回话)" in runtime.calls[1].prompt


async def test_the_goal_of_the_context_comes_before_the_file(path: Path) -> None:
    runtime = FakeRuntime(["r", ACHIEVED])
    flow = Workflow([with_goal(work(), HumanChannel(), goal_path=path)], context={GOAL_KEY: Goal("做出 Y", ["c"])})
    await flow.run(runtime)
    assert "做出 Y" in runtime.calls[1].prompt
    half = Workflow([with_goal(work(), HumanChannel(), goal_path=path)], context={GOAL_KEY: Goal("做出 Z")})
    again = FakeRuntime(["r", ACHIEVED])
    await half.run(again)
    assert "做出 X" in again.calls[1].prompt


class Editor(Answering):
    """A person who edits the goal file before answering the first question."""

    def __init__(self, path: Path, *answers: str) -> None:
        super().__init__(*answers)
        self._path = path

    def _hear(self, event: Event) -> None:
        if event.payload.get("state") == "asked":
            put(self._path, text_of(self._path).replace("看到 c", "看到 d"))
        super()._hear(event)


async def test_the_judge_reads_what_a_person_made_of_the_goal_file(path: Path) -> None:
    runtime = FakeRuntime(["第一轮", NOT_YET, "第二轮", ACHIEVED])
    flow = Workflow([with_goal(work(), HumanChannel(), goal_path=path)], context={GOAL_KEY: Goal.load(path)})

    def edit(event: Event) -> None:
        if event.kind == "task":
            put(path, text_of(path).replace("看到 c", "看到 d"))

    ctx = await flow.run(runtime, on_event=edit)
    assert ["看到 d" in call.prompt for call in runtime.calls if "判定" in str(call.step)] == [False, True]
    assert ctx[GOAL_KEY].checks == ["跑 a,看到 b", "跑 b,看到 d"]


async def test_a_changed_goal_keeps_what_a_person_wrote_into_its_file(path: Path) -> None:
    runtime = FakeRuntime(["第一轮", UNREACHABLE, "第二轮", ACHIEVED])
    step = with_goal(work(), Editor(path, CHANGE, "别看屏幕"), goal_path=path)
    ctx = await Workflow([step], context={GOAL_KEY: Goal.load(path)}).run(runtime)
    assert "看到 d" in text_of(path)
    assert "别看屏幕" in text_of(path)
    assert "看到 d" in runtime.calls[3].prompt
    assert ctx[GOAL_KEY] == Goal.load(path)


@pytest.mark.parametrize("broken", ["", "# 目标\n\n做出 Y\n"], ids=["empty", "no checks"])
async def test_a_frozen_goal_outlives_a_file_that_is_no_whole_goal(path: Path, broken: str) -> None:
    frozen = Goal.load(path)
    put(path, broken)
    runtime = FakeRuntime(["r", ACHIEVED])
    await Workflow([with_goal(work(), HumanChannel(), goal_path=path)], context={GOAL_KEY: frozen}).run(runtime)
    assert "做出 X" in runtime.calls[1].prompt


async def test_a_goal_that_was_frozen_in_another_file_is_not_taken_from_this_one(path: Path, tmp_path: Path) -> None:
    other = Goal("做出 Y", ["c"])
    other.write(tmp_path / "other.md")
    runtime = FakeRuntime(["r", ACHIEVED])
    await Workflow([with_goal(work(), HumanChannel(), goal_path=path)], context={GOAL_KEY: other}).run(runtime)
    assert "做出 Y" in runtime.calls[1].prompt


async def test_a_step_that_failed_is_not_told_the_verdict_on_another(path: Path) -> None:
    runtime = FakeRuntime(["甲", ACHIEVED, Said(ok=False, error="API Error: 529"), "乙", ACHIEVED])
    steps = [Step(name, AgentSpec("a", "Do it."), f"do {name}") for name in ("甲", "乙")]
    await Workflow([with_goal(step, HumanChannel(), goal_path=path) for step in steps]).run(runtime)
    assert [(call.step, call.prompt, call.resume) for call in runtime.calls[2:4]] == [
        ("乙", "do 乙", None),
        ("乙#round2", "do 乙", None),
    ]


def test_the_judge_is_named_and_equipped(path: Path) -> None:
    own = AgentSpec("own", "Judge.")
    for kw, name, tools in (
        ({}, "干活·判定", ["mcp__human__ask", "Read", "Glob", "Grep"]),
        ({"can_run": True, "name": "验收"}, "验收", ["mcp__human__ask", "Read", "Glob", "Grep", "Bash"]),
        ({"spec": own}, "own", ["Read", "Glob", "Grep"]),
    ):
        gate: Any = with_goal(work(), HumanChannel(), goal_path=path, **kw).gate
        spec = gate.__self__.spec
        assert (spec.name, spec.allowed_tools) == (name, tools)


# What the front shows of a verdict.


async def test_each_verdict_is_told(path: Path) -> None:
    seen: list[Event] = []
    await judged(path, ["1", NOT_YET, "2", "怎么说呢", "3", ACHIEVED], on_event=seen.append)
    told = [event for event in seen if event.kind == "task"]
    assert [event.text for event in told] == ["", "", ""]
    assert [event.payload for event in told] == [
        {
            "kind": "verdict",
            "step": "干活",
            "round": 1,
            "rounds": 3,
            "state": "not_yet",
            "reason": "少了测试",
            "failed": ["跑 b,看到 c"],
        },
        {
            "kind": "verdict",
            "step": "干活",
            "round": 2,
            "rounds": 3,
            "state": "not_yet",
            "reason": "判定者没给出明确结论,按未达成处理。",
            "failed": [],
        },
        {
            "kind": "verdict",
            "step": "干活",
            "round": 3,
            "rounds": 3,
            "state": "achieved",
            "reason": "都看到了",
            "failed": [],
        },
    ]


async def test_an_unreachable_goal_is_told_before_people_are_asked(path: Path) -> None:
    seen: list[Event] = []
    channel = HumanChannel(on_event=seen.append, timeout_s=0)
    await judged(path, ["1", UNREACHABLE], channel, on_event=seen.append)
    kinds = [(event.kind, event.payload.get("kind") or event.payload.get("state")) for event in seen]
    assert kinds == [("step", None), ("task", "verdict"), ("ask", "timeout")]
    assert seen[1].payload["state"] == "unreachable"


# Ended by a person.


async def test_a_judge_cut_by_an_end_ends_the_run(path: Path) -> None:
    seen: list[Event] = []
    cut = Said(ok=False, error="ended-by-human")
    ctx, runtime = await judged(path, ["r", cut], on_event=seen.append)
    assert (ctx["_failed_at"], len(runtime.calls)) == ("干活", 2)
    assert VERDICT_KEY not in ctx
    assert "_aborted" not in ctx
    assert [event.kind for event in seen] == ["step"]


# English.


@pytest.mark.parametrize(
    ("answer", "passes"),
    [
        ("Accept this result and go on", True),
        ("accept", True),
        ("You are wrong, carry on", False),
        ("no, I do not accept", False),
    ],
)
async def test_in_english_people_decide_in_english(path: Path, answer: str, passes: bool) -> None:
    with texts.speaking("en"):
        script = ["r", "## Conclusion\nUNREACHABLE\n\n## Reason\nno display\n\n## Failed\n- look at the screen\n"]
        channel = Answering(answer)
        ctx, runtime = await judged(path, script, channel, rounds=1)
    assert (ctx.get("_failed_at") is None) is passes
    assert channel.asks[0].options == ["Accept this result and go on", "Change the goal", "You are wrong, carry on"]
    assert runtime.steps == ["干活", "干活·verdict#1"]


async def test_the_words_of_a_guard_are_those_of_its_making(path: Path) -> None:
    with texts.speaking("en"):
        step = with_goal(work(), HumanChannel(timeout_s=0), goal_path=path)
    runtime = FakeRuntime(["", ACHIEVED])
    await Workflow([step]).run(runtime)
    assert "(no report this round)" in runtime.calls[1].prompt
