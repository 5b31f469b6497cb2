"""`Threads`: slots, the checkpoint, and one settlement per ask."""

from __future__ import annotations

import asyncio

import pytest

from bridge.model import Posted
from bridge.ports import Checkpoint, Store
from tests.contracts.values import ANNA, BEN, OTHER, RUN, OpenStore, posted, settled


def checkpoint(seq: int, *, version: int = 1, data: bytes = b"\x00\xffview") -> Checkpoint:
    return Checkpoint(seq=seq, version=version, data=data)


async def test_a_run_without_anything_has_nothing(store: Store) -> None:
    assert await store.threads.checkpoint(RUN) is None
    assert await store.threads.slots(RUN) == {}
    assert await store.threads.settlements(RUN) == {}


async def test_a_checkpoint_comes_back_byte_by_byte(open_store: OpenStore, store: Store) -> None:
    await store.threads.save(RUN, checkpoint(7, version=2))
    async with open_store() as later:
        assert await later.threads.checkpoint(RUN) == checkpoint(7, version=2)
    assert await store.threads.checkpoint(OTHER) is None


async def test_an_older_checkpoint_changes_nothing(store: Store) -> None:
    await store.threads.note(RUN, posted("text:4"))
    await store.threads.save(RUN, checkpoint(7))
    await store.threads.save(RUN, checkpoint(6, data=b"old"), forget=["text:4"])
    assert await store.threads.checkpoint(RUN) == checkpoint(7)
    assert await store.threads.slots(RUN) == {"text:4": posted("text:4")}


async def test_a_checkpoint_of_the_same_number_replaces(store: Store) -> None:
    await store.threads.save(RUN, checkpoint(10, data=b"a"))
    await store.threads.save(RUN, checkpoint(10, data=b"b", version=3))
    await store.threads.save(RUN, checkpoint(9, data=b"c"))
    assert await store.threads.checkpoint(RUN) == checkpoint(10, data=b"b", version=3)


async def test_slots_are_forgotten_with_the_checkpoint(store: Store) -> None:
    for name in ("card", "text:1", "text:2"):
        await store.threads.note(RUN, posted(name))
    await store.threads.save(RUN, checkpoint(3), forget=["text:1", "text:2", "never-there"])
    assert await store.threads.slots(RUN) == {"card": posted("card")}


@pytest.mark.case("ST-7")
async def test_a_slot_is_intended_then_posted_then_edited(store: Store) -> None:
    intended = Posted(name="card", once="k3f9qa-card")
    await store.threads.note(RUN, intended)
    assert await store.threads.slots(RUN) == {"card": intended}
    await store.threads.note(RUN, posted("card", digest="d1"))
    await store.threads.note(RUN, posted("card", digest="d2"))
    assert await store.threads.slots(RUN) == {"card": posted("card", digest="d2")}
    assert await store.threads.slots(OTHER) == {}


@pytest.mark.case("AS-4")
async def test_the_first_settlement_is_everybodys(store: Store) -> None:
    first, second = settled("k3f9qa/1/q1", by=ANNA, text="A"), settled("k3f9qa/1/q1", by=BEN, text="B")
    assert await store.threads.settle(RUN, first) == first
    assert await store.threads.settle(RUN, second) == first
    assert await store.threads.settle(RUN, first) == first
    assert await store.threads.settlements(RUN) == {"k3f9qa/1/q1": first}


async def test_of_many_who_settle_all_hear_of_one(store: Store) -> None:
    async with asyncio.TaskGroup() as group:
        tries = [group.create_task(store.threads.settle(RUN, settled("q", text=str(number)))) for number in range(20)]
    assert len({one.result().text for one in tries}) == 1


@pytest.mark.case("AS-5")
async def test_the_same_question_of_another_attempt_is_another_ask(open_store: OpenStore, store: Store) -> None:
    await store.threads.settle(RUN, settled("k3f9qa/1/q1", text="A"))
    async with open_store() as later:
        await later.threads.settle(RUN, settled("k3f9qa/2/q1", text="B"))
        assert {ask: one.text for ask, one in (await later.threads.settlements(RUN)).items()} == {
            "k3f9qa/1/q1": "A",
            "k3f9qa/2/q1": "B",
        }
