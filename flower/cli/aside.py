"""Side questions at the terminal: asked beside the run, shown when the answer comes (API 16.9)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from flower import texts
from flower.cli.render import Render
from flower.cli.screen import standard
from flower.core.runtime import Runtime, StepResult
from flower.texts.running import ZH
from flower.workflow import aside
from flower.workflow.aside import Recent

__all__ = ["ASIDE_PROMPT", "Asides", "Recent", "asides", "ask_aside"]

ASIDE_PROMPT = ZH.aside_prompt
PATIENCE_SECONDS = 120.0
"""How long open side questions are waited for when the run is over."""


async def ask_aside(question: str, rt: Runtime, recent: Recent, *, verbose: bool = False) -> None:
    """Ask about the run of `rt` and show the answer. Raises nothing but a cancellation; leaves the run alone."""
    result = await aside.ask_aside(
        question,
        workspace=rt.workspace,
        run_dir=rt.run_dir,
        recent=recent,
        workbench=rt.workbench,
        on_event=Render(verbose=True) if verbose else None,
    )
    _show(result)


def _show(result: StepResult) -> None:
    said, screen = texts.current().commands, standard()
    if not result.ok:
        why = result.error or " ".join(result.errors[-1:])
        screen.say(said.aside_failed.format(error=" ".join(why.split())))
        return
    screen.write(said.aside_head)
    screen.say(result.text)
    screen.write(said.aside_cost.format(cost=result.cost_usd))


class Asides:
    """The side questions of one run. `ask` may be called from any thread."""

    def __init__(self, group: asyncio.TaskGroup, rt: Runtime, recent: Recent, *, verbose: bool) -> None:
        self._group, self._rt, self._recent, self._verbose = group, rt, recent, verbose
        self._loop = asyncio.get_running_loop()
        self._open: set[asyncio.Task[None]] = set()

    def ask(self, question: str) -> None:
        """Begin to ask; the answer shows itself."""
        self._loop.call_soon_threadsafe(self._begin, question)

    async def settle(self, patience: float = PATIENCE_SECONDS) -> None:
        """Wait for what is still open, `patience` seconds at most, and give up the rest."""
        if not self._open:
            return
        standard().write(texts.current().commands.aside_waiting.format(count=len(self._open)))
        _, late = await asyncio.wait(self._open, timeout=patience)
        for task in late:
            task.cancel()

    def _begin(self, question: str) -> None:
        work = ask_aside(question, self._rt, self._recent, verbose=self._verbose)
        task = self._group.create_task(work, name="flower.aside")
        self._open.add(task)
        task.add_done_callback(self._open.discard)


@asynccontextmanager
async def asides(rt: Runtime, recent: Recent, *, verbose: bool = False) -> AsyncIterator[Asides]:
    """Answer side questions in this block; its end waits for those that are open."""
    try:
        async with asyncio.TaskGroup() as group:
            mine = Asides(group, rt, recent, verbose=verbose)
            yield mine
            await mine.settle()
    except ExceptionGroup as several:
        # Side questions raise nothing, so it is the block's own.
        raise several.exceptions[0] from None
