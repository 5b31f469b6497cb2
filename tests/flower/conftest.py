"""The one fixture of the tests of runtimes."""

from __future__ import annotations

from tests.flower.scene import make

__all__ = ["make"]
