"""Behaviour 28.2, each item a test:

*Channel:* answer from the same task, another task, another thread; decline with and without reason; timeout;
`timeout_s` 0 and −1 (no `asked`, not in `pending`, not in the pull queue); `max_asks` 0/1/None with `remaining`; empty
question; cancellation leaves no pending entry; 100 parallel questions answered in random order from threads;
answer/timeout race keeps exactly one outcome; raising sink fills `ui_errors` and nothing else; log and amend formats,
write failures; inbox empty/filled, both closing sentences, `taken` once under concurrent calls; ids shared by asks and
mail.
"""

from __future__ import annotations

import asyncio
import random
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flower.core.events import Event
from flower.core.human import DECLINED, NO_MAIL, OVER_BUDGET, TIMEOUT, Ask, HumanChannel
from tests.fakes.people import WAIT, Heard, asked, use

EMPTY = "问题是空的。把问题写清楚再问。"


# -- answer from the same task, another task, another thread ------------------------------------------------------


async def test_answer_from_the_same_task() -> None:
    def eager(event: Event) -> None:
        if event.payload["state"] == "asked":
            assert channel.answer(event.payload["id"], "yes")

    channel = HumanChannel(on_event=eager)
    async with asyncio.timeout(WAIT):
        assert (await channel.ask("A?")).answer == "yes"


async def test_answer_from_another_task() -> None:
    heard = Heard()
    channel = HumanChannel(on_event=heard)

    async def person() -> bool:
        await asked(channel)
        return channel.answer("q1", "CLI")

    async with asyncio.timeout(WAIT), asyncio.TaskGroup() as group:
        asking = group.create_task(channel.ask("CLI or library?"))
        answering = group.create_task(person())
    assert answering.result() is True
    assert (asking.result().state, asking.result().answer) == ("answered", "CLI")
    assert heard.states == [("q1", "asked"), ("q1", "answered")]


async def test_answer_from_another_thread(tmp_path: Path) -> None:
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


# -- decline with and without reason ------------------------------------------------------------------------------


@pytest.mark.parametrize(("reason", "answer"), [("", DECLINED), ("  ", DECLINED), ("忙", f"{DECLINED}(对方说:忙)")])
async def test_decline_with_and_without_reason(reason: str, answer: str) -> None:
    channel = HumanChannel()
    async with asyncio.TaskGroup() as group:
        asking = group.create_task(channel.ask("A?"))
        await asked(channel)
        assert channel.decline("q1", reason) is True
    assert (asking.result().state, asking.result().answer) == ("declined", answer)


# -- timeout ------------------------------------------------------------------------------------------------------


async def test_timeout() -> None:
    heard = Heard()
    channel = HumanChannel(on_event=heard, timeout_s=0.01)
    ask = await channel.ask("A?")
    assert (ask.state, ask.answer) == ("timeout", TIMEOUT)
    assert heard.states == [("q1", "asked"), ("q1", "timeout")]
    assert channel.answer("q1", "late") is False
    assert await channel.next_ask(timeout=0) is None


# -- `timeout_s` 0 and −1 (no `asked`, not in `pending`, not in the pull queue) -----------------------------------


@pytest.mark.parametrize("seconds", [0, 0.0, -1])
async def test_timeout_s_0_and_minus_1(tmp_path: Path, seconds: float) -> None:
    heard, waiting = Heard(), []
    channel = HumanChannel(timeout_s=seconds, log_path=tmp_path / "log.md")

    def sink(event: Event) -> None:
        heard(event)
        waiting.extend(channel.pending())

    channel.on_event = sink
    ask = await channel.ask("A?")
    assert (ask.state, ask.answer) == ("timeout", TIMEOUT)
    assert heard.states == [("q1", "timeout")]
    assert waiting == channel.pending() == []
    assert await channel.next_ask(timeout=0) is None
    assert channel.answer("q1", "late") is False
    assert (tmp_path / "log.md").read_text(encoding="utf-8").count("**A**") == 1


# -- `max_asks` 0/1/None with `remaining` -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("quota", "before", "states", "remaining"),
    [
        (0, 0, ["over_budget", "over_budget"], [0, 0]),
        (1, 1, ["timeout", "over_budget"], [0, 0]),
        (2, 2, ["timeout", "timeout"], [1, 0]),
        (None, -1, ["timeout", "timeout"], [-1, -1]),
    ],
)
async def test_max_asks_0_1_none_with_remaining(
    quota: int | None, before: int, states: list[str], remaining: list[int]
) -> None:
    """The ordering trap: what an event says is the value at emission, the question itself counted."""
    heard = Heard()
    channel = HumanChannel(on_event=heard, max_asks=quota, timeout_s=0)
    assert channel.remaining == before
    asks = [await channel.ask(text) for text in ("A?", "B?")]
    assert [ask.state for ask in asks] == states
    assert [ask.answer for ask in asks] == [{"timeout": TIMEOUT, "over_budget": OVER_BUDGET}[state] for state in states]
    assert [event.payload["remaining"] for event in heard.events] == remaining
    assert channel.remaining == remaining[-1]


async def test_max_asks_counts_every_question_whatever_became_of_it() -> None:
    heard = Heard()
    channel = HumanChannel(on_event=heard, max_asks=2, timeout_s=0)
    assert channel.remaining == 2
    assert [(await channel.ask(text)).state for text in ("", "B?", "C?")] == ["invalid", "timeout", "over_budget"]
    assert [event.payload["remaining"] for event in heard.events] == [1, 0, 0]
    assert channel.remaining == 0


# -- empty question -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("question", ["", "  ", "\n\t"])
async def test_empty_question(question: str) -> None:
    heard = Heard()
    channel = HumanChannel(on_event=heard, max_asks=0)
    ask = await channel.ask(question, ["A"])
    assert (ask.state, ask.answer) == ("invalid", EMPTY)
    assert heard.states == [("q1", "invalid")]
    assert channel.pending() == []
    assert await channel.next_ask(timeout=0) is None


# -- cancellation leaves no pending entry -------------------------------------------------------------------------


async def test_cancellation_leaves_no_pending_entry(tmp_path: Path) -> None:
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


# -- 100 parallel questions answered in random order from threads -------------------------------------------------


async def test_100_parallel_questions_answered_in_random_order_from_threads() -> None:
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


# -- answer/timeout race keeps exactly one outcome ----------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(delays=st.lists(st.floats(0, 0.006), min_size=1, max_size=8), patience=st.floats(0.001, 0.004))
def test_answer_timeout_race_keeps_exactly_one_outcome(delays: list[float], patience: float) -> None:
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


# -- raising sink fills `ui_errors` and nothing else --------------------------------------------------------------


async def test_raising_sink_fills_ui_errors_and_nothing_else(tmp_path: Path) -> None:
    def broken(_event: Event) -> None:
        raise ValueError("no screen")

    places: dict[str, Any] = {"log_path": tmp_path / "log.md", "amend_path": tmp_path / "brief.md"}
    channel = HumanChannel(on_event=broken, **places)
    async with asyncio.timeout(WAIT), asyncio.TaskGroup() as group:
        asking = group.create_task(channel.ask("A?"))
        await asked(channel)
        assert channel.answer("q1", "yes")
    assert (asking.result().state, asking.result().answer) == ("answered", "yes")
    assert channel.send("hello") is not None
    assert "1. hello" in await use(channel, "inbox")
    assert channel.ui_errors == ["ValueError: no screen"] * 4  # asked, answered, queued, delivered
    assert (tmp_path / "log.md").read_text(encoding="utf-8").count("**A**[answered] yes") == 1
    assert "hello" in (tmp_path / "brief.md").read_text(encoding="utf-8")


# -- log and amend formats, write failures ------------------------------------------------------------------------


async def test_log_and_amend_formats(tmp_path: Path) -> None:
    log, brief = tmp_path / "deep" / "log.md", tmp_path / "notes" / "brief.md"
    channel = HumanChannel(timeout_s=0, log_path=log, amend_path=brief)
    await channel.ask("With?", ["A", "B", "C"])
    await channel.ask("Without?")
    channel.send("and this")
    assert channel.amend("said at wake", label="唤醒时追加") is True
    await use(channel, "inbox")
    assert log.read_text(encoding="utf-8") == (
        "# 需求问答记录\n\n> 自动追加,不进任何上下文,只是留个记录。\n\n"
        f"- **Q**(q1) With?\n  - 选项:A / B / C\n  - **A**[timeout] {TIMEOUT}\n"
        f"- **Q**(q2) Without?\n  - **A**[timeout] {TIMEOUT}\n"
        "\n- **人主动说**(m3) and this\n"
    )
    assert re.sub(r"\d\d:\d\d:\d\d", "HH:MM:SS", brief.read_text(encoding="utf-8")) == (
        "# 运行中的补充\n\n## 运行中补充(HH:MM:SS)\nand this\n\n## 唤醒时追加(HH:MM:SS)\nsaid at wake\n"
    )


async def test_log_header_is_written_even_if_the_first_entry_is_mail(tmp_path: Path) -> None:
    """D6."""
    channel = HumanChannel(log_path=tmp_path / "log.md")
    channel.send("first")
    await use(channel, "inbox")
    assert (tmp_path / "log.md").read_text(encoding="utf-8").startswith("# 需求问答记录\n\n> ")


async def test_write_failures(tmp_path: Path) -> None:
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


# -- inbox empty/filled, both closing sentences, `taken` once under concurrent calls ------------------------------


async def test_inbox_empty() -> None:
    heard = Heard()
    assert await use(HumanChannel(on_event=heard), "inbox") == NO_MAIL == "收件箱是空的。继续干活,不用理会。"
    assert heard.events == []


async def test_inbox_filled(tmp_path: Path) -> None:
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


async def test_inbox_both_closing_sentences(tmp_path: Path) -> None:
    kept, lost = HumanChannel(amend_path=tmp_path / "brief.md"), HumanChannel()
    for channel in (kept, lost):
        channel.send("words")
    assert "追加进需求确认书" in await use(kept, "inbox")
    assert "没有落盘" in await use(lost, "inbox")


async def test_inbox_taken_once_under_concurrent_calls() -> None:
    heard = Heard()
    channel = HumanChannel(on_event=heard)
    mails = [channel.send(f"number {n}.") for n in range(10)]
    async with asyncio.TaskGroup() as group:
        looks = [group.create_task(use(channel, "inbox")) for _ in range(20)]
    read = "\n".join(look.result() for look in looks)
    assert [read.count(f"number {n}.") for n in range(10)] == [1] * 10
    assert [mail.taken for mail in mails if mail] == [True] * 10
    assert sorted(state for _, state in heard.states) == ["delivered"] * 10 + ["queued"] * 10


# -- ids shared by asks and mail ----------------------------------------------------------------------------------


def test_ids_shared_by_asks_and_mail() -> None:
    channel = HumanChannel(timeout_s=0)
    first = asyncio.run(channel.ask("A?"))
    mail = channel.send("hello")
    second = asyncio.run(channel.ask("B?"))
    assert mail is not None
    assert (first.id, mail.id, second.id) == ("q1", "m2", "q3")
