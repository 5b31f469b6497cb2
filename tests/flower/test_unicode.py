"""Halves of surrogate pairs are replaced where text comes in, so nothing behind that can fail on them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from claude_agent_sdk import AssistantMessage, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock, UserMessage
from hypothesis import given
from hypothesis import strategies as st

from flower.core.events import normalize
from flower.core.human import HumanChannel
from flower.core.unicode import well_formed

HALF = "a\ud800b"
anything = st.text(st.characters())


@given(anything)
def test_the_result_can_be_encoded_and_only_halves_are_replaced(text: str) -> None:
    whole = well_formed(text)
    whole.encode()
    assert len(whole) == len(text)
    changed = [(new, old) for new, old in zip(whole, text, strict=True) if new != old]
    assert all(new == "\ufffd" and "\ud800" <= old <= "\udfff" for new, old in changed)


def test_no_event_holds_a_half() -> None:
    given = {HALF: [HALF, {"x": HALF}], "command": HALF}
    blocks: list[Any] = [TextBlock(HALF), ThinkingBlock(HALF, ""), ToolUseBlock("t", "Bash", given)]
    messages: list[Any] = [
        AssistantMessage(content=blocks, model="m"),
        AssistantMessage(content=[TextBlock(HALF)], model="<synthetic>"),
        UserMessage(content=HALF),
        UserMessage(content=[ToolResultBlock("t", HALF)]),
    ]
    events = [event for message in messages for event in normalize(message)]
    assert len(events) == 6
    for event in events:
        json.dumps([event.text, event.payload], ensure_ascii=False).encode()


async def test_neither_questions_nor_answers_nor_mail_hold_a_half(tmp_path: Path) -> None:
    channel = HumanChannel(timeout_s=0, log_path=tmp_path / "log.md", amend_path=tmp_path / "brief.md")
    ask = await channel.ask(HALF, [HALF])
    mail = channel.send(HALF)
    assert mail is not None
    assert (ask.question, ask.options, mail.text) == ("a\ufffdb", ["a\ufffdb"], "a\ufffdb")
    assert "a\ufffdb" in (tmp_path / "brief.md").read_text(encoding="utf-8")
