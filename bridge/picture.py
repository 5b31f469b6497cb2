"""The values of a thread's picture: what was said, asked, called, told, and how it ended. Frozen; see `bridge.view`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from bridge.model import FINAL, MessageRef, Person, RunId, Sign

State = Literal[
    "queued", "starting", "working", "stopping", "held", "restarting", "lost", "done", "not_reached", "failed", "ended"
]
"""`stopping`: a hold was received and is not taken up yet; `restarting`: the runner was told to go."""

AskState = Literal["asked", "answered", "declined", "timeout", "over_budget", "withdrawn"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call that has not returned."""

    id: str
    tool: str
    text: str
    at: float
    subagent: bool = False
    """Whether a subagent made it. The call that sends a subagent off is the main thread's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Todo:
    """One entry of the agent's plan."""

    text: str
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Say:
    """Prose of the main thread."""

    seq: int
    at: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One thing that happened and is told in a line. `what` names the wording, `facts` fill it in."""

    seq: int
    at: float
    what: str
    text: str = ""
    by: Person | None = None
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """A stretch of tool calls between two things that are posted below it."""

    seq: int
    at: float
    calls: int = 0
    subagents: int = 0
    now: str = ""
    """The newest call, for people: tool and its subject."""
    open: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class AskView:
    """A question. `number` is what people call it: counted over all attempts of the run (rulings R2)."""

    seq: int
    at: float
    fence: int
    id: str
    number: int
    question: str
    options: tuple[str, ...] = ()
    until: float | None = None
    state: AskState = "asked"
    answer: str = ""
    by: Person | None = None
    settled: float = 0.0

    @property
    def label(self) -> str:
        return f"q{self.number}"

    @property
    def open(self) -> bool:
        return self.state == "asked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Oracle:
    """A question asked beside the run (`asked`), and its answer (`answered`) or failure (`failed`)."""

    seq: int
    at: float
    state: str
    text: str
    question: str
    by: Person | None = None
    cost: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How the run ended, or one of its ends when it was continued since."""

    seq: int
    at: float
    state: State
    reason: str
    by: Person | None
    verdict: str
    verdict_reason: str
    failed: tuple[str, ...]
    unverifiable: tuple[str, ...]
    files: tuple[str, ...]
    cost: float
    aside: float
    duration: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What became of a person's own message."""

    command: str
    message: MessageRef
    sign: Sign


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The picture of one run's thread after `seq`."""

    run: RunId
    seq: int = 0
    fence: int = 0
    starts: int = 0
    """How often a runner took it up. Numbers of attempts have gaps: a burial takes one, too."""

    request: str = ""
    workspace: str = ""
    starter: Person | None = None
    created: float = 0.0
    budget: float | None = None

    state: State = "queued"
    by: Person | None = None
    """Who brought the state about, where a person did."""
    reason: str = ""
    since: float = 0.0
    heard: float = 0.0
    """When the run last gave a sign of life."""
    reconnecting: bool = False
    judging: bool = False
    cutting: bool = False
    """An interrupt with words was received and is not taken up yet."""
    resuming: bool = False
    """A person let the held run go on, and the attempt that follows has not begun yet."""

    step: str = ""
    index: int = 0
    total: int = 0
    round: int = 0
    rounds: int = 0
    context: int = 0
    spent: float = 0.0
    """US dollars of all turns that were told, over all attempts."""
    final_cost: float | None = None
    aside: float = 0.0
    duration: float | None = None
    """Seconds, once it is over."""

    asked: int = 0
    """How many questions were shown so far."""
    calls: tuple[Call, ...] = ()
    plan: tuple[Todo, ...] = ()
    consulting: tuple[str, ...] = ()
    """Commands whose oracle question is not answered yet."""

    says: tuple[Say, ...] = ()
    lines: tuple[Line, ...] = ()
    activities: tuple[Activity, ...] = ()
    asks: tuple[AskView, ...] = ()
    oracles: tuple[Oracle, ...] = ()
    ends: tuple[End, ...] = ()
    past: tuple[AskView, ...] = ()
    """Settled asks that left the thread's picture, shortened, for people who come late. The newest ones only."""
    receipts: tuple[Receipt, ...] = ()

    @property
    def over(self) -> bool:
        """Whether the run has ended. A lost one has not: it may come back."""
        return self.state in FINAL

    @property
    def cost(self) -> float:
        """US dollars so far, without the oracle."""
        if self.final_cost is not None:
            return self.final_cost
        return self.spent

    @property
    def open_asks(self) -> tuple[AskView, ...]:
        return tuple(ask for ask in self.asks if ask.open)

    @property
    def subagents(self) -> int:
        """How many subagents are at work."""
        return sum(sends_off(call.tool) for call in self.calls)

    def ask(self, fence: int, id: str) -> AskView | None:  # noqa: A002 - the word of the wire
        """Find a question by its identity on the wire, settled ones included."""
        return next((ask for ask in (*self.asks, *self.past) if (ask.fence, ask.id) == (fence, id)), None)


def ask_key(run: RunId, fence: int, ask: str) -> str:
    """Name an ask for the state store (`Settled.ask`): run, attempt, id (rulings R2)."""
    return f"{run}/{fence}/{ask}"


def sends_off(tool: str) -> bool:
    """Whether a call of this tool is a subagent at work."""
    return tool in ("Agent", "Task")
