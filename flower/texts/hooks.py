"""What a guard tells the model when it refuses, and what stands in for output that was cut (behaviour 11)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class HookTexts:
    whitelist: str
    """Placeholders: role, tool."""
    some_role: str
    """Names the role in `whitelist` when the caller gave none."""
    delegate: str
    """Placeholders: tool, artifacts."""
    glance_only: str
    """Added to `delegate` when the call was a Bash command and a glance would have been let through."""
    artifacts: str
    """Names the artifacts directory where no workbench is at hand."""
    spilled: str
    """Placeholders: size (characters), path, shown (characters of the head), head."""


ZH = HookTexts(
    whitelist=(
        "{role}没有 {tool} 这个工具。这是有意的,不是漏配了权限。把结论写进你的回话里就行,不要换别的办法绕过去。"
    ),
    some_role="这个角色",
    delegate=(
        "协调者不直接使用 {tool}。用 Agent 工具派一个 subagent 去做:写清目标和验收标准,"
        "让它把长输出写进 {artifacts},回话只给路径和结论。"
    ),
    glance_only="你的 Bash 只放行看一眼的只读命令(git status、ls、cat 之类,不带重定向和命令替换)。",
    artifacts="工作台的 artifacts/",
    spilled=(
        "[输出 {size} 字符,已落盘到 {path} —— 需要全文用 Read 读它,需要找东西用 Grep 搜它]\n开头 {shown} 字符:{head}"
    ),
)

EN = HookTexts(
    whitelist=(
        "{role} has no tool {tool}. This is intended and not a missing permission. "
        "Put your conclusion into your reply; do not try to get around it."
    ),
    some_role="This role",
    delegate=(
        "The coordinator does not use {tool} directly. Send a subagent with the Agent tool: state the goal and the "
        "acceptance criteria, have long output written to {artifacts}, and ask for a reply that gives only paths and "
        "the conclusion."
    ),
    glance_only=(
        "Your Bash lets only a glance through: read-only commands such as git status, ls, cat, without redirection or "
        "command substitution."
    ),
    artifacts="the workbench's artifacts/",
    spilled=(
        "[Output of {size} characters, written to {path}: use Read for all of it, Grep to search it]\n"
        "First {shown} characters: {head}"
    ),
)
