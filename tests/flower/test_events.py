"""Events: what each SDK message says, and that nothing makes `normalize` raise (behaviour 4)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, get_args

import pytest
from claude_agent_sdk import (
    AssistantMessage,
    ConversationResetMessage,
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

from flower.core.events import Event, EventKind, normalize


@dataclass
class Usage:
    """A usage that is an object, as older SDKs had it."""

    input_tokens: int = 3
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int = 4


def assistant(*blocks: Any, **kw: Any) -> AssistantMessage:
    return AssistantMessage(content=list(blocks), model=kw.pop("model", "claude-sonnet-5-5"), **kw)


def result(**kw: Any) -> ResultMessage:
    facts = {"subtype": "success", "duration_ms": 1, "duration_api_ms": 1, "is_error": False, "num_turns": 2}
    return ResultMessage(**{**facts, "session_id": "S", "total_cost_usd": 0.25, **kw})


def kinds(message: Any) -> list[str]:
    return [event.kind for event in normalize(message)]


def payload(message: Any) -> dict[str, Any]:
    (event,) = normalize(message)
    return event.payload


def test_there_are_fifteen_kinds() -> None:
    assert sorted(get_args(EventKind)) == [
        "ask",
        "error",
        "handoff",
        "prompt",
        "reset",
        "result",
        "retry",
        "step",
        "system",
        "task",
        "text",
        "thinking",
        "tool_call",
        "tool_result",
        "unknown",
    ]


@pytest.mark.parametrize(
    ("event", "shown"),
    [
        (Event("tool_call", "ls", "Bash"), "[Bash] ls"),
        (Event("tool_call", "", "Agent"), "[Agent] "),
        (Event("text", "hello"), "hello"),
        (Event("task"), "<task>"),
    ],
)
def test_an_event_shows_itself_in_one_line(event: Event, shown: str) -> None:
    assert str(event) == shown


def test_each_event_has_a_payload_of_its_own() -> None:
    assert Event("text").payload is not Event("text").payload


def test_blocks_become_events_in_their_order() -> None:
    message = assistant(TextBlock("a"), ThinkingBlock("b", "sig"), ToolUseBlock("t1", "Bash", {"command": "ls"}))
    assert [(e.kind, e.text, e.tool) for e in normalize(message)] == [
        ("text", "a", ""),
        ("thinking", "b", ""),
        ("tool_call", "ls", "Bash"),
    ]


def test_a_tool_call_carries_id_and_input() -> None:
    assert payload(assistant(ToolUseBlock("t1", "Write", {"file_path": "/x", "content": "y"}))) == {
        "id": "t1",
        "input": {"file_path": "/x", "content": "y"},
        "subagent": False,
        "model": "claude-sonnet-5-5",
    }


@pytest.mark.parametrize(
    ("given_input", "summary"),
    [
        ({"command": "ls", "file_path": "/a"}, "/a"),
        ({"file_path": "", "command": "x" * 300}, "x" * 200),
        ({"pattern": "*.py"}, "*.py"),
        ({"prompt": "do it"}, ""),
        ({"command": 7}, "7"),
        ("no dict", ""),
    ],
)
def test_a_tool_call_is_summed_up_by_its_first_telling_input(given_input: Any, summary: str) -> None:
    (event,) = normalize(assistant(ToolUseBlock("t1", "T", given_input)))
    assert event.text == summary


def test_what_a_user_message_says_is_a_prompt_and_never_text() -> None:
    assert kinds(UserMessage(content="go")) == ["prompt"]
    assert kinds(UserMessage(content=[TextBlock("go")])) == ["prompt"]


@pytest.mark.parametrize(
    ("content", "text"), [("x" * 900, "x" * 500), ([{"type": "text", "text": "a"}], ""), (None, "")]
)
def test_a_tool_result_shows_the_head_of_a_text(content: Any, text: str) -> None:
    (event,) = normalize(UserMessage(content=[ToolResultBlock("t1", content, is_error=None)]))
    assert (event.kind, event.text) == ("tool_result", text)
    assert event.payload == {"tool_use_id": "t1", "is_error": False, "subagent": False}


def test_a_failed_tool_result_says_so() -> None:
    assert payload(UserMessage(content=[ToolResultBlock("t1", "no", is_error=True)]))["is_error"] is True


def test_a_subagents_message_is_marked_with_the_call_that_sent_it() -> None:
    assert payload(assistant(TextBlock("a"), parent_tool_use_id="toolu_1", model="m")) == {
        "subagent": True,
        "parent_tool_use_id": "toolu_1",
        "model": "m",
    }


@pytest.mark.parametrize(
    ("usage", "context"),
    [
        ({"input_tokens": 1, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 300}, 321),
        ({"input_tokens": 5, "cache_read_input_tokens": None}, 5),
        ({"output_tokens": 9}, 0),
        (Usage(), 7),
    ],
)
def test_the_context_is_the_sum_of_the_three_inputs(usage: Any, context: int) -> None:
    assert payload(assistant(TextBlock("a"), usage=usage))["context"] == context


@pytest.mark.parametrize("usage", [None, {}])
def test_without_usage_there_is_no_context(usage: Any) -> None:
    assert "context" not in payload(assistant(TextBlock("a"), usage=usage))


def test_a_synthetic_message_is_one_error_and_no_text() -> None:
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
def test_an_api_error_is_known_by_any_of_its_marks(name: str, value: Any) -> None:
    message = assistant(TextBlock("lost"))
    setattr(message, name, value)
    assert kinds(message) == ["error"]


def test_an_api_error_may_have_text_for_content() -> None:
    message = assistant(model="<synthetic>")
    message.content = "gone"  # type: ignore[assignment]  # the bundled program has sent such
    assert [str(event) for event in normalize(message)] == ["gone"]


def test_a_result_tells_session_cost_and_turns() -> None:
    (event,) = normalize(result(subtype="error_max_turns", is_error=True))
    assert (event.kind, event.text) == ("result", "error_max_turns")
    assert event.payload == {"session_id": "S", "cost_usd": 0.25, "num_turns": 2, "is_error": True}


TASKS: dict[str, Any] = {"data": {"a": 1}, "uuid": "u", "session_id": "S", "task_id": "t"}


@pytest.mark.parametrize(
    "message",
    [
        TaskStartedMessage(subtype="task_started", description="d", **TASKS),
        TaskProgressMessage(subtype="task_progress", description="d", usage={}, **TASKS),  # type: ignore[typeddict-item]
        TaskUpdatedMessage(subtype="task_updated", patch={}, **TASKS),
    ],
    ids=lambda message: type(message).__name__,
)
def test_task_messages_are_tasks_although_they_are_system_messages(message: Any) -> None:
    (event,) = normalize(message)
    assert isinstance(message, SystemMessage)
    assert (event.kind, event.text, event.payload) == ("task", "", {"kind": type(message).__name__})


def test_any_other_system_message_is_told_with_a_copy_of_its_data() -> None:
    data = {"session_id": "S", "tools": ["Read"]}
    (event,) = normalize(SystemMessage(subtype="init", data=data))
    assert (event.kind, event.text, event.payload) == ("system", "init", data)
    assert event.payload is not data


def test_a_finished_task_is_a_system_message() -> None:
    message = TaskNotificationMessage(
        subtype="task_notification", status="completed", output_file="", summary="", **TASKS
    )
    assert kinds(message) == ["system"]


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
def test_a_compaction_is_a_reset(subtype: str, data: dict[str, Any], text: str, facts: tuple[Any, ...]) -> None:
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


def test_a_conversation_reset_is_a_reset_without_facts() -> None:
    (event,) = normalize(ConversationResetMessage(new_conversation_id="n", uuid="u", session_id="S"))
    assert (event.kind, event.text, event.payload) == ("reset", "conversation reset", {})


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
def test_what_is_not_known_is_unknown_and_named(message: Any) -> None:
    (event,) = normalize(message)
    assert (event.kind, event.text, event.payload) == ("unknown", type(message).__name__, {})


def test_a_block_that_is_not_known_says_nothing() -> None:
    assert normalize(assistant(ServerToolUseBlock("id", "web_search", {}))) == []


def test_content_that_is_neither_text_nor_list_says_nothing() -> None:
    message = assistant()
    message.content = None  # type: ignore[assignment]  # bad input first
    assert normalize(message) == []


def test_what_json_cannot_hold_becomes_the_name_of_its_type() -> None:
    given_input = {"a": object(), 3: (1, 2), "deep": {"x": {1, 2}}}
    assert payload(assistant(ToolUseBlock("t", "T", given_input)))["input"] == {  # type: ignore[arg-type]
        "a": "object",
        "3": [1, 2],
        "deep": {"x": "set"},
    }


def test_a_structure_without_end_is_cut() -> None:
    endless: dict[str, Any] = {}
    endless["self"] = endless
    json.dumps(payload(SystemMessage(subtype="odd", data=endless)))


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
def test_no_message_makes_it_raise_and_every_event_can_be_written_as_json(message: Any) -> None:
    for event in normalize(message):
        json.dumps([event.kind, event.text, event.tool, event.payload], ensure_ascii=False)
        assert isinstance(event.text, str)
