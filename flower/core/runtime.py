"""Runs one step: asks the SDK through an attempt, carries out what `next_move` decides, keeps the books."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import os
import secrets
import time
import uuid
import warnings
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar, assert_never

import anyio
from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    ClaudeSDKError,
    project_key_for_directory,
)

from flower import texts
from flower.core import attempt, next_move, succession
from flower.core.agent import AgentSpec, HandoffPolicy
from flower.core.books import KILLED, Books, StepResult
from flower.core.calibration import remember_overflow
from flower.core.env import check_credentials, load_dotenv
from flower.core.events import Event
from flower.core.handoff import Handoff, degraded
from flower.core.level import Level
from flower.core.next_move import End, Ending, Finish, GoOn, HandOff, Retry
from flower.core.openings import Openings
from flower.core.outfit import Outfit, Turn
from flower.core.resilience import Resilience, classify
from flower.core.steering import OnlyEnds, Steering, Steers
from flower.core.workbench import Workbench
from flower.stores.resumable import ResumableSessionStore
from flower.texts.running import ZH, RunningTexts

__all__ = ["Runtime", "StepResult"]

T = TypeVar("T")
Sink = Callable[[Event], None]

_LATER = "comes with the context economy, in a later version"


_EMPTY_HANDOFFS = 2
"""Degraded handovers in a row after which going on would only burn money (API 4.4)."""


def _nobody(_: object) -> None:
    """Take what nobody wants."""


@dataclass(slots=True, kw_only=True)
class _Job:
    """One call of `Runtime.run`."""

    spec: AgentSpec
    task: str
    start: Turn
    """How the living generation begins; said again where a failure comes before there is a session."""
    result: StepResult
    tell: Sink
    words: RunningTexts
    level: Level
    empty_handoffs: int = 0
    """Degraded ones in a row."""


class Runtime:
    """The executor: owns workspace, store, workbench and policies, and has one verb, `run`.

    `interrupt` and `end` may be called from any thread, everything else belongs to the loop's thread. Start runs from
    the main thread's loop: the kernel ends the program when the thread that started it is gone.

    Args:
        workspace: the agents' working directory; created. Moving it ends continuity.
        run_dir: transcripts and accounts; relative to the current directory; created.
        portable: read no settings of the user or the project.
        workbench: an instance, or True for one in `run_dir`. Without one nothing keeps a coordinator's hands off.
        spill_threshold: characters from which a tool's output goes to a file; None or 0 for never.
        resilience: a policy, or False: no failure is tried again.
        handoff: a policy, or False: a full context is left to the program's own compaction.

    Raises:
        RuntimeError: there is no credential.
        NotImplementedError: a policy that is not built yet.
    """

    INTERRUPTED: ClassVar[str] = next_move.INTERRUPTED
    ENDED: ClassVar[str] = next_move.ENDED
    HANDOFF_DUE: ClassVar[str] = next_move.HANDOFF_DUE
    INTERRUPT_NOTE: ClassVar[str] = ZH.interrupt_note
    END: ClassVar[End] = End.END

    def __init__(
        self,
        *,
        workspace: str | Path,
        run_dir: str | Path = "runs",
        portable: bool = True,
        trim: Any = False,
        ephemeral: Any = True,
        keep_denials: int = 1,
        workbench: Workbench | bool = False,
        spill_threshold: int | None = 4000,
        resilience: Resilience | bool = True,
        handoff: HandoffPolicy | bool = True,
    ) -> None:
        _refuse_policies(trim=trim, ephemeral=ephemeral)
        self.workspace = _made(workspace)
        self.run_dir = _made(run_dir)
        self.portable = portable
        self.spill_threshold = spill_threshold
        self.resilience = resilience if isinstance(resilience, Resilience) else Resilience(enabled=bool(resilience))
        self.workbench: Workbench | None = None
        if isinstance(workbench, Workbench):
            self.workbench = workbench
        elif workbench:
            self.workbench = Workbench(self.workspace, home=self.run_dir / "workbench")
        if self.workbench is not None:
            self.workbench.refresh()
        self.run_id = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
        self._books = Books(self.manifest_path, self.run_id)
        self.on_session: Callable[[str], None] | None = None
        self.on_interrupted: Callable[[str], Awaitable[str | End | None]] | None = None
        """Awaited after the cut and before the resume, with the interrupt's words. None goes on with these words, a
        text with that text instead, `Runtime.END` ends the run."""
        self.budget_usd: float | None = None
        """For all steps of this runtime together. Counts from the next attempt on, as `model` does."""
        self.model: str | None = None
        self._steering = Steering()
        self._warned: set[str] = set()
        self._openings = Openings(self.run_dir / "openings.json")
        load_dotenv()
        if trouble := check_credentials():
            raise RuntimeError(trouble)
        # After the .env files were read: the window is guessed from what they say.
        self.handoff = handoff if isinstance(handoff, HandoffPolicy) else HandoffPolicy(enabled=bool(handoff))
        self.store: Any = ResumableSessionStore(
            self.run_dir / "sessions.db", orphan=lambda: texts.current().surroundings.orphan
        )

    # -- what people ask of it ------------------------------------------------------------------------------------

    async def run(
        self,
        spec: AgentSpec,
        prompt: str,
        *,
        step_name: str | None = None,
        resume: str | None = None,
        fork: bool = False,
        resume_at: str | None = None,
        on_event: Sink | None = None,
    ) -> StepResult:
        """Run one step to its end, over retries and interrupts. Agent failures are in the result.

        A cancellation closes the program within a bound, writes the manifest, and goes on.

        Args:
            step_name: label in the result and the manifest; the spec's name by default.
            resume: session to go on with; `fork` (branch off) and `resume_at` (uuid of the last message to keep) do
                nothing without it.
            on_event: called on the loop's thread; must neither block nor raise.
        """
        result = StepResult(step=step_name or spec.name, started_at=time.time())
        if self._steering.ended:
            result.error, result.ended_at = self.ENDED, result.started_at
            return result
        self._warn_if_no_wall(spec)
        job = _Job(
            spec=spec,
            task=prompt,
            start=Turn(text=prompt, resume=resume, fork=fork, resume_at=resume_at),
            result=result,
            tell=on_event or _nobody,
            words=texts.current().running,
            level=Level(self.handoff),
        )
        self._books.open(result)
        try:
            await self._carry(job)
        except asyncio.CancelledError:
            result.error = result.error or KILLED
            raise
        except Exception as err:  # a sink's or a hook's own, or a spec that cannot be run: the caller's to see
            result.error = result.error or f"{type(err).__name__}: {err}"
            raise
        finally:
            self._books.close(result, self.store)
        return result

    def interrupt(self, message: str = "", *, now: bool = False) -> None:
        """Cut the running turn and go on in the same session with these words. From any thread.

        The cut comes at the next message, or at once with `now`; never before there is a session to go on with. What
        a subagent in flight has not finished is lost.
        """
        self._steering.interrupt(message, now=now)

    def end(self) -> None:
        """End the run: at the next message, at once where a tool or a person is waited for. From any thread.

        The accounts are written. Every later `run` of this runtime returns at once with the error `Runtime.ENDED`.
        """
        self._steering.end()

    def rescue(self) -> None:
        """Close the books of the steps in flight, for a signal handler. Short, never raises; twice is harmless."""
        self._books.rescue(self.store)

    def close(self) -> None:
        """Close the store. Twice is harmless."""
        self.store.close()

    # -- what it knows --------------------------------------------------------------------------------------------

    @property
    def current(self) -> StepResult | None:
        """The step in flight, the one begun last if there are several."""
        return self._books.flying[-1] if self._books.flying else None

    @property
    def results(self) -> list[StepResult]:
        """The steps that are over in this process, in order."""
        return self._books.results

    @property
    def manifest_path(self) -> Path:
        return self.run_dir / "manifest.json"

    @property
    def project_key(self) -> str:
        """The key under which the SDK files this workspace's sessions."""
        return project_key_for_directory(str(self.workspace))

    def has_session(self, session_id: str) -> bool:
        """Whether the store knows this session, under this workspace. Reads one row."""
        return bool(self.store.has_session(self.project_key, session_id))

    def context_of(self, session_id: str) -> int:
        """Tokens of a session's last context, 0 if unknown."""
        return int(self.store.last_context(self.project_key, session_id))

    def total_cost(self) -> float:
        """What the finished steps of this process cost, US dollars."""
        return round(sum(result.cost_usd for result in self.results), 4)

    # -- seams for tests ------------------------------------------------------------------------------------------

    def _client(self, options: ClaudeAgentOptions) -> attempt.Client:
        """Return the SDK's client; the one place where it is made."""
        return ClaudeSDKClient(options)

    # -- the loop of attempts -------------------------------------------------------------------------------------

    async def _carry(self, job: _Job) -> None:
        turn: Turn | None = job.start
        while turn is not None:
            ending = await self._attempt(job, turn)
            job.result.ok, job.result.error = ending.ok, ending.error
            turn = await self._next(job, ending)

    async def _next(self, job: _Job, ending: Ending) -> Turn | None:
        move = next_move.after(
            ending,
            session=job.result.session_id,
            tried=job.result.attempts,
            limit=self.resilience.max_attempts if self.resilience.enabled else 1,
            hands_over=self.handoff.enabled,
            classify=classify,
            retryable=self.resilience.should_retry,
        )
        match move:
            case Finish():
                return None
            case GoOn():
                return await self._go_on(job)
            case HandOff(overflow=overflow):
                return await self._hand_over(job, overflow)
            case Retry(kind=kind):
                return await self._again(job, kind)
            case _:
                assert_never(move)

    async def _go_on(self, job: _Job) -> Turn | None:
        """Find out how a cut step goes on. None: it ends."""
        words = self._steering.take() or ""
        hook = self.on_interrupted
        if hook is not None:
            said = await self._unless(lambda: self._steering.ended, functools.partial(hook, words))
            if said is End.END:
                self._steering.end()
            elif isinstance(said, str):
                words = said
        if self._steering.ended:
            job.result.error = self.ENDED
            return None
        job.result.error = None
        text = job.words.interrupted_with_words if words else job.words.interrupted
        self._tell_retry(job, text)
        framed = job.words.resume_with_words.format(words=words) if words else job.words.resume_plain
        return self._resumed(job, f"{framed}\n\n{job.words.interrupt_note}")

    async def _again(self, job: _Job, kind: str) -> Turn | None:
        """Wait until another attempt makes sense. None: it does not."""
        result = job.result
        self._tell_retry(job, job.words.retry.format(attempt=result.attempts, kind=kind))

        async def wait() -> bool:
            if not await self.resilience.wait_online(lambda text: self._tell_retry(job, text)):
                return False
            await asyncio.sleep(self.resilience.delay_for(result.attempts))
            return True

        online = await self._unless(lambda: self._is_steered(result), wait)
        if self._steering.ended:
            result.error = self.ENDED
            return None
        if self._is_steered(result):
            return await self._go_on(job)
        if not online:
            result.error = f"{result.error}{job.words.still_offline.format(wait=self._patience())}"
            return None
        result.attempts += 1
        return self._resumed(job, self.resilience.prompt_to_resume()) if result.session_id else job.start

    def _resumed(self, job: _Job, text: str) -> Turn:
        job.result.resumed = True
        return Turn(text=text, resume=job.result.session_id)

    def _is_steered(self, result: StepResult) -> bool:
        return self._steering.ended or (self._steering.interrupted and result.session_id is not None)

    async def _unless(self, stop: Callable[[], bool], work: Callable[[], Awaitable[T]]) -> T | None:
        """Await `work`, but give it up as soon as people want what `stop` looks for."""
        with anyio.CancelScope() as scope:

            def look() -> None:
                if stop():
                    scope.cancel()

            with self._steering.heard(look):
                look()
                return await work()
        return None

    def _patience(self) -> str:
        spoken, seconds = texts.current().surroundings, self.resilience.max_offline_wait
        if seconds < 60:
            return spoken.seconds.format(count=round(seconds))
        return spoken.minutes.format(count=round(seconds / 60))

    def _tell_retry(self, job: _Job, text: str) -> None:
        job.tell(Event("retry", text, payload={"step": job.result.step, "attempt": job.result.attempts}))

    # -- handing over ---------------------------------------------------------------------------------------------

    async def _hand_over(self, job: _Job, overflow: bool) -> Turn | None:
        """Have the full session write down where it is, and begin a fresh one with that (behaviour 16.2).

        None: the step ends, with the reason in its error.
        """
        result, level, policy = job.result, job.level, self.handoff
        if self._is_broke(job):
            result.error = self._broke(job)
            return None
        if overflow and level.tokens:
            remember_overflow(level.tokens)
        if len(result.retired) >= policy.max_generations:
            result.error = job.words.too_many_generations.format(
                count=len(result.retired), at=policy.at, window=policy.window
            )
            return None
        job.tell(succession.writing(level, result.step))
        handoff = self._degraded(job, job.words.why_overflow) if overflow else await self._written(job)
        if self._steering.ended:
            result.error = self.ENDED
            return None
        self._keep(job, handoff)
        job.tell(succession.done(level, result.step, handoff))
        result.retired.append(str(result.session_id))
        result.session_id, result.error, result.context = None, None, 0
        level.reset()
        job.empty_handoffs = job.empty_handoffs + 1 if handoff.degraded else 0
        if job.empty_handoffs >= _EMPTY_HANDOFFS:
            result.error = job.words.burning.format(window=policy.window, headroom=policy.room)
            return None
        job.start = Turn(text=handoff.prompt_block())
        return job.start

    async def _written(self, job: _Job) -> Handoff:
        """Have the document written in one more turn of the full session, or return the substitute.

        The turn is exempt from the level, from interrupts (they wait for the successor) and from the budget, and no
        tool may run in it: there is no room left for what tools say.
        """
        ask = texts.current().documents.handoff_prompt.format(used=job.level.tokens, window=job.level.policy.window)
        turn = Turn(text=ask, resume=job.result.session_id)
        fold, ending = await self._converse(
            job,
            dataclasses.replace(job.spec, max_budget_usd=None),
            turn,
            level=Level(HandoffPolicy(enabled=False, window=0)),
            steering=OnlyEnds(self._steering),
            brake=attempt.brake(lambda: True, job.words.handoff_no_tools),
            tell=_nobody,
        )
        job.result.cost_usd += fold.cost_usd
        job.result.num_turns += fold.num_turns
        if not ending.ok:
            return self._degraded(job, job.words.why_overflow if ending.full else str(ending.error))
        handoff, why = succession.read("\n".join(fold.texts), job.result.step, job.task)
        if why:
            job.result.errors.append(job.words.degraded_note.format(why=why))
        return handoff

    def _degraded(self, job: _Job, why: str) -> Handoff:
        job.result.errors.append(job.words.degraded_note.format(why=why))
        return degraded(job.result.step, job.task, why=why)

    def _keep(self, job: _Job, handoff: Handoff) -> None:
        if self.workbench is None:
            return
        try:
            succession.keep(handoff, self.workbench.notes)
        except OSError as err:  # the successor gets the text all the same
            job.result.errors.append(job.words.handoff_unkept.format(error=err))

    # -- one attempt ----------------------------------------------------------------------------------------------

    async def _attempt(self, job: _Job, turn: Turn) -> Ending:
        if self._is_broke(job):
            return Ending(ok=False, error=self._broke(job), kind="budget")
        fold, ending = await self._converse(
            job,
            dataclasses.replace(job.spec, max_budget_usd=self._budget_left(job)),
            turn,
            level=job.level,
            steering=self._steering,
            brake=attempt.brake(lambda: self._steering.wanted, job.words.held_back),
            tell=lambda event: self._tell(job, event),
            done=lambda fold: self._take_over(job, fold),
        )
        if fold.cut:
            return Ending(ok=False, error=self.ENDED if self._steering.ended else fold.cut)
        return ending

    async def _converse(
        self,
        job: _Job,
        spec: AgentSpec,
        turn: Turn,
        *,
        level: Level,
        steering: Steers,
        brake: Any,
        tell: Sink,
        done: Callable[[attempt.Fold], object] = _nobody,
    ) -> tuple[attempt.Fold, Ending]:
        """Hold one conversation with the program; what came of it, and how it ended, a cut left aside.

        Args:
            done: called with what came of it, also when this is cancelled.
        """
        fold = attempt.Fold(
            prompt=str(uuid.uuid4()),
            price=self._books.pricing(self.store, turn.resume),
            level=level,
            near=lambda: succession.near(level, job.result.step),
        )
        said: deque[str] = deque(maxlen=20)
        spec = dataclasses.replace(spec, model=self.model or spec.model)
        try:
            options, index = self._outfit().options(spec, turn, brakes=[brake], stderr=said.append)
        except OSError as err:
            return fold, Ending(ok=False, error=f"{type(err).__name__}: {err}")
        conversation = attempt.Conversation(
            client=self._client(options),
            text=turn.text,
            fold=fold,
            steering=steering,
            silent=job.words.silent.format(minutes=round(attempt.SILENCE_SECONDS / 60)),
            on_session=lambda session: self._on_session(job, turn, session, index),
            tell=tell,
        )
        try:
            await attempt.sheltered(conversation)
        finally:
            done(fold)
        ending = fold.ending()
        if isinstance(fold.raised, ClaudeSDKError) and said:
            lines = " / ".join(said)[-500:]
            ending = dataclasses.replace(ending, error=f"{ending.error} | {job.words.child_said.format(lines=lines)}")
        return fold, ending

    @staticmethod
    def _take_over(job: _Job, fold: attempt.Fold) -> None:
        result = job.result
        result.cost_usd += fold.cost_usd
        result.num_turns += fold.num_turns
        result.errors.extend(fold.errors)
        result.context = job.level.tokens
        if text := "\n".join(fold.texts).strip():
            result.text = text

    def _on_session(self, job: _Job, turn: Turn, session: str, index: str) -> None:
        if session == job.result.session_id:  # known from the attempt before
            return
        job.result.session_id = session
        if turn.resume is None:
            self._openings.remember(session, index)
        elif turn.fork:
            self._openings.remember(session, self._openings.began_with(turn.resume, otherwise=index))
        if self.on_session is not None:
            with contextlib.suppress(Exception):  # continuity is a bonus and must never stop a run (behaviour 18.2)
                self.on_session(session)

    def _tell(self, job: _Job, event: Event) -> None:
        job.tell(event)
        served = event.payload.get("model")
        if served and event.kind in ("text", "thinking", "tool_call") and not event.payload.get("subagent"):
            self._compare_model(job, str(served))

    def _compare_model(self, job: _Job, served: str) -> None:
        """Say once when the endpoint serves another model than the environment names (D21)."""
        if "model" in self._warned:
            return
        self._warned.add("model")
        want = _environment("ANTHROPIC_MODEL") or _environment("ANTHROPIC_DEFAULT_OPUS_MODEL")
        if want and not job.spec.model and not self.model and want.lower() != served.lower():
            text = job.words.model_mismatch.format(want=want, served=served)
            job.tell(Event("error", text, payload={"model_mismatch": True, "want": want, "served": served}))

    def _outfit(self) -> Outfit:
        return Outfit(
            workspace=self.workspace,
            run_dir=self.run_dir,
            store=self.store,
            workbench=self.workbench,
            portable=self.portable,
            spill_threshold=self.spill_threshold,
            openings=self._openings,
            handoff=self.handoff,
        )

    # -- money --------------------------------------------------------------------------------------------------

    def _budget_left(self, job: _Job) -> float | None:
        return next_move.budget_left(
            [(self.budget_usd, self._books.spent()), (job.spec.max_budget_usd, job.result.cost_usd)]
        )

    def _is_broke(self, job: _Job) -> bool:
        left = self._budget_left(job)
        return left is not None and left <= 0

    def _broke(self, job: _Job) -> str:
        limit, spent = self.budget_usd, self._books.spent()
        if limit is None or spent < limit:
            limit, spent = job.spec.max_budget_usd, job.result.cost_usd
        return job.words.budget_spent.format(limit=limit, spent=spent)

    def _warn_if_no_wall(self, spec: AgentSpec) -> None:
        if spec.delegate_only and self.workbench is None and "wall" not in self._warned:
            self._warned.add("wall")
            warnings.warn(texts.current().running.no_wall.format(role=spec.name), stacklevel=3)


def _refuse_policies(*, trim: Any, ephemeral: Any) -> None:
    if trim is not False:
        raise NotImplementedError(f"trim: trimming {_LATER}")
    if not isinstance(ephemeral, bool):
        raise NotImplementedError(f"ephemeral: a policy object {_LATER}; True and False are accepted")


def _made(place: str | Path) -> Path:
    path = Path(place).resolve()
    path.mkdir(parents=True, exist_ok=True)
    return path


def _environment(name: str) -> str:
    return os.environ.get(name, "")  # noqa: TID251 - two model names that only this check needs
