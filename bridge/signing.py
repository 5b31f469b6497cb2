"""Receipts on people's own messages: one at a time, when nothing else is to do."""

from __future__ import annotations

import logging

from bridge.cards import signs
from bridge.clock import Clock
from bridge.desk import Desk, Live
from bridge.errors import ChatBusyError, ChatError, ChatUnknownError
from bridge.model import MessageRef, Sign
from bridge.ports import Chat
from bridge.view import settle_sign

log = logging.getLogger(__name__)

BACK_OFF = (1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds of quiet after calls that got no answer, one after the other; the last one repeats."""
TRIES = 3


class Signing:
    """Knows which receipts have been put, in the `Live`s; a receipt that is put twice does no harm."""

    def __init__(self, chat: Chat, desk: Desk, clock: Clock) -> None:
        self._chat, self._desk, self._clock = chat, desk, clock
        self._after = 0.0
        self._tries = 0

    def of(self, live: Live) -> tuple[tuple[MessageRef, Sign], ...]:
        """Return what has to be put yet."""
        return tuple(pair for pair in signs(live.view) if pair not in live.signed)

    def until(self, now: float) -> tuple[float, ...]:
        """When to go on, where the platform asked for a pause."""
        return (self._after,) if self._after > now else ()

    async def put_one(self) -> bool:
        """Put one receipt. False: there is none, or it is not the time."""
        if self._clock.now() < self._after:
            return False
        live, pair = next(((live, pair) for live in self._desk.lives for pair in self.of(live)), (None, None))
        if live is None or pair is None:
            return False
        message, sign = pair
        try:
            await self._chat.sign(message, sign)
        except ChatBusyError as busy:
            self._after = self._clock.now() + busy.retry_after
            return True
        except ChatError as err:
            log.warning("sign.failed", extra={"run": live.run, "why": str(err)})
            self._tries += 1
            if isinstance(err, ChatUnknownError) and self._tries < TRIES:
                self._after = self._clock.now() + pause_after(self._tries)
                return True
        except Exception:  # boundary: a receipt is small, and nothing depends on it
            log.exception("sign.failed", extra={"run": live.run})
        self._tries = 0
        live.signed.add(pair)
        live.view, live.changed = settle_sign(live.view, message, sign), True
        return True


def pause_after(silences: int) -> float:
    """How long to be quiet after so many calls without an answer."""
    return BACK_OFF[min(silences, len(BACK_OFF)) - 1]
