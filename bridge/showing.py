"""Closes the difference between what threads should show and what they show. The thin loop around `bridge.outbox`."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from bridge.away import AWAY_SECONDS
from bridge.cards import Slot, Urgency, slots
from bridge.clock import Clock
from bridge.desk import Desk, Live
from bridge.errors import (
    ChatBusyError,
    ChatError,
    ChatGoneError,
    ChatRefusedError,
    StateError,
    StoreAwayError,
)
from bridge.model import Card, PlaceRef, Posted, PostRef, RunId, ThreadRef
from bridge.outbox import Edit, Job, Look, Outbox, Post, digest, jobs, settle
from bridge.ports import Chat
from bridge.rich import Fence
from bridge.signing import Signing, pause_after
from bridge.split import plain
from bridge.texts import Texts

log = logging.getLogger(__name__)

MINUTE = 60.0
UNSURE_SECONDS = 0.5
ROOT_SECONDS = 60.0
"""How long words wait for the answer to «does the card stand, and is this its thread?»."""
ASK_SECONDS = 10.0
"""How long words wait for the answer to «does the question stand, so that this may be its answer?»."""
PLAIN_LIMIT = 2_000
REPLY = "reply:"
"""Begin of the names of replies, which are forgotten when what they reply to is done."""


@dataclass(slots=True)
class Sight:
    """What this process adds to a run's slots, and how its thread takes them."""

    extra: dict[str, Slot] = field(default_factory=dict)
    """Cards of ours that are no part of the run's news, until they stand."""
    absent: set[str] = field(default_factory=set)
    """Slots that were looked for, or refused with a time, and are not there."""
    plain: set[str] = field(default_factory=set)
    """Slots whose card was refused, to be shown as plain text."""
    given_up: dict[str, str] = field(default_factory=dict)
    """Slots whose card was refused even as plain text, with its digest: another card is another try."""
    frozen: set[str] = field(default_factory=set)
    """Slots whose message was deleted: it cannot be changed any more, and is never posted again."""
    closed: str = ""
    """Why nothing can be posted in this thread any more."""
    silences: int = 0
    settled: bool = False
    """Whether what stood when the run was loaded has been let go."""
    until: float = 0.0
    """The thread rests until then. Only this one: what one thread cannot do must not hold up the others."""
    drawn: tuple[object, tuple[Slot, ...]] | None = None


class Showing:
    """One platform account's outbox. `changed` may be called at any time from the loop's thread.

    Args:
        chat: the account.
        desk: the runs whose threads are shown.
        texts: catalogues by language.
        language: of threads whose run names none.
        clock: paces everything.
        secrets: what no card may show.
        sure: whether nobody else can be posting for this account now.
    """

    def __init__(
        self,
        chat: Chat,
        desk: Desk,
        *,
        texts: Mapping[str, Texts],
        language: str,
        clock: Clock,
        secrets: tuple[str, ...],
        sure: Callable[[], bool] = lambda: True,
    ) -> None:
        self._chat, self._desk, self._clock, self._sure = chat, desk, clock, sure
        self._texts, self._language, self._secrets = texts, language, secrets
        self._outbox = Outbox(chat.abilities)
        self._signs = Signing(chat, desk, clock)
        self._sights: dict[RunId, Sight] = {}
        self._doing: RunId | None = None
        self._wake = asyncio.Event()
        self._shown = asyncio.Condition()
        self._silences = 0
        self._forgetting = False

    def changed(self) -> None:
        """Something may have to be shown."""
        self._wake.set()

    def language_of(self, live: Live) -> Texts:
        """Return the catalogue of a run's thread."""
        return self._texts.get(str(live.record.options.get("language") or ""), self._texts[self._language])

    async def reply(self, live: Live, name: str, card: Card) -> None:
        """Post a card of ours below the thread, once under its name, and wait until it stands (or never will).

        The name is known for as long as somebody uses the run: until then, what is replied to may come again.
        """
        if (known := live.slots.get(name)) is None or known.post is None:
            await self.show(live, name, card)

    async def show(self, live: Live, name: str, card: Card) -> None:
        """Show a card of ours below the thread, as `put` does, and wait until it stands (or never will)."""
        self.put(live, name, card)
        sight = self._sight(live.run)
        async with self._shown:
            await self._shown.wait_for(lambda: name not in sight.extra)

    def forget_replies(self) -> None:
        """All that an earlier process left undone has been done: replies that stand need no names any more."""
        if not self._forgetting:
            self._forgetting = True
            self.changed()

    def put(self, live: Live, name: str, card: Card) -> None:
        """Show a card of ours below the thread, or change the one that stands under this name. Does not wait."""
        sight = self._sight(live.run)
        if sight.closed:
            log.warning("card.nowhere", extra={"run": live.run, "slot": name, "why": sight.closed})
            return
        sight.extra[name] = Slot(name=name, card=card, urgency=Urgency.ASK, final=True)
        self.changed()

    async def roots_known(self) -> bool:
        """Wait until it is known of every card that was sent whether it stands, and which thread it opened.

        People may write below a card before we know that it is there: we died in between, or its answer was lost.
        Returns whether there was anything to wait for.
        """
        return await self._landed(
            lambda: any(live.record.thread is None and self._flies(live, "card") for live in self._desk.lives),
            within=ROOT_SECONDS,
        )

    async def asks_known(self, live: Live) -> bool:
        """Wait until it is known of every question of a run that was sent whether it stands.

        Whether words answer a question depends on it. Returns whether there was anything to wait for.
        """
        return await self._landed(
            lambda: any(name.startswith("ask:") and self._flies(live, name) for name in live.slots),
            within=ASK_SECONDS,
        )

    async def _landed(self, flying: Callable[[], bool], *, within: float) -> bool:
        if not flying():
            return False
        try:
            async with asyncio.timeout(within), self._shown:
                await self._shown.wait_for(lambda: not flying())
        except TimeoutError:
            log.warning("posts.unknown")
        return True

    def _flies(self, live: Live, name: str) -> bool:
        """Whether a slot was sent, and nobody knows whether it stands."""
        slot, sight = live.slots.get(name), self._sight(live.run)
        return slot is not None and slot.post is None and not sight.closed and name not in sight.absent

    def leave(self, run: RunId) -> None:
        """Forget a run that is over and stands."""
        self._sights.pop(run, None)
        self._outbox.forget(run)

    def quiet(self, live: Live) -> bool:
        """Whether everything of a run stands in its thread, and is kept."""
        sight = self._sight(live.run)
        if sight.extra or self._doing == live.run:
            return False
        if sight.closed:
            return True
        if live.changed or live.saved < live.view.seq or not sight.settled:
            return False
        if any(name.startswith(REPLY) for name in live.slots):
            return False
        now = self._clock.now()
        return not self._signs.of(live) and not self._ready(live, now) and now >= sight.until

    async def run(self) -> None:
        """Show until cancelled."""
        while True:
            self._wake.clear()
            try:
                until = await self._step()
            except StoreAwayError:
                log.warning("showing.store_away")
                await self._clock.sleep(AWAY_SECONDS)
                continue
            if until is not None:
                await self._rest(until - self._clock.now())

    async def _rest(self, seconds: float) -> None:
        """Wait so long, or until something changes."""
        async with asyncio.TaskGroup() as group:
            waits = [group.create_task(self._wake.wait()), group.create_task(self._clock.sleep(max(0.01, seconds)))]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for wait in waits:
                wait.cancel()

    async def _step(self) -> float | None:
        """Do the one most urgent thing; returns when to look again, or None: at once."""
        now = self._clock.now()
        if not self._sure():
            return now + UNSURE_SECONDS
        lives = {live.run: live for live in self._desk.lives}
        step = self._outbox.next((job for live in lives.values() for job in self._ready(live, now)), now)
        if isinstance(step, Post | Look | Edit):
            self._doing = step.run
            try:
                await self._work(step, lives[step.run])
            finally:
                self._doing = None
            return None
        for live in lives.values():
            await self._keep(live, now)
        if await self._signs.put_one():
            return None
        until = [now - now % MINUTE + MINUTE, *(sight.until for sight in self._sights.values() if sight.until > now)]
        until += [step.until] if step is not None else []
        return min([*until, *self._signs.until(now)])

    # -- what is to do ----------------------------------------------------------------------------------------

    def _ready(self, live: Live, now: float) -> Sequence[Job]:
        sight = self._sight(live.run)
        if now < sight.until:
            return ()
        try:
            return self._jobs(live, now)
        except Exception:  # boundary: a run that cannot be drawn does not hold up the others
            log.exception("run.undrawable", extra={"run": live.run})
            sight.until = now + MINUTE
            return ()

    def _jobs(self, live: Live, now: float) -> Sequence[Job]:
        sight = self._sight(live.run)
        if sight.closed:
            return ()
        wanted = self._wanted(live, now)
        return jobs(
            live.run,
            live.record.place,
            # Nothing can stand in a thread that its card has not opened.
            wanted if live.record.thread is not None else [slot for slot in wanted if slot.name == "card"],
            self._known(live, wanted),
            lookup=self._chat.abilities.lookup,
            absent=sight.absent,
        )

    def _wanted(self, live: Live, now: float) -> Sequence[Slot]:
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
        if not sight.extra and not sight.plain:
            return sight.drawn[1]
        # A reply goes right behind the card: an answer to a person does not wait for the prose of a busy run.
        wanted = (*sight.drawn[1][:1], *sight.extra.values(), *sight.drawn[1][1:])
        return [
            dataclasses.replace(slot, card=plainly(slot.card)) if slot.name in sight.plain else slot for slot in wanted
        ]

    def _known(self, live: Live, wanted: Sequence[Slot]) -> Mapping[str, Posted]:
        """What is known of a run's slots. What can never be shown counts as shown, so that the rest goes on."""
        sight = self._sight(live.run)
        if not sight.frozen and not sight.given_up:
            return live.slots
        known = dict(live.slots)
        for slot in wanted:
            shown = digest(slot.card)
            if slot.name in sight.frozen or sight.given_up.get(slot.name) == shown:
                there = known.get(slot.name) or Posted(name=slot.name, once=key_of(live, slot))
                nowhere = PostRef(ThreadRef(self._chat.platform, ""), "")
                known[slot.name] = dataclasses.replace(there, post=there.post or nowhere, digest=shown)
        return known

    # -- doing one thing --------------------------------------------------------------------------------------

    async def _work(self, job: Job, live: Live) -> None:
        try:
            await self._do(job, live)
            await self._tidy(live)
        except StateError:
            raise
        except Exception:  # boundary: one thread's trouble is not the others'
            log.exception("thread.failed", extra={"run": live.run, "slot": job.slot.name})
            self._sight(live.run).until = self._clock.now() + MINUTE

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
            self._trouble(job, live, err)
        except StateError:
            raise
        except Exception:  # boundary: a fault of ours with one card; whether it was posted is not known
            log.exception("slot.failed", extra={"run": live.run, "slot": job.slot.name})
            self._plainer(job, live)
            self._silent(live)
        else:
            self._silences = 0
            if not isinstance(job, Look):
                self._sight(live.run).silences = 0
        finally:
            self._outbox.sent(job, self._clock.now())

    async def _post(self, job: Post, live: Live) -> None:
        slot, sight = job.slot, self._sight(live.run)
        tried = live.slots.get(slot.name)
        # The first try counts for looking: a post may become visible later than its successor was intended.
        at = tried.at if tried is not None else self._clock.now()
        intended = Posted(name=slot.name, once=key_of(live, slot), at=at)
        await self._desk.note(live, intended)
        sight.absent.discard(slot.name)
        stands = await self._chat.post(self._where(live, slot), slot.card, once=intended.once)
        await self._stands(live, slot, *stands, shown=digest(slot.card))

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
        if slot.name == "card":
            await self._desk.bind(live, post)
        await self._desk.note(live, Posted(name=slot.name, once=key_of(live, slot), post=post, digest=shown, at=at))
        log.info("slot.posted", extra={"run": live.run, "slot": slot.name})

    def _where(self, live: Live, slot: Slot) -> PlaceRef | ThreadRef:
        thread = live.record.thread
        return live.record.place if slot.name == "card" or thread is None else thread

    async def _tidy(self, live: Live) -> None:
        """Let go of what stands for good, and keep the picture when there is nothing more to do."""
        now = self._clock.now()
        self._settle(live, now)
        async with self._shown:
            self._shown.notify_all()
        await self._desk.checkpoint(live, now=not self._jobs(live, now))

    async def _keep(self, live: Live, now: float) -> None:
        """Keep what has changed in the picture without a call."""
        sight = self._sight(live.run)
        if not sight.settled and now >= sight.until:  # it was loaded, and may stand already
            self._settle(live, now)
        if self._forgetting and not live.users:
            self._let_go(live, {name for name in live.slots if name.startswith(REPLY)})
        await self._desk.checkpoint(live, now=live.changed or live.view.over)

    def _settle(self, live: Live, now: float) -> None:
        sight = self._sight(live.run)
        sight.settled = True
        wanted = self._wanted(live, now)
        before = live.view
        live.view, done = settle(live.view, wanted, self._known(live, wanted))
        live.changed = live.changed or live.view is not before
        self._let_go(live, {name for name in done if not is_kept(name)})
        for name in sight.extra.keys() & done:
            del sight.extra[name]

    def _let_go(self, live: Live, names: set[str]) -> None:
        """Forget slots that stand, with the next checkpoint."""
        fresh = {name for name in names - live.gone if name in live.slots and live.slots[name].post is not None}
        if fresh:
            live.gone |= fresh
            live.changed = True

    # -- trouble ----------------------------------------------------------------------------------------------

    def _trouble(self, job: Job, live: Live, err: ChatError) -> None:
        about = {"run": live.run, "slot": job.slot.name, "why": str(err)}
        match err:
            case ChatBusyError():
                self._pause(job, err.retry_after)
                if isinstance(job, Post):
                    self._sight(live.run).absent.add(job.slot.name)  # a refusal with a time: it was not posted
            case ChatRefusedError():
                log.error("chat.refused", extra=about)
                self._sight(live.run).absent.add(job.slot.name)
                self._plainer(job, live)
            case ChatGoneError():
                self._gone(job, live, err)
            case _:  # no answer: it may have got through, so the next job looks
                log.warning("chat.no_answer", extra=about)
                self._silences += 1
                self._outbox.pacer.pause(until=self._clock.now() + pause_after(self._silences))
                self._silent(live)

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

    def _silent(self, live: Live) -> None:
        """Let a thread rest whose call failed without a reason: when others get answers, it is this one's trouble."""
        sight = self._sight(live.run)
        sight.silences += 1
        sight.until = self._clock.now() + pause_after(sight.silences)

    def _plainer(self, job: Job, live: Live) -> None:
        """Show it as plain text; a card that even so is not taken is given up and said in the log."""
        sight, name = self._sight(live.run), job.slot.name
        if name in sight.plain:
            log.error("slot.given_up", extra={"run": live.run, "slot": name})
            sight.given_up[name] = digest(job.slot.card)
        sight.plain.add(name)

    def _gone(self, job: Job, live: Live, err: ChatGoneError) -> None:
        sight, about = self._sight(live.run), {"run": live.run, "slot": job.slot.name, "why": str(err)}
        if isinstance(job, Edit):
            # Somebody deleted the message. The thread goes on; if it is closed, the next post says so.
            log.warning("post.gone", extra=about)
            sight.frozen.add(job.slot.name)
            return
        log.error("thread.gone", extra=about)
        sight.closed = str(err)
        sight.extra.clear()

    def _sight(self, run: RunId) -> Sight:
        if (sight := self._sights.get(run)) is None:
            sight = self._sights[run] = Sight()
        return sight


def key_of(live: Live, slot: Slot) -> str:
    """The key that travels with a slot's post, by which it can be found."""
    return f"{live.run}/{slot.name}"


def is_kept(name: str) -> bool:
    """Whether a slot's name stays known when it stands, since what it answers may come again after a restart."""
    return name.startswith(("kept:", REPLY))


def plainly(card: Card) -> Card:
    """Return a card as plain text, for a platform that does not take it as it is. Its buttons stay."""
    text = plain(card.body).strip() or card.summary
    if len(text) > PLAIN_LIMIT:
        text = text[:PLAIN_LIMIT] + " […]"
    return dataclasses.replace(card, body=(Fence(text),), note=card.note[:300])
