"""Five roles: what they are told, what they may use (behaviour 10, API 6)."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from claude_agent_sdk import AgentDefinition

from flower import texts
from flower.core import roles
from flower.core.agent import CompactPolicy
from flower.core.guard import wants_isolation
from flower.core.human import HumanChannel
from flower.core.roles import clarify, coordinator, judge, oracle, worker
from flower.texts import rules

ASK, INBOX = "mcp__human__ask", "mcp__human__inbox"


@pytest.fixture
def channel() -> HumanChannel:
    return HumanChannel()


def a_worker(*tools: str) -> AgentDefinition:
    return worker("does it", "You do it.", tools=list(tools) or None)


# The coordinator.


def test_a_coordinator_without_workers_or_channel_has_its_own_tools_only() -> None:
    spec = coordinator("c", "", {})
    assert spec.allowed_tools == ["Agent", "TodoWrite", "Read", "Bash"]
    assert (spec.mcp_servers, spec.env, spec.disallowed_tools) == ({}, {}, [])


def test_a_coordinator_tolerates_no_workers_at_all() -> None:
    assert coordinator("c", "", None).agents == {}  # type: ignore[arg-type]  # API 6.1: None is tolerated


def test_a_coordinator_delegates_and_does_nothing_else() -> None:
    coder = a_worker("Read")
    spec = coordinator("c", "", {"coder": coder})
    assert (spec.delegate_only, spec.glance, spec.workbench) == (True, True, True)
    assert spec.agents == {"coder": coder}
    assert spec.permission_mode == "acceptEdits"


def test_a_coordinator_that_may_not_look_has_neither_eye() -> None:
    spec = coordinator("c", "", {}, can_read=False, glance=False)
    assert (spec.allowed_tools, spec.glance) == (["Agent", "TodoWrite"], False)


def test_a_channel_brings_both_its_tools(channel: HumanChannel) -> None:
    spec = coordinator("c", "", {}, channel=channel)
    assert spec.allowed_tools == ["Agent", "TodoWrite", "Read", "Bash", INBOX, ASK]
    assert list(spec.mcp_servers) == ["human"]


@pytest.mark.parametrize(
    ("workers", "merged"),
    [
        ([], []),
        ([["Write", "Edit", "Bash", "Read"]], []),
        ([["WebSearch"]], ["WebSearch"]),
        ([["WebSearch", "WebFetch"], ["WebFetch"]], ["WebFetch", "WebSearch"]),
    ],
)
def test_only_the_web_tools_of_workers_are_merged_up_once_each(workers: list[list[str]], merged: list[str]) -> None:
    spec = coordinator("c", "", {f"w{n}": a_worker(*tools) for n, tools in enumerate(workers)})
    assert spec.allowed_tools == ["Agent", "TodoWrite", "Read", "Bash", *merged]


def test_a_worker_that_inherits_its_tools_merges_nothing() -> None:
    everything = AgentDefinition(description="d", prompt="p")
    assert coordinator("c", "", {"w": everything}).allowed_tools == ["Agent", "TodoWrite", "Read", "Bash"]


def test_the_rest_goes_straight_to_the_spec() -> None:
    compact = CompactPolicy("off")
    spec = coordinator(
        "c",
        "",
        {},
        model="m",
        effort="low",
        max_turns=1,
        max_budget_usd=2.0,
        permission_mode="plan",
        compact=compact,
        hooks={"Stop": []},
        env={"A": "1"},
    )
    assert (spec.model, spec.effort, spec.max_turns, spec.max_budget_usd) == ("m", "low", 1, 2.0)
    assert (spec.permission_mode, spec.compact, spec.hooks, spec.env) == ("plan", compact, {"Stop": []}, {"A": "1"})


# The worker.


def test_a_worker_has_hands_and_the_discipline() -> None:
    definition = worker("does it", "You do it.")
    assert definition.tools == ["Read", "Write", "Edit", "Bash", "Glob", "Grep", "WebFetch", "WebSearch"]
    assert definition.prompt == f"You do it.\n\n{roles.WORKER_RULES}"
    assert (definition.description, definition.model) == ("does it", "inherit")
    assert not wants_isolation(definition)


def test_a_worker_can_do_without_the_discipline() -> None:
    assert worker("d", "You do it.", discipline=False).prompt == "You do it."


def test_the_default_tools_of_a_worker_are_its_own_copy() -> None:
    tools = worker("d", "p").tools
    assert tools is not None
    tools.append("Agent")
    assert worker("d", "p").tools == roles.WORKER_TOOLS


def test_a_workers_limits_land_where_the_sdk_looks_for_them() -> None:
    definition = worker("d", "p", effort="max", max_turns=4, permission_mode="acceptEdits", skills=["s"], model="haiku")
    assert (definition.effort, definition.maxTurns, definition.permissionMode) == ("max", 4, "acceptEdits")
    assert (definition.skills, definition.model) == (["s"], "haiku")


def test_an_isolated_worker_is_marked_where_the_sdk_does_not_look() -> None:
    definition = worker("d", "p", isolate=True)
    assert wants_isolation(definition)
    assert dataclasses.asdict(definition) == dataclasses.asdict(worker("d", "p"))


# Clarifier, judge, oracle.


def test_a_clarifier_asks_and_reads(channel: HumanChannel) -> None:
    spec = clarify("确认需求", channel)
    assert spec.allowed_tools == [ASK, "Read", "Glob", "Grep", "WebFetch", "WebSearch"]
    assert (spec.workbench, spec.permission_mode, spec.delegate_only) == (False, "default", False)
    assert (spec.max_turns, list(spec.mcp_servers)) == (None, ["human"])
    assert clarify("c", channel, can_read=False).allowed_tools == [ASK]


@pytest.mark.parametrize(("can_run", "more"), [(False, []), (True, ["Bash"])])
def test_a_judge_reads_and_runs_only_if_it_may(channel: HumanChannel, can_run: bool, more: list[str]) -> None:
    spec = judge("设定目标", channel, can_run=can_run)
    assert spec.allowed_tools == [ASK, "Read", "Glob", "Grep", *more]
    assert (spec.workbench, spec.permission_mode, spec.delegate_only) == (False, "default", False)


def test_an_oracle_only_reads_and_has_brakes() -> None:
    spec = oracle()
    assert (spec.name, spec.allowed_tools) == ("旁路问答", ["Read", "Glob", "Grep"])
    assert (spec.max_turns, spec.max_budget_usd, spec.mcp_servers, spec.workbench) == (12, 0.5, {}, True)


# What they are told.


def told(channel: HumanChannel, instructions: str) -> dict[str, str]:
    return {
        "coordinator": coordinator("c", instructions, {}).instructions,
        "clarifier": clarify("c", channel, instructions=instructions).instructions,
        "judge": judge("j", channel, instructions=instructions).instructions,
        "oracle": oracle(instructions=instructions).instructions,
    }


def test_instructions_stand_after_the_rules(channel: HumanChannel) -> None:
    assert told(channel, "Use tabs.") == {
        "coordinator": f"{roles.COORDINATOR_RULES}\nUse tabs.",
        "clarifier": f"{roles.CLARIFIER_RULES}\nUse tabs.",
        "judge": f"{roles.JUDGE_RULES}\nUse tabs.",
        "oracle": f"{roles.ORACLE_RULES}\nUse tabs.",
    }


def test_the_language_spoken_decides_what_a_role_is_told(channel: HumanChannel) -> None:
    with texts.speaking("en"):
        english = told(channel, "")
        prompt = worker("d", "p").prompt
    assert english == {
        "coordinator": rules.EN.coordinator.strip(),
        "clarifier": rules.EN.clarifier.strip(),
        "judge": rules.EN.judge.strip(),
        "oracle": rules.EN.oracle.strip(),
    }
    assert prompt == f"p\n\n{rules.EN.worker}"


def test_the_constants_are_the_chinese_texts() -> None:
    constants = [roles.COORDINATOR_RULES, roles.WORKER_RULES, roles.CLARIFIER_RULES, roles.JUDGE_RULES]
    assert constants == [rules.ZH.coordinator, rules.ZH.worker, rules.ZH.clarifier, rules.ZH.judge]
    assert rules.ZH.oracle == roles.ORACLE_RULES


# The anchors of API 6.6: what the parsers, the tools and the other roles depend on.
ANCHORS: dict[str, dict[str, list[str]]] = {
    "zh": {
        "coordinator": [
            "Bash",
            "过期",
            "任务书",
            "artifacts/",
            "scripts/",
            "notes/",
            "路径",
            "一起派",
            INBOX,
            ASK,
            "岔路口",
        ],
        "worker": ["最后一条消息", "结论", "依据", "产出", "未验证 / 风险", "30 行", ".flower/scripts/", "# desc:"],
        "clarifier": [
            "## 目标",
            "## 验收标准",
            "## 边界",
            "## 未知与假设",
            "一次问一个",
            "选项",
            "没有上限",
            "Glob",
            "人可能不在",
        ],
        "judge": [
            "## 目标",
            "## 判定清单",
            "[此环境无法验证:原因]",
            "uname -a",
            "15 条",
            "5 条",
            "## 结论",
            "## 理由",
            "## 未通过",
            "`达成`",
            "`未达成`",
            "`无法达成`",
            "(无)",
            "macOS",
            "ELF",
        ],
        "oracle": ["只读", "事件", "工作台", "文件", "看不出来"],
    },
    "en": {
        "coordinator": [
            "Bash",
            "stale",
            "task brief",
            "artifacts/",
            "scripts/",
            "notes/",
            "paths",
            "together",
            INBOX,
            ASK,
            "fork",
        ],
        "worker": [
            "last message",
            "Conclusion",
            "Evidence",
            "Output",
            "Unverified / risks",
            "30 lines",
            ".flower/scripts/",
            "# desc:",
        ],
        "clarifier": [
            "## Goal",
            "## Acceptance criteria",
            "## Bounds",
            "## Unknowns and assumptions",
            "One question at a time",
            "options",
            "no limit",
            "Glob",
            "may be away",
        ],
        "judge": [
            "## Goal",
            "## Checklist",
            "[cannot be verified here: reason]",
            "uname -a",
            "15 items",
            "only 5",
            "## Conclusion",
            "## Reason",
            "## Failed",
            "`ACHIEVED`",
            "`NOT ACHIEVED`",
            "`UNREACHABLE`",
            "(none)",
            "macOS",
            "ELF",
        ],
        "oracle": ["only read", "events", "workbench", "file", "cannot tell"],
    },
}


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize("role", ["coordinator", "worker", "clarifier", "judge", "oracle"])
def test_a_rule_text_keeps_its_anchors(language: str, role: str) -> None:
    text: str = getattr(texts.of(language).rules, role)
    assert [anchor for anchor in ANCHORS[language][role] if anchor not in text] == []


@pytest.mark.parametrize("language", ["zh", "en"])
def test_a_worker_is_not_told_where_long_output_goes(language: str) -> None:
    """Only the coordinator knows the real place (API 6.6)."""
    assert "artifacts" not in texts.of(language).rules.worker


@pytest.mark.parametrize("language", ["zh", "en"])
def test_what_the_judge_is_told_to_write_is_what_the_parsers_look_for(language: str) -> None:
    spoken = texts.of(language)
    names = spoken.documents
    headings = [names.goal_statement, names.goal_checks, names.verdict_conclusion, names.verdict_reason]
    for heading in [*headings, names.verdict_failed]:
        assert f"\n## {heading[0]}\n" in spoken.rules.judge
    for word in (names.achieved, names.not_achieved, names.unreachable, names.unverifiable):
        assert f"`{word}`" in spoken.rules.judge
    for heading in (names.brief_goal, names.brief_accept, names.brief_bounds, names.brief_unknowns):
        assert f"\n## {heading[0]}\n" in spoken.rules.clarifier


def test_the_module_offers_what_is_promised() -> None:
    promised: list[Any] = [roles.COORDINATOR_TOOLS, roles.WEB_TOOLS, roles.WORKER_TOOLS]
    assert promised == [
        ["Agent", "TodoWrite", "Read"],
        ["WebFetch", "WebSearch"],
        ["Read", "Write", "Edit", "Bash", "Glob", "Grep", "WebFetch", "WebSearch"],
    ]
