"""Field cases that flower itself must hold, over a scripted client; those on the real program are in tests/sdk."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from claude_agent_sdk import ToolResultBlock, UserMessage

from flower.core.agent import AgentSpec
from flower.core.human import TOOL_NAME, HumanChannel
from flower.core.manifest import spent_in
from flower.core.resilience import Resilience
from flower.workflow.base import Step, Workflow
from tests.fakes.client import Item, Own, Until, init, say
from tests.fakes.people import Heard, asked, use
from tests.fakes.runtime import LastingRuntime, Said
from tests.flower.scene import SPEC, Make, call, lost

DAY = 24 * 3600.0
WAIT = 5.0


@pytest.mark.case("AS-1")
@pytest.mark.parametrize(("patience", "waits"), [(None, True), (2 * DAY, True), (1800.0, False)])
async def test_an_ask_without_a_deadline_is_still_open_after_a_day(
    monkeypatch: pytest.MonkeyPatch, patience: float | None, waits: bool
) -> None:
    heard = Heard()
    channel = HumanChannel(on_event=heard, timeout_s=patience)
    asking = asyncio.create_task(channel.ask("Which?", ["A", "B"]))
    await asked(channel)
    loop = asyncio.get_running_loop()
    begun = loop.time()
    with monkeypatch.context() as clock:
        clock.setattr(loop, "time", lambda: begun + DAY)
        for _ in range(5):
            await asyncio.sleep(0)
    assert [ask.id for ask in channel.pending()] == (["q1"] if waits else [])
    assert [state for _, state in heard.states] == (["asked"] if waits else ["asked", "timeout"])
    if waits:
        assert channel.answer("q1", "B") is True
        assert (await asking).answer == "B"
    await asking


@pytest.mark.case("AS-4")
async def test_of_two_answers_in_one_instant_one_wins_as_a_whole() -> None:
    heard = Heard()
    channel = HumanChannel(on_event=heard)
    asking = asyncio.create_task(channel.ask("Which?", ["A", "B"]))
    await asked(channel)
    together = threading.Barrier(8)
    taken: dict[str, bool] = {}

    def person(name: str) -> None:
        together.wait()
        taken[name] = channel.answer("q1", name)

    people = [threading.Thread(target=person, args=(f"answer {number}",)) for number in range(8)]
    for each in people:
        each.start()
    for each in people:
        await asyncio.to_thread(each.join)
    (winner,) = [name for name, won in taken.items() if won]
    assert (await asking).answer == winner
    assert [state for _, state in heard.states] == ["asked", "answered"]


@pytest.mark.case("AS-7")
async def test_of_three_open_questions_each_gets_its_own_answer() -> None:
    channel = HumanChannel()
    asking = [asyncio.create_task(channel.ask(question)) for question in ("A?", "B?", "C?")]
    assert [ask.question for ask in await asked(channel, 3)] == ["A?", "B?", "C?"]
    assert channel.answer("q2", "b")
    assert channel.answer("q1", "a")
    assert [ask.id for ask in channel.pending()] == ["q3"]
    assert [(await asking[0]).answer, (await asking[1]).answer] == ["a", "b"]
    assert channel.answer("q3", "c")
    assert (await asking[2]).answer == "c"


@pytest.mark.case("AS-13")
@pytest.mark.parametrize("text", ["", "  ", "\n\t"])
async def test_an_empty_answer_is_told_as_none(text: str) -> None:
    channel = HumanChannel()
    asking = asyncio.create_task(use(channel, "ask", question="May I delete it?", options=["yes", "no"]))
    await asked(channel)
    assert channel.answer("q1", text) is True
    assert await asking == "对方跳过了这个问题。按你自己的判断继续,并把假设写进「未知与假设」。"
    assert [ask.state for ask in channel.asks] == ["declined"]


@pytest.mark.case("AS-13")
async def test_a_question_that_a_stop_cut_off_is_told_as_unanswered(make: Make) -> None:
    """The one that waited may be asked again; nothing goes on as if it had been answered."""
    runtime = make([init(), call(TOOL_NAME), lambda: runtime.interrupt(now=True), Until()], [init(), Own()])
    async with asyncio.timeout(WAIT):
        assert (await runtime.run(SPEC, "go")).ok
    assert runtime.prompts[1].endswith(f"\n\n{runtime.INTERRUPT_NOTE}")
    assert all(words in runtime.INTERRUPT_NOTE for words in ("提问", "不代表人否决了那个操作", "重试一次就行"))


@pytest.mark.case("SS-6")
async def test_follow_ups_cut_nothing_off_and_are_taken_in_order(make: Make) -> None:
    channel, long = HumanChannel(), Until()
    came = UserMessage(content=[ToolResultBlock("t1", "ok")])
    asking = asyncio.create_task(channel.ask("Which?"))
    await asked(channel)

    def follow_up() -> None:
        for words in ("one", "two", "three"):
            channel.send(words)
        asyncio.get_running_loop().call_later(0.05, long.event.set)

    runtime = make([init(), call(), follow_up, long, came, say("done"), Own()])
    async with asyncio.timeout(WAIT):
        step = await runtime.run(SPEC, "go")
    assert (step.ok, step.text, step.resumed, runtime.clients[0].interrupts) == (True, "done", False, 0)
    assert [ask.id for ask in channel.pending()] == ["q1"]
    assert "\n\n1. one\n2. two\n3. three\n\n" in await use(channel, "inbox")
    channel.answer("q1", "B")
    assert (await asking).answer == "B"


def silent_for(seconds: float, item: Until) -> Callable[[], object]:
    return lambda: asyncio.get_running_loop().call_later(seconds, item.event.set)


@pytest.mark.case("AG-5")
@pytest.mark.case("PR-4")
@pytest.mark.parametrize("name", ["Bash", "Agent", TOOL_NAME])
async def test_a_tool_or_a_question_that_says_nothing_for_long_is_not_cut_off(
    make: Make, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("flower.core.attempt.SILENCE_SECONDS", 0.05)
    long = Until()
    came = UserMessage(content=[ToolResultBlock("t1", "ok")])
    runtime = make([init(), call(name), silent_for(0.3, long), long, came, say("done"), Own()], resilience=False)
    async with asyncio.timeout(WAIT):
        step = await runtime.run(SPEC, "go")
    assert (step.ok, step.text, step.attempts) == (True, "done", 1)
    assert runtime.clients[0].interrupts == 0


@pytest.mark.case("AG-5")
@pytest.mark.case("PR-4")
async def test_a_model_that_says_nothing_for_long_is_given_up(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other half: without it the test above would pass with no watch at all."""
    monkeypatch.setattr("flower.core.attempt.SILENCE_SECONDS", 0.05)
    runtime = make([init(), say("hm"), Until()], resilience=False)
    runtime.after_cut = None
    async with asyncio.timeout(WAIT):
        step = await runtime.run(SPEC, "go")
    assert (step.ok, step.attempts) == (False, 1)
    assert step.error is not None


@pytest.mark.case("AG-1")
async def test_a_program_that_does_not_go_away_delays_the_result_by_a_bound_only(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flower.core.attempt.CLOSE_SECONDS", 0.05)
    runtime = make([init(), say("done"), lambda: setattr(runtime.clients[0], "may_close", asyncio.Event()), Own()])
    async with asyncio.timeout(WAIT):
        step = await runtime.run(SPEC, "go")
    assert (step.ok, step.text) == (True, "done")
    assert (runtime.clients[0].closing.is_set(), runtime.clients[0].closed) == (True, False)


@pytest.mark.case("AG-8")
async def test_a_client_that_died_inside_is_built_anew_with_its_history(make: Make) -> None:
    runtime = make([init(), say("half"), RuntimeError("reader task crashed")], [init(), say("whole"), Own()])
    step = await runtime.run(SPEC, "go")
    assert (step.ok, step.text, step.attempts) == (True, "whole", 2)
    assert runtime.resumed == [None, "S"]
    assert [client.closed for client in runtime.clients] == [True, True]


@dataclass
class Noted(Resilience):
    """Notes the pauses it would make."""

    pauses: list[float] = field(default_factory=list)

    async def wait_online(self, notify: Callable[[str], object] | None = None) -> bool:
        return True

    def delay_for(self, attempt: int) -> float:
        self.pauses.append(super().delay_for(attempt))
        return 0.0


@pytest.mark.case("ST-8")
async def test_the_same_failure_at_every_start_ends_after_a_few_tries_with_growing_pauses(make: Make) -> None:
    noted = Noted()
    died: list[Item] = [OSError("no such program")]
    runtime = make(*([died] * 6), resilience=noted)
    step = await runtime.run(SPEC, "go")
    assert (step.ok, step.attempts, step.error) == (False, 6, "OSError: no such program")
    low = [3.0, 6.0, 12.0, 24.0, 48.0]
    assert [floor <= pause <= floor / 0.75 * 1.25 for floor, pause in zip(low, noted.pauses, strict=True)] == [True] * 5


@pytest.mark.case("ST-8")
async def test_a_failure_that_cannot_pass_is_tried_once(make: Make) -> None:
    runtime = make([init(), lost("API Error: 401 invalid x-api-key"), Own(is_error=True, status=401)])
    step = await runtime.run(SPEC, "go")
    assert (step.ok, step.attempts, step.error) == (False, 1, "API Error: 401 invalid x-api-key")


@pytest.mark.case("ST-6")
async def test_a_session_that_came_to_nothing_does_not_poison_the_next_start(tmp_path: Path) -> None:
    """The id was written down before the session had an entry in the store."""
    first = LastingRuntime([Said(ok=False, session="never-stored")], workspace=tmp_path)
    step = Step("a", AgentSpec("role", "Do it."), "go", resume_prompt="carry on")
    await Workflow([step]).run(first)
    again = LastingRuntime(["fine"], workspace=tmp_path, known=set())
    ctx = await Workflow([step]).run(again)
    assert [(each.prompt, each.resume) for each in again.calls] == [("go", None)]
    assert ctx["a"] == "fine"


@pytest.mark.case("CO-3")
async def test_a_budget_counts_on_in_the_next_process(make: Make) -> None:
    """Of one run folder: four fifths are spent, then the service restarts; one fifth is left."""
    first = make([init(), Own(total=0.8)])
    first.budget_usd = 1.0
    await first.run(SPEC, "go")
    first.close()
    second = make([init("T"), Own(total=0.1, session="T")])
    second.spent_before = spent_in(second.run_dir)
    second.budget_usd = 1.0
    await second.run(SPEC, "go")
    assert second.clients[0].options.max_budget_usd == pytest.approx(0.2)
