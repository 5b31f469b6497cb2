"""Behaviour 28.10, each item a test:

*Hooks and stores:* the `is_ephemeral` lists with pass set = expiry set; subagents pass; whitelist derived from the
list (`can_run` keeps Bash, blocks Write/Edit); spill of nested dict, list untouched, spill reading passes; isolate
conditions; six `git status` with `keep_recent=2` → 4 expired, 2 kept; prune in the middle of the chain keeps ancestry;
two denials → newest kept; orphans healed and idempotent on reload; SDK conformance suite.

The stores are reached through what they promise: what was appended is loaded again.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import pytest
from claude_agent_sdk import AgentDefinition, HookMatcher, SessionKey, SessionStoreEntry
from claude_agent_sdk.testing import run_session_store_conformance

import flower
from flower.core.guard import (
    delegate_guard,
    isolate_guard,
    isolated,
    spill_guard,
    wants_isolation,
    whitelist_guard,
    workbench_hooks,
)
from flower.core.human import HumanChannel
from flower.core.roles import clarify, judge, oracle, worker
from flower.core.workbench import Workbench
from tests.flower.public_names import promised

LOOKS = [
    'git status -s && echo "--- LOG ---" && git log --oneline -10',
    "git ls-files | wc -l",
    "ls -la 2>&1 | head -20",
    "git status > /dev/null",
    "cat f | awk '{print $1}'",
    "which g++ clang++ make 2>&1; echo ---; ls /usr/include/curses.h 2>&1",
    "ps aux | grep python | head -5",
    "sed -n '1,20p' README.md",
    "which g++ clang++ make 2>&1; echo ---; ls /usr/include/ncurses.h 2>&1",
]
"""API 10.4 and behaviour 13.3: must be true."""

CHANGES = [
    *("git status && rm -rf x", "ls > out.txt", "ls &", "cat f | sh", "command rm -rf /"),
    *("git worktree list && git worktree remove wt", "uname -a && curl host", "pytest -q", "make"),
    *("git commit -m x", "git status && rm -rf /tmp/x", "echo $(whoami)", "cat urls | xargs curl"),
    *("sed -i 's/a/b/' f.py", "ls | tee saved.txt", "find . -name '*.pyc' -delete"),
    *("find . -name x -execdir rm {} +", "awk 'BEGIN{system(\"rm -rf /tmp/x\")}'", "git branch -D feature"),
    *("git log --oneline && git reset --hard HEAD~5", "git clean -fd", "jq '.' f.json > out.json"),
    *("command rm -rf x", "", "   "),
]
"""API 10.4 and behaviour 13.3: must be false."""

HOLES = [
    *("ls\nrm -rf x", "env rm -rf x", "printenv rm -rf x", "git branch new", "git remote add o url"),
    *("git remote set-url o url", "git remote remove o", "git reflog expire --all", "git reflog delete x"),
    *("git symbolic-ref HEAD refs/heads/x", "git hash-object -w f", "git log --output=f", "git diff --output f"),
    *("uniq in out", "sed 'w out' f", "sed -n '1e rm' f", "date -s 12:00", "hostname name"),
    *("tail -f log", "top"),
]
"""D13: the holes; also false."""


# -- transcripts --------------------------------------------------------------------------------------------------

KEY: SessionKey = {"project_key": "p", "session_id": "s"}


def entry(kind: str, uuid: str, parent: str | None, content: Any, **more: Any) -> SessionStoreEntry:
    message = {"role": kind, "content": content}
    return cast("SessionStoreEntry", {"type": kind, "uuid": uuid, "parentUuid": parent, "message": message, **more})


def calls(uuid: str, parent: str | None, *uses: tuple[str, str, dict[str, Any]], text: str = "") -> SessionStoreEntry:
    blocks = [{"type": "text", "text": text}] if text else []
    blocks += [{"type": "tool_use", "id": name, "name": tool, "input": given} for name, tool, given in uses]  # type: ignore[dict-item]
    return entry("assistant", uuid, parent, blocks)


def answers(uuid: str, parent: str | None, *results: tuple[str, Any], **more: Any) -> SessionStoreEntry:
    blocks = [{"type": "tool_result", "tool_use_id": name, "content": content} for name, content in results]
    return entry("user", uuid, parent, blocks, **more)


def chain(*pairs: tuple[str, str]) -> list[SessionStoreEntry]:
    """A conversation of Bash calls and what they said, one after the other."""
    entries = [entry("user", "u0", None, "go")]
    for number, (command, said) in enumerate(pairs, 1):
        above = str(cast("dict[str, Any]", entries[-1])["uuid"])
        entries.append(calls(f"a{number}", above, (f"t{number}", "Bash", {"command": command})))
        entries.append(answers(f"r{number}", f"a{number}", (f"t{number}", said)))
    return entries


def results_of(entries: list[SessionStoreEntry]) -> dict[str, Any]:
    """What each call came to."""
    return {
        block["tool_use_id"]: block["content"]
        for each in entries
        for block in content_of(each)
        if block["type"] == "tool_result"
    }


def content_of(given: SessionStoreEntry) -> list[dict[str, Any]]:
    content = cast("dict[str, Any]", given).get("message", {}).get("content")
    return content if isinstance(content, list) else []


def uses_of(entries: list[SessionStoreEntry]) -> list[str]:
    return [block["id"] for each in entries for block in content_of(each) if block["type"] == "tool_use"]


def ancestry(entries: list[SessionStoreEntry]) -> list[tuple[str, str | None]]:
    return [(str(each["uuid"]), cast("dict[str, Any]", each)["parentUuid"]) for each in entries]


class Stores:
    """Opens the runtime's kind of store, closes it, and gives back what a resume would get."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.opened: list[Any] = []

    def open(self, **policies: Any) -> Any:
        store = promised("PruningSessionStore")(self.place / "sessions.db", self.place / "ws", **policies)
        self.opened.append(store)
        return store

    async def loaded(self, entries: list[SessionStoreEntry], **policies: Any) -> list[SessionStoreEntry]:
        store = self.open(**policies)
        before = copy.deepcopy(entries)
        await store.append(KEY, entries)
        found = await store.load(KEY)
        assert entries == before
        return list(found)


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Stores]:
    (tmp_path / "ws").mkdir()
    made = Stores(tmp_path)
    yield made
    for store in made.opened:
        store.close()


def policy(kind: str, **kw: Any) -> Any:
    return promised(kind)(**kw)


# -- hooks --------------------------------------------------------------------------------------------------------


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    return Workbench(tmp_path / "ws").ensure()


async def fire(matcher: HookMatcher | None, tool: str, /, **data: Any) -> Mapping[str, Any]:
    assert matcher is not None
    given: Any = {"tool_name": tool, "tool_input": {}, **data}
    return await matcher.hooks[0](given, "toolu_1", {"signal": None})


async def denied(matcher: HookMatcher | None, tool: str, /, **data: Any) -> bool:
    output = await fire(matcher, tool, **data)
    return bool(output) and output["hookSpecificOutput"]["permissionDecision"] == "deny"


# -- the `is_ephemeral` lists with pass set = expiry set ----------------------------------------------------------


@pytest.mark.parametrize("command", LOOKS)
def test_the_is_ephemeral_lists_must_be_true(command: str) -> None:
    assert flower.is_ephemeral(command) is True


@pytest.mark.parametrize("command", [*CHANGES, *HOLES])
def test_the_is_ephemeral_lists_must_be_false(command: str) -> None:
    assert flower.is_ephemeral(command) is False


async def test_the_is_ephemeral_lists_pass_set_is_expiry_set(stores: Stores) -> None:
    """What a coordinator may run itself, and whose results go stale: one set (trap 28)."""
    commands = [command for command in (*LOOKS, *CHANGES, *HOLES) if command.strip()]
    guard = delegate_guard(allow_glance=True)
    passed = [not await denied(guard, "Bash", tool_input={"command": command}) for command in commands]
    assert passed == [command in LOOKS for command in commands]
    entries = chain(*((command, f"said {n}") for n, command in enumerate(commands, 1)))
    loaded = results_of(await stores.loaded(entries, ephemeral=policy("EphemeralPolicy", keep_recent=0)))
    expired = [loaded[f"t{n}"] != f"said {n}" for n in range(1, len(commands) + 1)]
    assert expired == passed


# -- subagents pass -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", ["Bash", "Write", "Edit", "NotebookEdit"])
async def test_subagents_pass(tool: str) -> None:
    for guard in (whitelist_guard([]), delegate_guard(), delegate_guard(allow_glance=True)):
        given: dict[str, Any] = {"tool_input": {"command": "rm -rf x"}}
        assert await denied(guard, tool, **given)
        assert await fire(guard, tool, agent_id="a1", agent_type="coder", **given) == {}


# -- whitelist derived from the list (`can_run` keeps Bash, blocks Write/Edit) ------------------------------------


async def test_whitelist_derived_from_the_list() -> None:
    channel = HumanChannel()
    for role, bash in (
        (judge("j", channel), True),
        (judge("j", channel, can_run=True), False),
        (clarify("c", channel), True),
        (oracle(), True),
    ):
        guard = whitelist_guard(role.allowed_tools, role=role.name)
        assert guard is not None
        assert (guard.matcher or "").split("|") == (["Bash"] if bash else []) + ["Write", "Edit", "NotebookEdit"]
        for tool in ("Write", "Edit", "NotebookEdit"):
            assert await denied(guard, tool)


async def test_whitelist_of_all_four_hands_is_no_guard() -> None:
    assert whitelist_guard(["Bash", "Write", "Edit", "NotebookEdit"]) is None


# -- spill of nested dict, list untouched, spill reading passes ---------------------------------------------------

LONG = "head\n" + "x" * 3995
NAME = f"{hashlib.sha256(LONG.encode()).hexdigest()[:16]}.txt"
POINTER = (
    f"[输出 4000 字符,已落盘到 .flower/spill/{NAME} —— 需要全文用 Read 读它,需要找东西用 Grep 搜它]\n"
    f"开头 400 字符:head {'x' * 395}"
)


async def test_spill_of_nested_dict(bench: Workbench) -> None:
    output = {"stdout": LONG, "code": 0, "deep": {"content": LONG, "short": "y", "deeper": {"x": LONG[:-1]}}}
    before = copy.deepcopy(output)
    answer = await fire(spill_guard(bench), "Bash", tool_response=output)
    assert answer == {
        "hookSpecificOutput": {
            "hookEventName": "PostToolUse",
            "updatedToolOutput": {
                "stdout": POINTER,
                "code": 0,
                "deep": {"content": POINTER, "short": "y", "deeper": {"x": LONG[:-1]}},
            },
        }
    }
    assert output == before
    assert (bench.root / "spill" / NAME).read_text(encoding="utf-8") == LONG


async def test_spill_list_untouched(bench: Workbench) -> None:
    listed = [{"type": "text", "text": LONG}]
    assert await fire(spill_guard(bench), "Read", tool_response=listed) == {}
    answer = await fire(spill_guard(bench), "Read", tool_response={"content": listed, "stdout": LONG})
    assert answer["hookSpecificOutput"]["updatedToolOutput"] == {"content": listed, "stdout": POINTER}


@pytest.mark.parametrize("shown", [True, False], ids=["as it is shown", "absolute"])
@pytest.mark.parametrize("external", [True, False])
async def test_spill_reading_passes(tmp_path: Path, shown: bool, external: bool) -> None:
    """D11: both forms are recognised, in whichever field they stand."""
    bench = Workbench(tmp_path / "ws", home=tmp_path / "bench" if external else None).ensure()
    answer = await fire(spill_guard(bench), "Bash", tool_response=LONG)
    assert answer != {}
    file = bench.root / "spill" / NAME
    path = bench.show(file) if shown else str(file)
    for given in (
        {"file_path": path},
        {"pattern": "x", "path": path.removesuffix(f"/{NAME}")},
        {"command": f"cat {path}"},
    ):
        assert await fire(spill_guard(bench), "Read", tool_input=given, tool_response=LONG) == {}
    assert await fire(spill_guard(bench), "Read", tool_input={"file_path": "elsewhere"}, tool_response=LONG) != {}


# -- isolate conditions -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "isolates"),
    [
        ({"subagent_type": "coder", "description": "d", "prompt": "p"}, True),
        ({"subagent_type": "coder", "cwd": "/elsewhere"}, False),
        ({"subagent_type": "coder", "isolation": "none"}, False),
        ({"subagent_type": "reader"}, False),
        ({"subagent_type": "nobody"}, False),
        ({}, False),
    ],
)
async def test_isolate_conditions(given: dict[str, Any], isolates: bool) -> None:
    told: list[tuple[str, str]] = []
    agents = {"coder": worker("d", "p", isolate=True), "reader": worker("d", "p")}
    guard = isolate_guard(agents, on_inject=lambda kind, description: told.append((kind, description)))
    before = dict(given)
    answer = await fire(guard, "Agent", tool_input=given)
    assert given == before
    if not isolates:
        assert (answer, told) == ({}, [])
        return
    inner = answer["hookSpecificOutput"]
    assert inner["hookEventName"] == "PreToolUse"
    assert inner["permissionDecision"] == "allow"
    assert inner["updatedInput"] == {**given, "isolation": "worktree"}
    assert told == [("coder", "d")]


def test_isolate_conditions_of_being_installed(bench: Workbench) -> None:
    plain: dict[str, AgentDefinition] = {"coder": worker("d", "p")}
    marked: dict[str, AgentDefinition] = {"coder": worker("d", "p", isolate=True)}

    def before(agents: dict[str, AgentDefinition] | None) -> list[str | None]:
        hooks = workbench_hooks(bench, delegate_only=False, agents=agents)
        return [matcher.matcher for matcher in hooks.get("PreToolUse", [])]

    assert before(None) == before(plain) == []
    (matcher,) = before(marked)
    assert matcher is not None
    assert "Agent" in matcher


def test_isolate_mark_is_set_read_and_cleared() -> None:
    agent = worker("d", "p")
    assert (wants_isolation(None), wants_isolation(agent)) == (False, False)
    assert isolated(agent) is agent
    assert wants_isolation(agent)
    assert not wants_isolation(isolated(agent, flag=False))


# -- six `git status` with `keep_recent=2` → 4 expired, 2 kept ----------------------------------------------------


async def test_six_git_status_with_keep_recent_2(stores: Stores) -> None:
    entries = chain(*[("git status -s", f"M file{n}") for n in range(1, 7)])
    store = stores.open(ephemeral=policy("EphemeralPolicy", keep_recent=2))
    await store.append(KEY, entries)
    loaded = results_of(await store.load(KEY))
    assert store.last_report["expired"] == 4
    assert loaded == {
        **{
            f"t{n}": f"[`git status -s` 的结果已过期(第 {7 - n} 轮前),当前状态可能已变。需要请重新执行]"
            for n in range(1, 5)
        },
        "t5": "M file5",
        "t6": "M file6",
    }
    assert import_module("flower.stores.trim").trim_report(store) == "4 个时效性结果标记为过期"


async def test_six_git_status_of_which_nothing_is_lost_in_the_database(stores: Stores) -> None:
    """Writing stores everything; only the copy for a resume is rewritten."""
    entries = chain(*[("git status -s", f"M file{n}") for n in range(1, 7)])
    await stores.loaded(entries, ephemeral=policy("EphemeralPolicy", keep_recent=0))
    raw = flower.SqliteSessionStore(stores.place / "sessions.db")
    stores.opened.append(raw)
    assert await raw.load(KEY) == entries


async def test_expiry_leaves_what_is_long_what_changes_and_what_was_read(stores: Stores) -> None:
    entries = chain(("git status", "x" * 2001), ("pytest -q", "3 passed"), ("ls", "a b"))
    entries.append(calls("a9", "r3", ("t9", "Read", {"file_path": "f"})))
    entries.append(answers("r9", "a9", ("t9", "short")))
    loaded = results_of(await stores.loaded(entries, ephemeral=policy("EphemeralPolicy", keep_recent=0)))
    assert loaded["t1"] == "x" * 2001
    assert (loaded["t2"], loaded["t9"]) == ("3 passed", "short")
    assert loaded["t3"].startswith("[`ls` 的结果已过期")


async def test_trim_moves_old_large_results_into_files(stores: Stores) -> None:
    entries = chain(*[("pytest -q", f"{n}" * 2000) for n in range(1, 4)])
    store = stores.open(policy=policy("TrimPolicy", keep_recent=1))
    await store.append(KEY, entries)
    loaded = results_of(await store.load(KEY))
    first = f"{hashlib.sha256(('1' * 2000).encode()).hexdigest()[:16]}.txt"
    assert loaded["t1"] == f"[工具结果已归档:2000 字符。完整内容在 .flower/spill/{first},需要时用 Read 读取]"
    assert (stores.place / "ws" / ".flower" / "spill" / first).read_text(encoding="utf-8") == "1" * 2000
    assert loaded["t3"] == "3" * 2000
    assert (store.last_report["cleared"], store.last_report["kept"]) == (2, 1)


# -- prune in the middle of the chain keeps ancestry --------------------------------------------------------------


@pytest.mark.parametrize("mark", ["isApiErrorMessage", "model"])
async def test_prune_in_the_middle_of_the_chain_keeps_ancestry(stores: Stores, mark: str) -> None:
    broken = entry("assistant", "e1", "r1", [{"type": "text", "text": "API Error: ECONNRESET"}])
    if mark == "model":
        cast("dict[str, Any]", broken)["message"]["model"] = "<synthetic>"
    else:
        cast("dict[str, Any]", broken)["isApiErrorMessage"] = True
    again = copy.deepcopy(broken)
    cast("dict[str, Any]", again).update(uuid="e2", parentUuid="e1")
    tail = [entry("user", "u2", "e2", "go on"), entry("assistant", "a2", "u2", [{"type": "text", "text": "done"}])]
    entries = [*chain(("make", "ok")), broken, again, *tail]
    store = stores.open()
    await store.append(KEY, entries)
    loaded = await store.load(KEY)
    assert ancestry(loaded) == [("u0", None), ("a1", "u0"), ("r1", "a1"), ("u2", "r1"), ("a2", "u2")]
    assert store.pruned == 2
    assert "ECONNRESET" not in str(loaded)


async def test_prune_blanks_what_an_interrupt_left(stores: Stores) -> None:
    entries = chain(("make", "[Request interrupted by user for tool use]"), ("make", "ok"))
    content_of(entries[2])[0]["is_error"] = True
    loaded = await stores.loaded(entries)
    assert results_of(loaded) == {"t1": "[上一轮在此处被中断,该工具结果未产生]", "t2": "ok"}
    assert not content_of(loaded[2])[0].get("is_error")
    assert ancestry(loaded) == ancestry(entries)


@pytest.mark.parametrize("mark", ["isCompactSummary", "isMeta"])
async def test_prune_and_trim_leave_summaries_and_meta_entries_alone(stores: Stores, mark: str) -> None:
    entries = chain(("git status", "clean"), ("pytest -q", "x" * 5000))
    for each in entries:
        cast("dict[str, Any]", each)[mark] = True
    strict = {"ephemeral": policy("EphemeralPolicy", keep_recent=0), "policy": policy("TrimPolicy", keep_recent=0)}
    assert await stores.loaded(entries, **strict) == entries


# -- two denials → newest kept ------------------------------------------------------------------------------------


def denial(number: int, above: str, *, text: str = "") -> list[SessionStoreEntry]:
    call, name = f"d{number}", f"x{number}"
    marks = {"toolDenialKind": "permission-rule", "toolUseResult": f"Error: {number}"}
    uses = [(name, "Write", {"file_path": f"f{number}"})]
    return [
        calls(call, above, *uses, text=text),
        answers(f"n{number}", call, (name, f"denied {number}"), **marks),
    ]


async def test_two_denials_newest_kept(stores: Stores) -> None:
    entries = [entry("user", "u0", None, "go"), *denial(1, "u0"), *denial(2, "n1"), entry("user", "u9", "n2", "on")]
    store = stores.open()
    await store.append(KEY, entries)
    loaded = await store.load(KEY)
    assert uses_of(loaded) == ["x2"]
    assert results_of(loaded) == {"x2": "denied 2"}
    assert ancestry(loaded) == [("u0", None), ("d2", "u0"), ("n2", "d2"), ("u9", "n2")]
    assert store.denials_dropped == 1
    assert "Error: 1" not in str(loaded)


@pytest.mark.parametrize(("keep", "left"), [(0, []), (1, ["x3"]), (2, ["x2", "x3"]), (9, ["x1", "x2", "x3"])])
async def test_denials_kept_are_the_newest(stores: Stores, keep: int, left: list[str]) -> None:
    entries = [entry("user", "u0", None, "go"), *denial(1, "u0"), *denial(2, "n1"), *denial(3, "n2")]
    loaded = await stores.loaded(entries, prune=policy("PrunePolicy", keep_denials=keep))
    assert (uses_of(loaded), list(results_of(loaded))) == (left, left)


async def test_denials_go_together_with_their_results_and_leave_the_rest_of_the_message(stores: Stores) -> None:
    """Trap 29: a result never without its call."""
    both = calls("d1", "u0", ("x1", "Write", {}), ("t1", "Bash", {"command": "make"}), text="two at once")
    refused = answers("n1", "d1", ("x1", "denied"), toolDenialKind="permission-rule")
    entries = [entry("user", "u0", None, "go"), both, refused, answers("r1", "n1", ("t1", "ok")), *denial(2, "r1")]
    loaded = await stores.loaded(entries)
    assert [block["type"] for block in content_of(loaded[1])] == ["text", "tool_use"]
    assert uses_of(loaded) == ["t1", "x2"]
    assert results_of(loaded) == {"t1": "ok", "x2": "denied 2"}
    assert ancestry(loaded)[:3] == [("u0", None), ("d1", "u0"), ("r1", "d1")]


async def test_a_refusal_of_a_person_is_no_denial(stores: Stores) -> None:
    entries = [entry("user", "u0", None, "go")]
    for number in (1, 2):
        call, result = denial(number, str(entries[-1]["uuid"]))
        cast("dict[str, Any]", result)["toolDenialKind"] = "user-rejected"
        entries += [call, result]
    assert uses_of(await stores.loaded(entries)) == ["x1", "x2"]


# -- orphans healed and idempotent on reload ----------------------------------------------------------------------


async def test_orphans_healed_and_idempotent_on_reload(stores: Stores) -> None:
    cut = calls("a9", "r1", ("t8", "Bash", {"command": "make"}), ("t9", "Bash", {"command": "make"}))
    cast("dict[str, Any]", cut).update(sessionId="s", cwd="/w", version="2", isSidechain=False)
    entries = [*chain(("make", "ok")), cut, entry("user", "u9", "a9", "go on")]
    store = stores.open()
    await store.append(KEY, entries)
    first, second = await store.load(KEY), await store.load(KEY)
    assert first == second
    orphan = "[这一步被打断了,没有结果。需要的话重做。]"
    assert results_of(first) == {"t1": "ok", "t8": orphan, "t9": orphan}
    healed = cast("dict[str, Any]", first[4])
    assert healed["uuid"].startswith("heal-")
    assert len(healed["uuid"]) == len("heal-") + 12
    assert [block["is_error"] for block in content_of(first[4])] == [False, False]
    assert {name: healed[name] for name in ("sessionId", "cwd", "version", "isSidechain")} == {
        "sessionId": "s",
        "cwd": "/w",
        "version": "2",
        "isSidechain": False,
    }
    assert ancestry(first)[3:] == [("a9", "r1"), (healed["uuid"], "a9"), ("u9", healed["uuid"])]


async def test_orphans_healed_are_idempotent_when_they_are_appended(stores: Stores) -> None:
    """A harness that writes back what it loaded changes nothing."""
    entries = [*chain(("make", "ok")), calls("a9", "r1", ("t9", "Bash", {"command": "make"}))]
    first = await stores.loaded(entries)
    store = stores.opened[-1]
    await store.append(KEY, first)
    assert await store.load(KEY) == first


async def test_without_orphans_the_list_comes_back_with_the_same_length(stores: Stores) -> None:
    entries = chain(("make", "ok"), ("make", "ok"))
    assert await stores.loaded(entries) == entries


# -- SDK conformance suite ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["SqliteSessionStore", "TrimmingSessionStore", "PruningSessionStore"])
@pytest.mark.parametrize("on_disk", [True, False])
async def test_sdk_conformance_suite(tmp_path: Path, kind: str, on_disk: bool) -> None:
    opened: list[Any] = []

    def make() -> Any:
        path = tmp_path / f"{len(opened)}.db" if on_disk else ":memory:"
        opened.append(promised(kind)(*((path,) if kind.startswith("Sqlite") else (path, tmp_path))))
        return opened[-1]

    try:
        await run_session_store_conformance(make)
    finally:
        for store in opened:
            store.close()
    assert len(opened) >= 14
