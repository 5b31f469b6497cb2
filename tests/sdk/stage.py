"""A scripted model, an environment that leads to it, and runtimes that play against it: to test the real program."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flower.core.agent import AgentSpec
from flower.core.resilience import Resilience
from flower.core.runtime import Runtime
from flower.testing import ScriptedModel, read_story, scripted_surroundings

MODEL = "claude-sonnet-5-5"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One test's model and folders."""

    model: ScriptedModel
    home: Path

    @property
    def workspace(self) -> Path:
        return self.home / "ws"

    @property
    def run_dir(self) -> Path:
        return self.home / "run"

    @contextlib.asynccontextmanager
    async def runtime(self, **kw: Any) -> AsyncIterator[Runtime]:
        """Make a runtime that is closed at the end; failures are tried again at once."""
        quick = Resilience(base_delay=0.0, max_attempts=3)
        runtime = Runtime(**{"workspace": self.workspace, "run_dir": self.run_dir, "resilience": quick, **kw})
        try:
            yield runtime
        finally:
            runtime.close()


@contextlib.asynccontextmanager
async def stage(
    home: Path, lines: list[Any] | None = None, *, speed: float = 0.0, strict: bool = True, **parts: Any
) -> AsyncIterator[Stage]:
    """Play a story: of `lines` for the main agent, or of parts.

    The story fails the test if anything is asked that it does not know.
    """
    story = {"parts": parts if lines is None else {"main": {"lines": lines}}}
    async with ScriptedModel(read_story(story), speed=speed, strict=strict) as model:
        with scripted_surroundings(model, home):
            yield Stage(model=model, home=home)


def spec(**kw: Any) -> AgentSpec:
    """Return an agent with hands and a model that has a price."""
    usual = {"name": "main", "instructions": "MAIN", "model": MODEL, "allowed_tools": ["Bash", "Write"]}
    return AgentSpec(**{**usual, **kw})


def cut(words: str, *, answered: bool = True) -> Mapping[str, Any]:
    """Return the line with which a session takes up the words of an interrupt. Goes into a part's `anytime`.

    Args:
        answered: the model had said something before, so that the model server can tell the session again.
    """
    line = {"name": "taken", "when": {"prompt": words}, "say": f"I heard: {words}", "then": "end"}
    return {**line, "expect": {"session": "same"}} if answered else line


LOOP = "for i in $(seq 1 80); do sleep 0.1; done; echo hi > done.txt"
"""A Bash command that takes 8 seconds and leaves a file; the program refuses a bare sleep (SDK facts 3, trap 7)."""


def marked(marker: str) -> list[int]:
    """Return the processes that carry `FLOWER_RUN=marker`."""
    wanted = f"FLOWER_RUN={marker}".encode()
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or folder.name == str(os.getpid()):
            continue
        with contextlib.suppress(OSError):
            state = (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0]
            if state != "Z" and wanted in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return found
