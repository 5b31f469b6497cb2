"""Budgets and pauses, on a clock that is handed in."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.model import PlaceRef, Platform
from bridge.pacer import Bucket, Pacer
from tests.bridge.telling import ABILITIES

HERE, THERE = PlaceRef(Platform("anywhere"), "C1"), PlaceRef(Platform("anywhere"), "C2")


@given(st.floats(0.1, 5), st.integers(1, 6), st.lists(st.floats(0, 3), min_size=1, max_size=60))
def test_no_window_of_time_sees_more_than_the_burst_and_the_rate(every: float, burst: int, gaps: list[float]) -> None:
    bucket = Bucket(every=every, burst=burst, level=burst, at=0.0)
    now, sent = 0.0, []
    for gap in gaps:
        now = max(now + gap, bucket.ready(now + gap))
        bucket = bucket.taken(now)
        sent.append(now)

    for first in range(len(sent)):
        for last in range(first, len(sent)):
            assert last - first + 1 <= burst + (sent[last] - sent[first]) / every + 1e-6


def test_a_full_burst_goes_at_once_and_then_one_by_one() -> None:
    pacer = Pacer(ABILITIES)
    times = []
    now = 100.0
    for _ in range(6):
        now = pacer.post_at(HERE, now, urgent=True)
        pacer.posted(HERE, now)
        times.append(now)

    assert times == pytest.approx([100, 100, 100, 101, 102, 103])


def test_the_last_of_the_burst_is_kept_for_what_is_urgent() -> None:
    pacer = Pacer(ABILITIES)
    for _ in range(2):
        assert pacer.post_at(HERE, 100.0, urgent=False) == 100.0
        pacer.posted(HERE, 100.0)

    assert pacer.post_at(HERE, 100.0, urgent=False) == pytest.approx(101.0)
    assert pacer.post_at(HERE, 100.0, urgent=True) == 100.0


def test_a_platform_without_a_burst_keeps_nothing_back() -> None:
    pacer = Pacer(replace(ABILITIES, post_burst=1))

    assert pacer.post_at(HERE, 100.0, urgent=False) == 100.0


def test_a_platform_without_limits_never_waits() -> None:
    pacer = Pacer(replace(ABILITIES, post_every=0.0, edit_every=0.0))
    for _ in range(100):
        pacer.posted(HERE, 100.0)
        pacer.edited(100.0)

    assert pacer.post_at(HERE, 100.0, urgent=False) == 100.0
    assert pacer.edit_at(100.0) == 100.0


def test_posts_are_counted_in_each_place_and_edits_together() -> None:
    pacer = Pacer(ABILITIES)
    for _ in range(5):
        pacer.posted(HERE, 100.0)
        pacer.edited(100.0)

    assert pacer.post_at(HERE, 100.0, urgent=True) == pytest.approx(103.0)
    assert pacer.post_at(THERE, 100.0, urgent=True) == 100.0
    assert pacer.edit_at(100.0) == pytest.approx(101.2)


@pytest.mark.case("SL-3")
def test_a_pause_that_the_platform_asked_for_is_kept_to_its_end() -> None:
    pacer = Pacer(ABILITIES)
    pacer.pause_posts(HERE, until=130.0)
    pacer.pause_posts(HERE, until=110.0)
    pacer.pause_edits(until=120.0)

    assert pacer.post_at(HERE, 100.0, urgent=True) == 130.0
    assert pacer.post_at(THERE, 100.0, urgent=True) == 100.0
    assert pacer.edit_at(100.0) == 120.0
    assert pacer.look_at(100.0) == 100.0

    pacer.pause(until=140.0)
    assert [pacer.post_at(THERE, 100.0, urgent=True), pacer.edit_at(100.0), pacer.look_at(100.0)] == [
        140.0,
        140.0,
        140.0,
    ]
    assert pacer.post_at(HERE, 150.0, urgent=True) == 150.0


def test_time_that_goes_back_gives_no_tokens_away() -> None:
    bucket = Bucket(every=1.0, burst=2, level=2.0, at=100.0).taken(100.0).taken(100.0)

    assert bucket.ready(50.0) > 50.0
    assert bucket.refilled(50.0).level == 0.0


def test_ten_thousand_places_are_not_remembered_for_ever() -> None:
    pacer = Pacer(ABILITIES)
    for number in range(10_000):
        pacer.posted(PlaceRef(Platform("anywhere"), f"C{number}"), 100.0 + number)

    assert len(pacer._posts) <= 4_096
