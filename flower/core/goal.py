"""The goal, a frozen checklist, and the verdict on one round of work (behaviour 21)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from flower import texts
from flower.core import grammar
from flower.core.disk import freeze
from flower.texts.documents import EN, ZH

ACHIEVED = "achieved"
NOT_YET = "not_yet"
UNREACHABLE = "unreachable"

# `判定` names the checklist in a goal and the conclusion in a verdict: two grammars.
_GOAL = grammar.Grammar(
    {
        "statement": (*ZH.goal_statement, *EN.goal_statement),
        "checks": (*ZH.goal_checks, *EN.goal_checks),
    }
)
_VERDICT = grammar.Grammar(
    {
        "conclusion": (*ZH.verdict_conclusion, *EN.verdict_conclusion),
        "reason": (*ZH.verdict_reason, *EN.verdict_reason),
        "failed": (*ZH.verdict_failed, *EN.verdict_failed),
    }
)
_EMPTY = frozenset({ZH.empty, EN.empty})
_NONE = _EMPTY | {"(无)", "（无）", "无", "无。", "(none)", "none", "none.", "n/a"}
_UNVERIFIABLE = re.compile(
    r"\[\s*(?:(?:此环境)?\s*无法验证|unverifiable|not verifiable|(?:cannot|can't|can not) be verified)", re.IGNORECASE
)


@dataclass
class Goal:
    """When the work counts as done: a sentence, and checks that somebody can carry out."""

    statement: str = ""
    checks: list[str] = field(default_factory=list)
    path: Path | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        found = _GOAL.sections(text)
        statement = found.get("statement", "")
        checks = [check for check in grammar.items(found.get("checks", "")) if check not in _EMPTY]
        return cls(statement="" if statement in _EMPTY else statement, checks=checks)

    @classmethod
    def load(cls, path: str | Path) -> Self | None:
        """The goal in a file; None if it is missing or cannot be read."""
        try:
            goal = cls.parse(Path(path).read_text(encoding="utf-8-sig"))
        except (OSError, ValueError):
            return None
        goal.path = Path(path).resolve()
        return goal

    @property
    def unverifiable(self) -> list[str]:
        """The checks that say of themselves that they cannot be verified where the run is."""
        return [check for check in self.checks if _UNVERIFIABLE.search(check)]

    def missing(self) -> list[str]:
        """Names of the empty sections, in the language spoken."""
        spoken = texts.current().documents
        parts = ((spoken.goal_statement[0], self.statement.strip()), (spoken.goal_checks[0], self.checks))
        return [name for name, content in parts if not content]

    def complete(self) -> bool:
        return not self.missing()

    def to_markdown(self) -> str:
        spoken = texts.current().documents
        checks = self._listed() or spoken.empty
        return f"# {spoken.goal_statement[0]}\n\n{self.statement}\n\n# {spoken.goal_checks[0]}\n\n{checks}\n"

    def prompt_block(self) -> str:
        spoken = texts.current().documents
        block = f"## {spoken.goal_statement[0]}\n{self.statement}"
        return f"{block}\n\n## {spoken.goal_checks[0]}\n{self._listed()}" if self.checks else block

    def amend(self, extra: str) -> Self:
        """Append what a person changed; what was there stays. Empty words change nothing."""
        if words := extra.strip():
            self.statement += f"\n\n{texts.current().documents.amended}{words}"
        return self

    def write(self, path: str | Path) -> Path:
        """Freeze it.

        Raises:
            OSError: it could not be written.
        """
        self.path = freeze(Path(path), lambda _before: self.to_markdown())
        return self.path

    def _listed(self) -> str:
        return "\n".join(f"- {check}" for check in self.checks)


# The families are tried in this order and the first hit wins, so that doubt never reads as success (API 7.5).
_FAMILIES = (
    (
        UNREACHABLE,
        re.compile(
            r"无法验证|没法验证|验证不了|无法判定|无法达成|不可达成|做不到"
            r"|unverifiable|unreachable|impossible|unachievable|unattainable"
            r"|\b(?:cannot|can't|can not|could not|couldn't) be (?:verified|achieved|reached|checked)\b"
            r"|\bunable to (?:verify|check)\b|\bnot verifiable\b",
            re.IGNORECASE,
        ),
    ),
    (
        NOT_YET,
        re.compile(
            r"(?:[未没不]|无法)[^。;\uff1b,\uff0c\n]{0,8}(?:达成|achieved)"
            r"|\bnot_yet\b|\bnot?\b|\b(?:cannot|never|none|neither|nor|partly|partially|incomplete)\b|n['’]t\b|\bfail",
            re.IGNORECASE,
        ),
    ),
    (ACHIEVED, re.compile(r"达成|\bachieved\b|\byes\b", re.IGNORECASE)),
)
_EXACTLY = {"1": ACHIEVED, "true": ACHIEVED, "0": NOT_YET, "false": NOT_YET}
# A digit by itself: no count ("1 项"), share ("1/5"), number of an item ("1.") or part of a word.
_DIGIT = re.compile(r"(?<![\w./%-])(?P<digit>[01])(?![\w./%、)\uff09:\uff1a-]|[ \t]*\w)")


@dataclass
class Verdict:
    """What a judge found. Without a recognised conclusion it counts as not reached, never as reached."""

    state: str = ""
    reason: str = ""
    failed: list[str] = field(default_factory=list)

    @classmethod
    def parse(cls, text: str) -> Self:
        found = _VERDICT.sections(text)
        whole = grammar.without_fences(text).strip()
        failed = [item for item in grammar.items(found.get("failed", "")) if item.casefold() not in _NONE]
        # A conclusion that is there and empty is no conclusion: nothing else may stand in for it.
        conclusion = found.get("conclusion", whole)
        return cls(state=_state(conclusion), reason=found.get("reason", ""), failed=failed)

    @property
    def achieved(self) -> bool:
        return self.state == ACHIEVED

    @property
    def unreachable(self) -> bool:
        return self.state == UNREACHABLE

    @property
    def ok(self) -> bool:
        """Was any conclusion recognised?"""
        return bool(self.state)

    def feedback(self) -> str:
        """What the worker is told: the gaps, and no way to close them."""
        spoken = texts.current().documents
        parts = [spoken.feedback.format(reason=self.reason or spoken.no_reason)]
        if self.failed:
            parts.append("\n".join([spoken.feedback_failed, *(f"- {item}" for item in self.failed)]))
        return "\n\n".join([*parts, spoken.feedback_go_on])


def _state(text: str) -> str:
    if exact := _EXACTLY.get(text.casefold()):
        return exact
    for state, words in _FAMILIES:
        if words.search(text):
            return state
    digits = {match["digit"] for match in _DIGIT.finditer(text)}
    return (NOT_YET if "0" in digits else ACHIEVED) if digits else ""
