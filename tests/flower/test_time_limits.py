"""How long a question may wait: 1,800 s and for ever, whatever a person's shell says (D5).

That the program keeps to it is in tests/sdk/test_time_limits_real.py.
"""

from __future__ import annotations

import asyncio
from fnmatch import fnmatch
from pathlib import Path

import pytest

from flower import AgentSpec, HumanChannel
from flower.core import child
from flower.core.env import KNOWN
from flower.core.options import MANNERS
from tests.fakes.client import Own, init
from tests.fakes.people import asked
from tests.flower.scene import Make, make
from tests.flower.test_child import PATH, program, start

__all__ = ["make"]

UNSET = [
    "CLAUDE_CODE_SDK_MCP_TOOL_IDLE_TIMEOUT",
    "CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT",
    "CLAUDE_AUTO_BACKGROUND_TASKS",
]
"""What would cut a question short wherever it is set; without them nothing does (SDK facts 7)."""

MOST_MS = 2_147_483_647
"""24.8 days, the longest time that the program takes."""


@pytest.mark.parametrize(("after", "waits"), [(1_799.0, True), (1_801.0, False)])
async def test_by_default_a_question_waits_for_1800_seconds(
    monkeypatch: pytest.MonkeyPatch, after: float, waits: bool
) -> None:
    channel = HumanChannel()
    assert channel.timeout_s == 1_800.0
    asking = asyncio.create_task(channel.ask("Which?"))
    await asked(channel)
    loop = asyncio.get_running_loop()
    begun = loop.time()
    with monkeypatch.context() as clock:
        clock.setattr(loop, "time", lambda: begun + after)
        for _ in range(5):
            await asyncio.sleep(0)
    assert asking.done() is not waits
    channel.answer("q1", "B")
    assert (await asking).state == ("answered" if waits else "timeout")


async def test_the_program_is_told_to_wait_as_long_as_it_can(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MCP_TOOL_TIMEOUT", *UNSET):
        monkeypatch.setenv(name, "3000")
    runtime = make([init(), Own()])
    await runtime.run(AgentSpec(name="x", instructions=""), "go")
    env = runtime.clients[0].options.env
    assert env["MCP_TOOL_TIMEOUT"] == str(MOST_MS)
    assert not set(UNSET) & set(env)


def test_what_a_persons_shell_says_about_it_does_not_reach_the_program(tmp_path: Path) -> None:
    names = child.allowed(MANNERS, known=KNOWN, parent=["MCP_TOOL_TIMEOUT", *UNSET])
    assert not [name for name in UNSET if any(fnmatch(name, pattern) for pattern in names)]
    environment = {**PATH, **dict.fromkeys(UNSET, "3000"), **MANNERS}
    seen, _ = start(tmp_path, child.wrapper(str(program(tmp_path)), names, None), environment)
    assert seen == {**PATH, **MANNERS}


def test_a_spec_that_says_so_itself_may_have_it_otherwise() -> None:
    assert "CLAUDE_CODE_SDK_MCP_TOOL_IDLE_TIMEOUT" in child.allowed([*MANNERS, "CLAUDE_CODE_SDK_MCP_TOOL_IDLE_TIMEOUT"])
