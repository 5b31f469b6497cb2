"""The SDK's own client against a scripted model, without flower in between: for what the program does by itself."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, Message, ResultMessage

from tests.sdk.stage import MODEL, Stage


def options(here: Stage, **kw: Any) -> ClaudeAgentOptions:
    """Return options of a quiet session; `env` is added to what quiet sessions get."""
    here.workspace.mkdir(exist_ok=True)
    usual: dict[str, Any] = {
        "cwd": str(here.workspace),
        "model": MODEL,
        "setting_sources": [],
        "max_buffer_size": 64 << 20,
    }
    given = {**usual, **kw}
    given["env"] = {"CLAUDE_CODE_MAX_RETRIES": "0", "ENABLE_TOOL_SEARCH": "false", **given.get("env", {})}
    return ClaudeAgentOptions(**given)


@contextlib.asynccontextmanager
async def client(here: Stage, **kw: Any) -> AsyncIterator[ClaudeSDKClient]:
    """Connect with `options`."""
    async with ClaudeSDKClient(options(here, **kw)) as connected:
        yield connected


async def say(connected: ClaudeSDKClient, text: str = "go") -> list[Message]:
    """Say something and return the whole turn."""
    await connected.query(text)
    return [message async for message in connected.receive_response()]


def result_of(messages: list[Message]) -> ResultMessage:
    """Return the result, which ends a turn."""
    last = messages[-1]
    assert isinstance(last, ResultMessage)
    return last
