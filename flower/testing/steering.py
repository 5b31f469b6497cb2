"""What is done to requests on their way: they are held up, or something goes wrong with them."""

from __future__ import annotations

import asyncio
from collections import Counter, deque

from flower.testing.director import Plan, require
from flower.testing.hearing import Asked
from flower.testing.story import Fault, Story


class Steering:
    """Pauses and faults. Belongs to one event loop."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._gates: dict[str, asyncio.Event] = {}
        self._injected: dict[str, deque[Fault]] = {}
        self._met: Counter[tuple[str, str, int, str]] = Counter()

    @property
    def paused(self) -> list[str]:
        return sorted(self._gates)

    def pause(self, what: str) -> None:
        """See `ScriptedModel.pause`."""
        require(self._story, what)
        self._gates.setdefault(what, asyncio.Event())

    def release(self, what: str) -> None:
        """See `ScriptedModel.release`."""
        if gate := self._gates.pop(what, None):
            gate.set()

    def release_all(self) -> None:
        for what in self.paused:
            self.release(what)

    def inject(self, what: str, fault: Fault) -> None:
        """See `ScriptedModel.inject`."""
        require(self._story, what)
        if fault.times is None:
            raise ValueError("a fault that is injected needs `times`")
        self._injected.setdefault(what, deque()).extend([fault] * fault.times)

    async def pass_gates(self, asked: Asked) -> None:
        """Wait for as long as the request is held up; whoever cancels ends the waiting."""
        while gate := next((gate for what, gate in self._gates.items() if asked.is_of(what)), None):
            await gate.wait()

    def fault_for(self, asked: Asked, plan: Plan) -> Fault | None:
        """Return what is to go wrong with this request, and count it."""
        for what, waiting in self._injected.items():
            if waiting and asked.is_of(what):
                return waiting.popleft()
        # Counted at one point of one conversation: a retry comes there again, a resume too, another run does not.
        point = (asked.session, asked.agent, plan.after, plan.line)
        met = self._met[point]
        self._met[point] += 1
        for fault in plan.faults:
            if fault.times is None or met < fault.times:
                return fault
            met -= fault.times
        return None
