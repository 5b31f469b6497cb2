from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.model import News
from bridge.runner.past import identity_of
from bridge.runner.telling import Teller
from flower import Event, StepResult
from tests.bridge.runner.people import ANNA, Told, hold


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def teller(told: Told) -> Teller:
    return Teller(told, fence=3, after=41, clock=lambda: 1000.0)


def ask(state: str, name: str = "q1", question: str = "A or B?") -> Event:
    return Event("ask", question, payload={"id": name, "state": state, "options": ["A", "B"], "answer": ""})


def tell(teller: Teller, event: Event, *, until: float | None = None) -> None:
    teller.event(event, label="Work", judging=False, until=until)


def test_numbers_go_on_behind_the_line_and_times_never_stand_still(told: Told, teller: Teller) -> None:
    for _ in range(3):
        teller.tell("text", "hello")
    assert [item.seq for item in told.news] == [42, 43, 44] == [*range(42, teller.seq + 1)]
    assert told.news[0].at == 1000.0
    assert len({identity_of(item) for item in told.news}) == 3


def test_events_carry_their_step_and_whether_a_judge_speaks(told: Told, teller: Teller) -> None:
    teller.event(Event("text", "hm", payload={"model": "m"}), label="Work·verdict#1", judging=True, until=None)
    teller.event(Event("text", "ok", payload={}), label="Work", judging=False, until=None)
    assert told.news[0].payload == {"model": "m", "label": "Work·verdict#1", "judging": True}
    assert told.news[1].payload == {"label": "Work"}


def test_a_receipt_says_what_became_of_which_message_of_whom(told: Told, teller: Teller) -> None:
    teller.receipt(hold("c1"), "taken", position="5-0")
    assert told.news[0].payload == {
        "command": "c1",
        "do": "hold",
        "state": "taken",
        "position": "5-0",
        "by": {"id": "T1/U1", "name": "Anna"},
        "message": {"platform": "slack", "thread": "T1/C1/1700000000.001700", "key": "msg-c1"},
    }


def test_the_result_of_a_step_is_told_as_it_is(told: Told, teller: Teller) -> None:
    teller.step_end("Work", StepResult(step="Work#round2", ok=True, cost_usd=0.5, num_turns=3, error=None))
    assert told.news[0].payload == {
        "step": "Work",
        "ok": True,
        "error": None,
        "cost_usd": 0.5,
        "num_turns": 3,
        "duration_s": 0.0,
    }


def test_an_ask_is_open_until_its_outcome(told: Told, teller: Teller) -> None:
    tell(teller, ask("asked"), until=2800.0)
    assert list(teller.open_asks) == ["q1"]
    assert told.news[0].payload["until"] == 2800.0
    teller.settled_by("q1", ANNA)
    tell(teller, ask("answered"))
    assert list(teller.open_asks) == []
    assert told.news[1].payload["by"] == {"id": "T1/U1", "name": "Anna"}


def test_what_still_waits_is_not_withdrawn(told: Told, teller: Teller) -> None:
    tell(teller, ask("asked", "q1"))
    tell(teller, ask("asked", "q2"))
    teller.withdraw(["q2"])
    assert told.asks == [("q1", "asked"), ("q2", "asked"), ("q1", "withdrawn")]


@pytest.mark.parametrize("state", ["answered", "declined", "timeout"])
def test_a_withdrawn_ask_has_no_second_outcome(told: Told, teller: Teller, state: str) -> None:
    tell(teller, ask("asked"))
    teller.withdraw()
    tell(teller, ask(state))
    teller.withdraw()
    assert told.asks == [("q1", "asked"), ("q1", "withdrawn")]


def test_an_outcome_without_a_question_is_told(told: Told, teller: Teller) -> None:
    tell(teller, ask("over_budget"))
    assert told.asks == [("q1", "over_budget")]


def test_mail_remembers_what_brought_it_until_it_is_delivered(told: Told, teller: Teller) -> None:
    teller.saying = "c1"
    tell(teller, Event("ask", "hi", payload={"kind": "mail", "id": "m1", "state": "queued"}))
    teller.saying = ""
    tell(teller, Event("ask", "hi", payload={"kind": "mail", "id": "m1", "state": "delivered"}))
    tell(teller, Event("ask", "own", payload={"kind": "mail", "id": "m2", "state": "queued"}))
    assert told.mail == [("c1", "queued", "hi"), ("c1", "delivered", "hi"), ("", "queued", "own")]


def asked_before(by_fence: int = 1, **payload: object) -> News:
    body = {"id": "q1", "state": "asked", "options": ["A", "B"], "answer": "", "until": None, **payload}
    return News(seq=7, fence=by_fence, at=70.0, kind="ask", text="Tabs or spaces?", payload=body)


def test_an_ask_of_an_earlier_attempt_is_withdrawn_under_its_own_number(told: Told, teller: Teller) -> None:
    teller.adopt(asked_before())
    tell(teller, ask("asked"))  # this attempt's own q1
    teller.withdraw(["q1"])
    withdrawn = told.news[-1]
    assert (withdrawn.text, withdrawn.fence) == ("Tabs or spaces?", 3)
    assert {name: withdrawn.payload[name] for name in ("id", "fence", "state")} == {
        "id": "q1",
        "fence": 1,
        "state": "withdrawn",
    }
    assert list(teller.open_asks) == ["q1"]


def test_an_ask_that_was_handed_on_once_already_keeps_the_number_of_who_asked(told: Told, teller: Teller) -> None:
    teller.adopt(asked_before(2, fence=1))
    teller.withdraw()
    assert told.news[0].payload["fence"] == 1


def test_what_an_earlier_attempt_wrote_is_told_under_a_new_number_and_its_own_name(told: Told, teller: Teller) -> None:
    teller.repeat(old := News(seq=7, fence=1, at=70.0, kind="text", text="hello", payload={"label": "Work"}))
    teller.repeat(asked_before())
    assert [item.seq for item in told.news] == [42, 43]
    assert identity_of(told.news[0]) == identity_of(old)
    assert told.news[0].payload == {"label": "Work"}
    assert told.news[1].payload["fence"] == 1


def test_a_fenced_runner_says_nothing_more(told: Told, teller: Teller) -> None:
    tell(teller, ask("asked"))
    teller.silent = True
    teller.tell("text", "hello")
    teller.repeat(asked_before())
    teller.receipt(hold("c1"), "taken")
    teller.withdraw()
    assert len(told.news) == 1
    assert teller.seq == 42


@given(st.lists(st.floats(min_value=0, max_value=2e9), min_size=1, max_size=50))
def test_whatever_the_clock_does_every_item_has_a_time_of_its_own(times: list[float]) -> None:
    told, clock = Told(), iter(times)
    teller = Teller(told, fence=1, after=0, clock=lambda: next(clock))
    for _ in times:
        teller.tell("text")
    stamps = [item.at for item in told.news]
    assert stamps == sorted(set(stamps))
    assert [item.seq for item in told.news] == list(range(1, len(times) + 1))
