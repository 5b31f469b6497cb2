"""The runtime's loop of attempts, over a scripted client (behaviour 7, 14, 15). The real program is in tests/sdk."""

from __future__ import annotations

import asyncio
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import ProcessError, SystemMessage

from flower import texts
from flower.core.agent import AgentSpec
from flower.core.attempt import Conversation, SilenceError
from flower.core.events import Event
from flower.core.resilience import Resilience
from flower.core.runtime import Runtime, StepResult
from flower.core.workbench import Workbench
from flower.stores.sqlite import SessionFileError
from flower.stores.trim import EphemeralPolicy, TrimPolicy
from flower.texts import running
from tests.fakes.client import Item, Own, ScriptedRuntime, Until, init, say
from tests.flower.scene import SPEC, Calm, Make, call, lost, rows, told

WAIT = 5.0
NOTE = running.ZH.interrupt_note
WITH_WORDS = "人打断了你,他说:\n\n{words}\n\n按这个调整,然后接着做。\n\n" + NOTE
PLAIN = f"人打断了你一下,没有别的要求,现在继续。\n\n{NOTE}"
RESUME = "上一轮在中途被打断,没有跑完。检查一下工作台里已经落盘的东西,从中断处接着做,不要重头来过。"

OK: list[Item] = [init(), Own()]
ODD: list[Item] = [init(), ValueError("odd")]


@dataclass
class Away(Resilience):
    """The network never comes back."""

    async def wait_online(self, notify: Callable[[str], object] | None = None) -> bool:
        await asyncio.Event().wait()
        return False


# -- being made ---------------------------------------------------------------------------------------------------


def test_without_a_credential_there_is_no_runtime(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    monkeypatch.delenv("ANTHROPIC_AUTH_TOKEN", raising=False)
    with pytest.raises(RuntimeError, match="缺少凭证"):
        make()


def test_policies_or_their_switches_reach_the_store(make: Make) -> None:
    usual = make().store
    assert (usual.policy.enabled, usual.ephemeral.enabled, usual.prune_policy.keep_denials) == (False, True, 1)
    switched = make(trim=True, ephemeral=False, keep_denials=3).store
    assert (switched.policy.enabled, switched.ephemeral.enabled) == (True, False)
    assert switched.prune_policy.keep_denials == 3
    trim, ephemeral = TrimPolicy(keep_recent=2), EphemeralPolicy(keep_recent=1)
    own = make(trim=trim, ephemeral=ephemeral).store
    assert own.policy is trim
    assert own.ephemeral is ephemeral


def test_a_file_that_is_no_store_is_named_at_once(make: Make, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "sessions.db").write_bytes(b"no database" * 500)
    with pytest.raises(SessionFileError, match=r"sessions\.db"):
        make()


def test_folders_are_made_and_the_run_folder_is_relative_to_the_current_directory(make: Make, tmp_path: Path) -> None:
    runtime = make(workspace=tmp_path / "a" / "b", run_dir="runs")
    assert runtime.workspace == (tmp_path / "a" / "b").resolve()
    assert runtime.run_dir == (tmp_path / "runs").resolve()
    assert runtime.workspace.is_dir()
    assert runtime.run_dir.is_dir()
    assert not runtime.manifest_path.exists()


def test_each_runtime_has_an_id_of_its_own(make: Make) -> None:
    names = {make().run_id for _ in range(20)}
    assert len(names) == 20
    assert all(re.fullmatch(r"\d{8}-\d{6}-[0-9a-f]{6}", name) for name in names)


def test_a_workbench_is_kept_as_it_is_or_made_in_the_run_folder(make: Make, tmp_path: Path) -> None:
    bench = Workbench(tmp_path / "ws")
    assert make(workbench=bench).workbench is bench
    assert bench.index_path.exists()
    made = make(workbench=True).workbench
    assert made is not None
    assert made.root == (tmp_path / "run" / "workbench").resolve()
    assert make().workbench is None


def test_the_project_key_is_the_sdks(make: Make, tmp_path: Path) -> None:
    runtime = make(workspace=tmp_path / "a_b.c 工")
    assert re.fullmatch(r"[A-Za-z0-9-]+-a-b-c--", runtime.project_key)


def test_a_step_that_has_not_ended_took_no_time() -> None:
    assert StepResult("x", started_at=5.0).duration_s == 0.0
    assert StepResult("x", started_at=5.0, ended_at=6.239).duration_s == 1.24


# -- a step that goes well ----------------------------------------------------------------------------------------


async def test_a_step_gives_text_cost_turns_and_a_row(make: Make) -> None:
    runtime = make([init(), say("one"), call(), say("two", usage={"input_tokens": 7}), Own(total=0.25, turns=3)])
    events: list[Event] = []
    step = await runtime.run(SPEC, "go", step_name="干活", on_event=events.append)
    assert (step.step, step.ok, step.text, step.cost_usd, step.num_turns) == ("干活", True, "one\ntwo", 0.25, 3)
    assert (step.session_id, step.attempts, step.resumed, step.context, step.error) == ("S", 1, False, 7, None)
    assert [event.kind for event in events] == ["system", "text", "tool_call", "text", "result"]
    assert runtime.results == [step]
    (row,) = rows(runtime)
    assert list(row) == [
        "step",
        "session_id",
        "ok",
        "cost_usd",
        "num_turns",
        "text",
        "error",
        "started_at",
        "ended_at",
        "attempts",
        "errors",
        "resumed",
        "retired",
        "context",
        "duration_s",
        "run",
    ]
    assert (row["step"], row["run"]) == ("干活", runtime.run_id)
    (client,) = runtime.clients
    assert client.closed


async def test_the_prompt_is_said_as_it_is_and_can_be_found_again(make: Make) -> None:
    runtime = make([init(), Own()], [init(), Own()])
    for _ in range(2):
        await runtime.run(SPEC, "/clear @secrets")
    prompts = [client.prompts[0] for client in runtime.clients]
    assert [prompt["message"] for prompt in prompts] == [{"role": "user", "content": "/clear @secrets"}] * 2
    assert [prompt["parent_tool_use_id"] for prompt in prompts] == [None, None]
    assert len({prompt["uuid"] for prompt in prompts}) == 2
    assert runtime.clients[0].options.verbatim_prompts is True


async def test_the_step_in_flight_can_be_seen(make: Make) -> None:
    runtime = make([init(), Own()])
    seen: list[StepResult | None] = []
    await runtime.run(SPEC, "go", step_name="A", on_event=lambda _: seen.append(runtime.current))
    assert [each.step for each in seen if each] == ["A", "A"]
    assert runtime.current is None


# -- what is asked of the SDK -------------------------------------------------------------------------------------


async def test_every_attempt_gets_the_environment_that_the_design_needs(make: Make) -> None:
    runtime = make([init(), Own()])
    spec = AgentSpec(name="x", instructions="", env={"CLAUDE_CODE_MAX_RETRIES": "7", "MINE": "1"})
    await runtime.run(spec, "go")
    options = runtime.clients[0].options
    assert options.env == {
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
        "ENABLE_TOOL_SEARCH": "false",
        "CLAUDE_CODE_ENABLE_TASKS": "0",
        "MCP_TOOL_TIMEOUT": "2147483647",
        "CLAUDE_CODE_MAX_RETRIES": "7",
        "CLAUDE_CODE_BLOCKING_LIMIT_OVERRIDE": "1000000",
        "DISABLE_AUTO_COMPACT": "1",
        "CLAUDE_CONFIG_DIR": str(runtime.run_dir / "claude"),
        "FLOWER_ATTEMPT_NOTE": options.env["FLOWER_ATTEMPT_NOTE"],
        "FLOWER_ATTEMPT": Path(options.env["FLOWER_ATTEMPT_NOTE"]).stem,
        "MINE": "1",
    }
    assert options.max_buffer_size is not None
    assert options.max_buffer_size >= 64 << 20
    assert options.cwd == str(runtime.workspace)
    assert options.session_store is runtime.store
    assert options.setting_sources == []
    assert options.cli_path is not None
    assert Path(options.cli_path).parent == runtime.run_dir


async def test_hands_on_tools_that_the_spec_does_not_list_are_fenced_even_without_a_workbench(make: Make) -> None:
    runtime = make([init(), Own()], [init(), Own()])
    await runtime.run(AgentSpec(name="x", instructions=""), "go")
    await runtime.run(SPEC, "go")
    fenced, free = ((client.options.hooks or {})["PreToolUse"] for client in runtime.clients)
    brake = "^(?!(?:Glob|Grep|Read|TodoWrite)$)"
    assert [matcher.matcher for matcher in fenced] == ["Bash|Write|Edit|NotebookEdit", brake]
    assert [matcher.matcher for matcher in free] == [brake]
    assert {matcher.on_failure for matcher in (*fenced, *free)} == {"block"}


async def test_a_coordinator_without_a_workbench_is_warned_about_once(make: Make) -> None:
    runtime = make([init(), Own()], [init(), Own()])
    spec = AgentSpec(name="协调者", instructions="", delegate_only=True)
    with pytest.warns(UserWarning, match="协调者 只许派活"):
        await runtime.run(spec, "go")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        await runtime.run(spec, "go")


async def test_the_index_stands_in_the_system_prompt_of_whoever_may_have_it(make: Make, tmp_path: Path) -> None:
    runtime = make([init(), Own()], [init(), Own()], workbench=Workbench(tmp_path / "ws"))
    await runtime.run(AgentSpec(name="x", instructions="INSTRUCTIONS"), "go")
    await runtime.run(AgentSpec(name="x", instructions="INSTRUCTIONS", workbench=False), "go")
    assert runtime.workbench is not None
    first, second = (client.options.system_prompt for client in runtime.clients)
    assert first == {
        "type": "preset",
        "preset": "claude_code",
        "append": f"INSTRUCTIONS\n\n{runtime.workbench.prompt_block()}",
    }
    assert second == {"type": "preset", "preset": "claude_code", "append": "INSTRUCTIONS"}
    assert runtime.prompts == ["go", "go"]


async def test_a_resume_takes_a_new_index_only_if_it_has_changed(make: Make, tmp_path: Path) -> None:
    bench = Workbench(tmp_path / "ws")
    runtime = make(*([OK] * 4), workbench=bench)
    spec = AgentSpec(name="x", instructions="")

    async def snapshot(**kw: Any) -> object:
        await runtime.run(spec, "go", **kw)
        prompt = runtime.clients[-1].options.system_prompt
        assert isinstance(prompt, dict)
        return prompt.get("snapshot")

    assert await snapshot() is None
    assert await snapshot(resume="S") is None
    (bench.scripts / "new.sh").write_text("# desc: new\n", encoding="utf-8")
    assert await snapshot(resume="S") is False
    (bench.scripts / "new.sh").unlink()
    assert await snapshot(resume="S") is None


async def test_a_workbench_outside_the_workspace_may_be_written_to(make: Make) -> None:
    runtime = make([init(), Own()], workbench=True)
    await runtime.run(SPEC, "go")
    assert runtime.workbench is not None
    assert runtime.clients[0].options.add_dirs == [str(runtime.workbench.root)]


async def test_the_model_can_be_changed_for_the_next_attempt(make: Make) -> None:
    runtime = make([init(), Own()], [init(), Own()])
    spec = AgentSpec(name="x", instructions="", model="one")
    await runtime.run(spec, "go")
    runtime.model = "two"
    await runtime.run(spec, "go")
    assert [client.options.model for client in runtime.clients] == ["one", "two"]


async def test_a_model_that_is_not_the_configured_one_is_said_once(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_MODEL", "Big-Model")
    runtime = make([init(), say("a", model="small"), say("b", model="small"), Own()], [init(), say("c"), Own()])
    events: list[Event] = []
    step = await runtime.run(SPEC, "go", on_event=events.append)
    await runtime.run(SPEC, "go", on_event=events.append)
    (warning,) = [event for event in events if event.kind == "error"]
    assert warning.payload == {"model_mismatch": True, "want": "Big-Model", "served": "small"}
    assert "Big-Model" in warning.text
    assert "FLOWER_WINDOW" in warning.text
    assert (step.ok, step.errors) == (True, [])


async def test_the_configured_model_is_compared_without_case(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_MODEL", "BIG")
    runtime = make([init(), say("a", model="big"), Own()])
    events: list[Event] = []
    await runtime.run(SPEC, "go", on_event=events.append)
    assert told(events, "error") == []


# -- failures -----------------------------------------------------------------------------------------------------


async def test_without_a_session_the_call_is_repeated_as_it_was(make: Make) -> None:
    runtime = make([ProcessError("died: ECONNREFUSED", exit_code=1)], [init(), Own()])
    step = await runtime.run(SPEC, "go", resume="OLD", fork=True, resume_at="u1")
    assert runtime.prompts == ["go", "go"]
    assert runtime.resumed == ["OLD", "OLD"]
    assert [client.options.fork_session for client in runtime.clients] == [True, True]
    assert (step.ok, step.attempts, step.resumed) == (True, 2, False)


async def test_fork_is_for_the_first_attempt_only(make: Make) -> None:
    runtime = make([init("T"), lost(), Own(is_error=True, session="T")], [init("T"), Own(session="T")])
    await runtime.run(SPEC, "go", resume="S", fork=True)
    assert runtime.resumed == ["S", "T"]
    assert [client.options.fork_session for client in runtime.clients] == [True, False]


@pytest.mark.parametrize(
    ("resilience", "attempts"),
    [(Calm(max_attempts=3), 3), (Calm(retry_unknown=False), 1), (Calm(enabled=False), 1), (False, 1)],
)
async def test_how_often_something_unknown_is_tried(make: Make, resilience: Any, attempts: int) -> None:
    runtime = make(*([ODD] * attempts), resilience=resilience)
    step = await runtime.run(SPEC, "go")
    assert (step.ok, step.attempts, step.error) == (False, attempts, "ValueError: odd")


async def test_the_last_words_of_a_dying_program_are_in_the_error(make: Make) -> None:
    runtime = make([], resilience=False)

    def die() -> None:
        stderr = runtime.clients[0].options.stderr
        assert stderr is not None
        stderr("--dangerously-skip-permissions cannot be used with root")

    runtime.scripts = [[die, ProcessError("exit code 1", exit_code=1)]]
    step = await runtime.run(SPEC, "go")
    assert step.error is not None
    assert "cannot be used with root" in step.error


async def test_a_sink_that_raises_fails_the_attempt_and_the_program_is_stopped(make: Make) -> None:
    runtime = make([init(), say("x"), Own()], resilience=False)

    def broken(event: Event) -> None:
        if event.kind == "text":
            raise ValueError("no screen")

    step = await runtime.run(SPEC, "go", on_event=broken)
    assert (step.ok, step.error) == (False, "ValueError: no screen")
    assert (runtime.clients[0].interrupts, runtime.clients[0].closed) == (1, True)


async def test_a_folder_that_cannot_be_written_fails_the_attempt(make: Make, tmp_path: Path) -> None:
    runtime = make(resilience=False, workbench=Workbench(tmp_path / "ws"))
    assert runtime.workbench is not None
    runtime.workbench.home = tmp_path / "run" / "sessions.db" / "below a file"
    step = await runtime.run(SPEC, "go")
    assert step.error is not None
    assert step.error.startswith("NotADirectoryError")


# -- money --------------------------------------------------------------------------------------------------------


async def test_a_resumed_sessions_cost_is_booked_as_the_difference_also_by_another_process(make: Make) -> None:
    first = make([init(), Own(total=0.5)])
    assert (await first.run(SPEC, "go")).cost_usd == 0.5
    first.close()
    second = make([init(), Own(total=0.75)], [init("T"), Own(total=0.875, session="T")])
    assert (await second.run(SPEC, "go", resume="S")).cost_usd == 0.25
    assert (await second.run(SPEC, "go", resume="S", fork=True)).cost_usd == 0.125
    assert second.total_cost() == 0.375
    assert [row["cost_usd"] for row in rows(second)] == [0.5, 0.25, 0.125]


async def test_a_conversation_that_was_cleared_is_counted_from_nothing(make: Make) -> None:
    runtime = make([init(), Own(total=0.5)], [init(), Own(total=0.125)])
    await runtime.run(SPEC, "go")
    assert (await runtime.run(SPEC, "go", resume="S")).cost_usd == 0.125


async def test_the_program_counts_on_from_what_its_transcript_says(make: Make) -> None:
    runtime = make([init(), Own(total=0.5)], [init(), Own(total=0.625)])
    await runtime.run(SPEC, "go")
    key: Any = {"project_key": runtime.project_key, "session_id": "S"}
    await runtime.store.append(key, [{"type": "cost-state", "totalCostUSD": 0.375}])
    await runtime.store.load(key)
    assert (await runtime.run(SPEC, "go", resume="S")).cost_usd == 0.25


async def test_what_was_not_written_into_the_accounts_is_booked_by_the_next_process(make: Make) -> None:
    first = make([init(), Own(total=0.5), Until()])
    first.manifest_path.mkdir()  # stands for a kill: the books cannot be written
    await first.run(SPEC, "go")
    first.close()
    first.manifest_path.rmdir()
    second = make([init(), Own(total=0.75)])
    assert (await second.run(SPEC, "go", resume="S")).cost_usd == 0.75


async def test_what_is_left_of_the_budget_is_passed_on(make: Make) -> None:
    runtime = make([init(), Own(total=0.25)], [init("T"), Own(total=0.5, session="T")])
    runtime.budget_usd = 1.0
    spec = AgentSpec(name="x", instructions="", max_budget_usd=0.6)
    await runtime.run(spec, "go")
    await runtime.run(AgentSpec(name="x", instructions=""), "go")
    assert [client.options.max_budget_usd for client in runtime.clients] == [0.6, 0.75]


async def test_a_spent_budget_starts_nothing_and_is_not_tried_again(make: Make) -> None:
    runtime = make([init(), Own(total=1.25)])
    runtime.budget_usd = 1.0
    await runtime.run(SPEC, "go")
    step = await runtime.run(SPEC, "go")
    assert (step.ok, step.attempts) == (False, 1)
    assert step.error == "预算(budget)用完了:上限 $1.00,已花 $1.25。提高上限以后可以接着跑。"
    assert len(runtime.clients) == 1


async def test_a_steps_own_limit_counts_over_its_attempts(make: Make) -> None:
    runtime = make([init(), lost(), Own(is_error=True, total=0.25)])
    step = await runtime.run(AgentSpec(name="x", instructions="", max_budget_usd=0.25), "go")
    assert step.error is not None
    assert "budget" in step.error
    assert step.attempts == 2


async def test_a_budget_that_is_raised_lets_the_next_step_run(make: Make) -> None:
    runtime = make([init(), Own(total=1.25)], [init("T"), Own(session="T")])
    runtime.budget_usd = 1.0
    await runtime.run(SPEC, "go")
    runtime.budget_usd = 2.0
    assert (await runtime.run(SPEC, "go")).ok


# -- interrupts ---------------------------------------------------------------------------------------------------


async def test_an_interrupt_now_does_not_wait_for_a_message(make: Make) -> None:
    runtime = make([init(), call(), lambda: runtime.interrupt("x", now=True), Until()], [init(), Own()])
    async with asyncio.timeout(WAIT):
        assert (await runtime.run(SPEC, "go")).ok
    assert runtime.clients[0].interrupts == 1


async def test_the_cost_of_a_cut_attempt_is_booked(make: Make) -> None:
    runtime = make([init(), call(), lambda: runtime.interrupt("x", now=True), Until()], [init(), Own(total=0.75)])
    runtime.after_cut = Own(total=0.5, turns=2, is_error=True, subtype="error_during_execution")
    step = await runtime.run(SPEC, "go")
    assert (step.cost_usd, step.num_turns) == (0.75, 3)


async def test_a_program_that_never_answers_a_cut_is_left_after_a_bound(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flower.core.attempt.DRAIN_SECONDS", 0.05)
    runtime = make([init(), lambda: runtime.interrupt("x", now=True), Until()], [init(), Own()])
    runtime.after_cut = None
    async with asyncio.timeout(WAIT):
        assert (await runtime.run(SPEC, "go")).ok
    assert runtime.clients[0].closed


async def test_an_interrupt_ends_the_wait_before_a_retry(make: Make) -> None:
    runtime = make([init(), lost(), Own(is_error=True)], [init(), Own()], resilience=Away())

    def person(event: Event) -> None:
        if event.kind == "retry" and "准备重试" in event.text:
            asyncio.get_running_loop().call_soon(runtime.interrupt, "try now")

    async with asyncio.timeout(WAIT):
        step = await runtime.run(SPEC, "go", on_event=person)
    assert runtime.prompts[1] == WITH_WORDS.format(words="try now")
    assert (step.ok, step.attempts) == (True, 1)


@pytest.mark.parametrize(
    ("decision", "prompt"),
    [(None, WITH_WORDS.format(words="mine")), ("yours", WITH_WORDS.format(words="yours")), ("", PLAIN)],
)
async def test_whoever_is_asked_after_a_cut_decides_how_it_goes_on(
    make: Make, decision: str | None, prompt: str
) -> None:
    runtime = make([init(), lambda: runtime.interrupt("mine", now=True), Until()], [init(), Own()])
    asked: list[tuple[str, bool]] = []

    async def decide(words: str) -> str | None:
        asked.append((words, runtime.clients[0].closed))
        return decision

    runtime.on_interrupted = decide
    assert (await runtime.run(SPEC, "go")).ok
    assert asked == [("mine", True)]
    assert runtime.prompts[1] == prompt


async def test_whoever_is_asked_after_a_cut_may_end_it(make: Make) -> None:
    runtime = make([init(), lambda: runtime.interrupt("x", now=True), Until()])

    async def decide(_words: str) -> object:
        return Runtime.END

    runtime.on_interrupted = decide  # type: ignore[assignment]  # what a caller without types would do
    step = await runtime.run(SPEC, "go")
    assert (step.ok, step.error) == (False, "ended-by-human")


async def test_words_that_look_like_the_end_are_words(make: Make) -> None:
    runtime = make([init(), lambda: runtime.interrupt("x", now=True), Until()], [init(), Own()])

    async def decide(_words: str) -> str:
        return "end"

    runtime.on_interrupted = decide
    assert (await runtime.run(SPEC, "go")).ok
    assert not isinstance(Runtime.END, str)


# -- the end ------------------------------------------------------------------------------------------------------


@pytest.mark.case("SS-5")
@pytest.mark.parametrize(
    "script",
    [
        [init(), "end", say("unseen"), Until()],
        [init(), call(), "end", Until()],
    ],
    ids=["at the next message", "at once, while a tool runs"],
)
async def test_an_end_closes_the_books_and_nothing_is_tried_again(make: Make, script: list[Any]) -> None:
    runtime = make([])
    runtime.scripts = [[runtime.end if item == "end" else item for item in script]]
    events: list[Event] = []
    async with asyncio.timeout(WAIT):
        step = await runtime.run(SPEC, "go", on_event=events.append)
    assert (step.ok, step.error, step.session_id) == (False, "ended-by-human", "S")
    assert [row["error"] for row in rows(runtime)] == ["ended-by-human"]
    assert told(events, "text") == told(events, "retry") == []


async def test_an_ended_runtime_starts_nothing_any_more(make: Make) -> None:
    runtime = make()
    runtime.end()
    step = await runtime.run(SPEC, "go", step_name="B")
    assert (step.step, step.ok, step.error) == ("B", False, Runtime.ENDED)
    assert runtime.clients == []


async def test_an_end_does_not_wait_for_whoever_is_asked_after_a_cut(make: Make) -> None:
    runtime = make([init(), lambda: runtime.interrupt("x", now=True), Until()])

    async def decide(_words: str) -> None:
        asyncio.get_running_loop().call_soon(runtime.end)
        await asyncio.Event().wait()

    runtime.on_interrupted = decide
    async with asyncio.timeout(WAIT):
        assert (await runtime.run(SPEC, "go")).error == Runtime.ENDED


async def test_an_end_does_not_wait_for_the_network(make: Make) -> None:
    runtime = make([init(), lost(), Own(is_error=True)], resilience=Away())

    def person(event: Event) -> None:
        if event.kind == "retry":
            asyncio.get_running_loop().call_soon(runtime.end)

    async with asyncio.timeout(WAIT):
        assert (await runtime.run(SPEC, "go", on_event=person)).error == Runtime.ENDED


async def test_an_end_that_no_boundary_meets_cuts_after_a_while(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flower.core.attempt.PATIENCE_SECONDS", 0.02)
    runtime = make([lambda: runtime.end(), Until()])
    async with asyncio.timeout(WAIT):
        assert (await runtime.run(SPEC, "go")).error == Runtime.ENDED
    assert runtime.clients[0].interrupts == 1


# -- being cancelled, being killed --------------------------------------------------------------------------------


async def test_a_cancelled_step_closes_the_program_books_its_cost_and_stays_cancelled(make: Make) -> None:
    reached = asyncio.Event()
    runtime = make([init(), call(), reached.set, Until()])
    runtime.after_cut = Own(total=0.5, is_error=True, subtype="error_during_execution")
    task = asyncio.create_task(runtime.run(SPEC, "go"))
    async with asyncio.timeout(WAIT):
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert (runtime.clients[0].interrupts, runtime.clients[0].closed) == (1, True)
    (row,) = rows(runtime)
    assert (row["error"], row["cost_usd"]) == ("killed-by-signal", 0.5)
    assert runtime.current is None


@pytest.mark.case("AG-7")
async def test_a_second_cancellation_does_not_cut_the_closing_short(make: Make) -> None:
    reached = asyncio.Event()
    runtime = make([init(), reached.set, Until()])
    task = asyncio.create_task(runtime.run(SPEC, "go"))
    async with asyncio.timeout(WAIT):
        await reached.wait()
        (client,) = runtime.clients
        client.may_close = asyncio.Event()
        task.cancel()
        await client.closing.wait()
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
        client.may_close.set()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert client.closed


async def test_a_cancellation_while_a_cut_attempt_closes_waits_for_the_closing(make: Make) -> None:
    cut = asyncio.Event()
    runtime = make([init(), cut.set, Until()])
    task = asyncio.create_task(runtime.run(SPEC, "go"))
    async with asyncio.timeout(WAIT):
        await cut.wait()
        (client,) = runtime.clients
        client.may_close = asyncio.Event()
        runtime.interrupt("x", now=True)
        await client.closing.wait()
        task.cancel()
        await asyncio.sleep(0)
        client.may_close.set()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert client.closed
    assert len(runtime.clients) == 1


async def test_a_cancellation_does_not_wait_long_for_the_result_of_a_cut(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flower.core.attempt.LEAVE_SECONDS", 0.05)
    reached = asyncio.Event()
    runtime = make([init(), reached.set, Until()])
    runtime.after_cut = None
    task = asyncio.create_task(runtime.run(SPEC, "go"))
    async with asyncio.timeout(WAIT):
        await reached.wait()
        runtime.interrupt("x", now=True)
        await runtime.clients[0]._cut.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert runtime.clients[0].closed


async def test_a_timeout_around_a_step_is_a_timeout_and_closes_the_program(make: Make) -> None:
    runtime = make([init(), Until()])
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await runtime.run(SPEC, "go")
    assert runtime.clients[0].closed


async def test_a_manifest_that_cannot_be_written_does_not_undo_the_step(make: Make) -> None:
    runtime = make([init(), Own()])
    runtime.manifest_path.mkdir()
    assert (await runtime.run(SPEC, "go")).ok


# -- language -----------------------------------------------------------------------------------------------------


async def test_the_language_is_the_one_spoken_when_the_step_runs(make: Make) -> None:
    runtime = make([init(), lambda: runtime.interrupt("stop that", now=True), Until()], [init(), Own()])
    events: list[Event] = []
    with texts.speaking("en"):
        await runtime.run(SPEC, "go", on_event=events.append)
    assert told(events, "retry") == ["Interrupted, going on with your words"]
    assert runtime.prompts[1].startswith("The human interrupted you and says:\n\nstop that\n\n")


@pytest.mark.parametrize("mark", ["副作用", "不是环境故障", "重试", "防御"])
def test_the_note_after_an_interrupt_says_what_it_must(mark: str) -> None:
    assert mark in Runtime.INTERRUPT_NOTE


# -- what the program's own death may not cost ----------------------------------------------------------------------


async def test_words_of_an_interrupt_are_said_again_if_the_program_died_over_them(make: Make) -> None:
    runtime: ScriptedRuntime
    cut: list[Item] = [init(), say("x"), lambda: runtime.interrupt("only in Rust"), say("y"), Until()]
    runtime = make(cut, [ProcessError("died", exit_code=-9)], OK)
    result = await runtime.run(SPEC, "go")
    assert result.ok
    assert runtime.prompts[1] == runtime.prompts[2] == WITH_WORDS.format(words="only in Rust")


async def test_words_that_were_answered_are_not_said_twice(make: Make) -> None:
    runtime: ScriptedRuntime
    cut: list[Item] = [init(), say("x"), lambda: runtime.interrupt("only in Rust"), say("y"), Until()]
    runtime = make(cut, [init(), say("In Rust then."), ProcessError("died", exit_code=-9)], OK)
    await runtime.run(SPEC, "go")
    assert runtime.prompts[2] == RESUME


async def test_a_session_that_no_store_has_heard_of_is_begun_again(make: Make) -> None:
    unknown = ProcessError("No conversation found with session ID: S", exit_code=1)
    runtime = make([init(), ProcessError("died", exit_code=-9)], [unknown], OK)
    result = await runtime.run(SPEC, "go")
    assert result.ok
    assert runtime.resumed == [None, "S", None]
    assert runtime.prompts == ["go", RESUME, "go"]


async def test_a_workspace_that_went_away_is_not_made_anew(make: Make, tmp_path: Path) -> None:
    runtime = make(workbench=Workbench(tmp_path / "ws"))
    (tmp_path / "ws").rename(tmp_path / "moved")
    result = await runtime.run(SPEC, "go")
    assert (result.ok, result.attempts) == (False, 1)
    assert str(tmp_path / "ws") in (result.error or "")
    assert not (tmp_path / "ws").exists()


async def test_a_slow_model_is_waited_for_twice_as_long_each_time(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flower.core.attempt.SILENCE_SECONDS", 60.0)
    waited: list[float] = []

    original = Conversation.run

    async def run(self: Conversation) -> None:
        waited.append(self.silence)
        await original(self)

    monkeypatch.setattr(Conversation, "run", run)
    runtime = make([init(), SilenceError("nothing")], [init(), SilenceError("nothing")], OK)
    assert (await runtime.run(SPEC, "go")).ok
    assert waited == [60.0, 120.0, 240.0]


async def test_a_lost_part_of_the_transcript_is_told(make: Make) -> None:
    lost = SystemMessage(subtype="mirror_error", data={"error": "database is locked"})
    runtime = make([init(), lost, Own()])
    events: list[Event] = []
    await runtime.run(SPEC, "go", on_event=events.append)
    (text,) = told(events, "error")
    assert "database is locked" in text
