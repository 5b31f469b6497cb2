"""What a scripted model plays: a story of parts, each with its lines. Values only; `director` plays them.

`story_file` reads the same from a file; docs/story-format.md explains the words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from flower.testing.conversation import Conversation, News

NEXT, STAY, DUE, END = "next", "stay", "due", "end"
"""Where a line leads besides to a named one: to the one behind it; nowhere, what was due stays due; what was due is
said in the same message; the part is over."""

RESERVED = frozenset({NEXT, STAY, DUE, END})
BUILT_IN = frozenset({"workspace", "session", "agent", "model"})
"""Variables that every line has."""

_VARIABLE = re.compile(r"\$\$(?=\{)|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}")
_FLAGS = re.IGNORECASE | re.DOTALL | re.MULTILINE

Variables = Mapping[str, str]


class StoryError(Exception):
    """A story is not well formed. The text is one line: where, what is wrong, what was expected."""


class UnknownVariableError(Exception):
    """A line needs a variable that nothing in the conversation has given."""

    def __init__(self, name: str) -> None:
        super().__init__(f"variable ${{{name}}} has no value yet")
        self.name = name


def filled(text: str, variables: Variables) -> str:
    """Put variables into a text; `$${` stands for a literal `${`.

    Raises:
        UnknownVariableError: one has no value.
    """

    def value(found: re.Match[str]) -> str:
        name = found["name"]
        if name is None:
            return "$"
        if name not in variables:
            raise UnknownVariableError(name)
        return variables[name]

    return _VARIABLE.sub(value, text)


def names_in(value: Any) -> Iterator[str]:
    """The variables that texts name, at any depth of mappings and lists."""
    if isinstance(value, str):
        yield from (found["name"] for found in _VARIABLE.finditer(value) if found["name"])
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from names_in(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from names_in(inner)


@dataclass(frozen=True, slots=True)
class Pattern:
    """What must be found in a text: words (in any case), or `/a regular expression/`, whose named groups are kept.

    Variables in it stand for their value, literally.

    Raises:
        StoryError: the expression is none.
    """

    source: str

    def __post_init__(self) -> None:
        if not self.source:
            raise StoryError("a pattern is empty; it would be found everywhere")
        try:
            self._compiled(dict.fromkeys(self.variables, ""))
        except re.error as err:
            raise StoryError(f"{self.source} is no regular expression: {err}") from None

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple(names_in(self.source))

    @property
    def groups(self) -> tuple[str, ...]:
        """The variables that it gives when it is found."""
        return tuple(self._compiled(dict.fromkeys(self.variables, "")).groupindex)

    def search(self, text: str, variables: Variables) -> dict[str, str] | None:
        """Return the groups that were found, None if the pattern is not in the text."""
        found = self._compiled(variables).search(text)
        if found is None:
            return None
        return {name: value.strip() for name, value in found.groupdict().items() if value is not None}

    def _compiled(self, variables: Variables) -> re.Pattern[str]:
        expression = self._expression()
        if expression is None:
            return re.compile(re.escape(filled(self.source, variables)), _FLAGS)
        return re.compile(filled(expression, {name: re.escape(value) for name, value in variables.items()}), _FLAGS)

    def _expression(self) -> str | None:
        quoted = len(self.source) > 2 and self.source[0] == self.source[-1] == "/"
        return self.source[1:-1] if quoted else None


Patterns = tuple[Pattern, ...]
"""All of them must be found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """What a request must hold. An empty one is always met."""

    system: Patterns = ()
    opening: Patterns = ()
    """In what was said to the agent first."""
    prompt: Patterns = ()
    """In what was said to it since its last answer."""
    result: Patterns = ()
    """In the results of the tools that it called last."""
    history: Patterns = ()
    """Anywhere in the conversation."""
    model: Patterns = ()
    tools: tuple[str, ...] = ()
    """Tools that must be on offer."""
    error: bool | None = None
    """Whether one of the newest results is an error."""
    interrupted: bool | None = None
    """Whether the agent was cut since its last answer."""
    over: bool | None = None
    """Whether the part has no line left."""
    agent: Literal["main", "sub"] | None = None
    session: Literal["same"] | None = None
    """The session is the one that the agent's last answer was given in."""
    unless: Condition | None = None
    """What it must not hold."""

    def patterns(self) -> Iterator[Pattern]:
        """Every pattern in it."""
        for _, patterns in self._texts():
            yield from patterns
        if self.unless is not None:
            yield from self.unless.patterns()

    def _texts(self) -> Iterator[tuple[str, Patterns]]:
        for name in ("system", "opening", "prompt", "result", "history", "model"):
            yield name, getattr(self, name)

    def check(self, sight: Sight, variables: Variables) -> Match:
        """Compare it with a request."""
        known = dict(variables)
        for name, patterns in self._texts():
            text = sight.text(name)
            for pattern in patterns:
                found = pattern.search(text, known)
                if found is None:
                    return Match(missing=f"{name} does not hold {filled_or_raw(pattern.source, known)!r}")
                known |= found
        if wrong := self._wrong_fact(sight):
            return Match(missing=wrong)
        if self.unless is not None and self.unless.check(sight, known).ok:
            return Match(missing="it holds what it must not hold")
        return Match(variables=known)

    def collect(self, sight: Sight, variables: Variables) -> dict[str, str]:
        """Return the variables with those added that its patterns find; what is not found changes nothing."""
        known = dict(variables)
        for name, patterns in self._texts():
            for pattern in patterns:
                known |= pattern.search(sight.text(name), known) or {}
        return known

    def _wrong_fact(self, sight: Sight) -> str:
        if absent := [tool for tool in self.tools if tool not in sight.conversation.tools]:
            return f"not on offer: {', '.join(absent)}"
        facts: tuple[tuple[str, Any, Any], ...] = (
            ("error", self.error, any(result.error for result in sight.news.results)),
            ("interrupted", self.interrupted, sight.news.interrupted),
            ("over", self.over, sight.over),
            ("agent", self.agent, "sub" if sight.conversation.agent else "main"),
            ("session", self.session, "same" if sight.same_session else "another"),
        )
        return next((f"{name} is {found}" for name, wanted, found in facts if wanted not in (None, found)), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """A request as conditions see it."""

    conversation: Conversation
    news: News
    over: bool = False
    same_session: bool = True

    def text(self, name: str) -> str:
        """The text that a pattern of this name is looked for in."""
        match name:
            case "prompt":
                return self.news.prompt
            case "result":
                return self.news.result
            case _:
                return str(getattr(self.conversation, name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """How a condition compares with a request."""

    variables: Mapping[str, str] = field(default_factory=dict)
    missing: str = ""
    """Why it is not met."""

    @property
    def ok(self) -> bool:
        return not self.missing


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens that an answer reports. What is None comes from the part, then from the story."""

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    """Written for five minutes; the program prices it so unless it is told otherwise."""
    growth: int | None = None
    """Added to `cache_read` for each answer that the conversation already holds."""

    def over(self, other: Usage) -> Usage:
        """Fill the gaps from another one."""
        return Usage(
            input=_first(self.input, other.input),
            output=_first(self.output, other.output),
            cache_read=_first(self.cache_read, other.cache_read),
            cache_write=_first(self.cache_write, other.cache_write),
            growth=_first(self.growth, other.growth),
        )


DEFAULT_USAGE = Usage(input=100, output=20, cache_read=0, cache_write=0, growth=0)


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call. Texts at any depth of the input may hold variables."""

    tool: str
    input: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What goes wrong instead of an answer.

    `error` (`fail` in a story): an HTTP error. `drop`: the connection is cut after `after` events of the answer.
    `hang`: silence after them, for `seconds`, then it is cut. `break`: an `error` event after them.
    """

    kind: Literal["error", "drop", "hang", "break"]
    status: int = 529
    type: str = ""
    """The API's word for it; follows from the status if it is empty."""
    message: str = "scripted fault"
    retry_after: float | None = None
    after: int = 0
    seconds: float = 3600.0
    pings: float | None = None
    """Seconds between the pings that are sent while it hangs."""
    times: int | None = 1
    """For how many requests, in one conversation at one point; None for each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One answer of the model."""

    name: str = ""
    when: Condition = Condition()
    """Among alternatives and in `anytime`: the first line whose condition is met is said."""
    expect: Condition = Condition()
    """What must be so once the line was chosen: else the request is refused and the story has failed."""
    take: Condition = Condition()
    """Gives variables where it finds something; never fails."""
    think: str = ""
    say: str = ""
    call: tuple[Call, ...] = ()
    then: str = NEXT
    stop: str = ""
    """The stop reason, if not the natural one."""
    usage: Usage = Usage()
    delay: float | None = None
    """Seconds before the first event."""
    pace: float | None = None
    """Characters a second while it streams."""
    faults: tuple[Fault, ...] = ()
    """Come first, in order."""
    place: str = field(default="", compare=False)
    """Where it stands, for messages."""

    def conditions(self) -> tuple[Condition, Condition, Condition]:
        return self.when, self.expect, self.take

    def texts(self) -> Iterator[Any]:
        """Everything in it that may hold variables."""
        yield from (self.think, self.say)
        yield from (call.input for call in self.call)


Spot = tuple[Line, ...]
"""One place in a part: a line, or alternatives of which the first fitting one is said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One agent's role: how its requests are recognised, and what it says.

    Raises:
        StoryError: a line leads nowhere, names are used twice, or a variable is never given.
    """

    name: str
    match: Condition = Condition()
    lines: tuple[Spot, ...] = ()
    anytime: tuple[Line, ...] = ()
    """Looked at before the line that is due. By default what was due is said in the same message, behind it."""
    take: Condition = Condition()
    """As a line's, with every request of the part."""
    usage: Usage = Usage()
    delay: float | None = None
    pace: float | None = None

    def __post_init__(self) -> None:
        named = [line.name for spot in self.lines for line in spot[:1] if line.name]
        if twice := sorted({name for name in named if named.count(name) > 1}):
            raise StoryError(f"part {self.name}: two places are named {twice[0]!r}")
        if clash := RESERVED.intersection(named):
            raise StoryError(f"part {self.name}: {min(clash)!r} is no name for a line, it is a word of `then`")
        for line in self.all_lines():
            if line.then not in RESERVED and line.then not in named:
                known = ", ".join([*named, *sorted(RESERVED)])
                raise StoryError(f"{line.place or self.name}: `then` leads to {line.then!r}; there are: {known}")
        for line in self.anytime:
            if line.when == Condition():
                raise StoryError(f"{line.place or self.name}: a line of `anytime` needs `when`, or it is always said")

    def spot_named(self, name: str) -> int:
        return next(n for n, spot in enumerate(self.lines) if spot[0].name == name)

    def all_lines(self) -> Iterator[Line]:
        for spot in self.lines:
            yield from spot
        yield from self.anytime


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A whole story. The first part whose condition is met takes a conversation, and keeps it.

    Raises:
        StoryError: two parts have one name, or a text names a variable that nothing gives.
    """

    parts: tuple[Part, ...]
    title: str = ""
    vars: Mapping[str, str] = field(default_factory=dict)
    """Values that variables have until a conversation gives another."""
    usage: Usage = Usage()
    delay: float = 0.0
    pace: float | None = None

    def __post_init__(self) -> None:
        names = [part.name for part in self.parts]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise StoryError(f"two parts are named {twice[0]!r}")
        for part in self.parts:
            self._check_variables(part)

    def part_named(self, name: str) -> Part:
        """Raises KeyError where there is none."""
        return {part.name: part for part in self.parts}[name]

    def _check_variables(self, part: Part) -> None:
        conditions = [part.match, part.take]
        for line in part.all_lines():
            conditions += line.conditions()
        patterns = [pattern for condition in conditions for pattern in condition.patterns()]
        known = {*BUILT_IN, *self.vars, *(name for pattern in patterns for name in pattern.groups)}
        for pattern in patterns:
            _require(pattern.variables, known, f"part {part.name}")
        for line in part.all_lines():
            _require(names_in(list(line.texts())), known, line.place or f"part {part.name}")


def filled_or_raw(text: str, variables: Variables) -> str:
    """Put variables in for a message, as far as there are any."""
    try:
        return filled(text, variables)
    except UnknownVariableError:
        return text


def _require(names: Iterator[str] | tuple[str, ...], known: set[str], place: str) -> None:
    for name in names:
        if name not in known:
            raise StoryError(
                f"{place}: variable ${{{name}}} is given nowhere; it needs a group (?P<{name}>…) or an entry in `vars`"
            )


def _first(mine: int | None, other: int | None) -> int | None:
    return other if mine is None else mine
