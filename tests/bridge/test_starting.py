from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bridge.adapters.memory import MemoryStore
from bridge.errors import FencedError, SettingsError
from bridge.model import News, Person, PersonId, PlaceRef, Platform, RunId, RunRecord
from bridge.ports import Store
from bridge.settings import Settings, WorkspaceSettings
from bridge.starting import Starter, run_id_of
from tests.fakes.clock import FakeClock
from tests.fakes.launcher import FakeLauncher

ALICE = Person(id=PersonId("T1/U1"), name="alice")
PLACE = PlaceRef(Platform("test"), "T1/C1")


@dataclass
class Bench:
    starter: Starter
    store: Store
    launcher: FakeLauncher
    clock: FakeClock

    async def create(self, seed: str = "s1", *, workspace: str = "", **options: Any) -> RunRecord:
        return await self.starter.create(
            seed=seed, place=PLACE, starter=ALICE, request="write primes", workspace=workspace, options=options
        )

    async def news(self, run: RunId) -> list[News]:
        return await self.store.events.read(run)

    async def states(self, run: RunId) -> list[str]:
        return [str(item.payload.get("state")) for item in await self.news(run)]


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    clock = FakeClock()
    memory = MemoryStore(clock=clock.now)
    settings = Settings(
        home=tmp_path,
        workspaces={
            "demo": WorkspaceSettings(path=tmp_path / "demo", fresh=True, budget=2.0),
            "site": WorkspaceSettings(path=tmp_path / "site"),
        },
        default_workspace="demo",
        flows={"nightly": "acme.flows:nightly"},
    )
    launcher = FakeLauncher()
    async with memory.open() as store:
        yield Bench(
            Starter(store, launcher, settings, store_url="redis://x", owner="bot:1", clock=clock),
            store,
            launcher,
            clock,
        )


async def test_an_unknown_workspace_starts_nothing(bench: Bench) -> None:
    with pytest.raises(SettingsError, match=r"there is no workspace 'dmeo'; did you mean 'demo'\?"):
        await bench.create(workspace="dmeo")
    assert await bench.store.runs.everyone() == []


async def test_a_flow_is_taken_by_name_only(bench: Bench) -> None:
    with pytest.raises(SettingsError, match="there is no flow 'os:system'"):
        await bench.create(flow="os:system")
    record = await bench.create(flow="nightly")
    await bench.starter.launch(record, by=ALICE)
    assert bench.launcher.orders[0].flow == "acme.flows:nightly"


async def test_a_shared_workspace_takes_one_live_run(bench: Bench) -> None:
    first = await bench.create("s1", workspace="site")
    with pytest.raises(SettingsError, match=f"in use by run {first.run}"):
        await bench.create("s2", workspace="site")


async def test_a_runner_that_cannot_be_started_is_told_with_its_reason(bench: Bench) -> None:
    bench.launcher.trouble = "no memory left: start fewer runs"
    record = await bench.create()
    await bench.starter.launch(record, by=ALICE)
    assert await bench.states(record.run) == ["queued", "starting", "failed"]
    assert (await bench.news(record.run))[-1].text == "no memory left: start fewer runs"
    standing = await bench.store.runs.standing(record.run)
    assert standing is not None
    assert standing.status == "failed"


@pytest.mark.case("DL-1")
async def test_the_same_start_delivered_twice_is_one_run_with_one_runner(bench: Bench) -> None:
    first, second = await bench.create("s1"), await bench.create("s1")
    assert first.run == second.run == run_id_of("test:s1")
    await bench.starter.launch(first, by=ALICE)
    await bench.store.runs.acquire(first.run, owner="runner:1", ttl=20)
    await bench.starter.launch(second, by=ALICE)
    assert len(bench.launcher.orders) == 1


async def test_an_order_carries_what_the_workspace_and_the_start_say(bench: Bench, tmp_path: Path) -> None:
    record = await bench.create("s1", asks=3)
    await bench.starter.launch(record, by=ALICE)
    order = bench.launcher.orders[0]
    assert order.workspace == tmp_path / "demo" / record.run
    assert order.folder == tmp_path / "runs" / record.run
    assert order.folder.is_dir()
    assert order.workspace.is_dir()
    assert (order.options["budget"], order.options["asks"]) == (2.0, 3)
    assert order.store_user.startswith("run-")


async def test_a_dead_runner_is_noted_as_lost_and_its_open_ask_withdrawn(bench: Bench) -> None:
    record = await bench.create()
    await bench.starter.launch(record, by=ALICE)
    fence = await bench.store.runs.acquire(record.run, owner="runner:1", ttl=20)
    await bench.starter.look_after(record.run, [])
    assert (await bench.states(record.run))[-1] == "starting"
    bench.clock.advance(21)
    await bench.starter.look_after(record.run, [(fence, "q1", "A or B?")])
    news = await bench.news(record.run)
    assert [item.payload["state"] for item in news[-2:]] == ["withdrawn", "lost"]
    assert (news[-2].payload["fence"], news[-2].payload["id"], news[-2].text) == (fence, "q1", "A or B?")
    with pytest.raises(FencedError):  # the old runner, should it still live, writes nothing more
        await bench.store.events.append(record.run, [News(seq=9, fence=fence, at=0, kind="text")], fence=fence)


async def test_a_lost_run_is_buried_once(bench: Bench) -> None:
    record = await bench.create()
    await bench.starter.launch(record, by=ALICE)
    await bench.store.runs.acquire(record.run, owner="runner:1", ttl=20)
    bench.clock.advance(21)
    for _ in range(3):
        await bench.starter.look_after(record.run, [])
    assert (await bench.states(record.run)).count("lost") == 1


async def test_a_lost_run_can_be_started_again_with_words(bench: Bench) -> None:
    record = await bench.create()
    await bench.starter.launch(record, by=ALICE)
    await bench.store.runs.acquire(record.run, owner="runner:1", ttl=20)
    bench.clock.advance(21)
    await bench.starter.look_after(record.run, [])
    await bench.starter.launch(record, by=ALICE, words="and sort it", again=True)
    assert (bench.launcher.orders[-1].words, bench.launcher.orders[-1].reopen) == ("and sort it", True)
    assert (await bench.states(record.run))[-1] == "starting"


async def test_a_runner_that_never_comes_up_is_said_with_its_last_words(bench: Bench, tmp_path: Path) -> None:
    record = await bench.create()
    await bench.starter.launch(record, by=ALICE)
    (tmp_path / "runs" / record.run / "runner.log").write_text("ImportError: no module named x\n")
    await bench.starter.look_after(record.run, [])
    bench.clock.advance(46)
    await bench.starter.look_after(record.run, [])
    assert (await bench.news(record.run))[-1].text == "the runner did not start: ImportError: no module named x"


async def test_a_killed_run_is_ended_at_once_by_whoever_killed_it(bench: Bench) -> None:
    record = await bench.create()
    await bench.starter.launch(record, by=ALICE)
    await bench.store.runs.acquire(record.run, owner="runner:1", ttl=20)
    assert await bench.starter.kill(record, by=ALICE)
    last = (await bench.news(record.run))[-1]
    assert (last.payload["state"], last.text, last.payload["by"]["name"]) == ("ended", "killed", "alice")
    assert not await bench.starter.kill(record, by=ALICE)


async def test_a_start_cut_off_between_noting_and_launching_is_taken_up(bench: Bench) -> None:
    record = await bench.create()
    await bench.starter.look_after(record.run, [])
    assert bench.launcher.orders == []
    bench.clock.advance(16)
    await bench.starter.look_after(record.run, [])
    assert len(bench.launcher.orders) == 1
