"""A handoff on its way: read from what the full session wrote, kept on disk, told to people (behaviour 16.2)."""

from __future__ import annotations

import re
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

from flower import texts
from flower.core.events import Event
from flower.core.handoff import Handoff, degraded
from flower.core.level import Level

_NO_NAME = re.compile(r'[/\\:*?"<>|\x00-\x1f]')
_NAME_BYTES = 150


def read(text: str, step: str, task: str) -> tuple[Handoff, str]:
    """Return the handoff in a model's text, or the substitute for it, and why it is one (else empty).

    Args:
        step: label of the step.
        task: what the step was told first.
    """
    written = Handoff.parse(text, step=step)
    if written.complete():
        return written, ""
    why = texts.current().running.why_missing.format(sections=", ".join(written.missing()))
    return degraded(step, task, why=why), why


def keep(handoff: Handoff, notes: Path) -> Path:
    """Write a handoff into the notes; the one before it moves into the archive, where nothing is overwritten (D16).

    Raises:
        OSError: it could not be written; what was there is still there, under one name or the other.
    """
    words = texts.current().running
    name = file_stem(handoff.step)
    path = notes / words.handoff_name.format(step=name)
    if path.exists():
        archive = notes / "archive" / words.handoff_archive
        archive.mkdir(parents=True, exist_ok=True)
        path.rename(_free(archive, f"{name}-{datetime.now().astimezone():%Y%m%d-%H%M%S}"))
    return handoff.write(path)


def file_stem(step: str) -> str:
    """Return a step's name as part of a file's name."""
    name = _NO_NAME.sub("", step).strip(". ") or "step"
    return name.encode(errors="replace")[:_NAME_BYTES].decode(errors="ignore")


def near(level: Level, step: str) -> Event:
    """Return the event that says that the context will be full soon."""
    policy = level.policy
    text = texts.current().running.near.format(
        context=level.tokens / 1000, window=policy.window / 1000, left=max(0, policy.at - level.tokens) / 1000
    )
    return Event("handoff", text, payload={"phase": "near", **_size(level, step), "at": policy.at})


def writing(level: Level, step: str) -> Event:
    """Return the event before the document is written: that takes a while, and nothing else would be seen of it."""
    text = texts.current().running.writing.format(context=level.tokens / 1000, window=level.policy.window / 1000)
    return Event("handoff", text, payload={"phase": "writing", **_size(level, step)})


def done(level: Level, step: str, handoff: Handoff) -> Event:
    """Return the event that a successor is about to start."""
    payload = {
        "phase": "done",
        **_size(level, step),
        "degraded": handoff.degraded,
        "path": str(handoff.path) if handoff.path is not None else "",
        "sections": {name: getattr(handoff, name) for name in ("doing", "decided", "deadends", "next")},
    }
    return Event("handoff", texts.current().running.handed_over.format(step=step), payload=payload)


def _size(level: Level, step: str) -> dict[str, Any]:
    return {"step": step, "context": level.tokens, "window": level.policy.window}


def _free(folder: Path, stem: str) -> Path:
    path = folder / f"{stem}.md"
    for number in count(2):
        if not path.exists():
            break
        path = folder / f"{stem}-{number}.md"
    return path
