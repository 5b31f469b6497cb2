"""A launcher that starts nothing: it notes the orders, and can be told to fail."""

from __future__ import annotations

from pathlib import Path

from bridge.errors import LaunchError
from bridge.model import RunId
from bridge.ports import Order


class FakeLauncher:
    """Implements `bridge.ports.Launcher`."""

    def __init__(self) -> None:
        self.orders: list[Order] = []
        self.running: set[RunId] = set()
        self.trouble = ""

    async def start(self, order: Order) -> None:
        if self.trouble:
            raise LaunchError(self.trouble)
        self.orders.append(order)
        self.running.add(order.run)

    async def kill(self, run: RunId, folder: Path) -> bool:
        if run not in self.running:
            return False
        self.running.discard(run)
        return True
