"""What is wrong with the places a run is to use, said before it begins: nobody gets a traceback for a folder."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

from flower import texts
from flower.cli.screen import standard
from flower.core import grammar
from flower.core.brief import Brief
from flower.core.goal import Goal
from flower.stores.sqlite import SessionFileError

STORE, MANIFEST, LINEAGE = "sessions.db", "manifest.json", "lineage.json"


@contextlib.contextmanager
def usable(*, workspace: str | Path, run_dir: str | Path) -> Iterator[None]:
    """Turn what the disk and the session store refuse in this block into words. A workspace that is made in it is told.

    Raises:
        SystemExit: with these words.
    """
    said = texts.current().commands
    for path in (Path(workspace).absolute(), Path(run_dir).absolute()):
        if any("\ud800" <= each <= "\udfff" for each in str(path)):
            # The agents' program cannot start there, and would be tried again and again.
            raise SystemExit(said.place_unusable.format(place=ascii(str(path)), error=said.not_utf8))
    missing = not Path(workspace).exists()
    try:
        yield
    except SessionFileError as err:  # says itself which file, why, and what to do
        raise SystemExit(str(err)) from None
    except sqlite3.Error as err:
        raise SystemExit(said.broken_store.format(path=Path(run_dir) / STORE, error=err)) from None
    except OSError as err:
        place = err.filename if isinstance(err.filename, str) else workspace
        raise SystemExit(said.place_unusable.format(place=place, error=err.strerror or err)) from None
    if missing and Path(workspace).is_dir():
        standard().say(said.made.format(path=Path(workspace).absolute()))


def look_over(run_dir: str | Path) -> list[str]:
    """Look at what earlier runs left, and say what cannot be read.

    Accounts that make no sense are kept under another name: the next ones are written over them. Writes nothing else.
    """
    said, notes = texts.current().commands, []
    manifest, lineage = Path(run_dir) / MANIFEST, Path(run_dir) / LINEAGE
    if _is_broken(manifest, list):
        kept = manifest.with_name(f"{MANIFEST}.{time.strftime('%Y%m%d-%H%M%S')}.broken")
        with contextlib.suppress(OSError):
            manifest.rename(kept)
            notes.append(said.broken_file.format(path=manifest, kept=kept.name))
    if _is_broken(lineage, dict, encoding="utf-8-sig"):
        notes.append(said.broken_lineage.format(path=lineage))
    return notes


def look_into(brief: Path, goal: Path) -> list[str]:
    """Look at the frozen documents, which people may edit, and say which are incomplete: a run makes those anew.

    Writes nothing. A file in which only additions stand is no document yet.
    """
    found: list[tuple[Path, type[Brief] | type[Goal]]] = [(brief, Brief), (goal, Goal)]
    return [note for path, kind in found if (note := _incomplete(path, kind))]


def _incomplete(path: Path, kind: type[Brief] | type[Goal]) -> str:
    said = texts.current().commands
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return ""
    except OSError as err:
        return said.unreadable_document.format(path=path, error=err.strerror or err)
    except ValueError:
        return said.unreadable_document.format(path=path, error=said.no_text)
    missing, document = kind.parse(text).missing(), grammar.split_addenda(text)[0]
    if not missing or all(line.startswith(("# ", "> ")) for line in document.splitlines() if line.strip()):
        return ""
    line = grammar.open_fence(document)
    fence = said.open_fence.format(line=line) if line else ""
    return said.incomplete_document.format(path=path, missing=", ".join(missing), fence=fence)


def _is_broken(path: Path, kind: type, *, encoding: str = "utf-8") -> bool:
    try:
        return not isinstance(json.loads(path.read_text(encoding=encoding)), kind)
    except FileNotFoundError:
        return False
    except (OSError, ValueError, RecursionError):
        return True


def shown(place: Path) -> str:
    """A path for a person: the home directory as `~`."""
    with contextlib.suppress(ValueError, RuntimeError):
        return str(Path("~") / place.relative_to(Path.home()))
    return str(place)
