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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from flower.testing import ScriptedModel, cost, read_story, scripted_surroundings
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


async def kept(store: Path, words: str) -> None:
    """Wait until the transcripts hold these words in the main thread's: the program mirrors them a moment later."""
    query = "SELECT COUNT(*) FROM entries WHERE payload LIKE ? AND store_key NOT LIKE '%/subagents/%'"
    while True:
        with contextlib.closing(sqlite3.connect(store)) as db:
            if db.execute(query, (f"%{words}%",)).fetchone()[0]:
                return
        await asyncio.sleep(0.05)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Came]:
    return {language: asyncio.run(play(language, tmp_path_factory.mktemp(language))) for language in ("zh", "en")}


@pytest.fixture(params=["zh", "en"])
def came(request: pytest.FixtureRequest, both: dict[str, Came]) -> Came:
    return both[request.param]


def test_the_first_process_was_killed_and_the_second_finished(came: Came) -> None:
    assert came.exits == [-signal.SIGKILL, 0]


def test_print(came: Came) -> None:
    for row in came.rows:
        print({k: v for k, v in row.items() if k not in ("text", "started_at", "ended_at", "run")})
    print(cost(came.model.tokens), sum(row["cost_usd"] for row in came.rows))
    print([(e.part, e.line, e.input, e.cache_read, e.output, e.cut) for e in came.model.tokens])
    assert re
