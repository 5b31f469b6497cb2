"""The demo's story, and the same with one fault planted for each of its checks (rulings R19)."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
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


def processes_of(home: Path) -> list[str]:
    """The command lines of all that knows this home: by its words, by its environment, or by where it is."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and entry.name != str(os.getpid()):
            with contextlib.suppress(OSError):  # it ended meanwhile, or is another user's
                words = (entry / "cmdline").read_bytes()
                if str(home).encode() in words + (entry / "environ").read_bytes():
                    found.append(f"{entry.name} {words.replace(bytes(1), b' ').decode(errors='replace')}")
    return found


@pytest.mark.parametrize("name", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT], ids=lambda name: name.name)
def test_a_signal_ends_the_headless_demo_with_everything_it_started(name: signal.Signals) -> None:
    folder = Path(tempfile.mkdtemp(prefix="fl-"))
    env = {each: os.environ[each] for each in ("PATH", "HOME", "LANG", "PYTHONPATH") if each in os.environ}
    process = subprocess.Popen(
        [sys.executable, "-m", "demo", "--headless", "--home", str(folder / "d")],
        cwd=Path(__file__).parents[2],
        env={**env, "TMPDIR": str(folder)},  # the emulator is told its folder there and knows nothing else of ours
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        said = list(iter_until(process.stdout, "  ok  card"))  # by then a runner and the agent program are there
        assert len(processes_of(folder)) > 4, said
        for _ in range(2):  # as `timeout` does: the child, and then its group
            os.killpg(process.pid, name)
        rest, _ = process.communicate(timeout=60)
        assert (process.returncode, "Traceback" in rest) == (128 + name, False), rest
        assert f"ended by {name.name}" in rest
        assert processes_of(folder) == []
    finally:
        process.kill()
        process.communicate()
        for line in processes_of(folder):  # ours only: they know this test's own folder
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(line.split()[0]), signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)


def iter_until(lines: Iterable[str], beginning: str) -> Iterator[str]:
    for line in lines:
        yield line
        if line.startswith(beginning):
            return
    raise AssertionError(f"it ended before it said {beginning!r}")
