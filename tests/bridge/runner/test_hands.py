"""What people's commands do to a run: a real channel, a real teller, and a small stand-in for the runtime."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.commands import Command, Consult
from bridge.runner.hands import BOUNDARY_SECONDS, Hands, Pending
from bridge.runner.telling import Teller
from flower import Event, HumanChannel
from tests.bridge.runner.people import (
    ANNA,
    BEN,
    Told,
    answer,
    consult,
    decline,
    end,
    hold,
    interrupt,
    resume,
    say,
)


class FakeRuntime:
    """The part of a runtime's face that hands use; `cut` plays what flower does when it takes an interrupt up."""

    def __init__(self) -> None:
        self.on_interrupted: Callable[[str], Awaitable[str | None]] | None = None
        self.current: object | None = "a step"
        self.interrupts: list[tuple[str, bool]] = []
        self.ended = asyncio.Event()
        self._words: list[str] | None = None

    def interrupt(self, message: str = "", *, now: bool = False) -> None:
        self.interrupts.append((message, now))
        self._words = [*(self._words or []), *([message] if message and message not in (self._words or []) else [])]

    @property
    def interrupted(self) -> bool:
        return self._words is not None

    def end(self) -> None:
        self.ended.set()

    async def cut(self) -> str | None:
        """Take the interrupt up; returns the words that the agent would be told. Given up when the run is ended."""
        assert self._words is not None, "nothing was interrupted"
        words, self._words = "\n\n".join(self._words), None
        assert self.on_interrupted is not None
        asked = asyncio.ensure_future(self.on_interrupted(words))
        ending = asyncio.ensure_future(self.ended.wait())
        try:
            await asyncio.wait({asked, ending}, return_when=asyncio.FIRST_COMPLETED)
            if asked.done():
                return asked.result() or words
            return "ended"
        finally:
            for task in (asked, ending):
                task.cancel()
            await asyncio.wait({asked, ending})


class Scene:
    """Hands at work on attempt 2 of a run."""

    def __init__(self, *, timeout_s: float | None = 1800.0, max_asks: int | None = None) -> None:
        self.told = Told()
        self.teller = Teller(self.told, fence=2, after=10)
        self.runtime = FakeRuntime()
        self.channel = HumanChannel(
            timeout_s=timeout_s,
            max_asks=max_asks,
            on_event=lambda event: self.teller.event(event, label="", judging=False, until=None),
        )
        self.consulted: list[Consult] = []
        self.marks: list[bool] = []
        self.timers: list[tuple[float, asyncio.TimerHandle]] = []
        self.hands = Hands(
            self.channel,
            self.runtime,  # type: ignore[arg-type]  # the part that is used
            self.teller,
            fence=2,
            questions={(1, "q1"): "Tabs or spaces?"},
            consult=self.consulted.append,
            later=self._later,
            on_held=self.marks.append,
        )

    def _later(self, seconds: float, call: Callable[[], None]) -> asyncio.TimerHandle:
        timer = asyncio.get_running_loop().call_later(3600, call)
        self.timers.append((seconds, timer))
        return timer

    def ring(self) -> None:
        """Let the timers that were not cancelled ring."""
        for _, timer in self.timers:
            if not timer.cancelled():
                timer._run()  # what the loop does when its time has come

    def do(self, *commands: Command) -> None:
        for command in commands:
            self.hands.carry_out(command)

    @contextlib.asynccontextmanager
    async def asking(self, question: str = "A or B?") -> AsyncIterator[asyncio.Task[Any]]:
        """Have a question open; it is cut at the end, if it is open still."""
        async with asyncio.TaskGroup() as group:
            before = len(self.told.asks)
            task = group.create_task(self.channel.ask(question, ["A", "B"]))
            await self.told.until(lambda _: len(self.told.asks) > before)
            yield task
            task.cancel()

    @contextlib.asynccontextmanager
    async def cutting(self) -> AsyncIterator[asyncio.Task[str | None]]:
        """Have flower take the cut up; it is given up at the end, if nobody decided."""
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self.runtime.cut())
            for _ in range(5):  # up to where it waits for a person, if it does
                await asyncio.sleep(0)
            yield task
            task.cancel()


@pytest.fixture
async def scene() -> Scene:
    return Scene()


# -- questions --------------------------------------------------------------------------------------------------


async def test_an_answer_settles_its_question_once_and_says_by_whom(scene: Scene) -> None:
    async with scene.asking() as asked:
        scene.do(answer("c1", "q1", "B", fence=2, by=BEN))
        assert (await asked).answer == "B"
    outcome = scene.told.news[-1]
    assert outcome.payload["state"] == "answered"
    assert outcome.payload["by"] == {"id": "T1/U2", "name": "Ben"}
    assert scene.told.receipts("c1") == [("done", "")]


async def test_a_declined_question_says_by_whom(scene: Scene) -> None:
    async with scene.asking() as asked:
        scene.do(decline("c1", "q1", fence=2))
        assert (await asked).state == "declined"
    assert scene.told.asks == [("q1", "asked"), ("q1", "declined")]
    assert scene.told.news[-1].payload["by"]["name"] == "Anna"


@pytest.mark.case("AS-13")
@pytest.mark.parametrize("text", ["", "   ", "\n\t"])
async def test_an_empty_answer_is_none(scene: Scene, text: str) -> None:
    async with scene.asking():
        scene.do(answer("c1", "q1", text, fence=2))
        assert scene.told.receipts("c1") == [("refused", "there were no words in it")]
        assert [ask.id for ask in scene.channel.pending()] == ["q1"]


@pytest.mark.case("AS-4")
async def test_the_second_answer_in_the_same_moment_goes_to_the_inbox(scene: Scene) -> None:
    async with scene.asking() as asked:
        scene.do(answer("c1", "q1", "B", fence=2, by=BEN), answer("c2", "q1", "A", fence=2, by=ANNA))
        assert (await asked).answer == "B"
    outcome = next(item for item in scene.told.news if item.payload.get("state") == "answered")
    assert outcome.payload["by"]["name"] == "Ben"
    assert scene.told.receipts("c1") == [("done", "")]
    assert scene.told.receipts("c2")[0][0] == "refused"
    assert scene.told.mail == [("c2", "queued", "(A late answer to “A or B?”)\nA")]


async def test_an_answer_to_the_same_id_of_an_earlier_attempt_does_not_settle_this_question(scene: Scene) -> None:
    async with scene.asking():
        scene.do(answer("c1", "q1", "Spaces", fence=1))
        assert [ask.id for ask in scene.channel.pending()] == ["q1"]
    # It was given in good faith before the runner died: the agent hears of it, with the question that was meant.
    assert scene.told.mail == [("c1", "queued", "(A late answer to “Tabs or spaces?”)\nSpaces")]
    assert scene.told.receipts("c1")[0][0] == "refused"


async def test_a_decline_for_an_earlier_attempt_changes_nothing(scene: Scene) -> None:
    async with scene.asking():
        scene.do(decline("c1", "q1", fence=1))
        assert [ask.id for ask in scene.channel.pending()] == ["q1"]
    assert scene.told.receipts("c1") == [("refused", "the question was asked before the run was started again")]
    assert scene.told.mail == []


async def test_an_answer_to_a_question_that_nobody_asked_is_kept_as_words(scene: Scene) -> None:
    scene.do(answer("c1", "q7", "B", fence=2))
    assert scene.told.mail == [("c1", "queued", "(A late answer to “an earlier question”)\nB")]


async def test_the_person_of_a_late_answer_is_not_named_in_the_outcome_of_a_timeout() -> None:
    scene = Scene(timeout_s=0.02)
    async with scene.asking() as asked:
        await asked
        scene.do(answer("c1", "q1", "B", fence=2))
    outcome = next(item for item in scene.told.news if item.payload.get("state") == "timeout")
    assert "by" not in outcome.payload
    assert scene.told.mail[0][0] == "c1"


async def test_a_decline_that_comes_too_late_leaves_no_name_behind(scene: Scene) -> None:
    """The window between a decision and its outcome: the loser of it must not sign the outcome."""
    async with scene.asking() as asked:
        assert scene.channel.answer("q1", "A")  # decided, and the asking task has not woken yet
        scene.do(decline("c1", "q1", fence=2, by=BEN))
        await asked
    assert "by" not in scene.told.news[-1].payload


# -- words ------------------------------------------------------------------------------------------------------


async def test_words_go_to_the_inbox_and_cut_nothing(scene: Scene) -> None:
    scene.do(say("c1", "keep it short"))
    assert scene.told.mail == [("c1", "queued", "keep it short")]
    assert scene.runtime.interrupts == []
    assert scene.told.receipts("c1") == []  # delivered, when the agent takes it


async def test_blank_words_are_refused(scene: Scene) -> None:
    scene.do(say("c1", "  \n "))
    assert scene.told.receipts("c1") == [("refused", "there were no words in it")]


async def test_words_that_nobody_read_are_said_at_the_end_of_the_run(scene: Scene) -> None:
    scene.do(say("c1", "keep it short"))
    scene.hands.finished(over=True)
    assert [state for state, _ in scene.told.receipts("c1")] == ["refused"]


async def test_words_that_nobody_read_wait_when_only_this_attempt_is_over(scene: Scene) -> None:
    scene.do(say("c1", "keep it short"))
    scene.hands.finished(over=False)
    assert scene.told.receipts("c1") == []


async def test_a_question_for_the_oracle_is_passed_on(scene: Scene) -> None:
    scene.do(command := consult("c1", "how far is it?"))
    assert scene.consulted == [command]


# -- interrupt ----------------------------------------------------------------------------------------------------


async def test_interrupt_goes_on_with_the_words_and_withdraws_the_open_question(scene: Scene) -> None:
    scene.do(interrupt("c1", "use B"))
    async with scene.asking() as asked:
        asked.cancel()
        await asyncio.wait({asked})
        assert await scene.runtime.cut() == "use B"
    assert scene.told.asks == [("q1", "asked"), ("q1", "withdrawn")]
    assert scene.told.receipts("c1") == [("done", "")]
    assert scene.told.runs == ["interrupting"]


async def test_interrupt_waits_for_a_boundary_while_the_agent_talks(scene: Scene) -> None:
    scene.do(interrupt("c1", "use B"))
    assert scene.runtime.interrupts == [("use B", False)]
    assert [seconds for seconds, _ in scene.timers] == [10.0] == [BOUNDARY_SECONDS]
    scene.ring()
    assert scene.runtime.interrupts == [("use B", False), ("use B", True)]


async def test_interrupt_cuts_at_once_while_only_a_tool_runs(scene: Scene) -> None:
    scene.hands.pending.see("tool_call", "Bash", {"id": "t1"})
    scene.do(interrupt("c1", "use B"))
    assert scene.runtime.interrupts == [("use B", True)]
    assert scene.told.news[-1].payload["now"] is True


async def test_a_timer_that_rings_after_the_cut_or_the_end_does_nothing(scene: Scene) -> None:
    scene.do(interrupt("c1", "use B"))
    await scene.runtime.cut()
    scene.ring()
    scene.do(interrupt("c2", "use C"))
    scene.hands.finished(over=True)
    scene.ring()
    assert scene.runtime.interrupts == [("use B", False), ("use C", False)]


async def test_two_interrupts_before_the_cut_are_both_told_and_both_done(scene: Scene) -> None:
    scene.do(interrupt("c1", "use B"), interrupt("c2", "and test it"))
    assert scene.told.receipts("c1") == []
    assert await scene.runtime.cut() == "use B\n\nand test it"
    assert scene.told.receipts("c1") == scene.told.receipts("c2") == [("done", "")]


@pytest.mark.case("SS-4")
async def test_an_interrupt_that_comes_too_late_is_refused_at_the_end(scene: Scene) -> None:
    scene.do(interrupt("c1", "use B"))
    scene.hands.finished(over=True)
    assert scene.told.receipts("c1") == [("refused", "the run ended before it could be taken up")]


# -- hold ---------------------------------------------------------------------------------------------------------


async def test_hold_cuts_at_once_and_waits_for_a_person(scene: Scene) -> None:
    scene.do(hold("c1", by=BEN))
    assert scene.runtime.interrupts == [("", True)]
    async with scene.cutting() as cut:
        assert scene.hands.held
        assert not cut.done()
        assert scene.told.receipts("c1") == [("done", "")]
        scene.do(resume("c2"))
        assert await cut == ""
    assert scene.told.runs == ["interrupting", "held", "working"]
    assert [item.payload["by"]["name"] for item in scene.told.news if item.kind == "run"] == ["Ben", "Ben", "Anna"]
    assert scene.told.receipts("c2") == [("done", "")]
    assert scene.marks == [True, False]


@pytest.mark.parametrize("words", [say("c2", "use B"), resume("c2", "use B"), interrupt("c2", "use B")])
async def test_words_to_a_held_run_let_it_go_on_with_them(scene: Scene, words: Command) -> None:
    scene.do(hold("c1"))
    async with scene.cutting() as cut:
        scene.do(words)
        assert await cut == "use B"
    assert scene.told.mail == []
    assert scene.told.receipts("c2") == [("done", "")]
    assert scene.told.news[-2].payload["words"] == "use B"


async def test_a_second_hold_of_a_held_run_is_refused(scene: Scene) -> None:
    scene.do(hold("c1"))
    async with scene.cutting() as cut:
        scene.do(hold("c2"), interrupt("c3", ""))
        assert not cut.done()
    assert scene.told.receipts("c2") == scene.told.receipts("c3") == [("refused", "the run is held already")]


async def test_two_holds_before_the_cut_are_one(scene: Scene) -> None:
    scene.do(hold("c1", by=BEN), hold("c2"))
    assert scene.told.receipts("c2") == []
    async with scene.cutting():
        assert scene.told.receipts("c1") == scene.told.receipts("c2") == [("done", "")]
    assert scene.told.runs == ["interrupting", "held"]


async def test_resume_of_a_run_that_is_not_held_is_refused(scene: Scene) -> None:
    scene.do(resume("c1", "use B"))
    assert scene.told.receipts("c1") == [("refused", "the run is not held")]


async def test_a_second_resume_in_the_same_moment_is_refused_and_its_words_are_not_taken_for_the_first(
    scene: Scene,
) -> None:
    scene.do(hold("c1"))
    async with scene.cutting() as cut:
        scene.do(resume("c2", "use B"), resume("c3", "use C"))
        assert await cut == "use B"
    assert scene.told.receipts("c3") == [("refused", "the run is not held")]


async def test_words_right_behind_a_resume_are_mail(scene: Scene) -> None:
    scene.do(hold("c1"))
    async with scene.cutting() as cut:
        scene.do(resume("c2", "use B"), say("c3", "and be quick"))
        assert await cut == "use B"
    assert scene.told.mail == [("c3", "queued", "and be quick")]


async def test_a_hold_right_behind_a_resume_holds_again(scene: Scene) -> None:
    scene.do(hold("c1"))
    async with scene.cutting() as cut:
        scene.do(resume("c2", "use B"), hold("c3"))
        assert await cut == "use B"
    async with scene.cutting() as again:
        assert scene.hands.held
        assert not again.done()
        scene.do(resume("c4"))
        assert await again == ""
    assert scene.told.runs == ["interrupting", "held", "working", "interrupting", "held", "working"]


@pytest.mark.parametrize("words", [say("c2", "use B"), resume("c2", "use B"), interrupt("c2", "use B")])
async def test_words_that_come_before_the_cut_of_a_hold_let_it_go_on_at_once(scene: Scene, words: Command) -> None:
    scene.do(hold("c1"), words)
    assert await scene.runtime.cut() == "use B"
    assert scene.told.runs == ["interrupting", "held", "working"]
    assert scene.told.receipts("c1") == scene.told.receipts("c2") == [("done", "")]


async def test_a_hold_that_was_let_go_before_its_cut_and_is_wanted_again_holds_and_keeps_the_words(
    scene: Scene,
) -> None:
    scene.do(hold("c1"), say("c2", "use B"), hold("c3"))
    async with scene.cutting() as cut:
        assert scene.hands.held
        scene.do(resume("c4", "and test it"))
        assert await cut == "use B\n\nand test it"
    for name in ("c1", "c2", "c3", "c4"):
        assert [state for state, _ in scene.told.receipts(name)] == ["done"], name


async def test_the_words_of_an_interrupt_outlive_a_hold_that_comes_before_the_cut(scene: Scene) -> None:
    scene.do(interrupt("c1", "use B"), hold("c2"))
    async with scene.cutting() as cut:
        assert not cut.done()
        scene.do(resume("c3", "and test it"))
        assert await cut == "use B\n\nand test it"
    assert scene.told.receipts("c1") == [("done", "")]


@pytest.mark.case("SS-4")
async def test_a_hold_that_the_run_escaped_by_ending_is_refused(scene: Scene) -> None:
    scene.do(hold("c1"), hold("c2"), say("c3", "use B"))
    scene.hands.finished(over=True)
    for name in ("c1", "c2", "c3"):
        assert scene.told.receipts(name) == [("refused", "the run ended before it could be taken up")]
    assert not scene.hands.held


async def test_a_full_disk_holds_the_run_with_its_reason_and_once(scene: Scene) -> None:
    scene.hands.hold_for("the log cannot be written")
    scene.hands.hold_for("the log cannot be written")
    async with scene.cutting() as cut:
        scene.hands.hold_for("the log cannot be written")
        assert not cut.done()
        scene.do(resume("c1"))
        await cut
    held = [item for item in scene.told.news if item.payload.get("state") == "held"]
    assert [item.text for item in held] == ["the log cannot be written"]
    assert held[0].payload["by"]["id"] == ""


# -- while the flow itself waits for a person (the gate of a goal, no agent at work) --------------------------------


@pytest.fixture
async def gate(scene: Scene) -> AsyncIterator[tuple[Scene, asyncio.Task[Any]]]:
    scene.runtime.current = None
    async with scene.asking("The goal cannot be reached.") as asked:
        yield scene, asked


Gate = tuple[Scene, "asyncio.Task[Any]"]


async def test_end_at_a_gate_withdraws_its_question_and_wakes_the_flow(gate: Gate) -> None:
    scene, asked = gate
    scene.do(end("c1", "enough", by=BEN))
    assert (await asked).state == "declined"  # flower's own word for the flow
    assert scene.told.asks == [("q1", "asked"), ("q1", "withdrawn")]  # people see one outcome
    assert scene.runtime.ended.is_set()
    assert (scene.hands.ended_by, scene.hands.end_reason) == (BEN, "enough")


async def test_hold_at_a_gate_is_held_at_once_and_leaves_the_question_open(gate: Gate) -> None:
    scene, asked = gate
    scene.do(hold("c1"))
    assert scene.hands.held
    assert scene.told.runs == ["interrupting", "held"]
    assert scene.told.receipts("c1") == [("done", "")]
    assert not asked.done()
    assert scene.channel.timeout_s is None  # nobody's silence ends a run that is held


async def test_resume_at_a_gate_goes_on_and_its_words_reach_the_next_step(gate: Gate) -> None:
    scene, asked = gate
    scene.do(hold("c1"), resume("c2", "use B"))
    assert not scene.hands.held
    assert scene.channel.timeout_s == 1800.0
    assert scene.told.runs == ["interrupting", "held", "working"]
    assert scene.told.receipts("c2") == []  # not before the agent has them
    scene.do(answer("c3", "q1", "change", fence=2))
    await asked
    scene.runtime.current = "the next step"
    assert await scene.runtime.cut() == "use B"
    assert scene.told.receipts("c2") == [("done", "")]


async def test_a_gate_that_is_answered_while_the_run_is_held_stops_at_the_next_step(gate: Gate) -> None:
    scene, asked = gate
    scene.do(hold("c1"), answer("c2", "q1", "change", fence=2))
    await asked
    scene.runtime.current = "the next step"
    async with scene.cutting() as cut:
        assert scene.hands.held
        assert not cut.done()
        scene.do(resume("c3", "use B"))
        assert await cut == "use B"
    assert scene.told.runs == ["interrupting", "held", "working"]
    assert scene.channel.timeout_s == 1800.0


async def test_hold_resume_hold_at_a_gate_is_held(gate: Gate) -> None:
    scene, _ = gate
    scene.do(hold("c1"), resume("c2"), hold("c3"))
    assert scene.hands.held
    assert scene.told.receipts("c2") == [("done", "")]
    assert scene.marks == [True, False, True]


async def test_interrupt_at_a_gate_keeps_its_words_for_the_next_step(gate: Gate) -> None:
    scene, asked = gate
    scene.do(interrupt("c1", "use B"))
    assert not asked.done()
    scene.do(answer("c2", "q1", "change", fence=2))
    await asked
    scene.runtime.current = "the next step"
    assert await scene.runtime.cut() == "use B"
    assert scene.told.receipts("c1") == [("done", "")]


async def test_interrupt_at_a_gate_behind_which_nothing_comes_is_refused_at_the_end(gate: Gate) -> None:
    scene, _ = gate
    scene.do(interrupt("c1", "use B"))
    scene.hands.finished(over=True)
    assert scene.told.receipts("c1") == [("refused", "the run ended before it could be taken up")]


# -- end ------------------------------------------------------------------------------------------------------------


async def test_end_while_held_ends(scene: Scene) -> None:
    scene.do(hold("c1"))
    async with scene.cutting() as cut:
        scene.do(end("c2", "enough"))
        assert await cut == "ended"
    assert not scene.hands.held
    assert scene.told.receipts("c2") == [("done", "")]


async def test_the_first_end_counts_and_the_second_is_no_trouble(scene: Scene) -> None:
    scene.do(end("c1", "enough", by=BEN), end("c2", "too dear"))
    assert (scene.hands.ended_by, scene.hands.end_reason) == (BEN, "enough")
    assert scene.told.receipts("c2") == [("done", "")]


async def test_end_leaves_the_question_of_a_working_agent_to_the_cut(scene: Scene) -> None:
    async with scene.asking() as asked:
        scene.do(end("c1"))
        assert not asked.done()
        assert scene.told.asks == [("q1", "asked")]


async def test_after_an_end_a_stop_is_refused_and_words_are_kept(scene: Scene) -> None:
    scene.do(end("c1"), hold("c2"), interrupt("c3", "use B"), say("c4", "thanks"), resume("c5"))
    assert scene.runtime.interrupts == []
    assert scene.told.receipts("c2") == scene.told.receipts("c3") == [("refused", "the run is ending")]
    assert scene.told.receipts("c5") == [("refused", "the run is not held")]
    assert scene.told.mail == [("c4", "queued", "thanks")]


async def test_an_end_while_an_interrupt_waits_refuses_the_interrupt(scene: Scene) -> None:
    scene.do(interrupt("c1", "use B"), end("c2"))
    scene.hands.finished(over=True)
    assert scene.told.receipts("c1") == [("refused", "the run ended before it could be taken up")]


# -- any order ------------------------------------------------------------------------------------------------------


MAKE: dict[str, Callable[[str, str], Command]] = {"say": say, "interrupt": interrupt, "continue with words": resume}


class Presses:
    """Presses buttons in any order, and plays flower between them: a cut that waits is taken up."""

    def __init__(self, group: asyncio.TaskGroup) -> None:
        self.scene, self._group = Scene(), group
        self._cut: asyncio.Task[str | None] | None = None
        self.words: dict[str, str] = {}
        """What was said, by command."""
        self.heard: list[str] = []
        """What the agent was told."""

    async def press(self, act: str, name: str) -> None:
        words = f"words of {name}."
        match act:
            case "hold":
                self.scene.do(hold(name))
            case "continue":
                self.scene.do(resume(name))
            case "cut":
                await self.cut()
            case _:
                self.scene.do(MAKE[act](name, words))
                self.words[name] = words

    async def cut(self) -> None:
        """Let flower take up what waits, and go on as far as it can."""
        if self._cut is None and self.scene.runtime.interrupted:
            self._cut = self._group.create_task(self.scene.runtime.cut())
        for _ in range(20):
            await asyncio.sleep(0)
        if self._cut is not None and self._cut.done():
            self.heard.append(self._cut.result() or "")
            self._cut = None

    async def to_the_end(self, *, ending: bool) -> None:
        """Let a run that is held go on, or end it, until nothing waits any more."""
        await self.cut()
        while self.scene.hands.held and not ending:
            self.scene.do(resume("go on"))
            await self.cut()
            await self.cut()
        if ending:
            self.scene.do(end("end"))
            await self.cut()
        assert self._cut is None
        self.scene.hands.finished(over=True)


ACTS = ["hold", "continue", "continue with words", "say", "interrupt", "cut"]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(ACTS), max_size=12), st.booleans())
def test_whatever_is_pressed_in_whatever_order_is_answered_once_and_no_words_are_lost(
    acts: list[str], ending: bool
) -> None:
    async def play() -> Presses:
        async with asyncio.TaskGroup() as group:
            presses = Presses(group)
            for number, act in enumerate(acts):
                await presses.press(act, f"c{number}")
            await presses.to_the_end(ending=ending)
        return presses

    presses = asyncio.run(play())
    told = presses.scene.told
    for number, act in enumerate(acts):
        if act != "cut":
            assert len(told.receipts(f"c{number}")) == 1, (number, act)
    in_the_inbox = {command for command, _, _ in told.mail}
    for name, words in presses.words.items():
        reached = sum(words in text for text in presses.heard)
        refused = told.receipts(name)[0][0] == "refused"
        assert reached + refused == 1, (name, presses.heard)
        assert not (reached and name in in_the_inbox)
    runs = [state for state in told.runs if state != "interrupting"]
    assert runs == ["held", "working"] * (len(runs) // 2) + ["held"] * (len(runs) % 2)
    assert len(runs) % 2 == 0 or ending


# -- what is pending --------------------------------------------------------------------------------------------------


def seen(*events: tuple[str, str, dict[str, Any]]) -> bool:
    pending = Pending()
    for kind, tool, payload in events:
        pending.see(kind, tool, payload)
    return pending.cut_at_once()


CALL: tuple[str, str, dict[str, Any]] = ("tool_call", "Bash", {"id": "t1"})
DONE: tuple[str, str, dict[str, Any]] = ("tool_result", "", {"tool_use_id": "t1"})


@pytest.mark.parametrize(
    ("events", "at_once"),
    [
        ([], False),
        ([CALL], True),
        ([CALL, DONE], False),
        ([("tool_call", "mcp__human__ask", {"id": "t1"})], True),
        ([("tool_call", "Bash", {"id": "t1", "subagent": "x"})], False),
        ([("tool_call", "Agent", {"id": "t1"})], False),
        ([CALL, ("tool_call", "Agent", {"id": "t2"})], False),
        ([CALL, ("result", "", {})], False),
        ([CALL, ("retry", "", {})], False),
        ([CALL, ("step", "", {})], False),
        ([DONE], False),
        ([CALL, ("weather", "", {})], True),
        ([("tool_call", "Bash", {})], True),
    ],
)
def test_only_an_ask_or_a_tool_call_is_pending(events: list[tuple[str, str, dict[str, Any]]], at_once: bool) -> None:
    assert seen(*events) is at_once


def test_an_event_of_the_channel_is_taken_as_it_comes() -> None:
    event = Event("ask", "A or B?", payload={"id": "q1", "state": "asked"})
    assert seen((event.kind, event.tool, event.payload)) is False
