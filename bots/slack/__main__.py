"""Composition root of the Slack bot: `flower-chat slack`, `python -m bots.slack`."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping

from bots.slack.chat import open_slack
from bots.slack.settings import SlackSettings
from bridge.adapters.redis_server import ServerAddress, ensure_server
from bridge.adapters.redis_store import open_redis
from bridge.errors import BridgeError, SettingsError
from bridge.launch.local import LocalLauncher
from bridge.logs import log_to_stderr
from bridge.ports import Store
from bridge.service import Bridge
from bridge.settings import RUNNER_ENVIRONMENT, Settings, read_settings


def main(argv: list[str] | None = None) -> int:
    """Start the bot and run it until SIGTERM or Ctrl-C. Returns 0 then, 1 when it cannot start or is refused.

    What is wrong is said in one line on stderr, with the cure. Runs go on when the bot ends.
    """
    argparse.ArgumentParser(prog="flower-chat slack", description=__doc__).parse_args(argv or [])
    env = dict(os.environ)  # noqa: TID251 - the one place of this process that reads it (house style 31)
    try:
        settings, slack = read_settings(env), SlackSettings.from_env(env)
        log_to_stderr(secrets=slack.secrets())
        asyncio.run(_run(settings, slack, env))
    except BridgeError as err:
        print(f"flower-chat slack: {err}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


async def _run(settings: Settings, slack: SlackSettings, env: Mapping[str, str]) -> None:
    runner_env = {name: env[name] for name in RUNNER_ENVIRONMENT if name in env}
    if not settings.workspaces:
        raise SettingsError(
            "no workspace is set up: add to flower-chat.toml, for instance\n  [workspaces.site]\n  path = \"/srv/site\""
        )
    await _check_runner(runner_env)
    until = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, until.set)
    # The account first: with a dead token nothing is started that would have to be stopped again.
    async with open_slack(slack) as chat, _open_store(settings) as (store, address):
        bridge = Bridge(chat, store, LocalLauncher(env=runner_env), settings=settings, store_url=address.url)
        await bridge.run(until=until, on_ready=lambda: print(f"ready slack {chat.account}", flush=True))  # noqa: T201


@contextlib.asynccontextmanager
async def _open_store(settings: Settings) -> AsyncIterator[tuple[Store, ServerAddress]]:
    if settings.redis_url is not None:
        address = ServerAddress(settings.redis_url.get_secret_value(), None, None)
    else:
        address = await asyncio.to_thread(ensure_server, settings.home / "redis")
    async with open_redis(address.url, username=address.username, password=address.password) as store:
        yield store, address


async def _check_runner(env: Mapping[str, str]) -> None:
    check = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bridge.runner.check", env=dict(env), stdout=asyncio.subprocess.PIPE
    )
    said, _ = await check.communicate()
    if check.returncode:
        raise SettingsError(said.decode().strip() or "runners cannot start here (bridge.runner.check failed)")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
