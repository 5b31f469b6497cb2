"""A full context is handed over to a fresh session (behaviour 16, API 4.4), over a scripted client."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import ToolResultBlock, UserMessage

from flower.core.agent import (
    AgentSpec,
    CompactPolicy,
    HandoffPolicy,
    calib_path,
    calibrated_window,
    remember_overflow,
)
from flower.core.events import Event
from flower.core.runtime import Runtime
from flower.core.workbench import Workbench
from tests.fakes.client import Item, Own, ScriptedClient, ScriptedRuntime, Until, init, say
from tests.flower.scene import Make

SPEC = AgentSpec(name="work", instructions="do it")
POLICY = HandoffPolicy(window=200_000)
DOCUMENT = "## 现在在做什么\nA\n## 已经定下的\nB\n## 走不通的路\nC\n## 下一步\nD\n## 现场\nE"


@pytest.fixture
def make(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """The usual runtimes, with a small window."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return lambda *scripts, **kw: make(*scripts, **{"handoff": POLICY, **kw})


def at(tokens: int, text: str = "working", **kw: Any) -> Any:
    return say(text, usage={"input_tokens": tokens}, **kw)


def boundary() -> UserMessage:
    return UserMessage(content=[ToolResultBlock("t", "x")])


def full(session: str, tokens: int = 152_000) -> list[Item]:
    """A session that reaches the level; the message after it is cut off."""
    return [init(session), at(tokens), boundary(), say("never told"), Until()]


def wrote(session: str, text: str = DOCUMENT, **own: Any) -> list[Item]:
    return [init(session), at(153_000, text), Own(session=session, **own)]


def ended(session: str, text: str = "done") -> list[Item]:
    return [init(session), say(text), Own(session=session)]


async def play(runtime: Runtime, spec: AgentSpec = SPEC, **kw: Any) -> tuple[Any, list[Event]]:
    heard: list[Event] = []
    result = await runtime.run(spec, "the task", on_event=heard.append, **kw)
    return result, heard


def phases(heard: list[Event]) -> list[str]:
    return [event.payload["phase"] for event in heard if event.kind == "handoff"]


def completed(heard: list[Event]) -> Event:
    (event,) = [event for event in heard if event.payload.get("phase") == "done"]
    return event


async def test_a_full_session_writes_and_a_fresh_one_takes_over(make: Make, tmp_path: Path) -> None:
    bench = Workbench(tmp_path / "ws")
    runtime = make(full("A"), wrote("A", total=0.5, turns=2), ended("B"), workbench=bench)
    sessions: list[str] = []
    runtime.on_session = sessions.append
    result, heard = await play(runtime, step_name="干活")
    assert runtime.resumed == [None, "A", None]
    assert (result.ok, result.session_id, result.retired, result.attempts) == (True, "B", ["A"], 1)
    assert (result.errors, result.context, result.cost_usd, result.num_turns) == ([], 0, 0.5, 4)
    assert result.text == "done"
    assert sessions == ["A", "B"]
    assert phases(heard) == ["near", "writing", "done"]
    done = completed(heard)
    assert done.text == "上下文满了,写交接换新会话(干活)"
    assert done.payload == {
        "phase": "done",
        "step": "干活",
        "context": 152_000,
        "window": 200_000,
        "degraded": False,
        "path": str(bench.notes / "交接-干活.md"),
        "sections": {"doing": "A", "decided": "B", "deadends": "C", "next": "D"},
    }
    assert "never told" not in [event.text for event in heard]
    assert DOCUMENT not in [event.text for event in heard]
    assert "the task" not in runtime.prompts[2]
    assert "## 下一步\nD" in runtime.prompts[2]
    assert "152000 / 200000" in runtime.prompts[1]


async def test_the_numbers_are_in_thousands(make: Make) -> None:
    runtime = make([init("A"), at(131_000), at(152_000), boundary()], wrote("A"), ended("B"))
    _, heard = await play(runtime)
    said = [event.text for event in heard if event.kind == "handoff"]
    assert said[:2] == ["上下文 131.0K/200K · 还有约 19K 到换代", "上下文 152.0K/200K —— 正在写交接…"]
    near = next(event for event in heard if event.kind == "handoff")
    assert near.payload == {"phase": "near", "step": "work", "context": 131_000, "window": 200_000, "at": 150_000}


async def test_a_subagents_level_hands_nothing_over(make: Make) -> None:
    runtime = make([init("A"), at(190_000, parent_tool_use_id="t"), boundary(), Own(session="A")])
    result, heard = await play(runtime)
    assert result.ok
    assert phases(heard) == []
    assert result.context == 0


@pytest.mark.parametrize(
    "answer",
    [
        [init("A"), at(153_000, "no sections here"), Own(session="A")],
        [init("A"), ValueError("the program broke")],
        [init("A"), say("Prompt is too long", model="<synthetic>"), Own(session="A", is_error=True)],
        [init("A"), Own(session="A", is_error=True, reason="blocking_limit")],
    ],
    ids=["no document", "an exception", "an overflow", "a refusal of the program"],
)
async def test_a_document_that_was_not_written_is_replaced(make: Make, answer: list[Item]) -> None:
    runtime = make(full("A"), answer, ended("B"))
    result, heard = await play(runtime)
    assert result.ok
    (note,) = result.errors
    assert note.startswith("交接降级(")
    assert completed(heard).payload["degraded"] is True
    assert completed(heard).payload["path"] == ""
    assert "the task" in runtime.prompts[2]
    assert "[降级:交接没写成]" in runtime.prompts[2]


async def test_an_overflow_asks_the_full_session_for_nothing(make: Make) -> None:
    lost: list[Item] = [
        init("A"),
        at(140_000),
        say("Prompt is too long", model="<synthetic>"),
        Own(session="A", is_error=True, reason="prompt_too_long", status=400),
    ]
    runtime = make(lost, ended("B"))
    result, heard = await play(runtime)
    assert runtime.resumed == [None, None]
    assert (result.ok, result.retired, result.attempts) == (True, ["A"], 1)
    assert result.errors == ["Prompt is too long", "交接降级(上下文已经溢出,写不了交接)"]
    assert phases(heard) == ["near", "writing", "done"]
    assert calibrated_window() == 140_000


async def test_a_window_that_was_remembered_is_named_with_its_file(make: Make) -> None:
    remember_overflow(60_000)
    runtime = make(full("A"), wrote("A", "nothing"), full("B"), wrote("B", "nothing"), handoff=True)
    result, _ = await play(runtime)
    assert runtime.handoff.window == 60_000
    assert str(calib_path()) in (result.error or "")


async def test_a_good_handover_between_them_starts_the_count_anew(make: Make) -> None:
    runtime = make(
        *(full("A"), wrote("A", "nothing"), full("B"), wrote("B"), full("C"), wrote("C", "nothing"), ended("D")),
    )
    result, _ = await play(runtime)
    assert result.ok
    assert result.retired == ["A", "B", "C"]


async def test_the_number_of_generations_is_limited(make: Make) -> None:
    policy = HandoffPolicy(window=200_000, max_generations=2)
    runtime = make(full("A"), wrote("A"), full("B"), wrote("B"), full("C"), handoff=policy)
    result, _ = await play(runtime)
    assert not result.ok
    assert result.retired == ["A", "B"]
    assert all(word in (result.error or "") for word in ("启动地板", "--no-handoff", "window", "2", "150000"))


async def test_a_failure_before_the_successor_has_a_session_begins_it_again(make: Make) -> None:
    runtime = make(full("A"), wrote("A"), [ConnectionError("ECONNRESET")], ended("B"))
    result, _ = await play(runtime)
    assert runtime.resumed == [None, "A", None, None]
    assert runtime.prompts[2] == runtime.prompts[3]
    assert "## 下一步\nD" in runtime.prompts[3]
    assert (result.ok, result.attempts, result.retired) == (True, 2, ["A"])


async def test_an_interrupt_that_comes_while_it_writes_acts_in_the_successor(make: Make) -> None:
    runtime: ScriptedRuntime
    answer = [init("A"), lambda: runtime.interrupt("mind the tests"), at(153_000, DOCUMENT), Own(session="A")]
    runtime = make(full("A"), answer, [init("B"), boundary(), say("x")], ended("B"))
    result, _ = await play(runtime)
    assert runtime.resumed == [None, "A", None, "B"]
    assert "mind the tests" in runtime.prompts[3]
    assert (result.ok, result.session_id, result.attempts) == (True, "B", 1)


async def test_a_pending_interrupt_waits_behind_a_due_handover(make: Make) -> None:
    runtime: ScriptedRuntime
    first = [init("A"), at(152_000), lambda: runtime.interrupt("words"), boundary(), say("x")]
    runtime = make(first, wrote("A"), [init("B"), boundary(), say("x")], ended("B"))
    result, _ = await play(runtime)
    assert runtime.resumed == [None, "A", None, "B"]
    assert "words" in runtime.prompts[3]
    assert result.ok


async def test_an_end_while_it_writes_ends_the_step(make: Make) -> None:
    runtime: ScriptedRuntime
    answer = [init("A"), lambda: runtime.end(), at(153_000, DOCUMENT), Own(session="A")]
    runtime = make(full("A"), answer)
    result, heard = await play(runtime)
    assert (result.error, result.session_id, result.retired) == (Runtime.ENDED, "A", [])
    assert phases(heard) == ["near", "writing"]


async def test_without_money_nothing_is_handed_over(make: Make) -> None:
    spent: list[Item] = [init("A"), Own(session="A", total=2.0, is_error=True, reason="prompt_too_long")]
    runtime = make(spent)
    runtime.budget_usd = 1.0
    result, heard = await play(runtime)
    assert "budget" in (result.error or "")
    assert result.session_id == "A"
    assert phases(heard) == []


async def hook_says(client: ScriptedClient) -> list[Any]:
    """What the hooks before a Bash call of the main thread answer."""
    data: Any = {"tool_name": "Bash", "tool_input": {"command": "ls"}}
    matchers = client.options.hooks["PreToolUse"] if client.options.hooks else []
    return [await hook(data, "t", {"signal": None}) for matcher in matchers for hook in matcher.hooks]


async def test_in_the_turn_that_writes_no_tool_runs_and_no_budget_stops_it(make: Make) -> None:
    runtime = make(full("A"), wrote("A"), ended("B"))
    spec = AgentSpec(name="work", instructions="", allowed_tools=["Bash", "Write", "Edit", "NotebookEdit"])
    spec.max_budget_usd = 7.0
    result, _ = await play(runtime, spec)
    assert result.ok
    first, second, third = runtime.clients
    assert [each for each in await hook_says(first) if each] == []
    (denied,) = [each for each in await hook_says(second) if each]
    assert denied["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert [each for each in await hook_says(third) if each] == []
    assert [client.options.max_budget_usd for client in runtime.clients] == [7.0, None, 7.0]


async def test_a_document_that_cannot_be_written_still_reaches_the_successor(make: Make, tmp_path: Path) -> None:
    bench = Workbench(tmp_path / "ws")
    runtime = make(full("A"), wrote("A"), ended("B"), workbench=bench)
    (bench.notes / "交接-work.md").mkdir(parents=True)
    (bench.notes / "archive").write_text("in the way", encoding="utf-8")
    result, heard = await play(runtime)
    assert result.ok
    assert result.errors[0].startswith("交接没有落盘")
    assert completed(heard).payload["path"] == ""
    assert "## 下一步\nD" in runtime.prompts[2]


@pytest.mark.parametrize(
    ("handoff", "compact", "variables"),
    [
        (POLICY, None, {"DISABLE_AUTO_COMPACT": "1", "CLAUDE_CODE_BLOCKING_LIMIT_OVERRIDE": "200000"}),
        (POLICY, CompactPolicy(), {}),
        (POLICY, CompactPolicy(mode="off"), {"DISABLE_COMPACT": "1"}),
        (False, None, {}),
    ],
)
async def test_compaction_is_switched_off_only_where_handing_over_takes_its_place(
    make: Make, handoff: Any, compact: CompactPolicy | None, variables: dict[str, str]
) -> None:
    runtime = make(ended("A"), handoff=handoff)
    await play(runtime, AgentSpec(name="x", instructions="", compact=compact))
    env = runtime.clients[0].options.env
    assert {name: value for name, value in env.items() if "COMPACT" in name or "BLOCKING" in name} == variables


async def test_a_step_does_not_inherit_the_level_of_the_one_before(make: Make) -> None:
    runtime = make([init("A"), at(180_000), Own(session="A")], [init("B"), boundary(), Own(session="B")])
    await play(runtime)
    result, heard = await play(runtime)
    assert result.ok
    assert phases(heard) == []


def unreachable(session: str) -> list[Item]:
    error = say("API Error: 529", model="<synthetic>")
    return [init(session), error, Own(session=session, is_error=True, status=529)]


async def test_a_model_that_was_away_for_a_moment_writes_the_handoff_all_the_same(make: Make) -> None:
    away: list[Item] = [
        init("A"),
        say("API Error: 529", model="<synthetic>"),
        Own(session="A", is_error=True, status=529),
    ]
    runtime = make(full("A"), away, away, wrote("A"), ended("B"))
    result, heard = await play(runtime)
    assert (result.ok, result.errors, result.attempts) == (True, [], 1)
    assert completed(heard).payload["degraded"] is False
    assert runtime.resumed == [None, "A", "A", "A", None]


async def test_a_model_that_stays_away_gets_three_tries(make: Make) -> None:
    away: list[Item] = [
        init("A"),
        say("API Error: 529", model="<synthetic>"),
        Own(session="A", is_error=True, status=529),
    ]
    runtime = make(full("A"), away, away, away, ended("B"))
    result, heard = await play(runtime)
    assert result.ok
    assert completed(heard).payload["degraded"] is True


async def test_the_turn_that_writes_is_short_whatever_the_spec_says(make: Make) -> None:
    runtime = make(full("A"), wrote("A"), ended("B"))
    await play(runtime, AgentSpec(name="work", instructions="", max_turns=500))
    assert [client.options.max_turns for client in runtime.clients] == [500, 4, 500]


async def test_one_huge_prompt_is_not_taken_for_a_small_window(make: Make) -> None:
    lost: list[Item] = [
        *(init("A"), at(34_000), say("Prompt is too long", model="<synthetic>")),
        Own(session="A", is_error=True, reason="prompt_too_long", status=400),
    ]
    result, _ = await play(make(lost, ended("B")))
    assert result.ok
    assert calibrated_window() is None


async def test_a_successor_is_told_of_once_the_store_knows_it(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until then only the session before it can be gone on with, and a kill must find that one."""
    told: list[tuple[str, bool]] = []
    stored: set[str] = set()
    script: list[Item] = [init("B"), say("one"), lambda: stored.add("B"), say("two"), Own(session="B")]
    runtime = make(full("A"), wrote("A"), script)
    monkeypatch.setattr(runtime, "has_session", stored.__contains__)
    runtime.on_session = lambda session: told.append((session, session in stored))
    await play(runtime)
    assert told == [("A", False), ("B", True)]


async def test_words_that_nobody_heard_go_to_the_successor(make: Make) -> None:
    """The turn that carries them overflows: the degraded document alone would not hold them."""
    runtime: ScriptedRuntime
    first: list[Item] = [
        init("A"),
        say("x", message_id="1"),
        lambda: runtime.interrupt("only in Rust"),
        boundary(),
        Until(),
    ]
    over: list[Item] = [init("A"), Own(session="A", is_error=True, reason="prompt_too_long")]
    runtime = make(first, over, ended("B"))
    result, _ = await play(runtime)
    assert result.ok
    assert runtime.resumed == [None, "A", None]
    assert "only in Rust" in runtime.prompts[2]
