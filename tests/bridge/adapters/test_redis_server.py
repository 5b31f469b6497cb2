"""The server of our own: one per data folder, whoever starts it, and a clear word when it cannot be."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, ResponseError
from redis.retry import Retry

from bridge.adapters import redis_server
from bridge.adapters.redis_server import ensure_server, find_server, stop_server
from bridge.errors import BridgeError, SettingsError, StoreAwayError, StoreRefusedError
from tests.fakes.redis import RealRedis

STARTER = """
import sys
from pathlib import Path
from bridge.adapters.redis_server import ensure_server
sys.stdin.readline()
address = ensure_server(Path(sys.argv[1]))
print(address.url, address.password)
"""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A data folder whose server is ended afterwards, if there is one."""
    home = tmp_path / "home"
    yield home
    if (home / "redis" / "s").is_socket():
        stop_server(home)


def program(folder: Path, text: str) -> Path:
    path = folder / "server"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def admin(home: Path) -> Redis:
    address = ensure_server(home)
    path = address.url.removeprefix("unix://").partition("?")[0]
    return Redis(unix_socket_path=path, username=address.username, password=address.password, protocol=2)


# -- bad surroundings -------------------------------------------------------------------------------------------


def refusal(home: Path, binary: Path | None = None) -> BridgeError:
    with pytest.raises(BridgeError) as caught:
        ensure_server(home, binary=binary)
    return caught.value


def test_a_home_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("x")
    err = refusal(tmp_path / "home")
    assert isinstance(err, SettingsError)
    assert "FLOWER_CHAT_HOME" in str(err)


def test_a_home_that_cannot_be_made() -> None:
    err = refusal(Path("/proc/nowhere"))
    assert isinstance(err, SettingsError)
    assert "/proc/nowhere" in str(err)


def test_a_file_in_the_place_of_the_socket(home: Path) -> None:
    (home / "redis").mkdir(parents=True)
    (home / "redis" / "s").write_text("mine")
    err = refusal(home)
    assert isinstance(err, StoreRefusedError)
    assert "Move it away" in str(err)
    assert (home / "redis" / "s").read_text() == "mine"
    (home / "redis" / "s").unlink()


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"-ERR unknown command\r\n", b"+OK\r\n"])
def test_something_else_on_the_socket(home: Path, answer: bytes) -> None:
    (home / "redis").mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(home / "redis" / "s"))
        other.listen()

        def talk() -> None:
            while True:
                try:
                    connection, _ = other.accept()
                except OSError:
                    return
                with connection:
                    while connection.recv(4096):
                        connection.sendall(answer)

        thread = threading.Thread(target=talk)
        thread.start()
        err = refusal(home)
        other.shutdown(socket.SHUT_RDWR)
        thread.join()
    assert isinstance(err, StoreRefusedError)
    assert "not our server" in str(err)
    (home / "redis" / "s").unlink()


def test_a_program_that_ends_at_its_start_is_quoted(tmp_path: Path, home: Path) -> None:
    binary = program(tmp_path, "echo 'Fatal: the moon is full' >&2; exit 1")
    err = refusal(home, binary)
    assert isinstance(err, StoreAwayError)
    assert "the moon is full" in str(err)


def test_a_program_that_cannot_run(tmp_path: Path, home: Path) -> None:
    err = refusal(home, tmp_path / "nothing")
    assert isinstance(err, StoreAwayError)
    assert "pip install" in str(err)


def test_a_program_that_never_listens_is_not_left_running(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_server, "START_SECONDS", 0.3)
    binary = program(tmp_path, f"echo $$ > {tmp_path}/pid; exec sleep 60")
    assert isinstance(refusal(home, binary), StoreAwayError)
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()


def test_no_program_at_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(redis_server, "_packaged", lambda: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SettingsError, match=r'pip install "\.\[chat\]"'):
        find_server()


@pytest.mark.parametrize("said", ["Redis server v=6.2.14 sha=0", "Valkey server v=5.9", "what?", ""])
def test_a_program_that_is_too_old(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: str) -> None:
    program(tmp_path, f"echo '{said}'").rename(tmp_path / "redis-server")
    monkeypatch.setattr(redis_server, "_packaged", lambda: None)
    monkeypatch.setenv("PATH", f"{tmp_path}")
    with pytest.raises(SettingsError, match="redis-server is version"):
        find_server()


def test_a_program_on_the_path_is_taken_when_there_is_no_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program(tmp_path, "echo 'Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.2.1 bits=64'").rename(
        tmp_path / "redis-server"
    )
    monkeypatch.setattr(redis_server, "_packaged", lambda: None)
    monkeypatch.setenv("PATH", f"{tmp_path}")
    assert find_server() == tmp_path / "redis-server"


# -- a real server ----------------------------------------------------------------------------------------------


@pytest.mark.real
def test_a_server_is_started_once_and_found_again(home: Path) -> None:
    first = ensure_server(home)
    with admin(home) as client:
        pid = client.info("server")["process_id"]
        assert ensure_server(home) == first
        assert client.info("server")["process_id"] == pid


@pytest.mark.real
@pytest.mark.timeout(120)  # two dozen interpreters
def test_twelve_starters_at_once_make_one_server_and_lose_nothing(home: Path) -> None:
    for round_ in range(1, 3):
        starters = [
            subprocess.Popen(
                [sys.executable, "-c", STARTER, str(home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            for _ in range(12)
        ]
        answers = set()
        for starter in starters:  # all are loaded by now, or soon: they begin together
            assert starter.stdin
            starter.stdin.write("go\n")
            starter.stdin.flush()
        for starter in starters:
            out, _ = starter.communicate(timeout=60)
            answers.add(out)
            assert starter.returncode == 0
        assert len(answers) == 1
        with admin(home) as client:
            assert client.incr("rounds") == round_
            pid = client.info("server")["process_id"]
        assert servers(home) == [pid]
        RealRedis(home).kill()


def servers(home: Path) -> list[int]:
    """Processes that have the home's socket in their arguments or title."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if f"{home}/redis/s".encode() in line and b"server" in line:
                found.append(int(entry.name))
    return found


@pytest.mark.real
def test_a_server_outlives_its_starter_and_its_terminal(home: Path) -> None:
    starter = subprocess.run(
        [sys.executable, "-c", STARTER, str(home)], input="go\n", capture_output=True, text=True, check=True
    )
    assert starter.stderr == ""
    pid = RealRedis(home).pid
    assert os.getsid(pid) == pid
    assert Path(f"/proc/{pid}/fd/0").readlink() == Path("/dev/null")
    with admin(home) as client:
        assert client.ping()


@pytest.mark.case("SE-4")
def test_the_server_is_given_none_of_our_secrets(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOWER_CHAT_SLACK_BOT_TOKEN", "xoxb-secret")
    refusal(home, program(tmp_path, f'env > {tmp_path}/seen; echo "$@" >> {tmp_path}/seen; exit 1'))
    seen = (tmp_path / "seen").read_text()
    assert "--aclfile" in seen
    assert "xoxb-secret" not in seen
    assert (home / "redis" / "admin.password").read_text().strip() not in seen


@pytest.mark.real
def test_nobody_comes_in_without_a_password_and_no_port_is_open(home: Path) -> None:
    address = ensure_server(home)
    path = address.url.removeprefix("unix://").partition("?")[0]
    nobody = Redis(unix_socket_path=path, protocol=2, driver_info=None, retry=Retry(NoBackoff(), 0))
    with nobody, pytest.raises(AuthenticationError):
        nobody.ping()
    with admin(home) as client:
        assert client.config_get("port") == {"port": "0"}
        assert client.config_get("appendonly") == {"appendonly": "yes"}
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        with pytest.raises(ResponseError, match="DEBUG"):
            client.execute_command("DEBUG", "SLEEP", "0")


@pytest.mark.real
def test_the_files_are_for_our_eyes_only(home: Path) -> None:
    ensure_server(home)
    folder = home / "redis"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for name in ("admin.password", "users.acl"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600, name
    assert stat.S_IMODE((folder / "s").stat().st_mode) == 0o700


@pytest.mark.real
def test_what_was_written_is_there_after_stopping_and_starting(home: Path) -> None:
    with admin(home) as client:
        client.set("kept", "1")
        client.execute_command("ACL SETUSER", "run-k3f9qa", "on", "#" + "0" * 64, "+ping")
        client.execute_command("ACL SETUSER", "intruder", "on", "nopass", "+@all")
        client.execute_command("ACL SAVE")
    assert stop_server(home) is True
    assert stop_server(home) is False
    with admin(home) as client:
        assert client.get("kept") == b"1"
        users = client.execute_command("ACL USERS")
    assert sorted(users) == ["admin", "default", "run-k3f9qa"]


def test_stopping_where_nothing_runs(home: Path) -> None:
    assert stop_server(home) is False


@pytest.mark.real
def test_a_password_file_that_was_replaced_is_told_apart_from_a_dead_server(home: Path) -> None:
    ensure_server(home)
    file = home / "redis" / "admin.password"
    password = file.read_text()
    file.write_text("something else\n")
    assert "admin.password" in str(refusal(home))
    file.unlink()
    assert isinstance(refusal(home), StoreRefusedError)
    file.write_text(password)


@pytest.mark.real
def test_a_password_file_that_was_lost_is_made_again_with_the_next_start(home: Path) -> None:
    first = ensure_server(home)
    stop_server(home)
    (home / "redis" / "admin.password").unlink()
    second = ensure_server(home)
    assert second.password != first.password
    with admin(home) as client:
        assert client.ping()


@pytest.mark.real
def test_a_frozen_server_is_said_to_be_silent_and_none_is_started_beside_it(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_server, "ANSWER_SECONDS", 0.3)
    server = RealRedis(home)
    server.freeze()
    try:
        err = refusal(home)
    finally:
        server.thaw()
    assert isinstance(err, StoreAwayError)
    assert "does not answer" in str(err)
    assert servers(home) == [server.pid]


@pytest.mark.real
def test_a_path_too_long_for_a_socket_is_reached_through_a_short_link(tmp_path: Path) -> None:
    home = tmp_path / ("long-" * 22)
    address = ensure_server(home)
    try:
        path = address.url.removeprefix("unix://").partition("?")[0]
        assert len(os.fsencode(path)) <= 107
        assert Path(path).parent.resolve() == (home / "redis").resolve()
        Path(path).parent.unlink()  # as a cleaner of temporary files would
        assert ensure_server(home) == address
        with admin(home) as client:
            assert client.ping()
    finally:
        stop_server(home)
        Path(path).parent.unlink()


def test_a_path_too_long_in_every_way_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_server, "SOCKET_BYTES", 20)
    err = refusal(tmp_path / "home")
    assert isinstance(err, SettingsError)
    assert "too long for a unix socket" in str(err)
