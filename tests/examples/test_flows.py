"""examples/flows.py: an own workflow with a gate, a rejection, a fork and a worker, run on the real program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from examples import flows
from flower import StepResult
from flower.testing import ScriptedModel, read_story, same_session
from tests.examples.program import ran, wrong

pytestmark = [pytest.mark.real, pytest.mark.timeout(90)]

SURVEY = {
    "match": {"system": "You look and report"},
    "lines": ["I looked into it.\n- a new switch\n* a changed default\nThat is all."],
}
FIRST = "printf '## New\\na switch\\n' > RELEASE.md"
SECOND = "printf '## Changed\\na default\\n## Upgrading\\nnothing to do\\n' >> RELEASE.md"


def send(prompt: str) -> dict[str, Any]:
    return {"Agent": {"description": "Write", "subagent_type": "writer", "prompt": prompt}}


WRITE = {
    "match": {"system": "You are the coordinator"},
    "lines": [
        {
            "expect": {"opening": "/This is what changed:\n\n- a new switch\n[*] a changed default\\Z/"},
            "call": send("all"),
        },
        "All three sections are written.",
        {
            "name": "again",
            "expect": {"prompt": "RELEASE.md is not done: missing ## Changed, ## Upgrading.", "session": "same"},
            "call": send("the rest"),
        },
        "Now they are.",
        {
            "name": "critique",
            "expect": {"prompt": "Leave your role", "history": "Now they are", "unless": {"session": "same"}},
            "say": "Which switch?\x1b[31m",
        },
    ],
}
WRITER = {
    "match": {"agent": "sub", "system": "short, exact release notes"},
    "lines": [
        {
            "either": [
                {"when": {"opening": "the rest"}, "call": {"Bash": {"command": SECOND}}},
                {"call": {"Bash": {"command": FIRST}}},
            ]
        },
        "Written.",
    ],
}


def story(**parts: Any) -> ScriptedModel:
    return ScriptedModel(read_story({"parts": {"survey": SURVEY, "writer": WRITER, "write": WRITE, **parts}}))


async def test_without_a_credential_one_line_says_so(tmp_path: Path) -> None:
    wrong(await ran("flows.py", model=None, place=tmp_path), status=1, words="ANTHROPIC_API_KEY")


async def test_a_survey_without_a_list_is_tried_once_more_and_then_stops_the_workflow(tmp_path: Path) -> None:
    nothing = {"match": SURVEY["match"], "lines": ["There is nothing to say."]}
    async with story(survey=nothing) as model:
        ended = await ran("flows.py", model=model, place=tmp_path)
    wrong(ended, status=1, words="stopped in step 'Survey': nothing came of it")
    assert len({each.session for each in model.asked_of("survey")}) == 2
    assert model.asked_of("write") == []


async def test_what_no_round_can_mend_stops_at_once_and_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "here" / "RELEASE.md").mkdir(parents=True)
    async with story() as model:
        ended = await ran("flows.py", model=model, place=tmp_path)
    wrong(ended, status=1, words="RELEASE.md is a directory; move it away and start again")
    assert model.asked_of("write.again") == []


def test_a_round_that_broke_before_the_gate_is_sent_back_with_what_broke() -> None:
    on_reject = flows.write().on_reject
    assert on_reject is not None
    said = on_reject(StepResult("Write", error="API Error: 400"), {})  # the gate was not asked: nothing is `missing`
    assert said == "RELEASE.md is not done: API Error: 400. Have just that put right."


async def test_a_rejected_round_goes_back_to_its_session_and_a_fork_looks_at_it(tmp_path: Path) -> None:
    async with story() as model:
        ended = await ran("flows.py", model=model, place=tmp_path)
    assert (ended.status, ended.err) == (0, "")
    assert "wrote RELEASE.md\nWhich switch?\N{REPLACEMENT CHARACTER}[31m\n" in ended.out
    assert [line.split()[:2] for line in ended.out.splitlines()[:3]] == [
        ["Survey", "ok"],
        ["Write", "ok"],
        ["Critique", "ok"],
    ]
    here = tmp_path / "here"
    assert (here / "RELEASE.md").read_text(encoding="utf-8").count("## ") == 3
    steps = [row["step"] for row in json.loads((here / "runs" / "manifest.json").read_text(encoding="utf-8"))]
    assert steps == ["Survey", "Write", "Write#round2", "Critique"]
    main = [each for each in model.asked_of("write") if each.line != "critique"]
    assert same_session(*main)
    (critique,) = model.asked_of("write.critique")
    lineage = json.loads((here / "runs" / "lineage.json").read_text(encoding="utf-8"))
    assert lineage["steps"]["Write"] == main[0].session
    assert lineage["steps"]["Critique"] == critique.session


def test_a_survey_keeps_its_list_and_nothing_else() -> None:
    said = StepResult("Survey", text="Well.\n  - one\n\n* two\n-three\nBye.")
    assert flows.bullets(said) == ["- one", "* two"]
