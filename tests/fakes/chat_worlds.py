"""A chat and the people in it, three times: in memory, our strict Slack, the independent emulator."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

from bots.slack.chat import SlackChat, open_slack
from bots.slack.settings import SlackSettings
from bridge.errors import ChatBusyError
from bridge.model import Inbound, Person, PersonId, PlaceRef, PostRef, ThreadRef
from bridge.ports import Chat
from demo import emulator as local
from tests.fakes import chat as fake
from tests.fakes import slack as strict
from tests.fakes.slack_judges import judge_message, judge_view


@dataclass(frozen=True, slots=True)
class Shown:
    """A message as it stands. `thread` is the last part of its thread's key; empty at the top level of a place."""

    key: str
    thread: str
    text: str


class World(Protocol):
    """What people do and see. Everything is awaited until the bot has confirmed it."""

    place: PlaceRef
    anna: Person

    @property
    def chat(self) -> Chat: ...
    async def ready(self) -> None:
        """Wait until a chat that listens hears."""
        ...

    async def command(self, text: str) -> None: ...
    async def say(self, thread: ThreadRef, text: str) -> None: ...
    async def press(self, post: PostRef, label: str) -> None: ...
    async def submit(self, text: str) -> None: ...
    async def shown(self) -> list[Shown]:
        """All that everybody sees, oldest first."""
        ...

    async def whispers(self) -> list[str]: ...


class FaultyWorld(World, Protocol):
    """A world in which calls can be made to fail."""

    def lose_answer(self) -> None:
        """Let the next post stand and its answer get lost."""
        ...

    def keep_busy(self, seconds: int) -> None:
        """Let the next post be refused as one too many."""
        ...

    def archive(self) -> None: ...


class Heard:
    """An `accept` that keeps what it hears, once each, and can be told to be slow or to refuse."""

    def __init__(self) -> None:
        self.all: list[Inbound] = []
        self.offered: list[str] = []
        """Ids, in the order of the deliveries, doubles included."""
        self.keeps = True
        self.delays: list[float] = []
        """Seconds that the next calls take."""
        self._changed = asyncio.Condition()

    async def accept(self, inbound: Inbound) -> bool:
        self.offered.append(inbound.id)
        if self.delays:
            await asyncio.sleep(self.delays.pop(0))
        async with self._changed:
            if self.keeps and inbound.id not in [each.id for each in self.all]:
                self.all.append(inbound)
            self._changed.notify_all()
        return self.keeps

    async def wait_for(self, number: int, *, within: float = 5.0) -> list[Inbound]:
        """Wait until so many were kept, and return them all."""
        async with asyncio.timeout(within), self._changed:
            await self._changed.wait_for(lambda: len(self.all) >= number)
        return self.all


@contextlib.asynccontextmanager
async def listening(world: World, heard: Heard) -> AsyncIterator[None]:
    """Let the chat listen while the body runs."""
    task = asyncio.create_task(world.chat.listen(heard.accept))
    try:
        await world.ready()
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


# -- memory -----------------------------------------------------------------------------------------------------


class MemoryWorld:
    def __init__(self) -> None:
        self.chat = fake.FakeChat()
        self.place = fake.PLACE
        self.anna = fake.ANNA
        self._form: tuple[fake.FakePost, str] | None = None

    async def ready(self) -> None:
        """It waits by itself."""

    async def command(self, text: str) -> None:
        await self.chat.summon(text)

    async def say(self, thread: ThreadRef, text: str) -> None:
        await self.chat.say(thread, text)

    async def press(self, post: PostRef, label: str) -> None:
        found = next(each for each in self.chat.posts if each.ref == post)
        button = next(button for button in found.card.buttons if button.label == label)
        self._form = (found, label) if button.form else None
        if not button.form:
            await self.chat.tap(found, label)

    async def submit(self, text: str) -> None:
        assert self._form is not None
        post, label = self._form
        await self.chat.tap(post, label, text=text)

    async def shown(self) -> list[Shown]:
        return [
            Shown(
                post.ref.key,
                "" if post.ref.key == post.ref.thread.key else post.ref.thread.key.rpartition("/")[2],
                post.card.summary,
            )
            for post in self.chat.posts
        ]

    async def whispers(self) -> list[str]:
        return [whisper.text for whisper in self.chat.whispers]

    def lose_answer(self) -> None:
        self.chat.lose_answer("post")

    def keep_busy(self, seconds: int) -> None:
        self.chat.fail("post", ChatBusyError("too many", retry_after=float(seconds)))

    def archive(self) -> None:
        self.chat.archive(self.place)


# -- the strict Slack -------------------------------------------------------------------------------------------


class StrictWorld:
    def __init__(self, slack: strict.StrictSlack, chat: SlackChat) -> None:
        self.slack = slack
        self.chat = chat
        self.place = PlaceRef(chat.platform, f"{strict.TEAM}/{strict.CHANNEL}")
        self.anna = Person(id=PersonId(f"{strict.TEAM}/U1ANNA"), name="anna")

    async def ready(self) -> None:
        await self.slack.connected.wait()

    async def command(self, text: str) -> None:
        await self.slack.command("U1ANNA", text)

    async def say(self, thread: ThreadRef, text: str) -> None:
        self.slack.say("U1ANNA", text, thread=thread.key.rpartition("/")[2])

    async def press(self, post: PostRef, label: str) -> None:
        await self.slack.press("U1ANNA", post.key.rpartition("/")[2], label)

    async def submit(self, text: str) -> None:
        await self.slack.submit("U1ANNA", text)

    async def shown(self) -> list[Shown]:
        channel = f"{strict.TEAM}/{strict.CHANNEL}"
        return [
            Shown(f"{channel}/{message['ts']}", message.get("thread_ts", ""), local.shown_text(message))
            for message in self.slack.messages[strict.CHANNEL]
            if message.get("bot_id")
        ]

    async def whispers(self) -> list[str]:
        return [local.shown_text(whisper) for whisper in self.slack.whispers]

    def lose_answer(self) -> None:
        self.slack.fault("chat.postMessage", "lost")

    def keep_busy(self, seconds: int) -> None:
        self.slack.fault("chat.postMessage", "busy", retry_after=str(seconds))

    def archive(self) -> None:
        self.slack.archived.add(strict.CHANNEL)


@contextlib.asynccontextmanager
async def strict_world() -> AsyncIterator[StrictWorld]:
    async with strict.strict_slack() as slack, open_slack(strict_settings(slack)) as chat:
        yield StrictWorld(slack, chat)


def strict_settings(slack: strict.StrictSlack, **env: str) -> SlackSettings:
    return SlackSettings.from_env(
        {
            "FLOWER_CHAT_SLACK_BOT_TOKEN": strict.BOT_TOKEN,
            "FLOWER_CHAT_SLACK_APP_TOKEN": strict.APP_TOKEN,
            "FLOWER_CHAT_SLACK_API_URL": slack.api_url,
            **env,
        }
    )


# -- the emulator -----------------------------------------------------------------------------------------------


class EmulatorWorld:
    def __init__(self, slack: local.Emulator, chat: SlackChat, well: asyncio.Event) -> None:
        self.slack = slack
        self.chat = chat
        self._well = well
        self.place = PlaceRef(chat.platform, f"{local.TEAM}/{local.CHANNELS['general']}")
        self.anna = Person(id=PersonId(f"{local.TEAM}/{local.USERS['alice']}"), name="alice")

    async def ready(self) -> None:
        await self._well.wait()

    async def command(self, text: str) -> None:
        await self.slack.command("alice", "general", text)

    async def say(self, thread: ThreadRef, text: str) -> None:
        await self.slack.say("alice", "general", text, thread=thread.key.rpartition("/")[2])

    async def press(self, post: PostRef, label: str) -> None:
        await self.slack.press("alice", "general", post.key.rpartition("/")[2], label)

    async def submit(self, text: str) -> None:
        await self.slack.wait_for_form()
        await self.slack.submit("alice", text)

    async def shown(self) -> list[Shown]:
        channel = f"{local.TEAM}/{local.CHANNELS['general']}"
        return [
            Shown(f"{channel}/{message['ts']}", message.get("thread_ts", ""), local.shown_text(message))
            for message in await self.slack.messages("general")
            if message.get("bot_id") and message.get("subtype") != "ephemeral"
        ]

    async def whispers(self) -> list[str]:
        return [
            local.shown_text(message)
            for message in await self.slack.messages("general")
            if message.get("subtype") == "ephemeral"
        ]


@contextlib.asynccontextmanager
async def emulator_world() -> AsyncIterator[EmulatorWorld]:
    """The emulator checks no limits, so all that went out is judged at the end."""
    async with local.emulator() as slack:
        settings = SlackSettings.from_env(
            {
                "FLOWER_CHAT_SLACK_BOT_TOKEN": local.BOT_TOKEN,
                "FLOWER_CHAT_SLACK_APP_TOKEN": local.APP_TOKEN,
                "FLOWER_CHAT_SLACK_API_URL": slack.api_url,
            }
        )
        well = asyncio.Event()
        async with open_slack(settings, on_state=lambda state: well.set() if state.well else well.clear()) as chat:
            yield EmulatorWorld(slack, chat, well)
        assert await complaints_of(slack) == []


async def complaints_of(slack: local.Emulator) -> list[str]:
    """Let every judge look at all the messages and forms that the bot has sent to an emulator."""
    found: list[str] = []
    for call in await slack.calls():
        method = call.pop("method")
        if method in ("chat.postMessage", "chat.update", "chat.postEphemeral"):
            found += [f"{method}: {said}" for said in judge_message(call, with_types=True)]
        elif method == "views.open":
            found += [f"{method}: {said}" for said in judge_view(call["view"], with_types=True)]
    return found
