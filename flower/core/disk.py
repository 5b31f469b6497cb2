"""Writing a small file so that a kill leaves the old one or the new one, never half of it."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def write_whole(path: Path, text: str) -> Path:
    """Replace the file in one step, creating its folders; returns the resolved path.

    Raises:
        OSError: it could not be written; the file is as it was.
    """
    target = path.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.parent / f".{secrets.token_hex(8)}.tmp"
    try:
        with draft.open("x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            draft.chmod(target.stat().st_mode & 0o777)
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    return target
