"""Carries out commands: command -> one call on flower. Hands never wait, so nothing stands before a stop (SS-1)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, assert_never

from bridge.commands import Answer, Command, Consult, Decline, End, Hold, Interrupt, Resume, Say
from bridge.model import Person, PersonId
from bridge.payloads import person_of
from bridge.runner.telling import Teller
from bridge.texts import runner as catalogue
from flower import HumanChannel, Runtime

log = logging.getLogger(__name__)

BOUNDARY_SECONDS = 10.0
"""How long *interrupt* waits for a message boundary before it cuts at once (rulings R3)."""

OURSELVES = Person(id=PersonId(""), name="flower")


@dataclass(slots=True)
class Pending:
    """Which calls the main thread waits for now, from its own events. Pure bookkeeping."""

    calls: dict[str, str] = field(default_factory=dict)

    def see(self, kind: str, tool: str, payload: Mapping[str, Any]) -> None:
        """Fold one event."""
        if payload.get("subagent"):
            return
        if kind == "tool_call":
            self.calls[str(payload.get("id"))] = tool
        elif kind == "tool_result":
            self.calls.pop(str(payload.get("tool_use_id")), None)
        elif kind in ("result", "retry", "step"):  # whatever was pending, the attempt that called it is over
            self.calls.clear()

    def cut_at_once(self) -> bool:
        """Whether only an ask or a tool call is pending, so that waiting for a boundary would lose time (R3).

        A subagent in flight is the exception: cutting it loses its work, so it gets the boundary, and the 10 seconds.
        """
        return bool(self.calls) and not any(tool in ("Agent", "Task") for tool in self.calls.values())


@dataclass(slots=True, eq=False)
class Standstill:
    """A hold, from the moment it is wanted until somebody lets the run go on."""

    holds: list[Hold]
    reason: str = ""
    begun: bool = False
    """The run stands still, and that was told."""
    let_go: Resume | None = None
    awaited: bool = False
    """flower waits for `moved`."""
    moved: asyncio.Event = field(default_factory=asyncio.Event)


class Hands:
    """What people want from this run. Lives on the loop's thread.

    Args:
        fence: number of this attempt.
        questions: what earlier attempts asked, by fence and id.
        consult: starts an oracle question beside the run; must return at once.
        later: calls something after so many seconds, as the loop's `call_later`.
        on_held: told when the run comes to stand still, and when it goes on.
        texts: what people and the agent read of us.
    """

    def __init__(
        self,
        channel: HumanChannel,
        runtime: Runtime,
        teller: Teller,
        *,
        fence: int,
        consult: Callable[[Consult], None],
        later: Callable[[float, Callable[[], None]], asyncio.TimerHandle],
        on_held: Callable[[bool], None] = lambda _: None,
        questions: Mapping[tuple[int, str], str] | None = None,
        texts: catalogue.RunnerTexts = catalogue.EN,
    ) -> None:
        self._channel, self._runtime, self._teller, self._fence = channel, runtime, teller, fence
        self._consult, self._later, self._on_held = consult, later, on_held
        self._questions, self._texts = questions or {}, texts
        self._standstill: Standstill | None = None
        self._untaken: list[Interrupt | Resume] = []
        """Whose words wait for the next cut."""
        self._timers: list[asyncio.TimerHandle] = []
        self._said: dict[str, Command] = {}
        """Mail id -> what brought it."""
        self._patience: float | None = None
        """The channel's `timeout_s`, while it is put off."""
        self.pending = Pending()
        self.ended = asyncio.Event()
        self.ended_by: Person | None = None
        self.end_reason = ""
        runtime.on_interrupted = self._interrupted

    @property
    def held(self) -> bool:
        """Whether the run stands still until a person lets it go on or ends it."""
        return self._standstill is not None and self._standstill.begun and self._standstill.let_go is None

    def carry_out(self, command: Command) -> None:
        """Do one command. Tells its receipt; never waits and never raises for a command that comes too late."""
        match command:
            case Answer() | Decline():
                self._settle(command)
            case Say():
                self._say(command)
            case Interrupt():
                self._interrupt(command)
            case Hold():
                self._hold(command)
            case Resume():
                self._resume(command)
            case End():
                self._end(command)
            case Consult():
                self._consult(command)
            case _:
                assert_never(command)

    def hold_for(self, reason: str) -> None:
        """Hold the run because of ourselves (a full disk), not of a person."""
        if self._standstill is None or self._standstill.let_go is not None:
            self._hold(Hold(id=f"self:{reason}", by=OURSELVES, at=0.0), reason)

    def refuse(self, command: Command, why: str) -> None:
        """Tell that a command is not done."""
        self._teller.receipt(command, "refused", why)

    def finished(self, *, over: bool) -> None:
        """Close what still waits when the flow has ended: nothing stays in a state of stopping (SS-4).

        Args:
            over: the run is over, and not just this attempt of it: what the agent has not read it will not read soon.
        """
        for timer in self._timers:
            timer.cancel()
        waiting: list[Command] = [*self._untaken]
        if (still := self._standstill) is not None and not still.begun:
            waiting += still.holds
            waiting += [still.let_go] if still.let_go is not None else []
        self._untaken, self._standstill = [], None
        for command in waiting:
            self.refuse(command, self._texts.ended_first)
        unread = [self._said[mail.id] for mail in self._channel.pending_mail() if mail.id in self._said]
        for command in unread if over else ():
            self.refuse(command, self._texts.unread)

    # -- questions ------------------------------------------------------------------------------------------------

    def _settle(self, command: Answer | Decline) -> None:
        """Settle an ask, the one that was meant: two attempts may both have a `q1` (rulings R2)."""
        blank = isinstance(command, Answer) and not command.text.strip()
        if blank:  # AS-13
            self.refuse(command, self._texts.no_words)
        elif command.fence != self._fence:
            question = self._questions.get((command.fence, command.ask), self._texts.unknown_ask)
            self._too_late(command, question, self._texts.older_ask)
        elif self._taken(command):
            # The channel tells the outcome when its task wakes, which is after we have returned.
            self._teller.settled_by(command.ask, command.by)
            self._teller.receipt(command, "done")
        else:
            question = next((ask.question for ask in self._channel.asks if ask.id == command.ask), "")
            self._too_late(command, question or self._texts.unknown_ask, self._texts.ask_over)

    def _taken(self, command: Answer | Decline) -> bool:
        if isinstance(command, Answer):
            return self._channel.answer(command.ask, command.text)
        return self._channel.decline(command.ask, command.reason)

    def _too_late(self, command: Answer | Decline, question: str, why: str) -> None:
        if isinstance(command, Decline):
            self.refuse(command, why)
            return
        # A late answer is kept: it reaches the inbox, marked as what it is (product 1.4).
        self._mail(command, self._texts.late_answer.format(question=question, answer=command.text))
        self.refuse(command, self._texts.ask_over_kept)

    # -- words ----------------------------------------------------------------------------------------------------

    def _say(self, command: Say) -> None:
        if self._may_go_on():  # words to a held run let it go on with them (product 1.6)
            self._resume(_as_resume(command, command.text))
        else:
            self._mail(command, command.text)

    def _mail(self, command: Command, text: str) -> None:
        self._teller.saying = command.id
        try:
            mail = self._channel.send(text)
        finally:
            self._teller.saying = ""
        if mail is None:
            self.refuse(command, self._texts.no_words)
        elif not isinstance(command, Answer):  # whose receipt says already that it came too late
            self._said[mail.id] = command

    # -- interrupt and hold ---------------------------------------------------------------------------------------

    def _interrupt(self, command: Interrupt) -> None:
        if self.ended.is_set():
            self.refuse(command, self._texts.ending)
        elif self._may_go_on():
            if command.text.strip():
                self._resume(_as_resume(command, command.text))
            else:
                self.refuse(command, self._texts.already_held)
        else:
            now = self.pending.cut_at_once() or self._between_runs()
            self._teller.run("interrupting", by=person_of(command.by), words=command.text, now=now, hold=False)
            self._untaken.append(command)
            self._runtime.interrupt(command.text, now=now)
            if not now:
                self._timers.append(self._later(BOUNDARY_SECONDS, lambda: self._lose_patience(command)))

    def _lose_patience(self, command: Interrupt) -> None:
        if command in self._untaken:
            self._runtime.interrupt(command.text, now=True)

    def _hold(self, command: Hold, reason: str = "") -> None:
        still = self._standstill
        if self.ended.is_set():
            self.refuse(command, self._texts.ending)
        elif still is None or still.let_go is not None:
            self._settle_old(still)
            self._standstill = still = Standstill([command], reason)
            self._teller.run("interrupting", by=person_of(command.by), words="", now=True, hold=True)
            self._runtime.interrupt("", now=True)
            if self._between_runs():
                # The flow itself waits for a person, so there is nothing to cut: the run stands still as it is, and
                # flower takes the hold up at the next step, should the flow come to one before it is let go.
                self._begin(still)
                self._patience, self._channel.timeout_s = self._channel.timeout_s, None
        elif still.begun:
            self.refuse(command, self._texts.already_held)
        else:
            still.holds.append(command)

    def _settle_old(self, still: Standstill | None) -> None:
        """Close a hold that was let go before the cut came, and is wanted again."""
        if still is None or still.begun or still.let_go is None:
            return
        for hold in still.holds:
            self._teller.receipt(hold, "done")
        self._keep_words(still.let_go)

    def _between_runs(self) -> bool:
        """Whether the flow waits for a person while no agent works, as a gate does."""
        return self._runtime.current is None and bool(self._channel.pending())

    def _may_go_on(self) -> bool:
        return self._standstill is not None and self._standstill.let_go is None and not self.ended.is_set()

    def _resume(self, command: Resume) -> None:
        still = self._standstill
        if still is None or not self._may_go_on():
            self.refuse(command, self._texts.not_held)
            return
        still.let_go = command
        if still.begun:
            self._go_on(still, command)
        if still.begun and not still.awaited:
            self._standstill = None
        still.moved.set()

    def _begin(self, still: Standstill) -> None:
        still.begun = True
        self._teller.run("held", still.reason, by=person_of(still.holds[0].by))
        for hold in still.holds:
            self._teller.receipt(hold, "done")
        self._on_held(True)

    def _go_on(self, still: Standstill, command: Resume) -> None:
        self._teller.run("working", by=person_of(command.by), attempt=self._fence, resumed=True, words=command.text)
        self._on_held(False)
        if self._patience is not None:
            # What the question has waited while the run was held counts: it may be over at once.
            self._channel.timeout_s, self._patience = self._patience, None
        if still.awaited:
            self._teller.receipt(command, "done")
        else:
            self._keep_words(command)

    def _keep_words(self, command: Resume) -> None:
        """Give words to the agent with the next cut."""
        if command.text.strip():
            self._untaken.append(command)
            self._runtime.interrupt(command.text, now=True)
        else:
            self._teller.receipt(command, "done")

    async def _interrupted(self, words: str) -> str | None:
        """Decide how an interrupted run goes on; flower awaits this between the cut and the resume.

        When the run is ended meanwhile, flower stops waiting for us.
        """
        self.close_asks()
        self.pending.calls.clear()
        taken, self._untaken = self._untaken, []  # what comes from here on waits for the next cut
        if (still := self._standstill) is not None:
            try:
                words = await self._stand(still, words)
            except asyncio.CancelledError:
                self._untaken = [*taken, *self._untaken]
                raise
        for command in taken:
            self._teller.receipt(command, "done")
        return words or None

    async def _stand(self, still: Standstill, words: str) -> str:
        """Stand still until somebody lets the run go on; returns what the agent is told then."""
        still.awaited = True
        if not still.begun:
            self._begin(still)
            if still.let_go is not None:
                self._go_on(still, still.let_go)
        try:
            await still.moved.wait()
        finally:
            if self._standstill is still:
                self._standstill = None
        said = still.let_go.text.strip() if still.let_go is not None else ""
        return "\n\n".join(part for part in (words, said) if part)

    def close_asks(self) -> None:
        """Tell the asks whose call was cut as withdrawn."""
        self._teller.withdraw([ask.id for ask in self._channel.pending()])

    # -- the end --------------------------------------------------------------------------------------------------

    def _end(self, command: End) -> None:
        if not self.ended.is_set():
            self.ended_by, self.end_reason = command.by, command.reason
            self.ended.set()
        self._teller.receipt(command, "done")
        self._runtime.end()
        if self._runtime.current is None:
            # No agent works, so nothing would be cut: what the flow itself waits for is a person.
            self._teller.withdraw()
            for ask in self._channel.pending():
                self._channel.decline(ask.id)


def _as_resume(command: Say | Interrupt, text: str) -> Resume:
    return Resume(id=command.id, by=command.by, at=command.at, message=command.message, text=text)
