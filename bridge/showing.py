"""Closes the difference between what threads should show and what they show. The thin loop around `bridge.outbox`."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import assert_never

from bridge.cards import Slot, Urgency, signs, slots
from bridge.clock import Clock
from bridge.desk import Desk, Live
from bridge.errors import ChatBusyError, ChatError, ChatGoneError, ChatRefusedError, StoreAwayError
from bridge.model import Card, PlaceRef, Posted, PostRef, RunId, ThreadRef
from bridge.outbox import Edit, Job, Look, Outbox, Post, Wait, digest, jobs, settle
from bridge.ports import Chat
from bridge.rich import Fence
from bridge.split import plain
from bridge.texts import Texts
from bridge.view import settle_sign

log = logging.getLogger(__name__)

MINUTE = 60.0
BACK_OFF = (1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds of quiet after calls that got no answer, one after the other; the last one repeats."""
PLAIN_LIMIT = 2_000


@dataclass(slots=True)
class Sight:
    """What this process adds to a run's slots, and how its thread takes them."""

    extra: dict[str, Slot] = field(default_factory=dict)
    """Replies that are no part of the run's news, until they stand."""
    absent: set[str] = field(default_factory=set)
    """Slots that were looked for, or refused with a time, and are not there."""
    plain: set[str] = field(default_factory=set)
    """Slots whose card was refused, to be shown as plain text."""
    given_up: set[str] = field(default_factory=set)
    closed: str = ""
    """Why nothing can be posted in this thread any more."""
    drawn: tuple[object, tuple[Slot, ...]] | None = None


class Showing:
    """One platform account's outbox. `changed` may be called at any time from the loop's thread."""

    def __init__(
        self,
        chat: Chat,
        desk: Desk,
        *,
        texts: Mapping[str, Texts],
        language: str,
        clock: Clock,
        secrets: tuple[str, ...],
    ) -> None:
        self._chat, self._desk, self._clock = chat, desk, clock
        self._texts, self._language, self._secrets = texts, language, secrets
        self._outbox = Outbox(chat.abilities)
        self._sights: dict[RunId, Sight] = {}
        self._wake = asyncio.Event()
        self._shown = asyncio.Condition()
        self._silences = 0

    def changed(self) -> None:
        """Something may have to be shown."""
        self._wake.set()

    def language_of(self, live: Live) -> Texts:
        """Return the catalogue of a run's thread."""
        return self._texts.get(str(live.record.options.get("language") or ""), self._texts[self._language])

    async def reply(self, live: Live, name: str, card: Card) -> None:
        """Post a card of ours below the thread, once under its name, and wait until it stands (or never will)."""
        if (known := live.slots.get(name)) is not None and known.post is not None:
            return
        self.put(live, name, card)
        sight = self._sight(live.run)
        async with self._shown:
            await self._shown.wait_for(lambda: name not in sight.extra)

    def put(self, live: Live, name: str, card: Card) -> None:
        """Show a card of ours below the thread, or change the one that stands under this name. Does not wait."""
        self._sight(live.run).extra[name] = Slot(name=name, card=card, urgency=Urgency.ASK, final=True)
        self.changed()

    async def run(self) -> None:
        """Show until cancelled."""
        while True:
            self._wake.clear()
            try:
                step = await self._step()
            except StoreAwayError:
                log.warning("showing.store_away")
                await self._clock.sleep(1.0)
                continue
            if step is None or isinstance(step, Wait):
                await self._rest(step)

    async def _rest(self, step: Wait | None) -> None:
        now = self._clock.now()
        until = min(step.until if step is not None else now + MINUTE, now - now % MINUTE + MINUTE)
        try:
            async with asyncio.timeout(max(0.01, until - now)):
                await self._wake.wait()
        except TimeoutError:
            pass

    async def _step(self) -> Job | Wait | None:
        """Do the one most urgent thing; returns it, or how long to wait for the next."""
        now = self._clock.now()
        lives = {live.run: live for live in self._desk.lives}
        step = self._outbox.next((job for live in lives.values() for job in self._jobs(live, now)), now)
        if isinstance(step, Post | Look | Edit):
            await self._do(step, lives[step.run])
            return step
        await self._sign_one()
        return step

    def _jobs(self, live: Live, now: float) -> tuple[Job, ...]:
        sight = self._sight(live.run)
        if sight.closed:
            return ()
        wanted = self._wanted(live, now)
        if live.record.thread is None:  # nothing can stand in a thread that its card has not opened
            wanted = [slot for slot in wanted if slot.name == "card"]
        return jobs(
            live.run,
            live.record.place,
            wanted,
            live.slots,
            lookup=self._chat.abilities.lookup,
            absent=sight.absent,
        )

    def _wanted(self, live: Live, now: float) -> list[Slot]:
        sight = self._sight(live.run)
        key = (live.view, len(live.settlements), now // MINUTE)
        if sight.drawn is None or sight.drawn[0] != key:
            drawn = slots(
                live.view,
                texts=self.language_of(live),
                abilities=self._chat.abilities,
                now=now,
                settlements=live.settlements,
                secrets=self._secrets,
            )
            sight.drawn = (key, drawn)
        return [
            dataclasses.replace(slot, card=plainly(slot.card)) if slot.name in sight.plain else slot
            # A reply goes right behind the card: an answer to a person does not wait for the prose of a busy run.
            for slot in (*sight.drawn[1][:1], *sight.extra.values(), *sight.drawn[1][1:])
            if slot.name not in sight.given_up
        ]

    # -- doing one thing ------------------------------------------------------------------------------------------

    async def _do(self, job: Job, live: Live) -> None:
        try:
            match job:
                case Post():
                    await self._post(job, live)
                case Look():
                    await self._look(job, live)
                case Edit():
                    await self._edit(job, live)
                case _:
                    assert_never(job)
        except ChatError as err:
            await self._trouble(job, live, err)
        else:
            self._silences = 0
        finally:
            self._outbox.sent(job, self._clock.now())
        await self._tidy(live)

    async def _post(self, job: Post, live: Live) -> None:
        slot, sight = job.slot, self._sight(live.run)
        intended = Posted(name=slot.name, once=f"{live.run}/{slot.name}", at=self._clock.now())
        await self._desk.note(live, intended)
        sight.absent.discard(slot.name)
        post, at = await self._chat.post(self._where(live, slot), slot.card, once=intended.once)
        await self._stands(live, slot, post, at, shown=digest(slot.card))

    async def _look(self, job: Look, live: Live) -> None:
        found = await self._chat.find(self._where(live, job.slot), job.posted.once, since=job.posted.at)
        if found is None:
            self._sight(live.run).absent.add(job.slot.name)
        else:  # what it shows is not known, so the next edit makes it right
            await self._stands(live, job.slot, *found, shown="")

    async def _edit(self, job: Edit, live: Live) -> None:
        assert job.posted.post is not None  # noqa: S101 - jobs() makes edits of posted slots only
        await self._chat.edit(job.posted.post, job.slot.card, once=job.posted.once)
        await self._desk.note(live, dataclasses.replace(job.posted, digest=digest(job.slot.card)))

    async def _stands(self, live: Live, slot: Slot, post: PostRef, at: float, *, shown: str) -> None:
        posted = Posted(name=slot.name, once=f"{live.run}/{slot.name}", post=post, digest=shown, at=at)
        if slot.name == "card":
            await self._desk.bind(live, post)
        await self._desk.note(live, posted)
        log.info("slot.posted", extra={"run": live.run, "slot": slot.name})

    def _where(self, live: Live, slot: Slot) -> PlaceRef | ThreadRef:
        thread = live.record.thread
        return live.record.place if slot.name == "card" or thread is None else thread

    # -- trouble --------------------------------------------------------------------------------------------------

    async def _trouble(self, job: Job, live: Live, err: ChatError) -> None:
        match err:
            case ChatBusyError():
                self._pause(job, err.retry_after)
                if isinstance(job, Post):
                    self._sight(live.run).absent.add(job.slot.name)  # a refusal with a time: it was not posted
            case ChatRefusedError():
                self._refused(job, live, err)
            case ChatGoneError():
                await self._gone(job, live, err)
            case _:  # no answer (it may have got through: the next job looks), or something new
                self._silences += 1
                pause = BACK_OFF[min(self._silences, len(BACK_OFF)) - 1]
                log.warning("chat.no_answer", extra={"run": live.run, "slot": job.slot.name, "why": str(err)})
                self._outbox.pacer.pause(until=self._clock.now() + pause)

    def _pause(self, job: Job, seconds: float) -> None:
        until = self._clock.now() + seconds
        match job:
            case Post():
                self._outbox.pacer.pause_posts(job.place, until=until)
            case Edit():
                self._outbox.pacer.pause_edits(until=until)
            case Look():
                self._outbox.pacer.pause(until=until)
            case _:
                assert_never(job)

    def _refused(self, job: Job, live: Live, err: ChatRefusedError) -> None:
        """Show it as plain text; what even so is refused is given up and said in the log, never tried for ever."""
        sight, name = self._sight(live.run), job.slot.name
        log.error("chat.refused", extra={"run": live.run, "slot": name, "why": str(err), "plain": name in sight.plain})
        sight.absent.add(name)
        if name in sight.plain:
            sight.given_up.add(name)
            sight.extra.pop(name, None)
        sight.plain.add(name)

    async def _gone(self, job: Job, live: Live, err: ChatGoneError) -> None:
        if isinstance(job, Edit) and job.slot.name != "card":
            # One message was deleted: what it showed cannot be changed any more, and the thread goes on.
            log.warning("post.gone", extra={"run": live.run, "slot": job.slot.name, "why": str(err)})
            await self._desk.note(live, dataclasses.replace(job.posted, digest=digest(job.slot.card)))
            return
        sight = self._sight(live.run)
        sight.closed = str(err)
        log.error("thread.gone", extra={"run": live.run, "why": str(err)})
        sight.extra.clear()

    # -- afterwards -----------------------------------------------------------------------------------------------

    async def _tidy(self, live: Live) -> None:
        sight = self._sight(live.run)
        wanted = self._wanted(live, self._clock.now())
        live.view, done = settle(live.view, wanted, live.slots)
        if done:
            # What is kept has a name that must stay known: the same words may come again after a restart.
            live.gone |= {name for name in done & live.slots.keys() if not name.startswith("kept:")}
            live.changed = True
        for name in [name for name in sight.extra if name in done or name in sight.given_up]:
            del sight.extra[name]
        async with self._shown:
            self._shown.notify_all()
        idle = not self._jobs(live, self._clock.now())
        await self._desk.checkpoint(live, now=idle)

    async def _sign_one(self) -> None:
        """Put one receipt, when nothing else is to do: signs are small, and never before an ask."""
        for live in self._desk.lives:
            for message, sign in signs(live.view):
                if (message, sign) in live.signed:
                    continue
                live.signed.add((message, sign))
                try:
                    await self._chat.sign(message, sign)
                except ChatBusyError as busy:
                    live.signed.discard((message, sign))
                    self._outbox.pacer.pause_edits(until=self._clock.now() + busy.retry_after)
                except ChatError as err:
                    log.warning("sign.failed", extra={"run": live.run, "why": str(err)})
                live.view = settle_sign(live.view, message, sign)
                self.changed()
                return

    def leave(self, run: RunId) -> None:
        """Forget a run that is over and stands."""
        self._sights.pop(run, None)
        self._outbox.forget(run)

    def quiet(self, live: Live) -> bool:
        """Whether everything of a run stands in its thread."""
        sight = self._sight(live.run)
        signed = all(pair in live.signed for pair in signs(live.view))
        return bool(sight.closed) or (signed and not sight.extra and not self._jobs(live, self._clock.now()))

    def _sight(self, run: RunId) -> Sight:
        return self._sights.setdefault(run, Sight())


def plainly(card: Card) -> Card:
    """Return a card as plain text, for a platform that does not take it as it is. Its buttons stay."""
    text = plain(card.body).strip() or card.summary
    if len(text) > PLAIN_LIMIT:
        text = text[:PLAIN_LIMIT] + " […]"
    return dataclasses.replace(card, body=(Fence(text),), note=card.note[:300])
