"""Hooks: the rules that hold every time (behaviour 11, API 8)."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import AgentDefinition, HookMatcher
from hypothesis import given
from hypothesis import strategies as st

from flower import texts
from flower.core import guard
from flower.core.guard import (
    delegate_guard,
    index_guard,
    isolate_guard,
    isolated,
    merge_hooks,
    spill_guard,
    wants_isolation,
    whitelist_guard,
    workbench_hooks,
)
from flower.core.workbench import Workbench


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    return Workbench(tmp_path / "ws").ensure()


async def fire(matcher: HookMatcher | None, tool: str = "Bash", /, **data: Any) -> Mapping[str, Any]:
    assert matcher is not None
    given: Any = {"tool_name": tool, "tool_input": {}, **data}
    return await matcher.hooks[0](given, "toolu_1", {"signal": None})


async def reason(matcher: HookMatcher | None, tool: str = "Bash", /, **data: Any) -> str:
    """The text of a denial, or the empty string if the call passed."""
    output = await fire(matcher, tool, **data)
    if output == {}:
        return ""
    inner = output["hookSpecificOutput"]
    assert (inner["hookEventName"], inner["permissionDecision"]) == ("PreToolUse", "deny")
    assert set(inner) == {"hookEventName", "permissionDecision", "permissionDecisionReason"}
    return str(inner["permissionDecisionReason"])


def test_every_guard_fails_closed(bench: Workbench) -> None:
    guards = [whitelist_guard([]), delegate_guard(), index_guard(bench), spill_guard(bench)]
    assert [each.on_failure for each in guards if each is not None] == ["block"] * 4


def test_the_groups_of_tools_are_the_specified_ones() -> None:
    assert (guard.HANDS_ON, guard.WRITE_ONLY, guard.BULKY) == (
        "Bash|Write|Edit|NotebookEdit",
        "Write|Edit|NotebookEdit",
        "Bash|Read|Grep|Glob|WebFetch|WebSearch",
    )


# Whitelist.


@pytest.mark.parametrize(
    ("allowed", "banned"),
    [
        (None, "Bash|Write|Edit|NotebookEdit"),
        ([], "Bash|Write|Edit|NotebookEdit"),
        (["Read", "Glob"], "Bash|Write|Edit|NotebookEdit"),
        (["Bash", "Read"], "Write|Edit|NotebookEdit"),
        (["Bash(git status:*)"], "Write|Edit|NotebookEdit"),
        (["NotebookEdit", "Bash"], "Write|Edit"),
        (["bash"], "Bash|Write|Edit|NotebookEdit"),
    ],
)
def test_what_is_not_on_the_list_is_banned(allowed: list[str] | None, banned: str) -> None:
    matcher = whitelist_guard(allowed)
    assert matcher is not None
    assert matcher.matcher == banned


def test_a_role_with_all_four_hands_needs_no_guard() -> None:
    assert whitelist_guard(["Edit", "Write", "NotebookEdit", "Bash"]) is None


async def test_a_refusal_names_role_and_tool_and_says_that_it_is_meant() -> None:
    text = await reason(whitelist_guard(["Read"], role="确认需求"), "Write")
    assert text.startswith("确认需求没有 Write")
    assert "有意的" in text
    assert "回话" in text


async def test_a_refusal_in_english_says_the_same() -> None:
    with texts.speaking("en"):
        named, unnamed = whitelist_guard([], role="Clarify"), whitelist_guard([])
    assert await reason(named, "Write") == (
        "Clarify has no tool Write. This is intended and not a missing permission. "
        "Put your conclusion into your reply; do not try to get around it."
    )
    assert (await reason(unnamed, "Write")).startswith("This role has no tool Write.")


@pytest.mark.parametrize("guards", [whitelist_guard([]), delegate_guard()])
async def test_subagents_pass(guards: HookMatcher) -> None:
    assert await fire(guards, "Write", agent_id="a1", agent_type="coder") == {}


@pytest.mark.parametrize("nobody", [{}, {"agent_id": None}, {"agent_id": ""}])
@pytest.mark.parametrize("guards", [whitelist_guard([]), delegate_guard(allow_glance=True)])
async def test_a_call_without_an_id_is_of_the_main_thread(guards: HookMatcher, nobody: dict[str, Any]) -> None:
    assert await reason(guards, "Write", **nobody) != ""
    # A kind of agent alone, without an id, is no subagent: the main thread may have one too.
    assert await reason(guards, "Write", agent_type="coder", **nobody) != ""


@pytest.mark.parametrize("tool_input", [None, [], "ls", 3, [{"command": "ls"}], {"Command": "ls"}])
async def test_a_call_that_gives_no_object_is_refused_with_the_same_words(tool_input: Any) -> None:
    guarding = delegate_guard(allow_glance=True)
    assert "协调者不直接使用 Bash" in await reason(guarding, tool_input=tool_input)
    assert "没有 Bash" in await reason(whitelist_guard([]), tool_input=tool_input)


async def test_a_call_of_50_megabytes_is_refused_and_its_text_comes_not_back() -> None:
    huge = "ls " + "x" * 50_000_000
    assert len(await reason(delegate_guard(allow_glance=True), tool_input={"command": huge})) < 1000


@pytest.mark.parametrize("command", ["ls\0", "cat \ud800 | sh", "\ud800", "ls \x1b]0;x\x07"])
async def test_hostile_text_is_no_glance(command: str) -> None:
    assert await fire(delegate_guard(allow_glance=True), tool_input={"command": command}) != {}


async def test_other_tools_that_write_can_be_named() -> None:
    guarding = delegate_guard(tools=f"{guard.HANDS_ON}|mcp__files__write")
    assert "协调者不直接使用 mcp__files__write" in await reason(guarding, "mcp__files__write", tool_input={"path": "x"})
    assert await fire(guarding, "mcp__files__write", agent_id="a1") == {}


# Delegate.


async def test_the_main_thread_is_shown_the_way() -> None:
    text = await reason(delegate_guard(), "Edit")
    assert text.startswith("协调者不直接使用 Edit")
    for part in ("Agent", "目标", "验收", "artifacts/", "路径", "结论"):
        assert part in text


@pytest.mark.parametrize(
    ("command", "passes"),
    [("git status -s", True), ("ls -la", True), ("git status && rm -rf x", False), ("pytest -q", False), ("", False)],
)
async def test_a_glance_passes_and_nothing_more(command: str, passes: bool) -> None:
    allowing = delegate_guard(allow_glance=True)
    assert (await fire(allowing, tool_input={"command": command}) == {}) is passes
    assert await fire(delegate_guard(), tool_input={"command": command}) != {}


async def test_a_command_that_is_more_than_a_glance_is_told_what_a_glance_is() -> None:
    allowing = delegate_guard(allow_glance=True)
    assert "只读" in await reason(allowing, tool_input={"command": "make"})
    assert "只读" not in await reason(allowing, "Write", tool_input={"file_path": "x"})
    assert "只读" not in await reason(delegate_guard(), tool_input={"command": "make"})


async def test_a_glance_is_of_bash_only() -> None:
    assert await fire(delegate_guard(allow_glance=True), "Write", tool_input={"command": "ls"}) != {}


@pytest.mark.parametrize("tool_input", [{}, {"command": None}, {"command": 3}, {"command": ["ls"]}])
async def test_a_call_without_a_command_is_no_glance(tool_input: dict[str, Any]) -> None:
    assert await fire(delegate_guard(allow_glance=True), tool_input=tool_input) != {}


def test_the_tools_to_delegate_can_be_chosen() -> None:
    assert delegate_guard(tools=guard.WRITE_ONLY).matcher == "Write|Edit|NotebookEdit"


# Index.


async def test_a_write_inside_the_workbench_rewrites_the_index(bench: Workbench) -> None:
    script = bench.scripts / "run.sh"
    script.write_text("# desc: runs it\n")
    assert await fire(index_guard(bench), "Write", tool_input={"file_path": str(script)}) == {}
    assert "run.sh" in bench.index_path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("where", "path"),
    [({"cwd": "{ws}"}, ".flower/notes/why.md"), ({"cwd": "{ws}/src"}, "../.flower/notes/why.md"), ({}, ".flower/x")],
)
async def test_a_relative_path_is_of_the_agents_folder(bench: Workbench, where: dict[str, str], path: str) -> None:
    (bench.notes / "why.md").write_text("# because\n")
    placed = {name: folder.format(ws=bench.workspace) for name, folder in where.items()}
    assert await fire(index_guard(bench), "Write", tool_input={"file_path": path}, **placed) == {}
    assert "why.md" in bench.index_path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", ["src/main.py", "", ".flower-other/x", "../ws2/.flower/x", "\0"])
async def test_a_write_elsewhere_leaves_the_index_alone(bench: Workbench, path: str) -> None:
    assert await fire(index_guard(bench), "Write", tool_input={"file_path": path}) == {}
    assert not bench.index_path.exists()


async def test_a_write_without_a_path_has_no_opinion(bench: Workbench) -> None:
    assert await fire(index_guard(bench), "Write", tool_input={"file_path": None}) == {}
    assert await fire(index_guard(bench), "Write") == {}


async def test_an_index_that_cannot_be_written_does_not_spoil_the_write(bench: Workbench) -> None:
    bench.index_path.mkdir()
    assert await fire(index_guard(bench), "Write", tool_input={"file_path": str(bench.notes / "n")}) == {}


# Spill.

LONG = "head " + "x" * 3995
NAME = f"{hashlib.sha256(LONG.encode()).hexdigest()[:16]}.txt"
POINTER = (
    f"[输出 4000 字符,已落盘到 .flower/spill/{NAME} —— 需要全文用 Read 读它,需要找东西用 Grep 搜它]\n"
    f"开头 400 字符:head {'x' * 395}"
)


def spilled(output: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": output}}


async def test_a_long_result_becomes_a_pointer_to_a_file(bench: Workbench) -> None:
    assert await fire(spill_guard(bench), tool_response=LONG) == spilled(POINTER)
    assert (bench.root / "spill" / NAME).read_text(encoding="utf-8") == LONG


async def test_a_result_below_the_threshold_stays(bench: Workbench) -> None:
    assert await fire(spill_guard(bench), tool_response=LONG[:-1]) == {}
    assert await fire(spill_guard(bench), tool_response="") == {}
    assert await fire(spill_guard(bench), tool_response=None) == {}
    assert await fire(spill_guard(bench)) == {}
    assert not (bench.root / "spill").exists()


async def test_the_shape_of_a_result_is_kept(bench: Workbench) -> None:
    output = {"stdout": LONG, "stderr": "", "interrupted": False, "file": {"content": LONG, "numLines": 3}}
    assert await fire(spill_guard(bench), tool_response=output) == spilled(
        {"stdout": POINTER, "stderr": "", "interrupted": False, "file": {"content": POINTER, "numLines": 3}}
    )


@pytest.mark.parametrize(
    "output",
    [
        [LONG],
        {"content": [{"type": "text", "text": LONG}]},
        {"type": "image", "file": {"base64": LONG}},
        {"stdout": LONG, "isImage": True},
    ],
)
async def test_what_may_hold_an_image_is_never_touched(bench: Workbench, output: Any) -> None:
    assert await fire(spill_guard(bench), "Read", tool_response=output) == {}


async def test_newlines_of_the_head_become_spaces_and_the_file_keeps_them(bench: Workbench) -> None:
    output = "a\nb\r\n" * 1000
    replaced = (await fire(spill_guard(bench), tool_response=output))["hookSpecificOutput"]["updatedToolOutput"]
    assert replaced.splitlines()[1].startswith("开头 400 字符:a b")
    assert "\n" not in replaced.partition("\n")[2]
    (file,) = (bench.root / "spill").iterdir()
    assert file.read_bytes() == output.encode()


async def test_the_same_content_is_written_once(bench: Workbench) -> None:
    await fire(spill_guard(bench), tool_response=LONG)
    (bench.root / "spill" / NAME).write_text("edited by a person")
    await fire(spill_guard(bench), tool_response={"stdout": LONG})
    assert (bench.root / "spill" / NAME).read_text() == "edited by a person"


async def test_a_broken_character_is_no_reason_to_fail(bench: Workbench) -> None:
    output = "\ud800" * 4000
    assert await fire(spill_guard(bench), tool_response=output) != {}


@pytest.mark.parametrize(
    "tool_input",
    [
        {"file_path": "{absolute}/abc.txt"},
        {"file_path": ".flower/spill/abc.txt"},
        {"command": "head -c 5000 .flower/spill/abc.txt"},
        {"pattern": "x", "path": "{absolute}"},
        {"many": [{"deep": "{absolute}/abc.txt"}]},
    ],
)
async def test_reading_a_spill_passes_or_it_would_spill_for_ever(bench: Workbench, tool_input: dict[str, Any]) -> None:
    text = str(tool_input).replace("{absolute}", str(bench.root / "spill"))
    given = eval(text)  # noqa: S307 - the table above, with the real path put in
    assert await fire(spill_guard(bench), "Read", tool_input=given, tool_response=LONG) == {}


@pytest.mark.parametrize(
    "command", ["cd .flower && cat spill/{name}", "cat ../ws/.flower/./spill/{name}|head", "cat '{name}'"]
)
async def test_a_spill_is_known_by_its_name_from_wherever_it_is_read(bench: Workbench, command: str) -> None:
    await fire(spill_guard(bench), tool_response=LONG)
    asked = {"command": command.format(name=NAME)}
    assert await fire(spill_guard(bench), tool_input=asked, tool_response=LONG) == {}


@pytest.mark.parametrize(
    "command", ["cat 0123456789abcdef.txt", f"cat {NAME}x", f"cat x{NAME}", f"cat {NAME}.gz", "x" * 20_000 + f" {NAME}"]
)
async def test_what_only_looks_like_a_spill_is_cut_as_any_other(bench: Workbench, command: str) -> None:
    await fire(spill_guard(bench), tool_response=LONG)
    assert await fire(spill_guard(bench), tool_input={"command": command}, tool_response=LONG) == spilled(POINTER)


async def test_an_external_workbench_shows_its_spills_by_absolute_path(tmp_path: Path) -> None:
    bench = Workbench(tmp_path / "ws", home=tmp_path / "elsewhere").ensure()
    replaced = (await fire(spill_guard(bench), tool_response=LONG))["hookSpecificOutput"]["updatedToolOutput"]
    assert str(bench.root / "spill" / NAME) in replaced


async def test_subagents_spill_too_unless_told_otherwise(bench: Workbench) -> None:
    assert await fire(spill_guard(bench), agent_id="a1", tool_response=LONG) == spilled(POINTER)
    assert await fire(spill_guard(bench, main_only=True), agent_id="a1", tool_response=LONG) == {}
    assert await fire(spill_guard(bench, main_only=True), tool_response=LONG) == spilled(POINTER)


@pytest.mark.parametrize("tool_input", [None, [], "x", 3])
async def test_a_write_that_gives_no_object_has_no_opinion(bench: Workbench, tool_input: Any) -> None:
    assert await fire(index_guard(bench), "Write", tool_input=tool_input) == {}


async def test_a_result_of_50_megabytes_becomes_a_few_lines_and_a_whole_file(bench: Workbench) -> None:
    output = "\0\x1b[31m\ud800文\n" * 6_250_000
    replaced = (await fire(spill_guard(bench), tool_response={"stdout": output}))["hookSpecificOutput"]
    assert len(replaced["updatedToolOutput"]["stdout"]) < 1000
    json.dumps(replaced)
    (file,) = (bench.root / "spill").iterdir()
    assert file.read_bytes() == output.encode(errors="surrogatepass")


async def test_a_result_nested_without_end_is_left_as_it_is(bench: Workbench) -> None:
    output: dict[str, Any] = {"text": LONG}
    for _ in range(100_000):
        output = {"inner": output}
    answer = await fire(spill_guard(bench), tool_response=output)
    assert answer == {}
    while "inner" in output:  # or freeing it would recurse, too
        output = output["inner"]


async def test_half_a_spill_is_never_taken_for_the_whole(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr("os.fsync", full)
        assert await fire(spill_guard(bench), tool_response=LONG) == {}
    assert list((bench.root / "spill").iterdir()) == []
    assert await fire(spill_guard(bench), tool_response=LONG) == spilled(POINTER)
    assert (bench.root / "spill" / NAME).read_text(encoding="utf-8") == LONG


def shape(value: Any) -> Any:
    return {name: shape(inner) for name, inner in value.items()} if isinstance(value, dict) else type(value)


@given(
    output=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=30) | st.lists(st.text(max_size=30), max_size=2),
        lambda inner: st.dictionaries(st.sampled_from(["stdout", "file", "content", "base64"]), inner, max_size=3),
        max_leaves=8,
    )
)
def test_whatever_comes_keeps_its_shape_and_nothing_is_lost(output: Any) -> None:
    with tempfile.TemporaryDirectory() as place:
        bench = Workbench(Path(place)).ensure()
        answer = asyncio.run(_output_of(spill_guard(bench, threshold=10), output))
        if answer == {}:
            return
        replaced = answer["hookSpecificOutput"]["updatedToolOutput"]
        assert shape(replaced) == shape(output)
        kept = {file.read_bytes().decode() for file in (bench.root / "spill").iterdir()}
    assert kept == {text for text in strings(output) if len(text) >= 10}


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            if name != "base64":
                yield from strings(inner)


async def test_a_full_disk_leaves_the_long_result_as_it_is(bench: Workbench) -> None:
    (bench.root / "spill").write_text("no directory")
    assert await fire(spill_guard(bench), tool_response=LONG) == {}


async def test_the_threshold_can_be_chosen(bench: Workbench) -> None:
    assert await fire(spill_guard(bench, threshold=5), tool_response="12345") != {}
    assert await fire(spill_guard(bench, threshold=6), tool_response="12345") == {}


# Isolation.


def crew(*marked: str, plain: tuple[str, ...] = ()) -> dict[str, AgentDefinition]:
    agents = {name: AgentDefinition(description="d", prompt="p") for name in (*marked, *plain)}
    for name in marked:
        isolated(agents[name])
    return agents


def sent(role: Any, **more: Any) -> dict[str, Any]:
    return {"description": "d", "prompt": "p", "subagent_type": role, **more}


def in_a_worktree(tool_input: dict[str, Any]) -> dict[str, Any]:
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "allow",
            "updatedInput": {**tool_input, "isolation": "worktree"},
        }
    }


@pytest.mark.parametrize(
    "tool_input",
    [
        None,
        [],
        "coder",
        {},
        {"subagent_type": None},
        {"subagent_type": ""},
        {"subagent_type": 3},
        {"subagent_type": ["coder"]},
        {"subagent_type": {"coder": 1}},
        {"subagent_type": "\ud800\0"},
        sent("nobody"),
        sent("coder2"),
        sent("x:coder"),
        sent("reader"),
        sent("coder", isolation="worktree"),
        sent("coder", isolation="remote"),
        sent("coder", cwd="/elsewhere"),
    ],
)
async def test_what_is_not_a_plain_call_of_a_marked_role_is_left_alone(tool_input: Any) -> None:
    told: list[Any] = []
    guarding = isolate_guard(crew("coder", plain=("reader",)), on_inject=lambda *said: told.append(said))
    assert await fire(guarding, "Agent", tool_input=tool_input) == {}
    assert told == []


async def test_a_marked_role_gets_a_worktree_and_the_rest_of_the_call_stays() -> None:
    told: list[Any] = []
    guarding = isolate_guard(crew("coder"), on_inject=lambda *said: told.append(said))
    given = sent("coder", model="haiku")
    assert guarding.matcher == "Agent"
    assert await fire(guarding, "Agent", tool_input=given) == in_a_worktree(given)
    assert given == sent("coder", model="haiku")
    assert told == [("coder", "d")]


async def test_a_subagent_that_sends_a_marked_role_is_no_way_around() -> None:
    given = sent("coder")
    assert await fire(isolate_guard(crew("coder")), "Agent", tool_input=given, agent_id="a1") == in_a_worktree(given)


@pytest.mark.parametrize("empty", [{"cwd": ""}, {"isolation": None}, {"cwd": None, "isolation": ""}])
async def test_an_empty_place_is_none(empty: dict[str, Any]) -> None:
    given = sent("coder", **empty)
    assert await fire(isolate_guard(crew("coder")), "Agent", tool_input=given) == in_a_worktree(given)


@pytest.mark.parametrize("name", ["Coder", "CODER", " coder ", "co-der", "co_der", "coder\n", "\uff43oder"])
async def test_a_name_that_the_program_understands_is_no_way_around(name: str) -> None:
    given = sent(name)
    assert await fire(isolate_guard(crew("coder")), "Agent", tool_input=given) == in_a_worktree(given)


async def test_the_exact_name_wins_over_one_that_is_merely_alike() -> None:
    guarding = isolate_guard(crew("my-coder", plain=("My Coder",)))
    assert await fire(guarding, "Agent", tool_input=sent("My Coder")) == {}
    assert await fire(guarding, "Agent", tool_input=sent("my-coder")) != {}
    assert await fire(guarding, "Agent", tool_input=sent("MY_CODER")) != {}


async def test_a_call_that_names_nobody_is_for_the_programs_default_role() -> None:
    nameless = {"description": "d", "prompt": "p"}
    assert await fire(isolate_guard(crew("coder")), "Agent", tool_input=nameless) == {}
    guarding = isolate_guard(crew("general-purpose"))
    assert await fire(guarding, "Agent", tool_input=nameless) == in_a_worktree(nameless)


async def test_a_listener_that_raises_does_not_break_the_call() -> None:
    def broken(_role: str, _description: str) -> None:
        raise ZeroDivisionError

    given = sent("coder")
    guarding = isolate_guard(crew("coder"), on_inject=broken)
    assert await fire(guarding, "Agent", tool_input=given) == in_a_worktree(given)
    assert guarding.on_failure == "block"


async def test_a_call_without_a_description_is_told_as_such() -> None:
    told: list[Any] = []
    guarding = isolate_guard(crew("coder"), on_inject=lambda *said: told.append(said))
    await fire(guarding, "Agent", tool_input={"subagent_type": "coder"})
    assert told == [("coder", None)]


async def test_calls_at_once_get_their_worktrees_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "_APART", 3600)
    guarding = isolate_guard(crew("coder", plain=("reader",)))
    async with asyncio.TaskGroup() as group:
        first, second = (group.create_task(_sent_through(guarding, "coder")) for _ in range(2))
        other = group.create_task(_sent_through(guarding, "reader"))
        await asyncio.wait({first, other})
        assert not second.done()
        second.cancel()


async def _sent_through(guarding: HookMatcher, role: str) -> Mapping[str, Any]:
    return await fire(guarding, "Agent", tool_input=sent(role))


def test_a_copy_of_a_definition_has_lost_its_mark() -> None:
    (agent,) = crew("coder").values()
    assert not wants_isolation(dataclasses.replace(agent, prompt="other"))


def test_a_workbench_isolates_only_where_a_role_is_marked(bench: Workbench) -> None:
    assert matchers(workbench_hooks(bench, agents=crew("coder", plain=("reader",))))["PreToolUse"] == [
        guard.HANDS_ON,
        "Agent",
    ]
    alone = workbench_hooks(bench, agents=crew("coder"), delegate_only=False)
    assert matchers(alone)["PreToolUse"] == ["Agent"]
    assert matchers(workbench_hooks(bench, agents=crew(plain=("reader",))))["PreToolUse"] == [guard.HANDS_ON]
    assert "PreToolUse" not in workbench_hooks(bench, agents={}, delegate_only=False)


def test_the_mark_of_isolation_is_set_read_and_cleared() -> None:
    agent = AgentDefinition(description="d", prompt="p")
    assert not wants_isolation(None)
    assert not wants_isolation(agent)
    assert isolated(agent) is agent
    assert wants_isolation(agent)
    assert not wants_isolation(isolated(agent, flag=False))


# Together.


def matchers(hooks: dict[str, list[HookMatcher]]) -> dict[str, list[str | None]]:
    return {event: [each.matcher for each in each_of] for event, each_of in hooks.items()}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            {},
            {
                "PreToolUse": ["Bash|Write|Edit|NotebookEdit"],
                "PostToolUse": ["Write|Edit", "Bash|Read|Grep|Glob|WebFetch|WebSearch"],
            },
        ),
        (
            {"delegate_only": False},
            {"PostToolUse": ["Write|Edit", "Bash|Read|Grep|Glob|WebFetch|WebSearch"]},
        ),
        ({"delegate_only": False, "spill_threshold": None}, {"PostToolUse": ["Write|Edit"]}),
        ({"delegate_only": False, "spill_threshold": 0}, {"PostToolUse": ["Write|Edit"]}),
    ],
)
def test_the_hooks_of_a_workbench(bench: Workbench, given: dict[str, Any], expected: dict[str, list[str]]) -> None:
    assert matchers(workbench_hooks(bench, **given)) == expected


async def test_the_denial_names_the_real_artifacts_directory(tmp_path: Path) -> None:
    inside = Workbench(tmp_path / "ws")
    outside = Workbench(tmp_path / "ws", home=tmp_path / "elsewhere")
    assert ".flower/artifacts/" in await reason(workbench_hooks(inside)["PreToolUse"][0])
    assert f"{outside.artifacts}/" in await reason(workbench_hooks(outside)["PreToolUse"][0])


async def test_a_workbench_lets_a_glance_through_when_told(bench: Workbench) -> None:
    glancing = workbench_hooks(bench, allow_glance=True)["PreToolUse"][0]
    assert await fire(glancing, tool_input={"command": "ls"}) == {}


def test_the_spill_threshold_goes_through(bench: Workbench) -> None:
    spilling = workbench_hooks(bench, spill_threshold=3)["PostToolUse"][1]
    assert asyncio.run(_output_of(spilling, "1234")) != {}
    assert asyncio.run(_output_of(spilling, "12")) == {}


async def _output_of(spilling: HookMatcher, response: Any) -> Mapping[str, Any]:
    return await fire(spilling, tool_response=response)


def test_merging_keeps_order_and_doubles_and_leaves_its_inputs_alone() -> None:
    first, second = {"PreToolUse": ["a"], "Stop": ["s"]}, {"PreToolUse": ["b", "a"]}
    assert merge_hooks(first, None, second) == {"PreToolUse": ["a", "b", "a"], "Stop": ["s"]}
    assert (first, second) == ({"PreToolUse": ["a"], "Stop": ["s"]}, {"PreToolUse": ["b", "a"]})
    assert merge_hooks() == {}


async def test_links_in_a_circle_do_not_turn_a_finished_write_into_an_error(bench: Workbench) -> None:
    (bench.notes / "a").symlink_to("b")
    (bench.notes / "b").symlink_to("a")
    assert await fire(index_guard(bench), "Write", tool_input={"file_path": str(bench.notes / "a" / "x")}) == {}
