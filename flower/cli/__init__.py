"""The terminal program `flower`, an interaction layer like any other: it uses what the framework offers to everybody.

Names are loaded when they are first used, so that `flower --help` does not wait for the SDK.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flower.cli.aside import ASIDE_PROMPT, Recent, ask_aside
    from flower.cli.go import ask_for_prompt
    from flower.cli.keys import LineEditor
    from flower.cli.parser import build_parser, main
    from flower.cli.render import Render, render
    from flower.cli.setup import ensure_credentials, run_setup
    from flower.cli.stdin import answer_from_stdin

__all__ = [
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

_HOMES = {
    "ASIDE_PROMPT": "aside",
    "LineEditor": "keys",
    "Recent": "aside",
    "Render": "render",
    "answer_from_stdin": "stdin",
    "ask_aside": "aside",
    "ask_for_prompt": "go",
    "build_parser": "parser",
    "ensure_credentials": "setup",
    "main": "parser",
    "render": "render",
    "run_setup": "setup",
}


class _Package(ModuleType):
    """Keeps the function `render`: the import system binds the module of that name over it."""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value.render if name == "render" and isinstance(value, ModuleType) else value)


sys.modules[__name__].__class__ = _Package

if not TYPE_CHECKING:  # a type checker that saw it would take any name for an existing one

    def __getattr__(name):
        if name not in _HOMES:
            raise AttributeError(f"module 'flower.cli' has no attribute {name!r}", name=name)
        return getattr(import_module(f"flower.cli.{_HOMES[name]}"), name)
