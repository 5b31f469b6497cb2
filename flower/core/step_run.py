"""One step on its way to its end: attempts, and what is done between them (behaviour 15.3).

`next_move` decides, this carries out: go on with people's words, wait and try again, hand over to a fresh session.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import re
import uuid
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, assert_never

import anyio

from flower import texts
from flower.core import attempt, leftovers, next_move, succession
from flower.core.agent import AgentSpec, HandoffPolicy, Options
from flower.core.books import Books, StepResult
from flower.core.calibration import calib_path, calibrated_window, remember_overflow
from flower.core.cost_journal import CostJournal, Entry, Spent
from flower.core.events import Event
from flower.core.gates import Hooks, tool_gate, turn_stop
from flower.core.guard import merge_hooks
from flower.core.handoff import Handoff, degraded
from flower.core.level import Level
from flower.core.next_move import End, Ending, Finish, GoOn, HandOff, Retry
from flower.core.notices import Notices
from flower.core.openings import Openings
from flower.core.options import OptionsBuilder, Turn
from flower.core.resilience import Resilience, classify, duration
from flower.core.steering import OnlyEnds, Steering, Steers
from flower.core.workbench import Workbench
from flower.texts.running import RunningTexts

T = TypeVar("T")
Sink = Callable[[Event], None]

_NO_SESSION = re.compile(r"no conversation found", re.IGNORECASE)
_BELIEVABLE = 85_000
"""Tokens. What overflowed below was one huge prompt; to remember it as a window would hand every later run over before
a coordinator has begun."""
_WRITING_TURNS = 4
"""Calls of the model in the turn that writes a handoff; it needs one."""
_WRITING_TRIES = 3
_EMPTY_HANDOFFS = 2
"""Degraded handovers in a row after which going on would only burn money (API 4.4)."""


class Settings(Protocol):
    """What a step reads of its runtime, each time anew: people may change it while it runs."""

    resilience: Resilience
    handoff: HandoffPolicy
    workbench: Workbench | None
    store: Any
    model: str | None
    budget_usd: float | None
    spent_before: float
    on_session: Callable[[str], None] | None

    def has_session(self, session_id: str) -> bool: ...

    on_interrupted: Callable[[str], Awaitable[str | End | None]] | None


@dataclass(slots=True, kw_only=True)
class StepRun:
    """One call of `Runtime.run`.

    Args:
        spec, task: the agent, and what it is told first.
        start: how the living generation begins; said again where a failure comes before there is a session.
        result: filled in on the way.
        tell: the sink.
        client: makes the SDK's client.
        empty_handoffs: degraded ones in a row.
    """

    spec: AgentSpec
    task: str
    start: Turn
    result: StepResult
    tell: Sink
    words: RunningTexts
    level: Level
    runtime: Settings
    steering: Steering
    books: Books
    openings: Openings
    notices: Notices
    journal: CostJournal
    options: Callable[[], OptionsBuilder]
    client: Callable[[Options], attempt.Client]
    empty_handoffs: int = 0
    unheard: str = ""
    """What a person said at an interrupt, until the model has answered anything to it."""
    untold: str = ""
    """A successor's session that the store does not know yet."""
    silences: int = 0
    """Attempts that ended because nothing came for too long; a slow model is waited for twice as long each time."""

    # -- the loop of attempts -------------------------------------------------------------------------------------

    async def carry(self) -> None:
        """Run the step to its end, over retries, interrupts and handovers; what came of it is in `result`."""
        before = await self.journal.adopt(self.result.step, self.result)
        self.result.cost_usd, self.result.num_turns = before.cost_usd, before.num_turns
        turn: Turn | None = self.start
        while turn is not None:
            ending = await self._attempt(turn)
            self.result.ok, self.result.error = ending.ok, ending.error
            turn = await self._next(ending)

    async def _next(self, ending: Ending) -> Turn | None:
        move = next_move.after(
            ending,
            session=self.result.session_id,
            tried=self.result.attempts,
            limit=self.runtime.resilience.max_attempts if self.runtime.resilience.enabled else 1,
            hands_over=self.runtime.handoff.enabled,
            classify=classify,
            retryable=self.runtime.resilience.should_retry,
        )
        match move:
            case Finish():
                return None
            case GoOn():
                return await self._go_on()
            case HandOff(overflow=overflow):
                return await self._hand_over(overflow)
            case Retry(kind=kind):
                return await self._again(kind)
            case _:
                assert_never(move)

    async def _go_on(self) -> Turn | None:
        """Find out how a cut step goes on. None: it ends."""
        words = self.steering.take() or ""
        hook = self.runtime.on_interrupted
        if hook is not None:
            said = await self._unless(lambda: self.steering.ended, functools.partial(hook, words))
            if said is End.END:
                self.steering.end()
            elif isinstance(said, str):
                words = said
        if self.steering.ended:
            self.result.error = next_move.ENDED
            return None
        self.result.error = None
        text = self.words.interrupted_with_words if words else self.words.interrupted
        self._tell_retry(text)
        framed = self.words.resume_with_words.format(words=words) if words else self.words.resume_plain
        said = f"{framed}\n\n{self.words.interrupt_note}"
        self.unheard = said if words else ""
        return self._resumed(said)

    async def _again(self, kind: str) -> Turn | None:
        """Wait until another attempt makes sense. None: it does not."""
        result = self.result
        self._tell_retry(self.words.retry.format(attempt=result.attempts, kind=kind))

        online = await self._unless(lambda: self._is_steered(result), self._until_online)
        if self.steering.ended:
            result.error = next_move.ENDED
            return None
        if self._is_steered(result):
            return await self._go_on()
        if not online:
            wait = duration(self.runtime.resilience.max_offline_wait)
            result.error = f"{result.error}{self.words.still_offline.format(wait=wait)}"
            return None
        result.attempts += 1
        if _NO_SESSION.search(result.error or "") and result.session_id != self.start.resume:
            # The program died before the store had heard of the session: there is nothing to go on with.
            result.session_id = None
        if result.session_id is None:
            return self.start
        return self._resumed(self.unheard or self.runtime.resilience.prompt_to_resume())

    def _resumed(self, text: str) -> Turn:
        self.result.resumed = True
        return Turn(text=text, resume=self.result.session_id)

    def _is_steered(self, result: StepResult) -> bool:
        return self.steering.ended or (self.steering.interrupted and result.session_id is not None)

    async def _unless(self, stop: Callable[[], bool], work: Callable[[], Awaitable[T]]) -> T | None:
        """Await `work`, but give it up as soon as people want what `stop` looks for."""
        with anyio.CancelScope() as scope:

            def look() -> None:
                if stop():
                    scope.cancel()

            with self.steering.heard(look):
                look()
                return await work()
        return None

    def _tell_retry(self, text: str) -> None:
        self.tell(Event("retry", text, payload={"step": self.result.step, "attempt": self.result.attempts}))

    # -- handing over ---------------------------------------------------------------------------------------------

    async def _hand_over(self, overflow: bool) -> Turn | None:
        """Have the full session write down where it is, and begin a fresh one with that (behaviour 16.2).

        None: the step ends, with the reason in its error.
        """
        result, level, policy = self.result, self.level, self.runtime.handoff
        if self._is_broke():
            result.error = self._broke()
            return None
        if overflow and level.tokens >= _BELIEVABLE:
            remember_overflow(level.tokens)
        if len(result.retired) >= policy.max_generations:
            text = self.words.too_many_generations
            result.error = text.format(count=len(result.retired), at=policy.at, window=policy.window) + self._memory()
            return None
        self.tell(succession.writing(level, result.step))
        handoff = self._degraded(self.words.why_overflow) if overflow else await self._written()
        if self.steering.ended:
            result.error = next_move.ENDED
            return None
        self._keep(handoff)
        self.tell(succession.done(level, result.step, handoff))
        result.retired.append(str(result.session_id))
        result.session_id, result.error, result.context = None, None, 0
        level.reset()
        self.empty_handoffs = self.empty_handoffs + 1 if handoff.degraded else 0
        if self.empty_handoffs >= _EMPTY_HANDOFFS:
            result.error = self.words.burning.format(window=policy.window, headroom=policy.room) + self._memory()
            return None
        self.start = Turn(text="\n\n".join(filter(None, (handoff.prompt_block(), self.unheard))))
        return self.start

    async def _written(self) -> Handoff:
        """Have the document written in one more turn of the full session, or return the substitute.

        The turn is exempt from the level, from interrupts (they wait for the successor) and from the budget, and no
        tool may run in it: there is no room left for what tools say.
        """
        ask = texts.current().documents.handoff_prompt.format(used=self.level.tokens, window=self.level.policy.window)
        for last in (number == _WRITING_TRIES for number in range(1, _WRITING_TRIES + 1)):
            fold, ending = await self._converse(
                dataclasses.replace(self.spec, max_budget_usd=None, max_turns=_WRITING_TURNS),
                Turn(text=ask, resume=self.result.session_id),
                level=Level(HandoffPolicy(enabled=False, window=0)),
                steering=OnlyEnds(self.steering),
                hooks=lambda _fold: tool_gate(lambda: True, self.words.handoff_no_tools, lookers=True),
                tell=nobody,
                done=self._pay,
            )
            if last or ending.ok or fold.result is None or not await self._worth_another(ending):
                break
        if not ending.ok:
            return self._degraded(self.words.why_overflow if ending.full else str(ending.error))
        handoff, why = succession.read("\n".join(fold.texts), self.result.step, self.task)
        if why:
            self.result.errors.append(self.words.degraded_note.format(why=why))
        return handoff

    async def _worth_another(self, ending: Ending) -> bool:
        """Wait, if the handoff failed for a reason that passes: the full session is whole, only the model was away."""
        rules = self.runtime.resilience
        if ending.full or not rules.enabled or next_move.kind_of(ending, classify) != "transient":
            return False
        return bool(await self._unless(lambda: self.steering.ended, self._until_online))

    async def _until_online(self) -> bool:
        if not await self.runtime.resilience.wait_online(self._tell_retry):
            return False
        await asyncio.sleep(self.runtime.resilience.delay_for(self.result.attempts))
        return True

    def _memory(self) -> str:
        """Where the window comes from, if that is the memory of an overflow: nobody would look for it there."""
        remembered = calibrated_window() == self.runtime.handoff.window
        return self.words.window_remembered.format(path=calib_path()) if remembered else ""

    def _degraded(self, why: str) -> Handoff:
        self.result.errors.append(self.words.degraded_note.format(why=why))
        return degraded(self.result.step, self.task, why=why)

    def _keep(self, handoff: Handoff) -> None:
        if self.runtime.workbench is None:
            return
        try:
            succession.keep(handoff, self.runtime.workbench.notes)
        except OSError as err:  # the successor gets the text all the same
            self.result.errors.append(self.words.handoff_unkept.format(error=err))

    # -- one attempt ----------------------------------------------------------------------------------------------

    async def _attempt(self, turn: Turn) -> Ending:
        if self._is_broke():
            return Ending(ok=False, error=self._broke(), kind="budget")
        fold, ending = await self._converse(
            dataclasses.replace(self.spec, max_budget_usd=self._budget_left()),
            turn,
            level=self.level,
            steering=self.steering,
            hooks=self._hooks,
            tell=self._hear,
            done=self._take_over,
        )
        if fold.cut:
            return Ending(ok=False, error=next_move.ENDED if self.steering.ended else fold.cut)
        return ending

    async def _converse(
        self,
        spec: AgentSpec,
        turn: Turn,
        *,
        level: Level,
        steering: Steers,
        hooks: Callable[[attempt.Fold], Hooks],
        tell: Sink,
        done: Callable[[attempt.Fold], object],
    ) -> tuple[attempt.Fold, Ending]:
        """Hold one conversation with the program; what came of it, and how it ended, a cut left aside.

        Args:
            done: called with what came of it, also when this is cancelled.
        """
        fold = attempt.Fold(
            prompt=str(uuid.uuid4()),
            price=self.books.pricing(self.runtime.store, turn.resume),
            level=level,
            near=lambda: succession.near(level, self.result.step),
        )
        account = self.journal.begin(self.result.step, self.result)
        said: deque[str] = deque(maxlen=20)
        spec = dataclasses.replace(spec, model=self.runtime.model or spec.model)
        try:
            options, index = self.options().build(spec, turn, hooks=hooks(fold), note=account.note, stderr=said.append)
        except OSError as err:
            account.drop()
            kind = next_move.NO_WORKSPACE if isinstance(err, NotADirectoryError) else ""
            return fold, Ending(ok=False, error=f"{type(err).__name__}: {err}", kind=kind)
        conversation = attempt.Conversation(
            client=self.client(options),
            text=turn.text,
            fold=fold,
            steering=steering,
            silence=attempt.SILENCE_SECONDS * 2**self.silences,
            silent=self.words.silent,
            on_session=lambda session: self._on_session(turn, session, index, account),
            tell=tell,
        )
        try:
            await attempt.sheltered(conversation)
        finally:
            done(fold)
            account.over(Spent(cost_usd=fold.cost_usd, num_turns=fold.num_turns))
        if fold.program_failed:
            await asyncio.to_thread(leftovers.end, account.note.stem)
        ending = fold.ending()
        if fold.program_failed and said:
            lines = " / ".join(said)[-500:]
            ending = dataclasses.replace(ending, error=f"{ending.error} | {self.words.child_said.format(lines=lines)}")
        return fold, ending

    def _hooks(self, fold: attempt.Fold) -> Hooks:
        """No call begins once people want a cut, and no request is sent once it or a handover is due."""
        return merge_hooks(
            tool_gate(lambda: self.steering.wanted, self.words.held_back),
            turn_stop(lambda: self.steering.wanted or self.level.due, fold.answered, self.words.held_back),
        )

    def _pay(self, fold: attempt.Fold) -> None:
        self.result.cost_usd += fold.cost_usd
        self.result.num_turns += fold.num_turns

    def _take_over(self, fold: attempt.Fold) -> None:
        self._pay(fold)
        result = self.result
        result.errors.extend(fold.errors)
        result.context = self.level.tokens
        self._tell_session(known=fold.result is not None)
        if fold.answer or fold.texts or fold.answered:
            self.unheard = ""
        self.silences += isinstance(fold.raised, attempt.SilenceError)
        if text := "\n".join(fold.texts).strip():
            result.text = text

    def _on_session(self, turn: Turn, session: str, index: str, account: Entry) -> None:
        account.named(session, getattr(self.runtime.store, "carried", {}).get(turn.resume or session, 0.0))
        if session == self.result.session_id:  # known from the attempt before
            return
        self.result.session_id = session
        if turn.resume is None:
            self.openings.remember(session, index)
        elif turn.fork:
            self.openings.remember(session, self.openings.began_with(turn.resume, otherwise=index))
        # While only the old session can be resumed, it is the one to be remembered: a kill in between must find it.
        self.untold = session
        self._tell_session(known=not self.result.retired)

    def _tell_session(self, *, known: bool = False) -> None:
        """Tell of a session as soon as it can be gone on with."""
        if not self.untold or not (known or self._is_stored(self.untold)):
            return
        session, self.untold = self.untold, ""
        if self.runtime.on_session is not None:
            with contextlib.suppress(Exception):  # continuity is a bonus and must never stop a run (behaviour 18.2)
                self.runtime.on_session(session)

    def _is_stored(self, session: str) -> bool:
        with contextlib.suppress(Exception):
            return self.runtime.has_session(session)
        return True

    def _hear(self, event: Event) -> None:
        self._tell_session()
        self.tell(event)
        notice = self.notices.after(event, chosen=self.spec.model or self.runtime.model)
        if notice is not None:
            self.tell(notice)

    # -- money --------------------------------------------------------------------------------------------------

    def _budget_left(self) -> float | None:
        return next_move.budget_left(
            [(self.runtime.budget_usd, self._spent()), (self.spec.max_budget_usd, self.result.cost_usd)]
        )

    def _spent(self) -> float:
        return self.books.spent() + self.runtime.spent_before

    def _is_broke(self) -> bool:
        left = self._budget_left()
        return left is not None and left <= 0

    def _broke(self) -> str:
        limit, spent = self.runtime.budget_usd, self._spent()
        if limit is None or spent < limit:
            limit, spent = self.spec.max_budget_usd, self.result.cost_usd
        return self.words.budget_spent.format(limit=limit, spent=spent)


def nobody(_event: Event) -> None:
    """Take events that nobody wants."""
