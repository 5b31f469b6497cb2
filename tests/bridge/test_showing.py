from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path
from typing import Any

import pytest

from bridge import cards, service
from bridge.commands import Answer, Hold, Say
from bridge.errors import ChatBusyError, ChatRefusedError, ChatUnknownError
from bridge.model import Card, MessageRef, PlaceRef, PostRef, ThreadRef
from bridge.rich import Fence
from tests.bridge.bot import Runner, World, said, until
from tests.fakes.chat import ABILITIES, PLACE, FakeChat

OTHER = PlaceRef(PLACE.platform, "T1/C2")


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(service, "BELL_WAIT_SECONDS", 0.1)  # after each the desk is cleared
    return World(tmp_path)


def posts_of(world: World, run: Any) -> list[str]:
    """Names of the slots of a run, in the order in which they were posted."""
    return [post.once.partition("/")[2] for post in world.chat.posts if post.once.startswith(f"{run}/")]


# -- answers that get lost --------------------------------------------------------------------------------------


@pytest.mark.case("ST-7")
async def test_a_post_whose_answer_was_lost_is_found_and_not_posted_again(world: World) -> None:
    async with world.bot():
        runner = await world.started()
        await until(lambda: world.chat.calls.count("edit") > 0)
        world.chat.lose_answer()
        await runner.says("One.", "Two.")
        await world.post("Two.")
    assert posts_of(world, runner.run) == ["card", "say:4:1", "say:5:1"]
    assert world.chat.calls.count("find") == 1


async def test_a_post_that_got_no_answer_and_is_not_there_is_looked_for_and_then_posted(world: World) -> None:
    async with world.bot():
        runner = await world.started()
        world.chat.fail("post", ChatUnknownError("timed out"))
        await runner.says("One.", "Two.")
        await world.post("Two.")
    assert posts_of(world, runner.run) == ["card", "say:4:1", "say:5:1"]
    after = world.chat.calls[world.chat.calls.index("find") :]
    assert after[:2] == ["find", "post"]


async def test_a_card_whose_answer_was_lost_still_opens_its_thread(world: World) -> None:
    world.chat.lose_answer()
    async with world.bot():
        runner = await world.started()
        thread = await world.thread(runner.run)
        await runner.says("One.")
        await world.post("One.")
    assert len(world.chat.roots()) == 1
    assert world.said(thread) == ["One."]


@pytest.mark.case("TH-1")
async def test_words_below_a_card_of_which_we_do_not_know_yet_reach_its_run(world: World) -> None:
    world.chat.lose_answer()
    world.chat.fail("find", ChatUnknownError("timed out"), times=2)
    async with world.bot():
        await world.chat.summon("write primes")
        await world.chat.until(lambda chat: chat.roots())
        await world.chat.say(world.chat.roots()[0].ref.thread, "and sort them")
        runner = await world.taken_up()
        assert (await runner.heard(Say)).text == "and sort them"
    assert len(world.chat.roots()) == 1


@pytest.mark.case("AS-3")
async def test_words_below_a_question_of_which_we_do_not_know_yet_that_it_stands_are_its_answer(world: World) -> None:
    async with world.bot():
        runner = await world.started()
        world.chat.lose_answer()
        world.chat.fail("find", ChatUnknownError("timed out"))
        await runner.asks("Which base?", "Ten", "Two")
        post = await world.post("Which base?")
        await world.chat.say(post.ref.thread, "Ten")
        assert (await runner.heard(Answer)).text == "Ten"


async def test_a_stop_does_not_wait_for_a_question_of_which_we_do_not_know_that_it_stands(world: World) -> None:
    async with world.bot():
        runner = await world.started()
        thread = await world.thread(runner.run)
        world.chat.lose_answer()
        world.chat.fail("find", ChatUnknownError("timed out"), times=1_000)
        await runner.asks("Which base?", "Ten", "Two")
        await world.post("Which base?")
        await world.chat.say(thread, "!stop")
        await runner.heard(Hold)


async def test_a_lost_answer_in_one_thread_does_not_hold_up_another(world: World) -> None:
    world.chat = bad = BadChat(world, "ask:1:q1", ChatUnknownError("timed out"))
    async with world.bot():
        first = await world.started("first")
        second = await world.started("second")
        await first.asks("A question that never gets through?")
        await until(lambda: bad.tries >= 2)
        since = world.clock.now()
        for text in ("One.", "Two.", "Three."):
            await second.says(text)
        await world.post("Three.")
        assert world.clock.now() - since < 5
        await until(lambda: bad.tries >= 5)
        assert world.clock.now() - since > 10  # it rests longer and longer, alone


# -- too many calls ---------------------------------------------------------------------------------------------


@pytest.mark.case("SL-3")
async def test_a_place_that_is_told_to_wait_waits_and_keeps_its_order_and_asks_go_first(world: World) -> None:
    async with world.bot():
        runner = await world.started()
        thread = await world.thread(runner.run)
        before = world.clock.now()
        world.chat.fail("post", ChatBusyError("too many", retry_after=10.0))
        await runner.says("One.", "Two.")
        await until(lambda: world.chat.calls.count("post") == 2)
        await runner.asks("A or B?", "A", "B")
        await world.post("Two.")
        assert world.chat.thread(thread)[1].at >= before + 10
    assert posts_of(world, runner.run) == ["card", "ask:1:q1", "say:4:1", "say:5:1"]
    assert "find" not in world.chat.calls  # a refusal with a time is a refusal


async def test_another_place_goes_on_while_one_waits(world: World) -> None:
    async with world.bot():
        first = await world.started("first")
        second = await world.started("second", place=OTHER)
        world.chat.fail("post", ChatBusyError("too many", retry_after=1_000.0))
        await first.says("One.")
        await until(lambda: world.chat.calls.count("post") == 3)
        await second.says("Two.")
        await world.post("Two.")
    assert world.find("One.") is None


async def test_edits_that_must_wait_do_not_hold_up_posts_and_only_the_newest_goes_out(world: World) -> None:
    async with world.bot():
        runner = await world.started()
        card = world.chat.roots()[0]
        await until(lambda: "Working" in said(card))
        shown = len(card.cards)
        world.chat.fail("edit", ChatBusyError("too many", retry_after=15.0))
        for step in ("Plan", "Build", "Check"):
            await runner.tell("step", step, index=1, total=3)
        await world.post("Check")
        await until(lambda: "Check" in said(card))
    assert [("Plan" in str(each), "Build" in str(each)) for each in card.cards[shown:]] == [(False, False)]


# -- refused, deleted, gone -------------------------------------------------------------------------------------


async def test_a_card_that_is_refused_stands_as_plain_text_with_its_buttons(world: World) -> None:
    async with world.bot():
        runner = await world.started()
        world.chat.fail("post", ChatRefusedError("invalid_blocks"))
        await runner.asks("A or B?", "A", "B")
        post = await world.post("A or B?")
    assert isinstance(post.card.body[0], Fence)
    assert [button.label for button in post.card.buttons][:2] == ["A", "B"]


async def test_a_card_that_is_refused_even_as_plain_text_is_given_up_and_others_go_on(world: World) -> None:
    async with world.bot():
        runner = await world.started()
        await until(lambda: world.chat.calls.count("edit") > 0)
        world.chat.fail("post", ChatRefusedError("invalid_blocks"), times=2)
        await runner.says("One.", "Two.")
        await world.post("Two.")
        await runner.ends()
        await world.post("Done: write primes")
        await world.left(runner.run)
    assert posts_of(world, runner.run) == ["card", "say:5:1", "end:6"]
    assert world.chat.calls.count("post") == 5


async def test_an_edit_that_is_refused_is_tried_again_when_the_card_has_changed(world: World) -> None:
    async with world.bot():
        runner = await world.started()
        card = world.chat.roots()[0]
        await until(lambda: "Working" in said(card))
        world.chat.fail("edit", ChatRefusedError("invalid_blocks"), times=2)
        await runner.tell("step", "Plan", index=1, total=3)
        await until(lambda: not world.chat._faults.get("edit"))
        await runner.tell("step", "Build", index=2, total=3)
        await until(lambda: "Build" in said(card))


async def test_a_fault_of_ours_with_one_card_costs_that_card_and_nothing_else(world: World) -> None:
    world.chat = bad = BadChat(world, "say:4:1", ValueError("a fault in the adapter"))
    async with world.bot():
        runner = await world.started()
        await runner.says("One.", "Two.")
        await world.post("Two.")
    assert posts_of(world, runner.run) == ["card", "say:5:1"]
    assert bad.tries == 2


@pytest.mark.case("SL-5")
async def test_a_thread_whose_place_is_gone_is_left_alone_after_one_refusal_and_others_go_on(world: World) -> None:
    async with world.bot():
        first = await world.started("first")
        second = await world.started("second", place=OTHER)
        await until(lambda: world.chat.calls.count("edit") >= 2)
        world.chat.archive(PLACE)
        calls = world.chat.calls.count("post")
        await first.says("One.", "Two.")
        await until(lambda: world.chat.calls.count("post") == calls + 1)
        await first.ends()
        await second.says("Three.")
        await world.post("Three.")
        await world.left(first.run)
    assert world.chat.calls.count("post") == calls + 2


async def test_a_reply_to_words_in_a_thread_that_is_gone_ends_all_the_same(world: World) -> None:
    async with world.bot():
        runner = await world.started()
        thread = await world.thread(runner.run)
        world.chat.archive(PLACE)
        await world.chat.say(thread, "!status")
        await world.chat.say(thread, "!help")
        await world.quiet()


async def test_a_message_that_somebody_deleted_is_not_posted_again_and_the_thread_goes_on(world: World) -> None:
    async with world.bot():
        runner = await world.started()
        await world.thread(runner.run)
        ask = await runner.asks("A or B?", "A", "B")
        card = world.chat.roots()[0]
        world.chat.posts.remove(await world.post("A or B?"))
        await until(lambda: "q1" in said(card))
        await runner.answered(ask, "A")
        await until(lambda: "q1" not in said(card))  # edits of questions go before those of cards
        await runner.says("One.")
        await runner.ends()
        await world.post("Done: write primes")
        await world.left(runner.run)
    assert posts_of(world, runner.run) == ["card", "say:6:1", "end:7"]


async def test_a_deleted_card_does_not_silence_its_thread(world: World) -> None:
    async with world.bot():
        runner = await world.started()
        thread = await world.thread(runner.run)
        await until(lambda: "Working" in said(world.chat.roots()[0]))
        world.chat.posts.remove(world.chat.roots()[0])
        edits = world.chat.calls.count("edit")
        await runner.tell("step", "Plan", index=1, total=3)
        await until(lambda: world.chat.calls.count("edit") > edits)
        await runner.says("One.")
        await world.post("One.")
    assert said(world.chat.thread(thread)[-1]) == "One."


# -- order and urgency ------------------------------------------------------------------------------------------


async def test_a_reply_goes_out_before_the_prose_of_a_busy_run(tmp_path: Path) -> None:
    world = World(tmp_path, abilities=dataclasses.replace(ABILITIES, post_every=5.0, post_burst=2))
    async with world.bot():
        runner = await world.started()
        thread = await world.thread(runner.run)
        await runner.says("One.", "Two.", "Three.", "Four.")
        await world.post("One.")
        await world.chat.say(thread, "!status")
        await world.post("No question is waiting")
    texts = world.said(thread)
    assert len([text for text in texts if text in ("One.", "Two.", "Three.", "Four.")]) <= 2


@pytest.mark.case("TH-2")
async def test_five_runs_in_one_place_each_have_their_own_thread(world: World) -> None:
    async with world.bot():
        for number in range(5):
            await world.chat.summon(f"run number {number}")
        runners = [await world.taken_up(number + 1) for number in range(5)]
        for runner in runners:
            await runner.says(f"I am {runner.run}.")
        for runner in runners:
            await world.post(f"I am {runner.run}.")
    assert {tuple(world.said(post.ref.thread)) for post in world.chat.roots()} == {
        (f"I am {runner.run}.",) for runner in runners
    }


async def test_a_run_that_cannot_be_drawn_does_not_hold_up_the_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = cards.slots

    def fragile(view: Any, **how: Any) -> Any:
        if view.request == "first":
            raise ValueError("cannot be drawn")
        return draw(view, **how)

    monkeypatch.setattr("bridge.showing.slots", fragile)
    async with world.bot():
        await world.chat.summon("first")
        await world.chat.summon("second")
        await until(lambda: len(world.launcher.orders) == 2)
        second = next(order for order in world.launcher.orders if order.request == "second")
        runner = Runner(world.memory, second.run)
        await runner.begin()
        await runner.says("One.")
        await world.post("One.")
    assert len(world.chat.roots()) == 1


# -- the store --------------------------------------------------------------------------------------------------


async def test_a_store_that_is_away_in_the_middle_costs_nothing(world: World) -> None:
    async with world.bot():
        runner = await world.started()
        thread = await world.thread(runner.run)
        for number in range(5):
            await runner.says(f"Number {2 * number}.", f"Number {2 * number + 1}.")
            world.memory.away = True
            await asyncio.sleep(0.02)
            world.memory.away = False
        await world.post("Number 9.")
    assert world.said(thread) == [f"Number {number}." for number in range(10)]


# -- receipts ---------------------------------------------------------------------------------------------------


async def receipt(runner: Runner, message: MessageRef, command: str = "c1") -> None:
    where = {"platform": message.thread.platform, "thread": message.thread.key, "key": message.key}
    by = {"id": "T1/U1", "name": "Anna"}
    await runner.tell("receipt", command=command, do="say", state="taken", position="1", by=by, message=where)
    await runner.tell("receipt", command=command, do="say", state="delivered", by=by, message=where)


@pytest.mark.parametrize(
    "error", [ChatBusyError("too many", retry_after=3.0), ChatUnknownError("timed out")], ids=["busy", "no answer"]
)
async def test_a_receipt_that_did_not_get_through_is_put_later(world: World, error: Any) -> None:
    async with world.bot():
        runner = await world.started()
        thread = await world.thread(runner.run)
        words = await world.chat.say(thread, "and sort them")
        world.chat.fail("sign", error)
        await receipt(runner, words.message)
        await world.chat.until(lambda chat: (words.message, "delivered") in chat.signs)


async def test_a_receipt_that_the_platform_refuses_is_not_tried_for_ever(world: World) -> None:
    async with world.bot():
        runner = await world.started()
        thread = await world.thread(runner.run)
        words = await world.chat.say(thread, "one")
        other = await world.chat.say(thread, "two")
        world.chat.fail("sign", ChatRefusedError("no_permission"))
        world.chat.fail("sign", ChatUnknownError("timed out"), times=1_000)
        await receipt(runner, words.message)
        await receipt(runner, other.message, "c2")
        await runner.ends()
        await world.left(runner.run)
    assert world.chat.calls.count("sign") <= 8


# -- helpers ----------------------------------------------------------------------------------------------------


class BadChat(FakeChat):
    """A chat that has trouble with one slot, for ever."""

    def __init__(self, world: World, slot: str, error: Exception) -> None:
        super().__init__(now=world.clock.now)
        self.slot, self.error, self.tries = slot, error, 0

    async def post(self, where: PlaceRef | ThreadRef, card: Card, *, once: str) -> tuple[PostRef, float]:
        if once.partition("/")[2] == self.slot:
            self.tries += 1
            raise self.error
        return await super().post(where, card, once=once)
