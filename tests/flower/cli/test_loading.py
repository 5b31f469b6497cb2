"""From a target to a workflow: everything that can be wrong with a flow file is told in one line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from flower import Workflow
from flower.cli.loading import TargetError, load_workflow

GOOD = """
from flower import Workflow
ready = Workflow([], name="ready")
def main():
    return Workflow([], name="made")
"""


@pytest.fixture(autouse=True)
def clean_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A directory of one's own, and no module of one test seen by the next."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


def told(target: str) -> str:
    with pytest.raises(TargetError) as failure:
        load_workflow(target)
    return str(failure.value)


@pytest.mark.parametrize("target", ["flows", "", ":", "flows:", ":main", "flows.py"])
def test_a_target_without_both_parts_is_refused(target: str) -> None:
    assert told(target) == "需要 模块:属性 形式,例如 flows:main"


def test_a_file_that_is_not_there_is_told_with_where_one_stands(tmp_path: Path) -> None:
    assert told("sub/flows.py:main") == (
        f"找不到 sub/flows.py(当前目录 {tmp_path})。给的是文件路径就要能对上;要按模块名导入就别带 .py"
    )


def test_a_folder_is_no_flow_file(tmp_path: Path) -> None:
    (tmp_path / "flows.py").mkdir()
    assert told("flows.py:main").startswith("找不到 flows.py")


def test_a_module_that_is_not_there_is_told() -> None:
    assert told("no_such_module_here:main").startswith(
        "导入 'no_such_module_here' 失败:ModuleNotFoundError: No module named 'no_such_module_here'"
    )


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("x = 1\nraise ValueError('no luck')\n", "导入 'flow_a' 失败:ValueError: no luck (flow_a.py 第 2 行)"),
        ("def main(:\n", "导入 'flow_a' 失败:SyntaxError: invalid syntax (flow_a.py, line 1)"),
        ("raise SystemExit(3)\n", "导入 'flow_a' 失败:SystemExit: 3 (flow_a.py 第 1 行)"),
        ("from flower import Nonsense\n", "导入 'flow_a' 失败:ImportError: cannot import name 'Nonsense'"),
        ("\0", "导入 'flow_a' 失败:"),
        ("x = 1\n", "'flow_a' 里没有 'main'"),
        ("main = 3\n", "'flow_a.py:main' 给出的是 int,不是 Workflow"),
        ("def main(x):\n    pass\n", "'flow_a.py:main' 没能造出工作流:TypeError: main() missing 1 required"),
        ("def main():\n    return 1 / 0\n", "造出工作流:ZeroDivisionError: division by zero (flow_a.py 第 2 行)"),
        ("def main():\n    pass\n", "'flow_a.py:main' 给出的是 NoneType,不是 Workflow"),
        ("async def main():\n    pass\n", "'flow_a.py:main' 给出的是 coroutine,不是 Workflow"),
    ],
)
def test_what_is_wrong_with_a_flow_file_is_told_with_its_line(tmp_path: Path, source: str, error: str) -> None:
    (tmp_path / "flow_a.py").write_text(source, encoding="utf-8")
    assert error in told("flow_a.py:main")


@pytest.mark.parametrize(("attribute", "name"), [("main", "made"), ("ready", "ready")])
@pytest.mark.parametrize("module", ["sub/flow_b.py", "{here}/sub/flow_b.py"])
def test_a_file_gives_its_workflow_or_what_its_function_returns(
    tmp_path: Path, module: str, attribute: str, name: str
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "flow_b.py").write_text(GOOD, encoding="utf-8")
    flow, source = load_workflow(f"{module.format(here=tmp_path)}:{attribute}")
    assert isinstance(flow, Workflow)
    assert (flow.name, source) == (name, tmp_path.resolve() / "sub" / "flow_b.py")
    assert sys.path[0] == str(tmp_path.resolve() / "sub")


def test_a_module_beside_the_person_is_found_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place not in ("", str(tmp_path))])
    (tmp_path / "flow_c.py").write_text(GOOD, encoding="utf-8")
    assert load_workflow("flow_c:main")[0].name == "made"
