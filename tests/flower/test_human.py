"""The human channel: every question is settled once, whoever answers from wherever (behaviour 6)."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flower import texts
from flower.core.human import (
    INBOX_NAME,
    TOOL_NAME,
    Ask,
    HumanChannel,
)
from tests.fakes.people import WAIT, Heard, asked, use

EMPTY = "问题是空的。把问题写清楚再问。"


# -- questions that do not wait -----------------------------------------------------------------------------------


async def test_quota_and_patience_may_be_changed_while_it_runs() -> None:
    channel = HumanChannel(max_asks=0)
    channel.max_asks, channel.timeout_s = 2, 0
    assert (await channel.ask("A?")).state == "timeout"
    channel.max_asks = 0
    assert (await channel.ask("B?")).state == "over_budget"


# -- answers ------------------------------------------------------------------------------------------------------


def test_an_unknown_question_is_neither_answered_nor_skipped() -> None:
    channel = HumanChannel()
    assert channel.answer("q9", "x") is False
    assert channel.decline("q9") is False


async def test_a_shorter_patience_counts_for_a_question_that_waits_already() -> None:
    channel = HumanChannel(timeout_s=None)
    async with asyncio.timeout(WAIT), asyncio.TaskGroup() as group:
        asking = group.create_task(channel.ask("A?"))
        await asked(channel)
        channel.timeout_s = 0.01
    assert asking.result().state == "timeout"


async def test_a_longer_patience_counts_for_a_question_that_waits_already() -> None:
    channel = HumanChannel(timeout_s=0.05)
    async with asyncio.timeout(WAIT), asyncio.TaskGroup() as group:
        asking = group.create_task(channel.ask("A?"))
        await asked(channel)
        await asyncio.to_thread(setattr, channel, "timeout_s", None)
        loop = asyncio.get_running_loop()
        over = loop.create_future()
        loop.call_later(0.1, over.set_result, None)
        await over
        assert channel.answer("q1", "late but fine") is True
    assert asking.result().answer == "late but fine"


@pytest.mark.case("AS-4")
async def test_an_answer_that_was_taken_is_the_outcome_even_if_the_question_is_cancelled_at_once() -> None:
    heard = Heard()
    channel = HumanChannel(on_event=heard)
    asking = asyncio.create_task(channel.ask("A?"))
    await asked(channel)
    assert channel.answer("q1", "yes") is True
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert heard.states == [("q1", "asked"), ("q1", "answered")]


# -- pulling ------------------------------------------------------------------------------------------------------


async def test_questions_are_pulled_in_the_order_in_which_they_were_asked() -> None:
    channel = HumanChannel()
    async with asyncio.timeout(WAIT), asyncio.TaskGroup() as group:
        for text in ("A?", "B?"):
            group.create_task(channel.ask(text))
        for expected in ("A?", "B?"):
            ask = await channel.next_ask()
            assert ask is not None
            assert ask.question == expected
            channel.answer(ask.id, "ok")


async def test_whoever_pulls_waits_for_the_next_question() -> None:
    channel = HumanChannel()
    async with asyncio.timeout(WAIT), asyncio.TaskGroup() as group:
        pulling = group.create_task(channel.next_ask())
        await asyncio.sleep(0)
        group.create_task(channel.ask("A?"))
        ask = await pulling
        assert ask is not None
        channel.answer(ask.id, "ok")


async def test_pulling_gives_up_after_its_time() -> None:
    assert await HumanChannel().next_ask(timeout=0.01) is None


async def test_who_stops_pulling_takes_nobodys_question_away() -> None:
    channel = HumanChannel()
    async with asyncio.timeout(WAIT), asyncio.TaskGroup() as group:
        first = asyncio.create_task(channel.next_ask())
        second = group.create_task(channel.next_ask())
        await asyncio.sleep(0)
        group.create_task(channel.ask("A?"))
        await asyncio.sleep(0)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        ask = await second
        assert ask is not None
        channel.answer(ask.id, "ok")


async def test_a_question_may_be_pulled_in_another_threads_loop() -> None:
    channel = HumanChannel()

    async def person() -> str:
        ask = await channel.next_ask(timeout=WAIT)
        assert ask is not None
        assert channel.answer(ask.id, "from afar")
        return ask.question

    async with asyncio.timeout(WAIT), asyncio.TaskGroup() as group:
        elsewhere = group.create_task(asyncio.to_thread(asyncio.run, person()))
        asking = group.create_task(channel.ask("A?"))
    assert (elsewhere.result(), asking.result().answer) == ("A?", "from afar")


# -- bad options, bad sinks, bad disks ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "options"),
    [
        ("just one", ["just one"]),
        (None, []),
        (["a ", "", "  ", "b"], ["a", "b"]),
        (("a", "b"), ["a", "b"]),
        (7, ["7"]),
    ],
)
async def test_options_that_are_no_list_are_one_option(given: Any, options: list[str]) -> None:
    channel = HumanChannel(timeout_s=0)
    assert (await channel.ask("A?", given)).options == options


async def test_an_event_does_not_share_its_options_with_the_question() -> None:
    ask = Ask("q1", "A?", ["a"])
    ask.event().payload["options"].append("b")
    assert ask.options == ["a"]


# -- mail ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "  \n"])
def test_nothing_said_is_no_mail(text: str) -> None:
    channel = HumanChannel()
    assert channel.send(text) is None
    assert channel.mail == []


def test_an_existing_brief_is_appended_to_and_never_rewritten(tmp_path: Path) -> None:
    brief = tmp_path / "brief.md"
    brief.write_text("# 需求确认书\n", encoding="utf-8")
    channel = HumanChannel(amend_path=brief)
    assert channel.amend(" more ", label="唤醒时追加") is True
    written = re.sub(r"\d\d:\d\d:\d\d", "hh:mm:ss", brief.read_text(encoding="utf-8"))
    assert written == "# 需求确认书\n\n## 唤醒时追加(hh:mm:ss)\nmore\n"


def test_there_is_nothing_to_amend_without_a_path_or_words(tmp_path: Path) -> None:
    assert HumanChannel().amend("x") is False
    assert HumanChannel(amend_path=tmp_path / "b").amend(" ") is False
    assert not (tmp_path / "b").exists()


async def test_mail_from_another_thread_is_told_on_the_loops_thread_and_before_its_delivery() -> None:
    heard = Heard()
    channel = HumanChannel()
    channel.on_event = heard  # as a workflow does: from here on the channel knows the loop
    await asyncio.to_thread(channel.send, "from afar")
    await use(channel, "inbox")
    assert heard.states == [("m1", "queued"), ("m1", "delivered")]
    assert set(heard.threads) == {threading.get_ident()}


async def test_a_channel_outlives_the_loop_in_which_it_was_wired() -> None:
    heard = Heard()
    channel = HumanChannel()

    async def wire() -> None:
        channel.on_event = heard

    await asyncio.to_thread(asyncio.run, wire())
    assert channel.send("hello") is not None
    assert heard.states == [("m1", "queued")]


# -- the rest -----------------------------------------------------------------------------------------------------


def test_nothing_is_written_when_a_channel_is_made(tmp_path: Path) -> None:
    channel = HumanChannel(log_path=tmp_path / "a" / "log.md", amend_path=tmp_path / "b.md")
    assert list(tmp_path.iterdir()) == []
    assert channel.log_path == (tmp_path / "a" / "log.md").resolve()


def test_the_servers_key_is_its_name_and_each_call_makes_a_new_one() -> None:
    channel = HumanChannel()
    first, second = channel.mcp_servers(), channel.mcp_servers()
    assert list(first) == ["human"]
    assert first["human"]["name"] == "human"
    assert first["human"] is not second["human"]
    assert (channel.tool_name, channel.inbox_name) == (TOOL_NAME, INBOX_NAME)
    assert (TOOL_NAME, INBOX_NAME) == ("mcp__human__ask", "mcp__human__inbox")


async def test_the_transcript_has_two_lines_for_each_question() -> None:
    channel = HumanChannel(timeout_s=0, timeout_text="nobody")
    await channel.ask("A?")
    await channel.ask("B?")
    assert channel.transcript() == "- Q: A?\n  A: [timeout] nobody\n- Q: B?\n  A: [timeout] nobody"


def test_a_question_knows_how_long_it_has_waited() -> None:
    assert Ask("q1", "A?", asked_at=time.time() - 2).waited_s in (2.0, 2.1)


def test_in_english_every_text_of_the_channel_is_english() -> None:
    with texts.speaking("en"):
        channel = HumanChannel(declined_text="my own")
    assert channel.timeout_text.startswith("Nobody answered.")
    assert channel.over_budget_text.startswith("The budget of questions")
    assert channel.declined_text == "my own"


async def test_in_english_the_record_and_the_amendments_are_english(tmp_path: Path) -> None:
    with texts.speaking("en"):
        channel = HumanChannel(timeout_s=0, log_path=tmp_path / "qa.md", amend_path=tmp_path / "brief.md")
    await channel.ask("A?", ["x", "y"])
    channel.send("more")
    assert "- **Q**(q1) A?\n  - Options: x / y\n" in (tmp_path / "qa.md").read_text(encoding="utf-8")
    assert (tmp_path / "brief.md").read_text(encoding="utf-8").startswith("# Added during the run\n\n## Added during")


@pytest.mark.parametrize("call", [HumanChannel.pending, HumanChannel.pending_mail, HumanChannel.transcript])
def test_looking_is_possible_from_a_thread_without_a_loop(call: Callable[[HumanChannel], object]) -> None:
    assert not call(HumanChannel())
