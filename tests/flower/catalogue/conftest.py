"""The catalogue's one fixture."""

from __future__ import annotations

from tests.flower.catalogue.scene import make

__all__ = ["make"]
