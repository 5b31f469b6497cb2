"""`CommandLine`: once per id, in order, and a reader that waits."""

from __future__ import annotations

import asyncio

import pytest

from bridge.commands import Answer, Command, Consult, Decline, End, Hold, Interrupt, Resume, Say
from bridge.model import MessageRef
from bridge.ports import Store
from tests.contracts.values import ANNA, OTHER, RUN, THREAD

MESSAGE = MessageRef(THREAD, "1700.001700")
EVERY: list[Command] = [
    Answer(id="c1", by=ANNA, at=1.0, fence=1, ask="q1", text="Option A", message=MESSAGE),
    Decline(id="c2", by=ANNA, at=2.0, fence=1, ask="q2", reason=""),
    Say(id="c3", by=ANNA, at=3.0, text="look at 数据"),
    Interrupt(id="c4", by=ANNA, at=4.0, text="stop that"),
    Hold(id="c5", by=ANNA, at=5.0),
    Resume(id="c6", by=ANNA, at=6.0, text=""),
    End(id="c7", by=ANNA, at=7.0, reason="enough"),
    Consult(id="c8", by=ANNA, at=8.0, question="how far?"),
]


def say(number: int) -> Say:
    return Say(id=f"s{number}", by=ANNA, at=float(number), text=f"remark {number}")


async def test_every_command_arrives_as_it_was_sent_and_in_order(store: Store) -> None:
    for command in EVERY:
        assert await store.commands.send(RUN, command) is True
    assert [ordered.command for ordered in await store.commands.read(RUN)] == EVERY


@pytest.mark.case("DL-1")
async def test_an_id_is_in_the_line_once(store: Store) -> None:
    assert await store.commands.send(RUN, say(1)) is True
    assert await store.commands.send(RUN, say(1)) is False
    assert await store.commands.send(OTHER, say(1)) is True
    assert len(await store.commands.read(RUN)) == 1


async def test_reading_goes_on_behind_a_position(store: Store) -> None:
    for number in range(1, 13):
        await store.commands.send(RUN, say(number))
    everything = await store.commands.read(RUN)
    rest = await store.commands.read(RUN, after=everything[9].position)
    assert [ordered.command.id for ordered in rest] == ["s11", "s12"]
    assert await store.commands.read(RUN, after=everything[-1].position) == []


async def test_positions_grow_as_texts(store: Store) -> None:
    for number in range(1, 31):
        await store.commands.send(RUN, say(number))
    positions = [ordered.position for ordered in await store.commands.read(RUN)]
    assert positions == sorted(set(positions))


async def test_a_reader_is_woken_by_a_command(store: Store) -> None:
    async with asyncio.TaskGroup() as group:
        read = group.create_task(store.commands.read(RUN, wait=10))
        await store.commands.send(RUN, say(1))
    assert [ordered.command for ordered in read.result()] == [say(1)]


async def test_waiting_ends_by_its_time(store: Store) -> None:
    async with asyncio.timeout(5):
        assert await store.commands.read(RUN, wait=0.05) == []


@pytest.mark.case("RD-8")
async def test_many_wait_and_commands_are_served(store: Store) -> None:
    async with asyncio.TaskGroup() as group:
        readers = [group.create_task(store.commands.read(RUN, wait=10)) for _ in range(120)]
        await asyncio.sleep(0.2)  # so that they wait indeed
        await store.commands.send(RUN, say(1))
    assert [len(reader.result()) for reader in readers] == [1] * 120
