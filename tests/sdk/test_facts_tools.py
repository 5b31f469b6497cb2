"""What the program does with tools, hooks and prompts: the lines marked T of the facts page, sections 3 and 7."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import (
    AgentDefinition,
    AssistantMessage,
    HookMatcher,
    ToolAnnotations,
    ToolUseBlock,
    create_sdk_mcp_server,
    tool,
)

from tests.sdk.bare import client, result_of, say
from tests.sdk.stage import stage

pytestmark = [pytest.mark.real, pytest.mark.timeout(60)]

Call = dict[str, Any]


@tool("ask", "asks", {"type": "object", "properties": {}}, annotations=ToolAnnotations(readOnlyHint=True))
async def ask(_args: dict[str, Any]) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": "the answer"}]}


def servers() -> dict[str, Any]:
    return {"human": create_sdk_mcp_server("human", tools=[ask])}


# -- which tools are on offer (traps 3 and 7) ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "shown", "searched"),
    [
        ({"env": {"ENABLE_TOOL_SEARCH": ""}}, False, True),
        ({"env": {"ENABLE_TOOL_SEARCH": "false"}}, True, False),
        ({"env": {"ENABLE_TOOL_SEARCH": ""}, "tools": ["Bash"]}, True, False),
    ],
    ids=["by default", "without searching", "in a short list"],
)
async def test_a_tool_of_a_server_is_hidden_behind_a_search_and_can_be_called_all_the_same(
    tmp_path: Path, given: dict[str, Any], shown: bool, searched: bool
) -> None:
    lines = [{"call": {"mcp__human__ask": {}}}, {"expect": {"result": "the answer", "error": False}, "say": "Done."}]
    allowed = ["mcp__human__ask"]
    async with (
        stage(tmp_path, lines) as here,
        client(here, mcp_servers=servers(), allowed_tools=allowed, **given) as connected,
    ):
        assert result_of(await say(connected)).result == "Done."
        on_offer = here.model.asked_of()[0].conversation.tools
    assert ("mcp__human__ask" in on_offer, "ToolSearch" in on_offer) == (shown, searched)


@pytest.mark.parametrize(
    ("search", "beside"), [("false", []), ("", ["DeferredToolPlaceholder"])], ids=["without searching", "by default"]
)
async def test_a_subagent_whose_only_tool_is_a_question_is_shown_it_without_a_search(
    tmp_path: Path, search: str, beside: list[str]
) -> None:
    delegate = {"description": "d", "prompt": "do", "subagent_type": "asker", "run_in_background": False}
    parts: dict[str, Any] = {
        "asker": {
            "match": {"agent": "sub"},
            "lines": [{"call": {"mcp__human__ask": {}}}, {"expect": {"result": "the answer"}, "say": "Asked."}],
        },
        "main": {"lines": [{"call": {"Agent": delegate}}, {"expect": {"result": "Asked."}, "say": "Done."}]},
    }
    agents = {"asker": AgentDefinition(description="asks", prompt="ASKER", tools=["mcp__human__ask"], model="inherit")}
    given: dict[str, Any] = {"agents": agents, "mcp_servers": servers(), "allowed_tools": ["mcp__human__ask"]}
    async with stage(tmp_path, **parts) as here, client(here, env={"ENABLE_TOOL_SEARCH": search}, **given) as connected:
        assert result_of(await say(connected)).result == "Done."
        assert here.model.asked_of("asker")[0].conversation.tools == (*beside, "mcp__human__ask")


@pytest.mark.parametrize("named", [True, False], ids=["named", "not named"])
@pytest.mark.parametrize("env", [{}, {"CLAUDE_CODE_ENABLE_TASKS": "0"}], ids=["by default", "without the task tools"])
async def test_the_plan_of_old_is_there_where_it_is_named_and_the_task_tools_are_off(
    tmp_path: Path, env: dict[str, str], named: bool
) -> None:
    there = named and bool(env)
    plan = {"todos": [{"content": "a", "status": "pending", "activeForm": "doing a"}]}
    expected: dict[str, Any] = {"error": not there} if there else {"error": True, "result": "No such tool available"}
    lines = [{"call": {"TodoWrite": plan}}, {"expect": expected, "say": "Done."}]
    given: dict[str, Any] = {"tools": ["Bash", "TaskCreate", "TodoWrite"]} if named else {}
    async with stage(tmp_path, lines) as here, client(here, env=env, **given) as connected:
        assert result_of(await say(connected)).result == "Done."
        on_offer = here.model.asked_of()[0].conversation.tools
    assert ("TodoWrite" in on_offer, "TaskCreate" in on_offer) == (there, named and not there)


async def test_a_bare_sleep_is_refused_and_a_loop_is_not(tmp_path: Path) -> None:
    loop = "for i in 1 2; do sleep 0.1; done; echo slept"
    lines = [
        {"call": {"Bash": {"command": "sleep 30"}}},
        {"expect": {"error": True, "result": "standalone sleep"}, "call": {"Bash": {"command": loop}}},
        {"expect": {"error": False, "result": "slept"}, "say": "Done."},
    ]
    async with stage(tmp_path, lines) as here, client(here, allowed_tools=["Bash"]) as connected:
        assert result_of(await say(connected)).result == "Done."


# -- hooks (trap 5) -----------------------------------------------------------------------------------------------


async def nothing(_data: Any, _call: Any, _context: Any) -> Any:
    return None


async def no_opinion(_data: Any, _call: Any, _context: Any) -> Any:
    return {}


async def for_ever(_data: Any, _call: Any, _context: Any) -> Any:
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("hook", "given", "written"),
    [
        (nothing, {}, True),
        (nothing, {"on_failure": "block"}, False),
        (no_opinion, {"on_failure": "block"}, True),
        (for_ever, {"timeout": 1}, False),
        (for_ever, {"timeout": 1, "on_failure": "block"}, False),
    ],
    ids=["None", "None, to block", "no opinion, to block", "too long", "too long, to block"],
)
async def test_a_hook_without_an_answer_lets_the_call_through_and_one_without_an_end_does_not(
    tmp_path: Path, hook: Any, given: dict[str, Any], written: bool
) -> None:
    lines = [{"call": {"Write": {"file_path": "${workspace}/f.txt", "content": "x"}}}, "Done."]
    hooks: Any = {"PreToolUse": [HookMatcher(hooks=[hook], **given)]}
    async with stage(tmp_path, lines) as here:
        async with client(here, hooks=hooks, permission_mode="acceptEdits") as connected:
            await say(connected)
        assert (here.workspace / "f.txt").exists() is written


# -- prompts (trap 6) ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verbatim", [False, True])
@pytest.mark.parametrize("words", ["/clear", "/cost"])
async def test_words_that_look_like_a_command_are_run_as_one_unless_they_are_verbatim(
    tmp_path: Path, words: str, verbatim: bool
) -> None:
    async with stage(tmp_path, ["Heard."]) as here, client(here, verbatim_prompts=verbatim) as connected:
        result = result_of(await say(connected, words))
        assert [asked.prompt for asked in here.model.asked_of()] == ([words] if verbatim else [])
    assert (result.result == "Heard.") is verbatim


async def test_a_command_that_there_is_not_goes_to_the_model(tmp_path: Path) -> None:
    async with stage(tmp_path, ["Heard."]) as here, client(here) as connected:
        assert result_of(await say(connected, "/nosuchthing now")).result == "Heard."


@pytest.mark.parametrize("verbatim", [False, True])
async def test_a_file_that_words_name_is_read_into_them_unless_they_are_verbatim(
    tmp_path: Path, verbatim: bool
) -> None:
    async with stage(tmp_path, ["Heard."]) as here, client(here, verbatim_prompts=verbatim) as connected:
        (here.workspace / "secret.txt").write_text("the content of a file", encoding="utf-8")
        await say(connected, "look at @secret.txt")
        (asked,) = here.model.asked_of()
    assert ("the content of a file" in str(asked.conversation.body)) is not verbatim


# -- delegation (trap 2) ------------------------------------------------------------------------------------------


def delegating(**call: Any) -> dict[str, Any]:
    delegate = {"description": "d", "prompt": "do", "subagent_type": "coder", **call}
    return {
        "coder": {"match": {"agent": "sub"}, "lines": [{"name": "report", "say": "The report."}]},
        "main": {
            "lines": [
                {"call": {"Agent": delegate}},
                {
                    "name": "after",
                    "either": [
                        {"when": {"result": "The report."}, "say": "It reported.", "then": "end"},
                        {"say": "It works.", "then": "later"},
                    ],
                },
                {"name": "later", "say": "Now it has reported."},
            ]
        },
    }


AGENTS = {"coder": AgentDefinition(description="codes", prompt="CODER", tools=["Read"], model="inherit")}


@pytest.mark.parametrize(
    ("env", "call"),
    [({"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1"}, {}), ({}, {"run_in_background": False})],
    ids=["by the variable", "by the call"],
)
async def test_delegation_blocks_where_it_is_told_to(tmp_path: Path, env: dict[str, str], call: Call) -> None:
    async with stage(tmp_path, **delegating(**call)) as here, client(here, agents=AGENTS, env=env) as connected:
        messages = await say(connected)
    assert result_of(messages).result == "It reported."
    names = [
        block.name
        for each in messages
        if isinstance(each, AssistantMessage)
        for block in each.content
        if isinstance(block, ToolUseBlock)
    ]
    assert names == ["Agent"]


async def test_delegation_is_in_the_background_by_default_and_a_late_report_has_a_turn_of_its_own(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path, **delegating()) as here, client(here, agents=AGENTS) as connected:
        here.model.pause("coder.report")
        first = result_of(await say(connected))
        assert (first.result, first.origin) == ("It works.", None)
        here.model.release("coder.report")
        second = result_of([each async for each in connected.receive_response()])
        (told,) = here.model.asked_of("main.later")
    assert second.result == "Now it has reported."
    assert second.origin is not None
    assert second.origin["kind"] == "task-notification"
    assert "<result>The report.</result>" in str(told.conversation.body["messages"][-1])


async def test_a_report_that_comes_while_the_turn_runs_makes_no_second_result(tmp_path: Path) -> None:
    """Held back until it has come: what follows the second result would be the answer to the next prompt."""
    delegate = {"description": "d", "prompt": "do", "subagent_type": "coder"}
    parts: dict[str, Any] = {
        "coder": {"match": {"agent": "sub"}, "lines": [{"name": "report", "say": "The report."}]},
        "main": {
            "lines": [
                {"call": {"Agent": delegate}},
                {"name": "busy", "call": {"Bash": {"command": "while [ ! -e come ]; do sleep 0.1; done"}}},
                {"name": "after", "say": "It works and has heard."},
                {"expect": {"prompt": "next"}, "say": "Next."},
            ]
        },
    }
    async with stage(tmp_path, **parts) as here, client(here, agents=AGENTS, allowed_tools=["Bash"]) as connected:
        turn = asyncio.create_task(say(connected))
        await here.model.asked("coder.report")
        await here.model.asked("main.busy")
        await here.model.settled()
        await asyncio.sleep(0.5)
        (here.workspace / "come").touch()
        assert result_of(await turn).result == "It works and has heard."
        assert "The report." in str(here.model.asked_of("main.after")[0].conversation.body["messages"])
        assert result_of(await say(connected, "next")).result == "Next."
