"""What a person sees of a run in the terminal: events in, lines out.

`lines` decides and is pure but for the `State` it is given; `Render` keeps that state and writes to the screen. The
look is for somebody who watches for hours: prose is wrapped and whole, calls take one line, and what a person has to
act on stands apart.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, TypeGuard

from flower import texts
from flower.cli.screen import Screen, standard
from flower.cli.text import RESET, clean, cut, cut_left, one_line, plain, width, wrap
from flower.core.events import Event
from flower.texts.terminal import TerminalTexts

__all__ = ["Render", "State", "lines", "render"]

BOLD, DIM, RED, GREEN, YELLOW, BLUE, CYAN = "1", "2", "31", "32", "33", "34", "36"
LOUD = "1;33"
"""What waits for a person."""

ASK_TOOL = "mcp__human__ask"
_AGENTS = ("Agent", "Task")
_PATHS = ("file_path", "path", "notebook_path")
_SAYING = ("command", "pattern", "description", "query", "url", "skill", "subject", "prompt", "question")

_MOST_PROSE = 100_000
"""Characters of one text that are shown; more is an accident, and would hold up the run."""
_MOST_SUMMARY = 2_000
_MOST_OPEN = 1_000
_OUT_OF_SIGHT = 20
"""Lines after which a question that waits is shown again."""
_RESULT_ROWS = 3
_NAME_COLUMNS = 5
_STATUS_EVERY = timedelta(seconds=60)
_SLOW_RETRY_S = 5
"""A retry that waits less is over before a person has read of it."""

_HEADING = re.compile(r"^#{1,6} +(?P<text>\S.*)$", re.MULTILINE)
_BULLET = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)、])\s+|\s+|>\s+")


@dataclass(slots=True, kw_only=True)
class State:
    """What is known of a run, and of what was shown last. Changes with each event that goes through `lines`."""

    began: datetime
    said: texts.Texts = field(default_factory=texts.current)
    cost: float = 0.0
    context: int = 0
    calls: dict[str, str] = field(default_factory=dict)
    """Tools that are at work, by the id of their call."""
    agents: dict[str, int] = field(default_factory=dict)
    """Subagents that are at work, by the id of their call, and the number that each is shown with."""
    agents_seen: int = 0
    questions: dict[str, Event] = field(default_factory=dict)
    """Questions that wait, by id, oldest first."""
    posed: str = ""
    """The question that was shown last as the one to answer."""
    rows_since: int = 0
    """Lines shown since."""
    last: str = ""
    """What was shown last: a kind of event, or the id of a question."""
    blank: bool = True
    """Whether the last line shown was empty."""
    status: tuple[str, ...] = ()
    status_at: datetime | None = None


class Render:
    """Show events on `screen`. A callable on `Event`, on the loop's thread; never raises.

    Kinds that it does not know are ignored. The receipt of a person's mail comes from here too (the `queued` event),
    so the input thread prints none.

    Args:
        verbose: also show subagents' prose, prompts and successful results.
    """

    def __init__(self, verbose: bool = False) -> None:
        self.verbose = verbose
        self.screen: Screen = standard()
        self.state = State(began=_now())

    def __call__(self, ev: Event) -> None:
        try:
            shown = lines(ev, self.state, now=_now(), columns=self.screen.width, verbose=self.verbose)
        except Exception as err:  # noqa: BLE001 - boundary: a sink that raises burns the attempts of a run (behaviour 5.2)
            said = self.state.said.terminal.cannot_show.format(kind=ev.kind, error=type(err).__name__)
            shown = [f"! {said}"]
        if shown:
            self.screen.write("".join(line + "\n" for line in shown))


def render(ev: Event, *, verbose: bool = False) -> None:
    """Show one event on standard output, as `Render` does."""
    Render(verbose)(ev)


def lines(ev: Event, state: State, *, now: datetime, columns: int, verbose: bool = False) -> list[str]:
    """Return the lines that show an event, none wider than `columns`; none for a kind that is not known.

    Args:
        state: what was shown before; changed.
        now: with a time zone.
        verbose: also show subagents' prose, prompts and successful results.
    """
    show = _KINDS.get(ev.kind)
    if show is None:
        return []
    page = _Page(ev=ev, state=state, now=now, columns=columns, verbose=verbose)
    show(page)
    if page.rows:
        _keep_in_sight(page)
        state.blank = not page.rows[-1]
    return page.rows


@dataclass(slots=True, kw_only=True)
class _Page:
    """The lines of one event while they are put together."""

    ev: Event
    state: State
    now: datetime
    columns: int
    verbose: bool
    rows: list[str] = field(default_factory=list)

    @property
    def words(self) -> TerminalTexts:
        return self.state.said.terminal

    @property
    def payload(self) -> Mapping[str, Any]:
        return self.ev.payload

    @property
    def subagent(self) -> bool:
        return bool(self.payload.get("subagent"))

    @property
    def margin(self) -> str:
        """What stands before every line of a subagent; a number where several are at work."""
        if not self.subagent:
            return ""
        number = self.state.agents.get(str(self.payload.get("parent_tool_use_id")))
        return f"| {number} " if number and len(self.state.agents) > 1 else "| "

    def gap(self) -> None:
        """Leave one line empty."""
        if not (self.rows[-1] == "" if self.rows else self.state.blank):
            self.rows.append("")

    def row(self, icon: str, text: str, colour: str = "") -> None:
        """Add one line, cut to the width."""
        self.rows.append(_painted(cut(f"{self.margin}{icon} {text}", self.columns), colour))

    def block(self, icon: str, text: str, colour: str = "", *, indent: int = 0) -> None:
        """Add wrapped text without colours of its own, with the icon before its first line."""
        margin = self.margin + " " * indent
        head = f"{margin}{icon} " if icon else margin
        rest = margin + " " * (len(icon) + 1 if icon else 0)
        for row in _wrapped(plain(_prose(text, self.words)), self.columns, head, rest):
            self.rows.append(_painted(row, colour))

    def status(self) -> None:
        """Add the line of figures: when, how long, how full, how dear."""
        state = self.state
        figures = [_long(self.now - state.began)]
        if state.context:
            figures.append(self.words.context.format(size=_size(state.context)))
        if state.cost:
            figures.append(_dollars(state.cost))
        state.status, state.status_at = tuple(figures[1:]), self.now
        self.gap()
        self.rows.append(_painted(cut(f". {self.now:%H:%M} · {' · '.join(figures)}", self.columns), DIM))


# -- the main thread and its subagents --------------------------------------------------------------------------------


def _text(page: _Page) -> None:
    text = page.ev.text.strip()
    if not text or (page.subagent and not page.verbose):
        return
    _begin(page)
    margin = page.margin
    prose = _prose(text, page.words)
    page.rows += _wrapped(_HEADING.sub(_raised, prose), page.columns, f"{margin}* ", f"{margin}  ")


def _thinking(page: _Page) -> None:
    if page.ev.text.strip() and (page.verbose or not page.subagent):
        _begin(page)
        page.block("~", page.ev.text.strip(), DIM)


def _prompt(page: _Page) -> None:
    if page.verbose and page.ev.text.strip():
        _begin(page)
        page.block("<-", page.ev.text.strip(), DIM)


def _tool_call(page: _Page) -> None:
    state, name, call = page.state, page.ev.tool, str(page.payload.get("id", ""))
    _open(state.calls, call, name)
    if name in _AGENTS and not page.subagent:
        state.agents_seen += 1
        _open(state.agents, call, state.agents_seen)
    if name == ASK_TOOL:  # the question itself is shown when it is asked
        return
    _begin(page)
    label = _tool_name(name) + (f" {state.agents[call]}" if call in state.agents else "")
    head = f"{page.margin}> {label:<{_NAME_COLUMNS}}"
    room = page.columns - width(head) - 2
    summary = _summary(page.ev, max(8, room))
    row = cut(f"{head}  {summary}".rstrip(), page.columns)
    page.rows.append(_painted(row, DIM if page.subagent else CYAN))


def _tool_result(page: _Page) -> None:
    state, call = page.state, str(page.payload.get("tool_use_id", ""))
    name = state.calls.pop(call, "")
    failed = bool(page.payload.get("is_error"))
    if failed or (page.verbose and name != ASK_TOOL):
        _begin(page)
        _result_rows(page, _tool_name(name), failed)
    state.agents.pop(call, None)


def _result_rows(page: _Page, name: str, failed: bool) -> None:
    rows = _few_rows(page.ev.text) or ([page.words.no_words] if failed else [])
    icon, colour = ("x", RED) if failed else ("-", DIM)
    for at, row in enumerate(rows):
        label = f"{name:<{_NAME_COLUMNS}}  " if name else ""
        page.row(icon if at == 0 else " ", (label if at == 0 else " " * len(label)) + row, colour)


def _begin(page: _Page) -> None:
    """Begin something that an agent said or did: figures where they are due, a gap before prose."""
    state, ev, context = page.state, page.ev, page.payload.get("context")
    if not page.subagent:
        if isinstance(context, int) and context > 0:
            state.context = context
        if _status_due(page):
            page.status()
        elif ev.kind == "text" and state.last != "status":
            page.gap()
    elif state.last == "text":
        page.gap()
    state.last = ev.kind


def _status_due(page: _Page) -> bool:
    state = page.state
    if state.status_at is None or page.now - state.status_at >= _STATUS_EVERY:
        return True
    if page.ev.kind != "text":
        return False
    figures = [page.words.context.format(size=_size(state.context))] if state.context else []
    figures += [_dollars(state.cost)] if state.cost else []
    return tuple(figures) != state.status


# -- questions and mail -----------------------------------------------------------------------------------------------


def _ask(page: _Page) -> None:
    if page.payload.get("kind") == "mail":
        _mail(page)
    elif page.payload.get("state") == "asked":
        _question(page)
    else:
        _outcome(page)


def _question(page: _Page) -> None:
    state, ask = page.state, str(page.payload.get("id", ""))
    state.questions.pop(ask, None)
    if state.questions:  # what is typed goes to the oldest one, so that one has to stand below
        page.gap()
        page.block("?", page.ev.text, YELLOW)
        page.block("", page.words.queued.format(count=len(state.questions)), DIM, indent=2)
        state.posed = ""
    else:
        _pose(page, page.ev)
    _open(state.questions, ask, page.ev)


def _pose(page: _Page, ev: Event) -> None:
    """Show a question as the one to answer now."""
    page.gap()
    page.block("?", ev.text, LOUD)
    for number, option in enumerate(_listed(ev.payload.get("options")), 1):
        page.block(f"{number})", _str(option), BOLD, indent=2)
    remaining = ev.payload.get("remaining", -1)
    if isinstance(remaining, int) and remaining >= 0:
        page.block("", page.words.remaining.format(count=remaining), DIM, indent=2)
    page.gap()
    page.state.posed = page.state.last = str(ev.payload.get("id", ""))
    page.state.rows_since = -len(page.rows)


def _keep_in_sight(page: _Page) -> None:
    """Show the question to answer again where another one stands below it, or where it may have scrolled away."""
    state = page.state
    state.rows_since += len(page.rows)
    oldest = next(iter(state.questions.items()), None)
    if oldest is not None and (oldest[0] != state.posed or state.rows_since >= _OUT_OF_SIGHT):
        _pose(page, replace(oldest[1], payload={**oldest[1].payload, "remaining": -1, "id": oldest[0]}))
        state.rows_since = 0


def _outcome(page: _Page) -> None:
    state, ask, outcome = page.state, str(page.payload.get("id", "")), page.payload.get("state")
    waited = state.questions.pop(ask, None) is not None
    icon, text, colour = {
        "answered": ("+", _str(page.payload.get("answer")), GREEN),
        "timeout": ("!", page.words.nobody, YELLOW),
        "over_budget": ("!", page.words.over_budget, YELLOW),
        "invalid": ("!", page.words.empty_question, YELLOW),
        "declined": (".", page.words.declined, DIM),
    }.get(str(outcome), (".", _str(outcome), DIM))
    if not waited and page.ev.text.strip():
        page.gap()
        page.block("?", page.ev.text, YELLOW)
    page.block(icon, text, colour)
    if waited and state.last != ask:
        page.row(" ", page.words.asked.format(question=one_line(page.ev.text[:_MOST_SUMMARY])), DIM)
    state.last = "outcome"


def _mail(page: _Page) -> None:
    words = page.words
    if page.payload.get("state") == "delivered":
        page.block(".", words.delivered.format(text=page.ev.text), DIM)
    else:
        kept = words.kept if page.payload.get("amended") else words.not_kept
        page.block("+", words.received.format(kept=kept), GREEN)
    page.state.last = "mail"


# -- the course of a run ----------------------------------------------------------------------------------------------


def _step(page: _Page) -> None:
    payload, state = page.payload, page.state
    title = f"== {payload.get('index', '?')}/{payload.get('total', '?')} {one_line(page.ev.text)} "
    if payload.get("resumed"):
        title += f"· {page.words.woke.format(count=payload.get('woke', '?'))} "
    title = cut(title, page.columns)
    page.gap()
    page.rows.append(_painted(title + "=" * (page.columns - width(title)), BOLD))
    # A step begins a session of its own: the level of the last one says nothing any more.
    state.context, state.status_at = 0, None
    state.calls, state.agents, state.questions = {}, {}, {}
    state.last = "step"


def _handoff(page: _Page) -> None:
    payload, words = page.payload, page.words
    if payload.get("phase") != "done":
        page.block("!" if payload.get("phase") == "near" else "<-", page.ev.text, YELLOW)
        page.state.last = "handoff"
        return
    page.gap()
    page.block("<-", page.ev.text, f"{BOLD};{BLUE}")
    if payload.get("degraded"):
        page.block("!", words.degraded, YELLOW, indent=3)
    sections = payload.get("sections")
    for key, title in zip(
        ("doing", "decided", "deadends", "next"),
        (words.doing, words.decided, words.dead_ends, words.next),
        strict=True,
    ):
        body = _str(sections.get(key)).strip() if isinstance(sections, Mapping) else ""
        if body:
            page.block("-", title, BOLD, indent=3)
            page.block("", body, indent=5)
    if payload.get("path"):
        page.block("", words.document.format(path=payload["path"]), DIM, indent=3)
    page.gap()
    page.state.context, page.state.status_at, page.state.last = 0, None, "handoff"
    page.state.questions = {}


def _task(page: _Page) -> None:
    if page.payload.get("kind") == "verdict":
        _verdict(page)
    elif page.payload.get("unverifiable"):
        _unverifiable(page)
    elif page.ev.text.strip():
        page.block("!", page.ev.text, YELLOW)


def _verdict(page: _Page) -> None:
    payload, known = page.payload, page.state.said.documents
    state = str(payload.get("state", ""))
    icon, word, colour = {
        "achieved": ("+", known.achieved, GREEN),
        "not_yet": ("x", known.not_achieved, RED),
        "unreachable": ("!", known.unreachable, YELLOW),
    }.get(state, ("!", state, YELLOW))
    said = page.words.verdict.format(round=payload.get("round", "?"), rounds=payload.get("rounds", "?"), state=word)
    page.gap()
    page.block(icon, said, f"{BOLD};{colour}")
    if _str(payload.get("reason")).strip():
        page.block("", _str(payload["reason"]).strip(), indent=2)
    for item in _listed(payload.get("failed")):
        page.block("-", _str(item), indent=2)
    page.gap()
    page.state.last = "verdict"


def _unverifiable(page: _Page) -> None:
    items, words = _listed(page.payload["unverifiable"]), page.words
    page.gap()
    page.block("!", words.unverifiable.format(count=len(items), total=page.payload.get("total", "?")), YELLOW)
    for item in items:
        page.block("-", _str(item), indent=2)
    if page.payload.get("path"):
        page.block("", words.goal_file.format(path=page.payload["path"]), YELLOW, indent=2)
    page.gap()
    page.state.last = "task"


def _result(page: _Page) -> None:
    state, cost = page.state, page.payload.get("cost_usd")
    state.questions = {}
    if _finite(cost):
        state.cost += cost
    if page.payload.get("is_error"):
        how = "" if page.ev.text in ("", "success") else f" ({page.ev.text})"
        page.block("x", page.words.failed.format(how=how), RED)
    page.status()
    state.last = "result"


def _reset(page: _Page) -> None:
    payload, words, post = page.payload, page.words, page.payload.get("post_tokens")
    if isinstance(post, int):
        page.state.context = post
    if "subtype" in payload:
        form = words.compacted_little if payload.get("micro") else words.compacted
        text = form.format(trigger=payload.get("trigger", "?"), pre=payload.get("pre_tokens"), post=post)
    else:
        text = words.conversation_reset
    page.block("-", text, DIM)
    page.state.last = "reset"


def _retry(page: _Page) -> None:
    # What a cut agent had asked ends without an outcome; a question that waits all the same can still be answered.
    page.state.questions = {}
    page.block("!", page.ev.text, YELLOW)
    page.state.last = "retry"


def _error(page: _Page) -> None:
    serious = not page.payload.get("model_mismatch")
    page.block("x" if serious else "!", page.ev.text, RED if serious else YELLOW)
    page.state.last = "error"


def _system(page: _Page) -> None:
    delay = page.payload.get("retry_delay_ms")
    if page.ev.text != "api_retry" or not _finite(delay):
        return
    seconds = round(delay / 1000)
    if seconds >= _SLOW_RETRY_S or page.verbose:
        facts = {key: _str(page.payload.get(key, "?")) for key in ("error", "attempt")}
        most = _str(page.payload.get("max_retries", "?"))
        page.block("!", page.words.api_retry.format(**facts, most=most, seconds=seconds), YELLOW)
        page.state.last = "retry"


_KINDS: dict[str, Callable[[_Page], None]] = {
    "text": _text,
    "thinking": _thinking,
    "prompt": _prompt,
    "tool_call": _tool_call,
    "tool_result": _tool_result,
    "task": _task,
    "system": _system,
    "reset": _reset,
    "result": _result,
    "error": _error,
    "retry": _retry,
    "ask": _ask,
    "step": _step,
    "handoff": _handoff,
}
"""`unknown` is left out with purpose: a person can do nothing about it."""


# -- words ------------------------------------------------------------------------------------------------------------


def _prose(text: str, words: TerminalTexts) -> str:
    over = len(text) - _MOST_PROSE
    return clean(text if over <= 0 else f"{text[:_MOST_PROSE]}\n{words.left_out.format(count=over)}")


def _raised(heading: re.Match[str]) -> str:
    """A heading without its marks."""
    return _painted(plain(heading["text"]), BOLD)


def _wrapped(text: str, columns: int, head: str, rest: str) -> Iterator[str]:
    """Wrap prose, lines of lists below their text; several empty lines in a row become one."""
    empty = False
    for line in text.split("\n"):
        if not plain(line).strip():
            if not empty:
                yield rest.rstrip()
            empty = True
            continue
        empty = False
        bullet = _BULLET.match(line)
        hang = " " * min(width(bullet[0]), columns // 3) if bullet else ""
        yield from wrap(line.rstrip(), columns, first=head, rest=rest + hang)
        head = rest


def _painted(row: str, colour: str) -> str:
    return f"\x1b[{colour}m{row}{RESET}" if colour and row else row


def _tool_name(name: str) -> str:
    """`mcp__server__tool` reads `server.tool`."""
    name = one_line(name[:_MOST_SUMMARY])
    if name.startswith("mcp__"):
        name = name.removeprefix("mcp__").replace("__", ".", 1)
    return cut(name, 24)


def _summary(ev: Event, room: int) -> str:
    """Return what a call is about: of a path its end, of everything else its beginning."""
    given = ev.payload.get("input")
    given = given if isinstance(given, Mapping) else {}
    if isinstance(given.get("todos"), list):
        return cut(_plan(given["todos"]), room)
    path = next((given[key] for key in _PATHS if isinstance(given.get(key), str) and given[key]), "")
    if path and ev.text in ("", path[: len(ev.text)]):
        return cut_left(one_line(path[-_MOST_SUMMARY:]), room)
    if ev.tool in _AGENTS:
        parts = (_str(given.get(key))[:_MOST_SUMMARY] for key in ("subagent_type", "description"))
        return cut(" · ".join(one_line(part) for part in parts if part.strip()), room)
    said = ev.text or next((given[key] for key in _SAYING if isinstance(given.get(key), str) and given[key]), "")
    said = said or next((value for value in given.values() if isinstance(value, str)), "")
    return cut(one_line(said[:_MOST_SUMMARY]), room)


def _plan(todos: list[Any]) -> str:
    """Return how far a plan is, and what is being done now."""
    items = [each for each in todos if isinstance(each, Mapping)]
    done = sum(each.get("status") == "completed" for each in items)
    now = next((each for each in items if each.get("status") == "in_progress"), {})
    doing = one_line(_str(now.get("activeForm") or now.get("content"))[:_MOST_SUMMARY])
    return f"{done}/{len(items)}" + (f" · {doing}" if doing else "")


def _few_rows(text: str) -> list[str]:
    rows = (plain(row).strip() for row in clean(text[:_MOST_SUMMARY]).split("\n"))
    return list(islice((row for row in rows if row), _RESULT_ROWS))


def _open(table: dict[str, Any], key: str, value: Any) -> None:
    """Remember what has begun. What never ends, for instance after an interrupt, is forgotten in time."""
    table[key] = value
    if len(table) > _MOST_OPEN:
        del table[next(iter(table))]


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _str(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def _finite(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and math.isfinite(value)


def _size(tokens: int) -> str:
    return f"{tokens / 1000:.1f}K"


def _dollars(cost: float) -> str:
    return f"${cost:.2f}" if cost >= 0.1 else f"${cost:.4f}"


def _long(passed: timedelta) -> str:
    seconds = max(0, int(passed.total_seconds()))
    hours, minutes = divmod(seconds // 60, 60)
    return f"{hours}h{minutes:02}m" if hours else f"{minutes}m{seconds % 60:02}s"


def _now() -> datetime:
    return datetime.now(tz=UTC).astimezone()
