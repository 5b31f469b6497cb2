"""Everything a story needs on one machine, started for real: scripted model, Slack emulator, bot, Redis, runners.

Used by `make demo` and by the stories of the test suite, which also kill and restart the parts.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from bridge.adapters.redis_server import stop_server
from bridge.errors import StoreAwayError
from bridge.launch.local import LocalLauncher
from bridge.model import RunId
from demo.emulator import APP_TOKEN, BOT_TOKEN, Emulator, emulator
from demo.lossy import lossy_api

STORY = Path(__file__).parent.parent / "flower" / "testing" / "stories" / "first-light.yaml"
READY_SECONDS = 60.0
CONFIG = """\
home = "{home}"
default_workspace = "demo"
lease_seconds = {lease}

[workspaces.demo]
path = "{home}/work"
fresh = true
language = "en"
"""


class StageError(Exception):
    """Something did not start; the text is one line and says what to do."""


@dataclass(slots=True)
class Stage:
    """A running stage. `home` holds all that is written: Redis, runs, workspaces, logs."""

    home: Path
    slack: Emulator
    model: Process
    model_url: str
    env: dict[str, str]
    bot: Process | None = None
    tokens: Path = field(init=False)

    def __post_init__(self) -> None:
        self.tokens = self.home / "tokens.jsonl"

    async def start_bot(self, **env: str) -> None:
        """Start the bot and wait until it says that it is ready.

        Raises:
            StageError: it ended instead, or said nothing in time; carries its own last words.
        """
        self.bot = await Process.start(
            "bot", [sys.executable, "-m", "bots", "up"], env={**self.env, **env}, log=self.home / "bot.log"
        )
        await self.bot.says("ready", within=READY_SECONDS)

    async def kill_bot(self) -> None:
        """End the bot as a power cut would (SIGKILL); runs go on."""
        if self.bot is not None:
            await self.bot.kill()
            self.bot = None

    def runs(self) -> list[Path]:
        """Folders of all runs, oldest first."""
        folder = self.home / "runs"
        return sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime) if folder.exists() else []

    def workspace(self, run: Path) -> Path:
        """Workspace of a run."""
        return self.home / "work" / run.name

    def runner_pid(self, run: Path) -> int | None:
        """Process id of a run's runner, if it lives."""
        try:
            pid = int((run / "runner.pid").read_text().split()[0])  # pid and start time
            os.kill(pid, 0)
        except (OSError, ValueError, IndexError):
            return None
        return pid

    async def tell_model(self, what: str, part: str) -> None:
        """`pause` or `release` a part of the story, or one of its lines (`coder-program.reply`)."""
        await self._control("POST", what, {"what": part})

    async def asked(self, part: str = "") -> list[dict[str, Any]]:
        """What was asked of the scripted model so far, all of it or by one part."""
        found: list[dict[str, Any]] = await self._control("GET", f"requests?what={part}")
        return found

    async def _control(self, method: str, path: str, body: object = None) -> Any:
        async with (
            aiohttp.ClientSession() as session,
            session.request(method, f"{self.model_url}/_story/{path}", json=body) as answer,
        ):
            if answer.status != 200:
                raise StageError(f"scripted model: {await answer.text()}")
            return await answer.json()


@dataclass(slots=True)
class Process:
    """A child in a session of its own, its output in a log file that can be waited on."""

    name: str
    process: asyncio.subprocess.Process
    log: Path
    begin: int = 0
    """Where its own words begin in the log: an earlier process may have written before it."""

    @classmethod
    async def start(cls, name: str, argv: list[str], *, env: Mapping[str, str], log: Path) -> Process:
        """Start it."""
        begin = log.stat().st_size if log.exists() else 0
        with log.open("ab") as out:
            process = await asyncio.create_subprocess_exec(
                *argv, env=dict(env), stdin=asyncio.subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
            )
        return cls(name, process, log, begin)

    def words(self) -> str:
        """Return all that it has said."""
        return self.log.read_bytes()[self.begin :].decode(errors="replace") if self.log.exists() else ""

    async def says(self, start: str, *, within: float) -> str:
        """Wait for a line that begins so, and return it.

        Raises:
            StageError: it ended or stayed silent; with its last plain lines.
        """
        deadline = asyncio.get_running_loop().time() + within
        while True:
            for line in self.words().splitlines():
                if line.startswith(start):
                    return line
            if self.process.returncode is not None:
                raise StageError(f"{self.name} ended with {self.process.returncode}: {self._last_words()}")
            if asyncio.get_running_loop().time() > deadline:
                raise StageError(f"{self.name} said nothing for {within:.0f} s; see {self.log}")
            await asyncio.sleep(0.05)  # a file has no event to wait on

    async def stop(self, *, grace: float = 10.0) -> None:
        """End it in good order, then hard."""
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.terminate()
            try:
                await asyncio.wait_for(self.process.wait(), grace)
            except TimeoutError:
                await self.kill()

    async def kill(self) -> None:
        """End it and its group at once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        await self.process.wait()

    def _last_words(self) -> str:
        plain = [line for line in self.words().splitlines() if line.strip() and not line.startswith("{")]
        return " / ".join(plain[-3:]) or f"see {self.log}"


@contextlib.asynccontextmanager
async def stage(
    home: Path,
    *,
    port: int = 0,
    story: Path = STORY,
    speed: str = "fast",
    lease: float = 20.0,
    with_bot: bool = True,
    lossy: str = "",
    env: Mapping[str, str] | None = None,
) -> AsyncIterator[Stage]:
    """Start everything; end everything, runs included, when the body is left.

    Args:
        home: emptied first.
        port: of the emulator's page; 0 picks a free one.
        story: what the scripted model plays.
        speed: `fast`, or `watch` for people.
        lease: seconds after which a silent runner is lost.
        with_bot: whether to start the bot.
        lossy: words of calls to Slack that are swallowed on the way.
        env: more of the bot's environment.

    Raises:
        StageError: something did not start; nothing is left running.
    """
    if port:
        refuse_taken(port)
    if home.exists():
        await sweep(home)
    home.mkdir(parents=True)
    (home / "home").mkdir()
    (home / "flower-chat.toml").write_text(CONFIG.format(home=home, lease=lease), encoding="utf-8")
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(sweep, home, keep=True)
        slack = await stack.enter_async_context(emulator(port=port))
        base = {name: os.environ[name] for name in ("PATH", "LANG", "PYTHONPATH", "TMPDIR") if name in os.environ}
        base |= {"HOME": str(home / "home")}
        model = await Process.start(
            "scripted model",
            [
                *(sys.executable, "-m", "flower.testing", "--port", "0", "--script", str(story), "--speed", speed),
                *("--token-log", str(home / "tokens.jsonl")),
            ],
            env=base,
            log=home / "model.log",
        )
        stack.push_async_callback(model.stop, grace=3.0)
        url = (await model.says("ready", within=READY_SECONDS)).split()[1]
        api_url = await stack.enter_async_context(lossy_api(slack.api_url, lossy)) if lossy else slack.api_url
        variables = base | {
            "FLOWER_CHAT_CONFIG": str(home / "flower-chat.toml"),
            "FLOWER_CHAT_SLACK_BOT_TOKEN": BOT_TOKEN,
            "FLOWER_CHAT_SLACK_APP_TOKEN": APP_TOKEN,
            "FLOWER_CHAT_SLACK_API_URL": api_url,
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "scripted-demo-model",
            **(env or {}),
        }
        here = Stage(home, slack, model, url, variables)
        stack.push_async_callback(_stop_bot, here)
        if with_bot:
            await here.start_bot()
        yield here


async def _stop_bot(here: Stage) -> None:
    if here.bot is not None:
        await here.bot.stop()


async def sweep(home: Path, *, keep: bool = False) -> None:
    """End what a stage left running in a home: runners (they outlive bots), Redis; and empty it unless `keep`."""
    launcher = LocalLauncher(env={})
    for folder in (home / "runs").glob("*") if (home / "runs").exists() else ():
        await launcher.kill(RunId(folder.name), folder)
    try:
        await asyncio.to_thread(stop_server, home / "redis")
    except StoreAwayError:  # a story froze it
        os.kill(redis_pid(home), signal.SIGKILL)
    if not keep:
        shutil.rmtree(home)


def redis_pid(home: Path) -> int:
    """Process id of a stage's Redis.

    Raises:
        LookupError: it is not running.
    """
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and f"{home}/redis" in (entry / "cmdline").read_text():
                return int(entry.name)
    raise LookupError(f"no Redis of {home} is running")


def refuse_taken(port: int) -> None:
    """Refuse a port that somebody listens on, before anything of an earlier stage is swept away.

    Raises:
        StageError: says what to do.
    """
    with contextlib.closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError as err:
            raise StageError(
                f"port {port} is taken, perhaps by another demo; end it, or choose another: make demo PORT={port + 1}"
            ) from err
