"""The demo story, played by flower's own runtime on the real SDK and its bundled program."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import flower.testing
from flower import Ask, Event, Runtime, Workflow, starter_flow
from flower.testing import (
    Played,
    RecordingSink,
    ScriptedModel,
    cost,
    load_story,
    play,
    same_session,
    scripted_surroundings,
)
from flower.texts import speaking
from flower.workflow.aside import Recent, ask_aside

pytestmark = [pytest.mark.real, pytest.mark.timeout(90)]

STORIES = Path(flower.testing.__file__).parent / "stories"
REQUEST = "Write a small program that prints the first ten primes"
PRIMES = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]


@dataclass
class Scene:
    """One run of the demo story."""

    home: Path
    model: ScriptedModel
    flow: Workflow
    runtime: Runtime
    sink: RecordingSink = field(default_factory=RecordingSink)

    @property
    def workspace(self) -> Path:
        return self.home / "work"

    def numbers(self) -> list[int]:
        return [int(found) for found in re.findall(r"\d+", (self.workspace / "primes.out").read_text())]

    def note(self, name: str) -> str:
        return (self.workspace / ".flower" / "notes" / name).read_text(encoding="utf-8")

    def lines(self, part: str) -> list[str]:
        return [each.line for each in self.model.asked_of(part)]

    def start(self, group: asyncio.TaskGroup) -> asyncio.Task[dict[str, Any]]:
        return group.create_task(self.flow.run(self.runtime, on_event=self.sink))

    async def question(self, beginning: str, *, nth: int = 1) -> Event:
        """Wait for the nth question that begins so, and return its event."""
        seen: list[Event] = []

        def is_it(event: Event) -> bool:
            if event.kind == "ask" and event.payload.get("state") == "asked" and event.text.startswith(beginning):
                if event not in seen:
                    seen.append(event)
                return len(seen) >= nth
            return False

        return await self.sink.wait_for(is_it, timeout=60)

    def answer(self, question: Event, text: str) -> None:
        assert self.flow.channel is not None
        assert self.flow.channel.answer(question.payload["id"], text)


Finished = tuple[Scene, Played]


@asynccontextmanager
async def scene(
    home: Path, *, request: str = REQUEST, lang: str = "en", model: ScriptedModel | None = None
) -> AsyncIterator[Scene]:
    """Open the stage in `home`. With the model of an earlier scene in the same home it takes that run up again."""
    (home / "work").mkdir(exist_ok=True)
    name = "first-light.yaml" if lang == "en" else f"first-light-{lang}.yaml"
    async with AsyncExitStack() as stack:
        if model is None:
            model = await stack.enter_async_context(ScriptedModel(load_story(STORIES / name)))
        stack.enter_context(scripted_surroundings(model, home / "home"))
        stack.enter_context(speaking(lang))
        flow = starter_flow(request, workspace=home / "work", run_dir=home / "run", lang=lang)
        runtime = Runtime(workspace=home / "work", run_dir=home / "run", workbench=flow.workbench or False)
        stack.callback(runtime.close)
        yield Scene(home, model, flow, runtime)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """One undisturbed run, for the tests that only look at it."""

    async def run() -> Finished:
        async with scene(tmp_path_factory.mktemp("finished")) as here:
            return here, await play(here.flow, here.runtime, answers=["One number per line", "Keep it at ten"])

    return asyncio.run(run())


def test_the_story_runs_from_the_request_to_a_passed_second_round(finished: Finished) -> None:
    here, played = finished
    assert played.ok
    assert played.context["_goal_rounds"] == 2
    assert [(ask.state, len(ask.options)) for ask in played.asks] == [("answered", 3), ("answered", 2)]
    verdicts = [event.payload["state"] for event in played.events if event.payload.get("kind") == "verdict"]
    assert verdicts == ["not_yet", "achieved"]
    steps = [row["step"] for row in json.loads(here.runtime.manifest_path.read_text())]
    assert steps == ["Clarify", "Goal", "Work", "Work·verdict#1", "Work#round2", "Work·verdict#2"]


def test_subagents_really_write_and_run_the_program_and_its_test(finished: Finished) -> None:
    here, played = finished
    assert (here.workspace / "primes.out").read_text() == "2\n3\n5\n7\n11\n13\n17\n19\n23\n29\n"
    assert (here.workspace / ".flower/artifacts/test-run.txt").read_text().rstrip().endswith("OK")
    assert {event.tool for event in played.events if event.payload.get("subagent")} >= {"Write", "Bash", "Read"}


def test_the_cost_of_the_run_is_that_of_the_servers_own_log(finished: Finished) -> None:
    here, _ = finished
    spent = sum(result.cost_usd for result in here.runtime.results)
    assert {entry.model for entry in here.model.tokens} == {"claude-opus-5-5"}
    assert spent == pytest.approx(cost(here.model.tokens), abs=1e-9)
    # Reckoned by hand from the usage figures of the story and the list price: 28 answers, of which 10 by subagents.
    inputs, writes = 28 * 14 * 4.0, (18 * 640 + 10 * 420) * 5.0
    outputs = (18 * 130 + 10 * 150) * 20.0
    reads = (18 * 11_800 + 700 * (1 + 1 + 28 + 3 + 3) + 10 * 6_900 + 400 * (6 + 15)) * 0.2
    assert spent == pytest.approx((inputs + writes + outputs + reads) / 1e6, abs=1e-9)


def test_round_two_goes_on_in_the_session_of_round_one(finished: Finished) -> None:
    here, _ = finished
    assert same_session(*here.model.asked_of("work"))
    first, second = here.model.asked_of("verdict.look")
    assert not same_session(first, second)
    programs = {each.agent for each in here.model.asked_of("coder-program")}
    tests = {each.agent for each in here.model.asked_of("coder-test")}
    assert len(programs) == len(tests) == 1
    assert programs != tests


@pytest.mark.parametrize(
    ("answer", "printed"),
    [
        ("As a JSON list", "[2, 3, 5, 7, 11, 13, 17, 19, 23, 29]\n"),
        ("separated by commas, please", "2, 3, 5, 7, 11, 13, 17, 19, 23, 29\n"),
        ("however you like", "2\n3\n5\n7\n11\n13\n17\n19\n23\n29\n"),
    ],
)
async def test_the_answer_changes_the_program(tmp_path: Path, answer: str, printed: str) -> None:
    async with scene(tmp_path) as here:
        played = await play(here.flow, here.runtime, answers=[answer, "Take a count as an argument"])
    assert played.ok
    assert (here.workspace / "primes.out").read_text() == printed
    assert f"Output: {answer}" in here.note("brief.md")
    assert "sys.argv" in (here.workspace / "primes.py").read_text()


async def test_it_plays_in_chinese_too(tmp_path: Path) -> None:
    async with scene(tmp_path, request="写一个打印前十个素数的小程序", lang="zh") as here:
        played = await play(here.flow, here.runtime, answers=["全部一行", "停在十个"])
    assert played.ok
    assert played.context["_goal_rounds"] == 2
    assert (here.workspace / "primes.out").read_text() == "2, 3, 5, 7, 11, 13, 17, 19, 23, 29\n"
    assert "排法:全部一行" in here.note("需求.md")


async def test_questions_that_are_skipped_become_assumptions(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        played = await play(here.flow, here.runtime, answers=[None, None])
    assert played.ok
    assert "I assume one number per line" in here.note("brief.md")
    assert here.numbers() == PRIMES


async def test_questions_that_nobody_answers_become_assumptions(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        assert here.flow.channel is not None
        here.flow.channel.timeout_s = 0
        played = await play(here.flow, here.runtime)
    assert played.ok
    assert [ask.state for ask in played.asks] == ["timeout", "timeout"]
    assert "I assume one number per line" in here.note("brief.md")


async def test_another_request_is_told_what_this_model_is(tmp_path: Path) -> None:
    async with scene(tmp_path, request="Rewrite our billing in Rust") as here:
        played = await play(here.flow, here.runtime, answers=["One number per line", "Keep it at ten"])
    assert played.ok
    assert any("This is the scripted demo model" in text for text in played.sink.texts())
    assert "The request was: “Rewrite our billing in Rust”" in here.note("brief.md")


async def test_mail_is_taken_up_with_its_words(tmp_path: Path) -> None:
    def person(ask: Ask) -> str:
        if ask.id == "q1":
            assert here.flow.channel is not None
            here.flow.channel.send("please mention Eratosthenes; and $(touch hacked) stays text")
        return ask.options[0]

    async with scene(tmp_path) as here:
        played = await play(here.flow, here.runtime, answers=person)
    assert played.ok
    quoted = [text for text in played.sink.texts() if "mention Eratosthenes" in text]
    assert quoted[0].startswith("You wrote while I was waiting for the coder:\n\n1. please mention Eratosthenes")
    assert "Eratosthenes" in here.note("decisions.md")
    assert not (here.workspace / "hacked").exists()


async def test_words_at_a_stop_are_quoted_by_the_same_session_which_asks_again(tmp_path: Path) -> None:
    async with scene(tmp_path) as here, asyncio.TaskGroup() as group:
        run = here.start(group)
        here.answer(await here.question("How should"), "As a JSON list")
        await here.question("The program prints")
        here.runtime.interrupt("keep it simple, no options", now=True)
        here.answer(await here.question("The program prints", nth=2), "Keep it at ten")
        context = await run
    assert context.get("_failed_at") is None
    assert "You stopped me with: “keep it simple, no options”." in "\n".join(here.sink.texts())
    assert same_session(*here.model.asked_of("work"))
    assert here.lines("work") == [
        *("plan", "delegate", "inbox", "fork/2"),
        *("anytime-1+fork/2", "report/2", "round-2", "inbox-2", "report-2/2"),
    ]
    assert "keep it simple, no options" in here.note("decisions.md")
    assert sum(result.cost_usd for result in here.runtime.results) == pytest.approx(cost(here.model.tokens), abs=1e-9)


async def test_a_bare_stop_goes_on_with_what_was_cut(tmp_path: Path) -> None:
    async with scene(tmp_path) as here, asyncio.TaskGroup() as group:
        run = here.start(group)
        here.answer(await here.question("How should"), "As a JSON list")
        await here.question("The program prints")
        here.runtime.interrupt(now=True)
        here.answer(await here.question("The program prints", nth=2), "Keep it at ten")
        context = await run
    assert context.get("_failed_at") is None
    assert "I was stopped for a moment" in "\n".join(here.sink.texts())
    assert here.lines("work")[4] == "anytime-2+fork/2"


async def test_a_stop_while_the_subagent_works_delegates_once_more(tmp_path: Path) -> None:
    async with scene(tmp_path) as here, asyncio.TaskGroup() as group:
        run = here.start(group)
        here.answer(await here.question("How should"), "As a JSON list")
        async with here.model.paused("coder-program.run"):
            await here.model.asked("coder-program.run", timeout=60)
            here.runtime.interrupt("only the standard library", now=True)
            await here.model.asked("work.delegate", 2, timeout=60)
        here.answer(await here.question("The program prints"), "Keep it at ten")
        context = await run
    assert context.get("_failed_at") is None
    assert len({each.agent for each in here.model.asked_of("coder-program")}) == 2
    # The second worker finds the file of the first and reads it before it writes.
    assert "first-look" in here.lines("coder-program")
    assert "only the standard library" in here.model.asked_of("coder-program")[-1].conversation.opening
    assert here.numbers() == PRIMES


@pytest.mark.parametrize("what", ["clarify.brief", "goal.look", "work.plan", "verdict.look"])
async def test_every_agent_takes_up_words_at_a_stop(tmp_path: Path, what: str) -> None:
    async with scene(tmp_path) as here, asyncio.TaskGroup() as group:
        run = here.start(group)
        group.create_task(_answer_all(here, run, lambda ask: ask.options[0]))
        async with here.model.paused(what):
            await here.model.asked(what, timeout=60)
            here.runtime.interrupt("mind the gap", now=True)
            await here.model.asked(what, 2, timeout=60)
        context = await run
    assert context.get("_failed_at") is None
    assert "You stopped me with: “mind the gap”." in "\n".join(here.sink.texts())


async def _answer_all(here: Scene, run: asyncio.Task[Any], person: Callable[[Ask], str]) -> None:
    assert here.flow.channel is not None
    while not run.done():
        ask = await here.flow.channel.next_ask(timeout=0.2)
        if ask is not None:
            here.flow.channel.answer(ask.id, person(ask))


async def test_the_oracle_answers_from_its_events_while_a_question_is_open(tmp_path: Path) -> None:
    async with scene(tmp_path) as here, asyncio.TaskGroup() as group:
        recent = Recent()

        def tell(event: Event) -> None:
            here.sink(event)
            recent(event)

        run = group.create_task(here.flow.run(here.runtime, on_event=tell))
        here.answer(await here.question("How should"), "As a JSON list")
        fork = await here.question("The program prints")
        before = here.runtime.manifest_path.read_bytes()
        told = await ask_aside(
            "where are we?",
            workspace=here.workspace,
            run_dir=here.home / "run",
            recent=recent,
            workbench=here.flow.workbench,
        )
        assert here.runtime.manifest_path.read_bytes() == before
        here.answer(fork, "Keep it at ten")
        await run
    assert told.ok
    answer = " ".join(told.text.split())
    assert answer.startswith(
        "I look into the workbench first. You asked: “where are we?” The run is waiting for a person."
    )
    assert "its question: “The program prints ten primes, as asked." in answer


@pytest.mark.parametrize(
    ("lang", "none", "newest"),
    [
        ("en", "I was given no event yet", "The newest event I was given is `[text·main thread] the second`"),
        ("zh", "还没有给我任何事件", "给我的最新一条事件是 `[text·主线程] the second`"),
    ],
)
async def test_the_oracle_names_the_newest_event_and_says_when_there_is_none(
    tmp_path: Path, lang: str, none: str, newest: str
) -> None:
    async with scene(tmp_path, lang=lang) as here:

        async def told(recent: Recent) -> str:
            asked = await ask_aside(
                "where are we?", workspace=here.workspace, run_dir=here.home / "run", recent=recent, workbench=bench
            )
            assert asked.ok, asked.error
            return " ".join(asked.text.split())

        bench, recent = here.flow.workbench, Recent()
        assert bench is not None
        assert none in await told(recent)
        recent(Event("text", "the first, which quotes [ask·main thread] no question"))
        recent(Event("text", "the second"))
        assert newest in await told(recent)


async def test_a_finished_run_takes_a_further_wish(tmp_path: Path) -> None:
    async with scene(tmp_path) as first:
        await play(first.flow, first.runtime, answers=["As a JSON list", "Keep it at ten"])
        async with scene(tmp_path, request="say hello as well", model=first.model) as second:
            played = await play(second.flow, second.runtime)
    assert played.ok
    assert same_session(*first.model.asked_of("work"))
    wishes = [path.read_text() for path in (first.workspace / ".flower/notes").glob("wish-*.md")]
    assert wishes == ["# A wish\n\nsay hello as well\n"]


async def test_a_run_that_was_cut_off_is_taken_up_in_the_same_session(tmp_path: Path) -> None:
    async with scene(tmp_path) as first:
        async with asyncio.TaskGroup() as group:
            run = first.start(group)
            first.answer(await first.question("How should"), "As a JSON list")
            await first.question("The program prints")
            run.cancel()
        async with scene(tmp_path, request="", model=first.model) as second:
            played = await play(second.flow, second.runtime, answers=["Keep it at ten"])
    assert played.ok
    assert same_session(*first.model.asked_of("work"))
    assert "I take it up where it was left" in "\n".join(played.sink.texts())
    # What was done is not done again: one worker wrote the program.
    assert len({each.agent for each in first.model.asked_of("coder-program")}) == 1
