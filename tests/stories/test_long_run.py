"""A run that lasts: handovers, lost networks, a kill, interrupts, questions, worktrees, a rejected verdict.

It is played twice, in both languages, with the real SDK and its bundled program. What it must come to is written down
here beforehand; the model server's own token log must agree with the accounts.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from flower.testing import Asked, ScriptedModel, cost, read_story, scripted_surroundings
from tests.stories.long.story import story
from tests.stories.long.words import OF, Words

pytestmark = [pytest.mark.real, pytest.mark.timeout(240)]

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Came:
    """What the story came to."""

    language: str
    words: Words
    workspace: Path
    run_dir: Path
    notes: Path
    go: Path
    model: ScriptedModel
    exits: list[int]

    @property
    def rows(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = json.loads((self.run_dir / "manifest.json").read_text(encoding="utf-8"))
        return rows

    @property
    def events(self) -> list[list[Any]]:
        lines = (self.run_dir / "events.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]


async def play(language: str, home: Path) -> Came:
    words = OF[language]
    workspace, run_dir, go = home / "ws", home / "run", home / "go"
    workspace.mkdir(parents=True)
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "begin"]):
        author = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
        subprocess.run(["git", *author, *command], cwd=workspace, check=True)  # noqa: ASYNC221 - before anything runs
    exits = []
    async with ScriptedModel(read_story(story(words, str(go)))) as model:
        with scripted_surroundings(model, home / "home"):
            env = {
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "ANTHROPIC_MODEL": "claude-sonnet-5-5",
                "GIT_CONFIG_GLOBAL": "/dev/null",
            }
            for request in (words.request, ""):
                process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-m", "tests.stories.long.driver"),
                    *(language, str(workspace), str(run_dir), str(go), request),
                    env=env,
                    cwd=ROOT,
                )
                if request:
                    async with model.paused("work-3.killed"):
                        asked = asyncio.create_task(model.asked("work-3.killed", timeout=60))
                        died = asyncio.create_task(process.wait())
                        await asyncio.wait({asked, died}, return_when=asyncio.FIRST_COMPLETED)
                        assert asked.done(), "the first process ended before it could be killed"
                        await kept(run_dir / "sessions.db", "D is made")
                        process.send_signal(signal.SIGKILL)
                        await died
                        await model.settled()  # its program is gone too, and with it the request that waited
                exits.append(await process.wait())
    return Came(
        language=language,
        words=words,
        workspace=workspace,
        run_dir=run_dir,
        notes=home / ".flower-ws" / "notes",
        go=go,
        model=model,
        exits=exits,
    )


KEPT_SECONDS = 40.0


async def kept(store: Path, words: str) -> None:
    """Wait until the transcripts hold these words in the main thread's: the program mirrors them a moment later."""
    query = "SELECT COUNT(*) FROM entries WHERE payload LIKE ? AND store_key NOT LIKE '%/subagents/%'"
    until = time.monotonic() + KEPT_SECONDS
    while True:
        with contextlib.closing(sqlite3.connect(store)) as db:
            if db.execute(query, (f"%{words}%",)).fetchone()[0]:
                return
            known = db.execute("SELECT COUNT(*) FROM entries").fetchone()[0]
        assert time.monotonic() < until, f"{words!r} is in none of {known} entries after {KEPT_SECONDS:.0f} s"
        await asyncio.sleep(0.05)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Came]:
    return {language: asyncio.run(play(language, tmp_path_factory.mktemp(language))) for language in ("zh", "en")}


@pytest.fixture(params=["zh", "en"])
def came(request: pytest.FixtureRequest, both: dict[str, Came]) -> Came:
    return both[request.param]


def test_the_first_process_was_killed_and_the_second_finished(came: Came) -> None:
    assert came.exits == [-signal.SIGKILL, 0]
    assert came.model.failures == []


def test_the_accounts_are_as_the_story_says(came: Came) -> None:
    """The costs are the tokens of each line at the price of the model, in millionths of a dollar, reckoned by hand:
    (10 x 2 + cached x 0.1 + output x 10). Those of the killed process stand in the row of the step it was in."""
    words = came.words
    rows = [
        (
            *(row["step"], row["ok"], row["error"], row["attempts"], row["resumed"], len(row["retired"])),
            *(row["context"], row["num_turns"], round(row["cost_usd"] * 1e6)),
        )
        for row in came.rows
    ]
    work = sum(
        [
            *(6019, 2688, 2688, 5019, 15719, 21169),  # first generation: A and B, a question, its handoff
            *(6219, 2688, 5519, 15819, 21269),  # second: C, cut and gone on with, the inbox, its handoff
            *(5719, 2688, 5519, 15919, 21369),  # third: D, the kill, a question, its handoff
            9019,  # fourth: the first report
        ]
    )
    assert work == 165_049
    assert rows == [
        (words.clarify, True, None, 1, False, 0, 21_500, 4, 15_376),
        (words.set_goal, True, None, 2, True, 0, 23_000, 6, 11_357),
        (words.work, True, None, 1, False, 1, 40_000, 20, work),
        (words.verdict.format(round=1), True, None, 1, False, 0, 24_500, 2, 7_588),
        (f"{words.work}#round2", True, None, 2, True, 0, 41_000, 2, 9_119),
        (words.verdict.format(round=2), True, None, 1, False, 0, 25_000, 1, 4_519),
    ]
    assert sum(row[-1] for row in rows) == 213_008
    assert cost(came.model.tokens) == pytest.approx(0.213008, abs=1e-6)


def test_two_networks_were_lost_and_no_text_of_it_reached_a_model(came: Came) -> None:
    lost = {row["step"]: row["errors"] for row in came.rows if row["errors"]}
    assert list(lost) == [came.words.set_goal, f"{came.words.work}#round2"]
    for (error,) in lost.values():
        assert "ECONNRESET" in error
        assert not any(error in request.conversation.history for request in came.model.asked_of())
    assert not any("ECONNRESET" in row["text"] for row in came.rows)


def test_the_lineage_names_the_sessions_that_are_alive(came: Came) -> None:
    words, rows = came.words, came.rows
    lineage = json.loads((came.run_dir / "lineage.json").read_text(encoding="utf-8"))
    assert lineage == {
        "workspace": str(came.workspace),
        "woke": 2,
        "steps": {
            words.clarify: rows[0]["session_id"],
            words.set_goal: rows[1]["session_id"],
            words.work: rows[4]["session_id"],
        },
    }
    assert rows[2]["session_id"] == rows[4]["session_id"]
    judges = {rows[3]["session_id"], rows[5]["session_id"]}
    assert len(judges) == 2
    assert not judges & set(lineage["steps"].values())


def test_the_model_saw_four_generations_and_each_one_session(came: Came) -> None:
    generations = [{asked.session for asked in came.model.asked_of(f"work-{number}")} for number in range(1, 5)]
    assert [len(sessions) for sessions in generations] == [1, 1, 1, 1]
    assert len(set.union(*generations)) == 4
    assert generations[2] == set(came.rows[2]["retired"])  # the same before the kill and after it
    assert generations[3] == {came.rows[2]["session_id"]}


def test_the_documents_are_frozen_as_they_were_said(came: Came) -> None:
    words = came.words
    brief = lines_of(came.notes / words.brief_name)
    added = [line for line in brief if re.fullmatch(r"## \S.*\(\d\d:\d\d:\d\d\)", line)]
    assert len(added) == 2  # the mail of each process
    kept = [line for line in brief if line not in added]
    assert kept == [*meant(words.brief), words.mail, words.mail]
    assert lines_of(came.notes / words.goal_name) == [line.replace("## ", "# ") for line in meant(words.goal)]


def test_each_handoff_is_on_disk_and_none_overwrote_another(came: Came) -> None:
    words = came.words
    archived = sorted((came.notes / "archive" / words.handoff_archive).iterdir())
    documents = [*archived, came.notes / words.handoff_name]
    assert [lines_of(path) for path in documents] == [
        meant(words.handoff.format(generation=generation, next=then))
        for generation, then in ((2, "make C"), (3, "make D"), (4, "report"))
    ]
    assert not any(words.degraded_mark in path.read_text(encoding="utf-8") for path in documents)
    assert sorted(path.name for path in came.notes.iterdir()) == sorted(
        ["archive", words.brief_name, words.goal_name, words.log_name, words.handoff_name]
    )


def test_five_questions_came_to_their_ends(came: Came) -> None:
    log = (came.notes / came.words.log_name).read_text(encoding="utf-8")
    asked = re.findall(r"^- \*\*Q\*\*\(\w+\) \[(Q\d)\]", log, re.MULTILINE)
    ended = re.findall(r"^  - \*\*A\*\*\[(\w+)\]", log, re.MULTILINE)
    assert list(zip(asked, ended, strict=True)) == [
        ("Q1", "answered"),
        ("Q2", "declined"),
        ("Q3", "timeout"),
        ("Q4", "answered"),
        ("Q5", "answered"),
    ]
    assert log.count(came.words.mail) == 1  # taken from the inbox by the second generation


def test_each_of_four_subagents_worked_in_a_worktree_of_its_own(came: Came) -> None:
    places = Path(f"{came.go}.places").read_text(encoding="utf-8").split()
    assert len(set(places)) == len(places) == 4
    assert {str(Path(place).parent) for place in places} == {str(came.workspace / ".claude" / "worktrees")}
    assert sorted(path.name for place in places for path in Path(place).glob("*.txt")) == [
        *("A.txt", "B.txt", "C.txt", "D.txt")
    ]
    assert not list(came.workspace.glob("*.txt"))
    (reports,) = [asked.results for asked in came.model.asked_of("work-1.2")]
    assert len(reports) == 2  # A and B were sent in one message


def test_the_person_was_heard_at_once_and_later(came: Came) -> None:
    heard = [asked.prompt for asked in came.model.asked_of() if came.words.interrupted in asked.prompt]
    assert ["look quickly" in heard[0], "mind the tests" in heard[1], len(heard)] == [True, True, 2]
    kinds = [tuple(event[:1]) + tuple(event[2].values()) for event in came.events if event[0] in ("handoff", "retry")]
    assert kinds == [
        *(("retry",), ("retry",)),  # the first interrupt, the first lost network
        *(("handoff", "near"), ("handoff", "writing"), ("handoff", "done")),
        ("retry",),  # the second interrupt
        *(("handoff", "near"), ("handoff", "writing"), ("handoff", "done")) * 2,
        ("retry",),  # the second lost network
    ]


def test_in_the_other_language_it_differs_in_texts_only(both: dict[str, Came]) -> None:
    zh, en = both["zh"], both["en"]
    assert main_thread(zh) == main_thread(en)
    assert Counter(map(json.dumps, zh.events)) == Counter(map(json.dumps, en.events))
    figures = ("ok", "error", "attempts", "resumed", "context", "num_turns", "cost_usd")
    assert [[row[name] for name in figures] for row in zh.rows] == [[row[name] for name in figures] for row in en.rows]
    assert [asked.line for asked in main_requests(zh)] == [asked.line for asked in main_requests(en)]
    assert tokens(zh) == tokens(en)
    assert shape(zh) == shape(en)


def main_thread(came: Came) -> list[list[Any]]:
    """The events of the main thread; those of two subagents at once come in any order."""
    return [event for event in came.events if not event[2].get("subagent") and event[0] != "task"]


def main_requests(came: Came) -> list[Asked]:
    return [asked for asked in came.model.asked_of() if not asked.agent]


def tokens(came: Came) -> Counter[tuple[str, str, int, int, int]]:
    return Counter((each.part, each.line, each.input, each.cache_read, each.output) for each in came.model.tokens)


def shape(came: Came) -> list[tuple[int, list[str]]]:
    """Numbers of files and headings of the notes, folder by folder."""
    folders = [came.notes, came.notes / "archive" / came.words.handoff_archive]
    return [
        (len(list(folder.iterdir())), sorted(re.sub(r"[^#\n].*", "", line) for line in headings(folder)))
        for folder in folders
    ]


def headings(folder: Path) -> list[str]:
    files = [path for path in folder.iterdir() if path.is_file()]
    return [line for path in files for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("#")]


def lines_of(path: Path) -> list[str]:
    """The lines of a document without its title, its note to people, and blank lines."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith(">")]
    return lines[1:] if len(lines) > 1 and lines[1].startswith("## ") else lines


def meant(text: str) -> list[str]:
    return [line for line in text.splitlines() if line]
