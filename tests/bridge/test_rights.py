"""Who may start and who may steer."""

from __future__ import annotations

import pytest

from bridge.model import Person, PersonId, PlaceRef, Platform, RunId, RunRecord
from bridge.rights import Rights, Verdict


def person(id: str, name: str = "") -> Person:  # noqa: A002 - the word of the model
    return Person(id=PersonId(id), name=name)


def record_of(starter: Person) -> RunRecord:
    return RunRecord(
        run=RunId("k3f9qa"),
        thread=None,
        place=PlaceRef(Platform("anywhere"), "T1/C1"),
        request="x",
        workspace="site",
        folder="/r",
        starter=starter,
        created=0.0,
    )


@pytest.mark.case("SE-8")
@pytest.mark.parametrize("unknown", ["", " ", "\n"])
def test_a_person_who_is_not_known_may_do_nothing(unknown: str) -> None:
    nobody = person(unknown)
    rights = Rights(may_start=[PersonId(unknown)], may_steer=[PersonId(unknown)])

    assert rights.start(nobody) == Verdict(False, "unknown")
    assert rights.steer(nobody, record_of(nobody)) == Verdict(False, "unknown")
    assert Rights().start(nobody) == Verdict(False, "unknown")


@pytest.mark.case("SE-2")
def test_the_starter_and_the_listed_may_steer_and_nobody_else() -> None:
    rights = Rights(may_steer=frozenset({PersonId("T1/UBOB")}))
    record = record_of(person("T1/UALICE", "alice"))

    assert rights.steer(person("T1/UALICE"), record) == Verdict(True, "starter")
    assert rights.steer(person("T1/UBOB"), record) == Verdict(True, "listed")
    assert rights.steer(person("T1/UCAROL", "alice"), record) == Verdict(False, "not_listed")


@pytest.mark.parametrize("near", ["UALICE", "T2/UALICE", "t1/ualice", "T1/UALICE ", "T1/UALIC"])
def test_an_identity_counts_whole_or_not_at_all(near: str) -> None:
    assert not Rights().steer(person(near), record_of(person("T1/UALICE")))


def test_everybody_may_start_unless_there_is_a_list() -> None:
    bob = person("T1/UBOB")

    assert Rights().start(bob) == Verdict(True, "everybody")
    assert Rights(may_start=[PersonId("T1/UBOB")]).start(bob) == Verdict(True, "listed")
    assert Rights(may_start=[PersonId("T1/UALICE")]).start(bob) == Verdict(False, "not_listed")
    assert Rights(may_steer=[PersonId("T1/UALICE")]).start(bob) == Verdict(True, "everybody")
