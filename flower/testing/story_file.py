"""Reads stories: from YAML files, and from the same mappings written in Python. Says where something is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

import yaml

from flower.testing.story import (
    DUE,
    NEXT,
    STAY,
    Call,
    Condition,
    Fault,
    Line,
    Part,
    Pattern,
    Patterns,
    Spot,
    Story,
    StoryError,
    Usage,
)

T = TypeVar("T")

FAULTS = {"fail": "error", "drop": "drop", "hang": "hang", "break": "break"}
"""Words for what goes wrong -> `Fault.kind`."""

_NAME = re.compile(r"[A-Za-z0-9_-]+")
_TEXT_CONDITIONS = ("system", "opening", "prompt", "result", "history", "model")
_YES_NO_CONDITIONS = ("error", "interrupted", "over")


def load_story(path: str | Path) -> Story:
    """Read a story from a YAML file.

    Raises:
        StoryError: it cannot be read or is not well formed; one line with the file and, where known, its line.
    """
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as err:
        raise StoryError(f"{file}: cannot be read: {getattr(err, 'strerror', None) or err}") from None
    return parse_story(text, name=str(file))


def parse_story(text: str, *, name: str = "story") -> Story:
    """Read a story from YAML text. `name` stands in messages.

    Raises:
        StoryError: see `load_story`.
    """
    loader = _Loader(text)
    try:
        data = loader.get_single_data()
    except yaml.MarkedYAMLError as err:
        mark = err.problem_mark or err.context_mark
        line = f":{mark.line + 1}" if mark else ""
        raise StoryError(f"{name}{line}: {err.problem or err.context or 'not YAML'}") from None
    except (yaml.YAMLError, RecursionError) as err:
        raise StoryError(f"{name}: not YAML: {str(err).splitlines()[0]}") from None
    finally:
        loader.dispose()
    return read_story(data, name=name)


def read_story(data: Any, *, name: str = "story") -> Story:
    """Make a story of mappings, lists and texts, in the words of a story file.

    Raises:
        StoryError: see `load_story`.
    """
    return _story(_At(name, value=data))


class _Mapping(dict[Any, Any]):
    """A mapping that knows its lines."""

    line = 0
    lines: Mapping[Any, int] = {}


class _Loader(yaml.SafeLoader):
    """Safe, with lines, and without a key that silently replaces another."""


def _mapping(loader: _Loader, node: yaml.MappingNode) -> Iterator[_Mapping]:
    made = _Mapping()
    yield made
    seen: dict[Hashable, int] = {}
    for key_node, _ in node.value:
        key = loader.construct_object(key_node, deep=True)
        if key != "<<" and key in seen:
            raise yaml.constructor.ConstructorError(None, None, f"{key!r} stands here twice", key_node.start_mark)
        seen[key] = key_node.start_mark.line + 1
    made.update(loader.construct_mapping(node))
    made.line, made.lines = node.start_mark.line + 1, seen


_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)


@dataclass(frozen=True, slots=True)
class _At:
    """A value and where it stands."""

    name: str
    path: str = ""
    line: int = 0
    value: Any = None

    def wrong(self, why: str) -> StoryError:
        place = f"{self.name}:{self.line}" if self.line else self.name
        return StoryError(": ".join(part for part in (place, self.path, why) if part))

    @property
    def place(self) -> str:
        return f"{self.name}:{self.line}" if self.line else f"{self.name}: {self.path}"

    def __getitem__(self, key: str) -> _At:
        lines = self.value.lines if isinstance(self.value, _Mapping) else {}
        line = lines.get(key) or getattr(self.value.get(key), "line", 0) or self.line
        return _At(self.name, f"{self.path}.{key}".lstrip("."), line, self.value.get(key))

    def __contains__(self, key: str) -> bool:
        return self.value.get(key) is not None

    def items(self) -> Iterator[tuple[str, _At]]:
        for key in self.value:
            yield str(key), self[key]

    def each(self) -> Iterator[_At]:
        for n, value in enumerate(self.value):
            yield _At(self.name, f"{self.path}[{n}]", getattr(value, "line", 0) or self.line, value)

    # -- what is expected -----------------------------------------------------------------------------------------

    def mapping(self, allowed: tuple[str, ...] | None = None, *, what: str) -> _At:
        if not isinstance(self.value, Mapping):
            raise self.wrong(f"expected {what} (a mapping), found {_kind(self.value)}")
        for key in self.value:
            if not isinstance(key, str):
                raise self[key].wrong(f"a key must be a text, found {key!r}")
            if allowed is not None and key not in allowed:
                raise self[key].wrong(f"unknown word; expected one of: {', '.join(allowed)}")
        return self

    def listed(self, *, what: str) -> _At:
        if not isinstance(self.value, list | tuple):
            raise self.wrong(f"expected a list of {what}, found {_kind(self.value)}")
        return self

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self.wrong(f"expected a text, found {_kind(self.value)}")
        return self.value

    def label(self) -> str:
        if not isinstance(self.value, str) or not _NAME.fullmatch(self.value):
            raise self.wrong(f"expected a name (letters, digits, - and _), found {self.value!r}")
        return self.value

    def number(self) -> float:
        if isinstance(self.value, bool) or not isinstance(self.value, int | float) or self.value < 0:
            raise self.wrong(f"expected a number from 0 up, found {_kind(self.value)}")
        return float(self.value)

    def count(self) -> int:
        if isinstance(self.value, bool) or not isinstance(self.value, int) or self.value < 0:
            raise self.wrong(f"expected a whole number from 0 up, found {_kind(self.value)}")
        return self.value

    def yes_no(self) -> bool:
        if not isinstance(self.value, bool):
            raise self.wrong(f"expected true or false, found {_kind(self.value)}")
        return self.value

    def one_of(self, *choices: str) -> Any:
        if self.value not in choices:
            raise self.wrong(f"expected one of {', '.join(choices)}, found {self.value!r}")
        return self.value

    def maybe(self, key: str, read: Callable[[_At], T]) -> T | None:
        return read(self[key]) if key in self else None


def _kind(value: Any) -> str:
    match value:
        case None:
            return "nothing"
        case bool():
            return str(value).lower()
        case str():
            return f"the text {value[:40]!r}"
        case Mapping():
            return "a mapping"
        case list() | tuple():
            return "a list"
        case _:
            return repr(value)[:40]


def _sound(at: _At, make: Callable[[], T]) -> T:
    """Build a value whose own checks do not know where they are."""
    try:
        return make()
    except StoryError as err:
        text = str(err)
        raise StoryError(text if text.startswith(f"{at.name}:") else str(at.wrong(text))) from None


def _story(at: _At) -> Story:
    at.mapping(("story", "vars", "usage", "delay", "pace", "parts"), what="a story")
    if "parts" not in at:
        raise at.wrong("`parts` is missing: the agents that play, by name")
    parts = at["parts"].mapping(what="parts by name")
    if not parts.value:
        raise parts.wrong("there is no part in it")
    return _sound(
        at,
        lambda: Story(
            parts=tuple(_part(name, part) for name, part in parts.items()),
            title=at.maybe("story", _At.text) or "",
            vars=_vars(at["vars"]) if "vars" in at else {},
            usage=at.maybe("usage", _usage) or Usage(),
            delay=at.maybe("delay", _At.number) or 0.0,
            pace=at.maybe("pace", _pace),
        ),
    )


def _vars(at: _At) -> dict[str, str]:
    return {name: value.text() for name, value in at.mapping(what="variables and their values").items()}


def _part(name: str, at: _At) -> Part:
    if not _NAME.fullmatch(name):
        raise at.wrong(f"{name!r} is no name for a part (letters, digits, - and _)")
    at.mapping(("match", "take", "usage", "delay", "pace", "anytime", "lines"), what="a part")
    spots = tuple(_spot(each) for each in at["lines"].listed(what="lines").each()) if "lines" in at else ()
    anytime = (
        tuple(_line(each, then=None) for each in at["anytime"].listed(what="lines").each()) if "anytime" in at else ()
    )
    if not spots and not anytime:
        raise at.wrong("the part says nothing: it needs `lines` or `anytime`")
    return _sound(
        at,
        lambda: Part(
            name=name,
            match=at.maybe("match", _condition) or Condition(),
            lines=spots,
            anytime=anytime,
            take=at.maybe("take", _condition) or Condition(),
            usage=at.maybe("usage", _usage) or Usage(),
            delay=at.maybe("delay", _At.number),
            pace=at.maybe("pace", _pace),
        ),
    )


def _spot(at: _At) -> Spot:
    if not isinstance(at.value, Mapping) or "either" not in at.value:
        return (_line(at, then=NEXT),)
    at.mapping(("name", "either"), what="alternatives")
    choices = [_line(each, then=NEXT) for each in at["either"].listed(what="lines").each()]
    if not choices:
        raise at["either"].wrong("there is no line in it")
    if "name" in at:
        choices = [_named(line, at["name"].label(), n) for n, line in enumerate(choices)]
    return tuple(choices)


def _named(line: Line, name: str, n: int) -> Line:
    """The name of the place is that of its first line; the others add their own, or a number."""
    return replace(line, name=name if n == 0 else f"{name}/{line.name or n + 1}")


_LINE = (
    *("name", "when", "expect", "take", "think", "say", "call", "then", "stop", "usage", "delay", "pace"),
    *FAULTS,
)


def _line(at: _At, *, then: str | None) -> Line:
    """Read a line. `then` is where it leads by default; None: what was due is said too, unless it calls tools."""
    if isinstance(at.value, str):
        return Line(say=at.value, then=then or DUE, place=at.place)
    at.mapping(_LINE, what="a line, or just what is said")
    calls = _calls(at["call"]) if "call" in at else ()
    faults = tuple(_fault(word, at[word]) for word in FAULTS if word in at)
    if not {"say", "think", "call"} & at.value.keys() and all(fault.times is not None for fault in faults):
        raise at.wrong("the line says nothing: it needs say, think or call (or a fault with `times: always`)")
    return Line(
        name=at.maybe("name", _At.label) or "",
        when=at.maybe("when", _condition) or Condition(),
        expect=at.maybe("expect", _condition) or Condition(),
        take=at.maybe("take", _condition) or Condition(),
        think=at.maybe("think", _At.text) or "",
        say=at.maybe("say", _At.text) or "",
        call=calls,
        then=at.maybe("then", _At.label) or then or (STAY if calls else DUE),
        stop=at.maybe("stop", _At.label) or "",
        usage=at.maybe("usage", _usage) or Usage(),
        delay=at.maybe("delay", _At.number),
        pace=at.maybe("pace", _pace),
        faults=faults,
        place=at.place,
    )


def _calls(at: _At) -> tuple[Call, ...]:
    each = list(at.each()) if isinstance(at.value, list | tuple) else [at]
    if not each:
        raise at.wrong("there is no tool in it")
    found: list[Call] = []
    for one in each:
        for tool, given in one.mapping(what="tools and their input").items():
            if not _NAME.fullmatch(tool):
                raise given.wrong(f"{tool!r} is no name of a tool")
            found.append(Call(tool, _plain(given.mapping(what="the input of the tool").value)))
    return tuple(found)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(inner) for name, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value


def _condition(at: _At) -> Condition:
    words = (*_TEXT_CONDITIONS, *_YES_NO_CONDITIONS, "tools", "agent", "session", "unless")
    at.mapping(words, what="a condition")
    if not at.value:
        raise at.wrong("the condition is empty; leave it out")
    given: dict[str, Any] = {name: _patterns(at[name]) for name in _TEXT_CONDITIONS if name in at}
    given |= {name: at[name].yes_no() for name in _YES_NO_CONDITIONS if name in at}
    if "tools" in at:
        given["tools"] = tuple(each.text() for each in at["tools"].listed(what="tools").each())
    if "agent" in at:
        given["agent"] = at["agent"].one_of("main", "sub")
    if "session" in at:
        given["session"] = at["session"].one_of("same")
    if "unless" in at:
        given["unless"] = _condition(at["unless"])
    return Condition(**given)


def _patterns(at: _At) -> Patterns:
    each = list(at.each()) if isinstance(at.value, list | tuple) else [at]
    return tuple(_sound(one, lambda one=one: Pattern(one.text())) for one in each)  # type: ignore[misc]


def _usage(at: _At) -> Usage:
    names = tuple(each.name for each in fields(Usage))
    return Usage(**{name: value.count() for name, value in at.mapping(names, what="token counts").items()})


def _pace(at: _At) -> float:
    found = at.number()
    if not found:
        raise at.wrong("expected characters a second, more than 0")
    return found


def _fault(word: str, at: _At) -> Fault:
    words = {
        "fail": ("status", "type", "message", "retry_after", "times"),
        "drop": ("after", "times"),
        "hang": ("after", "seconds", "pings", "times"),
        "break": ("type", "message", "after", "times"),
    }[word]
    at.mapping(words, what="a fault")
    readers: dict[str, Callable[[_At], Any]] = {
        "status": _status,
        "type": _At.text,
        "message": _At.text,
        "retry_after": _At.number,
        "after": _At.count,
        "seconds": _At.number,
        "pings": _pace,
        "times": _times,
    }
    kind: Any = FAULTS[word]
    return Fault(kind=kind, **{name: readers[name](value) for name, value in at.items()})


def _status(at: _At) -> int:
    found = at.count()
    if not 400 <= found <= 599:
        raise at.wrong(f"expected an HTTP error status (400 to 599), found {found}")
    return found


def _times(at: _At) -> int | None:
    return None if at.value == "always" else at.count()
