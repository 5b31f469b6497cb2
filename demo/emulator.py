"""Starts and drives the Slack emulator of the demo and the tests (npm package `local-slack-linux-x64`).

It is an independent program: one workspace with a Web API, Socket Mode, a page for the browser and a control interface.
What it does not do: it checks no token and no limit, drops message metadata, and knows no `<!date^…>`. It listens on
**all** network interfaces and lets anybody in: run it on machines whose network you trust.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import platform
import re
import signal
import tempfile
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

BOT_TOKEN = "xoxb-demo-flower"
APP_TOKEN = "xapp-demo-flower"
TEAM = "T01DEMO"
BOT = "U0FLOWER"
USERS = {"alice": "U01ALICE", "bob": "U02BOB", "carol": "U03CAROL"}
CHANNELS = {"general": "C01GENERAL", "runs": "C02RUNS"}
COMMAND = "/flower"
NODE_MODULES = Path(__file__).parent / "node_modules"
READY_SECONDS = 20.0
WAIT_SECONDS = 10.0
LAST_WORDS = 400


class EmulatorError(Exception):
    """The emulator did not start or does not answer; one line that says what to do."""


@dataclass(slots=True)
class Emulator:
    """A running emulator, and what people would do in it. Names of people and channels may be given, or their ids."""

    url: str
    """Of the page for the browser."""
    pid: int
    _session: aiohttp.ClientSession = field(repr=False)

    @property
    def api_url(self) -> str:
        """Base address of the Web API: what `FLOWER_CHAT_SLACK_API_URL` wants."""
        return f"{self.url}/api/"

    def thread_url(self, channel: str, root: str) -> str:
        """Address at which the page shows a thread open."""
        return f"{self.url}/archives/{_channel(channel)}?thread_ts={root}"

    async def command(self, user: str, channel: str, text: str, *, command: str = COMMAND) -> None:
        """Type a slash command. Returns when the bot has confirmed it, or after five seconds."""
        await self._control("command", user=_user(user), channel=_channel(channel), command=command, text=text)

    async def say(self, user: str, channel: str, text: str, thread: str = "") -> str:
        """Write a message; `thread` is the ts of a thread's root. Returns its ts."""
        more = {"thread_ts": thread} if thread else {}
        sent = await self._control("message", user=_user(user), channel=_channel(channel), text=text, **more)
        return str(sent["message"]["ts"])

    async def press(self, user: str, channel: str, message_ts: str, action: str) -> None:
        """Press a button: `action` is its label, or what it stands for (the first line of its value).

        Raises:
            LookupError: the message is not there, or has no such button; names those that it has.
        """
        message = await self.message(channel, message_ts)
        found = buttons(message)
        for button in found:
            if action in (button["text"]["text"], button["value"].partition("\n")[0]):
                names = ("type", "action_id", "block_id", "value", "text")
                pressed = {name: button[name] for name in names}
                ids = {"user": _user(user), "channel": _channel(channel), "messageTs": message_ts}
                await self._control("interact", action=pressed, **ids)
                return
        labels = ", ".join(repr(button["text"]["text"]) for button in found) or "none"
        raise LookupError(f"no button {action!r} in {message_ts}; there are: {labels}")

    async def press_raw(self, user: str, channel: str, message_ts: str, button: Mapping[str, Any]) -> None:
        """Press a button that stood on a message once: an old client, or a late finger."""
        names = ("type", "action_id", "block_id", "value", "text")
        pressed = {name: button[name] for name in names if name in button}
        ids = {"user": _user(user), "channel": _channel(channel), "messageTs": message_ts}
        await self._control("interact", action=pressed, **ids)

    async def submit(self, user: str, text: str, *, block: str = "words", field: str = "words") -> str:
        """Fill in the form that is open and send it. Returns an empty string, or the error that the form shows.

        Raises:
            LookupError: no form is open.
        """
        async with self._page() as page:
            state = await _next(page, "init")
            if not state["state"]["modalStack"]:
                raise LookupError("no form is open")
            values = {block: {field: {"type": "plain_text_input", "value": text}}}
            await page.send_json({"t": "view_submit", "user": _user(user), "values": values})
            shown = await _next(page, "view", "view_errors")
            return "; ".join(shown["errors"].values()) if shown["t"] == "view_errors" else ""

    async def open_form(self) -> dict[str, Any] | None:
        """Return the view of the form that is open."""
        async with self._page() as page:
            state = await _next(page, "init")
        stack = state["state"]["modalStack"]
        return stack[-1] if stack else None

    async def wait_for_form(self, *, within: float = WAIT_SECONDS) -> dict[str, Any]:
        """Wait until a form is open and return its view.

        Raises:
            EmulatorError: none was opened in time.
        """
        try:
            async with asyncio.timeout(within), self._page() as page:
                stack = (await _next(page, "init"))["state"]["modalStack"]
                while not stack:
                    stack = (await _next(page, "view"))["stack"]
                return dict(stack[-1])
        except TimeoutError:
            raise EmulatorError(f"no form was opened within {within:.0f} s") from None

    async def react(self, user: str, channel: str, message_ts: str, name: str) -> None:
        """Put a reaction on a message."""
        await self._control("reaction", user=_user(user), channel=_channel(channel), ts=message_ts, name=name)

    async def edit(self, user: str, channel: str, message_ts: str, text: str) -> None:
        """Change a message of one's own."""
        await self._control("edit-message", user=_user(user), channel=_channel(channel), ts=message_ts, text=text)

    async def messages(self, channel: str, *, thread: str = "") -> list[dict[str, Any]]:
        """Return what stands in a channel, replies included, oldest first; with `thread`: that thread and its root."""
        found: list[dict[str, Any]] = (await self._control(f"messages/{_channel(channel)}"))["messages"]
        return [message for message in found if not thread or thread in (message["ts"], message.get("thread_ts"))]

    async def message(self, channel: str, ts: str) -> dict[str, Any]:
        """Return one message.

        Raises:
            LookupError: it is not there.
        """
        for message in await self.messages(channel):
            if message["ts"] == ts:
                return message
        raise LookupError(f"no message {ts} in {channel}")

    async def log(self) -> list[dict[str, Any]]:
        """Return the last thousand things that passed between bot and emulator; calls have their arguments."""
        return list((await self._control("log"))["log"])

    async def calls(self, method: str = "") -> list[dict[str, Any]]:
        """Return the arguments of the bot's Web API calls that the log still has, with `method` added."""
        return [
            {"method": entry["summary"], **(entry.get("detail") or {})}
            for entry in await self.log()
            if entry["kind"] == "web_api" and entry["direction"] == "from_bot" and method in ("", entry["summary"])
        ]

    @contextlib.asynccontextmanager
    async def _page(self) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        async with self._session.ws_connect(f"{self.url}/ui", max_msg_size=0) as page:
            yield page

    async def _control(self, what: str, **body: object) -> Mapping[str, Any]:
        """Ask the control interface: with a body it does something, without one it tells something."""
        address = f"{self.url}/_control/{what}"
        try:
            async with self._session.request("POST" if body else "GET", address, json=body or None) as answer:
                said: Mapping[str, Any] = await answer.json()
        except (aiohttp.ClientError, TimeoutError) as err:
            raise EmulatorError(f"the Slack emulator does not answer at {self.url} ({what}): {err}") from err
        if said.get("ok") is False:
            raise EmulatorError(f"the Slack emulator refuses {what}: {said.get('error')}")
        return said


# -- reading messages -------------------------------------------------------------------------------------------


def buttons(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the buttons of a message, each with its `block_id`."""
    return [
        {**element, "block_id": block["block_id"]}
        for block in message.get("blocks") or []
        if block["type"] == "actions"
        for element in block["elements"]
    ]


def shown_text(message: Mapping[str, Any]) -> str:
    """Return all that a reader sees of a message, a line a text, with Slack's escapes undone."""
    blocks = message.get("blocks")
    found = "\n".join(_texts(blocks)) if blocks else str(message.get("text") or "")
    return found.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _texts(value: object) -> list[str]:
    if isinstance(value, list):
        return [text for inner in value for text in _texts(inner)]
    if isinstance(value, Mapping):
        text = value.get("text")
        return (
            [text]
            if isinstance(text, str)
            else [t for name, v in value.items() if name != "confirm" for t in _texts(v)]
        )
    return []


async def _next(page: aiohttp.ClientWebSocketResponse, *kinds: str) -> dict[str, Any]:
    async with asyncio.timeout(WAIT_SECONDS):
        while True:
            item: dict[str, Any] = json.loads(await page.receive_str())
            if item["t"] in kinds:
                return item


def _user(name: str) -> str:
    return USERS.get(name, name)


def _channel(name: str) -> str:
    return CHANNELS.get(name.removeprefix("#"), name)


# -- starting it ------------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def emulator(*, port: int = 0, binary: Path | None = None) -> AsyncIterator[Emulator]:
    """Run an emulator for as long as the body runs, in a process group of its own that is ended with it.

    Args:
        port: of its page and its APIs; 0 picks a free one.
        binary: the program, if not the one that npm installed.

    Raises:
        EmulatorError: it is not installed, its port is taken, or it did not start.
    """
    program = binary or installed()
    with tempfile.TemporaryDirectory(prefix="slack-emulator-") as folder:
        config = Path(folder) / "config.json"
        config.write_text(json.dumps(CONFIG), encoding="utf-8")
        log = Path(folder) / "log"
        argv = [str(program), "--config", str(config), "--port", str(port), "--base-host", "127.0.0.1"]
        argv += ["--files-dir", str(Path(folder) / "files")]
        with log.open("wb") as out:
            process = await asyncio.create_subprocess_exec(
                *argv, stdin=asyncio.subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
            )
        try:
            url = await _address_of(process, log, port)
            async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=WAIT_SECONDS)) as session:
                yield Emulator(url, process.pid, session)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


def installed() -> Path:
    """Return the program that npm installed.

    Raises:
        EmulatorError: it is not there; says how it is installed.
    """
    system = platform.system().lower()
    arch = {"x86_64": "x64", "amd64": "x64"}.get(platform.machine().lower(), platform.machine().lower())
    found = NODE_MODULES / f"local-slack-{system}-{arch}" / "bin" / "local-slack"
    if found.exists():
        return found
    if (system, arch) != ("linux", "x64"):
        raise EmulatorError(f"the Slack emulator comes for Linux on x64 only; this is {system} on {arch}")
    raise EmulatorError("the Slack emulator is not installed: run `npm ci` in the folder demo (`make demo` does it)")


async def _address_of(process: asyncio.subprocess.Process, log: Path, port: int) -> str:
    """Wait until it says where it listens."""
    deadline = asyncio.get_running_loop().time() + READY_SECONDS
    while True:
        said = log.read_text(encoding="utf-8", errors="replace")
        if found := re.search(r"Web UI:\s+(http://\S+)", said):
            return found[1]
        if process.returncode is not None:
            if "in use" in said or "EADDRINUSE" in said:
                raise EmulatorError(f"port {port} is taken: choose another one (make demo PORT={port + 1})")
            words = " ".join(said.split())[-LAST_WORDS:]
            raise EmulatorError(f"the Slack emulator ended at once: {words or 'it said nothing'}")
        if asyncio.get_running_loop().time() > deadline:
            raise EmulatorError(f"the Slack emulator did not start within {READY_SECONDS:.0f} s")
        await asyncio.sleep(0.02)  # a file has no event to wait on


CONFIG: dict[str, Any] = {
    "workspace": {"name": "Demo (scripted model)", "domain": "demo", "teamId": TEAM},
    "app": {
        "appId": "A01FLOWER",
        "botUserId": BOT,
        "botName": "flower",
        "botToken": BOT_TOKEN,
        "appToken": APP_TOKEN,
        "signingSecret": "not-used-in-socket-mode",
        "mode": "socket",
    },
    "users": [{"id": id_, "name": name, "real_name": name.title()} for name, id_ in USERS.items()],
    "channels": [{"id": id_, "name": name, "members": [BOT, *USERS.values()]} for name, id_ in CHANNELS.items()],
}
