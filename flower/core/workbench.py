"""The working directory on disk that agents share, and its index (behaviour 12)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from flower import texts
from flower.core.disk import write_whole

Entry = tuple[str, str, int]
"""Path as it is shown, description, size in bytes."""

_SCANNED_LINES = 8
_LINE_LIMIT = 1000
_DESCRIPTION_LIMIT = 100
_DESC = re.compile(r"\s*(?:#|//|--)\s*desc\s*[:\uff1a]\s*(?P<text>.*)", re.IGNORECASE)
_COMMENT = re.compile(r"\s*(?:#+(?!!)|//+|--+)\s*(?P<text>.*)")
_CODING = re.compile(r"-\*-|coding[:=]|vim?:")
_DOCSTRING = re.compile(r"""\s*[rR]?(?:\"{3}|'{3})(?P<text>.*)""")


@dataclass
class Workbench:
    """`scripts/`, `artifacts/` and `notes/` under one root, by default `<workspace>/.flower`.

    Give the same object to the workflow and to the runtime: their defaults are two different places.
    """

    workspace: Path
    dirname: str = ".flower"
    max_index_entries: int = 40
    home: Path | None = None

    def __post_init__(self) -> None:
        self.workspace = Path(self.workspace).resolve()
        if self.home is not None:
            self.home = Path(self.home).resolve()

    @property
    def root(self) -> Path:
        return self.home or self.workspace / self.dirname

    @property
    def external(self) -> bool:
        """Does the root lie outside the workspace? Then the agents need absolute paths and leave to write there."""
        return not self.root.is_relative_to(self.workspace)

    @property
    def scripts(self) -> Path:
        return self.root / "scripts"

    @property
    def artifacts(self) -> Path:
        return self.root / "artifacts"

    @property
    def notes(self) -> Path:
        return self.root / "notes"

    @property
    def index_path(self) -> Path:
        return self.root / "INDEX.md"

    def show(self, p: Path) -> str:
        """The path as a model is to use it: relative to the workspace, or absolute if the bench is external."""
        path = Path(os.path.abspath(p))  # noqa: PTH100 - resolve() would follow links out of the bench
        if self.external or not path.is_relative_to(self.workspace):
            return str(path)
        return str(path.relative_to(self.workspace))

    def ensure(self) -> Workbench:
        for directory in (self.scripts, self.artifacts, self.notes):
            directory.mkdir(parents=True, exist_ok=True)
        return self

    def scan(self, d: Path) -> list[Entry]:
        """Every file below `d`, sorted; names that begin with a dot are skipped. Empty if `d` is no directory."""
        found: list[Entry] = []
        for folder, folders, names in os.walk(d):
            folders[:] = [name for name in folders if not name.startswith(".")]
            for name in names:
                path = Path(folder, name)
                if not name.startswith(".") and (size := _size(path)) is not None:
                    found.append((self.show(path), _description(path), size))
        return sorted(found)

    def refresh(self) -> str:
        """Write INDEX.md anew, with every entry, and return its text."""
        self.ensure()
        spoken = texts.current().workbench
        parts = [f"# {spoken.index_title}", f"> {spoken.index_note}"]
        for heading, entries in self._categories():
            listed = [_item(entry) for entry in entries] or [f"- {spoken.empty}"]
            parts.append("\n".join([f"## {heading}", "", *listed]))
        text = "\n\n".join(parts) + "\n"
        if _text_of(self.index_path) != text:
            write_whole(self.index_path, text)
        return text

    def prompt_block(self) -> str:
        """The short form for an agent: what exists, and the three rules. It goes into every new session."""
        spoken = texts.current().workbench
        parts = [f"## {spoken.block_title.format(root=self.show(self.root))}"]
        if self.external:
            parts.append(spoken.outside)
        existing = [self._listed(heading, entries) for heading, entries in self._categories() if entries]
        parts.extend([spoken.existing, *existing] if existing else [spoken.nothing])
        places = {name: self.show(self.root / name) for name in ("scripts", "artifacts", "notes")}
        return "\n\n".join([*parts, spoken.rules.format(**places)])

    def _categories(self) -> Iterator[tuple[str, list[Entry]]]:
        spoken = texts.current().workbench
        for heading, directory in (
            (spoken.scripts, self.scripts),
            (spoken.artifacts, self.artifacts),
            (spoken.notes, self.notes),
        ):
            entries = self.scan(directory)
            yield heading.format(count=len(entries)), entries

    def _listed(self, heading: str, entries: list[Entry]) -> str:
        lines = [_item(entry) for entry in entries[: self.max_index_entries]]
        if left := len(entries) - len(lines):
            lines.append(texts.current().workbench.more.format(count=left))
        return "\n".join([f"### {heading}", *lines])


def _item(entry: Entry) -> str:
    spoken = texts.current().workbench
    path, description, size = entry
    return spoken.item.format(
        path=" ".join(path.split("\n")), description=description or spoken.undescribed, size=_readable(size)
    )


def _readable(size: int) -> str:
    if size < 1024:
        return f"{size}B"
    if size < 1024 * 1024:
        return f"{size / 1024:.1f}K"
    return f"{size / (1024 * 1024):.1f}M"


def _description(path: Path) -> str:
    """What the head of a file says it is; empty if it says nothing or cannot be read."""
    head = _head(path)
    for line in head:
        if match := _DESC.match(line):
            return match["text"].strip()[:_DESCRIPTION_LIMIT]
    return next(_remarks(head), "")[:_DESCRIPTION_LIMIT]


def _remarks(head: list[str]) -> Iterator[str]:
    """Comments longer than three characters, and first lines of docstrings, in their order."""
    for number, line in enumerate(head):
        if (comment := _COMMENT.match(line)) and not line.startswith("#!"):
            text = comment["text"].strip()
            if len(text) > 3 and not _CODING.search(text):
                yield text
        elif docstring := _DOCSTRING.match(line):
            first = docstring["text"] or (head[number + 1] if number + 1 < len(head) else "")
            if text := re.split(r"\"{3}|'{3}", first)[0].strip():
                yield text


def _head(path: Path) -> list[str]:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            lines = list(islice(iter(lambda: file.readline(_LINE_LIMIT), ""), _SCANNED_LINES))
    except OSError:
        return []
    # A binary file has no description, whatever bytes happen to look like a comment.
    return [] if any("\0" in line for line in lines) else [line.rstrip("\r\n") for line in lines]


def _size(path: Path) -> int | None:
    """None for what vanished meanwhile, or is no file: opening a pipe would wait for ever."""
    try:
        return path.stat().st_size if path.is_file() else None
    except OSError:
        return None


def _text_of(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None
