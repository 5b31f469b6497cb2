"""One piece of news taken into a view: a function per kind. Pure; see `bridge.view`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from bridge import payloads
from bridge.model import FINAL, MessageRef, News, Person, Sign
from bridge.picture import (
    Activity,
    AskState,
    AskView,
    Call,
    End,
    Line,
    Oracle,
    Receipt,
    Say,
    State,
    Todo,
    View,
    sends_off,
)

CHANNEL_TOOLS = "mcp__human__"
"""Begin of the tools by which the agent talks to people: those are asks and mail here, not activity."""

BY_PEOPLE = ("interrupted-by-human", "ended-by-human")
"""Errors of a step that are no trouble: somebody wanted it (behaviour 7)."""

MOST_CALLS, MOST_PAST, MOST_RECEIPTS, MOST_PLAN = 64, 50, 200, 30
"""Bounds of what only informs. What has to be posted has none: it leaves when it is posted."""


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
    if payloads.flag(news, "subagent"):
        return view
    view = replace(view, context=payloads.whole(news, "context") or view.context)
    if view.judging or not news.text.strip():
        return view
    return _post(replace(view, says=(*view.says, Say(seq=news.seq, at=news.at, text=news.text))))


def _quiet(view: View, news: News) -> View:
    return _alive(view, news)


def _tool_call(view: View, news: News) -> View:
    view = _alive(view, news)
    if not payloads.flag(news, "subagent"):
        view = replace(view, context=payloads.whole(news, "context") or view.context)
        if news.tool == "TodoWrite":
            view = replace(view, plan=_plan(news) or view.plan)
    if news.tool.startswith(CHANNEL_TOOLS):
        return view
    call = Call(
        id=payloads.text(news, "id"),
        tool=news.tool,
        text=news.text[:200],
        at=news.at,
        subagent=payloads.flag(news, "subagent"),
    )
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
    view, gone = _alive(view, news), payloads.text(news, "tool_use_id")
    return replace(view, calls=tuple(call for call in view.calls if call.id != gone))


def _result(view: View, news: News) -> View:
    view = replace(_alive(view, news), calls=())
    # What this turn added: flower takes the session's earlier turns off (docs/wire.md).
    return replace(view, spent=view.spent + (payloads.number(news, "cost_usd") or 0.0))


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
    return _tell(view, news, "handoff") if payloads.text(news, "phase") == "done" else view


def _step(view: View, news: News) -> View:
    view = replace(
        _alive(view, news),
        step=news.text,
        index=payloads.whole(news, "index"),
        total=payloads.whole(news, "total"),
        round=0,
        rounds=0,
        judging=False,
        plan=(),
        calls=(),
    )
    return _tell(view, news, "step", text=news.text, facts=payloads.only(news, "index", "total", "resumed", "woke"))


def _step_end(view: View, news: News) -> View:
    view = replace(_alive(view, news), calls=(), judging=False)
    # A cut that a person asked for is no failure (SS-10); the end says who asked.
    if payloads.flag(news, "ok") or payloads.text(news, "error") in ("", *BY_PEOPLE):
        return view
    return _tell(view, news, "step_failed", text=payloads.text(news, "error"), facts=payloads.only(news, "step"))


def _task(view: View, news: News) -> View:
    view = _alive(view, news)
    if payloads.text(news, "kind") == "verdict":
        view = replace(view, round=payloads.whole(news, "round"), rounds=payloads.whole(news, "rounds"), judging=False)
        facts = {**payloads.only(news, "round", "rounds", "state"), "failed": list(payloads.strings(news, "failed"))}
        return _tell(view, news, "verdict", text=payloads.text(news, "reason") or news.text, facts=facts)
    if points := payloads.strings(news, "unverifiable"):
        return _tell(view, news, "unverifiable", facts={"points": list(points)})
    return view


def _ask(view: View, news: News) -> View:
    if payloads.text(news, "kind") == "mail":
        return _mail(view, news)
    if payloads.text(news, "kind"):
        return view
    fence = payloads.whole(news, "fence") or news.fence
    known = next((ask for ask in view.asks if (ask.fence, ask.id) == (fence, payloads.text(news, "id"))), None)
    state = payloads.text(news, "state")
    if known is None:
        return _first_of_ask(_alive(view, news), news, fence, state)
    if state not in _SETTLED or not known.open:
        return view
    return _settle_ask(_alive(view, news), known, news, state)


def _first_of_ask(view: View, news: News, fence: int, state: str) -> View:
    # An outcome without a question: over budget, or nobody is waited for. `invalid` is the agent's own slip.
    if (
        state not in ("asked", "over_budget", "timeout")
        or not payloads.text(news, "id")
        or view.ask(fence, payloads.text(news, "id"))
    ):
        return view
    until = payloads.number(news, "until")
    ask = AskView(
        seq=news.seq,
        at=news.at,
        fence=fence,
        id=payloads.text(news, "id"),
        number=view.asked + 1,
        question=news.text,
        options=payloads.strings(news, "options"),
        until=until,
    )
    view = _post(replace(view, asks=(*view.asks, ask), asked=view.asked + 1))
    return view if state == "asked" else _settle_ask(view, ask, news, state)


def _settle_ask(view: View, known: AskView, news: News, state: str) -> View:
    settled = replace(
        known,
        state=_SETTLED[state],
        answer=payloads.text(news, "answer"),
        by=payloads.person(news.payload.get("by")),
        settled=news.at,
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
    if payloads.text(news, "state") != "delivered":
        return view
    return _sign(view, payloads.text(news, "command"), "delivered")


def _receipt(view: View, news: News) -> View:
    command, state = payloads.text(news, "command"), payloads.text(news, "state")
    if state == "taken":
        message = payloads.message(news.payload.get("message"))
        if message is None or any(each.command == command for each in view.receipts):
            return view
        receipt = Receipt(command=command, message=message, sign="received")
        return replace(view, receipts=(*view.receipts, receipt)[-MOST_RECEIPTS:])
    if state in ("delivered", "done"):
        if payloads.text(news, "do") == "interrupt":
            view = replace(view, cutting=False)
        return _sign(view, command, "delivered", payloads.message(news.payload.get("message")))
    if state != "refused":
        return view
    view = _sign(view, command, "refused", payloads.message(news.payload.get("message")))
    if payloads.text(news, "do") in ("hold", "interrupt"):
        view = replace(view, cutting=False, state="working" if view.state == "stopping" else view.state)
    by = payloads.person(news.payload.get("by"))
    if by is None or not by.id:
        return view
    return _tell(view, news, "refused", text=news.text, by=by, facts=payloads.only(news, "do"), ends_stretch=False)


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
    state, command = payloads.text(news, "state"), payloads.text(news, "command")
    question = payloads.text(news, "question") or news.text
    oracle = Oracle(
        seq=news.seq,
        at=news.at,
        state=state,
        text=news.text,
        question=question,
        by=payloads.person(news.payload.get("by")),
        cost=payloads.number(news, "cost_usd") or 0.0,
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
    state = payloads.text(news, "state")
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
        request=payloads.text(news, "request"),
        workspace=payloads.text(news, "workspace"),
        starter=payloads.person(news.payload.get("by")),
        created=news.at,
        since=news.at,
        heard=news.at,
        budget=float(budget) if isinstance(budget, int | float) and not isinstance(budget, bool) else None,
    )


def _starting(view: View, news: News) -> View:
    return _enter(view, news, "starting")


def _working(view: View, news: News) -> View:
    by, by_start = payloads.person(news.payload.get("by")), view.by
    again = view.state == "held" and by is not None
    view = _withdraw_older(replace(_enter(view, news, "working"), by=None), news)
    if again:
        return _tell(replace(view, resuming=True), news, "resumed", by=by, facts=payloads.only(news, "words"))
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
    hold, by = payloads.flag(news, "hold"), payloads.person(news.payload.get("by"))
    view = replace(view, cutting=not hold, heard=news.at)
    if hold:
        view = _enter(view, news, "stopping")
    return _tell(view, news, "interrupting", by=by, facts=payloads.only(news, "words", "now", "hold"))


def _held(view: View, news: News) -> View:
    view = replace(_enter(view, news, "held"), cutting=False, resuming=False, calls=())
    return _tell(view, news, "held", text=news.text, by=payloads.person(news.payload.get("by")))


def _stopping(view: View, news: News) -> View:
    return _tell(_enter(view, news, "restarting"), news, "stopping")


def _lost(view: View, news: News) -> View:
    heard = view.heard
    view = replace(_enter(view, news, "lost"), heard=heard, calls=(), reason=news.text)
    return _tell(view, news, "lost", text=news.text, facts=payloads.only(news, "silent_s"))


def _enter(view: View, news: News, state: State) -> View:
    return replace(
        view,
        state=state,
        by=payloads.person(news.payload.get("by")),
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
    cost, duration = payloads.number(news, "cost_usd"), payloads.number(news, "duration_s")
    end = End(
        seq=news.seq,
        at=news.at,
        state=_ENDS[state],
        reason=news.text,
        by=payloads.person(news.payload.get("by")),
        verdict=payloads.as_text(verdict.get("state")),
        verdict_reason=payloads.as_text(verdict.get("reason")),
        failed=payloads.as_strings(verdict.get("failed")),
        unverifiable=payloads.strings(news, "unverifiable"),
        files=payloads.strings(news, "files"),
        cost=view.cost if cost is None else cost,
        aside=payloads.number(news, "aside_usd") or 0.0,
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
    label = payloads.text(news, "label")
    judging = payloads.flag(news, "judging") if label else view.judging
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
        Todo(text=payloads.as_text(each.get("content"))[:200], status=payloads.as_text(each.get("status")))
        for each in todos[:MOST_PLAN]
        if isinstance(each, Mapping)
    )


def _first_line(text: str) -> str:
    return text.strip().split("\n", 1)[0]
