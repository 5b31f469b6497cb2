"""The flow that needs no code: clarify, set the goal, work. Nothing in the framework depends on it (behaviour 22)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from flower import texts
from flower.core import worktrees
from flower.core.agent import AgentSpec
from flower.core.brief import Brief
from flower.core.goal import Goal
from flower.core.human import HumanChannel
from flower.core.lineage import Lineage
from flower.core.roles import coordinator, worker
from flower.core.runtime import StepResult
from flower.core.workbench import Workbench
from flower.texts.workflow import ZH, WorkflowTexts
from flower.workflow.base import Ctx, Step, Workflow
from flower.workflow.clarify import clarify_step
from flower.workflow.goal import goal_step, with_goal
from flower.workflow.request import recall_request

_DUE = "goal-due"
"""An empty file in the run's folder: the brief was amended at a start, and the goal is to be derived again. It stays
true when that start is killed before it is done."""


def starter_flow(
    ask: str,
    *,
    workspace: str | Path = ".",
    run_dir: str | Path = "runs",
    new: bool = False,
    isolate: bool = False,
    clarify_only: bool = False,
    goal: bool = True,
    rounds: int = 3,
    judge_can_run: bool = False,
    max_asks: int | None = None,
    timeout_s: float | None = 1800.0,
    instructions: str = "",
    worker_prompt: str = ZH.worker_prompt,
    brief_name: str = ZH.brief_name,
    goal_name: str = ZH.goal_name,
    log_name: str = ZH.log_name,
    lang: str | None = None,
) -> Workflow:
    """Build the flow, and make the directories of its workbench.

    The driver must give the same `run_dir` and the workflow's own workbench to its runtime. `lang` (None: what the
    process speaks) decides the words, the names of the steps and, where a name was left at its default, of the
    files. In a directory whose brief is complete the run is taken up again, and `ask` may be empty.

    Raises:
        ValueError: no request in a new directory; unknown `lang`; `isolate` where git cannot give worktrees, or where
            the workbench beside the repository cannot be written. All before anything is asked of a model.
        OSError: the workbench cannot be written.
    """
    with texts.speaking(texts.of(lang).language):
        said = texts.current()
        words, request = said.workflow, ask.strip()
        if isolate and (trouble := worktrees.trouble(Path(workspace).resolve())):
            raise ValueError(trouble)
        place = _place(workspace, isolate, brief_name, goal_name)
        _make(place.workbench)
        if new:
            _put_away(place, run_dir)
            place = _place(workspace, isolate, brief_name, goal_name)
        if not place.waking and not request:
            raise ValueError(words.need_request)
        channel = HumanChannel(
            log_path=place.workbench.notes / (words.log_name if log_name == ZH.log_name else log_name),
            amend_path=place.brief,
            max_asks=max_asks,
            timeout_s=timeout_s,
        )
        due = Path(run_dir).resolve() / _DUE
        amended = _keep(request, place, channel, run_dir, due) or _is_due(due, place.goal)
        steps = [
            clarify_step(
                channel,
                brief_path=place.brief,
                prompt=words.clarify_prompt.format(request=request),
                name=words.clarify,
                instructions=instructions,
            )
        ]
        told = words.worker_prompt if worker_prompt == ZH.worker_prompt else worker_prompt
        work = Step(
            words.work,
            _coordinator(said, told, channel, isolate),
            _work_prompt(words),
            resume_prompt=_work_resume(words, request, amended),
        )
        setting = goal_step(
            channel,
            goal_path=place.goal,
            brief_key=words.clarify,
            name=words.set_goal,
            always_set=amended,
            can_run=judge_can_run,
        )
        judged = with_goal(work, channel, goal_path=place.goal, rounds=rounds, can_run=judge_can_run)
        if not clarify_only:
            steps += [_settling(setting, due), judged] if goal else [work]
        flow = Workflow(steps, name="starter", channel=channel, workbench=place.workbench)
        flow.language = said.language
        return flow


def wake_state(
    workspace: str | Path = ".",
    *,
    run_dir: str | Path = "runs",
    isolate: bool = False,
    brief_name: str = ZH.brief_name,
    goal_name: str = ZH.goal_name,
) -> dict[str, Any]:
    """What a start in this directory would find. Writes not one byte.

    Keys: `waking`, `brief` and `goal` (paths), `checks` (0 without a goal), `woke`, `steps`.
    """
    place = _place(workspace, isolate, brief_name, goal_name)
    goal = Goal.load(place.goal)
    lineage = Lineage.open(run_dir, place.workspace)
    return {
        "waking": place.waking,
        "brief": place.brief,
        "goal": place.goal,
        "checks": len(goal.checks) if goal else 0,
        "woke": lineage.woke,
        "steps": dict(lineage.steps),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where a run's frozen documents are: the one definition that `starter_flow` and `wake_state` share."""

    workspace: Path
    workbench: Workbench
    brief: Path
    goal: Path

    @property
    def waking(self) -> bool:
        brief = Brief.load(self.brief)
        return brief is not None and brief.complete()


def _place(workspace: str | Path, isolate: bool, brief_name: str, goal_name: str) -> _Place:
    root = Path(workspace).resolve()
    # Worktrees come out of the repository, so the workbench must not lie in it.
    workbench = Workbench(root, home=root.parent / f".flower-{root.name}") if isolate else Workbench(root)
    briefs = {language: texts.of(language).workflow.brief_name for language in texts.LANGUAGES}
    goals = {language: texts.of(language).workflow.goal_name for language in texts.LANGUAGES}
    return _Place(
        workspace=root,
        workbench=workbench,
        brief=_document(workbench.notes, brief_name, briefs),
        goal=_document(workbench.notes, goal_name, goals),
    )


def _document(notes: Path, name: str, names: dict[str, str]) -> Path:
    """The file of a document. A default name is that of the language spoken, unless one in another language is there:
    a run is taken up again also when the language was changed in between."""
    if name != names["zh"]:
        return notes / name
    spoken = notes / names[texts.current().language]
    there = [notes / other for other in names.values() if (notes / other).exists()]
    return spoken if spoken.exists() or not there else there[0]


def _put_away(place: _Place, run_dir: str | Path) -> None:
    """Lineage, brief and goal move together, or the next run would go on with half of the old one."""
    archive = place.workbench.notes / "archive"
    Lineage.open(run_dir, place.workspace).archive(archive, extra=[place.brief, place.goal])


def _make(workbench: Workbench) -> None:
    try:
        workbench.ensure()
    except OSError as err:
        if not workbench.external:
            raise
        # A person did not choose this place, so the bare error would not tell why it is written at all.
        words = texts.current().isolation
        raise ValueError(words.no_bench.format(path=workbench.root, error=err.strerror or err)) from err


def _coordinator(said: texts.Texts, told: str, channel: HumanChannel, isolate: bool) -> AgentSpec:
    """The agent of the work step.

    With isolation it has a second worker: what is made in a worktree reaches the main checkout, the next worker and the
    judge only if somebody without a worktree merges it, and the coordinator itself has no hands (docs/decisions).
    """
    words, apart = said.workflow, said.isolation
    if not isolate:
        crew = {"coder": worker(words.worker_description, told)}
        return coordinator(words.coordinator, "", crew, channel=channel)
    crew = {
        "coder": worker(words.worker_description, f"{told}\n\n{apart.worker}", isolate=True),
        "merger": worker(apart.merger_description, apart.merger),
    }
    return coordinator(words.coordinator, apart.coordinator, crew, channel=channel)


def _keep(request: str, place: _Place, channel: HumanChannel, run_dir: str | Path, due: Path) -> bool:
    """Append the words said at this start to the brief; whether a complete brief was changed by them.

    Also while the brief is still missing, if the clarification has begun: its session goes on with a prompt of its
    own, and the words would be lost.
    """
    words = texts.current().workflow
    begun = place.waking or words.clarify in Lineage.open(run_dir, place.workspace).steps
    if not request or not begun or request in _text_of(place.brief):
        return False
    if not place.waking:
        if request == recall_request(run_dir, place.workspace):
            return False  # nothing new: the session that goes on was begun with it
        channel.amend(request, label=words.wake_label)
        return False
    # Before the words: a kill in between costs one derivation, not the words.
    with suppress(OSError):
        due.parent.mkdir(parents=True, exist_ok=True)
        due.touch()
    return channel.amend(request, label=words.wake_label)


def _is_due(due: Path, goal: Path) -> bool:
    """Is the goal to be derived again, and was neither that done since nor the file edited by a person?"""
    try:
        since = due.stat().st_mtime_ns
    except OSError:
        return False
    try:
        return goal.stat().st_mtime_ns <= since
    except OSError:
        return True


def _settling(step: Step, due: Path) -> Step:
    """The step that sets the goal; once the goal is frozen it is due no more, whatever clocks and disks say."""
    freeze = step.gate

    def gate(result: StepResult, ctx: Ctx) -> bool | Awaitable[bool]:
        passed = freeze(result, ctx) if freeze is not None else True
        if passed is True:
            with suppress(OSError):
                due.unlink(missing_ok=True)
        return passed

    return replace(step, gate=gate)


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError):
        return ""


def _work_prompt(words: WorkflowTexts) -> Callable[[Ctx], str]:
    def prompt(ctx: Ctx) -> str:
        parts = [words.work_prompt.format(brief=ctx[words.clarify])]
        if words.set_goal in ctx:
            parts.append(words.work_checks.format(goal=ctx[words.set_goal]))
        return "\n\n".join(parts)

    return prompt


def _work_resume(words: WorkflowTexts, request: str, amended: bool) -> Callable[[Ctx], str]:
    """The words of this wake, and the new checklist: the coordinator's context holds the old one."""

    def prompt(ctx: Ctx) -> str:
        parts = [words.work_resume.format(words=request) if request else words.work_go_on]
        if amended and words.set_goal in ctx:
            parts.append(words.work_new_checks.format(goal=ctx[words.set_goal]))
        return "\n\n---\n\n".join(parts)

    return prompt
