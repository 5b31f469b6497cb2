"""The owner of one attempt: takes the run's lease, hosts the workflow, closes the books (house style 23)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from bridge.commands import Consult
from bridge.errors import FencedError, HeldError, LeaseError, StoreAwayError
from bridge.model import RunStatus
from bridge.ports import Order, Store
from bridge.runner import outcome
from bridge.runner.aside import Aside
from bridge.runner.hands import Hands
from bridge.runner.journal import Journal, written_before
from bridge.runner.making import make_workflow
from bridge.runner.past import Past
from bridge.runner.pump import RETRY, Pump
from bridge.runner.telling import Teller, person_of
from flower import Event, HumanChannel, Runtime, Step, StepResult, Workflow
from flower.workflow.aside import Recent

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

EXIT_DONE, EXIT_FAILED, EXIT_FENCED = 0, 1, 76
"""Exit codes of a runner: the books are closed; the run could not be started; a newer attempt owns it."""

END_GRACE_SECONDS = 20.0
"""How long *end* waits for the flow to end by itself before it is cancelled."""
ORACLE_SECONDS = 120.0
"""How long the end of a run waits for open side questions (behaviour 8)."""
COMMAND_WAIT_SECONDS = 20.0
START_PATIENCE_SECONDS = 60.0
TOLD_TO_STOP = "the runner was told to stop"


async def host(order: Order, store: Store) -> int:
    """Run one attempt of the order's run, from lease to closed books. Returns the exit code of the process.

    SIGTERM ends the attempt in good order: the run is noted as `lost`, with the reason, and can be continued.
    """
    owner = f"runner:{os.uname().nodename}:{os.getpid()}:{time.time_ns()}"
    try:
        fence = await _acquire(order, store, owner)
    except (LeaseError, LookupError) as err:
        log.warning("runner.not_ours", extra={"run": order.run, "why": str(err)})
        return EXIT_FENCED
    try:
        return await Attempt(order, store, owner=owner, fence=fence).run()
    except* FencedError:
        # Somebody newer owns the run: say nothing more, touch nothing, leave (rulings R19, infra facts 7.3).
        log.warning("runner.fenced", extra={"run": order.run, "fence": fence})
    return EXIT_FENCED


async def _acquire(order: Order, store: Store, owner: str) -> int:
    """Take the lease; wait for a predecessor's to run out, and for a store that is away."""
    give_up = time.monotonic() + START_PATIENCE_SECONDS + order.lease_ttl
    while True:
        try:
            return await store.runs.acquire(order.run, owner=owner, ttl=order.lease_ttl, reopen=order.reopen)
        except (HeldError, StoreAwayError):
            if time.monotonic() > give_up:
                raise
            await asyncio.sleep(1.0)


async def patiently(call: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Await a call of the store, again and again while the store is away (product 2, rule 6)."""
    tries = 0
    while True:
        try:
            return await call(*args, **kwargs)
        except StoreAwayError:
            await asyncio.sleep(RETRY[min(tries, len(RETRY) - 1)])
            tries += 1


@dataclass(slots=True)
class Work:
    """The flower side of an attempt."""

    workflow: Workflow
    channel: HumanChannel
    runtime: Runtime
    hands: Hands
    recent: Recent


class Attempt:
    """One attempt of one run. Everything here lives on the loop's thread, but for the journal's writer."""

    def __init__(self, order: Order, store: Store, *, owner: str, fence: int) -> None:
        self._order, self._store, self._owner, self._fence = order, store, owner, fence
        self._run_dir = order.folder / "flower"
        self._loop = asyncio.get_running_loop()
        self._term = asyncio.Event()
        self._asides: set[asyncio.Task[None]] = set()
        self._work: Work | None = None
        self._crash = ""
        self._pump: Pump
        self._teller: Teller
        self._group: asyncio.TaskGroup

    async def run(self) -> int:
        """Run it.

        Raises:
            FencedError: in a group, when a newer attempt owns the run.
        """
        self._loop.add_signal_handler(signal.SIGTERM, self._term.set)
        past, last = await self._past()
        journal = Journal(
            self._order.folder, self._fence, on_written=lambda: self._pump.written(), on_trouble=self._disk
        )
        self._pump = Pump(journal, self._store.events, self._order.run, fence=self._fence)
        self._teller = Teller(journal.append, fence=self._fence, after=last)
        try:
            async with self._books() as self._group:
                self._inherit(past, last)
                ended = await self._attempt(past)
                await self._finish(ended)
        finally:
            self._teller.silent = True
            if self._work is not None:
                self._work.runtime.close()
            journal.close()
        return EXIT_DONE if self._work is not None else EXIT_FAILED

    @contextlib.asynccontextmanager
    async def _books(self) -> AsyncIterator[asyncio.TaskGroup]:
        """Keep the lease and hand in news for as long as the body runs."""
        async with asyncio.TaskGroup() as group:
            keeping = [
                group.create_task(self._unless_fenced(self._beat()), name="runner.beat"),
                group.create_task(self._unless_fenced(self._pump.run()), name="runner.pump"),
            ]
            try:
                yield group
            finally:
                for task in keeping:
                    task.cancel()

    async def _unless_fenced(self, work: Awaitable[None]) -> None:
        try:
            await work
        except FencedError:
            self._teller.silent = True  # at once: what ends now because of it must not be written either
            raise

    async def _beat(self) -> None:
        while True:
            with contextlib.suppress(StoreAwayError):  # only a newer number shuts us out, not a silent store
                await self._store.runs.renew(
                    self._order.run, owner=self._owner, fence=self._fence, ttl=self._order.lease_ttl
                )
            await asyncio.sleep(self._order.lease_ttl / 4)

    # -- before the start -----------------------------------------------------------------------------------------

    async def _past(self) -> tuple[Past, int]:
        """Fold the run's history: the earlier attempts' logs where they are, and what the line has beyond them."""
        past, seen = Past(), 0
        for item in written_before(self._order.folder, before=self._fence):
            if item.seq > seen:
                past.take(item)
                seen = item.seq
        while batch := await patiently(self._store.events.read, self._order.run, after=seen):
            for item in batch:
                past.take(item)
            seen = batch[-1].seq
        return past, await patiently(self._store.events.last, self._order.run)

    def _inherit(self, past: Past, last: int) -> None:
        """Hand on what an earlier attempt wrote and could not hand in, and close the asks that it left open (R1)."""
        for item in written_before(self._order.folder, before=self._fence, only_unacknowledged=True):
            if item.seq > last:
                self._teller.repeat(item)
        for asked in past.open_asks.values():
            self._teller.adopt(asked)
        self._teller.withdraw((), everything=True)

    def _assemble(self) -> Work:
        order = self._order
        workflow = make_workflow(order, run_dir=self._run_dir)
        channel = workflow.channel = workflow.channel or HumanChannel()
        runtime = Runtime(workspace=order.workspace, run_dir=self._run_dir, workbench=workflow.workbench or False)
        budget = order.options.get("budget")
        runtime.budget_usd = None if budget is None else float(str(budget))
        recent = Recent()
        aside = Aside(
            self._teller, recent, workspace=order.workspace, run_dir=self._run_dir, workbench=workflow.workbench
        )

        def consult(command: Consult) -> None:
            self._beside(aside.answer(command), f"aside:{command.id}")

        hands = Hands(
            channel,
            runtime,
            self._teller,
            fence=self._fence,
            consult=consult,
            later=self._loop.call_later,
            on_held=lambda held: self._beside(self._mark("held" if held else "running"), "mark"),
        )
        return Work(workflow, channel, runtime, hands, recent)

    def _beside(self, work: Awaitable[None], name: str) -> None:
        async def carry() -> None:
            await work

        task = self._group.create_task(carry(), name=f"runner.{name}")
        self._asides.add(task)
        task.add_done_callback(self._asides.discard)

    async def _mark(self, status: RunStatus) -> None:
        with contextlib.suppress(StoreAwayError):  # the news say it too; the mark only makes it quick to look up
            await self._store.runs.mark(self._order.run, status, fence=self._fence)

    # -- while it runs --------------------------------------------------------------------------------------------

    async def _attempt(self, past: Past) -> outcome.Outcome:
        try:
            work = self._work = self._assemble()
        except Exception as err:
            log.exception("runner.cannot_start", extra={"run": self._order.run})
            return outcome.Outcome(status="failed", reason=str(err) or type(err).__name__)
        before = outcome.snapshot(self._order.workspace)
        self._teller.run("working", attempt=self._fence, resumed=past.attempts > 0)
        flow = self._group.create_task(self._flow(work), name="runner.flow")
        hearing = self._group.create_task(self._hear(work, past, flow), name="runner.hear")
        stopping = self._group.create_task(self._wait_for_term(work, flow), name="runner.term")
        try:
            await asyncio.wait({flow})
            await self._close_asides()
        finally:
            hearing.cancel()
            stopping.cancel()
        work.hands.finished()
        return self._outcome(work, before)

    async def _flow(self, work: Work) -> None:
        names = {step.name for step in work.workflow.steps}

        def on_event(event: Event) -> None:
            current = work.runtime.current
            label = current.step if current is not None else ""
            work.hands.pending.see(event.kind, event.tool, event.payload)
            work.recent(event)
            judging = bool(label) and label.split("#")[0] not in names
            self._teller.event(event, label=label, judging=judging, until=_until(event, work.channel))

        def on_step(step: Step, result: StepResult) -> None:
            self._teller.step_end(step.name, result)

        try:
            await work.workflow.run(work.runtime, on_event=on_event, on_step=on_step)
        except asyncio.CancelledError:
            work.runtime.rescue()
            raise
        except Exception as err:  # boundary: one run's flow; its end is told, not raised
            log.exception("runner.flow_failed", extra={"run": self._order.run})
            self._crash = f"{type(err).__name__}: {err}"

    async def _hear(self, work: Work, past: Past, flow: asyncio.Task[None]) -> None:
        for command, text in past.unread.items():  # words that an earlier attempt took and no agent read (ST-4)
            self._teller.saying = command
            work.channel.send(text)
        self._teller.saying = ""
        position = past.position
        while True:
            orders = await patiently(
                self._store.commands.read, self._order.run, after=position, wait=COMMAND_WAIT_SECONDS
            )
            for each in orders:
                position = each.position
                if each.command.id in past.commands:  # the same act twice has one effect (DL-1)
                    continue
                past.commands.add(each.command.id)
                self._teller.receipt(each.command, "taken", position=position)
                try:
                    work.hands.carry_out(each.command)
                except Exception as err:  # boundary: one bad command must not end the run
                    log.exception("command.failed", extra={"run": self._order.run, "command": each.command.id})
                    self._teller.receipt(each.command, "refused", f"{type(err).__name__}: {err}")
            if work.hands.ended_by is not None:
                self._loop.call_later(END_GRACE_SECONDS, flow.cancel)

    async def _wait_for_term(self, work: Work, flow: asyncio.Task[None]) -> None:
        await self._term.wait()
        # Written down before anything is waited for: we may be killed while we wait (ST-1).
        self._teller.run("stopping", TOLD_TO_STOP, attempt=self._fence)
        work.runtime.rescue()
        flow.cancel()

    def _disk(self, trouble: str) -> None:
        """Hold the run when its log cannot be written (rulings R9). Called on the writer's thread."""
        log.error("runner.disk", extra={"run": self._order.run, "trouble": trouble or "over"})
        if trouble and self._work is not None:
            self._loop.call_soon_threadsafe(self._work.hands.hold_for, f"a full disk ({trouble})")

    # -- the end --------------------------------------------------------------------------------------------------

    async def _close_asides(self) -> None:
        if not self._asides:
            return
        _, late = await asyncio.wait(set(self._asides), timeout=ORACLE_SECONDS)
        for task in late:
            task.cancel()

    def _outcome(self, work: Work, before: dict[str, tuple[int, int]] | None) -> outcome.Outcome:
        ctx: dict[str, Any] = work.workflow.context
        status, reason = self._status(work, ctx)
        verdict, goal = ctx.get("_verdict"), ctx.get("_goal")
        results: dict[str, StepResult] = ctx.get("_results") or {}
        last = next((results[s.name] for s in reversed(work.workflow.steps) if s.name in results), None)
        return outcome.Outcome(
            status=status,
            reason=reason,
            verdict=None if verdict is None else outcome.verdict_of(verdict),
            unverifiable=() if goal is None else tuple(goal.unverifiable),
            text="" if last is None else last.text,
            steps=tuple(
                {"step": r.step, "ok": r.ok, "cost_usd": r.cost_usd, "num_turns": r.num_turns} for r in results.values()
            ),
            cost_usd=outcome.cost_of(outcome.rows_of(work.runtime.manifest_path)),
            aside_usd=outcome.cost_of(outcome.rows_of(self._run_dir / "aside" / "manifest.json")),
            files=outcome.changed(before, outcome.snapshot(self._order.workspace)),
        )

    def _status(self, work: Work, ctx: dict[str, Any]) -> tuple[RunStatus, str]:
        if self._term.is_set():
            return "lost", TOLD_TO_STOP
        if work.hands.ended_by is not None:
            return "ended", work.hands.end_reason
        if self._crash:
            return "failed", self._crash
        return outcome.status_of(ctx)

    async def _finish(self, ended: outcome.Outcome) -> None:
        """Tell the end, hand in everything, set the status and give the lease up. Waits for a store that is away."""
        self._teller.withdraw((), everything=True)
        await self._pump.caught_up(self._teller.seq)
        by = self._work.hands.ended_by if self._work is not None else None
        end = self._teller.run(
            ended.status,
            ended.reason,
            **outcome.payload_of(ended),
            attempt=self._fence,
            **({} if by is None else {"by": person_of(by)}),
        )
        await patiently(self._store.runs.finish, self._order.run, ended.status, [end], fence=self._fence)


def _until(event: Event, channel: HumanChannel) -> float | None:
    if event.kind != "ask" or channel.timeout_s is None:
        return None
    asked_at = event.payload.get("asked_at") or time.time()
    return float(asked_at + channel.timeout_s)
