"""One fault for each check of the headless demo, to see that the check can turn red (rulings R19)."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from demo.play import CHECKS, Play
from demo.stage import redis_pid

FAULTS: dict[str, str] = {
    "confirmation": "the state store is frozen when the command comes",
    "card": "alice is not on the list of people who may start runs",
    "ask": "the question is lost on the way to Slack",
    "click": "somebody who may not steer presses the button",
    "subagent": "the coordinator's worker writes to another file",
    "inbox": "the coordinator never looks into its inbox",
    "oracle": "the run's accounts change while the oracle is asked",
    "stop-words": "the model does not take up the words of a person who interrupts",
    "withdrawn": "the edit that shows a question as withdrawn is lost on the way to Slack",
    "hold": "the line that says who paused the run is lost on the way to Slack",
    "continue": "the runner is frozen when it should go on",
    "rejected": "the judge passes the first round",
    "passed": "the judge never passes",
    "cost": "the model server counted tokens that the run does not know of",
}
"""Check -> what is planted."""

assert tuple(FAULTS) == CHECKS  # noqa: S101 - a check without a fault is a check that may pass by itself


@dataclass(slots=True)
class Fault:
    """A planted fault: what of the stage is different, and what happens before its check."""

    check: str
    story: str | None = None
    env: dict[str, str] = field(default_factory=dict)
    clicker: str = "alice"
    lost: str = ""
    """Calls to Slack with these words are swallowed: answered, and not done."""

    async def before(self, play: Play, check: str) -> None:
        """Do what must be done in the middle of the story."""
        if check != self.check:
            return
        match check:
            case "confirmation":
                os.kill(redis_pid(play.stage.home), signal.SIGSTOP)
            case "oracle":
                manifest = play.run_folder / "flower" / "manifest.json"
                asyncio.get_running_loop().call_later(0.5, lambda: manifest.write_text(manifest.read_text() + "\n"))
            case "continue":
                if (pid := play.stage.runner_pid(play.run_folder)) is not None:
                    os.kill(pid, signal.SIGSTOP)
            case "cost":
                log = play.stage.tokens.read_text().splitlines()
                play.stage.tokens.write_text("\n".join([*log, log[-1]]) + "\n")
            case _:
                pass


def fault_for(check: str, story: Path) -> Fault:
    """Make the fault of a check.

    Raises:
        KeyError: there is no such check.
        ValueError: the story has changed, and what should be altered is not there any more.
    """
    text = story.read_text(encoding="utf-8")
    edits: dict[str, Callable[[], Fault]] = {
        "card": lambda: Fault(check, env={"FLOWER_CHAT_MAY_START": "T01DEMO/U03CAROL"}),
        "ask": lambda: Fault(check, lost="The agent asks"),
        "click": lambda: Fault(check, clicker="bob"),
        "subagent": lambda: Fault(
            check, story=_changed(text, "> primes.out && cat primes.out", "> x.out && cat x.out")
        ),
        "inbox": lambda: Fault(check, story=_changed(text, "mcp__human__inbox: {}", "Glob: {pattern: none}")),
        "stop-words": lambda: Fault(check, story=_changed(text, "You stopped me with: “${words}”. ", "")),
        "withdrawn": lambda: Fault(check, lost="Withdrawn"),
        "hold": lambda: Fault(check, lost="stays paused"),
        "rejected": lambda: Fault(check, story=_changed(text, "NOT ACHIEVED", "ACHIEVED")),
        "passed": lambda: Fault(check, story=_changed(text, "          ACHIEVED\n", "          NOT ACHIEVED\n")),
    }
    if check not in FAULTS:
        raise KeyError(f"there is no check {check!r}; there are {', '.join(FAULTS)}")
    return edits.get(check, lambda: Fault(check))()


def _changed(text: str, old: str, new: str) -> str:
    if old not in text:
        raise ValueError(f"the story does not hold {old!r} any more")
    return text.replace(old, new)
