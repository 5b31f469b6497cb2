"""From a payload to its answer, without Slack: what is kept, what is confirmed, who is told."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from bots.slack import hearing as module
from bots.slack.hearing import Hearing, Reply
from bots.slack.inbound import FormRequest, Me
from bots.slack.outbound import EN
from bridge.errors import ChatGoneError, StoreAwayError
from bridge.model import Inbound, PersonId, PlaceRef, ThreadRef, Words

FOLDER = Path(__file__).parents[1] / "payloads" / "slack"
ME = Me(team="T0TEAM", user="U0BOT", bot="B0BOT")


class Voice:
    """What was said to whom, and which forms were opened."""

    def __init__(self) -> None:
        self.said: list[tuple[str, PersonId, str, str]] = []
        self.opened: list[FormRequest] = []
        self.mute = False
        self.slow = 0.0
        self.names: dict[PersonId, str] = {}

    async def whisper(self, where: PlaceRef | ThreadRef, person: PersonId, text: str, *, private: str = "") -> None:
        if self.mute:
            raise ChatGoneError("the channel is archived")
        self.said.append((where.key, person, text, private))

    async def name_of(self, person: PersonId) -> str:
        return self.names.get(person, "")

    async def open_form(self, asked: FormRequest) -> None:
        if self.mute:
            raise ChatGoneError("expired_trigger_id")
        await asyncio.sleep(self.slow)
        self.opened.append(asked)


class Store:
    """An `accept` that keeps in order, or does not."""

    def __init__(self) -> None:
        self.kept: list[Inbound] = []
        self.error: Exception | None = None
        self.keeps = True
        self.gate: asyncio.Event | None = None
        """Where set, the first call waits for it."""

    async def accept(self, inbound: Inbound) -> bool:
        gate, self.gate = self.gate, None
        if gate is not None:
            await gate.wait()
        if self.error is not None:
            raise self.error
        if self.keeps:
            self.kept.append(inbound)
        return self.keeps


def payload(name: str, **event: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())["payload"]
    if event:
        found["event"] |= event
    return found


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def voice() -> Voice:
    return Voice()


@pytest.fixture
def ears(store: Store, voice: Voice) -> Hearing:
    return Hearing(store.accept, voice, me=ME, phrases=EN)


NOT_CONFIRMED = Reply(False, None)
CONFIRMED = Reply(True, None)


# -- not kept ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [StoreAwayError("redis is away"), RuntimeError("a fault of ours"), TimeoutError()])
async def test_any_trouble_leaves_a_message_unconfirmed_and_its_author_told_once(
    ears: Hearing, store: Store, voice: Voice, error: Exception
) -> None:
    store.error = error
    assert await ears.answer(payload("reply")) == NOT_CONFIRMED
    assert await ears.answer(payload("reply")) == NOT_CONFIRMED
    assert voice.said == [("T0TEAM/C1GENERAL/1700000000.001700", "T0TEAM/U1ANNA", EN.away_words, "")]


async def test_a_command_that_was_not_kept_is_unconfirmed_and_answered_where_it_asked_for_it(
    ears: Hearing, store: Store, voice: Voice
) -> None:
    store.keeps = False
    assert await ears.answer(payload("command")) == NOT_CONFIRMED
    private = "https://hooks.slack.com/commands/T0TEAM/1/x"
    assert voice.said == [("T0TEAM/C1GENERAL", "T0TEAM/U1ANNA", EN.away, private)]


async def test_a_click_that_was_not_kept_is_unconfirmed_and_answered(ears: Hearing, store: Store, voice: Voice) -> None:
    store.keeps = False
    assert await ears.answer(payload("click")) == NOT_CONFIRMED
    assert [(text, private) for _, _, text, private in voice.said] == [
        (EN.away, "https://hooks.slack.com/actions/T0TEAM/2/y")
    ]


async def test_a_form_that_was_not_kept_stays_open_and_says_so(ears: Hearing, store: Store, voice: Voice) -> None:
    store.keeps = False
    assert await ears.answer(payload("form")) == Reply(
        True, {"response_action": "errors", "errors": {"words": EN.away}}
    )
    assert voice.said == []


async def test_an_empty_form_stays_open_and_is_never_kept(ears: Hearing, store: Store) -> None:
    reply = await ears.answer(payload("form_blank"))
    assert reply.body == {"response_action": "errors", "errors": {"words": EN.empty_form}}
    assert store.kept == []


async def test_a_person_who_cannot_be_told_changes_nothing(ears: Hearing, store: Store, voice: Voice) -> None:
    store.keeps, voice.mute = False, True
    assert await ears.answer(payload("command")) == NOT_CONFIRMED


async def test_a_store_that_hangs_is_given_up_before_slack_gives_us_up(
    ears: Hearing, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert 2.2 < module.ACCEPT_SECONDS < 3.0
    monkeypatch.setattr(module, "ACCEPT_SECONDS", 0.05)
    store.gate = asyncio.Event()
    assert await ears.answer(payload("reply")) == NOT_CONFIRMED
    assert store.kept == []
    assert await ears.answer(payload("reply", ts="1700000060.000300")) == CONFIRMED


async def test_what_waits_behind_a_hanging_store_is_given_up_in_its_own_time(
    ears: Hearing, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ACCEPT_SECONDS", 0.05)
    store.gate = asyncio.Event()
    async with asyncio.timeout(0.09), asyncio.TaskGroup() as group:
        first = group.create_task(ears.answer(payload("reply")))
        second = group.create_task(ears.answer(payload("reply", ts="1700000060.000300")))
    assert (first.result(), second.result()) == (NOT_CONFIRMED, NOT_CONFIRMED)


# -- kept -------------------------------------------------------------------------------------------------------


@pytest.mark.case("DL-4")
async def test_the_confirmation_waits_for_the_keeping_and_for_nothing_else(ears: Hearing, store: Store) -> None:
    gate = store.gate = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(ears.answer(payload("reply")))
        await asyncio.sleep(0)
        assert not task.done()
        gate.set()
    assert task.result() == CONFIRMED
    assert len(store.kept) == 1


@pytest.mark.case("DL-3")
async def test_what_was_not_kept_is_taken_when_it_comes_again(ears: Hearing, store: Store) -> None:
    store.keeps = False
    await ears.answer(payload("reply"))
    store.keeps = True
    assert await ears.answer(payload("reply")) == CONFIRMED
    assert [inbound.id for inbound in store.kept] == ["T0TEAM/C1GENERAL/1700000060.000200"]


async def test_a_command_is_confirmed_with_what_was_typed(ears: Hearing, store: Store) -> None:
    reply = await ears.answer(payload("command"))
    assert reply.body == {
        "response_type": "ephemeral",
        "text": "Received: write &lt;b&gt; &amp; tell @ben --budget 2",
    }
    assert len(store.kept) == 1


async def test_a_click_and_a_form_are_confirmed_with_nothing(ears: Hearing, store: Store) -> None:
    assert [await ears.answer(payload(name)) for name in ("click", "form")] == [CONFIRMED, CONFIRMED]
    assert len(store.kept) == 2


@pytest.mark.parametrize("name", ["ourselves", "another_bot", "edited", "channel_talk", "shortcut", "click_on_link"])
async def test_what_is_not_for_us_is_confirmed_and_not_kept(ears: Hearing, store: Store, name: str) -> None:
    assert await ears.answer(payload(name)) == CONFIRMED
    assert store.kept == []


async def test_words_of_one_thread_are_kept_in_the_order_in_which_they_came(ears: Hearing, store: Store) -> None:
    gate = store.gate = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for number in range(5):
            group.create_task(ears.answer(payload("reply", ts=f"170000006{number}.000200", text=f"word {number}")))
        await asyncio.sleep(0)
        gate.set()
    texts = [words.text for words in store.kept if isinstance(words, Words)]
    assert texts == ["word 0", "word 1", "word 2", "word 3", "word 4"]


async def test_one_slow_thread_holds_up_no_other(ears: Hearing, store: Store) -> None:
    gate = store.gate = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        slow = group.create_task(ears.answer(payload("reply")))
        await asyncio.sleep(0)
        assert await ears.answer(payload("reply", thread_ts="1700000001.000000", ts="1700000061.000000")) == CONFIRMED
        assert not slow.done()
        gate.set()


async def test_nothing_is_remembered_of_threads_at_which_nobody_waits(ears: Hearing) -> None:
    for number in range(10):
        await ears.answer(payload("reply", thread_ts=f"170000000{number}.000000"))
    assert ears._lanes._lanes == {}


# -- forms ------------------------------------------------------------------------------------------------------


async def test_a_button_with_a_form_opens_it_and_reaches_nobody(ears: Hearing, store: Store, voice: Voice) -> None:
    assert await ears.answer(payload("click_for_form")) == CONFIRMED
    assert [asked.prompt for asked in voice.opened] == ["Which database?"]
    assert store.kept == []


async def test_a_form_that_cannot_be_opened_in_time_is_said(
    ears: Hearing, voice: Voice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FORM_SECONDS", 0.01)
    voice.slow = 5.0
    assert await ears.answer(payload("click_for_form")) == CONFIRMED
    assert [(text, private) for _, _, text, private in voice.said] == [
        (EN.form_failed, "https://hooks.slack.com/actions/T0TEAM/2/y")
    ]
