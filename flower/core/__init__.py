"""How one step runs: what an agent is, its hooks and documents, the way to people, and the runtime that drives it."""

from flower.core.agent import AgentSpec, CompactPolicy, build_options
from flower.core.env import check_credentials, describe, load_dotenv
from flower.core.events import Event, EventKind, normalize
from flower.core.runtime import Runtime, StepResult

__all__ = [
    "AgentSpec",
    "CompactPolicy",
    "Event",
    "EventKind",
    "Runtime",
    "StepResult",
    "build_options",
    "check_credentials",
    "describe",
    "load_dotenv",
    "normalize",
]
