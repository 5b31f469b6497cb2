"""Who may start a run, and who may steer one (rulings R23). Pure; identities are compared whole, names never."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Literal

from bridge.model import Person, PersonId, RunRecord

Reason = Literal["starter", "listed", "everybody", "not_listed", "unknown"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """A decision with its reason, for the reply and for the audit."""

    allowed: bool
    reason: Reason

    def __bool__(self) -> bool:
        return self.allowed


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """The lists of the settings.

    Args:
        may_start: full ids of who may start runs; empty: everybody whose identity is known.
        may_steer: full ids of who may steer every run, beside its starter.
    """

    may_start: Collection[PersonId] = field(default_factory=frozenset)
    may_steer: Collection[PersonId] = field(default_factory=frozenset)

    def start(self, person: Person) -> Verdict:
        """Decide whether somebody may start a run."""
        if not _known(person):
            return Verdict(False, "unknown")
        if not self.may_start:
            return Verdict(True, "everybody")
        return Verdict(True, "listed") if person.id in self.may_start else Verdict(False, "not_listed")

    def steer(self, person: Person, record: RunRecord) -> Verdict:
        """Decide whether somebody may answer, steer and stop a run."""
        if not _known(person):
            return Verdict(False, "unknown")
        if person.id == record.starter.id:
            return Verdict(True, "starter")
        return Verdict(True, "listed") if person.id in self.may_steer else Verdict(False, "not_listed")


def _known(person: Person) -> bool:
    """An empty identity is nobody's: it must never equal another empty one (SE-8)."""
    return bool(person.id.strip())
