"""`python -m bridge.runner --order-fd N`: composition root of a runner. Started by a launcher, not by people."""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import logging
import os
import sys

from bridge.adapters.redis_store import open_redis
from bridge.errors import BridgeError
from bridge.launch.local import decode_order
from bridge.logs import log_to_stderr
from bridge.ports import Order
from bridge.runner.host import EXIT_FAILED, host
from flower import texts

PR_SET_DUMPABLE = 4

log = logging.getLogger("bridge.runner")


def main(argv: list[str] | None = None) -> int:
    """Read the order from the inherited descriptor and run it. Returns the exit code (`bridge.runner.host`)."""
    parser = argparse.ArgumentParser(prog="bridge.runner", description=__doc__)
    parser.add_argument("--order-fd", type=int, required=True, help="descriptor from which the order is read")
    args = parser.parse_args(argv)
    log_to_stderr()
    _close_to_neighbours()
    with os.fdopen(args.order_fd, "rb") as file:
        order = decode_order(file.read())
    with texts.speaking(order.language):
        try:
            return asyncio.run(_run(order))
        except BridgeError as err:
            log.error("runner.failed", extra={"run": order.run, "why": str(err)})  # noqa: TRY400 - no bug: the text says it
            return EXIT_FAILED


async def _run(order: Order) -> int:
    async with open_redis(order.store_url, username=order.store_user, password=order.store_password) as store:
        return await host(order, store)


def _close_to_neighbours() -> None:
    """Keep other processes of the same user from reading our memory and descriptors (rulings R8). Linux only."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main())
