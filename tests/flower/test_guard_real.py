"""What the guards come to with the real program: its matchers, its refusals, its tools (behaviour 11)."""

from __future__ import annotations

import struct
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, HookMatcher, create_sdk_mcp_server, tool

from flower import AgentSpec, HumanChannel, Runtime, StepResult, Workbench, clarify, coordinator, worker
from flower.core import guard
from flower.core.gates import tool_gate
from flower.testing import RecordingSink, ScriptedModel, read_story, scripted_surroundings

pytestmark = [pytest.mark.real, pytest.mark.timeout(60)]

Calls = list[dict[str, Any]]


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    return Workbench(tmp_path.resolve() / "ws").ensure()


@asynccontextmanager
async def scripted(calls: Calls, home: Path, coder: Calls | None = None) -> AsyncIterator[ScriptedModel]:
    """A model that makes these calls, one a message, and a subagent that makes its own."""
    lines = [*({"call": call} for call in calls), "done"]
    parts: dict[str, Any] = {"main": {"match": {"agent": "main"}, "lines": lines}}
    if coder is not None:
        parts["coder"] = {"match": {"agent": "sub"}, "lines": [*({"call": call} for call in coder), "reported"]}
    async with ScriptedModel(read_story({"parts": parts})) as model:
        with scripted_surroundings(model, home):
            yield model


async def run(
    bench: Workbench, spec: AgentSpec, calls: Calls, coder: Calls | None = None
) -> tuple[StepResult, ScriptedModel, list[str]]:
    """Run one step; with it what the tools of the main thread gave back, in order."""
    home = bench.workspace.parent / "home"
    sink = RecordingSink()
    async with scripted(calls, home, coder) as model:
        rt = Runtime(workspace=bench.workspace, run_dir=home.parent / "runs", workbench=bench)
        rt.model = "claude-haiku-5-5"
        try:
            result = await rt.run(spec, "go", on_event=sink)
        finally:
            rt.close()
    assert result.ok, result.error
    return result, model, [each.result for each in model.asked_of("main")[1:]]


def written(bench: Workbench) -> list[str]:
    return sorted(file.name for file in bench.workspace.iterdir() if file.is_file())


# Matchers.


async def test_a_matcher_of_names_is_exact_and_any_other_is_found_anywhere(bench: Workbench) -> None:
    heard: dict[str, list[str]] = {}

    def listening(matcher: str) -> HookMatcher:
        async def hook(data: Any, _id: str | None, _context: Any) -> Any:
            heard.setdefault(matcher, []).append(data["tool_name"])
            return {}

        return HookMatcher(matcher=matcher, hooks=[hook])

    matchers = [
        "Edit",
        "Write|Edit",
        guard.HANDS_ON,
        "^Edit$",
        "Edit.*",
        "otebook.",
        "Agent",
        "Task",
        "Agent|Task",
        "Ba",
    ]
    notebook = bench.workspace / "n.ipynb"
    notebook.write_text(NOTEBOOK, encoding="utf-8")
    spec = AgentSpec(
        "x",
        "Do it.",
        allowed_tools=["Bash", "Read", "Write", "Edit", "NotebookEdit"],
        agents={"coder": worker("d", "p", tools=["Read"])},
        hooks={"PreToolUse": [listening(matcher) for matcher in matchers]},
    )
    await run(
        bench,
        spec,
        [
            {"Read": {"file_path": str(notebook)}},
            {"NotebookEdit": {"notebook_path": str(notebook), "cell_id": "c1", "new_source": "2"}},
            {"Write": {"file_path": str(bench.workspace / "w.txt"), "content": "x"}},
            {"Bash": {"command": "pwd"}},
            {"Task": {"description": "d", "prompt": "p", "subagent_type": "coder"}},
        ],
        coder=[],
    )
    assert heard == {
        "Write|Edit": ["Write"],
        guard.HANDS_ON: ["NotebookEdit", "Write", "Bash"],
        "Edit.*": ["NotebookEdit"],
        "otebook.": ["NotebookEdit"],
        # Whatever the call says, a hook hears `Agent`; and a matcher may say either.
        "Agent": ["Agent"],
        "Task": ["Agent"],
        "Agent|Task": ["Agent"],
    }


NOTEBOOK = """{"cells": [{"cell_type": "code", "id": "c1", "source": ["1"], "metadata": {}, "outputs": [],
"execution_count": null}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}"""


# Refusals.


async def test_a_role_without_hands_is_refused_and_told_that_it_is_meant(bench: Workbench) -> None:
    spec = clarify("确认需求", HumanChannel(timeout_s=0))
    path = str(bench.workspace / "w.txt")
    _, _, results = await run(
        bench,
        spec,
        [{"Write": {"file_path": path, "content": "x"}}, {"Bash": {"command": "ls"}}, {"Glob": {"pattern": "*"}}],
    )
    assert [("有意的" in text, "没有 Write" in text, "没有 Bash" in text) for text in results[:2]] == [
        (True, True, False),
        (True, False, True),
    ]
    assert written(bench) == []
    # The way that is left to look around.
    assert "有意的" not in results[2]
    assert "INDEX.md" in results[2]


async def test_a_coordinator_may_glance_and_send_and_nothing_else(bench: Workbench) -> None:
    made = bench.workspace / "made.txt"
    spec = coordinator("协调者", "", {"coder": worker("d", "p")})
    _, model, results = await run(
        bench,
        spec,
        [
            {"Write": {"file_path": str(bench.workspace / "w.txt"), "content": "x"}},
            {"Bash": {"command": f"touch {bench.workspace / 't.txt'}"}},
            {"Bash": {"command": "ls -a"}},
            {"Agent": {"description": "d", "prompt": "p", "subagent_type": "coder"}},
        ],
        coder=[{"Write": {"file_path": str(made), "content": "x"}}, {"Bash": {"command": "cp made.txt copied.txt"}}],
    )
    assert ["协调者不直接使用" in text for text in results] == [True, True, False, False]
    assert ".flower/artifacts/" in results[0]
    assert ".flower" in results[2]
    assert "reported" in results[3]
    assert written(bench) == ["copied.txt", "made.txt"]
    assert len(model.asked_of("coder")) == 3


async def test_only_the_calls_of_a_subagent_carry_its_id(bench: Workbench) -> None:
    """The one test for "main thread" in every guard."""
    heard: list[tuple[str, Any, Any]] = []

    async def hook(data: Any, _id: str | None, _context: Any) -> Any:
        heard.append((data["tool_name"], data.get("agent_id", "no key"), data.get("agent_type", "no key")))
        return {}

    spec = coordinator("协调者", "", {"coder": worker("d", "p")})
    spec.hooks = {"PreToolUse": [HookMatcher(hooks=[hook])]}
    _, model, _ = await run(
        bench,
        spec,
        [{"Bash": {"command": "ls"}}, {"Agent": {"description": "d", "prompt": "p", "subagent_type": "coder"}}],
        coder=[{"Bash": {"command": "touch made"}}],
    )
    (agent,) = {asked.agent for asked in model.asked_of("coder")}
    assert heard == [("Bash", "no key", "no key"), ("Agent", "no key", "no key"), ("Bash", agent, "coder")]


async def test_another_way_to_write_a_tools_name_is_no_tool(bench: Workbench) -> None:
    path = str(bench.workspace / "w.txt")
    calls: Calls = [
        {"write": {"file_path": path, "content": "x"}},
        {"WRITE": {"file_path": path, "content": "x"}},
        {"bash": {"command": f"touch {path}"}},
        {"MultiEdit": {"file_path": path, "edits": [{"old_string": "", "new_string": "x"}]}},
        {"Monitor": {"command": f"touch {path}", "description": "d"}},
        {"str_replace_based_edit_tool": {"command": "create", "path": path, "file_text": "x"}},
    ]
    _, _, results = await run(bench, coordinator("协调者", "", {"coder": worker("d", "p")}), calls)
    assert ["No such tool available" in text for text in results] == [True] * len(calls)
    assert written(bench) == []


async def test_a_tool_of_a_server_that_writes_is_held_back_once_it_is_named(bench: Workbench) -> None:
    wrote: list[str] = []

    @tool("write", "writes", {"type": "object", "properties": {"text": {"type": "string"}}})
    async def write(given: dict[str, Any]) -> dict[str, Any]:
        wrote.append(given["text"])
        return {"content": [{"type": "text", "text": "written"}]}

    name = "mcp__files__write"
    spec = coordinator("协调者", "", {"coder": worker("d", "p", tools=[name])})
    spec.mcp_servers = {"files": create_sdk_mcp_server("files", tools=[write])}
    spec.allowed_tools.append(name)
    spec.hooks = {"PreToolUse": [guard.delegate_guard(tools=name)]}
    send = {"Agent": {"description": "d", "prompt": "p", "subagent_type": "coder"}}
    _, _, results = await run(bench, spec, [{name: {"text": "main"}}, send], coder=[{name: {"text": "coder"}}])
    assert f"协调者不直接使用 {name}" in results[0]
    assert wrote == ["coder"]


async def test_a_guard_that_breaks_down_lets_nothing_through(bench: Workbench) -> None:
    def broken(_data: Mapping[str, Any]) -> Any:
        raise ZeroDivisionError

    spec = AgentSpec(
        "x",
        "Do it.",
        allowed_tools=["Write", "Bash", "Edit", "NotebookEdit"],
        hooks={"PreToolUse": [guard.hook_on("Write", broken)]},
    )
    await run(bench, spec, [{"Write": {"file_path": str(bench.workspace / "w.txt"), "content": "x"}}])
    assert written(bench) == []


async def test_the_brake_reaches_every_tool_but_those_that_only_look(bench: Workbench) -> None:
    """The program reads its matcher as a regular expression that looks ahead."""
    (bench.workspace / "there.txt").write_text("here", encoding="utf-8")
    spec = AgentSpec("x", "Do it.", allowed_tools=["Write", "Read", "Bash"], hooks=tool_gate(lambda: True, "held back"))
    place = str(bench.workspace / "w.txt")
    calls: Calls = [
        {"Write": {"file_path": place, "content": "x"}},
        {"Bash": {"command": f"touch {place}"}},
        {"Read": {"file_path": str(bench.workspace / "there.txt")}},
    ]
    _, _, (first, second, third) = await run(bench, spec, calls)
    assert "held back" in first
    assert "held back" in second
    assert "here" in third
    assert written(bench) == ["there.txt"]


# What is on offer.


async def test_searching_is_on_offer_beside_bash_to_subagents_too(bench: Workbench) -> None:
    spec = coordinator("协调者", "", {"coder": worker("d", "p")})
    send = {"Agent": {"description": "d", "prompt": "p", "subagent_type": "coder"}}
    (bench.workspace / "found.txt").write_text("needle")
    _, model, results = await run(
        bench,
        spec,
        [{"TodoWrite": {"todos": [{"content": "a", "status": "pending", "activeForm": "b"}]}}, send],
        coder=[{"Grep": {"pattern": "needle"}}, {"Glob": {"pattern": "*.txt"}}],
    )
    assert "Todos have been modified" in results[0]
    found = [each.result for each in model.asked_of("coder")[1:]]
    assert ["found.txt" in text for text in found] == [True, True]
    main, coder = (model.asked_of(part)[0].conversation.tools for part in ("main", "coder"))
    assert {"Agent", "Bash", "Glob", "Grep", "TodoWrite"} <= set(main)
    assert {"Bash", "Glob", "Grep"} <= set(coder)
    assert {"Monitor", "Workflow", "CronCreate", "EnterWorktree"}.isdisjoint(main)


async def test_without_a_list_of_tools_the_program_takes_searching_away(tmp_path: Path) -> None:
    """Why `build_options` names the tools: when this fails, the list may have become needless."""
    shown = {"ENABLE_TOOL_SEARCH": "false"}
    options = ClaudeAgentOptions(model="claude-haiku-5-5", cwd=tmp_path, setting_sources=[], env=shown)
    async with scripted([], tmp_path / "home") as model, ClaudeSDKClient(options) as client:
        await client.query("go")
        async for _ in client.receive_response():
            pass
    tools = model.requests[0].conversation.tools
    assert "Bash" in tools
    assert {"Glob", "Grep"}.isdisjoint(tools)
    assert "Monitor" in tools


# Spill.


def image() -> bytes:
    """A small picture of noise, so that it does not compress away."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + bytes((x * 7919 + y * 104729) % 251 for x in range(192)) for y in range(64))
    head = struct.pack(">IIBBBBB", 64, 64, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


async def test_long_output_reaches_the_model_as_a_pointer_and_can_be_read(bench: Workbench) -> None:
    text = "\n".join(f"line {number} of a long file" for number in range(400))
    (bench.workspace / "long.txt").write_text(text)
    (bench.workspace / "noise.png").write_bytes(image())
    spec = AgentSpec("x", "Do it.", allowed_tools=["Read", "Bash"])
    # The first 16 hex digits of the content's sha256.
    spilled = bench.root / "spill" / "f56081257e077cbc.txt"
    _, _, results = await run(
        bench,
        spec,
        [
            {"Read": {"file_path": str(bench.workspace / "long.txt")}},
            {"Bash": {"command": "cat long.txt"}},
            {"Read": {"file_path": str(spilled)}},
            {"Read": {"file_path": str(bench.workspace / "noise.png")}},
        ],
    )
    assert [file.read_text() for file in spilled.parent.iterdir()] == [text]
    assert [f"已落盘到 .flower/spill/{spilled.name}" in result for result in results[:2]] == [True, True]
    assert "line 399" not in "".join(results[:2])
    assert "line 399 of a long file" in results[2]
    assert "已落盘" not in "".join(results[2:])
