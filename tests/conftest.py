"""Shared by all tests: one event loop, no connection to the outside."""

from __future__ import annotations

import ipaddress
import socket
from typing import Any

import pytest


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def no_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse connections of this process to anything but loopback and unix sockets (house style 34)."""
    connect, connect_ex = socket.socket.connect, socket.socket.connect_ex

    def check(sock: socket.socket, address: Any) -> None:
        if sock.family not in (socket.AF_INET, socket.AF_INET6):
            return
        host = str(address[0])
        if host != "localhost" and not ipaddress.ip_address(host).is_loopback:
            raise AssertionError(f"a test tried to reach {host}")

    def guarded(sock: socket.socket, address: Any) -> None:
        check(sock, address)
        connect(sock, address)

    def guarded_ex(sock: socket.socket, address: Any) -> int:
        check(sock, address)
        return connect_ex(sock, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)
    monkeypatch.setattr(socket.socket, "connect_ex", guarded_ex)
