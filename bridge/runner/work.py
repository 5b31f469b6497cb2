"""The flower side of an attempt: the workflow with everything that it needs, wired to the teller and the hands."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bridge.commands import Consult
from bridge.model import RunStatus
from bridge.ports import Order
from bridge.runner import outcome
from bridge.runner.aside import Aside
from bridge.runner.hands import Hands
from bridge.runner.making import make_workflow, plugins_of
from bridge.runner.telling import Teller
from bridge.texts import runner as catalogue
from flower import Event, HumanChannel, Runtime, Step, StepResult, Workflow
from flower.core.manifest import spent_in
from flower.workflow.aside import Recent, ask_aside

log = logging.getLogger(__name__)

Consults = Callable[[Aside, Consult], None]


@dataclass(slots=True)
class Work:
    """One workflow and its runtime. `run` runs it; the owner closes it."""

    workflow: Workflow
    channel: HumanChannel
    runtime: Runtime
    hands: Hands
    teller: Teller
    recent: Recent
    crash: str = ""
    """What the flow raised; a failure of an agent is in its results."""

    async def run(self) -> None:
        """Run the workflow to its end. Raises nothing but a cancellation, which leaves the books closed."""
        try:
            await self.workflow.run(self.runtime, on_event=self.hear, on_step=self._on_step)
        except asyncio.CancelledError:
            self.runtime.rescue()
            raise
        except (Exception, SystemExit) as err:  # boundary: one run's flow; its end is told, not raised
            log.exception("runner.flow_failed")
            self.crash = f"{type(err).__name__}: {err}"

    def send_again(self, unread: Mapping[str, str]) -> None:
        """Put words into the inbox that an earlier attempt took and no agent read (ST-4)."""
        for command, text in unread.items():
            self.teller.saying = command
            kept, self.channel.amend_path = self.channel.amend_path, _unless_there(self.channel.amend_path, text)
            self.channel.send(text)
            self.channel.amend_path = kept
        self.teller.saying = ""

    def outcome(self, status: RunStatus, reason: str, before: Mapping[str, tuple[int, int]] | None) -> outcome.Outcome:
        """Return how it ended. Reads the workspace and the books: blocks for as long as that takes.

        Args:
            before: the workspace's files when the attempt began.
        """
        ctx: dict[str, Any] = self.workflow.context
        verdict, goal = ctx.get("_verdict"), ctx.get("_goal")
        results: dict[str, StepResult] = ctx.get("_results") or {}
        last = next((results[s.name] for s in reversed(self.workflow.steps) if s.name in results), None)
        return outcome.Outcome(
            status=status,
            reason=reason,
            verdict=None if verdict is None else outcome.verdict_of(verdict),
            unverifiable=() if goal is None else tuple(goal.unverifiable),
            text="" if last is None else last.text,
            steps=tuple(
                {"step": r.step, "ok": r.ok, "cost_usd": r.cost_usd, "num_turns": r.num_turns} for r in results.values()
            ),
            cost_usd=outcome.cost_of(self.runtime.manifest_path),
            aside_usd=outcome.cost_of(aside_books(self.runtime.run_dir)),
            files=outcome.changed(before, outcome.snapshot(self.runtime.workspace)),
        )

    def hear(self, event: Event) -> None:
        """Take one event of flower's. On the loop's thread; neither blocks nor raises."""
        current = self.runtime.current
        label = current.step if current is not None else ""
        self.hands.pending.see(event.kind, event.tool, event.payload)
        self.recent(event)
        if event.kind in ("retry", "step"):  # the attempt before is over, and with it what its calls waited for
            self.hands.close_asks()
        names = {step.name for step in self.workflow.steps}
        judging = bool(label) and label.split("#")[0] not in names
        self.teller.event(event, label=label, judging=judging, until=_until(event, self.channel))

    def _on_step(self, step: Step, result: StepResult) -> None:
        self.hands.close_asks()
        self.teller.step_end(step.name, result)


def assemble(
    order: Order,
    teller: Teller,
    *,
    fence: int,
    questions: Mapping[tuple[int, str], str],
    consult: Consults,
    on_held: Callable[[bool], None],
) -> Work:
    """Build the work of an order.

    Args:
        fence: number of this attempt.
        questions: what earlier attempts asked.
        consult: starts an oracle question as a task; must return at once.
        on_held: told when the run comes to stand still, and when it goes on.

    Raises:
        Exception: the flow or its places cannot be made; says why.
    """
    said, run_dir = catalogue.of(order.language), flower_folder(order)
    workflow = make_workflow(order, run_dir=run_dir)
    plugins = plugins_of(order)
    channel = workflow.channel = workflow.channel or HumanChannel()
    runtime = Runtime(workspace=order.workspace, run_dir=run_dir, workbench=workflow.workbench or False)
    runtime.plugin_dirs = plugins
    budget = order.options.get("budget")
    runtime.spent_before = spent_in(run_dir)
    runtime.budget_usd = None if budget is None else float(str(budget))
    recent = Recent()
    ask = functools.partial(
        ask_aside, workspace=order.workspace, run_dir=run_dir, recent=recent, workbench=workflow.workbench
    )
    aside = Aside(teller, ask, texts=said)
    hands = Hands(
        channel,
        runtime,
        teller,
        fence=fence,
        questions=questions,
        consult=lambda command: consult(aside, command),
        later=asyncio.get_running_loop().call_later,
        on_held=on_held,
        texts=said,
    )
    work = Work(workflow, channel, runtime, hands, teller, recent)
    channel.on_event = _both(channel.on_event, work.hear)
    return work


def flower_folder(order: Order) -> Path:
    """Return flower's `run_dir` of a run."""
    return order.folder / "flower"


def aside_books(run_dir: Path) -> Path:
    """Return the accounts of a run's oracle questions."""
    return run_dir / "aside" / "manifest.json"


def _both(first: Callable[[Event], None] | None, second: Callable[[Event], None]) -> Callable[[Event], None]:
    """Let a flow keep the sink that it gave its channel itself."""
    if first is None:
        return second

    def tell(event: Event) -> None:
        second(event)
        first(event)

    return tell


def _until(event: Event, channel: HumanChannel) -> float | None:
    """Return when a question times out, Unix seconds."""
    if event.kind != "ask" or channel.timeout_s is None:
        return None
    asked_at = event.payload.get("asked_at") or time.time()
    return float(asked_at + channel.timeout_s)


def _unless_there(brief: Path | None, text: str) -> Path | None:
    """Return the file to amend, but None where the words stand in it already."""
    if brief is not None:
        with contextlib.suppress(OSError, ValueError):
            if text in brief.read_text(encoding="utf-8"):
                return None
    return brief
