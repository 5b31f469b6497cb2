"""What the program does with sessions, prompts and errors: the lines marked T of the facts page, section 3."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import ClaudeSDKClient, Message, ResultError, ResultMessage, query

from tests.sdk.bare import client, options, result_of, say
from tests.sdk.stage import stage

pytestmark = [pytest.mark.real, pytest.mark.timeout(60)]


# -- resumes (traps 1, 10, 15) ------------------------------------------------------------------------------------


async def test_a_fork_goes_on_counting(tmp_path: Path) -> None:
    async with stage(tmp_path, ["one", "two"]) as here:
        async with client(here) as connected:
            first = result_of(await say(connected))
        async with client(here, resume=first.session_id, fork_session=True) as connected:
            second = result_of(await say(connected))
    assert first.total_cost_usd
    assert second.session_id != first.session_id
    assert second.total_cost_usd == pytest.approx(2 * first.total_cost_usd)


async def test_a_session_in_local_files_is_found_from_another_folder_too(tmp_path: Path) -> None:
    async with stage(tmp_path, ["one", {"expect": {"session": "same", "history": "one"}, "say": "two"}]) as here:
        async with client(here) as connected:
            session = result_of(await say(connected)).session_id
        other = here.home / "other"
        other.mkdir()
        async with client(here, resume=session, cwd=str(other)) as connected:
            assert result_of(await say(connected)).session_id == session


def prompt_with(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "preset", "preset": "claude_code", "append": words, **more}


@pytest.mark.parametrize(
    ("second", "seen"),
    [(prompt_with("NEW"), "OLD"), (prompt_with("NEW", snapshot=False), "NEW")],
    ids=["by default", "without the snapshot"],
)
async def test_a_resumed_session_keeps_the_prompt_that_it_began_with(
    tmp_path: Path, second: dict[str, Any], seen: str
) -> None:
    async with stage(tmp_path, ["one", "two"]) as here:
        async with client(here, system_prompt=prompt_with("OLD")) as connected:
            session = result_of(await say(connected)).session_id
        async with client(here, system_prompt=second, resume=session) as connected:
            await say(connected)
        systems = [asked.conversation.system.split() for asked in here.model.asked_of()]
    assert ["OLD" if "OLD" in words else "NEW" for words in systems] == ["OLD", seen]


# -- errors (trap 8) ----------------------------------------------------------------------------------------------


async def into(came: list[Message], messages: AsyncIterator[Message]) -> None:
    async for message in messages:
        came.append(message)  # noqa: PERF401 - a comprehension would lose what came before an exception


async def test_from_query_the_result_of_an_api_error_comes_first_and_then_an_exception(tmp_path: Path) -> None:
    lines = [{"fail": {"status": 529, "times": "always"}, "say": "never"}]
    came: list[Message] = []
    async with stage(tmp_path, lines) as here:
        with pytest.raises(ResultError) as raised:
            await into(came, query(prompt="go", options=options(here)))
    failed = result_of(came)
    assert (failed.subtype, failed.is_error, failed.api_error_status) == ("success", True, 529)
    assert (failed.terminal_reason, raised.value.terminal_reason) == ("api_error", "api_error")
    assert raised.value.api_error_status == 529


# -- a prompt while a turn runs (traps 16, 17) --------------------------------------------------------------------


async def told(connected: ClaudeSDKClient, words: str) -> str:
    """Say something under a name of its own, and return the name."""
    name = str(uuid.uuid4())

    async def prompt() -> AsyncIterator[dict[str, Any]]:
        message = {"role": "user", "content": words}
        yield {"type": "user", "message": message, "parent_tool_use_id": None, "uuid": name}

    await connected.query(prompt())
    return name


async def next_result(messages: AsyncIterator[Message]) -> ResultMessage:
    async for message in messages:
        if isinstance(message, ResultMessage):
            return message
    raise AssertionError("the stream ended")


async def test_a_prompt_while_a_tool_runs_is_taken_into_the_turn_and_there_is_one_result(tmp_path: Path) -> None:
    lines = [
        {"name": "busy", "call": {"Bash": {"command": "touch begun; while [ ! -e come ]; do sleep 0.1; done"}}},
        {"name": "after", "say": "Both."},
        {"expect": {"prompt": "third"}, "say": "Third."},
    ]
    async with stage(tmp_path, lines) as here, client(here, allowed_tools=["Bash"]) as connected:
        messages = connected.receive_messages()
        first = await told(connected, "first")
        async with asyncio.timeout(20):
            while not (here.workspace / "begun").exists():  # noqa: ASYNC110 - another process writes it
                await asyncio.sleep(0.05)
        second = await told(connected, "the second words")
        await asyncio.sleep(0.5)  # it has arrived
        (here.workspace / "come").touch()
        both = await next_result(messages)
        assert (both.result, both.user_message_uuids) == ("Both.", [first, second])
        assert "the second words" in str(here.model.asked_of("main.after")[0].conversation.body["messages"][-1])
        third = await told(connected, "third")
        assert (await next_result(messages)).user_message_uuids == [third]


async def test_a_prompt_while_the_last_text_streams_has_a_turn_and_a_result_of_its_own(tmp_path: Path) -> None:
    lines = [{"name": "long", "say": "word " * 30, "pace": 100}, {"expect": {"prompt": "second"}, "say": "Second."}]
    async with stage(tmp_path, lines, speed=1.0) as here, client(here, include_partial_messages=True) as connected:
        messages = connected.receive_messages()
        first = await told(connected, "first")
        async for message in messages:
            if type(message).__name__ == "StreamEvent":
                break
        second = await told(connected, "second")
        assert (await next_result(messages)).user_message_uuids == [first]
        last = await next_result(messages)
        assert (last.result, last.user_message_uuids) == ("Second.", [second])
