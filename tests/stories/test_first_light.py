"""The demo's story, and the same with one fault planted for each of its checks (rulings R19)."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.faults import FAULTS
from demo.play import CHECKS

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]


@pytest.fixture
def home() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="fl-"))
    yield folder / "d"
    shutil.rmtree(folder, ignore_errors=True)


async def demo(home: Path, *more: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "demo", "--headless", "--home", str(home), *more),
        cwd=Path(__file__).parents[2],
        env={name: os.environ[name] for name in ("PATH", "HOME", "LANG", "PYTHONPATH", "TMPDIR") if name in os.environ},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await process.communicate()
    return process.returncode or 0, out.decode()


async def test_the_story_is_played_and_every_check_holds(home: Path) -> None:
    code, out = await demo(home)
    assert code == 0, out
    assert [line.split()[1] for line in out.splitlines() if line.startswith("  ok")] == list(CHECKS)


@pytest.mark.parametrize("check", FAULTS)
async def test_a_planted_fault_turns_its_own_check_red(home: Path, check: str) -> None:
    code, out = await demo(home, "--fault", check, "--patience", "14")
    assert code == 1, out
    failed = [line for line in out.splitlines() if line.startswith("FAILED")]
    assert len(failed) == 1, out
    assert failed[0].split()[1] == f"{check}:", out
    held = [line.split()[1] for line in out.splitlines() if line.startswith("  ok")]
    assert held == list(CHECKS[: CHECKS.index(check)]), out
