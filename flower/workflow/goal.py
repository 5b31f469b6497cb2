"""The goal guard: a step that freezes a checklist, and a judge behind a working step (behaviour 21)."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from flower import texts
from flower.core.agent import AgentSpec
from flower.core.events import Event
from flower.core.goal import NOT_YET, Goal, Verdict
from flower.core.human import HumanChannel
from flower.core.roles import judge
from flower.core.runtime import Runtime, StepResult
from flower.workflow.base import Ctx, Runs, Step, StepAbort, StepEnded, was_ended

GOAL_KEY = "_goal"
VERDICT_KEY = "_verdict"
ROUND_KEY = "_goal_rounds"
_JUDGED_KEY = "_verdict_step"
"""The step that the verdict in ctx is about."""


def goal_step(
    channel: HumanChannel,
    *,
    goal_path: str | Path,
    brief_key: str = "确认需求",
    name: str = "设定目标",
    spec: AgentSpec | None = None,
    instructions: str = "",
    always_set: bool = False,
    on_fail: str = "stop",
    retries: int = 0,
    **spec_kw: Any,
) -> Step:
    """A step whose result is a complete goal, derived from `ctx[brief_key]`, in `goal_path` and in ctx.

    `can_run=True` goes through `spec_kw`; without it the judge has no Bash and cannot look where it is. There is no
    resume prompt: setting the goal again should get the full brief.
    """
    words = texts.current().workflow

    def take(goal: Goal, ctx: Ctx) -> None:
        ctx[GOAL_KEY] = goal
        ctx[name] = goal.prompt_block()

    def needed(ctx: Ctx) -> bool:
        frozen = None if always_set else Goal.load(goal_path)
        if frozen is None or not frozen.complete():
            return True
        take(frozen, ctx)
        return False

    def freeze(result: StepResult, ctx: Ctx) -> bool:
        goal = Goal.parse(result.text)
        if not goal.complete():
            return False
        path = goal.write(goal_path)
        take(goal, ctx)
        _warn(goal, path, ctx)
        return True

    return Step(
        name,
        spec or judge(name, channel, instructions=instructions, **spec_kw),
        lambda ctx: words.goal_prompt.format(brief=ctx.get(brief_key, words.no_brief)),
        retries=retries,
        gate=freeze,
        on_fail=on_fail,
        when=needed,
        reduce=lambda _result, ctx: str(ctx[GOAL_KEY].prompt_block()),
    )


def with_goal(
    step: Step,
    channel: HumanChannel,
    *,
    goal_path: str | Path,
    spec: AgentSpec | None = None,
    rounds: int = 3,
    instructions: str = "",
    can_run: bool = False,
    name: str | None = None,
    **spec_kw: Any,
) -> Step:
    """A copy of `step` with a judge behind it. An existing gate is replaced; `resume_prompt` and the rest stay.

    `rounds` is the total number of work rounds; 0 and 1 both mean one. A rejected round goes on in its own session;
    each verdict comes from a new one. The question after an unreachable verdict goes through `channel` and counts
    against its quota: with `max_asks=0` or `timeout_s=0` it is an immediate, explained stop.
    """
    label = name or texts.current().workflow.judge_label.format(step=step.name)
    guard = _Guard(
        channel=channel,
        goal_path=Path(goal_path),
        spec=spec or judge(label, channel, instructions=instructions, can_run=can_run, **spec_kw),
        step=step.name,
        label=label,
        rounds=max(1, rounds),
        said=texts.current(),
    )
    return replace(step, retries=guard.rounds - 1, gate=guard.passes, on_reject=guard.feedback)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Guard:
    """The gate of a judged step, and what is said after a rejection."""

    channel: HumanChannel
    goal_path: Path
    spec: AgentSpec
    step: str
    label: str
    rounds: int
    said: texts.Texts

    async def passes(self, result: StepResult, ctx: Ctx) -> bool:
        """Judge one round.

        Raises:
            StepAbort: there is no runtime to judge with, or the goal is unreachable and nobody said what to do.
            StepEnded: a person ended the run while it was being judged.
        """
        runtime: Runs | None = ctx.get("_runtime")
        if runtime is None:
            raise StepAbort(self.said.workflow.no_runtime.format(step=self.step))
        ctx[ROUND_KEY] = ctx.get(ROUND_KEY, 0) + 1
        goal = self._goal(ctx)
        verdict = await self._judged(runtime, goal, result, ctx)
        ctx[VERDICT_KEY], ctx[_JUDGED_KEY] = verdict, self.step
        self._announce(verdict, result, ctx)
        if verdict.unreachable:
            return await self._people_decide(verdict, ctx)
        return verdict.achieved

    def feedback(self, _result: StepResult, ctx: Ctx) -> str:
        """Say what the last verdict found. One about another step is none: a round that failed was not judged."""
        verdict: Verdict | None = ctx.get(VERDICT_KEY)
        return verdict.feedback() if verdict and ctx.get(_JUDGED_KEY, self.step) == self.step else ""

    def _goal(self, ctx: Ctx) -> Goal:
        """The goal as it stands now. One that was frozen in the file is what the file says: people may edit it."""
        known: Goal | None = ctx.get(GOAL_KEY)
        there = Goal.load(self.goal_path)
        if known is None or not known.complete():
            return there or Goal()
        if there is None or not there.complete() or there.path != known.path:
            return known
        ctx[GOAL_KEY] = there
        return there

    async def _judged(self, runtime: Runs, goal: Goal, result: StepResult, ctx: Ctx) -> Verdict:
        words = self.said.workflow
        known = goal.prompt_block() if goal.statement or goal.checks else words.no_goal
        judged = await runtime.run(
            self.spec,
            words.verdict_prompt.format(goal=known, report=result.text or words.no_report),
            step_name=f"{self.label}#{ctx[ROUND_KEY]}",
            on_event=ctx.get("_on_event"),
        )
        if was_ended(judged):
            raise StepEnded(Runtime.ENDED)
        verdict = Verdict.parse(judged.text)
        # What is not clear is never a pass.
        if not verdict.ok and not verdict.reason:
            error = getattr(judged, "error", None)
            verdict.reason = words.unclear + (words.judge_failed.format(error=error) if error else "")
        return verdict

    def _announce(self, verdict: Verdict, result: StepResult, ctx: Ctx) -> None:
        """Tell the sink how a round was judged. The text stays empty, as with every `task` event but one (D1)."""
        sink = ctx.get("_on_event")
        if sink is None:
            return
        payload = {
            "kind": "verdict",
            "step": self.step,
            "round": _round_of(result),
            "rounds": self.rounds,
            "state": verdict.state or NOT_YET,
            "reason": verdict.reason,
            "failed": list(verdict.failed),
        }
        sink(Event("task", payload=payload))

    async def _people_decide(self, verdict: Verdict, ctx: Ctx) -> bool:
        words = self.said.workflow
        reason = verdict.reason or self.said.documents.no_reason
        ask = await self.channel.ask(words.unreachable.format(reason=reason), [words.accept, words.change, words.wrong])
        if ask.state != "answered":
            # Going round in circles is the dearest choice (API 14.6).
            raise StepAbort(words.nobody.format(reason=reason, path=self.goal_path))
        answer = ask.answer.strip()
        if answer.lower().startswith(words.accept_prefix):
            return True
        if answer.lower().startswith(words.change_prefix):
            await self._people_change(verdict, ctx)
        else:
            verdict.reason = words.misjudged.format(words=answer)
        return False

    async def _people_change(self, verdict: Verdict, ctx: Ctx) -> None:
        words = self.said.workflow
        ask = await self.channel.ask(words.new_goal)
        change = ask.answer.strip()
        if ask.state != "answered" or not change:
            return
        goal = self._goal(ctx)  # again: the file may have been edited while the question waited
        goal.amend(change).write(self.goal_path)
        ctx[GOAL_KEY] = goal
        verdict.reason = words.goal_changed.format(goal=change)


def _round_of(result: StepResult) -> int:
    """Which round of its step a result is of. `ctx["_goal_rounds"]` counts judgings, over all steps."""
    suffix = re.search(r"#round(\d+)$", getattr(result, "step", ""))
    return int(suffix[1]) if suffix else 1


def _warn(goal: Goal, path: Path, ctx: Ctx) -> None:
    """Say at once what is bound to stop the run later: found at the verdict, it costs a whole round of work."""
    sink, doubtful = ctx.get("_on_event"), goal.unverifiable
    if sink is None or not doubtful:
        return
    line = texts.current().workflow.unverifiable.format(
        count=len(doubtful), total=len(goal.checks), path=path, items="; ".join(doubtful)
    )
    sink(Event("task", line, payload={"unverifiable": doubtful, "total": len(goal.checks), "path": str(path)}))
