"""What earlier attempts of a run did, folded from its news: commands done, words not read, asks left open. Pure."""

from __future__ import annotations

from collections.abc import Iterable
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
    attempts: int = 0

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
        else:
            self.open_asks.pop(identity, None)


def past_of(news: Iterable[News]) -> Past:
    """Fold a whole history."""
    past = Past()
    for item in news:
        past.take(item)
    return past
