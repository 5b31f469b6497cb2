"""Slack as a `bridge.ports.Chat`: Socket Mode in, Web API out. Decides nothing; reads and writes are in other modules.

What people do is kept by the bridge before Slack hears «received» (rulings R15). That sits in a global middleware of
Bolt, since a listener for events runs after the confirmation; a response other than 200 is not sent, so that Slack
delivers an event again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse
from slack_sdk.errors import SlackClientError
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bots.slack import inbound, outbound
from bots.slack.errors import (
    REINSTALL,
    RENEW_APP,
    AlreadySoError,
    as_chat_error,
    as_start_error,
    missing_scopes_error,
)
from bots.slack.hearing import ACCEPT_SECONDS, Hearing
from bots.slack.inbound import SLACK, FormRequest, Me
from bots.slack.settings import PREFIX, SlackSettings
from bridge.errors import ChatBusyError, ChatError, ChatUnknownError
from bridge.model import (
    Abilities,
    Card,
    MessageRef,
    PersonId,
    PlaceRef,
    Platform,
    PostRef,
    Sign,
    ThreadRef,
)
from bridge.ports import Accept

log = logging.getLogger(__name__)

NEEDED_SCOPES = frozenset({
    "app_mentions:read", "channels:history", "chat:write", "commands", "groups:history", "im:history",
    "reactions:write", "users:read",
})  # fmt: skip
CALL_SECONDS = 10.0
NAMES_SECONDS = 2.0
NAME_SECONDS = 0.6
"""Of the deadline for keeping what somebody wrote; once for each person."""
NAMES_KEPT = 2_000
CLOSE_SECONDS = 5.0
PING_SECONDS = 10.0
WATCH_SECONDS = 2.0
GRACE_SECONDS = 45.0
"""The library reconnects by itself; only what it has not mended after this long is built anew (SL-9)."""
NOT_LISTENING = "not listening"
PAUSES = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
SKEW_SECONDS = 120.0
"""`find` looks this much further back than it is told: our clock is not Slack's, and a key is unique anyway."""
PAGE = 200
PAGES = 25
PRIVATE_USES = 5
PRIVATE_SECONDS = 30 * 60.0
PRIVATE_KEPT = 1_000

_CONFIRMED = 200
_NOT_CONFIRMED = 503

_LIBRARY_LOG = logging.getLogger("bots.slack.library")


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Whether people's words reach us: a live socket that answers pings. Posting alone is not health (SL-1)."""

    well: bool
    why: str


OnState = Callable[[State], None]


@contextlib.asynccontextmanager
async def open_slack(settings: SlackSettings, *, on_state: OnState | None = None) -> AsyncIterator[SlackChat]:
    """Open the account: both tokens are tried at once, and the granted rights compared where Slack names them.

    Args:
        settings: tokens and address.
        on_state: told, in the event loop, whenever hearing is lost or found again. Must not block.

    Raises:
        SettingsError: the address does not answer or is not Slack's; a right is missing.
        ChatGoneError: a token is refused.
    """
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=CALL_SECONDS)) as session:
        client = _client(settings, token=settings.bot_token.get_secret_value(), session=session)
        me, url = await _introduce(client, settings)
        await _try_app_token(client, settings)
        yield SlackChat(settings, _Api(client, session), me=me, url=url, on_state=on_state)


class SlackChat:
    """One Slack workspace, seen by one bot. Made by `open_slack`."""

    platform: Platform = SLACK
    abilities: Abilities = outbound.ABILITIES

    def __init__(
        self,
        settings: SlackSettings,
        api: _Api,
        *,
        me: Me,
        url: str,
        on_state: OnState | None,
    ) -> None:
        self.account = f"slack/{me.team}/{me.user}"
        """Names this account among all that the state store knows."""
        self.state = State(well=False, why=NOT_LISTENING)
        self._settings = settings
        self._api = api
        self._me = me
        self._url = url
        self._on_state = on_state
        self._phrases = outbound.PHRASES[settings.language]
        self._zones = _is_slack(settings.api_url)
        self._names: dict[PersonId, str] = {}
        self._private: dict[str, tuple[int, float]] = {}

    # -- in

    async def listen(self, accept: Accept) -> None:
        """See `bridge.ports.Chat`. Reconnects for as long as it takes, with growing pauses (SL-2)."""
        try:
            failures = 0
            while True:
                if await self._listen_once(accept):
                    failures = 0
                await asyncio.sleep(PAUSES[min(failures, len(PAUSES) - 1)])
                failures += 1
        finally:
            self._heard(well=False, why=NOT_LISTENING)

    async def _listen_once(self, accept: Accept) -> bool:
        """Connect and look after the connection until it must be built anew. False: it never stood."""
        stood = False
        try:
            # The library would try a refused token for ever; asked by us, the refusal ends the listening.
            await self._api.call("apps.connections.open", {}, token=self._settings.app_token.get_secret_value())
            hearing = Hearing(accept, self, me=self._me, phrases=self._phrases)
            async with _Line(self._settings, hearing, self._me).connected() as client:
                stood = True
                await self._watch(client)
        except (ChatBusyError, TimeoutError) as err:
            self._heard(well=False, why=str(err) or "no connection in time")
        return stood

    async def _watch(self, client: SocketModeClient) -> None:
        """Look after a connection; returns when it must be built anew. The library has no event to wait for."""
        deaf_since: float | None = None
        while True:
            age = time.time() - (client.last_ping_pong_time or time.time())
            well = await client.is_connected() and age < GRACE_SECONDS
            now = asyncio.get_running_loop().time()
            if well:
                deaf_since = None
                self._heard(well=True, why="connected")
            else:
                deaf_since = now if deaf_since is None else deaf_since
                self._heard(well=False, why="Slack does not answer on the socket")
                if now - deaf_since >= GRACE_SECONDS:
                    log.warning("slack.rebuilding", extra={"deaf_s": round(now - deaf_since)})
                    return
            await asyncio.sleep(WATCH_SECONDS)

    def _heard(self, *, well: bool, why: str) -> None:
        if (well, why) == (self.state.well, self.state.why):
            return
        self.state = State(well=well, why=why)
        log.log(logging.INFO if well else logging.WARNING, "slack.hearing", extra={"well": well, "why": why})
        if self._on_state is not None:
            self._on_state(self.state)

    # -- out

    async def post(self, where: PlaceRef | ThreadRef, card: Card, *, once: str) -> tuple[PostRef, float]:
        """See `bridge.ports.Chat`."""
        channel, root = _place(where)
        message = outbound.render(card, once=once, names=await self._names_in(card), zones=self._zones)
        args = {**message, **_address(where), "unfurl_links": False, "unfurl_media": False}
        answer = await self._api.call("chat.postMessage", args, repeatable=False)
        return self._posted(channel, root, answer.get("ts"))

    async def find(self, where: PlaceRef | ThreadRef, once: str, *, since: float) -> tuple[PostRef, float] | None:
        """See `bridge.ports.Chat`. Looks at the metadata, and at the id of the first block (R20)."""
        channel, root = _place(where)
        oldest = f"{max(0.0, since - SKEW_SECONDS):.6f}"
        args: dict[str, Any] = {"channel": channel, "oldest": oldest, "limit": PAGE, "include_all_metadata": True}
        args |= {"ts": root} if root else {}
        method = "conversations.replies" if root else "conversations.history"
        for _ in range(PAGES):
            page = await self._api.read(method, args)
            for message in page.get("messages") or []:
                if self._is_ours(message) and outbound.carries(message, once):
                    return self._posted(channel, root, message.get("ts"))
            cursor = (page.get("response_metadata") or {}).get("next_cursor")
            if not cursor:
                return None
            args["cursor"] = cursor
        raise ChatUnknownError(f"{method}: more than {PAGE * PAGES} messages since then; not looked at all of them")

    async def edit(self, post: PostRef, card: Card, *, once: str) -> None:
        """See `bridge.ports.Chat`. Metadata is left out, which keeps it."""
        message = outbound.render(card, once=once, names=await self._names_in(card), zones=self._zones)
        _, channel, ts = post.key.split("/")
        args = {"channel": channel, "ts": ts, "text": message["text"], "blocks": message["blocks"]}
        await self._api.call("chat.update", args)

    async def whisper(self, where: PlaceRef | ThreadRef, person: PersonId, text: str, *, private: str = "") -> None:
        """See `bridge.ports.Chat`. A handle is good for five uses in half an hour; then the ordinary way is taken."""
        message = outbound.whisper(text)
        if private and await self._respond(private, message):
            return
        args = {**message, **_address(where), "user": person.rpartition("/")[2]}
        await self._api.call("chat.postEphemeral", args)

    async def sign(self, message: MessageRef, sign: Sign) -> None:
        """See `bridge.ports.Chat`."""
        _, channel, ts = message.key.split("/")
        args = {"channel": channel, "timestamp": ts, "name": outbound.SIGNS[sign]}
        with contextlib.suppress(AlreadySoError):
            await self._api.call("reactions.add", args)

    async def open_form(self, asked: FormRequest) -> None:
        """Open a form for whoever pressed its button, within the life of the trigger that the press made."""
        view = outbound.form(asked, self._phrases)
        await self._api.call("views.open", {"trigger_id": asked.trigger, "view": view}, repeatable=False)

    def link(self, post: PostRef) -> str:
        """See `bridge.ports.Chat`."""
        _, channel, ts = post.key.split("/")
        root = post.thread.key.rpartition("/")[2]
        reply = f"?thread_ts={root}&cid={channel}" if root != ts else ""
        return f"{self._url}archives/{channel}/p{ts.replace('.', '')}{reply}"

    def _posted(self, channel: str, root: str, ts: object) -> tuple[PostRef, float]:
        if not isinstance(ts, str) or not ts:
            raise ChatUnknownError("Slack took the message and did not say where it stands")
        thread = inbound.thread_ref(self._me.team, channel, root or ts)
        return PostRef(thread, f"{self._me.team}/{channel}/{ts}"), float(ts)

    def _is_ours(self, message: Mapping[str, Any]) -> bool:
        return message.get("user") == self._me.user or bool(self._me.bot and message.get("bot_id") == self._me.bot)

    async def _names_in(self, card: Card) -> Mapping[PersonId, str]:
        """Look up names that a card does not say. An unknown name is no reason to hold a message back."""
        await self._look_up(outbound.people(card), within=NAMES_SECONDS)
        return self._names

    async def name_of(self, person: PersonId) -> str:
        """The display name of a person, remembered; an empty string where Slack does not say it in a moment."""
        await self._look_up({person}, within=NAME_SECONDS)
        return self._names.get(person, "")

    async def _look_up(self, people: Collection[PersonId], *, within: float) -> None:
        try:
            async with asyncio.timeout(within):
                for person in set(people) - self._names.keys():
                    user = (await self._api.read("users.info", {"user": person.rpartition("/")[2]})).get("user") or {}
                    profile = user.get("profile") or {}
                    if len(self._names) >= NAMES_KEPT:
                        self._names.pop(next(iter(self._names)))
                    self._names[person] = (
                        profile.get("display_name") or profile.get("real_name") or user.get("name") or ""
                    )
        except (ChatError, TimeoutError) as err:
            log.info("slack.name_unknown", extra={"why": str(err)})

    async def _respond(self, private: str, message: Mapping[str, Any]) -> bool:
        """Answer through a `response_url`. False: it is used up or too old."""
        now = asyncio.get_running_loop().time()
        uses, since = self._private.get(private, (0, now))
        if uses >= PRIVATE_USES or now - since > PRIVATE_SECONDS:
            return False
        if private not in self._private and len(self._private) >= PRIVATE_KEPT:
            self._private.pop(next(iter(self._private)))
        self._private[private] = (uses + 1, since)
        body = {"response_type": "ephemeral", "replace_original": False, **message}
        return await self._api.respond(private, body)


class _Line:
    """One Socket Mode connection, through Bolt, and how it is let go."""

    def __init__(self, settings: SlackSettings, hearing: Hearing, me: Me) -> None:
        self._settings = settings
        self._hearing = hearing
        self._me = me
        self._busy: set[asyncio.Task[Any]] = set()
        self._closing = False

    @contextlib.asynccontextmanager
    async def connected(self) -> AsyncIterator[SocketModeClient]:
        """Connect; raises `TimeoutError` when the library does not manage to."""
        me, token = self._me, self._settings.bot_token.get_secret_value()

        async def authorize() -> AuthorizeResult:  # a plain function: Bolt passes arguments by their names, `self` too
            # Who we are never changes; the library's own way would ask Slack before the first confirmation.
            return AuthorizeResult(
                enterprise_id=None, team_id=me.team, bot_user_id=me.user, bot_id=me.bot, bot_token=token
            )

        web = _client(self._settings)  # has no session: a connection that is built anew begins with a fresh one
        app = AsyncApp(name="flower", client=web, authorize=authorize, signing_secret="", logger=_LIBRARY_LOG)
        app.middleware(self._hear)
        app_token = self._settings.app_token.get_secret_value()
        client = AsyncSocketModeHandler(app, app_token, web_client=web, ping_interval=PING_SECONDS).client
        client.proxy = web.proxy
        try:
            async with asyncio.timeout(GRACE_SECONDS):
                await client.connect()  # type: ignore[no-untyped-call]  # the library's
            yield client
        finally:
            await self._close(client)

    async def _hear(self, req: AsyncBoltRequest) -> BoltResponse:
        task = asyncio.current_task()
        if self._closing or task is None:
            return BoltResponse(status=_NOT_CONFIRMED)
        self._busy.add(task)
        task.add_done_callback(self._busy.discard)  # it ends after the confirmation was sent
        reply = await self._hearing.answer(req.body)
        status = _CONFIRMED if reply.confirmed else _NOT_CONFIRMED
        return BoltResponse(status=status, body=dict(reply.body) if reply.body else "")

    async def _close(self, client: SocketModeClient) -> None:
        """Let go: what comes from now on is not taken, what is being taken is confirmed, then the socket goes."""
        self._closing = True
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                if self._busy:
                    await asyncio.wait(self._busy, timeout=ACCEPT_SECONDS)
                await client.close()  # type: ignore[no-untyped-call]  # the library's
        except TimeoutError:
            log.warning("slack.close_gave_up")
        await asyncio.sleep(0)  # the tasks that the library cancelled end before the loop may


class _Api:
    """Calls of the Web API, whose troubles are chat errors."""

    def __init__(self, client: AsyncWebClient, session: aiohttp.ClientSession) -> None:
        self._client = client
        self._session = session

    async def call(
        self, method: str, args: Mapping[str, object], *, repeatable: bool = True, token: str | None = None
    ) -> Mapping[str, Any]:
        """Call a method that changes something. `token` stands in for the bot's."""
        headers = {"Authorization": f"Bearer {token}"} if token else None
        return await self._made(self._client.api_call(method, json=dict(args), headers=headers), method, repeatable)

    async def read(self, method: str, args: Mapping[str, object]) -> Mapping[str, Any]:
        """Call a method that only reads."""
        return await self._made(self._client.api_call(method, http_verb="GET", params=dict(args)), method, True)

    async def respond(self, url: str, body: Mapping[str, Any]) -> bool:
        """Post to a `response_url`. False: it takes no more."""
        try:
            async with self._session.post(url, json=body, proxy=self._client.proxy) as answer:
                if answer.status == 429:
                    raise ChatBusyError("response_url: too many calls", retry_after=1.0)
                return answer.status < 300
        except (aiohttp.ClientError, OSError, ValueError) as err:
            raise as_chat_error(err, call="response_url", repeatable=True) from err

    async def _made(self, call: Awaitable[AsyncSlackResponse], method: str, repeatable: bool) -> Mapping[str, Any]:
        try:
            data = (await call).data
        except (SlackClientError, aiohttp.ClientError, OSError) as err:
            raise as_chat_error(err, call=method, repeatable=repeatable) from err
        return data if isinstance(data, dict) else {}


# -- setting up -------------------------------------------------------------------------------------------------


def _client(
    settings: SlackSettings, *, token: str | None = None, session: aiohttp.ClientSession | None = None
) -> AsyncWebClient:
    """Make a client that never repeats a call by itself: a post whose answer was lost would stand there twice."""
    client = AsyncWebClient(
        token=token,
        base_url=settings.api_url,
        timeout=int(CALL_SECONDS),
        session=session,
        retry_handlers=[],
        logger=_LIBRARY_LOG,
    )
    if _is_loopback(settings.api_url):
        client.proxy = None  # the library takes it from the environment and knows no exceptions
    return client


async def _introduce(client: AsyncWebClient, settings: SlackSettings) -> tuple[Me, str]:
    """Try the bot token; returns who we are and the address of the workspace.

    Raises:
        SettingsError: the address is wrong, or a right is missing.
        ChatGoneError: the token is refused.
    """
    answer = await _first_call(
        client.api_call("auth.test"), settings, call="auth.test", variable=PREFIX + "BOT_TOKEN", cure=REINSTALL
    )
    granted = next((str(value) for name, value in answer.headers.items() if name.lower() == "x-oauth-scopes"), "")
    missing = NEEDED_SCOPES - {scope.strip() for scope in granted.split(",")}
    if granted and missing:
        raise missing_scopes_error(missing)
    me = Me(team=str(answer["team_id"]), user=str(answer["user_id"]), bot=str(answer.get("bot_id") or ""))
    return me, str(answer.get("url") or "").rstrip("/") + "/"


async def _try_app_token(client: AsyncWebClient, settings: SlackSettings) -> None:
    """Ask for an address of the socket, and do not use it.

    Raises:
        ChatGoneError: the app-level token is refused.
    """
    opened = client.apps_connections_open(app_token=settings.app_token.get_secret_value())
    call, variable = "apps.connections.open", PREFIX + "APP_TOKEN"
    await _first_call(opened, settings, call=call, variable=variable, cure=RENEW_APP)


async def _first_call(
    answer: Awaitable[AsyncSlackResponse], settings: SlackSettings, *, call: str, variable: str, cure: str
) -> AsyncSlackResponse:
    try:
        return await answer
    except (SlackClientError, aiohttp.ClientError, OSError, ValueError) as err:
        raise as_start_error(err, call=call, variable=variable, api_url=settings.api_url, cure=cure) from err


def _place(where: PlaceRef | ThreadRef) -> tuple[str, str]:
    """Return the channel, and the root of the thread or an empty string."""
    parts = where.key.split("/")
    return parts[1], parts[2] if isinstance(where, ThreadRef) else ""


def _address(where: PlaceRef | ThreadRef) -> dict[str, str]:
    channel, root = _place(where)
    return {"channel": channel, "thread_ts": root} if root else {"channel": channel}


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    return host == "localhost" or host == "::1" or host.startswith("127.")


def _is_slack(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    return host.endswith(("slack.com", "slack-gov.com"))
