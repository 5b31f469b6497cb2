"""Each third-party library has its doors (rulings R6); nobody else imports it."""

from __future__ import annotations

import ast
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("flower", "bridge", "bots")

DOORS = {
    "claude_agent_sdk": (
        "flower/core/events.py",
        "flower/core/human.py",
        "flower/core/agent.py",
        "flower/core/roles.py",
        "flower/core/guard.py",
        "flower/core/attempt.py",
        "flower/core/runtime.py",
        "flower/core/child.py",
        "flower/stores/*.py",
        "flower/testing/*.py",
    ),
    "redis": ("bridge/adapters/redis_*.py",),
    "markdown_it": ("bridge/markup.py",),
    "pydantic": ("bridge/settings.py", "bots/*/settings.py"),
    "slack_bolt": ("bots/slack/chat.py", "bots/slack/errors.py"),
    "slack_sdk": ("bots/slack/chat.py", "bots/slack/errors.py"),
    "aiohttp": ("bots/*/chat.py", "bots/*/errors.py", "flower/testing/*.py"),
    "yaml": ("flower/testing/*.py",),
}


def sources() -> list[Path]:
    return [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]


def imported_by(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found


@pytest.mark.parametrize("library", sorted(DOORS))
def test_each_library_has_its_doors(library: str) -> None:
    users = {str(path.relative_to(ROOT)) for path in sources() if library in imported_by(path)}
    strangers = {user for user in users if not any(fnmatch(user, door) for door in DOORS[library])}
    assert strangers == set()
    assert users, f"nobody imports {library}: is the test looking at the right place?"


def test_no_platform_is_named_in_the_bridge_but_where_processes_are_put_together() -> None:
    named = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "bridge").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Compare)
        and any(isinstance(each, ast.Constant) and each.value in ("slack", "matrix") for each in ast.walk(node))
    }
    assert named == set()


def test_importing_a_module_does_nothing_but_define_names() -> None:
    """No client, loop or thread at import time (house style 6)."""
    allowed = {"add_constructor"}  # registers on a class of our own
    strange: dict[str, set[str]] = {}
    for path in sources():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
                continue
            called = node.value.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "?")
            if name not in allowed:
                strange.setdefault(str(path.relative_to(ROOT)), set()).add(name)
    assert strange == {}
