"""The scripted model's own small HTTP surface, under `/_story/`: for another process that looks on or acts.

GET  /_story/state            what has happened so far
GET  /_story/tokens           the token log
GET  /_story/failures         what the story had no answer for
GET  /_story/requests         what was asked (?what=PART or PART.LINE, ?session=ID)
GET  /_story/asked            wait until it was asked so often (?what=, ?times=1, ?timeout=10)
POST /_story/pause, /release  {"what": "PART"}
POST /_story/inject           {"what": "PART", "fault": {"kind": "error", "status": 529}}
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from aiohttp import web

from flower.testing.story import Fault

if TYPE_CHECKING:
    from flower.testing.hearing import Asked
    from flower.testing.server import ScriptedModel

_MOST_SECONDS = 120.0


def routes(model: ScriptedModel) -> list[web.RouteDef]:
    """The routes of a server's control surface."""
    surface = _Surface(model)
    seen = [surface.state, surface.tokens, surface.failures, surface.requests, surface.asked]
    done = [surface.pause, surface.release, surface.inject]
    return [
        *(web.get(f"/_story/{each.__name__}", _saying_what_is_wrong(each)) for each in seen),
        *(web.post(f"/_story/{each.__name__}", _saying_what_is_wrong(each)) for each in done),
    ]


class _Surface:
    """One handler for each route. What a model's methods raise is told by `_saying_what_is_wrong`."""

    def __init__(self, model: ScriptedModel) -> None:
        self._model = model

    async def state(self, _: web.Request) -> web.Response:
        return web.json_response(self._model.state())

    async def tokens(self, _: web.Request) -> web.Response:
        return web.json_response([asdict(entry) for entry in self._model.tokens])

    async def failures(self, _: web.Request) -> web.Response:
        return web.json_response([{**asdict(each), "text": str(each)} for each in self._model.failures])

    async def requests(self, http: web.Request) -> web.Response:
        found = self._model.asked_of(http.query.get("what", ""), session=http.query.get("session"))
        return web.json_response([_shown(each) for each in found])

    async def asked(self, http: web.Request) -> web.Response:
        timeout = min(float(http.query.get("timeout", "10")), _MOST_SECONDS)
        try:
            found = await self._model.asked(http.query["what"], int(http.query.get("times", "1")), timeout=timeout)
        except TimeoutError as err:
            return web.json_response({"error": str(err)}, status=408)
        return web.json_response(_shown(found))

    async def pause(self, http: web.Request) -> web.Response:
        self._model.pause((await http.json())["what"])
        return web.json_response(self._model.state())

    async def release(self, http: web.Request) -> web.Response:
        self._model.release((await http.json())["what"])
        return web.json_response(self._model.state())

    async def inject(self, http: web.Request) -> web.Response:
        wish = await http.json()
        known = {each.name for each in fields(Fault)}
        if unknown := sorted(set(wish["fault"]) - known):
            raise ValueError(f"a fault has no {', '.join(unknown)}; it has {', '.join(sorted(known))}")
        self._model.inject(wish["what"], Fault(**wish["fault"]))
        return web.json_response(self._model.state())


_Handler = Callable[[web.Request], Awaitable[web.Response]]


def _saying_what_is_wrong(answer: _Handler) -> _Handler:
    async def handler(http: web.Request) -> web.Response:
        try:
            return await answer(http)
        except json.JSONDecodeError:
            return web.json_response({"error": "the body is not JSON"}, status=400)
        except (KeyError, ValueError, TypeError) as err:
            return web.json_response({"error": str(err.args[0] if err.args else err)}, status=400)

    return handler


def _shown(asked: Asked) -> dict[str, Any]:
    return {
        "number": asked.number,
        "at": asked.at,
        "session": asked.session,
        "agent": asked.agent,
        "part": asked.part,
        "line": asked.line,
        "outcome": asked.outcome,
        "model": asked.conversation.model,
        "prompt": asked.prompt,
        "results": [asdict(result) for result in asked.results],
        "tools": list(asked.conversation.tools),
    }
