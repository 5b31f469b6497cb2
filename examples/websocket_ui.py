"""A run in the browser: a page, a WebSocket, and as many browsers as you like. Needs aiohttp (`pip install aiohttp`).

    python examples/websocket_ui.py "Write a program that prints the first ten primes" --workspace site

It prints the address to open. There you see the run live, answer its questions with a button or in words, put a note
into its inbox, interrupt it with words, end it, or ask the oracle, which never disturbs it.

How it is wired, and what to copy:

    Room        the sink. It is called on the loop's thread inside the run, so it only puts an entry into a bounded list
                and rings a bell: it never waits, and nothing it does can raise into the run.
    History     the list. Every browser reads it at its own pace from the last number it has seen, so a slow browser
                holds up nobody, and one that comes back is shown what it missed (or told how much is gone).
    state()     what is true now, above all which questions wait, is read from the channel and never put together from
                events: a question whose agent was cut has no closing event.

It listens on loopback only, and whoever wants to act needs the key that stands in the printed address: other users of
this machine reach loopback too, and so does the agent, which must not answer its own questions.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import hashlib
import json
import re
import secrets
import signal
import sys
from collections import deque
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from aiohttp import WSMsgType, web

from flower import Event, Runtime, Step, StepResult, Workflow, starter_flow
from flower.texts import speaking
from flower.workflow.aside import Recent, ask_aside

PAGE = Path(__file__).with_suffix(".html")
KEPT = 2000
"""Entries of the history."""
MOST_CHARACTERS = 8000
"""Of one text in it: a tool may return 50 MB."""
MOST_WORDS = 32_000
"""Characters of one message from a browser."""
ASIDES = 3
"""Oracle questions at once; each costs money."""
CLOSING_SECONDS = 15.0


class RefusedError(Exception):
    """What a browser sent makes no sense here; one line that says what would."""


# -- what all browsers see -------------------------------------------------------------------------------------------


class History:
    """The newest entries, numbered from 1."""

    def __init__(self, kept: int = KEPT) -> None:
        self.last = 0
        self._entries: deque[str] = deque(maxlen=kept)
        self._bells: set[asyncio.Event] = set()

    def add(self, entry: dict[str, Any]) -> None:
        """Keep an entry and ring. On the loop's thread; never waits."""
        self.last += 1
        self._entries.append(json.dumps({"n": self.last, **entry}, default=str))
        self.ring()

    def ring(self) -> None:
        for bell in self._bells:
            bell.set()

    def after(self, number: int) -> tuple[int, list[str]]:
        """Return how many entries behind `number` are gone, and those that are still there."""
        gone = self.last - len(self._entries)
        return max(0, gone - number), list(islice(self._entries, max(0, number - gone), None))

    @contextlib.contextmanager
    def bell(self) -> Iterator[asyncio.Event]:
        """Give a reader its own bell for as long as the body runs."""
        bell = asyncio.Event()
        self._bells.add(bell)
        try:
            yield bell
        finally:
            self._bells.discard(bell)


class Room:
    """One run and everybody who watches it. Belongs to the event loop that the run is on."""

    def __init__(self, flow: Workflow, runtime: Runtime) -> None:
        if flow.channel is None:
            raise ValueError("this page answers questions, so the workflow needs a channel")
        self.flow, self.runtime, self.channel = flow, runtime, flow.channel
        self.id = secrets.token_hex(4)
        """A browser that knows another one belongs to an earlier start of this program."""
        self.history = History()
        self.recent = Recent()
        self.step = ""
        self.over = ""
        self.lost = 0
        self.asides: set[asyncio.Task[None]] = set()
        self.tasks: asyncio.TaskGroup
        """Owns the run and the oracle's questions; open for as long as the page is served."""

    def __call__(self, event: Event) -> None:
        """Take an event. This is the sink."""
        try:
            if event.kind == "step":
                self.step = event.text
            self.recent(event)
            self.tell(event.kind, event.text, event.tool, event.payload)
        except Exception:  # noqa: BLE001 - boundary: whatever is wrong with our page must not end the run (behaviour 5.2)
            self.lost += 1

    def tell(self, kind: str, text: str = "", tool: str = "", payload: dict[str, Any] | None = None) -> None:
        self.history.add({"kind": kind, "text": shortened(text), "tool": tool, "payload": shortened(payload or {})})

    def settled(self, step: Step, result: StepResult) -> None:
        """Take the result of a step. Money and success come from here and not from events."""
        payload = {"ok": result.ok, "cost_usd": result.cost_usd, "seconds": result.duration_s}
        self.tell("settled", f"{step.name}: {'done' if result.ok else result.error or 'failed'}", payload=payload)

    def state(self) -> dict[str, Any]:
        """Return what is true now, for people."""
        return {
            "step": self.step,
            "over": self.over,
            "cost_usd": self.runtime.total_cost(),
            "unread": len(self.channel.pending_mail()),
            "lost": self.lost,
            "questions": [
                {"id": ask.id, "question": shortened(ask.question), "options": shortened(ask.options)}
                for ask in self.channel.pending()
            ],
        }

    async def carry(self) -> None:
        """Run the workflow to its end, and say how it ended."""
        try:
            ctx = await self.flow.run(self.runtime, on_event=self, on_step=self.settled)
        except Exception as err:  # noqa: BLE001 - boundary: the page stays, and says what happened
            self.over = f"It broke: {type(err).__name__}: {err}"
        else:
            failed = ctx.get("_failed_at")
            why = failed and (ctx.get("_aborted") or ctx["_results"][failed].error or "it was not accepted")
            self.over = f"It stopped in step {failed}: {why}" if failed else "It is done."
        self.tell("over", self.over)


def shortened(value: Any) -> Any:
    """Cut every text in a value. What tools write has no size one could rely on."""
    if isinstance(value, str):
        return value if len(value) <= MOST_CHARACTERS else f"{value[:MOST_CHARACTERS]} … ({len(value)} characters)"
    if isinstance(value, dict):
        return {str(name): shortened(each) for name, each in islice(value.items(), 50)}
    if isinstance(value, list):
        return [shortened(each) for each in value[:50]]
    return value


# -- what a browser wants --------------------------------------------------------------------------------------------


def act(room: Room, message: str) -> str:
    """Do what a browser wants; what is answered to it.

    Raises:
        RefusedError: it makes no sense.
    """
    said = read(message)
    text = said.get("text", "").strip()
    match said["do"]:
        case "answer":
            needed(text, "an answer")
            return settle(said, room.channel.answer(said.get("ask", ""), text), "answered")
        case "skip":
            return settle(said, room.channel.decline(said.get("ask", ""), text), "skipped")
        case "note":
            needed(text, "a note")
            room.channel.send(text)
            return "In the inbox. The agent sees it when it looks there next."
        case "interrupt" if not room.over:
            # While a question waits there may be no next message for half an hour, so that cut is made at once.
            room.runtime.interrupt(text, now=bool(room.channel.pending()))
            return "It is interrupted at its next message, and goes on with your words."
        case "end" if not room.over:
            room.runtime.end()
            return "It ends at its next message. The accounts are written."
        case "ask":
            needed(text, "a question")
            if len(room.asides) >= ASIDES:
                raise RefusedError(f"{ASIDES} questions to the oracle are open; wait for an answer")
            task = room.tasks.create_task(aside(room, text))
            room.asides.add(task)
            task.add_done_callback(room.asides.discard)
            return "The oracle is looking."
        case "interrupt" | "end":
            raise RefusedError("the run is over; start this program again in the same directory to go on")
        case other:
            raise RefusedError(f"there is no {other!r}; there are answer, skip, note, interrupt, end and ask")


def read(message: str) -> dict[str, str]:
    """Parse what a browser sent.

    Raises:
        RefusedError: it is not an object of texts that says what to do.
    """
    try:
        said = json.loads(message)
    except ValueError as err:
        raise RefusedError(f"that is no JSON ({err})") from None
    except RecursionError:
        raise RefusedError("that is nested too deep; an object of texts is expected") from None
    if not isinstance(said, dict) or not isinstance(said.get("do"), str):
        raise RefusedError('an object with "do" is expected, for instance {"do": "note", "text": "shorter, please"}')
    for name, value in said.items():
        if not isinstance(value, str):
            raise RefusedError(f"{name[:40]!r} is to be a text, not {in_short(value)}")
    return said


def in_short(value: Any) -> str:
    """Return a value in a few characters; what is inside it may be as deep as it likes."""
    return f"a {type(value).__name__}" if isinstance(value, dict | list) else json.dumps(value)[:40]


def needed(text: str, what: str) -> None:
    if not text:
        raise RefusedError(f"{what} needs words")


def settle(said: dict[str, str], heard: bool, how: str) -> str:
    ask = said.get("ask", "")
    if not heard:
        raise RefusedError(f"question {ask!r} waits no longer: somebody else was faster, or its time was over")
    return f"{ask} {how}."


async def aside(room: Room, question: str) -> None:
    """Ask the oracle beside the run; everybody sees the answer."""
    with speaking(room.flow.language):  # it runs beside the workflow, so nobody else has set the language
        result = await ask_aside(
            question,
            workspace=room.runtime.workspace,
            run_dir=room.runtime.run_dir,
            recent=room.recent,
            workbench=room.flow.workbench,
        )
    said = result.text if result.ok else f"no answer: {result.error}"
    room.tell("aside", said, payload={"question": shortened(question), "cost_usd": result.cost_usd})


# -- HTTP ------------------------------------------------------------------------------------------------------------


class Site:
    """The page and the socket of one room."""

    def __init__(self, room: Room, key: str) -> None:
        self.room, self.key = room, key
        self._page = PAGE.read_text(encoding="utf-8")
        self._policy = policy(self._page)
        self.app = web.Application(middlewares=[ours_only])
        self.app.add_routes([web.get("/", self.page), web.get("/socket", self.socket)])

    async def page(self, _: web.Request) -> web.Response:
        headers = {
            "Content-Security-Policy": self._policy,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cache-Control": "no-store",
        }
        return web.Response(text=self._page, content_type="text/html", headers=headers)

    async def socket(self, request: web.Request) -> web.WebSocketResponse:
        """Tell what is behind `after`, then whatever comes; and hear what this browser wants."""
        if not secrets.compare_digest(request.query.get("key", "").encode(errors="replace"), self.key.encode()):
            raise web.HTTPForbidden(text="the key is missing or wrong; open the address that this program printed")
        after = request.query.get("after", "0")
        if not re.fullmatch(r"\d{1,15}", after):
            raise web.HTTPBadRequest(
                text=f"after={after[:40]!r}: the number of the last entry you know is expected, or 0"
            )
        known = int(after) if request.query.get("room") == self.room.id else 0
        socket = web.WebSocketResponse(heartbeat=20, max_msg_size=4 * MOST_WORDS)
        await socket.prepare(request)
        async with asyncio.TaskGroup() as tasks:
            telling = tasks.create_task(self._tell(socket, min(known, self.room.history.last)))
            async for message in socket:
                with contextlib.suppress(ConnectionError):
                    await socket.send_json(self._heard(message.type, message.data))
            telling.cancel()
        return socket

    def _heard(self, kind: WSMsgType, data: Any) -> dict[str, str]:
        if kind is not WSMsgType.TEXT or len(data) > MOST_WORDS:
            return {"refused": f"a text of at most {MOST_WORDS} characters is expected"}
        try:
            return {"receipt": act(self.room, data)}
        except RefusedError as err:
            return {"refused": str(err)}
        finally:
            self.room.history.ring()

    async def _tell(self, socket: web.WebSocketResponse, known: int) -> None:
        """One browser's reader: as fast as that browser takes it, and never anybody's hindrance."""
        shown: dict[str, Any] = {}
        with contextlib.suppress(ConnectionError), self.room.history.bell() as bell:
            await socket.send_json({"room": self.room.id, "after": known})
            while True:
                bell.clear()
                missed, entries = self.room.history.after(known)
                if missed:
                    await socket.send_json({"missed": missed})
                for entry in entries:
                    await socket.send_str(entry)
                known += missed + len(entries)
                if (state := self.room.state()) != shown:
                    await socket.send_json({"state": state})
                    shown = state
                await bell.wait()


def policy(page: str) -> str:
    """Return a Content-Security-Policy under which this page's own script and style run, and nothing else does."""
    hashes = {
        tag: base64.b64encode(hashlib.sha256(re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)[0].encode()).digest())
        for tag in ("script", "style")
    }
    own = "; ".join(f"{tag}-src 'sha256-{digest.decode()}'" for tag, digest in hashes.items())
    return f"default-src 'none'; {own}; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


@web.middleware
async def ours_only(request: web.Request, handler: Any) -> web.StreamResponse:
    """Refuse other sites: a page elsewhere may make a browser connect here, by our name or by one that leads here."""
    port = request.transport.get_extra_info("sockname")[1] if request.transport is not None else None
    allowed = (f"127.0.0.1:{port}", f"localhost:{port}")
    origin = request.headers.get("Origin")
    if request.host not in allowed or (origin is not None and origin.removeprefix("http://") not in allowed):
        raise web.HTTPForbidden(text="this page answers to http://127.0.0.1 only; open the address that it printed")
    response: web.StreamResponse = await handler(request)
    return response


# -- the program -----------------------------------------------------------------------------------------------------


async def serve(flow: Workflow, runtime: Runtime, port: int) -> None:
    """Run the workflow and show it until a signal comes.

    Raises:
        OSError: the port is taken.
    """
    stopped = asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(name, stopped.set)
    room, key = Room(flow, runtime), secrets.token_urlsafe(16)
    runner = web.AppRunner(Site(room, key).app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port).start()
        async with asyncio.TaskGroup() as room.tasks:
            run = room.tasks.create_task(room.carry())
            print(f"open http://127.0.0.1:{runner.addresses[0][1]}/#{key}", flush=True)
            await stopped.wait()
            runtime.end()
            await asyncio.wait({run, *room.asides}, timeout=CLOSING_SECONDS)
            for task in (run, *room.asides):
                task.cancel()
    finally:
        await runner.cleanup()


def main(argv: list[str] | None = None) -> int:
    """Run it; the exit status: 0, or 2 if it could not begin."""
    parser = argparse.ArgumentParser(description="A run in the browser.")
    parser.add_argument("request", nargs="?", default="", help="one sentence; may be left out to go on with a run")
    parser.add_argument("-w", "--workspace", type=Path, default=Path(), help="where the agents work (here)")
    parser.add_argument("-r", "--run-dir", type=Path, default=Path("runs"), help="sessions and accounts (runs)")
    parser.add_argument("-p", "--port", type=int, default=8765, help="0 takes a free one (8765)")
    args = parser.parse_args(argv)
    if not 0 <= args.port <= 65535:
        parser.error(f"argument -p/--port: {args.port} is no port; 0 to 65535 are")
    try:
        flow = starter_flow(args.request, workspace=args.workspace, run_dir=args.run_dir, lang="en")
        runtime = Runtime(workspace=args.workspace, run_dir=args.run_dir, workbench=flow.workbench or False)
    except (ValueError, RuntimeError) as err:  # no request in a new directory, no credential
        print(err, file=sys.stderr)
        return 2
    except OSError as err:
        print(f"cannot work in {err.filename}: {err.strerror}", file=sys.stderr)
        return 2
    try:
        asyncio.run(serve(flow, runtime, args.port))
    except OSError as err:
        print(f"cannot listen on port {args.port}: {err.strerror}; say another one with --port", file=sys.stderr)
        return 2
    finally:
        runtime.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
