"""The runtime with the real SDK and its bundled program, against a scripted model."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import AgentDefinition

from flower.core.human import TOOL_NAME, HumanChannel
from flower.core.runtime import Runtime
from flower.core.workbench import Workbench
from flower.testing import RecordingSink, cost, same_session
from flower.workflow.aside import Recent, ask_aside
from tests.sdk.stage import LOOP, Stage, cut, marked, spec, stage

pytestmark = [pytest.mark.real, pytest.mark.timeout(60)]


def asking(channel: HumanChannel, **kw: Any) -> Any:
    return spec(allowed_tools=[TOOL_NAME], mcp_servers=channel.mcp_servers(), **kw)


# -- questions ----------------------------------------------------------------------------------------------------


@pytest.mark.case("AS-7")
async def test_two_questions_in_one_message_wait_at_the_same_time_and_a_bare_text_is_one_option(
    tmp_path: Path,
) -> None:
    lines = [
        {"call": [{TOOL_NAME: {"question": "A?"}}, {TOOL_NAME: {"question": "B?", "options": "one text"}}]},
        {"expect": {"result": ["alpha", "beta"]}, "say": "Both."},
    ]
    async with stage(tmp_path, lines) as here, here.runtime() as runtime:
        channel, sink = HumanChannel(), RecordingSink()
        channel.on_event = sink
        running = asyncio.create_task(runtime.run(asking(channel), "go", on_event=sink))
        await sink.wait_for(lambda event: event.text == "B?")
        assert [(ask.question, ask.options) for ask in channel.pending()] == [("A?", []), ("B?", ["one text"])]
        assert channel.answer("q2", "beta")
        assert channel.answer("q1", "alpha")
        assert (await running).text == "Both."
        last = here.model.asked_of()[-1]
        answers = {result.call: result.text for result in last.results}
        (calls,) = [turn.calls for turn in last.conversation.turns if turn.calls]
        assert [answers[call] for call in calls] == ["alpha", "beta"]


async def test_a_subagents_question_reaches_the_same_channel(tmp_path: Path) -> None:
    parts: dict[str, Any] = {
        "coder": {
            "match": {"agent": "sub"},
            "lines": [
                {"call": {TOOL_NAME: {"question": "From below?"}}},
                {"expect": {"result": "yes"}, "say": "Done."},
            ],
        },
        "main": {
            "lines": [
                {"call": {"Agent": {"description": "d", "prompt": "do", "subagent_type": "coder"}}},
                {"expect": {"result": "Done."}, "say": "Finished."},
            ]
        },
    }
    async with stage(tmp_path, **parts) as here, here.runtime() as runtime:
        channel, sink = HumanChannel(), RecordingSink()
        channel.on_event = sink
        agents = {"coder": AgentDefinition(description="codes", prompt="CODER", tools=[TOOL_NAME], model="inherit")}
        running = asyncio.create_task(runtime.run(asking(channel, agents=agents), "go", on_event=sink))
        await sink.wait_for("ask")
        assert channel.answer("q1", "yes")
        assert (await running).text == "Finished."
        assert next(event.kind for event in sink.events if event.payload.get("subagent")) == "prompt"


# -- interrupts ---------------------------------------------------------------------------------------------------

STREAM: dict[str, Any] = {"name": "first", "say": "word " * 400, "pace": 100}
BASH: dict[str, Any] = {"name": "first", "say": "Running it.", "call": {"Bash": {"command": LOOP}}}
ASK: dict[str, Any] = {"name": "first", "call": {TOOL_NAME: {"question": "Which?"}}}


@pytest.mark.case("SS-1")
@pytest.mark.parametrize("first", [STREAM, BASH, ASK], ids=["while it streams", "while Bash runs", "while it asks"])
async def test_an_interrupt_now_cuts_at_once_and_the_same_session_takes_up_the_words(
    tmp_path: Path, first: dict[str, Any]
) -> None:
    main = {"lines": [first], "anytime": [cut("use the other file")]}
    async with stage(tmp_path, speed=1.0, main=main) as here, here.runtime() as runtime:
        channel, sink = HumanChannel(), RecordingSink()
        channel.on_event = sink
        agent = asking(channel)
        agent.allowed_tools.append("Bash")
        running = asyncio.create_task(runtime.run(agent, "go", on_event=sink))
        await here.model.asked("main.first")
        if first is STREAM:
            async with asyncio.timeout(20):
                while here.model.asked_of("main.first")[0].sent < 20:  # noqa: ASYNC110 - no event for half a message
                    await asyncio.sleep(0.02)
        else:
            await sink.wait_for("ask" if first is ASK else "tool_call")
        loop = asyncio.get_running_loop()
        said = loop.time()
        await asyncio.to_thread(runtime.interrupt, "use the other file", now=True)
        step = await running
        assert loop.time() - said < 6.0
        assert (step.ok, step.attempts, step.resumed) == (True, 1, True)
        assert step.text == "I heard: use the other file"
        assert same_session(*here.model.asked_of())
        assert here.model.asked_of()[-1].session == step.session_id
        assert channel.pending() == []
        assert step.cost_usd == pytest.approx(cost(here.model.tokens), abs=3e-5)  # a token or two under way
    assert not (tmp_path / "ws" / "done.txt").exists()
    assert marked("") == []


async def test_an_interrupt_before_the_model_has_answered_loses_nothing(tmp_path: Path) -> None:
    main = {"lines": [{"name": "first", "say": "Too late."}], "anytime": [cut("early", answered=False)]}
    async with stage(tmp_path, main=main) as here, here.runtime() as runtime:
        runtime.interrupt("early", now=True)
        sink = RecordingSink()
        step = await runtime.run(spec(), "THE TASK", on_event=sink)
        assert (step.ok, step.text) == (True, "I heard: early")
        assert "THE TASK" in here.model.asked_of()[-1].conversation.history


@pytest.mark.case("SS-3")
async def test_the_call_that_would_come_next_does_not_happen(tmp_path: Path) -> None:
    write = {"name": "first", "call": {"Write": {"file_path": "${workspace}/next.txt", "content": "no"}}}
    main = {"lines": [write], "anytime": [cut("stop")]}
    async with stage(tmp_path, main=main) as here, here.runtime() as runtime:
        async with here.model.paused("main.first"):
            running = asyncio.create_task(runtime.run(spec(permission_mode="acceptEdits"), "go"))
            await here.model.asked("main.first")
            runtime.interrupt("stop")
        assert (await running).text == "I heard: stop"
        assert not (here.workspace / "next.txt").exists()


async def test_whoever_holds_a_cut_run_may_let_it_go_on_later_with_other_words(tmp_path: Path) -> None:
    main = {"lines": [BASH], "anytime": [cut("words of the one who waited")]}
    async with stage(tmp_path, main=main) as here, here.runtime() as runtime:
        held, released = asyncio.Event(), asyncio.Event()

        async def hold(words: str) -> str:
            assert words == ""
            held.set()
            await released.wait()
            return "words of the one who waited"

        runtime.on_interrupted = hold
        sink = RecordingSink()
        running = asyncio.create_task(runtime.run(spec(), "go", on_event=sink))
        await sink.wait_for("tool_call")
        runtime.interrupt(now=True)
        await held.wait()
        assert len(here.model.asked_of()) == 1
        released.set()
        assert (await running).text == "I heard: words of the one who waited"


async def test_an_end_in_the_middle_of_a_tool_closes_everything_and_writes_the_accounts(tmp_path: Path) -> None:
    async with stage(tmp_path, [BASH]) as here, here.runtime() as runtime:
        sink = RecordingSink()
        running = asyncio.create_task(runtime.run(spec(), "go", on_event=sink))
        await sink.wait_for("tool_call")
        await asyncio.to_thread(runtime.end)
        step = await running
        assert (step.ok, step.error) == (False, Runtime.ENDED)
        assert step.cost_usd == pytest.approx(cost(here.model.tokens))
        (row,) = json.loads(runtime.manifest_path.read_text(encoding="utf-8"))
        assert (row["error"], row["cost_usd"]) == ("ended-by-human", step.cost_usd)
    assert not (tmp_path / "ws" / "done.txt").exists()


async def test_a_cancelled_run_leaves_no_program_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with stage(tmp_path, [BASH]) as here, here.runtime() as runtime:
        monkeypatch.setenv("FLOWER_RUN", "cancelled-run")
        sink = RecordingSink()
        running = asyncio.create_task(runtime.run(spec(), "go", on_event=sink))
        await sink.wait_for("tool_call")
        assert marked("cancelled-run")
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert marked("cancelled-run") == []
        (row,) = json.loads(runtime.manifest_path.read_text(encoding="utf-8"))
        assert row["error"] == "killed-by-signal"
        assert row["cost_usd"] == pytest.approx(cost(here.model.tokens))
    assert not (tmp_path / "ws" / "done.txt").exists()


@pytest.mark.case("AG-7")
async def test_one_run_is_cancelled_and_one_interrupted_while_the_others_go_on(tmp_path: Path) -> None:
    """Four at once: each is a program of 200 MiB, and what is shown does not hang on the number."""
    main = {
        "lines": [{"name": "first", "say": "Working.", "call": {TOOL_NAME: {"question": "Go on?"}}}, {"say": "Done."}],
        "anytime": [cut("only this one")],
    }
    async with stage(tmp_path, main=main) as here, contextlib.AsyncExitStack() as stack:
        channels = [HumanChannel() for _ in range(4)]
        runtimes = [await stack.enter_async_context(here.runtime(run_dir=tmp_path / f"run{n}")) for n in range(4)]
        sinks = [RecordingSink() for _ in range(4)]
        tasks = []
        for channel, runtime, sink in zip(channels, runtimes, sinks, strict=True):
            channel.on_event = sink
            tasks.append(asyncio.create_task(runtime.run(asking(channel), "go")))
        for sink in sinks:
            await sink.wait_for("ask", timeout=20)
        tasks[0].cancel()
        runtimes[1].interrupt("only this one", now=True)
        with pytest.raises(asyncio.CancelledError):
            await tasks[0]
        assert (await tasks[1]).text == "I heard: only this one"
        for channel, task in zip(channels[2:], tasks[2:], strict=True):
            assert [ask.state for ask in channel.pending()] == ["asked"]
            assert channel.answer("q1", "yes")
            assert (await task).text == "Working.\nDone."


# -- money --------------------------------------------------------------------------------------------------------


async def test_the_cost_over_resumes_and_runtimes_is_what_the_model_gave_out(tmp_path: Path) -> None:
    async with stage(tmp_path, ["one", "two", "three"]) as here:
        session: str | None = None
        for number in range(3):
            async with here.runtime() as runtime:
                step = await runtime.run(spec(), f"number {number}", resume=session)
                session = step.session_id
        rows = json.loads((here.run_dir / "manifest.json").read_text(encoding="utf-8"))
        assert [row["cost_usd"] for row in rows] == pytest.approx([cost([entry]) for entry in here.model.tokens])
        assert sum(row["cost_usd"] for row in rows) == pytest.approx(cost(here.model.tokens))


async def test_a_budget_is_overshot_by_one_call_at_most_also_over_a_resume(tmp_path: Path) -> None:
    # 100,000 tokens of input with this model: 0.20 dollars a call.
    work = {"call": {"Bash": {"command": "echo 1"}}, "usage": {"input": 100_000, "output": 0}}
    async with stage(tmp_path, [work] * 10) as here, here.runtime() as runtime:
        runtime.budget_usd = 0.5
        first = await runtime.run(spec(), "go")
        assert (first.ok, first.attempts) == (False, 1)
        assert first.cost_usd == pytest.approx(0.6)
        runtime.budget_usd = 0.9
        second = await runtime.run(spec(), "go on", resume=first.session_id)
        assert second.cost_usd == pytest.approx(0.4)
        third = await runtime.run(spec(), "go on", resume=first.session_id)
        assert third.error is not None
        assert "budget" in third.error
        assert len(here.model.asked_of()) == 5


# -- failures -----------------------------------------------------------------------------------------------------


async def test_an_overloaded_model_is_tried_again_in_the_same_session(tmp_path: Path) -> None:
    lines = [
        {"call": {"Bash": {"command": "echo made"}}},
        {"name": "second", "fail": {"status": 529, "times": 3}, "expect": {"result": "made"}, "say": "Fine."},
    ]
    async with stage(tmp_path, lines) as here, here.runtime() as runtime:
        sink = RecordingSink()
        step = await runtime.run(spec(), "go", on_event=sink)
        assert (step.ok, step.attempts, step.resumed, step.text) == (True, 2, True, "Fine.")
        assert len(step.errors) == 1
        assert [event.text for event in sink.of("retry")] == ["第 1 次失败(transient),准备重试"]
        assert same_session(*here.model.asked_of())
        assert step.cost_usd == pytest.approx(cost(here.model.tokens))


async def test_a_refused_key_is_not_tried_again(tmp_path: Path) -> None:
    lines = [{"fail": {"status": 401, "message": "invalid x-api-key", "times": "always"}}]
    async with stage(tmp_path, lines) as here, here.runtime() as runtime:
        step = await runtime.run(spec(), "go")
        assert (step.ok, step.attempts) == (False, 1)
        assert step.error is not None


async def test_a_session_that_is_not_there_is_an_error_and_no_fresh_start(tmp_path: Path) -> None:
    async with stage(tmp_path, ["never"]) as here, here.runtime(resilience=False) as runtime:
        step = await runtime.run(spec(), "go", resume="00000000-0000-4000-8000-000000000000")
        assert (step.ok, here.model.asked_of()) == (False, [])
        assert step.error is not None
        assert "No conversation found" in step.error


@pytest.mark.case("AG-4")
async def test_a_file_of_more_than_a_megabyte_does_not_end_the_run(tmp_path: Path) -> None:
    big = "x" * 1_500_000
    lines = [{"call": {"Write": {"file_path": "${workspace}/big.txt", "content": big}}}, "Written."]
    async with stage(tmp_path, lines) as here, here.runtime() as runtime:
        step = await runtime.run(spec(permission_mode="acceptEdits"), "go")
        assert (step.ok, step.text) == (True, "Written.")
        assert (here.workspace / "big.txt").stat().st_size == 1_500_000


# -- what the program is told -------------------------------------------------------------------------------------


async def test_the_agents_bash_does_not_see_what_the_runner_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = "env; tr '\\0' '\\n' < /proc/$PPID/environ"
    lines = [{"call": {"Bash": {"command": look}}}, "Seen."]
    async with stage(tmp_path, lines) as here, here.runtime() as runtime:
        monkeypatch.setenv("REDIS_PASSWORD", "a-secret-of-the-runner")
        monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-another")
        monkeypatch.setenv("FLOWER_RUN", "run-17")
        step = await runtime.run(spec(env={"MINE": "of the spec"}), "go")
        assert step.ok
        seen = here.model.asked_of()[-1].result.splitlines()
    assert "MINE=of the spec" in seen
    assert seen.count("FLOWER_RUN=run-17") == 2
    assert not [line for line in seen if line.startswith(("REDIS", "SLACK"))]
    assert "a-secret-of-the-runner" not in "\n".join(seen)


@pytest.mark.parametrize("words", ["/clear", "@secret.txt", "/cost now"])
async def test_what_people_write_is_said_as_it_is_and_never_run_as_a_command(tmp_path: Path, words: str) -> None:
    async with stage(tmp_path, ["Heard."]) as here, here.runtime() as runtime:
        (here.workspace / "secret.txt").write_text("the content of a file", encoding="utf-8")
        assert (await runtime.run(spec(), words)).text == "Heard."
        (asked,) = here.model.asked_of()
        assert asked.prompt == words
        assert "the content of a file" not in asked.conversation.history


async def test_a_resume_learns_of_a_changed_index_and_only_then_gets_another_prompt(tmp_path: Path) -> None:
    async with stage(tmp_path, ["one", "two", "three"]) as here:
        bench = Workbench(here.workspace)
        async with here.runtime(workbench=bench) as runtime:
            session = (await runtime.run(spec(), "1")).session_id
            await runtime.run(spec(), "2", resume=session)
            bench.ensure()
            (bench.scripts / "count.sh").write_text("# desc: counts the lines\n", encoding="utf-8")
            await runtime.run(spec(), "3", resume=session)
        systems = [asked.conversation.system for asked in here.model.asked_of()]
    assert ["counts the lines" in system for system in systems] == [False, False, True]
    assert all("MAIN" in system for system in systems)


# -- continuity, kills --------------------------------------------------------------------------------------------

RUNNER = """
import asyncio, sys
from flower.core.runtime import Runtime
from tests.sdk.stage import Stage, spec

async def main():
    runtime = Runtime(workspace=sys.argv[1], run_dir=sys.argv[2])
    await runtime.run(spec(), "the task", on_event=lambda event: print(event.kind, flush=True))

asyncio.run(main())
"""


def begun(here: Stage) -> bool:
    """Whether the store has the beginning of the turn."""
    with contextlib.closing(sqlite3.connect(here.run_dir / "sessions.db")) as store:
        return bool(store.execute("SELECT COUNT(*) FROM entries WHERE payload LIKE '%the task%'").fetchone()[0])


@pytest.mark.parametrize("first", [STREAM, BASH], ids=["in mid-stream", "while Bash runs"])
async def test_a_killed_runner_leaves_no_working_agent_and_the_next_process_goes_on(
    tmp_path: Path, first: dict[str, Any]
) -> None:
    marker = f"killed-{os.getpid()}-{'stream' if first is STREAM else 'bash'}"
    main = {"lines": [first], "anytime": [cut("carry on", answered=first is not STREAM)]}
    async with stage(tmp_path, speed=1.0, main=main) as here:
        environment = {**os.environ, "FLOWER_RUN": marker}  # what the stage has put there
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", RUNNER, str(here.workspace), str(here.run_dir)),
            env=environment,
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        wanted = b"system\n" if first is STREAM else b"tool_call\n"
        async with asyncio.timeout(20):
            while await process.stdout.readline() != wanted:
                pass
            await here.model.asked("main.first")
        async with asyncio.timeout(20):
            while not begun(here):  # noqa: ASYNC110 - the store trails the program, and a file has no event to wait on
                await asyncio.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        await process.wait()
        async with asyncio.timeout(5):
            while marked(marker):  # noqa: ASYNC110 - nothing tells us when somebody else's child is gone
                await asyncio.sleep(0.05)
        # Whoever could ask, or write, carried the marker and is gone.
        assert len(here.model.asked_of()) == 1
        assert not (here.workspace / "done.txt").exists()
        async with here.runtime() as runtime:
            session = here.model.asked_of()[0].session
            assert runtime.has_session(session)
            step = await runtime.run(spec(), "carry on", resume=session)
        assert (step.ok, step.text, step.session_id) == (True, "I heard: carry on", session)
        assert same_session(*here.model.asked_of())


async def test_a_session_goes_on_in_another_runtime_without_the_programs_own_files(tmp_path: Path) -> None:
    async with stage(
        tmp_path, ["one", {"expect": {"session": "same", "history": "first words"}, "say": "two"}]
    ) as here:
        async with here.runtime() as runtime:
            session = (await runtime.run(spec(), "first words")).session_id
        assert session is not None
        for file in (here.run_dir / "claude").rglob("*.jsonl"):
            file.unlink()
        async with here.runtime() as runtime:
            step = await runtime.run(spec(), "second words", resume=session)
            assert (step.ok, step.session_id) == (True, session)
            assert runtime.context_of(session) > 0


# -- beside the run -----------------------------------------------------------------------------------------------


@pytest.mark.case("SS-8")
async def test_an_oracle_answers_while_a_question_is_open_and_the_runs_accounts_stay_as_they_are(
    tmp_path: Path,
) -> None:
    parts: dict[str, Any] = {
        "oracle": {
            "match": {"system": "旁路顾问"},
            "lines": [{"expect": {"prompt": ["where are we?", "[text·主线程] I will ask."]}, "say": "At a question."}],
        },
        "main": {
            "lines": ["Before.", {"say": "I will ask.", "call": {TOOL_NAME: {"question": "Which?"}}}, "After."],
        },
    }
    async with stage(tmp_path, **parts) as here, here.runtime() as runtime:
        channel, sink, recent = HumanChannel(), RecordingSink(), Recent()
        channel.on_event = sink

        def hear(event: Any) -> None:
            recent(event)
            sink(event)

        session = (await runtime.run(asking(channel), "first")).session_id
        running = asyncio.create_task(runtime.run(asking(channel), "second", resume=session, on_event=hear))
        await sink.wait_for("ask")
        before = runtime.manifest_path.read_bytes()
        workspace, run_dir = here.workspace, here.run_dir
        answer = await ask_aside("where are we?", workspace=workspace, run_dir=run_dir, recent=recent)
        assert (answer.ok, answer.text, answer.step) == (True, "At a question.", "旁路问答")
        assert answer.cost_usd > 0
        assert runtime.manifest_path.read_bytes() == before
        assert [ask.question for ask in channel.pending()] == ["Which?"]
        assert channel.answer("q1", "this one")
        assert (await running).text == "I will ask.\nAfter."
    (row,) = json.loads((tmp_path / "run" / "aside" / "manifest.json").read_text(encoding="utf-8"))
    assert row["step"] == "旁路问答"


async def test_a_side_question_that_fails_is_a_result(tmp_path: Path) -> None:
    lines = [{"fail": {"status": 400, "message": "no", "times": "always"}}]
    async with stage(tmp_path, lines) as here:
        answer = await ask_aside("?", workspace=here.workspace, run_dir=here.run_dir, recent=Recent())
    assert (answer.ok, answer.attempts) == (False, 1)
    assert answer.error
