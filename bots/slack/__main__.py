"""Composition root of the Slack bot: `flower-chat slack`, `python -m bots.slack`."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from bots.slack.chat import open_slack
from bots.slack.settings import SlackSettings
from bridge.adapters.redis_server import ensure_server
from bridge.adapters.redis_store import open_redis
from bridge.errors import BridgeError, SettingsError
from bridge.launch.local import LocalLauncher
from bridge.logs import log_to_stderr
from bridge.neighbours import close_to_neighbours
from bridge.ports import Store
from bridge.service import Bridge
from bridge.settings import RUNNER_ENVIRONMENT, Settings, read_settings

log = logging.getLogger(__name__)

SERVER_SECONDS = 3.0
"""Between two looks at our own Redis."""
CREDENTIALS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")


def main(argv: list[str] | None = None) -> int:
    """Start the bot and run it until SIGTERM or Ctrl-C. Returns 0 then, 1 when it cannot start or is refused.

    What is wrong is said in one line on stderr, with the cure. Runs go on when the bot ends.
    """
    argparse.ArgumentParser(prog="flower-chat slack", description=__doc__).parse_args(argv or [])
    failed = False
    env = dict(os.environ)  # noqa: TID251 - the one place of this process that reads it (house style 31)
    try:
        settings, slack = read_settings(env), SlackSettings.from_env(env)
        log_to_stderr(secrets=slack.secrets())
        close_to_neighbours()
        asyncio.run(_run(settings, slack, env))
    except* BridgeError as group:
        for err in _single(group):
            print(f"flower-chat slack: {err}", file=sys.stderr)  # noqa: T201
        failed = True
    return int(failed)


def _single(group: BaseExceptionGroup[BridgeError]) -> Iterator[BridgeError]:
    for err in group.exceptions:
        if isinstance(err, BaseExceptionGroup):
            yield from _single(err)
        else:
            yield err


async def _run(settings: Settings, slack: SlackSettings, env: Mapping[str, str]) -> None:
    runner_env = {name: env[name] for name in RUNNER_ENVIRONMENT if name in env}
    if not settings.workspaces:
        raise SettingsError(
            'no workspace is set up: add to flower-chat.toml, for instance\n  [workspaces.site]\n  path = "/srv/site"'
        )
    await _check_runner(runner_env)
    until = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, until.set)
    # The account first: with a dead token nothing is started that would have to be stopped again.
    heard = asyncio.Event()
    async with (
        open_slack(slack, on_state=lambda state: heard.set() if state.well else None) as chat,
        _open_store(settings) as (store, address),
        asyncio.TaskGroup() as group,
    ):
        bridge = Bridge(
            chat,
            store,
            LocalLauncher(env=runner_env),
            settings=settings,
            store_url=address,
            account=chat.account,
            secrets=(*slack.secrets(), *(env[name] for name in CREDENTIALS if env.get(name))),
        )
        beside = [group.create_task(_announce(chat.account, heard))]
        if settings.redis_url is None:
            beside.append(group.create_task(_keep_server(settings.home / "redis")))
        await bridge.run(until=until)
        for task in beside:
            task.cancel()


async def _announce(account: str, heard: asyncio.Event) -> None:
    await heard.wait()  # ready means that people's words reach us, not that we could post (OP-1)
    print(f"ready {account}", flush=True)  # noqa: T201


@contextlib.asynccontextmanager
async def _open_store(settings: Settings) -> AsyncIterator[tuple[Store, str]]:
    """Open the store; yields it with its address. Without a URL a server of our own is started, which outlives us."""
    if settings.redis_url is not None:
        url, username, password = settings.redis_url.get_secret_value(), None, None
        bare = without_login(url)  # a runner gets the address with a login of its own, never ours (rulings R8)
    else:
        server = await asyncio.to_thread(ensure_server, settings.home / "redis")
        url, username, password = server.url, server.username, server.password
        bare = url
    async with open_redis(url, username=username, password=password) as store:
        yield store, bare


def without_login(url: str) -> str:
    """Take user and password out of a store's address."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


async def _keep_server(home: Path) -> None:
    """Start our own Redis again when it has died: runs and threads wait for it. For as long as the bot lives."""
    while True:
        await asyncio.sleep(SERVER_SECONDS)
        try:
            await asyncio.to_thread(ensure_server, home)
        except (BridgeError, OSError) as err:
            log.warning("redis.not_kept", extra={"why": str(err)})


async def _check_runner(env: Mapping[str, str]) -> None:
    check = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bridge.runner.check", env=dict(env), stdout=asyncio.subprocess.PIPE
    )
    said, _ = await check.communicate()
    if check.returncode:
        raise SettingsError(said.decode().strip() or "runners cannot start here (bridge.runner.check failed)")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
