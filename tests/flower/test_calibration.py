"""How large a window is taken to be (API 5.4, 5.5)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flower.core.agent import (
    HandoffPolicy,
    calib_path,
    calibrated_window,
    default_window,
    remember_overflow,
)
from flower.core.level import Level

NAMES = ("FLOWER_WINDOW", "ANTHROPIC_MODEL", "ANTHROPIC_DEFAULT_OPUS_MODEL", "ANTHROPIC_BASE_URL")


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


@pytest.mark.parametrize("given", ["", "0", "-5", "many", "1e6", "2.5", "٣", "9" * 400])
def test_a_window_that_is_none_counts_as_unset(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOWER_WINDOW", given)
    assert default_window() == 1_000_000


@pytest.mark.parametrize(
    ("model", "window"),
    [
        *(("", 1_000_000), ("claude-opus-5-5", 1_000_000), ("claude-haiku-5-5", 200_000), ("HAIKU", 200_000)),
        *(("haiku-1m", 1_000_000), ("claude-haiku[1m]", 1_000_000), ("x1m-haiku", 200_000), ("haiku-11m", 200_000)),
    ],
)
def test_the_models_name_is_the_last_resort(model: str, window: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_DEFAULT_OPUS_MODEL", model)
    assert default_window() == window
    monkeypatch.setenv("ANTHROPIC_DEFAULT_OPUS_MODEL", "claude-haiku-5-5")
    if model:
        monkeypatch.setenv("ANTHROPIC_MODEL", model)
        assert default_window() == window


def test_what_overflowed_is_remembered_for_its_endpoint_and_model(monkeypatch: pytest.MonkeyPatch) -> None:
    assert calibrated_window() is None
    remember_overflow(-1)
    remember_overflow(0)
    assert not calib_path().exists()
    remember_overflow(300_000)
    remember_overflow(180_000)
    remember_overflow(250_000)
    assert calibrated_window() == default_window() == 180_000
    monkeypatch.setenv("ANTHROPIC_MODEL", "other")
    assert calibrated_window() is None
    remember_overflow(70_000)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "https://user:secret@gateway.example/v1")
    remember_overflow(90_000)
    stored = json.loads(calib_path().read_text(encoding="utf-8"))
    assert stored == {
        "default|": 180_000,
        "default|other": 70_000,
        "https://***@gateway.example/v1|other": 90_000,
    }
    monkeypatch.setenv("FLOWER_WINDOW", "500000")
    assert default_window() == 500_000


@pytest.mark.parametrize("stored", ["", "{", "[]", '{"default|": "x"}', '{"default|": -4}', '{"default|": true}', "\0"])
def test_a_broken_memory_is_no_memory(stored: str) -> None:
    calib_path().parent.mkdir(parents=True)
    calib_path().write_text(stored, encoding="utf-8")
    assert calibrated_window() is None
    remember_overflow(123_456)
    assert calibrated_window() == 123_456


def test_a_memory_that_cannot_be_written_stops_nobody() -> None:
    calib_path().mkdir(parents=True)
    remember_overflow(123_456)
    assert calibrated_window() is None


@pytest.mark.parametrize(
    ("policy", "at", "warn_at"),
    [
        (HandoffPolicy(window=200_000), 150_000, 130_000),
        (HandoffPolicy(window=1_000_000), 750_000, 730_000),
        (HandoffPolicy(window=1_000_000, headroom=50_000), 950_000, 930_000),
        (HandoffPolicy(window=40_000, headroom=25_000), 15_000, 1_000),
        (HandoffPolicy(window=-1), 10_000, 1_000),
    ],
)
def test_where_people_are_warned_and_where_it_hands_over(policy: HandoffPolicy, at: int, warn_at: int) -> None:
    assert (policy.at, policy.warn_at) == (at, warn_at)


def test_a_level_warns_once_a_generation_and_never_falls() -> None:
    level = Level(HandoffPolicy(window=200_000))
    assert [level.rise(tokens) for tokens in (5, 131_000, 140_000, 20)] == [False, True, False, False]
    assert (level.tokens, level.due) == (140_000, False)
    assert not level.rise(150_000)
    assert level.due
    level.reset()
    assert (level.tokens, level.due) == (0, False)
    assert level.rise(160_000)


def test_a_policy_that_is_off_is_never_due() -> None:
    level = Level(HandoffPolicy(enabled=False, window=1000))
    assert not level.rise(10**9)
    assert not level.due
