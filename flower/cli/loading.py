"""From `module:attribute` to a workflow, with a clear word about everything that can be wrong with it (API 16.5)."""

from __future__ import annotations

import importlib
import inspect
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from flower import texts
from flower.workflow.base import Workflow


class TargetError(Exception):
    """What is wrong with a target, in words for a person."""


def check_target(target: str) -> None:
    """See whether a target has the right form and names a file that is there. Runs nothing, so it is quick.

    Raises:
        TargetError: it does not.
    """
    _file(_parts(target)[0])


def load_workflow(target: str) -> tuple[Workflow, Path | None]:
    """Import a target, call it if it can be called, and return its workflow and the file that it came from.

    Runs the target's code, so it blocks for as long as that does.

    Raises:
        TargetError: there is no such workflow, or its code failed.
    """
    said = texts.current().commands
    place, attribute = _parts(target)
    module = _module(place)
    found: Any = module
    for name in attribute.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            raise TargetError(said.no_attribute.format(module=module.__name__, attribute=attribute)) from None
    if callable(found) and not isinstance(found, Workflow):
        try:
            found = found()
        except (Exception, SystemExit) as err:  # boundary: a person's own code
            raise TargetError(said.factory_failed.format(target=target, error=_told(err))) from err
    if not isinstance(found, Workflow):
        if inspect.iscoroutine(found):
            found.close()
        raise TargetError(said.not_a_workflow.format(target=target, kind=type(found).__name__))
    source = getattr(module, "__file__", None)
    return found, Path(source).resolve() if source else None


def _parts(target: str) -> tuple[str, str]:
    place, colon, attribute = target.rpartition(":")
    if not colon or not place or not attribute:
        raise TargetError(texts.current().commands.target_form)
    return place, attribute


def _file(place: str) -> Path | None:
    """The file that a target names; None where it names a module."""
    if not place.endswith(".py") and "/" not in place:
        return None
    path = Path(place)
    if not path.is_file():
        raise TargetError(texts.current().commands.no_file.format(path=place, cwd=Path.cwd()))
    return path


def _module(place: str) -> ModuleType:
    said = texts.current().commands
    name = place
    if path := _file(place):
        sys.path.insert(0, str(path.resolve().parent))
        name = path.stem
    elif "" not in sys.path and str(Path.cwd()) not in sys.path:
        # The console script's path begins with its own folder; `flows:main` means the one beside the person.
        sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as err:  # boundary: a person's own code
        raise TargetError(said.import_failed.format(module=name, error=_told(err))) from err


def _told(err: BaseException) -> str:
    """An error in one line, with the line of the person's file where it came up."""
    said = texts.current().commands
    text = f"{type(err).__name__}: {err}"
    if isinstance(err, SyntaxError):
        return text  # names file and line itself
    frames = [frame for frame in traceback.extract_tb(err.__traceback__) if _is_theirs(frame.filename)]
    if not frames:
        return text
    return f"{text} {said.at_line.format(file=Path(frames[-1].filename).name, line=frames[-1].lineno)}"


def _is_theirs(file: str) -> bool:
    ours = Path(__file__).resolve().parents[1]
    return not file.startswith("<") and ours not in Path(file).resolve().parents and file != importlib.__file__
