"""What the scripted model plays in terminal tests, and the window that plays against it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flower.testing import ScriptedModel, read_story, scripted_env
from tests.flower.cli.tmux import PROGRAM, Terminal, terminal

ASK, INBOX = "mcp__human__ask", "mcp__human__inbox"

BRIEF = (
    "## Goal\nPrint ${count} primes\n\n## Acceptance criteria\n- run primes.py\n\n"
    "## Bounds\nstandard library only\n\n## Unknowns and assumptions\nnone\n"
)
GOAL = "## Goal\nPrints primes\n\n## Checklist\n- run python3 primes.py, see 2 3 5 7\n- it takes less than a second\n"
ACHIEVED = "## Conclusion\nACHIEVED\n\n## Reason\nall seen\n\n## Failed\n(none)\n"
TAKEN = {
    "name": "taken",
    "when": {"prompt": r"/interrupted you and says:\n\n(?P<words>.+?)\n\nAdjust/"},
    "say": "I heard: ${words}.",
}
RESUMED = {"name": "resumed", "when": {"prompt": "/interrupted you for a moment/"}, "say": "Nothing was said, I go on."}

CLARIFY = [
    {
        "name": "asks",
        "say": "One question first.",
        "call": {ASK: {"question": "How many primes?", "options": ["ten", "a hundred"]}},
    },
    {"name": "brief", "expect": {"result": r"/(?P<count>.+)/"}, "say": BRIEF},
]
LOOP = "for i in $(seq 1 300); do sleep 0.1; done"
"""A command that takes half a minute, which the program does not refuse as a sleep."""


def parts(work: Sequence[Any], *, clarify: Sequence[Any] = CLARIFY) -> dict[str, Any]:
    """A whole `go` in English, of which the coordinator's part differs from test to test."""
    return {
        "clarify": {
            "match": {"system": "# You are the clarifier"},
            "lines": list(clarify),
            "anytime": [TAKEN, RESUMED],
        },
        "goal": {"match": {"system": "# You are the judge", "opening": "Job A: set the goal."}, "lines": [GOAL]},
        "verdict": {"match": {"system": "# You are the judge", "opening": "Job B: judge"}, "lines": [ACHIEVED]},
        "work": {
            "match": {"system": "# You are the coordinator"},
            "anytime": [TAKEN, RESUMED],
            "lines": list(work),
        },
        # Answers side questions, and writes the closing note of a run that succeeded.
        "aside": {"match": {"system": "# You are the oracle"}, "lines": ["It has found seven primes so far."]},
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """A story, its folders, and windows in which the program runs against it."""

    model: ScriptedModel
    home: Path
    env: dict[str, str]

    @property
    def workspace(self) -> Path:
        return self.home / "ws"

    @contextlib.contextmanager
    def flower(self, *words: str, columns: int = 80, rows: int = 40, **env: str) -> Iterator[Terminal]:
        """Open a window in the workspace that runs the program with these arguments."""
        given = {**self.env, **env}
        with terminal([*PROGRAM, *words], env=given, cwd=self.workspace, columns=columns, rows=rows) as window:
            yield window


@contextlib.asynccontextmanager
async def playing(home: Path, story: dict[str, Any], *, strict: bool = True, speed: float = 0.0) -> AsyncIterator[Play]:
    """Play a story of these parts; fails at its end if anything was asked that it does not know."""
    home = _made(home)
    async with ScriptedModel(read_story({"parts": story}), strict=strict, speed=speed) as model:
        env = {
            **scripted_env(model, home / "home"),
            "ANTHROPIC_MODEL": "claude-sonnet-5-5",
            "FLOWER_LANG": "en",
            "FLOWER_NO_PROBE": "1",
            "FLOWER_NO_UPDATE": "1",
        }
        yield Play(model=model, home=home, env=env)


def _made(home: Path) -> Path:
    home = home.resolve()
    (home / "ws").mkdir()
    return home
