"""Carries out what people do: one thread's acts after one another, different threads beside one another."""

from __future__ import annotations

import dataclasses
import functools
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from bridge.actions import note_of
from bridge.away import AWAY_SECONDS, until_it_is_back
from bridge.cards import reply
from bridge.clock import Clock
from bridge.commands import Answer, Say
from bridge.desk import Desk, Live
from bridge.errors import BridgeError, ChatBusyError, ChatError, SettingsError, StateError, StoreAwayError
from bridge.lanes import Lanes, Work
from bridge.model import Card, Inbound, Posted, RunId, Settled, Summons, Tap, ThreadRef, Words
from bridge.picking import pick_card
from bridge.ports import Chat, Store
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
from bridge.showing import REPLY, Showing
from bridge.starting import Starter
from bridge.texts import Texts
from bridge.view import AskView, ask_key
from bridge.wording import Wording

log = logging.getLogger(__name__)

TAKE_WAIT_SECONDS = 5.0
WHISPER_TRIES = 3
LONGEST_PAUSE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Unsorted:
    """Words of which the bot has asked what they are. They stay undone in the inbox until somebody says so."""

    words: Words
    receipt: str
    run: RunId
    card: Card


class Acting:
    """What one platform account does with what people say, tap and want started."""

    def __init__(
        self,
        chat: Chat,
        store: Store,
        *,
        desk: Desk,
        showing: Showing,
        starter: Starter,
        rights: Rights,
        texts: Mapping[str, Texts],
        clock: Clock,
    ) -> None:
        self._chat, self._store, self._clock = chat, store, clock
        self._desk, self._showing, self._starter, self._rights = desk, showing, starter, rights
        self._texts = texts["en"]
        """For words to people where no run is, which could have a language."""
        self._pending: dict[str, Unsorted] = {}
        self._left_over: set[str] = set()
        """Receipts of what an earlier process did not finish, as long as we have not, either."""
        self._lanes: Lanes

    async def run(self, lanes: Lanes) -> None:
        """Take from the inbox and act, in these lanes, until cancelled. A store that is away is waited for."""
        self._lanes = lanes
        first = True
        while True:
            try:
                taken = await self._store.inbox.take(self._chat.platform, wait=TAKE_WAIT_SECONDS if not first else 0.0)
            except StoreAwayError:
                log.warning("act.store_away")
                await self._clock.sleep(AWAY_SECONDS)
                continue
            if first:
                self._left_over |= {receipt for receipt, _ in taken}
                self._finished("")
            first = False
            for receipt, inbound in taken:
                lane = inbound.id if isinstance(inbound, Summons) else inbound.thread
                lanes.put(lane, functools.partial(self._act_on, receipt, inbound))

    def _finished(self, receipt: str) -> None:
        self._left_over.discard(receipt)
        if not self._left_over:
            self._showing.forget_replies()

    def let_go(self, live: Live) -> bool:
        """Deal with words that nobody has sorted and whose run is over: whoever wrote them is told. False: none."""
        unsorted = {note: each for note, each in self._pending.items() if each.run == live.run}
        for note, each in unsorted.items():
            del self._pending[note]
            self._lanes.put(each.words.thread, functools.partial(self._act_on, each.receipt, each.words))
        return bool(unsorted)

    # -- one act ----------------------------------------------------------------------------------------------

    async def _act_on(self, receipt: str, inbound: Inbound) -> None:
        """Act until it is done. It holds up its own thread only; every step of it may be repeated."""
        while True:
            try:
                await self._one(receipt, inbound)
            except StoreAwayError:
                log.warning("act.store_away", extra={"id": inbound.id})
                await self._clock.sleep(AWAY_SECONDS)
                continue
            except Exception as err:  # boundary: one act must not end the others; whoever did it gets a word
                log.exception("inbound.failed", extra={"id": inbound.id})
                told = isinstance(err, BridgeError) and not isinstance(err, StateError)
                self._whisper(
                    inbound,
                    self._texts.replies.not_done.format(why=err) if told else self._texts.replies.fault,
                    receipt,
                )
            self._finished(receipt)
            return

    async def _one(self, receipt: str, inbound: Inbound) -> None:
        if isinstance(inbound, Summons):
            await self._start(inbound, receipt)
            return
        run = await self._run_in(inbound.thread)
        if run is not None:
            async with self._desk.using(run) as live:
                if live is not None:
                    await self._in_thread(inbound, live, receipt)
                    return
        if isinstance(inbound, Tap) or inbound.mentions_us:
            self._whisper(inbound, self._texts.replies.no_run_here, receipt)
        else:
            await self._done(receipt)

    async def _run_in(self, thread: ThreadRef) -> RunId | None:
        run = await self._store.runs.run_of(thread)
        if run is None and await self._showing.roots_known():
            run = await self._store.runs.run_of(thread)
        return run

    async def _in_thread(self, inbound: Words | Tap, live: Live, receipt: str) -> None:
        decision = await self._decide(inbound, live)
        if _hangs_on_asks(inbound, decision) and await self._showing.asks_known(live):
            decision = await self._decide(inbound, live)
        log.info("inbound.routed", extra={"id": inbound.id, "run": live.run, "as": type(decision).__name__})
        match decision:
            case Send():
                await self._send(decision, inbound, live, receipt)
            case Relaunch():
                await self._relaunch(decision, inbound, live, receipt)
            case Kill():
                await self._kill(decision, inbound, live, receipt)
            case Whisper():
                self._whisper(inbound, decision.text, receipt)
            case Reply():
                self._say(live, f"{REPLY}{note_of(inbound.id)}", reply(decision.text), receipt)
            case Pick():
                await self._pick(decision, inbound, live, receipt)
            case Ignore():
                await self._ignore(decision, live, receipt)
            case _:
                assert_never(decision)

    # -- deciding ---------------------------------------------------------------------------------------------

    async def _decide(self, inbound: Words | Tap, live: Live) -> Decision:
        """Route it; what comes again after a crash means the same as the first time."""
        place = await self._place(inbound, live)
        begun = live.slots.get(_mark_of(inbound))
        if begun is not None and place.standing is not None:
            if begun.once != str(place.standing.fence) or place.standing.owner:
                return Ignore(why="done before")
            place = _before_relaunch(place)
        if _took_effect(inbound, live):
            return Ignore(why="done before")
        decision = route(inbound, place)
        return self._sorted(inbound, decision, live, place) if isinstance(inbound, Words) else decision

    async def _place(self, inbound: Words | Tap, live: Live) -> Place:
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
            # What this very act has settled before we died must not look as if somebody had been faster.
            settlements={ask: each for ask, each in live.settlements.items() if not _is_of(each, inbound)},
            pending={note: each.words for note, each in self._pending.items() if each.run == live.run},
        )

    def _sorted(self, words: Words, decision: Decision, live: Live, place: Place) -> Decision:
        """Words that the bot has asked about before a restart are not guessed now, whatever has happened since."""
        note = note_of(words.id)
        if f"kept:{note}" not in live.slots or isinstance(decision, Pick):
            return decision
        asks = [ask for ask in live.view.open_asks if ask_key(live.run, ask.fence, ask.id) in place.posted]
        card = pick_card(
            words, asks, run=live.run, note=note, words=Wording(texts=place.texts), abilities=place.abilities
        )
        if isinstance(decision, Send):
            return Pick(card=card, note=note)
        self._showing.put(live, f"kept:{note}", dataclasses.replace(card, buttons=()))
        return decision

    # -- carrying out -----------------------------------------------------------------------------------------

    async def _send(self, decision: Send, inbound: Words | Tap, live: Live, receipt: str) -> None:
        """Send a command, unless somebody was faster, which whoever was late is told (AS-4)."""
        if (wanted := decision.settled) is not None:
            winner = await self._desk.settled(live, wanted)
            if (winner.by.id, winner.at, winner.text) != (wanted.by.id, wanted.at, wanted.text):
                late = late_word(_ask_of(live, wanted.ask), winner, self._showing.language_of(live))
                self._whisper(inbound, late, receipt)
                return
        await self._store.commands.send(live.run, decision.command)
        self._showing.changed()
        if (unsorted := self._pending.pop(decision.note, None)) is None:
            await self._done(receipt)
        else:
            self._using(live, functools.partial(self._close, unsorted, live, f"kept:{decision.note}", receipt))

    async def _close(self, unsorted: Unsorted, live: Live, name: str, receipt: str) -> None:
        """Take the choice away from words that are sorted; first then they, and the tap, need not come again."""
        await self._showing.show(live, name, dataclasses.replace(unsorted.card, buttons=()))
        await self._done(unsorted.receipt)
        await self._done(receipt)

    async def _relaunch(self, decision: Relaunch, inbound: Words | Tap, live: Live, receipt: str) -> None:
        """Start a run again, once: noted before with the number that stands, and done when that has moved on."""
        standing = await self._store.runs.standing(live.run)
        if standing is not None:
            await self._desk.note(live, Posted(name=_mark_of(inbound), once=str(standing.fence)))
        await self._starter.launch(live.record, by=decision.by, words=decision.words, again=True)
        await self._look_again(live)
        await self._done(receipt)

    async def _kill(self, decision: Kill, inbound: Words | Tap, live: Live, receipt: str) -> None:
        if not await self._starter.kill(live.record, by=decision.by):
            self._whisper(inbound, self._showing.language_of(live).replies.not_here, receipt)
            return
        await self._look_again(live)
        await self._done(receipt)

    async def _look_again(self, live: Live) -> None:
        await self._desk.catch_up(live)
        self._showing.changed()

    async def _pick(self, decision: Pick, inbound: Words | Tap, live: Live, receipt: str) -> None:
        if isinstance(inbound, Tap):  # a tap says what it is
            await self._done(receipt)
            return
        self._pending[decision.note] = Unsorted(inbound, receipt, live.run, decision.card)
        self._showing.put(live, f"kept:{decision.note}", decision.card)

    async def _ignore(self, decision: Ignore, live: Live, receipt: str) -> None:
        if decision.tell:  # once per thread: the slot has one name
            self._say(live, "kept:ignored", reply(decision.tell), receipt)
        else:
            await self._done(receipt)

    # -- starting ---------------------------------------------------------------------------------------------

    async def _start(self, summons: Summons, receipt: str) -> None:
        verdict = self._rights.start(summons.author)
        replies = self._texts.replies
        if not verdict:
            said = replies.unknown_person if verdict.reason == "unknown" else replies.may_not_start
            self._whisper(summons, said, receipt)
            return
        wish = parse_start(summons.text, self._texts)
        if isinstance(wish, Problem):
            self._whisper(summons, wish.text, receipt)
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
            self._whisper(summons, f"{err} Nothing was started.", receipt)
            return
        log.info("run.created", extra={"run": record.run, "workspace": record.workspace})
        await self._desk.get(record.run)
        self._showing.changed()  # the card goes out while the runner starts
        await self._starter.launch(record, by=summons.author)
        await self._done(receipt)

    # -- saying -----------------------------------------------------------------------------------------------

    def _say(self, live: Live, name: str, card: Card, receipt: str) -> None:
        """Post a reply; what it replies to is done when it stands, so that a crash in between loses nothing."""

        async def say() -> None:
            await self._showing.reply(live, name, card)
            await self._done(receipt)

        self._using(live, say)

    def _using(self, live: Live, work: Work) -> None:
        """Do something beside, for which the run stays on the desk."""

        async def use() -> None:
            try:
                await work()
            finally:
                live.users -= 1

        live.users += 1  # from now on, not only from when the task begins
        self._lanes.beside(use())

    def _whisper(self, inbound: Inbound, text: str, receipt: str) -> None:
        """Tell the person alone; then what they did is done."""
        self._lanes.beside(self._whispered(inbound, text, receipt))

    async def _whispered(self, inbound: Inbound, text: str, receipt: str) -> None:
        where = inbound.place if isinstance(inbound, Summons) else inbound.thread
        private = inbound.private if isinstance(inbound, Summons) else ""
        for _ in range(WHISPER_TRIES):
            try:
                await self._chat.whisper(where, inbound.author.id, text, private=private)
                break
            except ChatBusyError as busy:
                await self._clock.sleep(min(busy.retry_after, LONGEST_PAUSE_SECONDS))
            except ChatError as err:
                log.warning("whisper.failed", extra={"id": inbound.id, "why": str(err)})
                break
            except Exception:  # boundary: nobody else depends on it
                log.exception("whisper.failed", extra={"id": inbound.id})
                break
        await self._done(receipt)

    async def _done(self, receipt: str) -> None:
        await until_it_is_back(lambda: self._store.inbox.done(self._chat.platform, receipt), self._clock)


def _hangs_on_asks(act: Words | Tap, decision: Decision) -> bool:
    """Whether it would mean something else if another question stood in the thread."""
    if isinstance(act, Tap):
        return False
    return isinstance(decision, Pick) or (isinstance(decision, Send) and isinstance(decision.command, Say | Answer))


def _is_of(settled: Settled, act: Words | Tap) -> bool:
    """Whether this very act has settled it."""
    return settled.by.id == act.author.id and settled.at == act.at


def _took_effect(act: Words | Tap, live: Live) -> bool:
    """Whether it was an answer that the run has heard already, so that nothing is left to do or to say."""
    for settled in live.settlements.values():
        if _is_of(settled, act) and (ask := _ask_of(live, settled.ask)) is not None and ask.state == settled.how:
            return True
    return False


def _ask_of(live: Live, key: str) -> AskView | None:
    asks = (*live.view.asks, *live.view.past)
    return next((ask for ask in asks if key == ask_key(live.run, ask.fence, ask.id)), None)


def _mark_of(act: Words | Tap) -> str:
    """Name the note that an act has begun to start a run again. It is no message, and stands beside the slots."""
    return f"kept:again:{note_of(act.id)}"


def _before_relaunch(place: Place) -> Place:
    """Return the thread as it was before we began to start its run again and died."""
    assert place.view is not None  # noqa: S101 - made by `_place`
    assert place.standing is not None  # noqa: S101
    return dataclasses.replace(
        place,
        standing=dataclasses.replace(place.standing, status="lost"),
        view=dataclasses.replace(place.view, state="lost"),
    )
