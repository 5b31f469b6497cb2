from __future__ import annotations

import asyncio
import os
import sys

import pytest

from bridge.adapters.memory import MemoryStore
from bridge.errors import BridgeError
from bridge.leading import Lead, is_dead, owner_name
from tests.fakes.clock import FakeClock

ACCOUNT = "fake/T1/U0"


def sure(lead: Lead) -> bool:
    return lead.sure


async def turn() -> None:
    """Let everybody go on who can."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_lead_is_sure_as_long_as_its_lease_runs_and_again_when_it_was_extended() -> None:
    clock = FakeClock()
    store = MemoryStore(clock=clock.now)
    lead = Lead(store.runs, ACCOUNT, owner="bot:1", clock=clock)
    assert not sure(lead)
    async with lead.held():
        assert sure(lead)
        keeping = asyncio.get_running_loop().create_task(lead.keep())
        await turn()
        store.away = True
        clock.advance(9.0)
        await turn()
        assert sure(lead)
        clock.advance(2.0)
        await turn()
        assert not sure(lead)
        store.away = False
        clock.advance(3.0)
        await turn()
        assert sure(lead)
        keeping.cancel()
    assert await store.runs.leader(ACCOUNT) == ""


async def test_a_lead_that_was_taken_over_ends() -> None:
    clock = FakeClock()
    store = MemoryStore(clock=clock.now)
    lead = Lead(store.runs, ACCOUNT, owner="bot:1", clock=clock)
    async with lead.held():
        keeping = asyncio.get_running_loop().create_task(lead.keep())
        await turn()
        clock.advance(0.0)
        store._data.leads.clear()
        assert await store.runs.lead(ACCOUNT, owner="bot:2", ttl=10.0)
        clock.advance(3.0)
        with pytest.raises(BridgeError, match="another bot has taken over"):
            await keeping
        assert not sure(lead)
    assert await store.runs.leader(ACCOUNT) == "bot:2"  # what we do not hold we do not give up


async def test_a_new_bot_waits_for_one_that_does_not_come_back() -> None:
    clock = FakeClock()
    store = MemoryStore(clock=clock.now)
    await store.runs.lead(ACCOUNT, owner="bot:elsewhere:1:1", ttl=10.0)

    async def take() -> None:
        async with Lead(store.runs, ACCOUNT, owner="bot:2", clock=clock).held():
            pass

    taking = asyncio.get_running_loop().create_task(take())
    for _ in range(25):
        await turn()
        clock.advance(0.5)
    await taking


async def test_a_predecessor_that_was_killed_on_this_machine_is_not_waited_for() -> None:
    gone = await asyncio.create_subprocess_exec(sys.executable, "-c", "")
    await gone.wait()
    clock = FakeClock()
    store = MemoryStore(clock=clock.now)
    await store.runs.lead(ACCOUNT, owner=owner_name(gone.pid), ttl=10.0)
    async with Lead(store.runs, ACCOUNT, owner="bot:2", clock=clock).held():
        assert await store.runs.leader(ACCOUNT) == "bot:2"


@pytest.mark.parametrize(
    "owner", ["", "bot:2", "bot:elsewhere:1:1", "bot:x:1:99999999999999999999", owner_name(os.getpid())]
)
def test_whoever_may_live_is_not_taken_for_dead(owner: str) -> None:
    assert not is_dead(owner)
