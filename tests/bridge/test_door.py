"""The door of the package: its names, and that opening it costs nothing."""

from __future__ import annotations

import json
import subprocess
import sys

import bridge

HEAVY = [
    "redis",
    "markdown_it",
    "pydantic",
    "aiohttp",
    "asyncio",
    "slack_bolt",
    "slack_sdk",
    "claude_agent_sdk",
    "flower",
]


def test_all_public_names_are_there_and_sorted() -> None:
    assert bridge.__all__ == sorted(bridge.__all__, key=lambda name: (not name.isupper(), name))
    assert all(hasattr(bridge, name) for name in bridge.__all__)


def test_importing_the_package_imports_nothing_heavy() -> None:
    program = "import sys, json, bridge; print(json.dumps(sorted(sys.modules)))"
    loaded = json.loads(subprocess.run([sys.executable, "-c", program], check=True, capture_output=True).stdout)

    assert [name for name in HEAVY if name in loaded] == []
