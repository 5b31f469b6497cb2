"""examples/stories: an example is tried without an account as its docstring says, with the terminal program."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.examples.program import EXAMPLES, ROOT, WAIT_SECONDS, surroundings
from tests.flower.cli.tmux import PROGRAM, terminal

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]
TRIED = ["flows", "trial"]


@asynccontextmanager
async def served(name: str) -> AsyncIterator[str]:
    """Serve the story of an example as a program, and give its address."""
    story = EXAMPLES / "stories" / f"{name}.yaml"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "flower.testing", "--port", "0", "--script", str(story)),
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(WAIT_SECONDS):
            yield (await process.stdout.readline()).decode().split()[1]
    finally:
        process.terminate()
        await process.communicate()


def led_to(url: str, home: Path) -> Mapping[str, str]:
    """The two variables of the docstring, a home of its own, and the language of these tests."""
    kept = ("PATH", "LANG", "TMPDIR")
    bare = {name: value for name, value in surroundings(None, home).items() if name in kept}
    given = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none", "HOME": str(home), "FLOWER_NO_UPDATE": "1"}
    return {**bare, **given, "PYTHONPATH": str(ROOT), "FLOWER_LANG": "en"}


@pytest.mark.parametrize("name", TRIED)
def test_the_docstring_says_how_it_is_tried(name: str) -> None:
    said = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8").split('"""')[1]
    (serving,) = [line for line in said.splitlines() if "-m flower.testing" in line]
    words = shlex.split(serving)
    assert (ROOT / words[words.index("--script") + 1]) == EXAMPLES / "stories" / f"{name}.yaml"
    address = f"http://127.0.0.1:{words[words.index('--port') + 1]}"
    assert f"ANTHROPIC_BASE_URL={address} ANTHROPIC_API_KEY=none flower run examples/{name}.py:main" in said


async def test_flows_is_played_to_its_end_with_a_rejected_round(tmp_path: Path) -> None:
    async with served("flows") as url:
        process = await asyncio.create_subprocess_exec(
            *PROGRAM,
            *("run", str(EXAMPLES / "flows.py:main")),
            cwd=tmp_path,
            env=led_to(url, tmp_path / "home"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        out, _ = await process.communicate()
    said = out.decode()
    assert process.returncode == 0, said
    assert "I have just that put right." in said
    assert "It does not say how large a budget may be." in said
    assert (tmp_path / "RELEASE.md").read_text(encoding="utf-8").count("\n## ") == 3


async def test_trial_asks_and_does_what_was_answered(tmp_path: Path) -> None:
    work = tmp_path / "ws"
    work.mkdir()
    async with served("trial") as url:
        with terminal(
            [*PROGRAM, "run", str(EXAMPLES / "trial.py:main")], env=led_to(url, tmp_path / "home"), cwd=work
        ) as window:
            await window.wait_for(r"2\) With a picture")
            window.enter("2")
            said = await window.wait_for(r"exit: \d")
    assert "exit: 0" in said, said
    assert "I am a scripted" in said
    notes = work / ".flower" / "notes" / "需求.md"
    assert "the current phase of the moon: With a picture." in notes.read_text(encoding="utf-8")
    assert (work / "moon.out").read_text(encoding="utf-8").strip()
