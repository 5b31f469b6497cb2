"""What libraries log and warn about."""

from __future__ import annotations

import subprocess
import sys
import warnings

import pytest

from flower.cli.noise import told

SCRIPT = r"""
import logging
from flower.cli.noise import told
log = logging.getLogger("library")
with told(logs={logs}):
    log.error("Fatal error in %s \x1b[2J", "reader")
    log.info("nothing of interest")
assert logging.getLogger().handlers == []
"""


@pytest.mark.parametrize(("logs", "shown"), [(False, ""), (True, "! library: Fatal error in reader\n")])
def test_logs_are_dropped_unless_they_are_wanted(logs: bool, shown: str) -> None:
    """In a process of its own: pytest has handlers, and Python's last resort would not be asked."""
    done = subprocess.run([sys.executable, "-c", SCRIPT.format(logs=logs)], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == (shown, "")


@pytest.mark.filterwarnings("default")
def test_warnings_are_shown_as_lines(capsys: pytest.CaptureFixture[str]) -> None:
    before = warnings.showwarning
    with told(logs=False):
        warnings.warn("there is no wall", stacklevel=1)
    assert capsys.readouterr() == ("! there is no wall\n", "")
    assert warnings.showwarning is before
