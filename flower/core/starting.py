"""Puts the start script of the program (see `child`) where the SDK can find it."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from flower.core import child
from flower.core.env import KNOWN


def start_script(folder: Path, given: Iterable[str]) -> Path | None:
    """Write the script that starts the program with the variables `given` and what any child may see.

    One file per text, so that several runs may share the folder. None where there is no program that we could start:
    then the SDK says so itself.

    Raises:
        OSError: the folder cannot be written.
        ValueError: a name that cannot be the name of a variable.
    """
    program = _program()
    if program is None or sys.platform == "win32":
        return None
    script = child.wrapper(str(program), child.allowed(given, known=KNOWN, parent=_set_here()), _setpriv())
    path = folder / f"child-{hashlib.sha256(script.encode()).hexdigest()[:16]}.sh"
    if _text_of(path) != script:
        draft = path.with_suffix(f".{secrets.token_hex(4)}")
        draft.touch(mode=0o700)
        draft.write_text(script, encoding="utf-8")
        draft.replace(path)
    return path


def _set_here() -> frozenset[str]:
    return frozenset(os.environ)  # noqa: TID251 - the names only: which families of variables the child needs


def _text_of(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None


@functools.cache
def _program() -> Path | None:
    """Find the program that the SDK would start: its own, else one on the path."""
    sdk = importlib.util.find_spec("claude_agent_sdk")
    if sdk is not None and sdk.origin is not None:
        bundled = Path(sdk.origin).with_name("_bundled") / "claude"
        if bundled.is_file():
            return bundled
    found = shutil.which("claude")
    return None if found is None else Path(found)


@functools.cache
def _setpriv() -> str | None:
    """Find a `setpriv` that knows `--pdeathsig`: small systems have one that does not."""
    found = shutil.which("setpriv") if sys.platform == "linux" else None
    if found is None:
        return None
    trial = [found, "--pdeathsig", "TERM", "--", "true"]
    try:
        tried = subprocess.run(trial, capture_output=True, timeout=5, check=False)  # noqa: S603 - our own words
    except (OSError, subprocess.SubprocessError):
        return None
    return found if tried.returncode == 0 else None
