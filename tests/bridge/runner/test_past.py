from __future__ import annotations

from typing import Any

from bridge.model import News
from bridge.runner.past import past_of


def news(seq: int, kind_: str, text: str = "", *, by_fence: int = 1, **payload: Any) -> News:
    return News(seq=seq, fence=by_fence, at=float(seq), kind=kind_, text=text, payload=payload)


def test_a_command_that_was_taken_is_known_with_its_position() -> None:
    past = past_of([news(1, "receipt", command="c1", state="taken", position="5-0"), news(2, "receipt", command="c2")])
    assert past.commands == {"c1"}
    assert past.position == "5-0"


def test_mail_that_no_agent_took_is_unread() -> None:
    past = past_of(
        [
            news(1, "ask", "sort it", kind="mail", state="queued", id="m1", command="c1"),
            news(2, "ask", "and test it", kind="mail", state="queued", id="m2", command="c2"),
            news(3, "ask", "sort it", kind="mail", state="delivered", id="m1", command="c1"),
        ]
    )
    assert past.unread == {"c2": "and test it"}


def test_mail_handed_on_by_a_later_attempt_and_delivered_there_is_read() -> None:
    past = past_of(
        [
            news(1, "ask", "sort it", kind="mail", state="queued", id="m1", command="c1"),
            news(2, "ask", "sort it", by_fence=2, kind="mail", state="queued", id="m1", command="c1"),
            news(3, "ask", "sort it", by_fence=2, kind="mail", state="delivered", id="m1", command="c1"),
        ]
    )
    assert past.unread == {}


def test_asks_of_two_attempts_with_the_same_id_are_two_asks() -> None:
    past = past_of(
        [
            news(1, "ask", "A or B?", id="q1", state="asked"),
            news(2, "ask", "C or D?", by_fence=2, id="q1", state="asked"),
            news(3, "ask", "A or B?", by_fence=2, id="q1", state="withdrawn", fence=1),
        ]
    )
    assert [item.text for item in past.open_asks.values()] == ["C or D?"]


def test_a_run_that_was_let_go_on_is_not_another_attempt() -> None:
    past = past_of([news(1, "run", state="working"), news(2, "run", state="working", by={"id": "x", "name": "x"})])
    assert past.attempts == 1


def test_a_kind_from_tomorrow_changes_nothing() -> None:
    assert past_of([news(1, "weather", state="taken", id="q1")]) == past_of([])
