"""What the tests of runtimes share: runtimes over a scripted client, and ways to read what they left."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest
from claude_agent_sdk import AssistantMessage, TextBlock, ToolUseBlock

from flower.core.agent import AgentSpec, HandoffPolicy
from flower.core.events import Event
from flower.core.resilience import Resilience
from flower.core.runtime import Runtime
from tests.fakes.client import Item, ScriptedRuntime

SPEC = AgentSpec(name="coder", instructions="do it", allowed_tools=["Bash", "Write", "Edit", "NotebookEdit"])
"""An agent that no guard stands before."""


@dataclass
class Calm(Resilience):
    """Never waits. `online`: what the network is."""

    online: bool = True

    async def wait_online(self, notify: Callable[[str], object] | None = None) -> bool:
        if not self.online and notify is not None:
            notify("host:443 不可达,等待恢复(最多 60 分钟)")
        return self.online

    def delay_for(self, attempt: int) -> float:
        return 0.0


class Make(Protocol):
    def __call__(self, *scripts: Sequence[Item], **kw: Any) -> ScriptedRuntime: ...


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Make a runtime that plays scripts, one an attempt, in folders of this test."""
    for name in ("ANTHROPIC_MODEL", "ANTHROPIC_DEFAULT_OPUS_MODEL", "FLOWER_ENV", "FLOWER_WINDOW", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def make(*scripts: Sequence[Item], **kw: Any) -> ScriptedRuntime:
        places = {"workspace": tmp_path / "ws", "run_dir": tmp_path / "run", "resilience": Calm()}
        return ScriptedRuntime(*scripts, **{**places, **kw})

    return make


def lost(text: str = "API Error: ECONNRESET") -> AssistantMessage:
    """What the program writes itself after a lost connection."""
    return AssistantMessage(content=[TextBlock(text)], model="<synthetic>")


def call(name: str = "Bash", call_id: str = "t1", **kw: Any) -> AssistantMessage:
    return AssistantMessage(content=[ToolUseBlock(call_id, name, {})], model="m", **kw)


def rows(runtime: Runtime) -> list[dict[str, Any]]:
    """The manifest."""
    found: list[dict[str, Any]] = json.loads(runtime.manifest_path.read_text(encoding="utf-8"))
    return found


def told(events: list[Event], kind: str) -> list[str]:
    return [event.text for event in events if event.kind == kind]


def windowed(**kw: Any) -> HandoffPolicy:
    """A handoff policy for a window of 200,000 tokens: it warns at 130,000 and hands over at 150,000 (API 5.4)."""
    return HandoffPolicy(**{"window": 200_000, **kw})
