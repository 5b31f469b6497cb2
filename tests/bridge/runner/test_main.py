"""The program of a runner, started with bad things: one line in its log, and exit code 1."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bridge.launch.local import encode_order
from tests.bridge.runner.rig import Rig

PASSWORD = "hunter2-hunter2"


def run(paper: bytes | None, **env: str) -> tuple[int, list[dict[str, object]], str]:
    """Run it with an order; returns exit code, log lines, and all that it said."""
    reading, writing = os.pipe()
    os.write(writing, paper or b"")
    os.close(writing)
    done = subprocess.run(
        [sys.executable, "-m", "bridge.runner", "--order-fd", str(reading if paper is not None else 99)],
        pass_fds=[reading],
        env={"PATH": os.defpath, "PYTHONPATH": os.pathsep.join(sys.path), **env},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    os.close(reading)
    said = done.stdout + done.stderr
    return done.returncode, [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")], said


@pytest.mark.parametrize("paper", [None, b"", b"{", b"[]", b'{"run": 7}'])
def test_an_order_that_is_none_is_said_in_one_line(paper: bytes | None) -> None:
    code, lines, said = run(paper)
    assert code == 1
    assert [line["event"] for line in lines] == ["runner.failed"]
    assert "Traceback" not in said


def test_an_address_that_is_not_understood_is_said_without_the_password(tmp_path: Path) -> None:
    order = Rig(tmp_path).order(store_url="carrier-pigeon://", store_user="run-k3f9qa", store_password=PASSWORD)
    code, lines, said = run(encode_order(order))
    assert code == 1
    assert "the address of the state store" in str(lines[-1]["why"])
    assert PASSWORD not in said


def test_check_says_how_the_model_gets_its_credential(tmp_path: Path) -> None:
    check = [sys.executable, "-m", "bridge.runner.check"]
    env = {"PATH": os.defpath, "PYTHONPATH": os.pathsep.join(sys.path), "HOME": str(tmp_path)}
    bad = subprocess.run(check, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=30, check=False)
    assert bad.returncode == 1
    (line,) = bad.stdout.splitlines()
    assert "ANTHROPIC_API_KEY" in line
    assert str(tmp_path) in line
    good = subprocess.run(
        check, env={**env, "ANTHROPIC_AUTH_TOKEN": "x"}, cwd=tmp_path, capture_output=True, timeout=30, check=False
    )
    assert (good.returncode, good.stdout) == (0, b"")
