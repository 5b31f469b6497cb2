from __future__ import annotations

import copy
import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import SessionKey
from claude_agent_sdk.testing import run_session_store_conformance
from hypothesis import given
from hypothesis import strategies as st

from flower import texts
from flower.core.guard import delegate_guard
from flower.stores.trim import EphemeralPolicy, TrimmingSessionStore, TrimPolicy, is_ephemeral, trim_report
from tests.flower.transcripts import HOSTILE, answer, chained, denied, fields, made, told, use

KEY: SessionKey = {"project_key": "p", "session_id": "s"}
SUB: SessionKey = {"project_key": "p", "session_id": "s", "subpath": "subagents/agent-1"}
BIG = "x" * 2000


@pytest.fixture
def store(tmp_path: Path) -> Iterator[TrimmingSessionStore]:
    opened = TrimmingSessionStore(":memory:", tmp_path, TrimPolicy(keep_recent=1), EphemeralPolicy(keep_recent=2))
    yield opened
    opened.close()


def looked(number: int, said: Any = "clean", command: str = "git status") -> tuple[dict[str, Any], dict[str, Any]]:
    return use(f"t{number}", command=command), answer(f"t{number}", said)


def read(number: int, said: Any = BIG) -> tuple[dict[str, Any], dict[str, Any]]:
    return use(f"r{number}", "Read", file_path="f"), answer(f"r{number}", said)


def spilled(store: TrimmingSessionStore) -> list[str]:
    return sorted(path.name for path in (store.workspace / ".flower" / "spill").glob("*"))


# -- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dirname", ["../out", "a/../../out", "/somewhere/else", "a\0b"])
def test_a_folder_outside_of_the_workspace_is_refused_before_anything_is_made(tmp_path: Path, dirname: str) -> None:
    with pytest.raises(ValueError, match=r"spill_dirname.*之外"):
        TrimmingSessionStore(tmp_path / "sessions.db", tmp_path / "ws", TrimPolicy(spill_dirname=dirname))
    assert list(tmp_path.iterdir()) == []
    with texts.speaking("en"), pytest.raises(ValueError, match="lies outside the workspace"):
        TrimmingSessionStore(":memory:", tmp_path, TrimPolicy(spill_dirname=dirname, enabled=False))


@pytest.mark.parametrize("text", ["{nonsense}", "{}", "{cmd", "{cmd.x}", "{age[0]}"])
def test_a_note_with_other_placeholders_is_refused_at_once(text: str) -> None:
    with pytest.raises(ValueError, match=r"EphemeralPolicy\.text"):
        EphemeralPolicy(text=text)


async def test_what_has_no_shape_comes_back_as_it_is(store: TrimmingSessionStore) -> None:
    await store.append(KEY, HOSTILE)
    assert await store.load(KEY) == HOSTILE
    assert trim_report(store) == "未裁剪"


def test_where_nothing_can_be_written_results_stay_whole_and_it_is_said_why(tmp_path: Path) -> None:
    store = TrimmingSessionStore(":memory:", tmp_path, TrimPolicy(keep_recent=0))
    (tmp_path / ".flower").write_text("a file is in the way")
    entries = chained(read(0), read(1))
    assert store.trim(entries) == entries
    assert store.last_report == {"cleared": 0, "kept": 0, "chars_saved": 0, "unwritten": 2}
    assert trim_report(store).startswith("未裁剪;另有 2 个结果无法归档,全文保留:")
    with texts.speaking("en"):
        assert "2 more could not be archived and were kept whole: " in trim_report(store)
    store.close()


async def test_a_disk_that_fills_up_costs_nothing_but_the_trimming(tmp_path: Path) -> None:
    """Something in the way of the second file stands for the full disk."""
    store = TrimmingSessionStore(":memory:", tmp_path, TrimPolicy(keep_recent=0))
    await store.append(KEY, chained(read(0, BIG), read(1, BIG + "y"), read(2, BIG + "z")))
    in_the_way = tmp_path / ".flower" / "spill" / f"{hashlib.sha256((BIG + 'y').encode()).hexdigest()[:16]}.txt"
    (in_the_way / "sub").mkdir(parents=True)
    loaded = await store.load(KEY)
    assert [len(text) < 200 for text in told(loaded or [])] == [True, False, False]
    assert (store.last_report["cleared"], store.last_report["unwritten"]) == (1, 2)
    assert [name for name in spilled(store) if name.endswith(".tmp")] == []
    store.close()


@pytest.mark.parametrize("link", [".flower", ".flower/spill"])
def test_a_link_that_leads_out_of_the_workspace_is_not_followed(tmp_path: Path, link: str) -> None:
    outside, workspace = tmp_path / "outside", tmp_path / "ws"
    (outside / "spill").mkdir(parents=True)
    (workspace / link).parent.mkdir(parents=True, exist_ok=True)
    (workspace / link).symlink_to(outside)
    store = TrimmingSessionStore(":memory:", workspace, TrimPolicy(keep_recent=0))
    entries = chained(read(0))
    assert store.trim(entries) == entries
    assert [path for path in outside.rglob("*") if path.is_file()] == []
    assert "工作区之外" in store.spill_trouble
    store.close()


def test_a_link_in_place_of_a_file_is_replaced_and_not_written_through(store: TrimmingSessionStore) -> None:
    name = f"{hashlib.sha256(BIG.encode()).hexdigest()[:16]}.txt"
    target = store.workspace / "precious"
    target.write_text("p" * 2000)
    place = store.workspace / ".flower" / "spill" / name
    place.parent.mkdir(parents=True)
    place.symlink_to(target)
    store.trim(chained(read(0), read(1)))
    assert target.read_text() == "p" * 2000
    assert (place.is_symlink(), place.read_text()) == (False, BIG)


@pytest.mark.parametrize("text", ["nul \0 and escape \x1b[2J" + BIG, "half a pair \ud83d" + BIG, "\U0001f338" * 2000])
def test_a_file_holds_what_the_tool_said_to_the_byte(store: TrimmingSessionStore, text: str) -> None:
    store.trim(chained(read(0, text), read(1)))
    content = text.encode(errors="surrogatepass")
    (name,) = spilled(store)
    assert name == f"{hashlib.sha256(content).hexdigest()[:16]}.txt"
    assert (store.workspace / ".flower" / "spill" / name).read_bytes() == content


async def test_a_result_of_fifty_megabytes_goes_to_a_file(store: TrimmingSessionStore) -> None:
    huge = "0123456789abcdef" * (50 << 16)
    await store.append(KEY, chained(read(0, huge), read(1)))
    (pointer, kept) = told(await store.load(KEY) or [])
    assert (len(pointer) < 200, kept) == (True, BIG)
    (name,) = spilled(store)
    assert (store.workspace / ".flower" / "spill" / name).stat().st_size == 50 << 20


def test_a_file_that_a_crash_left_short_is_written_anew(store: TrimmingSessionStore) -> None:
    entries = chained(read(0), read(1))
    store.trim(entries)
    (name,) = spilled(store)
    os.truncate(store.workspace / ".flower" / "spill" / name, 100)
    store.trim(entries)
    assert (store.workspace / ".flower" / "spill" / name).read_text() == BIG


# -- stale results ----------------------------------------------------------------------------------------------------


async def test_of_six_git_status_four_expire_and_two_stay(store: TrimmingSessionStore) -> None:
    await store.append(KEY, chained(*(looked(number, f"clean {number}") for number in range(6))))
    loaded = await store.load(KEY)
    assert told(loaded or []) == [
        "[`git status` 的结果已过期(第 6 轮前),当前状态可能已变。需要请重新执行]",
        "[`git status` 的结果已过期(第 5 轮前),当前状态可能已变。需要请重新执行]",
        "[`git status` 的结果已过期(第 4 轮前),当前状态可能已变。需要请重新执行]",
        "[`git status` 的结果已过期(第 3 轮前),当前状态可能已变。需要请重新执行]",
        "clean 4",
        "clean 5",
    ]
    assert store.last_report["expired"] == 4
    assert trim_report(store) == "4 个时效性结果标记为过期"
    assert not (store.workspace / ".flower").exists()


def test_only_short_plain_results_of_looking_with_bash_expire(tmp_path: Path) -> None:
    store = TrimmingSessionStore(":memory:", tmp_path, ephemeral=EphemeralPolicy(keep_recent=0, max_chars=10))
    image = {"type": "image", "source": {}}
    stay: list[tuple[dict[str, Any], dict[str, Any]]] = [
        looked(0, command="make"),
        looked(1, "longer than ten"),
        looked(2, [{"type": "text", "text": "ok"}, image]),
        looked(3, None),
        looked(4, ["ok"]),
        (use("t5", "Read", command="ls"), answer("t5")),
        (use("t6", command="ls"), answer("another call")),
    ]
    entries = chained(*stay)
    assert store.expire(entries) == entries
    gone = chained(looked(0), looked(1, ""), looked(2, [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]))
    assert ["过期" in text for text in told(store.expire(gone))] == [True, True, True]
    store.close()


async def test_what_a_coordinator_may_run_itself_is_what_expires(tmp_path: Path) -> None:
    """Trap 28: the two sets are one."""
    commands = [
        "git status",
        "ls | head",
        "pytest -q",
        "ls > x",
        "git branch new",
        "env rm x",
        "date -s now",
        "cat f | sh",
    ]
    commands += [
        "sed -n 1p f",
        "sed -i s/a/b/ f",
        "uniq a b",
        "ls\nrm x",
        "ls\npwd",
        "git remote add a b",
        "tail -f x",
        "",
    ]
    store = TrimmingSessionStore(":memory:", tmp_path, ephemeral=EphemeralPolicy(keep_recent=0))
    entries = chained(*(looked(number, command=command) for number, command in enumerate(commands)))
    expired = {command for command, text in zip(commands, told(store.expire(entries)), strict=True) if "过期" in text}
    guard: Any = delegate_guard(allow_glance=True).hooks[0]
    allowed = set()
    for command in commands:
        data = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": command}}
        if await guard(data, None, {"signal": None}) == {}:
            allowed.add(command)
    assert expired == allowed == {command for command in commands if is_ephemeral(command)}
    assert "git status" in expired
    assert "pytest -q" not in expired
    store.close()


def test_a_note_shows_the_first_line_of_the_command_cut_at_sixty() -> None:
    policy = EphemeralPolicy(text="{cmd}|{age}")
    assert policy.placeholder("\n  ls a\nls b", 3) == "`ls a`|3"
    assert policy.placeholder("ls " + "x" * 100, 1) == f"`ls {'x' * 57}`|1"
    assert policy.placeholder("ls {age} {0}", 1) == "`ls {age} {0}`|1"


def test_the_refusal_of_a_look_is_not_a_stale_result(store: TrimmingSessionStore) -> None:
    entries = [*chained(), made("assistant", "a", "start", [use("t", command="ls")]), denied("u", "a", "t")]
    store.ephemeral.keep_recent = 0
    assert store.expire(entries) == entries


# -- large results ----------------------------------------------------------------------------------------------------


async def test_old_large_results_go_to_files_and_the_newest_stay(store: TrimmingSessionStore) -> None:
    await store.append(KEY, chained(read(0, BIG), read(1, "y" * 5000), read(2, "z" * 1999), read(3, "w" * 3000)))
    texts_now = told(await store.load(KEY) or [])
    place = f".flower/spill/{hashlib.sha256(BIG.encode()).hexdigest()[:16]}.txt"
    assert texts_now[0] == f"[工具结果已归档:2000 字符。完整内容在 {place},需要时用 Read 读取]"
    assert (store.workspace / place).read_text() == BIG
    assert texts_now[2:] == ["z" * 1999, "w" * 3000]
    saved = 7000 - len(texts_now[0]) - len(texts_now[1])
    assert store.last_report == {"expired": 0, "cleared": 2, "kept": 1, "chars_saved": saved}
    assert trim_report(store) == f"裁掉 2 个工具结果(保留最近 1 个),省下 ~{saved // 4} tokens"
    assert len(spilled(store)) == 2


async def test_the_blocks_stay_and_only_their_content_changes(store: TrimmingSessionStore) -> None:
    result = {**answer("r0", [{"type": "text", "text": BIG}]), "is_error": True}
    parallel = made("user", "u", "start", [result, {"type": "text", "text": "note"}, answer("r1", BIG + "1")])
    (entry,) = store.trim([parallel])
    blocks = fields(entry)["message"]["content"]
    assert blocks == [{**result, "content": blocks[0]["content"]}, *fields(parallel)["message"]["content"][1:]]
    assert blocks[0]["content"].startswith("[工具结果已归档:2000 字符")
    assert {**entry, "message": None} == {**parallel, "message": None}


@pytest.mark.parametrize("mark", ["isMeta", "isCompactSummary"])
def test_what_must_not_be_touched_is_not(store: TrimmingSessionStore, mark: str) -> None:
    store.policy.keep_recent = store.ephemeral.keep_recent = 0
    entries = [made("assistant", "a", None, [use("t", command="ls")])]
    entries += [made("user", "u", "a", [answer("t", "x")], **{mark: True})]
    entries += [made("user", "v", "a", [answer("q", BIG)], **{mark: True})]
    assert store.trim(store.expire(entries)) == entries


@pytest.mark.parametrize("kind", ["image", "document", "tool_reference"])
def test_a_result_with_more_than_text_is_left_alone(store: TrimmingSessionStore, kind: str) -> None:
    store.policy.keep_recent = 0
    entries = chained(read(0, [{"type": "text", "text": BIG}, {"type": kind}]))
    assert store.trim(entries) == entries


async def test_a_layer_that_is_switched_off_does_nothing(tmp_path: Path) -> None:
    off = TrimPolicy(enabled=False, keep_recent=0), EphemeralPolicy(enabled=False, keep_recent=0)
    store = TrimmingSessionStore(":memory:", tmp_path, *off)
    entries = chained(looked(0), read(1))
    await store.append(KEY, entries)
    assert (await store.load(KEY), store.last_report) == (entries, {})
    store.close()


async def test_the_report_is_that_of_the_newest_load(store: TrimmingSessionStore) -> None:
    await store.append(KEY, chained(read(0), read(1)))
    await store.load(KEY)
    assert store.last_report["cleared"] == 1
    assert await store.load(SUB) is None
    assert store.last_report == {}
    with texts.speaking("en"):
        assert trim_report(store) == "nothing was trimmed"


# -- languages --------------------------------------------------------------------------------------------------------


async def test_the_language_spoken_at_load_decides_where_texts_were_left_as_they_are(tmp_path: Path) -> None:
    store = TrimmingSessionStore(":memory:", tmp_path, TrimPolicy(keep_recent=0), EphemeralPolicy(keep_recent=0))
    await store.append(KEY, chained(looked(0), read(1)))
    with texts.speaking("en"):
        english = told(await store.load(KEY) or [])
        assert re.fullmatch(
            r"trimmed 1 tool results \(the newest 0 were kept\), saving ~\d+ tokens", trim_report(store)
        )
    assert english[0].startswith("[The result of `git status` is out of date (1 rounds ago)")
    assert english[1].startswith("[Tool result archived: 2000 characters.")
    store.ephemeral.text = "old: {cmd}"
    with texts.speaking("en"):
        assert told(await store.load(KEY) or [])[0] == "old: `git status`"
    store.close()


@pytest.mark.parametrize(("first", "then"), [("zh", "en"), ("en", "zh")])
def test_what_was_put_in_place_of_a_result_is_recognised_in_the_other_language(
    tmp_path: Path, first: str, then: str
) -> None:
    """A fork keeps what was loaded as its own history, so our own words come back to us."""
    greedy = TrimPolicy(keep_recent=0, min_chars=1), EphemeralPolicy(keep_recent=0)
    store = TrimmingSessionStore(":memory:", tmp_path, *greedy)
    entries = chained(looked(0), looked(1, BIG + BIG), read(2))
    with texts.speaking(first):
        once = store.trim(store.expire(entries))
    files = spilled(store)
    with texts.speaking(then):
        assert store.trim(store.expire(once)) == once
    assert spilled(store) == files
    assert (store.last_report["expired"], store.last_report["cleared"]) == (0, 0)
    store.close()


@pytest.mark.parametrize("text", ["{cmd}", "{age}", "", "({age}) {cmd}"])
def test_a_note_without_words_of_its_own_hides_no_result(tmp_path: Path, text: str) -> None:
    store = TrimmingSessionStore(":memory:", tmp_path, ephemeral=EphemeralPolicy(keep_recent=0, text=text))
    store.expire(chained(looked(0, "42"), looked(1, "`x`"), looked(2, ""), looked(3, "(1) `x`")))
    assert store.last_report["expired"] == 4
    store.close()


def test_a_note_in_words_of_ones_own_is_recognised(tmp_path: Path) -> None:
    store = TrimmingSessionStore(":memory:", tmp_path, ephemeral=EphemeralPolicy(keep_recent=0, text="old {cmd} {age}"))
    once = store.expire(chained(looked(0), looked(1, "old news")))
    assert told(once) == ["old `git status` 2", "old `git status` 1"]
    assert store.expire(once) == once
    store.close()


# -- always -----------------------------------------------------------------------------------------------------------

RESULTS = st.lists(
    st.tuples(st.sampled_from(["ls", "git diff", "make", ""]), st.integers(0, 40), st.booleans()), max_size=12
)


@given(RESULTS, st.integers(-1, 4), st.integers(0, 30))
def test_trimming_changes_nothing_but_contents_and_not_the_input(
    tmp_path_factory: pytest.TempPathFactory, results: list[tuple[str, int, bool]], keep: int, least: int
) -> None:
    workspace = tmp_path_factory.getbasetemp() / "trimmed"
    store = TrimmingSessionStore(":memory:", workspace, TrimPolicy(keep, least), EphemeralPolicy(keep_recent=keep))
    try:
        entries = chained(
            *(
                looked(number, [{"type": "text", "text": "x" * size}] if listed else "x" * size, command)
                for number, (command, size, listed) in enumerate(results)
            )
        )
        before = copy.deepcopy(entries)
        changed = store.trim(store.expire(entries))
        assert entries == before
        assert store.trim(store.expire(entries)) == changed

        def without_contents(all_of_them: list[Any]) -> list[Any]:
            blank = copy.deepcopy(all_of_them)
            for entry in blank[2::2]:
                entry["message"]["content"][0]["content"] = None
            return blank

        assert without_contents(list(changed)) == without_contents(list(entries))
        untouched = sum(a == b for a, b in zip(told(changed), told(entries), strict=True))
        assert untouched + store.last_report["expired"] + store.last_report["cleared"] == len(results)
    finally:
        store.close()


async def test_the_suite_of_the_sdk_passes(tmp_path: Path) -> None:
    opened: list[TrimmingSessionStore] = []

    def make() -> TrimmingSessionStore:
        opened.append(TrimmingSessionStore(":memory:", tmp_path))
        return opened[-1]

    await run_session_store_conformance(make)
    assert len(opened) > 12
    for store in opened:
        store.close()
