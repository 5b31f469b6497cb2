"""Handing over with the real SDK and its bundled program: the levels are what the scripted model reports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flower.core.agent import HandoffPolicy, calibrated_window
from flower.testing import RecordingSink
from tests.sdk.stage import spec, stage

pytestmark = [pytest.mark.real, pytest.mark.timeout(60)]

DOCUMENT = """\
## 现在在做什么
第二步

## 已经定下的
用 A,因为快

## 走不通的路
B,太慢

## 下一步
写 two.txt

## 现场
one.txt"""
SMALL = "claude-haiku-4-5"


def tokens(count: int) -> dict[str, int]:
    return {"input": 10, "output": 50, "cache_read": count - 10}


def write(name: str) -> dict[str, Any]:
    return {"Write": {"file_path": f"${{workspace}}/{name}", "content": name}}


def phases(sink: RecordingSink) -> list[str]:
    return [event.payload["phase"] for event in sink.of("handoff")]


async def test_past_the_programs_own_edge_the_last_words_still_have_room(tmp_path: Path) -> None:
    """The program refuses 23,000 tokens before the window unless told otherwise (SDK facts 14)."""
    parts: dict[str, Any] = {
        "successor": {"match": {"opening": "你在接手"}, "lines": ["Done."]},
        "main": {
            "lines": [
                {"say": "On.", "call": {"Bash": {"command": "echo big"}}, "usage": tokens(190_000)},
                {"expect": {"prompt": "交接"}, "say": DOCUMENT, "usage": tokens(191_000)},
            ]
        },
    }
    async with (
        stage(tmp_path, **parts) as here,
        here.runtime(handoff=HandoffPolicy(window=200_000, headroom=15_000)) as runtime,
    ):
        step = await runtime.run(spec(model=SMALL), "go")
    assert (step.ok, step.errors, len(step.retired)) == (True, [], 1)


async def test_an_overflow_that_nobody_foresaw_costs_one_degraded_handover(tmp_path: Path) -> None:
    parts: dict[str, Any] = {
        "successor": {
            "match": {"opening": "降级:交接没写成"},
            "lines": [{"expect": {"opening": "the original task"}, "say": "Looked around, done."}],
        },
        "main": {
            "lines": [
                {"say": "On.", "call": {"Bash": {"command": "echo big"}}, "usage": tokens(120_000)},
                {
                    "say": "never",
                    "fail": {
                        "status": 400,
                        "type": "invalid_request_error",
                        "message": "prompt is too long: 210000 tokens > 200000 maximum",
                        "times": "always",
                    },
                },
            ]
        },
    }
    async with stage(tmp_path, **parts) as here:
        sink = RecordingSink()
        async with here.runtime(handoff=HandoffPolicy(window=1_000_000)) as runtime:
            step = await runtime.run(spec(model=SMALL), "the original task", on_event=sink)
        remembered = calibrated_window()
    assert (step.ok, step.text, len(step.retired), step.attempts) == (True, "Looked around, done.", 1, 1)
    assert step.errors[-1].startswith("交接降级(")
    assert phases(sink) == ["writing", "done"]
    assert remembered == 120_000


async def test_a_model_that_goes_on_working_instead_of_writing_gets_no_tool(tmp_path: Path) -> None:
    parts: dict[str, Any] = {
        "successor": {"match": {"opening": "你在接手"}, "lines": ["Done."]},
        "main": {
            "lines": [
                {"say": "On.", "call": {"Bash": {"command": "echo big"}}, "usage": tokens(160_000)},
                {"say": "One more.", "call": write("late.txt"), "usage": tokens(161_000)},
                {"expect": {"error": True, "result": "只写交接"}, "say": DOCUMENT, "usage": tokens(162_000)},
            ]
        },
    }
    async with stage(tmp_path, **parts) as here, here.runtime(handoff=HandoffPolicy(window=200_000)) as runtime:
        step = await runtime.run(spec(model=SMALL), "go")
    assert (step.ok, step.errors) == (True, [])
    assert not (here.workspace / "late.txt").exists()
