"""Accepts without a known outcome."""

from __future__ import annotations

import asyncio

import pytest

from bridge.adapters.doubts import Doubts


async def test_a_cut_accept_is_doubtful_until_it_is_withdrawn() -> None:
    doubts = Doubts()
    with pytest.raises(asyncio.CancelledError), doubts.accepting("m1"):
        raise asyncio.CancelledError
    assert "m1" in doubts
    assert "m2" not in doubts
    doubts.clear("m1")
    doubts.clear("m1")
    assert "m1" not in doubts


async def test_a_repeated_accept_that_succeeds_ends_the_doubt() -> None:
    doubts = Doubts()
    with pytest.raises(OSError, match="away"), doubts.accepting("m1"):
        raise OSError("away")
    with doubts.accepting("m1"):
        assert "m1" in doubts
    assert "m1" not in doubts


async def test_landing_waits_for_every_accept_on_its_way() -> None:
    doubts = Doubts()
    gates = [asyncio.Event(), asyncio.Event()]

    async def accept(gate: asyncio.Event) -> None:
        with doubts.accepting("m1"):
            await gate.wait()

    async with asyncio.TaskGroup() as group:
        for gate in gates:
            group.create_task(accept(gate))
        await asyncio.sleep(0)
        landed = group.create_task(doubts.landed(["m0", "m1"]))
        gates[0].set()
        for _ in range(5):
            await asyncio.sleep(0)
        assert not landed.done()
        gates[1].set()
    assert landed.done()


async def test_nothing_on_its_way_has_landed() -> None:
    await Doubts().landed(["m1"])
    await Doubts().landed([])
