"""Five roles: rule text, tools and flags. Hooks are not attached here, the runtime derives them from the spec."""

from __future__ import annotations

from typing import Any, cast

from claude_agent_sdk import AgentDefinition
from claude_agent_sdk.types import EffortLevel, PermissionMode

from flower import texts
from flower.core.agent import AgentSpec
from flower.core.guard import isolated
from flower.core.rule_texts import CLARIFIER_RULES, COORDINATOR_RULES, JUDGE_RULES, ORACLE_RULES, WORKER_RULES

__all__ = [
    "CLARIFIER_RULES",
    "COORDINATOR_RULES",
    "COORDINATOR_TOOLS",
    "JUDGE_RULES",
    "ORACLE_RULES",
    "WEB_TOOLS",
    "WORKER_RULES",
    "WORKER_TOOLS",
    "clarify",
    "coordinator",
    "judge",
    "oracle",
    "worker",
]

COORDINATOR_TOOLS = ["Agent", "TodoWrite", "Read"]
WEB_TOOLS = ["WebFetch", "WebSearch"]
WORKER_TOOLS = ["Read", "Write", "Edit", "Bash", "Glob", "Grep", "WebFetch", "WebSearch"]
_LOOK = ["Read", "Glob", "Grep"]


def coordinator(
    name: str,
    instructions: str,
    workers: dict[str, AgentDefinition],
    *,
    channel: Any = None,
    can_read: bool = True,
    glance: bool = True,
    model: str | None = None,
    effort: str | None = None,
    max_turns: int | None = None,
    max_budget_usd: float | None = None,
    permission_mode: str = "acceptEdits",
    compact: Any = None,
    hooks: dict[str, Any] | None = None,
    env: dict[str, str] | None = None,
) -> AgentSpec:
    """The agent of the main thread that splits, delegates, reads reports and decides.

    A channel brings both its tools: the server has both, and leaving one off the list would not forbid it.
    """
    workers = workers or {}
    tools = [tool for tool in COORDINATOR_TOOLS if can_read or tool != "Read"]
    if glance:
        tools.append("Bash")
    if channel is not None:
        tools += [channel.inbox_name, channel.tool_name]
    return AgentSpec(
        name=name,
        instructions=_told(texts.current().rules.coordinator, instructions),
        allowed_tools=tools + _web_tools_of(workers),
        model=model,
        effort=effort,
        max_turns=max_turns,
        max_budget_usd=max_budget_usd,
        permission_mode=permission_mode,
        agents=workers,
        mcp_servers=channel.mcp_servers() if channel is not None else {},
        hooks=hooks,
        compact=compact,
        env=env or {},
        glance=glance,
        delegate_only=True,
    )


def worker(
    description: str,
    prompt: str,
    *,
    tools: list[str] | None = None,
    model: str = "inherit",
    effort: str | int | None = None,
    max_turns: int | None = None,
    permission_mode: str | None = None,
    skills: list[str] | None = None,
    discipline: bool = True,
    isolate: bool = False,
) -> AgentDefinition:
    """A subagent that does the work. `description` is what the coordinator reads when it chooses whom to send.

    The tools are always named: a definition without them is offered nearly everything, `Agent` too.

    Args:
        isolate: each call works in a git worktree of its own, and leaves there whatever nobody merges; what that
            needs and does is in `flower.core.worktrees`. Copying the definition with `dataclasses.replace` loses it.
    """
    definition = AgentDefinition(
        description=description,
        prompt=f"{prompt}\n\n{texts.current().rules.worker}" if discipline else prompt,
        tools=list(WORKER_TOOLS) if tools is None else tools,
        model=model,
        skills=skills,
        effort=cast("EffortLevel | int | None", effort),
        maxTurns=max_turns,
        permissionMode=cast("PermissionMode | None", permission_mode),
    )
    return isolated(definition) if isolate else definition


def clarify(
    name: str,
    channel: Any,
    *,
    instructions: str = "",
    can_read: bool = True,
    model: str | None = None,
    effort: str | None = None,
    max_turns: int | None = None,
    max_budget_usd: float | None = None,
) -> AgentSpec:
    """Asks until the requirement is clear, ends with four sections, does nothing else.

    Unlimited questions need both `HumanChannel.max_asks=None` and `max_turns=None`, since each question is a turn.
    """
    return AgentSpec(
        name=name,
        instructions=_told(texts.current().rules.clarifier, instructions),
        allowed_tools=[channel.tool_name, *([*_LOOK, *WEB_TOOLS] if can_read else [])],
        model=model,
        effort=effort,
        max_turns=max_turns,
        max_budget_usd=max_budget_usd,
        mcp_servers=channel.mcp_servers(),
        workbench=False,
    )


def judge(
    name: str,
    channel: Any,
    *,
    instructions: str = "",
    can_run: bool = False,
    model: str | None = None,
    effort: str | None = None,
    max_turns: int | None = None,
    max_budget_usd: float | None = None,
) -> AgentSpec:
    """Sets the goal, or gives a verdict on one round.

    With `can_run` it can run what the checklist names, and can change the workspace too: `Bash` writes.
    """
    return AgentSpec(
        name=name,
        instructions=_told(texts.current().rules.judge, instructions),
        allowed_tools=[channel.tool_name, *_LOOK, *(["Bash"] if can_run else [])],
        model=model,
        effort=effort,
        max_turns=max_turns,
        max_budget_usd=max_budget_usd,
        mcp_servers=channel.mcp_servers(),
        workbench=False,
    )


def oracle(
    name: str = "旁路问答",
    *,
    instructions: str = "",
    model: str | None = None,
    effort: str | None = None,
    max_turns: int | None = 12,
    max_budget_usd: float | None = 0.5,
) -> AgentSpec:
    """A read-only bystander that answers one question about a run. The two limits are brakes."""
    return AgentSpec(
        name=name,
        instructions=_told(texts.current().rules.oracle, instructions),
        allowed_tools=list(_LOOK),
        model=model,
        effort=effort,
        max_turns=max_turns,
        max_budget_usd=max_budget_usd,
    )


def _told(rules: str, instructions: str) -> str:
    return f"{rules}\n{instructions}".strip()


def _web_tools_of(workers: dict[str, AgentDefinition]) -> list[str]:
    """The read-only web tools of the workers, once each.

    The session's list binds subagents too: a call to a tool that is missing there waits for an approval that nobody
    gives. Write, Edit and Bash are never merged up, or the wall before the main thread would be gone.
    """
    owned = {tool for agent in workers.values() for tool in agent.tools or []}
    return [tool for tool in WEB_TOOLS if tool in owned]
