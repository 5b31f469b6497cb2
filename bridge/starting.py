"""Starts runs, starts them again where they were, and buries those whose runner is dead."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import logging
import weakref
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bridge.clock import Clock
from bridge.errors import FencedError, HeldError, LaunchError, SettingsError
from bridge.model import FINAL, News, Person, PlaceRef, RunId, RunRecord, RunStatus
from bridge.payloads import person_of
from bridge.ports import Launcher, Order, Standing, Store
from bridge.settings import Settings, WorkspaceSettings

log = logging.getLogger(__name__)

BURIAL_SECONDS = 10.0
START_PATIENCE_SECONDS = 45.0
"""How long a started runner may take until it holds its lease."""
LOG_LINES = 3

OpenAsks = Callable[[], Awaitable[Sequence[tuple[int, str, str]] | None]]
"""Looks up number of the attempt, id and question of the asks that a run's thread shows as open. None: not our run."""


class WorkspaceBusyError(SettingsError):
    """A shared workspace takes one live run at a time."""


def run_id_of(seed: str, *, length: int = 6) -> RunId:
    """Derive a run's name from what started it: the same start, delivered again, is the same run (DL-1)."""
    digest = hashlib.sha256(seed.encode()).digest()
    return RunId(base64.b32encode(digest).decode().lower().rstrip("=")[:length])


class Starter:
    """Owns the road from a wish to a running runner. One per bot process; all methods may be repeated after a crash."""

    def __init__(
        self, store: Store, launcher: Launcher, settings: Settings, *, store_url: str, owner: str, clock: Clock
    ) -> None:
        self._store, self._launcher, self._settings = store, launcher, settings
        self._store_url, self._owner, self._clock = store_url, owner, clock
        self._watched: dict[RunId, tuple[str, int, float]] = {}
        self._creating = asyncio.Lock()
        self._locks: weakref.WeakValueDictionary[RunId, asyncio.Lock] = weakref.WeakValueDictionary()
        """A run is started, buried or killed by one task at a time; a lock lives as long as somebody waits for it."""

    async def create(
        self,
        *,
        seed: str,
        place: PlaceRef,
        starter: Person,
        request: str,
        workspace: str,
        options: Mapping[str, Any],
    ) -> RunRecord:
        """Note a new run. `launch` starts it.

        Raises:
            SettingsError: no such workspace, or it is busy; nothing was noted.
        """
        name = self._settings.workspace_name(workspace)
        chosen = self._settings.workspaces[name]
        flow = self._settings.flow(str(options.get("flow") or "")) or chosen.flow
        defaults = {"budget": chosen.budget, "judge_can_run": chosen.judge_can_run, "language": chosen.language}
        async with self._creating:  # or two starts in one shared workspace would not see each other
            run, record = await self._named(f"{place.platform}:{seed}", place, starter, request)
            if record is None:
                await self._refuse_busy(name, chosen)
                record = RunRecord(
                    run=run,
                    thread=None,
                    place=place,
                    request=request,
                    workspace=name,
                    folder=str(self._settings.home / "runs" / run),
                    starter=starter,
                    created=self._clock.now(),
                    options={**defaults, **options, "flow": flow},
                )
                await self._store.runs.create(record)
            await self._tell_queued(record)
        return record

    async def _named(self, seed: str, place: PlaceRef, starter: Person, request: str) -> tuple[RunId, RunRecord | None]:
        """Return a start's name and, when it was noted before, its record. A name that another start has is passed."""
        for length in (6, 8, 12):
            run = run_id_of(seed, length=length)
            record = await self._store.runs.record(run)
            if record is None or (record.place, record.starter.id, record.request) == (place, starter.id, request):
                break
        return run, record

    async def launch(self, record: RunRecord, *, by: Person, words: str = "", again: bool = False) -> None:
        """Start a runner for a run. A failure is told in the run's own news, with its reason, and not raised.

        Without `again` only a run that never had a runner is started: a start that is delivered twice must not wake up
        a run that has ended meanwhile (DL-1).

        Raises:
            WorkspaceBusyError: another run works in its shared workspace; nothing was changed.
        """
        async with self._lock(record.run):
            await self._launch(record, by=by, words=words, again=again)

    async def _launch(self, record: RunRecord, *, by: Person, words: str = "", again: bool = False) -> None:
        run = record.run
        standing = await self._store.runs.standing(run)
        if standing is None or standing.owner:
            return
        if again:
            chosen = self._settings.workspaces.get(record.workspace)
            if chosen is not None:  # if it is not set up any more, that is told as the reason of the failure
                await self._refuse_busy(record.workspace, chosen, besides=run)
        elif standing.fence or standing.status not in ("queued", "starting"):
            return
        try:
            await self._tell_queued(record)
            await self._tell(
                run, standing.fence, "starting", attempt=standing.fence + 1, by=person_of(by), words=bool(words)
            )
            await self._store.runs.mark(run, "starting", fence=standing.fence)
        except FencedError:  # a runner has just taken it up
            log.info("run.already_taken", extra={"run": run})
            return
        try:
            await self._launcher.start(await self._order(record, words=words, again=again))
        except (LaunchError, SettingsError, OSError) as err:
            log.warning("run.launch_failed", extra={"run": run, "why": str(err)})
            await self._close(run, standing.fence, "failed", str(err))
        else:
            log.info("run.launched", extra={"run": run, "again": again})

    async def kill(self, record: RunRecord, *, by: Person) -> bool:
        """End a run's processes at once and close its books.

        False: none was found here, and yet somebody holds the run: it died this moment, or runs elsewhere.

        Raises:
            LaunchError: something does not end.
        """
        run = record.run
        async with self._lock(run):
            found = await self._launcher.kill(run, Path(record.folder))
            standing = await self._store.runs.standing(run)
            if standing is None or standing.status in FINAL:
                return True
            # The process is gone for certain, so its number is ours to write under; else we take one of our own.
            fence = standing.fence if found else await self._take_over(run)
            if fence is None:
                return False
            await self._close(run, fence, "ended", "killed", by=person_of(by))
            return True

    async def look_after(self, run: RunId, open_asks: OpenAsks) -> None:
        """Find out whether a live run is what it seems to be; bury it when its runner is dead."""
        standing = await self._store.runs.standing(run)
        if standing is None or standing.owner or standing.status in FINAL or standing.status == "lost":
            self._watched.pop(run, None)
            return
        silent = self._silent(run, standing)
        if silent < self._patience(standing):
            return
        record, asks = await self._store.runs.record(run), await open_asks()
        if record is None or asks is None:
            return
        async with self._lock(run):
            if standing.status == "queued":
                await self._launch(record, by=record.starter)
            elif (fence := await self._take_over(run)) is None:
                return
            elif standing.status == "starting":
                await self._close(run, fence, "failed", f"the runner did not start: {_tail(record)}")
            else:
                await self._bury(run, fence, asks)

    def look_anew(self) -> None:
        """The store was away: what nobody could renew meanwhile says nothing about who is alive."""
        self._watched.clear()

    def _patience(self, standing: Standing) -> float:
        """Seconds for which a run may stand there without a holder."""
        match standing.status:
            case "queued":
                return START_PATIENCE_SECONDS / 3
            case "starting":
                return START_PATIENCE_SECONDS
            case _:
                # A runner renews its lease four times in its length, and so comes back within a quarter of it when
                # the store was away for longer than the lease.
                return self._settings.lease_seconds / 4 + 1

    def _lock(self, run: RunId) -> asyncio.Lock:
        return self._locks.setdefault(run, asyncio.Lock())

    def _silent(self, run: RunId, standing: Standing) -> float:
        """Seconds that we have seen this standing for: our own clock only, never another machine's."""
        status, fence, first = self._watched.get(run, ("", 0, 0.0))
        if (status, fence) != (standing.status, standing.fence):
            first = self._clock.now()
            self._watched[run] = (standing.status, standing.fence, first)
        return self._clock.now() - first

    async def _bury(self, run: RunId, fence: int, open_asks: Sequence[tuple[int, str, str]]) -> None:
        """Note a run as lost, and its open asks as withdrawn."""
        seq = await self._store.events.last(run)
        withdrawn = [
            News(
                seq=seq + 1 + n,
                fence=fence,
                at=self._clock.now(),
                kind="ask",
                text=question,
                payload={"id": ask, "fence": asked_by, "options": [], "state": "withdrawn", "answer": ""},
            )
            for n, (asked_by, ask, question) in enumerate(open_asks)
        ]
        lost = self._news(
            seq + 1 + len(withdrawn), fence, "lost", attempt=fence - 1, silent_s=self._settings.lease_seconds
        )
        await self._store.runs.finish(run, "lost", [*withdrawn, lost], fence=fence)
        log.warning("run.lost", extra={"run": run, "attempt": fence - 1})

    async def _take_over(self, run: RunId) -> int | None:
        """Get a new number, which shuts the old runner out should it still live (R19); None: it came back just now."""
        try:
            return await self._store.runs.acquire(run, owner=self._owner, ttl=BURIAL_SECONDS)
        except HeldError:
            return None

    async def _close(self, run: RunId, fence: int, status: RunStatus, why: str, **facts: Any) -> None:
        seq = await self._store.events.last(run)
        end = self._news(seq + 1, fence, status, why, verdict=None, unverifiable=[], files=[], **facts)
        await self._store.runs.finish(run, status, [end], fence=fence)

    async def _tell_queued(self, record: RunRecord) -> None:
        """Tell the first news of a run, unless it is told: the process that made the record may have died before."""
        said = self._news(
            1,
            0,
            "queued",
            request=record.request,
            by=person_of(record.starter),
            workspace=record.workspace,
            flow=record.options["flow"],
            options=dict(record.options),
        )
        with contextlib.suppress(FencedError):  # a runner has it already
            await self._store.events.append(record.run, [said], fence=0)

    async def _tell(self, run: RunId, fence: int, state: str, **facts: Any) -> None:
        seq = await self._store.events.last(run)
        await self._store.events.append(run, [self._news(seq + 1, fence, state, **facts)], fence=fence)

    def _news(self, seq: int, fence: int, state: str, text: str = "", **facts: Any) -> News:
        return News(
            seq=seq, fence=fence, at=self._clock.now(), kind="run", text=text, payload={"state": state, **facts}
        )

    async def _order(self, record: RunRecord, *, words: str, again: bool) -> Order:
        chosen = self._settings.workspace(record.workspace)
        folder = Path(record.folder)
        workspace = chosen.path / record.run if chosen.fresh else chosen.path
        for path in (folder, workspace):
            path.mkdir(parents=True, exist_ok=True)
        user, password = await self._store.credentials.grant(record.run)
        return Order(
            run=record.run,
            folder=folder,
            workspace=workspace,
            flow=str(record.options["flow"]),
            request=record.request,
            words=words,
            reopen=again,
            language=chosen.language,
            options=dict(record.options),
            store_url=self._store_url,
            store_user=user,
            store_password=password,
            lease_ttl=self._settings.lease_seconds,
        )

    async def _refuse_busy(self, name: str, chosen: WorkspaceSettings, *, besides: RunId | None = None) -> None:
        if chosen.fresh:
            return
        for run in await self._store.runs.live() - {besides}:
            other = await self._store.runs.record(run)
            standing = await self._store.runs.standing(run)
            if other is not None and other.workspace == name and standing is not None and standing.status != "lost":
                raise WorkspaceBusyError(
                    f"workspace {name!r} is in use by run {run}; wait for its end, or use a workspace with fresh = true"
                )


def _tail(record: RunRecord) -> str:
    path = Path(record.folder) / "runner.log"
    with contextlib.suppress(OSError):
        lines = [line for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
        if lines:
            return " / ".join(lines[-LOG_LINES:])[:500]
    return f"see {path}"
