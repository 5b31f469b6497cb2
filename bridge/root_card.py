"""The card: the root of a run's thread, with its state, figures and buttons (product 1.2). Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bridge.actions import OnRun, encode
from bridge.model import Abilities, Button, Card
from bridge.rich import Block, Break, Item, Listing, Paragraph, Text, When, line
from bridge.texts.units import money, thousands
from bridge.view import AskView, View, sends_off
from bridge.wording import SUMMARY, Wording, fill

QUIET = 120.0
"""Seconds without a sign of life after which the card says what is running."""
SILENT = 300.0
"""The same, when nothing is known to be running."""
MOST_TODOS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class RootCard:
    """Draws the card of one view."""

    view: View
    words: Wording
    abilities: Abilities
    minute: float
    """The full minute in which it is drawn: whatever grows by itself is counted up to there."""
    open_asks: tuple[AskView, ...]
    """Those that still wait for a person."""

    def draw(self) -> Card:
        words, view = self.words, self.view
        title, step = words.title(view), words.step(view)
        state = words.state(view, waiting=bool(self.open_asks))
        running = step if not view.over else ""
        body: list[Block] = [
            Paragraph(
                (
                    Text(title, strong=True),
                    Break(),
                    Text(state, strong=True),
                    *(Text(f" · {each}") for each in (running,) if each),
                )
            ),
        ]
        if view.reason and view.state in ("held", "failed", "not_reached", "lost", "ended"):
            body.append(Paragraph(fill(words.texts.card.because, why=words.line(view.reason, 300))))
        body += self.alerts()
        body += self.plan()
        return Card(
            summary=words.line(words.texts.card.summary.format(state=state, title=title), SUMMARY),
            body=tuple(body),
            note=" · ".join(self.figures()),
            buttons=tuple(self.buttons()),
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
        own = [call for call in view.calls if not call.subagent]
        if not own:
            return line(texts.card.quiet.format(time=time)) if silent >= SILENT else None
        last = own[-1]
        if view.subagents and sends_off(last.tool):
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

    def buttons(self) -> Iterator[Button]:
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
