"""What a person's words or tap in a run's thread mean: exactly one thing (product 1.5). Pure.

`route` knows everything through `Place` and answers with a `Decision`, which `bridge.acting` carries out.
`bridge.starts` reads the words that start a run; `bridge.picking` finds the ask that words answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, assert_never

from bridge.actions import Choose, InWords, OnRun, PickAnswer, PickMail, Skip, decode, note_of
from bridge.commands import Answer, Command, Consult, Decline, End, Hold, Interrupt, Resume, Say
from bridge.hostile import clean
from bridge.model import FINAL, Abilities, Card, MessageRef, Person, RunRecord, Settled, Tap, Words
from bridge.picking import by_number, number_of, option_of, pick_card
from bridge.ports import Standing
from bridge.rights import Rights
from bridge.starts import Problem, StartWish, parse_start
from bridge.status import help_text, status_text
from bridge.texts import Texts
from bridge.typed import Mistyped, TypedCommand, read_typed
from bridge.view import AskView, View, ask_key
from bridge.wording import Wording

__all__ = [
    "Decision",
    "Ignore",
    "Kill",
    "Pick",
    "Place",
    "Problem",
    "Relaunch",
    "Reply",
    "Send",
    "StartWish",
    "Whisper",
    "late_word",
    "parse_start",
    "route",
]

LONGEST = 12_000
"""Characters of words that are handed to an agent (product 4)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Everything that is known of the thread in which something was said."""

    texts: Texts
    rights: Rights
    abilities: Abilities
    now: float
    record: RunRecord | None = None
    """None: no run belongs to this thread."""
    standing: Standing | None = None
    view: View | None = None
    posted: Mapping[str, float] = field(default_factory=dict)
    """When each ask was posted, by `ask_key`, in the platform's clock; one that is not there is not posted yet."""
    settlements: Mapping[str, Settled] = field(default_factory=dict)
    """How asks were settled from chat, by `ask_key`."""
    pending: Mapping[str, Words] = field(default_factory=dict)
    """Words for which `Pick` has asked and nobody has chosen yet, by their note."""


# -- decisions --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """Send a command to the run."""

    command: Command
    settled: Settled | None = None
    """Settle this first (`Threads.settle`). If another settlement was there, send nothing: whisper `late_word`."""
    note: str = ""
    """The pending words that this does away with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Relaunch:
    """Start a run that is over or lost again where it was, with these words."""

    words: str
    by: Person
    message: MessageRef | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """End the run's processes at once. It was confirmed."""

    by: Person


@dataclass(frozen=True, slots=True)
class Reply:
    """Say this in the thread, for all."""

    text: str


@dataclass(frozen=True, slots=True)
class Whisper:
    """Say this to the person alone."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """It cannot be told what the words are: ask with buttons.

    Until somebody chooses, the words stay pending under `note` (not confirmed as done in the inbox, so that they come
    again after a restart), and are handed in with `Place.pending` when a button comes.
    """

    card: Card
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ignore:
    """Do nothing. `tell` is a text to be shown once per thread, or empty."""

    why: str
    tell: str = ""


Decision = Send | Relaunch | Kill | Reply | Whisper | Pick | Ignore


def route(act: Words | Tap, place: Place) -> Decision:
    """Decide what a person's words or tap mean.

    Words of somebody who may not steer are refused in private, and so is whatever comes from a person who is not known.
    Asking for the status or for help is open to everybody who is known.
    """
    if place.record is None:
        return _outside(act, place)
    view = place.view or View(run=place.record.run)
    if isinstance(act, Words):
        return _Words(words=act, place=place, record=place.record, view=view).decide()
    return _Tap(tap=act, place=place, record=place.record, view=view).decide()


def late_word(ask: AskView | None, settled: Settled | None, texts: Texts) -> str:
    """Say to whoever comes late how a question was settled (AS-4)."""
    words, replies = Wording(texts=texts), texts.replies
    number = ask.label if ask is not None else "?"
    if settled is not None:
        who = words.name(settled.by)
        if settled.how == "declined":
            return replies.late_declined.format(number=number, who=who)
        return replies.late_answered.format(number=number, who=who, answer=words.line(settled.text, 200))
    if ask is None or ask.open:
        return replies.stale_button
    if ask.state == "answered":
        answer = words.line(ask.answer, 200)
        return replies.late_answered.format(number=number, who=words.name(ask.by), answer=answer)
    if ask.state == "declined":
        return replies.late_declined.format(number=number, who=words.name(ask.by))
    template = {
        "timeout": replies.late_timeout,
        "withdrawn": replies.late_withdrawn,
        "over_budget": replies.late_over_budget,
    }[ask.state]
    return template.format(number=number)


def _outside(act: Words | Tap, place: Place) -> Decision:
    if isinstance(act, Tap):
        return Whisper(place.texts.replies.stale_button)
    return Reply(place.texts.replies.no_run_here) if act.mentions_us else Ignore(why="no run in this thread")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Routing:
    """What words and taps have in common."""

    place: Place
    record: RunRecord
    view: View

    @property
    def over(self) -> bool:
        standing = self.place.standing
        return self.view.over or (standing is not None and standing.status in FINAL)

    @property
    def lost(self) -> bool:
        standing = self.place.standing
        return not self.over and (self.view.state == "lost" or (standing is not None and standing.status == "lost"))

    @property
    def held(self) -> bool:
        return self.view.state == "held" and not self.over and not self.lost

    @property
    def wording(self) -> Wording:
        return Wording(texts=self.place.texts)

    @property
    def state(self) -> str:
        return self.wording.state(self.view, waiting=bool(self.view.open_asks))

    def settlement(self, ask: AskView) -> Settled | None:
        return self.place.settlements.get(ask_key(self.record.run, ask.fence, ask.id))

    @property
    def open_asks(self) -> tuple[AskView, ...]:
        """Open, and not settled from chat a moment ago."""
        if self.over or self.lost:
            return ()
        return tuple(ask for ask in self.view.open_asks if self.settlement(ask) is None)

    def refusal(self, person: Person) -> Whisper | None:
        """Refuse somebody who may not steer, with the reason; None: they may."""
        verdict = self.place.rights.steer(person, self.record)
        if verdict:
            return None
        replies = self.place.texts.replies
        if verdict.reason == "unknown":
            return Whisper(replies.unknown_person)
        return Whisper(replies.may_not_steer.format(starter=self.wording.name(self.record.starter)))

    def already_over(self) -> str | None:
        """Say that there is nothing to stop; None: there is."""
        replies = self.place.texts.replies
        if self.over:
            return replies.already_over.format(state=self.state)
        return replies.lost_stop if self.lost else None

    def answer(self, act: Words | Tap, ask: AskView, text: str, *, message: MessageRef | None, note: str = "") -> Send:
        command = Answer(id=act.id, by=act.author, at=act.at, message=message, fence=ask.fence, ask=ask.id, text=text)
        key = ask_key(self.record.run, ask.fence, ask.id)
        settled = Settled(ask=key, by=act.author, how="answered", text=text, at=act.at)
        return Send(command=command, settled=settled, note=note)

    def decline(self, act: Words | Tap, ask: AskView, reason: str, *, message: MessageRef | None) -> Send:
        command = Decline(
            id=act.id, by=act.author, at=act.at, message=message, fence=ask.fence, ask=ask.id, reason=reason
        )
        key = ask_key(self.record.run, ask.fence, ask.id)
        settled = Settled(ask=key, by=act.author, how="declined", text=reason, at=act.at)
        return Send(command=command, settled=settled)


# -- words ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Words(_Routing):
    words: Words

    def decide(self) -> Decision:
        text = self.words.text.strip()
        replies = self.place.texts.replies
        order = read_typed(text)
        to_somebody = self.words.mentions_other and not self.words.mentions_us and order is None
        if text.startswith(("//", "／／")) or to_somebody:
            return Ignore(why="aside", tell=replies.ignored)
        if isinstance(order, TypedCommand) and order.name in ("status", "help") and self.words.author.id.strip():
            return self.order(order)
        if (refused := self.refusal(self.words.author)) is not None:
            return refused
        if not text:
            return Ignore(why="empty")
        if len(text) > LONGEST:
            return Reply(replies.too_long.format(n=len(text), most=LONGEST))
        if order is not None:
            return self.order(order) if isinstance(order, TypedCommand) else self.mistyped(order)
        if question := _question(text):
            return self.consult(question)
        return self.plain(text)

    @property
    def _act(self) -> dict[str, Any]:
        words = self.words
        return {"id": words.id, "by": words.author, "at": words.at, "message": words.message}

    def consult(self, question: str) -> Decision:
        if self.over or self.lost:
            return Reply(self.place.texts.replies.oracle_over)
        return Send(command=Consult(**self._act, question=question))

    def plain(self, text: str) -> Decision:
        """Words that begin with no sign: an answer, ambiguous, or mail."""
        replies = self.place.texts.replies
        if self.over:
            return Reply(replies.ended_mail.format(state=self.state))
        if self.lost:
            return Reply(replies.lost_mail)
        if self.held:
            return Send(command=Resume(**self._act, text=text))
        asks = [ask for ask in self.open_asks if self.stood_before(ask)]
        if not asks:
            return Send(command=Say(**self._act, text=text))
        if len(asks) == 1:
            (ask,) = asks
            answer = text if not ask.options else option_of(ask.options, text)
            if answer is not None:
                return self.answer(self.words, ask, answer, message=self.words.message)
        note = note_of(self.words.id)
        card = pick_card(
            self.words, asks, run=self.record.run, note=note, words=self.wording, abilities=self.place.abilities
        )
        return Pick(card=card, note=note)

    def stood_before(self, ask: AskView) -> bool:
        """Whether the ask was posted before these words were sent: nobody answers what they have not seen."""
        posted = self.place.posted.get(ask_key(self.record.run, ask.fence, ask.id))
        return posted is not None and posted < self.words.at

    # -- commands -------------------------------------------------------------------------------------------

    def mistyped(self, order: Mistyped) -> Decision:
        return Reply(self.place.texts.replies.no_such_command_near.format(command=order.name, near=order.near))

    def order(self, order: TypedCommand) -> Decision:
        match order.name:
            case "stop":
                return self.stop(order.rest)
            case "end":
                over = self.already_over()
                return Reply(over) if over else Send(command=End(**self._act, reason=order.rest))
            case "kill":
                return self.kill(order.rest)
            case "continue":
                return self.go_on(order.rest)
            case "status":
                return Reply(status_text(self.view, texts=self.place.texts, now=self.place.now))
            case "help":
                return Reply(help_text(self.view, texts=self.place.texts))
            case "answer":
                return self.answer_by_name(order.rest)
            case "skip":
                return self.skip_by_name(order.rest)
            case _:
                return Reply(self.place.texts.replies.not_built.format(command=order.name))

    def stop(self, words: str) -> Decision:
        if over := self.already_over():
            return Reply(over)
        if self.held:
            if words:
                return Send(command=Resume(**self._act, text=words))
            who = self.wording.name(self.view.by)
            return Reply(self.place.texts.replies.already_held.format(who=who))
        return Send(command=Interrupt(**self._act, text=words) if words else Hold(**self._act))

    def kill(self, confirmed: str) -> Decision:
        replies = self.place.texts.replies
        if self.over:
            return Reply(replies.nothing_to_kill.format(state=self.state))
        if confirmed.casefold().strip(" .!。！") not in ("yes", "是", "确定"):
            return Reply(replies.kill_sure)
        return Kill(by=self.words.author)

    def go_on(self, words: str) -> Decision:
        if self.over or self.lost:
            return Relaunch(words=words, by=self.words.author, message=self.words.message)
        if self.held:
            return Send(command=Resume(**self._act, text=words))
        return Reply(self.place.texts.replies.not_held.format(state=self.state))

    def answer_by_name(self, rest: str) -> Decision:
        replies, (number, text) = self.place.texts.replies, by_number(rest)
        asks = self.open_asks
        if number is None:
            if not asks:
                return Reply(replies.no_open_ask)
            if len(asks) > 1:
                return Reply(self._which("answer", " …"))
            ask: AskView | None = asks[0]
        else:
            ask = next((each for each in asks if each.number == number), None)
        if ask is None:
            return Reply(self._not_waiting(number or 0))
        if not text:
            return Reply(replies.needs_answer.format(number=ask.label))
        return self.answer(self.words, ask, option_of(ask.options, text) or text, message=self.words.message)

    def skip_by_name(self, rest: str) -> Decision:
        replies, (number, reason) = self.place.texts.replies, by_number(rest)
        asks = self.open_asks
        if not asks and number is None:
            return Reply(replies.no_open_ask)
        if number is None and len(asks) > 1:
            return Reply(self._which("skip", ""))
        ask = asks[0] if number is None else next((each for each in asks if each.number == number), None)
        if ask is None:
            return Reply(self._not_waiting(number or 0))
        return self.decline(self.words, ask, reason, message=self.words.message)

    def _which(self, command: str, tail: str) -> str:
        labels = [ask.label for ask in self.open_asks]
        return self.place.texts.replies.which_ask.format(
            numbers=", ".join(labels), command=command, first=labels[0], tail=tail
        )

    def _not_waiting(self, number: int) -> str:
        known = number_of(self.view, number)
        if known is not None:
            return late_word(known, self.settlement(known), self.place.texts)
        open_now = ", ".join(ask.label for ask in self.open_asks)
        replies = self.place.texts.replies
        return replies.no_such_ask.format(number=f"q{number}", numbers=open_now) if open_now else replies.no_open_ask


def _question(text: str) -> str:
    """Return the question for the oracle: what stands behind `?` or `？` and has words in it."""
    if not text.startswith(("?", "？")):
        return ""
    question = text.lstrip("?？ \t\n")
    return clean(question) if any(char.isalnum() for char in question) else ""


# -- taps -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tap(_Routing):
    tap: Tap

    def decide(self) -> Decision:
        action = decode(self.tap.action)
        if action is None or action.run != self.record.run:
            return Whisper(self.place.texts.replies.stale_button)
        if (refused := self.refusal(self.tap.author)) is not None:
            return refused
        match action:
            case OnRun():
                return self.on_run(action)
            case Choose():
                return self.choose(action)
            case InWords():
                return self.in_words(action)
            case Skip():
                ask = self.find(action.fence, action.ask)
                return ask if isinstance(ask, Whisper) else self.decline(self.tap, ask, "", message=None)
            case PickAnswer():
                return self.pick_answer(action)
            case PickMail():
                return self.pick_mail(action)
            case _:
                assert_never(action)

    @property
    def _act(self) -> dict[str, Any]:
        return {"id": self.tap.id, "by": self.tap.author, "at": self.tap.at}

    def on_run(self, action: OnRun) -> Decision:
        match action.verb:
            case "hold":
                return self.hold()
            case "continue":
                return self.go_on()
            case "end":
                over = self.already_over()
                return Whisper(over) if over else Send(command=End(**self._act, reason=""))
            case "oracle":
                return self.consult()
            case _:
                assert_never(action.verb)

    def hold(self) -> Decision:
        if over := self.already_over():
            return Whisper(over)
        if self.held:
            return Whisper(self.place.texts.replies.already_held.format(who=self.wording.name(self.view.by)))
        return Send(command=Hold(**self._act))

    def go_on(self) -> Decision:
        if self.over or self.lost:
            return Relaunch(words="", by=self.tap.author)
        if self.held:
            return Send(command=Resume(**self._act, text=""))
        return Whisper(self.place.texts.replies.not_held.format(state=self.state))

    def consult(self) -> Decision:
        replies, question = self.place.texts.replies, self.tap.text.strip()
        if not question:
            return Whisper(replies.form_empty)
        if self.over or self.lost:
            return Whisper(replies.oracle_over)
        if len(question) > LONGEST:
            return Whisper(replies.too_long.format(n=len(question), most=LONGEST))
        return Send(command=Consult(**self._act, question=clean(question)))

    def find(self, fence: int, id: str) -> AskView | Whisper:  # noqa: A002 - the word of the wire
        """Find the open ask that a button belongs to, or say why it can no longer be answered."""
        ask, replies = self.view.ask(fence, id), self.place.texts.replies
        settled = self.place.settlements.get(ask_key(self.record.run, fence, id))
        if settled is not None or (ask is not None and not ask.open):
            return Whisper(late_word(ask, settled, self.place.texts))
        if ask is None:
            return Whisper(replies.late_attempt if fence < self.view.fence else replies.stale_button)
        if self.over or self.lost:
            return Whisper(replies.late_over.format(number=ask.label))
        return ask

    def choose(self, action: Choose) -> Decision:
        ask = self.find(action.fence, action.ask)
        if isinstance(ask, Whisper):
            return ask
        if action.option >= len(ask.options):
            return Whisper(self.place.texts.replies.stale_button)
        return self.answer(self.tap, ask, ask.options[action.option], message=None)

    def in_words(self, action: InWords) -> Decision:
        ask, text = self.find(action.fence, action.ask), self.tap.text.strip()
        if isinstance(ask, Whisper):
            return ask
        if not text:  # AS-13: an empty answer is no answer
            return Whisper(self.place.texts.replies.form_empty)
        if len(text) > LONGEST:
            return Whisper(self.place.texts.replies.too_long.format(n=len(text), most=LONGEST))
        return self.answer(self.tap, ask, text, message=None)

    def pick_answer(self, action: PickAnswer) -> Decision:
        words = self.place.pending.get(action.note)
        if words is None:
            return Whisper(self.place.texts.replies.stale_button)
        ask = self.find(action.fence, action.ask)
        if isinstance(ask, Whisper):
            return ask
        text = words.text.strip()
        answer = option_of(ask.options, text) or text
        return self.answer(self.tap, ask, answer, message=words.message, note=action.note)

    def pick_mail(self, action: PickMail) -> Decision:
        words = self.place.pending.get(action.note)
        if words is None:
            return Whisper(self.place.texts.replies.stale_button)
        if over := self.already_over():
            return Whisper(over)
        say = Say(id=self.tap.id, by=words.author, at=words.at, message=words.message, text=words.text.strip())
        return Send(command=say, note=action.note)
