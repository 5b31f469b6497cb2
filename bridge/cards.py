"""A view as cards: the slots of a thread, in its order, each with what should stand in it. Pure.

The same view, settings and minute give the same slots: a figure that grows by itself moves once a minute.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache

from bridge.actions import OnRun, encode
from bridge.ask_cards import ask_cards
from bridge.hostile import one_line
from bridge.model import Abilities, Button, Card, MessageRef, PersonId, Settled, Sign
from bridge.rich import Block, Item, Listing, Paragraph, Quote, Span, Text, When, line
from bridge.split import Blocks, plain, split
from bridge.status import help_text, status_text
from bridge.texts import Texts
from bridge.texts.units import money, thousands
from bridge.view import Activity, AskView, Call, End, Line, Oracle, Say, View, ask_key
from bridge.wording import Wording, fill, reply_blocks

__all__ = ["Slot", "Urgency", "help_text", "reply", "signs", "slots", "status_text"]

SUMMARY = 150
QUIET = 120.0
"""Seconds without a sign of life after which the card says what is running."""
SILENT = 300.0
"""The same, when nothing is known to be running."""
HEAD_ROOM = 300
"""Characters of a post that a note, a heading or a mention may need beside prose."""
MOST_FILES, MOST_TODOS = 20, 12


class Urgency(IntEnum):
    """What goes first (product 2, rule 4)."""

    ASK = 0
    """Asks, stop receipts, and the card that opens a thread."""
    END = 1
    PROSE = 2
    EDIT = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """One message of a thread."""

    name: str
    card: Card
    urgency: Urgency
    final: bool = False
    """The card can never change again: once it stands in the thread, the slot can be forgotten."""
    whole: str = ""
    """Name of what this is a part of; parts are forgotten together. Empty: it is no part."""

    @property
    def group(self) -> str:
        return self.whole or self.name


def slots(
    view: View,
    *,
    texts: Texts,
    abilities: Abilities,
    now: float,
    settlements: Mapping[str, Settled] | None = None,
    secrets: Collection[str] = (),
) -> tuple[Slot, ...]:
    """Return what should stand in the thread, the root first, then in the order in which it happened.

    Args:
        view: the folded news.
        texts: the catalogue of the thread's language.
        abilities: of the platform.
        now: Unix seconds.
        settlements: how asks were settled from chat, by `ask_key`; such an ask shows it before the run says so.
        secrets: what must never be shown, beside whatever looks like a token.
    """
    desk = _Desk(
        view=view,
        words=Wording(texts=texts, secrets=frozenset(secrets)),
        abilities=abilities,
        now=now,
        settlements=settlements or {},
    )
    return tuple(desk.slots())


def signs(view: View) -> tuple[tuple[MessageRef, Sign], ...]:
    """Return which receipts should stand on people's own messages."""
    return tuple((receipt.message, receipt.sign) for receipt in view.receipts)


def reply(text: str) -> Card:
    """Make the card of a reply of ours: a paragraph a line, code in back-ticks."""
    return Card(summary=one_line(text.replace("`", ""), SUMMARY), body=reply_blocks(text))


@lru_cache(maxsize=256)
def _parts(words: Wording, text: str, limit: int) -> tuple[Blocks, ...]:
    """Read and cut prose; kept, since a thread that cannot be posted to is drawn again and again."""
    return split(words.markdown(text), limit=limit).parts


@dataclass(frozen=True, slots=True, kw_only=True)
class _Desk:
    """Draws one view."""

    view: View
    words: Wording
    abilities: Abilities
    now: float
    settlements: Mapping[str, Settled] = field(default_factory=dict)

    # -- all of them ----------------------------------------------------------------------------------------

    def slots(self) -> Iterator[Slot]:
        yield Slot(name="card", card=self.root(), urgency=Urgency.ASK)
        view = self.view
        found: list[tuple[int, tuple[Slot, ...]]] = []
        found += [(each.seq, tuple(self.prose("say", each.seq, self.say_parts(each)))) for each in view.says]
        found += [(each.seq, (self.activity(each),)) for each in view.activities]
        found += [(each.seq, (self.line(each),)) for each in view.lines]
        found += [(each.seq, tuple(self.ask(each))) for each in view.asks]
        found += [(each.seq, tuple(self.oracle(each))) for each in view.oracles]
        found += [(each.seq, (self.end(each),)) for each in view.ends]
        for _, group in sorted(found, key=lambda each: each[0]):
            yield from group

    @property
    def minute(self) -> float:
        return self.now // 60 * 60

    @property
    def open_asks(self) -> tuple[AskView, ...]:
        """Open, and not settled from chat a moment ago."""
        view = self.view
        return tuple(ask for ask in view.open_asks if ask_key(view.run, ask.fence, ask.id) not in self.settlements)

    @property
    def rings(self) -> tuple[PersonId, ...]:
        starter = self.view.starter
        return (starter.id,) if starter is not None and starter.id else ()

    def summary(self, text: str) -> str:
        return self.words.line(text, SUMMARY)

    # -- the card -------------------------------------------------------------------------------------------

    def root(self) -> Card:
        words, view = self.words, self.view
        title, step = words.title(view), words.step(view)
        state = words.state(view, waiting=bool(self.open_asks))
        running = step if not view.over else ""
        body: list[Block] = [
            Paragraph((Text(title, strong=True),)),
            Paragraph((Text(state, strong=True), *(Text(f" · {each}") for each in (running,) if each))),
        ]
        if view.reason and view.state in ("held", "failed", "not_reached", "lost", "ended"):
            body.append(Paragraph(fill(words.texts.card.because, why=words.line(view.reason, 300))))
        body += self.alerts()
        body += self.plan()
        return Card(
            summary=self.summary(words.texts.card.summary.format(state=state, title=title)),
            body=tuple(body),
            note=" · ".join(self.figures()),
            buttons=tuple(self.card_buttons()),
        )

    def alerts(self) -> Iterator[Block]:
        texts, asks = self.words.texts.card, self.open_asks
        if asks:
            which = ", ".join(ask.label for ask in asks)
            template = texts.open_ask if len(asks) == 1 else texts.open_asks
            yield line(template.format(n=len(asks), which=which))
        if self.view.consulting:
            yield line(texts.consulting)
        if (quiet := self.quiet()) is not None:
            yield quiet
        if self.view.state == "lost":
            yield Paragraph(fill(texts.nothing_more))

    def quiet(self) -> Block | None:
        """Tell working, waiting and stuck apart (PR-4): say what has been running while nothing was heard."""
        view, texts = self.view, self.words.texts
        silent = self.minute - view.heard
        if view.state != "working" or self.open_asks or silent < QUIET:
            return None
        time = texts.units.coarse(silent)
        own: list[Call] = [call for call in view.calls if not call.subagent]
        if not own:
            return line(texts.card.quiet.format(time=time)) if silent >= SILENT else None
        last = own[-1]
        if view.subagents and last.tool in ("Agent", "Task"):
            return line(texts.card.quiet_subagent.format(time=time), When(last.at), ".")
        return line(texts.card.quiet_calls.format(time=time, tool=self.words.line(last.tool, 40)), When(last.at), ".")

    def plan(self) -> Iterator[Block]:
        todos, texts = self.view.plan, self.words.texts.card
        if not todos or self.view.over:
            return
        yield Paragraph((Text(texts.plan, strong=True),))
        yield Listing(
            tuple(
                Item(
                    (Paragraph((Text(self.words.line(todo.text, 120), strong=todo.status == "in_progress"),)),),
                    ticked=todo.status == "completed",
                )
                for todo in todos[:MOST_TODOS]
            )
        )
        if len(todos) > MOST_TODOS:
            yield line(texts.plan_more.format(n=len(todos) - MOST_TODOS))

    def figures(self) -> Iterator[str]:
        view, words = self.view, self.words
        card, units = words.texts.card, words.texts.units
        yield card.time.format(
            time=units.duration(view.duration)
            if view.duration is not None
            else units.coarse(self.minute - (view.created or self.minute))
        )
        if view.budget is not None:
            yield card.cost_of.format(cost=money(view.cost), budget=money(view.budget))
        else:
            yield card.cost.format(cost=money(view.cost))
        if view.context and not view.over:
            yield card.context.format(level=thousands(view.context))
        if busy := view.subagents:
            yield card.one_subagent if busy == 1 else card.subagents.format(n=busy)
        if view.starter is not None:
            yield card.started_by.format(who=words.name(view.starter))
        if view.workspace:
            yield card.workspace.format(workspace=words.line(view.workspace, 40))
        yield card.run.format(run=view.run)

    def card_buttons(self) -> Iterator[Button]:
        view, texts = self.view, self.words.texts.card
        ask_oracle = [
            Button(action=encode(OnRun(verb="oracle", run=view.run)), label=texts.oracle, form=texts.oracle_prompt)
            for _ in range(self.abilities.forms)
        ]
        stop = Button(
            action=encode(OnRun(verb="hold", run=view.run)),
            label=texts.stop,
            style="danger",
            confirm=texts.stop_price if view.subagents else "",
        )
        go_on = Button(action=encode(OnRun(verb="continue", run=view.run)), label=texts.go_on, style="primary")
        end = Button(
            action=encode(OnRun(verb="end", run=view.run)), label=texts.end, style="danger", confirm=texts.end_sure
        )
        match view.state:
            case "queued" | "starting":
                found = [stop]
            case "working":
                found = [stop, *ask_oracle]
            case "stopping":
                found = ask_oracle
            case "held":
                found = [go_on, *ask_oracle, end]
            case "lost" | "failed" | "not_reached" | "ended":
                found = [go_on]
            case _:
                found = []
        yield from found[: self.abilities.buttons]

    # -- prose and activity ---------------------------------------------------------------------------------

    def room(self, kept: int = HEAD_ROOM) -> int:
        return max(200, self.abilities.post_limit - kept)

    def say_parts(self, say: Say) -> tuple[Blocks, ...]:
        return _parts(self.words, say.text, self.room())

    def prose(self, kind: str, seq: int, parts: tuple[Blocks, ...]) -> Iterator[Slot]:
        """A slot per part; the parts together hold the whole text."""
        for number, part in enumerate(parts, 1):
            note = "" if len(parts) == 1 else self.words.texts.thread.part.format(part=number, parts=len(parts))
            yield Slot(
                name=f"{kind}:{seq}:{number}",
                whole=f"{kind}:{seq}",
                card=Card(summary=self.summary(plain(part)) or "…", body=part, note=note),
                urgency=Urgency.PROSE,
                final=True,
            )

    def activity(self, activity: Activity) -> Slot:
        texts, words = self.words.texts.thread, self.words
        parts: list[str] = []
        if activity.calls:
            parts.append(texts.one_call if activity.calls == 1 else texts.calls.format(n=activity.calls))
        if activity.subagents:
            one = activity.subagents == 1
            parts.append(texts.one_subagent if one else texts.subagents.format(n=activity.subagents))
        if activity.open and activity.now and not self.view.over:
            parts.append(texts.now.format(what=words.line(activity.now, 80)))
        said = " · ".join(parts)
        card = Card(
            summary=self.summary(f"{texts.activity_now}: {said}"), body=(Paragraph((Text(said, emphasis=True),)),)
        )
        return Slot(name=f"activity:{activity.seq}", card=card, urgency=Urgency.PROSE, final=not activity.open)

    # -- asks, the oracle -----------------------------------------------------------------------------------

    def ask(self, ask: AskView) -> Iterator[Slot]:
        key = ask_key(self.view.run, ask.fence, ask.id)
        cards = ask_cards(
            ask,
            run=self.view.run,
            title=self.words.title(self.view),
            rings=self.rings,
            words=self.words,
            abilities=self.abilities,
            settled=self.settlements.get(key),
        )
        whole = f"ask:{ask.fence}:{ask.id}"
        for number, card in enumerate(cards, 1):
            last = number == len(cards)
            yield Slot(
                name=whole if last else f"{whole}:{number}",
                whole=whole,
                card=card,
                urgency=Urgency.ASK,
                final=not ask.open,
            )

    def oracle(self, oracle: Oracle) -> Iterator[Slot]:
        texts, words = self.words.texts.thread, self.words
        whole = f"oracle:{oracle.seq}"
        if oracle.state != "answered":
            yield Slot(name=whole, card=self.oracle_line(oracle), urgency=Urgency.PROSE, final=True)
            return
        head = Paragraph(fill(texts.oracle_answer_to, who=words.who(oracle.by)))
        note = texts.oracle_cost.format(cost=money(oracle.cost))
        body = (head, *words.quote(oracle.question, 300), *words.markdown(oracle.text))
        parts = split(body, limit=self.room()).parts
        for number, part in enumerate(parts, 1):
            yield Slot(
                name=whole if number == 1 else f"{whole}:{number}",
                whole=whole,
                card=Card(
                    summary=self.summary(f"{texts.oracle_answer}: {oracle.text}"),
                    body=part,
                    note=note if number == len(parts) else texts.part.format(part=number, parts=len(parts)),
                ),
                urgency=Urgency.PROSE,
                final=True,
            )

    def oracle_line(self, oracle: Oracle) -> Card:
        texts, words = self.words.texts.thread, self.words
        if oracle.state == "failed":
            spans = fill(texts.oracle_failed, why=words.line(oracle.text, 500))
            return self.told(spans, words.quote(oracle.question, 300))
        return self.told(fill(texts.oracle_asked, who=words.who(oracle.by)), words.quote(oracle.question))

    # -- lines ----------------------------------------------------------------------------------------------

    def told(self, spans: tuple[Span, ...], more: Blocks = ()) -> Card:
        body = (Paragraph(spans), *more)
        return Card(summary=self.summary(plain(body)) or "…", body=body)

    def line(self, told: Line) -> Slot:
        draw = _LINES.get(told.what)
        card = draw(self, told) if draw is not None else self.told((Text(self.words.line(told.text, 300)),))
        urgency = _LINE_URGENCY.get(told.what, Urgency.PROSE)
        return Slot(name=f"line:{told.seq}", card=card, urgency=urgency, final=True)

    def step_line(self, told: Line) -> Card:
        texts, facts = self.words.texts.thread, told.facts
        again = facts.get("resumed") is True
        template = texts.step_again if again else texts.step
        name = Text(self.words.line(told.text, 60), strong=True)
        index, total = (str(facts.get(each, "?")) for each in ("index", "total"))
        return self.told(fill(template, step=name, index=index, total=total))

    def step_failed_line(self, told: Line) -> Card:
        step = self.words.line(str(told.facts.get("step", "")), 60)
        return self.told(fill(self.words.texts.thread.step_failed, step=step, why=self.words.line(told.text, 500)))

    def retry_line(self, told: Line) -> Card:
        return self.told((Text(self.words.line(told.text, 300)),))  # a sentence of flower's, in its language

    def reset_line(self, told: Line) -> Card:
        texts, levels = self.words.texts.thread, [told.facts.get(each) for each in ("pre_tokens", "post_tokens")]
        if all(isinstance(each, int) for each in levels):
            pre, post = (thousands(int(each)) for each in levels if each is not None)
            return self.told(fill(texts.compacted, pre=pre, post=post))
        return self.told(fill(texts.reset))

    def handoff_line(self, _: Line) -> Card:
        return self.told(fill(self.words.texts.thread.handoff))

    def verdict_line(self, told: Line) -> Card:
        texts, words = self.words.texts.thread, self.words
        head = {"achieved": texts.achieved, "unreachable": texts.unreachable}.get(
            str(told.facts.get("state")), texts.not_yet
        )
        number, rounds = told.facts.get("round"), told.facts.get("rounds")
        counted = f" ({texts.round_of.format(round=number, rounds=rounds)})" if number and rounds else ""
        body: Blocks = (Paragraph((Text(head, strong=True), Text(counted))), *words.literal(_cut(told.text, 1_500)))
        failed = told.facts.get("failed")
        if isinstance(failed, list | tuple) and failed:
            body = (*body, line(texts.missing), self.points(str(each) for each in failed))
        return Card(summary=self.summary(plain(body)), body=body)

    def points(self, points: Iterator[str]) -> Block:
        return Listing(tuple(Item((Paragraph((Text(self.words.line(point, 300)),)),)) for point in points))

    def unverifiable_line(self, told: Line) -> Card:
        points = told.facts.get("points")
        found = [str(each) for each in points] if isinstance(points, list | tuple) else []
        return self.told(fill(self.words.texts.thread.unverifiable), (self.points(iter(found)),))

    def interrupting_line(self, told: Line) -> Card:
        texts, words = self.words.texts.thread, self.words
        if told.facts.get("hold") is True:
            return self.told(fill(texts.holding, who=words.who(told.by)))
        said = str(told.facts.get("words") or "")
        if not said.strip():
            return self.told(fill(texts.interrupt_words, who=words.who(told.by)))
        template = texts.interrupting_now if told.facts.get("now") is True else texts.interrupting
        return self.told(fill(template, who=words.who(told.by)), words.quote(said))

    def held_line(self, told: Line) -> Card:
        texts, words = self.words.texts.thread, self.words
        why: Blocks = (Paragraph(fill(words.texts.card.because, why=words.line(told.text, 300))),) if told.text else ()
        return self.told(fill(texts.held, who=words.who(told.by)), (*why, Paragraph(fill(texts.held_how))))

    def resumed_line(self, told: Line) -> Card:
        texts, words = self.words.texts.thread, self.words
        said = told.facts.get("words")
        if isinstance(said, str) and said.strip():
            return self.told(fill(texts.resumed_words, who=words.who(told.by)), words.quote(said))
        return self.told(fill(texts.resumed, who=words.who(told.by)))

    def started_again_line(self, told: Line) -> Card:
        attempt = str(told.facts.get("attempt", "?"))
        spans = fill(self.words.texts.thread.started_again, attempt=attempt, who=self.words.who(told.by))
        return self.told(spans)

    def stopping_line(self, _: Line) -> Card:
        return self.told(fill(self.words.texts.thread.stopping))

    def lost_line(self, told: Line) -> Card:
        texts, silent = self.words.texts.thread, told.facts.get("silent_s")
        seconds = float(silent) if isinstance(silent, int | float) else 0.0
        spans = fill(texts.lost, time=self.words.texts.units.duration(seconds))
        why: Blocks = (Paragraph(fill(self.words.texts.card.because, why=self.words.line(told.text, 300))),)
        return self.told(spans, (*(why if told.text else ()), Paragraph(fill(texts.lost_how))))

    def refused_line(self, told: Line) -> Card:
        why = self.words.line(told.text, 300).rstrip(".。")
        return self.told(fill(self.words.texts.thread.refused, who=self.words.who(told.by), why=why))

    # -- the end --------------------------------------------------------------------------------------------

    def end(self, end: End) -> Slot:
        texts, words = self.words.texts.thread, self.words
        title = words.title(self.view)
        template = {
            "done": texts.end_done,
            "not_reached": texts.end_not_reached,
            "failed": texts.end_failed,
        }.get(end.state, texts.end_ended)
        head = fill(template, title=Text(title, strong=True), who=words.who(end.by))
        body: list[Block] = [Paragraph(head)]
        if end.reason:
            body.append(Paragraph(fill(texts.end_reason, why=words.line(end.reason, 500))))
        body += self.end_verdict(end)
        body += self.end_files(end)
        figures = texts.end_figures.format(cost=money(end.cost), time=words.texts.units.duration(end.duration))
        if end.aside:
            figures += " · " + texts.end_aside.format(cost=money(end.aside))
        body += [line(figures), Paragraph(fill(texts.end_how))]
        card = Card(summary=self.summary(plain((Paragraph(head),))), body=tuple(body), rings=self.rings)
        return Slot(name=f"end:{end.seq}", card=card, urgency=Urgency.END, final=True)

    def end_verdict(self, end: End) -> Iterator[Block]:
        texts, words = self.words.texts.thread, self.words
        heads = {"achieved": texts.achieved, "not_yet": texts.not_yet, "unreachable": texts.unreachable}
        if end.verdict in heads:
            yield Paragraph((Text(heads[end.verdict], strong=True),))
            if end.verdict_reason and end.verdict_reason != end.reason:
                yield Quote(words.literal(_cut(end.verdict_reason, 800)))
            if end.failed:
                yield line(texts.missing)
                yield self.points(iter(end.failed[:MOST_FILES]))
        if end.unverifiable:
            yield line(texts.end_unverified)
            yield self.points(iter(end.unverifiable[:MOST_FILES]))

    def end_files(self, end: End) -> Iterator[Block]:
        if not end.files:
            return
        texts = self.words.texts.thread
        yield line(texts.end_files)
        yield self.points(iter(end.files[:MOST_FILES]))
        if len(end.files) > MOST_FILES:
            yield line(texts.end_more_files.format(n=len(end.files) - MOST_FILES))


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most].rstrip() + " …"


_LINES = {
    "step": _Desk.step_line,
    "step_failed": _Desk.step_failed_line,
    "retry": _Desk.retry_line,
    "reset": _Desk.reset_line,
    "handoff": _Desk.handoff_line,
    "verdict": _Desk.verdict_line,
    "unverifiable": _Desk.unverifiable_line,
    "interrupting": _Desk.interrupting_line,
    "held": _Desk.held_line,
    "resumed": _Desk.resumed_line,
    "started_again": _Desk.started_again_line,
    "stopping": _Desk.stopping_line,
    "lost": _Desk.lost_line,
    "refused": _Desk.refused_line,
}

_LINE_URGENCY = {
    "interrupting": Urgency.ASK,
    "held": Urgency.ASK,
    "resumed": Urgency.ASK,
    "refused": Urgency.ASK,
    "stopping": Urgency.END,
    "lost": Urgency.END,
    "step_failed": Urgency.END,
}
