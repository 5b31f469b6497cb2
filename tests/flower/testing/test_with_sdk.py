"""The scripted model against the real SDK and its bundled program: what it accepts, and what it charges."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import (
    AgentDefinition,
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    Message,
    ResultMessage,
    SystemMessage,
    TextBlock,
)

from flower.testing import PRICES, Fault, ScriptedModel, cost, read_story, same_session, scripted_surroundings

pytestmark = [pytest.mark.real, pytest.mark.timeout(60)]

USAGE = {"input": 1003, "output": 207, "cache_read": 30_011, "cache_write": 419}
RUN = {"say": "I run it.", "call": {"Bash": {"command": "echo a file"}}}


@asynccontextmanager
async def serving(
    tmp_path: Path, *lines: Any, speed: float = 0.0, strict: bool = True, **more: Any
) -> AsyncIterator[ScriptedModel]:
    parts = {**({"main": {"lines": list(lines)}} if lines else {}), **more}
    async with ScriptedModel(read_story({"parts": parts, "usage": USAGE}), speed=speed, strict=strict) as model:
        with scripted_surroundings(model, tmp_path / "home"):
            yield model


def options(tmp_path: Path, **more: Any) -> ClaudeAgentOptions:
    given: dict[str, Any] = {
        "model": "claude-sonnet-5-5",
        "cwd": tmp_path,
        "setting_sources": [],
        "tools": ["Bash", "Write"],
        "allowed_tools": ["Bash"],
        "env": {"CLAUDE_CODE_MAX_RETRIES": "2", "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1"},
        "max_buffer_size": 64 << 20,
    }
    return ClaudeAgentOptions(**(given | more))


async def ask(client: ClaudeSDKClient, prompt: str) -> tuple[ResultMessage, list[Message]]:
    await client.query(prompt)
    messages = [message async for message in client.receive_response()]
    assert isinstance(messages[-1], ResultMessage)
    return messages[-1], messages


async def test_a_conversation_with_a_tool_is_played(tmp_path: Path) -> None:
    lines = ["Hello.", {"think": "Hm.", **RUN}, {"expect": {"result": "a file", "error": False}, "say": "It said so."}]
    async with serving(tmp_path, *lines) as model, ClaudeSDKClient(options(tmp_path)) as client:
        first, _ = await ask(client, "hi")
        second, _ = await ask(client, "run it")
    assert (first.result, second.result) == ("Hello.", "It said so.")
    assert [each.label for each in model.requests] == ["main.1", "main.2", "main.3"]
    assert same_session(*model.requests)
    assert model.requests[0].conversation.workspace == str(tmp_path)


async def test_a_subagent_is_a_part_of_its_own(tmp_path: Path) -> None:
    delegate = {"Agent": {"description": "look", "subagent_type": "looker", "prompt": "Look at it."}}
    main = {
        "match": {"agent": "main"},
        "lines": [{"call": delegate}, {"expect": {"result": "I saw it."}, "say": "Seen."}],
    }
    looker = {
        "match": {"agent": "sub", "opening": "Look at it"},
        "lines": [{"expect": {"system": "You look."}, "say": "I saw it."}],
    }
    agents = {
        "looker": AgentDefinition(description="looks", prompt="You look.", tools=["Read"], model="claude-haiku-5-5")
    }
    wanted = options(tmp_path, agents=agents, tools=["Agent", "Read"])
    async with serving(tmp_path, main=main, looker=looker) as model, ClaudeSDKClient(wanted) as client:
        result, _ = await ask(client, "go")
    assert result.result == "Seen."
    assert [(each.part, bool(each.agent)) for each in model.requests] == [
        ("main", False),
        ("looker", True),
        ("main", False),
    ]
    assert [entry.model for entry in model.tokens] == ["claude-sonnet-5-5", "claude-haiku-5-5", "claude-sonnet-5-5"]
    assert result.total_cost_usd == pytest.approx(cost(model.tokens), abs=1e-9)


@pytest.mark.parametrize(
    ("name", "dollars"),
    # By hand: (1003 x input + 207 x output + 30 011 x cache read + 419 x cache write) / 1e6, twice.
    [("claude-opus-5-5", 0.0324984), ("claude-sonnet-5-5", 0.0162492), ("claude-haiku-5-5", 0.00111257)],
)
async def test_the_program_charges_the_list_price_of_the_tokens_in_the_log(
    tmp_path: Path, name: str, dollars: float
) -> None:
    async with serving(tmp_path, RUN, "Done.") as model, ClaudeSDKClient(options(tmp_path, model=name)) as client:
        result, _ = await ask(client, "go")
    assert name in PRICES
    assert result.total_cost_usd == pytest.approx(cost(model.tokens), abs=1e-9)
    assert result.total_cost_usd == pytest.approx(dollars, abs=1e-9)
    usage: Any = (result.model_usage or {})[name]
    assert usage["costBasis"] == "list"


async def test_a_request_that_the_story_does_not_know_reaches_people_as_an_error(tmp_path: Path) -> None:
    lines = [{"expect": {"prompt": "please"}, "say": "Yes."}]
    async with serving(tmp_path, *lines, strict=False) as model, ClaudeSDKClient(options(tmp_path)) as client:
        result, _ = await ask(client, "now")
    assert result.is_error
    assert result.api_error_status == 400
    assert "prompt does not hold 'please'" in str(result.result)
    assert len(model.failures) == 1


SOME = {"think": "I think before I speak.", "say": "Here is what I have to say about it."}
FAULTS = [
    Fault(kind="error", status=529, times=2),
    Fault(kind="error", status=500),
    Fault(kind="drop", after=0),
    *(Fault(kind="drop", after=after) for after in (1, 5, 8)),
    *(Fault(kind="break", after=after) for after in (1, 5, 6, 8)),
    Fault(kind="hang", after=7, seconds=0.3),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.kind} {fault.status} after {fault.after}")
async def test_after_a_fault_the_program_gets_the_same_line_and_the_log_knows_the_cost(
    tmp_path: Path, fault: Fault
) -> None:
    async with serving(tmp_path, SOME, "Again.") as model, ClaudeSDKClient(options(tmp_path)) as client:
        model.inject("main", fault)
        result, _ = await ask(client, "hi")
    assert result.result == SOME["say"]
    assert {each.line for each in model.requests} == {"1"}
    assert len(model.requests) == 1 + (fault.times or 0)
    assert result.total_cost_usd == pytest.approx(cost(model.tokens), abs=1e-9)


async def test_a_retry_is_told_and_its_wait_is_the_servers(tmp_path: Path) -> None:
    line = {"say": "Hello.", "fail": {"status": 429, "retry_after": 0.2}}
    async with serving(tmp_path, line) as model, ClaudeSDKClient(options(tmp_path)) as client:
        _, messages = await ask(client, "hi")
    told = [
        message.data for message in messages if isinstance(message, SystemMessage) and message.subtype == "api_retry"
    ]
    assert [each["error_status"] for each in told] == [429]
    assert [each.outcome for each in model.requests] == ["error 429", "served"]


async def test_a_resumed_session_goes_on_where_it_was(tmp_path: Path) -> None:
    async with serving(
        tmp_path, RUN, "Done.", {"expect": {"session": "same", "prompt": "more"}, "say": "More."}
    ) as model:
        async with ClaudeSDKClient(options(tmp_path)) as client:
            first, _ = await ask(client, "go")
        async with ClaudeSDKClient(options(tmp_path, resume=first.session_id)) as client:
            second, _ = await ask(client, "more")
    assert second.result == "More."
    assert same_session(*model.requests)


CUTS: dict[str, tuple[dict[str, Any], float, str]] = {
    "in a text": ({"say": "word " * 200, "pace": 100}, 1.0, "aborted_streaming"),
    "in a tool": (
        {"say": "I run it.", "call": {"Bash": {"command": "for i in 1 2 3 4 5 6 7 8 9; do sleep 1; done"}}},
        0.0,
        "aborted_tools",
    ),
}


@pytest.mark.parametrize("where", CUTS)
async def test_a_cut_line_is_said_again_by_the_resumed_session(tmp_path: Path, where: str) -> None:
    line, speed, reason = CUTS[where]
    main = {
        "anytime": [{"when": {"prompt": "/I mean: (?P<words>.+)/"}, "say": "You mean: ${words}."}],
        "lines": [{**line, "name": "long"}, "Done."],
    }
    story = read_story({"parts": {"main": main}, "usage": USAGE})
    async with ScriptedModel(story, speed=speed) as model:
        with scripted_surroundings(model, tmp_path / "home"):
            async with ClaudeSDKClient(options(tmp_path, include_partial_messages=True)) as client:
                first = await _cut(client, model)
            assert first.terminal_reason == reason
            model.speed = 0.0
            # The tool is not let run a second time: this test looks at what the model is asked and says.
            resumed = options(tmp_path, resume=first.session_id, allowed_tools=[])
            async with ClaudeSDKClient(resumed) as client:
                second, messages = await ask(client, "I mean: be quick")
    said = [
        block.text
        for m in messages
        if isinstance(m, AssistantMessage)
        for block in m.content
        if isinstance(block, TextBlock)
    ]
    assert said[0].startswith(f"You mean: be quick.\n\n{str(line['say'])[:9]}")
    assert model.requests[1].line == "anytime-1+long"
    # An answer cut in mid-stream is charged by what had come: the log may be off by what was still under way.
    assert second.total_cost_usd == pytest.approx(cost(model.tokens), abs=0.0005 if where == "in a text" else 1e-9)


async def _cut(client: ClaudeSDKClient, model: ScriptedModel) -> ResultMessage:
    await client.query("go")
    cut = False
    async for message in client.receive_messages():
        if isinstance(message, ResultMessage):
            await model.settled()
            return message
        started = (
            isinstance(message, AssistantMessage) or getattr(message, "event", {}).get("type") == "content_block_delta"
        )
        if started and not cut:
            cut = True
            await asyncio.sleep(0.5)  # into the middle of it
            await client.interrupt()
    raise AssertionError("the conversation ended without a result")


async def test_the_program_makes_no_request_that_the_server_does_not_know(tmp_path: Path) -> None:
    async with serving(tmp_path, "Hello.") as model, ClaudeSDKClient(options(tmp_path, tools=None)) as client:
        await ask(client, "hi")
        await client.get_context_usage()
    assert model.failures == []
    assert len(model.requests) == 1
