"""Reads and writes what news carry. What is read comes from anybody: a wrong type is as good as not there. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bridge.model import MessageRef, News, Person, PersonId, Platform, ThreadRef


def text(news: News, name: str) -> str:
    return as_text(news.payload.get(name))


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def flag(news: News, name: str) -> bool:
    return news.payload.get(name) is True


def number(news: News, name: str) -> float | None:
    value = news.payload.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def whole(news: News, name: str) -> int:
    value = news.payload.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def strings(news: News, name: str) -> tuple[str, ...]:
    return as_strings(news.payload.get(name))


def as_strings(value: Any) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list | tuple) else ()


def only(news: News, *names: str) -> dict[str, Any]:
    return {name: news.payload[name] for name in names if name in news.payload}


def person(value: Any) -> Person | None:
    if not isinstance(value, Mapping) or not isinstance(value.get("id"), str):
        return None
    return Person(id=PersonId(value["id"]), name=as_text(value.get("name")))


def message(value: Any) -> MessageRef | None:
    if not isinstance(value, Mapping):
        return None
    platform, thread, key = (value.get(name) for name in ("platform", "thread", "key"))
    if not (isinstance(platform, str) and isinstance(thread, str) and isinstance(key, str)):
        return None
    return MessageRef(ThreadRef(Platform(platform), thread), key)


def person_of(who: Person) -> dict[str, str]:
    """Return a person as it stands in payloads (docs/wire.md)."""
    return {"id": str(who.id), "name": who.name}


def message_of(ref: MessageRef | None) -> dict[str, str] | None:
    """Return a message reference as it stands in payloads (docs/wire.md)."""
    if ref is None:
        return None
    return {"platform": str(ref.thread.platform), "thread": ref.thread.key, "key": ref.key}
