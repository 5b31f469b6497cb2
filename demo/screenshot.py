"""Pictures of a page by a headless Chromium: `python -m demo.screenshot URL FILE.png [--phone]`.

Used for the README's picture and by tests, which also look at what the page says and whether it runs over the edge.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import json
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
READY_SECONDS = 20.0
PAGE_SECONDS = 10.0
PHONE_CSS = """
    .sidebar, .main, .topbar, .thread-resize-handle, .composer { display: none !important }
    .thread-pane { width: 100vw !important; max-width: 100vw !important; border: 0 !important }
"""
"""The emulator's page is made for a desk; this leaves what a phone would show of a thread."""
DESK_CSS = ".thread-pane { width: 620px !important } .sidebar { width: 150px !important }"


class BrowserError(Exception):
    """No browser, or it does not do what it should; one line that says what to do."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture and what is on it."""

    png: bytes
    text: str
    """All that can be read on the page."""
    too_wide: tuple[str, ...]
    """Elements that run over the right edge, by their class."""


class Browser:
    """A running headless Chromium. Made by `browser`."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = count(1)

    async def picture(self, url: str, *, phone: bool = False, wait_for: str = ".thread-body .msg") -> Picture:
        """Open a page, wait until an element is there, and take its picture.

        Args:
            url: for instance `Emulator.thread_url(channel, ts)`.
            phone: 390 pixels wide with the thread alone, else a desk's page.
            wait_for: a CSS selector.

        Raises:
            BrowserError: the element did not appear.
        """
        target = (await self._do("Target.createTarget", url="about:blank"))["targetId"]
        session = (await self._do("Target.attachToTarget", targetId=target, flatten=True))["sessionId"]
        width, height, css = (390, 844, PHONE_CSS) if phone else (1280, 900, DESK_CSS)
        size = {"width": width, "height": height, "deviceScaleFactor": 2, "mobile": phone}
        await self._do("Emulation.setDeviceMetricsOverride", session, **size)
        await self._do("Page.enable", session)
        await self._do("Page.navigate", session, url=url)
        await self._until(session, f"!!document.querySelector({json.dumps(wait_for)})", url)
        style = f"document.head.insertAdjacentHTML('beforeend', '<style>' + {json.dumps(css)} + '</style>'); true"
        await self._evaluate(session, style)
        await self._evaluate(session, "document.fonts.ready.then(() => true)")
        text = await self._evaluate(session, "document.body.innerText")
        too_wide = await self._evaluate(session, _TOO_WIDE)
        shot = await self._do("Page.captureScreenshot", session, format="png")
        await self._do("Target.closeTarget", targetId=target)
        return Picture(base64.b64decode(shot["data"]), str(text), tuple(too_wide))

    async def _until(self, session: str, condition: str, url: str) -> None:
        deadline = asyncio.get_running_loop().time() + PAGE_SECONDS
        while not await self._evaluate(session, condition):
            if asyncio.get_running_loop().time() > deadline:
                raise BrowserError(f"{url}: not there after {PAGE_SECONDS:.0f} s: {condition}")
            await asyncio.sleep(0.05)  # a page that builds itself has no event to wait on

    async def _evaluate(self, session: str, expression: str) -> Any:
        args = {"expression": expression, "returnByValue": True, "awaitPromise": True}
        return (await self._do("Runtime.evaluate", session, **args))["result"].get("value")

    async def _do(self, method: str, session: str = "", /, **params: object) -> dict[str, Any]:
        number = next(self._numbers)
        addressed = {"sessionId": session} if session else {}
        await self._socket.send_json({"id": number, "method": method, "params": params, **addressed})
        async with asyncio.timeout(PAGE_SECONDS):
            while True:
                said: dict[str, Any] = json.loads(await self._socket.receive_str())
                if said.get("id") != number:
                    continue
                if "error" in said:
                    raise BrowserError(f"{method}: {said['error'].get('message')}")
                return dict(said["result"])


_TOO_WIDE = """
    [...document.querySelectorAll('.thread-pane *')].filter(each => {
        const box = each.getBoundingClientRect()
        return box.width > 0 && box.right > window.innerWidth + 1
    }).map(each => String(each.className || each.tagName))
"""


@contextlib.asynccontextmanager
async def browser() -> AsyncIterator[Browser]:
    """Run a browser while the body runs.

    Raises:
        BrowserError: there is none, or it does not start.
    """
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        raise BrowserError("Chromium is not installed: apt-get install chromium, or your system's package")
    with tempfile.TemporaryDirectory(prefix="browser-", ignore_cleanup_errors=True) as folder:
        argv = [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
        argv += ["--hide-scrollbars", "--remote-debugging-port=0", f"--user-data-dir={folder}", "about:blank"]
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        try:
            address = await _address_of(process)
            async with aiohttp.ClientSession() as session, session.ws_connect(address, max_msg_size=0) as socket:
                yield Browser(socket)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


async def _address_of(process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None  # noqa: S101 - it was asked for
    last = ""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(READY_SECONDS):
            async for raw in process.stderr:
                last = raw.decode(errors="replace").strip() or last
                if found := re.search(r"DevTools listening on (ws://\S+)", last):
                    return found[1]
    raise BrowserError(f"the browser did not start: {last or 'it said nothing'}")


async def take(url: str, file: Path, *, phone: bool) -> Picture:
    """Write a picture of a page into a file."""
    async with browser() as chromium:
        shot = await chromium.picture(url, phone=phone)
    file.write_bytes(shot.png)
    return shot


def main(argv: list[str] | None = None) -> int:
    """Take one picture. Returns 1 with one line on stderr when there is none."""
    parser = argparse.ArgumentParser(prog="python -m demo.screenshot", description="Take a picture of the thread.")
    parser.add_argument("url", help="of a thread: Emulator.thread_url(channel, ts)")
    parser.add_argument("file", type=Path)
    parser.add_argument("--phone", action="store_true", help="390 pixels wide, the thread alone")
    args = parser.parse_args(argv)
    try:
        shot = asyncio.run(take(args.url, args.file, phone=args.phone))
    except BrowserError as err:
        print(err, file=sys.stderr)
        return 1
    print(f"{args.file}: {len(shot.png)} bytes; over the edge: {', '.join(shot.too_wide) or 'nothing'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
