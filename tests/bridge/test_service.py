from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from bridge import service
from bridge.commands import Answer, Say
from bridge.errors import BridgeError, ChatBusyError, ChatError, ChatUnknownError
from bridge.model import MessageRef, Person, RunId, Summons, Tap, ThreadRef, Words
from tests.bridge.bot import LEASE, SPEED, Crash, Runner, World, said, until
from tests.fakes.chat import ANNA, BEN, PLACE, FakeChat


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(service, "BELL_WAIT_SECONDS", 0.1)  # after each the desk is cleared
    return World(tmp_path)


async def test_a_run_from_a_start_to_its_end(world: World) -> None:
    async with world.bot():
        runner = await world.started("write primes")
        thread = await world.thread(runner.run)
        ask = await runner.asks("Which base?", "Ten", "Two")
        post = await world.post("Which base?")
        await world.chat.tap(post, "Two")
        answer = await runner.heard(Answer)
        assert (answer.ask, answer.text, answer.fence) == (ask, "Two", 1)
        await runner.answered(ask, "Two")
        await world.chat.say(thread, "and sort them")
        assert (await runner.heard(Say)).text == "and sort them"
        await runner.says("It works.")
        await runner.ends()
        await world.post("It works.")
        await world.chat.until(lambda _: len(world.said(thread)) == 3)
        assert "primes" in said(world.chat.roots()[0])


# -- hearing ----------------------------------------------------------------------------------------------------


@pytest.mark.case("RD-10")
async def test_what_is_not_kept_in_time_is_refused_and_nothing_of_it_happens_later(world: World) -> None:
    async with world.bot():
        runner = await world.started()
        thread = await world.thread(runner.run)
        late = words(thread, "w1", "and sort them", world.clock.now())
        world.memory.slow = 1.0  # its effect comes after the deadline, and the answer never
        assert not await world.chat.deliver(late)
        assert not await world.chat.deliver(late)  # its author was told so; it is not taken half an hour later
        world.memory.slow = 0.0
        await until(lambda: not world.bridges[0]._doubted)
        await world.chat.deliver(late)
        await world.chat.say(thread, "next")
        assert (await runner.heard(Say)).text == "next"
        await world.quiet()


async def test_what_the_store_took_although_its_answer_came_too_late_is_taken_out_again(world: World) -> None:
    async with world.bot():
        runner = await world.started()
        thread = await world.thread(runner.run)
        world.memory.slow = 0.3  # the effect comes within the deadline of 0.2 s, the answer after it
        assert not await world.chat.deliver(words(thread, "w1", "and sort them", world.clock.now()))
        world.memory.slow = 0.0
        await until(lambda: not world.bridges[0]._doubted)
        await world.chat.say(thread, "next")
        assert (await runner.heard(Say)).text == "next"


@pytest.mark.case("RD-10")
async def test_with_the_store_away_people_are_refused_at_once_and_heard_again_when_it_is_back(world: World) -> None:
    async with world.bot():
        runner = await world.started()
        thread = await world.thread(runner.run)
        world.memory.away = True
        for number in range(3):
            assert not await world.chat.deliver(words(thread, f"w{number}", "lost", world.clock.now()))
        await asyncio.sleep(0.1)
        world.memory.away = False
        await world.chat.say(thread, "heard")
        assert (await runner.heard(Say)).text == "heard"
        await runner.says("One.")
        await world.post("One.")


async def test_what_is_delivered_again_before_it_could_be_taken_back_is_refused_again(world: World) -> None:
    async with world.bot():
        runner = await world.started()
        thread = await world.thread(runner.run)
        late = words(thread, "w1", "and sort them", world.clock.now())
        world.memory.away = True
        assert not await world.chat.deliver(late)
        world.memory.away = False
        assert not await world.chat.deliver(late)  # its author was told that nobody read it
        await world.chat.say(thread, "next")
        assert (await runner.heard(Say)).text == "next"


@pytest.mark.case("TH-1")
async def test_words_below_a_card_that_a_bot_posted_as_it_died_reach_the_run(world: World) -> None:
    crash = Crash("chat.post", after=True)
    async with world.bot(crash):
        await world.chat.summon("write primes")
        await crash.dead.wait()
    thread = world.chat.roots()[0].ref.thread
    await world.memory.inbox.accept(words(thread, "w1", "and sort them", world.clock.now()))
    async with world.bot():
        runner = await world.taken_up()
        assert (await runner.heard(Say)).text == "and sort them"
    assert len(world.chat.roots()) == 1


async def test_bells_that_rang_while_the_store_was_away_are_made_up_for(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "SWEEP_SECONDS", 1e9)
    async with world.bot():
        runner = await world.started()
        world.memory.away = True
        await asyncio.sleep(0.05)
        world.memory.away = False
        await runner.says("One.")
        world.memory._data.rings.clear()
        await world.post("One.")


# -- looking after ----------------------------------------------------------------------------------------------


async def test_a_dead_runner_is_said_and_its_question_is_withdrawn(world: World) -> None:
    async with world.bot():
        runner = await world.started()
        await runner.asks("Which base?", "Ten", "Two")
        post = await world.post("Which base?")
        began = world.clock.now()
        await runner.dies()
        await world.post("has not been heard of")
        assert world.clock.now() - began < 30
        await until(lambda: not post.card.buttons)
    assert "Withdrawn" in said(post)


async def test_a_run_is_not_taken_for_lost_because_the_store_was_away_for_longer_than_its_lease(world: World) -> None:
    async with world.bot():
        runner = await world.started()
        await runner.dies()
        await asyncio.sleep(4.0 / SPEED)  # seen without a holder, and then nobody could renew it
        world.memory.away = True
        await asyncio.sleep(LEASE / SPEED)
        world.memory.away = False
        await asyncio.sleep(3.0 / SPEED)
        await runner.lives()
        await runner.says("One.")
        await world.post("One.")
        standing = await world.memory.runs.standing(runner.run)
    assert standing is not None
    assert (standing.status, standing.fence) == ("running", 1)


@pytest.mark.case("ST-11")
async def test_a_run_that_cannot_be_read_does_not_hold_up_the_others(world: World) -> None:
    async with world.bot():
        first = await world.started("first")
        second = await world.started("second")
    world.memory._data.desks[first.run].slots["card"] = b"not a slot"
    async with world.bot():
        await first.says("One.")
        await second.says("Two.")
        await world.post("Two.")
    assert world.find("One.") is None


# -- the desk ---------------------------------------------------------------------------------------------------


async def test_a_run_that_has_ended_and_stands_leaves_all_memory(world: World) -> None:
    async with world.bot() as bridge:
        runner = await world.started()
        thread = await world.thread(runner.run)
        await world.chat.say(thread, "!status")
        await runner.says("One.")
        await runner.ends()
        await world.post("Done: write primes")
        await world.left(runner.run)
        await world.chat.say(thread, "!status")  # it is loaded once more, and leaves again
        await until(lambda: len([text for text in world.said(thread) if "Cost" in text]) == 3)
        await world.quiet()
        await world.left(runner.run)
        assert bridge._desk.lives == []
        assert bridge._showing._sights == {}
        assert bridge._showing._outbox._served == {}
        assert bridge._starter._watched == {}
        assert dict(bridge._starter._locks) == {}
        assert bridge._lanes._waiting == {}
    assert set(world.memory._data.desks[runner.run].slots) == {"card"}


# -- one bot an account, and its end ------------------------------------------------------------------------------


async def test_a_second_bot_on_the_account_is_refused(world: World) -> None:
    await world.memory.runs.lead(world.chat.account, owner="bot:elsewhere:1:1", ttl=1_000)
    with pytest.raises(BridgeError, match="another bot serves fake/T1/U0"):
        await world.bridge(world.memory).run(until=asyncio.Event())
    assert world.chat.calls == []


async def test_a_bot_whose_account_was_taken_over_says_nothing_more_and_ends(world: World) -> None:
    async def serve() -> None:
        async with world.bot():
            runner = await world.started()
            world.memory._data.leads.clear()
            await world.memory.runs.lead(world.chat.account, owner="bot:elsewhere:1:1", ttl=1_000)
            world.bridges[0]._lead._until = 0.0  # as when it had stood still for longer than the lease
            await runner.says("One.")
            await asyncio.sleep(5)

    with pytest.RaisesGroup(
        pytest.RaisesGroup(pytest.RaisesExc(BridgeError, match="another bot has taken over fake/T1/U0"))
    ):
        await serve()
    assert world.find("One.") is None


async def test_a_bot_that_is_told_to_stop_finishes_its_replies_and_leaves_the_rest_for_the_next_one(
    world: World,
) -> None:
    async with world.bot():
        runner = await world.started()
        thread = await world.thread(runner.run)
        await world.chat.say(thread, "!status")
        await world.chat.say(thread, "!help")
    assert len([text for text in world.said(thread) if "Cost" in text]) <= 1
    async with world.bot():
        await world.quiet()
    assert len(world.said(thread)) == 2


async def test_a_bot_can_be_stopped_while_the_store_is_away(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "DRAIN_SECONDS", 0.1)
    async with asyncio.timeout(2):
        async with world.bot():
            runner = await world.started()
            thread = await world.thread(runner.run)
            await world.chat.say(thread, "!status")
            world.memory.away = True
            assert not await world.chat.deliver(words(thread, "w1", "lost", world.clock.now()))
    world.memory.away = False


# -- crashes ----------------------------------------------------------------------------------------------------

STORY = ["One.", "Two.", "Three."]


async def people_and_runner(world: World) -> RunId:
    """A whole story; the people and the runner know nothing of bots that die meanwhile."""
    at = world.clock.now
    await world.accepted(Summons(id="s1", place=PLACE, author=ANNA, text="write primes", at=at(), private="p"))
    runner = await world.taken_up()
    thread = await world.thread(runner.run)
    await runner.says("One.")
    ask = await runner.asks("Which base?", "Ten", "Two")
    post = await world.post("Which base?")
    action = post.card.buttons[0].action
    await world.accepted(Tap(id="t1", thread=thread, author=ANNA, action=action, at=at()))
    assert (await runner.heard(Answer)).text == "Ten"
    await runner.answered(ask, "Ten")
    await world.accepted(words(thread, "w1", "and sort them", at()))
    assert (await runner.heard(Say)).text == "and sort them"
    await world.accepted(words(thread, "w2", "!status", at()))
    await world.post("Cost $0.00")
    await runner.says("Two.", "Three.")
    await runner.ends()
    await world.post("Done: write primes")
    return runner.run


def words(thread: ThreadRef, id: str, text: str, at: float, author: Person = ANNA) -> Words:  # noqa: A002
    message = MessageRef(thread, f"{thread.key}/{id}")
    return Words(id=id, thread=thread, message=message, author=author, text=text, at=at)


@pytest.mark.case("ST-7")
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", range(1, 61))
async def test_a_bot_that_dies_at_any_call_leaves_a_thread_that_the_next_one_completes(
    world: World, at: int, after: bool
) -> None:
    crash = Crash(at, after=after)
    async with asyncio.TaskGroup() as group:
        story = group.create_task(people_and_runner(world))
        dying = group.create_task(crash.dead.wait())
        async with world.bot(crash):
            await asyncio.wait({story, dying}, return_when=asyncio.FIRST_COMPLETED)
        dying.cancel()
        async with world.bot():
            run = await story
            await world.quiet()
            await until(lambda: set(world.memory._data.desks[run].slots) <= {"card"})
    await the_story_stands(world, run)


async def the_story_stands(world: World, run: RunId) -> None:
    below = world.said(await world.thread(run))
    assert len({post.once for post in world.chat.posts}) == len(world.chat.posts)  # nothing stands twice
    assert [text for text in below if text in STORY] == STORY
    assert "Anna answered" in below[0] or "Anna answered" in below[1]
    assert below[-1].startswith("Done: write primes")
    assert len(below) == len(STORY) + 3  # the question, the reply to !status, the end
    assert said(world.chat.roots()[0]) == "write primes\nDone"
    assert [type(command) for command in await Runner(world.memory, run).commands()] == [Answer, Say]
    assert len({order.run for order in world.launcher.orders}) == 1
    assert world.chat.whispers == []


class RoughChat(FakeChat):
    """A chat that loses calls and answers, refuses for a while, and stays the same for the same seed."""

    def __init__(self, world: World, seed: int) -> None:
        super().__init__(now=world.clock.now)
        self.random = random.Random(seed)  # noqa: S311 - no secret

    def _called(self, method: str) -> ChatError | None:
        if method != "whisper":
            match self.random.randrange(8):
                case 0:
                    self.fail(method, ChatUnknownError("lost before"))
                case 1:
                    self.lose_answer(method)
                case 2:
                    self.fail(method, ChatBusyError("too many", retry_after=self.random.random() * 3))
        return super()._called(method)


@pytest.mark.parametrize("seed", range(12))
async def test_lost_calls_and_dying_bots_leave_the_same_thread(world: World, seed: int) -> None:
    dice = random.Random(1_000 + seed)  # noqa: S311 - no secret
    world.chat = RoughChat(world, seed)
    async with asyncio.TaskGroup() as group:
        story = group.create_task(people_and_runner(world))
        for _ in range(6):
            crash = Crash(dice.randrange(4, 25), after=dice.random() < 0.5)
            dying = group.create_task(crash.dead.wait())
            async with world.bot(crash):
                await asyncio.wait({story, dying}, return_when=asyncio.FIRST_COMPLETED, timeout=1.0)
                crash.kill()
            dying.cancel()
        async with world.bot():
            run = await story
            await world.quiet()
            await until(lambda: set(world.memory._data.desks[run].slots) <= {"card"})
            await until(lambda: said(world.chat.roots()[0]).endswith("Done"))
    await the_story_stands(world, run)


async def a_second_story(world: World) -> RunId:
    """Words that could be two things, a second person who is late, an end, and a start where it was."""
    at = world.clock.now
    await world.accepted(Summons(id="s1", place=PLACE, author=ANNA, text="write primes", at=at(), private="p"))
    runner = await world.taken_up()
    thread = await world.thread(runner.run)
    ask = await runner.asks("Which base?", "Ten", "Two")
    post = await world.post("Which base?")
    ten, two = (button.action for button in post.card.buttons[:2])
    await world.accepted(words(thread, "w1", "whatever is usual", at()))
    pick = await world.post("whatever is usual")
    to_agent = next(button.action for button in pick.card.buttons if button.label == "Note for the agent")
    await world.accepted(Tap(id="t1", thread=thread, author=BEN, action=to_agent, at=at()))
    assert (await runner.heard(Say)).text == "whatever is usual"
    await world.accepted(Tap(id="t2", thread=thread, author=ANNA, action=two, at=at()))
    await world.accepted(Tap(id="t3", thread=thread, author=BEN, action=ten, at=at()))
    assert (await runner.heard(Answer)).text == "Two"
    await world.whispered("already answered by Anna: Two")
    await runner.answered(ask, "Two")
    await runner.says("One.")
    await runner.ends()
    await world.post("Done: write primes")
    await world.accepted(words(thread, "w2", "!continue and sort them", at()))
    await until(lambda: next((order for order in world.launcher.orders if order.reopen), None))
    await runner.begin(reopen=True)
    await runner.says("Two.")
    await runner.ends()
    await until(lambda: len([post for post in world.chat.posts if "/end:" in post.once]) == 2)
    return runner.run


@pytest.mark.case("ST-7")
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", range(10, 75))
async def test_a_bot_that_dies_while_words_are_sorted_or_a_run_is_started_again_does_each_once(
    world: World, at: int, after: bool
) -> None:
    crash = Crash(at, after=after)
    async with asyncio.TaskGroup() as group:
        story = group.create_task(a_second_story(world))
        dying = group.create_task(crash.dead.wait())
        async with world.bot(crash):
            await asyncio.wait({story, dying}, return_when=asyncio.FIRST_COMPLETED)
        dying.cancel()
        async with world.bot():
            run = await story
            await world.quiet()
    assert len({post.once for post in world.chat.posts}) == len(world.chat.posts)
    assert [type(command) for command in await Runner(world.memory, run).commands()] == [Say, Answer]
    orders = [order for order in world.launcher.orders if order.reopen]
    assert {order.words for order in orders} == {"and sort them"}
    standing = await world.memory.runs.standing(run)
    assert standing is not None
    assert (standing.status, standing.fence) == ("done", 2)
    pick = await world.post("whatever is usual")
    assert pick.card.buttons == ()
    texts = world.said(await world.thread(run))
    assert [text.split("\n")[0] for text in texts if not text.startswith(("q1", "Anna wrote"))] == [
        "One.",
        "Done: write primes",
        "Started again by Anna: the run goes on where it was (start 2).",
        "Two.",
        "Done: write primes",
    ]
