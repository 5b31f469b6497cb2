"""Behaviour 28.11, each item a test:

*Real harness, scripted API:* one session with question answered after seconds, one handoff, one interrupt with a
subagent in flight, one resume in a second process.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import AgentDefinition

from flower.core.agent import HandoffPolicy
from flower.core.human import TOOL_NAME, HumanChannel
from flower.core.workbench import Workbench
from flower.testing import RecordingSink, cost, same_session
from tests.sdk.stage import cut, spec, stage
from tests.sdk.test_handover_real import DOCUMENT, phases, tokens, write

pytestmark = [pytest.mark.real, pytest.mark.timeout(60)]


def asking(channel: HumanChannel, **kw: Any) -> Any:
    return spec(allowed_tools=[TOOL_NAME], mcp_servers=channel.mcp_servers(), **kw)


async def test_one_session_with_question_answered_after_seconds(tmp_path: Path) -> None:
    lines = [
        {"call": {TOOL_NAME: {"question": "CLI or library?", "options": ["CLI", "library"]}}},
        {"expect": {"result": "CLI"}, "say": "Then a CLI."},
    ]
    async with stage(tmp_path, lines) as here, here.runtime() as runtime:
        channel, sink = HumanChannel(), RecordingSink()
        channel.on_event = sink

        def person() -> None:
            assert channel.answer("q1", "CLI")

        asked = asyncio.create_task(sink.wait_for("ask"))
        asked.add_done_callback(lambda _: threading.Timer(1.5, person).start())
        step = await runtime.run(asking(channel), "go", on_event=sink)
    assert (step.ok, step.text) == (True, "Then a CLI.")
    assert [event.payload["state"] for event in sink.of("ask")] == ["asked", "answered"]
    assert step.duration_s >= 1.5


async def test_one_handoff(tmp_path: Path) -> None:
    parts: dict[str, Any] = {
        "successor": {
            "match": {"opening": "你在接手一段还没干完的活"},
            "lines": [
                {"expect": {"opening": ["写 two.txt", "B,太慢"]}, "say": "接手。", "call": write("two.txt")},
                {"say": "两个文件都写好了。", "usage": tokens(40_000)},
            ],
            "usage": tokens(30_000),
        },
        "main": {
            "lines": [
                {"say": "开始。", "call": write("one.txt"), "usage": tokens(131_000)},
                {"say": "很多输出。", "call": {"Bash": {"command": "echo big"}}, "usage": tokens(176_000)},
                {"expect": {"prompt": "交接", "session": "same"}, "say": DOCUMENT, "usage": tokens(180_000)},
            ]
        },
    }
    async with stage(tmp_path, **parts) as here:
        bench, sink = Workbench(here.workspace), RecordingSink()
        policy = HandoffPolicy(window=200_000)
        async with here.runtime(workbench=bench, handoff=policy) as runtime:
            step = await runtime.run(spec(), "写两个文件", step_name="干活", on_event=sink)
        asked = here.model.asked_of()
        total = cost(here.model.tokens)
    assert (step.ok, step.text, step.errors, step.attempts) == (True, "接手。\n两个文件都写好了。", [], 1)
    assert phases(sink) == ["near", "writing", "done"]
    assert step.retired == [asked[0].session]
    assert step.session_id == asked[-1].session != asked[0].session
    assert [request.part for request in asked] == ["main", "main", "main", "successor", "successor"]
    assert "写两个文件" not in asked[-1].conversation.opening
    assert (here.workspace / "one.txt").exists()
    assert (here.workspace / "two.txt").exists()
    document = (bench.notes / "交接-干活.md").read_text(encoding="utf-8")
    assert "B,太慢" in document
    assert step.cost_usd == pytest.approx(total, abs=1e-6)
    assert step.context == 40_000


async def test_one_interrupt_with_a_subagent_in_flight(tmp_path: Path) -> None:
    command = "for i in $(seq 1 10); do sleep 0.1; done; echo half"
    parts: dict[str, Any] = {
        "coder": {
            "match": {"agent": "sub"},
            "lines": [{"name": "work", "call": {"Bash": {"command": command}}}, {"name": "report", "say": "Done."}],
        },
        "main": {
            "lines": [{"call": {"Agent": {"description": "d", "prompt": "do", "subagent_type": "coder"}}}],
            "anytime": [cut("rather not")],
        },
    }
    async with stage(tmp_path, **parts) as here, here.runtime() as runtime:
        sink = RecordingSink()
        agents = {"coder": AgentDefinition(description="codes", prompt="CODER", tools=["Bash"], model="inherit")}
        running = asyncio.create_task(
            runtime.run(spec(allowed_tools=["Bash", "Agent"], agents=agents), "go", on_event=sink)
        )
        await sink.wait_for(lambda event: event.kind == "tool_call" and event.tool == "Bash")
        runtime.interrupt("rather not")
        step = await running
        assert (step.ok, step.attempts, step.text) == (True, 1, "I heard: rather not")
        assert [event.tool for event in sink.of("tool_call")] == ["Agent", "Bash"]
        assert sink.of("tool_result") == []  # it was the boundary, and is not told
        assert same_session(*here.model.asked_of("main"))


FIRST_PROCESS = """
import asyncio, sys
from flower.core.runtime import Runtime
from tests.sdk.stage import spec

async def main():
    runtime = Runtime(workspace=sys.argv[1], run_dir=sys.argv[2])
    result = await runtime.run(spec(), "the first words")
    runtime.close()
    print(result.session_id, result.text)

asyncio.run(main())
"""


async def test_one_resume_in_a_second_process(tmp_path: Path) -> None:
    lines = [
        {"call": {"Bash": {"command": "echo made"}}},
        "One.",
        {"expect": {"session": "same", "history": ["the first words", "made", "One."]}, "say": "Two."},
    ]
    async with stage(tmp_path, lines) as here:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", FIRST_PROCESS, str(here.workspace), str(here.run_dir)),
            env=dict(os.environ),  # what the stage has put there
            stdout=asyncio.subprocess.PIPE,
        )
        said, _ = await process.communicate()
        session, text = said.decode().split()
        assert (process.returncode, text) == (0, "One.")
        async with here.runtime() as runtime:
            assert runtime.has_session(session)
            step = await runtime.run(spec(), "the second words", resume=session)
        assert (step.ok, step.text, step.session_id) == (True, "Two.", session)
        assert same_session(*here.model.asked_of())
        assert here.model.asked_of()[-1].prompt == "the second words"
