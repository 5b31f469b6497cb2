"""What every example keeps to: flower's public face only, plain events, and a docstring that says how it is started."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.examples.program import EXAMPLES

PROGRAMS = sorted(path for path in EXAMPLES.glob("*.py") if path.name != "__init__.py")


def imported(tree: ast.AST) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found


def test_the_examples_are_the_five_programs_and_the_first_test() -> None:
    names = ["flows.py", "polling_service.py", "test_greeting.py", "trial.py", "unattended.py", "websocket_ui.py"]
    assert [path.name for path in PROGRAMS] == names


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.name)
def test_no_example_needs_the_sdk_or_the_raw_side_of_an_event(program: Path) -> None:
    tree = ast.parse(program.read_text(encoding="utf-8"))
    assert not {name for name in imported(tree) if name.startswith(("claude_agent_sdk", "bridge", "bots"))}
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == "raw"]
    assert not {name for name in imported(tree) if name.startswith("examples")}, "each example stands alone"


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.name)
def test_every_example_says_how_it_is_started(program: Path) -> None:
    said = ast.get_docstring(ast.parse(program.read_text(encoding="utf-8"))) or ""
    assert f"examples/{program.name}" in said
