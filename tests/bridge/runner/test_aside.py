from __future__ import annotations

import asyncio

import pytest

from bridge.runner.aside import Aside
from bridge.runner.telling import Teller
from flower import StepResult
from tests.bridge.runner.people import Told, consult

QUESTION = consult("c1", "how far is it?")


class Oracle:
    """Answers when it is let to."""

    def __init__(self, result: StepResult | Exception | None = None) -> None:
        self.result = result or StepResult(step="oracle", ok=True, text="half way", cost_usd=0.02)
        self.at_work = self.most = 0
        self.may_answer = asyncio.Event()

    async def __call__(self, question: str) -> StepResult:
        self.at_work += 1
        self.most = max(self.most, self.at_work)
        try:
            await self.may_answer.wait()
        finally:
            self.at_work -= 1
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


@pytest.fixture
def told() -> Told:
    return Told()


async def asked(told: Told, oracle: Oracle) -> None:
    oracle.may_answer.set()
    await Aside(Teller(told, fence=1, after=0), oracle).answer(QUESTION)


def oracles(told: Told) -> list[tuple[str, str, float]]:
    return [(item.payload["state"], item.text, item.payload["cost_usd"]) for item in told.news if item.kind == "oracle"]


@pytest.mark.case("SS-8")
async def test_a_question_is_answered_with_what_it_cost(told: Told) -> None:
    await asked(told, Oracle())
    assert oracles(told) == [("asked", "how far is it?", 0.0), ("answered", "half way", 0.02)]
    assert told.receipts("c1") == [("done", "")]
    assert told.news[1].payload["by"]["name"] == "Anna"


@pytest.mark.parametrize(
    ("result", "why", "cost"),
    [
        (StepResult(step="oracle", error="529 overloaded", cost_usd=0.01), "529 overloaded", 0.01),
        (StepResult(step="oracle"), "no answer", 0.0),
        (ValueError("no such place"), "ValueError: no such place", 0.0),
    ],
)
async def test_a_question_that_fails_is_told_once_and_never_reaches_the_run(
    told: Told, result: StepResult | Exception, why: str, cost: float
) -> None:
    await asked(told, Oracle(result))
    assert oracles(told)[1:] == [("failed", why, cost)]
    assert told.receipts("c1") == [("done", "")]


async def test_a_question_that_is_open_at_the_end_is_told_as_failed(told: Told) -> None:
    aside = Aside(Teller(told, fence=1, after=0), Oracle())
    async with asyncio.TaskGroup() as group:
        task = group.create_task(aside.answer(QUESTION))
        await told.until(lambda item: item.kind == "oracle")
        task.cancel()
    assert oracles(told)[1:] == [("failed", "the run ended before there was an answer", 0.0)]
    assert told.receipts("c1") == [("done", "")]


async def test_three_questions_are_answered_at_the_same_time_and_the_fourth_waits(told: Told) -> None:
    oracle = Oracle()
    aside = Aside(Teller(told, fence=1, after=0), oracle)
    async with asyncio.TaskGroup() as group:
        for number in range(4):
            group.create_task(aside.answer(consult(f"c{number}", f"question {number}")))
        await told.until(lambda _: len(told.news) == 4)
        await asyncio.sleep(0)
        assert oracle.at_work == 3
        oracle.may_answer.set()
    assert oracle.most == 3
    assert [state for state, _, _ in oracles(told)].count("answered") == 4
