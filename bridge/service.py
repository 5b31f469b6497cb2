"""The loops of a bot process: hear, act, watch, show, look after. Everything that decides is elsewhere, and pure."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Sequence

from bridge import texts
from bridge.acting import Acting
from bridge.away import AWAY_SECONDS, until_it_is_back
from bridge.clock import Clock, SystemClock
from bridge.desk import Desk
from bridge.errors import StateError, StoreAwayError
from bridge.lanes import Lanes
from bridge.leading import Lead, owner_name
from bridge.model import Inbound, PersonId, RunId
from bridge.ports import Chat, Launcher, Store
from bridge.rights import Rights
from bridge.settings import Settings
from bridge.showing import Showing
from bridge.starting import Starter

log = logging.getLogger(__name__)

BELL_WAIT_SECONDS = 5.0
SWEEP_SECONDS = 30.0
"""A lost bell is made good by a look at all live runs (infra facts 5)."""
LOOK_SECONDS = 2.0
DRAIN_SECONDS = 10.0


class Bridge:
    """One platform account on one state store."""

    def __init__(
        self,
        chat: Chat,
        store: Store,
        launcher: Launcher,
        *,
        settings: Settings,
        store_url: str,
        account: str,
        secrets: tuple[str, ...] = (),
        clock: Clock | None = None,
    ) -> None:
        self._chat, self._store, self._settings = chat, store, settings
        self._clock = clock or SystemClock()
        owner = owner_name(os.getpid())
        catalogues = {name: texts.of(name) for name in texts.LANGUAGES}
        self._lead = Lead(store.runs, account, owner=owner, clock=self._clock)
        self._desk = Desk(store, chat.platform)
        self._showing = Showing(
            chat,
            self._desk,
            texts=catalogues,
            language="en",
            clock=self._clock,
            secrets=secrets,
            sure=lambda: self._lead.sure,
        )
        self._starter = Starter(store, launcher, settings, store_url=store_url, owner=owner, clock=self._clock)
        self._acting = Acting(
            chat,
            store,
            desk=self._desk,
            showing=self._showing,
            starter=self._starter,
            rights=Rights(
                may_start=frozenset(map(PersonId, settings.may_start)),
                may_steer=frozenset(map(PersonId, settings.may_steer)),
            ),
            texts=catalogues,
            clock=self._clock,
        )
        self._doubted: set[str] = set()
        """Ids of what was not kept in time and is being taken back: of these nothing will ever happen."""
        self._serving = False
        self._swept = asyncio.Event()
        self._lanes: Lanes

    async def run(self, *, until: asyncio.Event) -> None:
        """Serve until `until` is set: then stop hearing first, and finish showing (house style 23).

        Raises:
            BridgeError: another bot serves this account; the account or the store refuses us.
        """
        async with self._lead.held(), asyncio.TaskGroup() as group:
            self._lanes, self._serving = Lanes(group, name="bridge.act"), True
            loops = [
                group.create_task(self._watch(), name="bridge.watch"),
                group.create_task(self._showing.run(), name="bridge.show"),
                group.create_task(self._look_after(), name="bridge.look_after"),
                group.create_task(self._lead.keep(), name="bridge.lead"),
            ]
            hearing = [
                group.create_task(self._chat.listen(self.accept), name="bridge.hear"),
                group.create_task(self._act(), name="bridge.take"),
            ]
            try:
                await until.wait()
            finally:
                self._serving = False
            for task in hearing:
                task.cancel()
            await asyncio.wait(hearing, timeout=DRAIN_SECONDS)
            await self._lanes.drain(DRAIN_SECONDS)
            for task in loops:
                task.cancel()

    # -- hearing ----------------------------------------------------------------------------------------------

    async def accept(self, inbound: Inbound) -> bool:
        """Keep what a person did, within the deadline; else nothing of it will ever happen (rulings R15)."""
        if inbound.id in self._doubted or not self._serving:
            return False  # delivered again, when its author was told that it was not taken; or too late
        try:
            async with asyncio.timeout(self._settings.accept_seconds):
                await self._store.inbox.accept(inbound)
        except (StateError, TimeoutError) as err:
            log.warning("inbound.not_kept", extra={"id": inbound.id, "why": str(err) or "too slow"})
            # The store may have taken it all the same: it is held back until it has been taken out again.
            self._doubted.add(inbound.id)
            self._lanes.beside(self._withdraw(inbound))
            return False
        return True

    async def _withdraw(self, inbound: Inbound) -> None:
        await until_it_is_back(lambda: self._store.inbox.withdraw(inbound), self._clock)
        self._doubted.discard(inbound.id)

    # -- acting -----------------------------------------------------------------------------------------------

    async def _act(self) -> None:
        # Words below a card may be older than what we know of the card; so first see what there is.
        await self._swept.wait()
        await self._acting.run(self._lanes)

    # -- watching ---------------------------------------------------------------------------------------------

    async def _watch(self) -> None:
        """Keep the desk up to date: by bells, and by looking at all live runs now and then."""
        sweep_at, listening = self._clock.now(), False
        while True:
            try:
                if not listening:  # before the first look: what rings in between is heard after it
                    await self._store.events.rung(wait=0.0)
                    listening = True
                if self._clock.now() >= sweep_at:
                    await self._refresh(await self._everyone())
                    sweep_at = self._clock.now() + SWEEP_SECONDS
                    self._swept.set()
                else:
                    await self._refresh(await self._store.events.rung(wait=BELL_WAIT_SECONDS))
            except StoreAwayError:
                log.warning("watch.store_away")
                sweep_at = self._clock.now()  # bells that were not heard meanwhile do not ring again
                await self._clock.sleep(AWAY_SECONDS)

    async def _everyone(self) -> set[RunId]:
        live = await self._store.runs.live()
        # At the start also runs that have ended: their end may not stand in the thread yet.
        return live if self._swept.is_set() else live | set(await self._store.runs.everyone())

    async def _refresh(self, runs: set[RunId]) -> None:
        for run in runs:
            try:
                await self._desk.get(run)
                self._showing.changed()
            except StoreAwayError:
                raise
            except Exception:  # boundary: a run that cannot be read does not hold up the others (ST-11)
                log.exception("run.unreadable", extra={"run": run})
        self._clear_desk()

    def _clear_desk(self) -> None:
        """Let go of runs that are over and stand in their threads with all that was said there."""
        for live in self._desk.lives:
            if not live.view.over or live.users or not self._showing.quiet(live) or self._acting.let_go(live):
                continue
            self._desk.leave(live)
            self._showing.leave(live.run)

    async def _look_after(self) -> None:
        """Notice dead runners (product 2, rule 5)."""
        while True:
            await self._clock.sleep(min(LOOK_SECONDS, self._settings.lease_seconds / 5))
            try:
                for run in await self._store.runs.live():
                    await self._look_after_one(run)
            except StoreAwayError:
                log.warning("look_after.store_away")
                self._starter.look_anew()

    async def _look_after_one(self, run: RunId) -> None:
        async def open_asks() -> Sequence[tuple[int, str, str]] | None:
            live = await self._desk.get(run)
            return None if live is None else [(ask.fence, ask.id, ask.question) for ask in live.view.open_asks]

        try:
            await self._starter.look_after(run, open_asks)
        except StoreAwayError:
            raise
        except Exception:  # boundary: one run's trouble is not the others'
            log.exception("look_after.failed", extra={"run": run})
