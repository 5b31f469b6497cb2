"""`flower-chat`: starts the chat front and its helpers. A missing extra is named with its install line."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable
from importlib.metadata import version
from typing import cast

COMMANDS: dict[str, tuple[str, str, str]] = {
    "up": (
        "bots.slack.__main__",
        "slack",
        "start everything on this machine: Redis (if no URL is set) and the Slack bot",
    ),
    "slack": ("bots.slack.__main__", "slack", "the same today: `up` will start further bots when there are some"),
    "demo-model": ("flower.testing.__main__", "testing", "the scripted model alone: no account, no key, no cost"),
}
"""Command -> module with `main(argv) -> int`, the extra that it needs, and what it does."""

EXIT_USAGE = 2


def main(argv: list[str] | None = None) -> int:
    """Run `flower-chat`. Exit codes: 0 ended in good order, 1 could not start or was refused, 2 wrong arguments."""
    parser = argparse.ArgumentParser(prog="flower-chat", description="Long agent runs, supervised from chat.")
    parser.add_argument("--version", action="version", version=f"flower-chat {version('flower')}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, (_, _, what) in COMMANDS.items():
        commands.add_parser(name, help=what, add_help=False)
    args, rest = parser.parse_known_args(argv)
    module, extra, _ = COMMANDS[args.command]
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as err:
        print(  # noqa: T201
            f"flower-chat {args.command} needs the package {err.name}; in a clone: pip install '.[{extra}]'",
            file=sys.stderr,
        )
        return 1
    return cast("Callable[[list[str]], int]", found.main)(rest)


if __name__ == "__main__":
    sys.exit(main())
