"""A credential does not go to the address that a project has set, unless its owner agreed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from flower.cli.setup import ensure_credentials
from tests.flower.cli.test_setup import gateway, home, typed

__all__ = ["home"]

ADDRESS = "https://gate.example/v"


@pytest.fixture
def project(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose `.env` names an address, and a person who has a key of their own."""
    monkeypatch.setenv("FLOWER_TRUST_ADDRESS", "x")
    monkeypatch.delenv("FLOWER_TRUST_ADDRESS")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-mine")
    file = tmp_path / ".env"
    file.write_text(f"ANTHROPIC_BASE_URL={ADDRESS}\n", encoding="utf-8")
    return file


def refused() -> str:
    with pytest.raises(SystemExit) as ending:
        ensure_credentials()
    return str(ending.value.code)


def test_without_a_terminal_it_is_refused_with_the_ways_out(project: Path) -> None:
    told = refused()
    for part in (str(project), ADDRESS, f"FLOWER_TRUST_ADDRESS={ADDRESS}"):
        assert part in told


@pytest.mark.parametrize("trusted", ["https://other.example", ADDRESS + "/x", ""])
def test_another_address_that_is_trusted_is_another_one(
    trusted: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLOWER_TRUST_ADDRESS", trusted)
    assert ADDRESS in refused()


def test_a_project_cannot_trust_itself(project: Path) -> None:
    project.write_text(f"ANTHROPIC_BASE_URL={ADDRESS}\nFLOWER_TRUST_ADDRESS={ADDRESS}\n", encoding="utf-8")
    assert ADDRESS in refused()


@pytest.mark.usefixtures("project")
def test_an_address_that_is_trusted_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOWER_TRUST_ADDRESS", ADDRESS)
    ensure_credentials()
    assert os.environ["ANTHROPIC_BASE_URL"] == ADDRESS


@pytest.mark.parametrize("answer", ["", "n", "no", "maybe"])
def test_whoever_does_not_say_yes_sends_nothing(
    answer: str, project: Path, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with gateway() as server, typed(monkeypatch, "no token is asked for", answer):
        project.write_text(f"ANTHROPIC_BASE_URL={server.url}\n", encoding="utf-8")
        assert "没有发" in refused()
    assert server.credentials == []
    assert server.url in "".join(capsys.readouterr().out.split("\n"))
    assert not (home / ".config").exists()


def test_a_yes_is_remembered_for_this_folder_and_this_address(
    project: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with gateway(200, 200) as server, typed(monkeypatch, "", "y"):
        project.write_text(f"ANTHROPIC_BASE_URL={server.url}\n", encoding="utf-8")
        ensure_credentials()
        ensure_credentials()  # asks nobody: nothing more is typed
    assert server.credentials == ["sk-ant-mine"] * 2
    assert json.loads((home / ".config" / "flower" / ".addresses").read_text()) == {str(tmp_path): [server.url]}
    ensure_credentials()  # without a terminal
    monkeypatch.delenv("ANTHROPIC_BASE_URL")
    project.write_text(f"ANTHROPIC_BASE_URL={ADDRESS}\n", encoding="utf-8")
    assert ADDRESS in refused()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / ".env").write_text(f"ANTHROPIC_BASE_URL={server.url}\n", encoding="utf-8")
    monkeypatch.chdir(elsewhere)
    monkeypatch.delenv("ANTHROPIC_BASE_URL")
    assert server.url in refused()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"x": 3}'])
@pytest.mark.usefixtures("project")
def test_a_memory_that_makes_no_sense_trusts_nobody(content: str, home: Path) -> None:
    (home / ".config" / "flower").mkdir(parents=True)
    (home / ".config" / "flower" / ".addresses").write_text(content, encoding="utf-8")
    assert ADDRESS in refused()


def test_a_password_in_the_address_is_not_shown_and_not_needed(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write_text("ANTHROPIC_BASE_URL=https://me:hush@gate.example\n", encoding="utf-8")
    told = refused()
    assert "hush" not in told
    assert "FLOWER_TRUST_ADDRESS=https://***@gate.example" in told
    monkeypatch.setenv("FLOWER_TRUST_ADDRESS", "https://***@gate.example")
    ensure_credentials()
