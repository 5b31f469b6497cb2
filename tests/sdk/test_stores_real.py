"""The stores with the real SDK and its bundled program: what a resumed session sends to the model."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from flower import texts
from flower.core.runtime import Runtime
from flower.stores.prune import PrunePolicy, PruningSessionStore
from flower.stores.trim import EphemeralPolicy, TrimPolicy, trim_report
from tests.sdk.stage import Stage, spec, stage

pytestmark = [pytest.mark.real, pytest.mark.timeout(60)]

BIG = "a line of the big file\n" * 200

LINES: list[Any] = [
    {"think": "I look first.", "call": {"Bash": {"command": "echo first look"}}},
    {"call": {"Bash": {"command": "echo second look"}}},
    {"call": {"Bash": {"command": "echo third look"}}},
    {"call": {"Read": {"file_path": "${workspace}/big.txt"}}},
    {"think": "Now make it.", "call": {"Bash": {"command": "make first"}}},
    {
        "say": "Once more.",
        "call": [{"Bash": {"command": "make second"}}, {"Read": {"file_path": "${workspace}/small.txt"}}],
    },
    {"call": {"Bash": {"command": "make third"}}},
    {
        "name": "back",
        "fail": {"status": 403, "type": "permission_error", "message": "no entry today"},
        "call": [{"Read": {"file_path": "${workspace}/small.txt"}}, {"Bash": {"command": "echo fourth look"}}],
    },
    "Over.",
]
"""The 403 ends the first run; the second goes on behind it."""


def requested(here: Stage) -> Iterator[dict[str, Any]]:
    """The blocks of the newest request's messages, in order."""
    for message in here.model.asked_of()[-1].conversation.body["messages"]:
        content = message["content"]
        yield from [{"type": "text", "text": content}] if isinstance(content, str) else content


def commands(here: Stage) -> list[str]:
    """Commands and files of the calls that the newest request holds."""
    calls = [block["input"] for block in requested(here) if block["type"] == "tool_use"]
    return [call.get("command") or Path(call["file_path"]).name for call in calls]


def results(here: Stage) -> list[str]:
    found = [block["content"] for block in requested(here) if block["type"] == "tool_result"]
    return [said if isinstance(said, str) else "".join(part["text"] for part in said) for said in found]


@asynccontextmanager
async def storing(here: Stage) -> AsyncIterator[Runtime]:
    """A runtime with a store that spares little."""
    async with here.runtime(workbench=True, spill_threshold=0, resilience=False) as runtime:
        runtime.store.close()
        runtime.store = PruningSessionStore(
            here.run_dir / "sessions.db",
            workspace=here.workspace,
            policy=TrimPolicy(keep_recent=0),
            ephemeral=EphemeralPolicy(keep_recent=1),
            prune=PrunePolicy(keep_denials=1),
        )
        yield runtime


def lose_the_end(here: Stage, *calls: str) -> None:
    """Take everything from the first result of these calls on out of the store, as a killed process does."""
    with sqlite3.connect(here.run_dir / "sessions.db") as db:
        query = "SELECT MIN(seq) FROM entries WHERE payload LIKE ? AND payload LIKE '%tool_result%'"
        (first, *_) = sorted(db.execute(query, (f"%{call}%",)).fetchone()[0] for call in calls)
        db.execute("DELETE FROM entries WHERE seq >= ?", (first,))
    db.close()


@pytest.mark.case("ST-3")
@pytest.mark.parametrize("language", texts.LANGUAGES)
async def test_a_session_is_resumed_expired_trimmed_pruned_and_healed(tmp_path: Path, language: str) -> None:
    """The scripted model refuses a request with a call that has no result, or a result of no call."""
    agent = spec(allowed_tools=["Bash", "Read"], delegate_only=True, glance=True)
    main = {
        "lines": LINES,
        "anytime": [{"when": {"prompt": "once again"}, "say": "Healed.", "expect": {"session": "same"}, "then": "end"}],
    }
    async with stage(tmp_path, main=main) as here:
        with texts.speaking(language):
            spoken = texts.current().stores
            here.workspace.mkdir()
            (here.workspace / "big.txt").write_text(BIG)
            (here.workspace / "small.txt").write_text("small\n")
            async with storing(here) as runtime:
                first = await runtime.run(agent, "go")
                assert not first.ok
                assert "no entry today" in str(first.error)
                session = first.session_id
                assert commands(here)[-4:] == ["make first", "make second", "small.txt", "make third"]
                second = await runtime.run(agent, "go on", resume=session)
                assert (second.ok, second.text, second.session_id) == (True, "Over.", session)
                assert (runtime.store.denials_dropped, runtime.store.last_report["expired"]) == (2, 2)
                assert runtime.store.last_report["cleared"] == 1
                assert trim_report(runtime.store).startswith(spoken.trimmed.partition("{")[0])

            asked = here.model.asked_of("main.back")[-1].conversation
            assert asked.session == session
            assert commands(here) == [
                *("echo first look", "echo second look", "echo third look", "big.txt", "small.txt", "make third"),
                *("small.txt", "echo fourth look"),
            ]
            said = results(here)
            assert said[0] == spoken.expired.format(cmd="`echo first look`", age=3)
            assert said[1] == spoken.expired.format(cmd="`echo second look`", age=2)
            assert said[2] == "third look"
            pointer, _, shown = said[3].partition(".flower/spill/")
            assert pointer == spoken.archived.partition("{path}")[0].format(count=len(said_of_big(here, shown)))
            assert BIG.splitlines()[0] in said_of_big(here, shown)
            assert "go on" in asked.history
            assert "no entry today" not in asked.history

            lose_the_end(here, *asked_calls(here)[-2:])
            async with storing(here) as runtime:
                third = await runtime.run(agent, "once again", resume=session)
                assert (third.ok, third.text, third.session_id) == (True, "Healed.", session)
            assert commands(here)[-2:] == ["small.txt", "echo fourth look"]
            assert results(here)[-2:] == [spoken.orphan, spoken.orphan]
            assert results(here)[:-2] == said[:-2]


def said_of_big(here: Stage, shown: str) -> str:
    """What the file behind a pointer holds."""
    return (here.workspace / ".flower" / "spill" / f"{shown[:16]}.txt").read_text()


def asked_calls(here: Stage) -> list[str]:
    return [str(block["id"]) for block in requested(here) if block["type"] == "tool_use"]
