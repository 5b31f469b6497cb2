"""The start script: the program gets what the allow-list names, and nothing else (rulings R8)."""

from __future__ import annotations

import shutil
import stat
import subprocess
import sys
from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path

import pytest

from flower.core import child
from flower.core.starting import start_script

PRINT_ENVIRONMENT = f"""#!{sys.executable}
import os, sys
sys.stdout.write(repr((dict(os.environ), sys.argv[1:])))
"""

SETPRIV = shutil.which("setpriv")


def program(folder: Path, name: str = "program") -> Path:
    path = folder / name
    path.write_text(PRINT_ENVIRONMENT, encoding="utf-8")
    path.chmod(0o700)
    return path


def start(
    folder: Path,
    script: str,
    environment: Mapping[str, str],
    arguments: Sequence[str] = (),
) -> tuple[dict[str, str], list[str]]:
    """Run a start script and return the environment and the arguments that the program saw."""
    path = folder / "start.sh"
    path.write_text(script, encoding="utf-8")
    path.chmod(0o700)
    done = subprocess.run([path, *arguments], env=environment, capture_output=True, text=True, timeout=10, check=True)
    seen: tuple[dict[str, str], list[str]] = eval(done.stdout)  # noqa: S307 - written by the program above
    # What a shell and the interpreter set by themselves.
    return {name: value for name, value in seen[0].items() if name not in ("PWD", "_", "SHLVL", "LC_CTYPE")}, seen[1]


PATH = {"PATH": "/usr/bin:/bin"}


@pytest.mark.parametrize("setpriv", [None, SETPRIV], ids=["without setpriv", "with setpriv"])
def test_only_the_named_variables_reach_the_program(tmp_path: Path, setpriv: str | None) -> None:
    if setpriv is None and SETPRIV is None:
        pytest.fail("setpriv is missing: apt-get install util-linux")
    script = child.wrapper(str(program(tmp_path)), ["PATH", "HOME", "LC_*", "NOT_SET"], setpriv)
    environment = {
        **PATH,
        "HOME": "/home/me",
        "LC_ALL": "C.UTF-8",
        "REDIS_PASSWORD": "s3cret",
        "HOMEWORK": "no",
        "lines": "one\nHOME=two",
        "odd-name": "no",
        "names": "no",
    }
    seen, _ = start(tmp_path, script, environment)
    assert seen == {**PATH, "HOME": "/home/me", "LC_ALL": "C.UTF-8"}


def test_arguments_and_values_arrive_as_they_are(tmp_path: Path) -> None:
    script = child.wrapper(str(program(tmp_path)), ["PATH", "KEY"], SETPRIV)
    value = "two words, a 'quote', \"another\", $HOME, `ls`\nand a line"
    seen, arguments = start(tmp_path, script, {**PATH, "KEY": value}, ["a b", "", "-u", "X=1", "$(ls)", "l1\nl2"])
    assert seen["KEY"] == value
    assert arguments == ["a b", "", "-u", "X=1", "$(ls)", "l1\nl2"]


@pytest.mark.parametrize("name", ["with space", "a=b", "quo'te", "-dash"])
@pytest.mark.parametrize("setpriv", [None, SETPRIV], ids=["without setpriv", "with setpriv"])
def test_a_program_may_lie_anywhere(tmp_path: Path, name: str, setpriv: str | None) -> None:
    script = child.wrapper(str(program(tmp_path, name)), ["PATH"], setpriv)
    assert start(tmp_path, script, {**PATH, "SECRET": "x"})[0] == PATH


def test_without_a_list_of_what_is_set_nothing_is_started(tmp_path: Path) -> None:
    path = tmp_path / "start.sh"
    path.write_text(child.wrapper(str(program(tmp_path)), ["PATH"], None), encoding="utf-8")
    done = subprocess.run(
        ["/bin/sh", path], env={"PATH": str(tmp_path), "SECRET": "x"}, capture_output=True, timeout=10, check=False
    )
    assert done.returncode == 126
    assert done.stdout == b""


@pytest.mark.parametrize("name", ["", "A B", "A;ls", "A|B", "1A", "A*B", "*", "$(ls)"])
def test_what_cannot_be_a_variable_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is not the name of an environment variable"):
        child.wrapper("/bin/true", ["PATH", name], None)


def test_the_allow_list_has_no_secrets_but_the_models() -> None:
    names = child.allowed(["FLOWER_EXTRA"], known=["CLAUDE_CODE_EFFORT_LEVEL"], parent=["AWS_SECRET_ACCESS_KEY"])
    assert {"FLOWER_EXTRA", "CLAUDE_CODE_EFFORT_LEVEL", "ANTHROPIC_*", "FLOWER_RUN", "PATH", "LC_*"} <= set(names)
    assert not [name for name in names if name.startswith(("AWS", "GOOGLE", "SLACK", "REDIS", "FLOWER_CHAT"))]


def test_git_knows_who_commits_and_is_led_nowhere_else() -> None:
    names = set(child.allowed([]))
    assert {"GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_CONFIG_GLOBAL", "XDG_CONFIG_HOME"} <= names
    # No pattern lets them in either: these lead to another repository, hold secrets, or make git run something.
    kept_out = {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_ASKPASS", "GIT_CONFIG_VALUE_0", "GIT_SSH_COMMAND"}
    assert not [name for name in kept_out if any(fnmatch(name, pattern) for pattern in names)]


@pytest.mark.parametrize(
    ("switch", "family"), [("CLAUDE_CODE_USE_BEDROCK", "AWS_*"), ("CLAUDE_CODE_USE_VERTEX", "GOOGLE_*")]
)
def test_a_providers_variables_pass_only_where_it_is_used(switch: str, family: str) -> None:
    assert family not in child.allowed([], parent=["AWS_REGION", "GOOGLE_API_KEY"])
    assert family in child.allowed([], parent=[switch])
    assert family in child.allowed([switch])


def test_the_script_is_for_its_owner_only_and_holds_no_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-very-secret")
    path = start_script(tmp_path, {"MINE": "hidden-value"})
    assert path is not None
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    text = path.read_text(encoding="utf-8")
    assert "very-secret" not in text
    assert "hidden-value" not in text
    assert "|MINE|" in text


def test_the_same_names_give_the_same_script_and_a_changed_file_is_put_right(tmp_path: Path) -> None:
    first = start_script(tmp_path, ["A"])
    assert first is not None
    text = first.read_text(encoding="utf-8")
    first.write_text("#!/bin/sh\nenv\n", encoding="utf-8")
    assert start_script(tmp_path, ["A"]) == first
    assert first.read_text(encoding="utf-8") == text
    assert start_script(tmp_path, ["A", "B"]) != first
