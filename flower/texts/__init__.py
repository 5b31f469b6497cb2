"""Every text that a person or a model reads, in Chinese and in English (product 5).

One module a topic, in each a frozen dataclass and its two values `ZH` and `EN`, so that the type checker sees a
missing entry. What is spoken is decided by `speaking`, else by FLOWER_LANG, else it is Chinese; objects take
`current()` when they are constructed, documents when they are written.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from flower.texts import (
    bequest,
    commands,
    documents,
    hooks,
    human,
    isolation,
    rules,
    running,
    stores,
    surroundings,
    terminal,
    updates,
    workbench,
    workflow,
)

__all__ = ["LANGUAGES", "Texts", "current", "of", "speaking"]

LANGUAGES = ("zh", "en")

_spoken: ContextVar[str | None] = ContextVar("flower_language", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """One language's catalogue."""

    language: str
    rules: rules.RuleTexts
    documents: documents.DocumentTexts
    bequest: bequest.BequestTexts
    workbench: workbench.WorkbenchTexts
    hooks: hooks.HookTexts
    workflow: workflow.WorkflowTexts
    human: human.HumanTexts
    isolation: isolation.IsolationTexts
    running: running.RunningTexts
    stores: stores.StoreTexts
    surroundings: surroundings.SurroundingTexts
    commands: commands.CommandTexts
    terminal: terminal.TerminalTexts
    updates: updates.UpdateTexts


_CATALOGUES = {
    "zh": Texts(
        language="zh",
        rules=rules.ZH,
        documents=documents.ZH,
        bequest=bequest.ZH,
        workbench=workbench.ZH,
        hooks=hooks.ZH,
        workflow=workflow.ZH,
        human=human.ZH,
        isolation=isolation.ZH,
        running=running.ZH,
        stores=stores.ZH,
        surroundings=surroundings.ZH,
        commands=commands.ZH,
        terminal=terminal.ZH,
        updates=updates.ZH,
    ),
    "en": Texts(
        language="en",
        rules=rules.EN,
        documents=documents.EN,
        bequest=bequest.EN,
        workbench=workbench.EN,
        hooks=hooks.EN,
        workflow=workflow.EN,
        human=human.EN,
        isolation=isolation.EN,
        running=running.EN,
        stores=stores.EN,
        surroundings=surroundings.EN,
        commands=commands.EN,
        terminal=terminal.EN,
        updates=updates.EN,
    ),
}


def of(language: str | None) -> Texts:
    """The catalogue of `language`; None is what is spoken now.

    Raises:
        ValueError: no such catalogue (also when FLOWER_LANG names none).
    """
    if language is not None:
        return _known(language, "")
    spoken = _spoken.get()
    if spoken is not None:
        return _CATALOGUES[spoken]
    # Read at each call: a .env file may set it after this module was imported.
    named = os.environ.get("FLOWER_LANG", "")  # noqa: TID251 - product 5: flower reads FLOWER_LANG, texts lie below core
    return _known(named, "FLOWER_LANG: ") if named else _CATALOGUES["zh"]


def current() -> Texts:
    """The catalogue of the language that is spoken now."""
    return of(None)


@contextmanager
def speaking(language: str | None) -> Iterator[None]:
    """Speak `language` in this context and in the tasks that it starts; None changes nothing.

    Raises:
        ValueError: no such catalogue.
    """
    if language is None:
        yield
        return
    token = _spoken.set(of(language).language)
    try:
        yield
    finally:
        _spoken.reset(token)


def _known(language: str, source: str) -> Texts:
    try:
        return _CATALOGUES[language]
    except KeyError:
        raise ValueError(f"{source}no texts in {language!r}; there are {', '.join(LANGUAGES)}") from None
