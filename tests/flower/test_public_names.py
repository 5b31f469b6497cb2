"""What the package promises by name, against a table typed from the specification (API 1, 3 to 16, 21; rulings R5)."""

from __future__ import annotations

import ast
import builtins
import dataclasses
import inspect
import re
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import pytest

import flower
from tests.flower.public_names import ADDITIONS, ATTRIBUTES, OWN, SPECIFIED, WRITABLE, promised

INDEX = {
    "Runtime": "Runtime StepResult",
    "Agent definition": "AgentSpec CompactPolicy HandoffPolicy build_options default_window",
    "Roles": "coordinator worker clarify judge oracle "
    "COORDINATOR_RULES WORKER_RULES CLARIFIER_RULES JUDGE_RULES ORACLE_RULES",
    "Documents": "Brief Handoff Goal Verdict",
    "Hooks": "whitelist_guard delegate_guard spill_guard index_guard isolate_guard isolated wants_isolation "
    "workbench_hooks merge_hooks",
    "Workbench": "Workbench",
    "Stores": "SqliteSessionStore TrimmingSessionStore PruningSessionStore TrimPolicy EphemeralPolicy PrunePolicy "
    "is_ephemeral trim_report",
    "Resilience": "Resilience classify endpoint reachable",
    "Events, humans": "Event normalize Ask HumanChannel",
    "Lineage": "Lineage",
    "Workflow": "Step Workflow StepAbort clarify_step goal_step with_goal starter_flow wake_state "
    "BRIEF_KEY MISSING_KEY CLARIFY_RESUME GOAL_KEY VERDICT_KEY ROUND_KEY",
}
ALL = [name for names in INDEX.values() for name in names.split()]
"""The index of API 3, in its order."""

HOMES = {
    "flower.core.agent": "AgentSpec CompactPolicy HandoffPolicy build_options default_window PLUGIN_DIR calib_path "
    "calibrated_window remember_overflow",
    "flower.core.runtime": "Runtime StepResult",
    "flower.core.roles": "coordinator worker clarify judge oracle COORDINATOR_RULES WORKER_RULES CLARIFIER_RULES "
    "JUDGE_RULES ORACLE_RULES COORDINATOR_TOOLS WEB_TOOLS WORKER_TOOLS",
    "flower.core.brief": "Brief",
    "flower.core.handoff": "Handoff HANDOFF_PROMPT DEGRADED degraded is_overflow",
    "flower.core.goal": "Goal Verdict ACHIEVED NOT_YET UNREACHABLE",
    "flower.core.guard": "whitelist_guard delegate_guard spill_guard index_guard isolate_guard isolated "
    "wants_isolation workbench_hooks merge_hooks HANDS_ON WRITE_ONLY BULKY",
    "flower.core.workbench": "Workbench",
    "flower.core.events": "Event EventKind normalize",
    "flower.core.human": "Ask HumanChannel Mail SERVER TOOL TOOL_NAME INBOX INBOX_NAME OVER_BUDGET TIMEOUT DECLINED "
    "NO_MAIL",
    "flower.core.lineage": "Lineage",
    "flower.core.resilience": "Resilience classify endpoint reachable",
    "flower.core.env": "load_dotenv check_credentials probe_credentials describe user_env_path KNOWN PROBE_OK "
    "PROBE_AUTH PROBE_CONFIG PROBE_NET PROBE_MAX_TOKENS",
    "flower.core.update": "maybe_update state_path local_head remote_head INTERVAL",
    "flower.core.bequest": "Bequest BEQUEST_PROMPT BEGIN END DEGRADED mechanical write_managed write_both",
    "flower.stores.sqlite": "SqliteSessionStore",
    "flower.stores.trim": "TrimmingSessionStore TrimPolicy EphemeralPolicy is_ephemeral trim_report",
    "flower.stores.prune": "PruningSessionStore PrunePolicy heal_orphans relink is_denial is_api_error",
    "flower.workflow.base": "Step Workflow StepAbort Ctx",
    "flower.workflow.clarify": "clarify_step BRIEF_KEY MISSING_KEY CLARIFY_RESUME",
    "flower.workflow.goal": "goal_step with_goal GOAL_KEY VERDICT_KEY ROUND_KEY",
    "flower.workflow.starter": "starter_flow wake_state",
    "flower.cli": "main build_parser Render render Recent LineEditor answer_from_stdin ask_aside ASIDE_PROMPT "
    "ask_for_prompt ensure_credentials run_setup",
}
"""The module map of API 1."""

RE_EXPORTS = {
    "flower.core": "AgentSpec CompactPolicy build_options check_credentials describe load_dotenv Event EventKind "
    "normalize Runtime StepResult",
    "flower.stores": "SqliteSessionStore TrimmingSessionStore TrimPolicy trim_report",
    "flower.workflow": "Ctx Step Workflow clarify_step BRIEF_KEY MISSING_KEY",
}

NOT_AT_THE_TOP = "Mail is_overflow degraded HANDOFF_PROMPT Ctx"
"""Behaviour 1.2: importable from their modules only."""


# -- reading the table --------------------------------------------------------------------------------------------

Node = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign
Function = ast.FunctionDef | ast.AsyncFunctionDef


def _named(node: ast.stmt) -> str:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
        case _:
            raise AssertionError(f"not a stub: {ast.unparse(node)}")


def _stubs(table: dict[str, str]) -> Iterator[tuple[str, str, ast.stmt]]:
    """Every top-level stub, and each method of a class that has no constructor of its own there, by itself."""
    for home, text in table.items():
        for node in ast.parse(text).body:
            yield home, _named(node), node


ROWS = [pytest.param(*row, id=f"{row[0]}.{row[1]}") for row in _stubs(SPECIFIED)]
MORE = [pytest.param(*row, id=f"{row[0]}.{row[1]}") for row in _stubs(ADDITIONS)]


def _parameters(node: Function) -> list[tuple[str, Any, Any]]:
    """Name, kind and default of each parameter of a stub."""
    given, kinds = node.args, inspect.Parameter
    plain: list[tuple[ast.arg, Any, ast.expr | None]] = []
    positional = [*given.posonlyargs, *given.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(given.defaults)) + list(given.defaults)
    plain += [(arg, kinds.POSITIONAL_OR_KEYWORD, default) for arg, default in zip(positional, defaults, strict=True)]
    if given.vararg:
        plain.append((given.vararg, kinds.VAR_POSITIONAL, None))
    plain += [
        (arg, kinds.KEYWORD_ONLY, default) for arg, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)
    ]
    if given.kwarg:
        plain.append((given.kwarg, kinds.VAR_KEYWORD, None))
    return [(arg.arg, kind, kinds.empty if default is None else _value(default)) for arg, kind, default in plain]


def _value(node: ast.expr) -> Any:
    return ast.literal_eval(node)


def _compare_call(node: Function, real: Any) -> None:
    while isinstance(real, classmethod | staticmethod):
        real = real.__func__
    signature = inspect.signature(real)
    assert [(each.name, each.kind, each.default) for each in signature.parameters.values()] == _parameters(node)
    assert inspect.iscoroutinefunction(real) is isinstance(node, ast.AsyncFunctionDef)
    for name, optional in _may_be_none(node):
        said = str(signature.parameters[name].annotation)
        assert not optional or "None" in said or said in ("Any", "typing.Any"), (name, said)


def _may_be_none(node: Function) -> Iterator[tuple[str, bool]]:
    for arg in (*node.args.args, *node.args.kwonlyargs):
        if arg.annotation is not None:
            yield arg.arg, "None" in ast.unparse(arg.annotation)


def _decorators(node: Function | ast.ClassDef) -> list[str]:
    return [ast.unparse(each) for each in node.decorator_list]


def _compare_class(node: ast.ClassDef, real: type) -> None:
    assert inspect.isclass(real)
    fields = [each for each in node.body if isinstance(each, ast.AnnAssign) and not _is_constant(each)]
    if "dataclass" in _decorators(node):
        assert dataclasses.is_dataclass(real)
        there = [each for each in dataclasses.fields(real) if each.init and not each.name.startswith("_")]
        assert [each.name for each in there] == [_named(each) for each in fields]
        for stub, field in zip(fields, there, strict=True):
            _compare_field(stub, field)
    for each in node.body:
        if isinstance(each, ast.AnnAssign) and _is_constant(each):
            _compare_value(each, real)
        elif isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            _compare_method(each, real)


def _is_constant(node: ast.AnnAssign) -> bool:
    return ast.unparse(node.annotation).startswith("ClassVar")


def _compare_field(stub: ast.AnnAssign, field: dataclasses.Field[Any]) -> None:
    compared, value = True, stub.value
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "field":
        words = {word.arg: word.value for word in value.keywords}
        compared, value = _value(words["compare"]), words["default"]
    assert field.compare is compared, field.name
    if value is None:
        assert (field.default, field.default_factory) == (dataclasses.MISSING, dataclasses.MISSING), field.name
    elif isinstance(value, ast.Call):
        factory: Any = field.default_factory
        assert factory.__name__ == ast.unparse(value.func), field.name
    elif field.default is not dataclasses.MISSING:
        assert field.default == _value(value), field.name
        assert not isinstance(field.default, list | dict), field.name
    else:
        fresh: Any = field.default_factory
        assert fresh() == _value(value), field.name
        assert type(fresh()) is type(_value(value)), field.name


def _compare_method(node: Function, real: type) -> None:
    if "property" in _decorators(node):
        assert isinstance(inspect.getattr_static(real, node.name), property), (
            f"{real.__name__}.{node.name} is no property"
        )
        return
    found: Any = inspect.getattr_static(real, node.name)
    assert isinstance(found, classmethod) is ("classmethod" in _decorators(node)), node.name
    _compare_call(node, found)


def _compare_value(node: ast.Assign | ast.AnnAssign, home: Any) -> None:
    found, value = getattr(home, _named(node)), node.value
    if value is not None:
        assert found == _value(value)
        assert type(found) is type(_value(value))
    elif isinstance(node, ast.AnnAssign):
        wanted: Any = {"str": str, "ClassVar[str]": str, "Path": Path}[ast.unparse(node.annotation)]
        assert isinstance(found, wanted)
        assert found not in ("", Path())


# -- the names ----------------------------------------------------------------------------------------------------


def test_flower_offers_exactly_the_62_names() -> None:
    assert len(ALL) == len(set(ALL)) == 62
    assert sorted(flower.__all__) == sorted(ALL)


@pytest.mark.parametrize("name", ALL)
def test_each_of_the_62_names_is_there_and_in_its_module(name: str) -> None:
    (home,) = [home for home, names in HOMES.items() if name in names.split()]
    assert getattr(flower, name) is getattr(import_module(home), name)


@pytest.mark.parametrize(
    ("home", "name"),
    [pytest.param(home, name, id=f"{home}.{name}") for home, names in HOMES.items() for name in names.split()],
)
def test_the_module_map(home: str, name: str) -> None:
    assert hasattr(import_module(home), name)


def test_the_table_leaves_no_name_of_the_map_out() -> None:
    typed = {(home, name) for table in (SPECIFIED, ADDITIONS) for home, name, _ in _stubs(table)}
    told = {(home, name) for home, names in HOMES.items() for name in names.split()}
    # Two names of types only: a Literal, checked below, and an alias of dict.
    assert told - typed == {("flower.core.events", "EventKind"), ("flower.workflow.base", "Ctx")}
    assert typed - told == set()


@pytest.mark.parametrize(
    ("home", "name"),
    [pytest.param(home, name, id=f"{home}.{name}") for home, names in RE_EXPORTS.items() for name in names.split()],
)
def test_the_sub_packages_re_export(home: str, name: str) -> None:
    package = import_module(home)
    assert name in package.__all__
    (lives,) = [module for module, names in HOMES.items() if name in names.split()]
    assert getattr(package, name) is getattr(import_module(lives), name)


@pytest.mark.parametrize("name", NOT_AT_THE_TOP.split())
def test_what_is_not_promised_at_the_top_is_in_its_module_only(name: str) -> None:
    assert name not in flower.__all__
    (home,) = [home for home, names in HOMES.items() if name in names.split()]
    assert hasattr(import_module(home), name)


def test_a_name_that_nobody_specified_is_simply_unknown() -> None:
    with pytest.raises(AttributeError, match="module 'flower' has no attribute 'nonsense'"):
        getattr(flower, "nonsense")  # noqa: B009 - a type checker would refuse the attribute


def test_the_version_is_that_of_the_distribution() -> None:
    declared = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    assert flower.__version__ == "0.1.0"
    assert 'version = "0.1.0"' in declared


def test_the_package_says_that_it_is_typed() -> None:
    assert (Path(flower.__file__).parent / "py.typed").exists()


def test_nothing_below_the_terminal_program_knows_a_terminal() -> None:
    """API 1: dependency direction; behaviour 1.1: the core never imports `flower.cli`, which imports no SDK name."""
    root = Path(flower.__file__).parent
    for place in ("core", "stores", "workflow"):
        for file in (root / place).rglob("*.py"):
            assert "flower.cli" not in file.read_text(encoding="utf-8"), file.name
    terminal = [root / "cli.py"] if (root / "cli.py").exists() else sorted((root / "cli").rglob("*.py"))
    assert terminal
    for file in terminal:
        assert not re.search(r"^\s*(import|from) claude_agent_sdk", file.read_text(encoding="utf-8"), re.M), file.name


# -- the signatures -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("home", "name", "node"), ROWS)
def test_the_signature_is_the_specified_one(home: str, name: str, node: Node) -> None:
    module = import_module(home)
    match node:
        case ast.ClassDef():
            _compare_class(node, getattr(module, name))
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            _compare_call(node, getattr(module, name))
        case _:
            _compare_value(node, module)


@pytest.mark.parametrize(("home", "name", "node"), MORE)
def test_the_signature_is_that_of_the_additions(home: str, name: str, node: Node) -> None:
    test_the_signature_is_the_specified_one(home, name, node)


def _members(home: str, name: str) -> set[str]:
    found: set[str] = set()
    for table in (SPECIFIED, ADDITIONS):
        for where, called, node in _stubs(table):
            if (where, called) == (home, name) and isinstance(node, ast.ClassDef):
                found |= {_named(each) for each in node.body if not isinstance(each, ast.Expr)}
    return found | set(ATTRIBUTES.get(name, ())) | OWN.get(name, set())


@pytest.mark.parametrize(("home", "name"), [row.values[:2] for row in ROWS if isinstance(row.values[2], ast.ClassDef)])
def test_a_class_has_no_public_member_that_nobody_named(home: str, name: str) -> None:
    real = getattr(import_module(home), name)
    inherited = {each for base in real.__mro__[1:] for each in vars(base)}
    public = {each for each in vars(real) if not each.startswith("_")} - inherited
    assert public - _members(home, name) == set()


# -- what instances have ------------------------------------------------------------------------------------------


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Any]]:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test")
    opened: list[Any] = []

    def make(name: str) -> Any:
        match name:
            case "Runtime":
                thing: Any = flower.Runtime(workspace=tmp_path / "ws", run_dir=tmp_path / "run")
            case "HumanChannel":
                return flower.HumanChannel()
            case "LineEditor":
                return import_module("flower.cli").LineEditor()
            case _:
                thing = getattr(flower, name)(tmp_path / "sessions.db", tmp_path)
        opened.append(thing)
        return thing

    yield make
    for thing in opened:
        thing.close()


@pytest.mark.parametrize(("name", "attributes"), ATTRIBUTES.items())
def test_the_attributes_of_an_instance(made: Callable[[str], Any], name: str, attributes: list[str]) -> None:
    thing = made(name)
    assert [each for each in attributes if not hasattr(thing, each)] == []


@pytest.mark.parametrize(("name", "values"), WRITABLE.items())
def test_what_may_be_set_while_it_runs(made: Callable[[str], Any], name: str, values: dict[str, object]) -> None:
    thing = made(name)
    for attribute, value in values.items():
        setattr(thing, attribute, value)
        assert getattr(thing, attribute) == value


def test_a_runtime_begins_with_the_specified_values(made: Callable[[str], Any]) -> None:
    runtime = made("Runtime")
    assert (runtime.portable, runtime.workbench, runtime.spill_threshold, runtime.on_session) == (
        True,
        None,
        4000,
        None,
    )
    assert (runtime.results, runtime.on_interrupted, runtime.budget_usd, runtime.model) == ([], None, None, None)
    assert re.fullmatch(r"\d{8}-\d{6}-[0-9a-f]{6}", runtime.run_id)
    assert isinstance(runtime.resilience, flower.Resilience)


def test_the_runtimes_store_and_handoff_are_of_the_specified_kinds(made: Callable[[str], Any]) -> None:
    """API 4.1: the store is always a pruning one, `handoff=True` a policy."""
    runtime = made("Runtime")
    assert isinstance(runtime.store, promised("PruningSessionStore"))
    assert isinstance(runtime.handoff, flower.HandoffPolicy)
    assert runtime.store.prune_policy.keep_denials == 1
    assert runtime.store.policy.enabled is False
    assert runtime.store.ephemeral.enabled is True


def test_an_abort_is_an_exception() -> None:
    assert issubclass(flower.StepAbort, Exception)


def test_the_stores_inherit_from_each_other() -> None:
    """API 10: `SqliteSessionStore` ← `TrimmingSessionStore` ← `PruningSessionStore`."""
    assert issubclass(promised("PruningSessionStore"), promised("TrimmingSessionStore"))
    assert issubclass(promised("TrimmingSessionStore"), flower.SqliteSessionStore)


# -- literals of API 21 -------------------------------------------------------------------------------------------


def test_the_event_kinds() -> None:
    from flower.core.events import EventKind

    kinds = "text thinking tool_call tool_result task system reset result error prompt unknown retry handoff step ask"
    assert sorted(get_args(EventKind)) == sorted(kinds.split())


def test_the_classes_of_errors() -> None:
    assert [flower.classify(text) for text in ("401", "503", "odd")] == ["fatal", "transient", "unknown"]


def test_the_special_errors() -> None:
    from flower.core.books import KILLED

    assert (flower.Runtime.INTERRUPTED, flower.Runtime.HANDOFF_DUE, KILLED) == (
        "interrupted-by-human",
        "context-full-handoff",
        "killed-by-signal",
    )


def test_the_values_of_on_fail() -> None:
    spec = flower.AgentSpec(name="x", instructions="")
    assert [flower.Step("x", spec, "", on_fail=value).on_fail for value in ("stop", "skip", "continue")] == [
        "stop",
        "skip",
        "continue",
    ]
    with pytest.raises(ValueError, match="abort"):
        flower.Step("x", spec, "", on_fail="abort")


def test_step_names_roles_and_files_of_the_starter(tmp_path: Path) -> None:
    flow = flower.starter_flow("do it", workspace=tmp_path, run_dir=tmp_path / "runs")
    assert flow.name == "starter"
    assert [step.name for step in flow.steps] == ["确认需求", "设定目标", "干活"]
    assert flow.steps[2].spec.name == "协调者"
    assert list(flow.steps[2].spec.agents or {}) == ["coder"]
    assert flow.workbench is not None
    assert flow.workbench.root == (tmp_path / ".flower").resolve()
    assert [place.name for place in (flow.workbench.scripts, flow.workbench.artifacts, flow.workbench.notes)] == [
        "scripts",
        "artifacts",
        "notes",
    ]
    assert flow.workbench.index_path.name == "INDEX.md"
    assert flow.channel is not None
    assert flow.channel.log_path == flow.workbench.notes.resolve() / "问答记录.md"
    assert flow.channel.amend_path == flow.workbench.notes.resolve() / "需求.md"
    assert flower.wake_state(tmp_path, run_dir=tmp_path / "runs")["goal"].name == "目标.md"


def test_the_labels_of_attempts() -> None:
    step = flower.Step("A", flower.AgentSpec(name="x", instructions=""), "", retries=2)
    assert [step.label(attempt) for attempt in range(3)] == ["A", "A#retry1", "A#retry2"]
    judged = flower.with_goal(step, flower.HumanChannel(), goal_path="goal.md")
    assert [judged.label(attempt) for attempt in range(3)] == ["A", "A#round2", "A#round3"]


def test_the_sections_of_the_documents_and_their_placeholders() -> None:
    assert re.findall(r"^## (.+)$", flower.Brief().to_markdown(), re.M) == ["目标", "验收标准", "边界", "未知与假设"]
    assert flower.Brief().to_markdown().count("(未填)") == 4
    assert re.findall(r"^# (.+)$", flower.Goal().to_markdown(), re.M) == ["目标", "判定清单"]
    assert "(空)" in flower.Goal().to_markdown()
    assert flower.Goal(checks=["x [此环境无法验证:原因]"]).unverifiable == ["x [此环境无法验证:原因]"]
    assert flower.Goal(statement="A").amend("B").statement == "A\n\n(已修改)B"
    assert flower.Verdict.parse("## 结论\n达成\n## 理由\nR\n## 未通过\n- f") == flower.Verdict("achieved", "R", ["f"])
    words = {"达成": "achieved", "未达成": "not_yet", "无法达成": "unreachable"}
    assert {word: flower.Verdict.parse(f"## 结论\n{word}").state for word in words} == words


def test_the_sections_of_a_handoff() -> None:
    handoff = flower.Handoff
    assert re.findall(r"^## (.+)$", handoff().to_markdown(), re.M) == [
        *("现在在做什么", "已经定下的", "走不通的路", "下一步", "现场")
    ]
    assert handoff().to_markdown().count("(空)") == 5
    assert handoff().missing() == ["现在在做什么", "下一步"]


@pytest.mark.parametrize(
    ("window", "headroom", "at", "warn_at"),
    [
        (1_000_000, 0, 750_000, 730_000),
        (200_000, 0, 150_000, 130_000),
        (1_000_000, 50_000, 950_000, 930_000),
        (40_000, 25_000, 15_000, 1_000),
        (-5, 0, 10_000, 1_000),
    ],
)
def test_the_numbers_of_a_handoff(window: int, headroom: int, at: int, warn_at: int) -> None:
    """API 5.4, and the examples of behaviour 9.4 where a head-room is given."""
    policy = flower.HandoffPolicy(window=window, headroom=headroom)
    assert (policy.at, policy.warn_at) == (at, warn_at)


async def test_the_empty_question_and_the_empty_inbox() -> None:
    from flower.core.human import NO_MAIL

    assert (await flower.HumanChannel().ask("  ")).answer == "问题是空的。把问题写清楚再问。"
    assert "空的" in NO_MAIL


@pytest.mark.parametrize("mark", ["副作用", "不是环境故障", "重试", "防御"])
def test_the_marks_of_the_note_after_an_interrupt(mark: str) -> None:
    assert mark in flower.Runtime.INTERRUPT_NOTE


@pytest.mark.parametrize("mark", ["不是重新开始", "别再问一遍"])
def test_the_marks_of_a_resumed_clarification(mark: str) -> None:
    assert mark in flower.CLARIFY_RESUME


def test_time_is_the_clock_of_a_question() -> None:
    """`asked_at` is a time of day in seconds (API 12.4), so that a front can say when."""
    before = time.time()
    assert before <= flower.Ask("q1", "Q").asked_at <= time.time()


def test_no_public_name_hides_a_builtin() -> None:
    assert [name for name in flower.__all__ if hasattr(builtins, name)] == []
