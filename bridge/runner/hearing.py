"""Takes a run's commands from its line, each once, and has them carried out."""

from __future__ import annotations

import contextlib
import logging
from typing import NoReturn

from bridge.commands import End, Hold, Interrupt, Resume
from bridge.errors import StoreAwayError, StoreRefusedError
from bridge.model import RunId
from bridge.ports import CommandLine, Ordered
from bridge.runner.hands import Hands
from bridge.runner.past import Past
from bridge.runner.patience import patiently
from bridge.runner.telling import Teller
from bridge.texts import runner as catalogue

log = logging.getLogger(__name__)

WAIT_SECONDS = 20.0


class Hearing:
    """Listens for as long as the attempt lasts.

    Args:
        past: grows with each command, so that it always says where we are.
        texts: what people read of us.
    """

    def __init__(
        self, line: CommandLine, run: RunId, hands: Hands, teller: Teller, past: Past, *, texts: catalogue.RunnerTexts
    ) -> None:
        self._line, self._run, self._hands, self._teller = line, run, hands, teller
        self._past, self._texts = past, texts
        self._looked = False

    async def backlog(self) -> None:
        """Take what waits since before this attempt. Looks once."""
        with contextlib.suppress(StoreAwayError, StoreRefusedError):  # then it is the first that `listen` takes
            await self._take_all()

    async def listen(self) -> NoReturn:
        """Take commands until cancelled; waits for a store that is away."""
        while True:
            await patiently(self._take_all, wait=WAIT_SECONDS)

    async def rest(self) -> None:
        """Take what came while the flow ended, so that nobody is left without a word (SS-4). Looks once."""
        with contextlib.suppress(StoreAwayError, StoreRefusedError):
            await self._take_all()

    async def _take_all(self, *, wait: float = 0.0) -> None:
        orders = await self._line.read(self._run, after=self._past.position, wait=wait)
        waited, self._looked = not self._looked, True
        for each in orders:
            self._take(each, stale=waited and self._is_stale(each))

    def _is_stale(self, ordered: Ordered) -> bool:
        """Whether a command that waited for us was meant for an attempt before this one.

        Whoever had the run started again knew of it: an *end* that nobody took must not end the new attempt. Words and
        answers are for the run, whoever carries it.
        """
        command = ordered.command
        steers = isinstance(command, Hold | Interrupt | Resume | End)
        return steers and self._past.attempts > 0 and command.at < self._past.started_at

    def _take(self, ordered: Ordered, *, stale: bool) -> None:
        command, self._past.position = ordered.command, ordered.position
        if command.id in self._past.commands:  # the same act twice has one effect (DL-1)
            return
        self._past.commands.add(command.id)
        self._teller.receipt(command, "taken", position=ordered.position)
        if stale:
            self._hands.refuse(command, self._texts.before_restart)
            return
        try:
            self._hands.carry_out(command)
        except Exception as err:  # boundary: one bad command must not end the run
            log.exception("command.failed", extra={"run": self._run, "command": command.id})
            self._hands.refuse(command, self._texts.broke.format(error=type(err).__name__))
