"""Which workflow an order names, and with what."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bridge.errors import LaunchError
from bridge.ports import Order
from bridge.runner.making import make_workflow, plugins_of
from flower import Workflow, texts
from tests.bridge.runner import flows
from tests.bridge.runner.rig import FLOWS, Rig

BRIEF = """\
## Goal
A program.

## Acceptance criteria
- It runs.

## Bounds
- None.

## Unknowns and assumptions
- None.
"""


@pytest.fixture(autouse=True)
def english() -> Iterator[None]:
    with texts.speaking("en"):
        yield


def order(home: Path, **changes: Any) -> Order:
    return Rig(home).order(**{"flow": "starter", **changes})


def made(home: Path, **changes: Any) -> Workflow:
    return make_workflow(order(home, **changes), run_dir=home / "flower")


def first_prompt(flow: Workflow) -> str:
    return flow.steps[0].render({})


def test_the_starter_flow_gets_its_request_and_its_options(tmp_path: Path) -> None:
    flow = made(tmp_path, options={"asks": 3, "timeout": 60.0})
    assert [step.name for step in flow.steps] == ["Clarify", "Goal", "Work"]
    assert "write a program" in first_prompt(flow)
    assert flow.channel is not None
    assert (flow.channel.max_asks, flow.channel.timeout_s) == (3, 60.0)


def test_without_options_a_question_waits_half_an_hour_and_there_may_be_many(tmp_path: Path) -> None:
    channel = made(tmp_path).channel
    assert channel is not None
    assert (channel.max_asks, channel.timeout_s) == (None, 1800.0)


@pytest.mark.parametrize(("timeout", "seconds"), [(0, 0.0), (0.0, 0.0), ("45", 45.0), (None, None)])
def test_a_timeout_of_nothing_does_not_wait_and_none_waits_for_ever(
    tmp_path: Path, timeout: object, seconds: float | None
) -> None:
    channel = made(tmp_path, options={"timeout": timeout}).channel
    assert channel is not None
    assert channel.timeout_s == seconds


def test_the_chinese_flow_speaks_chinese(tmp_path: Path) -> None:
    assert [step.name for step in made(tmp_path, language="zh").steps] == ["确认需求", "设定目标", "干活"]


def test_a_run_that_died_while_it_clarified_gets_the_request_again_and_the_new_words(tmp_path: Path) -> None:
    prompt = first_prompt(made(tmp_path, reopen=True, words="in Rust"))
    assert "write a program" in prompt
    assert "in Rust" in prompt


def test_a_run_with_a_brief_is_continued_with_the_persons_words_only(tmp_path: Path) -> None:
    notes = tmp_path / "ws" / ".flower" / "notes"
    notes.mkdir(parents=True)
    (notes / "brief.md").write_text(BRIEF)
    made(tmp_path, reopen=True, words="in Rust")
    brief = (notes / "brief.md").read_text()
    assert "in Rust" in brief
    assert "write a program" not in brief


def test_new_puts_the_old_brief_away_but_not_when_the_run_is_continued(tmp_path: Path) -> None:
    notes = tmp_path / "ws" / ".flower" / "notes"
    notes.mkdir(parents=True)
    (notes / "brief.md").write_text(BRIEF)
    made(tmp_path, options={"new": True}, reopen=True, words="go on")
    assert (notes / "brief.md").exists()
    made(tmp_path, options={"new": True})
    assert not (notes / "brief.md").exists()


def test_a_named_flow_gets_the_request_and_when_continued_the_words(tmp_path: Path) -> None:
    assert first_prompt(made(tmp_path, flow=f"{FLOWS}:one")) == "write a program"
    assert first_prompt(made(tmp_path, flow=f"{FLOWS}:one", reopen=True, words="in Rust")) == "in Rust"
    assert first_prompt(made(tmp_path, flow=f"{FLOWS}:one", reopen=True)) == "write a program"


def test_a_workflow_in_a_module_is_taken_as_it_is(tmp_path: Path) -> None:
    assert made(tmp_path, flow=f"{FLOWS}:ready") is flows.ready


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import nothing_of_that_name\n", "No module named 'nothing_of_that_name'"),
        ("def flow(:\n", "SyntaxError"),
        ("1 / 0\n", "ZeroDivisionError"),
        ("raise SystemExit('usage: broken')\n", "usage: broken"),
    ],
)
def test_a_module_that_breaks_while_it_is_read_is_named_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, said: str
) -> None:
    name = f"broken_{abs(hash(source))}"
    (tmp_path / f"{name}.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(LaunchError, match=f"flow '{name}:flow': ") as caught:
        made(tmp_path, flow=f"{name}:flow")
    assert said in str(caught.value)


def test_the_plugin_beside_a_flow_travels_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_flow.py").write_text("from tests.bridge.runner.flows import one as flow\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    named = order(tmp_path, flow="own_flow:flow")
    make_workflow(named, run_dir=tmp_path / "flower")
    assert plugins_of(named) == plugins_of(order(tmp_path)) == []
    folder = tmp_path / "plugin"
    folder.mkdir()
    with pytest.raises(LaunchError, match=r"flow 'own_flow:flow': .*plugin\.json"):
        plugins_of(named)
    (folder / ".claude-plugin").mkdir()
    (folder / ".claude-plugin" / "plugin.json").write_text('{"name": "own"}')
    assert plugins_of(named) == [folder]
