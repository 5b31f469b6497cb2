"""What a thread shows, folded from the news of its run (product 2, rule 1). Pure: no clock, no words for people.

A `View` keeps what can still change or is not posted yet; `settle_slot` takes out what stands in the thread for good,
so that a run of fifty thousand events has a view of a few kilobytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from bridge.errors import BadMessageError
from bridge.model import FINAL, MessageRef, News, Person, PersonId, Platform, RunId, Sign, ThreadRef
from bridge.wire import plain, read_as

VERSION = 1
"""Of the dumped form; raised when an older one cannot be read any more (rulings R10)."""

State = Literal[
    "queued", "starting", "working", "stopping", "held", "restarting", "lost", "done", "not_reached", "failed", "ended"
]
"""`stopping`: a hold was received and is not taken up yet; `restarting`: the runner was told to go."""

AskState = Literal["asked", "answered", "declined", "timeout", "over_budget", "withdrawn"]

ORDINARY = frozenset({"working", "stopping", "held"})
"""States in which an attempt of the run is known to be alive."""

CHANNEL_TOOLS = "mcp__human__"
"""Begin of the tools by which the agent talks to people: those are asks and mail here, not activity."""

BY_PEOPLE = ("interrupted-by-human", "ended-by-human")
"""Errors of a step that are no trouble: somebody wanted it (behaviour 7)."""

MOST_CALLS, MOST_PAST, MOST_RECEIPTS, MOST_PLAN, MOST_SESSIONS = 64, 50, 200, 30, 100
"""Bounds of what only informs. What has to be posted has none: it leaves when it is posted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call that has not returned."""

    id: str
    tool: str
    text: str
    at: float
    subagent: bool = False
    """Whether a subagent made it. The call that sends a subagent off is the main thread's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Todo:
    """One entry of the agent's plan."""

    text: str
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Say:
    """Prose of the main thread."""

    seq: int
    at: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One thing that happened and is told in a line. `what` names the wording, `facts` fill it in."""

    seq: int
    at: float
    what: str
    text: str = ""
    by: Person | None = None
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """A stretch of tool calls between two things that are posted below it."""

    seq: int
    at: float
    calls: int = 0
    subagents: int = 0
    now: str = ""
    """The newest call, for people: tool and its subject."""
    open: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class AskView:
    """A question. `number` is what people call it: counted over all attempts of the run (rulings R2)."""

    seq: int
    at: float
    fence: int
    id: str
    number: int
    question: str
    options: tuple[str, ...] = ()
    until: float | None = None
    state: AskState = "asked"
    answer: str = ""
    by: Person | None = None
    settled: float = 0.0

    @property
    def label(self) -> str:
        return f"q{self.number}"

    @property
    def open(self) -> bool:
        return self.state == "asked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Oracle:
    """A question asked beside the run (`asked`), and its answer (`answered`) or failure (`failed`)."""

    seq: int
    at: float
    state: str
    text: str
    question: str
    by: Person | None = None
    cost: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How the run ended, or one of its ends when it was continued since."""

    seq: int
    at: float
    state: State
    reason: str
    by: Person | None
    verdict: str
    verdict_reason: str
    failed: tuple[str, ...]
    unverifiable: tuple[str, ...]
    files: tuple[str, ...]
    cost: float
    aside: float
    duration: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What became of a person's own message."""

    command: str
    message: MessageRef
    sign: Sign


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The picture of one run's thread after `seq`."""

    run: RunId
    seq: int = 0
    fence: int = 0
    starts: int = 0
    """How often a runner took it up. Numbers of attempts have gaps: a burial takes one, too."""

    request: str = ""
    workspace: str = ""
    starter: Person | None = None
    created: float = 0.0
    budget: float | None = None

    state: State = "queued"
    by: Person | None = None
    """Who brought the state about, where a person did."""
    reason: str = ""
    since: float = 0.0
    heard: float = 0.0
    """When the run last gave a sign of life."""
    reconnecting: bool = False
    judging: bool = False
    cutting: bool = False
    """An interrupt with words was received and is not taken up yet."""
    resuming: bool = False
    """A person let the held run go on, and the attempt that follows has not begun yet."""

    step: str = ""
    index: int = 0
    total: int = 0
    round: int = 0
    rounds: int = 0
    context: int = 0
    costs: tuple[tuple[str, float], ...] = ()
    """By session: a session's cost is cumulative, over attempts too."""
    older_cost: float = 0.0
    """Of sessions that no longer stand in `costs`."""
    final_cost: float | None = None
    aside: float = 0.0
    duration: float | None = None
    """Seconds, once it is over."""

    asked: int = 0
    """How many questions were shown so far."""
    calls: tuple[Call, ...] = ()
    plan: tuple[Todo, ...] = ()
    consulting: tuple[str, ...] = ()
    """Commands whose oracle question is not answered yet."""

    says: tuple[Say, ...] = ()
    lines: tuple[Line, ...] = ()
    activities: tuple[Activity, ...] = ()
    asks: tuple[AskView, ...] = ()
    oracles: tuple[Oracle, ...] = ()
    ends: tuple[End, ...] = ()
    past: tuple[AskView, ...] = ()
    """Settled asks that left the thread's picture, shortened, for people who come late. The newest ones only."""
    receipts: tuple[Receipt, ...] = ()

    @property
    def over(self) -> bool:
        """Whether the run has ended. A lost one has not: it may come back."""
        return self.state in FINAL

    @property
    def cost(self) -> float:
        """US dollars so far, without the oracle."""
        if self.final_cost is not None:
            return self.final_cost
        return self.older_cost + sum(cost for _, cost in self.costs)

    @property
    def open_asks(self) -> tuple[AskView, ...]:
        return tuple(ask for ask in self.asks if ask.open)

    @property
    def subagents(self) -> int:
        """How many subagents are at work."""
        return sum(sends_off(call.tool) for call in self.calls)

    def ask(self, fence: int, id: str) -> AskView | None:  # noqa: A002 - the word of the wire
        """Find a question by its identity on the wire, settled ones included."""
        return next((ask for ask in (*self.asks, *self.past) if (ask.fence, ask.id) == (fence, id)), None)


def ask_key(run: RunId, fence: int, ask: str) -> str:
    """Name an ask for the state store (`Settled.ask`): run, attempt, id (rulings R2)."""
    return f"{run}/{fence}/{ask}"


def sends_off(tool: str) -> bool:
    """Whether a call of this tool is a subagent at work."""
    return tool in ("Agent", "Task")


# -- folding ----------------------------------------------------------------------------------------------------


def fold(view: View, news: News) -> View:
    """Take in one piece of news. What was taken in already, or is of an unknown kind, changes nothing but `seq`."""
    if news.seq <= view.seq:
        return view
    take = _KINDS.get(news.kind)
    if take is None:
        return replace(view, seq=news.seq)
    return take(replace(view, seq=news.seq, fence=max(view.fence, news.fence)), news)


def _text(view: View, news: News) -> View:
    view = _alive(view, news)
    if _flag(news, "subagent"):
        return view
    view = replace(view, context=_whole(news, "context") or view.context)
    if view.judging or not news.text.strip():
        return view
    return _post(replace(view, says=(*view.says, Say(seq=news.seq, at=news.at, text=news.text))))


def _quiet(view: View, news: News) -> View:
    return _alive(view, news)


def _tool_call(view: View, news: News) -> View:
    view = _alive(view, news)
    if not _flag(news, "subagent"):
        view = replace(view, context=_whole(news, "context") or view.context)
        if news.tool == "TodoWrite":
            view = replace(view, plan=_plan(news) or view.plan)
    if news.tool.startswith(CHANNEL_TOOLS):
        return view
    call = Call(id=_str(news, "id"), tool=news.tool, text=news.text[:200], at=news.at, subagent=_flag(news, "subagent"))
    return _into_activity(replace(view, calls=(*view.calls, call)[-MOST_CALLS:]), call, news)


def _into_activity(view: View, call: Call, news: News) -> View:
    last = view.activities[-1] if view.activities and view.activities[-1].open else None
    if last is None:
        last = Activity(seq=news.seq, at=news.at)
        view = replace(view, activities=(*view.activities, last))
    sent = sends_off(call.tool)
    now = f"{call.tool} {_first_line(call.text)}".strip()
    last = replace(last, calls=last.calls + (not sent), subagents=last.subagents + sent, now=now)
    return replace(view, activities=(*view.activities[:-1], last))


def _tool_result(view: View, news: News) -> View:
    view, gone = _alive(view, news), _str(news, "tool_use_id")
    return replace(view, calls=tuple(call for call in view.calls if call.id != gone))


def _result(view: View, news: News) -> View:
    view = replace(_alive(view, news), calls=())
    session, cost = _str(news, "session_id"), _number(news, "cost_usd")
    if not session or cost is None:
        return view
    kept = tuple((name, each) for name, each in view.costs if name != session)
    costs = (*kept, (session, cost))
    older = sum(each for _, each in costs[:-MOST_SESSIONS])
    return replace(view, costs=costs[-MOST_SESSIONS:], older_cost=view.older_cost + older)


def _error(view: View, news: News) -> View:
    return replace(_alive(view, news), reconnecting=not view.over)


def _retry(view: View, news: News) -> View:
    view = replace(_alive(view, news), reconnecting=view.reconnecting, calls=())
    if view.resuming:  # it is the cut that a person asked for and ended, and told already
        return replace(view, resuming=False)
    return _tell(replace(view, cutting=False), news, "retry", text=news.text)


def _reset(view: View, news: News) -> View:
    view = _alive(view, news)
    return _tell(view, news, "reset", facts={name: news.payload.get(name) for name in ("pre_tokens", "post_tokens")})


def _handoff(view: View, news: News) -> View:
    view = _alive(view, news)
    return _tell(view, news, "handoff") if _str(news, "phase") == "done" else view


def _step(view: View, news: News) -> View:
    view = replace(
        _alive(view, news),
        step=news.text,
        index=_whole(news, "index"),
        total=_whole(news, "total"),
        round=0,
        rounds=0,
        judging=False,
        plan=(),
        calls=(),
    )
    return _tell(view, news, "step", text=news.text, facts=_only(news, "index", "total", "resumed", "woke"))


def _step_end(view: View, news: News) -> View:
    view = replace(_alive(view, news), calls=(), judging=False)
    # A cut that a person asked for is no failure (SS-10); the end says who asked.
    if _flag(news, "ok") or _str(news, "error") in ("", *BY_PEOPLE):
        return view
    return _tell(view, news, "step_failed", text=_str(news, "error"), facts=_only(news, "step"))


def _task(view: View, news: News) -> View:
    view = _alive(view, news)
    if _str(news, "kind") == "verdict":
        view = replace(view, round=_whole(news, "round"), rounds=_whole(news, "rounds"), judging=False)
        facts = {**_only(news, "round", "rounds", "state"), "failed": _strings(news, "failed")}
        return _tell(view, news, "verdict", text=_str(news, "reason") or news.text, facts=facts)
    if points := _strings(news, "unverifiable"):
        return _tell(view, news, "unverifiable", facts={"points": points})
    return view


def _ask(view: View, news: News) -> View:
    if _str(news, "kind") == "mail":
        return _mail(view, news)
    if _str(news, "kind"):
        return view
    fence = _whole(news, "fence") or news.fence
    known = next((ask for ask in view.asks if (ask.fence, ask.id) == (fence, _str(news, "id"))), None)
    state = _str(news, "state")
    if known is None:
        return _first_of_ask(_alive(view, news), news, fence, state)
    if state not in _SETTLED or not known.open:
        return view
    return _settle_ask(_alive(view, news), known, news, state)


def _first_of_ask(view: View, news: News, fence: int, state: str) -> View:
    # An outcome without a question: over budget, or nobody is waited for. `invalid` is the agent's own slip.
    if state not in ("asked", "over_budget", "timeout") or not _str(news, "id") or view.ask(fence, _str(news, "id")):
        return view
    until = _number(news, "until")
    ask = AskView(
        seq=news.seq,
        at=news.at,
        fence=fence,
        id=_str(news, "id"),
        number=view.asked + 1,
        question=news.text,
        options=_strings(news, "options"),
        until=until,
    )
    view = _post(replace(view, asks=(*view.asks, ask), asked=view.asked + 1))
    return view if state == "asked" else _settle_ask(view, ask, news, state)


def _settle_ask(view: View, known: AskView, news: News, state: str) -> View:
    settled = replace(
        known, state=_SETTLED[state], answer=_str(news, "answer"), by=_person(news.payload.get("by")), settled=news.at
    )
    return replace(view, asks=tuple(settled if ask is known else ask for ask in view.asks))


_SETTLED: dict[str, AskState] = {
    "answered": "answered",
    "declined": "declined",
    "timeout": "timeout",
    "over_budget": "over_budget",
    "withdrawn": "withdrawn",
}


def _mail(view: View, news: News) -> View:
    if _str(news, "state") != "delivered":
        return view
    return _sign(view, _str(news, "command"), "delivered")


def _receipt(view: View, news: News) -> View:
    command, state = _str(news, "command"), _str(news, "state")
    if state == "taken":
        message = _message(news.payload.get("message"))
        if message is None or any(each.command == command for each in view.receipts):
            return view
        receipt = Receipt(command=command, message=message, sign="received")
        return replace(view, receipts=(*view.receipts, receipt)[-MOST_RECEIPTS:])
    if state in ("delivered", "done"):
        if _str(news, "do") == "interrupt":
            view = replace(view, cutting=False)
        return _sign(view, command, "delivered", _message(news.payload.get("message")))
    if state != "refused":
        return view
    view = _sign(view, command, "refused", _message(news.payload.get("message")))
    if _str(news, "do") in ("hold", "interrupt"):
        view = replace(view, cutting=False, state="working" if view.state == "stopping" else view.state)
    by = _person(news.payload.get("by"))
    if by is None or not by.id:
        return view
    return _tell(view, news, "refused", text=news.text, by=by, facts=_only(news, "do"), ends_stretch=False)


def _sign(view: View, command: str, sign: Sign, message: MessageRef | None = None) -> View:
    known = next((each for each in view.receipts if each.command == command), None)
    if known is not None:
        changed = tuple(replace(each, sign=sign) if each is known else each for each in view.receipts)
        return replace(view, receipts=changed)
    if message is None:
        return view
    receipt = Receipt(command=command, message=message, sign=sign)
    return replace(view, receipts=(*view.receipts, receipt)[-MOST_RECEIPTS:])


def _oracle(view: View, news: News) -> View:
    state, command = _str(news, "state"), _str(news, "command")
    question = _str(news, "question") or news.text
    oracle = Oracle(
        seq=news.seq,
        at=news.at,
        state=state,
        text=news.text,
        question=question,
        by=_person(news.payload.get("by")),
        cost=_number(news, "cost_usd") or 0.0,
    )
    if state == "asked":
        view = replace(view, consulting=(*view.consulting, command)[-MOST_CALLS:])
        # Who wrote the question in the thread sees it there; who typed it into a form does not.
        if any(each.command == command for each in view.receipts):
            return view
        return replace(view, oracles=(*view.oracles, oracle))
    if state not in ("answered", "failed"):
        return view
    waiting = tuple(each for each in view.consulting if each != command)
    aside = view.aside + oracle.cost
    return _sign(replace(view, consulting=waiting, aside=aside, oracles=(*view.oracles, oracle)), command, "delivered")


# -- the run itself ---------------------------------------------------------------------------------------------


def _run(view: View, news: News) -> View:
    state = _str(news, "state")
    if state in FINAL:
        return _end(view, news, state)
    take = _STATES.get(state)
    return view if take is None else take(view, news)


def _queued(view: View, news: News) -> View:
    options = news.payload.get("options")
    budget = options.get("budget") if isinstance(options, Mapping) else None
    return replace(
        view,
        state="queued",
        request=_str(news, "request"),
        workspace=_str(news, "workspace"),
        starter=_person(news.payload.get("by")),
        created=news.at,
        since=news.at,
        heard=news.at,
        budget=float(budget) if isinstance(budget, int | float) and not isinstance(budget, bool) else None,
    )


def _starting(view: View, news: News) -> View:
    return _enter(view, news, "starting")


def _working(view: View, news: News) -> View:
    by, by_start = _person(news.payload.get("by")), view.by
    again = view.state == "held" and by is not None
    view = _withdraw_older(replace(_enter(view, news, "working"), by=None), news)
    if again:
        return _tell(replace(view, resuming=True), news, "resumed", by=by, facts=_only(news, "words"))
    view = replace(view, starts=view.starts + 1)
    if view.starts == 1:
        return view
    return _tell(view, news, "started_again", by=by or by_start, facts={"attempt": view.starts})


def _withdraw_older(view: View, news: News) -> View:
    """Withdraw what an earlier attempt left open, in case nobody said so: it can never be answered (rulings R1, R2)."""
    asks = tuple(
        replace(ask, state="withdrawn", settled=news.at) if ask.open and ask.fence < news.fence else ask
        for ask in view.asks
    )
    return replace(view, asks=asks)


def _interrupting(view: View, news: News) -> View:
    hold, by = _flag(news, "hold"), _person(news.payload.get("by"))
    view = replace(view, cutting=not hold, heard=news.at)
    if hold:
        view = _enter(view, news, "stopping")
    return _tell(view, news, "interrupting", by=by, facts=_only(news, "words", "now", "hold"))


def _held(view: View, news: News) -> View:
    view = replace(_enter(view, news, "held"), cutting=False, resuming=False, calls=())
    return _tell(view, news, "held", text=news.text, by=_person(news.payload.get("by")))


def _stopping(view: View, news: News) -> View:
    return _tell(_enter(view, news, "restarting"), news, "stopping")


def _lost(view: View, news: News) -> View:
    heard = view.heard
    view = replace(_enter(view, news, "lost"), heard=heard, calls=(), reason=news.text)
    return _tell(view, news, "lost", text=news.text, facts=_only(news, "silent_s"))


def _enter(view: View, news: News, state: State) -> View:
    return replace(
        view,
        state=state,
        by=_person(news.payload.get("by")),
        reason=news.text,
        since=news.at,
        heard=news.at,
        reconnecting=False,
        final_cost=None,
        duration=None,
    )


def _end(view: View, news: News, state: str) -> View:
    verdict = news.payload.get("verdict")
    verdict = verdict if isinstance(verdict, Mapping) else {}
    cost, duration = _number(news, "cost_usd"), _number(news, "duration_s")
    end = End(
        seq=news.seq,
        at=news.at,
        state=_ENDS[state],
        reason=news.text,
        by=_person(news.payload.get("by")),
        verdict=_as_text(verdict.get("state")),
        verdict_reason=_as_text(verdict.get("reason")),
        failed=_as_strings(verdict.get("failed")),
        unverifiable=_strings(news, "unverifiable"),
        files=_strings(news, "files"),
        cost=view.cost if cost is None else cost,
        aside=_number(news, "aside_usd") or 0.0,
        duration=max(0.0, news.at - view.created) if duration is None else duration,
    )
    asks = tuple(replace(ask, state="withdrawn", settled=news.at) if ask.open else ask for ask in view.asks)
    view = replace(_enter(view, news, _ENDS[state]), calls=(), cutting=False, judging=False, consulting=(), asks=asks)
    view = replace(view, final_cost=end.cost, aside=max(view.aside, end.aside), duration=end.duration)
    return _post(replace(view, ends=(*view.ends, end)))


_ENDS: dict[str, State] = {"done": "done", "not_reached": "not_reached", "failed": "failed", "ended": "ended"}

_STATES: dict[str, Callable[[View, News], View]] = {
    "queued": _queued,
    "starting": _starting,
    "working": _working,
    "interrupting": _interrupting,
    "held": _held,
    "stopping": _stopping,
    "lost": _lost,
}

_KINDS: dict[str, Callable[[View, News], View]] = {
    "text": _text,
    "thinking": _quiet,
    "prompt": _quiet,
    "system": _quiet,
    "tool_call": _tool_call,
    "tool_result": _tool_result,
    "result": _result,
    "error": _error,
    "retry": _retry,
    "reset": _reset,
    "handoff": _handoff,
    "step": _step,
    "step_end": _step_end,
    "task": _task,
    "ask": _ask,
    "receipt": _receipt,
    "oracle": _oracle,
    "run": _run,
}

KINDS = frozenset(_KINDS)
"""Kinds that a thread makes something of. Others pass by."""


# -- small steps ------------------------------------------------------------------------------------------------

_ROUND = re.compile(r"#round(\d+)$")


def _alive(view: View, news: News) -> View:
    """Note a sign of life of the agent, and what every one of its events says about where it is."""
    label = _str(news, "label")
    judging = _flag(news, "judging") if label else view.judging
    found = _ROUND.search(label)
    # A runner that was taken for lost and speaks again holds the run still: a newer one would have shut it out.
    state: State = (
        "working" if view.state in ("lost", "starting", "restarting") and news.fence >= view.fence else view.state
    )
    return replace(
        view,
        heard=news.at,
        judging=judging,
        reconnecting=False,
        round=max(view.round, int(found[1])) if found else view.round,
        state=state,
        since=news.at if state != view.state else view.since,
        by=None if state != view.state else view.by,
    )


def _post(view: View) -> View:
    """End the stretch of activity: something is posted below it, so a later call opens a new one below that."""
    if not view.activities or not view.activities[-1].open:
        return view
    return replace(view, activities=(*view.activities[:-1], replace(view.activities[-1], open=False)))


def _tell(
    view: View,
    news: News,
    what: str,
    *,
    text: str = "",
    by: Person | None = None,
    facts: Mapping[str, Any] | None = None,
    ends_stretch: bool = True,
) -> View:
    line = Line(seq=news.seq, at=news.at, what=what, text=text, by=by, facts=facts or {})
    view = replace(view, lines=(*view.lines, line))
    return _post(view) if ends_stretch else view


def _plan(news: News) -> tuple[Todo, ...]:
    given = news.payload.get("input")
    todos = given.get("todos") if isinstance(given, Mapping) else None
    if not isinstance(todos, list):
        return ()
    return tuple(
        Todo(text=_as_text(each.get("content"))[:200], status=_as_text(each.get("status")))
        for each in todos[:MOST_PLAN]
        if isinstance(each, Mapping)
    )


def _first_line(text: str) -> str:
    return text.strip().split("\n", 1)[0]


# -- payloads, which are anybody's ------------------------------------------------------------------------------


def _str(news: News, name: str) -> str:
    return _as_text(news.payload.get(name))


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _flag(news: News, name: str) -> bool:
    return news.payload.get(name) is True


def _number(news: News, name: str) -> float | None:
    value = news.payload.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _whole(news: News, name: str) -> int:
    value = news.payload.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _strings(news: News, name: str) -> tuple[str, ...]:
    return _as_strings(news.payload.get(name))


def _as_strings(value: Any) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list | tuple) else ()


def _only(news: News, *names: str) -> dict[str, Any]:
    return {name: news.payload[name] for name in names if name in news.payload}


def _person(value: Any) -> Person | None:
    if not isinstance(value, Mapping) or not isinstance(value.get("id"), str):
        return None
    return Person(id=PersonId(value["id"]), name=_as_text(value.get("name")))


def _message(value: Any) -> MessageRef | None:
    if not isinstance(value, Mapping):
        return None
    platform, thread, key = (value.get(name) for name in ("platform", "thread", "key"))
    if not (isinstance(platform, str) and isinstance(thread, str) and isinstance(key, str)):
        return None
    return MessageRef(ThreadRef(Platform(platform), thread), key)


# -- what stands for good leaves --------------------------------------------------------------------------------


def settle_slot(view: View, name: str) -> View:
    """Forget a slot that stands in the thread as it should and can never change again.

    A part's name (`say:12:2`) stands for the whole. What is still open stays, and so do the card and unknown names.
    """
    kind, _, rest = name.partition(":")
    if kind == "ask":
        fence, _, ask = rest.partition(":")
        return _settle_ask_slot(view, fence, ask.partition(":")[0])
    number = rest.partition(":")[0]
    if not number.isdecimal():
        return view
    seq = int(number)
    match kind:
        case "say":
            return replace(view, says=tuple(each for each in view.says if each.seq != seq))
        case "line":
            return replace(view, lines=tuple(each for each in view.lines if each.seq != seq))
        case "activity":
            kept = tuple(each for each in view.activities if each.seq != seq or each.open)
            return replace(view, activities=kept)
        case "oracle":
            return replace(view, oracles=tuple(each for each in view.oracles if each.seq != seq))
        case "end":
            return replace(view, ends=tuple(each for each in view.ends if each.seq != seq))
        case _:
            return view


def _settle_ask_slot(view: View, fence: str, ask: str) -> View:
    done = next((each for each in view.asks if not each.open and (str(each.fence), each.id) == (fence, ask)), None)
    if done is None:
        return view
    short = replace(done, question=done.question[:120], answer=done.answer[:200], options=())
    return replace(
        view, asks=tuple(each for each in view.asks if each is not done), past=(*view.past, short)[-MOST_PAST:]
    )


def settle_sign(view: View, message: MessageRef, sign: Sign) -> View:
    """Forget a receipt that stands on its message and says its last word."""
    if sign == "received":
        return view
    kept = tuple(each for each in view.receipts if (each.message, each.sign) != (message, sign))
    return replace(view, receipts=kept)


# -- checkpoints ------------------------------------------------------------------------------------------------


def dump(view: View) -> bytes:
    """Return a view as bytes for a checkpoint."""
    return json.dumps({"version": VERSION, "view": plain(view)}, separators=(",", ":")).encode()


def load(data: bytes) -> View | None:
    """Read a dumped view; None: it cannot be read here, fold again from the news (rulings R10)."""
    try:
        body = json.loads(data)
        if not isinstance(body, dict) or body.get("version") != VERSION or not isinstance(body.get("view"), dict):
            return None
        return read_as(View, body["view"])
    except (ValueError, RecursionError, BadMessageError):
        return None
