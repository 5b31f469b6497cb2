"""A spec compiled to SDK options (behaviour 9, API 5)."""

from __future__ import annotations

from pathlib import Path

import pytest
from claude_agent_sdk import AgentDefinition, InMemorySessionStore

from flower.core import agent
from flower.core.agent import AgentSpec, CompactPolicy, build_options


def spec(**kw: object) -> AgentSpec:
    return AgentSpec("role", "Do it.", **kw)  # type: ignore[arg-type]  # a test names fields by keyword


def test_an_unknown_compact_mode_is_an_error_when_it_is_used_and_not_before() -> None:
    policy = CompactPolicy(mode="sometimes")
    with pytest.raises(ValueError, match="sometimes"):
        policy.env()
    with pytest.raises(ValueError, match="auto, no_summary, off"):
        build_options(spec(compact=policy))


@pytest.mark.parametrize(
    ("policy", "env"),
    [
        (CompactPolicy(), {}),
        (CompactPolicy("no_summary"), {"DISABLE_AUTO_COMPACT": "1"}),
        (CompactPolicy("off"), {"DISABLE_COMPACT": "1"}),
        (CompactPolicy(window=200_000), {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "200000"}),
        (CompactPolicy("off", 0), {"DISABLE_COMPACT": "1", "CLAUDE_CODE_AUTO_COMPACT_WINDOW": "0"}),
    ],
)
def test_a_compact_policy_is_said_in_variables(policy: CompactPolicy, env: dict[str, str]) -> None:
    assert policy.env() == env


def test_the_environment_of_a_policy_never_changes_the_next_one() -> None:
    CompactPolicy("off", 1).env()
    assert CompactPolicy("off").env() == {"DISABLE_COMPACT": "1"}


def test_a_spec_with_nothing_but_a_name_reads_and_needs_approval_for_the_rest() -> None:
    assert spec() == AgentSpec(
        name="role",
        instructions="Do it.",
        allowed_tools=["Read", "Glob", "Grep"],
        disallowed_tools=[],
        model=None,
        effort=None,
        max_turns=None,
        max_budget_usd=None,
        permission_mode="default",
        agents=None,
        mcp_servers={},
        hooks=None,
        compact=None,
        env={},
        glance=False,
        workbench=True,
        delegate_only=False,
    )


def test_two_specs_share_no_list() -> None:
    spec().allowed_tools.append("Bash")
    assert spec().allowed_tools == ["Read", "Glob", "Grep"]


def test_the_native_prompt_is_kept_and_the_prelude_stands_last() -> None:
    assert build_options(spec(), prelude="# Workbench").system_prompt == {
        "type": "preset",
        "preset": "claude_code",
        "append": "Do it.\n\n# Workbench",
    }
    assert build_options(spec()).system_prompt == {"type": "preset", "preset": "claude_code", "append": "Do it."}


def test_what_a_spec_leaves_open_keeps_the_default_of_the_sdk() -> None:
    options = build_options(spec())
    assert (options.model, options.effort, options.max_turns, options.max_budget_usd) == (None, None, None, None)
    assert (options.agents, options.hooks, options.mcp_servers, options.env) == (None, None, {}, {})
    assert (options.cwd, options.add_dirs, options.session_store, options.resume) == (None, [], None, None)
    assert options.permission_mode == "default"


def test_what_a_spec_sets_goes_down() -> None:
    worker = AgentDefinition(description="d", prompt="p")
    options = build_options(
        spec(
            model="claude-sonnet-5-5",
            effort="high",
            max_turns=3,
            max_budget_usd=0.0,
            disallowed_tools=["WebSearch"],
            permission_mode="acceptEdits",
            agents={"coder": worker},
            env={"A": "1", "DISABLE_COMPACT": "0"},
            compact=CompactPolicy("off"),
        ),
        cwd=Path("/somewhere"),
        add_dirs=["/else"],
    )
    assert (options.model, options.effort, options.max_turns) == ("claude-sonnet-5-5", "high", 3)
    assert options.max_budget_usd == 0.0  # a budget of nothing is a budget
    assert options.disallowed_tools == ["WebSearch"]
    assert options.permission_mode == "acceptEdits"
    assert options.agents == {"coder": worker}
    assert options.env == {"A": "1", "DISABLE_COMPACT": "1"}
    assert (options.cwd, options.add_dirs) == ("/somewhere", ["/else"])


def test_a_run_is_portable_unless_it_says_otherwise() -> None:
    assert build_options(spec()).setting_sources == []
    assert build_options(spec(), portable=False).setting_sources == ["project"]


def test_a_store_is_flushed_at_once() -> None:
    store = InMemorySessionStore()
    options = build_options(spec(), session_store=store)
    assert (options.session_store, options.session_store_flush) == (store, "eager")
    assert build_options(spec(), session_store=store, flush="batched").session_store_flush == "batched"


def test_fork_and_cut_do_nothing_without_a_session_to_resume() -> None:
    alone = build_options(spec(), fork=True, resume_at="u1")
    assert (alone.resume, alone.fork_session, alone.resume_session_at) == (None, False, None)
    resumed = build_options(spec(), resume="s1", fork=True, resume_at="u1")
    assert (resumed.resume, resumed.fork_session, resumed.resume_session_at) == ("s1", True, "u1")


def test_the_plugin_travels_when_there_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent, "PLUGIN_DIR", tmp_path / "plugin")
    assert build_options(spec()).plugins == []
    (tmp_path / "plugin").mkdir()
    assert build_options(spec()).plugins == [{"type": "local", "path": str(tmp_path / "plugin")}]
    assert build_options(spec(), use_plugin=False).plugins == []


def test_the_plugin_lies_beside_the_package() -> None:
    assert Path(agent.__file__).parents[2] / "plugin" == agent.PLUGIN_DIR


def test_searching_is_on_offer_although_bash_is() -> None:
    offered = build_options(spec(allowed_tools=["Read", "Bash(git status:*)", "mcp__human__ask", "Monitor"])).tools
    assert offered == [
        "Bash",
        "Edit",
        "Glob",
        "Grep",
        "Monitor",
        "NotebookEdit",
        "Read",
        "Skill",
        "TodoWrite",
        "WebFetch",
        "WebSearch",
        "Write",
    ]


def test_delegation_and_the_tools_of_a_subagent_are_on_offer_where_there_is_one() -> None:
    helper = AgentDefinition(description="d", prompt="p", tools=["Read", "LSP"])
    offered = build_options(spec(agents={"helper": helper})).tools
    assert isinstance(offered, list)
    assert {"Agent", "LSP"} <= set(offered)
    assert "Agent" not in agent.OFFERED


def test_compiling_a_spec_leaves_it_as_it_was() -> None:
    original = spec(compact=CompactPolicy("off"), env={"A": "1"})
    build_options(original).allowed_tools.append("Bash")
    assert original == spec(compact=CompactPolicy("off"), env={"A": "1"})
