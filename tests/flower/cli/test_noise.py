"""What libraries log and warn about."""

from __future__ import annotations

import logging
import warnings

import pytest

from flower.cli.noise import told


@pytest.fixture(autouse=True)
def no_other_handlers(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a program: pytest has handlers of its own."""
    monkeypatch.setattr(logging.getLogger(), "handlers", [])


def test_logs_are_dropped_unless_they_are_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    log = logging.getLogger("library")
    with told(logs=False):
        log.error("Fatal error in %s", "reader")
    assert capsys.readouterr() == ("", "")
    with told(logs=True):
        log.error("Fatal error in %s \x1b[2J", "reader")
        log.info("nothing of interest")
    assert capsys.readouterr() == ("! library: Fatal error in reader\n", "")
    assert logging.getLogger().handlers == []


@pytest.mark.filterwarnings("default")
def test_warnings_are_shown_as_lines(capsys: pytest.CaptureFixture[str]) -> None:
    before = warnings.showwarning
    with told(logs=False):
        warnings.warn("there is no wall", stacklevel=1)
    assert capsys.readouterr() == ("! there is no wall\n", "")
    assert warnings.showwarning is before
