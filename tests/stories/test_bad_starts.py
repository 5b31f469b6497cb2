"""Bad input at the start: one clear line with the cure, exit code 1, nothing half started left running."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from bridge.adapters.redis_server import stop_server
from demo.emulator import APP_TOKEN, BOT_TOKEN, emulator
from tests.fakes.slack import strict_slack

pytestmark = [pytest.mark.real, pytest.mark.timeout(60)]

CONFIG = '[workspaces.demo]\npath = "{home}/work"\nfresh = true\n'


@pytest.fixture
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="fl-") as folder:
        yield Path(folder)


@pytest.fixture
async def api_url() -> AsyncIterator[str]:
    async with emulator() as slack:
        yield slack.api_url


def closed_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def environment(home: Path, api_url: str, **more: str) -> dict[str, str]:
    (home / "flower-chat.toml").write_text(CONFIG.format(home=home))
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "FLOWER_CHAT_HOME": str(home / "data"),
        "FLOWER_CHAT_CONFIG": str(home / "flower-chat.toml"),
        "FLOWER_CHAT_SLACK_BOT_TOKEN": BOT_TOKEN,
        "FLOWER_CHAT_SLACK_APP_TOKEN": APP_TOKEN,
        "FLOWER_CHAT_SLACK_API_URL": api_url,
        "ANTHROPIC_API_KEY": "any",
        **more,
    }
    return {name: value for name, value in env.items() if value}


async def refused(env: dict[str, str]) -> str:
    """Start the bot, which must refuse; returns what it says, its log lines left out."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "bots",
        "up",
        env=env,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        out, _ = await asyncio.wait_for(process.communicate(), 40)
    except TimeoutError:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    assert process.returncode == 1, out.decode()
    said = [line for line in out.decode().splitlines() if line.strip() and not line.startswith("{")]
    assert "Traceback" not in out.decode()
    return "\n".join(said)


def left_running(home: Path) -> list[str]:
    """Command lines of processes that still have something to do with this home."""
    found: list[str] = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(home) in command:
            found.append(command)
    return found


async def test_a_dead_token_is_refused_with_the_place_where_a_new_one_is_made(home: Path) -> None:
    async with strict_slack() as slack:  # local-slack takes every token; our strict fake does not
        said = await refused(environment(home, slack.api_url, FLOWER_CHAT_SLACK_BOT_TOKEN="xoxb-dead"))
    assert "FLOWER_CHAT_SLACK_BOT_TOKEN" in said
    assert "xoxb-dead" not in said
    assert left_running(home) == []


async def test_no_token_at_all_names_every_missing_one(home: Path, api_url: str) -> None:
    said = await refused(environment(home, api_url, FLOWER_CHAT_SLACK_BOT_TOKEN="", FLOWER_CHAT_SLACK_APP_TOKEN=""))
    assert "FLOWER_CHAT_SLACK_BOT_TOKEN" in said
    assert "FLOWER_CHAT_SLACK_APP_TOKEN" in said
    assert left_running(home) == []


async def test_an_emulator_that_is_not_there_is_named_with_its_address(home: Path) -> None:
    url = f"http://127.0.0.1:{closed_port()}/api/"
    said = await refused(environment(home, url))
    assert url.removesuffix("/api/") in said
    assert left_running(home) == []


async def test_no_model_credential_says_what_to_set(home: Path, api_url: str) -> None:
    said = await refused(environment(home, api_url, ANTHROPIC_API_KEY=""))
    assert "ANTHROPIC_API_KEY" in said
    assert "ANTHROPIC_AUTH_TOKEN" in said
    assert left_running(home) == []


async def test_no_workspace_says_what_to_write(home: Path, api_url: str) -> None:
    env = environment(home, api_url)
    (home / "flower-chat.toml").write_text("")
    said = await refused(env)
    assert "[workspaces." in said
    assert left_running(home) == []


async def test_something_else_on_the_port_of_redis_is_said(home: Path, api_url: str) -> None:
    async def greet(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example ESMTP\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        said = await refused(environment(home, api_url, FLOWER_CHAT_REDIS_URL=f"redis://127.0.0.1:{port}/0"))
    assert str(port) in said
    assert "not Redis" in said or "no Redis" in said or "not a Redis" in said
    assert left_running(home) == []


async def test_a_redis_that_is_not_there_is_said(home: Path, api_url: str) -> None:
    port = closed_port()
    said = await refused(environment(home, api_url, FLOWER_CHAT_REDIS_URL=f"redis://127.0.0.1:{port}/0"))
    assert str(port) in said
    assert left_running(home) == []


async def test_a_second_bot_on_the_same_account_is_refused(home: Path, api_url: str) -> None:
    env = environment(home, api_url)
    argv = (sys.executable, "-m", "bots", "up")
    first = await asyncio.create_subprocess_exec(
        *argv, env=env, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    assert first.stdout is not None
    try:
        assert (await asyncio.wait_for(first.stdout.readline(), 30)).startswith(b"ready")
        assert "another bot serves" in await refused(env)
    finally:
        first.terminate()
        assert await asyncio.wait_for(first.wait(), 20) == 0
        await asyncio.to_thread(stop_server, home / "data" / "redis")
