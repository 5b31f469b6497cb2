from __future__ import annotations

import copy
from typing import Any, cast

import pytest
from claude_agent_sdk import SessionStoreEntry
from hypothesis import given
from hypothesis import strategies as st

from flower.stores.heal import heal_orphans

CUT = "cut"


def made(kind: str, uuid: str | None, parent: str | None, content: Any, **more: Any) -> SessionStoreEntry:
    message = {"role": kind, "content": content}
    return cast("SessionStoreEntry", {"type": kind, "uuid": uuid, "parentUuid": parent, "message": message, **more})


def call(uuid: str, parent: str | None, *ids: str, **more: Any) -> SessionStoreEntry:
    return made(
        "assistant", uuid, parent, [{"type": "tool_use", "id": one, "name": "Bash", "input": {}} for one in ids], **more
    )


def result(uuid: str, parent: str | None, *ids: str) -> SessionStoreEntry:
    return made("user", uuid, parent, [{"type": "tool_result", "tool_use_id": one, "content": "ok"} for one in ids])


def fields(entry: SessionStoreEntry) -> dict[str, Any]:
    return cast("dict[str, Any]", entry)


@pytest.mark.parametrize(
    "entries",
    [
        [],
        [{"type": "x"}],
        [{"type": "assistant"}],
        [{"type": "assistant", "message": None}],
        [{"type": "assistant", "message": {"content": "text"}}],
        [{"type": "assistant", "message": {"content": ["text", None, {"type": "text"}]}}],
        [{"type": "summary", "message": {"content": [{"type": "tool_use", "id": "t"}]}}],
    ],
)
def test_what_holds_no_call_comes_back_as_it_is(entries: list[Any]) -> None:
    assert heal_orphans(entries, CUT) == entries


def test_a_call_that_was_answered_is_left_alone_wherever_the_answer_stands() -> None:
    entries = [call("a", None, "t"), made("user", "b", "a", "words"), result("c", "b", "t")]
    assert heal_orphans(entries, CUT) == entries


def test_a_call_that_was_cut_gets_a_result_right_behind_it_and_the_chain_goes_through_it() -> None:
    cut = call(
        "a",
        "r",
        "t",
        sessionId="s",
        cwd="/w",
        gitBranch="main",
        version="2",
        isSidechain=False,
        userType="external",
        entrypoint="sdk",
        requestId="not copied",
    )
    healed = heal_orphans([cut, made("user", "b", "a", "go on")], CUT)
    made_up = fields(healed[1])
    assert made_up == {
        "type": "user",
        "uuid": made_up["uuid"],
        "parentUuid": "a",
        "message": {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "t",
                    "content": "cut",
                    "is_error": False,
                }
            ],
        },
        "sessionId": "s",
        "cwd": "/w",
        "gitBranch": "main",
        "version": "2",
        "isSidechain": False,
        "userType": "external",
        "entrypoint": "sdk",
    }
    assert made_up["uuid"].startswith("heal-")
    assert len(made_up["uuid"]) == len("heal-") + 12
    assert healed[0] == cut
    assert healed[2] == made("user", "b", made_up["uuid"], "go on")
    assert len(healed) == 3


def test_of_several_calls_in_one_entry_only_the_cut_ones_get_a_result() -> None:
    healed = heal_orphans([call("a", None, "t1", "t2", "t3"), result("b", "a", "t2")], CUT)
    content = fields(healed[1])["message"]["content"]
    assert [block["tool_use_id"] for block in content] == ["t1", "t3"]
    assert fields(healed[2])["parentUuid"] == fields(healed[1])["uuid"]


def test_calls_in_two_entries_get_a_result_each() -> None:
    healed = heal_orphans([call("a", None, "t1"), call("b", "a", "t2"), made("user", "c", "b", "go on")], CUT)
    assert [entry["type"] for entry in healed] == ["assistant", "user", "assistant", "user", "user"]
    chain = [(fields(entry)["uuid"], fields(entry)["parentUuid"]) for entry in healed]
    assert [parent for _, parent in chain[1:]] == [uuid for uuid, _ in chain[:-1]]


def test_a_call_that_stands_there_twice_gets_one_result() -> None:
    healed = heal_orphans([call("a", None, "t"), call("b", "a", "t", "t")], CUT)
    assert [entry["type"] for entry in healed] == ["assistant", "user", "assistant"]


def test_an_entry_without_an_id_is_healed_and_draws_no_others_to_it() -> None:
    rootless = made("user", "b", None, "another chain")
    healed = heal_orphans([made("assistant", None, None, [{"type": "tool_use", "id": "t"}]), rootless], CUT)
    assert fields(healed[1])["message"]["content"][0]["tool_use_id"] == "t"
    assert healed[2] == rootless


def test_the_text_of_the_result_can_be_chosen() -> None:
    healed = heal_orphans([call("a", None, "t")], "no result")
    assert fields(healed[1])["message"]["content"][0]["content"] == "no result"


@st.composite
def transcripts(draw: st.DrawFn) -> list[SessionStoreEntry]:
    """A chain of calls, some answered, some not, some together."""
    entries: list[SessionStoreEntry] = []
    for number in range(draw(st.integers(0, 6))):
        parent = entries[-1].get("uuid") if entries else None
        ids = [f"t{number}-{one}" for one in range(draw(st.integers(0, 3)))]
        entries.append(call(f"a{number}", parent, *ids))
        answered = [one for one in ids if draw(st.booleans())]
        if answered:
            entries.append(result(f"r{number}", f"a{number}", *answered))
    return entries


@given(transcripts())
def test_after_healing_every_call_has_one_result_the_chain_holds_and_healing_again_changes_nothing(
    entries: list[SessionStoreEntry],
) -> None:
    before = copy.deepcopy(entries)
    healed = heal_orphans(entries, CUT)
    assert entries == before
    blocks = [block for entry in healed for block in fields(entry)["message"]["content"]]
    asked = [block["id"] for block in blocks if block["type"] == "tool_use"]
    answered = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    assert sorted(asked) == sorted(answered)
    uuids = [fields(entry)["uuid"] for entry in healed]
    assert len(set(uuids)) == len(uuids)
    assert [fields(entry)["parentUuid"] for entry in healed[1:]] == uuids[:-1]
    assert heal_orphans(healed, CUT) == healed
    assert heal_orphans(entries, CUT) == healed
