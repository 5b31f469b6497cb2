"""Carries out commands: command -> one call on flower. Hands never wait, so nothing stands before a stop (SS-1)."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, assert_never

from bridge.commands import Answer, Command, Consult, Decline, End, Hold, Interrupt, Resume, Say
from bridge.model import Person, PersonId
from bridge.runner.telling import Teller, person_of
from flower import HumanChannel, Runtime
from flower.core.next_move import End as EndOfRun

if TYPE_CHECKING:
    from collections.abc import Callable

log = logging.getLogger(__name__)

BOUNDARY_SECONDS = 10.0
"""How long *interrupt* waits for a message boundary before it cuts at once (rulings R3)."""


@dataclass(slots=True)
class Pending:
    """Which calls the main thread waits for now, from its own events. Pure bookkeeping."""

    calls: dict[str, str] = field(default_factory=dict)

    def see(self, kind: str, tool: str, payload: dict[str, object]) -> None:
        """Fold one event."""
        if payload.get("subagent"):
            return
        if kind == "tool_call":
            self.calls[str(payload.get("id"))] = tool
        elif kind == "tool_result":
            self.calls.pop(str(payload.get("tool_use_id")), None)
        elif kind == "result":
            self.calls.clear()

    def cut_at_once(self) -> bool:
        """Whether only an ask or a tool call is pending, so that waiting for a boundary would lose time (R3).

        A subagent in flight is the exception: cutting it loses its work, so it gets the boundary, and the 10 seconds.
        """
        return bool(self.calls) and not any(tool in ("Agent", "Task") for tool in self.calls.values())


class Hands:
    """What people want from this run. Lives on the loop's thread.

    Args:
        consult: starts an oracle question beside the run; must return at once.
    """

    def __init__(
        self,
        channel: HumanChannel,
        runtime: Runtime,
        teller: Teller,
        *,
        fence: int,
        consult: Callable[[Consult], None],
        later: Callable[[float, Callable[[], None]], object],
        on_held: Callable[[bool], None] = lambda _: None,
    ) -> None:
        self._channel, self._runtime, self._teller, self._fence = channel, runtime, teller, fence
        self._consult, self._later, self._on_held = consult, later, on_held
        self._hold: Hold | None = None
        self._interrupt: Interrupt | None = None
        self._decision: asyncio.Future[Resume | End] | None = None
        self.pending = Pending()
        self.ended_by: Person | None = None
        self.end_reason = ""
        runtime.on_interrupted = self._interrupted

    @property
    def held(self) -> bool:
        """Whether the run waits for a person who lets it go on or ends it."""
        return self._decision is not None

    def carry_out(self, command: Command) -> None:
        """Do one command. Tells its receipt; never waits and never raises for a command that comes too late."""
        match command:
            case Answer():
                self._answer(command)
            case Decline():
                self._decline(command)
            case Say():
                self._say(command)
            case Interrupt():
                self._cut(command)
            case Hold():
                self._cut(command)
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
        self.carry_out(Hold(id=f"self:{reason}", by=Person(id=PersonId(""), name=reason), at=0.0))

    def finished(self) -> None:
        """Close what still waits when the run is over: nothing stays in a state of stopping (SS-4)."""
        for command in (self._hold, self._interrupt):
            if command is not None:
                self._teller.receipt(command, "refused", "the run ended before it could be taken up")
        self._hold = self._interrupt = None

    def _answer(self, command: Answer) -> None:
        if not self._asked_here(command, command.fence):
            return
        self._teller.settled_by(command.ask, command.by)
        self._close(command, self._channel.answer(command.ask, command.text))

    def _decline(self, command: Decline) -> None:
        if not self._asked_here(command, command.fence):
            return
        self._teller.settled_by(command.ask, command.by)
        self._close(command, self._channel.decline(command.ask, command.reason))

    def _asked_here(self, command: Answer | Decline, fence: int) -> bool:
        # A button of an earlier attempt must not answer a question of this one with the same id (rulings R2).
        if fence != self._fence:
            self._teller.receipt(command, "refused", "the question was asked before the run was started again")
            return False
        return True

    def _close(self, command: Answer | Decline, taken: bool) -> None:
        if taken:
            self._teller.receipt(command, "done")
        elif isinstance(command, Answer) and command.text.strip():
            # A late answer is kept: it reaches the inbox, marked as what it is (product 1.4).
            question = next((ask.question for ask in self._channel.asks if ask.id == command.ask), command.ask)
            self._mail(command, f"(late answer to {question!r}) {command.text}")
            self._teller.receipt(command, "refused", "the question no longer waited; the answer went to the inbox")
        else:
            self._teller.receipt(command, "refused", "the question no longer waits")

    def _say(self, command: Say) -> None:
        if self._decision is not None:  # words to a held run let it go on with them (product 1.6)
            self._resume(
                Resume(id=command.id, by=command.by, at=command.at, message=command.message, text=command.text)
            )
        else:
            self._mail(command, command.text)

    def _mail(self, command: Command, text: str) -> None:
        self._teller.saying = command.id
        try:
            if self._channel.send(text) is None:
                self._teller.receipt(command, "refused", "there were no words in it")
        finally:
            self._teller.saying = ""

    def _cut(self, command: Interrupt | Hold) -> None:
        if self._decision is not None:
            if isinstance(command, Interrupt) and command.text:
                self._resume(
                    Resume(id=command.id, by=command.by, at=command.at, message=command.message, text=command.text)
                )
            else:
                self._teller.receipt(command, "refused", "the run is held already")
            return
        if self._hold is not None or self._interrupt is not None:
            self._teller.receipt(self._hold or self._interrupt or command, "done")
        now = isinstance(command, Hold) or self.pending.cut_at_once()
        text = command.text if isinstance(command, Interrupt) else ""
        self._hold = command if isinstance(command, Hold) else None
        self._interrupt = command if isinstance(command, Interrupt) else None
        self._teller.run("interrupting", by=person_of(command.by), words=text, now=now, hold=self._hold is not None)
        self._runtime.interrupt(text, now=now)
        if not now:
            self._later(BOUNDARY_SECONDS, lambda: self._lose_patience(command))

    def _lose_patience(self, command: Interrupt | Hold) -> None:
        if self._interrupt is command:  # still not taken up
            self._runtime.interrupt(command.text, now=True)

    async def _interrupted(self, _words: str) -> str | EndOfRun | None:
        """Decide how an interrupted run goes on; flower awaits this between the cut and the resume."""
        self._teller.withdraw([ask.id for ask in self._channel.pending()])
        self.pending.calls.clear()
        hold, interrupt = self._hold, self._interrupt
        self._hold = self._interrupt = None
        if hold is None:
            if interrupt is not None:
                self._teller.receipt(interrupt, "done")
            return None
        return await self._wait_for_a_person(hold)

    async def _wait_for_a_person(self, hold: Hold) -> str | EndOfRun | None:
        self._decision = asyncio.get_running_loop().create_future()
        self._teller.run("held", by=person_of(hold.by))
        self._teller.receipt(hold, "done")
        self._on_held(True)
        try:
            decision = await self._decision
        finally:
            self._decision = None
        if isinstance(decision, End):
            return Runtime.END
        self._teller.run("working", by=person_of(decision.by), attempt=self._fence, resumed=True, words=decision.text)
        self._teller.receipt(decision, "done")
        self._on_held(False)
        return decision.text or None

    def _resume(self, command: Resume) -> None:
        if self._decision is None or self._decision.done():
            self._teller.receipt(command, "refused", "the run is not held")
        else:
            self._decision.set_result(command)

    def _end(self, command: End) -> None:
        self.ended_by, self.end_reason = command.by, command.reason
        self._teller.receipt(command, "done")
        if self._decision is not None and not self._decision.done():
            self._decision.set_result(command)
        self._runtime.end()
