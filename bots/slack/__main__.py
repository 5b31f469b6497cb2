"""Composition root of the Slack bot: `flower-chat slack`, `python -m bots.slack`."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Mapping

from bots.slack.chat import open_slack
from bots.slack.settings import SlackSettings
from bridge.adapters.redis_server import ensure_server
from bridge.adapters.redis_store import open_redis
from bridge.errors import BridgeError, SettingsError
from bridge.launch.local import LocalLauncher
from bridge.logs import log_to_stderr
from bridge.ports import Store
from bridge.service import Bridge
from bridge.settings import RUNNER_ENVIRONMENT, Settings, read_settings

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
        announcing = group.create_task(_announce(chat.account, heard))
        await bridge.run(until=until)
        announcing.cancel()


async def _announce(account: str, heard: asyncio.Event) -> None:
    await heard.wait()  # ready means that people's words reach us, not that we could post (OP-1)
    print(f"ready {account}", flush=True)  # noqa: T201


@contextlib.asynccontextmanager
async def _open_store(settings: Settings) -> AsyncIterator[tuple[Store, str]]:
    """Open the store; yields it with its address. Without a URL a server of our own is started, which outlives us."""
    if settings.redis_url is not None:
        url, username, password = settings.redis_url.get_secret_value(), None, None
    else:
        server = await asyncio.to_thread(ensure_server, settings.home / "redis")
        url, username, password = server.url, server.username, server.password
    async with open_redis(url, username=username, password=password) as store:
        yield store, url


async def _check_runner(env: Mapping[str, str]) -> None:
    check = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bridge.runner.check", env=dict(env), stdout=asyncio.subprocess.PIPE
    )
    said, _ = await check.communicate()
    if check.returncode:
        raise SettingsError(said.decode().strip() or "runners cannot start here (bridge.runner.check failed)")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
