"""What agents say and do, as lines: prose, thinking, calls and their results."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from itertools import islice
from typing import Any

from flower.cli.page import (
    CYAN,
    DIM,
    MOST_SUMMARY,
    RED,
    Page,
    dollars,
    painted,
    prose,
    remember,
    size,
    string,
    with_headings,
    wrapped,
)
from flower.cli.text import clean, cut, cut_left, one_line, plain, width
from flower.core.events import Event

ASK_TOOL = "mcp__human__ask"
_AGENTS = ("Agent", "Task")
_PATHS = ("file_path", "path", "notebook_path")
_SAYING = ("command", "pattern", "description", "query", "url", "skill", "subject", "prompt", "question")
_RESULT_ROWS = 3
_NAME_COLUMNS = 5
_STATUS_EVERY = timedelta(seconds=60)


def text(page: Page) -> None:
    said = page.ev.text.strip()
    if not said or (page.subagent and not page.verbose):
        return
    _begin(page)
    shown = with_headings(prose(said, page.words))
    page.rows += wrapped(shown, page.columns, f"{page.margin}* ", f"{page.margin}  ")


def thinking(page: Page) -> None:
    if page.ev.text.strip() and (page.verbose or not page.subagent):
        _begin(page)
        page.block("~", page.ev.text.strip(), DIM)


def prompt(page: Page) -> None:
    if page.verbose and page.ev.text.strip():
        _begin(page)
        page.block("<-", page.ev.text.strip(), DIM)


def tool_call(page: Page) -> None:
    state, name, call = page.state, page.ev.tool, str(page.payload.get("id", ""))
    remember(state.calls, call, name)
    if name in _AGENTS and not page.subagent:
        state.agents_seen += 1
        remember(state.agents, call, state.agents_seen)
    if name == ASK_TOOL:  # the question itself is shown when it is asked
        return
    _begin(page)
    label = _tool_name(name) + (f" {state.agents[call]}" if call in state.agents else "")
    head = f"{page.margin}> {label:<{_NAME_COLUMNS}}"
    room = page.columns - width(head) - 2
    summary = _summary(page.ev, max(8, room))
    row = cut(f"{head}  {summary}".rstrip(), page.columns)
    page.rows.append(painted(row, DIM if page.subagent else CYAN))


def tool_result(page: Page) -> None:
    state, call = page.state, str(page.payload.get("tool_use_id", ""))
    name = state.calls.pop(call, "")
    failed = bool(page.payload.get("is_error"))
    if failed or (page.verbose and name != ASK_TOOL):
        _begin(page)
        _result_rows(page, _tool_name(name), failed)
    state.agents.pop(call, None)


def _result_rows(page: Page, name: str, failed: bool) -> None:
    rows = _few_rows(page.ev.text) or ([page.words.no_words] if failed else [])
    icon, colour = ("x", RED) if failed else ("-", DIM)
    for at, row in enumerate(rows):
        label = f"{name:<{_NAME_COLUMNS}}  " if name else ""
        page.row(icon if at == 0 else " ", (label if at == 0 else " " * len(label)) + row, colour)


def _begin(page: Page) -> None:
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


def _status_due(page: Page) -> bool:
    state = page.state
    if state.status_at is None or page.now - state.status_at >= _STATUS_EVERY:
        return True
    if page.ev.kind != "text":
        return False
    figures = [page.words.context.format(size=size(state.context))] if state.context else []
    figures += [dollars(state.cost)] if state.cost else []
    return tuple(figures) != state.status


def _tool_name(name: str) -> str:
    """`mcp__server__tool` reads `server.tool`."""
    name = one_line(name[:MOST_SUMMARY])
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
        return cut_left(one_line(path[-MOST_SUMMARY:]), room)
    if ev.tool in _AGENTS:
        parts = (string(given.get(key))[:MOST_SUMMARY] for key in ("subagent_type", "description"))
        return cut(" · ".join(one_line(part) for part in parts if part.strip()), room)
    said = ev.text or next((given[key] for key in _SAYING if isinstance(given.get(key), str) and given[key]), "")
    said = said or next((value for value in given.values() if isinstance(value, str)), "")
    return cut(one_line(said[:MOST_SUMMARY]), room)


def _plan(todos: list[Any]) -> str:
    """Return how far a plan is, and what is being done now."""
    items = [each for each in todos if isinstance(each, Mapping)]
    done = sum(each.get("status") == "completed" for each in items)
    now = next((each for each in items if each.get("status") == "in_progress"), {})
    doing = one_line(string(now.get("activeForm") or now.get("content"))[:MOST_SUMMARY])
    return f"{done}/{len(items)}" + (f" · {doing}" if doing else "")


def _few_rows(text: str) -> list[str]:
    rows = (plain(row).strip() for row in clean(text[:MOST_SUMMARY]).split("\n"))
    return list(islice((row for row in rows if row), _RESULT_ROWS))
