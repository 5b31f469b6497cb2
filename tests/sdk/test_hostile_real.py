"""Hostile output with the real program: nothing of it may cost an account, a session or the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import create_sdk_mcp_server, tool

from flower.core.human import HumanChannel
from flower.core.workbench import Workbench
from flower.testing import RecordingSink
from flower.workflow.base import Workflow
from flower.workflow.clarify import MISSING_KEY, clarify_step
from tests.sdk.stage import spec, stage

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]

OUTPUTS = {
    "50 MB": "head -c 50000000 /dev/zero | tr '\\0' x",
    "one line of 3 MB": "head -c 3000000 /dev/zero | tr '\\0' y",
    "NUL": "printf 'a\\0b\\0c'",
    "no UTF-8": "printf '\\xff\\xfe\\xed\\xa0\\x80'",
    "escapes": "printf '\\033]0;title\\007\\033[2Jx\\033[31m'",
    "half a pair": "printf '\\\\ud800'",
}


@pytest.mark.parametrize("command", OUTPUTS.values(), ids=OUTPUTS.keys())
async def test_what_a_tool_prints_is_survived_and_resumed(tmp_path: Path, command: str) -> None:
    lines = [{"say": "I look.", "call": {"Bash": {"command": command}}}, {"say": "Seen."}, {"say": "Again."}]
    async with stage(tmp_path, lines) as here:
        bench, sink = Workbench(here.workspace), RecordingSink()
        async with here.runtime(workbench=bench, trim=True) as runtime:
            first = await runtime.run(spec(), "go", on_event=sink)
            second = await runtime.run(spec(), "once more", resume=first.session_id, on_event=sink)
        rows = json.loads((here.run_dir / "manifest.json").read_text(encoding="utf-8"))
    assert (first.ok, first.text, second.ok, second.text) == (True, "I look.\nSeen.", True, "Again.")
    assert [row["ok"] for row in rows] == [True, True]
    for event in sink.events:
        json.dumps([event.kind, event.text, event.tool, event.payload], ensure_ascii=False)


@pytest.mark.parametrize(
    "answer",
    ["x" * 50_000_000, '"\n' * 5_000_000, "half \ud800 a pair", "a\0b", ""],
    ids=["50 MB", "10 MB to be escaped", "half a pair", "NUL", "nothing"],
)
async def test_what_a_servers_tool_answers_is_survived_and_resumed(tmp_path: Path, answer: str) -> None:
    @tool("look", "looks", {"type": "object", "properties": {}})
    async def look(_args: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": answer}]}

    lines = [{"call": {"mcp__s__look": {}}}, {"say": "Seen."}, {"say": "Again."}]
    async with stage(tmp_path, lines) as here, here.runtime(workbench=True, trim=True) as runtime:
        servers = {"s": create_sdk_mcp_server("s", tools=[look])}
        agent = spec(allowed_tools=["mcp__s__look"], mcp_servers=servers)
        first = await runtime.run(agent, "go")
        second = await runtime.run(agent, "once more", resume=first.session_id)
        rows = json.loads((here.run_dir / "manifest.json").read_text(encoding="utf-8"))
    assert (first.ok, first.text, second.ok, second.text) == (True, "Seen.", True, "Again.")
    assert [row["ok"] for row in rows] == [True, True]


@pytest.mark.parametrize(
    "said",
    ["half \ud800 a pair", "a\0b", "\x1b[2J", "‮reversed", "😀" * 2000, " "],
    ids=["half a pair", "NUL", "escape", "bidi", "wide", "blank"],
)
async def test_what_a_model_says_costs_no_account(tmp_path: Path, said: str) -> None:
    async with stage(tmp_path, [said, "More."]) as here, here.runtime() as runtime:
        first = await runtime.run(spec(), "go")
        second = await runtime.run(spec(), "on", resume=first.session_id)
        rows = json.loads((here.run_dir / "manifest.json").read_text(encoding="utf-8"))
    assert first.ok
    assert second.ok
    assert [row["step"] for row in rows] == ["main", "main"]


@pytest.mark.parametrize(
    ("said", "missing"),
    [
        ("¯\\_(ツ)_/¯", ["目标", "验收标准", "边界", "未知与假设"]),
        ("## 目标\nA\n## 验收标准\nB\n```\n## 边界\nC\n## 未知与假设\nD", ["边界", "未知与假设"]),
        ('{"goal": "x"}', ["目标", "验收标准", "边界", "未知与假设"]),
    ],
    ids=["noise", "an open fence", "another form"],
)
async def test_a_clarifier_that_answers_garbage_stops_the_flow_and_says_what_is_missing(
    tmp_path: Path, said: str, missing: list[str]
) -> None:
    async with stage(tmp_path, [said]) as here, here.runtime() as runtime:
        channel = HumanChannel(timeout_s=0)
        brief = here.workspace / "brief.md"
        flow = Workflow([clarify_step(channel, brief_path=brief, prompt="x", spec=spec())], channel=channel)
        context: dict[str, Any] = await flow.run(runtime)
    assert context["_failed_at"] == "确认需求"
    assert context[MISSING_KEY] == missing
    assert not brief.exists()
