"""The scripted server refuses what the real API would refuse."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flower.testing.request_rules import flaws
from tests.flower.testing.messages import body, gives, says, user, uses

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
BLOCKS = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "tool_use", "tool_result", "thinking", "image", 3])},
    optional={"id": JSON, "tool_use_id": JSON, "text": JSON, "content": JSON, "signature": JSON},
)
MESSAGES = st.fixed_dictionaries(
    {}, optional={"role": st.sampled_from(["user", "assistant", "system", 1]), "content": JSON | st.lists(BLOCKS)}
)


@pytest.mark.parametrize(
    ("request_body", "flaw"),
    [
        (None, "the request body is not a JSON object"),
        ([], "the request body is not a JSON object"),
        ({**body(user("hi")), "model": ""}, "model: Field required"),
        ({**body(user("hi")), "max_tokens": 0}, "max_tokens: must be a positive number"),
        (body(), "messages: at least one message is required"),
        (body(says("hi"), user("x")), "messages: first message must use the user role"),
        (body(user("hi"), says("x")), "messages: the conversation must end with a user message"),
        (body(user("x"), {"role": "tool", "content": "x"}, user("x")), "messages.1: role must be user or assistant"),
        (body({"role": "user", "content": []}), "messages.0: all messages must have non-empty content"),
        (body(user("hi", "")), "messages.0.content.1: text content blocks must be non-empty"),
        (
            body(user("hi"), uses("Bash", "t1"), user("no")),
            "tool_use ids were found without tool_result blocks immediately after: t1",
        ),
        (body(user("hi"), says("x"), gives("t9", "y")), "unexpected tool_use_id found in tool_result blocks: t9"),
        (
            body(user("hi"), uses("Bash", "t1"), gives("t1", "y"), says("x"), gives("t1", "y")),
            "unexpected tool_use_id found in tool_result blocks: t1",
        ),
        (
            body(user("hi"), uses("Bash", "t1"), gives("t1", "y"), gives("t1", "y")),
            "each tool_use must have a single result, found several for: t1",
        ),
        (
            body(user("hi"), uses("Bash", "t1"), gives("t1", "y"), uses("Bash", "t1"), gives("t1", "y")),
            "tool_use ids must be unique: t1",
        ),
        (
            body(user("hi"), uses("Bash", "t1"), user("first"), gives("t1", "y")),
            "tool_result blocks must come first in the message that follows tool_use blocks",
        ),
        (
            body(user("hi"), {"role": "assistant", "content": [{"type": "thinking", "thinking": "x"}]}, user("x")),
            "messages.1.content.0: thinking blocks need their signature",
        ),
        (body(user("hi"), tools=("Bash", "Bash")), "tools: names must be unique, found twice: Bash"),
        (body(user("hi"), tools=("a b",)), "tools: 'a b' is no name of a tool"),
        (
            body(
                *({"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {}}]} for _ in range(5))
            ),
            "",
        ),
        (
            body(
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}} for _ in range(5)
                    ],
                }
            ),
            "a maximum of 4 blocks with cache_control may be provided, found 5",
        ),
    ],
)
def test_a_request_that_the_api_would_refuse_is_named(request_body: Any, flaw: str) -> None:
    assert flaws(request_body) == ([flaw] if flaw else [])


@pytest.mark.parametrize(
    "sound",
    [
        body(user("hi")),
        body({"role": "user", "content": "hi"}),
        body(user("hi"), says("x"), user("again")),
        body(user("hi"), uses("Bash", "t1"), gives("t1", "out", then="and more")),
        # The program splits one answer over two messages after a resume, and puts system messages in between.
        body(user("hi"), says("I run it"), uses("Bash", "t1"), gives("t1", "out"), user("go on")),
        body(user("hi"), {"role": "system", "content": "# Environment"}, says("x"), user("again")),
    ],
)
def test_what_the_bundled_program_really_sends_is_sound(sound: dict[str, Any]) -> None:
    assert flaws(sound) == []


@given(
    JSON
    | st.fixed_dictionaries({}, optional={"messages": st.lists(MESSAGES), "tools": JSON, "system": JSON, "model": JSON})
)
def test_judging_never_raises(request_body: Any) -> None:
    assert all(isinstance(flaw, str) for flaw in flaws(request_body))
