from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import SessionKey, SessionStoreEntry
from claude_agent_sdk.testing import run_session_store_conformance
from hypothesis import given
from hypothesis import strategies as st

from flower import texts
from flower.stores.prune import PrunePolicy, PruningSessionStore, heal_orphans, is_api_error, is_denial, relink
from flower.stores.trim import EphemeralPolicy, TrimmingSessionStore, TrimPolicy
from tests.flower.transcripts import HOSTILE, answer, api_error, chained, denied, fields, made, told, use

KEY: SessionKey = {"project_key": "p", "session_id": "s"}
CUT_TEXT = "[上一轮在此处被中断,该工具结果未产生]"
ORPHAN_TEXT = "[这一步被打断了,没有结果。需要的话重做。]"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[PruningSessionStore]:
    opened = PruningSessionStore(":memory:", tmp_path)
    yield opened
    opened.close()


def links(entries: Sequence[SessionStoreEntry]) -> list[tuple[Any, Any]]:
    return [(fields(entry).get("uuid"), fields(entry).get("parentUuid")) for entry in entries]


def calls(entries: Sequence[SessionStoreEntry]) -> list[str]:
    found = [fields(entry)["message"]["content"] for entry in entries if entry["type"] == "assistant"]
    return [block["id"] for content in found for block in content if block["type"] == "tool_use"]


def refused(number: int, parent: str | None) -> list[SessionStoreEntry]:
    """A call that was denied: two entries."""
    return [
        made("assistant", f"a{number}", parent, [use(f"t{number}", command="make")]),
        denied(f"u{number}", f"a{number}", f"t{number}"),
    ]


# -- bad input --------------------------------------------------------------------------------------------------------


async def test_what_has_no_shape_comes_back_as_it_is(store: PruningSessionStore) -> None:
    await store.append(KEY, HOSTILE)
    loaded = await store.load(KEY) or []
    # A parent that is no text names nobody, and the call that was cut gets its result.
    assert [fields(entry).get("parentUuid") for entry in loaded if fields(entry).get("uuid") == 7] == [None]
    (healed,) = [entry for entry in loaded if str(entry.get("uuid")).startswith("heal-")]
    assert told([healed]) == [ORPHAN_TEXT]
    rest = [entry for entry in loaded if entry is not healed and fields(entry).get("uuid") != 7]
    assert rest == [entry for entry in HOSTILE if entry.get("uuid") != 7]
    assert store.carried == {"s": 0.0}


@pytest.mark.parametrize("entry", HOSTILE)
def test_what_has_no_shape_is_neither_a_denial_nor_an_error(entry: Any) -> None:
    assert is_denial(entry) is None
    assert not is_api_error(entry)


def test_circles_and_lost_parents_end_the_climb() -> None:
    entries = [
        made("user", "a", "b", "x"),
        made("user", "b", "c", "x"),
        made("user", "c", "b", "x"),
        made("user", "d", "nobody", "x"),
        made("user", "e", "e2", "x"),
        made("user", "e2", "e", "x"),
        made("user", "f", "f", "x"),
    ]
    assert links(relink(entries, {"b", "c", "e2"})) == [("a", None), ("d", None), ("e", None), ("f", None)]


def test_the_same_uuid_twice_is_dropped_twice_or_found_once(store: PruningSessionStore) -> None:
    entries = [made("user", "a", None, "x"), made("user", "b", "a", "x"), made("user", "b", "a", "y")]
    entries.append(made("user", "c", "b", "z"))
    assert links(relink(entries, {"b"})) == [("a", None), ("c", "a")]
    twins = [
        made("user", "a", None, "x"),
        api_error("b", "a"),
        made("user", "b", "a", "y"),
        made("user", "c", "b", "z"),
    ]
    assert links(store.prune(twins)) == [("a", None), ("b", "a"), ("c", "b")]


def test_a_hundred_thousand_dropped_in_a_row_need_no_recursion(store: PruningSessionStore) -> None:
    count = 100_000
    entries = [made("user", "e0", None, "go")]
    entries += [api_error(f"e{number}", f"e{number - 1}") for number in range(1, count)]
    entries += [made("user", "last", f"e{count - 1}", "x"), made("user", "side", f"e{count - 2}", "x")]
    assert links(store.prune(entries)) == [("e0", None), ("last", "e0"), ("side", "e0")]
    assert store.pruned == count - 1


def test_nobodys_words_can_pass_for_an_error_or_a_denial(store: PruningSessionStore) -> None:
    entries = chained((use("t"), answer("t", "[Request interrupted by user] toolDenialKind permission-rule")))
    entries.append(made("user", "w", "u0", "API Error: isApiErrorMessage <synthetic>"))
    assert store.prune(entries) == entries


async def test_lone_surrogates_and_nuls_come_through(store: PruningSessionStore) -> None:
    entries = chained((use("t\ud83d", command="ls \0"), answer("t\ud83d", "\0 \ud83d")))
    entries.append(made("assistant", "cut", "u0", [use("\udc00")]))
    await store.append(KEY, entries)
    loaded = await store.load(KEY) or []
    assert told(loaded) == ["\0 \ud83d", ORPHAN_TEXT]
    assert await store.load(KEY) == loaded


# -- denials ----------------------------------------------------------------------------------------------------------


def test_of_two_denials_the_newest_stays(store: PruningSessionStore) -> None:
    entries = [made("user", "go", None, "go"), *refused(1, "go"), *refused(2, "u1"), made("user", "end", "u2", "x")]
    pruned = store.prune(entries)
    assert links(pruned) == [("go", None), ("a2", "go"), ("u2", "a2"), ("end", "u2")]
    assert pruned[2] == entries[4]
    assert (store.pruned, store.denials_dropped) == (2, 1)


@pytest.mark.parametrize(("keep", "stay"), [(0, []), (-1, []), (2, ["t2", "t3"]), (3, ["t1", "t2", "t3"])])
def test_so_many_denials_stay(store: PruningSessionStore, keep: int, stay: list[str]) -> None:
    store.prune_policy.keep_denials = keep
    entries = [*refused(1, None), *refused(2, "u1"), *refused(3, "u2")]
    assert calls(store.prune(entries)) == stay


def test_what_else_the_message_holds_stays(store: PruningSessionStore) -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    mixed = made("assistant", "a", None, [thought, use("t1"), use("t2", "Read"), {"type": "text", "text": "x"}])
    both = made(
        "user",
        "u",
        "a",
        [answer("t1", "denied", is_error=True), answer("t2", "fine")],
        toolDenialKind="permission-rule",
        toolUseResult="Error: denied",
    )
    store.prune_policy.keep_denials = 0
    first, second = store.prune([mixed, both])
    assert fields(first)["message"]["content"] == [thought, use("t2", "Read"), {"type": "text", "text": "x"}]
    assert fields(second)["message"]["content"] == [answer("t2", "fine")]
    assert not {"toolUseResult", "toolDenialKind"} & set(second)
    assert (store.pruned, store.denials_dropped) == (0, 1)


def test_a_denial_in_the_middle_of_the_chain_keeps_the_ancestry(store: PruningSessionStore) -> None:
    store.prune_policy.keep_denials = 0
    before, after = chained((use("x"), answer("x"))), made("user", "end", "u2", "x")
    pruned = store.prune([*before, *refused(1, "u0"), *refused(2, "u1"), after])
    assert links(pruned) == [*links(before), ("end", "u0")]


@pytest.mark.parametrize("mark", ["isMeta", "isCompactSummary"])
def test_a_call_in_which_an_untouchable_entry_has_a_part_stays_whole(store: PruningSessionStore, mark: str) -> None:
    store.prune_policy.keep_denials = 0
    call, refusal = refused(1, None)
    held = [[{**call, mark: True}, refusal], [call, {**refusal, mark: True}], [{**api_error("e", None), mark: True}]]
    for entries in held:
        assert store.prune(entries) == entries  # type: ignore[arg-type]  # entries are open dictionaries


def test_a_denial_is_told_by_its_mark_and_not_by_its_words() -> None:
    call, refusal = refused(1, None)
    assert (is_denial(call), is_denial(refusal)) == (None, "t1")
    assert is_denial(made("user", "u", None, [answer("t", "hook error", is_error=True)])) is None
    two = made("user", "u", None, [answer("t1"), answer("t2", "no", is_error=True)], toolDenialKind="permission-rule")
    assert is_denial(two) == "t2"


# -- errors of the API ------------------------------------------------------------------------------------------------


def test_errors_of_the_api_go_also_without_an_id(store: PruningSessionStore) -> None:
    synthetic = made("assistant", "e2", "e1", [{"type": "text", "text": "No response requested."}])
    fields(synthetic)["message"]["model"] = "<synthetic>"
    entries = [made("user", "a", None, "x"), api_error("e1", "a"), synthetic, api_error(None, "e2")]
    entries.append(made("user", "b", "e2", "y"))
    assert [is_api_error(entry) for entry in entries] == [False, True, True, True, False]
    assert links(store.prune(entries)) == [("a", None), ("b", "a")]
    assert (store.pruned, store.denials_dropped) == (3, 0)
    store.prune_policy.drop_api_errors = False
    assert store.prune(entries) == entries


def test_the_results_of_a_made_up_call_go_with_it(store: PruningSessionStore) -> None:
    error = api_error("e", "a")
    fields(error)["message"]["content"] = [use("t")]
    entries = [made("user", "a", None, "x"), error, made("user", "r", "e", [answer("t")]), made("user", "b", "r", "y")]
    assert links(store.prune(entries)) == [("a", None), ("b", "a")]


def test_the_leaf_and_the_boundary_are_led_past_what_went(store: PruningSessionStore) -> None:
    boundary: Any = {"type": "system", "uuid": "s", "parentUuid": None, "logicalParentUuid": "e"}
    leaf: Any = {"type": "last-prompt", "leafUuid": "e"}
    lost: Any = {"type": "last-prompt", "leafUuid": "elsewhere"}
    pruned = store.prune([made("user", "a", None, "x"), api_error("e", "a"), boundary, leaf, lost])
    assert pruned[1:] == [{**boundary, "logicalParentUuid": "a"}, {**leaf, "leafUuid": "a"}, lost]


# -- cuts -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    ["[Request interrupted by user for tool use]", [{"type": "text", "text": "x\n[Request interrupted by user]"}]],
)
def test_the_residue_of_a_cut_is_blanked_and_its_entry_stays(store: PruningSessionStore, content: Any) -> None:
    entries = chained((use("t"), answer("t", content, is_error=True)))
    pruned = store.prune(entries)
    assert links(pruned) == links(entries)
    assert fields(pruned[2])["message"]["content"] == [answer("t", CUT_TEXT, is_error=False)]
    store.prune_policy.neutralize_interrupts = False
    assert store.prune(entries) == entries


def test_calls_that_were_cut_get_a_result_once(store: PruningSessionStore) -> None:
    entries = [made("assistant", "a", None, [use("t1"), use("t2")]), made("user", "b", "a", [answer("t1")])]
    healed = store.prune(entries)
    assert told(healed) == [ORPHAN_TEXT, "ok"]
    assert fields(healed[2])["parentUuid"] == healed[1].get("uuid")
    assert store.prune(healed) == healed
    store.prune_policy.heal_orphans = False
    assert store.prune(entries) == entries


async def test_texts_that_were_left_as_they_are_are_said_in_the_language_spoken_at_load(
    store: PruningSessionStore,
) -> None:
    entries = chained((use("t"), answer("t", "[Request interrupted by user]", is_error=True)))
    await store.append(KEY, [*entries, made("assistant", "cut", "u0", [use("q")])])
    assert told(await store.load(KEY) or []) == [CUT_TEXT, ORPHAN_TEXT]
    with texts.speaking("en"):
        assert told(await store.load(KEY) or []) == [
            "[The last turn was interrupted here; this tool gave no result]",
            "[This step was cut and has no result. Do it again if it is needed.]",
        ]
    store.prune_policy = PrunePolicy(interrupt_text="cut", orphan_text="lost")
    with texts.speaking("en"):
        assert told(await store.load(KEY) or []) == ["cut", "lost"]


# -- the store --------------------------------------------------------------------------------------------------------


async def test_loading_expires_trims_prunes_and_heals_and_what_is_stored_stays(tmp_path: Path) -> None:
    store = PruningSessionStore(
        tmp_path / "sessions.db",
        workspace=tmp_path,
        policy=TrimPolicy(keep_recent=0),
        ephemeral=EphemeralPolicy(keep_recent=0),
        prune=PrunePolicy(keep_denials=0),
    )
    entries = chained((use("l", command="ls"), answer("l")), (use("r", "Read"), answer("r", "x" * 2000)))
    entries += [*refused(8, "u1"), api_error("e", "u8"), made("assistant", "cut", "e", [use("c")])]
    await store.append(KEY, entries)
    loaded = await store.load(KEY) or []
    assert [text[:7] for text in told(loaded)] == ["[`ls` 的", "[工具结果已归", "[这一步被打断"]
    assert links(loaded)[5] == ("cut", "u1")
    assert (store.pruned, store.denials_dropped, store.last_report["cleared"]) == (3, 1, 1)
    assert await store.load(KEY) == loaded
    plain = TrimmingSessionStore(
        tmp_path / "sessions.db", tmp_path, TrimPolicy(enabled=False), EphemeralPolicy(enabled=False)
    )
    assert await plain.load(KEY) == entries
    plain.close()
    assert await store.load({**KEY, "session_id": "unknown"}) is None
    assert (store.pruned, store.denials_dropped) == (0, 0)
    store.close()


async def test_the_cost_that_the_program_counts_on_from_is_noted(store: PruningSessionStore) -> None:
    def state(cost: Any) -> Any:
        return {"type": "cost-state", "totalCostUSD": cost}

    await store.append(KEY, [state(1.0), state(2.5)])
    await store.append({**KEY, "subpath": "subagents/agent-1"}, [state(9.0)])
    await store.append({**KEY, "session_id": "t"}, [made("user", "a", None, "x")])
    await store.load({**KEY, "subpath": "subagents/agent-1"})
    assert store.carried == {}
    await store.load(KEY)
    await store.load({**KEY, "session_id": "t"})
    assert store.carried == {"s": 2.5, "t": 0.0}


def test_the_signatures_are_the_specified_ones() -> None:
    assert list(inspect.signature(PruningSessionStore).parameters) == [
        "path",
        "workspace",
        "policy",
        "prune",
        "ephemeral",
    ]
    assert list(inspect.signature(TrimmingSessionStore).parameters) == ["path", "workspace", "policy", "ephemeral"]
    assert str(inspect.signature(heal_orphans)).startswith("(entries: ")
    assert list(inspect.signature(heal_orphans).parameters) == ["entries", "text"]
    assert list(inspect.signature(relink).parameters) == ["entries", "drop"]
    assert PrunePolicy() == PrunePolicy(True, True, CUT_TEXT, True, ORPHAN_TEXT, 1)
    assert TrimPolicy() == TrimPolicy(20, 2000, ".flower/spill", True)
    said = "[{cmd} 的结果已过期(第 {age} 轮前),当前状态可能已变。需要请重新执行]"
    assert EphemeralPolicy() == EphemeralPolicy(True, 6, 2000, said)


async def test_the_suite_of_the_sdk_passes(tmp_path: Path) -> None:
    opened: list[PruningSessionStore] = []

    def make() -> PruningSessionStore:
        opened.append(PruningSessionStore(":memory:", tmp_path))
        return opened[-1]

    await run_session_store_conformance(make)
    assert len(opened) > 12
    for store in opened:
        store.close()


# -- always -----------------------------------------------------------------------------------------------------------

KINDS = st.sampled_from(["denied", "error", "cut", "orphan", "look", "big", "both", "words", "meta", "stray"])


@st.composite
def transcripts(draw: st.DrawFn) -> list[SessionStoreEntry]:
    """A tree of exchanges of every kind; some parents are lost, some entries have no id."""
    entries: list[SessionStoreEntry] = []
    for number, kind in enumerate(draw(st.lists(KINDS, max_size=12))):
        names = [entry.get("uuid") for entry in entries]
        parent = draw(st.sampled_from([*names[-3:], "nobody"])) if names else None
        name, other = f"n{number}", f"m{number}"
        call = use(f"t{number}", command=draw(st.sampled_from(["ls", "make"])))
        match kind:
            case "denied":
                entries += [made("assistant", name, parent, [call]), denied(other, name, f"t{number}")]
            case "error":
                entries.append(api_error(draw(st.sampled_from([name, None])), parent))
            case "cut":
                residue = answer(f"t{number}", "[Request interrupted by user]", is_error=True)
                entries += [made("assistant", name, parent, [call]), made("user", other, name, [residue])]
            case "orphan":
                entries.append(made("assistant", name, parent, [{"type": "text", "text": "x"}, call]))
            case "look" | "big":
                said = answer(f"t{number}", "x" * (5 if kind == "look" else 60))
                entries += [made("assistant", name, parent, [call]), made("user", other, name, [said])]
            case "both":
                entries.append(made("assistant", name, parent, [call, use(f"s{number}", "Read")]))
                refusal = [answer(f"t{number}", "no", is_error=True), answer(f"s{number}")]
                entries.append(made("user", other, name, refusal, toolDenialKind="permission-rule"))
            case "words":
                entries.append(made("user", name, parent, "words"))
            case "meta":
                entries.append(made("user", name, parent, "note", isMeta=True))
            case _:
                entries.append({"type": "mode"})
    return entries


def climb(entries: Sequence[SessionStoreEntry]) -> bool:
    """Whether every way up ends."""
    up = {name: parent for name, parent in links(entries) if name}
    for start in up:
        name, steps = start, 0
        while name is not None and steps <= len(up):
            name, steps = up.get(name), steps + 1
        if name is not None:
            return False
    return True


def words(entries: Sequence[SessionStoreEntry]) -> list[str]:
    """What people said; it never goes."""
    said = [fields(entry).get("message", {}).get("content") for entry in entries]
    return [text for text in said if isinstance(text, str)]


@given(transcripts(), st.integers(0, 2))
def test_after_any_pruning_the_chain_holds_and_every_call_has_its_result(
    tmp_path_factory: pytest.TempPathFactory, entries: list[SessionStoreEntry], keep: int
) -> None:
    store = PruningSessionStore(
        ":memory:",
        tmp_path_factory.getbasetemp() / "pruned",
        policy=TrimPolicy(keep_recent=keep, min_chars=50),
        prune=PrunePolicy(keep_denials=keep),
        ephemeral=EphemeralPolicy(keep_recent=keep),
    )
    try:
        before = copy.deepcopy(entries)
        pruned = store.prune(store.trim(store.expire(entries)))
        assert entries == before
        assert store.prune(store.trim(store.expire(entries))) == pruned
        names = {name for name, _ in links(pruned) if name}
        assert {parent for _, parent in links(pruned)} <= {*names, None}
        assert climb(pruned)
        with_messages = [entry for entry in pruned if "message" in entry]
        contents = [fields(entry)["message"]["content"] for entry in with_messages]
        blocks = [block for content in contents if isinstance(content, list) for block in content]
        asked = sorted(block["id"] for block in blocks if block["type"] == "tool_use")
        assert asked == sorted(block["tool_use_id"] for block in blocks if block["type"] == "tool_result")
        assert [] not in contents
        assert sum(is_denial(entry) is not None for entry in pruned) <= keep
        assert not any(is_api_error(entry) for entry in pruned)
        assert [each for each in contents if isinstance(each, str)] == words(before)
        assert store.prune(pruned) == pruned
    finally:
        store.close()


@given(st.lists(st.sampled_from(HOSTILE), max_size=8), st.booleans())
def test_no_shape_makes_the_stores_fail(tmp_path_factory: pytest.TempPathFactory, entries: Any, greedy: bool) -> None:
    count = 0 if greedy else 5
    store = PruningSessionStore(
        ":memory:",
        tmp_path_factory.getbasetemp() / "hostile",
        policy=TrimPolicy(keep_recent=count, min_chars=0),
        prune=PrunePolicy(keep_denials=count),
        ephemeral=EphemeralPolicy(keep_recent=count),
    )
    try:
        assert len(store.prune(store.trim(store.expire(entries)))) >= len(entries)
    finally:
        store.close()


def test_a_hole_in_the_transcript_is_bridged_and_results_of_lost_calls_go(tmp_path: Path) -> None:
    """A part could not be written: what came after it hangs on nothing, and may answer calls that nobody made."""
    entries: list[Any] = [
        made("user", "a", None, "go"),
        made("assistant", "b", "a", "first"),
        made("user", "d", "lost", [{"type": "tool_result", "tool_use_id": "t9", "content": "of a lost call"}]),
        made("user", "e", "lost too", [{"type": "text", "text": "kept"}]),
        made("assistant", "f", "e", "last"),
    ]
    store = PruningSessionStore(":memory:", tmp_path)
    assert links(store.prune(entries)) == [("a", None), ("b", "a"), ("e", "b"), ("f", "e")]
    store.close()
