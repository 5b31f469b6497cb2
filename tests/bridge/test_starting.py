from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bridge.adapters.memory import MemoryStore
from bridge.errors import FencedError, SettingsError
from bridge.model import News, Person, PersonId, PlaceRef, Platform, RunId, RunRecord
from bridge.ports import Order, Store
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
    memory: MemoryStore

    async def create(self, seed: str = "s1", *, workspace: str = "", **options: Any) -> RunRecord:
        return await self.starter.create(
            seed=seed, place=PLACE, starter=ALICE, request="write primes", workspace=workspace, options=options
        )

    async def look(self, run: RunId, *asks: tuple[int, str, str], after: float = 0.0) -> None:
        """Look after a run twice, so many seconds apart."""

        async def open_asks() -> Sequence[tuple[int, str, str]]:
            return asks

        await self.starter.look_after(run, open_asks)
        self.clock.advance(after)
        await self.starter.look_after(run, open_asks)

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
            memory,
        )


async def test_an_unknown_workspace_starts_nothing(bench: Bench) -> None:
    with pytest.raises(SettingsError, match=r"There is no workspace 'dmeo'; did you mean 'demo'\?"):
        await bench.create(workspace="dmeo")
    assert await bench.store.runs.everyone() == []


async def test_a_flow_is_taken_by_name_only(bench: Bench) -> None:
    with pytest.raises(SettingsError, match="There is no flow 'os:system'"):
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


async def test_a_start_cut_off_after_its_record_still_tells_what_it_is_about_first(bench: Bench) -> None:
    record = await bench.create()
    bench.memory._data.lines[record.run].items.clear()
    bench.memory._data.lines[record.run].last = 0
    again = await bench.create()
    assert again == record
    assert (await bench.states(record.run)) == ["queued"]
    assert (await bench.news(record.run))[0].payload["request"] == "write primes"


@pytest.mark.case("DL-1")
async def test_a_start_delivered_again_after_the_run_has_ended_does_not_wake_it_up(bench: Bench) -> None:
    record = await bench.create()
    await bench.starter.launch(record, by=ALICE)
    fence = await bench.store.runs.acquire(record.run, owner="runner:1", ttl=20)
    await bench.store.runs.finish(record.run, "done", [], fence=fence)
    await bench.starter.launch(await bench.create(), by=ALICE)
    standing = await bench.store.runs.standing(record.run)
    assert standing is not None
    assert standing.status == "done"
    assert len(bench.launcher.orders) == 1


@pytest.mark.case("DL-1")
async def test_a_start_delivered_again_does_not_disturb_a_later_start(bench: Bench) -> None:
    record = await bench.create()
    await bench.starter.launch(record, by=ALICE)
    fence = await bench.store.runs.acquire(record.run, owner="runner:1", ttl=20)
    await bench.store.runs.finish(record.run, "failed", [], fence=fence)
    await bench.starter.launch(record, by=ALICE, words="once more", again=True)
    await bench.starter.launch(record, by=ALICE)
    assert [order.words for order in bench.launcher.orders] == ["", "once more"]


async def test_what_is_over_is_not_watched_any_more(bench: Bench) -> None:
    record = await bench.create()
    await bench.look(record.run)
    assert bench.starter._watched.keys() == {record.run}
    await bench.starter.launch(record, by=ALICE)
    fence = await bench.store.runs.acquire(record.run, owner="runner:1", ttl=20)
    await bench.store.runs.finish(record.run, "done", [], fence=fence)
    await bench.look(record.run)
    assert bench.starter._watched == {}


async def test_two_starts_never_share_a_name(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridge.starting.run_id_of", lambda seed, length: RunId("same" if length == 6 else seed[-2:]))
    first = await bench.create("s1")
    monkeypatch.setattr("tests.bridge.test_starting.ALICE", Person(id=PersonId("T1/U2"), name="bob"))
    second = await bench.create("s2")
    assert (first.run, second.run) == ("same", "s2")


async def test_a_run_is_not_started_again_beside_another_one_in_its_workspace(bench: Bench) -> None:
    first = await bench.create("s1", workspace="site")
    await bench.starter.launch(first, by=ALICE)
    fence = await bench.store.runs.acquire(first.run, owner="runner:1", ttl=20)
    await bench.store.runs.finish(first.run, "failed", [], fence=fence)
    second = await bench.create("s2", workspace="site")
    with pytest.raises(SettingsError, match=f"in use by run {second.run}"):
        await bench.starter.launch(first, by=ALICE, again=True)
    standing = await bench.store.runs.standing(first.run)
    assert standing is not None
    assert standing.status == "failed"


async def test_a_dead_runner_is_noted_as_lost_and_its_open_ask_withdrawn(bench: Bench) -> None:
    record = await bench.create()
    await bench.starter.launch(record, by=ALICE)
    fence = await bench.store.runs.acquire(record.run, owner="runner:1", ttl=20)
    await bench.look(record.run, after=19)
    assert (await bench.states(record.run))[-1] == "starting"
    bench.clock.advance(2)
    await bench.look(record.run, (fence, "q1", "A or B?"), after=7)
    news = await bench.news(record.run)
    assert [item.payload["state"] for item in news[-2:]] == ["withdrawn", "lost"]
    assert (news[-2].payload["fence"], news[-2].payload["id"], news[-2].text) == (fence, "q1", "A or B?")
    with pytest.raises(FencedError):  # the old runner, should it still live, writes nothing more
        await bench.store.events.append(record.run, [News(seq=9, fence=fence, at=0, kind="text")], fence=fence)


async def test_a_runner_that_renews_again_within_a_quarter_of_its_lease_is_not_lost(bench: Bench) -> None:
    record = await bench.create()
    await bench.starter.launch(record, by=ALICE)
    fence = await bench.store.runs.acquire(record.run, owner="runner:1", ttl=20)
    bench.clock.advance(60)  # the store was away
    await bench.look(record.run, after=5)
    await bench.store.runs.renew(record.run, owner="runner:1", fence=fence, ttl=20)
    await bench.look(record.run, after=5)
    assert "lost" not in await bench.states(record.run)


async def test_looking_anew_forgets_for_how_long_nobody_held_a_run(bench: Bench) -> None:
    record = await bench.create()
    await bench.starter.launch(record, by=ALICE)
    await bench.store.runs.acquire(record.run, owner="runner:1", ttl=20)
    bench.clock.advance(60)
    await bench.look(record.run)
    bench.clock.advance(60)
    bench.starter.look_anew()
    await bench.look(record.run, after=5)
    assert "lost" not in await bench.states(record.run)


async def test_a_lost_run_is_buried_once(bench: Bench) -> None:
    record = await bench.create()
    await bench.starter.launch(record, by=ALICE)
    await bench.store.runs.acquire(record.run, owner="runner:1", ttl=20)
    bench.clock.advance(21)
    for _ in range(3):
        await bench.look(record.run, after=7)
    assert (await bench.states(record.run)).count("lost") == 1


async def test_a_run_of_another_platform_is_not_buried_here(bench: Bench) -> None:
    record = await bench.create()
    await bench.starter.launch(record, by=ALICE)
    await bench.store.runs.acquire(record.run, owner="runner:1", ttl=20)
    bench.clock.advance(21)

    async def not_ours() -> None:
        return None

    for _ in range(2):
        await bench.starter.look_after(record.run, not_ours)
        bench.clock.advance(7)
    assert "lost" not in await bench.states(record.run)


async def test_a_lost_run_can_be_started_again_with_words(bench: Bench) -> None:
    record = await bench.create()
    await bench.starter.launch(record, by=ALICE)
    await bench.store.runs.acquire(record.run, owner="runner:1", ttl=20)
    bench.clock.advance(21)
    await bench.look(record.run, after=7)
    await bench.starter.launch(record, by=ALICE, words="and sort it", again=True)
    assert (bench.launcher.orders[-1].words, bench.launcher.orders[-1].reopen) == ("and sort it", True)
    assert (await bench.states(record.run))[-1] == "starting"


async def test_a_runner_that_never_comes_up_is_said_with_its_last_words(bench: Bench, tmp_path: Path) -> None:
    record = await bench.create()
    await bench.starter.launch(record, by=ALICE)
    (tmp_path / "runs" / record.run / "runner.log").write_text("ImportError: no module named x\n")
    await bench.look(record.run, after=46)
    assert (await bench.news(record.run))[-1].text == "the runner did not start: ImportError: no module named x"


async def test_a_killed_run_is_ended_at_once_by_whoever_killed_it(bench: Bench) -> None:
    record = await bench.create()
    await bench.starter.launch(record, by=ALICE)
    await bench.store.runs.acquire(record.run, owner="runner:1", ttl=20)
    assert await bench.starter.kill(record, by=ALICE)
    last = (await bench.news(record.run))[-1]
    assert (last.payload["state"], last.text, last.payload["by"]["name"]) == ("ended", "killed", "alice")
    assert await bench.starter.kill(record, by=ALICE)  # again, as after a crash: nothing more is told
    assert (await bench.states(record.run)).count("ended") == 1


async def test_a_run_without_a_process_here_is_killed_when_nobody_holds_it(bench: Bench) -> None:
    record = await bench.create()
    await bench.starter.launch(record, by=ALICE)
    await bench.store.runs.acquire(record.run, owner="runner:1", ttl=20)
    bench.launcher.running.clear()
    assert not await bench.starter.kill(record, by=ALICE)  # somebody holds it, elsewhere
    assert "ended" not in await bench.states(record.run)
    bench.clock.advance(21)
    assert await bench.starter.kill(record, by=ALICE)
    assert (await bench.states(record.run))[-1] == "ended"


async def test_a_start_cut_off_between_noting_and_launching_is_taken_up(bench: Bench) -> None:
    record = await bench.create()
    await bench.look(record.run)
    assert bench.launcher.orders == []
    await bench.look(record.run, after=16)
    assert len(bench.launcher.orders) == 1


async def test_a_run_is_started_by_one_task_at_a_time(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    inside, most = 0, 0

    async def start(order: Order) -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0.01)
        inside -= 1

    monkeypatch.setattr(bench.launcher, "start", start)
    record = await bench.create()
    async with asyncio.TaskGroup() as group:
        for _ in range(2):
            group.create_task(bench.starter.launch(record, by=ALICE))
    assert most == 1
