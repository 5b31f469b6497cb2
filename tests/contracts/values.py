"""The people, runs and news of the suites."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from bridge.model import (
    MessageRef,
    News,
    Person,
    PersonId,
    PlaceRef,
    Platform,
    Posted,
    PostRef,
    RunId,
    RunRecord,
    Settled,
    Summons,
    Tap,
    ThreadRef,
    Words,
)
from bridge.ports import Store

OpenStore = Callable[[], AbstractAsyncContextManager[Store]]
"""What a process calls when it starts; each call is another process with the same state."""

SLACK = Platform("slack")
RUN, OTHER = RunId("k3f9qa"), RunId("zz8w2b")
PLACE = PlaceRef(SLACK, "T1/C1")
THREAD = ThreadRef(SLACK, "T1/C1/1700000000.001700")
ANNA = Person(id=PersonId("T1/U1"), name="Anna")
BEN = Person(id=PersonId("T1/U2"), name="Ben")


def news(seq: int, *, fence: int = 0, kind: str = "text", **more: Any) -> News:
    return News(seq=seq, fence=fence, at=1_700_000_000.25, kind=kind, text=f"item {seq}", **more)


def record(run: RunId = RUN, *, created: float = 1_700_000_000.0, thread: ThreadRef | None = None) -> RunRecord:
    return RunRecord(
        run=run,
        thread=thread,
        place=PLACE,
        request="write a program",
        workspace="demo",
        folder="/srv/flower/runs/k3f9qa",
        starter=ANNA,
        created=created,
        options={"budget": 2.5},
    )


def words(number: int, text: str = "go on") -> Words:
    key = f"{THREAD.key}/{number}"
    return Words(id=key, thread=THREAD, message=MessageRef(THREAD, key), author=ANNA, text=text, at=float(number))


def tap(number: int) -> Tap:
    return Tap(id=f"tap-{number}", thread=THREAD, author=BEN, action="answer:1:q1:2", text="", at=float(number))


def summons(number: int) -> Summons:
    return Summons(id=f"summons-{number}", place=PLACE, author=ANNA, text="write it", at=float(number), private="p")


def posted(name: str, *, digest: str = "d1") -> Posted:
    return Posted(name=name, once=f"k3f9qa-{name}", post=PostRef(THREAD, "17.001700"), digest=digest, at=17.0)


def settled(ask: str, *, by: Person = ANNA, text: str = "Option A") -> Settled:
    return Settled(ask=ask, by=by, how="answered", text=text, at=5.0)
