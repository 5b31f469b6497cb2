"""When an interrupt cuts at once (rulings R3)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from flower.cli import interrupts as module
from flower.cli.interrupts import ASK_TOOL, Interrupts
from flower.core.events import Event


class Cuts(list[tuple[str, bool]]):
    """What the runtime was asked for: words, and whether at once."""

    def __call__(self, message: str = "", *, now: bool = False) -> None:
        self.append((message, now))


def call(tool: str, name: str = "c1", **more: Any) -> Event:
    return Event("tool_call", tool=tool, payload={"id": name, **more})


def back(name: str = "c1") -> Event:
    return Event("tool_result", payload={"tool_use_id": name})


@pytest.mark.parametrize(
    ("seen", "words", "now", "withdrawn"),
    [
        ([], "stop", False, False),
        ([call("Bash")], "stop", True, False),
        ([call("Bash")], "", True, False),
        ([call("Bash"), back()], "stop", False, False),
        ([call("Bash"), Event("result")], "stop", False, False),
        ([call("Bash", subagent=True)], "stop", False, False),
        ([call("Agent")], "stop", False, False),
        ([call("Agent"), call("Bash", "c2", subagent=True)], "stop", False, False),
        ([call(ASK_TOOL)], "stop", True, True),
        ([call(ASK_TOOL), back()], "stop", False, False),
        ([call(ASK_TOOL)], "", False, False),
    ],
)
async def test_at_once_where_a_person_or_a_tool_is_waited_for(
    seen: list[Event], words: str, now: bool, withdrawn: bool
) -> None:
    cuts = Cuts()
    interrupts = Interrupts(cuts)
    for each in seen:
        interrupts.see(each)
    assert await asyncio.to_thread(interrupts, words) is withdrawn
    assert cuts == [(words, now)]


async def test_a_turn_that_says_nothing_is_cut_at_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BOUNDARY_SECONDS", 0.01)
    cuts = Cuts()
    interrupts = Interrupts(cuts)
    interrupts("stop")
    while len(cuts) < 2:  # noqa: ASYNC110 - the cut says nothing when it comes
        await asyncio.sleep(0)
    assert cuts == [("stop", False), ("stop", True)]


async def test_words_that_have_arrived_are_not_said_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BOUNDARY_SECONDS", 0.01)
    cuts = Cuts()
    interrupts = Interrupts(cuts)
    interrupts("stop")
    await asyncio.sleep(0)
    interrupts.see(Event("retry"))
    done = asyncio.Event()
    asyncio.get_running_loop().call_later(0.02, done.set)
    await done.wait()
    assert cuts == [("stop", False)]
