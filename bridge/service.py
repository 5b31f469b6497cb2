"""The loops of a bot process: hear, act, watch, show, look after. Everything that decides is elsewhere, and pure."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import os
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import assert_never

from bridge import texts
from bridge.actions import note_of
from bridge.cards import reply
from bridge.clock import Clock, SystemClock
from bridge.desk import Desk, Live
from bridge.errors import BridgeError, ChatError, SettingsError, StateError, StoreAwayError
from bridge.model import Card, Inbound, PersonId, PlaceRef, RunId, Summons, Tap, ThreadRef, Words
from bridge.ports import Chat, Launcher, Store
from bridge.rights import Rights
from bridge.routing import (
    Decision,
    Ignore,
    Kill,
    Pick,
    Place,
    Problem,
    Relaunch,
    Reply,
    Send,
    Whisper,
    late_word,
    parse_start,
    route,
)
from bridge.settings import Settings
from bridge.showing import Showing
from bridge.starting import Starter
from bridge.view import ask_key

log = logging.getLogger(__name__)

TAKE_WAIT_SECONDS = 5.0
BELL_WAIT_SECONDS = 5.0
SWEEP_SECONDS = 30.0
"""A lost bell is made good by a look at all live runs (infra facts 5)."""
AWAY_SECONDS = 1.0
LEAD_SECONDS = 10.0
"""Lease of one account's outbox: two bots on one account would post everything twice."""
DRAIN_SECONDS = 10.0


@dataclasses.dataclass(frozen=True, slots=True)
class Unsorted:
    """Words of which the bot has asked what they are. They stay undone in the inbox until somebody says so."""

    words: Words
    receipt: str
    run: RunId
    card: Card


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
        self._chat, self._store, self._settings, self._account = chat, store, settings, account
        self._clock = clock or SystemClock()
        self._owner = owner_name(os.getpid())
        self._catalogues = {name: texts.of(name) for name in texts.LANGUAGES}
        self._desk = Desk(store)
        self._showing = Showing(
            chat, self._desk, texts=self._catalogues, language="en", clock=self._clock, secrets=secrets
        )
        self._starter = Starter(store, launcher, settings, store_url=store_url, owner=self._owner, clock=self._clock)
        self._rights = Rights(
            may_start=frozenset(map(PersonId, settings.may_start)),
            may_steer=frozenset(map(PersonId, settings.may_steer)),
        )
        self._pending: dict[str, Unsorted] = {}
        self._handling: set[asyncio.Task[None]] = set()
        self._group: asyncio.TaskGroup

    async def run(self, *, until: asyncio.Event) -> None:
        """Serve until `until` is set: then stop hearing first, and finish showing (house style 23).

        Raises:
            BridgeError: another bot serves this account; the account or the store refuses us.
        """
        async with self._leading(), asyncio.TaskGroup() as self._group:
            loops = [
                self._group.create_task(self._watch(), name="bridge.watch"),
                self._group.create_task(self._showing.run(), name="bridge.show"),
                self._group.create_task(self._look_after(), name="bridge.look_after"),
                self._group.create_task(self._keep_leading(), name="bridge.lead"),
            ]
            hearing = [
                self._group.create_task(self._chat.listen(self.accept), name="bridge.hear"),
                self._group.create_task(self._act(), name="bridge.act"),
            ]
            await until.wait()
            for task in hearing:
                task.cancel()
            await self._drain()
            for task in loops:
                task.cancel()

    # -- hearing --------------------------------------------------------------------------------------------------

    async def accept(self, inbound: Inbound) -> bool:
        """Keep what a person did, within the deadline; else nothing of it will ever happen (rulings R15)."""
        try:
            async with asyncio.timeout(self._settings.accept_seconds):
                await self._store.inbox.accept(inbound)
        except (StateError, TimeoutError) as err:
            log.warning("inbound.not_kept", extra={"id": inbound.id, "why": str(err) or "too slow"})
            # The store may have taken it all the same: it is held back until it has been taken out again.
            self._beside(self._withdraw(inbound), "withdraw")
            return False
        return True

    async def _withdraw(self, inbound: Inbound) -> None:
        while True:
            try:
                await self._store.inbox.withdraw(inbound)
            except StoreAwayError:
                await self._clock.sleep(AWAY_SECONDS)
            else:
                return

    # -- acting ---------------------------------------------------------------------------------------------------

    async def _act(self) -> None:
        while True:
            try:
                taken = await self._store.inbox.take(self._chat.platform, wait=TAKE_WAIT_SECONDS)
                for receipt, inbound in taken:
                    await self._act_on(receipt, inbound)
            except StoreAwayError:
                log.warning("act.store_away")
                await self._clock.sleep(AWAY_SECONDS)

    async def _act_on(self, receipt: str, inbound: Inbound) -> None:
        try:
            await self._one(receipt, inbound)
        except StoreAwayError:
            raise
        except Exception:  # boundary: one inbound must not end the hearing of the others
            log.exception("inbound.failed", extra={"id": inbound.id})
            await self._store.inbox.done(self._chat.platform, receipt)

    async def _one(self, receipt: str, inbound: Inbound) -> None:
        if isinstance(inbound, Summons):
            await self._start(inbound)
            await self._done(receipt)
            return
        run = await self._store.runs.run_of(inbound.thread)
        live = await self._desk.get(run) if run is not None else None
        if live is None:
            await self._elsewhere(inbound)
            await self._done(receipt)
            return
        decision = route(inbound, await self._place(live))
        log.info("inbound.routed", extra={"id": inbound.id, "run": live.run, "as": type(decision).__name__})
        await self._carry_out(decision, inbound, live, receipt)

    async def _place(self, live: Live) -> Place:
        posted = {
            ask_key(live.run, ask.fence, ask.id): slot.at
            for ask in live.view.asks
            if (slot := live.slots.get(f"ask:{ask.fence}:{ask.id}")) is not None and slot.post is not None
        }
        return Place(
            texts=self._showing.language_of(live),
            rights=self._rights,
            abilities=self._chat.abilities,
            now=self._clock.now(),
            record=live.record,
            standing=await self._store.runs.standing(live.run),
            view=live.view,
            posted=posted,
            settlements=live.settlements,
            pending={note: each.words for note, each in self._pending.items() if each.run == live.run},
        )

    async def _carry_out(self, decision: Decision, inbound: Words | Tap, live: Live, receipt: str) -> None:
        match decision:
            case Send():
                await self._send(decision, inbound, live)
            case Relaunch():
                await self._starter.launch(live.record, by=decision.by, words=decision.words, again=True)
                await self._look_again(live)
            case Kill():
                await self._starter.kill(live.record, by=decision.by)
                await self._look_again(live)
            case Whisper():
                await self._whisper(inbound.thread, inbound, decision.text)
            case Reply():
                self._say(live, f"reply:{note_of(inbound.id)}", reply(decision.text), receipt)
                return
            case Pick():
                self._pick(decision, inbound, live, receipt)
                return
            case Ignore():
                if decision.tell:  # once per thread: the slot has one name
                    self._say(live, "kept:ignored", reply(decision.tell), receipt)
                    return
            case _:
                assert_never(decision)
        await self._done(receipt)

    async def _look_again(self, live: Live) -> None:
        await self._desk.catch_up(live)
        self._showing.changed()

    async def _send(self, decision: Send, inbound: Words | Tap, live: Live) -> None:
        if decision.settled is not None:
            winner = await self._desk.settled(live, decision.settled)
            if winner != decision.settled and winner.at != decision.settled.at:
                ask = next(
                    (each for each in live.view.asks if decision.settled.ask == ask_key(live.run, each.fence, each.id)),
                    None,
                )
                await self._whisper(inbound.thread, inbound, late_word(ask, winner, self._showing.language_of(live)))
                return
        await self._store.commands.send(live.run, decision.command)
        if (unsorted := self._pending.pop(decision.note, None)) is not None:
            self._showing.put(live, f"kept:{decision.note}", dataclasses.replace(unsorted.card, buttons=()))
            await self._done(unsorted.receipt)
        self._showing.changed()

    def _pick(self, decision: Pick, inbound: Words | Tap, live: Live, receipt: str) -> None:
        if isinstance(inbound, Words):
            self._pending[decision.note] = Unsorted(inbound, receipt, live.run, decision.card)
            self._showing.put(live, f"kept:{decision.note}", decision.card)

    def _say(self, live: Live, name: str, card: Card, receipt: str) -> None:
        """Post a reply; the inbound is done when it stands, so that a crash in between loses nothing."""

        async def say() -> None:
            await self._showing.reply(live, name, card)
            await self._done(receipt)

        self._beside(say(), "reply")

    async def _whisper(self, where: PlaceRef | ThreadRef, inbound: Inbound, text: str) -> None:
        private = inbound.private if isinstance(inbound, Summons) else ""
        try:
            await self._chat.whisper(where, inbound.author.id, text, private=private)
        except ChatError as err:
            log.warning("whisper.failed", extra={"id": inbound.id, "why": str(err)})

    async def _done(self, receipt: str) -> None:
        await self._store.inbox.done(self._chat.platform, receipt)

    # -- starting -------------------------------------------------------------------------------------------------

    async def _start(self, summons: Summons) -> None:
        catalogue = self._catalogues["en"]
        verdict = self._rights.start(summons.author)
        if not verdict:
            said = catalogue.replies.unknown_person if verdict.reason == "unknown" else catalogue.replies.may_not_start
            await self._whisper(summons.place, summons, said)
            return
        wish = parse_start(summons.text, catalogue)
        if isinstance(wish, Problem):
            await self._whisper(summons.place, summons, wish.text)
            return
        try:
            record = await self._starter.create(
                seed=summons.id,
                place=summons.place,
                starter=summons.author,
                request=wish.request,
                workspace=wish.workspace,
                options=wish.options,
            )
        except SettingsError as err:
            await self._whisper(summons.place, summons, f"{err} Nothing was started.")
            return
        log.info("run.created", extra={"run": record.run, "workspace": record.workspace})
        await self._desk.get(record.run)
        self._showing.changed()  # the card goes out while the runner starts
        await self._starter.launch(record, by=summons.author)

    async def _elsewhere(self, inbound: Words | Tap) -> None:
        """Deal with what was said where no run is."""
        if isinstance(inbound, Tap) or inbound.mentions_us:
            await self._whisper(inbound.thread, inbound, self._catalogues["en"].replies.no_run_here)

    # -- watching -------------------------------------------------------------------------------------------------

    async def _watch(self) -> None:
        swept = -SWEEP_SECONDS
        first = True
        while True:
            try:
                if self._clock.now() - swept >= SWEEP_SECONDS:
                    # At the start also runs that have ended: their end may not stand in the thread yet.
                    everyone = set(await self._store.runs.everyone()) if first else set()
                    rung = everyone | await self._store.runs.live()
                    swept, first = self._clock.now(), False
                else:
                    rung = await self._store.events.rung(wait=BELL_WAIT_SECONDS)
                await self._refresh(rung)
            except StoreAwayError:
                log.warning("watch.store_away")
                await self._clock.sleep(AWAY_SECONDS)

    async def _refresh(self, runs: set[RunId]) -> None:
        for run in runs:
            try:
                live = await self._desk.get(run)
            except StoreAwayError:
                raise
            except Exception:  # boundary: a run that cannot be read does not hold up the others (ST-11)
                log.exception("run.unreadable", extra={"run": run})
                continue
            if live is not None and live.record.place.platform != self._chat.platform:
                self._desk.leave(live)
        self._showing.changed()
        for live in self._desk.lives:
            if live.view.over and self._showing.quiet(live):
                self._desk.leave(live)
                self._showing.leave(live.run)

    async def _look_after(self) -> None:
        """Notice dead runners (product 2, rule 5)."""
        while True:
            await self._clock.sleep(min(2.0, self._settings.lease_seconds / 5))
            try:
                for run in await self._store.runs.live():
                    await self._look_after_one(run)
            except StoreAwayError:
                log.warning("look_after.store_away")

    async def _look_after_one(self, run: RunId) -> None:
        try:
            live = await self._desk.get(run)
            if live is None or live.record.place.platform != self._chat.platform:
                return
            asks = [(ask.fence, ask.id, ask.question) for ask in live.view.open_asks]
            await self._starter.look_after(run, asks)
        except StoreAwayError:
            raise
        except Exception:  # boundary: one run's trouble is not the others'
            log.exception("look_after.failed", extra={"run": run})

    # -- one bot per account --------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def _leading(self) -> AsyncIterator[None]:
        """Hold the account's lease; a predecessor that was killed lets it run out."""
        patience = self._clock.now() + 1.5 * LEAD_SECONDS
        leader = await self._store.runs.leader(self._account)
        if is_dead(leader):  # killed on this machine: nobody has to wait for its lease to run out
            await self._store.runs.leave(self._account, owner=leader)
        while not await self._store.runs.lead(self._account, owner=self._owner, ttl=LEAD_SECONDS):
            if self._clock.now() > patience:
                raise BridgeError(
                    f"another bot serves {self._account} on this state store; stop it first, or give this one another"
                    " FLOWER_CHAT_HOME"
                )
            await self._clock.sleep(0.5)
        try:
            yield
        finally:
            with contextlib.suppress(StateError):
                await self._store.runs.leave(self._account, owner=self._owner)

    async def _keep_leading(self) -> None:
        while True:
            await self._clock.sleep(LEAD_SECONDS / 4)
            try:
                leading = await self._store.runs.lead(self._account, owner=self._owner, ttl=LEAD_SECONDS)
            except StoreAwayError:
                continue
            if not leading:
                raise BridgeError(f"another bot has taken over {self._account}; this one stops, to say nothing twice")

    # -- small things ---------------------------------------------------------------------------------------------

    def _beside(self, work: Coroutine[None, None, None], name: str) -> None:
        task = self._group.create_task(work, name=f"bridge.{name}")
        self._handling.add(task)
        task.add_done_callback(self._handling.discard)

    async def _drain(self) -> None:
        """Finish what is being said, within a bound."""
        if self._handling:
            _, late = await asyncio.wait(set(self._handling), timeout=DRAIN_SECONDS)
            for task in late:
                task.cancel()


def owner_name(pid: int) -> str:
    """Name a process so that its successor on the same machine can tell whether it still lives."""
    namespace = Path("/proc/self/ns/pid")
    where = namespace.stat().st_ino if namespace.exists() else 0
    return f"bot:{os.uname().nodename}:{where}:{pid}"


def is_dead(owner: str) -> bool:
    """Whether a lease's owner was a process of this machine that lives no more; False where it cannot be told."""
    home, _, pid = owner.rpartition(":")
    if not pid.isdecimal() or owner_name(int(pid)).rpartition(":")[0] != home:
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
