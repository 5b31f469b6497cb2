"""The scripted model: a Messages API server on loopback that plays a story to the real SDK and its bundled program."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import secrets
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from flower.testing import request_rules
from flower.testing.answer import (
    Answer,
    Beat,
    blocks_of,
    charged_when_lost,
    error_body,
    reported,
    stop_of,
)
from flower.testing.control import routes
from flower.testing.conversation import Conversation, read
from flower.testing.director import Memory, Plan, Refusal, Served, direct
from flower.testing.hearing import Asked, Failure, Hearing
from flower.testing.steering import Steering
from flower.testing.story import Fault, Story
from flower.testing.tokens import TokenEntry, to_line

MOST_BYTES = 64 << 20
"""Of a request body."""
_PROBE_TOKENS = 16
_CLOSING_SECONDS = 0.5
_ARRIVAL_SECONDS = 0.25
"""Between the last event before a dropped connection and its end: long enough for the program to have read it, else
chance would decide whether it is charged."""
_TAKEN = (errno.EADDRINUSE, errno.EACCES)


class PortTakenError(OSError):
    """Somebody else listens on the port."""


class ScriptedModel:
    """A server that plays a story. An async context manager; everything belongs to one event loop.

    Args:
        story: what is played. One server plays it to many sessions at once, to each from its start.
        speed: 0 answers at once; 1 keeps the story's delays and paces, 2 is twice as fast.
        host: loopback unless told otherwise: there is no password.
        port: 0 picks a free one.
        token_log: file to which an entry is appended for every answer; its folder must exist.
        strict: raise at the end of the context if the story failed.
    """

    def __init__(
        self,
        story: Story,
        *,
        speed: float = 0.0,
        host: str = "127.0.0.1",
        port: int = 0,
        token_log: str | Path | None = None,
        strict: bool = True,
    ) -> None:
        self.story = story
        self.speed = speed
        self.host = host
        self.port = port
        self.token_log = None if token_log is None else Path(token_log)
        self.strict = strict
        self.tokens: list[TokenEntry] = []
        self._hearing = Hearing(story)
        self._steering = Steering(story)
        self._memory = Memory()
        self._name = secrets.token_hex(4)
        self._served = 0
        self._in_flight = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._runner: web.AppRunner | None = None

    # -- its life -------------------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    async def start(self) -> None:
        """Listen.

        Raises:
            PortTakenError: somebody else does already.
            OSError: the token log cannot be written, or the address is none of this machine's.
        """
        if self.token_log is not None:
            self.token_log.open("a", encoding="utf-8").close()
        # A handler ends when the program leaves: a paused or hanging request does not outlive it.
        runner = web.AppRunner(
            self._app(), access_log=None, handler_cancellation=True, shutdown_timeout=_CLOSING_SECONDS
        )
        await runner.setup()
        try:
            await web.TCPSite(runner, self.host, self.port).start()
        except OSError as err:
            await runner.cleanup()
            if err.errno in _TAKEN:
                raise PortTakenError(f"port {self.port} on {self.host} is taken") from None
            raise
        self._runner = runner
        self.port = runner.addresses[0][1]

    async def stop(self) -> None:
        """Stop listening and cut what is in flight. Twice is harmless."""
        runner, self._runner = self._runner, None
        if runner is not None:
            self._steering.release_all()
            await runner.cleanup()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        await self.stop()
        if self.strict and error is None:
            self.check()

    # -- what a test can ask --------------------------------------------------------------------------------------

    @property
    def requests(self) -> list[Asked]:
        """Every request to the model, in order."""
        return self._hearing.requests

    @property
    def failures(self) -> list[Failure]:
        """What the story had no answer for, and what the API would have refused."""
        return self._hearing.failures

    def check(self) -> None:
        """Raise if the story failed.

        Raises:
            StoryFailedError: with every failure.
        """
        self._hearing.check()

    def asked_of(self, what: str = "", *, session: str | None = None) -> list[Asked]:
        """Return the requests so far of a part (`work`) or of one line (`work.plan`), of all if empty.

        The name of a place counts for all its alternatives, that of an alternative (`work.fork/2`) for itself.
        """
        return self._hearing.of(what, session)

    async def asked(self, what: str, times: int = 1, *, timeout: float = 10.0) -> Asked:
        """Wait until a part or a line was asked so many times in all, and return that request.

        It returns when the request has come, before it is answered.

        Raises:
            TimeoutError: it was not; says what was asked instead.
            KeyError: the story has no such part or line.
        """
        return await self._hearing.wait(what, times, timeout)

    async def settled(self, *, timeout: float = 10.0) -> None:
        """Wait until no request is being answered: then its outcome and its tokens stand.

        Raises:
            TimeoutError: one is still in flight.
        """
        async with asyncio.timeout(timeout):
            await self._idle.wait()

    def pause(self, what: str) -> None:
        """Let every request of a part or a line wait, unanswered, until `release`.

        Raises:
            KeyError: the story has no such part or line.
        """
        self._steering.pause(what)

    def release(self, what: str) -> None:
        """Let paused requests go on. Harmless if there are none."""
        self._steering.release(what)

    @contextlib.asynccontextmanager
    async def paused(self, what: str) -> AsyncIterator[None]:
        """Pause for as long as the body runs."""
        self.pause(what)
        try:
            yield
        finally:
            self.release(what)

    @contextlib.asynccontextmanager
    async def away(self) -> AsyncIterator[None]:
        """Be gone while the body runs, as a lost network is: nobody listens on the port, and what was in flight is cut.

        Raises:
            PortTakenError: somebody else took the port meanwhile.
            RuntimeError: it was not listening.
        """
        runner, self._runner = self._runner, None
        if runner is None:
            raise RuntimeError("the scripted model is not listening, so it cannot go away")
        await runner.cleanup()
        try:
            yield
        finally:
            await self.start()

    @contextlib.asynccontextmanager
    async def at(self, what: str, times: int = 1, *, timeout: float = 10.0) -> AsyncIterator[Asked]:
        """Hold the story at a point while the body runs: the model was asked there and does not answer yet.

        The place to interrupt, to send mail, or to look at the disk "in the middle". Enter it before the run gets
        there: a request that was answered already is found, but cannot be held any more. Entering waits, so what
        brings the run there must go on beside it; if the body itself does (it answers a question), use `paused`.

        Args:
            what: a part (`work`) or a line (`work.plan`).
            times: hold at the second, third … request of it; those before it pass.
            timeout: seconds to wait for that request.

        Raises:
            TimeoutError: the run did not get there; says what was asked instead.
            KeyError: the story has no such part or line.
        """
        if times > 1:
            await self.asked(what, times - 1, timeout=timeout)
        # The request before is heard and has passed the gate in one go, so it is the next one that waits here.
        async with self.paused(what):
            yield await self.asked(what, times, timeout=timeout)

    def inject(self, what: str, fault: Fault) -> None:
        """Answer the next `fault.times` requests of a part or a line with a fault, whoever asks.

        Raises:
            KeyError: the story has no such part or line.
            ValueError: `times` is None; that belongs into a story.
        """
        self._steering.inject(what, fault)

    def state(self) -> dict[str, Any]:
        """What has happened so far, as plain values: for another process that looks on."""
        return {
            "story": self.story.title,
            "parts": [part.name for part in self.story.parts],
            "requests": len(self.requests),
            "served": self._served,
            "failures": len(self.failures),
            "paused": self._steering.paused,
            "conversations": self._hearing.conversations(),
        }

    # -- requests -------------------------------------------------------------------------------------------------

    def _app(self) -> web.Application:
        app = web.Application(client_max_size=MOST_BYTES)
        app.router.add_post("/v1/messages", self._messages)
        app.router.add_post("/v1/messages/count_tokens", self._count_tokens)
        app.router.add_get("/v1/models", self._models)
        app.router.add_route("HEAD", "/", self._alive)
        app.add_routes(routes(self))
        app.router.add_route("*", "/{tail:.*}", self._unknown)
        return app

    async def _messages(self, http: web.Request) -> web.StreamResponse:
        self._in_flight += 1
        self._idle.clear()
        try:
            return await self._respond(http)
        finally:
            self._in_flight -= 1
            if not self._in_flight:
                self._idle.set()

    async def _respond(self, http: web.Request) -> web.StreamResponse:
        body = await _json(http)
        headers = {name.lower(): value for name, value in http.headers.items()}
        if flaws := request_rules.flaws(body):
            conversation = read(body if isinstance(body, Mapping) else {}, headers)
            return self._refuse(conversation, Refusal(why=f"the API would refuse this: {'; '.join(flaws)}"))
        conversation = read(body, headers)
        decision = direct(self.story, conversation, self._memory)
        if isinstance(decision, Refusal):
            if _is_probe(body, conversation):
                return web.json_response(_probe_answer(conversation.model))
            return self._refuse(conversation, decision)
        asked = self._hearing.hear(conversation, decision)
        try:
            return await self._play(http, asked, decision)
        except (ConnectionError, asyncio.CancelledError):
            if asked.outcome == "waiting":
                asked.outcome = "cut"
            raise

    def _refuse(self, conversation: Conversation, refusal: Refusal) -> web.Response:
        asked = self._hearing.hear(conversation, refusal)
        failure = self._hearing.fail(asked, refusal.why)
        return _error(asked, 400, f"scripted model: {failure}", kind="invalid_request_error")

    async def _play(self, http: web.Request, asked: Asked, plan: Plan) -> web.StreamResponse:
        await self._steering.pass_gates(asked)
        fault = self._steering.fault_for(asked, plan)
        if fault is not None and fault.kind == "error":
            return _fail(asked, fault)
        await self._sleep(plan.delay)
        if fault is not None and not asked.conversation.stream:
            return await _fail_whole(http, asked, fault)
        answer = self._answer(asked, plan)
        if asked.conversation.stream:
            return await self._stream(http, asked, answer, fault)
        self._book(asked, answer)
        asked.outcome = "served"
        return web.json_response(answer.message(), headers=_request_id(asked))

    async def _stream(self, http: web.Request, asked: Asked, answer: Answer, fault: Fault | None) -> web.StreamResponse:
        response = web.StreamResponse(
            headers={
                "content-type": "text/event-stream; charset=utf-8",
                "cache-control": "no-cache",
                **_request_id(asked),
            }
        )
        if fault is not None and fault.kind == "drop" and not fault.after:
            asked.outcome = "drop"
            _abort(http)
            return response
        await response.prepare(http)
        sent: list[Beat] = []
        try:
            await self._send(response, asked, answer, sent, most=None if fault is None else fault.after)
            if fault is not None:
                await _fail_midway(http, response, asked, fault)
        except (ConnectionError, asyncio.CancelledError):
            if asked.outcome == "waiting":
                asked.outcome = "cut"
            raise
        finally:
            if asked.outcome != "served" and (charged := charged_when_lost(sent, broke=asked.outcome == "break")):
                self._book(asked, answer, output=charged)
        with contextlib.suppress(ConnectionError):
            await response.write_eof()
        return response

    async def _send(
        self, response: web.StreamResponse, asked: Asked, answer: Answer, sent: list[Beat], *, most: int | None
    ) -> None:
        for beat in answer.beats():
            if most is not None and len(sent) >= most:
                return
            await self._sleep(beat.wait)
            if beat.name == "message_delta":
                # Before the end of it is sent, so that nobody can be quicker than the log.
                self._book(asked, answer)
                asked.outcome = "served"
            await response.write(beat.encoded())
            sent.append(beat)
            asked.sent = len(sent)

    def _answer(self, asked: Asked, plan: Plan) -> Answer:
        self._served += 1
        calls = tuple(f"toolu_{self._name}{self._served:06d}{n:02d}" for n in range(len(plan.call)))
        self._memory.keep(Served(number=self._served, plan=plan, calls=calls, session=asked.session, agent=asked.agent))
        return Answer(
            id=f"msg_{self._name}{self._served:08d}",
            model=asked.conversation.model,
            blocks=blocks_of(plan, calls),
            stop=stop_of(plan),
            usage=reported(plan.usage),
            pace=plan.pace if self.speed else None,
        )

    def _book(self, asked: Asked, answer: Answer, *, output: int | None = None) -> None:
        """Write an answer into the token log; `output` is what is charged for one that did not come to its end."""
        entry = TokenEntry(
            at=time.time(),
            session=asked.session,
            agent=asked.agent,
            part=asked.part,
            line=asked.line,
            model=answer.model,
            input=answer.usage["input_tokens"],
            output=answer.usage["output_tokens"] if output is None else output,
            cache_read=answer.usage["cache_read_input_tokens"],
            cache_write=answer.usage["cache_creation_input_tokens"],
            cut=output is not None,
        )
        self.tokens.append(entry)
        if self.token_log is not None:
            with self.token_log.open("a", encoding="utf-8") as file:
                file.write(to_line(entry))

    async def _sleep(self, seconds: float) -> None:
        if self.speed and seconds:
            await asyncio.sleep(seconds / self.speed)

    # -- the rest of the API --------------------------------------------------------------------------------------

    async def _count_tokens(self, http: web.Request) -> web.Response:
        return web.json_response({"input_tokens": max(1, len(await http.read()) // 4)})

    async def _models(self, _: web.Request) -> web.Response:
        return web.json_response({"data": [], "has_more": False, "first_id": None, "last_id": None})

    async def _alive(self, _: web.Request) -> web.Response:
        return web.Response()

    async def _unknown(self, http: web.Request) -> web.Response:
        where = f"{http.method} {http.path}"
        self._hearing.fail_unheard(f"no such endpoint: {where}")
        return web.json_response(error_body(404, f"scripted model: there is no {where}"), status=404)


async def _json(http: web.Request) -> Any:
    try:
        return json.loads(await http.read())
    except ValueError:
        return None


def _is_probe(body: Mapping[str, Any], conversation: Conversation) -> bool:
    """Somebody asks whether the credential is good (behaviour 24), not the bundled program."""
    return not conversation.session and int(body.get("max_tokens", 0)) <= _PROBE_TOKENS


def _probe_answer(model: str) -> dict[str, Any]:
    blocks = [{"type": "text", "text": "ok"}]
    usage = {"input_tokens": 1, "output_tokens": 1}
    return Answer(id="msg_probe", model=model, blocks=blocks, stop="end_turn", usage=usage).message()


def _request_id(asked: Asked) -> dict[str, str]:
    return {"request-id": f"req_scripted{asked.number:06d}"}


# -- what goes wrong ------------------------------------------------------------------------------------------------


def _error(
    asked: Asked, status: int, message: str, *, kind: str = "", headers: Mapping[str, str] | None = None
) -> web.Response:
    named = _request_id(asked)
    body = error_body(status, message, kind=kind, request=named["request-id"])
    return web.json_response(body, status=status, headers={**named, **(headers or {})})


def _fail(asked: Asked, fault: Fault) -> web.Response:
    asked.outcome = f"error {fault.status}"
    headers = {} if fault.retry_after is None else {"retry-after": f"{fault.retry_after:g}"}
    return _error(asked, fault.status, fault.message, kind=fault.type, headers=headers)


async def _fail_whole(http: web.Request, asked: Asked, fault: Fault) -> web.Response:
    """A fault of the stream, for a request that wants none."""
    asked.outcome = fault.kind
    if fault.kind == "break":
        return _error(asked, 529, fault.message, kind=fault.type or "overloaded_error")
    if fault.kind == "hang":
        await asyncio.sleep(fault.seconds)
    _abort(http)
    return web.Response()


async def _fail_midway(http: web.Request, response: web.StreamResponse, asked: Asked, fault: Fault) -> None:
    asked.outcome = fault.kind
    if fault.kind == "break":
        body = {"error": {"type": fault.type or "overloaded_error", "message": fault.message}}
        await response.write(Beat(name="error", data=body).encoded())
        return
    if fault.kind == "hang":
        await _silence(response, fault)
    else:
        await asyncio.sleep(_ARRIVAL_SECONDS)
    _abort(http)


async def _silence(response: web.StreamResponse, fault: Fault) -> None:
    loop = asyncio.get_running_loop()
    end = loop.time() + fault.seconds
    while (left := end - loop.time()) > 0:
        await asyncio.sleep(min(left, fault.pings or left))
        if fault.pings and loop.time() < end:
            await response.write(Beat(name="ping", data={}).encoded())


def _abort(http: web.Request) -> None:
    if http.transport is not None:
        http.transport.abort()
