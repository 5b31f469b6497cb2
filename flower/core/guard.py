"""Hooks: the rules that must hold every time, enforced by code and not by prompt (behaviour 11).

A hook that lets a call pass returns `{}`. Every guard fails closed: a callback that raises would otherwise let the
call through (`on_failure="block"`). The bundled program reads a matcher made of letters, digits, `_` and `|` as a
list of exact names, and anything else as a regular expression that may match anywhere in the name; a real test holds
this.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import unicodedata
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from claude_agent_sdk import AgentDefinition, HookMatcher
from claude_agent_sdk.types import HookCallback

from flower import texts
from flower.core.disk import real, write_whole
from flower.core.workbench import Workbench
from flower.stores.ephemeral import is_ephemeral

HANDS_ON = "Bash|Write|Edit|NotebookEdit"
WRITE_ONLY = "Write|Edit|NotebookEdit"
BULKY = "Bash|Read|Grep|Glob|WebFetch|WebSearch"

_SOME_ROLE = "这个角色"
_SHOWN = 400
_SPILL_NAME = re.compile(r"(?<![\w.-])[0-9a-f]{16}\.txt(?![\w.-])")
_NAMED_WITHIN = 10_000
"""Characters of a tool's input in which the name of a file is looked for."""
_MARK = "_flower_isolate"
_DEFAULT_ROLE = "general-purpose"
"""Whom the program sends when a call names nobody; a spec may define this role itself."""
_APART = 0.4
"""Seconds between two worktrees. Made at the same instant they trip over each other's half-written files: of messages
with ten calls every second one had calls that failed ("failed to read .../commondir", git 2.39)."""

_Data = Mapping[str, Any]
_Output = dict[str, Any]


def whitelist_guard(allowed: list[str] | None, *, role: str = _SOME_ROLE) -> HookMatcher | None:
    """Make `allowed_tools` exclusive for the four hands-on tools, on the main thread.

    A rule such as `Bash(git status:*)` leaves the tool to the program's own permissions. None if nothing is to be
    blocked.
    """
    granted = {rule.partition("(")[0] for rule in allowed or []}
    banned = [tool for tool in HANDS_ON.split("|") if tool not in granted]
    if not banned:
        return None
    words = texts.current().hooks
    named = words.some_role if role == _SOME_ROLE else role

    async def refuse(data: _Data) -> _Output:
        if not on_main_thread(data):
            return {}
        return denied(words.whitelist.format(role=named, tool=data.get("tool_name")))

    return hook_on("|".join(banned), refuse)


def delegate_guard(*, tools: str = HANDS_ON, allow_glance: bool = False) -> HookMatcher:
    """Refuse hands-on tools on the main thread and point the way: send a subagent.

    `tools` is a matcher as in the module's docstring. Tools of MCP servers that write are not among `HANDS_ON`: give
    their names (`mcp__server__tool`) as well. With `allow_glance` a Bash command that only looks passes.
    """
    return _delegate(tools, allow_glance, texts.current().hooks.artifacts)


def index_guard(workbench: Workbench) -> HookMatcher:
    """Rewrite the index when a file inside the workbench was written. Never has an opinion."""

    def inside(path: str, cwd: str | None) -> bool:
        return real(Path(cwd or workbench.workspace, path)).is_relative_to(workbench.root)

    async def refresh(data: _Data) -> _Output:
        path = str(_input(data).get("file_path") or "")
        # A bad path or a full disk must not turn a finished write into an error.
        with suppress(OSError, ValueError):
            if path and inside(path, data.get("cwd")):
                workbench.refresh()
        return {}

    return hook_on("Write|Edit", refresh)


def spill_guard(
    workbench: Workbench, *, threshold: int = 4000, tools: str = BULKY, main_only: bool = False
) -> HookMatcher:
    """Put results of `threshold` characters or more into a file, before the model sees them (behaviour 11.1).

    The replacement keeps the structure of the tool's output, else the program drops it without a word. A call that
    reads the spill directory passes as it is: spilling the full text again would loop for ever.
    """
    spill = _Spill(workbench=workbench, threshold=threshold, text=texts.current().hooks.spilled)

    async def shorten(data: _Data) -> _Output:
        if main_only and not on_main_thread(data):
            return {}
        output = data.get("tool_response")
        try:
            short = output if spill.is_read_by(data.get("tool_input")) else spill.shortened(output)
        except (OSError, RecursionError):
            return {}  # the long text costs context, a blocked result would cost the turn
        if short == output:
            return {}
        return {"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": short}}

    return hook_on(tools, shorten)


def isolate_guard(agents: dict[str, AgentDefinition], *, on_inject: Any = None) -> HookMatcher:
    """Give each call of a marked role a git worktree of its own (behaviour 11, API 8.5).

    A call that names a `cwd` or an `isolation` of its own is left as it is: the two exclude each other. Of several
    calls at once each waits a moment for the one before.

    Args:
        agents: the roles by the name that a call gives as `subagent_type`; see `isolated`.
        on_inject: called with `subagent_type` and `description` each time. What it raises is not heard of: a log
            must not stand in the way of the work.
    """
    line = _Line()

    async def inject(data: _Data) -> _Output:
        given = _input(data)
        if given.get("cwd") or given.get("isolation"):
            return {}
        role = given.get("subagent_type")
        if not any(wants_isolation(agent) for agent in _meant(role, agents)):
            return {}
        if on_inject is not None:
            with suppress(Exception):
                on_inject(role, given.get("description"))
        await line.turn()
        return {
            "hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": "allow",
                "updatedInput": {**given, "isolation": "worktree"},
            }
        }

    # `Task` is another name of the tool: the program tells hooks `Agent` whatever the call says (a real test holds it).
    return hook_on("Agent", inject)


def isolated(agent: AgentDefinition, flag: bool = True) -> AgentDefinition:
    """Mark a definition for isolation and return the same object.

    The mark is an attribute and no field, so the SDK's serialisation never sees it; `dataclasses.replace` loses it.
    """
    object.__setattr__(agent, _MARK, flag)
    return agent


def wants_isolation(agent: AgentDefinition | None) -> bool:
    return bool(getattr(agent, _MARK, False))


def workbench_hooks(
    workbench: Workbench,
    *,
    delegate_only: bool = True,
    spill_threshold: int | None = 4000,
    agents: dict[str, AgentDefinition] | None = None,
    allow_glance: bool = False,
) -> dict[str, list[HookMatcher]]:
    """The hooks of a runtime with a workbench. Events without a hook are left out.

    With an agent that is marked for isolation the workbench must lie outside the repository: a worktree holds what is
    committed, so it has no `.flower` of its own and cannot write into that of the main checkout.
    """
    before: list[HookMatcher] = []
    if delegate_only:
        before.append(_delegate(HANDS_ON, allow_glance, f"{workbench.show(workbench.artifacts)}/"))
    if agents and any(wants_isolation(agent) for agent in agents.values()):
        before.append(isolate_guard(agents))
    after = [index_guard(workbench)]
    if spill_threshold:
        after.append(spill_guard(workbench, threshold=spill_threshold))
    hooks = {"PreToolUse": before, "PostToolUse": after}
    return {event: matchers for event, matchers in hooks.items() if matchers}


def merge_hooks(*groups: dict[str, list[Any]] | None) -> dict[str, list[Any]]:
    """Concatenate by event name, in order. Inputs stay as they are, nothing is deduplicated."""
    merged: dict[str, list[Any]] = {}
    for group in groups:
        for event, matchers in (group or {}).items():
            merged.setdefault(event, []).extend(matchers)
    return merged


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spill:
    """The directory where long output lies, and what stands in its place."""

    workbench: Workbench
    threshold: int
    text: str

    @property
    def place(self) -> Path:
        return self.workbench.root / "spill"

    def is_read_by(self, tool_input: Any) -> bool:
        """Whether a call points into the directory, by a path in any form.

        The pointer shows an absolute path or one relative to the workspace (D11). From elsewhere it is written in other
        ways (`cd .flower && cat spill/…`, `../.flower-ws/spill/…`): then the file's own name tells.
        """
        paths = {str(self.place), self.workbench.show(self.place)}
        given = list(_strings(tool_input))
        if any(path in text for text in given for path in paths):
            return True
        names = {name for text in given for name in _SPILL_NAME.findall(text[:_NAMED_WITHIN])}
        return any((self.place / name).exists() for name in names)

    def shortened(self, output: Any) -> Any:
        """Long strings replaced, at any depth of nested dicts. What may hold an image stays: lists, and base64."""
        if isinstance(output, str) and len(output) >= self.threshold:
            return self._put_away(output)
        if isinstance(output, dict) and not output.get("isImage"):
            return {name: inner if name == "base64" else self.shortened(inner) for name, inner in output.items()}
        return output

    def _put_away(self, output: str) -> str:
        content = output.encode(errors="surrogatepass")
        file = self.place / f"{hashlib.sha256(content).hexdigest()[:16]}.txt"
        if not file.exists():
            # In one step: half a file would be taken for the whole for ever.
            write_whole(file, content)
        head = output[:_SHOWN].replace("\n", " ")
        return self.text.format(size=len(output), path=self.workbench.show(file), shown=_SHOWN, head=head)


def _delegate(tools: str, allow_glance: bool, artifacts: str) -> HookMatcher:
    """The denial names the artifacts directory as the workbench shows it: it may lie elsewhere (D22)."""
    words = texts.current().hooks

    async def refuse(data: _Data) -> _Output:
        if not on_main_thread(data):
            return {}
        tool = data.get("tool_name")
        glancing = allow_glance and tool == "Bash"
        if glancing and is_ephemeral(str(_input(data).get("command") or "")):
            return {}
        way = words.delegate.format(tool=tool, artifacts=artifacts)
        return denied(f"{way}\n{words.glance_only}" if glancing else way)

    return hook_on(tools, refuse)


def hook_on(tools: str | None, decide: Callable[[_Data], Awaitable[_Output]]) -> HookMatcher:
    """Return a hook that fails closed, for the tools that a matcher names; None for all.

    What has no opinion answers `{}`.
    """

    async def hook(data: _Data, _tool_use_id: str | None, _context: Any) -> _Output:
        return await decide(data)

    # The SDK's union of typed dicts, one per event, says less than the table of behaviour 11.
    return HookMatcher(matcher=tools, hooks=[cast("HookCallback", hook)], on_failure="block")


class _Line:
    """Lets its callers through one at a time, `_APART` seconds from one to the next."""

    def __init__(self) -> None:
        self._free_at = 0.0

    async def turn(self) -> None:
        """Return at once where nobody stands in line."""
        now = asyncio.get_running_loop().time()
        mine = max(now, self._free_at)
        self._free_at = mine + _APART
        await asyncio.sleep(mine - now)


def _meant(role: Any, agents: Mapping[str, AgentDefinition]) -> list[AgentDefinition]:
    """The agents that the program may start for this name: it is lenient with case, blanks, hyphens, and wide letters.

    This is at least as lenient. A name that the program does not know is refused there, whatever is answered here.
    """
    named = _DEFAULT_ROLE if role is None else role
    if not isinstance(named, str):
        return []
    if named in agents:
        return [agents[named]]
    bare = _bare(named)
    return [agent for name, agent in agents.items() if _bare(name) == bare]


def _bare(name: str) -> str:
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", name).casefold()))


def on_main_thread(data: _Data) -> bool:
    """Whether a hook was called for the main thread: only calls of subagents name an agent."""
    return not data.get("agent_id")


def _input(data: _Data) -> Mapping[str, Any]:
    """What the model gave the tool: nothing where that is not an object."""
    given = data.get("tool_input")
    return given if isinstance(given, Mapping) else {}


def denied(reason: str) -> _Output:
    """Return the answer that refuses a call and tells the model why."""
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": reason,
        }
    }


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _strings(inner)
