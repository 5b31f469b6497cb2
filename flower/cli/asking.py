"""Questions to people and their mail, as lines. A question that waits never goes out of sight."""

from __future__ import annotations

from dataclasses import replace

from flower.cli.page import BOLD, DIM, GREEN, LOUD, MOST_SUMMARY, YELLOW, Page, listed, remember, string
from flower.cli.text import one_line
from flower.core.events import Event

_OUT_OF_SIGHT = 20
"""Lines after which a question that waits is shown again."""


def ask(page: Page) -> None:
    if page.payload.get("kind") == "mail":
        _mail(page)
    elif page.payload.get("state") == "asked":
        _question(page)
    else:
        _outcome(page)


def _question(page: Page) -> None:
    state, ask = page.state, str(page.payload.get("id", ""))
    state.questions.pop(ask, None)
    if state.questions:  # what is typed goes to the oldest one, so that one has to stand below
        page.gap()
        page.block("?", page.ev.text, YELLOW)
        page.block("", page.words.queued.format(count=len(state.questions)), DIM, indent=2)
        state.posed = ""
    else:
        _pose(page, page.ev)
    remember(state.questions, ask, page.ev)


def _pose(page: Page, ev: Event) -> None:
    """Show a question as the one to answer now."""
    page.gap()
    page.block("?", ev.text, LOUD)
    for number, option in enumerate(listed(ev.payload.get("options")), 1):
        page.block(f"{number})", string(option), BOLD, indent=2)
    remaining = ev.payload.get("remaining", -1)
    if isinstance(remaining, int) and remaining >= 0:
        page.block("", page.words.remaining.format(count=remaining), DIM, indent=2)
    page.gap()
    page.state.posed = page.state.last = str(ev.payload.get("id", ""))
    page.state.rows_since = -len(page.rows)


def keep_in_sight(page: Page) -> None:
    """Show the question to answer again where another one stands below it, or where it may have scrolled away."""
    state = page.state
    state.rows_since += len(page.rows)
    oldest = next(iter(state.questions.items()), None)
    if oldest is not None and (oldest[0] != state.posed or state.rows_since >= _OUT_OF_SIGHT):
        _pose(page, replace(oldest[1], payload={**oldest[1].payload, "remaining": -1, "id": oldest[0]}))
        state.rows_since = 0


def _outcome(page: Page) -> None:
    state, ask, outcome = page.state, str(page.payload.get("id", "")), page.payload.get("state")
    question = state.questions.pop(ask, None)
    waited = question is not None
    icon, text, colour = {
        "answered": ("+", string(page.payload.get("answer")), GREEN),
        "timeout": ("!", page.words.nobody, YELLOW),
        "over_budget": ("!", page.words.over_budget, YELLOW),
        "invalid": ("!", page.words.empty_question, YELLOW),
        "declined": (".", page.words.declined, DIM),
    }.get(str(outcome), (".", string(outcome), DIM))
    if not waited and page.ev.text.strip():
        page.gap()
        page.block("?", page.ev.text, YELLOW)
    page.block(icon, text, colour)
    options = listed(question.payload.get("options")) if question is not None else []
    if outcome == "answered" and options and text not in options and text.isdecimal():
        # Said although it is allowed: who types a number means an option, and may have missed it.
        page.row(" ", page.words.no_option.format(number=text, count=len(options)), YELLOW)
    if waited and state.last != ask:
        page.row(" ", page.words.asked.format(question=one_line(page.ev.text[:MOST_SUMMARY])), DIM)
    state.last = "outcome"


def _mail(page: Page) -> None:
    words = page.words
    if page.payload.get("state") == "delivered":
        page.block(".", words.delivered.format(text=page.ev.text), DIM)
    else:
        kept = words.kept if page.payload.get("amended") else words.not_kept
        page.block("+", words.received.format(kept=kept), GREEN)
        page.row(" ", one_line(page.ev.text[:MOST_SUMMARY]), DIM)
    page.state.last = "mail"
