"""The recipes of docs/testing-your-flows.md. What stands there is copied from here; test_docs.py compares."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from flower import (
    AgentSpec,
    Ask,
    HandoffPolicy,
    HumanChannel,
    Resilience,
    Runtime,
    Step,
    Workbench,
    Workflow,
    with_goal,
)
from flower.testing import (
    Fault,
    RecordingSink,
    ScriptedModel,
    StoryFailedError,
    cost,
    load_story,
    play,
    read_story,
    same_session,
    scripted_surroundings,
)
from flower.texts import speaking

pytestmark = [pytest.mark.real, pytest.mark.timeout(60)]


@asynccontextmanager
async def stage(place: Path, *lines: Any, **more: Any) -> AsyncIterator[tuple[ScriptedModel, Runtime]]:
    """A model that says these lines, and a runtime that plays against it and tries again at once."""
    story = read_story({"parts": {"main": {"lines": list(lines)}}})
    async with ScriptedModel(story) as model:
        with scripted_surroundings(model, place / "home"), speaking("en"):
            quick = Resilience(base_delay=0)
            runtime = Runtime(workspace=place / "work", run_dir=place / "runs", **{"resilience": quick, **more})
            try:
                yield model, runtime
            finally:
                runtime.close()


def flow(channel: HumanChannel | None = None) -> Workflow:
    """One step that may write, and ask where there is a channel."""
    tools = ["Write", "Bash"]
    if channel is not None:
        tools += [channel.tool_name, channel.inbox_name]
    servers = channel.mcp_servers() if channel is not None else {}
    worker = AgentSpec("Worker", "You work.", allowed_tools=tools, mcp_servers=servers)
    return Workflow([Step("Work", worker, "Begin.", resume_prompt="Go on.")], channel=channel)


# -- people -------------------------------------------------------------------------------------------------------


async def test_a_person_who_takes_time(tmp_path: Path) -> None:
    channel, size_is_known = HumanChannel(), asyncio.Event()

    async def person(ask: Ask) -> str:
        if ask.question == "Which size?":
            size_is_known.set()
            return "big"
        await size_is_known.wait()  # the first question waits until the second is answered
        return "blue"

    questions = [{"mcp__human__ask": {"question": f"Which {what}?"}} for what in ("colour", "size")]
    async with stage(
        tmp_path,
        {"call": questions},
        {"expect": {"result": ["blue", "big"]}, "say": "Big and blue it is."},
    ) as (_model, runtime):
        played = await play(flow(channel), runtime, answers=person)
    assert [(ask.question, ask.answer) for ask in played.asks] == [("Which colour?", "blue"), ("Which size?", "big")]


async def test_a_person_who_comes_too_late(tmp_path: Path) -> None:
    async def slow(ask: Ask) -> str:
        await model.asked("main.alone")  # the agent goes on before there is an answer
        return "blue"

    async with stage(
        tmp_path,
        {"call": {"mcp__human__ask": {"question": "Which colour?"}}},
        {"name": "alone", "expect": {"result": "Nobody answered"}, "say": "Then I take red."},
    ) as (model, runtime):
        played = await play(flow(HumanChannel(timeout_s=0.2)), runtime, answers=slow)
    assert [ask.state for ask in played.asks] == ["timeout"]
    assert played.too_late == ["q1"]


async def test_mail_arrives_with_the_next_look_into_the_inbox(tmp_path: Path) -> None:
    async with stage(
        tmp_path,
        {"name": "look", "call": {"mcp__human__inbox": {}}},
        {"expect": {"result": "1. shorter, please"}, "say": "Shorter it is."},
    ) as (model, runtime):
        channel = HumanChannel()

        async def person() -> None:
            async with model.at("main.look"):  # the model "thinks" while we write
                channel.send("shorter, please")

        played = await play(flow(channel), runtime, beside=person)
    assert [event.payload["state"] for event in played.sink.of("ask")] == ["queued", "delivered"]


async def test_an_interrupt_at_a_point_of_the_story(tmp_path: Path) -> None:
    async with stage(
        tmp_path,
        {"call": {"Bash": {"command": "echo begun > begun.txt"}}},
        {
            "name": "long",
            "either": [
                {"when": {"prompt": "not in C"}, "expect": {"session": "same"}, "say": "In Rust, then."},
                {"say": "I write it in C."},
            ],
        },
    ) as (model, runtime):

        async def person() -> None:
            async with model.at("main.long"):
                runtime.interrupt("not in C", now=True)
                await model.asked("main.long", 2)  # cut, and asked again with our words

        played = await play(flow(), runtime, beside=person)
    assert played.context["Work"].endswith("In Rust, then.")
    assert same_session(*model.asked_of("main"))


# -- trouble ------------------------------------------------------------------------------------------------------


async def test_a_connection_that_breaks_in_the_middle_of_an_answer(tmp_path: Path) -> None:
    async with stage(
        tmp_path,
        {"call": {"Bash": {"command": "echo once >> log.txt"}}},
        {"say": "It is logged.", "drop": {"after": 3, "times": 4}},
    ) as (_model, runtime):
        played = await play(flow(), runtime)
    assert played.ok
    assert played.sink.of("retry")
    assert (tmp_path / "work" / "log.txt").read_text(encoding="utf-8") == "once\n"  # nothing was done twice


async def test_an_error_that_no_retry_can_mend(tmp_path: Path) -> None:
    async with stage(tmp_path, "Never said.") as (model, runtime):
        model.inject("main", Fault(kind="error", status=401, message="invalid x-api-key", times=20))
        played = await play(flow(), runtime)
    assert played.context["_failed_at"] == "Work"
    assert played.context["_results"]["Work"].attempts == 1


async def test_a_session_is_taken_up_by_the_next_process(tmp_path: Path) -> None:
    async with stage(
        tmp_path,
        {"name": "wait", "call": {"Bash": {"command": "until [ -e go ]; do sleep 0.1; done"}}},
        {"expect": {"session": "same"}, "say": "It is done."},
    ) as (model, runtime):
        sink = RecordingSink()

        async def somebody() -> None:
            await sink.wait_for(lambda event: event.tool == "Bash")
            runtime.end()

        ended = await play(flow(), runtime, beside=somebody, sink=sink)
        assert not ended.ok
        runtime.close()

        (tmp_path / "work" / "go").touch()
        again = Runtime(workspace=tmp_path / "work", run_dir=tmp_path / "runs")  # what the next process does
        try:
            played = await play(flow(), again)
        finally:
            again.close()
    assert played.ok
    assert [each.line for each in model.asked_of("main")] == ["wait", "wait", "2"]  # a cut line is said again


# -- long runs ----------------------------------------------------------------------------------------------------

HANDOFF = "\n\n".join(
    f"## {section}\n{body}"
    for section, body in {
        "What I am doing": "the second file",
        "Decided": "plain text, because it is short",
        "Dead ends": "(empty)",
        "Next step": "write two.txt",
        "Scene": "one.txt",
    }.items()
)


async def test_a_full_context_is_handed_over(tmp_path: Path) -> None:
    story = {
        "parts": {
            "successor": {
                "match": {"opening": "You are taking over work that is not finished"},
                "lines": [
                    {"expect": {"opening": "write two.txt"}, "call": {"Bash": {"command": "echo 2 > two.txt"}}},
                    "Both are there.",
                ],
            },
            "main": {
                "lines": [
                    # What an answer reports fills the context: over 150,000 of 200,000 it is handed over.
                    {"call": {"Bash": {"command": "echo 1 > one.txt"}}, "usage": {"cache_read": 160_000}},
                    {"expect": {"prompt": "Call no more tools"}, "say": HANDOFF},
                ]
            },
        }
    }
    async with ScriptedModel(read_story(story)) as model:
        with scripted_surroundings(model, tmp_path / "home"), speaking("en"):
            runtime = Runtime(
                workspace=tmp_path / "work",
                run_dir=tmp_path / "runs",
                workbench=Workbench(tmp_path / "work"),
                handoff=HandoffPolicy(window=200_000),
            )
            try:
                played = await play(flow(), runtime)
            finally:
                runtime.close()
    assert played.ok
    (done,) = [event for event in played.sink.of("handoff") if event.payload["phase"] == "done"]
    assert not done.payload["degraded"]
    assert done.payload["sections"]["next"] == "write two.txt"
    assert (tmp_path / "work" / "two.txt").exists()


def verdict(conclusion: str, reason: str) -> str:
    return f"## Conclusion\n{conclusion}\n\n## Reason\n{reason}\n\n## Failed\n- hello.txt says hello\n"


async def test_a_round_that_the_judge_rejects(tmp_path: Path) -> None:
    goal = tmp_path / "goal.md"
    goal.write_text("## Goal\nGreet.\n\n## Checklist\n- hello.txt says hello\n", encoding="utf-8")
    story = {
        "parts": {
            "judge": {
                "match": {"opening": "Job B: judge a round"},  # each verdict is a session of its own
                "lines": [
                    {"name": "look", "call": {"Glob": {"pattern": "*.txt"}}},
                    {
                        "name": "rule",
                        "either": [
                            {"when": {"result": "hello.txt"}, "say": verdict("achieved", "I read it.")},
                            {"say": verdict("not yet", "There is no hello.txt.")},
                        ],
                    },
                ],
            },
            "work": {
                "lines": [
                    "I think it is done.",
                    {
                        "expect": {"prompt": "There is no hello.txt", "session": "same"},
                        "call": {"Bash": {"command": "echo hello > hello.txt"}},
                    },
                    "Now it is.",
                ]
            },
        }
    }
    async with ScriptedModel(read_story(story)) as model:
        with scripted_surroundings(model, tmp_path / "home"), speaking("en"):
            channel = HumanChannel(timeout_s=0)
            work = flow().steps[0]
            judged = Workflow([with_goal(work, channel, goal_path=goal, rounds=2)], channel=channel)
            runtime = Runtime(workspace=tmp_path / "work", run_dir=tmp_path / "runs")
            try:
                played = await play(judged, runtime)
            finally:
                runtime.close()
    assert played.ok
    rows = json.loads((tmp_path / "runs" / "manifest.json").read_text(encoding="utf-8"))
    assert [row["step"] for row in rows] == ["Work", "Work·verdict#1", "Work#round2", "Work·verdict#2"]


# -- money, time, failure -----------------------------------------------------------------------------------------


async def test_what_it_cost_is_what_the_server_counted(tmp_path: Path) -> None:
    async with stage(
        tmp_path,
        {"say": "One.", "call": {"Bash": {"command": "true"}}, "usage": {"input": 1000, "output": 200}},
        {"say": "Two.", "usage": {"input": 10, "cache_read": 1200, "output": 50}},
    ) as (model, runtime):
        await play(flow(), runtime)
    assert runtime.total_cost() == pytest.approx(cost(model.tokens), abs=1e-4)
    assert sum(entry.output for entry in model.tokens) == 250


async def test_a_story_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "hello.yaml"
    file.write_text(
        """
story: Hello
delay: 2.0                              # seconds before each answer, for whoever watches
parts:
  main:
    lines:
      - call: {Bash: {command: echo hello}}
      - {name: heard, expect: {result: hello}, say: The shell said hello.}
""",
        encoding="utf-8",
    )
    async with ScriptedModel(load_story(file)) as model:  # speed=0: at once; speed=1: as the story says
        with scripted_surroundings(model, tmp_path / "home"):
            runtime = Runtime(workspace=tmp_path / "work", run_dir=tmp_path / "runs")
            try:
                played = await play(flow(), runtime)
            finally:
                runtime.close()
    assert played.context["Work"] == "The shell said hello."


async def test_what_the_story_does_not_foresee_fails_the_test(tmp_path: Path) -> None:
    with pytest.raises(StoryFailedError) as failed:
        async with stage(tmp_path, {"name": "hello", "expect": {"prompt": "Good morning"}, "say": "Hello."}) as (
            _model,
            runtime,
        ):
            await play(flow(), runtime)
    assert str(failed.value) == (
        "the story failed:\n- main.hello: expected otherwise: prompt does not hold 'Good morning'; asked: 'Begin.'"
    )


async def test_waiting_for_an_event(tmp_path: Path) -> None:
    sink = RecordingSink()

    async def watcher() -> None:
        call = await sink.wait_for(lambda event: event.tool == "Bash")
        assert call.payload["input"]["command"] == "true"

    async with stage(tmp_path, {"call": {"Bash": {"command": "true"}}}, "Done.") as (_model, runtime):
        played = await play(flow(), runtime, beside=watcher, sink=sink)
    assert played.ok
