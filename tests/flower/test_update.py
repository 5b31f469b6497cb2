"""The daily look for a newer version (API 15.2): real git, a repository on this disk, and installers that only note."""

from __future__ import annotations

import io
import json
import os
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from flower import texts
from flower.core import update
from flower.core.env import load_dotenv
from flower.core.update import INTERVAL, local_head, maybe_update, remote_head, state_path
from tests.fakes.repository import Repository, git, repository

OLD = "0" * 40


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@dataclass
class Machine:
    """A person's machine: a home, a terminal, a PATH, and a package that pipx put there."""

    home: Path
    upstream: Repository
    monkeypatch: pytest.MonkeyPatch
    said: list[str] = field(default_factory=list)

    @property
    def newest(self) -> str:
        return self.upstream.git("rev-parse", "HEAD")

    @property
    def state(self) -> dict[str, object]:
        stored: dict[str, object] = json.loads(state_path().read_text(encoding="utf-8"))
        return stored

    def installed_by(self, prefix: str) -> None:
        self.monkeypatch.setattr(sys, "prefix", prefix)

    def has(self, program: str, body: str = "") -> None:
        """Put an installer on the PATH that notes what it is asked, and then does `body`."""
        path = self.home / "bin" / program
        note = f"#!/bin/sh\nprintf '%s\\n' {program} \"$@\" >> {self.home}/asked\n{body}\n"
        path.write_text(note, encoding="utf-8")
        path.chmod(0o700)

    def asked(self) -> list[str]:
        file = self.home / "asked"
        return file.read_text(encoding="utf-8").splitlines() if file.exists() else []

    def look(self) -> None:
        """Look, and wait for it."""
        thread = maybe_update(self.said.append)
        assert thread is not None
        assert thread.daemon
        thread.join()


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    upstream = repository(tmp_path / "upstream")
    git(tmp_path, "clone", "--quiet", "--bare", str(upstream.path), "origin.git")
    upstream.git("remote", "add", "origin", str(tmp_path / "origin.git"))
    (tmp_path / "bin").mkdir()
    for name in ("FLOWER_NO_UPDATE", "FLOWER_LANG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("FLOWER_UPDATE_FROM", f"file://{tmp_path / 'origin.git'}")
    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(update, "_ROOT", tmp_path / "site-packages")
    made = Machine(tmp_path, upstream, monkeypatch)
    made.installed_by("/home/me/.local/pipx/venvs/flower")
    made.has("pipx")
    return made


def stamp(**stored: object) -> None:
    state_path().parent.mkdir(parents=True, exist_ok=True)
    state_path().write_text(json.dumps(stored), encoding="utf-8")


# When nothing is done.


def test_without_a_repository_nothing_is_asked_and_nothing_is_done(machine: Machine) -> None:
    machine.monkeypatch.delenv("FLOWER_UPDATE_FROM")
    machine.has("git")
    assert update.REPOSITORY == ""
    assert maybe_update(machine.said.append) is None
    assert remote_head() is None
    assert machine.asked() == []
    assert not state_path().exists()


def test_whoever_wants_none_gets_none(machine: Machine) -> None:
    machine.monkeypatch.setenv("FLOWER_NO_UPDATE", "1")
    assert maybe_update(machine.said.append) is None


@pytest.mark.parametrize("stdin", [io.StringIO(), None])
def test_without_a_terminal_nothing_is_done(machine: Machine, stdin: io.StringIO | None) -> None:
    machine.monkeypatch.setattr(sys, "stdin", stdin)
    assert maybe_update(machine.said.append) is None


def test_a_closed_stdin_is_no_traceback(machine: Machine) -> None:
    closed = Terminal()
    closed.close()
    machine.monkeypatch.setattr(sys, "stdin", closed)
    machine.monkeypatch.setattr(Terminal, "isatty", io.StringIO.isatty)
    assert maybe_update(machine.said.append) is None


def test_within_a_day_of_the_last_look_nothing_is_done(machine: Machine) -> None:
    stamp(checked=time.time() - INTERVAL + 3600)
    assert maybe_update(machine.said.append) is None
    stamp(checked=time.time() - INTERVAL - 3600)
    machine.look()
    assert machine.asked() != []


@pytest.mark.parametrize(
    "source",
    ["--upload-pack=touch x", "ext::sh -c date", "http://host/x", "git://host/x", "x", "https://", "https://a b"],
)
def test_an_address_that_cannot_be_trusted_is_named_and_never_asked(machine: Machine, source: str) -> None:
    machine.monkeypatch.setenv("FLOWER_UPDATE_FROM", source)
    machine.has("git")
    machine.look()
    assert remote_head() is None
    assert machine.asked() == []
    assert machine.said == [
        f"FLOWER_UPDATE_FROM 不是能用的 git 地址:{source}。"
        "要写成 https://、ssh:// 或 file:// 开头的;不想检查更新就去掉它。"
    ]


def test_a_password_in_an_address_is_not_shown(machine: Machine) -> None:
    machine.monkeypatch.setenv("FLOWER_UPDATE_FROM", "http://me:secret@host/x\x1b[2J")
    machine.look()
    assert "http://***@host/x[2J" in machine.said[0]
    assert "secret" not in machine.said[0]


# The look.


def test_a_newer_version_is_installed_by_what_installed_this_one(machine: Machine) -> None:
    stamp(installed=OLD)
    machine.look()
    source = f"git+file://{machine.home / 'origin.git'}@{machine.newest}"
    assert machine.asked() == ["pipx", "install", "--force", source]
    assert machine.state["installed"] == local_head() == machine.newest
    assert "下次" in machine.said[0]
    assert "生效" in machine.said[0]
    assert machine.newest[:12] in machine.said[0]
    assert maybe_update(machine.said.append) is None


def test_the_same_version_is_left_alone_and_the_look_is_stamped(machine: Machine) -> None:
    stamp(installed=machine.newest, other="kept")
    machine.look()
    assert machine.asked() == []
    assert machine.said == []
    assert machine.state["other"] == "kept"
    assert maybe_update() is None


def test_a_version_that_nobody_noted_is_made_a_known_one(machine: Machine) -> None:
    assert local_head() is None
    machine.look()
    assert local_head() == machine.newest


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"checked": "x", "installed": 3}', b"\xff", b'{"checked": null}', b"[" * 100_000]
)
def test_a_broken_note_is_as_good_as_none(machine: Machine, content: bytes) -> None:
    state_path().parent.mkdir(parents=True)
    state_path().write_bytes(content)
    assert local_head() is None
    machine.look()
    assert machine.state["installed"] == machine.newest


def test_a_look_in_the_future_was_stamped_by_a_wrong_clock(machine: Machine) -> None:
    stamp(checked=time.time() + 5 * 3600, installed=OLD)
    machine.look()
    assert machine.asked() != []


def test_without_an_answer_it_is_asked_again_next_time(machine: Machine) -> None:
    machine.monkeypatch.setenv("FLOWER_UPDATE_FROM", f"file://{machine.home / 'missing.git'}")
    machine.look()
    assert not state_path().exists()
    assert machine.said == []
    assert maybe_update() is not None


@pytest.mark.parametrize("answer", ["exit 1", "echo not a revision", "exec sleep 30", "printf '\\377\\000'"])
def test_a_git_that_fails_hangs_or_talks_nonsense_gives_nothing(machine: Machine, answer: str) -> None:
    machine.has("git", answer)
    assert remote_head(timeout=0.5) is None


def test_without_git_there_is_nothing_to_compare(machine: Machine) -> None:
    machine.monkeypatch.setenv("PATH", str(machine.home / "bin"))
    assert remote_head() is None
    machine.look()
    assert machine.asked() == []


def test_git_is_never_let_ask_for_a_password(machine: Machine) -> None:
    machine.monkeypatch.setenv("GIT_DIR", "/elsewhere")
    machine.has("git", 'echo "$GIT_TERMINAL_PROMPT $GIT_DIR" > "$0.seen"; cat > "$0.stdin"')
    assert remote_head() is None
    assert (machine.home / "bin" / "git.seen").read_text() == "0 \n"
    assert (machine.home / "bin" / "git.stdin").read_text() == ""


# The installer.


def test_of_a_uv_tool_it_is_uv(machine: Machine) -> None:
    machine.installed_by("/home/me/.local/share/uv/tools/flower")
    machine.has("uv")
    machine.look()
    assert machine.asked()[:4] == ["uv", "tool", "install", "--force"]


def test_outside_of_environments_it_is_pip_for_this_user(machine: Machine) -> None:
    machine.installed_by(sys.base_prefix)
    machine.has("python")
    machine.monkeypatch.setattr(sys, "executable", str(machine.home / "bin" / "python"))
    machine.look()
    assert machine.asked()[:6] == ["python", "-m", "pip", "install", "--user", "--upgrade"]


@pytest.mark.parametrize("prefix", ["/home/me/project/.venv", "/home/me/.local/share/uv/tools/flower"])
def test_where_no_installer_fits_none_is_run(machine: Machine, prefix: str) -> None:
    machine.installed_by(prefix)
    machine.monkeypatch.setenv("PATH", f"{machine.home / 'bin'}:/usr/bin:/bin")
    machine.look()
    assert machine.asked() == []
    assert "checked" in machine.state


def test_a_checkout_is_looked_at_and_never_installed_over(machine: Machine) -> None:
    checkout = repository(machine.home / "site-packages")
    stamp(installed=OLD)
    assert local_head() == checkout.git("rev-parse", "HEAD")
    machine.look()
    assert machine.asked() == []


def test_a_package_inside_somebody_elses_repository_is_no_checkout(machine: Machine) -> None:
    project = repository(machine.home / "project")
    inside = project.path / ".venv" / "lib" / "site-packages"
    inside.mkdir(parents=True)
    machine.monkeypatch.setattr(update, "_ROOT", inside)
    assert local_head() is None


@pytest.mark.parametrize(
    ("body", "why", "patience"),
    [
        ("echo one >&2; printf 'no \\033[31mspace\\n' >&2; exit 3", "no [31mspace", 60),
        ("exit 3", "exit 3", 60),
        ("exec sleep 30", "0.5 秒还没装完", 0.5),
    ],
)
def test_an_installer_that_fails_is_told_and_tried_again_another_day(
    machine: Machine, body: str, why: str, patience: float
) -> None:
    machine.monkeypatch.setattr(update, "_PATIENCE", patience)
    machine.has("pipx", body)
    stamp(installed=OLD)
    machine.look()
    assert machine.said == [f"有新版本,但 pipx 没装成:{why}。现在的版本照常用。"]
    assert machine.state["installed"] == OLD


def test_the_installer_is_out_of_reach_of_a_ctrl_c(machine: Machine) -> None:
    machine.has("pipx", 'ps -o sid= -p $$ > "$0.sid"')
    machine.look()
    assert int((machine.home / "bin" / "pipx.sid").read_text()) != os.getsid(0)


def test_a_listener_that_raises_changes_nothing(machine: Machine) -> None:
    def broken(_text: str) -> None:
        raise ZeroDivisionError

    thread = maybe_update(broken)
    assert thread is not None
    thread.join()
    assert machine.state["installed"] == machine.newest


def test_nobody_has_to_listen(machine: Machine) -> None:
    thread = maybe_update()
    assert thread is not None
    thread.join()
    assert machine.state["installed"] == machine.newest


def test_a_note_that_cannot_be_written_stops_nothing(machine: Machine) -> None:
    (machine.home / "config").write_text("in the way")
    machine.look()
    assert machine.asked() != []
    assert "下次" in machine.said[0]


def test_the_language_of_the_start_is_spoken_at_the_end(machine: Machine) -> None:
    with texts.speaking("en"):
        machine.look()
    assert machine.said == [
        f"There is a newer version and it has been installed ({machine.newest[:12]}). "
        "It takes effect at the next start."
    ]


def test_the_installer_sees_nothing_of_what_a_project_has_set(machine: Machine) -> None:
    names = ("HTTPS_PROXY", "SSL_CERT_FILE", "PIP_INDEX_URL", "GIT_SSH_COMMAND")
    for name in names:
        machine.monkeypatch.setenv(name, "x")  # so that it is put back
        machine.monkeypatch.delenv(name)
    machine.monkeypatch.chdir(machine.home)
    machine.home.joinpath(".env").write_text("".join(f"{name}=http://127.0.0.1:9\n" for name in names))
    load_dotenv()
    assert os.environ["HTTPS_PROXY"] == "http://127.0.0.1:9"
    machine.has("pipx", f"env > {machine.home}/seen")
    machine.look()
    seen = {line.partition("=")[0]: line for line in (machine.home / "seen").read_text().splitlines()}
    assert "PATH" in seen
    assert [seen[name] for name in names if "127.0.0.1:9" in seen.get(name, "")] == []
