"""What libraries log and warn about, kept from tearing the input line: warnings are shown, logs on request."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator
from typing import TextIO

from flower.cli.screen import standard


class _Shown(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        try:
            standard().say(f"! {record.name}: {record.getMessage()}")
        except Exception:  # noqa: BLE001 - boundary: a library's log line with wrong arguments must not end a run
            self.handleError(record)


@contextlib.contextmanager
def told(*, logs: bool) -> Iterator[None]:
    """Send warnings through the screen in this block, and what is logged with `logs`; without, logs are dropped.

    A library's complaint about a program that ended is told as an event anyway.
    """
    handler = _Shown(logging.WARNING) if logs else logging.NullHandler()
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show
            yield
    finally:
        root.removeHandler(handler)


def _show(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    del category, filename, lineno, file, line
    standard().say(f"! {message}")
