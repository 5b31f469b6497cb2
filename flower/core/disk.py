"""Writing a small file so that a kill leaves the old one or the new one, never half of it.

Documents, which people edit and add to while a run writes them, have ways of their own: `freeze` and `append`.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import secrets
import stat
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

log = logging.getLogger(__name__)

_documents = threading.Lock()
"""Held from reading a document to replacing it, and while something is added to one; nobody is called under it."""

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


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a small file of ours; empty where the file is missing, cannot be read or makes no sense."""
    try:
        stored = json.loads((read_whole(path) or b"").decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return {}
    return stored if isinstance(stored, dict) else {}


def freeze(path: Path, render: Callable[[str], str]) -> Path:
    """Replace a document by what `render` makes of the text that is there ("" without one); as `write_whole`.

    Nothing that is added meanwhile with `append` is lost: it stands in that text, or after the new one. A file that
    cannot be read, like one saved in another encoding, is a person's work all the same: it is moved aside, and the
    log says where. Of such a file the text is what UTF-8 makes of it.

    Raises:
        OSError: it could not be written; the file is as it was.
    """
    target = real(path)
    with _documents:
        text, readable = _text(target)
        kept = None if readable else _set_aside(target)
        try:
            written = write_whole(path, render(text))
        except BaseException:
            if kept is not None:
                kept.replace(target)
            raise
    if kept is not None:
        log.warning("disk.unreadable_document file=%s kept=%s", written, kept)
    return written


def append(path: Path, head: str, entry: str) -> None:
    """Add to a document, creating its folders; a new one begins with `head`.

    Raises:
        OSError: it could not be written.
    """
    with _documents:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(entry if file.tell() else head + entry)


def real(path: Path) -> Path:
    """The file that a path leads to through its links, whether it is there or not.

    Raises:
        OSError: the links lead in a circle.
    """
    try:
        return path.resolve()
    except RuntimeError as err:  # how Python before 3.13 reports links that lead in a circle
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path)) from err


def _text(target: Path) -> tuple[str, bool]:
    """The text of a document, and whether it could be read as such."""
    try:
        data = read_whole(target) or b""
    except PermissionError:
        return "", False
    try:
        return data.decode("utf-8-sig"), True
    except UnicodeDecodeError:
        return data.decode(errors="replace"), False


def _set_aside(target: Path) -> Path:
    kept = stamped = target.with_name(f"{target.name}.unreadable-{time.strftime('%Y%m%d-%H%M%S')}")
    for number in count(2):
        if not kept.exists():
            break
        kept = stamped.with_name(f"{stamped.name}-{number}")
    return target.rename(kept)


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
