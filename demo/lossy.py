"""A proxy in front of Slack's Web API that loses some calls: answered, and not done."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import aiohttp
from aiohttp import web


@contextlib.asynccontextmanager
async def lossy_api(api_url: str, words: str) -> AsyncIterator[str]:
    """Stand in front of Slack's Web API and swallow the calls that carry these words; yields the address to use."""

    async def forward(request: web.Request) -> web.Response:
        body = await request.read()
        if words.encode() in body:
            return web.json_response({"ok": True, "ts": "1.000001", "channel": "C0", "message": {"ts": "1.000001"}})
        headers = {
            name: value for name, value in request.headers.items() if name.lower() in ("authorization", "content-type")
        }
        url = api_url + request.match_info["method"]
        async with session.request(
            request.method, url, params=request.query, data=body or None, headers=headers
        ) as answer:
            return web.Response(body=await answer.read(), status=answer.status, content_type="application/json")

    app = web.Application()
    app.router.add_route("*", "/api/{method}", forward)
    runner = web.AppRunner(app)
    async with aiohttp.ClientSession() as session:
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        try:
            yield f"http://127.0.0.1:{port}/api/"
        finally:
            await runner.cleanup()
