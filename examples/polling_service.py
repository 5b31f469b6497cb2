"""Runs behind plain HTTP, for clients that ask now and then: a cron job, a phone, another service. Needs aiohttp.

    python examples/polling_service.py --root runs-of-the-service

It prints its address and a key; every request carries the key. All bodies and answers are JSON.

    POST /runs                              {"request": "Write …", "budget_usd": 5}     start; the run's name
    GET  /runs                                                          all runs
    GET  /runs/NAME                                                     how it stands; its steps, its cost, its end
    GET  /runs/NAME/events?after=N                                      what it told behind number N
    GET  /runs/NAME/questions                                           what waits for a person, and for how long
    POST /runs/NAME/questions/ID/answer     {"text": "One per line"}
    POST /runs/NAME/questions/ID/decline    {"reason": "no opinion"}    the agent decides by itself
    POST /runs/NAME/mail                    {"text": "and a test"}      for its inbox
    POST /runs/NAME/interrupt               {"text": "not in C"}        cut, and go on with these words
    POST /runs/NAME/end                                                 end in order

    curl -s -H "Authorization: Bearer $KEY" -d '{"request": "…"}' http://127.0.0.1:8766/runs

Events are numbered from 1 and the newest 2000 of a run are kept. Who asks for some that have fallen out is told how
many are `missing`; nobody has to read them all, for what counts is elsewhere: the steps and the end come from `on_step`
and from what the workflow returned, the questions from the channel.

A question waits for a finite time (`--timeout`): a client that never comes back must not hold a run for ever. It
listens on loopback only; the key keeps out the other users of the machine, web pages, and the agent itself.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import re
import secrets
import signal
import sys
import traceback
from collections import deque
from collections.abc import Awaitable, Callable
from itertools import islice
from pathlib import Path
from typing import Any

from aiohttp import web

from flower import Event, Runtime, Step, StepResult, Workflow, starter_flow

KEPT = 2000
MOST_CHARACTERS = 8000
"""Of one text in an event: a tool may return 50 MB."""
MOST_BYTES = 64 << 10
"""Of a request."""
AT_ONCE = 4
REMEMBERED = 50
"""Runs; of those that are over the oldest is forgotten. Its folder stays."""
CLOSING_SECONDS = 15.0

Body = dict[str, Any]


class RefusedError(Exception):
    """A request that makes no sense; what was expected, and the HTTP status."""

    def __init__(self, why: str, status: int = 400) -> None:
        super().__init__(why)
        self.status = status


# -- a run -----------------------------------------------------------------------------------------------------------


class Numbered:
    """The newest events, numbered from 1. A sink: it puts and returns."""

    def __init__(self, kept: int = KEPT) -> None:
        self.last = 0
        self.lost = 0
        self._kept: deque[Body] = deque(maxlen=kept)

    def __call__(self, event: Event) -> None:
        try:
            entry = {"kind": event.kind, "text": event.text, "tool": event.tool, "payload": event.payload}
            plain: Body = json.loads(json.dumps(shortened(entry), default=str))
        except Exception:  # noqa: BLE001 - boundary: a sink must not raise into the run (behaviour 5.2)
            self.lost += 1
            return
        self.last += 1
        self._kept.append({"n": self.last, **plain})

    def after(self, number: int) -> Body:
        """Return what came behind `number`, and how much of that is gone.

        Raises:
            RefusedError: there is no such number yet.
        """
        if number > self.last:
            raise RefusedError(f"after={number}: the newest event is {self.last}; begin with after=0", 409)
        gone = self.last - len(self._kept)
        answer: Body = {
            "events": list(islice(self._kept, max(0, number - gone), None)),
            "last": self.last,
            "missing": 0,
        }
        if number < gone:
            answer["missing"] = gone - number
            answer["note"] = f"events {number + 1} to {gone} are no longer kept; the newest {len(self._kept)} are"
        return answer


class Run:
    """One run of the service. Belongs to the event loop."""

    def __init__(self, name: str, flow: Workflow, runtime: Runtime) -> None:
        if flow.channel is None:
            raise ValueError("this service answers questions, so the workflow needs a channel")
        self.name, self.flow, self.runtime, self.channel = name, flow, runtime, flow.channel
        self.events = Numbered()
        self.steps: list[Body] = []
        self.end = ""

    @property
    def over(self) -> bool:
        return bool(self.end)

    async def carry(self) -> None:
        """Run it to its end and close it."""
        try:
            ctx = await self.flow.run(self.runtime, on_event=self.events, on_step=self._settled)
        except asyncio.CancelledError:
            self.end = "stopped with the service; start it again in the same folder"
            raise
        except Exception as err:  # noqa: BLE001 - boundary: one run must not end the others
            self.end = f"broke: {type(err).__name__}: {err}"
        else:
            failed = ctx.get("_failed_at")
            why = failed and (ctx.get("_aborted") or ctx["_results"][failed].error or "it was not accepted")
            self.end = f"stopped in step {failed}: {why}" if failed else "done"
        finally:
            self.runtime.close()

    def _settled(self, step: Step, result: StepResult) -> None:
        entry = {"step": step.name, "ok": result.ok, "cost_usd": result.cost_usd, "seconds": result.duration_s}
        self.steps.append({**entry, "error": shortened(result.error)})

    def state(self) -> Body:
        return {
            "run": self.name,
            "over": self.over,
            "end": self.end,
            "cost_usd": self.runtime.total_cost(),
            "steps": self.steps,
            "questions": len(self.channel.pending()),
            "unread_mail": len(self.channel.pending_mail()),
            "last_event": self.events.last,
            "lost_events": self.events.lost,
        }

    def questions(self) -> list[Body]:
        return [
            {"id": ask.id, "question": ask.question, "options": ask.options, "waited_s": ask.waited_s}
            for ask in self.channel.pending()
        ]


def shortened(value: Any) -> Any:
    """Cut every text in a value."""
    if isinstance(value, str):
        return value if len(value) <= MOST_CHARACTERS else f"{value[:MOST_CHARACTERS]} … ({len(value)} characters)"
    if isinstance(value, dict):
        return {str(name): shortened(each) for name, each in islice(value.items(), 50)}
    if isinstance(value, list):
        return [shortened(each) for each in value[:50]]
    return value


# -- the requests ----------------------------------------------------------------------------------------------------


class Service:
    """All runs, and what clients can ask of them."""

    def __init__(self, root: Path, key: str, *, timeout_s: float) -> None:
        self.root, self.key, self.timeout_s = root, key, timeout_s
        self.runs: dict[str, Run] = {}
        self.going: set[asyncio.Task[None]] = set()
        self.tasks: asyncio.TaskGroup
        """Owns the runs; open for as long as the service listens."""
        self.app = web.Application(middlewares=[self._guarded], client_max_size=MOST_BYTES)
        self.app.add_routes(
            [
                web.post("/runs", self.start),
                web.get("/runs", self.overview),
                web.get("/runs/{run}", self.show),
                web.get("/runs/{run}/events", self.events),
                web.get("/runs/{run}/questions", self.questions),
                web.post("/runs/{run}/questions/{ask}/{how:answer|decline}", self.settle),
                web.post("/runs/{run}/mail", self.mail),
                web.post("/runs/{run}/interrupt", self.interrupt),
                web.post("/runs/{run}/end", self.end),
            ]
        )

    async def start(self, request: web.Request) -> web.Response:
        body = await body_of(request, "request", "budget_usd")
        wanted, budget = text_in(body, "request"), amount_in(body, "budget_usd")
        if sum(not run.over for run in self.runs.values()) >= AT_ONCE:
            raise RefusedError(f"{AT_ONCE} runs are under way; end one, or wait", 429)
        name = f"r{secrets.token_hex(4)}"
        run = Run(name, *self._made(name, wanted))
        run.runtime.budget_usd = budget
        self._remember(run)
        task = self.tasks.create_task(run.carry())
        self.going.add(task)
        task.add_done_callback(self.going.discard)
        return web.json_response(run.state(), status=201, headers={"Location": f"/runs/{name}"})

    async def overview(self, _: web.Request) -> web.Response:
        return web.json_response({"runs": [run.state() for run in self.runs.values()]})

    async def show(self, request: web.Request) -> web.Response:
        return web.json_response(self._run(request).state())

    async def events(self, request: web.Request) -> web.Response:
        after = request.query.get("after", "0")
        if not re.fullmatch(r"[0-9]{1,15}", after):
            raise RefusedError(
                f"after={after[:40]!r}: the number of the last event you know is expected, 0 to begin with"
            )
        run = self._run(request)
        return web.json_response({**run.events.after(int(after)), "over": run.over})

    async def questions(self, request: web.Request) -> web.Response:
        return web.json_response({"questions": self._run(request).questions()})

    async def settle(self, request: web.Request) -> web.Response:
        run, ask = self._run(request), request.match_info["ask"]
        if request.match_info["how"] == "answer":
            heard = run.channel.answer(ask, text_in(await body_of(request, "text"), "text"))
        else:
            heard = run.channel.decline(ask, text_in(await body_of(request, "reason"), "reason", optional=True))
        if not heard:
            raise RefusedError(
                f"question {ask[:40]!r} does not wait: it never did, was settled, or its time was over", 409
            )
        return web.json_response({"heard": True})

    async def mail(self, request: web.Request) -> web.Response:
        run = self._going(request)
        mail = run.channel.send(text_in(await body_of(request, "text"), "text"))
        return web.json_response({"mail": mail.id if mail else ""})

    async def interrupt(self, request: web.Request) -> web.Response:
        run = self._going(request)
        words = text_in(await body_of(request, "text"), "text", optional=True)
        # While a question waits there may be no next message for as long as it may wait: cut at once then.
        run.runtime.interrupt(words, now=bool(run.channel.pending()))
        return web.json_response({"heard": True})

    async def end(self, request: web.Request) -> web.Response:
        self._going(request).runtime.end()
        return web.json_response({"heard": True})

    async def close(self) -> None:
        """End what is going on, within a bound."""
        for run in self.runs.values():
            run.runtime.end()
        if self.going:
            await asyncio.wait(self.going, timeout=CLOSING_SECONDS)
        for task in self.going:
            task.cancel()

    def _made(self, name: str, wanted: str) -> tuple[Workflow, Runtime]:
        """Build a run in folders of its own."""
        work, books = self.root / name / "work", self.root / name / "run"
        try:
            flow = starter_flow(wanted, workspace=work, run_dir=books, timeout_s=self.timeout_s, lang="en")
            return flow, Runtime(workspace=work, run_dir=books, workbench=flow.workbench or False)
        except RuntimeError as err:  # no credential; says where it is looked for
            raise RefusedError(str(err), 503) from None
        except OSError as err:
            raise RefusedError(f"the run's folder cannot be made: {err.strerror}", 507) from None

    def _remember(self, run: Run) -> None:
        self.runs[run.name] = run
        over = [name for name, each in self.runs.items() if each.over]
        for name in over[: max(0, len(self.runs) - REMEMBERED)]:
            del self.runs[name]

    def _run(self, request: web.Request) -> Run:
        name = request.match_info["run"]
        if name not in self.runs:
            raise RefusedError(f"there is no run {name[:40]!r}; GET /runs lists them", 404)
        return self.runs[name]

    def _going(self, request: web.Request) -> Run:
        run = self._run(request)
        if run.over:
            raise RefusedError(f"run {run.name} is over: {run.end}", 409)
        return run

    @web.middleware
    async def _guarded(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Let nobody in without the key, and say what was wrong as JSON."""
        given = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if not secrets.compare_digest(given.encode(errors="replace"), self.key.encode()):
            why = "the key is missing or wrong; send the header Authorization: Bearer KEY"
            return web.json_response({"error": why}, status=401)
        try:
            return await handler(request)
        except RefusedError as err:
            return web.json_response({"error": str(err)}, status=err.status)
        except web.HTTPRequestEntityTooLarge:
            return web.json_response({"error": f"a body has at most {MOST_BYTES} bytes"}, status=413)
        except web.HTTPException as err:
            known = "; ".join(self.routes())
            return web.json_response(
                {"error": f"no {request.method} {request.path[:80]}; there are {known}"}, status=err.status
            )
        except Exception as err:  # noqa: BLE001 - boundary: our own fault is answered as JSON too
            traceback.print_exc()
            why = f"the service failed ({type(err).__name__}); its own output says where. The runs go on"
            return web.json_response({"error": why}, status=500)

    def routes(self) -> list[str]:
        """Return what there is, for people."""
        found = (f"{route.method} {route.resource.canonical}" for route in self.app.router.routes() if route.resource)
        return sorted(each for each in found if not each.startswith("HEAD"))


async def body_of(request: web.Request, *known: str) -> Body:
    """Read a body; an empty one is an empty object.

    Raises:
        RefusedError: it is no JSON object, or holds a name that means nothing here.
    """
    raw = await request.read()
    try:
        body = json.loads(raw) if raw.strip() else {}
    except ValueError as err:
        raise RefusedError(f"the body is no JSON: {err}") from None
    except RecursionError:
        raise RefusedError(f"the body is nested too deep; an object with {', '.join(known)} is expected") from None
    if not isinstance(body, dict):
        raise RefusedError(f"the body is to be an object with {', '.join(known)}")
    if strangers := sorted(set(body) - set(known)):
        raise RefusedError(f"{strangers[0][:40]!r} is not known here; there are {', '.join(known)}")
    return body


def text_in(body: Body, name: str, *, optional: bool = False) -> str:
    """Return a text that was given."""
    text = body.get(name, "")
    if not isinstance(text, str):
        raise RefusedError(f"{name!r} is to be a text")
    if not text.strip() and not optional:
        raise RefusedError(f"{name!r} is missing or empty: a text is expected")
    return text


def amount_in(body: Body, name: str) -> float | None:
    """Return an amount of US dollars, None if none was given."""
    amount = body.get(name)
    if amount is None:
        return None
    try:
        dollars = math.nan if isinstance(amount, bool) or not isinstance(amount, int | float) else float(amount)
    except OverflowError:  # an integer of more digits than any float has
        dollars = math.inf
    if not (math.isfinite(dollars) and dollars > 0):
        raise RefusedError(f"{name!r} is to be a number of US dollars above 0, for instance 2.5")
    return dollars


# -- the program -----------------------------------------------------------------------------------------------------


async def serve(root: Path, port: int, timeout_s: float) -> None:
    """Serve until a signal comes; then end what is going on, in order.

    Raises:
        OSError: the port is taken.
    """
    stopped = asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(name, stopped.set)
    key = secrets.token_urlsafe(16)
    service = Service(root, key, timeout_s=timeout_s)
    runner = web.AppRunner(service.app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port).start()
        async with asyncio.TaskGroup() as service.tasks:
            print(f"http://127.0.0.1:{runner.addresses[0][1]} key {key}", flush=True)
            await stopped.wait()
            await service.close()
    finally:
        await runner.cleanup()


def main(argv: list[str] | None = None) -> int:
    """Serve; the exit status: 0, or 2 if it could not begin."""
    parser = argparse.ArgumentParser(description="Runs behind plain HTTP.")
    parser.add_argument("--root", type=Path, default=Path("service"), help="each run gets a folder in it (service)")
    parser.add_argument("-p", "--port", type=int, default=8766, help="0 takes a free one (8766)")
    parser.add_argument("-t", "--timeout", type=seconds, default=1800.0, help="how long a question waits (1800)")
    args = parser.parse_args(argv)
    if not 0 <= args.port <= 65535:
        parser.error(f"argument -p/--port: {args.port} is no port; 0 to 65535 are")
    try:
        args.root.mkdir(parents=True, exist_ok=True)
    except OSError as err:
        print(f"cannot use {args.root}: {err.strerror}", file=sys.stderr)
        return 2
    try:
        asyncio.run(serve(args.root, args.port, args.timeout))
    except OSError as err:
        print(f"cannot listen on port {args.port}: {err.strerror}; say another one with --port", file=sys.stderr)
        return 2
    return 0


def seconds(text: str) -> float:
    """Parse a time; argparse puts the error below its usage line."""
    try:
        time = float(text)
    except ValueError:
        time = math.nan
    if not (math.isfinite(time) and time >= 0):
        raise argparse.ArgumentTypeError(f"{text!r} is no finite time in seconds; 0 lets no question wait")
    return time


if __name__ == "__main__":
    sys.exit(main())
