"""A framework for long agent runs on claude-agent-sdk; knows nothing of chat or Redis."""

from flower.core.agent import AgentSpec, CompactPolicy, HandoffPolicy, build_options, default_window
from flower.core.brief import Brief
from flower.core.events import Event, normalize
from flower.core.goal import Goal, Verdict
from flower.core.guard import (
    delegate_guard,
    index_guard,
    isolate_guard,
    isolated,
    merge_hooks,
    spill_guard,
    wants_isolation,
    whitelist_guard,
    workbench_hooks,
)
from flower.core.handoff import Handoff
from flower.core.human import Ask, HumanChannel
from flower.core.lineage import Lineage
from flower.core.resilience import Resilience, classify, endpoint, reachable
from flower.core.roles import (
    CLARIFIER_RULES,
    COORDINATOR_RULES,
    JUDGE_RULES,
    ORACLE_RULES,
    WORKER_RULES,
    clarify,
    coordinator,
    judge,
    oracle,
    worker,
)
from flower.core.runtime import Runtime, StepResult
from flower.core.workbench import Workbench
from flower.stores.prune import PrunePolicy, PruningSessionStore
from flower.stores.sqlite import SqliteSessionStore
from flower.stores.trim import EphemeralPolicy, TrimmingSessionStore, TrimPolicy, is_ephemeral, trim_report
from flower.workflow.base import Step, StepAbort, Workflow
from flower.workflow.clarify import BRIEF_KEY, CLARIFY_RESUME, MISSING_KEY, clarify_step
from flower.workflow.goal import GOAL_KEY, ROUND_KEY, VERDICT_KEY, goal_step, with_goal
from flower.workflow.starter import starter_flow, wake_state

__version__ = "0.1.0"

__all__ = [
    "BRIEF_KEY",
    "CLARIFIER_RULES",
    "CLARIFY_RESUME",
    "COORDINATOR_RULES",
    "GOAL_KEY",
    "JUDGE_RULES",
    "MISSING_KEY",
    "ORACLE_RULES",
    "ROUND_KEY",
    "VERDICT_KEY",
    "WORKER_RULES",
    "AgentSpec",
    "Ask",
    "Brief",
    "CompactPolicy",
    "EphemeralPolicy",
    "Event",
    "Goal",
    "Handoff",
    "HandoffPolicy",
    "HumanChannel",
    "Lineage",
    "PrunePolicy",
    "PruningSessionStore",
    "Resilience",
    "Runtime",
    "SqliteSessionStore",
    "Step",
    "StepAbort",
    "StepResult",
    "TrimPolicy",
    "TrimmingSessionStore",
    "Verdict",
    "Workbench",
    "Workflow",
    "build_options",
    "clarify",
    "clarify_step",
    "classify",
    "coordinator",
    "default_window",
    "delegate_guard",
    "endpoint",
    "goal_step",
    "index_guard",
    "is_ephemeral",
    "isolate_guard",
    "isolated",
    "judge",
    "merge_hooks",
    "normalize",
    "oracle",
    "reachable",
    "spill_guard",
    "starter_flow",
    "trim_report",
    "wake_state",
    "wants_isolation",
    "whitelist_guard",
    "with_goal",
    "workbench_hooks",
    "worker",
]
