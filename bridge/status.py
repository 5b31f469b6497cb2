"""What `!status` and `!help` answer: from the view, never by asking the agent (SS-7). Pure."""

from __future__ import annotations

from bridge.hostile import one_line
from bridge.texts import Texts
from bridge.texts.units import money
from bridge.view import View
from bridge.wording import Wording


def status_text(view: View, *, texts: Texts, now: float) -> str:
    """Say where a run stands, a fact a line. Back-ticks mark code."""
    words, helping = Wording(texts=texts), texts.helping
    asks = view.open_asks
    lines = [texts.card.summary.format(state=words.state(view, waiting=bool(asks)), title=words.title(view))]
    if view.reason and view.state != "working":
        lines.append(texts.card.because.format(why=words.line(view.reason, 300)))
    if step := words.step(view):
        lines.append(helping.status_step.format(step=step))
    spent = money(view.cost)
    if view.budget is not None:
        spent = helping.status_budget.format(cost=spent, budget=money(view.budget))
    elapsed = view.duration if view.duration is not None else now - (view.created or now)
    time = texts.units.duration(elapsed)
    lines.append(helping.status_figures.format(cost=spent, time=time, run=view.run, attempt=max(1, view.starts)))
    lines += [
        helping.status_ask.format(
            number=ask.label, time=texts.units.duration(now - ask.at), question=one_line(words.hide(ask.question), 150)
        )
        for ask in asks
    ]
    if not asks and not view.over:
        lines.append(helping.status_no_ask)
    return "\n".join(lines)


def help_text(view: View, *, texts: Texts) -> str:
    """Say what can be done in this thread now, a command a line."""
    words, helping = Wording(texts=texts), texts.helping
    if view.over or view.state == "lost":
        commands, plain = helping.commands_over, helping.words_over
    elif view.state == "held":
        commands, plain = helping.commands_held, helping.words_held
    else:
        commands, plain = helping.commands_live, helping.words_live
    head = helping.title.format(state=words.state(view, waiting=bool(view.open_asks)))
    return "\n".join([head, *(f"`{command}` {effect}" for command, effect in commands), plain, helping.aside])
