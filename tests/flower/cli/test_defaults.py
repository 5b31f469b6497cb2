"""What a start does besides its run: trimming, the look for a new version, the closing note."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest

from flower.cli.parser import program
from flower.core import update
from tests.flower.cli.stories import parts, playing
from tests.flower.cli.tmux import RESTORED


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a workflow that does nothing, a credential, no terminal."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
    monkeypatch.delenv("FLOWER_LANG", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    (tmp_path / "nothing.py").write_text("from flower import Workflow\nmain = Workflow([])\n", encoding="utf-8")
    return tmp_path


def test_trimming_can_be_switched_on(place: Path) -> None:
    assert program(["-T", "run", "nothing.py:main"]) == 0
    assert (place / "runs" / "sessions.db").exists()


def test_a_new_version_is_looked_for_at_a_start_and_its_note_is_shown(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def found(note: Callable[[str], None]) -> None:
        note("新版本下次生效")

    monkeypatch.setattr(update, "maybe_update", found)
    assert program(["run", "nothing.py:main"]) == 0
    assert capsys.readouterr().out.startswith("新版本下次生效\n")
    assert place


@pytest.mark.real
@pytest.mark.timeout(180)
async def test_a_whole_run_with_its_defaults_leaves_a_closing_note_for_any_agent(tmp_path: Path) -> None:
    async with playing(tmp_path, parts([{"say": "All primes are printed."}])) as play:
        (play.workspace / "AGENTS.md").write_text("Their own words.\n", encoding="utf-8")
        with play.flower("primes") as window:
            await window.wait_for("Your answer")
            window.enter("ten")
            shown = await window.wait_for(RESTORED)
        assert "exit: 0" in shown
        assert "+ The closing note is in CLAUDE.md, AGENTS.md" in " ".join(shown.split())
        note = (play.workspace / "CLAUDE.md").read_text(encoding="utf-8")
        assert "primes" in note  # the oracle's sentence is no such note, so it is the mechanical one
        agents = (play.workspace / "AGENTS.md").read_text(encoding="utf-8")
        assert agents.startswith("Their own words.\n")
        assert agents.endswith(note)
        assert len(play.model.asked_of("aside")) == 1
