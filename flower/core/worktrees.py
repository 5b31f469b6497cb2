"""Git worktrees for subagents: whether a folder can have them, and the one setting of the program that they need.

The program makes them itself, for calls that `guard.isolate_guard` has marked. What to know (2.1.332; more of it in
docs/decisions/0014):

* A worktree lies in `<repository>/.claude/worktrees/agent-<agent id>`, on a branch `worktree-agent-<agent id>`, and is
  the subagent's working directory. `git status` of the main checkout shows `.claude/` as untracked.
* It branches off HEAD where `settings` are given. Changes that are not committed are not in it.
* Writing files in the main checkout, and git there, are refused from inside; the workbench can be written.
* Afterwards a worktree without a change is removed with its branch. One with a commit or a new or changed file stays,
  also when the run is interrupted, and is named at the end of the report. Files that git ignores are lost.
* Nobody merges or removes what stays but who is told to. What a killed or interrupted run leaves may be locked by a
  process that is gone: `git worktree unlock`, then `remove`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flower import texts
from flower.core.env import without
from flower.core.guard import wants_isolation

_PATIENCE = 10
"""Seconds for one question to git; it reads no more than a few small files."""

# Where a git hook or an alias started us, these would lead away from the folder in question. The program never sees
# them either: they are not on the list of `child`.
MISLEADING = (
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX"),
    *("GIT_NAMESPACE", "GIT_CEILING_DIRECTORIES"),
)


def settings(agents: Mapping[str, Any] | None) -> str | None:
    """Return the program's settings (JSON, for the option of that name) for these agents; None if none is marked.

    Without them a worktree branches off `origin`'s main branch, which the program fetches first: local commits, those
    of earlier subagents among them, would be missing, and the network would be asked.
    """
    if not any(wants_isolation(agent) for agent in (agents or {}).values()):
        return None
    return json.dumps({"worktree": {"baseRef": "head"}})


def trouble(folder: Path) -> str | None:
    """Say to a person why subagents cannot have worktrees in this folder; None if they can.

    Asks git, so it blocks, at most for some seconds. Writes nothing.

    Args:
        folder: absolute and resolved.
    """
    words = texts.current().isolation
    program = shutil.which("git")
    if program is None:
        return words.no_git.format(path=folder)
    answer, said = _ask(program, folder, "rev-parse", "--is-inside-work-tree", "--show-prefix")
    if answer is None:
        if any((place / ".git").exists() for place in (folder, *folder.parents)):
            return words.refused.format(path=folder, words=said)
        return words.not_git.format(path=folder)
    inside, _, prefix = answer.partition("\n")
    if inside != "true":
        return words.bare.format(path=folder)
    if prefix.strip("\n"):
        root, _ = _ask(program, folder, "rev-parse", "--show-toplevel")
        return words.subfolder.format(path=folder, root=(root or "").strip("\n") or folder.parent)
    head, _ = _ask(program, folder, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    return None if head else words.no_commit.format(path=folder)


def _ask(program: str, folder: Path, *question: str) -> tuple[str | None, str]:
    """What git answers, None if it refuses; and what it says beside."""
    try:
        asked = subprocess.run(  # noqa: S603 - our own words, and a path as an argument of its own
            [program, "-C", folder, *question],
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
            stdin=subprocess.DEVNULL,
            env=without(MISLEADING),
        )
    except subprocess.TimeoutExpired:
        return None, texts.current().isolation.silent.format(limit=_PATIENCE)
    except OSError as err:
        return None, str(err)
    said = " ".join(asked.stderr.decode(errors="replace").split())
    return (asked.stdout.decode(errors="replace") if asked.returncode == 0 else None), said
