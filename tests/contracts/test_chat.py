"""The contract of `bridge.ports.Chat`: in memory, on our strict Slack, on the independent emulator."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from bridge.errors import ChatBusyError, ChatGoneError, ChatUnknownError
from bridge.model import Button, Card, PostRef, Summons, Tap, ThreadRef, Words
from tests.fakes.chat_worlds import FaultyWorld, Heard, MemoryWorld, World, emulator_world, listening, strict_world


@pytest.fixture(params=["memory", "strict", pytest.param("emulator", marks=pytest.mark.real)])
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    match request.param:
        case "memory":
            yield MemoryWorld()
        case "strict":
            async with strict_world() as made:
                yield made
        case _:
            async with emulator_world() as emulated:
                yield emulated


@pytest.fixture(params=["memory", "strict"])
async def faulty(request: pytest.FixtureRequest) -> AsyncIterator[FaultyWorld]:
    if request.param == "memory":
        yield MemoryWorld()
        return
    async with strict_world() as made:
        yield made


@pytest.fixture
async def heard(world: World) -> AsyncIterator[Heard]:
    """What the chat hands on; it listens while the test runs."""
    heard = Heard()
    async with listening(world, heard):
        yield heard


async def root(world: World, card: Card | None = None) -> PostRef:
    post, _ = await world.chat.post(world.place, card or Card(summary="run k3f9qa"), once="k3f9qa/card")
    return post


CHOICE = Card(
    summary="Which database?",
    buttons=(
        Button(action="answer k3f9qa 1 q1 0", label="SQLite"),
        Button(action="answer k3f9qa 1 q1 1", label="PostgreSQL"),
        Button(action="words k3f9qa 1 q1", label="In words", form="Which database?"),
    ),
)


# -- in ---------------------------------------------------------------------------------------------------------


async def test_a_command_is_a_summons_with_who_where_and_what(world: World, heard: Heard) -> None:
    await world.command("write a program --budget 2")
    (summons,) = await heard.wait_for(1)
    assert isinstance(summons, Summons)
    assert (summons.place, summons.author.id, summons.text) == (
        world.place,
        world.anna.id,
        "write a program --budget 2",
    )


async def test_words_in_a_thread_carry_the_thread_of_its_posts(world: World, heard: Heard) -> None:
    post = await root(world)
    await world.say(post.thread, "take the small one")
    (words,) = await heard.wait_for(1)
    assert isinstance(words, Words)
    assert (words.thread, words.author.id, words.text) == (post.thread, world.anna.id, "take the small one")
    assert not words.mentions_us


async def test_words_of_a_thread_come_in_the_order_of_the_platform_even_if_the_first_is_slow(
    world: World, heard: Heard
) -> None:
    post = await root(world)
    heard.delays = [0.2]
    async with asyncio.TaskGroup() as group:
        for word in ("one", "two", "three"):
            group.create_task(world.say(post.thread, word))
            await asyncio.sleep(0)
    said = [words.text for words in await heard.wait_for(3) if isinstance(words, Words)]
    by_time = sorted((words for words in heard.all if isinstance(words, Words)), key=lambda words: words.at)
    assert said == [words.text for words in by_time]
    assert set(said) == {"one", "two", "three"}


async def test_what_is_said_has_a_time_that_compares_with_that_of_posts(world: World, heard: Heard) -> None:
    post, before = await world.chat.post(world.place, Card(summary="an ask"), once="k/1")
    await world.say(post.thread, "yes")
    (words,) = await heard.wait_for(1)
    _, after = await world.chat.post(post.thread, Card(summary="settled"), once="k/2")
    assert before < words.at < after


async def test_a_pressed_button_says_its_action(world: World, heard: Heard) -> None:
    post = await root(world, CHOICE)
    await world.press(post, "PostgreSQL")
    (tap,) = await heard.wait_for(1)
    assert isinstance(tap, Tap)
    assert (tap.action, tap.text, tap.author.id, tap.thread) == ("answer k3f9qa 1 q1 1", "", world.anna.id, post.thread)


async def test_a_button_below_the_root_says_the_thread_too(world: World, heard: Heard) -> None:
    top = await root(world)
    post, _ = await world.chat.post(top.thread, CHOICE, once="k3f9qa/ask")
    await world.press(post, "SQLite")
    (tap,) = await heard.wait_for(1)
    assert isinstance(tap, Tap)
    assert tap.thread == top.thread


async def test_what_is_typed_into_a_form_comes_with_the_action_of_its_button(world: World, heard: Heard) -> None:
    post = await root(world, CHOICE)
    await world.press(post, "In words")
    await world.submit("neither: a *file* & no <server>\nplease")
    (tap,) = await heard.wait_for(1)
    assert isinstance(tap, Tap)
    assert (tap.action, tap.thread) == ("words k3f9qa 1 q1", post.thread)
    assert tap.text == "neither: a *file* & no <server>\nplease"


async def test_two_presses_are_two_deliveries(world: World, heard: Heard) -> None:
    post = await root(world, CHOICE)
    await world.press(post, "SQLite")
    await world.press(post, "SQLite")
    first, second = await heard.wait_for(2)
    assert first.id != second.id


async def test_listening_ends_by_cancellation_and_can_begin_again(world: World) -> None:
    for word in ("first", "second"):
        heard = Heard()
        async with listening(world, heard):
            await world.command(word)
            (summons,) = await heard.wait_for(1)
        assert isinstance(summons, Summons)
        assert summons.text == word


# -- out --------------------------------------------------------------------------------------------------------


async def test_a_post_in_a_place_opens_a_thread_in_which_others_stand(world: World) -> None:
    top = await root(world)
    below, at = await world.chat.post(top.thread, Card(summary="step 1"), once="k3f9qa/line")
    assert below.thread == top.thread
    assert at > 0
    first, second = await world.shown()
    assert (first.text, first.thread, second.text) == ("run k3f9qa", "", "step 1")
    assert second.thread == top.thread.key.rpartition("/")[2]


async def test_a_post_is_found_by_its_key_where_it_stands_and_nowhere_else(world: World) -> None:
    top, at = await world.chat.post(world.place, Card(summary="card"), once="k3f9qa/card")
    below, below_at = await world.chat.post(top.thread, Card(summary="line"), once="k3f9qa/line:7")
    assert await world.chat.find(world.place, "k3f9qa/card", since=at) == (top, at)
    assert await world.chat.find(top.thread, "k3f9qa/line:7", since=at) == (below, below_at)
    assert await world.chat.find(world.place, "k3f9qa/line:7", since=at) is None
    assert await world.chat.find(top.thread, "k3f9qa/line:70", since=at) is None


async def test_a_key_that_begins_like_another_is_not_mistaken_for_it(world: World) -> None:
    top, at = await world.chat.post(world.place, Card(summary="card"), once="k/line:17")
    assert await world.chat.find(world.place, "k/line:1", since=at) is None
    assert await world.chat.find(world.place, "k/line:17", since=at) == (top, at)


async def test_an_edit_replaces_the_card_and_keeps_the_key(world: World) -> None:
    top, at = await world.chat.post(world.place, CHOICE, once="k3f9qa/ask")
    for _ in range(2):
        await world.chat.edit(top, Card(summary="SQLite it is"), once="k3f9qa/ask")
    assert [shown.text for shown in await world.shown()] == ["SQLite it is"]
    assert await world.chat.find(world.place, "k3f9qa/ask", since=at) == (top, at)


async def test_a_whisper_is_not_shown_to_all(world: World) -> None:
    top = await root(world)
    await world.chat.whisper(top.thread, world.anna.id, "already answered by Ben")
    assert await world.whispers() == ["already answered by Ben"]
    assert [shown.text for shown in await world.shown()] == ["run k3f9qa"]


async def test_the_handle_of_a_summons_carries_whispers_more_often_than_the_platform_allows(
    world: World, heard: Heard
) -> None:
    await world.command("help")
    (summons,) = await heard.wait_for(1)
    assert isinstance(summons, Summons)
    before = len(await world.whispers())
    for number in range(7):
        await world.chat.whisper(world.place, world.anna.id, f"line {number}", private=summons.private)
    assert (await world.whispers())[before:] == [f"line {number}" for number in range(7)]


async def test_a_receipt_may_be_put_twice(world: World, heard: Heard) -> None:
    top = await root(world)
    await world.say(top.thread, "a remark")
    (words,) = await heard.wait_for(1)
    assert isinstance(words, Words)
    await world.chat.sign(words.message, "received")
    await world.chat.sign(words.message, "received")
    await world.chat.sign(words.message, "delivered")


async def test_a_post_has_an_address(world: World) -> None:
    assert world.chat.link(await root(world)).startswith("http")


async def test_a_post_that_is_not_there_cannot_be_edited(world: World) -> None:
    top = await root(world)
    gone = PostRef(top.thread, top.thread.key.rpartition("/")[0] + "/1600000000.000100")
    with pytest.raises(ChatGoneError):
        await world.chat.edit(gone, Card(summary="x"), once="k3f9qa/card")


# -- faults -----------------------------------------------------------------------------------------------------


async def test_a_post_whose_answer_is_lost_stands_once_and_is_found(faulty: FaultyWorld) -> None:
    faulty.lose_answer()
    with pytest.raises(ChatUnknownError):
        await faulty.chat.post(faulty.place, Card(summary="card"), once="k/card")
    found = await faulty.chat.find(faulty.place, "k/card", since=1_700_000_000.0)
    shown = await faulty.shown()
    assert [each.text for each in shown] == ["card"]
    assert found is not None
    assert found[0].key == shown[0].key


async def test_one_post_too_many_says_when_to_come_back_and_nothing_was_posted(faulty: FaultyWorld) -> None:
    faulty.keep_busy(17)
    with pytest.raises(ChatBusyError) as caught:
        await faulty.chat.post(faulty.place, Card(summary="card"), once="k/card")
    assert caught.value.retry_after == 17.0
    assert await faulty.shown() == []


@pytest.mark.case("SL-5")
async def test_an_archived_place_is_gone_for_posts_and_edits(faulty: FaultyWorld) -> None:
    top, _ = await faulty.chat.post(faulty.place, Card(summary="card"), once="k/card")
    faulty.archive()
    for where in (faulty.place, top.thread):
        with pytest.raises(ChatGoneError):
            await faulty.chat.post(where, Card(summary="more"), once="k/more")
    with pytest.raises(ChatGoneError):
        await faulty.chat.edit(top, Card(summary="new"), once="k/card")
    with contextlib.suppress(ChatGoneError):
        await faulty.chat.find(ThreadRef(faulty.chat.platform, top.thread.key), "k/card", since=0.0)
