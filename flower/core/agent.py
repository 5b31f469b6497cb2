"""What an agent is, and its way into SDK options. Decides nothing about when it runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

from claude_agent_sdk import ClaudeAgentOptions, SessionStore

from flower.core.calibration import calib_path, calibrated_window, default_window, remember_overflow

__all__ = [
    "PLUGIN_DIR",
    "AgentSpec",
    "CompactPolicy",
    "HandoffPolicy",
    "Options",
    "build_options",
    "calib_path",
    "calibrated_window",
    "default_window",
    "remember_overflow",
]

Options = ClaudeAgentOptions
"""What the SDK is started with, for modules that only hand it on."""

PLUGIN_DIR = Path(__file__).resolve().parents[2] / "plugin"
"""Skills and the like that travel with a source tree; an installed wheel has none (API 19)."""

OFFERED = (
    "Bash",
    "Edit",
    "Glob",
    "Grep",
    "NotebookEdit",
    "Read",
    "Skill",
    "TodoWrite",
    "WebFetch",
    "WebSearch",
    "Write",
)
"""Built-in tools that every session is offered, besides those its spec names.

Without a list the program leaves out Glob and Grep as soon as Bash is there (also where a guard denies Bash), mostly
TodoWrite too, and adds tools that act behind the guards' back or outlive the turn: shell monitors, schedules,
worktrees. What is on offer is no permission: guards and `allowed_tools` still decide.
"""

_SWITCHES = {
    "auto": {},
    "no_summary": {"DISABLE_AUTO_COMPACT": "1"},
    "off": {"DISABLE_COMPACT": "1"},  # also kills /compact
}


@dataclass
class CompactPolicy:
    """Whether the harness may summarise a full context by itself."""

    mode: str = "auto"
    window: int | None = None

    def env(self) -> dict[str, str]:
        """The variables for the subprocess.

        Raises:
            ValueError: `mode` is none of `auto`, `no_summary`, `off`.
        """
        try:
            env = dict(_SWITCHES[self.mode])
        except KeyError:
            raise ValueError(f"compact mode {self.mode!r} is unknown; there are {', '.join(_SWITCHES)}") from None
        if self.window is not None:
            env["CLAUDE_CODE_AUTO_COMPACT_WINDOW"] = str(self.window)
        return env


@dataclass
class HandoffPolicy:
    """When a full context is handed over to a fresh session, instead of being compacted. Sizes are in tokens.

    A window so small that `at` lies below what a role needs to begin (about 34,000 for a coordinator) makes every
    new session hand over at once; only `max_generations` and the stop after two degraded handovers end that.

    Args:
        enabled: off leaves a full context to the program's own compaction.
        window: what the context is taken to hold.
        headroom: room for the turn that writes the document; 0 lets it grow with the window, a positive number is
            taken as it is.
        max_generations: a brake against a runaway.
    """

    enabled: bool = True
    window: int = field(default_factory=default_window)
    headroom: int = 0
    max_generations: int = 8

    HEADROOM_FRACTION: ClassVar[float] = 0.25
    HEADROOM_FLOOR: ClassVar[int] = 50_000

    @property
    def room(self) -> int:
        """What is left free for writing."""
        if self.headroom > 0:
            return self.headroom
        return max(self.HEADROOM_FLOOR, int(self.window * self.HEADROOM_FRACTION))

    @property
    def at(self) -> int:
        """The level at which the session is handed over."""
        return max(10_000, self.window - self.room)

    @property
    def warn_at(self) -> int:
        """The level at which people hear of it beforehand."""
        return max(1_000, self.at - 20_000)


@dataclass
class AgentSpec:
    """One agent of the main thread.

    `allowed_tools` is a no-approval list and not an exclusive one, and it is session-wide: a tool that is missing
    there waits for an approval when a subagent calls it. `disallowed_tools` is session-wide too, so it disarms
    subagents; it never keeps a coordinator hands-off (API 20, traps 3 and 4).
    """

    name: str
    instructions: str
    allowed_tools: list[str] = field(default_factory=lambda: ["Read", "Glob", "Grep"])
    disallowed_tools: list[str] = field(default_factory=list)
    model: str | None = None
    effort: str | None = None
    max_turns: int | None = None
    """Each question to a person is a turn: a small number caps the questions."""
    max_budget_usd: float | None = None
    permission_mode: str = "default"
    agents: dict[str, Any] | None = None
    mcp_servers: dict[str, Any] = field(default_factory=dict)
    hooks: dict[str, Any] | None = None
    compact: CompactPolicy | None = None
    env: dict[str, str] = field(default_factory=dict)
    glance: bool = False
    """The main thread may run look-only Bash commands although `delegate_only`."""
    workbench: bool = True
    """Give this agent the workbench index; roles without write tools should not have it."""
    delegate_only: bool = False
    """The runtime installs `delegate_guard` and not `whitelist_guard`."""


def build_options(
    spec: AgentSpec,
    *,
    cwd: str | Path | None = None,
    session_store: SessionStore | None = None,
    resume: str | None = None,
    fork: bool = False,
    resume_at: str | None = None,
    use_plugin: bool = True,
    portable: bool = True,
    add_dirs: list[str] | None = None,
    flush: str = "eager",
    prelude: str = "",
) -> ClaudeAgentOptions:
    """Compile a spec to SDK options (behaviour 9.2).

    `fork` and `resume_at` do nothing without `resume`. `flush` is eager because one turn can take many minutes, and
    what was not flushed is lost in a crash. The native system prompt is kept; the spec's instructions and then
    `prelude` come after it.

    Raises:
        ValueError: the spec's compact mode is unknown.
    """
    chosen: dict[str, Any] = {
        "system_prompt": {"type": "preset", "preset": "claude_code", "append": _append(spec, prelude)},
        "tools": _offered(spec),
        "allowed_tools": list(spec.allowed_tools),
        "disallowed_tools": list(spec.disallowed_tools),
        "permission_mode": spec.permission_mode,
        # None would load the user's and the project's settings, with their hooks and servers.
        "setting_sources": [] if portable else ["project"],
    }
    if use_plugin and PLUGIN_DIR.is_dir():
        chosen["plugins"] = [{"type": "local", "path": str(PLUGIN_DIR)}]
    if cwd is not None:
        chosen["cwd"] = str(cwd)
    if add_dirs:
        chosen["add_dirs"] = [str(place) for place in add_dirs]
    if session_store is not None:
        chosen["session_store"] = session_store
        chosen["session_store_flush"] = cast('Literal["batched", "eager"]', flush)
    if resume:
        chosen |= {"resume": resume, "fork_session": fork, "resume_session_at": resume_at}
    return ClaudeAgentOptions(**chosen, **_when_set(spec))


def _offered(spec: AgentSpec) -> list[str]:
    """Session-wide, so what a subagent names is on offer too; delegation only where there is somebody to send."""
    named = [*spec.allowed_tools, *(tool for agent in (spec.agents or {}).values() for tool in agent.tools or [])]
    own = {rule.partition("(")[0] for rule in named if not rule.startswith("mcp__")}
    return sorted(own.union(OFFERED, ["Agent"] if spec.agents else []))


def _append(spec: AgentSpec, prelude: str) -> str:
    return f"{spec.instructions}\n\n{prelude}" if prelude else spec.instructions


def _when_set(spec: AgentSpec) -> dict[str, Any]:
    """The options that keep the SDK's own default unless the spec says something."""
    given: dict[str, Any] = {
        "model": spec.model,
        "effort": spec.effort,
        "max_turns": spec.max_turns,
        "max_budget_usd": spec.max_budget_usd,
    }
    filled: dict[str, Any] = {
        "agents": spec.agents,
        "mcp_servers": spec.mcp_servers,
        "hooks": spec.hooks,
        "env": spec.env | (spec.compact.env() if spec.compact else {}),
    }
    return {name: value for name, value in given.items() if value is not None} | {
        name: value for name, value in filled.items() if value
    }
