"""Steps, and the workflow that runs them in order. What a step is about, and what a runtime does, is not here."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, cast

from flower import texts
from flower.core.agent import AgentSpec
from flower.core.events import Event
from flower.core.human import HumanChannel
from flower.core.lineage import Lineage
from flower.core.runtime import Runtime, StepResult
from flower.core.workbench import Workbench

Ctx = dict[str, Any]
Sink = Callable[[Event], None]
OnStep = Callable[["Step", StepResult], None]

_ON_FAIL = ("stop", "skip", "continue")
_T = TypeVar("_T")


class Runs(Protocol):
    """What a workflow needs of a runtime.

    `run_dir`, `workspace`, `has_session` and `on_session` are used where they exist (behaviour 17.2).
    """

    async def run(
        self,
        spec: AgentSpec,
        prompt: str,
        *,
        step_name: str | None = None,
        resume: str | None = None,
        fork: bool = False,
        on_event: Sink | None = None,
    ) -> StepResult: ...


class _TellsSessions(Protocol):
    on_session: Callable[[str], None] | None


class StepAbort(Exception):
    """Raised by a gate: another round would not help. (False from a gate means: not this time.)"""


class StepEnded(StepAbort):
    """Raised by a gate whose own agent was ended by a person: the workflow ends here."""


@dataclass
class Step:
    """One declared unit of a workflow. Running it never changes it: one object may be run several times.

    `name` is the key in ctx, manifest and lineage; renaming a step cuts its continuity without a word. `reduce` is
    the one callback that cannot be async.
    """

    name: str
    spec: AgentSpec
    prompt: str | Callable[[Ctx], str]
    resume_from: str | None = None
    fork: bool = False
    retries: int = 0
    gate: Callable[[StepResult, Ctx], bool | Awaitable[bool]] | None = None
    on_fail: str = "stop"
    when: Callable[[Ctx], bool | Awaitable[bool]] | None = None
    on_reject: Callable[[StepResult, Ctx], str | Awaitable[str]] | None = None
    resume_prompt: str | Callable[[Ctx], str] | None = None
    reduce: Callable[[StepResult, Ctx], str] | None = None

    def __post_init__(self) -> None:
        if self.on_fail not in _ON_FAIL:
            raise ValueError(texts.current().workflow.bad_on_fail.format(step=self.name, value=self.on_fail))

    def render(self, ctx: Ctx, *, resuming: bool = False) -> str:
        """The text to send; `resuming` is for a session that an earlier process began."""
        prompt = self.resume_prompt if resuming and self.resume_prompt is not None else self.prompt
        return prompt(ctx) if callable(prompt) else prompt

    def label(self, attempt: int) -> str:
        """The name of one attempt, counted from 0, in the manifest. Labels with a suffix never enter the lineage."""
        if attempt == 0:
            return self.name
        return f"{self.name}#round{attempt + 1}" if self.on_reject else f"{self.name}#retry{attempt}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    result: StepResult
    passed: bool = False
    again: bool = False
    """Whether another attempt may help."""
    ended: bool = False
    """By a person: nothing comes after this step, whatever it says about failing."""


@dataclass
class Workflow:
    """Ordered steps and the context they share. `run` returns `context` itself, so a second run sees the old keys.

    `workbench` is carried for whoever builds the runtime. With `continuous`, a step goes on with the session that the
    step of the same name had in an earlier process, also when `resume_from` is None.
    """

    steps: list[Step]
    name: str = "workflow"
    context: dict[str, Any] = field(default_factory=dict)
    channel: HumanChannel | None = None
    workbench: Workbench | None = None
    continuous: bool = True
    language: str | None = field(default=None, init=False)
    """Spoken while it runs; None is whatever the process speaks."""

    async def run(
        self, runtime: Runs, *, on_event: Sink | None = None, on_step: OnStep | None = None
    ) -> dict[str, Any]:
        """Run the steps until the end or until one of them stops the workflow.

        Success is `ctx.get("_failed_at") is None`. `on_step` is called once after each executed step, failed ones
        too, with the result of its last attempt. When a person ends the run (`Runtime.end`), the step in flight is
        the one that failed and nothing after it runs.

        Raises:
            ValueError: a step wants the session of another one that has none.
            Exception: whatever a callback, a gate (other than `StepAbort`) or a sink raises.
        """
        with texts.speaking(self.language):
            ctx = self._prepare(runtime, on_event)
            for index, step in enumerate(self.steps, 1):
                if step.when is not None and not await _awaited(step.when(ctx)):
                    continue
                outcome = await self._one(step, index, runtime, ctx)
                ctx["_results"][step.name] = outcome.result
                if on_step is not None:
                    on_step(step, outcome.result)
                if not _settle(step, outcome, ctx):
                    break
            return ctx

    def _prepare(self, runtime: Runs, on_event: Sink | None) -> Ctx:
        ctx = self.context
        ctx["_runtime"], ctx["_on_event"] = runtime, on_event
        # Of an earlier run of this object; they would make a good run look failed.
        ctx.pop("_failed_at", None)
        ctx.pop("_aborted", None)
        if self.channel is not None and on_event is not None and self.channel.on_event is None:
            self.channel.on_event = on_event
        ctx.setdefault("_sessions", {})
        ctx.setdefault("_results", {})
        run_dir, workspace = getattr(runtime, "run_dir", None), getattr(runtime, "workspace", None)
        if self.continuous and run_dir and workspace:
            self._wake(ctx, Lineage.open(run_dir, workspace), getattr(runtime, "has_session", None))
        return ctx

    @staticmethod
    def _wake(ctx: Ctx, lineage: Lineage, known: Callable[[str], bool] | None) -> None:
        ctx["_lineage"], ctx["_woke"] = lineage, lineage.bump()
        for name, session in lineage.steps.items():
            # A session that the store does not know any more counts as absent (behaviour 18.2).
            if known is None or known(session):
                ctx["_sessions"].setdefault(name, session)

    async def _one(self, step: Step, index: int, runtime: Runs, ctx: Ctx) -> _Outcome:
        """One step with all its attempts."""
        session, resumed = _session_for(step, ctx)
        sink: Sink | None = ctx["_on_event"]
        if sink is not None:
            place = {"index": index, "total": len(self.steps), "resumed": resumed, "woke": ctx.get("_woke", 1)}
            sink(Event("step", text=step.name, payload=place))
        first = step.render(ctx, resuming=resumed), session, step.fork and session is not None
        prompt, resume, fork = first
        last = max(0, step.retries)
        for attempt in range(last + 1):
            with _remembering(runtime, step.name, ctx):
                result = await runtime.run(
                    step.spec, prompt, step_name=step.label(attempt), resume=resume, fork=fork, on_event=sink
                )
            outcome = await _weighed(step, result, ctx)
            if not outcome.again or attempt == last:
                break
            words = await _awaited(step.on_reject(result, ctx)) if step.on_reject and result.session_id else ""
            prompt, resume, fork = (words, result.session_id, False) if words else first
        return outcome


def was_ended(result: StepResult) -> bool:
    """Did a person end the run (`Runtime.end`)? A duck-typed runtime's results need not know of errors."""
    return getattr(result, "error", None) == Runtime.ENDED


def _settle(step: Step, outcome: _Outcome, ctx: Ctx) -> bool:
    """Write down what came of a step; whether the workflow goes on (the table of behaviour 17.2)."""
    result = outcome.result
    if result.session_id:
        _remember(step.name, result.session_id, ctx)
    if outcome.passed:
        ctx[step.name] = step.reduce(result, ctx) if step.reduce else result.text
        return True
    if outcome.ended or step.on_fail == "stop":
        ctx["_failed_at"] = step.name
        return False
    if step.on_fail == "continue":
        ctx[step.name] = result.text
    return True


async def _weighed(step: Step, result: StepResult, ctx: Ctx) -> _Outcome:
    """A gate may freeze files, so it is asked once per attempt, and only about a result that is ok."""
    if was_ended(result):
        return _Outcome(result=result, ended=True)
    if not result.ok:
        return _Outcome(result=result, again=True)
    try:
        passed = step.gate is None or bool(await _awaited(step.gate(result, ctx)))
    except StepEnded:
        return _Outcome(result=result, ended=True)
    except StepAbort as abort:
        ctx["_aborted"] = str(abort)
        return _Outcome(result=result)
    return _Outcome(result=result, passed=passed, again=not passed)


def _session_for(step: Step, ctx: Ctx) -> tuple[str | None, bool]:
    """Which session a step resumes, and whether it is its own of an earlier process."""
    if step.resume_from is None:
        session = ctx["_sessions"].get(step.name)
        return session, session is not None
    try:
        return ctx["_sessions"][step.resume_from], False
    except KeyError:
        words = texts.current().workflow.no_session
        raise ValueError(words.format(step=step.name, source=step.resume_from)) from None


def _remember(name: str, session: str, ctx: Ctx) -> None:
    ctx["_sessions"][name] = session
    if "_lineage" in ctx:
        ctx["_lineage"].remember(name, session)


@contextmanager
def _remembering(runtime: Runs, name: str, ctx: Ctx) -> Iterator[None]:
    """Write an id down the moment it is known, under the plain name: a hard kill then loses nothing.

    Off again before the gate: a judge runs on the same runtime and must not take the step's place in the lineage.
    """
    lineage: Lineage | None = ctx.get("_lineage")
    if lineage is None or not hasattr(runtime, "on_session"):
        yield
        return
    telling = cast("_TellsSessions", runtime)
    telling.on_session = lambda session: lineage.remember(name, session)
    try:
        yield
    finally:
        telling.on_session = None


async def _awaited(value: _T | Awaitable[_T]) -> _T:
    return await value if inspect.isawaitable(value) else value
