"""Side questions: an oracle answers beside a run, which never hears of it (behaviour 8)."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from flower import texts
from flower.core.events import Event
from flower.core.roles import oracle
from flower.core.runtime import Runtime, StepResult
from flower.core.workbench import Workbench

FOLDER = "aside"
"""Below the run's folder: side questions have accounts of their own."""

WINDOW, WIDTH = 60, 200
"""Events that are kept, and characters of each that are shown."""

_LEFT_OUT = frozenset({"thinking", "prompt"})


class Recent:
    """The latest events of a run, for whoever asks about it. Use it as a sink: it neither blocks nor raises."""

    def __init__(self, size: int = WINDOW) -> None:
        self._events: deque[Event] = deque(maxlen=size)

    def __call__(self, event: Event) -> None:
        self.add(event)

    def add(self, ev: Event) -> None:
        """Keep an event; the model's thinking and what it was told are left out."""
        if ev.kind not in _LEFT_OUT:
            self._events.append(ev)

    def render(self) -> str:
        """Return one line per event, oldest first."""
        words = texts.current().running
        lines = [_line(event, words.subagent, words.main_thread) for event in tuple(self._events)]
        return "\n".join(lines) or words.no_events


def _line(event: Event, subagent: str, main_thread: str) -> str:
    tool = f"/{event.tool}" if event.tool else ""
    who = subagent if event.payload.get("subagent") else main_thread
    return f"[{event.kind}{tool}·{who}] {event.text[:WIDTH]}".replace("\n", " ")


async def ask_aside(
    question: str,
    *,
    workspace: str | Path,
    run_dir: str | Path,
    recent: Recent,
    workbench: Workbench | None = None,
    on_event: Callable[[Event], None] | None = None,
) -> StepResult:
    """Ask the oracle one question about a run, in a runtime of its own that is closed afterwards.

    Several may be asked at once. The run's accounts, sessions and lineage stay as they are. Raises nothing but a
    cancellation: what went wrong is in the result's `error`.

    Args:
        run_dir: the run's folder; the side questions' own is below it.
        recent: the run's latest events.
        workbench: the run's workbench, if it has one.
    """
    words = texts.current().running
    asked = StepResult(step=words.aside, started_at=time.time())
    try:
        bench = words.aside_no_workbench
        if workbench is not None:
            bench = words.aside_workbench.format(path=workbench.show(workbench.root))
        prompt = words.aside_prompt.format(question=question, events=recent.render(), workbench=bench)
        runtime = Runtime(
            workspace=workspace, run_dir=Path(run_dir) / FOLDER, workbench=workbench or False, resilience=False
        )
        try:
            return await runtime.run(oracle(words.aside), prompt, step_name=words.aside, on_event=on_event)
        finally:
            runtime.close()
    except Exception as err:  # noqa: BLE001 - boundary: a failed side question must not reach the run (behaviour 8)
        asked.error, asked.ended_at = f"{type(err).__name__}: {err}", time.time()
        return asked
