"""What a thread must hold, worked out naively from the run's own log: the reference of the kill stories (rulings R19).

Deliberately knows nothing of `bridge.view`: it reads the log lines and says which words must be seen, how often.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from demo.emulator import shown_text
from demo.thread import Thread, slot_of


def told(run: Path) -> list[dict[str, Any]]:
    """All that the attempts of a run wrote down, in order."""
    logs = sorted((run / "log").glob("*.ndjson"))
    return [json.loads(line) for log in logs for line in log.read_text().splitlines()]


def prose(run: Path) -> list[str]:
    """First words of everything that the main agent said outside of judging."""
    return [
        _start(item["text"])
        for item in told(run)
        if item["kind"] == "text" and not item["payload"].get("subagent") and not item["payload"].get("judging")
    ]


def questions(run: Path) -> list[str]:
    """First words of every question that was asked."""
    return [
        _start(item["text"])
        for item in told(run)
        if item["kind"] == "ask" and item["payload"].get("state") == "asked" and not item["payload"].get("kind")
    ]


def marks(run: Path) -> Counter[str]:
    """What must stand in a line of its own, and how often: steps, verdicts, ends."""
    found: Counter[str] = Counter()
    for item in told(run):
        payload = item["payload"]
        if item["kind"] == "step":
            found[f"Step {payload['index']}/{payload['total']}:"] += 1
        elif item["kind"] == "task" and payload.get("kind") == "verdict":
            found[f"(round {payload['round']} of {payload['rounds']})"] += 1
        elif item["kind"] == "run" and payload.get("state") == "done":
            found["To go on from here"] += 1
    return found


async def missing_or_twice(thread: Thread, run: Path) -> dict[str, tuple[int, int]]:
    """Compare the platform's own history with the log: words -> (expected, found), where they differ."""
    messages = await thread.messages()
    said = [_squeezed(shown_text(m)) for m in messages if slot_of(m)[1].startswith("say:")]
    asked = [_squeezed(shown_text(m)) for m in messages if slot_of(m)[1].startswith("ask:")]
    whole = [shown_text(m) for m in messages if slot_of(m)[1]]
    wrong = {
        mark: (times, seen)
        for mark, times in marks(run).items()
        if (seen := sum(mark in text for text in whole)) != times
    }
    for expected, found in ((Counter(prose(run)), said), (Counter(questions(run)), asked)):
        for words, times in expected.items():
            seen = sum(words in text for text in found)
            if seen != times:
                wrong[words] = (times, seen)
    return wrong


def _start(text: str) -> str:
    """The first few plain words: mark-up is shown differently on a platform, and what it is does not matter here."""
    return " ".join(list(_plain_words(text))[:6])


def _squeezed(text: str) -> str:
    return " ".join(_plain_words(text))


def _plain_words(text: str) -> Iterator[str]:
    for word in text.replace("`", "").replace("*", "").replace("#", "").split():
        if any(char.isalnum() for char in word):  # a list's marks differ too
            yield word
