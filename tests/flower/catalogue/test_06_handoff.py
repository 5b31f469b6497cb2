"""Behaviour 28.6, each item a test:

*Handoff:* resume order `[None, old, None]`; original task not resent; `retired`; cap with `启动地板`; exemption;
degraded on unparsable text, exception and overflow; level reset per step; subagent level ignored; archive of the
previous document; no workbench; `no_summary` injected only when `compact is None`; overflow only from new errors;
default windows table.

A window of 200,000 tokens warns at 130,000 and hands over at 150,000 (API 5.4).
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import flower
from flower.core.agent import AgentSpec, CompactPolicy
from flower.core.events import Event
from flower.core.runtime import Runtime, StepResult
from flower.core.workbench import Workbench
from tests.fakes.client import Item, Own, ScriptedRuntime, Until, init, say
from tests.flower.scene import SPEC, Calm, Make, lost, rows, told, windowed

WAIT = 5.0
TASK = "THE ORIGINAL TASK, sent once"
DOCUMENT = (
    "好的。\n\n## 现在在做什么\n写解析器\n\n## 已经定下的\n用递归下降,因为要好的报错\n\n"
    "## 走不通的路\n正则不行\n\n## 下一步\n补上字符串\n\n## 现场\nsrc/parser.py\n"
)
SECTIONS = {
    "doing": "写解析器",
    "decided": "用递归下降,因为要好的报错",
    "deadends": "正则不行",
    "next": "补上字符串",
}
DEGRADED = "[降级:交接没写成]"
OVERFLOW = "API Error: 400 prompt is too long: 210000 tokens > 200000 maximum"


def at(level: int, text: str = "working", **kw: Any) -> Item:
    return say(text, usage={"input_tokens": 0, "cache_read_input_tokens": level}, **kw)


def full(session: str = "S", level: int = 152_000, **kw: Any) -> list[Item]:
    """A generation that fills up: the level shows, and the next message is the boundary."""
    return [init(session), at(level), say("the boundary"), Until()]


def writing(session: str = "S", text: str = DOCUMENT, **kw: Any) -> list[Item]:
    """The silent round that writes the document, above the line from its first message on."""
    return [init(session), at(153_000, text), Own(session=session, **kw)]


def done(session: str, text: str = "done", **kw: Any) -> list[Item]:
    return [init(session), at(20_000, text), Own(session=session, **kw)]


def overflowing(session: str = "S", **kw: Any) -> list[Item]:
    return [init(session), lost(OVERFLOW), Own(session=session, is_error=True, status=400, **kw)]


async def finished(runtime: Runtime, events: list[Event] | None = None, **kw: Any) -> StepResult:
    async with asyncio.timeout(WAIT):
        return await runtime.run(
            **{"spec": SPEC, "prompt": TASK, "step_name": "干活", **kw},
            on_event=events.append if events is not None else None,
        )


def phases(events: list[Event]) -> list[str]:
    return [event.payload["phase"] for event in events if event.kind == "handoff"]


@pytest.fixture
def handing(make: Make) -> Make:
    """A runtime with the window of 200,000 tokens."""

    def build(*scripts: Any, **kw: Any) -> ScriptedRuntime:
        return make(*scripts, **{"handoff": windowed(), **kw})

    return build


# -- resume order `[None, old, None]` -----------------------------------------------------------------------------


async def test_resume_order_none_old_none(handing: Make) -> None:
    runtime = handing(full(), writing(total=0.5), done("T", total=0.25))
    events: list[Event] = []
    step = await finished(runtime, events)
    assert runtime.resumed == [None, "S", None]
    assert [client.options.fork_session for client in runtime.clients] == [False] * 3
    assert (step.ok, step.session_id, step.attempts, step.error) == (True, "T", 1, None)
    assert phases(events) == ["near", "writing", "done"]
    assert step.text == "done"
    assert step.context == 20_000
    assert step.cost_usd == 0.75


async def test_resume_order_tells_each_session_the_moment_it_is_known(handing: Make) -> None:
    """Trace 30.6: `lineage["干活"]` is A, then B the moment B's id is known."""
    runtime = handing(full(), writing(), done("T"))
    told_sessions: list[str] = []
    runtime.on_session = told_sessions.append
    await finished(runtime)
    assert told_sessions == ["S", "T"]


async def test_a_successful_result_wins_over_a_due_handoff(handing: Make) -> None:
    """D7: the work is finished."""
    runtime = handing([init(), at(152_000, "all done"), Own(total=0.5)])
    events: list[Event] = []
    step = await finished(runtime, events)
    assert (step.ok, step.retired, step.text, step.cost_usd) == (True, [], "all done", 0.5)
    assert phases(events) == ["near"]


async def test_below_the_line_nothing_is_handed_over(handing: Make) -> None:
    runtime = handing([init(), at(149_999), say("on"), Own()])
    events: list[Event] = []
    step = await finished(runtime, events)
    assert (step.ok, step.retired, step.context) == (True, [], 149_999)
    assert phases(events) == ["near"]


async def test_handing_over_costs_no_attempt_and_needs_no_resilience(handing: Make) -> None:
    runtime = handing(full(), writing(), done("T"), resilience=False)
    step = await finished(runtime)
    assert (step.ok, step.attempts) == (True, 1)


# -- events (4.6) -------------------------------------------------------------------------------------------------


async def test_events_of_a_handoff_word_for_word(handing: Make, tmp_path: Path) -> None:
    bench = Workbench(tmp_path / "ws")
    generation: list[Item] = [init(), at(131_000), at(140_000), at(152_000), say("the boundary"), Until()]
    runtime = handing(generation, writing(), done("T"), workbench=bench)
    events: list[Event] = []
    await finished(runtime, events)
    near, write, over = [event for event in events if event.kind == "handoff"]
    assert near.text == "上下文 131.0K/200K · 还有约 19K 到换代"
    assert near.payload == {"phase": "near", "step": "干活", "context": 131_000, "window": 200_000, "at": 150_000}
    assert write.text == "上下文 152.0K/200K —— 正在写交接…"
    assert write.payload == {"phase": "writing", "step": "干活", "context": 152_000, "window": 200_000}
    assert over.text == "上下文满了,写交接换新会话(干活)"
    assert over.payload == {
        "phase": "done",
        "step": "干活",
        "context": 152_000,
        "window": 200_000,
        "degraded": False,
        "path": str(bench.notes / "交接-干活.md"),
        "sections": SECTIONS,
    }
    for event in (near, write, over):
        assert json.loads(json.dumps(event.payload, ensure_ascii=False)) == event.payload


async def test_the_round_that_writes_is_silent(handing: Make) -> None:
    runtime = handing(full(), writing(), done("T"))
    events: list[Event] = []
    step = await finished(runtime, events)
    assert not any("写解析器" in event.text for event in events)
    assert "写解析器" not in step.text
    (doc,) = [event for event in events if event.payload.get("phase") == "done"]
    assert doc.payload["sections"] == SECTIONS


# -- original task not resent -------------------------------------------------------------------------------------


async def test_original_task_not_resent(handing: Make) -> None:
    runtime = handing(full(), writing(), done("T"))
    await finished(runtime)
    first, asked, successor = runtime.prompts
    assert first == TASK
    assert TASK not in asked + successor
    assert "你在接手一段还没干完的活" in successor
    for part in SECTIONS.values():
        assert part in successor
    assert "src/parser.py" in successor
    assert "152" in asked
    assert "200" in asked


# -- `retired` ----------------------------------------------------------------------------------------------------


async def test_retired(handing: Make) -> None:
    runtime = handing(full(), writing(), full("T"), writing("T"), done("U"))
    events: list[Event] = []
    step = await finished(runtime, events)
    assert (step.ok, step.session_id, step.retired, step.attempts) == (True, "U", ["S", "T"], 1)
    assert phases(events) == ["near", "writing", "done"] * 2  # one warning a generation
    assert [(row["session_id"], row["retired"]) for row in rows(runtime)] == [("U", ["S", "T"])]


# -- cap with `启动地板` ------------------------------------------------------------------------------------------


async def test_cap_with_startup_floor(make: Make) -> None:
    runtime = make(full(), writing(), full("T"), handoff=windowed(max_generations=1))
    step = await finished(runtime)
    assert (step.ok, step.retired) == (False, ["S"])
    assert step.error is not None
    for part in ("启动地板", "--no-handoff", "window"):
        assert part in step.error
    assert len(runtime.clients) == 3


async def test_cap_stops_where_every_session_crosses_at_once(make: Make) -> None:
    scripts: list[list[Item]] = []
    for number in range(8):
        scripts += [full(f"S{number}"), writing(f"S{number}")]
    runtime = make(*scripts, full("S8"), handoff=windowed())
    step = await finished(runtime)
    assert (step.ok, len(step.retired)) == (False, 8)
    assert "启动地板" in str(step.error)


# -- exemption ----------------------------------------------------------------------------------------------------


async def test_exemption(handing: Make) -> None:
    """Without it the first message of the writing round would be cut, and every document degraded (16.3)."""
    runtime = handing(full(), [init(), at(152_500, "let me see"), *writing()[1:]], done("T"))
    events: list[Event] = []
    step = await finished(runtime, events)
    assert runtime.clients[1].interrupts == 0
    assert step.errors == []
    assert [e.payload["degraded"] for e in events if e.payload.get("phase") == "done"] == [False]


async def test_exemption_is_undone_even_if_the_round_raises(handing: Make) -> None:
    runtime = handing(full(), [init(), ValueError("broke")], full("T"), writing("T"), done("U"))
    step = await finished(runtime)
    assert (step.ok, step.retired) == (True, ["S", "T"])


async def test_exemption_from_the_steps_budget(handing: Make) -> None:
    runtime = handing(full(), writing(), done("T"))
    await finished(runtime, spec=dataclasses.replace(SPEC, max_budget_usd=5.0))
    assert [client.options.max_budget_usd is None for client in runtime.clients] == [False, True, False]


# -- degraded on unparsable text, exception and overflow ----------------------------------------------------------


def degraded_of(events: list[Event]) -> list[bool]:
    return [event.payload["degraded"] for event in events if event.payload.get("phase") == "done"]


@pytest.mark.parametrize(
    "text",
    ["好的,我这就写。", "## 现在在做什么\n写解析器", "```\n" + DOCUMENT, ""],
    ids=["prose", "half", "fenced", "nothing"],
)
async def test_degraded_on_unparsable_text(handing: Make, text: str) -> None:
    runtime = handing(full(), writing(text=text), done("T"))
    events: list[Event] = []
    step = await finished(runtime, events)
    assert (step.ok, step.retired, degraded_of(events)) == (True, ["S"], [True])
    (note,) = step.errors
    assert note.startswith("交接降级(")
    successor = runtime.prompts[2]
    assert DEGRADED in successor
    assert TASK in successor  # the one place where the start of the task is kept


@pytest.mark.parametrize(
    "round_", [[init(), ValueError("broke")], [init(), lost("no credit left"), Own(is_error=True, status=403)]]
)
async def test_degraded_on_exception(handing: Make, round_: list[Item]) -> None:
    runtime = handing(full(), round_, done("T"))
    events: list[Event] = []
    step = await finished(runtime, events)
    assert (step.ok, step.session_id, degraded_of(events), step.attempts) == (True, "T", [True], 1)
    assert any(note.startswith("交接降级(") for note in step.errors)


async def test_degraded_on_overflow(handing: Make) -> None:
    """No writing round is tried: the session takes none any more (16.6)."""
    runtime = handing(overflowing(), done("T"))
    events: list[Event] = []
    step = await finished(runtime, events)
    assert runtime.resumed == [None, None]
    assert (step.ok, step.retired, step.attempts, degraded_of(events)) == (True, ["S"], 1, [True])
    assert step.errors[0] == OVERFLOW
    assert step.errors[1].startswith("交接降级(")
    assert OVERFLOW not in runtime.prompts[1]
    assert told(events, "retry") == []


@pytest.mark.parametrize("reason", ["blocking_limit", "prompt_too_long"])
async def test_degraded_on_the_programs_own_edge(handing: Make, reason: str) -> None:
    """SDK facts 14: near the window the program itself refuses, without asking the API."""
    refusing: list[Item] = [init(), lost("Prompt is too long"), Own(is_error=True, reason=reason)]
    step = await finished(handing(refusing, done("T")))
    assert (step.ok, step.retired) == (True, ["S"])


async def test_degraded_on_overflow_while_it_is_written(handing: Make) -> None:
    runtime = handing(full(), overflowing(), done("T"))
    events: list[Event] = []
    step = await finished(runtime, events)
    assert runtime.resumed == [None, "S", None]
    assert (step.ok, step.retired, degraded_of(events)) == (True, ["S"], [True])


async def test_degraded_twice_in_a_row_stops(handing: Make) -> None:
    """API 4.4, 7: empty handovers only burn money."""
    runtime = handing(overflowing(), overflowing("T"))
    step = await finished(runtime)
    assert (step.ok, len(runtime.clients)) == (False, 2)
    for part in ("降级", "烧钱", "窗口", "余量"):
        assert part in str(step.error)


async def test_degraded_once_and_then_a_good_one_goes_on(handing: Make) -> None:
    runtime = handing(overflowing(), full("T"), writing("T"), overflowing("U"), done("V"))
    step = await finished(runtime)
    assert (step.ok, step.retired) == (True, ["S", "T", "U"])


async def test_degraded_document_holds_the_first_1200_characters_of_the_task(handing: Make) -> None:
    task = "x" * 1199 + "yz"
    runtime = handing(overflowing(), done("T"))
    await finished(runtime, prompt=task)
    assert "x" * 1199 + "y" in runtime.prompts[1]
    assert "yz" not in runtime.prompts[1]


# -- level reset per step -----------------------------------------------------------------------------------------


async def test_level_reset_per_step(handing: Make) -> None:
    """A step does not inherit the reading of the step before it, nor its warning."""
    runtime = handing([init(), at(140_000), Own()], [init(), at(131_000), say("on"), Own()])
    first: list[Event] = []
    second: list[Event] = []
    await finished(runtime, first)
    step = await finished(runtime, second, resume="S")
    assert (phases(first), phases(second)) == (["near"], ["near"])
    assert (step.context, step.retired) == (131_000, [])


# -- subagent level ignored ---------------------------------------------------------------------------------------


async def test_subagent_level_ignored(handing: Make) -> None:
    below = at(199_000, "below", parent_tool_use_id="toolu_1")
    runtime = handing([init(), at(20_000), below, below, say("on"), Own()])
    events: list[Event] = []
    step = await finished(runtime, events)
    assert (step.ok, step.retired, step.context, phases(events)) == (True, [], 20_000, [])


# -- archive of the previous document -----------------------------------------------------------------------------


async def test_archive_of_the_previous_document(handing: Make, tmp_path: Path) -> None:
    bench = Workbench(tmp_path / "ws")
    second = DOCUMENT.replace("写解析器", "写打印器")
    runtime = handing(full(), writing(), full("T"), writing("T", second), done("U"), workbench=bench)
    await finished(runtime)
    assert "写打印器" in (bench.notes / "交接-干活.md").read_text(encoding="utf-8")
    (old,) = (bench.notes / "archive" / "交接").iterdir()
    assert re.fullmatch(r"干活-\d{8}-\d{6}\.md", old.name)
    assert "写解析器" in old.read_text(encoding="utf-8")


async def test_archive_never_overwrites_an_archived_one(handing: Make, tmp_path: Path) -> None:
    """D16: within one second a counter is added."""
    bench = Workbench(tmp_path / "ws")
    scripts: list[list[Item]] = []
    for number in range(4):
        scripts += [full(f"S{number}"), writing(f"S{number}", DOCUMENT.replace("写解析器", f"第{number}段"))]
    await finished(handing(*scripts, done("Z"), workbench=bench))
    kept = sorted((bench.notes / "archive" / "交接").iterdir())
    assert len(kept) == 3
    said = {re.search(r"第\d段", path.read_text(encoding="utf-8"))[0] for path in kept}  # type: ignore[index]
    assert said == {"第0段", "第1段", "第2段"}


@pytest.mark.parametrize(("name", "file"), [('a/b\\c:d*e?f"g<h>i|j', "交接-abcdefghij.md"), ("//", "交接-step.md")])
async def test_the_file_of_a_document_has_a_safe_name(handing: Make, tmp_path: Path, name: str, file: str) -> None:
    bench = Workbench(tmp_path / "ws")
    await finished(handing(full(), writing(), done("T"), workbench=bench), step_name=name)
    assert (bench.notes / file).is_file()


async def test_the_document_on_disk_can_be_read_again(handing: Make, tmp_path: Path) -> None:
    bench = Workbench(tmp_path / "ws")
    await finished(handing(full(), writing(), done("T"), workbench=bench))
    loaded = flower.Handoff.load(bench.notes / "交接-干活.md")
    assert loaded is not None
    assert {name: getattr(loaded, name) for name in SECTIONS} == SECTIONS
    assert loaded.degraded is False


# -- no workbench -------------------------------------------------------------------------------------------------


async def test_no_workbench(handing: Make, tmp_path: Path) -> None:
    """Nothing is written, and the text still reaches the successor."""
    runtime = handing(full(), writing(), done("T"))
    events: list[Event] = []
    await finished(runtime, events)
    assert [e.payload["path"] for e in events if e.payload.get("phase") == "done"] == [""]
    assert not [name for _, _, names in os.walk(tmp_path) for name in names if "交接" in name]
    assert "写解析器" in runtime.prompts[2]


# -- `no_summary` injected only when `compact is None` ------------------------------------------------------------


@pytest.mark.parametrize(
    ("handoff", "compact", "variables"),
    [
        (True, None, {"DISABLE_AUTO_COMPACT": "1"}),
        (True, CompactPolicy(mode="auto"), {}),
        (True, CompactPolicy(mode="off"), {"DISABLE_COMPACT": "1"}),
        (False, None, {}),
    ],
)
async def test_no_summary_injected_only_when_compact_is_none(
    make: Make, handoff: bool, compact: CompactPolicy | None, variables: dict[str, str]
) -> None:
    runtime = make(done("S"), handoff=handoff)
    spec = AgentSpec(name="x", instructions="", compact=compact)
    await finished(runtime, spec=spec)
    env = runtime.clients[0].options.env
    names = ("DISABLE_AUTO_COMPACT", "DISABLE_COMPACT", "CLAUDE_CODE_AUTO_COMPACT_WINDOW")
    assert {name: env[name] for name in names if name in env} == variables
    assert spec.compact is compact


async def test_no_handoff_leaves_the_level_alone(make: Make) -> None:
    runtime = make([init(), at(990_000), say("on"), Own()], handoff=False)
    step = await finished(runtime)
    assert (step.ok, step.retired, step.context) == (True, [], 990_000)


# -- overflow only from new errors --------------------------------------------------------------------------------


async def test_overflow_only_from_new_errors(handing: Make) -> None:
    """D14: else one overflow would brand every later failure of the step."""
    failing: list[Item] = [init("T"), lost(), Own(session="T", is_error=True)]
    runtime = handing(overflowing(), failing, done("T"))
    events: list[Event] = []
    step = await finished(runtime, events)
    assert runtime.resumed == [None, None, "T"]
    assert (step.ok, step.retired, step.attempts) == (True, ["S"], 2)
    assert told(events, "retry") == ["第 1 次失败(transient),准备重试"]


async def test_overflow_that_is_not_the_last_error_of_its_attempt_counts_too(handing: Make) -> None:
    runtime = handing([init(), lost(OVERFLOW), lost("API Error: odd"), Own(is_error=True)], done("T"))
    step = await finished(runtime)
    assert (step.ok, step.retired, step.attempts) == (True, ["S"], 1)


async def test_overflow_without_a_session_is_an_ordinary_failure(handing: Make) -> None:
    runtime = handing([ValueError(OVERFLOW)], resilience=Calm(max_attempts=1))
    step = await finished(runtime)
    assert (step.ok, step.retired, len(runtime.clients)) == (False, [], 1)


async def test_overflow_is_no_handoff_where_handing_over_is_off(make: Make) -> None:
    runtime = make(overflowing(), handoff=False)
    step = await finished(runtime)
    assert (step.ok, step.retired, len(runtime.clients)) == (False, [], 1)


@pytest.mark.parametrize(
    "text",
    [
        "prompt is too long: 210000 tokens",
        "context length exceeded",
        "context_length_exceeded",
        "context-length-exceeded",
        "This model's maximum context length is 200000",
        "it exceeds the context window",
        "would exceed context limit",
        "exceed the context limit",
        "too many total text bytes",
        "input length and `max_tokens` exceed",
        "input length and max_tokens exceed context limit: 1 + 2 > 3",
        "PROMPT IS TOO LONG",
    ],
)
def test_overflow_is_recognised(text: str) -> None:
    is_overflow: Any = import_module("flower.core.handoff").is_overflow
    assert is_overflow(None, "", text) is True
    assert is_overflow("ECONNRESET", None) is False
    assert is_overflow() is False


# -- default windows table ----------------------------------------------------------------------------------------

MILLION = 1_000_000


@pytest.fixture
def window(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., int]:
    for name in ("ANTHROPIC_MODEL", "ANTHROPIC_DEFAULT_OPUS_MODEL", "FLOWER_WINDOW", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))

    def window(**env: str) -> int:
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        return flower.default_window()

    return window


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({}, MILLION),
        ({"ANTHROPIC_MODEL": ""}, MILLION),
        ({"ANTHROPIC_MODEL": "claude-opus-5-5"}, MILLION),
        ({"ANTHROPIC_MODEL": "claude-haiku-5-5"}, 200_000),
        ({"ANTHROPIC_MODEL": "Claude-HAIKU"}, 200_000),
        ({"ANTHROPIC_MODEL": "claude-haiku-5-5[1m]"}, MILLION),
        ({"ANTHROPIC_MODEL": "haiku-1M"}, MILLION),
        ({"ANTHROPIC_MODEL": "haiku-11m"}, 200_000),
        ({"ANTHROPIC_MODEL": "haiku1m"}, 200_000),
        ({"ANTHROPIC_MODEL": "", "ANTHROPIC_DEFAULT_OPUS_MODEL": "some-haiku"}, 200_000),
        ({"ANTHROPIC_MODEL": "opus", "ANTHROPIC_DEFAULT_OPUS_MODEL": "some-haiku"}, MILLION),
        ({"FLOWER_WINDOW": "123456"}, 123_456),
        ({"FLOWER_WINDOW": "123456", "ANTHROPIC_MODEL": "haiku"}, 123_456),
        ({"FLOWER_WINDOW": "0"}, MILLION),
        ({"FLOWER_WINDOW": "-5"}, MILLION),
        ({"FLOWER_WINDOW": "many"}, MILLION),
        ({"FLOWER_WINDOW": ""}, MILLION),
    ],
)
def test_default_windows_table(window: Callable[..., int], env: dict[str, str], expected: int) -> None:
    assert window(**env) == expected


def test_default_windows_table_remembers_an_overflow(window: Callable[..., int]) -> None:
    """API 5.5: the smallest level seen, for this endpoint and this model only."""
    agent: Any = import_module("flower.core.agent")
    assert window(ANTHROPIC_MODEL="opus") == MILLION
    for level in (400_000, 0, -1, 300_000, 350_000):
        agent.remember_overflow(level)
    assert window() == agent.calibrated_window() == 300_000
    assert window(FLOWER_WINDOW="500000") == 500_000
    assert window(FLOWER_WINDOW="", ANTHROPIC_BASE_URL="https://gateway.example") == MILLION
    assert window(ANTHROPIC_MODEL="haiku") == 200_000
    agent.calib_path().write_text("{broken", encoding="utf-8")
    assert agent.calibrated_window() is None


async def test_default_windows_table_an_overflow_of_a_run_is_remembered(make: Make, window: Callable[..., int]) -> None:
    """API 4.4, 1: a real overflow above level zero is remembered; reaching the line is not."""
    overflow: list[Item] = [init(), at(90_000), lost(OVERFLOW), Own(is_error=True, status=400)]
    await finished(make(overflow, done("T")))
    assert window() == 90_000
