"""Behaviour 28.1, each item a test:

*Events:* each SDK class → expected kinds; subagent marks; synthetic error gives one `error` and no text; user text is
`prompt`; context sum with dict and object usage; both compact subtypes, both key styles; task classes before system;
JSON-serialisability of every payload; `str()` forms; unknown objects never raise.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import pytest
from claude_agent_sdk import (
    AssistantMessage,
    ConversationResetMessage,
    HookEventMessage,
    MirrorErrorMessage,
    RateLimitEvent,
    RateLimitInfo,
    ResultMessage,
    ServerToolUseBlock,
    StreamEvent,
    SystemMessage,
    TaskNotificationMessage,
    TaskProgressMessage,
    TaskStartedMessage,
    TaskUpdatedMessage,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)
from hypothesis import given
from hypothesis import strategies as st

from flower.core.agent import AgentSpec
from flower.core.events import Event, EventKind, normalize
from flower.core.human import HumanChannel
from flower.workflow.base import Step, Workflow
from flower.workflow.goal import goal_step
from tests.fakes.client import Own, Until, init, say
from tests.fakes.runtime import FakeRuntime
from tests.flower.scene import Make, lost


@dataclass
class Usage:
    """A usage that is an object, as older SDKs had it."""

    input_tokens: int = 3
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int = 4


TASKS: dict[str, Any] = {"data": {"a": 1}, "uuid": "u", "session_id": "S", "task_id": "t"}
RESULT: dict[str, Any] = {"subtype": "success", "duration_ms": 1, "duration_api_ms": 1, "num_turns": 2}
STARTED = TaskStartedMessage(subtype="task_started", description="d", **TASKS)
UPDATED = TaskUpdatedMessage(subtype="task_updated", patch={}, **TASKS)
PROGRESS = TaskProgressMessage(
    subtype="task_progress",
    description="d",
    usage={"total_tokens": 1, "tool_uses": 1, "duration_ms": 1},
    **TASKS,
)
FINISHED = TaskNotificationMessage(subtype="task_notification", status="completed", output_file="", summary="", **TASKS)
RESET = ConversationResetMessage(new_conversation_id="n", uuid="u", session_id="S")


def assistant(*blocks: Any, **kw: Any) -> AssistantMessage:
    return AssistantMessage(content=list(blocks), model=kw.pop("model", "claude-sonnet-5-5"), **kw)


def kinds(message: Any) -> list[str]:
    return [event.kind for event in normalize(message)]


def payload(message: Any) -> dict[str, Any]:
    (event,) = normalize(message)
    return event.payload


# -- each SDK class → expected kinds ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (assistant(TextBlock("a")), ["text"]),
        (assistant(ThinkingBlock("a", "sig")), ["thinking"]),
        (assistant(ToolUseBlock("t1", "Bash", {})), ["tool_call"]),
        (
            assistant(ThinkingBlock("a", "s"), TextBlock("b"), ToolUseBlock("t", "T", {})),
            ["thinking", "text", "tool_call"],
        ),
        (assistant(ServerToolUseBlock("t1", "web_search", {})), []),
        (assistant(TextBlock("lost"), model="<synthetic>"), ["error"]),
        (UserMessage(content="go"), ["prompt"]),
        (UserMessage(content=[ToolResultBlock("t1", "x"), TextBlock("y")]), ["tool_result", "prompt"]),
        (ResultMessage(is_error=False, session_id="S", total_cost_usd=0.25, **RESULT), ["result"]),
        (STARTED, ["task"]),
        (PROGRESS, ["task"]),
        (UPDATED, ["task"]),
        (FINISHED, ["system"]),
        (RESET, ["reset"]),
        (SystemMessage(subtype="init", data={}), ["system"]),
        (SystemMessage(subtype="compact_boundary", data={}), ["reset"]),
        (SystemMessage(subtype="microcompact_boundary", data={}), ["reset"]),
        (MirrorErrorMessage(subtype="mirror_error", data={}, key=None, error="disk full"), ["system"]),
        (HookEventMessage(subtype="hook_started", data={}, hook_event_name="Stop"), ["system"]),
        (StreamEvent(uuid="u", session_id="S", event={}), ["unknown"]),
        (RateLimitEvent(rate_limit_info=RateLimitInfo(status="allowed"), uuid="u", session_id="S"), ["unknown"]),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, list) else "+".join(value) or "nothing",
)
def test_each_sdk_class_gives_the_expected_kinds(message: Any, expected: list[str]) -> None:
    assert kinds(message) == expected


# -- subagent marks -----------------------------------------------------------------------------------------------


def test_subagent_marks() -> None:
    assert payload(assistant(TextBlock("a"), parent_tool_use_id="toolu_1", model="m")) == {
        "subagent": True,
        "parent_tool_use_id": "toolu_1",
        "model": "m",
    }


def test_subagent_marks_are_on_every_event_of_a_message_and_say_no_on_the_main_thread() -> None:
    blocks = [TextBlock("a"), ThinkingBlock("b", "s"), ToolUseBlock("t", "T", {})]
    below = normalize(assistant(*blocks, parent_tool_use_id="toolu_1"))
    above = normalize(assistant(*blocks))
    assert [event.payload["parent_tool_use_id"] for event in below] == ["toolu_1"] * 3
    assert [event.payload["subagent"] for event in (*below, *above)] == [True] * 3 + [False] * 3
    assert not any("parent_tool_use_id" in event.payload for event in above)


# -- synthetic error gives one `error` and no text ----------------------------------------------------------------


def test_synthetic_error_gives_one_error_and_no_text() -> None:
    message = assistant(TextBlock("API Error: "), TextBlock("Overloaded"), model="<synthetic>")
    (event,) = normalize(message)
    assert (event.kind, event.text, event.payload) == ("error", "API Error: Overloaded", {"synthetic": True})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("isApiErrorMessage", True),
        ("raw", {"isApiErrorMessage": True}),
        ("_raw", {"message": {"model": "<synthetic>"}}),
    ],
)
def test_synthetic_error_is_known_by_any_of_its_marks(name: str, value: Any) -> None:
    message = assistant(TextBlock("lost"))
    setattr(message, name, value)
    assert kinds(message) == ["error"]


# -- user text is `prompt` ----------------------------------------------------------------------------------------


def test_user_text_is_prompt() -> None:
    assert kinds(UserMessage(content="go")) == ["prompt"]
    assert kinds(UserMessage(content=[TextBlock("go")])) == ["prompt"]


# -- context sum with dict and object usage -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("usage", "context"),
    [
        ({"input_tokens": 1, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 300}, 321),
        ({"input_tokens": 5, "cache_read_input_tokens": None}, 5),
        ({"output_tokens": 9}, 0),
        (Usage(), 7),
    ],
)
def test_context_sum_with_dict_and_object_usage(usage: Any, context: int) -> None:
    assert payload(assistant(TextBlock("a"), usage=usage))["context"] == context


@pytest.mark.parametrize("usage", [None, {}])
def test_context_is_absent_without_usage(usage: Any) -> None:
    assert "context" not in payload(assistant(TextBlock("a"), usage=usage))


# -- both compact subtypes, both key styles -----------------------------------------------------------------------


@pytest.mark.parametrize(("subtype", "word"), [("compact_boundary", "压缩"), ("microcompact_boundary", "微压缩")])
@pytest.mark.parametrize(
    "data",
    [
        {"compact_metadata": {"trigger": "auto", "pre_tokens": 9, "post_tokens": 2}},
        {"compactMetadata": {"trigger": "auto", "preTokens": 9, "postTokens": 2}},
        {"compact_metadata": {"trigger": "auto", "preTokens": 9, "postTokens": 2}},
        {"compactMetadata": {"trigger": "auto", "pre_tokens": 9, "post_tokens": 2}},
    ],
    ids=["snake", "camel", "snake with camel keys", "camel with snake keys"],
)
def test_both_compact_subtypes_both_key_styles(subtype: str, word: str, data: dict[str, Any]) -> None:
    (event,) = normalize(SystemMessage(subtype=subtype, data=data))
    assert (event.kind, event.text) == ("reset", f"{word}(auto) 9 → 2 tokens")
    assert event.payload == {
        "trigger": "auto",
        "pre_tokens": 9,
        "post_tokens": 2,
        "micro": word == "微压缩",
        "subtype": subtype,
    }


@pytest.mark.parametrize(
    ("subtype", "data", "text", "facts"),
    [
        (
            "compact_boundary",
            {"compact_metadata": {"trigger": "auto", "pre_tokens": 9, "post_tokens": 2}},
            "压缩(auto) 9 → 2 tokens",
            ("auto", 9, 2, False),
        ),
        (
            "microcompact_boundary",
            {"compactMetadata": {"trigger": "manual", "preTokens": 9, "postTokens": 2}},
            "微压缩(manual) 9 → 2 tokens",
            ("manual", 9, 2, True),
        ),
        ("compact_boundary", {}, "压缩(?) None → None tokens", ("?", None, None, False)),
        ("compact_boundary", {"compact_metadata": "odd"}, "压缩(?) None → None tokens", ("?", None, None, False)),
    ],
)
def test_compact_boundaries_also_with_nothing_in_them(
    subtype: str, data: dict[str, Any], text: str, facts: tuple[Any, ...]
) -> None:
    (event,) = normalize(SystemMessage(subtype=subtype, data=data))
    trigger, pre, post, micro = facts
    assert (event.kind, event.text) == ("reset", text)
    assert event.payload == {
        "trigger": trigger,
        "pre_tokens": pre,
        "post_tokens": post,
        "micro": micro,
        "subtype": subtype,
    }


# -- task classes before system -----------------------------------------------------------------------------------


@pytest.mark.parametrize("message", [STARTED, PROGRESS, UPDATED], ids=lambda message: type(message).__name__)
def test_task_classes_before_system(message: Any) -> None:
    (event,) = normalize(message)
    assert isinstance(message, SystemMessage)
    assert (event.kind, event.text, event.payload) == ("task", "", {"kind": type(message).__name__})


# -- JSON-serialisability of every payload ------------------------------------------------------------------------


async def every_kind(make: Make, tmp_path: Path) -> list[Event]:
    """One event of each kind at least, from whoever emits it."""
    events: list[Event] = []
    channel = HumanChannel(on_event=events.append, timeout_s=0)
    await channel.ask("Q?", ["A", "B"])
    channel.send("also this")
    messages = [
        assistant(ThinkingBlock("b", "sig"), ToolUseBlock("t", "T", {"deep": {"x": {1, 2}}, "y": object()})),
        UserMessage(content=[ToolResultBlock("t", "x"), TextBlock("go")]),
        STARTED,
        RESET,
        object(),
    ]
    for message in messages:
        events += normalize(message)
    runtime = make(
        [init(), say("half"), lost(), Own(is_error=True)],
        [init(), lambda: runtime.interrupt("words"), say("unheard"), Until()],
        [init(), say("done"), Own(total=0.25)],
    )
    await Workflow([Step("A", AgentSpec(name="x", instructions=""), "go")]).run(runtime, on_event=events.append)
    goal = "## 目标\nX\n## 判定清单\n- a [此环境无法验证:no screen]"
    await Workflow([goal_step(channel, goal_path=tmp_path / "goal.md")]).run(
        FakeRuntime([goal]), on_event=events.append
    )
    return events


async def test_json_serialisability_of_every_payload(make: Make, tmp_path: Path) -> None:
    """All kinds but `handoff`, which `test_06_handoff.py` writes as JSON."""
    async with asyncio.timeout(10):
        events = await every_kind(make, tmp_path)
    assert {event.kind for event in events} == set(get_args(EventKind)) - {"handoff"}
    for event in events:
        said = [event.kind, event.text, event.tool, event.payload]
        assert json.loads(json.dumps(said, ensure_ascii=False)) == said


# -- `str()` forms ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "shown"),
    [
        (Event("tool_call", "ls", "Bash"), "[Bash] ls"),
        (Event("tool_call", "", "Agent"), "[Agent] "),
        (Event("text", "hello"), "hello"),
        (Event("task"), "<task>"),
    ],
)
def test_str_forms(event: Event, shown: str) -> None:
    assert str(event) == shown


# -- unknown objects never raise ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "message",
    [
        StreamEvent(uuid="u", session_id="S", event={}),
        RateLimitEvent(rate_limit_info=RateLimitInfo(status="allowed"), uuid="u", session_id="S"),
        object(),
        None,
        "a text",
        {"type": "assistant"},
    ],
    ids=lambda message: type(message).__name__,
)
def test_unknown_objects_are_named(message: Any) -> None:
    (event,) = normalize(message)
    assert (event.kind, event.text, event.payload) == ("unknown", type(message).__name__, {})


odd_things = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.builds(object),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.integers(), inner, max_size=3),
    max_leaves=8,
)
blocks = (
    st.builds(TextBlock, st.text())
    | st.builds(ThinkingBlock, st.text(), st.text())
    | st.builds(ToolUseBlock, st.text(), st.text(), odd_things)
    | st.builds(ToolResultBlock, st.text(), odd_things, st.none() | st.booleans())
    | odd_things
)
contents = st.lists(blocks, max_size=4) | odd_things
messages = (
    st.builds(AssistantMessage, contents, st.text(), st.none() | st.text(), usage=odd_things)
    | st.builds(UserMessage, contents)
    | st.builds(SystemMessage, st.sampled_from(["compact_boundary", "init", "microcompact_boundary"]), odd_things)
    | odd_things
)


@given(messages)
def test_unknown_objects_never_raise(message: Any) -> None:
    for event in normalize(message):
        json.dumps([event.kind, event.text, event.tool, event.payload], ensure_ascii=False)
        assert isinstance(event.text, str)
