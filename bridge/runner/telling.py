"""Turns what flower and the runner say into numbered news, and keeps count of the asks that are open."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

from bridge.commands import Command
from bridge.model import News, Person
from bridge.payloads import message_of, person_of
from flower import Event, StepResult

Clock = Callable[[], float]

TICK = 1e-6
"""Seconds between two items at least: the time of an item is part of its identity (`bridge.runner.past`)."""


class Teller:
    """Numbers news and hands it on. All methods are synchronous, never block, and belong to the loop's thread.

    Args:
        out: takes each piece of news, in order (the journal).
        fence: number of this attempt.
        after: the newest `seq` that the event line has.
        clock: Unix seconds.
    """

    def __init__(self, out: Callable[[News], None], *, fence: int, after: int, clock: Clock = time.time) -> None:
        self._out, self._fence, self._seq, self._clock = out, fence, after, clock
        self._at = 0.0
        self._open: dict[str, News] = {}
        self._withdrawn: set[str] = set()
        self._answered_by: dict[str, Person] = {}
        self._mail: dict[str, str] = {}
        self.saying: str = ""
        """Id of the *say* that is being handed to the channel right now."""
        self.silent = False
        """A fenced runner says nothing more."""

    @property
    def seq(self) -> int:
        """Number of the newest news."""
        return self._seq

    @property
    def open_asks(self) -> Collection[str]:
        """Ids of the asks that were told and not settled."""
        return self._open.keys()

    def tell(self, kind: str, text: str = "", *, tool: str = "", payload: Mapping[str, Any] | None = None) -> News:
        """Number a piece of news and hand it on."""
        self._at = max(self._clock(), self._at + TICK)
        return self._hand_on(
            News(
                seq=self._seq + 1,
                fence=self._fence,
                at=self._at,
                kind=kind,
                text=text,
                tool=tool,
                payload=dict(payload or {}),
            )
        )

    def repeat(self, news: News) -> None:
        """Hand on, under a new number, what an earlier attempt wrote down and did not hand in."""
        payload = {"fence": news.fence, **news.payload} if news.kind == "ask" else news.payload
        self._hand_on(dataclasses.replace(news, seq=self._seq + 1, payload=payload))

    def _hand_on(self, news: News) -> News:
        if not self.silent:
            self._seq = news.seq
            self._out(news)
        return news

    def run(self, state: str, text: str = "", /, **payload: Any) -> News:
        """Tell a change of the run itself."""
        return self.tell("run", text, payload={"state": state, **payload})

    def receipt(self, command: Command, state: str, why: str = "", **payload: Any) -> None:
        """Tell what became of a command."""
        body = {
            "command": command.id,
            "do": type(command).__name__.lower(),
            "state": state,
            "by": person_of(command.by),
            "message": message_of(command.message),
            **payload,
        }
        self.tell("receipt", why, payload=body)

    def step_end(self, step: str, result: StepResult) -> None:
        """Tell the result of a step, from `on_step` (never from prose events, behaviour 5.1)."""
        body = {
            "step": step,
            "ok": result.ok,
            "error": result.error,
            "cost_usd": result.cost_usd,
            "num_turns": result.num_turns,
            "duration_s": result.duration_s,
        }
        self.tell("step_end", payload=body)

    def settled_by(self, ask: str, person: Person) -> None:
        """Note who settled an ask, for its outcome, which the channel tells a moment later."""
        self._answered_by[ask] = person

    def event(self, event: Event, *, label: str, judging: bool, until: float | None) -> None:
        """Tell one event of flower's."""
        payload = dict(event.payload)
        if event.kind == "ask":
            self._ask(event, payload, until)
            return
        payload["label"] = label
        if judging:
            payload["judging"] = True
        self.tell(event.kind, event.text, tool=event.tool, payload=payload)

    def withdraw(self, waiting: Collection[str] = ()) -> None:
        """Tell the asks that were open and wait no longer as withdrawn (rulings R1).

        What the channel says of one of them afterwards is not told: each ask is settled once.

        Args:
            waiting: ids of the asks that still wait.
        """
        for ask in [each for each in self._open if each not in waiting]:
            asked = self._open.pop(ask)
            self._withdrawn.add(ask)
            self.tell("ask", asked.text, payload={**asked.payload, "state": "withdrawn", "answer": ""})

    def adopt(self, asked: News) -> None:
        """Take over an ask that an earlier attempt left open; the next `withdraw` closes it."""
        payload = {**asked.payload, "fence": asked.payload.get("fence", asked.fence)}
        self._open[f"{payload['fence']}/{payload['id']}"] = dataclasses.replace(asked, payload=payload)

    def _ask(self, event: Event, payload: dict[str, Any], until: float | None) -> None:
        ask = str(payload["id"])
        if payload.get("kind") == "mail":
            if self.saying:
                self._mail[ask] = self.saying
            payload["command"] = self._mail.get(ask, "")
            self.tell("ask", event.text, payload=payload)
        elif payload["state"] == "asked":
            payload["until"] = until
            self._open[ask] = self.tell("ask", event.text, payload=payload)
        elif ask not in self._withdrawn:
            self._open.pop(ask, None)
            if person := self._answered_by.pop(ask, None):
                payload["by"] = person_of(person)
            self.tell("ask", event.text, payload=payload)
