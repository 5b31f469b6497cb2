"""examples/trial.py: the pattern to copy, run on the real program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from examples import trial
from flower import Workbench
from flower.testing import ScriptedModel, read_story
from tests.examples.program import ran, started, wrong

BRIEF = """## Goal
The phase of the moon, for the ${side}ern half.

## Acceptance criteria
- moon.txt names it.

## Bounds
- Python only.

## Unknowns and assumptions
- ${note}
"""
STORY: dict[str, Any] = {
    "vars": {"side": "north", "note": "I assume the northern half."},
    "parts": {
        "clarify": {
            "match": {"system": "You are the clarifier", "opening": "phase of the moon"},
            "lines": [
                {
                    "say": "\x1b[2J\x1b]0;owned\x07One thing only.",
                    "call": {"mcp__human__ask": {"question": "Which half?\x1b[31m", "options": ["north", "south"]}},
                },
                {
                    "name": "brief",
                    "either": [
                        {"when": {"result": "/^(?P<side>south)$/"}, "say": BRIEF.replace("${note}", "none left")},
                        {"say": BRIEF},
                    ],
                },
            ],
        },
        "work": {
            "match": {"system": "You are the coordinator", "opening": "Have this carried out:"},
            "take": {"opening": "/for the (?P<side>north|south)ern half/"},
            "lines": [
                {
                    "say": "I send somebody.",
                    "call": {"Agent": {"description": "d", "subagent_type": "programmer", "prompt": "Write moon.txt"}},
                },
                {"expect": {"result": "moon.txt is written"}, "call": {"mcp__human__inbox": {}}},
                {
                    "name": "last",
                    "either": [
                        {"when": {"result": "/1. (?P<mail>.+?)$/"}, "say": "You wrote: ${mail}. It is done."},
                        {"say": "It is done."},
                    ],
                },
            ],
        },
        "programmer": {
            "match": {"agent": "sub", "system": "You write small programs"},
            "lines": [{"call": {"Bash": {"command": "echo full > moon.txt"}}}, "moon.txt is written"],
        },
    },
}


@pytest.mark.real
async def test_without_a_credential_one_line_says_so(tmp_path: Path) -> None:
    wrong(await ran("trial.py", model=None, place=tmp_path), status=1, words="ANTHROPIC_API_KEY")


def test_main_builds_what_flower_run_wants_and_starts_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    flow = trial.main()
    assert flow.workbench == Workbench(tmp_path)
    assert flow.channel is not None
    assert flow.channel.amend_path == tmp_path / ".flower" / "notes" / "需求.md"
    assert [(step.name, step.resume_from) for step in flow.steps] == [("Clarify", None), ("Work", None)]
    assert flow.steps[1].spec.delegate_only
    assert [path.name for path in tmp_path.iterdir()] == [".flower"]


@pytest.mark.real
@pytest.mark.timeout(90)
async def test_questions_are_answered_by_typing_and_a_line_without_one_is_mail(tmp_path: Path) -> None:
    async with (
        ScriptedModel(read_story(STORY)) as model,
        started("trial.py", model=model, place=tmp_path) as program,
    ):
        asked = await program.until("type the answer")
        assert "? Which half?\N{REPLACEMENT CHARACTER}[31m\n  north\n  south" in asked
        assert "\x1b" not in asked
        async with model.paused("work"):
            await program.type("south")
            await program.until("--- Work ---")
            await program.type("")
            await program.type("please be brief")
            await program.until("(queued: please be brief)")
        ended = await program.end()
    assert (ended.status, ended.err) == (0, "")
    assert "You wrote: please be brief. It is done." in ended.out
    notes = tmp_path / "here" / ".flower" / "notes"
    assert "for the southern half" in (notes / "需求.md").read_text(encoding="utf-8")
    assert "[answered] south" in (notes / "qa.md").read_text(encoding="utf-8")
    assert (tmp_path / "here" / "moon.txt").read_text(encoding="utf-8") == "full\n"


@pytest.mark.real
@pytest.mark.timeout(90)
async def test_when_the_input_ends_nobody_is_waited_for(tmp_path: Path) -> None:
    async with ScriptedModel(read_story(STORY)) as model:
        ended = await ran("trial.py", model=model, place=tmp_path)
    assert (ended.status, ended.err) == (0, "")
    brief = tmp_path / "here" / ".flower" / "notes" / "需求.md"
    assert "I assume the northern half." in brief.read_text(encoding="utf-8")
