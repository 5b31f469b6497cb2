"""What happens in a run, told in a line or two each (product 1.3). Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bridge.model import Card
from bridge.rich import Paragraph, Span, Text, line
from bridge.slots import Urgency
from bridge.split import Blocks, plain
from bridge.texts.units import thousands
from bridge.view import Line
from bridge.wording import SUMMARY, Wording, fill, shortened

LINE_URGENCY = {
    "interrupting": Urgency.ASK,
    "held": Urgency.ASK,
    "resumed": Urgency.ASK,
    "refused": Urgency.ASK,
    "stopping": Urgency.END,
    "lost": Urgency.END,
    "step_failed": Urgency.END,
}
"""What people wait for, and what they must know. Everything else is prose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineCards:
    """Draws lines in one language."""

    words: Wording
    room: int
    """Characters of a post."""

    def told(self, spans: tuple[Span, ...], more: Blocks = ()) -> Card:
        body = shortened((Paragraph(spans), *more), self.room)
        return Card(summary=self.words.line(plain(body), SUMMARY) or "…", body=body)

    def draw(self, told: Line) -> Card:
        draw = _LINES.get(told.what)
        return draw(self, told) if draw is not None else self.told((Text(self.words.line(told.text, 300)),))

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
        more: Blocks = shortened(words.markdown(told.text), 1_500)  # the judge writes Markdown
        failed = told.facts.get("failed")
        if isinstance(failed, list | tuple) and failed:
            more = (*more, line(texts.missing), self.words.points(failed))
        return self.told((Text(head, strong=True), Text(counted)), more)

    def unverifiable_line(self, told: Line) -> Card:
        points = told.facts.get("points")
        found = points if isinstance(points, list | tuple) else ()
        return self.told(fill(self.words.texts.thread.unverifiable), (self.words.points(found),))

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


_LINES: dict[str, Callable[[LineCards, Line], Card]] = {
    "step": LineCards.step_line,
    "step_failed": LineCards.step_failed_line,
    "retry": LineCards.retry_line,
    "reset": LineCards.reset_line,
    "handoff": LineCards.handoff_line,
    "verdict": LineCards.verdict_line,
    "unverifiable": LineCards.unverifiable_line,
    "interrupting": LineCards.interrupting_line,
    "held": LineCards.held_line,
    "resumed": LineCards.resumed_line,
    "started_again": LineCards.started_again_line,
    "stopping": LineCards.stopping_line,
    "lost": LineCards.lost_line,
    "refused": LineCards.refused_line,
}
