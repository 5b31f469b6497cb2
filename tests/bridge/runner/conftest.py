from __future__ import annotations

from pathlib import Path

import pytest

from bridge.runner import patience
from tests.bridge.runner.rig import Rig
from tests.fakes.redis import own_redis, shared_redis

__all__ = ["own_redis", "rig", "shared_redis"]


@pytest.fixture
async def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    """A run that a bot has noted and is about to start."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "any")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(patience, "RETRY", (0.02,))
    rig = Rig(tmp_path)
    monkeypatch.setattr("bridge.runner.work.Runtime", rig.runtime)
    await rig.create()
    return rig
