"""What earlier attempts of a run did, folded from its news: commands done, words not read, asks left open. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from bridge.model import News


@dataclass(slots=True)
class Past:
    """Everything a new attempt must know of the ones before it. Grows by `take`, in order of `seq`."""

    position: str = ""
    """Of the newest command that an attempt took."""
    commands: set[str] = field(default_factory=set)
    """Ids of the commands that an attempt took: a command that comes again has no second effect."""
    unread: dict[str, str] = field(default_factory=dict)
    """Command id -> words that went into an inbox and were never taken by an agent (ST-4)."""
    open_asks: dict[tuple[int, str], News] = field(default_factory=dict)
    questions: dict[tuple[int, str], str] = field(default_factory=dict)
    """Fence and id -> text, of every ask: an answer may still come."""
    attempts: int = 0
    started_at: float = 0.0
    """When the newest start was ordered, Unix seconds."""

    def take(self, news: News) -> None:
        """Fold one item. Unknown kinds and states change nothing."""
        payload = news.payload
        match news.kind:
            case "receipt" if payload.get("state") == "taken":
                self.commands.add(str(payload.get("command")))
                self.position = str(payload.get("position") or self.position)
            case "ask" if payload.get("kind") == "mail":
                self._mail(news)
            case "ask":
                self._ask(news)
            case "run" if payload.get("state") == "working" and "by" not in payload:
                self.attempts += 1
            case "run" if payload.get("state") == "starting":
                self.started_at = news.at

    def _mail(self, news: News) -> None:
        command = str(news.payload.get("command") or "")
        if not command:
            return
        if news.payload.get("state") == "queued":
            self.unread[command] = news.text
        else:
            self.unread.pop(command, None)

    def _ask(self, news: News) -> None:
        identity = (int(news.payload.get("fence", news.fence)), str(news.payload.get("id", "")))
        if news.payload.get("state") == "asked":
            self.open_asks[identity] = news
            self.questions[identity] = news.text
        else:
            self.open_asks.pop(identity, None)


def past_of(news: Iterable[News]) -> Past:
    """Fold a whole history; what stands in it twice (in a log and in the line) counts once."""
    past, known = Past(), set[tuple[object, ...]]()
    for item in sorted(news, key=lambda each: each.seq):
        if identity_of(item) not in known:
            known.add(identity_of(item))
            past.take(item)
    return past


def never_handed_in(leftovers: Iterable[News], line: Sequence[News]) -> list[News]:
    """Return what earlier attempts wrote down and the line has not, in order.

    Numbers alone do not tell: what an attempt could not hand in lost its numbers to whoever wrote next.

    Args:
        leftovers: what is not known to be handed in, from the attempts' own logs.
        line: what the line has, oldest first. What was cut off below it had been handed in.
    """
    has = {identity_of(item) for item in line}
    first = line[0].seq if line else 0
    missing: list[News] = []
    for item in leftovers:
        if item.seq >= first and identity_of(item) not in has:
            has.add(identity_of(item))  # an attempt in between may have written it down again, and died as well
            missing.append(item)
    return missing


def identity_of(news: News) -> tuple[object, ...]:
    """Who said what when: it stays the same when a later attempt hands the item in under another number."""
    return news.fence, news.at, news.kind, news.text, news.payload.get("state"), news.payload.get("id")
