from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bridge.model import News
from bridge.runner.past import Past, never_handed_in, past_of


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


def test_a_start_is_remembered_with_its_time_and_the_newest_counts() -> None:
    assert past_of([news(1, "run", state="starting"), news(7, "run", state="starting")]).started_at == 7.0


def test_what_stands_in_a_log_and_in_the_line_counts_once() -> None:
    working = news(3, "run", state="working")
    assert past_of([working, working, replace(working, seq=9)]).attempts == 1


def test_an_ask_that_somebody_else_closed_under_an_overlapping_number_is_closed() -> None:
    asked = news(4, "ask", "A or B?", id="q1", state="asked")
    closed = news(6, "ask", "A or B?", by_fence=2, id="q1", state="withdrawn", fence=1)
    never_handed_in = news(6, "text", "I go on")
    past = past_of([asked, never_handed_in, closed])
    assert past.open_asks == {}
    assert past.questions == {(1, "q1"): "A or B?"}


def said(seq: int, *, fence: int = 1, at: float | None = None) -> News:
    return News(seq=seq, fence=fence, at=float(seq) if at is None else at, kind="text", text=f"{fence}/{seq}")


def test_what_the_line_has_was_handed_in_although_nobody_noted_it() -> None:
    assert never_handed_in([said(4), said(5)], [said(3), said(4), said(5)]) == []


def test_numbers_that_went_to_somebody_else_do_not_hide_what_was_never_handed_in() -> None:
    """Attempt 1 wrote 4 to 6 while the store was away and died; the bot, which buried it, took 4 and 5."""
    line = [said(3), said(4, fence=2, at=100.0), said(5, fence=2, at=101.0)]
    assert [item.seq for item in never_handed_in([said(4), said(5), said(6)], line)] == [4, 5, 6]


def test_what_was_handed_in_by_a_later_attempt_under_other_numbers_is_not_handed_in_again() -> None:
    line = [said(3), said(4, fence=2, at=100.0), replace(said(4), seq=5), replace(said(5), seq=6)]
    assert [item.seq for item in never_handed_in([said(4), said(5), said(6)], line)] == [6]


def test_what_two_dead_attempts_wrote_down_is_handed_in_once() -> None:
    again = replace(said(4), seq=7)
    assert never_handed_in([said(4), again], [said(3)]) == [said(4)]


def test_what_was_cut_off_below_the_line_had_been_handed_in() -> None:
    assert never_handed_in([said(4)], [said(500, fence=3)]) == []


def test_an_empty_line_has_nothing() -> None:
    assert never_handed_in([said(1)], []) == [said(1)]


@given(st.integers(0, 12), st.integers(0, 12), st.integers(0, 4))
def test_whatever_an_attempt_could_hand_in_before_it_died_the_rest_follows_and_nothing_comes_twice(
    handed_in: int, noted: int, by_others: int
) -> None:
    written = [said(seq) for seq in range(1, 13)]
    line = written[:handed_in]
    line += [said(handed_in + 1 + n, fence=2, at=100.0 + n) for n in range(by_others)]
    unsure = [item for item in written if item.seq > min(noted, handed_in)]
    assert never_handed_in(unsure, line) == written[handed_in:]


@given(st.lists(st.sampled_from(["taken", "asked", "queued", "working", "weather"]), max_size=8))
def test_a_history_that_is_read_twice_is_the_same_history(kinds: list[str]) -> None:
    make = {
        "taken": lambda n: news(n, "receipt", command=f"c{n}", state="taken", position=f"{n}-0"),
        "asked": lambda n: news(n, "ask", "A?", id=f"q{n}", state="asked"),
        "queued": lambda n: news(n, "ask", "m", kind="mail", id=f"m{n}", state="queued", command=f"c{n}"),
        "working": lambda n: news(n, "run", state="working"),
        "weather": lambda n: news(n, "weather"),
    }
    history = [make[kind](number) for number, kind in enumerate(kinds, 1)]
    assert past_of([*history, *history]) == past_of(history)
    assert past_of(reversed(history)) == past_of(history)
    assert history or past_of(history) == Past()
