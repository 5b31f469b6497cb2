"""Behaviour 28.9, each item a test:

*Clarify / goal:* all heading forms, aliases, repeats, fences (closed, unclosed, `~~~`), placeholders, truncated
output; injection on skip; frozen file; missing keys; verdict table incl. all unverifiable words, bare digits, vague
text; rounds; each unreachable answer; nobody there; amend; early warning event; `replace` keeps `resume_prompt`.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from flower import texts
from flower.core.agent import AgentSpec
from flower.core.brief import Brief
from flower.core.events import Event
from flower.core.goal import ACHIEVED, NOT_YET, UNREACHABLE, Goal, Verdict
from flower.core.human import HumanChannel
from flower.workflow.base import Step, StepAbort, Workflow
from flower.workflow.clarify import BRIEF_KEY, CLARIFY_RESUME, MISSING_KEY, clarify_step
from flower.workflow.goal import GOAL_KEY, ROUND_KEY, VERDICT_KEY, goal_step, with_goal
from tests.fakes.people import Answering
from tests.fakes.runtime import FakeRuntime, Said

BRIEF = "## 目标\n做一个 X\n\n## 验收标准\n- 跑 x,看到 y\n\n## 边界\n不碰 z\n\n## 未知与假设\n无"
GOAL = "## 目标\n做出 X\n\n## 判定清单\n- 跑 a,看到 b\n- 看屏幕 [此环境无法验证:没有显示器]\n"
YES = "## 结论\n达成\n\n## 理由\n都看到了\n\n## 未通过\n(无)\n"
NO = "## 结论\n未达成\n\n## 理由\n少了测试\n\n## 未通过\n- 跑 b,看到 c\n"
CANNOT = "## 结论\n无法达成\n\n## 理由\n没有显示器\n\n## 未通过\n- 看屏幕\n"
ACCEPT, CHANGE, WRONG = "接受这个结果,就这样往下走", "修改目标", "你判断错了,继续做"


@pytest.fixture(autouse=True)
def chinese(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FLOWER_LANG", raising=False)


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    return tmp_path.resolve() / "notes"


def text_of(path: Path) -> str:
    """The content of a file; empty if there is none."""
    return path.read_text(encoding="utf-8") if path.exists() else ""


async def clarified(notes: Path, runtime: FakeRuntime, **kw: Any) -> dict[str, Any]:
    step = clarify_step(HumanChannel(), brief_path=notes / "需求.md", prompt="做一个 X", **kw)
    return await Workflow([step]).run(runtime)


async def derived(notes: Path, runtime: FakeRuntime, on_event: Any = None, **kw: Any) -> dict[str, Any]:
    flow = Workflow([goal_step(HumanChannel(), goal_path=notes / "目标.md", **kw)], context={"确认需求": "需求在此"})
    return await flow.run(runtime, on_event=on_event)


def work(**kw: Any) -> Step:
    return Step("干活", AgentSpec("协调者", "Do it."), "go", **kw)


async def judged(
    notes: Path, script: Sequence[Said | str], channel: HumanChannel | None = None, **kw: Any
) -> tuple[dict[str, Any], FakeRuntime]:
    path = notes / "目标.md"
    Goal("做出 X", ["跑 a,看到 b", "跑 b,看到 c"]).write(path)
    runtime = FakeRuntime(script)
    step = with_goal(work(), channel or HumanChannel(timeout_s=0), goal_path=path, **kw)
    return await Workflow([step]).run(runtime), runtime


# -- all heading forms --------------------------------------------------------------------------------------------

FORMS = [
    *("{}", "## {}", "# {}", "###### {}", "**{}**", "__{}__", "## **{}**"),
    *("{}:", "{}\uff1a", "**{}:**", "3. {}", "3、{}", "3) {}"),
]
SECTIONS = [("目标", "A"), ("验收标准", "B"), ("边界", "C"), ("未知与假设", "D")]


@pytest.mark.parametrize("form", FORMS)
def test_all_heading_forms(form: str) -> None:
    text = "\n".join(f"{form.format(name)}\n{body}" for name, body in SECTIONS)
    assert Brief.parse(text) == Brief("A", "B", "C", "D")
    assert Goal.parse(f"{form.format('目标')}\nA\n{form.format('判定清单')}\n- b") == Goal("A", ["b"])
    verdict = f"{form.format('结论')}\n未达成\n{form.format('理由')}\nR\n{form.format('未通过')}\n- f"
    assert Verdict.parse(verdict) == Verdict(NOT_YET, "R", ["f"])


@pytest.mark.parametrize("form", ["{}: {}", "{}\uff1a{}", "## {}: {}", "**{}:** {}", "3. {}: {}"])
def test_all_heading_forms_with_text_on_the_same_line(form: str) -> None:
    text = "\n".join(form.format(name, body) for name, body in SECTIONS)
    assert Brief.parse(text) == Brief("A", "B", "C", "D")


def test_heading_needs_more_than_a_name_that_a_sentence_begins_with() -> None:
    """D17: "目标是…" opens no section, "边界:" does."""
    brief = Brief.parse("## 目标\n目标是做一个 X\n边界:C")
    assert (brief.goal, brief.bounds) == ("目标是做一个 X", "C")


# -- aliases ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parse", "field", "alias"),
    [
        *[(Brief.parse, "accept", alias) for alias in ("验收条件", "验收")],
        *[(Brief.parse, "bounds", alias) for alias in ("范围边界", "不做什么")],
        *[(Brief.parse, "unknowns", alias) for alias in ("未知项与假设", "未知项", "已知未知", "假设", "未知")],
        (Goal.parse, "statement", "完成标志"),
        (Verdict.parse, "reason", "依据"),
    ],
)
def test_aliases(parse: Any, field: str, alias: str) -> None:
    assert getattr(parse(f"## {alias}\nX"), field) == "X"


@pytest.mark.parametrize("alias", ["判定条件", "验收清单", "检查项", "判定"])
def test_aliases_of_the_checklist(alias: str) -> None:
    assert Goal.parse(f"## {alias}\n- X").checks == ["X"]


def test_aliases_the_naming_trap() -> None:
    """Behaviour 29: in a goal `判定` names the checklist, in a verdict the conclusion."""
    assert Goal.parse("## 判定\n- 达成").checks == ["达成"]
    assert Verdict.parse("## 判定\n达成").state == ACHIEVED


def test_aliases_longest_name_first() -> None:
    brief = Brief.parse("## 未知与假设\nD\n## 验收标准\nB")
    assert (brief.unknowns, brief.accept) == ("D", "B")


# -- repeats ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["## 目标\n\n## 目标\nA", "## 目标\nA\n## 目标\nB", "## 目标\nA\n## 边界\nC\n**目标**\nB"]
)
def test_repeats_the_first_with_content_wins(text: str) -> None:
    assert Brief.parse(text).goal == "A"


# -- fences (closed, unclosed, `~~~`) -----------------------------------------------------------------------------


@pytest.mark.parametrize("fence", ["```", "~~~", "```markdown"])
def test_fences_closed(fence: str) -> None:
    assert Brief.parse(f"{fence}\n## 边界\nwrong\n{fence[:3]}\n## 边界\nC").bounds == "C"


@pytest.mark.parametrize("fence", ["```", "~~~", "```python"])
def test_fences_unclosed(fence: str) -> None:
    brief = Brief.parse(f"## 目标\nA\n## 验收标准\nB\n## 边界\nC\n{fence}\n## 未知与假设\nD")
    assert brief.missing() == ["未知与假设"]
    assert Verdict.parse(f"{fence}\n结论:达成").ok is False
    assert Goal.parse(f"## 目标\nA\n{fence}\n## 判定清单\n- b").complete() is False


# -- placeholders -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", texts.LANGUAGES)
def test_placeholders(notes: Path, language: str) -> None:
    with texts.speaking(language):
        brief, goal = Brief(goal="A").write(notes / "b.md"), Goal(statement="A").write(notes / "g.md")
    loaded, checked = Brief.load(brief), Goal.load(goal)
    assert loaded is not None
    assert checked is not None
    assert loaded.missing() == ["验收标准", "边界", "未知与假设"]
    assert (checked.checks, checked.missing()) == ([], ["判定清单"])


def test_placeholders_that_a_person_left_in(notes: Path) -> None:
    path = Brief("A", "B", "C", "D").write(notes / "b.md")
    path.write_text(text_of(path).replace("C", "(未填)"), encoding="utf-8")
    loaded = Brief.load(path)
    assert loaded is not None
    assert loaded.missing() == ["边界"]


# -- truncated output ---------------------------------------------------------------------------------------------


def test_truncated_output() -> None:
    """Wherever an answer breaks off, what came is kept and what did not come is missing."""
    names = ["目标", "验收标准", "边界", "未知与假设"]
    lines = BRIEF.split("\n")
    for kept in range(len(lines)):
        brief = Brief.parse("\n".join(lines[:kept]))
        bodies = sum(1 for line in lines[:kept] if line and not line.startswith("#"))
        assert brief.missing() == names[bodies:]
    assert Brief.parse(BRIEF[:-3]).missing() == ["未知与假设"]


@pytest.mark.parametrize("cut", ["## 结", "## 结论\n", "## 结论\n未", "## 结论\n不"])
def test_truncated_output_of_a_judge_is_never_a_pass(cut: str) -> None:
    assert Verdict.parse(cut).achieved is False


# -- injection on skip --------------------------------------------------------------------------------------------


async def test_injection_on_skip(notes: Path) -> None:
    await clarified(notes, FakeRuntime([BRIEF]))
    runtime = FakeRuntime([])
    ctx = await clarified(notes, runtime)
    assert (ctx["确认需求"], ctx[BRIEF_KEY].goal, runtime.calls, MISSING_KEY in ctx) == (BRIEF, "做一个 X", [], False)


async def test_injection_on_skip_of_a_goal(notes: Path) -> None:
    await derived(notes, FakeRuntime([GOAL]))
    runtime = FakeRuntime([])
    ctx = await derived(notes, runtime)
    assert runtime.calls == []
    assert ctx[GOAL_KEY].statement == "做出 X"
    assert ctx["设定目标"] == Goal.parse(GOAL).prompt_block()


# -- frozen file --------------------------------------------------------------------------------------------------


async def test_frozen_file(notes: Path) -> None:
    ctx = await clarified(notes, FakeRuntime([f"好的,下面是确认书。\n\n{BRIEF}\n\n```\nprint('code')\n```\n"]))
    path = notes / "需求.md"
    assert ctx["确认需求"] == BRIEF
    assert ctx[BRIEF_KEY].path == path
    assert "好的" not in text_of(path)
    assert "print" not in text_of(path)
    assert Brief.load(path) == Brief.parse(BRIEF)
    await derived(notes, FakeRuntime([f"先看了环境。\n{GOAL}"]))
    assert text_of(notes / "目标.md").startswith("# 目标\n\n做出 X\n\n# 判定清单\n\n- 跑 a,看到 b\n")


async def test_frozen_file_is_the_truth_from_then_on(notes: Path) -> None:
    """A person may edit it; nobody is asked again."""
    await clarified(notes, FakeRuntime([BRIEF]))
    path = notes / "需求.md"
    path.write_text(text_of(path).replace("不碰 z", "不碰 w"), encoding="utf-8")
    ctx = await clarified(notes, FakeRuntime([]))
    assert (ctx[BRIEF_KEY].bounds, "不碰 w" in ctx["确认需求"]) == ("不碰 w", True)


async def test_frozen_file_keeps_what_was_said_meanwhile(notes: Path) -> None:
    """D18."""
    channel = HumanChannel(amend_path=notes / "需求.md")

    class Spoken(FakeRuntime):
        async def run(self, *args: Any, **kw: Any) -> Any:
            channel.send("目标: 也要支持 Y")
            return await super().run(*args, **kw)

    step = clarify_step(channel, brief_path=notes / "需求.md", prompt="做一个 X")
    ctx = await Workflow([step], channel=channel).run(Spoken([BRIEF]))
    addendum = re.compile(r"## 运行中补充\(\d\d:\d\d:\d\d\)\n目标: 也要支持 Y$")
    assert ctx[BRIEF_KEY].goal == "做一个 X"
    assert addendum.search(ctx["确认需求"])
    assert addendum.search(text_of(notes / "需求.md").rstrip("\n"))


# -- missing keys -------------------------------------------------------------------------------------------------


async def test_missing_keys(notes: Path) -> None:
    ctx = await clarified(notes, FakeRuntime(["## 目标\nX\n\n## 边界\nz"]))
    assert ctx[MISSING_KEY] == ["验收标准", "未知与假设"]
    assert (ctx["_failed_at"], BRIEF_KEY in ctx, text_of(notes / "需求.md")) == ("确认需求", False, "")


async def test_missing_keys_are_forgotten_when_it_is_there(notes: Path) -> None:
    ctx = await clarified(notes, FakeRuntime(["## 目标\nX", BRIEF]), retries=1)
    assert MISSING_KEY not in ctx
    assert ctx["确认需求"] == BRIEF


async def test_missing_keys_of_a_goal(notes: Path) -> None:
    ctx = await derived(notes, FakeRuntime(["## 目标\n做出 X\n\n## 判定清单\n(空)\n"]))
    assert (ctx["_failed_at"], GOAL_KEY in ctx, text_of(notes / "目标.md")) == ("设定目标", False, "")


# -- verdict table incl. all unverifiable words, bare digits, vague text ------------------------------------------


@pytest.mark.parametrize(
    "word",
    [
        *("无法验证", "没法验证", "验证不了", "无法判定", "unverifiable"),
        *("无法达成", "不可达成", "做不到", "unreachable", "impossible"),
    ],
)
@pytest.mark.parametrize("form", ["## 结论\n{}\n## 理由\n达成了一半", "结论:{}", "这一轮{}。", "**结论**\n{}"])
def test_verdict_table_all_unverifiable_words(word: str, form: str) -> None:
    for said in (word, word.upper()):
        verdict = Verdict.parse(form.format(f" {said} "))
        assert (verdict.state, verdict.unreachable, verdict.achieved) == (UNREACHABLE, True, False)


@pytest.mark.parametrize("word", ["未达成", "没达成", "尚未达成", "not_yet", "not yet", "not", "no"])
def test_verdict_table_not_yet(word: str) -> None:
    assert Verdict.parse(f"## 结论\n{word}").state == NOT_YET
    assert Verdict.parse(f"I say: {word}").state == NOT_YET


@pytest.mark.parametrize("word", ["已达成", "达成", "achieved", "yes", "ACHIEVED", "Yes"])
def test_verdict_table_achieved(word: str) -> None:
    assert Verdict.parse(f"## 结论\n{word}").state == ACHIEVED


@pytest.mark.parametrize(
    ("text", "state"),
    [
        *(("1", ACHIEVED), ("0", NOT_YET), (" true ", ACHIEVED), ("FALSE", NOT_YET)),
        *(("## 结论\n1", ACHIEVED), ("结论:0", NOT_YET)),
    ],
)
def test_verdict_table_bare_digits(text: str, state: str) -> None:
    assert Verdict.parse(text).state == state


@pytest.mark.parametrize(
    "text", ["", "  ", "看起来可以", "looks good", "## 结论\n看起来可以\n## 理由\n已达成", "10", "v1"]
)
def test_verdict_table_vague_text(text: str) -> None:
    verdict = Verdict.parse(text)
    assert (verdict.state, verdict.ok, verdict.achieved) == ("", False, False)


@pytest.mark.parametrize("text", ["not achieved", "The goal is not achieved.", "未达成", "now it runs: not achieved"])
def test_verdict_table_a_denied_success_never_reads_as_success(text: str) -> None:
    """D19."""
    assert Verdict.parse(text).state == NOT_YET
    assert Verdict.parse("now it is achieved").state == ACHIEVED


# -- rounds -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rounds", "worked"), [(-1, 1), (0, 1), (1, 1), (2, 2), (3, 3)])
async def test_rounds(notes: Path, rounds: int, worked: int) -> None:
    ctx, runtime = await judged(notes, ["r", NO] * worked, rounds=rounds)
    assert len(runtime.calls) == 2 * worked
    assert (ctx["_failed_at"], ctx[ROUND_KEY]) == ("干活", worked)


async def test_rounds_stop_at_the_first_pass(notes: Path) -> None:
    ctx, runtime = await judged(notes, ["第一轮", NO, "第二轮", YES], rounds=5)
    assert [(call.step, call.resume) for call in runtime.calls] == [
        *(("干活", None), ("干活·判定#1", None), ("干活#round2", "s1"), ("干活·判定#2", None))
    ]
    assert (ctx["干活"], ctx[ROUND_KEY], ctx[VERDICT_KEY].achieved, ctx.get("_failed_at")) == ("第二轮", 2, True, None)
    for part in ("少了测试", "跑 b,看到 c", "接着做"):
        assert part in runtime.calls[2].prompt


async def test_rounds_never_pass_on_an_unclear_verdict(notes: Path) -> None:
    ctx, _ = await judged(notes, ["r", "怎么说呢"] * 2, rounds=2)
    assert ctx["_failed_at"] == "干活"
    assert "没给出明确结论" in ctx[VERDICT_KEY].reason


async def test_rounds_without_a_runtime_never_pass(notes: Path) -> None:
    gate: Any = with_goal(work(), HumanChannel(), goal_path=notes / "目标.md").gate
    with pytest.raises(StepAbort, match="Runtime"):
        await gate(await FakeRuntime(["r"]).run(work().spec, "go"), {})


# -- each unreachable answer --------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [ACCEPT, "接受这个吧", " 接受这个结果 "])
async def test_each_unreachable_answer_accept(notes: Path, answer: str) -> None:
    channel = Answering(answer)
    ctx, runtime = await judged(notes, ["r", CANNOT], channel)
    (ask,) = channel.asks
    assert ask.options == [ACCEPT, CHANGE, WRONG]
    assert "没有显示器" in ask.question
    assert (ctx["干活"], ctx[VERDICT_KEY].reason, ctx.get("_failed_at")) == ("r", "没有显示器", None)
    assert len(runtime.calls) == 2


@pytest.mark.parametrize("answer", [CHANGE, "修改一下吧"])
async def test_each_unreachable_answer_change_the_goal(notes: Path, answer: str) -> None:
    ctx, runtime = await judged(notes, ["r", CANNOT, "r2", YES], Answering(answer, "不看屏幕了"))
    assert "(已修改)不看屏幕了" in text_of(notes / "目标.md")
    assert "不看屏幕了" in runtime.calls[2].prompt
    assert "(已修改)不看屏幕了" in runtime.calls[3].prompt
    assert ctx[GOAL_KEY].checks == ["跑 a,看到 b", "跑 b,看到 c"]
    assert ctx.get("_failed_at") is None


async def test_each_unreachable_answer_change_without_words_changes_nothing(notes: Path) -> None:
    ctx, runtime = await judged(notes, ["r", CANNOT, "r2", YES], Answering(CHANGE))
    assert "已修改" not in text_of(notes / "目标.md")
    assert "没有显示器" in runtime.calls[2].prompt
    assert ctx.get("_failed_at") is None


@pytest.mark.parametrize("answer", [WRONG, "装个虚拟显示器就行"])
async def test_each_unreachable_answer_anything_else(notes: Path, answer: str) -> None:
    _, runtime = await judged(notes, ["r", CANNOT, "r2", YES], Answering(answer))
    feedback = runtime.calls[2]
    assert feedback.resume == "s1"
    assert "判断有误" in feedback.prompt
    assert answer in feedback.prompt


# -- nobody there -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [{"timeout_s": 0}, {"max_asks": 0}, {"timeout_s": 0.01}],
    ids=["nobody waits", "no questions", "nobody came"],
)
async def test_nobody_there(notes: Path, settings: dict[str, Any]) -> None:
    """The quota trap: the framework's own question counts against `max_asks`."""
    channel = HumanChannel(**settings)
    ctx, runtime = await judged(notes, ["r", CANNOT], channel, rounds=5)
    for part in ("无人应答", "没有显示器", str(notes / "目标.md"), "manifest.json"):
        assert part in ctx["_aborted"]
    assert (ctx["_failed_at"], len(runtime.calls), len(channel.asks)) == ("干活", 2, 1)


async def test_nobody_there_who_skips_is_nobody_too(notes: Path) -> None:
    ctx, runtime = await judged(notes, ["r", CANNOT], Answering())
    assert "无人应答" in ctx["_aborted"]
    assert len(runtime.calls) == 2


# -- amend --------------------------------------------------------------------------------------------------------


def test_amend() -> None:
    goal = Goal(statement="A", checks=["x"])
    assert goal.amend("不要截图") is goal
    assert goal.statement == "A\n\n(已修改)不要截图"
    assert goal.amend("  ").statement == "A\n\n(已修改)不要截图"


# -- early warning event ------------------------------------------------------------------------------------------


async def test_early_warning_event(notes: Path) -> None:
    seen: list[Event] = []
    ctx = await derived(notes, FakeRuntime([GOAL]), seen.append)
    (warning,) = [event for event in seen if event.kind == "task"]
    assert warning.payload == {
        "unverifiable": ["看屏幕 [此环境无法验证:没有显示器]"],
        "total": 2,
        "path": str(notes / "目标.md"),
    }
    for part in ("2 条判定里有 1 条", "验不了", str(notes / "目标.md"), "看屏幕"):
        assert part in warning.text
    assert "\n" not in warning.text
    assert ctx.get("_failed_at") is None  # it warns and does not block


async def test_early_warning_event_needs_somebody_to_listen_and_something_to_say(notes: Path) -> None:
    assert (await derived(notes, FakeRuntime([GOAL]))).get("_failed_at") is None
    seen: list[Event] = []
    await derived(notes, FakeRuntime(["## 目标\nX\n## 判定清单\n- 跑 a"]), seen.append, always_set=True)
    assert [event.kind for event in seen] == ["step"]


# -- `replace` keeps `resume_prompt` ------------------------------------------------------------------------------


def test_replace_keeps_all_but_gate_rounds_and_feedback(notes: Path) -> None:
    original = work(
        resume_prompt="on",
        fork=True,
        resume_from="a",
        on_fail="skip",
        gate=lambda _r, _c: False,
        reduce=lambda _r, _c: "",
    )
    guarded = with_goal(original, HumanChannel(), goal_path=notes / "目标.md", rounds=4)
    for field in dataclasses.fields(Step):
        kept = getattr(guarded, field.name) is getattr(original, field.name)
        assert kept is (field.name not in {"retries", "gate", "on_reject"}), field.name
    assert guarded.retries == 3


def test_replace_keeps_resume_prompt(notes: Path) -> None:
    original = work(resume_prompt="on")
    guarded = with_goal(original, HumanChannel(), goal_path=notes / "目标.md", rounds=4)
    assert guarded.resume_prompt is original.resume_prompt
    assert (original.retries, original.gate, original.on_reject) == (0, None, None)


def test_clarify_step_resumes_with_the_constant(notes: Path) -> None:
    step = clarify_step(HumanChannel(), brief_path=notes / "需求.md", prompt="x")
    assert step.resume_prompt is CLARIFY_RESUME
    assert goal_step(HumanChannel(), goal_path=notes / "目标.md").resume_prompt is None
