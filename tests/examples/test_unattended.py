"""examples/unattended.py: nobody there, an exit status, and assumptions that can be put right afterwards."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest

import flower.testing
from flower.testing import ScriptedModel, load_story, read_story
from tests.examples.program import ran, started, wrong

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]

FIRST_LIGHT = Path(flower.testing.__file__).parent / "stories" / "first-light.yaml"
REQUEST = "Write a small program that prints the first ten primes"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((), "Say in one sentence what is wanted"),
        (("x", "--budget", "nothing"), "'nothing' is no amount; a number above 0 is expected, for instance 2.50"),
        (("x", "--budget", "-3"), "'-3' is no amount"),
        (("x", "--workspace", "file"), "cannot work in"),
        (("x", "--wrokspace", "here"), "unrecognized arguments: --wrokspace"),
    ],
    ids=["no request", "no number", "below zero", "a file", "a switch that is none"],
)
async def test_what_cannot_begin_says_why(tmp_path: Path, args: tuple[str, ...], words: str) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "file").touch()
    async with ScriptedModel(read_story({"parts": {"main": {"lines": ["never asked"]}}})) as model:
        wrong(await ran("unattended.py", *args, model=model, place=tmp_path), status=2, words=words)
    assert model.requests == []


async def test_without_a_credential_it_does_not_begin(tmp_path: Path) -> None:
    wrong(await ran("unattended.py", REQUEST, model=None, place=tmp_path), status=2, words="ANTHROPIC_API_KEY")


async def test_it_is_done_without_a_question_that_waits_and_says_what_it_assumed(tmp_path: Path) -> None:
    async with ScriptedModel(load_story(FIRST_LIGHT)) as model:
        ended = await ran("unattended.py", REQUEST, "-w", "site", "-b", "5", model=model, place=tmp_path)
        assert (ended.status, ended.err) == (0, "")
        site = tmp_path / "here" / "site"
        assert "I assume one number per line" in ended.out
        assert str(site / ".flower" / "notes" / "brief.md") in ended.out
        assert (site / "primes.out").read_text(encoding="utf-8").splitlines()[0] == "2"

        # An assumption is put right: the same directories, one sentence.
        wish = "Print them as a JSON list"
        again = await ran("unattended.py", wish, "-w", "site", model=model, place=tmp_path)
    assert again.status == 0, again.err
    spent = float(next(line for line in ended.out.splitlines() if line.startswith("$")).split()[0][1:])
    assert spent > sum(float(cost) for cost in re.findall(r": ok, \$([0-9.]+),", ended.out))
    assert "in all, verdicts and rejected rounds included; accounts in" in ended.out
    # It stands in the brief, and is nothing that anybody assumed.
    assert "I assume one number per line" in again.out
    assert wish not in again.out
    assert wish in (site / ".flower" / "notes" / "brief.md").read_text(encoding="utf-8")
    assert any(f"The person now says:\n\n{wish}" in each.prompt for each in model.asked_of("work"))


async def test_a_goal_that_cannot_be_reached_stops_it_with_the_reason(tmp_path: Path) -> None:
    named = {"Goal": "Fly.", "Acceptance criteria": "- It flies.", "Bounds": "- None.", "Unknowns": "- No wings."}
    brief = "\n\n".join(f"## {name}\n{body}" for name, body in named.items())
    parts: dict[str, Any] = {
        "clarify": {"match": {"system": "You are the clarifier"}, "lines": [brief]},
        "goal": {
            "match": {"opening": "Job A: set the goal"},
            "lines": ["## Goal\nFly.\n\n## Checklist\n- Look out of the window: it flies.\n"],
        },
        "verdict": {
            "match": {"opening": "Job B: judge a round"},
            "lines": ["## Conclusion\nunreachable\n\n## Reason\nIt has no wings.\n\n## Failed\n- It flies.\n"],
        },
        "work": {"match": {"system": "You are the coordinator"}, "lines": ["I tried."]},
    }
    async with ScriptedModel(read_story({"parts": parts})) as model:
        ended = await ran("unattended.py", "Fly", model=model, place=tmp_path)
    wrong(ended, status=1, words="stopped in step 'Work': The verdict is that the goal is unreachable")
    assert "It has no wings." in ended.err
    assert "- No wings." in ended.out
    assert "The same command goes on from there." in ended.err


async def test_a_signal_ends_it_in_order_and_the_next_start_goes_on(tmp_path: Path) -> None:
    async with ScriptedModel(load_story(FIRST_LIGHT)) as model:
        async with started("unattended.py", REQUEST, model=model, place=tmp_path) as program:
            async with model.at("work.inbox"):
                program.process.send_signal(signal.SIGTERM)
            program.close_input()
            ended = await program.end()
        wrong(ended, status=1, words="stopped in step 'Work'")
        rows = json.loads((tmp_path / "here" / "runs" / "manifest.json").read_text(encoding="utf-8"))
        assert [row["step"] for row in rows] == ["Clarify", "Goal", "Work"]
        assert rows[-1]["session_id"] == model.asked_of("work")[0].session
        again = await ran("unattended.py", model=model, place=tmp_path)
    assert (again.status, again.err) == (0, "")
    assert len({each.session for each in model.asked_of("work")}) == 1
