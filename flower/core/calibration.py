"""How large the context window is taken to be, and what is remembered of windows that were smaller (API 5.5).

A guess that is too large costs one degraded handover and is then remembered, so guessing errs upward.
"""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path

from flower.core import env
from flower.core.disk import read_object, write_whole

LARGE, SMALL = 1_000_000, 200_000
"""Windows in tokens."""

_ONE_MILLION = re.compile(r"(?:^|[^a-z0-9])1m(?:[^a-z0-9]|$)")


def default_window() -> int:
    """Return the context window to reckon with, in tokens: FLOWER_WINDOW, else where it last overflowed, else a guess
    by the model's name."""
    return env.window() or calibrated_window() or _by_name(env.main_model())


def calib_path() -> Path:
    """The file in which overflows are remembered, beside the global `.env`."""
    return env.user_env_path().with_name(".windows")


def calibrated_window() -> int | None:
    """Return the smallest level at which this endpoint and model overflowed, None if none is known."""
    level = read_object(calib_path()).get(_key())
    return level if isinstance(level, int) and not isinstance(level, bool) and level > 0 else None


def remember_overflow(context: int) -> None:
    """Note that this many tokens were too many for this endpoint and model. The smallest stays; never raises."""
    before = calibrated_window()
    if context <= 0 or (before is not None and before <= context):
        return
    with contextlib.suppress(OSError, ValueError):
        text = json.dumps({**read_object(calib_path()), _key(): context}, indent=2, ensure_ascii=False)
        write_whole(calib_path(), f"{text}\n")


def _by_name(model: str) -> int:
    name = model.lower()
    if _ONE_MILLION.search(name):
        return LARGE
    return SMALL if "haiku" in name else LARGE


def _key() -> str:
    return f"{env.given_base_address() or 'default'}|{env.main_model()}"
