"""Oracle questions, beside the run: own process tree, own accounts, nothing of it enters the run (behaviour 8)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path

from bridge.commands import Consult
from bridge.runner.telling import Teller, person_of
from flower import Workbench
from flower.workflow.aside import Recent, ask_aside

log = logging.getLogger(__name__)

AT_ONCE = 3
"""Most questions that are answered at the same time: each is a model process of some 200 MiB."""


class Aside:
    """Answers oracle questions in tasks of the group that it is given."""

    def __init__(
        self, teller: Teller, recent: Recent, *, workspace: Path, run_dir: Path, workbench: Workbench | None
    ) -> None:
        self._teller, self._recent = teller, recent
        self._workspace, self._run_dir, self._workbench = workspace, run_dir, workbench
        self._room = asyncio.Semaphore(AT_ONCE)

    async def answer(self, command: Consult) -> None:
        """Answer one question and tell it. Never raises but for cancellation."""
        facts = {"command": command.id, "question": command.question, "by": person_of(command.by)}
        self._teller.tell("oracle", command.question, payload={**facts, "state": "asked", "cost_usd": 0.0})
        try:
            async with self._room:
                result = await ask_aside(
                    command.question,
                    workspace=self._workspace,
                    run_dir=self._run_dir,
                    recent=self._recent,
                    workbench=self._workbench,
                )
        except Exception as err:
            log.warning("aside.failed", exc_info=True)
            self._failed(facts, f"{type(err).__name__}: {err}")
            return
        if result.ok:
            self._teller.tell(
                "oracle", result.text, payload={**facts, "state": "answered", "cost_usd": result.cost_usd}
            )
            self._teller.receipt(command, "done")
        else:
            self._failed(facts, result.error or "no answer")
            self._teller.receipt(command, "refused", result.error or "no answer")

    def _failed(self, facts: Mapping[str, object], why: str) -> None:
        self._teller.tell("oracle", why, payload={**facts, "state": "failed", "cost_usd": 0.0})
