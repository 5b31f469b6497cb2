"""The daily look for a newer version, in the background (API 15.2).

Nothing is asked and nothing is done unless somebody says where the program comes from: `REPOSITORY`, or the variable
`FLOWER_UPDATE_FROM`. The running process is never replaced.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from flower import texts
from flower.core.disk import read_object, write_whole
from flower.core.env import user_env_path, variable, without, without_password
from flower.core.worktrees import MISLEADING
from flower.texts.updates import UpdateTexts

INTERVAL = 24 * 3600
"""Seconds between two looks."""

REPOSITORY = ""
"""The git address of the project itself; there is no public one."""

_PATIENCE = 600
"""Seconds for an installer."""
_SCHEMES = ("https", "ssh", "file")
"""What comes over plain http or git could be anybody's, and it will be run."""
_ROOT = Path(__file__).resolve().parents[2]
_REVISION = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
# Never ask a person for a password behind the back of what they are doing.
_SILENT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "true",
    "SSH_ASKPASS": "true",
    "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
}


def state_path() -> Path:
    """The file that remembers the last look: JSON with `checked` (seconds since 1970) and `installed` (revision)."""
    return user_env_path().with_name(".update")


def local_head() -> str | None:
    """The revision that runs: of the checkout that this package lies in, else the one installed last; None if unknown.

    Blocks for a moment, to ask git.
    """
    if _in_checkout():
        return _revision(_git("-C", str(_ROOT), "rev-parse", "HEAD", timeout=10))
    return _revision(read_object(state_path()).get("installed"))


def remote_head(timeout: float = 6.0) -> str | None:
    """The newest revision of the project's repository; None on any failure, and where no repository is named.

    Blocks for at most `timeout` seconds. Never raises.
    """
    source = _source()
    if not source or not _usable(source):
        return None
    return _revision((_git("ls-remote", "--", source, "HEAD", timeout=timeout) or "").partition("\t")[0])


def maybe_update(note: Callable[[str], None] | None = None) -> threading.Thread | None:
    """Look for a newer version, and install it for the next start, in a daemon thread. Returns at once, never raises.

    None, and nothing is done: no repository is named, FLOWER_NO_UPDATE is set, stdin is no terminal, or the last look
    is less than `INTERVAL` seconds old.

    Args:
        note: called with one line for a person, mostly from that thread: installed, or why not.
    """
    with suppress(Exception):  # whatever it is, it must not keep anybody from working
        source = _source()
        if not source or variable("FLOWER_NO_UPDATE") or not _at_a_terminal() or _looked_lately():
            return None
        look = _Look(source, note, texts.current().updates)
        thread = threading.Thread(target=look.run, name="flower-update", daemon=True)
        thread.start()
        return thread
    return None


class _Look:
    """One look, with the words of the language that was spoken when it began: a thread speaks the default."""

    def __init__(self, source: str, note: Callable[[str], None] | None, words: UpdateTexts) -> None:
        self._source = source
        self._note = note
        self._words = words

    def run(self) -> None:
        with suppress(Exception):  # boundary: nobody waits for this thread
            self._look()

    def _look(self) -> None:
        if not _usable(self._source):
            self._tell(self._words.bad_source.format(source=_shown(self._source)))
            return
        newest = remote_head()
        if newest is None:
            return
        _remember(checked=time.time())
        installer = _installer(f"git+{self._source}@{newest}")
        if installer is not None and newest != local_head():
            self._install(installer, newest)

    def _install(self, installer: list[str], newest: str) -> None:
        reason = self._ran(installer)
        if reason is None:
            _remember(installed=newest)
            self._tell(self._words.updated.format(revision=newest[:12]))
        else:
            name = "pip" if "pip" in installer else Path(installer[0]).name
            self._tell(self._words.failed.format(installer=name, reason=reason))

    def _ran(self, installer: list[str]) -> str | None:
        """Run it; None if it did its work, else why not."""
        try:
            done = subprocess.run(  # noqa: S603 - an installer on the person's PATH, an address that the person named
                installer,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_PATIENCE,
                check=False,
                env=without(MISLEADING) | _SILENT,
                start_new_session=True,  # a Ctrl-C meant for the run must not leave half an installation
            )
        except subprocess.TimeoutExpired:
            return self._words.timed_out.format(limit=_PATIENCE)
        if done.returncode == 0:
            return None
        said = done.stderr.decode(errors="replace").strip().splitlines()
        return _shown(said[-1] if said else f"exit {done.returncode}")

    def _tell(self, text: str) -> None:
        if self._note is not None:
            self._note(text)


def _source() -> str:
    return variable("FLOWER_UPDATE_FROM").strip() or REPOSITORY


def _usable(source: str) -> bool:
    try:
        parts = urlsplit(source)
    except ValueError:
        return False
    whole = bool(parts.netloc) if parts.scheme != "file" else bool(parts.path)
    return parts.scheme in _SCHEMES and whole and source.isprintable() and not any(map(str.isspace, source))


def _installer(requirement: str) -> list[str] | None:
    """The command that replaces this very installation; None where none does.

    Where somebody put the package into an environment of their own, or runs a checkout, another copy elsewhere would
    not be the one that starts next time.
    """
    if _in_checkout():
        return None
    places = Path(sys.prefix).parts
    if "tools" in places and "uv" in places and (uv := shutil.which("uv")):
        return [uv, "tool", "install", "--force", requirement]
    if "pipx" in places and (pipx := shutil.which("pipx")):
        return [pipx, "install", "--force", requirement]
    if sys.prefix == sys.base_prefix:
        return [sys.executable, "-m", "pip", "install", "--user", "--upgrade", requirement]
    return None


def _in_checkout() -> bool:
    # Only right here: a virtual environment may lie in a repository that has nothing to do with us.
    return (_ROOT / ".git").exists()


def _at_a_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


def _looked_lately() -> bool:
    checked = read_object(state_path()).get("checked")
    # A look in the future was stamped by a clock that was wrong.
    return isinstance(checked, int | float) and 0 <= time.time() - checked < INTERVAL


def _remember(**news: float | str) -> None:
    with suppress(OSError):  # then it is looked up again next time
        write_whole(state_path(), json.dumps({**read_object(state_path()), **news}) + "\n")


def _git(*command: str, timeout: float) -> str | None:
    program = shutil.which("git")
    if program is None:
        return None
    try:
        done = subprocess.run(  # noqa: S603 - our own words, and an address after "--"
            [program, *command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout,
            check=False,
            env=without(MISLEADING) | _SILENT,
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return done.stdout.decode(errors="replace") if done.returncode == 0 else None


def _revision(text: Any) -> str | None:
    text = text.strip() if isinstance(text, str) else ""
    return text if _REVISION.fullmatch(text) else None


def _shown(text: str) -> str:
    """One short line without passwords, fit for a terminal."""
    line = without_password(" ".join(text.split()))
    return "".join(char for char in line if char.isprintable())[:200]
