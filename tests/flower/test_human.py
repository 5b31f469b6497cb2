"""The human channel: every question is settled once, whoever answers from wherever (behaviour 6)."""

from __future__ import annotations

import asyncio
import random
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flower import texts
from flower.core.events import Event
from flower.core.human import (
    DECLINED,
    INBOX_NAME,
    NO_MAIL,
    OVER_BUDGET,
    TIMEOUT,
    TOOL_NAME,
    Ask,
    HumanChannel,
)

WAIT = 5.0
EMPTY = "问题是空的。把问题写清楚再问。"


class Heard:
    """A sink that keeps what it hears and on which thread."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.threads: list[int] = []

    def __call__(self, event: Event) -> None:
        self.events.append(event)
        self.threads.append(threading.get_ident())

    @property
    def states(self) -> list[tuple[str, str]]:
        return [(event.payload["id"], event.payload["state"]) for event in self.events]


async def asked(channel: HumanChannel, number: int = 1) -> list[Ask]:
    """Wait until that many questions wait."""
    async with asyncio.timeout(WAIT):
        while len(channel.pending()) < number:  # noqa: ASYNC110 - a turn of the loop, not a wait
            await asyncio.sleep(0)
    return channel.pending()


async def use(channel: HumanChannel, name: str, **args: Any) -> str:
    """Call a tool as the SDK does, and return the text that the agent reads."""
    tools = {each.name: each for each in (channel._ask_tool(), channel._inbox_tool())}
    reply = await tools[name].handler(args)
    assert "is_error" not in reply
    (block,) = reply["content"]
    return str(block["text"])


# -- questions that do not wait -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "question", "state", "answer"),
    [
        ({"timeout_s": 0}, "A?", "timeout", TIMEOUT),
        ({"timeout_s": -5}, "A?", "timeout", TIMEOUT),
        ({"max_asks": 0}, "A?", "over_budget", OVER_BUDGET),
        ({"max_asks": 0, "timeout_s": 0}, "A?", "over_budget", OVER_BUDGET),
        ({}, "  ", "invalid", EMPTY),
        ({"max_asks": 0, "timeout_s": 0}, "", "invalid", EMPTY),
    ],
)
async def test_a_question_that_cannot_wait_is_settled_at_once(
    tmp_path: Path, settings: dict[str, Any], question: str, state: str, answer: str
) -> None:
    heard = Heard()
    channel = HumanChannel(on_event=heard, log_path=tmp_path / "log.md", **settings)
    ask = await channel.ask(question)
    assert (ask.state, ask.answer) == (state, answer)
    assert heard.states == [("q1", state)]
    assert channel.pending() == []
    assert await channel.next_ask(timeout=0) is None
    assert (tmp_path / "log.md").read_text(encoding="utf-8").count("**A**") == 1


async def test_the_quota_counts_every_question_whatever_became_of_it() -> None:
    heard = Heard()
    channel = HumanChannel(on_event=heard, max_asks=2, timeout_s=0)
    assert channel.remaining == 2
    assert [(await channel.ask(text)).state for text in ("", "B?", "C?")] == ["invalid", "timeout", "over_budget"]
    assert [event.payload["remaining"] for event in heard.events] == [1, 0, 0]
    assert channel.remaining == 0


async def test_without_a_quota_nothing_runs_out() -> None:
    channel = HumanChannel(timeout_s=0)
    await channel.ask("A?")
    assert channel.remaining == -1


async def test_quota_and_patience_may_be_changed_while_it_runs() -> None:
    channel = HumanChannel(max_asks=0)
    channel.max_asks, channel.timeout_s = 2, 0
    assert (await channel.ask("A?")).state == "timeout"
    channel.max_asks = 0
    assert (await channel.ask("B?")).state == "over_budget"


# -- answers ------------------------------------------------------------------------------------------------------


async def test_a_question_waits_and_is_answered_from_another_thread(tmp_path: Path) -> None:
    heard = Heard()
    channel = HumanChannel(on_event=heard, log_path=tmp_path / "log.md")

    def person() -> tuple[bool, list[Ask], bool]:
        return channel.answer("q1", "CLI"), channel.pending(), channel.answer("q1", "library")

    async with asyncio.TaskGroup() as group:
        asking = group.create_task(use(channel, "ask", question=" CLI or library? ", options=["CLI", " ", "library"]))
        (waiting,) = await asked(channel)
        outcome = await asyncio.to_thread(person)
    assert outcome == (True, [], False)
    assert asking.result() == "CLI"
    assert waiting.question == "CLI or library?"
    assert [event.payload for event in heard.events] == [
        {
            "id": "q1",
            "options": ["CLI", "library"],
            "state": state,
            "answer": answer,
            "remaining": -1,
            "asked_at": waiting.asked_at,
        }
        for state, answer in (("asked", ""), ("answered", "CLI"))
    ]
    assert heard.threads == [threading.get_ident()] * 2
    assert (tmp_path / "log.md").read_text(encoding="utf-8") == (
        "# 需求问答记录\n\n> 自动追加,不进任何上下文,只是留个记录。\n\n"
        "- **Q**(q1) CLI or library?\n  - 选项:CLI / library\n  - **A**[answered] CLI\n"
    )


@pytest.mark.parametrize(("reason", "answer"), [("", DECLINED), ("  ", DECLINED), ("忙", f"{DECLINED}(对方说:忙)")])
async def test_a_question_can_be_skipped_with_and_without_a_reason(reason: str, answer: str) -> None:
    channel = HumanChannel()
    async with asyncio.TaskGroup() as group:
        asking = group.create_task(channel.ask("A?"))
        await asked(channel)
        assert channel.decline("q1", reason) is True
    assert (asking.result().state, asking.result().answer) == ("declined", answer)


async def test_a_sink_may_answer_at_once() -> None:
    def eager(event: Event) -> None:
        if event.payload["state"] == "asked":
            assert channel.answer(event.payload["id"], "yes")

    channel = HumanChannel(on_event=eager)
    async with asyncio.timeout(WAIT):
        assert (await channel.ask("A?")).answer == "yes"


async def test_nobody_answers_is_an_outcome_and_not_an_error() -> None:
    heard = Heard()
    channel = HumanChannel(on_event=heard, timeout_s=0.01)
    ask = await channel.ask("A?")
    assert (ask.state, ask.answer) == ("timeout", TIMEOUT)
    assert heard.states == [("q1", "asked"), ("q1", "timeout")]
    assert channel.answer("q1", "late") is False
    assert await channel.next_ask(timeout=0) is None


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


async def test_a_cancelled_question_leaves_nothing_behind(tmp_path: Path) -> None:
    heard = Heard()
    channel = HumanChannel(on_event=heard, timeout_s=None, log_path=tmp_path / "log.md")
    asking = asyncio.create_task(channel.ask("A?"))
    await asked(channel)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert channel.pending() == []
    assert heard.states == [("q1", "asked")]
    assert not (tmp_path / "log.md").exists()
    assert channel.answer("q1", "x") is False
    assert await channel.next_ask(timeout=0) is None


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


async def test_a_hundred_questions_are_each_answered_by_their_id_from_many_threads() -> None:
    heard = Heard()
    channel = HumanChannel(on_event=heard)
    async with asyncio.timeout(WAIT), asyncio.TaskGroup() as group:
        asking = [group.create_task(channel.ask(f"number {n}?")) for n in range(100)]
        waiting = await asked(channel, 100)
        random.Random(1).shuffle(waiting)  # noqa: S311 - an order, not a secret
        with ThreadPoolExecutor(8) as people:
            assert all(people.map(lambda ask: channel.answer(ask.id, f"answer to {ask.question}"), waiting))
    assert [task.result().answer for task in asking] == [f"answer to number {n}?" for n in range(100)]
    assert sorted(state for _, state in heard.states) == ["answered"] * 100 + ["asked"] * 100


@settings(max_examples=25, deadline=None)
@given(delays=st.lists(st.floats(0, 0.006), min_size=1, max_size=8), patience=st.floats(0.001, 0.004))
def test_an_answer_and_the_alarm_never_both_settle_a_question(delays: list[float], patience: float) -> None:
    heard = Heard()
    channel = HumanChannel(on_event=heard, timeout_s=patience)

    def answer_after(delay: float, name: str) -> bool:
        time.sleep(delay)
        return channel.answer(name, "yes")

    async def one(delay: float) -> tuple[Ask, bool]:
        asking = asyncio.create_task(channel.ask("A?"))
        await asyncio.sleep(0)
        name = channel.asks[-1].id
        answering = asyncio.to_thread(answer_after, delay, name)
        return await asking, await answering

    async def all_of_them() -> list[tuple[Ask, bool]]:
        async with asyncio.TaskGroup() as group:
            tasks = []
            for delay in delays:
                tasks.append(group.create_task(one(delay)))
                await asyncio.sleep(0)
                await asyncio.sleep(0)
        return [task.result() for task in tasks]

    for ask, taken in asyncio.run(all_of_them()):
        assert (ask.state, ask.answer) == (("answered", "yes") if taken else ("timeout", TIMEOUT))
        assert [state for name, state in heard.states if name == ask.id] == ["asked", ask.state]


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


async def test_a_sink_that_raises_is_noted_and_disturbs_nobody() -> None:
    def broken(_event: Event) -> None:
        raise ValueError("no screen")

    channel = HumanChannel(on_event=broken, timeout_s=0)
    assert (await channel.ask("A?")).state == "timeout"
    assert channel.send("hello") is not None
    assert channel.ui_errors == ["ValueError: no screen"] * 2


async def test_files_that_cannot_be_written_disturb_nobody(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way", encoding="utf-8")
    channel = HumanChannel(timeout_s=0, log_path=blocked / "log.md", amend_path=blocked / "brief.md")
    heard = Heard()
    channel.on_event = heard
    assert (await channel.ask("A?")).state == "timeout"
    assert channel.amend("x") is False
    mail = channel.send("y")
    assert mail is not None
    assert heard.events[-1].payload == {"kind": "mail", "state": "queued", "id": "m2", "amended": ""}


# -- mail ---------------------------------------------------------------------------------------------------------


def test_questions_and_mail_share_one_counter() -> None:
    channel = HumanChannel(timeout_s=0)
    first = asyncio.run(channel.ask("A?"))
    mail = channel.send("hello")
    second = asyncio.run(channel.ask("B?"))
    assert mail is not None
    assert (first.id, mail.id, second.id) == ("q1", "m2", "q3")


@pytest.mark.parametrize("text", ["", "  \n"])
def test_nothing_said_is_no_mail(text: str) -> None:
    channel = HumanChannel()
    assert channel.send(text) is None
    assert channel.mail == []


async def test_mail_is_queued_amended_and_delivered_once(tmp_path: Path) -> None:
    heard = Heard()
    brief = tmp_path / "notes" / "brief.md"
    channel = HumanChannel(on_event=heard, amend_path=brief, log_path=tmp_path / "log.md")
    channel.send("also report total bytes")
    channel.send("and lines")
    assert [mail.text for mail in channel.pending_mail()] == ["also report total bytes", "and lines"]
    assert await use(channel, "inbox") == (
        "人在运行中说了这些,按时间先后:\n\n1. also report total bytes\n2. and lines\n\n"
        "这些话已经追加进需求确认书,后面的步骤读得到。"
    )
    assert await use(channel, "inbox") == NO_MAIL
    assert channel.pending_mail() == []
    assert [(e.text, e.payload) for e in heard.events] == [
        (text, {"kind": "mail", "state": state, "id": name, "amended": str(brief)})
        for state in ("queued", "delivered")
        for name, text in (("m1", "also report total bytes"), ("m2", "and lines"))
    ]
    amended = re.sub(r"\d\d:\d\d:\d\d", "hh:mm:ss", brief.read_text(encoding="utf-8"))
    assert amended == (
        "# 运行中的补充\n\n## 运行中补充(hh:mm:ss)\nalso report total bytes\n\n## 运行中补充(hh:mm:ss)\nand lines\n"
    )
    assert (
        (tmp_path / "log.md")
        .read_text(encoding="utf-8")
        .endswith("\n- **人主动说**(m1) also report total bytes\n\n- **人主动说**(m2) and lines\n")
    )


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


async def test_mail_that_is_not_on_disk_says_so_to_the_agent() -> None:
    channel = HumanChannel()
    channel.send("words")
    assert "没有落盘" in await use(channel, "inbox")


async def test_mail_from_another_thread_is_told_on_the_loops_thread_and_before_its_delivery() -> None:
    heard = Heard()
    channel = HumanChannel()
    channel.on_event = heard  # as a workflow does: from here on the channel knows the loop
    await asyncio.to_thread(channel.send, "from afar")
    await use(channel, "inbox")
    assert heard.states == [("m1", "queued"), ("m1", "delivered")]
    assert set(heard.threads) == {threading.get_ident()}


async def test_a_letter_is_taken_by_one_of_many_that_look_at_once() -> None:
    channel = HumanChannel()
    channel.send("once")
    async with asyncio.TaskGroup() as group:
        looks = [group.create_task(use(channel, "inbox")) for _ in range(20)]
    assert sum("1. once" in look.result() for look in looks) == 1


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
    assert "- **Q**(q1) A?\n  - Options:x / y\n" in (tmp_path / "qa.md").read_text(encoding="utf-8")
    assert (tmp_path / "brief.md").read_text(encoding="utf-8").startswith("# Added during the run\n\n## Added during")


@pytest.mark.parametrize("call", [HumanChannel.pending, HumanChannel.pending_mail, HumanChannel.transcript])
def test_looking_is_possible_from_a_thread_without_a_loop(call: Callable[[HumanChannel], object]) -> None:
    assert not call(HumanChannel())
