"""A runtime that runs nothing: it says what the script says, and remembers what it was asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from flower.core.agent import AgentSpec
from flower.core.events import Event
from flower.core.runtime import StepResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of `run`."""

    step: str | None
    prompt: str
    resume: str | None
    fork: bool
    spec: AgentSpec
    heard: bool
    """Whether somebody listened for new session ids."""


@dataclass(frozen=True, slots=True)
class Said:
    """One result. `session` None makes a new id, `s1`, `s2` …; resumed sessions keep theirs."""

    text: str = ""
    ok: bool = True
    session: str | None = None
    error: str | None = None


class FakeRuntime:
    """The least that a workflow may ask for: `run`. Without more there is no lineage."""

    def __init__(self, script: Sequence[Said | str]) -> None:
        self.calls: list[Call] = []
        self._script = [Said(line) if isinstance(line, str) else line for line in script]
        self._sessions = 0

    async def run(
        self,
        spec: AgentSpec,
        prompt: str,
        *,
        step_name: str | None = None,
        resume: str | None = None,
        fork: bool = False,
        on_event: Callable[[Event], None] | None = None,
    ) -> StepResult:
        heard = getattr(self, "on_session", None)
        self.calls.append(
            Call(step=step_name, prompt=prompt, resume=resume, fork=fork, spec=spec, heard=heard is not None)
        )
        if not self._script:
            raise AssertionError(f"nothing is scripted for {step_name!r}")
        line = self._script.pop(0)
        session = line.session or (resume if resume and not fork else self._new_session())
        if heard is not None:
            heard(session)
        return StepResult(
            step=step_name or spec.name,
            session_id=session,
            ok=line.ok,
            text=line.text,
            error=line.error,
            started_at=1.0,
        )

    @property
    def steps(self) -> list[str | None]:
        return [call.step for call in self.calls]

    def _new_session(self) -> str:
        self._sessions += 1
        return f"s{self._sessions}"


class LastingRuntime(FakeRuntime):
    """One with a place on disk and a store, so that a workflow keeps a lineage."""

    def __init__(self, script: Sequence[Said | str], *, workspace: Path, known: set[str] | None = None) -> None:
        super().__init__(script)
        self.workspace = workspace.resolve()
        self.run_dir = workspace / "runs"
        self.run_dir.mkdir(parents=True, exist_ok=True)
        self.on_session: Callable[[str], None] | None = None
        self._known = known

    def has_session(self, session_id: str) -> bool:
        return self._known is None or session_id in self._known
