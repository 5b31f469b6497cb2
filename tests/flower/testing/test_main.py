"""The scripted model as a program."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

from flower.testing.__main__ import STORY as DEFAULT
from flower.testing.__main__ import main

ROOT = Path(__file__).parents[3]
STORY = "parts:\n  main:\n    lines: [Hello.]\n"


@asynccontextmanager
async def running(*args: str) -> AsyncIterator[tuple[Process, str]]:
    """Start it, and end it whatever happens; with its first line."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "flower.testing", *args, stdout=PIPE, stderr=PIPE
    )
    assert process.stdout is not None
    try:
        yield process, (await asyncio.wait_for(process.stdout.readline(), 15)).decode().strip()
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@pytest.mark.parametrize(
    ("args", "line"),
    [
        (["--port", "x"], "error: argument --port: 'x' is no port (0 to 65535)"),
        (["--port", "70000"], "error: argument --port: '70000' is no port (0 to 65535)"),
        (
            ["--port", "0", "--speed", "slow"],
            "error: argument --speed: 'slow' is no speed: fast, watch, or a factor such as 2",
        ),
        ([], "error: the following arguments are required: --port"),
    ],
)
def test_bad_arguments_are_refused_with_code_2(args: list[str], line: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(args)
    assert ended.value.code == 2
    assert capsys.readouterr().err.rstrip().endswith(line)


def test_a_bad_story_is_one_line_with_its_place_and_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "s.yaml"
    script.write_text("parts:\n  main:\n    lines: [3]\n")
    assert main(["--port", "0", "--script", str(script)]) == 2
    assert capsys.readouterr().err == (
        f"python -m flower.testing: {script}:3: parts.main.lines[0]: expected a line, or just what is said (a mapping),"
        " found 3\n"
    )


def test_a_token_log_in_a_folder_that_there_is_not_is_one_line_and_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "none" / "log"
    assert main(["--port", "0", "--token-log", str(log)]) == 2
    assert capsys.readouterr().err == f"python -m flower.testing: {log}: No such file or directory\n"


async def test_a_taken_port_is_one_line_and_code_2() -> None:
    async with running("--port", "0") as (_, line):
        port = line.rpartition(":")[2]
        async with running("--port", port) as (second, nothing):
            assert nothing == ""
            assert await asyncio.wait_for(second.wait(), 15) == 2
            assert second.stderr is not None
            assert (await second.stderr.read()).decode() == (
                f"python -m flower.testing: port {port} on 127.0.0.1 is taken; end the other one, or choose another"
                " with --port\n"
            )


async def test_it_says_when_it_is_ready_and_ends_in_good_order(tmp_path: Path) -> None:
    script = tmp_path / "s.yaml"
    script.write_text(STORY)
    async with running("--port", "0", "--script", str(script)) as (process, line):
        assert line.startswith("ready http://127.0.0.1:")

        def state() -> dict[str, object]:
            with urlopen(f"{line.split()[1]}/_story/state", timeout=5) as answer:  # noqa: S310 - loopback, http
                return dict(json.load(answer))

        assert (await asyncio.to_thread(state))["parts"] == ["main"]
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 15) == 0


@pytest.mark.parametrize("missing", ["aiohttp", "yaml"])
def test_without_its_extra_it_names_the_install_line(missing: str, tmp_path: Path) -> None:
    """An interpreter in which the package cannot be found."""
    (tmp_path / "sitecustomize.py").write_text(f"import sys\nsys.modules[{missing!r}] = None\n")
    done = subprocess.run(
        [sys.executable, "-m", "flower.testing", "--port", "0"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert f"flower.testing needs the package {missing}; in a clone: pip install '.[testing]'" in line


async def test_without_a_story_it_says_which_one_it_plays_and_where_that_is() -> None:
    async with running("--port", "0") as (process, line):
        assert line.startswith("ready http://127.0.0.1:")
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        (said,) = (await process.stderr.read()).decode().splitlines()
    assert said == f"python -m flower.testing: plays “First light” ({DEFAULT}); another one: --script FILE"
    assert DEFAULT.exists()
