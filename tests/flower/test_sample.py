"""The library's first code sample, on the real program against the scripted model: a whole run, in both languages."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from flower import Event, HumanChannel, Lineage, Runtime, StepResult, starter_flow
from flower.testing import ScriptedModel, Story, cost, play, read_story, same_session, scripted_surroundings
from flower.workflow.base import Step

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]

ASK, INBOX = "mcp__human__ask", "mcp__human__inbox"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tongue:
    """What differs between the two runs."""

    lang: str | None
    marks: dict[str, str]
    """How the parts of the story are told apart: by the beginning of their rules, and the judge's two jobs."""
    steps: tuple[str, str, str]
    judge: str
    files: tuple[str, str, str]
    question: str
    options: tuple[str, str]
    brief: str
    goal: str
    first: str
    second: str
    gap: str
    """Why the judge rejects the first round."""
    not_yet: str
    achieved: str


ZH = Tongue(
    lang=None,
    marks={
        "clarify": "# 你是确认者",
        "judge": "# 你是判定者",
        "work": "# 你是协调者",
        "goal": "差事 A:",
        "verdict": "差事 B:",
    },
    steps=("确认需求", "设定目标", "干活"),
    judge="干活·判定",
    files=("需求.md", "目标.md", "问答记录.md"),
    question="打印几个质数?",
    options=("十个", "一百个"),
    brief=("## 目标\n打印${count}质数\n\n## 验收标准\n- 跑 primes.py\n\n## 边界\n只用标准库\n\n## 未知与假设\n无\n"),
    goal="## 目标\n打印质数\n\n## 判定清单\n- 跑 python3 primes.py,看到 2 3 5 7\n",
    first="第一轮做完了,产出在 primes.py。",
    second="第二轮补上了测试。",
    gap="没有测试",
    not_yet="## 结论\n未达成\n\n## 理由\n没有测试\n\n## 未通过\n- 跑测试\n",
    achieved="## 结论\n达成\n\n## 理由\n都看到了\n\n## 未通过\n(无)\n",
)

EN = Tongue(
    lang="en",
    marks={
        "clarify": "# You are the clarifier",
        "judge": "# You are the judge",
        "work": "# You are the coordinator",
        "goal": "Job A: set the goal.",
        "verdict": "Job B: judge a round.",
    },
    steps=("Clarify", "Goal", "Work"),
    judge="Work·verdict",
    files=("brief.md", "goal.md", "qa.md"),
    question="How many primes?",
    options=("ten", "a hundred"),
    brief=(
        "## Goal\nPrint ${count} primes\n\n## Acceptance criteria\n- run primes.py\n\n"
        "## Bounds\nstandard library only\n\n## Unknowns and assumptions\nnone\n"
    ),
    goal="## Goal\nPrints primes\n\n## Checklist\n- run python3 primes.py, see 2 3 5 7\n",
    first="Round one is done, the result is in primes.py.",
    second="Round two added the test.",
    gap="there is no test",
    not_yet="## Conclusion\nNOT ACHIEVED\n\n## Reason\nthere is no test\n\n## Failed\n- run the test\n",
    achieved="## Conclusion\nACHIEVED\n\n## Reason\nall seen\n\n## Failed\n(none)\n",
)

NEW_GOAL = "## Goal\nPrints sorted primes\n\n## Checklist\n- see that they are sorted\n"
PRIMES = "print(*[n for n in range(2, 30) if all(n % d for d in range(2, n))])\n"


def story_of(tongue: Tongue, workspace: Path) -> Story:
    """Clarify asks once; the coordinator tries itself, is refused, delegates; the judge rejects once."""
    program = str(workspace / "primes.py")
    mark = tongue.marks
    return read_story(
        {
            "parts": {
                "coder": {
                    "match": {"agent": "sub"},
                    "lines": [
                        {"call": {"Write": {"file_path": program, "content": PRIMES}}},
                        {"call": {"Bash": {"command": "python3 primes.py > primes.out && cat primes.out"}}},
                        {"expect": {"result": "2 3 5 7 11 13 17 19 23 29"}, "say": "primes.py"},
                    ],
                },
                "clarify": {
                    "match": {"system": mark["clarify"]},
                    "lines": [
                        {"call": {ASK: {"question": tongue.question, "options": list(tongue.options)}}},
                        {"expect": {"result": r"/(?P<count>\S+)/"}, "say": tongue.brief},
                    ],
                },
                "goal": {
                    "match": {"system": mark["judge"], "opening": mark["goal"]},
                    "lines": [
                        {"expect": {"opening": tongue.options[0]}, "say": tongue.goal},
                        {"name": "anew", "expect": {"session": "same", "prompt": "SORTED"}, "say": NEW_GOAL},
                    ],
                },
                "verdict": {
                    "match": {"system": mark["judge"], "opening": mark["verdict"]},
                    "lines": [
                        {
                            "either": [
                                {"when": {"opening": tongue.first}, "say": tongue.not_yet},
                                {"when": {"opening": tongue.second}, "say": tongue.achieved},
                                {"when": {"opening": "sorted them"}, "say": tongue.achieved},
                            ]
                        }
                    ],
                },
                "work": {
                    "match": {"system": mark["work"]},
                    "lines": [
                        {"name": "itself", "call": {"Write": {"file_path": program, "content": "print(2)\n"}}},
                        {
                            "name": "delegate",
                            "expect": {"result": "Agent", "error": True},
                            "call": {"Agent": {"description": "d", "prompt": "primes", "subagent_type": "coder"}},
                        },
                        {"call": {INBOX: {}}},
                        {"say": tongue.first},
                        {"name": "again", "expect": {"session": "same", "prompt": tongue.gap}, "say": tongue.second},
                        {"name": "woken", "expect": {"session": "same", "prompt": "SORTED"}, "say": "sorted them"},
                    ],
                },
            }
        }
    )


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    place = tmp_path.resolve() / "ws"
    place.mkdir()
    return place


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    return tmp_path.resolve() / "runs"


def written(place: Path) -> dict[str, str]:
    return {file.name: file.read_text(encoding="utf-8") for file in place.iterdir() if file.is_file()}


def rows(manifest: Path) -> Iterator[dict[str, Any]]:
    yield from json.loads(manifest.read_text(encoding="utf-8"))


@pytest.mark.parametrize("tongue", [ZH, EN], ids=["zh", "en"])
async def test_the_first_sample_runs_to_its_end(tongue: Tongue, workspace: Path, run_dir: Path, tmp_path: Path) -> None:
    seen: list[Event] = []
    progress: list[tuple[str, bool]] = []

    def on_event(event: Event) -> None:
        seen.append(event)

    def on_step(step: Step, result: StepResult) -> None:
        progress.append((step.name, result.ok))

    async def answer(channel: HumanChannel) -> None:
        while (ask := await channel.next_ask()) is not None:
            channel.answer(ask.id, ask.options[0])

    async with ScriptedModel(story_of(tongue, workspace)) as model:
        with scripted_surroundings(model, tmp_path / "home"):
            flow = starter_flow("primes", workspace=workspace, run_dir=run_dir, lang=tongue.lang)
            assert flow.workbench is not None
            assert flow.channel is not None
            rt = Runtime(workspace=workspace, run_dir=run_dir, workbench=flow.workbench)
            rt.model = "claude-haiku-5-5"
            answering = asyncio.create_task(answer(flow.channel))
            try:
                ctx = await flow.run(rt, on_event=on_event, on_step=on_step)
            finally:
                answering.cancel()
                rt.close()

    # What it leaves in the context.
    clarify, goal, work = tongue.steps
    assert ctx.get("_failed_at") is None
    assert tongue.options[0] in ctx[clarify]
    assert ctx[goal].count("- ") == 1
    assert ctx[work] == tongue.second
    assert (ctx["_goal_rounds"], ctx["_verdict"].achieved, ctx["_woke"]) == (2, True, 1)
    assert progress == [(clarify, True), (goal, True), (work, True)]

    # What people were asked, and what they heard.
    assert flow.channel.transcript() == f"- Q: {tongue.question}\n  A: [answered] {tongue.options[0]}"
    asked = [event.payload["state"] for event in seen if event.kind == "ask"]
    assert asked == ["asked", "answered"]
    told = [
        (event.payload["round"], event.payload["state"])
        for event in seen
        if event.kind == "task" and event.payload.get("kind") == "verdict"
    ]
    assert told == [(1, "not_yet"), (2, "achieved")]
    assert [event.text for event in seen if event.kind == "step"] == [clarify, goal, work]

    # What is on disk: the documents, and what a subagent really made. The coordinator's own try was refused.
    notes = written(flow.workbench.notes)
    assert sorted(notes) == sorted(tongue.files)
    assert tongue.question in notes[tongue.files[2]]
    assert written(workspace) == {"primes.py": PRIMES, "primes.out": "2 3 5 7 11 13 17 19 23 29\n"}
    assert Lineage.open(run_dir, workspace).steps.keys() == {clarify, goal, work}

    # The books, against the model server's own.
    assert [(row["step"], row["ok"], row["attempts"]) for row in rows(rt.manifest_path)] == [
        (clarify, True, 1),
        (goal, True, 1),
        (work, True, 1),
        (f"{tongue.judge}#1", True, 1),
        (f"{work}#round2", True, 1),
        (f"{tongue.judge}#2", True, 1),
    ]
    assert sum(row["cost_usd"] for row in rows(rt.manifest_path)) == pytest.approx(cost(model.tokens), abs=1e-9)

    # The model's own view: one session for both rounds, a new one for each verdict.
    assert same_session(*model.asked_of("work"))
    first, second = model.asked_of("verdict")
    assert not same_session(first, second)
    assert tongue.gap in model.asked_of("work.again")[0].prompt


async def test_words_at_waking_reach_the_sessions_of_before(workspace: Path, run_dir: Path, tmp_path: Path) -> None:
    async def one_run(said: str) -> dict[str, Any]:
        flow = starter_flow(said, workspace=workspace, run_dir=run_dir, lang="en", timeout_s=None)
        assert flow.workbench is not None
        rt = Runtime(workspace=workspace, run_dir=run_dir, workbench=flow.workbench)
        rt.model = "claude-haiku-5-5"
        try:
            return (await play(flow, rt, answers=lambda ask: ask.options[0])).context
        finally:
            rt.close()

    async with ScriptedModel(story_of(EN, workspace)) as model:
        with scripted_surroundings(model, tmp_path / "home"):
            first = await one_run("primes")
            second = await one_run("They must be SORTED.")

    assert (first["_woke"], second["_woke"], second.get("_failed_at")) == (1, 2, None)
    assert second["_sessions"]["Work"] == first["_sessions"]["Work"]
    assert "They must be SORTED." in second["Clarify"]
    assert second["Goal"] == NEW_GOAL.strip()
    (woken,) = model.asked_of("work.woken")
    assert "They must be SORTED." in woken.prompt
    assert "- see that they are sorted" in woken.prompt
    assert len(model.asked_of("clarify")) == 2  # of the first run: a question, and the brief
