"""Chooses what the model says next, from the conversation that a request holds. Pure but for its memory.

No counter decides: the newest answer in the conversation that this server gave tells where its part stands. So a
retried request gets the same line again, a resumed session goes on where it was, a fresh one begins at the start, and
many runs can be played at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from flower.core.unicode import well_formed
from flower.testing.conversation import Conversation, News, Turn
from flower.testing.story import (
    DEFAULT_USAGE,
    DUE,
    Call,
    Fault,
    Line,
    Part,
    Sight,
    Spot,
    Story,
    UnknownVariableError,
    Usage,
    Variables,
    filled,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a part stands: the number of a spot, and the alternative where that is settled already."""

    spot: int = 0
    choice: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be answered, with every variable put in."""

    part: str
    line: str
    """Name of the line, or its number in the part."""
    think: str
    say: str
    call: tuple[Call, ...]
    stop: str
    usage: Usage
    delay: float
    pace: float | None
    faults: tuple[Fault, ...]
    after: int
    """Number of the answer before it in this conversation, 0 for none."""
    answers: int
    """How many answers stand before it in this conversation."""
    place: Place
    leads_to: Place
    variables: Mapping[str, str]

    @property
    def label(self) -> str:
        return f"{self.part}.{self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why the story has no answer."""

    why: str
    part: str = ""
    line: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """An answer that was given, so that it is known again when it comes back in a conversation."""

    number: int
    plan: Plan
    calls: tuple[str, ...]
    session: str
    agent: str

    def was_cut(self, turn: Turn, news: News) -> bool:
        """Whether the answer did not come through whole, or one of its tools was stopped."""
        if self.calls:
            own = [result for result in news.results if result.call in self.calls]
            return not set(self.calls) <= set(turn.calls) or any(result.cut for result in own)
        return news.broken or _squeezed(turn.text) != _squeezed(self.plan.say)


@dataclass(slots=True)
class Memory:
    """The answers given so far."""

    _by_call: dict[str, Served] = field(default_factory=dict)
    _by_agent: dict[tuple[str, str], list[Served]] = field(default_factory=dict)

    def keep(self, served: Served) -> None:
        self._by_call |= dict.fromkeys(served.calls, served)
        self._by_agent.setdefault((served.session, served.agent), []).append(served)

    def find(self, turn: Turn, answers: int, *, session: str, agent: str) -> Served | None:
        """Return the answer that stands in a turn, also if only its beginning does. The same agent's come first.

        `answers` is how many stand before the turn: it tells apart what was said twice.
        """
        for call in reversed(turn.calls):
            if call in self._by_call:
                return self._by_call[call]
        text = _squeezed(turn.text)
        if turn.calls or not text:
            return None
        own = self._by_agent.get((session, agent), [])
        others = [served for each in self._by_agent.values() if each is not own for served in each]
        for candidates in (own, others):
            said = [served for served in reversed(candidates) if _squeezed(served.plan.say).startswith(text)]
            said.sort(key=lambda served: (_squeezed(served.plan.say) != text, served.plan.answers != answers))
            if said:
                return said[0]
        return None


def direct(story: Story, conversation: Conversation, memory: Memory) -> Plan | Refusal:
    """Decide what a request gets."""
    position, served = _newest_answer(conversation, memory)
    if position >= 0 and served is None:
        text = conversation.turns[position].text or "a tool call"
        return Refusal(why=f"the conversation holds an answer that this server never gave: {text[:200]!r}")
    news = conversation.since(position)
    part = _part_of(story, conversation, served, news)
    if part is None:
        return Refusal(why="no part of the story recognises this request")
    try:
        return _Scene.of(story, part, conversation, news, served, position).plan()
    except _RefusedError as err:
        return Refusal(why=err.why, part=part.name, line=err.line)


class _RefusedError(Exception):
    def __init__(self, why: str, line: str = "") -> None:
        super().__init__(why)
        self.why, self.line = why, line


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scene:
    """One request in its part."""

    story: Story
    part: Part
    sight: Sight
    due: Place
    retaken: bool
    """What is due was said before and cut, so it is said again as it was."""
    after: Served | None
    variables: Variables
    answers: int
    """How many answers the conversation holds already."""

    @classmethod
    def of(
        cls,
        story: Story,
        part: Part,
        conversation: Conversation,
        news: News,
        served: Served | None,
        position: int,
    ) -> _Scene:
        cut = served is not None and served.was_cut(conversation.turns[position], news)
        due = Place() if served is None else served.plan.place if cut else served.plan.leads_to
        sight = Sight(
            conversation=conversation,
            news=news,
            over=due.spot >= len(part.lines),
            same_session=served is not None and served.session == conversation.session,
        )
        known = {
            **story.vars,
            **(served.plan.variables if served else {}),
            "workspace": conversation.workspace,
            "session": conversation.session,
            "agent": conversation.agent,
            "model": conversation.model,
        }
        return cls(
            story=story,
            part=part,
            sight=sight,
            due=due,
            retaken=cut,
            after=served,
            variables=part.take.collect(sight, known),
            answers=sum(turn.is_answer for turn in conversation.turns),
        )

    def plan(self) -> Plan:
        first = self._anytime()
        if first is None:
            return self._due(self.variables)
        line, known = first
        name = line.name or f"anytime-{self.part.anytime.index(line) + 1}"
        if line.then != DUE or self.sight.over:
            return self._said(line, name, known, place=self.due, leads_to=self._target(line, self.due))
        mine = self._said(line, name, known, place=self.due, leads_to=self.due)
        return _joined(mine, self._due(mine.variables))

    def _anytime(self) -> tuple[Line, Variables] | None:
        for line in self.part.anytime:
            match = line.when.check(self.sight, self.variables)
            if match.ok:
                return line, match.variables
        return None

    def _due(self, known: Variables) -> Plan:
        if self.sight.over:
            raise _RefusedError("the part has no line left")
        spot = self.part.lines[self.due.spot]
        if self.due.choice is not None and self.retaken:
            choice, line = self.due.choice, spot[self.due.choice]
        else:
            choice, line, known = self._chosen(known)
        name = name_of(spot, self.due.spot, choice)
        place = Place(spot=self.due.spot, choice=choice)
        return self._said(line, name, known, place=place, leads_to=self._target(line, Place(spot=self.due.spot)))

    def _chosen(self, known: Variables) -> tuple[int, Line, Variables]:
        spot, reasons = self.part.lines[self.due.spot], list[str]()
        for choice, line in enumerate(spot):
            match = line.when.check(self.sight, known)
            if match.ok:
                return choice, line, match.variables
            reasons.append(match.missing)
        raise _RefusedError(f"no line fits here ({'; '.join(reasons)})", name_of(spot, self.due.spot, 0))

    def _target(self, line: Line, here: Place) -> Place:
        match line.then:
            case "next":
                return Place(spot=here.spot + 1)
            case "stay" | "due":
                return here
            case "end":
                return Place(spot=len(self.part.lines))
            case name:
                return Place(spot=self.part.spot_named(name))

    def _said(self, line: Line, name: str, known: Variables, *, place: Place, leads_to: Place) -> Plan:
        if not (self.retaken and place.choice is not None):  # what was asked for then is not said again now
            match = line.expect.check(self.sight, known)
            if not match.ok:
                raise _RefusedError(f"expected otherwise: {match.missing}", name)
            known = match.variables
        known = line.take.collect(self.sight, known)
        try:
            return Plan(
                part=self.part.name,
                line=name,
                think=filled(line.think, known),
                say=filled(line.say, known).strip(),
                call=tuple(Call(call.tool, _filled(call.input, known)) for call in line.call),
                stop=line.stop,
                usage=self._usage(line),
                delay=_first(line.delay, self.part.delay, self.story.delay) or 0.0,
                pace=_first(line.pace, self.part.pace, self.story.pace),
                faults=line.faults,
                after=self.after.number if self.after else 0,
                answers=self.answers,
                place=place,
                leads_to=leads_to,
                variables=known,
            )
        except UnknownVariableError as err:
            raise _RefusedError(str(err), name) from None

    def _usage(self, line: Line) -> Usage:
        usage = line.usage.over(self.part.usage).over(self.story.usage).over(DEFAULT_USAGE)
        grown = (usage.cache_read or 0) + self.answers * (usage.growth or 0)
        return replace(usage, cache_read=grown, growth=0)


def _newest_answer(conversation: Conversation, memory: Memory) -> tuple[int, Served | None]:
    """Return where the newest answer stands that a model gave, and which it is. -1: there is none."""
    for position, turn in reversed(list(enumerate(conversation.turns))):
        if turn.is_answer:
            before = sum(earlier.is_answer for earlier in conversation.turns[:position])
            return position, memory.find(turn, before, session=conversation.session, agent=conversation.agent)
    return -1, None


def _part_of(story: Story, conversation: Conversation, served: Served | None, news: News) -> Part | None:
    if served is not None:
        return story.part_named(served.plan.part)
    sight = Sight(conversation=conversation, news=news)
    known = {**story.vars, "session": conversation.session, "agent": conversation.agent, "model": conversation.model}
    return next((part for part in story.parts if part.match.check(sight, known).ok), None)


def _joined(first: Plan, due: Plan) -> Plan:
    """Put a line of `anytime` before the one that was due."""
    return replace(
        due,
        line=f"{first.line}+{due.line}",
        think="\n\n".join(filter(None, (first.think, due.think))),
        say="\n\n".join(filter(None, (first.say, due.say))),
        call=(*first.call, *due.call),
        faults=(*first.faults, *due.faults),
    )


def _filled(value: Any, known: Variables) -> Any:
    if isinstance(value, str):
        return filled(value, known)
    if isinstance(value, Mapping):
        return {name: _filled(inner, known) for name, inner in value.items()}
    return [_filled(inner, known) for inner in value] if isinstance(value, list | tuple) else value


def _squeezed(text: str) -> str:
    return " ".join(well_formed(text).split())  # as the program gives it back


def _first(*values: float | None) -> float | None:
    return next((value for value in values if value is not None), None)


def name_of(spot: Spot, number: int, choice: int) -> str:
    """The name of a line, or its number in the part (from 1); an alternative's is set off with a stroke."""
    return spot[choice].name or (f"{number + 1}/{choice + 1}" if choice else str(number + 1))


def lines_of(part: Part) -> Iterator[str]:
    """The names of a part's lines, as plans name them."""
    for number, spot in enumerate(part.lines):
        yield from (name_of(spot, number, choice) for choice in range(len(spot)))
    yield from (line.name or f"anytime-{n + 1}" for n, line in enumerate(part.anytime))


def require(story: Story, what: str) -> None:
    """Raises KeyError if a story has no such part (`work`), line (`work.plan`) or alternative (`work.fork/2`)."""
    part, _, line = what.partition(".")
    known = {each.name: each for each in story.parts}
    if part not in known:
        raise KeyError(f"the story has no part {part!r}; there are {', '.join(known)}")
    if line and line not in lines_of(known[part]):
        raise KeyError(f"part {part} has no line {line!r}; there are {', '.join(lines_of(known[part]))}")
