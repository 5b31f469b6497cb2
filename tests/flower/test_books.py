"""The accounts of a runtime: sums over sessions, and what a kill may not lose (SDK facts 3, trap 1)."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flower.core import manifest
from flower.core.books import Books, StepResult
from flower.stores.sqlite import SessionFileError


class Totals:
    """A store's table of costs."""

    def __init__(self, **known: float) -> None:
        self.known = dict(known)
        self.carried: dict[str, float] = {}

    def cost_of(self, session: str) -> float:
        return self.known.get(session, 0.0)

    def book_cost(self, session: str, total: float) -> None:
        self.known[session] = total


@pytest.fixture
def books(tmp_path: Path) -> Books:
    return Books(tmp_path / "manifest.json", "r1")


def test_several_results_of_one_program_are_differences_of_its_count(books: Books) -> None:
    price = books.pricing(Totals(), None)
    assert [price("S", 1.0), price("S", 1.5), price("S", 1.5)] == [1.0, 0.5, 0.0]


def test_a_fork_begins_where_its_origin_stood(books: Books) -> None:
    assert books.pricing(Totals(S=2.0), "S")("T", 2.5) == 0.5


def test_a_store_without_a_table_of_costs_will_do(books: Books) -> None:
    assert books.pricing(object(), "S")("S", 0.5) == 0.5
    assert books.pricing(object(), "S")("S", 0.75) == 0.25


def test_what_the_transcript_carries_counts_more_than_what_we_know_and_only_once(books: Books) -> None:
    store = Totals(S=2.0)
    store.carried["S"] = 0.0
    assert books.pricing(store, "S")("S", 0.25) == 0.25
    assert store.carried == {}


def test_totals_are_kept_with_the_rows_and_not_before(books: Books) -> None:
    store = Totals()
    result = StepResult("A")
    books.open(result)
    result.cost_usd = books.pricing(store, None)("S", 0.5)
    assert (store.known, books.spent()) == ({}, 0.5)
    books.close(result, store)
    assert (store.known, books.spent(), books.flying) == ({"S": 0.5}, 0.5, [])


def test_two_steps_with_equal_figures_are_two(books: Books) -> None:
    first, second = StepResult("A"), StepResult("A")
    for result in (first, second):
        books.open(result)
    books.rescue()
    books.rescue()
    assert [each.error for each in books.results] == ["killed-by-signal"] * 2


def test_a_rescue_leaves_what_is_already_said_alone(books: Books) -> None:
    result = StepResult("A", error="interrupted-by-human")
    books.open(result)
    books.rescue()
    ended = result.ended_at
    books.rescue()
    assert (result.error, result.ended_at) == ("interrupted-by-human", ended)


@given(st.lists(st.lists(st.integers(0, 100), min_size=1, max_size=4), max_size=5), st.booleans())
def test_whether_the_count_goes_on_or_begins_anew_the_sum_is_what_was_spent(
    attempts: list[list[int]], cumulative: bool
) -> None:
    """Each attempt reports rising totals; a program that counts on begins where the last one stopped."""
    books, store, spent, reached = Books(Path("unused"), "r1"), Totals(), 0.0, 0
    for costs in attempts:
        if not cumulative:
            reached, store.carried["S"] = 0, 0.0
        price = books.pricing(store, "S")
        for cost in costs:
            reached += cost
            spent += price("S", float(reached))
    assert spent == sum(sum(costs) for costs in attempts)


class Locked(Totals):
    """A store that cannot take a total."""

    def book_cost(self, session: str, total: float) -> None:
        raise SessionFileError("database is locked")


def test_a_store_that_is_away_costs_no_row_and_books_nothing_twice(books: Books, tmp_path: Path) -> None:
    result = StepResult("A")
    books.open(result)
    result.cost_usd = books.pricing(Locked(), None)("S", 0.5)
    assert books.close(result, Locked())
    assert [row["cost_usd"] for row in manifest.rows_of(tmp_path / "manifest.json")] == [0.5]


def test_a_rescue_does_not_wait_for_the_store(books: Books) -> None:
    books.open(StepResult("A"))
    assert books.rescue()
