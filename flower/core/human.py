"""The one door to people: agents ask and look into the inbox, whoever is there answers and speaks up.

Two in-process MCP tools on the agents' side, a small thread-safe interface on the people's side. Knows nothing of
terminals or chats.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from claude_agent_sdk import SdkMcpTool, ToolAnnotations, create_sdk_mcp_server, tool

from flower import texts
from flower.core.disk import append
from flower.core.events import Event
from flower.core.unicode import well_formed
from flower.texts import human as catalogue

SERVER = "human"
TOOL, INBOX = "ask", "inbox"
TOOL_NAME, INBOX_NAME = f"mcp__{SERVER}__{TOOL}", f"mcp__{SERVER}__{INBOX}"

OVER_BUDGET = catalogue.ZH.over_budget
TIMEOUT = catalogue.ZH.timeout
DECLINED = catalogue.ZH.declined
NO_MAIL = catalogue.ZH.no_mail
AMENDED = catalogue.ZH.amend_label

Sink = Callable[[Event], None]


@dataclass
class Ask:
    """One question. `state` goes once from `asked` to answered, timeout, declined, over_budget or invalid."""

    id: str
    question: str
    options: list[str] = field(default_factory=list)
    asked_at: float = field(default_factory=time.time)
    state: str = "asked"
    answer: str = ""

    @property
    def waited_s(self) -> float:
        """Seconds since it was asked, to one decimal."""
        return round(time.time() - self.asked_at, 1)

    def event(self, remaining: int = 0) -> Event:
        """Return the event that tells this question as it stands now."""
        payload = {
            "id": self.id,
            "options": list(self.options),
            "state": self.state,
            "answer": self.answer,
            "remaining": remaining,
            "asked_at": self.asked_at,
        }
        return Event("ask", self.question, payload=payload, raw=self)


@dataclass
class Mail:
    """What a person said unasked."""

    id: str
    text: str
    sent_at: float = field(default_factory=time.time)
    taken: bool = False


@dataclass(slots=True, eq=False)
class _Waiting:
    """A question that really waits. Whoever removes it from the table decides how it ends (D4)."""

    ask: Ask
    loop: asyncio.AbstractEventLoop
    outcome: asyncio.Future[tuple[str, str]]
    since: float
    decided: tuple[str, str] | None = None
    timer: asyncio.TimerHandle | None = None

    def resolve(self) -> None:
        """Wake the task that waits. On the loop's thread."""
        if self.decided is not None and not self.outcome.done():
            self.outcome.set_result(self.decided)


class HumanChannel:
    """The channel between agents and people (behaviour 6).

    Everything but `ask` and `next_ask` may be called from any thread. `timeout_s` and `max_asks` may be set while it
    runs; a new `timeout_s` counts for the questions that wait already, from the moment they were asked.

    Args:
        on_event: push sink, called on the loop's thread; may not block, and what it raises goes to `ui_errors`.
        max_asks: None unlimited, 0 no questions at all, N a hard quota that every question counts against.
        timeout_s: None waits for ever, a value at or below 0 does not wait.
        log_path: record of questions and answers; costs no context. Made at the first entry.
        amend_path: file that receives what people say during the run, usually the frozen brief.
        over_budget_text, timeout_text, declined_text: what the agent reads when no person answered.
    """

    def __init__(
        self,
        *,
        on_event: Sink | None = None,
        max_asks: int | None = None,
        timeout_s: float | None = 1800.0,
        log_path: str | Path | None = None,
        amend_path: str | Path | None = None,
        over_budget_text: str = OVER_BUDGET,
        timeout_text: str = TIMEOUT,
        declined_text: str = DECLINED,
    ) -> None:
        words = self._words = texts.current().human
        self.max_asks = max_asks
        self.log_path = None if log_path is None else Path(log_path).resolve()
        self.amend_path = None if amend_path is None else Path(amend_path).resolve()
        # The signature shows the specified literals; where they were not replaced, the language spoken now decides.
        self.over_budget_text = words.over_budget if over_budget_text == OVER_BUDGET else over_budget_text
        self.timeout_text = words.timeout if timeout_text == TIMEOUT else timeout_text
        self.declined_text = words.declined if declined_text == DECLINED else declined_text
        self.asks: list[Ask] = []
        self.mail: list[Mail] = []
        self.ui_errors: list[str] = []
        self._on_event = on_event
        self._timeout_s = timeout_s
        self._count = 0
        self._amended: dict[str, str] = {}
        self._waiting: dict[str, _Waiting] = {}
        self._pulled: deque[Ask] = deque()
        self._takers: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        # Guards the counter and the tables; never held while a sink is called or anything awaited.
        self._lock = threading.Lock()

    # -- settings -------------------------------------------------------------------------------------------------

    @property
    def on_event(self) -> Sink | None:
        return self._on_event

    @on_event.setter
    def on_event(self, sink: Sink | None) -> None:
        self._on_event = sink
        self._learn_loop()  # D2: whoever wires the sink usually runs in the loop that the sink belongs to

    @property
    def timeout_s(self) -> float | None:
        return self._timeout_s

    @timeout_s.setter
    def timeout_s(self, seconds: float | None) -> None:
        with self._lock:
            self._timeout_s = seconds
            waiting = list(self._waiting.values())
        for each in waiting:
            _hand_over(each.loop, self._arm, each)

    @property
    def tool_name(self) -> str:
        return TOOL_NAME

    @property
    def inbox_name(self) -> str:
        return INBOX_NAME

    @property
    def remaining(self) -> int:
        """How many more questions pass; -1 without a quota."""
        return -1 if self.max_asks is None else max(0, self.max_asks - len(self.asks))

    # -- the agents' side -----------------------------------------------------------------------------------------

    def mcp_servers(self) -> dict[str, Any]:
        """Return a new in-process server with both tools; all servers share this channel's state."""
        return {SERVER: create_sdk_mcp_server(SERVER, tools=[self._ask_tool(), self._inbox_tool()])}

    async def ask(self, question: str, options: list[str] | None = None) -> Ask:
        """Ask people one question and wait at most `timeout_s`. Raises nothing but `CancelledError`."""
        self._loop = asyncio.get_running_loop()
        ask = self._new_ask(question, options)
        if not ask.question:
            return self._settle(ask, "invalid", self._words.empty_question)
        if self.max_asks is not None and len(self.asks) > self.max_asks:
            return self._settle(ask, "over_budget", self.over_budget_text)
        if self.timeout_s is not None and self.timeout_s <= 0:
            return self._settle(ask, "timeout", self.timeout_text)
        return await self._wait(ask, self._loop)

    # -- the people's side ----------------------------------------------------------------------------------------

    def pending(self) -> list[Ask]:
        """Return the questions that wait now, oldest first."""
        with self._lock:
            return [each.ask for each in self._waiting.values()]

    def answer(self, ask_id: str, text: str) -> bool:
        """Answer a question; False if it waits no longer or never did. After True, `text` is its outcome.

        A blank text is no answer: the question is skipped, and the agent is told so in words (case AS-13).
        """
        if not text.strip():
            return self.decline(ask_id)
        return self._decide(ask_id, "answered", well_formed(text))

    def decline(self, ask_id: str, reason: str = "") -> bool:
        """Skip a question: the agent decides by itself. False as for `answer`."""
        said = self._words.declined_reason.format(reason=well_formed(reason)) if reason.strip() else ""
        return self._decide(ask_id, "declined", self.declined_text + said)

    async def next_ask(self, timeout: float | None = None) -> Ask | None:
        """Pull the next question that really waits, oldest first; None after `timeout` seconds without one."""
        loop = asyncio.get_running_loop()
        until = None if timeout is None else loop.time() + timeout
        while True:
            with self._lock:
                while self._pulled:
                    ask = self._pulled.popleft()
                    if ask.id in self._waiting:
                        return ask
                woken: asyncio.Future[None] = loop.create_future()
                taker = (loop, woken)
                self._takers.append(taker)
            try:
                await asyncio.wait({woken}, timeout=None if until is None else max(0.0, until - loop.time()))
            finally:
                with self._lock, suppress(ValueError):
                    self._takers.remove(taker)
            if not woken.done():
                return None

    def send(self, text: str) -> Mail | None:
        """Say something unasked: queue it for the inbox and amend `amend_path`. Interrupts nobody. None if blank."""
        said = well_formed(text).strip()
        if not said:
            return None
        amended = str(self.amend_path) if self.amend(said, label=self._words.amend_label) else ""
        with self._lock:
            mail = Mail(self._next_id("m"), said)
            self._amended[mail.id] = amended
            self.mail.append(mail)
            # Handed over under the lock: the inbox, which tells `delivered`, cannot come between.
            emitted = self._later(self._mail_event(mail, "queued"))
        if not emitted:
            self._emit(self._mail_event(mail, "queued"))
        return mail

    def amend(self, text: str, *, label: str = AMENDED) -> bool:
        """Append to `amend_path`; False without a path, for blank text, or when writing fails."""
        path, said = self.amend_path, well_formed(text).strip()
        if path is None or not said:
            return False
        named = self._words.amend_label if label == AMENDED else label
        heading = self._words.amend_heading.format(label=named, time=time.strftime("%H:%M:%S"))
        entry = f"\n{heading}\n{said}\n"
        return self._append(path, f"{self._words.amend_head}\n", entry)

    def pending_mail(self) -> list[Mail]:
        """Return the mail that no agent has taken yet."""
        with self._lock:
            return [mail for mail in self.mail if not mail.taken]

    def transcript(self) -> str:
        """Return every question with its state and answer, two lines each."""
        return "\n".join(f"- Q: {ask.question}\n  A: [{ask.state}] {ask.answer}" for ask in list(self.asks))

    # -- questions ------------------------------------------------------------------------------------------------

    def _next_id(self, letter: str) -> str:
        self._count += 1
        return f"{letter}{self._count}"

    def _new_ask(self, question: str, options: object) -> Ask:
        with self._lock:
            ask = Ask(self._next_id("q"), well_formed(str(question or "")).strip(), _options(options))
            self.asks.append(ask)
        return ask

    async def _wait(self, ask: Ask, loop: asyncio.AbstractEventLoop) -> Ask:
        waiting = _Waiting(ask, loop, loop.create_future(), loop.time())
        with self._lock:
            self._waiting[ask.id] = waiting
        self._emit(ask.event(self.remaining))
        self._offer(ask)
        self._arm(waiting)
        try:
            state, answer = await waiting.outcome
        except asyncio.CancelledError:
            with self._lock:
                self._waiting.pop(ask.id, None)
            # Somebody was told True in the same instant: that stays the outcome, although nobody reads it any more.
            if waiting.decided is not None:
                self._settle(ask, *waiting.decided)
            raise
        finally:
            if waiting.timer is not None:
                waiting.timer.cancel()
        return self._settle(ask, state, answer)

    def _arm(self, waiting: _Waiting) -> None:
        """Set the alarm of a question anew. On its loop's thread."""
        if waiting.timer is not None:
            waiting.timer.cancel()
            waiting.timer = None
        if self._timeout_s is not None and not waiting.outcome.done():
            left = waiting.since + self._timeout_s - waiting.loop.time()
            waiting.timer = waiting.loop.call_later(max(0.0, left), self._expire, waiting)

    def _expire(self, waiting: _Waiting) -> None:
        self._decide(waiting.ask.id, "timeout", self.timeout_text)

    def _decide(self, ask_id: str, state: str, answer: str) -> bool:
        with self._lock:
            waiting = self._waiting.pop(ask_id, None)
            if waiting is None:
                return False
            waiting.decided = (state, answer)
        return _hand_over(waiting.loop, waiting.resolve)

    def _settle(self, ask: Ask, state: str, answer: str) -> Ask:
        ask.state, ask.answer = state, answer
        self._emit(ask.event(self.remaining))
        self._log(_entry(ask, self._words.log_options))
        return ask

    def _offer(self, ask: Ask) -> None:
        with self._lock:
            self._pulled.append(ask)
            takers, self._takers = self._takers, []
        for loop, woken in takers:
            _hand_over(loop, _wake, woken)

    # -- mail -----------------------------------------------------------------------------------------------------

    async def _take_mail(self) -> str:
        """Take all mail that waits, and tell so. Returns what the agent reads."""
        self._loop = loop = asyncio.get_running_loop()
        with self._lock:
            taken = [mail for mail in self.mail if not mail.taken]
            for mail in taken:
                mail.taken = True
        for mail in taken:
            # Scheduled, not called: a `queued` that another thread handed over a moment ago stands before it.
            loop.call_soon(self._emit, self._mail_event(mail, "delivered"))
            self._log(f"\n- **{self._words.log_said}**({mail.id}) {_indented(mail.text)}\n")
        await asyncio.sleep(0)
        if not taken:
            return str(self._words.no_mail)
        listed = "\n".join(f"{number}. {mail.text}" for number, mail in enumerate(taken, 1))
        closing = self._words.mail_not_kept if self.amend_path is None else self._words.mail_kept
        return f"{self._words.mail_lead}\n\n{listed}\n\n{closing}"

    def _mail_event(self, mail: Mail, state: str) -> Event:
        payload = {"kind": "mail", "state": state, "id": mail.id, "amended": self._amended[mail.id]}
        return Event("ask", mail.text, payload=payload)

    # -- tools ----------------------------------------------------------------------------------------------------

    def _ask_tool(self) -> SdkMcpTool[Any]:
        words = self._words
        schema = {
            "type": "object",
            "properties": {
                "question": {"type": "string", "description": words.ask_question},
                # A bare string is let through: models send it, and the SDK would refuse the call otherwise (D3).
                "options": {
                    "anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "string"}],
                    "description": words.ask_options,
                },
            },
            "required": ["question"],
        }

        # Marked read-only, or two questions in one message would wait one after the other (SDK facts 3, trap 4).
        @tool(TOOL, words.ask_tool, schema, annotations=ToolAnnotations(readOnlyHint=True))
        async def ask(args: dict[str, Any]) -> dict[str, Any]:
            asked = await self.ask(args.get("question", ""), args.get("options"))
            return _text(asked.answer)

        return ask

    def _inbox_tool(self) -> SdkMcpTool[Any]:
        # The SDK rewrites a schema that does not hold both keys.
        @tool(INBOX, self._words.inbox_tool, {"type": "object", "properties": {}})
        async def inbox(_args: dict[str, Any]) -> dict[str, Any]:
            return _text(await self._take_mail())

        return inbox

    # -- sinks and files ------------------------------------------------------------------------------------------

    def _learn_loop(self) -> None:
        with suppress(RuntimeError):
            self._loop = asyncio.get_running_loop()

    def _later(self, event: Event) -> bool:
        """Hand an event to the loop's thread; False if the caller is on it, or no live loop is known."""
        loop = self._loop
        if loop is None or _running() is loop:
            return False
        return _hand_over(loop, self._emit, event)

    def _emit(self, event: Event) -> None:
        if self._on_event is None:
            return
        try:
            self._on_event(event)
        except Exception as err:  # noqa: BLE001 - boundary: a broken user interface must not end a run (behaviour 5.2)
            self.ui_errors.append(f"{type(err).__name__}: {err}")

    def _log(self, entry: str) -> None:
        if self.log_path is not None:
            self._append(self.log_path, f"{self._words.log_head}\n\n{self._words.log_note}\n\n", entry)

    def _append(self, path: Path, head: str, entry: str) -> bool:
        try:
            append(path, head, entry)
        except OSError:  # the record and the brief are a bonus: nobody may wait or fail because of them (D6)
            return False
        return True


def _options(given: object) -> list[str]:
    """Return stripped options without blanks; a bare string is one option, not its characters (D3)."""
    if given is None:
        return []
    many = given if isinstance(given, list | tuple) else [given]
    return [text for each in many if (text := well_formed(str(each)).strip())]


def _entry(ask: Ask, options: str) -> str:
    lines = [f"- **Q**({ask.id}) {_indented(ask.question)}"]
    if ask.options:
        lines.append(f"  - {options.format(options=' / '.join(ask.options))}")
    lines.append(f"  - **A**[{ask.state}] {_indented(ask.answer)}")
    return "\n".join(lines) + "\n"


def _indented(text: str) -> str:
    return text.replace("\n", "\n    ")


def _text(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


def _running() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _hand_over(loop: asyncio.AbstractEventLoop, call: Callable[..., None], *args: Any) -> bool:
    """Have `call` run on the loop's thread; False if that loop is closed."""
    try:
        loop.call_soon_threadsafe(call, *args)
    except RuntimeError:
        return False
    return True


def _wake(woken: asyncio.Future[None]) -> None:
    if not woken.done():
        woken.set_result(None)
