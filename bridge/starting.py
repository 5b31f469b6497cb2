"""Starts runs, starts them again where they were, and buries those whose runner is dead."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bridge.clock import Clock
from bridge.errors import HeldError, LaunchError, SettingsError
from bridge.model import FINAL, News, Person, PlaceRef, RunId, RunRecord, RunStatus
from bridge.ports import Launcher, Order, Standing, Store
from bridge.settings import Settings, WorkspaceSettings

log = logging.getLogger(__name__)

BURIAL_SECONDS = 10.0
START_PATIENCE_SECONDS = 45.0
"""How long a started runner may take until it holds its lease."""
LOG_LINES = 3


class WorkspaceBusyError(SettingsError):
    """A shared workspace takes one live run at a time."""


def run_id_of(seed: str, *, length: int = 6) -> RunId:
    """Derive a run's name from what started it: the same start, delivered again, is the same run (DL-1)."""
    digest = hashlib.sha256(seed.encode()).digest()
    return RunId(base64.b32encode(digest).decode().lower().rstrip("=")[:length])


def person(who: Person) -> dict[str, str]:
    """Return a person as it stands in payloads (docs/wire.md)."""
    return {"id": str(who.id), "name": who.name}


class Starter:
    """Owns the road from a wish to a running runner. One per bot process; all methods may be repeated after a crash."""

    def __init__(
        self, store: Store, launcher: Launcher, settings: Settings, *, store_url: str, owner: str, clock: Clock
    ) -> None:
        self._store, self._launcher, self._settings = store, launcher, settings
        self._store_url, self._owner, self._clock = store_url, owner, clock
        self._watched: dict[RunId, tuple[str, int, float]] = {}

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
        run = run_id_of(f"{place.platform}:{seed}")
        if (known := await self._store.runs.record(run)) is not None:
            return known
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
            options={"budget": chosen.budget, "judge_can_run": chosen.judge_can_run, **options, "flow": flow},
        )
        await self._store.runs.create(record)
        queued = self._news(
            1,
            0,
            "queued",
            request=request,
            by=person(starter),
            workspace=name,
            flow=flow,
            options=dict(record.options),
        )
        await self._store.events.append(run, [queued], fence=0)
        return record

    async def launch(self, record: RunRecord, *, by: Person, words: str = "", again: bool = False) -> None:
        """Start a runner for a run. A failure is told in the run's own news, with its reason, and not raised."""
        run = record.run
        standing = await self._store.runs.standing(run)
        if standing is None or (standing.status in ("starting", "running", "held") and standing.owner):
            return
        await self._tell(run, standing.fence, "starting", attempt=standing.fence + 1, by=person(by), words=bool(words))
        await self._store.runs.mark(run, "starting", fence=standing.fence)
        try:
            await self._launcher.start(await self._order(record, words=words, again=again))
        except (LaunchError, SettingsError, OSError) as err:
            log.warning("run.launch_failed", extra={"run": run, "why": str(err)})
            await self._close(run, standing.fence, "failed", str(err))
        else:
            log.info("run.launched", extra={"run": run, "again": again})

    async def kill(self, record: RunRecord, *, by: Person) -> bool:
        """End a run's processes at once and close its books. False: nothing ran here."""
        if not await self._launcher.kill(record.run, Path(record.folder)):
            return False
        standing = await self._store.runs.standing(record.run)
        if standing is not None and standing.status not in FINAL:
            # The process is gone for certain, so its number is ours to write under.
            await self._close(record.run, standing.fence, "ended", "killed", by=person(by))
        return True

    async def look_after(self, run: RunId, open_asks: Sequence[tuple[int, str, str]]) -> None:
        """Find out whether a live run is what it seems to be; bury it when its runner is dead.

        Args:
            open_asks: fence, id and question of the asks that the thread shows as open.
        """
        standing = await self._store.runs.standing(run)
        if standing is None or standing.owner or standing.status in FINAL or standing.status == "lost":
            return
        silent = self._silent(run, standing)
        record = await self._store.runs.record(run)
        if record is None:
            return
        if standing.status == "queued":
            if silent > START_PATIENCE_SECONDS / 3:
                await self.launch(record, by=record.starter)
        elif standing.status == "starting":
            if silent > START_PATIENCE_SECONDS and (fence := await self._take_over(run)) is not None:
                await self._close(run, fence, "failed", f"the runner did not start: {_tail(record)}")
        else:
            await self._bury(run, open_asks)

    def _silent(self, run: RunId, standing: Standing) -> float:
        """Seconds that we have seen this standing for: our own clock only, never another machine's."""
        status, fence, first = self._watched.get(run, ("", 0, 0.0))
        if (status, fence) != (standing.status, standing.fence):
            first = self._clock.now()
            self._watched[run] = (standing.status, standing.fence, first)
        return self._clock.now() - first

    async def _bury(self, run: RunId, open_asks: Sequence[tuple[int, str, str]]) -> None:
        """Note a run as lost, and its open asks as withdrawn."""
        if (fence := await self._take_over(run)) is None:
            return
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

    async def _refuse_busy(self, name: str, chosen: WorkspaceSettings) -> None:
        if chosen.fresh:
            return
        for run in await self._store.runs.live():
            other = await self._store.runs.record(run)
            standing = await self._store.runs.standing(run)
            if other is not None and other.workspace == name and standing is not None and standing.status != "lost":
                raise WorkspaceBusyError(
                    f"workspace {name!r} is in use by run {run}; wait for its end, or use a workspace with fresh = true"
                )


def is_running(standing: Standing | None) -> bool:
    """Whether a runner holds the run, or is about to."""
    return standing is not None and standing.status in ("queued", "starting", "running", "held")


def _tail(record: RunRecord) -> str:
    path = Path(record.folder) / "runner.log"
    with contextlib.suppress(OSError):
        lines = [line for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
        if lines:
            return " / ".join(lines[-LOG_LINES:])[:500]
    return f"see {path}"
