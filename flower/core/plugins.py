"""Plugin folders that travel with a flow: skills, agents, hooks, servers (rulings R25)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from flower import texts

FOLDER = "plugin"
_MANIFEST = Path(".claude-plugin", "plugin.json")


def checked(folders: Iterable[str | Path]) -> list[Path]:
    """Return the folders, resolved. The program itself says nothing of one that is missing (SDK facts 5).

    Raises:
        ValueError: a folder is missing or is no plugin; says which and what was expected.
    """
    found = [Path(folder).resolve() for folder in folders]
    for folder in found:
        if not (folder / _MANIFEST).is_file():
            raise ValueError(texts.current().running.no_plugin.format(path=folder))
    return found


def beside(source: str | Path | None) -> list[Path]:
    """Return the plugin folder that stands beside a flow's source file; empty if there is none.

    Raises:
        ValueError: there is one, but it is no plugin.
    """
    if source is None:
        return []
    folder = Path(source).resolve().parent / FOLDER
    return checked([folder]) if folder.exists() else []
