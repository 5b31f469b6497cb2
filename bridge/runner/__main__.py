"""`python -m bridge.runner --order-fd N`: composition root of a runner. Started by a launcher, not by people."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import sys
import time

from bridge.adapters.redis_store import open_redis
from bridge.errors import BridgeError, StoreAwayError
from bridge.launch.local import read_order
from bridge.logs import log_to_stderr
from bridge.neighbours import close_to_neighbours
from bridge.ports import Order, Store
from bridge.runner.host import EXIT_FAILED, LOOK_SECONDS, START_PATIENCE_SECONDS, host
from flower import texts

log = logging.getLogger("bridge.runner")


def main(argv: list[str] | None = None) -> int:
    """Read the order from the inherited descriptor and run it. Returns the exit code (`bridge.runner.host`)."""
    parser = argparse.ArgumentParser(prog="bridge.runner", description=__doc__)
    parser.add_argument("--order-fd", type=int, required=True, help="descriptor from which the order is read")
    args = parser.parse_args(argv)
    log_to_stderr()
    close_to_neighbours()
    try:
        order = read_order(args.order_fd)
        with texts.speaking(order.language):
            return asyncio.run(_run(order))
    except (BridgeError, OSError) as err:
        log.error("runner.failed", extra={"why": str(err)})  # noqa: TRY400 - no bug: the text says it
        return EXIT_FAILED


async def _run(order: Order) -> int:
    async with contextlib.AsyncExitStack() as stack:
        store = await _opened(order, stack)
        return await host(order, store)


async def _opened(order: Order, stack: contextlib.AsyncExitStack) -> Store:
    """Open the store; waits a while for one that is just being started anew."""
    give_up = time.monotonic() + START_PATIENCE_SECONDS
    while True:
        try:
            return await stack.enter_async_context(
                open_redis(order.store_url, username=order.store_user, password=order.store_password)
            )
        except StoreAwayError as err:
            if time.monotonic() > give_up:
                raise
            log.info("runner.waits_for_store", extra={"run": order.run, "why": str(err)})
            await asyncio.sleep(LOOK_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
