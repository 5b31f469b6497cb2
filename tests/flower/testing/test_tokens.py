"""Costs from the server's own token log."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from flower.testing import TokenEntry, cost, read_log
from flower.testing.tokens import to_line

ENTRY = TokenEntry(
    at=1.0,
    session="s",
    agent="",
    part="main",
    line="1",
    model="claude-opus-5-5",
    input=1000,
    output=200,
    cache_read=50_000,
    cache_write=3000,
)


def test_a_model_without_a_price_is_named() -> None:
    with pytest.raises(ValueError, match="no price for the model 'claude-x'"):
        cost([replace(ENTRY, model="claude-x")])


def test_a_context_beyond_the_known_price_is_refused() -> None:
    with pytest.raises(ValueError, match="no price for 101000 tokens of context with claude-haiku-5-5"):
        cost([replace(ENTRY, model="claude-haiku-5-5", input=1000, cache_read=100_000, cache_write=0)])


@pytest.mark.parametrize("line", ["{", "[]", '{"at": 1}'])
def test_a_broken_log_is_named_with_its_line(tmp_path: Path, line: str) -> None:
    (tmp_path / "log").write_text(f"{to_line(ENTRY)}{line}\n")
    with pytest.raises(ValueError, match=r"log:2: not an entry of a token log"):
        read_log(tmp_path / "log")


@pytest.mark.parametrize(
    ("model", "dollars"),
    [("claude-opus-5-5", 0.033), ("claude-sonnet-5-5", 0.0165), ("claude-haiku-5-5", 0.001075)],
)
def test_costs_are_the_list_price(model: str, dollars: float) -> None:
    assert cost([replace(ENTRY, model=model)]) == pytest.approx(dollars, abs=1e-12)


def test_a_log_is_read_as_it_was_written(tmp_path: Path) -> None:
    entries = [ENTRY, replace(ENTRY, agent="a1", cut=True, line="2/2")]
    (tmp_path / "log").write_text("".join(to_line(entry) for entry in entries))
    assert read_log(tmp_path / "log") == entries


def test_a_field_from_tomorrow_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(json.dumps(json.loads(to_line(ENTRY)) | {"weather": "fine"}) + "\n")
    assert read_log(tmp_path / "log") == [ENTRY]
