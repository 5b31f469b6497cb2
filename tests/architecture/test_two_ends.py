"""The one place that imports both ends of the wire (house style 27)."""

from __future__ import annotations

from typing import get_args

from bridge import view
from flower.core.events import EventKind

RUNNER_KINDS = {"run", "receipt", "oracle", "step_end"}
HARMLESS = {"unknown"}
"""Kinds that a thread makes nothing of."""


def test_the_view_knows_every_kind_that_flower_and_the_runner_tell() -> None:
    assert set(get_args(EventKind)) | RUNNER_KINDS == view.KINDS | HARMLESS
