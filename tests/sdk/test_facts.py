"""What the SDK and its bundled program do, where the runtime rests on it. If one fails, look at the design again.

Observed with SDK 0.2.189. The rest of what is relied upon is held by the tests of the runtime itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    CLIJSONDecodeError,
    HookMatcher,
    ToolAnnotations,
    create_sdk_mcp_server,
    tool,
)

from flower.core import child
from flower.core.human import TOOL_NAME, HumanChannel
from flower.stores.sqlite import SqliteSessionStore
from tests.sdk.bare import client, result_of, say
from tests.sdk.stage import spec, stage

pytestmark = [pytest.mark.real, pytest.mark.timeout(60)]


# -- money: where the program's count begins ----------------------------------------------------------------------


async def test_a_session_resumed_from_local_files_goes_on_counting(tmp_path: Path) -> None:
    async with stage(tmp_path, ["one", "two"]) as here:
        async with client(here) as connected:
            first = result_of(await say(connected))
        async with client(here, resume=first.session_id) as connected:
            second = result_of(await say(connected))
    assert first.total_cost_usd
    assert second.session_id == first.session_id
    assert second.total_cost_usd == pytest.approx(2 * first.total_cost_usd)


async def test_a_session_resumed_from_a_store_begins_at_nothing_since_its_last_entry_misses_the_mirror(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path, ["one", "two"]) as here:
        store = SqliteSessionStore(here.home / "sessions.db")
        async with client(here, session_store=store) as connected:
            first = result_of(await say(connected))
        async with client(here, session_store=store, resume=first.session_id) as connected:
            second = result_of(await say(connected))
        store.close()
    assert first.total_cost_usd
    assert second.total_cost_usd == pytest.approx(first.total_cost_usd)


async def test_one_program_counts_on_from_prompt_to_prompt(tmp_path: Path) -> None:
    async with stage(tmp_path, ["one", "two"]) as here, client(here) as connected:
        first, second = result_of(await say(connected)), result_of(await say(connected))
    assert first.total_cost_usd
    assert second.total_cost_usd == pytest.approx(2 * first.total_cost_usd)


# -- results and errors -------------------------------------------------------------------------------------------


async def test_an_api_error_is_a_result_and_no_exception_and_the_client_takes_the_next_prompt(tmp_path: Path) -> None:
    lines = [{"fail": {"status": 529, "times": 1}, "say": "Fine."}]
    async with stage(tmp_path, lines) as here, client(here) as connected:
        messages = await say(connected)
        failed = result_of(messages)
        assert (failed.subtype, failed.is_error, failed.api_error_status) == ("success", True, 529)
        (synthetic,) = [each for each in messages if isinstance(each, AssistantMessage)]
        assert (synthetic.model, synthetic.error) == ("<synthetic>", "server_error")
        assert not result_of(await say(connected)).is_error


async def test_a_result_names_the_prompts_that_it_answers(tmp_path: Path) -> None:
    name = str(uuid.uuid4())

    async def prompt() -> AsyncIterator[dict[str, Any]]:
        message = {"role": "user", "content": "go"}
        yield {"type": "user", "message": message, "parent_tool_use_id": None, "uuid": name}

    async with stage(tmp_path, ["one"]) as here, client(here) as connected:
        await connected.query(prompt())
        assert result_of([each async for each in connected.receive_response()]).user_message_uuids == [name]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_a_line_over_the_default_limit_ends_the_run(tmp_path: Path) -> None:
    lines = [{"call": {"Write": {"file_path": "${workspace}/big.txt", "content": "x" * 1_500_000}}}, "Written."]
    async with stage(tmp_path, lines, strict=False) as here, client(here, max_buffer_size=None) as connected:
        with pytest.raises(CLIJSONDecodeError):
            await say(connected)
    gc.collect()  # the SDK leaves the program's output unclosed then; let it say so here


@pytest.mark.parametrize("there", [True, False], ids=["from the same folder", "from another folder"])
async def test_a_stored_session_is_found_from_the_folder_in_which_it_began(tmp_path: Path, there: bool) -> None:
    async with stage(tmp_path, ["one", "two"]) as here:
        store = SqliteSessionStore(here.home / "sessions.db")
        config = {"CLAUDE_CONFIG_DIR": str(here.home / "one")}
        async with client(here, session_store=store, env=config) as connected:
            session = result_of(await say(connected)).session_id
        other = here.home / "other"
        other.mkdir()
        place = str(here.workspace if there else other)
        config = {"CLAUDE_CONFIG_DIR": str(here.home / "two")}
        with contextlib.nullcontext() if there else pytest.raises(Exception, match="No conversation found"):
            async with client(here, session_store=store, resume=session, cwd=place, env=config) as connected:
                assert result_of(await say(connected)).session_id == session
        store.close()


# -- tools --------------------------------------------------------------------------------------------------------


async def test_questions_and_plan_are_on_offer_without_a_search(tmp_path: Path) -> None:
    async with stage(tmp_path, ["one"]) as here, here.runtime() as runtime:
        await runtime.run(spec(mcp_servers=HumanChannel().mcp_servers()), "go")
        (asked,) = here.model.asked_of()
    assert {TOOL_NAME, "mcp__human__inbox", "TodoWrite", "Bash", "Read"} <= set(asked.conversation.tools)
    assert not {"ToolSearch", "TaskCreate"} & set(asked.conversation.tools)


@pytest.mark.parametrize(("read_only", "most"), [(True, 2), (False, 1)])
async def test_two_calls_in_one_message_run_together_only_if_the_tool_is_marked_read_only(
    tmp_path: Path, read_only: bool, most: int
) -> None:
    running, seen, both = 0, 0, asyncio.Event()

    @tool("wait", "waits", {"type": "object", "properties": {}}, annotations=ToolAnnotations(readOnlyHint=read_only))
    async def wait(_args: dict[str, Any]) -> dict[str, Any]:
        nonlocal running, seen
        running += 1
        seen = max(seen, running)
        if running == 2:
            both.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.5):
                await both.wait()
        running -= 1
        return {"content": [{"type": "text", "text": "ok"}]}

    lines = [{"call": [{"mcp__s__wait": {}}, {"mcp__s__wait": {}}]}, "Done."]
    servers = {"s": create_sdk_mcp_server("s", tools=[wait])}
    async with (
        stage(tmp_path, lines) as here,
        client(here, mcp_servers=servers, allowed_tools=["mcp__s__wait"]) as connected,
    ):
        assert not result_of(await say(connected)).is_error
    assert seen == most


@pytest.mark.parametrize(("on_failure", "written"), [(None, True), ("block", False)])
async def test_a_hook_that_raises_lets_the_call_through_unless_it_is_told_to_block(
    tmp_path: Path, on_failure: Any, written: bool
) -> None:
    async def broken(_data: Any, _call: Any, _context: Any) -> Any:
        raise ValueError("a bug in a guard")

    hooks: Any = {"PreToolUse": [HookMatcher(hooks=[broken], **({"on_failure": on_failure} if on_failure else {}))]}
    lines = [{"call": {"Write": {"file_path": "${workspace}/f.txt", "content": "x"}}}, "Done."]
    async with stage(tmp_path, lines) as here:
        async with client(here, hooks=hooks, permission_mode="acceptEdits") as connected:
            await say(connected)
        assert (here.workspace / "f.txt").exists() is written


async def test_an_interrupt_cancels_a_tool_that_waits_and_the_client_goes_on(tmp_path: Path) -> None:
    began, cancelled = asyncio.Event(), asyncio.Event()

    @tool("wait", "waits", {"type": "object", "properties": {}})
    async def wait(_args: dict[str, Any]) -> dict[str, Any]:
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        raise AssertionError("nothing sets it")

    main = {
        "lines": [{"call": {"mcp__s__wait": {}}}],
        "anytime": [{"when": {"prompt": "second"}, "say": "Still here.", "then": "end"}],
    }
    servers = {"s": create_sdk_mcp_server("s", tools=[wait])}
    async with (
        stage(tmp_path, main=main) as here,
        client(here, mcp_servers=servers, allowed_tools=["mcp__s__wait"]) as connected,
    ):
        turn = asyncio.create_task(say(connected, "first"))
        await began.wait()
        await connected.interrupt()
        cut = result_of(await turn)
        assert (cut.subtype, cut.is_error, cut.terminal_reason) == ("error_during_execution", True, "aborted_tools")
        async with asyncio.timeout(5):
            await cancelled.wait()
        assert result_of(await say(connected, "second")).result == "Still here."


# -- the start of the program -------------------------------------------------------------------------------------


async def test_the_sdk_sets_no_variable_for_its_child_that_the_allow_list_does_not_know(tmp_path: Path) -> None:
    names = tmp_path / "names.json"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\nawk 'BEGIN {{ for (name in ENVIRON) print name }}' > {names}\n", encoding="utf-8")
    program.chmod(0o700)
    connecting = asyncio.create_task(
        ClaudeSDKClient(ClaudeAgentOptions(cli_path=program, cwd=tmp_path, enable_file_checkpointing=True)).connect()
    )
    async with asyncio.timeout(20):
        while not names.exists() or not names.read_text(encoding="utf-8"):  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.05)
    connecting.cancel()
    with contextlib.suppress(Exception, asyncio.CancelledError):
        await connecting
    set_by_sdk = set(names.read_text(encoding="utf-8").split()) - set(os.environ) - {"_", "OLDPWD"}
    assert "CLAUDE_AGENT_SDK_VERSION" in set_by_sdk
    assert set_by_sdk <= set(child.SDK)


async def test_the_transcript_of_a_run_can_be_read_by_people(tmp_path: Path) -> None:
    async with stage(tmp_path, ["Said by the model."]) as here, here.runtime() as runtime:
        session = (await runtime.run(spec(), "Said by a person.")).session_id
        key: Any = {"project_key": runtime.project_key, "session_id": session}
        entries = await runtime.store.load(key)
    text = json.dumps(entries, ensure_ascii=False)
    assert "Said by the model." in text
    assert "Said by a person." in text
