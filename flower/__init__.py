"""A framework for long agent runs on claude-agent-sdk; knows nothing of chat or Redis.

Names are loaded when they are first used: `flower --help` does not wait for the SDK.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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

_HOMES = {
    "flower.core.agent": "AgentSpec CompactPolicy HandoffPolicy build_options default_window",
    "flower.core.brief": "Brief",
    "flower.core.events": "Event normalize",
    "flower.core.goal": "Goal Verdict",
    "flower.core.guard": (
        "delegate_guard index_guard isolate_guard isolated merge_hooks spill_guard "
        "wants_isolation whitelist_guard workbench_hooks"
    ),
    "flower.core.handoff": "Handoff",
    "flower.core.human": "Ask HumanChannel",
    "flower.core.lineage": "Lineage",
    "flower.core.resilience": "Resilience classify endpoint reachable",
    "flower.core.roles": (
        "CLARIFIER_RULES COORDINATOR_RULES JUDGE_RULES ORACLE_RULES WORKER_RULES clarify "
        "coordinator judge oracle worker"
    ),
    "flower.core.runtime": "Runtime StepResult",
    "flower.core.workbench": "Workbench",
    "flower.stores.prune": "PrunePolicy PruningSessionStore",
    "flower.stores.sqlite": "SqliteSessionStore",
    "flower.stores.trim": "EphemeralPolicy TrimmingSessionStore TrimPolicy is_ephemeral trim_report",
    "flower.workflow.base": "Step StepAbort Workflow",
    "flower.workflow.clarify": "BRIEF_KEY CLARIFY_RESUME MISSING_KEY clarify_step",
    "flower.workflow.goal": "GOAL_KEY ROUND_KEY VERDICT_KEY goal_step with_goal",
    "flower.workflow.starter": "starter_flow wake_state",
}
"""Where each name lives, as the imports above have it."""

_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

if not TYPE_CHECKING:  # a type checker that saw it would take any name for an existing one

    def __getattr__(name):
        if name not in _HOME_OF:
            raise AttributeError(f"module 'flower' has no attribute {name!r}", name=name)
        found = globals()[name] = getattr(import_module(_HOME_OF[name]), name)
        return found
