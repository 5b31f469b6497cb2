"""The demo's story, and the same with one fault planted for each of its checks (rulings R19)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from demo.faults import FAULTS
from demo.play import CHECKS

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

AT_ONCE = 3
"""Demos played at the same time: most of a story is waiting for Slack's one post a second."""


def demo(*more: str) -> tuple[int, str]:
    """Play the headless demo in a folder of its own; returns its exit code and what it printed."""
    folder = Path(tempfile.mkdtemp(prefix="fl-"))
    kept = ("PATH", "HOME", "LANG", "PYTHONPATH", "TMPDIR")
    try:
        done = subprocess.run(
            [sys.executable, "-m", "demo", "--headless", "--home", str(folder / "d"), *more],
            cwd=Path(__file__).parents[2],
            env={name: os.environ[name] for name in kept if name in os.environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=200,
            check=False,
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return done.returncode, done.stdout


@pytest.fixture(scope="module")
def faulted() -> Mapping[str, tuple[int, str]]:
    """What the demo says under each fault."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        played = pool.map(lambda check: demo("--fault", check, "--patience", "20", "--limit", "150"), FAULTS)
        return dict(zip(FAULTS, played, strict=True))


def test_the_story_is_played_and_every_check_holds() -> None:
    code, out = demo()
    assert code == 0, out
    assert [line.split()[1] for line in out.splitlines() if line.startswith("  ok")] == list(CHECKS)


@pytest.mark.parametrize("check", FAULTS)
def test_a_planted_fault_turns_its_own_check_red(faulted: Mapping[str, tuple[int, str]], check: str) -> None:
    code, out = faulted[check]
    assert code == 1, out
    failed = [line for line in out.splitlines() if line.startswith("FAILED")]
    assert len(failed) == 1, out
    assert failed[0].split()[1] == f"{check}:", out
    held = [line.split()[1] for line in out.splitlines() if line.startswith("  ok")]
    assert held == list(CHECKS[: CHECKS.index(check)]), out
