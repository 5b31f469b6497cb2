"""A strict Slack on loopback for the faults that the emulator cannot bring about. Never the only judge of anything.

It refuses what Slack refuses (tokens, archived channels, foreign messages, dead triggers, used-up response addresses),
answers late or not at all on demand, sends an envelope to one connection only, and again if an event is not confirmed.
Every call and every payload goes through the judges; what they say is in `complaints`, which must be empty at the end.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal

from aiohttp import WSMsgType, web

from tests.fakes.slack_judges import judge_message, judge_view
from tests.fakes.slack_payloads import judge_payload

TEAM, BOT, BOT_ID = "T0TEAM", "U0BOT", "B0BOT"
BOT_TOKEN, APP_TOKEN = "xoxb-strict-bot", "xapp-strict-app"
SCOPES = "app_mentions:read,channels:history,chat:write,commands,groups:history,im:history,reactions:write,users:read"
USERS = {"U1ANNA": "Anna", "U2BEN": "Ben"}
CHANNEL = "C1GENERAL"

Kind = Literal["busy", "lost", "reset", "hang", "html", "server_error"]
Answer = dict[str, Any]


@dataclass(slots=True)
class Fault:
    """What happens to the next calls of a method, or with `error` what they are answered."""

    kind: Kind | Literal["error"]
    times: int
    retry_after: str = "1"
    error: str = ""


@dataclass(slots=True)
class Delivery:
    """One envelope's way: how often it went out, to which connection, and what came back."""

    envelope: dict[str, Any]
    attempts: list[int] = field(default_factory=list)
    """Numbers of the connections that it was given to."""
    acked: asyncio.Event = field(default_factory=asyncio.Event)
    payload: Mapping[str, Any] | None = None
    """What the confirmation carried."""

    async def confirmed(self, *, within: float = 5.0) -> bool:
        """Wait for the confirmation."""
        try:
            async with asyncio.timeout(within):
                await self.acked.wait()
        except TimeoutError:
            return False
        return True


@dataclass(slots=True)
class _Socket:
    number: int
    ws: web.WebSocketResponse


class StrictSlack:
    """See the module. Made by `strict_slack`."""

    def __init__(self) -> None:
        self.base = ""
        self.scopes = SCOPES
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.complaints: list[str] = []
        self.archived: set[str] = set()
        self.revoked: set[str] = set()
        """Tokens that are not taken any more."""
        self.messages: dict[str, list[dict[str, Any]]] = {CHANNEL: []}
        self.deliveries: list[Delivery] = []
        self.views: list[dict[str, Any]] = []
        self.whispers: list[dict[str, Any]] = []
        """Ephemeral messages: `user`, `channel`, `text`, and `via` (`response_url` or `postEphemeral`)."""
        self.ack_seconds = 3.0
        self.redeliver_after = 0.05
        self.trigger_seconds = 3.0
        self.frozen = False
        self.sockets: list[_Socket] = []
        self.connected = asyncio.Event()
        self._numbers = count(1)
        self._ts = count(1_700)
        self._tickets: set[str] = set()
        self._triggers: dict[str, tuple[float, Answer]] = {}
        self._responses: dict[str, tuple[int, Answer]] = {}
        self._faults: dict[str, list[Fault]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._methods: dict[str, Callable[[dict[str, Any]], Answer]] = {
            "auth.test": self._who,
            "apps.connections.open": self._connect,
            "users.info": self._user,
            "chat.postMessage": self._post,
            "chat.update": self._update,
            "chat.postEphemeral": self._ephemeral,
            "conversations.history": self._read,
            "conversations.replies": self._read,
            "reactions.add": self._react,
            "views.open": self._open,
        }

    @property
    def api_url(self) -> str:
        return f"http://{self.base}/api/"

    # -- what a test brings about

    def fault(self, method: str, kind: Kind, *, times: int = 1, retry_after: str = "1") -> None:
        """Let the next calls of a method fail; `lost` is torn after the act, `reset` before it."""
        self._faults.setdefault(method, []).append(Fault(kind, times, retry_after))

    def refuse(self, method: str, error: str, *, times: int = 1) -> None:
        """Let the next calls of a method be answered with an error code."""
        self._faults.setdefault(method, []).append(Fault("error", times, error=error))

    async def disconnect(self, reason: str = "refresh_requested") -> None:
        """Ask every connection to be replaced, as Slack does every few hours."""
        for socket in list(self.sockets):
            await socket.ws.send_json({"type": "disconnect", "reason": reason})

    def cut(self) -> None:
        """Tear every connection without a word."""
        for socket in list(self.sockets):
            transport = socket.ws._req.transport if socket.ws._req is not None else None
            if transport is not None:
                transport.abort()

    def expire_triggers(self) -> None:
        self._triggers.clear()

    def expire_response_urls(self) -> None:
        self._responses.clear()

    async def close(self) -> None:
        """End deliveries and connections."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        self.cut()

    # -- what people do

    async def command(self, user: str, text: str, *, channel: str = CHANNEL) -> Delivery:
        """Type `/flower …`; returns when it is confirmed or Slack's time is up. It never comes again."""
        trigger = self._trigger({"user": user, "channel": channel})
        payload: dict[str, Any] = {
            "token": "old", "team_id": TEAM, "team_domain": "team", "channel_id": channel, "channel_name": "general",
            "user_id": user, "user_name": USERS[user].lower(), "command": "/flower", "text": text,
            "api_app_id": "A0APP", "is_enterprise_install": "false",
            "response_url": self._response_url(user, channel), "trigger_id": trigger,
        }  # fmt: skip
        return await self._once("slash_commands", payload)

    def say(
        self, user: str, text: str, *, thread: str = "", channel: str = CHANNEL, **more: object
    ) -> tuple[str, Delivery]:
        """Write a message; returns its ts and the delivery, which is repeated until it is confirmed."""
        ts = self._next_ts()
        event = {
            "type": "message", "channel": channel, "channel_type": "channel", "user": user, "text": text, "ts": ts,
            "event_ts": ts, "team": TEAM, **({"thread_ts": thread} if thread else {}), **more,
        }  # fmt: skip
        self.messages[channel].append(event)
        return ts, self.event(event)

    def event(self, event: Mapping[str, Any]) -> Delivery:
        """Deliver an event of any kind."""
        payload = {
            "token": "old", "team_id": TEAM, "api_app_id": "A0APP", "event": event, "type": "event_callback",
            "event_id": f"Ev{next(self._numbers)}", "event_time": 1_700_000_000, "is_ext_shared_channel": False,
            "authorizations": [{"enterprise_id": None, "team_id": TEAM, "user_id": BOT, "is_bot": True}],
        }  # fmt: skip
        delivery = self._delivery("events_api", payload)
        task = asyncio.create_task(self._until_confirmed(delivery))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return delivery

    async def press(self, user: str, ts: str, label: str, *, channel: str = CHANNEL) -> Delivery:
        """Press a button by its label."""
        message = self.message(ts, channel=channel)
        for block in message.get("blocks", []):
            for element in block.get("elements", []) if block["type"] == "actions" else []:
                if element["text"]["text"] == label:
                    return await self._press(user, message, block, element, channel)
        raise LookupError(f"no button {label!r} in {ts}")

    async def _press(self, user: str, message: Answer, block: Answer, element: Answer, channel: str) -> Delivery:
        names = ("type", "action_id", "value", "text")
        container = {"type": "message", "message_ts": message["ts"], "channel_id": channel, "is_ephemeral": False}
        container |= {"thread_ts": message["thread_ts"]} if "thread_ts" in message else {}
        payload: dict[str, Any] = {
            "type": "block_actions", "team": {"id": TEAM, "domain": "team"}, "api_app_id": "A0APP", "token": "old",
            "user": {"id": user, "username": USERS[user].lower(), "name": USERS[user].lower(), "team_id": TEAM},
            "container": container, "channel": {"id": channel, "name": "general"}, "message": message,
            "trigger_id": self._trigger({"user": user, "channel": channel}), "enterprise": None,
            "response_url": self._response_url(user, channel), "is_enterprise_install": False,
            "actions": [
                {**{name: element[name] for name in names}, "block_id": block["block_id"], "action_ts": self._next_ts()}
            ],
            "state": {"values": {}},
        }  # fmt: skip
        return await self._once("interactive", payload)

    async def submit(self, user: str, text: str | None) -> Delivery:
        """Send the form that was opened last."""
        view = self.views[-1]
        block = view["blocks"][0]
        typed = {block["block_id"]: {block["element"]["action_id"]: {"type": "plain_text_input", "value": text}}}
        payload = {
            "type": "view_submission", "team": {"id": TEAM, "domain": "team"}, "api_app_id": "A0APP", "token": "old",
            "user": {"id": user, "username": USERS[user].lower(), "name": USERS[user].lower(), "team_id": TEAM},
            "trigger_id": self._trigger({"user": user}), "view": {**view, "state": {"values": typed}},
            "response_urls": [], "is_enterprise_install": False, "enterprise": None,
        }  # fmt: skip
        return await self._once("interactive", payload)

    # -- what a test looks at

    def message(self, ts: str, *, channel: str = CHANNEL) -> dict[str, Any]:
        for message in self.messages[channel]:
            if message["ts"] == ts:
                return message
        raise LookupError(f"no message {ts}")

    def called(self, method: str) -> list[dict[str, Any]]:
        """Return the arguments of the calls of a method."""
        return [args for name, args in self.calls if name == method]

    # -- the Web API

    async def handle(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        args, token = await _arguments(request)
        self.calls.append((method, args))
        fault = self._fault_of(method)
        match fault.kind if fault else "":
            case "busy":
                headers = {"Retry-After": fault.retry_after} if fault else {}
                return web.json_response({"ok": False, "error": "ratelimited"}, status=429, headers=headers)
            case "reset":
                return _torn(request)
            case "hang":
                await asyncio.sleep(3_600)
            case "html":
                return web.Response(text="<html>captive portal</html>", content_type="text/html")
            case "server_error":
                return web.Response(text="oops", status=503, content_type="text/plain")
            case "error":
                return web.json_response({"ok": False, "error": fault.error if fault else ""})
        answer = self._answer(method, args, token)
        if fault and fault.kind == "lost":
            return _torn(request)
        return web.json_response(answer, headers={"X-OAuth-Scopes": self.scopes})

    def _fault_of(self, method: str) -> Fault | None:
        waiting = self._faults.get(method)
        if not waiting:
            return None
        waiting[0].times -= 1
        return waiting.pop(0) if waiting[0].times <= 0 else waiting[0]

    def _answer(self, method: str, args: dict[str, Any], token: str) -> Answer:
        wanted = APP_TOKEN if method == "apps.connections.open" else BOT_TOKEN
        if token != wanted or token in self.revoked:
            known = token in (APP_TOKEN, BOT_TOKEN) and token not in self.revoked
            return _no("not_allowed_token_type" if known else "invalid_auth")
        channel = args.get("channel")
        if channel is not None and channel not in self.messages:
            return _no("channel_not_found")
        answer = self._methods.get(method)
        if answer is None:
            self.complaints.append(f"{method}: no such method")
            return _no("unknown_method")
        return answer(args)

    def _who(self, _: dict[str, Any]) -> Answer:
        me = {"team_id": TEAM, "user_id": BOT, "bot_id": BOT_ID, "team": "Team", "user": "flower"}
        return {"ok": True, "url": "https://team.slack.com/", **me}

    def _connect(self, _: dict[str, Any]) -> Answer:
        ticket = f"ticket{next(self._numbers)}"
        self._tickets.add(ticket)
        return {"ok": True, "url": f"ws://{self.base}/link/?ticket={ticket}"}

    def _user(self, args: dict[str, Any]) -> Answer:
        name = USERS.get(str(args.get("user")))
        user: Answer = {"id": args.get("user"), "name": "x", "profile": {"display_name": name}}
        return {"ok": True, "user": user} if name else _no("user_not_found")

    def _post(self, args: dict[str, Any]) -> Answer:
        self._judge("chat.postMessage", args)
        if args["channel"] in self.archived:
            return _no("is_archived")
        root = args.get("thread_ts")
        if root and not any(each["ts"] == root and "thread_ts" not in each for each in self.messages[args["channel"]]):
            return _no("thread_not_found")
        if args.get("unfurl_links") is not False or args.get("unfurl_media") is not False:
            self.complaints.append("chat.postMessage: previews are not switched off")
        names = ("channel", "text", "blocks", "metadata", "thread_ts")
        message = {name: args[name] for name in names if name in args}
        message |= {"type": "message", "ts": self._next_ts(), "user": BOT, "bot_id": BOT_ID}
        self.messages[args["channel"]].append(message)
        self.event({**message, "event_ts": message["ts"], "channel_type": "channel"})  # bots hear themselves
        return {"ok": True, "channel": args["channel"], "ts": message["ts"], "message": message}

    def _update(self, args: dict[str, Any]) -> Answer:
        self._judge("chat.update", args)
        if args["channel"] in self.archived:
            return _no("is_inactive")
        try:
            message = self.message(args["ts"], channel=args["channel"])
        except LookupError:
            return _no("message_not_found")
        if message.get("bot_id") != BOT_ID:
            return _no("cant_update_message")
        old = [block.get("block_id") for block in message.get("blocks", [])]
        new = [block.get("block_id") for block in args.get("blocks", [])]
        if args.get("blocks") != message.get("blocks") and set(old) & set(new):
            self.complaints.append("chat.update: a block_id was used again for other content")
        message |= {"text": args["text"], "blocks": args.get("blocks", [])}
        message |= {"metadata": args["metadata"]} if "metadata" in args else {}
        return {"ok": True, "channel": args["channel"], "ts": args["ts"]}

    def _ephemeral(self, args: dict[str, Any]) -> Answer:
        self._judge("chat.postEphemeral", args)
        if args.get("user") not in USERS:
            return _no("user_not_in_channel")
        self.whispers.append({**args, "via": "postEphemeral"})
        return {"ok": True, "message_ts": self._next_ts()}

    def _read(self, args: dict[str, Any]) -> Answer:
        """Both reads; replies begin with the root whatever `oldest` says, and come oldest first."""
        everything, root = self.messages[args["channel"]], args.get("ts")
        found = [message for message in everything if message["ts"] >= args.get("oldest", "")]
        if root:
            first = [message for message in everything if message["ts"] == root]
            if not first:
                return _no("thread_not_found")
            found = first + [message for message in found if message.get("thread_ts") == root]
        else:
            found = [message for message in reversed(found) if "thread_ts" not in message]
        if str(args.get("include_all_metadata")).lower() not in ("1", "true"):
            found = [{name: value for name, value in message.items() if name != "metadata"} for message in found]
        start, most = int(args.get("cursor") or 0), int(args.get("limit", 100))
        more = str(start + most) if start + most < len(found) else ""
        return {"ok": True, "messages": found[start : start + most], "response_metadata": {"next_cursor": more}}

    def _react(self, args: dict[str, Any]) -> Answer:
        try:
            message = self.message(str(args.get("timestamp")), channel=str(args["channel"]))
        except LookupError:
            return _no("message_not_found")
        names: list[str] = message.setdefault("reactions", [])
        if args["name"] in names:
            return _no("already_reacted")
        names.append(args["name"])
        return {"ok": True}

    def _open(self, args: dict[str, Any]) -> Answer:
        self.complaints += [f"views.open: {said}" for said in judge_view(args["view"], with_types=False)]
        made, _ = self._triggers.pop(args.get("trigger_id", ""), (None, {}))
        if made is None or time.monotonic() - made > self.trigger_seconds:
            return _no("expired_trigger_id")
        view = {**args["view"], "id": f"V{next(self._numbers)}", "hash": "1.a", "team_id": TEAM, "bot_id": BOT_ID}
        self.views.append(view)
        return {"ok": True, "view": view}

    async def respond(self, request: web.Request) -> web.StreamResponse:
        """A `response_url`: five uses."""
        name = request.match_info["name"]
        body = await request.json()
        self.complaints += [f"response_url: {said}" for said in judge_message(body, with_types=False)]
        uses, context = self._responses.get(name, (5, {}))
        if uses >= 5:
            return web.json_response({"ok": False, "error": "expired_url"}, status=404)
        self._responses[name] = (uses + 1, context)
        self.whispers.append({**body, **context, "via": "response_url"})
        return web.Response(text="ok")

    def _judge(self, method: str, args: dict[str, Any]) -> None:
        self.complaints += [f"{method}: {said}" for said in judge_message(args, with_types=False)]

    # -- Socket Mode

    async def link(self, request: web.Request) -> web.StreamResponse:
        ticket = request.query.get("ticket", "")
        if ticket not in self._tickets:
            return web.Response(status=403)
        self._tickets.discard(ticket)  # an address is good for one connection
        ws = web.WebSocketResponse(autoping=False)
        await ws.prepare(request)
        socket = _Socket(next(self._numbers), ws)
        self.sockets.append(socket)
        info = {"app_id": "A0APP"}
        await ws.send_json({"type": "hello", "num_connections": len(self.sockets), "connection_info": info})
        self.connected.set()
        try:
            async for message in ws:
                if message.type is WSMsgType.PING and not self.frozen:
                    await ws.pong(message.data)
                elif message.type is WSMsgType.TEXT:
                    self._confirmed(json.loads(message.data))
        finally:
            self.sockets.remove(socket)
            if not self.sockets:
                self.connected.clear()
        return ws

    def _confirmed(self, said: Mapping[str, Any]) -> None:
        for delivery in self.deliveries:
            if delivery.envelope["envelope_id"] == said.get("envelope_id"):
                delivery.payload = said.get("payload")
                delivery.acked.set()

    def _delivery(self, kind: str, payload: Mapping[str, Any]) -> Delivery:
        self.complaints += [f"our own {kind}: {said}" for said in judge_payload(payload)]
        envelope: dict[str, Any] = {"envelope_id": f"e{next(self._numbers)}", "type": kind, "payload": payload}
        envelope |= {"accepts_response_payload": kind != "events_api"}
        delivery = Delivery(envelope)
        self.deliveries.append(delivery)
        return delivery

    async def _once(self, kind: str, payload: Mapping[str, Any]) -> Delivery:
        delivery = self._delivery(kind, payload)
        await self._send(delivery)
        await delivery.confirmed(within=self.ack_seconds)
        return delivery

    async def _until_confirmed(self, delivery: Delivery) -> None:
        """Deliver an event, and three times more if it is not confirmed."""
        for attempt in range(4):
            if attempt:
                delivery.envelope |= {"retry_attempt": attempt, "retry_reason": "timeout"}
                await asyncio.sleep(self.redeliver_after)
            await self._send(delivery)
            if await delivery.confirmed(within=self.ack_seconds):
                return

    async def _send(self, delivery: Delivery) -> None:
        """Give an envelope to one connection: each in its turn."""
        await self.connected.wait()
        socket = self.sockets[len(self.deliveries) % len(self.sockets)]
        delivery.attempts.append(socket.number)
        with contextlib.suppress(ConnectionError):
            await socket.ws.send_json(delivery.envelope)

    def _trigger(self, context: Answer) -> str:
        trigger = f"{next(self._numbers)}.{next(self._numbers)}.abc"
        self._triggers[trigger] = (time.monotonic(), context)
        return trigger

    def _response_url(self, user: str, channel: str) -> str:
        name = f"r{next(self._numbers)}"
        self._responses[name] = (0, {"user": user, "channel": channel})
        return f"http://{self.base}/respond/{name}"

    def _next_ts(self) -> str:
        return f"1700000000.{next(self._ts):06}"


def _no(error: str) -> Answer:
    return {"ok": False, "error": error}


def _torn(request: web.Request) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


async def _arguments(request: web.Request) -> tuple[dict[str, Any], str]:
    """Read arguments from the query, a JSON body or a form, and the token from wherever it stands."""
    args: dict[str, Any] = dict(request.query)
    if request.method == "POST":
        args |= await request.json() if request.content_type == "application/json" else dict(await request.post())
    token = str(args.pop("token", "") or "") or request.headers.get("Authorization", "").removeprefix("Bearer ")
    return args, token


@contextlib.asynccontextmanager
async def strict_slack() -> AsyncIterator[StrictSlack]:
    """Serve a strict Slack; fails at the end if a judge complained of anything."""
    slack = StrictSlack()
    app = web.Application()
    app.router.add_route("*", "/api/{method}", slack.handle)
    app.router.add_post("/respond/{name}", slack.respond)
    app.router.add_get("/link/", slack.link)
    runner = web.AppRunner(app, handle_signals=False, shutdown_timeout=0.2)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    slack.base = f"{host}:{port}"
    try:
        yield slack
    finally:
        await slack.close()
        await runner.cleanup()
    assert slack.complaints == []
