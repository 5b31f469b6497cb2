"""The executor that people hold in their hands: runs steps, is steered from any thread, knows what they cost."""

from __future__ import annotations

import asyncio
import secrets
import time
import warnings
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any, ClassVar

from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    project_key_for_directory,
)

from flower import texts
from flower.core import attempt, manifest, next_move
from flower.core.agent import AgentSpec, HandoffPolicy
from flower.core.books import KILLED, Books, StepResult
from flower.core.cost_journal import CostJournal
from flower.core.env import check_credentials, load_dotenv
from flower.core.level import Level
from flower.core.next_move import End
from flower.core.notices import Notices
from flower.core.openings import Openings
from flower.core.options import OptionsBuilder, Turn
from flower.core.plugins import checked
from flower.core.resilience import Resilience
from flower.core.steering import Steering
from flower.core.step_run import Sink, StepRun, nobody
from flower.core.workbench import Workbench
from flower.stores.prune import PrunePolicy, PruningSessionStore
from flower.stores.trim import EphemeralPolicy, TrimPolicy
from flower.texts.running import ZH

__all__ = ["Runtime", "StepResult"]


class Runtime:
    """The executor: owns workspace, store, workbench and policies, and has one verb, `run`.

    `interrupt` and `end` may be called from any thread, everything else belongs to the loop's thread. Start runs from
    the main thread's loop: the kernel ends the program when the thread that started it is gone.

    Args:
        workspace: the agents' working directory; created. Moving it ends continuity.
        run_dir: transcripts and accounts; relative to the current directory; created.
        portable: read no settings of the user or the project.
        trim: a policy, or whether old large results are shortened on a resume.
        ephemeral: a policy, or whether old results of commands that only look are marked as stale on a resume.
        keep_denials: how many of the newest refused calls a resume still shows.
        workbench: an instance, or True for one in `run_dir`. Without one nothing keeps a coordinator's hands off.
        spill_threshold: characters from which a tool's output goes to a file; None or 0 for never.
        resilience: a policy, or False: no failure is tried again.
        handoff: a policy, or False: a full context is left to the program's own compaction.

    Raises:
        RuntimeError: there is no credential.
        SessionFileError: `sessions.db` in `run_dir` is no store; says what to do.
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
        trim: TrimPolicy | bool = False,
        ephemeral: EphemeralPolicy | bool = True,
        keep_denials: int = 1,
        workbench: Workbench | bool = False,
        spill_threshold: int | None = 4000,
        resilience: Resilience | bool = True,
        handoff: HandoffPolicy | bool = True,
    ) -> None:
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
        self.spent_before = 0.0
        """US dollars that count against `budget_usd` besides: what a run spent in earlier processes (`spent_in`)."""
        self.model: str | None = None
        self._plugin_dirs: list[Path] = []
        self._steering = Steering()
        self._notices = Notices()
        self._journal = CostJournal(self.run_dir, self.run_id)
        self._openings = Openings(self.run_dir / "openings.json")
        load_dotenv()
        if trouble := check_credentials():
            raise RuntimeError(trouble)
        # After the .env files were read: the window is guessed from what they say.
        self.handoff = handoff if isinstance(handoff, HandoffPolicy) else HandoffPolicy(enabled=bool(handoff))
        self.store: Any = PruningSessionStore(
            self.run_dir / "sessions.db",
            self.workspace,
            policy=trim if isinstance(trim, TrimPolicy) else TrimPolicy(enabled=bool(trim)),
            ephemeral=ephemeral if isinstance(ephemeral, EphemeralPolicy) else EphemeralPolicy(enabled=bool(ephemeral)),
            prune=PrunePolicy(keep_denials=keep_denials),
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
        step = StepRun(
            spec=spec,
            task=prompt,
            start=Turn(text=prompt, resume=resume, fork=fork, resume_at=resume_at),
            result=result,
            tell=on_event or nobody,
            words=texts.current().running,
            level=Level(self.handoff),
            runtime=self,
            steering=self._steering,
            books=self._books,
            openings=self._openings,
            notices=self._notices,
            journal=self._journal,
            options=self._options,
            client=self._client,
        )
        self._books.open(result)
        try:
            await step.carry()
        except asyncio.CancelledError:
            result.error = result.error or KILLED
            raise
        except Exception as err:  # a sink's or a hook's own, or a spec that cannot be run: the caller's to see
            result.error = result.error or f"{type(err).__name__}: {err}"
            raise
        finally:
            if self._books.close(result, self.store):
                for each in self.results:  # also those whose own row could not be written then
                    self._journal.booked(each)
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
        if self._books.rescue():
            self._journal.rescue()

    def close(self) -> None:
        """Close the store. Twice is harmless."""
        self.store.close()

    @property
    def plugin_dirs(self) -> list[Path]:
        """Plugin folders of the flow that runs here; from the next attempt on. The package's own comes besides.

        Raises, when set:
            ValueError: a folder is missing, or is no plugin.
        """
        return list(self._plugin_dirs)

    @plugin_dirs.setter
    def plugin_dirs(self, folders: Iterable[str | Path]) -> None:
        self._plugin_dirs = checked(folders)

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
        return self.run_dir / manifest.FILE

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

    def _options(self) -> OptionsBuilder:
        return OptionsBuilder(
            workspace=self.workspace,
            run_dir=self.run_dir,
            store=self.store,
            workbench=self.workbench,
            portable=self.portable,
            spill_threshold=self.spill_threshold,
            openings=self._openings,
            handoff=self.handoff,
            plugins=self._plugin_dirs,
        )

    def _warn_if_no_wall(self, spec: AgentSpec) -> None:
        if spec.delegate_only and self.workbench is None and self._notices.first("wall"):
            warnings.warn(texts.current().running.no_wall.format(role=spec.name), stacklevel=3)


def _made(place: str | Path) -> Path:
    path = Path(place).resolve()
    path.mkdir(parents=True, exist_ok=True)
    return path
