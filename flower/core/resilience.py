"""What to do about a failure: which kind it is, how long to wait, is the endpoint there (behaviour 14)."""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from flower.core.env import base_address
from flower.texts import current
from flower.texts.surroundings import EN, ZH

FATAL = "fatal"
TRANSIENT = "transient"
UNKNOWN = "unknown"

# Asked first: the text of a 401 often holds "connection".
_FATAL = re.compile(
    r"\b(?:400|401|403|404)\b|invalid[\W_]*api[\W_]*key|authentication|unauthorized|permission denied"
    r"|invalid_request|credit balance|quota exceeded|budget|max_turns|CLINotFound"
    # What the program says of an address that it cannot take apart: it stays so however often it is tried.
    r"|invalid url",
    re.IGNORECASE,
)
_TRANSIENT = re.compile(
    r"ENOTFOUND|EAI_AGAIN|ECONNRESET|ECONNREFUSED|ETIMEDOUT|EPIPE|EHOSTUNREACH|ENETDOWN"
    r"|socket hang up|fetch failed|network error|connection error|can['’]t reach the api server"
    r"|\b(?:429|500|502|503|504|529)\b|overloaded|rate[ _-]?limit|too many requests|timeout|timed out"
    r"|temporarily unavailable|service unavailable|internal server error",
    re.IGNORECASE,
)


@dataclass
class Resilience:
    """How a step deals with failures. Delays and waits are in seconds."""

    enabled: bool = True
    max_attempts: int = 6
    base_delay: float = 4.0
    max_delay: float = 120.0
    probe_timeout: float = 5.0
    probe_interval: float = 15.0
    max_offline_wait: float = 3600.0
    retry_unknown: bool = True
    resume_prompt: str = field(default_factory=lambda: current().surroundings.resume)

    def delay_for(self, attempt: int) -> float:
        """Seconds before attempt `attempt` + 1: doubled each time, and spread so that runs do not come back at once."""
        doubled = self.base_delay * 2.0 ** min(attempt - 1, 60)
        return min(doubled, self.max_delay) * (0.75 + random.random() * 0.5)  # noqa: S311 - no secret hangs on it

    def should_retry(self, kind: str) -> bool:
        return kind == TRANSIENT or (kind == UNKNOWN and self.retry_unknown)

    def prompt_to_resume(self) -> str:
        """`resume_prompt`, or, where nobody changed it, what it is in the language spoken now.

        A runtime is built before the workflow that runs in it says its language.
        """
        untouched = self.resume_prompt in (ZH.resume, EN.resume)
        return current().surroundings.resume if untouched else self.resume_prompt

    async def wait_online(self, notify: Callable[[str], object] | None = None) -> bool:
        """Wait until the endpoint can be reached; False when `max_offline_wait` is over.

        `notify` hears once that it is away and once that it is back, and nothing if it was there at once.
        """
        host, port = endpoint()
        give_up = time.monotonic() + self.max_offline_wait
        spoken, told = current().surroundings, False
        while not await reachable(host, port, self.probe_timeout):
            if not told and notify is not None:
                notify(spoken.offline.format(host=host, port=port, limit=duration(self.max_offline_wait)))
            told = True
            left = give_up - time.monotonic()
            if left <= 0:
                return False
            # Probing costs nothing; nothing tells us when a network is back.
            await asyncio.sleep(min(self.probe_interval, left))
        if told and notify is not None:
            notify(spoken.online.format(host=host, port=port))
        return True


def classify(text: str | None) -> str:
    """`fatal`, `transient` or `unknown`, by the words of an error: the harness gives us nothing else."""
    if not text:
        return UNKNOWN
    if _FATAL.search(text):
        return FATAL
    return TRANSIENT if _TRANSIENT.search(text) else UNKNOWN


def endpoint() -> tuple[str, int]:
    """Host and port that the model is asked at: those of the gateway, where one is set."""
    parts = urlsplit(base_address())
    try:
        port = parts.port
    except ValueError:  # no number
        port = None
    return parts.hostname or "", port or (80 if parts.scheme == "http" else 443)


async def reachable(host: str, port: int, timeout: float = 5.0) -> bool:
    """Do name resolution and a TCP handshake succeed? No HTTP, no credential, no cost."""
    try:
        async with asyncio.timeout(timeout):
            _, writer = await asyncio.open_connection(host, port)
    except (OSError, ValueError, OverflowError):  # refused, unknown, too slow; a host or port that can be none
        return False
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return True


def duration(seconds: float) -> str:
    """A wait in words, in the language of the texts: whole seconds below a minute, minutes above."""
    spoken = current().surroundings
    if seconds < 60:
        return spoken.seconds.format(count=round(seconds))
    return spoken.minutes.format(count=round(seconds / 60))
