"""The door of the package: what it offers, and what is still to come (API 3, rulings R5)."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

import flower

BUILT = [
    "AgentSpec",
    "Ask",
    "BRIEF_KEY",
    "Brief",
    "CLARIFIER_RULES",
    "CLARIFY_RESUME",
    "COORDINATOR_RULES",
    "CompactPolicy",
    "EphemeralPolicy",
    "Event",
    "GOAL_KEY",
    "Goal",
    "Handoff",
    "HandoffPolicy",
    "HumanChannel",
    "JUDGE_RULES",
    "Lineage",
    "MISSING_KEY",
    "ORACLE_RULES",
    "PrunePolicy",
    "PruningSessionStore",
    "ROUND_KEY",
    "Resilience",
    "Runtime",
    "SqliteSessionStore",
    "Step",
    "StepAbort",
    "StepResult",
    "TrimPolicy",
    "TrimmingSessionStore",
    "VERDICT_KEY",
    "Verdict",
    "WORKER_RULES",
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

HOMES = {
    "flower.core.agent": ["AgentSpec", "CompactPolicy", "HandoffPolicy", "build_options", "default_window"],
    "flower.core.handoff": ["Handoff"],
    "flower.core.runtime": ["Runtime", "StepResult"],
    "flower.core.roles": [
        *("coordinator", "worker", "clarify", "judge", "oracle"),
        *("COORDINATOR_RULES", "WORKER_RULES", "CLARIFIER_RULES", "JUDGE_RULES", "ORACLE_RULES"),
    ],
    "flower.core.brief": ["Brief"],
    "flower.core.goal": ["Goal", "Verdict"],
    "flower.core.guard": [
        *("whitelist_guard", "delegate_guard", "spill_guard", "index_guard", "isolate_guard"),
        *("isolated", "wants_isolation", "workbench_hooks", "merge_hooks"),
    ],
    "flower.core.workbench": ["Workbench"],
    "flower.core.events": ["Event", "normalize"],
    "flower.core.human": ["Ask", "HumanChannel"],
    "flower.core.lineage": ["Lineage"],
    "flower.core.resilience": ["Resilience", "classify", "endpoint", "reachable"],
    "flower.stores.sqlite": ["SqliteSessionStore"],
    "flower.stores.trim": [
        *("EphemeralPolicy", "TrimPolicy", "TrimmingSessionStore", "is_ephemeral", "trim_report"),
    ],
    "flower.stores.prune": ["PrunePolicy", "PruningSessionStore"],
    "flower.workflow.base": ["Step", "Workflow", "StepAbort"],
    "flower.workflow.clarify": ["clarify_step", "BRIEF_KEY", "MISSING_KEY", "CLARIFY_RESUME"],
    "flower.workflow.goal": ["goal_step", "with_goal", "GOAL_KEY", "VERDICT_KEY", "ROUND_KEY"],
    "flower.workflow.starter": ["starter_flow", "wake_state"],
}
"""The module map of API 1, without what is still to come."""


def test_flower_offers_exactly_what_is_built() -> None:
    assert sorted(flower.__all__) == BUILT
    assert [name for name in flower.__all__ if not hasattr(flower, name)] == []


def test_the_62_names_are_all_there() -> None:
    assert len(set(BUILT)) == 62


def test_a_name_that_nobody_specified_is_simply_unknown() -> None:
    with pytest.raises(AttributeError, match="module 'flower' has no attribute 'nonsense'"):
        getattr(flower, "nonsense")  # noqa: B009 - a type checker would refuse the attribute


def test_every_name_lives_in_its_module_too() -> None:
    strangers = [
        f"{home}.{name}"
        for home, names in HOMES.items()
        for name in names
        if getattr(import_module(home), name) is not getattr(flower, name)
    ]
    assert strangers == []
    assert sorted({name for names in HOMES.values() for name in names}) == sorted(BUILT)


def test_the_version_is_that_of_the_distribution() -> None:
    declared = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    assert flower.__version__ == "0.1.0"
    assert 'version = "0.1.0"' in declared


def test_the_package_says_that_it_is_typed() -> None:
    assert (Path(flower.__file__).parent / "py.typed").exists()
