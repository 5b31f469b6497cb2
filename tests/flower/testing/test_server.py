"""The scripted model over HTTP, asked by a plain client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from flower.testing import Fault, PortTakenError, ScriptedModel, StoryFailedError, read_log, read_story, same_session
from tests.flower.testing.messages import Message, body, gives, headers, says, user, uses

Story = dict[str, Any]


class Client:
    def __init__(self, http: aiohttp.ClientSession, url: str) -> None:
        self.http, self.url = http, url

    async def ask(self, *messages: Message, session: str = "s1", **more: Any) -> tuple[int, Any]:
        """Ask without a stream."""
        async with self.http.post(
            f"{self.url}/v1/messages", json=body(*messages, **more), headers=headers(session)
        ) as answer:
            return answer.status, await answer.json()

    @asynccontextmanager
    async def stream(self, *messages: Message, session: str = "s1") -> AsyncIterator[aiohttp.ClientResponse]:
        async with self.http.post(
            f"{self.url}/v1/messages", json=body(*messages, stream=True), headers=headers(session)
        ) as answer:
            yield answer

    async def control(self, name: str, data: Any = None) -> tuple[int, Any]:
        method = "GET" if data is None else "POST"
        async with self.http.request(method, f"{self.url}/_story/{name}", json=data) as answer:
            return answer.status, await answer.json()


@asynccontextmanager
async def serving(
    *lines: Any, speed: float = 0.0, strict: bool = True, **more: Any
) -> AsyncIterator[tuple[ScriptedModel, Client]]:
    story = read_story({"parts": {"main": {"lines": list(lines)}}, "usage": {"input": 10, "output": 5}, **more})
    async with (
        ScriptedModel(story, speed=speed, strict=strict) as model,
        aiohttp.ClientSession() as http,
    ):
        yield model, Client(http, model.url)


def names_of(stream: bytes) -> list[str]:
    return [line.removeprefix(b"event: ").decode() for line in stream.splitlines() if line.startswith(b"event: ")]


# -- what is refused ------------------------------------------------------------------------------------------------


async def test_a_request_that_the_story_does_not_know_fails_loudly_and_names_the_part() -> None:
    async with serving({"name": "start", "expect": {"prompt": "please"}, "say": "Yes."}, strict=False) as (
        model,
        client,
    ):
        status, answer = await client.ask(user("do it now"))
    assert status == 400
    assert answer["error"] == {
        "type": "invalid_request_error",
        "message": "scripted model: main.start: expected otherwise: prompt does not hold 'please'; asked: 'do it now'",
    }
    assert [str(failure) for failure in model.failures] == [
        "main.start: expected otherwise: prompt does not hold 'please'; asked: 'do it now'"
    ]


async def test_a_failed_story_fails_its_test() -> None:
    with pytest.raises(StoryFailedError, match=r"the story failed:\n- main\.1: expected otherwise: prompt does not"):
        async with serving({"expect": {"prompt": "please"}, "say": "Yes."}) as (_, client):
            await client.ask(user("now"))


async def test_a_failed_story_does_not_hide_how_the_test_failed() -> None:
    async def fails() -> None:
        async with serving({"expect": {"prompt": "please"}, "say": "Yes."}) as (_, client):
            await client.ask(user("now"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fails()


async def test_a_request_repeated_by_the_program_is_one_failure() -> None:
    async with serving({"expect": {"prompt": "please"}, "say": "Yes."}, strict=False) as (model, client):
        for _ in range(6):
            await client.ask(user("now"))
        await client.ask(user("now"), session="s2")
    assert len(model.failures) == 2


async def test_a_conversation_that_the_api_would_refuse_is_refused() -> None:
    async with serving({"call": {"Bash": {"command": "ls"}}}, "Done.", strict=False) as (model, client):
        _, answer = await client.ask(user("hi"))
        call = answer["content"][0]["id"]
        status, answer = await client.ask(user("hi"), uses("Bash", call), user("go on"))
    assert status == 400
    assert f"tool_use ids were found without tool_result blocks immediately after: {call}" in answer["error"]["message"]
    assert len(model.failures) == 1


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b'"x"', b"\xff"])
async def test_a_body_that_is_no_request_is_refused(raw: bytes) -> None:
    async with serving("Hello.", strict=False) as (model, client):
        async with client.http.post(f"{client.url}/v1/messages", data=raw, headers=headers()) as answer:
            assert answer.status == 400
        assert len(model.failures) == 1


async def test_an_endpoint_that_there_is_not_is_a_failure() -> None:
    async with (
        serving("Hello.", strict=False) as (model, client),
        client.http.get(f"{client.url}/v1/files") as answer,
    ):
        assert answer.status == 404
        assert (await answer.json())["error"]["type"] == "not_found_error"
    assert [failure.why for failure in model.failures] == ["no such endpoint: GET /v1/files"]


async def test_a_taken_port_is_said_to_be_taken() -> None:
    async with serving("Hello.") as (model, _):
        other = ScriptedModel(model.story, port=model.port)
        with pytest.raises(PortTakenError, match=f"port {model.port} on 127.0.0.1 is taken"):
            await other.start()


async def test_who_does_not_listen_cannot_go_away() -> None:
    model = ScriptedModel(read_story({"parts": {"main": {"lines": ["x"]}}}))
    with pytest.raises(RuntimeError, match="not listening"):
        async with model.away():
            pass


async def test_a_token_log_that_cannot_be_written_stops_the_start(tmp_path: Path) -> None:
    model = ScriptedModel(read_story({"parts": {"main": {"lines": ["x"]}}}), token_log=tmp_path / "none" / "log")
    with pytest.raises(FileNotFoundError):
        await model.start()


# -- answers --------------------------------------------------------------------------------------------------------


async def test_a_request_without_a_stream_gets_the_whole_message() -> None:
    async with serving({"think": "Hm.", "say": "I run it.", "call": {"Bash": {"command": "ls"}}}) as (_, client):
        status, answer = await client.ask(user("hi"))
    assert status == 200
    call = answer["content"][2].pop("id")
    assert call.startswith("toolu_")
    assert answer["content"] == [
        {"type": "thinking", "thinking": "Hm.", "signature": "c2NyaXB0ZWQ="},
        {"type": "text", "text": "I run it."},
        {"type": "tool_use", "name": "Bash", "input": {"command": "ls"}},
    ]
    assert (answer["stop_reason"], answer["model"]) == ("tool_use", "claude-sonnet-5-5")
    assert answer["usage"] == {
        "input_tokens": 10,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": 5,
    }


async def test_a_request_with_a_stream_gets_events() -> None:
    async with serving("Hello.") as (model, client), client.stream(user("hi")) as answer:
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert answer.headers["request-id"] == "req_scripted000001"
        assert names_of(await answer.read())[-2:] == ["message_delta", "message_stop"]
        assert [each.outcome for each in model.requests] == ["served"]


async def test_the_story_goes_on_over_several_requests() -> None:
    async with serving({"call": {"Bash": {"command": "ls"}}}, {"expect": {"result": "a file"}, "say": "Seen."}) as (
        _,
        client,
    ):
        _, answer = await client.ask(user("hi"))
        call = answer["content"][0]["id"]
        _, answer = await client.ask(user("hi"), uses("Bash", call), gives(call, "a file"))
    assert answer["content"] == [{"type": "text", "text": "Seen."}]


async def test_count_tokens_and_models_are_answered() -> None:
    async with serving("Hello.") as (_, client):
        async with client.http.post(f"{client.url}/v1/messages/count_tokens", data=b"x" * 400) as answer:
            assert await answer.json() == {"input_tokens": 100}
        async with client.http.get(f"{client.url}/v1/models") as answer:
            assert await answer.json() == {"data": [], "has_more": False, "first_id": None, "last_id": None}


async def test_a_probe_of_the_credential_is_answered_and_is_no_part_of_the_story() -> None:
    async with serving({"expect": {"prompt": "please"}, "say": "Yes."}) as (model, client):
        probe = {"model": "claude-opus-5-5", "max_tokens": 16, "messages": [{"role": "user", "content": "hi"}]}
        async with client.http.post(f"{client.url}/v1/messages", json=probe) as answer:
            assert answer.status == 200
        assert model.requests == []


# -- what a test can ask --------------------------------------------------------------------------------------------


async def test_waiting_for_a_request_returns_before_it_is_answered() -> None:
    async with serving("Hello.") as (model, client), asyncio.TaskGroup() as group:
        async with model.paused("main"):
            answer = group.create_task(client.ask(user("hi")))
            asked = await model.asked("main")
            assert (asked.prompt, asked.outcome, answer.done()) == ("hi", "waiting", False)
        assert (await answer)[0] == 200
        assert asked.outcome == "served"


async def test_waiting_for_what_does_not_come_says_what_came() -> None:
    async with serving("Hello.", {"name": "two", "say": "Two."}) as (model, client):
        await client.ask(user("hi"))
        with pytest.raises(TimeoutError, match=r"main\.two was asked 0 times in 0\.01 s, not 1; last: main\.1"):
            await model.asked("main.two", timeout=0.01)


@pytest.mark.parametrize("what", ["nobody", "main.nothing"])
async def test_waiting_for_what_the_story_does_not_have_fails_at_once(what: str) -> None:
    async with serving("Hello.") as (model, _):
        with pytest.raises(KeyError, match=r"there are (main|1)"):
            await model.asked(what)
        with pytest.raises(KeyError):
            model.pause(what)


async def test_a_point_that_the_run_does_not_reach_says_so_and_holds_up_nobody_afterwards() -> None:
    async with serving("Hello.", {"name": "two", "say": "Two."}) as (model, client):
        with pytest.raises(TimeoutError, match=r"main\.two was asked 0 times"):
            async with model.at("main.two", timeout=0.01):
                raise AssertionError("nobody is there")
        assert model.state()["paused"] == []
        assert (await client.ask(user("hi")))[0] == 200


async def test_the_story_is_held_at_a_point_and_earlier_requests_pass() -> None:
    async with serving("One.", "Two.") as (model, client), asyncio.TaskGroup() as group:

        async def run() -> int:
            await client.ask(user("hi"))
            return (await client.ask(user("hi"), says("One."), user("go")))[0]

        first = group.create_task(client.ask(user("early"), session="s2"))
        async with model.at("main"):
            assert model.requests[0].outcome == "waiting"
        await first
        running = group.create_task(run())
        async with model.at("main", 3) as asked:
            assert (asked.prompt, asked.outcome) == ("go", "waiting")
            assert model.requests[1].outcome == "served"
        assert await running == 200


async def test_requests_of_one_session_are_known_as_such() -> None:
    async with serving("One.", "Two.") as (model, client):
        await client.ask(user("hi"))
        await client.ask(user("hi"), says("One."), user("go"))
        await client.ask(user("hi"), session="s2")
    first, second, other = model.requests
    assert same_session(first, second)
    assert not same_session(first, other)
    assert model.asked_of("main.1", session="s2") == [other]


async def test_the_name_of_a_place_stands_for_its_alternatives() -> None:
    fork = {"name": "fork", "either": [{"when": {"prompt": "left"}, "say": "L."}, "R."]}
    async with serving(fork) as (model, client):
        await client.ask(user("right"))
    assert [each.label for each in model.asked_of("main.fork")] == ["main.fork/2"]
    assert len(model.asked_of("main.fork/2")) == 1


# -- faults ---------------------------------------------------------------------------------------------------------


async def test_an_error_of_a_line_comes_so_many_times_in_each_conversation() -> None:
    line = {"say": "Hello.", "fail": {"status": 529, "message": "busy", "times": 2}}
    async with serving(line) as (_, client):
        seen = [(await client.ask(user("hi"), session=session))[0] for session in ("a", "a", "b", "a", "b", "b")]
    assert seen == [529, 529, 529, 200, 529, 200]


async def test_a_rate_limit_says_when_to_come_again() -> None:
    async with (
        serving({"say": "Hello.", "fail": {"status": 429, "retry_after": 7}}) as (_, client),
        client.stream(user("hi")) as answer,
    ):
        assert (answer.status, answer.headers["retry-after"]) == (429, "7")
        assert (await answer.json())["error"]["type"] == "rate_limit_error"


async def test_a_stream_can_break_in_the_middle() -> None:
    async with serving({"say": "Hello.", "break": {"after": 2, "message": "overloaded"}}) as (model, client):
        async with client.stream(user("hi")) as answer:
            assert names_of(await answer.read()) == ["message_start", "content_block_start", "error"]
        assert (model.requests[0].outcome, model.tokens) == ("break", [])
        assert (await client.ask(user("hi")))[0] == 200


@pytest.mark.parametrize(("after", "charged"), [(0, []), (3, [2])])
async def test_a_connection_can_be_dropped(after: int, charged: list[int]) -> None:
    async with serving({"say": "Hello.", "drop": {"after": after}}) as (model, client):
        with pytest.raises(aiohttp.ClientError):
            async with client.stream(user("hi")) as answer:
                await answer.read()
        await model.settled()
        assert model.requests[0].outcome == "drop"
        assert [entry.output for entry in model.tokens if entry.cut] == charged


async def test_a_request_can_hang_and_ends_when_the_program_leaves() -> None:
    async with serving({"say": "Hello.", "hang": {"after": 1, "pings": 0.01}}) as (model, client):
        async with client.stream(user("hi")) as answer:
            heard = b""
            while heard.count(b"event: ping") < 3:
                heard += await answer.content.readany()
        await model.settled()
        # The program charges the beginning of an answer when a person cuts the silence behind it.
        assert [(each.outcome, entry.cut) for each, entry in zip(model.requests, model.tokens, strict=True)] == [
            ("hang", True)
        ]


async def test_a_fault_can_be_put_in_at_any_moment() -> None:
    async with serving("One.", "Two.") as (model, client):
        await client.ask(user("hi"))
        model.inject("main", Fault(kind="error", status=500))
        told = (user("hi"), says("One."), user("go"))
        assert [(await client.ask(*told))[0] for _ in range(2)] == [500, 200]


# -- the token log --------------------------------------------------------------------------------------------------


async def test_a_network_can_be_lost_and_come_back() -> None:
    async with serving({"name": "first", "say": "one"}, "two") as (model, client):
        url = model.url
        async with model.paused("main.first"):
            asking = asyncio.create_task(client.ask(user("go")))
            await model.asked("main.first")
            async with model.away():
                with pytest.raises(aiohttp.ClientError):  # what was in flight
                    await asking
                with pytest.raises(aiohttp.ClientConnectorError):
                    await client.ask(user("go"))
        assert model.url == url
        answers = [await client.ask(user("go")), await client.ask(user("go"), says("one"), user("on"))]
        assert [(status, answer["content"][0]["text"]) for status, answer in answers] == [(200, "one"), (200, "two")]


async def test_every_answer_is_logged_with_its_tokens(tmp_path: Path) -> None:
    story = read_story(
        {"parts": {"main": {"lines": ["One."], "usage": {"input": 1, "output": 2, "cache_read": 3, "cache_write": 4}}}}
    )
    async with ScriptedModel(story, token_log=tmp_path / "log") as model, aiohttp.ClientSession() as http:
        await Client(http, model.url).ask(user("hi"))
    (entry,) = read_log(tmp_path / "log")
    assert model.tokens == [entry]
    assert (entry.session, entry.part, entry.line, entry.model) == ("s1", "main", "1", "claude-sonnet-5-5")
    assert (entry.input, entry.output, entry.cache_read, entry.cache_write, entry.cut) == (1, 2, 3, 4, False)


async def test_an_answer_that_the_program_cut_is_logged_as_such() -> None:
    async with serving({"say": "x" * 3000, "pace": 100}, speed=1.0) as (model, client):
        async with client.stream(user("hi")) as answer:
            heard = b""
            while heard.count(b"content_block_delta") < 4:
                heard += await answer.content.readany()
        await model.settled()
    assert model.requests[0].outcome == "cut"
    (entry,) = model.tokens
    assert entry.cut
    assert 3 <= entry.output <= 30


async def test_a_request_that_the_program_gave_up_before_the_first_byte_costs_nothing() -> None:
    async with serving("Hello.") as (model, client):
        model.pause("main")
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(client.ask(user("hi")))
            asked = await model.asked("main")
            asking.cancel()
        await model.settled()
    assert (asked.outcome, model.tokens) == ("cut", [])


# -- pacing ---------------------------------------------------------------------------------------------------------


async def test_at_speed_zero_nobody_waits_and_at_another_the_delays_are_kept() -> None:
    loop = asyncio.get_running_loop()

    async def seconds(speed: float) -> float:
        async with serving("x" * 10, speed=speed, delay=0.2, pace=100) as (_, client):
            begin = loop.time()
            async with client.stream(user("hi")) as answer:
                await answer.read()
            return loop.time() - begin

    assert await seconds(0) < 0.2 < 0.3 <= await seconds(1)


# -- the control surface --------------------------------------------------------------------------------------------


async def test_another_process_can_look_on() -> None:
    async with serving("One.", strict=False) as (_, client):
        await client.ask(user("hi"))
        await client.ask(user("hi"), says("One."), user("more"))
        _, state = await client.control("state")
        assert {key: state[key] for key in ("parts", "requests", "served", "failures", "paused")} == {
            "parts": ["main"],
            "requests": 2,
            "served": 1,
            "failures": 1,
            "paused": [],
        }
        assert state["conversations"] == [
            {
                "session": "s1",
                "agent": "",
                "part": "main",
                "model": "claude-sonnet-5-5",
                "lines": [{"line": "1", "outcome": "served"}, {"line": "", "outcome": "refused"}],
            }
        ]
        _, tokens = await client.control("tokens")
        assert [(entry["input"], entry["output"]) for entry in tokens] == [(10, 5)]
        _, failures = await client.control("failures")
        assert [failure["text"] for failure in failures] == ["main: the part has no line left; asked: 'more'"]
        _, requests = await client.control("requests?what=main.1")
        assert [(each["prompt"], each["outcome"]) for each in requests] == [("hi", "served")]


async def test_another_process_can_pause_and_put_in_faults() -> None:
    async with serving("One.") as (_, client), asyncio.TaskGroup() as group:
        status, state = await client.control("pause", {"what": "main"})
        assert (status, state["paused"]) == (200, ["main"])
        answer = group.create_task(client.ask(user("hi")))
        status, asked = await client.control("asked?what=main&timeout=5")
        assert (status, asked["outcome"], answer.done()) == (200, "waiting", False)
        await client.control("inject", {"what": "main", "fault": {"kind": "error", "status": 500}})
        await client.control("release", {"what": "main"})
        assert (await answer)[0] == 500


@pytest.mark.parametrize(
    ("name", "data", "status", "error"),
    [
        ("pause", {"what": "nobody"}, 400, "the story has no part 'nobody'; there are main"),
        ("pause", {}, 400, "what"),
        (
            "inject",
            {"what": "main", "fault": {"kind": "error", "colour": 1}},
            400,
            "a fault has no colour; it has after,",
        ),
        ("asked?what=main&timeout=0.01", None, 408, "main was asked 0 times in 0.01 s, not 1; last: nothing"),
        ("asked?what=main&times=x", None, 400, "invalid literal for int()"),
    ],
)
async def test_the_control_surface_says_what_is_wrong(name: str, data: Any, status: int, error: str) -> None:
    async with serving("One.") as (_, client):
        found, answer = await client.control(name, data)
    assert found == status
    assert answer["error"].startswith(error)


async def test_a_body_that_is_no_json_is_refused_by_the_control_surface() -> None:
    async with serving("One.") as (_, client), client.http.post(f"{client.url}/_story/pause", data=b"{") as answer:
        assert (answer.status, json.loads(await answer.text())) == (400, {"error": "the body is not JSON"})
