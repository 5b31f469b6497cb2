"""The course of a run, as lines: steps, handovers, verdicts, results, and what goes wrong."""

from __future__ import annotations

from collections.abc import Mapping

from flower.cli.page import BLUE, BOLD, DIM, GREEN, RED, YELLOW, Page, finite, listed, painted, string
from flower.cli.text import cut, one_line, width

_SLOW_RETRY_S = 5
"""A retry that waits less is over before a person has read of it."""


def step(page: Page) -> None:
    payload, state = page.payload, page.state
    title = f"== {payload.get('index', '?')}/{payload.get('total', '?')} {one_line(page.ev.text)} "
    if payload.get("resumed"):
        title += f"· {page.words.woke.format(count=payload.get('woke', '?'))} "
    title = cut(title, page.columns)
    page.gap()
    page.rows.append(painted(title + "=" * (page.columns - width(title)), BOLD))
    # A step begins a session of its own: the level of the last one says nothing any more.
    state.context, state.status_at = 0, None
    state.calls, state.agents, state.questions = {}, {}, {}
    state.last = "step"


def handoff(page: Page) -> None:
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
        body = string(sections.get(key)).strip() if isinstance(sections, Mapping) else ""
        if body:
            page.block("-", title, BOLD, indent=3)
            page.block("", body, indent=5)
    if payload.get("path"):
        page.block("", words.document.format(path=payload["path"]), DIM, indent=3)
    page.gap()
    page.state.context, page.state.status_at, page.state.last = 0, None, "handoff"
    page.state.questions = {}


def task(page: Page) -> None:
    if page.payload.get("kind") == "verdict":
        _verdict(page)
    elif page.payload.get("unverifiable"):
        _unverifiable(page)
    elif page.ev.text.strip():
        page.block("!", page.ev.text, YELLOW)


def _verdict(page: Page) -> None:
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
    if string(payload.get("reason")).strip():
        page.block("", string(payload["reason"]).strip(), indent=2)
    for item in listed(payload.get("failed")):
        page.block("-", string(item), indent=2)
    page.gap()
    page.state.last = "verdict"


def _unverifiable(page: Page) -> None:
    items, words = listed(page.payload["unverifiable"]), page.words
    page.gap()
    page.block("!", words.unverifiable.format(count=len(items), total=page.payload.get("total", "?")), YELLOW)
    for item in items:
        page.block("-", string(item), indent=2)
    if page.payload.get("path"):
        page.block("", words.goal_file.format(path=page.payload["path"]), YELLOW, indent=2)
    page.gap()
    page.state.last = "task"


def result(page: Page) -> None:
    state, cost = page.state, page.payload.get("cost_usd")
    state.questions = {}
    if finite(cost):
        state.cost += cost
    # A turn that was cut is no failure, and whoever wanted that was told.
    if page.payload.get("is_error") and not page.payload.get("cut"):
        how = "" if page.ev.text in ("", "success") else f" ({page.ev.text})"
        page.block("x", page.words.failed.format(how=how), RED)
    page.status()
    state.last = "result"


def reset(page: Page) -> None:
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


def retry(page: Page) -> None:
    # What a cut agent had asked ends without an outcome; a question that waits all the same can still be answered.
    page.state.questions = {}
    page.block("!", page.ev.text, YELLOW)
    page.state.last = "retry"


def error(page: Page) -> None:
    serious = not page.payload.get("model_mismatch")
    page.block("x" if serious else "!", page.ev.text, RED if serious else YELLOW)
    page.state.last = "error"


def system(page: Page) -> None:
    delay = page.payload.get("retry_delay_ms")
    if page.ev.text != "api_retry" or not finite(delay):
        return
    seconds = round(delay / 1000)
    if seconds >= _SLOW_RETRY_S or page.verbose:
        facts = {key: string(page.payload.get(key, "?")) for key in ("error", "attempt")}
        most = string(page.payload.get("max_retries", "?"))
        page.block("!", page.words.api_retry.format(**facts, most=most, seconds=seconds), YELLOW)
        page.state.last = "retry"
