"""The adapter on our strict Slack, for what the contract suite does not say: starting, the socket, Slack's ways."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable

import aiohttp
import pytest
from slack_sdk.socket_mode.aiohttp import SocketModeClient

from bots.slack import chat as module
from bots.slack.chat import State, open_slack
from bots.slack.outbound import EN
from bots.slack.settings import SlackSettings
from bridge.errors import ChatBusyError, ChatGoneError, ChatRefusedError, ChatUnknownError, SettingsError
from bridge.model import Button, Card, PersonId, PlaceRef, Summons, Tap, ThreadRef, Words
from bridge.rich import Mention, When, line
from tests.fakes.chat_worlds import Heard, StrictWorld, listening, strict_settings, strict_world
from tests.fakes.slack import APP_TOKEN, BOT_TOKEN, CHANNEL, TEAM, Kind, StrictSlack, strict_slack

FORM = Card(summary="Which?", buttons=(Button(action="words 1", label="In words", form="Which one?"),))


@pytest.fixture
async def slack() -> AsyncIterator[StrictSlack]:
    async with strict_slack() as slack:
        yield slack


@pytest.fixture
async def world() -> AsyncIterator[StrictWorld]:
    async with strict_world() as world:
        yield world


@pytest.fixture
async def heard(world: StrictWorld) -> AsyncIterator[Heard]:
    heard = Heard()
    async with listening(world, heard):
        yield heard


async def opening(settings: SlackSettings) -> str:
    """What is said instead of opening."""
    with pytest.raises((SettingsError, ChatGoneError, ChatBusyError)) as caught:
        async with open_slack(settings):
            pass
    said = str(caught.value)
    assert "\n" not in said
    assert BOT_TOKEN not in said
    assert APP_TOKEN not in said
    return said


async def until(condition: Callable[[], object], *, within: float = 5.0) -> None:
    async with asyncio.timeout(within):
        while not condition():  # noqa: ASYNC110 - a server and a library change, and tell no event of it
            await asyncio.sleep(0.01)


# -- starting ---------------------------------------------------------------------------------------------------


async def test_a_dead_bot_token_is_one_line_with_the_cure(slack: StrictSlack) -> None:
    said = await opening(strict_settings(slack, FLOWER_CHAT_SLACK_BOT_TOKEN="xoxb-dead"))
    assert said == (
        "FLOWER_CHAT_SLACK_BOT_TOKEN: Slack refuses it (auth.test: invalid_auth); install the app into the workspace "
        "again and set FLOWER_CHAT_SLACK_BOT_TOKEN to its new bot token"
    )


async def test_a_dead_app_token_is_one_line_with_another_cure(slack: StrictSlack) -> None:
    said = await opening(strict_settings(slack, FLOWER_CHAT_SLACK_APP_TOKEN="xapp-dead"))
    assert said == (
        "FLOWER_CHAT_SLACK_APP_TOKEN: Slack refuses it (apps.connections.open: invalid_auth); make a new app-level "
        "token with the scope connections:write and set FLOWER_CHAT_SLACK_APP_TOKEN to it"
    )


@pytest.mark.case("SL-4")
async def test_missing_rights_are_named_and_nothing_is_opened(slack: StrictSlack) -> None:
    slack.scopes = "chat:write,commands,app_mentions:read,channels:history,groups:history,im:history"
    said = await opening(strict_settings(slack))
    assert said.startswith("the Slack app lacks the bot scopes reactions:write, users:read: ")
    assert slack.called("apps.connections.open") == []


async def test_an_address_where_nobody_listens(slack: StrictSlack) -> None:
    said = await opening(strict_settings(slack, FLOWER_CHAT_SLACK_API_URL="http://127.0.0.1:9/api/"))
    assert said.startswith("FLOWER_CHAT_SLACK_API_URL (http://127.0.0.1:9/api/): cannot be reached: Connect")


async def test_an_address_where_somebody_else_answers(slack: StrictSlack) -> None:
    base = slack.api_url.removesuffix("api/")
    said = await opening(strict_settings(slack, FLOWER_CHAT_SLACK_API_URL=base + "other/"))
    assert "something answers there, but it is not Slack's Web API (HTTP 404)" in said
    slack.fault("auth.test", "html")
    assert "it is not Slack's Web API (HTTP 200)" in await opening(strict_settings(slack))


async def test_too_many_starts_say_that_it_is_too_early(slack: StrictSlack) -> None:
    slack.fault("apps.connections.open", "busy", retry_after="30")
    assert "too many calls" in await opening(strict_settings(slack))


async def test_a_proxy_of_the_environment_is_not_asked_for_this_very_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    async with strict_world() as world:
        heard = Heard()
        async with listening(world, heard):
            await world.command("hello")
            (summons,) = await heard.wait_for(1)
            assert isinstance(summons, Summons)
            await world.chat.whisper(world.place, world.anna.id, "psst", private=summons.private)


async def test_the_account_has_a_name_of_its_own(world: StrictWorld) -> None:
    assert world.chat.account == "slack/T0TEAM/U0BOT"


# -- confirming (rulings R15) -----------------------------------------------------------------------------------


async def test_a_command_is_confirmed_after_it_was_kept_with_what_was_typed(world: StrictWorld, heard: Heard) -> None:
    delivery = await world.slack.command("U1ANNA", "write a program")
    assert delivery.acked.is_set()
    assert delivery.payload == {"response_type": "ephemeral", "text": "Received: write a program"}
    assert len(heard.all) == 1


async def test_a_command_that_was_not_kept_is_not_confirmed_and_its_author_gets_a_word(
    world: StrictWorld, heard: Heard
) -> None:
    heard.keeps = False
    world.slack.ack_seconds = 0.3
    delivery = await world.slack.command("U1ANNA", "write a program")
    assert not delivery.acked.is_set()
    await until(lambda: world.slack.whispers)
    (whisper,) = world.slack.whispers
    assert (whisper["via"], whisper["user"], whisper["text"]) == ("response_url", "U1ANNA", EN.away)
    assert heard.all == []


async def test_a_click_that_was_not_kept_is_not_confirmed_and_its_author_gets_a_word(
    world: StrictWorld, heard: Heard
) -> None:
    post, _ = await world.chat.post(world.place, Card(summary="x", buttons=(Button(action="a", label="A"),)), once="k")
    heard.keeps = False
    world.slack.ack_seconds = 0.3
    delivery = await world.slack.press("U2BEN", post.key.rpartition("/")[2], "A")
    assert not delivery.acked.is_set()
    assert [(each["user"], each["text"]) for each in world.slack.whispers] == [("U2BEN", EN.away)]


@pytest.mark.case("DL-3")
async def test_words_that_were_not_kept_come_again_and_are_taken(world: StrictWorld, heard: Heard) -> None:
    post, _ = await world.chat.post(world.place, Card(summary="x"), once="k")
    heard.keeps = False
    world.slack.ack_seconds = 0.2
    ts, delivery = world.slack.say("U1ANNA", "go on", thread=post.key.rpartition("/")[2])
    await until(lambda: len(heard.offered) == 2)
    heard.keeps = True
    assert await delivery.confirmed()
    assert [each.id for each in heard.all] == [f"{TEAM}/{CHANNEL}/{ts}"]
    assert set(heard.offered) == {f"{TEAM}/{CHANNEL}/{ts}"}
    assert len([each for each in world.slack.whispers if each["text"] == EN.away_words]) == 1


@pytest.mark.case("DL-2")
async def test_a_redelivery_is_as_good_as_a_first_delivery(world: StrictWorld, heard: Heard) -> None:
    delivery = world.slack.event(
        {
            "type": "message", "channel": CHANNEL, "channel_type": "channel", "user": "U1ANNA", "text": "go on",
            "ts": "1700000009.000100", "thread_ts": "1700000001.000100", "event_ts": "1700000009.000100",
        }
    )  # fmt: skip
    delivery.envelope |= {"retry_attempt": 2, "retry_reason": "timeout"}
    await heard.wait_for(1)
    assert await delivery.confirmed()


@pytest.mark.case("DL-1")
async def test_the_same_event_twice_has_the_same_id(world: StrictWorld, heard: Heard) -> None:
    event = {
        "type": "message", "channel": CHANNEL, "channel_type": "channel", "user": "U1ANNA", "text": "go on",
        "ts": "1700000009.000100", "thread_ts": "1700000001.000100", "event_ts": "1700000009.000100",
    }  # fmt: skip
    for _ in range(2):
        assert await world.slack.event(event).confirmed()
    assert len(heard.offered) == 2
    assert len(heard.all) == 1


async def test_our_own_posts_are_confirmed_and_not_heard(world: StrictWorld, heard: Heard) -> None:
    await world.chat.post(world.place, Card(summary="x"), once="k")
    assert await world.slack.deliveries[-1].confirmed()
    assert heard.offered == []


async def test_envelopes_of_a_thread_keep_their_order_through_the_library(world: StrictWorld, heard: Heard) -> None:
    post, _ = await world.chat.post(world.place, Card(summary="x"), once="k")
    heard.delays = [0.1, 0.0, 0.05]
    for number in range(12):
        world.slack.say("U1ANNA", f"word {number}", thread=post.key.rpartition("/")[2])
    await heard.wait_for(12)
    assert [each.text for each in heard.all if isinstance(each, Words)] == [f"word {number}" for number in range(12)]


# -- the socket's life ------------------------------------------------------------------------------------------


@pytest.mark.case("SL-2")
async def test_slack_may_ask_for_a_new_connection_and_the_first_attempt_may_fail(
    world: StrictWorld, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = world.slack.sockets[0].number
    monkeypatch.setattr(module, "WATCH_SECONDS", 0.02)
    monkeypatch.setattr(module, "GRACE_SECONDS", 0.1)
    world.slack.refuse("apps.connections.open", "internal_error")
    await world.slack.disconnect()
    await until(lambda: any(socket.number != first for socket in world.slack.sockets), within=10.0)
    await until(lambda: len(world.slack.sockets) == 1)
    await world.command("after the change")
    (summons,) = await heard.wait_for(1)
    assert isinstance(summons, Summons)


@pytest.mark.case("SL-9")
async def test_a_refreshed_connection_leaves_exactly_one(world: StrictWorld, heard: Heard) -> None:
    first = world.slack.sockets[0].number
    await world.slack.disconnect("warning")
    await until(lambda: [socket.number for socket in world.slack.sockets] not in ([], [first]))
    await until(lambda: len(world.slack.sockets) == 1)
    await world.command("once")
    await heard.wait_for(1)
    assert len(heard.offered) == 1


@pytest.mark.case("SL-1")
async def test_a_connection_that_went_deaf_is_noticed_said_and_built_anew(
    slack: StrictSlack, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"WATCH_SECONDS": 0.02, "GRACE_SECONDS": 0.3, "PING_SECONDS": 0.1, "PAUSES": (0.01,)}.items():
        monkeypatch.setattr(module, name, value)
    states: list[State] = []
    async with open_slack(strict_settings(slack), on_state=states.append) as chat:
        world = StrictWorld(slack, chat)
        heard = Heard()
        async with listening(world, heard):
            await until(lambda: states and states[-1].well)
            slack.frozen = True
            first = slack.sockets[0].number
            await until(lambda: not states[-1].well)
            slack.frozen = False
            await until(lambda: states[-1].well and first not in [socket.number for socket in slack.sockets])
            await world.command("still there?")
            await heard.wait_for(1)
    assert states[-1] == State(well=False, why="not listening")


@pytest.mark.case("SL-9")
async def test_what_the_library_does_not_mend_is_built_anew_after_the_grace_and_not_before(
    world: StrictWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(self: SocketModeClient, force: bool = False) -> None:
        raise ConnectionError("the library has lost its way")

    for name, value in {"WATCH_SECONDS": 0.02, "GRACE_SECONDS": 0.4, "PAUSES": (0.01,)}.items():
        monkeypatch.setattr(module, name, value)
    heard = Heard()
    async with listening(world, heard):
        await until(lambda: world.chat.state.well)
        monkeypatch.setattr(SocketModeClient, "connect_to_new_endpoint", never)
        loop = asyncio.get_running_loop()
        lost = loop.time()
        world.slack.cut()
        await until(lambda: not world.slack.sockets)
        await world.slack.connected.wait()
        assert loop.time() - lost >= 0.4
        await world.command("again")
        await heard.wait_for(1)
        assert len(heard.offered) == len(world.slack.sockets) == 1


async def test_a_token_that_is_revoked_ends_the_listening_with_the_reason(
    world: StrictWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"WATCH_SECONDS": 0.02, "GRACE_SECONDS": 0.2, "PAUSES": (0.01,)}.items():
        monkeypatch.setattr(module, name, value)
    task = asyncio.create_task(world.chat.listen(Heard().accept))
    await world.slack.connected.wait()
    world.slack.revoked.add(APP_TOKEN)
    world.slack.cut()
    with pytest.raises(ChatGoneError, match=r"apps\.connections\.open: invalid_auth"):
        async with asyncio.timeout(10):
            await task


async def test_an_outage_at_the_start_of_listening_is_waited_out(
    world: StrictWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PAUSES", (0.01, 0.02))
    for _ in range(3):
        world.slack.fault("apps.connections.open", "server_error")
    heard = Heard()
    async with listening(world, heard):
        await world.command("hello")
        await heard.wait_for(1)


async def test_who_stops_listening_first_confirms_what_is_being_kept(world: StrictWorld) -> None:
    heard = Heard()
    heard.delays = [0.2]
    async with listening(world, heard):
        _, delivery = world.slack.say("U1ANNA", "last word", thread="1700000001.000100")
        await until(lambda: heard.offered)
    assert len(heard.all) == 1
    assert delivery.acked.is_set()
    await until(lambda: not world.slack.sockets)


# -- posting ----------------------------------------------------------------------------------------------------


async def test_a_post_whose_answer_is_lost_is_not_repeated_by_any_library(world: StrictWorld) -> None:
    world.slack.fault("chat.postMessage", "lost")
    with pytest.raises(ChatUnknownError):
        await world.chat.post(world.place, Card(summary="x"), once="k")
    assert len(world.slack.called("chat.postMessage")) == 1


@pytest.mark.parametrize("kind", ["reset", "server_error", "html"])
async def test_a_post_without_an_answer_is_unknown_even_if_it_never_happened(world: StrictWorld, kind: Kind) -> None:
    world.slack.fault("chat.postMessage", kind)
    with pytest.raises(ChatUnknownError):
        await world.chat.post(world.place, Card(summary="x"), once="k")
    assert await world.chat.find(world.place, "k", since=1_700_000_000.0) is None


async def test_a_post_that_takes_too_long_is_unknown(world: StrictWorld) -> None:
    world.slack.fault("chat.postMessage", "hang")
    world.chat._api._session._timeout = aiohttp.ClientTimeout(total=0.1)
    with pytest.raises(ChatUnknownError, match="time is up"):
        await world.chat.post(world.place, Card(summary="x"), once="k")


@pytest.mark.parametrize("kind", ["reset", "server_error"])
async def test_an_edit_without_an_answer_may_simply_be_repeated(world: StrictWorld, kind: Kind) -> None:
    post, _ = await world.chat.post(world.place, Card(summary="x"), once="k")
    world.slack.fault("chat.update", kind)
    with pytest.raises(ChatBusyError):
        await world.chat.edit(post, Card(summary="y"), once="k")
    await world.chat.edit(post, Card(summary="y"), once="k")


async def test_slack_may_refuse_a_card_once_and_for_all(world: StrictWorld) -> None:
    world.slack.refuse("chat.postMessage", "invalid_blocks")
    with pytest.raises(ChatRefusedError, match=r"chat\.postMessage: invalid_blocks"):
        await world.chat.post(world.place, Card(summary="x"), once="k")


@pytest.mark.case("TH-3")
async def test_a_thread_whose_ts_ends_in_zeros_stays_the_same_thread(world: StrictWorld) -> None:
    top, _ = await world.chat.post(world.place, Card(summary="card"), once="k/card")
    assert top.key == "T0TEAM/C1GENERAL/1700000000.001700"
    again = ThreadRef(top.thread.platform, top.thread.key)
    below, _ = await world.chat.post(again, Card(summary="line"), once="k/line")
    assert below.thread == top.thread
    assert world.slack.message("1700000000.001701")["thread_ts"] == "1700000000.001700"


async def test_a_key_is_found_by_its_block_where_metadata_was_dropped(world: StrictWorld) -> None:
    top, at = await world.chat.post(world.place, Card(summary="card"), once="k/card")
    del world.slack.message("1700000000.001700")["metadata"]
    assert await world.chat.find(world.place, "k/card", since=at) == (top, at)


async def test_a_key_is_found_behind_many_messages(world: StrictWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAGE", 3)
    top, at = await world.chat.post(world.place, Card(summary="card"), once="k/card")
    for number in range(10):
        await world.chat.post(world.place, Card(summary=f"{number}"), once=f"k/{number}")
    assert await world.chat.find(world.place, "k/card", since=at) == (top, at)
    assert len(world.slack.called("conversations.history")) == 4


async def test_a_search_that_would_not_end_says_that_it_does_not_know(
    world: StrictWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PAGE", 1)
    monkeypatch.setattr(module, "PAGES", 2)
    for number in range(4):
        await world.chat.post(world.place, Card(summary=f"{number}"), once=f"k/{number}")
    with pytest.raises(ChatUnknownError):
        await world.chat.find(world.place, "k/none", since=1_700_000_000.0)


async def test_a_key_in_somebody_elses_message_is_not_ours(world: StrictWorld) -> None:
    stolen = {"event_type": "flower_post", "event_payload": {"once": "k/card"}}
    world.slack.say("U2BEN", "look", metadata=stolen)
    assert await world.chat.find(world.place, "k/card", since=1_700_000_000.0) is None


async def test_names_of_people_who_are_not_rung_are_looked_up_once(world: StrictWorld) -> None:
    card = Card(summary="x", body=(line("started by ", Mention(f"{TEAM}/U2BEN")),))
    for number in range(2):
        await world.chat.post(world.place, card, once=f"k/{number}")
    assert [shown.text for shown in await world.shown()] == ["started by @Ben", "started by @Ben"]
    assert len(world.slack.called("users.info")) == 1


async def test_a_name_that_cannot_be_looked_up_holds_nothing_back(world: StrictWorld) -> None:
    world.slack.fault("users.info", "busy")
    await world.chat.post(world.place, Card(summary="x", body=(line("by ", Mention(f"{TEAM}/U2BEN")),)), once="k")
    assert [shown.text for shown in await world.shown()] == ["by @U2BEN"]


async def test_times_are_in_utc_where_it_is_not_slack_itself(world: StrictWorld) -> None:
    await world.chat.post(world.place, Card(summary="x", body=(line(When(1_700_000_000.0)),)), once="k")
    assert [shown.text for shown in await world.shown()] == ["2023-11-14 22:13 UTC"]


async def test_links_are_those_of_the_workspace(world: StrictWorld) -> None:
    top, _ = await world.chat.post(world.place, Card(summary="card"), once="k/card")
    below, _ = await world.chat.post(top.thread, Card(summary="line"), once="k/line")
    assert world.chat.link(top) == "https://team.slack.com/archives/C1GENERAL/p1700000000001700"
    assert world.chat.link(below) == (
        "https://team.slack.com/archives/C1GENERAL/p1700000000001701?thread_ts=1700000000.001700&cid=C1GENERAL"
    )


# -- whispers and forms -----------------------------------------------------------------------------------------


async def test_a_response_address_is_used_five_times_and_never_after_its_end(world: StrictWorld, heard: Heard) -> None:
    await world.command("help")
    (summons,) = await heard.wait_for(1)
    assert isinstance(summons, Summons)
    for number in range(7):
        await world.chat.whisper(world.place, world.anna.id, f"{number}", private=summons.private)
    assert [each["via"] for each in world.slack.whispers] == ["response_url"] * 5 + ["postEphemeral"] * 2


async def test_a_response_address_that_is_too_old_is_replaced(world: StrictWorld, heard: Heard) -> None:
    await world.command("help")
    (summons,) = await heard.wait_for(1)
    assert isinstance(summons, Summons)
    world.slack.expire_response_urls()
    await world.chat.whisper(world.place, world.anna.id, "late", private=summons.private)
    assert [each["via"] for each in world.slack.whispers] == ["postEphemeral"]


async def test_a_whisper_in_a_thread_stands_in_the_thread(world: StrictWorld) -> None:
    top, _ = await world.chat.post(world.place, Card(summary="card"), once="k")
    await world.chat.whisper(top.thread, world.anna.id, "psst")
    assert world.slack.whispers[0]["thread_ts"] == "1700000000.001700"


async def test_a_stranger_to_the_channel_cannot_be_whispered_to(world: StrictWorld) -> None:
    with pytest.raises(ChatGoneError, match="user_not_in_channel"):
        await world.chat.whisper(world.place, PersonId(f"{TEAM}/U9"), "psst")


async def test_a_form_whose_trigger_has_died_is_said_instead(world: StrictWorld, heard: Heard) -> None:
    post, _ = await world.chat.post(world.place, FORM, once="k")
    world.slack.trigger_seconds = -1.0
    delivery = await world.slack.press("U1ANNA", post.key.rpartition("/")[2], "In words")
    assert delivery.acked.is_set()
    assert [each["text"] for each in world.slack.whispers] == [EN.form_failed]
    assert heard.offered == []


async def test_a_form_is_open_until_it_was_kept(world: StrictWorld, heard: Heard) -> None:
    post, _ = await world.chat.post(world.place, FORM, once="k")
    await world.slack.press("U1ANNA", post.key.rpartition("/")[2], "In words")
    heard.keeps = False
    refused = await world.slack.submit("U1ANNA", "the second")
    assert refused.payload == {"response_action": "errors", "errors": {"words": EN.away}}
    heard.keeps = True
    taken = await world.slack.submit("U1ANNA", "the second")
    assert taken.payload is None
    (tap,) = await heard.wait_for(1)
    assert isinstance(tap, Tap)
    assert (tap.action, tap.text) == ("words 1", "the second")


# -- secrets ----------------------------------------------------------------------------------------------------


@pytest.mark.case("SE-4")
async def test_no_token_is_in_any_log_line_of_ours_or_of_the_library(
    world: StrictWorld, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with listening(world, Heard()):
        await world.command("write a program")
        kinds: tuple[Kind, ...] = ("lost", "busy", "reset", "html", "server_error")
        for kind in kinds:
            world.slack.fault("chat.postMessage", kind)
            with contextlib.suppress(ChatUnknownError, ChatBusyError):
                await world.chat.post(PlaceRef(world.chat.platform, f"{TEAM}/{CHANNEL}"), Card(summary="x"), once="k")
        await world.slack.disconnect()
        await until(lambda: len(world.slack.called("apps.connections.open")) >= 3)
    assert caplog.records
    assert BOT_TOKEN not in caplog.text
    assert APP_TOKEN not in caplog.text
