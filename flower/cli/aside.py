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
        self._open: dict[asyncio.Task[None], str] = {}
        self._closed = False

    def ask(self, question: str) -> None:
        """Begin to ask; the answer shows itself. After the end of the run it is refused, with a line."""
        try:
            self._loop.call_soon_threadsafe(self._begin, question)
        except RuntimeError:  # the loop is closed
            self._refuse(question)

    async def settle(self, patience: float = PATIENCE_SECONDS) -> None:
        """Wait for what is open or asked meanwhile, `patience` seconds in all; give up the rest, and take no more."""
        until, told = self._loop.time() + patience, 0
        await asyncio.sleep(0)  # what was handed over last has begun
        while self._open and (left := until - self._loop.time()) > 0:
            if len(self._open) > told:
                standard().write(texts.current().commands.aside_waiting.format(count=len(self._open)))
            told = len(self._open)
            await asyncio.wait(self._open, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        self.close()
        for task, question in list(self._open.items()):
            task.cancel()
            self._refuse(question)

    def close(self) -> None:
        """Take no more questions."""
        self._closed = True

    def _begin(self, question: str) -> None:
        if self._closed:
            self._refuse(question)
            return
        work = ask_aside(question, self._rt, self._recent, verbose=self._verbose)
        task = self._group.create_task(work, name="flower.aside")
        self._open[task] = question
        task.add_done_callback(self._open.pop)

    def _refuse(self, question: str) -> None:
        standard().say(texts.current().commands.aside_late.format(question=question))


@asynccontextmanager
async def asides(rt: Runtime, recent: Recent, *, verbose: bool = False) -> AsyncIterator[Asides]:
    """Answer side questions in this block; its end waits for those that are open."""
    try:
        async with asyncio.TaskGroup() as group:
            mine = Asides(group, rt, recent, verbose=verbose)
            try:
                yield mine
                await mine.settle()
            finally:
                mine.close()
    except ExceptionGroup as several:
        # Side questions raise nothing, so it is the block's own.
        raise several.exceptions[0] from None
