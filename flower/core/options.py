"""What an attempt is given: the SDK's options, built from the spec, the turn, and what the runtime has."""

from __future__ import annotations

import dataclasses
import errno
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from flower import texts
from flower.core import worktrees
from flower.core.agent import AgentSpec, CompactPolicy, HandoffPolicy, Options, build_options
from flower.core.child import NOTE
from flower.core.guard import merge_hooks, whitelist_guard, workbench_hooks
from flower.core.leftovers import MARK
from flower.core.openings import Openings, digest_of
from flower.core.starting import start_script
from flower.core.workbench import Workbench

Hooks = dict[str, list[Any]]

QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_AUTOUPDATER": "1",
}
MANNERS = {
    # Delegation blocks: its result is the subagent's report (SDK facts 3, trap 2).
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
    # A question costs no search first (trap 3); the plan comes as TodoWrite (trap 7).
    "ENABLE_TOOL_SEARCH": "false",
    "CLAUDE_CODE_ENABLE_TASKS": "0",
    # A question may wait 24.8 days (D5).
    "MCP_TOOL_TIMEOUT": "2147483647",
    # People hear of trouble early; going on with it is our business.
    "CLAUDE_CODE_MAX_RETRIES": "2",
}
"""What every child gets; a spec's own `env` stands above it."""

BUFFER_BYTES = 64 << 20
"""A longer line of the program ends the run; the SDK's default of 1 MiB is one written file (facts 1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What one attempt says, and to which session."""

    text: str
    resume: str | None = None
    fork: bool = False
    resume_at: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionsBuilder:
    """What a runtime adds to the spec of each attempt."""

    workspace: Path
    run_dir: Path
    store: Any
    workbench: Workbench | None
    portable: bool
    spill_threshold: int | None
    openings: Openings
    handoff: HandoffPolicy
    plugins: Sequence[Path] = ()

    def build(
        self, spec: AgentSpec, turn: Turn, *, hooks: Hooks, note: Path, stderr: Callable[[str], None]
    ) -> tuple[Options, str]:
        """Build an attempt's options, and the digest of the workbench's index that goes into them.

        Args:
            hooks: those that the attempt itself brings.
            note: where the start script says which process the program is, and where it keeps its transcript.

        Raises:
            OSError: the workbench or the run folder cannot be written.
            ValueError: the spec asks for what there is not.
        """
        if not self.workspace.is_dir():
            # To make it anew would have the agent go on in an empty one.
            raise NotADirectoryError(errno.ENOTDIR, texts.current().running.workspace_gone, str(self.workspace))
        hands_over = self.handoff.enabled and spec.compact is None
        if hands_over:
            spec = dataclasses.replace(spec, compact=CompactPolicy(mode="no_summary"))
        prelude = self._prelude(spec)
        bench = self.workbench
        options = build_options(
            dataclasses.replace(spec, hooks=merge_hooks(self._hooks(spec), hooks)),
            cwd=self.workspace,
            session_store=self.store,
            resume=turn.resume,
            fork=turn.fork,
            resume_at=turn.resume_at,
            portable=self.portable,
            add_dirs=[str(bench.root)] if bench is not None and bench.external else None,
            prelude=prelude,
        )
        own = {**QUIET, **MANNERS, "CLAUDE_CONFIG_DIR": str(self.run_dir / "claude")}
        if hands_over:
            # Else the program refuses 23,000 tokens before the window, where the last words need room (SDK facts 14).
            own["CLAUDE_CODE_BLOCKING_LIMIT_OVERRIDE"] = str(self.handoff.window)
        options.env = {**own, **options.env}
        for folder in self.plugins:
            options.plugins.append({"type": "local", "path": str(folder)})
        options.max_buffer_size = BUFFER_BYTES
        options.verbatim_prompts = True  # what people write is never run as a slash command (trap 6)
        options.stderr = stderr
        options.settings = worktrees.settings(spec.agents)
        options.cli_path = start_script(self.run_dir, options.env)
        options.env |= {NOTE: str(note), MARK: note.stem}
        index = digest_of(prelude)
        if turn.resume is not None and self.openings.began_with(turn.resume, otherwise=digest_of("")) != index:
            cast("dict[str, Any]", options.system_prompt)["snapshot"] = False
        return options, index

    def _prelude(self, spec: AgentSpec) -> str:
        if self.workbench is None:
            return ""
        self.workbench.refresh()
        return self.workbench.prompt_block() if spec.workbench else ""

    def _hooks(self, spec: AgentSpec) -> Hooks:
        groups: list[Hooks | None] = [spec.hooks]
        if self.workbench is not None:
            hooks = workbench_hooks(
                self.workbench,
                delegate_only=spec.delegate_only,
                spill_threshold=self.spill_threshold,
                agents=spec.agents,
                allow_glance=spec.glance,
            )
            groups.append(cast("Hooks", hooks))
        if not spec.delegate_only and (guard := whitelist_guard(spec.allowed_tools, role=spec.name)):
            groups.append({"PreToolUse": [guard]})
        return merge_hooks(*groups)
