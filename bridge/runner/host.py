"""The owner of one attempt: takes the run's lease, hosts the workflow, closes the books (house style 23)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable

from bridge.commands import Consult
from bridge.errors import FencedError, HeldError, LeaseError, StoreAwayError, StoreRefusedError
from bridge.model import News, RunStatus
from bridge.payloads import person_of
from bridge.ports import Order, Store
from bridge.runner import outcome
from bridge.runner.aside import Aside
from bridge.runner.hearing import Hearing
from bridge.runner.journal import Journal, written_before
from bridge.runner.past import Past, never_handed_in, past_of
from bridge.runner.patience import patiently
from bridge.runner.pump import Pump
from bridge.runner.telling import Teller
from bridge.runner.work import Work, aside_books, assemble, flower_folder
from bridge.texts import runner as catalogue

log = logging.getLogger(__name__)

EXIT_DONE, EXIT_FAILED, EXIT_AWAY, EXIT_FENCED = 0, 1, 75, 76
"""Exit codes of a runner (docs/operations.md): the books are closed; the run could not be started; told to stop while
the store was away, so what was not handed in is on the disk; another attempt owns the run, or it has ended."""

END_GRACE_SECONDS = 20.0
"""How long *end* waits for the flow to end by itself before it is cancelled."""
STOP_GRACE_SECONDS = 10.0
"""How long a runner that was told to stop waits for a store that is away."""
ORACLE_SECONDS = 120.0
"""How long the end of a run waits for open side questions (behaviour 8)."""
START_PATIENCE_SECONDS = 60.0
LOOK_SECONDS = 1.0


async def host(order: Order, store: Store) -> int:
    """Run one attempt of the order's run, from lease to closed books. Returns the exit code of the process.

    SIGTERM ends the attempt in good order: the run is noted as `lost`, with the reason, and can be continued.

    Raises:
        StoreAwayError, StoreRefusedError: the store could not be used for so long that nothing was begun.
    """
    owner = f"runner:{os.uname().nodename}:{os.getpid()}:{time.time_ns()}"
    try:
        fence = await _acquire(order, store, owner)
    except (LeaseError, LookupError) as err:
        log.warning("runner.not_ours", extra={"run": order.run, "why": str(err)})
        return EXIT_FENCED
    code = EXIT_FENCED
    try:
        return await Attempt(order, store, owner=owner, fence=fence).run()
    except* FencedError:
        # Somebody newer owns the run: say nothing more, touch nothing, leave (rulings R19, infra facts 7.3).
        log.warning("runner.fenced", extra={"run": order.run, "fence": fence})
    except* _AwayError:
        log.warning("runner.left_while_store_away", extra={"run": order.run, "fence": fence})
        code = EXIT_AWAY
    return code


class _AwayError(Exception):
    """We were told to stop, and the store stayed away."""


async def _acquire(order: Order, store: Store, owner: str) -> int:
    """Take the lease; wait for a predecessor's to run out, and for a store that is away."""
    give_up = time.monotonic() + START_PATIENCE_SECONDS + order.lease_ttl
    while True:
        try:
            return await store.runs.acquire(order.run, owner=owner, ttl=order.lease_ttl, reopen=order.reopen)
        except (HeldError, StoreAwayError):
            if time.monotonic() > give_up:
                raise
            await asyncio.sleep(LOOK_SECONDS)


class Attempt:
    """One attempt of one run. Everything here lives on the loop's thread, but for the journal's writer."""

    def __init__(self, order: Order, store: Store, *, owner: str, fence: int) -> None:
        self._order, self._store, self._owner, self._fence = order, store, owner, fence
        self._texts = catalogue.of(order.language)
        self._loop = asyncio.get_running_loop()
        self._term = asyncio.Event()
        self._bounds: list[asyncio.Timeout] = []
        """Of the waits that a SIGTERM shortens."""
        self._asides: set[asyncio.Task[None]] = set()
        self._closing = False
        self._work: Work | None = None
        self._disk_trouble = ""
        self._status: RunStatus = "running"
        self._marked = asyncio.Event()
        self._pump: Pump
        self._pumping: asyncio.Task[None]
        self._teller: Teller
        self._group: asyncio.TaskGroup

    async def run(self) -> int:
        """Run it.

        Raises:
            FencedError, _AwayError: alone or in a group.
        """
        self._loop.add_signal_handler(signal.SIGTERM, self._told_to_stop)
        try:
            return await self._run()
        finally:
            self._loop.remove_signal_handler(signal.SIGTERM)

    async def _run(self) -> int:
        async with self._bounded_when_stopped():
            past, leftovers, last = await self._past()
        try:
            journal = Journal(
                self._order.folder, self._fence, on_written=lambda: self._pump.written(), on_trouble=self._disk
            )
        except OSError as err:
            return await self._cannot_write(err, last)
        self._pump = Pump(journal, self._store.events, self._order.run, fence=self._fence, after=last)
        self._teller = Teller(journal.append, fence=self._fence, after=last)
        try:
            async with self._books() as self._group:
                self._inherit(past, leftovers)
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
            beating = group.create_task(self._unless_fenced(self._beat), name="runner.beat")
            self._pumping = group.create_task(self._unless_fenced(self._pump.run), name="runner.pump")
            try:
                yield group
            finally:
                beating.cancel()
                self._pumping.cancel()

    async def _unless_fenced(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except FencedError:
            self._teller.silent = True  # at once: what ends now because of it must not be written either
            raise

    async def _beat(self) -> None:
        while True:
            # Only a newer number shuts us out, not a store that is silent or has forgotten its users.
            with contextlib.suppress(StoreAwayError, StoreRefusedError):
                await self._store.runs.renew(
                    self._order.run, owner=self._owner, fence=self._fence, ttl=self._order.lease_ttl
                )
            await asyncio.sleep(self._order.lease_ttl / 4)

    # -- told to stop ---------------------------------------------------------------------------------------------

    def _told_to_stop(self) -> None:
        if self._term.is_set():
            return
        self._term.set()
        for bound in self._bounds:
            bound.reschedule(self._loop.time() + STOP_GRACE_SECONDS)

    @contextlib.asynccontextmanager
    async def _bounded_when_stopped(self) -> AsyncIterator[None]:
        """Wait inside for as long as it takes, but after a SIGTERM for a few seconds only.

        Raises:
            _AwayError: these were over.
        """
        bound = asyncio.timeout(STOP_GRACE_SECONDS if self._term.is_set() else None)
        self._bounds.append(bound)
        try:
            async with bound:
                yield
        except TimeoutError:
            if bound.expired():
                raise _AwayError from None
            raise
        finally:
            self._bounds.remove(bound)

    # -- before the start -----------------------------------------------------------------------------------------

    async def _past(self) -> tuple[Past, list[News], int]:
        """Return what the earlier attempts did, what of it never came into the line, and where the line ends.

        Their logs are read where they are (the same machine, a shared volume); the line, from where it begins.
        """
        line: list[News] = []
        while batch := await patiently(self._store.events.read, self._order.run, after=line[-1].seq if line else 0):
            line += batch
        last = await patiently(self._store.events.last, self._order.run)
        logs = list(written_before(self._order.folder, before=self._fence))
        unsure = written_before(self._order.folder, before=self._fence, only_unacknowledged=True)
        return past_of([*logs, *line]), never_handed_in(unsure, line), last

    def _inherit(self, past: Past, leftovers: list[News]) -> None:
        """Hand on what an earlier attempt wrote and could not hand in, and close the asks that it left open (R1)."""
        for item in leftovers:
            self._teller.repeat(item)
        for asked in past.open_asks.values():
            self._teller.adopt(asked)
        self._teller.withdraw()

    async def _cannot_write(self, err: OSError, last: int) -> int:
        """Say in the line that there is no place for the log, and end."""
        log.error("runner.no_log", extra={"run": self._order.run, "why": str(err)})
        teller = Teller(lambda _: None, fence=self._fence, after=last)
        trouble = self._texts.full_disk.format(trouble=f"{self._order.folder}: {err.strerror or err}")
        end = teller.run("failed", trouble, attempt=self._fence)
        async with self._bounded_when_stopped():
            await patiently(self._store.runs.finish, self._order.run, "failed", [end], fence=self._fence)
        return EXIT_FAILED

    # -- while it runs --------------------------------------------------------------------------------------------

    async def _attempt(self, past: Past) -> outcome.Outcome:
        try:
            work = self._work = self._assemble(past)
        except (Exception, SystemExit) as err:  # boundary: whatever a flow raises while it is made is how the run ends
            log.exception("runner.cannot_start", extra={"run": self._order.run})
            run_dir = flower_folder(self._order)
            return outcome.Outcome(
                status="failed",
                reason=str(err) or type(err).__name__,
                cost_usd=outcome.cost_of(run_dir / "manifest.json"),
                aside_usd=outcome.cost_of(aside_books(run_dir)),
            )
        before = await asyncio.to_thread(outcome.snapshot, self._order.workspace)
        self._teller.run("working", attempt=self._fence, resumed=past.attempts > 0)
        hearing = Hearing(self._store.commands, self._order.run, work.hands, self._teller, past, texts=self._texts)
        work.send_again(past.unread)
        await hearing.backlog()  # a stop that was pressed while we started comes before the first step
        flow = self._group.create_task(work.run(), name="runner.flow")
        helpers = [
            self._group.create_task(hearing.listen(), name="runner.hear"),
            self._group.create_task(self._end_in_time(work, flow), name="runner.end"),
            self._group.create_task(self._stop_in_order(work, flow), name="runner.stop"),
            self._group.create_task(self._unless_fenced(self._mark), name="runner.mark"),
        ]
        if self._disk_trouble:
            self._hold_for_disk()
        try:
            await asyncio.wait({flow})
            await self._close_asides()
        finally:
            for task in helpers:
                task.cancel()
        await asyncio.wait(helpers)
        status, reason = self._how_it_ended(work, flow)
        self._closing = True
        if status != "lost":  # else the next attempt hears it
            await hearing.rest()
        work.hands.finished(over=status != "lost")
        return await asyncio.to_thread(work.outcome, status, reason, before)

    def _assemble(self, past: Past) -> Work:
        def on_held(held: bool) -> None:
            self._status = "held" if held else "running"
            self._marked.set()

        return assemble(
            self._order,
            self._teller,
            fence=self._fence,
            questions=past.questions,
            consult=self._consult,
            on_held=on_held,
        )

    def _consult(self, aside: Aside, command: Consult) -> None:
        if self._closing and self._work is not None:
            self._work.hands.refuse(command, self._texts.oracle_over)
            return
        task = self._group.create_task(aside.answer(command), name=f"runner.aside:{command.id}")
        self._asides.add(task)
        task.add_done_callback(self._asides.discard)

    async def _mark(self) -> None:
        """Keep the run's status up to date: the news say it too, the mark makes it quick to look up."""
        while True:
            await self._marked.wait()
            self._marked.clear()
            await patiently(self._store.runs.mark, self._order.run, self._status, fence=self._fence)

    async def _end_in_time(self, work: Work, flow: asyncio.Task[None]) -> None:
        """See to it that a run which a person ends does end, whatever its flow does."""
        await work.hands.ended.wait()
        await asyncio.wait({flow}, timeout=END_GRACE_SECONDS)
        self._leave(flow)

    async def _stop_in_order(self, work: Work, flow: asyncio.Task[None]) -> None:
        await self._term.wait()
        # Written down before anything is waited for: we may be killed while we wait (ST-1).
        self._teller.run("stopping", self._texts.told_to_stop, attempt=self._fence)
        work.runtime.rescue()
        self._leave(flow)

    def _leave(self, flow: asyncio.Task[None]) -> None:
        """Wait neither for the flow nor for what is asked beside it."""
        flow.cancel()
        for task in self._asides:
            task.cancel()

    def _disk(self, trouble: str) -> None:
        """Hold the run when its log cannot be written (rulings R9). Called on the writer's thread."""
        log.error("runner.disk", extra={"run": self._order.run, "trouble": trouble or "over"})
        self._disk_trouble = trouble
        if trouble:
            with contextlib.suppress(RuntimeError):  # a closed loop runs nothing that could be held
                self._loop.call_soon_threadsafe(self._hold_for_disk)

    def _hold_for_disk(self) -> None:
        if self._work is not None and self._disk_trouble:
            self._work.hands.hold_for(self._texts.full_disk.format(trouble=self._disk_trouble))

    # -- the end --------------------------------------------------------------------------------------------------

    async def _close_asides(self) -> None:
        """Wait for open side questions, with a bound; what is open then is told as failed."""
        until = self._loop.time() + ORACLE_SECONDS
        while self._asides and (left := until - self._loop.time()) > 0:
            if self._term.is_set():
                break
            await asyncio.wait(set(self._asides), timeout=left)
        late = set(self._asides)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late)

    def _how_it_ended(self, work: Work, flow: asyncio.Task[None]) -> tuple[RunStatus, str]:
        if work.crash:
            by_itself: tuple[RunStatus, str] = "failed", work.crash
        elif flow.cancelled():
            by_itself = "failed", "the flow cancelled itself"
        else:
            by_itself = outcome.status_of(work.workflow.context)
        if by_itself[0] == "done":  # before anybody's wish to end it came true
            return by_itself
        if work.hands.ended_by is not None:
            return "ended", work.hands.end_reason
        if self._term.is_set() and flow.cancelled():
            return "lost", self._texts.told_to_stop
        return by_itself

    async def _finish(self, ended: outcome.Outcome) -> None:
        """Tell the end, hand in everything, set the status and give the lease up. Waits for a store that is away.

        Raises:
            _AwayError: we were told to stop, and the store stays away. The end is on the disk.
        """
        self._teller.withdraw()
        away = False
        try:
            async with self._bounded_when_stopped():
                await self._pump.caught_up(self._teller.seq)
        except _AwayError:
            away = True
        # The last news goes in together with the status, and not by the pump: else a crash between the two would let
        # a run that has ended look like one that was lost.
        self._pumping.cancel()
        await asyncio.wait({self._pumping})
        by = self._work.hands.ended_by if self._work is not None and ended.status == "ended" else None
        who = {} if by is None else {"by": person_of(by)}
        end = self._teller.run(ended.status, ended.reason, **outcome.payload_of(ended), attempt=self._fence, **who)
        if away:
            raise _AwayError
        async with self._bounded_when_stopped():
            await self._give_up(ended.status, end)

    async def _give_up(self, status: RunStatus, end: News) -> None:
        while True:
            try:
                return await patiently(self._store.runs.finish, self._order.run, status, [end], fence=self._fence)
            except ValueError:  # the line lost its newest news in a power cut; we have them
                log.warning("runner.line_lost_news", extra={"run": self._order.run})
                await self._pump.again()
