"""A run that tells its story: news in order, folded as they come."""

from __future__ import annotations

from typing import Any

from bridge.model import Abilities, MessageRef, News, Person, PersonId, Platform, RunId, ThreadRef
from bridge.view import View, fold

RUN = RunId("k3f9qa")
ALICE = Person(id=PersonId("T1/UALICE"), name="alice")
BOB = Person(id=PersonId("T1/UBOB"), name="bob")
THREAD = ThreadRef(Platform("anywhere"), "T1/C1/1700000000.001700")
START = 1_700_000_040.0
"""At a full minute."""

ABILITIES = Abilities(
    post_limit=6_000,
    edit_limit=6_000,
    buttons=27,
    label_limit=30,
    forms=True,
    whispers=True,
    signs=True,
    lookup=True,
    post_every=1.0,
    post_burst=3,
    edit_every=1.2,
    edit_burst=5,
)


def said_by(person: Person) -> dict[str, str]:
    return {"id": str(person.id), "name": person.name}


def message(key: str) -> MessageRef:
    return MessageRef(THREAD, key)


class Story:
    """Numbers and dates news, ten seconds apart, and keeps them with the view that they make."""

    def __init__(self, *, request: str = "Write the first ten primes", budget: float | None = None) -> None:
        self.told: list[News] = []
        self.view = View(run=RUN)
        self.fence = 0
        self.run(
            "queued", request=request, by=said_by(ALICE), workspace="site", flow="starter", options={"budget": budget}
        )

    @property
    def now(self) -> float:
        return START + 10.0 * len(self.told)

    def tell(self, kind: str, text: str = "", /, *, tool: str = "", **payload: Any) -> News:
        seq = len(self.told) + 1
        news = News(seq=seq, fence=self.fence, at=START + 10.0 * seq, kind=kind, text=text, tool=tool, payload=payload)
        self.told.append(news)
        self.view = fold(self.view, news)
        return news

    def run(self, state: str, text: str = "", /, **facts: Any) -> News:
        return self.tell("run", text, state=state, **facts)

    def works(self, attempt: int = 1) -> None:
        self.run("starting", attempt=attempt, by=said_by(ALICE), words=False)
        self.fence = attempt
        self.run("working", attempt=attempt, resumed=attempt > 1)

    def step(self, name: str, index: int, total: int = 3) -> News:
        return self.tell("step", name, index=index, total=total, resumed=False, woke=0)

    def says(self, text: str, **payload: Any) -> News:
        facts: dict[str, Any] = {"subagent": False, "label": "Work", **payload}
        return self.tell("text", text, **facts)

    def calls(self, tool: str, text: str = "", /, *, id: str, **payload: Any) -> News:  # noqa: A002 - the word of the wire
        facts: dict[str, Any] = {"id": id, "input": {}, "label": "Work", **payload}
        return self.tell("tool_call", text, tool=tool, **facts)

    def returns(self, id: str) -> News:  # noqa: A002 - the word of the wire
        return self.tell("tool_result", "ok", tool_use_id=id, is_error=False, label="Work")

    def asks(self, question: str, *options: str, id: str = "q1", until: float | None = None) -> News:  # noqa: A002
        facts: dict[str, Any] = {
            "id": id,
            "options": list(options),
            "answer": "",
            "remaining": -1,
            "asked_at": self.now,
        }
        return self.tell("ask", question, state="asked", until=until, **facts)

    def settles(self, question: str, state: str, answer: str = "", *, id: str = "q1", **facts: Any) -> News:  # noqa: A002
        return self.tell("ask", question, id=id, options=[], state=state, answer=answer, **facts)

    def ends(self, state: str = "done", text: str = "", /, **facts: Any) -> News:
        told: dict[str, Any] = {
            "cost_usd": 0.4212,
            "aside_usd": 0.0,
            "duration_s": 252.4,
            "steps": [],
            "verdict": None,
            "unverifiable": [],
            "files": [],
            "text": "",
        }
        return self.run(state, text, **{**told, **facts})


def working() -> Story:
    """A run in its last step."""
    story = Story()
    story.works()
    story.step("Work", 3)
    return story
