"""The handoff: what a full session leaves to the fresh one that takes over (behaviour 16.4)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from flower import texts
from flower.core import grammar
from flower.core.disk import freeze
from flower.texts.documents import EN, ZH, DocumentTexts

HANDOFF_PROMPT = ZH.handoff_prompt
DEGRADED = ZH.degraded

TASK_CHARS = 1200
"""How much of the original task a degraded handoff repeats."""

_FIELDS = ("doing", "decided", "deadends", "next", "scene")
_REQUIRED = ("doing", "next")
_GRAMMAR = grammar.Grammar(
    {name: (*getattr(ZH, f"handoff_{name}"), *getattr(EN, f"handoff_{name}")) for name in _FIELDS}
)
_EMPTY = frozenset({ZH.empty, EN.empty})
_MARKS = (ZH.degraded, EN.degraded)
_OVERFLOW = re.compile(
    r"prompt is too long|context[ _-]length[ _-]exceeded|maximum context length"
    r"|exceeds? (?:the )?context (?:window|limit)|too many total text bytes"
    r"|input length and `?max_tokens`? exceed",
    re.IGNORECASE,
)


@dataclass
class Handoff:
    """Five sections, of which two are required: to demand dead ends would make a model invent some.

    `step` stands in the heading only. The file may be edited by a person before the successor reads it again.
    """

    doing: str = ""
    decided: str = ""
    deadends: str = ""
    next: str = ""
    scene: str = ""
    step: str = ""
    path: Path | None = field(default=None, compare=False)

    @classmethod
    def parse(cls, text: str, *, step: str = "") -> Self:
        """Read what a model wrote or a file holds, in either language; all but the five sections is dropped."""
        found = _GRAMMAR.sections(text)
        doing, decided, deadends, next_, scene = (_filled(found.get(name, "")) for name in _FIELDS)
        return cls(doing, decided, deadends, next_, scene, step)

    @classmethod
    def load(cls, path: str | Path) -> Self | None:
        """The handoff in a file; None if it is missing or cannot be read."""
        try:
            handoff = cls.parse(Path(path).read_text(encoding="utf-8-sig"))
        except (OSError, ValueError):
            return None
        handoff.path = Path(path).resolve()
        return handoff

    @property
    def degraded(self) -> bool:
        """Whether no model wrote it."""
        return any(mark in self.doing for mark in _MARKS)

    def missing(self) -> list[str]:
        """Names of the required sections that are empty, in the language spoken."""
        spoken = texts.current().documents
        return [getattr(spoken, f"handoff_{name}")[0] for name in _REQUIRED if not getattr(self, name).strip()]

    def complete(self) -> bool:
        return not self.missing()

    def to_markdown(self) -> str:
        spoken = texts.current().documents
        title = spoken.handoff_title_of.format(step=self.step) if self.step else spoken.handoff_title
        parts = [f"# {title}", f"> {spoken.handoff_note}"]
        parts += [f"## {name}\n\n{body or spoken.empty}" for name, body in self._sections(spoken)]
        return "\n\n".join(parts) + "\n"

    def prompt_block(self) -> str:
        """What the successor is told first; the original task is not sent again."""
        spoken = texts.current().documents
        sections = [f"## {name}\n{body}" for name, body in self._sections(spoken) if body]
        return "\n\n".join([spoken.handoff_opening, *sections, spoken.handoff_closing])

    def write(self, path: str | Path) -> Path:
        """Put it on disk.

        Raises:
            OSError: it could not be written.
        """
        self.path = freeze(Path(path), lambda _before: self.to_markdown())
        return self.path

    def _sections(self, spoken: DocumentTexts) -> Iterator[tuple[str, str]]:
        for name in _FIELDS:
            yield getattr(spoken, f"handoff_{name}")[0], getattr(self, name).strip()


def degraded(step: str, prompt: str, *, why: str = "") -> Handoff:
    """Return the substitute for a handoff that no model could write: complete, and marked (behaviour 16.5).

    Args:
        prompt: the original task; its beginning is repeated.
        why: what went wrong, for people.
    """
    spoken = texts.current().documents
    reason = spoken.degraded_why.format(why=why) if why else ""
    return Handoff(
        doing=spoken.degraded_doing.format(mark=spoken.degraded, step=step, why=reason),
        next=spoken.degraded_next,
        scene=spoken.degraded_scene.format(task=prompt[:TASK_CHARS]),
        step=step,
    )


def _filled(body: str) -> str:
    return "" if body in _EMPTY else body


def is_overflow(*texts: str | None) -> bool:
    """Does any of these say that the context does not fit?"""
    return any(text is not None and _OVERFLOW.search(text) is not None for text in texts)
