"""Runners as processes of this machine: detached from the bot, one session each, and ended as a whole tree.

The order, with the password for the state store in it, reaches the runner through an inherited descriptor only: neither
its environment nor its arguments, which the agent's own commands can read, hold it. Needs Linux (`/proc`, `memfd`).
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from bridge.errors import BadMessageError, LaunchError
from bridge.model import RunId
from bridge.ports import Order

log = logging.getLogger(__name__)

RUN, FOLDER = "FLOWER_RUN", "FLOWER_RUN_FOLDER"
"""Marks in the environment of everything that belongs to a run. The folder tells apart runs of the same name."""
COMMAND = (sys.executable, "-P", "-m", "bridge.runner")
"""-P: a module in a folder that the agent can write to must not stand in for one of ours."""
PID_FILE, LOG_FILE = "runner.pid", "runner.log"
LOG_BYTES = 5_000_000
"""A longer log is put aside when the next attempt starts."""
OOM_SCORE = 500
"""Of 1,000: when memory runs out, agents die before bots."""
KILL_SECONDS = 5.0
LOOK_SECONDS = 0.01


class LocalLauncher:
    """`Launcher` on this machine.

    `env` is the whole environment of a runner, and so of its agent: an allow-list that the caller has made. `command`
    is what runs it; `--order-fd N` is added.
    """

    def __init__(
        self,
        *,
        env: Mapping[str, str],
        command: Sequence[str] = COMMAND,
    ) -> None:
        self._env, self._command = dict(env), tuple(command)

    async def start(self, order: Order) -> None:
        """Start a runner; ends leftovers of the run before (rulings R26)."""
        await asyncio.to_thread(self._start, order)

    async def kill(self, run: RunId, folder: Path) -> bool:
        """End the runner and all that it started, also what went into a session of its own.

        Raises:
            LaunchError: something does not end; its processes are named.
        """
        return await asyncio.to_thread(_kill, run, folder)

    def _start(self, order: Order) -> None:
        folder = order.folder.absolute()
        if _kill(order.run, folder):
            log.warning("launch.leftovers_ended", extra={"run": order.run})
        try:
            runner = self._spawn(order, folder)
        except (OSError, AttributeError) as err:  # AttributeError: no memfd on this system
            raise LaunchError(
                f"the runner of {order.run} could not be started: {_reason(err)}. "
                f"Looked for {self._command[0]}; its folder is {folder}."
            ) from err
        try:
            _tame(runner.pid)
            _write_pid(folder, runner.pid)
        except OSError as err:
            runner.kill()
            runner.wait()
            raise LaunchError(f"the runner of {order.run} could not be noted in {folder}: {_reason(err)}") from err
        # Takes note of its end while we live, so that no zombie stays; if we die first, init does.
        threading.Thread(target=runner.wait, name=f"flower-reap-{order.run}", daemon=True).start()
        log.info("launch.started", extra={"run": order.run, "pid": runner.pid})

    def _spawn(self, order: Order, folder: Path) -> subprocess.Popen[bytes]:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / LOG_FILE
        if path.exists() and path.stat().st_size > LOG_BYTES:
            path.replace(path.with_suffix(".log.1"))
        paper = os.memfd_create("flower-order")
        try:
            _write_all(paper, encode_order(replace(order, folder=folder)))
            os.lseek(paper, 0, os.SEEK_SET)
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab") as output:
                return subprocess.Popen(  # noqa: S603 - our own program
                    [*self._command, "--order-fd", str(paper)],
                    cwd=folder,
                    env={**self._env, RUN: order.run, FOLDER: str(folder)},
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    pass_fds=[paper],
                    start_new_session=True,
                )
        finally:
            os.close(paper)


# -- the order --------------------------------------------------------------------------------------------------


def encode_order(order: Order) -> bytes:
    """Write an order as JSON. It contains a password."""
    body = {item.name: getattr(order, item.name) for item in fields(order)}
    body |= {"folder": str(order.folder), "workspace": str(order.workspace), "options": dict(order.options)}
    return json.dumps(body).encode()


def decode_order(raw: bytes) -> Order:
    """Read an order.

    Raises:
        BadMessageError: it is not one. What it held is not quoted: there is a password in it.
    """
    try:
        body: dict[str, Any] = json.loads(raw)
        known = {item.name: body[item.name] for item in fields(Order) if item.name in body}
        order = Order(**known | {"folder": Path(body["folder"]), "workspace": Path(body["workspace"])})
    except (KeyError, TypeError, ValueError, RecursionError):
        raise BadMessageError("not an order for a runner") from None
    wrong = [name for name, kind in _KINDS.items() if not isinstance(getattr(order, name), kind)]
    if wrong:
        raise BadMessageError(f"not an order for a runner: {', '.join(wrong)}")
    return order


def read_order(descriptor: int) -> Order:
    """Read the order that a launcher left at an inherited descriptor, and close it: nobody reads it again."""
    with os.fdopen(descriptor, "rb") as paper:
        return decode_order(paper.read())


_KINDS: dict[str, type | tuple[type, ...]] = {
    "run": str,
    "flow": str,
    "request": str,
    "words": str,
    "reopen": bool,
    "language": str,
    "options": dict,
    "store_url": str,
    "store_user": str,
    "store_password": str,
    "lease_ttl": (int, float),
}


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


# -- a fresh process --------------------------------------------------------------------------------------------


def _tame(pid: int) -> None:
    """Set limits from outside: code between fork and exec is not safe beside threads."""
    with suppress(ProcessLookupError):  # it ended at once; its log says why
        resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError):  # not everywhere allowed, and only a preference
        Path(f"/proc/{pid}/oom_score_adj").write_text(str(OOM_SCORE))


def _write_pid(folder: Path, pid: int) -> None:
    started = _Process.of(pid)
    fresh = folder / f"{PID_FILE}.new"
    fresh.write_text(f"{pid} {started.started if started else 0}\n")
    fresh.replace(folder / PID_FILE)


def _reason(err: Exception) -> str:
    return (err.strerror if isinstance(err, OSError) else None) or str(err)


# -- the whole tree ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Process:
    """A process as /proc shows it. Number and start together name it: numbers are used again."""

    pid: int
    parent: int
    group: int
    session: int
    started: int

    @classmethod
    def of(cls, pid: int) -> _Process | None:
        """None: there is none, or only its remains (a zombie)."""
        try:
            text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        except OSError:
            return None
        state, parent, group, session, *rest = text.rpartition(")")[2].split()
        if state in "ZX":
            return None
        return cls(pid, int(parent), int(group), int(session), int(rest[15]))

    def marked(self, run: RunId, folder: Path) -> bool:
        """Whether the environment it was started with names the run."""
        try:
            pairs = Path(f"/proc/{self.pid}/environ").read_bytes().split(b"\0")
        except OSError:
            return False
        marks = dict(pair.split(b"=", 1) for pair in pairs if pair.startswith(b"FLOWER_RUN") and b"=" in pair)
        return marks.get(RUN.encode()) == run.encode() and marks.get(FOLDER.encode()) in (None, os.fsencode(folder))


def _kill(run: RunId, folder: Path) -> bool:
    """End everything that belongs to a run; looks again until nothing is left, since processes start processes."""
    folder, found = folder.absolute(), False
    until = time.monotonic() + KILL_SECONDS
    while tree := _tree(run, folder):
        found = True
        for process in tree:  # first nobody may go on, then nobody is left
            _signal(process, signal.SIGSTOP)
        for process in tree:
            _signal(process, signal.SIGKILL)
        if time.monotonic() > until:
            raise LaunchError(f"run {run}: these processes do not end: {', '.join(str(one.pid) for one in tree)}")
        time.sleep(LOOK_SECONDS)  # the kernel tells only parents about an end
    with suppress(OSError):
        (folder / PID_FILE).unlink(missing_ok=True)
    return found


def _tree(run: RunId, folder: Path) -> list[_Process]:
    """Return the run's processes: the noted runner with its group and session, the marked ones, and all below them."""
    everyone = {process.pid: process for process in _processes()}
    leader = _leader(folder, everyone)
    ours = {
        process.pid
        for process in everyone.values()
        if leader in (process.pid, process.group, process.session) or process.marked(run, folder)
    }
    grown = True
    while grown:
        below = {process.pid for process in everyone.values() if process.parent in ours} - ours
        ours |= below
        grown = bool(below)
    return [everyone[pid] for pid in ours - _self_and_above(everyone)]


def _leader(folder: Path, everyone: Mapping[int, _Process]) -> int | None:
    """Return the number of the runner that the pid file names, unless it is another process's by now.

    When the runner is dead its group may live on; while it does, the kernel gives the number to nobody else.
    """
    try:
        pid, started = map(int, (folder / PID_FILE).read_text().split())
    except (OSError, ValueError):
        return None
    if pid <= 1 or pid in (os.getpgrp(), os.getsid(0)):
        return None
    return pid if pid not in everyone or everyone[pid].started == started else None


def _processes() -> Iterator[_Process]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and (process := _Process.of(int(entry.name))):
            yield process


def _self_and_above(everyone: Mapping[int, _Process]) -> set[int]:
    """Whatever a mark says: who kills does not kill itself, nor what it was started by."""
    above, pid = {1}, os.getpid()
    while pid not in above:
        above.add(pid)
        pid = everyone[pid].parent if pid in everyone else 1
    return above


def _signal(process: _Process, number: signal.Signals) -> None:
    now = _Process.of(process.pid)
    if now and now.started == process.started:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, number)
