"""Answers on the wire: the order of events, and that a stream says what the whole message says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flower.testing.answer import Answer, Beat, charged_when_lost, error_body

USAGE = {"input_tokens": 3, "cache_creation_input_tokens": 5, "cache_read_input_tokens": 7, "output_tokens": 11}
INPUTS = st.dictionaries(
    st.text(max_size=8), st.text(max_size=20) | st.integers() | st.lists(st.booleans()), max_size=3
)
BLOCKS = st.lists(
    st.builds(lambda text: {"type": "text", "text": text}, st.text(min_size=1, max_size=40))
    | st.builds(
        lambda text: {"type": "thinking", "thinking": text, "signature": "c2ln"}, st.text(min_size=1, max_size=40)
    )
    | st.builds(lambda given: {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": given}, INPUTS),
    max_size=4,
)


def answer(*blocks: dict[str, Any], pace: float | None = None) -> Answer:
    return Answer(id="msg_1", model="claude-sonnet-5-5", blocks=blocks, stop="end_turn", usage=USAGE, pace=pace)


def put_together(beats: list[Beat]) -> dict[str, Any]:
    """Do what a client of the API does with a stream."""
    message: dict[str, Any] = {}
    json_parts: dict[int, str] = {}
    for beat in beats:
        data: Any = json.loads(beat.encoded().decode().partition("\ndata: ")[2])
        assert data["type"] == beat.name
        match beat.name:
            case "message_start":
                message = data["message"]
            case "content_block_start":
                assert data["index"] == len(message["content"])
                message["content"].append(data["content_block"])
            case "content_block_delta":
                block, delta = message["content"][data["index"]], data["delta"]
                if delta["type"] == "input_json_delta":
                    json_parts[data["index"]] = json_parts.get(data["index"], "") + delta["partial_json"]
                else:
                    field = delta["type"].removesuffix("_delta")
                    block[field] += delta[field]
            case "message_delta":
                message |= data["delta"]
                message["usage"] |= data["usage"]
    for index, text in json_parts.items():
        message["content"][index]["input"] = json.loads(text)
    return message


def test_the_events_come_in_the_order_of_the_api() -> None:
    beats = list(
        answer({"type": "text", "text": "hi"}, {"type": "tool_use", "id": "t", "name": "Bash", "input": {}}).beats()
    )
    assert [beat.name for beat in beats] == [
        "message_start",
        *("content_block_start", "content_block_delta", "content_block_stop"),
        *("content_block_start", "content_block_delta", "content_block_stop"),
        "message_delta",
        "message_stop",
    ]


def test_half_a_surrogate_pair_goes_over_the_wire_as_a_model_would_send_it() -> None:
    beats = list(answer({"type": "text", "text": "a\ud800b"}).beats())
    assert put_together(beats)["content"] == [{"type": "text", "text": "a\ud800b"}]


def test_an_event_is_encoded_as_server_sent_events_are() -> None:
    assert Beat(name="ping", data={}).encoded() == b'event: ping\ndata: {"type": "ping"}\n\n'


@given(BLOCKS, st.none() | st.floats(1, 500))
def test_a_stream_says_what_the_whole_message_says(blocks: list[dict[str, Any]], pace: float | None) -> None:
    made = answer(*blocks, pace=pace)
    assert put_together(list(made.beats())) == made.message()


def test_text_comes_at_its_pace_and_tool_input_at_once() -> None:
    made = answer(
        {"type": "text", "text": "x" * 100},
        {"type": "tool_use", "id": "t", "name": "B", "input": {"a": "y" * 900}},
        pace=50,
    )
    waits = [beat.wait for beat in made.beats() if beat.name == "content_block_delta"]
    assert sum(waits) == pytest.approx(2.0)
    assert waits[-1] == 0.0
    assert max(waits) == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("blocks", "events", "tokens"),
    [
        # Measured on the bundled program: it was cut after so many events and named its cost.
        ([{"type": "text", "text": "a"}], 1, 1),
        ([{"type": "text", "text": "aaaa"}], 3, 1),
        ([{"type": "text", "text": "a" * 10}], 3, 3),
        ([{"type": "text", "text": "a" * 500}], 3, 167),
        ([{"type": "text", "text": "a" * 50}, {"type": "text", "text": "b" * 50}], 6, 34),
        ([{"type": "thinking", "thinking": "a" * 400, "signature": "c2ln"}], 4, 133),
        ([{"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "a" * 50}}], 3, 23),
        ([{"type": "text", "text": "好" * 50}], 3, 17),
    ],
)
def test_a_lost_answer_is_charged_as_the_program_charges_it(
    blocks: list[dict[str, Any]], events: int, tokens: int
) -> None:
    assert charged_when_lost(list(answer(*blocks).beats())[:events]) == tokens


@pytest.mark.parametrize(("events", "tokens"), [(1, 0), (4, 0), (5, 0), (6, 1), (7, 1), (8, 1)])
def test_an_answer_broken_by_an_error_event_costs_only_where_something_is_kept(events: int, tokens: int) -> None:
    made = answer({"type": "thinking", "thinking": "Hm.", "signature": "x"}, {"type": "text", "text": "a" * 90})
    assert charged_when_lost(list(made.beats())[:events], broke=True) == tokens


def test_a_text_that_breaks_before_its_end_costs_nothing() -> None:
    beats = list(answer({"type": "text", "text": "a" * 90}).beats())
    assert [charged_when_lost(beats[:events], broke=True) for events in (1, 2, 3, 4)] == [0, 0, 0, 1]


def test_an_answer_that_never_began_costs_nothing() -> None:
    assert charged_when_lost([]) == 0


def test_an_error_body_names_its_type() -> None:
    assert error_body(529, "busy", request="r1") == {
        "type": "error",
        "error": {"type": "overloaded_error", "message": "busy"},
        "request_id": "r1",
    }
    assert error_body(418, "tea")["error"]["type"] == "invalid_request_error"
    assert error_body(503, "x")["error"]["type"] == "api_error"
