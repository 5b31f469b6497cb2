"""A proxy in front of a real Redis that is late, falls silent, or cuts connections (rulings R15)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path


class SlowRedis:
    """Hands bytes to and fro. The faults may be changed at any time and hold for what comes after."""

    def __init__(self, upstream: Path) -> None:
        self._upstream = upstream
        self._pairs: set[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = set()
        self._pumps: set[asyncio.Task[None]] = set()
        self._request = asyncio.Event()
        self.url = ""
        self.late_requests = 0.0
        """Seconds after which a request reaches the server."""
        self.late_answers = 0.0
        """Seconds after which an answer reaches the client; the server has done the work before."""
        self.silent = False
        """Half-open: connections stay, new ones are taken, and nothing passes any more in either direction."""
        self.refusing = False
        """New connections are closed at once."""
        self.connections = 0
        """How many were taken so far."""

    def cut(self) -> None:
        """Close every connection that is open now."""
        for pair in list(self._pairs):
            for writer in pair:
                writer.transport.abort()

    async def next_request(self) -> None:
        """Wait until a client has sent something, from now on."""
        self._request = asyncio.Event()
        await self._request.wait()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        if self.refusing:
            writer.transport.abort()
            return
        up_reader, up_writer = await asyncio.open_unix_connection(str(self._upstream))
        pair = (writer, up_writer)
        self._pairs.add(pair)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pass(reader, up_writer, up=True))
                group.create_task(self._pass(up_reader, writer, up=False))
        finally:
            self._pairs.discard(pair)
            for each in pair:
                each.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, up: bool) -> None:
        queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        async with asyncio.TaskGroup() as group:
            sending = group.create_task(self._send(queue, writer))
            with suppress(ConnectionError):
                while data := await reader.read(65_536):
                    if up:
                        self._request.set()
                    if not self.silent:
                        late = self.late_requests if up else self.late_answers
                        queue.put_nowait((asyncio.get_running_loop().time() + late, data))
            if not self.silent:
                writer.transport.abort()
            sending.cancel()

    async def _send(self, queue: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while True:
                due, data = await queue.get()
                await asyncio.sleep(due - asyncio.get_running_loop().time())
                writer.write(data)
                await writer.drain()


@asynccontextmanager
async def slow_redis(upstream: Path) -> AsyncIterator[SlowRedis]:
    """Run a proxy on a free port of loopback, in front of the server on the socket `upstream`."""
    proxy = SlowRedis(upstream)
    handlers: set[asyncio.Task[None]] = set()

    def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(proxy._serve(reader, writer))
        handlers.add(task)
        task.add_done_callback(handlers.discard)

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    proxy.url = f"redis://{host}:{port}/0"
    try:
        yield proxy
    finally:
        server.close()
        proxy.cut()
        for task in list(handlers):
            task.cancel()
        await asyncio.wait(handlers) if handlers else None
        await server.wait_closed()
