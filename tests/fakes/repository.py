"""A git repository of a test's own, with a committer and nothing of the person who runs the tests."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

_OURS = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}


def git(folder: Path, *command: str) -> str:
    """Run git and return what it prints; the test fails if git does."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(
        ["git", "-C", folder, *command], env=clean | _OURS, capture_output=True, text=True, timeout=20, check=False
    )
    assert done.returncode == 0, f"git {' '.join(command)}: {done.stderr}"
    return done.stdout.strip()


@dataclass(frozen=True, slots=True)
class Repository:
    path: Path

    def git(self, *command: str) -> str:
        return git(self.path, *command)

    def commit(self, name: str, content: str) -> str:
        """Commit one file and return the commit."""
        (self.path / name).write_text(content, encoding="utf-8")
        self.git("add", "--", name)
        self.git("commit", "--quiet", "--message", name)
        return self.git("rev-parse", "HEAD")

    def worktrees(self) -> dict[str, str]:
        """Folder of each worktree but the main one, by its branch."""
        blocks = [block.splitlines() for block in self.git("worktree", "list", "--porcelain").split("\n\n")]
        return {
            line.removeprefix("branch refs/heads/"): block[0].removeprefix("worktree ")
            for block in blocks[1:]
            for line in block
            if line.startswith("branch ")
        }


def repository(path: Path, *, committed: bool = True) -> Repository:
    """Make one on the branch `main`, with one file unless nothing is to be committed."""
    path.mkdir(parents=True, exist_ok=True)
    made = Repository(path)
    made.git("init", "--quiet", "--initial-branch", "main")
    made.git("config", "user.name", "Tester")
    made.git("config", "user.email", "tester@localhost")
    if committed:
        made.commit("base.txt", "base\n")
    return made
