"""What follows an attempt: a table (behaviour 15.3)."""

from __future__ import annotations

import pytest

from flower.core.next_move import (
    ENDED,
    HANDOFF_DUE,
    INTERRUPTED,
    Ending,
    Finish,
    GoOn,
    HandOff,
    Move,
    Retry,
    after,
    budget_left,
    kind_of,
)
from flower.core.resilience import Resilience, classify


def move(
    ending: Ending,
    *,
    session: str | None = "S",
    tried: int = 1,
    hands_over: bool = True,
    resilience: Resilience | None = None,
) -> Move:
    rules = resilience or Resilience(resume_prompt="go on")
    return after(
        ending,
        session=session,
        tried=tried,
        limit=rules.max_attempts,
        hands_over=hands_over,
        classify=classify,
        retryable=rules.should_retry,
    )


@pytest.mark.parametrize(
    ("ending", "expected"),
    [
        (Ending(ok=True), Finish()),
        (Ending(ok=False, error=ENDED), Finish()),
        (Ending(ok=False, error=INTERRUPTED), GoOn()),
        (Ending(ok=False, error="API Error: ECONNRESET"), Retry(kind="transient")),
        (Ending(ok=False, error="401 unauthorized: connection refused"), Finish()),
        (Ending(ok=False, error="something odd"), Retry(kind="unknown")),
        (Ending(ok=False, error=None), Retry(kind="unknown")),
        (Ending(ok=False, error="Reached maximum number of turns (3) [error_max_turns]"), Finish()),
        (Ending(ok=False, error="预算(budget)用完了"), Finish()),
    ],
)
def test_each_ending_has_its_move(ending: Ending, expected: Move) -> None:
    assert move(ending) == expected


@pytest.mark.parametrize(
    ("ending", "overflow"),
    [
        (Ending(ok=False, error=HANDOFF_DUE), False),
        (Ending(ok=False, error="Prompt is too long"), True),
        (Ending(ok=False, error="odd", errors=("API Error: 400 context_length_exceeded",)), True),
        (Ending(ok=False, error="odd", reason="blocking_limit"), True),
        (Ending(ok=False, error="API Error: 400", status=400, reason="prompt_too_long"), True),
    ],
)
def test_a_full_context_is_handed_over_however_often_was_tried(ending: Ending, overflow: bool) -> None:
    assert move(ending, tried=99) == HandOff(overflow=overflow)


def test_an_overflow_is_a_failure_like_others_without_a_session_or_a_policy() -> None:
    full = Ending(ok=False, error="API Error: 400 prompt is too long")
    assert move(full, session=None) == Finish()
    assert move(full, hands_over=False) == Finish()


def test_an_interrupt_without_a_session_ends_the_step() -> None:
    assert move(Ending(ok=False, error=INTERRUPTED), session=None) == Finish()


def test_an_interrupt_is_not_limited_by_the_number_of_attempts() -> None:
    assert move(Ending(ok=False, error=INTERRUPTED), tried=99) == GoOn()


def test_the_last_attempt_is_not_tried_again() -> None:
    lost = Ending(ok=False, error="ECONNRESET")
    assert move(lost, tried=5) == Retry(kind="transient")
    assert move(lost, tried=6) == Finish()


def test_what_cannot_be_classified_is_only_tried_again_where_that_is_wanted() -> None:
    strict = Resilience(retry_unknown=False, resume_prompt="go on")
    assert move(Ending(ok=False, error="something odd"), resilience=strict) == Finish()


@pytest.mark.parametrize(
    ("status", "kind", "error", "expected"),
    [
        (529, "", "budget of the connection", "transient"),
        (429, "rate_limit", "no more", "transient"),
        (400, "unknown", "timeout", "fatal"),
        (413, "invalid_request", "too large", "fatal"),
        (None, "authentication_failed", "timed out", "fatal"),
        (None, "server_error", "connect ECONNREFUSED 127.0.0.1:1", "transient"),
        (None, "server_error", "Request timed out", "transient"),
        (None, "error_max_budget_usd", "", "fatal"),
        (None, "session_file", "SessionStore.load() failed: timeout", "fatal"),
        (418, "", "", "unknown"),
    ],
)
def test_the_apis_answer_counts_more_than_the_words(status: int | None, kind: str, error: str, expected: str) -> None:
    assert kind_of(Ending(ok=False, error=error, status=status, kind=kind), classify) == expected


@pytest.mark.parametrize(
    ("limits", "left"),
    [([], None), ([(None, 5.0)], None), ([(2.0, 0.5), (None, 1.0), (1.0, 0.25)], 0.75), ([(1.0, 3.0)], -2.0)],
)
def test_the_tightest_limit_says_what_is_left(limits: list[tuple[float | None, float]], left: float | None) -> None:
    assert budget_left(limits) == left
