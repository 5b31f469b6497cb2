from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bridge import service
from bridge.commands import Answer, Consult, Hold, Interrupt, Say
from bridge.errors import ChatBusyError, LaunchError
from bridge.model import MessageRef, Person, PersonId, RunId, Settled, Summons, Tap, ThreadRef, Words
from bridge.ports import Order, Standing
from tests.bridge.bot import Runner, World, until
from tests.fakes.chat import ANNA, BEN, PLACE, FakePost
from tests.fakes.launcher import FakeLauncher


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(service, "BELL_WAIT_SECONDS", 0.1)  # after each the desk is cleared
    return World(tmp_path)


STRANGER = Person(id=PersonId("T1/U9"), name="Zoe")


async def asked(world: World, runner: Runner) -> FakePost:
    await runner.asks("Which base?", "Ten", "Two")
    return await world.post("Which base?")


def pick(post: FakePost, label: str) -> str:
    return next(button.action for button in post.card.buttons if button.label == label)


# -- once -------------------------------------------------------------------------------------------------------


@pytest.mark.case("DL-1")
async def test_the_same_words_delivered_twice_have_one_effect(world: World) -> None:
    async with world.bot():
        runner = await world.started()
        thread = await world.thread(runner.run)
        first = await world.chat.say(thread, "and sort them")
        assert await world.chat.deliver(first)
        await world.chat.say(thread, "last")
        await world.quiet()
    assert [command.text for command in await runner.commands() if isinstance(command, Say)] == [
        "and sort them",
        "last",
    ]


@pytest.mark.case("DL-1")
async def test_the_same_start_delivered_twice_is_one_run(world: World) -> None:
    async with world.bot():
        summons = Summons(id="s1", place=PLACE, author=ANNA, text="write primes", at=world.clock.now())
        await world.chat.deliver(summons)
        runner = await world.taken_up()
        await runner.ends()
        await world.chat.deliver(summons)
        await world.quiet()
        # Our own inbox gives it again, as after a crash before it was done: the run is over, and is not woken up.
        await world.bridges[0]._acting._act_on("again", summons)
        standing = await world.memory.runs.standing(runner.run)
    assert len(world.launcher.orders) == 1
    assert standing is not None
    assert standing.status == "done"


@pytest.mark.case("AS-4")
async def test_of_two_people_who_answer_at_once_the_second_is_told_in_private_who_was_first(world: World) -> None:
    async with world.bot():
        runner = await world.started()
        post = await asked(world, runner)
        ten, two = pick(post, "Ten"), pick(post, "Two")
        async with asyncio.TaskGroup() as group:
            group.create_task(world.chat.press(post, ten, author=ANNA))
            group.create_task(world.chat.press(post, two, author=BEN))
        assert await world.whispered("q1 was already answered by Anna: Ten") == BEN.id
        await world.quiet()
        await world.post("Anna answered")
    assert [command.text for command in await runner.commands() if isinstance(command, Answer)] == ["Ten"]


@pytest.mark.case("AS-4")
async def test_whoever_was_a_moment_late_by_the_store_alone_is_told_so_too(world: World) -> None:
    async with world.bot():
        runner = await world.started()
        post = await asked(world, runner)
        now = world.clock.now()
        # Somebody answered elsewhere, at the very same moment; this process does not know of it yet.
        first = Settled(ask=f"{runner.run}/1/q1", by=ANNA, how="answered", text="Ten", at=now)
        await world.memory.threads.settle(runner.run, first)
        tap = Tap(id="t2", thread=post.ref.thread, author=BEN, action=pick(post, "Two"), at=now)
        await world.chat.deliver(tap)
        assert await world.whispered("q1 was already answered by Anna: Ten") == BEN.id
        await world.quiet()
    assert await runner.commands() == []


async def test_a_late_tap_gets_a_private_word_and_nothing_is_sent(world: World) -> None:
    async with world.bot():
        runner = await world.started()
        post = await asked(world, runner)
        ten = pick(post, "Ten")
        await runner.tell("ask", "", id="q1", options=[], state="timeout", answer="")
        await until(lambda: not post.card.buttons)
        await world.chat.press(post, ten)
        await world.whispered("q1 timed out")
        await world.quiet()
    assert await runner.commands() == []


@pytest.mark.case("AS-12")
async def test_a_button_of_an_older_attempt_does_not_answer_the_question_of_a_newer_one(world: World) -> None:
    async with world.bot():
        runner = await world.started()
        old = await asked(world, runner)
        ten = pick(old, "Ten")
        await runner.ends("failed", "out of memory")
        await world.post("out of memory")
        await world.chat.say(old.ref.thread, "!continue")
        again = await world.taken_up(2)
        await again.asks("Which order?", "Up", "Down")
        await world.post("Which order?")
        await world.chat.press(old, ten)
        await world.whispered("q1 was withdrawn")
        await world.quiet()
    assert await again.commands() == []


# -- words ------------------------------------------------------------------------------------------------------


async def test_words_in_a_thread_become_the_one_command_that_they_are(world: World) -> None:
    async with world.bot():
        runner = await world.started()
        thread = await world.thread(runner.run)
        for text in ("and sort them", "?is it done", "!stop use python", "!stop"):
            await world.chat.say(thread, text)
        assert (await runner.heard(Say)).text == "and sort them"
        assert (await runner.heard(Consult)).question == "is it done"
        assert (await runner.heard(Interrupt)).text == "use python"
        await runner.heard(Hold)


@pytest.mark.case("SE-1")
@pytest.mark.case("SE-2")
async def test_a_stranger_changes_nothing_and_is_told_so_in_private(world: World) -> None:
    async with world.bot():
        runner = await world.started()
        post = await asked(world, runner)
        await world.chat.press(post, pick(post, "Ten"), author=STRANGER)
        await world.chat.say(post.ref.thread, "!stop", author=STRANGER)
        await world.chat.say(post.ref.thread, "do something else", author=STRANGER)
        await world.quiet()
        assert pick(post, "Ten")
    assert await runner.commands() == []
    assert [(each.person, each.text.split(" may ")[0]) for each in world.chat.whispers] == [
        (STRANGER.id, "Only Anna and people on the allow-list")
    ] * 3
    assert await world.memory.threads.settlements(runner.run) == {}


async def test_words_to_somebody_else_are_left_alone_and_that_is_said_once(world: World) -> None:
    async with world.bot():
        runner = await world.started()
        thread = await world.thread(runner.run)
        for text in ("// lunch?", "// yes", "// at noon"):
            await world.chat.say(thread, text)
        await world.quiet()
    async with world.bot():
        await world.chat.say(thread, "// after a restart")
        await world.quiet()
    assert await runner.commands() == []
    assert len(world.said(thread)) == 1


@pytest.mark.case("TH-6")
async def test_words_where_no_run_is_reach_nobody(world: World) -> None:
    async with world.bot():
        runner = await world.started()
        await asked(world, runner)
        elsewhere = ThreadRef(PLACE.platform, f"{PLACE.key}/elsewhere")
        await world.chat.say(elsewhere, "Ten")
        await world.chat.say(elsewhere, "Ten", mentions_us=True)
        await world.whispered("There is no run in this thread")
        await world.quiet()
    assert await runner.commands() == []
    assert len(world.chat.whispers) == 1


# -- words that could be two things -----------------------------------------------------------------------------


@pytest.mark.parametrize(("label", "kind"), [("Answer to q1", Answer), ("Note for the agent", Say)])
async def test_words_that_could_be_two_things_are_what_a_person_says_they_are(
    world: World, label: str, kind: type[Answer | Say]
) -> None:
    async with world.bot():
        runner = await world.started()
        post = await asked(world, runner)
        await world.chat.say(post.ref.thread, "whatever is usual")
        choice = await world.post("whatever is usual")
        assert await runner.commands() == []
        await world.chat.tap(choice, label, author=BEN)
        command = await runner.heard(kind)
        await world.quiet()
        await until(lambda: not choice.card.buttons)
    assert command.text == "whatever is usual"


@pytest.mark.parametrize("label", ["Answer to q1", "Note for the agent"])
async def test_the_choice_outlives_the_bot(world: World, label: str) -> None:
    async with world.bot():
        runner = await world.started()
        post = await asked(world, runner)
        await world.chat.say(post.ref.thread, "whatever is usual")
        choice = await world.post("whatever is usual")
    async with world.bot():
        await world.chat.tap(choice, label)
        await runner.heard(Answer if label == "Answer to q1" else Say)
        await world.quiet()
        await until(lambda: not choice.card.buttons)
    assert len([post for post in world.chat.posts if "/kept:" in post.once]) == 1
    assert len(await runner.commands()) == 1


async def test_words_that_nobody_has_sorted_are_not_guessed_after_a_restart_either(world: World) -> None:
    async with world.bot():
        runner = await world.started()
        post = await asked(world, runner)
        await world.chat.say(post.ref.thread, "whatever is usual")
        choice = await world.post("whatever is usual")
        await world.chat.tap(post, "Ten")
        await runner.heard(Answer)
        await runner.answered("q1", "Ten")
    async with world.bot():
        await until(lambda: [button.label for button in choice.card.buttons] == ["Note for the agent"])
        assert len(await runner.commands()) == 1
        await world.chat.tap(choice, "Note for the agent")
        assert (await runner.heard(Say)).text == "whatever is usual"


@pytest.mark.parametrize("restart", [False, True], ids=["at the end", "after a restart"])
async def test_words_that_nobody_has_sorted_are_answered_when_the_run_is_over(world: World, restart: bool) -> None:
    async with world.bot():
        runner = await world.started()
        post = await asked(world, runner)
        await world.chat.say(post.ref.thread, "whatever is usual")
        choice = await world.post("whatever is usual")
        if not restart:
            await runner.ends()
            await world.post("To go on where it was with these words")
    if restart:
        await runner.ends()
    async with world.bot():
        await world.post("To go on where it was with these words")
        await world.quiet()
        await world.left(runner.run)
    assert choice.card.buttons == ()
    assert world.bridges[-1]._acting._pending == {}
    assert await runner.commands() == []


# -- killing and starting again ---------------------------------------------------------------------------------


async def test_a_run_that_is_killed_ends_at_once_and_says_who_did_it(world: World) -> None:
    async with world.bot():
        runner = await world.started()
        thread = await world.thread(runner.run)
        await world.chat.say(thread, "!kill")
        await world.post("If you are sure: !kill yes")
        assert runner.run in world.launcher.running
        await world.chat.say(thread, "!kill yes")
        await world.post("killed")
        await world.quiet()
    standing = await world.memory.runs.standing(runner.run)
    assert standing is not None
    assert (standing.status, standing.owner) == ("ended", "")


async def test_whoever_kills_a_run_that_has_no_process_here_is_told_so(world: World) -> None:
    async with world.bot():
        runner = await world.started()
        world.launcher.running.clear()
        await world.chat.say(await world.thread(runner.run), "!kill yes")
        assert await world.whispered("No process of this run was found") == ANNA.id
        await world.quiet()


async def test_a_lost_run_is_started_again_with_the_words(world: World) -> None:
    async with world.bot():
        runner = await world.started()
        post = await asked(world, runner)
        await runner.dies()
        await world.post("has not been heard of")
        await until(lambda: not post.card.buttons)
        await world.chat.say(post.ref.thread, "are you there?")
        await world.post("The run is lost. To start it again")
        await world.chat.say(post.ref.thread, "!continue and sort them")
        again = await world.taken_up(2)
        await world.post("Started again by Anna")
    order = world.launcher.orders[1]
    assert (order.run, order.words, order.reopen) == (runner.run, "and sort them", True)
    assert again.fence == 3  # the burial took a number, too


async def test_a_run_is_not_started_again_in_a_workspace_that_another_one_uses(world: World) -> None:
    async with world.bot():
        first = await world.started("first --workspace site")
        await first.ends("failed", "no idea")
        await world.post("no idea")
        await world.started("second --workspace site")
        await world.chat.say(await world.thread(first.run), "!continue")
        assert await world.whispered("workspace 'site' is in use by run") == ANNA.id
        await world.quiet()
        standing = await world.memory.runs.standing(first.run)
    assert standing is not None
    assert standing.status == "failed"
    assert len(world.launcher.orders) == 2


# -- starts -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "who", "why"),
    [
        ("", ANNA, "What should be done?"),
        ("write it --colour red", ANNA, "There is no option `--colour`"),
        (
            "write it --workspace dmeo",
            ANNA,
            "There is no workspace 'dmeo'; did you mean 'demo'? Known: demo, site, zh.",
        ),
        ("write it --flow os:system", ANNA, "There is no flow 'os:system'"),
        ("write it", STRANGER, "You are not on the list"),
        ("write it", Person(id=PersonId(" "), name="?"), "It is not known who you are"),
    ],
)
async def test_a_start_that_cannot_be_is_refused_in_private_with_the_reason(
    world: World, text: str, who: Person, why: str
) -> None:
    async with world.bot():
        await world.chat.summon(text, author=who)
        assert await world.whispered(why) == who.id
        await world.quiet()
    assert world.chat.whispers[0].private == "private-1"
    assert await world.memory.runs.everyone() == []
    assert world.chat.posts == []


async def test_of_two_starts_at_once_in_a_shared_workspace_one_is_refused(world: World) -> None:
    async with world.bot():
        async with asyncio.TaskGroup() as group:
            group.create_task(world.chat.summon("first --workspace site"))
            group.create_task(world.chat.summon("second --workspace site"))
        await world.whispered("workspace 'site' is in use by run")
        await world.quiet()
    assert len(await world.memory.runs.everyone()) == 1


async def test_a_runner_that_cannot_be_started_is_told_in_the_thread(world: World) -> None:
    world.launcher.trouble = "no memory left: start fewer runs"
    async with world.bot():
        await world.chat.summon("write primes")
        await world.post("no memory left: start fewer runs")


async def test_a_thread_speaks_the_language_of_its_workspace(world: World) -> None:
    async with world.bot():
        runner = await world.started("写质数 --workspace zh")
        await runner.ends()
        await world.post("完成:写质数")
    assert world.launcher.orders[0].language == "zh"


# -- one thread's trouble is not another's ----------------------------------------------------------------------


class SlowLauncher(FakeLauncher):
    """Starts the first run only when told to."""

    def __init__(self) -> None:
        super().__init__()
        self.go = asyncio.Event()

    async def start(self, order: Order) -> None:
        if order.request == "slow":
            await self.go.wait()
        await super().start(order)


@pytest.mark.case("SS-1")
@pytest.mark.case("DL-4")
async def test_a_start_that_takes_long_holds_up_nobody(tmp_path: Path) -> None:
    launcher = SlowLauncher()
    world = World(tmp_path, launcher=launcher)
    async with world.bot():
        runner = await world.started()
        await world.chat.summon("slow")
        await world.chat.until(lambda chat: len(chat.roots()) == 2)  # its card stands meanwhile
        await world.chat.say(await world.thread(runner.run), "!stop")
        await runner.heard(Hold)
        assert len(launcher.orders) == 1
        launcher.go.set()
        await until(lambda: len(launcher.orders) == 2)


async def test_an_act_that_fails_ends_with_a_word_and_the_next_ones_go_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def kill(run: RunId, folder: Path) -> bool:
        raise LaunchError("process 17 does not end; end it by hand")

    monkeypatch.setattr(world.launcher, "kill", kill)
    async with world.bot():
        runner = await world.started()
        thread = await world.thread(runner.run)
        await world.chat.say(thread, "!kill yes")
        assert await world.whispered("That could not be done: process 17 does not end; end it by hand") == ANNA.id
        await world.chat.say(thread, "and sort them")
        assert (await runner.heard(Say)).text == "and sort them"


async def test_a_fault_of_ours_is_told_without_its_details(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async def kill(run: RunId, folder: Path) -> bool:
        raise KeyError("secret-token")

    monkeypatch.setattr(world.launcher, "kill", kill)
    async with world.bot():
        runner = await world.started()
        await world.chat.say(await world.thread(runner.run), "!kill yes")
        await world.whispered("because of a fault in the bot")
        await world.quiet()
    assert "secret-token" not in str(world.chat.whispers)


async def test_a_private_word_that_must_wait_is_said_later(world: World) -> None:
    world.chat.fail("whisper", ChatBusyError("too many", retry_after=5.0))
    async with world.bot():
        await world.chat.summon("")
        await world.whispered("What should be done?")
        await world.quiet()


@pytest.mark.case("RD-10")
async def test_what_was_taken_from_the_inbox_when_the_store_went_away_is_done_when_it_is_back(world: World) -> None:
    async with world.bot():
        runner = await world.started()
        thread = await world.thread(runner.run)
        # Accepted in one go, and the store goes away between taking them and acting on them.
        for number in range(5):
            key = f"{thread.key}/w{number}"
            words = Words(
                id=key, thread=thread, message=MessageRef(thread, key), author=ANNA, text=f"{number}", at=float(number)
            )
            await world.memory.inbox.accept(words)
        await asyncio.sleep(0)
        world.memory.away = True
        await asyncio.sleep(0.05)
        world.memory.away = False
        await world.quiet()
    assert [command.text for command in await runner.commands() if isinstance(command, Say)] == list("01234")


async def test_a_run_that_somebody_uses_is_not_taken_off_the_desk(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world.bot() as bridge:
        runner = await world.started()
        await runner.ends()
        await world.post("Done: write primes")
        await world.left(runner.run)
        standing = bridge._store.runs.standing

        async def slow(run: RunId) -> Standing | None:
            await asyncio.sleep(0.3)  # long enough for the desk to be cleared
            return await standing(run)

        monkeypatch.setattr(bridge._store.runs, "standing", slow)
        await world.chat.say(await world.thread(runner.run), "!status")
        await world.post("Cost $0.00")
        await world.quiet()
