"""How long a question may wait with the real program (D5): one shortened run in place of "for ever" (rulings R16)."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from flower.core.human import TOOL_NAME, HumanChannel
from flower.testing import RecordingSink
from tests.sdk.stage import marked, spec, stage

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]

LIMITS = {
    "MCP_TOOL_TIMEOUT": "3000",
    "CLAUDE_CODE_SDK_MCP_TOOL_IDLE_TIMEOUT": "3000",
    "CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT": "3000",
    "CLAUDE_AUTO_BACKGROUND_TASKS": "1",
}
"""What a person's shell may say. The first ends a call after its 3 s, the second when it is looked at: every 30 s."""

LONGER_THAN_ANY = 36.0


def variables(pid: int) -> dict[str, str]:
    pairs = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)


async def test_a_question_outlasts_every_limit_that_a_persons_shell_sets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = f"limits-{os.getpid()}"
    lines = [
        {"call": {TOOL_NAME: {"question": "Which?"}}},
        {"expect": {"result": "this one", "error": False}, "say": "So it is."},
    ]
    async with stage(tmp_path, lines) as here, here.runtime(resilience=False) as runtime:
        for name, value in {**LIMITS, "FLOWER_RUN": marker}.items():
            monkeypatch.setenv(name, value)
        channel, sink = HumanChannel(timeout_s=None), RecordingSink()
        agent = spec(allowed_tools=[TOOL_NAME], mcp_servers=channel.mcp_servers())
        running = asyncio.create_task(runtime.run(agent, "go", on_event=sink))
        channel.on_event = sink
        await sink.wait_for("ask")
        (pid,) = marked(marker)
        of_the_program = variables(pid)
        await asyncio.wait([running], timeout=LONGER_THAN_ANY)
        assert [ask.state for ask in channel.asks] == ["asked"]
        assert [ask.id for ask in channel.pending()] == ["q1"]
        assert channel.answer("q1", "this one")
        step = await running
    assert (step.ok, step.text, step.errors) == (True, "So it is.", [])
    assert {name: of_the_program.get(name) for name in LIMITS} == {
        **dict.fromkeys(LIMITS),
        "MCP_TOOL_TIMEOUT": "2147483647",
    }
