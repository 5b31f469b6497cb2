"""Where the program stops by itself near the window: the line marked T of the facts page, section 14."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import AssistantMessage, Message

from tests.sdk.bare import client, result_of, say
from tests.sdk.stage import Stage, stage

pytestmark = [pytest.mark.real, pytest.mark.timeout(60)]

SMALL = "claude-haiku-4-5"
WINDOW = 200_000
NO_COMPACTION = {"DISABLE_AUTO_COMPACT": "1"}


def filled(context: int) -> dict[str, Any]:
    return {"say": "Full.", "usage": {"input": 10, "output": 50, "cache_read": context - 10}}


def errors(messages: list[Message]) -> list[tuple[str, str | None]]:
    return [(each.model, each.error) for each in messages if isinstance(each, AssistantMessage) and each.error]


def refused(messages: list[Message]) -> bool:
    """Whether the program refused by itself; all that it says then is asserted."""
    result = result_of(messages)
    if not result.is_error:
        return False
    assert (result.subtype, result.terminal_reason, result.api_error_status) == ("success", "blocking_limit", None)
    assert str(result.result).startswith("Prompt is too long")
    assert errors(messages) == [("<synthetic>", "invalid_request")]
    return True


async def second_turn(here: Stage, **env: str) -> bool:
    """Whether the program refuses the second turn."""
    async with client(here, model=SMALL, env={**NO_COMPACTION, **env}) as connected:
        first = result_of(await say(connected))
        assert (first.model_usage or {})[SMALL]["contextWindow"] == WINDOW
        return refused(await say(connected))


@pytest.mark.parametrize(
    ("context", "env", "stops"),
    [
        (176_000, {}, False),
        (178_000, {}, True),
        (178_000, {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "1000000"}, True),
        (190_000, {"CLAUDE_CODE_BLOCKING_LIMIT_OVERRIDE": "199000"}, False),
        (190_000, {"CLAUDE_CODE_BLOCKING_LIMIT_OVERRIDE": "150000"}, True),
    ],
    ids=["below the edge", "beyond it", "beyond it, with another window", "with room made", "with the edge drawn in"],
)
async def test_the_program_refuses_23_000_tokens_before_the_window_without_asking(
    tmp_path: Path, context: int, env: dict[str, str], stops: bool
) -> None:
    async with stage(tmp_path, [filled(context), "Still here."]) as here:
        assert await second_turn(here, **env) is stops
        assert len(here.model.asked_of()) == (1 if stops else 2)


async def test_it_refuses_between_the_tool_calls_of_a_turn_as_well(tmp_path: Path) -> None:
    lines = [{**filled(178_000), "call": {"Bash": {"command": "echo hi"}}}, "never"]
    async with (
        stage(tmp_path, lines) as here,
        client(here, model=SMALL, env=NO_COMPACTION, allowed_tools=["Bash"]) as connected,
    ):
        assert refused(await say(connected))
        assert len(here.model.asked_of()) == 1


@pytest.mark.parametrize("room", [False, True], ids=["by default", "with room made"])
async def test_a_resume_in_another_process_is_refused_too_unless_room_is_made(tmp_path: Path, room: bool) -> None:
    async with stage(tmp_path, [filled(178_000), "The last words."]) as here:
        async with client(here, model=SMALL, env=NO_COMPACTION) as connected:
            session = result_of(await say(connected)).session_id
        env = {**NO_COMPACTION, **({"CLAUDE_CODE_BLOCKING_LIMIT_OVERRIDE": str(WINDOW)} if room else {})}
        async with client(here, model=SMALL, env=env, resume=session) as connected:
            assert refused(await say(connected)) is not room
        assert len(here.model.asked_of()) == (2 if room else 1)


async def test_what_the_api_finds_too_long_looks_the_same_but_for_reason_and_status(tmp_path: Path) -> None:
    fault = {
        "status": 400,
        "type": "invalid_request_error",
        "message": "prompt is too long: 210000 tokens > 200000 maximum",
        "times": "always",
    }
    async with (
        stage(tmp_path, ["On.", {"say": "never", "fail": fault}]) as here,
        client(here, model=SMALL, env=NO_COMPACTION) as connected,
    ):
        await say(connected)
        messages = await say(connected)
        assert len(here.model.asked_of()) == 2
    result = result_of(messages)
    assert (result.is_error, result.terminal_reason, result.api_error_status) == (True, "prompt_too_long", 400)
    assert str(result.result).startswith("Prompt is too long")
    assert errors(messages) == [("<synthetic>", "invalid_request")]
