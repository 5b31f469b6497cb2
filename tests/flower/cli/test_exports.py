"""The door of the terminal program: the promised names, whatever was imported before (API 1 and 16.10)."""

from __future__ import annotations

import inspect
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import flower.cli

PROMISED = [
    "ASIDE_PROMPT",
    "LineEditor",
    "Recent",
    "Render",
    "answer_from_stdin",
    "ask_aside",
    "ask_for_prompt",
    "build_parser",
    "ensure_credentials",
    "main",
    "render",
    "run_setup",
]


def test_the_promised_names_are_there() -> None:
    assert flower.cli.__all__ == PROMISED
    assert [name for name in PROMISED if not hasattr(flower.cli, name)] == []


def test_an_unknown_name_is_unknown() -> None:
    with pytest.raises(AttributeError, match=r"module 'flower.cli' has no attribute 'nonsense'"):
        getattr(flower.cli, "nonsense")  # noqa: B009 - a type checker would refuse the attribute


@pytest.mark.parametrize("before", ["", "import flower.cli.render;", "from flower.cli.render import Render;"])
def test_render_is_the_function_although_a_module_has_its_name(before: str) -> None:
    script = f"{before}\nfrom flower.cli import Render, render, main; print(type(render).__name__, main.__module__)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "function flower.cli.parser\n"


@pytest.mark.parametrize(
    ("name", "signature"),
    [
        ("Render", "(verbose: 'bool' = False)"),
        ("Recent", "(size: 'int' = 60)"),
        ("ask_for_prompt", "(*, waking: 'bool' = False)"),
        ("run_setup", "(*, reason: 'str' = '')"),
        ("ensure_credentials", "(*, probe: 'bool' = True)"),
        ("ask_aside", "(question: 'str', rt: 'Runtime', recent: 'Recent', *, verbose: 'bool' = False)"),
    ],
)
def test_signatures_are_the_specified_ones(name: str, signature: str) -> None:
    assert str(inspect.signature(getattr(flower.cli, name))).split(" ->")[0] == signature


def test_answering_takes_the_specified_arguments() -> None:
    wanted = inspect.signature(flower.cli.answer_from_stdin).parameters
    assert list(wanted) == ["channel", "on_aside", "on_interrupt", "interrupt_req"]
    assert [wanted[name].default for name in list(wanted)[1:]] == [None, None, None]


def test_the_script_of_the_distribution_is_the_program() -> None:
    declared = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))
    entry = EntryPoint("flower", declared["project"]["scripts"]["flower"], "console_scripts")
    assert entry.load() is flower.cli.main
