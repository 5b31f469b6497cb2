"""`!help` and `!status`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class HelpTexts:
    """Tables of commands for the thread's state, and the status reply."""

    title: str
    commands_live: tuple[tuple[str, str], ...]
    commands_held: tuple[tuple[str, str], ...]
    commands_over: tuple[tuple[str, str], ...]
    words_live: str
    words_held: str
    words_over: str
    aside: str
    status_step: str
    status_figures: str
    status_ask: str
    status_no_ask: str
    status_budget: str


EN = HelpTexts(
    title="What you can do here ({state}):",
    commands_live=(
        ("!stop words", "cut in: the same session goes on with these words"),
        ("!stop", "cut at once, then wait for a person"),
        ("!answer q2 words", "answer a question by its number"),
        ("!skip q2", "let the agent decide"),
        ("?question", "ask the oracle, which looks without disturbing the run"),
        ("!status", "where it stands"),
        ("!end reason", "end the run in order; it can be continued later"),
        ("!kill yes", "end its processes at once"),
    ),
    commands_held=(
        ("!continue", "go on; with words: go on with these words"),
        ("!end reason", "end the run in order; it can be continued later"),
        ("?question", "ask the oracle"),
        ("!status", "where it stands"),
        ("!kill yes", "end its processes at once"),
    ),
    commands_over=(
        ("!continue words", "start it again where it was, with these words"),
        ("!status", "how it ended"),
    ),
    words_live="Plain words reach the agent's inbox; they do not interrupt it.",
    words_held="Plain words let the run go on with them.",
    words_over="Plain words do nothing by themselves now; the bot says how to go on with them.",
    aside="Messages that begin with // or address somebody else are left alone.",
    status_step="Step: {step}",
    status_figures="Cost {cost}, time {time}, run {run}, start {attempt}",
    status_ask="{number} waits since {time}: {question}",
    status_no_ask="No question is waiting.",
    status_budget="{cost} of {budget}",
)

ZH = HelpTexts(
    title="这里可以做的({state}):",
    commands_live=(
        ("!stop 话", "打断:同一个会话带着这些话继续"),
        ("!stop", "立即打断,然后等人"),
        ("!answer q2 话", "按编号回答问题"),
        ("!skip q2", "让代理自己决定"),
        ("?问题", "旁路提问,不打扰运行"),
        ("!status", "现在的情况"),
        ("!end 原因", "有序地结束,之后可以继续"),
        ("!kill yes", "立即结束进程"),
    ),
    commands_held=(
        ("!continue", "继续;带话就带着这些话继续"),
        ("!end 原因", "有序地结束,之后可以继续"),
        ("?问题", "旁路提问"),
        ("!status", "现在的情况"),
        ("!kill yes", "立即结束进程"),
    ),
    commands_over=(
        ("!continue 话", "从原处带着这些话继续"),
        ("!status", "结束的情况"),
    ),
    words_live="普通的话会进代理的收件箱,不会打断它。",
    words_held="普通的话会让运行带着它们继续。",
    words_over="普通的话现在不起作用,会告诉你怎样带着它们继续。",
    aside="以 // 开头或写给别人的消息不作处理。",
    status_step="步骤:{step}",
    status_figures="花费 {cost},用时 {time},运行 {run},第 {attempt} 次启动",
    status_ask="{number} 已等待 {time}:{question}",
    status_no_ask="没有问题在等待。",
    status_budget="{cost} / {budget}",
)
