"""Oracle questions, beside the run: own process tree, own accounts, nothing of it enters the run (behaviour 8)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from bridge.commands import Consult
from bridge.payloads import person_of
from bridge.runner.telling import Teller
from bridge.texts import runner as catalogue
from flower import StepResult

log = logging.getLogger(__name__)

AT_ONCE = 3
"""Most questions that are answered at the same time: each is a model process of some 200 MiB."""


class Aside:
    """Answers oracle questions; each ends with an answer or a failure, and with a receipt.

    Args:
        ask: asks the oracle (`flower.workflow.aside.ask_aside`).
        texts: what people read of us.
    """

    def __init__(
        self,
        teller: Teller,
        ask: Callable[[str], Awaitable[StepResult]],
        *,
        texts: catalogue.RunnerTexts = catalogue.EN,
    ) -> None:
        self._teller, self._ask, self._texts = teller, ask, texts
        self._room = asyncio.Semaphore(AT_ONCE)

    async def answer(self, command: Consult) -> None:
        """Answer one question and tell it. Raises nothing but for cancellation, which is told as well."""
        self._tell(command, "asked", command.question)
        try:
            async with self._room:
                result = await self._ask(command.question)
        except asyncio.CancelledError:
            self._tell(command, "failed", self._texts.oracle_over)
            raise
        except Exception as err:  # boundary: a side question never reaches the run
            log.warning("aside.failed", exc_info=True)
            self._tell(command, "failed", f"{type(err).__name__}: {err}")
            return
        if result.ok:
            self._tell(command, "answered", result.text, result.cost_usd)
        else:
            self._tell(command, "failed", result.error or self._texts.no_answer, result.cost_usd)

    def _tell(self, command: Consult, state: str, text: str, cost: float = 0.0) -> None:
        facts = {"command": command.id, "question": command.question, "by": person_of(command.by)}
        self._teller.tell("oracle", text, payload={**facts, "state": state, "cost_usd": cost})
        if state != "asked":
            self._teller.receipt(command, "done")  # a failure was told a moment ago, so this does not say it again
