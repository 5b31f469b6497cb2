"""The scripted model: a Messages API server on loopback that plays a story to the real SDK and its bundled program."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import secrets
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from flower.testing import request_rules
from flower.testing.answer import (
    Answer,
    Beat,
    blocks_of,
    charged_when_cut,
    error_body,
    reported,
    stop_of,
)
from flower.testing.control import routes
from flower.testing.conversation import Conversation, Result, read
from flower.testing.director import Memory, Plan, Refusal, Served, direct, lines_of
from flower.testing.story import Fault, Story
from flower.testing.tokens import TokenEntry, to_line

MOST_BYTES = 64 << 20
"""Of a request body."""
KEPT_BODIES = 500
"""Requests of which the whole body is kept; of older ones only what was read out of it."""
_PROBE_TOKENS = 16
_CLOSING_SECONDS = 0.5
_TAKEN = (errno.EADDRINUSE, errno.EACCES)


class StoryFailedError(AssertionError):
    """Something was asked of the model that the story does not know, or a request that the API would refuse."""


class PortTakenError(OSError):
    """Somebody else listens on the port."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A request that the story had no answer for."""

    at: float
    session: str
    agent: str
    part: str
    line: str
    why: str
    asked: str
    """The beginning of what the agent was told last."""

    def __str__(self) -> str:
        who = ".".join(filter(None, (self.part, self.line))) or "nobody in the story"
        return f"{who}: {self.why}; asked: {self.asked!r}"


@dataclass(slots=True, kw_only=True)
class Asked:
    """One request to the model, as it was heard and what became of it."""

    number: int
    at: float
    conversation: Conversation
    part: str = ""
    line: str = ""
    prompt: str = ""
    """What was said to the agent since its last answer, without reminders."""
    results: tuple[Result, ...] = ()
    outcome: str = "waiting"
    """`waiting`, then `served`, `refused`, `error <status>`, `drop`, `hang`, `break`, or `cut` where the program
    left."""

    @property
    def session(self) -> str:
        return self.conversation.session

    @property
    def agent(self) -> str:
        return self.conversation.agent

    @property
    def label(self) -> str:
        return f"{self.part}.{self.line}"

    @property
    def result(self) -> str:
        """The text of the newest tool results."""
        return "\n".join(result.text for result in self.results)


def same_session(*asked: Asked) -> bool:
    """Whether requests belong to one conversation of one agent."""
    return len({(each.session, each.agent) for each in asked}) == 1


@dataclass(slots=True)
class _Waiter:
    what: str
    times: int
    heard: asyncio.Future[Asked] = field(repr=False)


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
        self.failures: list[Failure] = []
        self.requests: list[Asked] = []
        self._memory = Memory()
        self._name = secrets.token_hex(4)
        self._served = 0
        self._met: Counter[tuple[str, str, int, str]] = Counter()
        self._faults: dict[str, deque[Fault]] = {}
        self._paused: dict[str, asyncio.Event] = {}
        self._waiters: list[_Waiter] = []
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
        app = web.Application(client_max_size=MOST_BYTES)
        app.router.add_post("/v1/messages", self._messages)
        app.router.add_post("/v1/messages/count_tokens", self._count_tokens)
        app.router.add_get("/v1/models", self._models)
        app.router.add_route("HEAD", "/", self._alive)
        app.add_routes(routes(self))
        app.router.add_route("*", "/{tail:.*}", self._unknown)
        # A handler ends when the program leaves: a paused or hanging request does not outlive it.
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=_CLOSING_SECONDS)
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
            for gate in self._paused.values():
                gate.set()
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

    def check(self) -> None:
        """Raise if the story failed.

        Raises:
            StoryFailedError: with every failure.
        """
        if self.failures:
            raise StoryFailedError("the story failed:\n" + "\n".join(f"- {each}" for each in self.failures))

    # -- what a test can ask --------------------------------------------------------------------------------------

    def asked_of(self, what: str = "", *, session: str | None = None) -> list[Asked]:
        """Return the requests so far of a part (`work`) or of one line (`work.plan`), of all if empty."""
        return [each for each in self.requests if _fits(each, what) and (session is None or each.session == session)]

    async def asked(self, what: str, times: int = 1, *, timeout: float = 10.0) -> Asked:
        """Wait until a part or a line was asked so many times in all, and return that request.

        It returns when the request has come, before it is answered.

        Raises:
            TimeoutError: it was not; says what was asked instead.
            KeyError: the story has no such part or line.
        """
        self._require(what)
        waiter = _Waiter(what, times, asyncio.get_running_loop().create_future())
        self._waiters.append(waiter)
        try:
            self._serve_waiters()
            async with asyncio.timeout(timeout):
                return await waiter.heard
        except TimeoutError:
            heard = ", ".join(each.label for each in self.requests[-10:]) or "nothing"
            raise TimeoutError(
                f"{what} was asked {len(self.asked_of(what))} times in {timeout:g} s, not {times}; last: {heard}"
            ) from None
        finally:
            self._waiters.remove(waiter)

    def pause(self, what: str) -> None:
        """Let every request of a part or a line wait, unanswered, until `release`.

        Raises:
            KeyError: the story has no such part or line.
        """
        self._require(what)
        self._paused.setdefault(what, asyncio.Event())

    def release(self, what: str) -> None:
        """Let paused requests go on. Harmless if there are none."""
        if gate := self._paused.pop(what, None):
            gate.set()

    @contextlib.asynccontextmanager
    async def paused(self, what: str) -> AsyncIterator[None]:
        """Pause for as long as the body runs."""
        self.pause(what)
        try:
            yield
        finally:
            self.release(what)

    def inject(self, what: str, fault: Fault) -> None:
        """Answer the next `fault.times` requests of a part or a line with a fault, whoever asks.

        Raises:
            KeyError: the story has no such part or line.
            ValueError: `times` is None; that belongs into a story.
        """
        self._require(what)
        if fault.times is None:
            raise ValueError("a fault that is injected needs `times`")
        self._faults.setdefault(what, deque()).extend([fault] * fault.times)

    def state(self) -> dict[str, Any]:
        """What has happened so far, as plain values: for another process that looks on."""
        conversations: dict[tuple[str, str], dict[str, Any]] = {}
        for each in self.requests:
            entry = conversations.setdefault(
                (each.session, each.agent),
                {"session": each.session, "agent": each.agent, "part": each.part, "lines": [], "model": ""},
            )
            entry["lines"].append({"line": each.line, "outcome": each.outcome})
            entry["model"] = each.conversation.model
        return {
            "story": self.story.title,
            "parts": [part.name for part in self.story.parts],
            "requests": len(self.requests),
            "served": self._served,
            "failures": len(self.failures),
            "paused": sorted(self._paused),
            "conversations": list(conversations.values()),
        }

    # -- requests -------------------------------------------------------------------------------------------------

    async def _messages(self, http: web.Request) -> web.StreamResponse:
        body = await _json(http)
        headers = {name.lower(): value for name, value in http.headers.items()}
        if flaws := request_rules.flaws(body):
            conversation = read(body if isinstance(body, Mapping) else {}, headers)
            asked = self._hear(conversation, Refusal(why=f"the API would refuse this: {'; '.join(flaws)}"))
            return self._refuse(asked, flaws[0])
        conversation = read(body, headers)
        decision = direct(self.story, conversation, self._memory)
        if isinstance(decision, Refusal) and _is_probe(body, conversation):
            return web.json_response(_probe_answer(conversation.model))
        asked = self._hear(conversation, decision)
        if isinstance(decision, Refusal):
            return self._refuse(asked, decision.why)
        try:
            return await self._play(http, asked, decision)
        except (ConnectionError, asyncio.CancelledError):
            if asked.outcome == "waiting":
                asked.outcome = "cut"
            raise

    async def _play(self, http: web.Request, asked: Asked, plan: Plan) -> web.StreamResponse:
        await self._gate(asked)
        fault = self._fault_for(asked, plan)
        if fault is not None and fault.kind == "error":
            return self._fail(asked, fault)
        await self._sleep(plan.delay)
        answer = self._answer(asked, plan)
        if fault is not None and not asked.conversation.stream:
            return await self._fail_whole(http, asked, fault)
        if asked.conversation.stream:
            return await self._stream(http, asked, answer, fault)
        self._book(asked, answer)
        asked.outcome = "served"
        return web.json_response(answer.message(), headers=_request_id(asked))

    def _hear(self, conversation: Conversation, decision: Plan | Refusal) -> Asked:
        position = max((n for n, turn in enumerate(conversation.turns) if turn.is_answer), default=-1)
        news = conversation.since(position)
        asked = Asked(
            number=len(self.requests) + 1,
            at=time.time(),
            conversation=conversation,
            part=decision.part,
            line=decision.line,
            prompt=news.prompt,
            results=news.results,
        )
        self.requests.append(asked)
        if len(self.requests) > KEPT_BODIES:
            _forget_body(self.requests[-KEPT_BODIES - 1])
        self._serve_waiters()
        return asked

    def _refuse(self, asked: Asked, why: str) -> web.Response:
        asked.outcome = "refused"
        told = (asked.prompt or asked.result)[:300]
        failure = Failure(
            at=asked.at,
            session=asked.session,
            agent=asked.agent,
            part=asked.part,
            line=asked.line,
            why=why,
            asked=told,
        )
        # The program repeats a refused request a few times within a moment; it is one failure.
        if not any(
            (old.session, old.agent, str(old)) == (asked.session, asked.agent, str(failure)) for old in self.failures
        ):
            self.failures.append(failure)
        return _error(asked, 400, f"scripted model: {failure}", kind="invalid_request_error")

    def _fail(self, asked: Asked, fault: Fault) -> web.Response:
        asked.outcome = f"error {fault.status}"
        headers = {} if fault.retry_after is None else {"retry-after": f"{fault.retry_after:g}"}
        return _error(asked, fault.status, fault.message, kind=fault.type, headers=headers)

    async def _fail_whole(self, http: web.Request, asked: Asked, fault: Fault) -> web.Response:
        """A fault of the stream, for a request that wants none."""
        asked.outcome = fault.kind
        if fault.kind == "break":
            return _error(asked, 529, fault.message, kind=fault.type or "overloaded_error")
        if fault.kind == "hang":
            await asyncio.sleep(fault.seconds)
        _abort(http)
        return web.Response()

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
            for beat in answer.beats():
                if fault is not None and len(sent) >= fault.after:
                    break
                await self._sleep(beat.wait)
                if beat.name == "message_delta":
                    self._book(asked, answer)
                    asked.outcome = "served"
                await response.write(beat.encoded())
                sent.append(beat)
            if fault is not None:
                await self._fail_midway(http, response, asked, fault)
        except (ConnectionError, asyncio.CancelledError):
            if asked.outcome == "waiting" and sent:
                asked.outcome = "cut"
                self._book(asked, answer, sent=sent)
            raise
        with contextlib.suppress(ConnectionError):
            await response.write_eof()
        return response

    async def _fail_midway(self, http: web.Request, response: web.StreamResponse, asked: Asked, fault: Fault) -> None:
        asked.outcome = fault.kind
        if fault.kind == "break":
            body = {"error": {"type": fault.type or "overloaded_error", "message": fault.message}}
            await response.write(Beat(name="error", data=body).encoded())
            return
        if fault.kind == "hang":
            await _silence(response, fault)
        _abort(http)

    # -- answers --------------------------------------------------------------------------------------------------

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

    def _book(self, asked: Asked, answer: Answer, *, sent: Sequence[Beat] | None = None) -> None:
        """Write an answer into the token log: before its end is sent, so that nobody can be quicker than the log."""
        entry = TokenEntry(
            at=time.time(),
            session=asked.session,
            agent=asked.agent,
            part=asked.part,
            line=asked.line,
            model=answer.model,
            input=answer.usage["input_tokens"],
            output=answer.usage["output_tokens"] if sent is None else charged_when_cut(sent),
            cache_read=answer.usage["cache_read_input_tokens"],
            cache_write=answer.usage["cache_creation_input_tokens"],
            cut=sent is not None,
        )
        self.tokens.append(entry)
        if self.token_log is not None:
            with self.token_log.open("a", encoding="utf-8") as file:
                file.write(to_line(entry))

    def _fault_for(self, asked: Asked, plan: Plan) -> Fault | None:
        for what in (asked.label, asked.part):
            if waiting := self._faults.get(what):
                return waiting.popleft()
        # Counted at one point of one conversation: a retry comes there again, a resume too, another run does not.
        point = (asked.session, asked.agent, plan.after, plan.line)
        met = self._met[point]
        self._met[point] += 1
        for fault in plan.faults:
            if fault.times is None or met < fault.times:
                return fault
            met -= fault.times
        return None

    async def _gate(self, asked: Asked) -> None:
        while gate := next((self._paused[what] for what in (asked.part, asked.label) if what in self._paused), None):
            await gate.wait()

    async def _sleep(self, seconds: float) -> None:
        if self.speed and seconds:
            await asyncio.sleep(seconds / self.speed)

    def _serve_waiters(self) -> None:
        for waiter in self._waiters:
            found = self.asked_of(waiter.what)
            if len(found) >= waiter.times and not waiter.heard.done():
                waiter.heard.set_result(found[waiter.times - 1])

    def _require(self, what: str) -> None:
        part, _, line = what.partition(".")
        known = {each.name: each for each in self.story.parts}
        if part not in known:
            raise KeyError(f"the story has no part {part!r}; there are {', '.join(known)}")
        if line and line not in lines_of(known[part]):
            raise KeyError(f"part {part} has no line {line!r}; there are {', '.join(lines_of(known[part]))}")

    # -- the rest of the API --------------------------------------------------------------------------------------

    async def _count_tokens(self, http: web.Request) -> web.Response:
        return web.json_response({"input_tokens": max(1, len(await http.read()) // 4)})

    async def _models(self, _: web.Request) -> web.Response:
        return web.json_response({"data": [], "has_more": False, "first_id": None, "last_id": None})

    async def _alive(self, _: web.Request) -> web.Response:
        return web.Response()

    async def _unknown(self, http: web.Request) -> web.Response:
        where = f"{http.method} {http.path}"
        self.failures.append(
            Failure(at=time.time(), session="", agent="", part="", line="", why=f"no such endpoint: {where}", asked="")
        )
        return web.json_response(error_body(404, f"scripted model: there is no {where}"), status=404)


def _fits(asked: Asked, what: str) -> bool:
    part, _, line = what.partition(".")
    # A line said behind one of `anytime` has both names.
    return (not part or asked.part == part) and (not line or line in (asked.line, *asked.line.split("+")))


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


def _error(
    asked: Asked, status: int, message: str, *, kind: str = "", headers: Mapping[str, str] | None = None
) -> web.Response:
    named = _request_id(asked)
    body = error_body(status, message, kind=kind, request=named["request-id"])
    return web.json_response(body, status=status, headers={**named, **(headers or {})})


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


def _forget_body(asked: Asked) -> None:
    old = asked.conversation
    asked.conversation = Conversation(
        session=old.session,
        agent=old.agent,
        parent=old.parent,
        model=old.model,
        stream=old.stream,
        system="",
        tools=old.tools,
        turns=(),
    )
