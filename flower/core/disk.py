"""Writing a small file so that a kill leaves the old one or the new one, never half of it."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

_BINARY = getattr(os, "O_BINARY", 0)  # Windows would write line ends of its own


def write_whole(path: Path, content: str | bytes) -> Path:
    """Replace the file in one step, creating its folders; returns the resolved path. Text is written as UTF-8.

    Behind a symbolic link the file that it leads to is replaced, and the link stays. The mode of an existing file is
    kept, and its owner where that is allowed. Blocks until the disk has it.

    Raises:
        OSError: it could not be written; the file is as it was.
    """
    target = real(path)
    # Half of a surrogate pair, which UTF-8 cannot hold, must not cost the file; in JSON its escape is right as it is.
    data = content.encode(errors="backslashreplace") if isinstance(content, str) else content
    target.parent.mkdir(parents=True, exist_ok=True)
    before = _look(target)
    draft = target.parent / f".{secrets.token_hex(8)}.tmp"
    # What replaces a file that only its owner may read must not be open to others for a moment.
    mode = 0o666 if before is None else 0o600
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, mode), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if before is not None:
            _take_after(draft, before)
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    return target


def read_whole(path: Path) -> bytes | None:
    """The content of a file, None if there is none. Never waits for a pipe or a device.

    Raises:
        OSError: it cannot be read, or is no regular file.
    """
    target = real(path)
    return None if _look(target) is None else target.read_bytes()


def real(path: Path) -> Path:
    """The file that a path leads to through its links, whether it is there or not.

    Raises:
        OSError: the links lead in a circle.
    """
    try:
        return path.resolve()
    except RuntimeError as err:  # how Python before 3.13 reports links that lead in a circle
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path)) from err


def _look(target: Path) -> os.stat_result | None:
    """The file that is there, None if there is none.

    Raises:
        OSError: there is something that is no regular file.
    """
    try:
        found = target.stat()
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", str(target))
    return found


def _take_after(draft: Path, before: os.stat_result) -> None:
    made = draft.stat()
    if (made.st_uid, made.st_gid) != (before.st_uid, before.st_gid):
        with suppress(OSError):
            os.chown(draft, before.st_uid, before.st_gid)
    draft.chmod(stat.S_IMODE(before.st_mode))
