"""JSON lines on stderr: a dotted event name that never changes, and fields (house style 30)."""

from __future__ import annotations

import contextlib
import json
import logging
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

_PLAIN = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}
_bound: ContextVar[tuple[tuple[str, object], ...]] = ContextVar("bound", default=())


@contextlib.contextmanager
def bound(**fields: object) -> Iterator[None]:
    """Put these fields on every line that is logged inside."""
    token = _bound.set((*_bound.get(), *fields.items()))
    try:
        yield
    finally:
        _bound.reset(token)


class JsonLines(logging.Formatter):
    """One JSON object a line. Secrets are kept out where they come in (`Secret`), and cut from tracebacks here."""

    def __init__(self, secrets: tuple[str, ...] = ()) -> None:
        super().__init__()
        self._secrets = tuple(secret for secret in secrets if secret)

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            "logger": record.name,
            **dict(_bound.get()),
        }
        line.update({key: value for key, value in record.__dict__.items() if key not in _PLAIN})
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        text = json.dumps(line, ensure_ascii=False, default=str)
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text


def log_to_stderr(*, level: int = logging.INFO, secrets: tuple[str, ...] = ()) -> None:
    """Send this process's log to stderr as JSON lines; `secrets` never appear in it (SE-4)."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines(secrets))
    logging.basicConfig(level=level, handlers=[handler], force=True)
