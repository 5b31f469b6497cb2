"""Small flows for the runner's tests; an order names them as people name theirs: `tests.bridge.runner.flows:one`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from flower import AgentSpec, HumanChannel, Step, StepResult, Workflow, with_goal

WORKER = AgentSpec(name="Work", instructions="You are the worker.", allowed_tools=["Bash", "Write"])
THEN = AgentSpec(name="Then", instructions="You are the second.", allowed_tools=["Bash"])


def one(request: str, *, workspace: Path, run_dir: Path) -> Workflow:
    """One step, which is told the request."""
    return Workflow([Step("Work", WORKER, request)], channel=HumanChannel())


def two(request: str, *, workspace: Path, run_dir: Path) -> Workflow:
    return Workflow([Step("Work", WORKER, request), Step("Then", THEN, "go on")], channel=HumanChannel())


def judged(request: str, *, workspace: Path, run_dir: Path) -> Workflow:
    """One step with a judge behind it."""
    channel = HumanChannel()
    step = Step("Work", WORKER, request)
    return Workflow([with_goal(step, channel, goal_path=run_dir / "goal.md", name="Verdict")], channel=channel)


def stubborn(request: str, *, workspace: Path, run_dir: Path) -> Workflow:
    """Behind its step it waits for what never comes."""

    async def gate(_result: StepResult, _ctx: dict[str, Any]) -> bool:
        await asyncio.Event().wait()
        return True

    return Workflow([Step("Work", WORKER, request, gate=gate)], channel=HumanChannel())


def breaks(request: str, *, workspace: Path, run_dir: Path) -> Workflow:
    def gate(_result: StepResult, _ctx: dict[str, Any]) -> bool:
        raise KeyError("no such thing")

    return Workflow([Step("Work", WORKER, request, gate=gate)])


def leaves(request: str, *, workspace: Path, run_dir: Path) -> Workflow:
    def gate(_result: StepResult, _ctx: dict[str, Any]) -> bool:
        sys.exit(3)

    return Workflow([Step("Work", WORKER, request, gate=gate)])


def cancels_itself(request: str, *, workspace: Path, run_dir: Path) -> Workflow:
    def gate(_result: StepResult, _ctx: dict[str, Any]) -> bool:
        raise asyncio.CancelledError

    return Workflow([Step("Work", WORKER, request, gate=gate)])


def cannot_be_made(request: str, *, workspace: Path, run_dir: Path) -> Workflow:
    raise RuntimeError("no recipe for that")


def leaves_at_once(request: str, *, workspace: Path, run_dir: Path) -> Workflow:
    sys.exit("usage: flows")


def no_flow(request: str, *, workspace: Path, run_dir: Path) -> str:
    return request


ready = Workflow([Step("Work", WORKER, "as it stands")], channel=HumanChannel())
number = 7
