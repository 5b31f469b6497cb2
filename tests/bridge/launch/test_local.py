"""Runners as processes: detached, told through a descriptor, ended as a whole tree, and never somebody else's."""

# ruff: noqa: ASYNC220, ASYNC240 - small files and short processes, and nobody else on the loop

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.errors import BadMessageError, LaunchError
from bridge.launch.local import COMMAND, LocalLauncher, decode_order, encode_order, read_order
from bridge.model import RunId
from bridge.ports import Order

RUN = RunId("k3f9qa")
PASSWORD = "hunter2-hunter2"

REPORTS = """
import json, os, sys
descriptor = int(sys.argv[sys.argv.index("--order-fd") + 1])
with os.fdopen(descriptor, "rb") as paper:
    order = json.loads(paper.read())
about = {
    "order": order, "env": dict(os.environ), "argv": sys.argv, "sid": os.getsid(0), "pid": os.getpid(),
    "stdin": os.readlink("/proc/self/fd/0"), "open": sorted(os.listdir("/proc/self/fd")), "cwd": os.getcwd(),
}
print("said on stdout", flush=True)
print("said on stderr", file=sys.stderr, flush=True)
with open("about.new", "w") as file:
    json.dump(about, file)
os.rename("about.new", "about.json")
sys.stdout.flush()
"""
WAITS = "import signal\nsignal.pause()\n"
# A child in our group; one in a session of its own; one of that kind whose parent is gone; one that has no marks.
STARTS_A_TREE = """
import os, subprocess, sys, time
sleep = ["sleep", "300"]
ours = [subprocess.Popen(sleep).pid, subprocess.Popen(sleep, start_new_session=True).pid]
ours.append(subprocess.Popen(["sh", "-c", "sleep 300 & echo"], start_new_session=True).pid)
ours.append(subprocess.Popen(["env", "-i", *sleep], start_new_session=True).pid)
ours.append(subprocess.Popen(["env", "-i", *sleep]).pid)
open("tree.new", "w").write("ready")
os.rename("tree.new", "tree")
import signal
signal.pause()
"""


def order(folder: Path, **changes: object) -> Order:
    base = Order(
        run=RUN,
        folder=folder,
        workspace=folder / "workspace",
        flow="starter",
        request="写一个 program",
        options={"budget": 2.5, "new": True},
        store_url="unix:///x/s?db=0",
        store_user="run-k3f9qa",
        store_password=PASSWORD,
    )
    return replace(base, **changes)  # type: ignore[arg-type]  # any field


def launcher(script: str, **env: str) -> LocalLauncher:
    return LocalLauncher(env={"PATH": os.defpath, **env}, command=(sys.executable, "-c", script))


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """The run's folder; whatever was started in it is ended."""
    folder = tmp_path / "runs" / RUN
    yield folder
    asyncio.run(launcher("").kill(RUN, folder))


def pid_of(folder: Path) -> int:
    return int((folder / "runner.pid").read_text().split()[0])


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


async def ended(pid: int) -> None:
    """Wait until a process is gone."""
    try:
        watch = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    ready = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(watch, ready.set)
    try:
        async with asyncio.timeout(15):
            await ready.wait()
    finally:
        loop.remove_reader(watch)
        os.close(watch)


async def appears(path: Path) -> str:
    """Wait until another process has written a file (which it renames into its place)."""
    async with asyncio.timeout(15):
        while not path.exists():  # noqa: ASYNC110 - another process' file
            await asyncio.sleep(0.01)
    return path.read_text()


# -- the order --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b"null",
        b'{"run": "r1", "store_password": "hunter2-hunter2"}',
        b"[" * 100_000,
        pytest.param(encode_order(order(Path("/f"))).replace(b'"k3f9qa"', b"7"), id="run is a number"),
        pytest.param(encode_order(order(Path("/f"))).replace(b'"lease_ttl": 20.0', b'"lease_ttl": "x"'), id="ttl"),
        pytest.param(encode_order(order(Path("/f"))).replace(b'"folder": "/f"', b'"folder": null'), id="no folder"),
        pytest.param(encode_order(order(Path("/f")))[:-9], id="torn"),
    ],
)
def test_what_is_no_order_is_refused_without_quoting_it(raw: bytes) -> None:
    with pytest.raises(BadMessageError) as caught:
        decode_order(raw)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None


@given(
    st.builds(
        Order,
        run=st.text(min_size=1).map(RunId),
        folder=st.from_regex(r"/[a-zé ]{1,20}", fullmatch=True).map(Path),
        workspace=st.from_regex(r"/[a-zé ]{1,20}", fullmatch=True).map(Path),
        flow=st.text(),
        request=st.text(),
        words=st.text(),
        reopen=st.booleans(),
        language=st.sampled_from(["en", "zh"]),
        options=st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | st.text()),
        store_url=st.text(),
        store_user=st.text(),
        store_password=st.text(),
        lease_ttl=st.floats(0.1, 100),
    )
)
def test_an_order_comes_out_as_it_went_in(made: Order) -> None:
    assert decode_order(encode_order(made)) == made


def test_fields_of_a_later_version_are_passed_over(tmp_path: Path) -> None:
    body = json.loads(encode_order(order(tmp_path))) | {"from_tomorrow": 1}
    assert decode_order(json.dumps(body).encode()) == order(tmp_path)


def test_an_order_is_read_from_its_descriptor_once(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, encode_order(order(tmp_path)))
    os.close(writing)
    assert read_order(reading) == order(tmp_path)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(reading)


# -- starting ---------------------------------------------------------------------------------------------------


async def test_the_order_reaches_the_runner_and_nothing_else_holds_it(folder: Path) -> None:
    big = order(folder, words="x" * 300_000)
    await launcher(REPORTS, LANG="C.UTF-8").start(big)
    about = json.loads(await appears(folder / "about.json"))
    assert decode_order(json.dumps(about["order"]).encode()) == big
    about["env"].pop("LC_CTYPE", None)  # the interpreter sets it itself
    assert about["env"] == {
        "PATH": os.defpath,
        "LANG": "C.UTF-8",
        "FLOWER_RUN": "k3f9qa",
        "FLOWER_RUN_FOLDER": str(folder),
    }
    assert PASSWORD not in str(about["argv"])
    assert about["cwd"] == str(folder)
    assert [file for file in folder.rglob("*") if file.name != "about.json" and PASSWORD in file.read_text()] == []


async def test_a_runner_has_a_session_of_its_own_and_no_terminal(folder: Path) -> None:
    await launcher(REPORTS).start(order(folder))
    about = json.loads(await appears(folder / "about.json"))
    assert about["sid"] == about["pid"] != os.getsid(0)
    assert about["stdin"] == "/dev/null"
    assert set(about["open"]) <= {"0", "1", "2", "3"}, "the order's descriptor is closed, ours were never open"
    await ended(about["pid"])
    assert sorted((folder / "runner.log").read_text().split("\n")) == ["", "said on stderr", "said on stdout"]


async def test_a_runner_is_limited_and_noted(folder: Path) -> None:
    await launcher(WAITS).start(order(folder))
    pid = pid_of(folder)
    assert alive(pid)
    limits = Path(f"/proc/{pid}/limits").read_text()
    assert next(line for line in limits.splitlines() if "core file" in line).split()[4:6] == ["0", "0"]
    assert Path(f"/proc/{pid}/oom_score_adj").read_text() == "500\n"
    stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    assert (folder / "runner.pid").read_text() == f"{pid} {stat[19]}\n"


async def test_a_runner_that_ends_leaves_no_zombie(folder: Path) -> None:
    await launcher("").start(order(folder))
    pid = pid_of(folder)
    async with asyncio.timeout(15):
        while Path(f"/proc/{pid}").exists():  # noqa: ASYNC110 - a zombie's end tells nobody
            await asyncio.sleep(0.01)


async def test_a_module_in_the_folder_does_not_stand_in_for_ours(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "json.py").write_text("open('stolen', 'w').close()")
    script = "import json, os\nopen('done.new', 'w').close()\nos.rename('done.new', 'done')"
    await LocalLauncher(env={}, command=(*COMMAND[:2], "-c", script)).start(order(folder))
    await appears(folder / "done")
    assert not (folder / "stolen").exists()


async def test_a_long_log_is_put_aside(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "runner.log").write_bytes(b"x" * 5_000_001)
    await launcher(WAITS).start(order(folder))
    assert (folder / "runner.log").stat().st_size == 0
    assert (folder / "runner.log.1").stat().st_size == 5_000_001


async def test_a_program_that_is_missing_is_named(folder: Path) -> None:
    with pytest.raises(LaunchError, match="/nowhere/python"):
        await LocalLauncher(env={}, command=("/nowhere/python",)).start(order(folder))
    assert not (folder / "runner.pid").exists()


async def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LaunchError, match="file/run"):
        await launcher(WAITS).start(order(tmp_path / "file" / "run"))


async def test_a_runner_that_cannot_be_noted_is_not_left_running(folder: Path) -> None:
    (folder / "runner.pid.new").mkdir(parents=True)
    with pytest.raises(LaunchError, match="could not be noted"):
        await launcher(WAITS).start(order(folder))
    assert await launcher(WAITS).kill(RUN, folder) is False


BOT = """
import asyncio, os, signal, sys
from pathlib import Path
from bridge.launch.local import LocalLauncher, decode_order
order = decode_order(sys.stdin.buffer.read())
asyncio.run(LocalLauncher(env={}, command=(sys.executable, "-c", "import signal; signal.pause()")).start(order))
os.kill(os.getpid(), signal.SIGKILL)
"""


async def test_a_runner_outlives_its_bot_and_its_terminal(folder: Path) -> None:
    bot = await asyncio.create_subprocess_exec(sys.executable, "-c", BOT, stdin=subprocess.PIPE, start_new_session=True)
    await bot.communicate(encode_order(order(folder)))
    assert bot.returncode == -signal.SIGKILL
    pid = pid_of(folder)
    assert alive(pid)
    with pytest.raises(ProcessLookupError):
        os.killpg(bot.pid, signal.SIGHUP)  # nobody is left in the bot's group
    assert await launcher(WAITS).kill(RUN, folder) is True
    assert not alive(pid)


# -- ending -----------------------------------------------------------------------------------------------------


async def test_where_nothing_runs_there_is_nothing_to_end(folder: Path) -> None:
    assert await launcher(WAITS).kill(RUN, folder) is False
    folder.mkdir(parents=True)
    for text in ("", "x y", "1 0", "0 0", "-5 3", "99999999 1"):
        (folder / "runner.pid").write_text(text)
        assert await launcher(WAITS).kill(RUN, folder) is False


@pytest.mark.case("AG-3")
async def test_the_whole_tree_ends_also_what_left_the_session_or_dropped_its_marks(folder: Path) -> None:
    await launcher(STARTS_A_TREE).start(order(folder))
    await appears(folder / "tree")
    runner = pid_of(folder)
    tree = descendants(runner) | orphans(folder)
    assert len(tree) >= 6
    assert await launcher(WAITS).kill(RUN, folder) is True
    assert [pid for pid in tree if alive(pid)] == []
    assert not (folder / "runner.pid").exists()
    assert await launcher(WAITS).kill(RUN, folder) is False


async def test_what_a_dead_runner_left_behind_is_ended_before_the_next_starts(folder: Path) -> None:
    await launcher(STARTS_A_TREE).start(order(folder))
    await appears(folder / "tree")
    runner = pid_of(folder)
    left = {pid for pid in descendants(runner) | orphans(folder) if marked(pid) or os.getpgid(pid) == runner} - {runner}
    assert len(left) >= 4
    os.kill(runner, signal.SIGKILL)
    await ended(runner)
    assert all(alive(pid) for pid in left)
    await launcher(WAITS).start(order(folder))
    assert [pid for pid in left if alive(pid)] == []
    assert alive(pid_of(folder))


async def test_a_runner_that_ignores_signals_and_starts_others_all_the_time_ends(folder: Path) -> None:
    script = """
import os, signal, subprocess, time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
open("tree", "w").close()
for _ in range(2000):
    subprocess.Popen(["sleep", "300"], start_new_session=True)
    time.sleep(0.01)
"""
    await launcher(script).start(order(folder))
    await appears(folder / "tree")
    await asyncio.sleep(0.1)  # so that it is in the middle of it
    assert await launcher(WAITS).kill(RUN, folder) is True
    assert await launcher(WAITS).kill(RUN, folder) is False


async def test_a_frozen_runner_ends(folder: Path) -> None:
    await launcher(WAITS).start(order(folder))
    pid = pid_of(folder)
    os.kill(pid, signal.SIGSTOP)
    assert await launcher(WAITS).kill(RUN, folder) is True
    assert not alive(pid)


async def test_a_number_that_was_given_to_another_process_is_let_alone(folder: Path) -> None:
    folder.mkdir(parents=True)
    other = subprocess.Popen(["sleep", "300"], start_new_session=True)
    try:
        (folder / "runner.pid").write_text(f"{other.pid} 1\n")
        assert await launcher(WAITS).kill(RUN, folder) is False
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


async def test_other_runs_and_runs_of_the_same_name_elsewhere_go_on(folder: Path, tmp_path: Path) -> None:
    elsewhere, other = tmp_path / "elsewhere", RunId("zz8w2b")
    hands = launcher(WAITS)
    await hands.start(order(folder))
    await hands.start(order(elsewhere))
    await hands.start(order(tmp_path / "other", run=other))
    try:
        assert await hands.kill(RUN, folder) is True
        assert alive(pid_of(elsewhere))
        assert alive(pid_of(tmp_path / "other"))
    finally:
        assert await hands.kill(RUN, elsewhere) is True
        assert await hands.kill(other, tmp_path / "other") is True


async def test_whoever_kills_does_not_kill_itself(folder: Path) -> None:
    script = """
import asyncio, sys
from pathlib import Path
from bridge.launch.local import LocalLauncher
print(asyncio.run(LocalLauncher(env={}).kill(sys.argv[1], Path(sys.argv[2]))))
"""
    marks = {"FLOWER_RUN": RUN, "FLOWER_RUN_FOLDER": str(folder), "PYTHONPATH": ":".join(sys.path)}
    done = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", script, RUN, str(folder)), env=marks, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert await done.communicate() == (b"False\n", b"")
    assert done.returncode == 0


async def test_starting_again_replaces_a_runner_that_still_lives(folder: Path) -> None:
    hands = launcher(WAITS)
    await hands.start(order(folder))
    first = pid_of(folder)
    await hands.start(order(folder))
    assert not alive(first)
    assert alive(pid_of(folder))


def processes() -> dict[int, int]:
    """Every process and its parent."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                found[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    return found


def descendants(root: int) -> set[int]:
    parents, found = processes(), {root}
    for _ in range(10):
        found |= {pid for pid, parent in parents.items() if parent in found}
    return {pid for pid in found if alive(pid)}


def marked(pid: int) -> bool:
    try:
        return f"FLOWER_RUN={RUN}".encode() in Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False


def orphans(folder: Path) -> set[int]:
    """Processes of the run whose parent is gone."""
    mark = f"FLOWER_RUN_FOLDER={folder}".encode()
    found = set()
    for pid in processes():
        try:
            if mark in Path(f"/proc/{pid}/environ").read_bytes():
                found.add(pid)
        except OSError:
            continue
    return found
