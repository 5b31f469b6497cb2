"""What the answers cost, reckoned from what the server gave out and not from what the program says."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenEntry:
    """Tokens of one answer."""

    at: float
    session: str
    agent: str
    """Id of the subagent, empty for the main agent."""
    part: str
    line: str
    model: str
    input: int
    output: int
    cache_read: int
    cache_write: int
    cut: bool = False
    """The answer did not come to its end: `output` is what the program reckons for what it had got. Where it left by
    itself that may be off by what was still under way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """US dollars for a million tokens. `cache_write` is that of five minutes."""

    input: float
    output: float
    cache_read: float
    cache_write: float
    most_context: int | None = None
    """Where the price changes; larger contexts are not priced here."""


PRICES: Mapping[str, Price] = {
    "claude-opus-5-5": Price(input=4.0, output=20.0, cache_read=0.2, cache_write=5.0),
    "claude-sonnet-5-5": Price(input=2.0, output=10.0, cache_read=0.1, cache_write=2.5),
    "claude-haiku-5-5": Price(input=0.1, output=0.5, cache_read=0.01, cache_write=0.125, most_context=100_000),
}
"""What the bundled program charges (SDK 0.2.189), found by trial and held by a test."""


def cost(log: Iterable[TokenEntry], prices: Mapping[str, Price] = PRICES) -> float:
    """Return what a log's answers cost, in US dollars.

    Raises:
        ValueError: there is no price for a model, or none for so large a context.
    """
    return sum(_cost(entry, prices) for entry in log)


def _cost(entry: TokenEntry, prices: Mapping[str, Price]) -> float:
    price = prices.get(entry.model)
    if price is None:
        raise ValueError(f"no price for the model {entry.model!r}; there are {', '.join(prices)}")
    context = entry.input + entry.cache_read + entry.cache_write
    if price.most_context is not None and context > price.most_context:
        raise ValueError(f"no price for {context} tokens of context with {entry.model}")
    return (
        entry.input * price.input
        + entry.output * price.output
        + entry.cache_read * price.cache_read
        + entry.cache_write * price.cache_write
    ) / 1e6


def to_line(entry: TokenEntry) -> str:
    """Return an entry as a line of JSON."""
    return json.dumps(asdict(entry), ensure_ascii=False) + "\n"


def read_log(path: str | Path) -> list[TokenEntry]:
    """Read a log file; fields that this version does not know are passed over.

    Raises:
        OSError: it cannot be read.
        ValueError: a line is no entry.
    """
    known = {each.name for each in fields(TokenEntry)}
    entries: list[TokenEntry] = []
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
        try:
            data: dict[str, Any] = json.loads(line)
            entries.append(TokenEntry(**{name: value for name, value in data.items() if name in known}))
        except (ValueError, TypeError, AttributeError) as err:
            raise ValueError(f"{path}:{number}: not an entry of a token log: {err}") from None
    return entries
