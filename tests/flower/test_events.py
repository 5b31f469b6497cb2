"""Events: what each SDK message says, and that nothing makes `normalize` raise (behaviour 4)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from claude_agent_sdk import (
    AssistantMessage,
    ConversationResetMessage,
    ResultMessage,
    ServerToolUseBlock,
    SystemMessage,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)

from flower.core.events import Event, normalize


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


@pytest.mark.parametrize(
    ("content", "text"), [("x" * 900, "x" * 500), ([{"type": "text", "text": "a"}], ""), (None, "")]
)
def test_a_tool_result_shows_the_head_of_a_text(content: Any, text: str) -> None:
    (event,) = normalize(UserMessage(content=[ToolResultBlock("t1", content, is_error=None)]))
    assert (event.kind, event.text) == ("tool_result", text)
    assert event.payload == {"tool_use_id": "t1", "is_error": False, "subagent": False}


def test_a_failed_tool_result_says_so() -> None:
    assert payload(UserMessage(content=[ToolResultBlock("t1", "no", is_error=True)]))["is_error"] is True


def test_an_api_error_may_have_text_for_content() -> None:
    message = assistant(model="<synthetic>")
    message.content = "gone"  # type: ignore[assignment]  # the bundled program has sent such
    assert [str(event) for event in normalize(message)] == ["gone"]


def test_a_result_tells_session_cost_and_turns() -> None:
    (event,) = normalize(result(subtype="error_max_turns", is_error=True))
    assert (event.kind, event.text) == ("result", "error_max_turns")
    assert event.payload == {"session_id": "S", "cost_usd": 0.25, "num_turns": 2, "is_error": True}


@pytest.mark.parametrize(("reason", "cut"), [("aborted_tools", True), ("aborted_streaming", True), ("api_error", None)])
def test_the_result_of_a_turn_that_was_cut_says_so(reason: str, cut: bool | None) -> None:
    (event,) = normalize(result(subtype="error_during_execution", is_error=True, terminal_reason=reason))
    assert event.payload.get("cut") is cut


TASKS: dict[str, Any] = {"data": {"a": 1}, "uuid": "u", "session_id": "S", "task_id": "t"}


def test_any_other_system_message_is_told_with_a_copy_of_its_data() -> None:
    data = {"session_id": "S", "tools": ["Read"]}
    (event,) = normalize(SystemMessage(subtype="init", data=data))
    assert (event.kind, event.text, event.payload) == ("system", "init", data)
    assert event.payload is not data


def test_a_conversation_reset_is_a_reset_without_facts() -> None:
    (event,) = normalize(ConversationResetMessage(new_conversation_id="n", uuid="u", session_id="S"))
    assert (event.kind, event.text, event.payload) == ("reset", "conversation reset", {})


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
    told = json.dumps(payload(SystemMessage(subtype="odd", data=endless)))
    assert told.count('"self"') == 40
    assert '"self": "dict"' in told
