"""Which text of the workbench each session began with.

A resumed session keeps the system prompt of its first request (SDK facts 3, trap 15), so a runtime must know whether
the index has changed since.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from pathlib import Path

from flower.core.disk import read_object, write_whole


class Openings:
    """A small file in the run folder. What cannot be read counts as unknown; what cannot be written is left out."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def began_with(self, session: str, *, otherwise: str) -> str:
        """Return the digest that was remembered for a session, or `otherwise` if none was."""
        return self._read().get(session, otherwise)

    def remember(self, session: str, digest: str) -> None:
        """Note what a session begins with; the first note stays."""
        known = self._read()
        if session in known:
            return
        with contextlib.suppress(OSError):
            write_whole(self._path, json.dumps({**known, session: digest}, indent=2) + "\n")

    def _read(self) -> dict[str, str]:
        return {key: str(value) for key, value in read_object(self._path).items()}


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
