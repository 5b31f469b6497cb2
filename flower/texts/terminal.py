"""What the terminal shows of a run's events (API 16.10, behaviour 23.4). Icons live with the code."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalTexts:
    # Steps and figures
    woke: str
    """Placeholder: count."""
    context: str
    """Placeholder: size."""
    failed: str
    """A query that ended with an error. Placeholder: how."""
    left_out: str
    """Placeholder: count."""
    no_words: str
    """A failed tool call that says nothing."""
    cannot_show: str
    """Placeholders: kind, error."""

    # Questions and mail
    remaining: str
    """Placeholder: count."""
    queued: str
    """Below a question that comes while others wait. Placeholder: count."""
    nobody: str
    over_budget: str
    declined: str
    empty_question: str
    asked: str
    """Behind an outcome that does not stand below its question. Placeholder: question."""
    no_option: str
    """Placeholders: number, count."""
    received: str
    """Placeholder: kept."""
    kept: str
    not_kept: str
    delivered: str
    """Placeholder: text."""

    # Handover
    doing: str
    decided: str
    dead_ends: str
    next: str
    degraded: str
    document: str
    """Placeholder: path."""

    # Goal
    verdict: str
    """Placeholders: round, rounds, state."""
    unverifiable: str
    """Placeholders: count, total."""
    goal_file: str
    """Placeholder: path."""

    # Trouble
    compacted: str
    """Placeholders: trigger, pre, post."""
    compacted_little: str
    """Placeholders: trigger, pre, post."""
    conversation_reset: str
    api_retry: str
    """Placeholders: error, seconds, attempt, most."""


ZH = TerminalTexts(
    woke="第 {count} 次唤醒",
    context="上下文 {size}",
    failed="这一轮出错了{how}",
    left_out="(还有 {count} 个字符没有显示)",
    no_words="失败了,没有说明",
    cannot_show="(这条 {kind} 显示不出来:{error})",
    remaining="(还能问 {count} 次)",
    queued="(前面还有 {count} 个问题等着,先答最早的那个)",
    nobody="无人应答 —— 它按自己的判断继续,假设会写进「未知与假设」",
    over_budget="提问额度用完 —— 它按自己的判断继续",
    declined="已跳过",
    empty_question="问题是空的,没有问出去",
    asked="(问的是:{question})",
    no_option="(选项只有 1 到 {count},没有 {number}:原样当作回答)",
    received="收到 (它下次查收件箱时会看到;{kept})",
    kept="已追加进确认书",
    not_kept="没有确认书可落盘 —— 它可能活不过下一个步骤",
    delivered="它看到了:{text}",
    doing="现在在做什么",
    decided="已经定下的",
    dead_ends="走不通的路",
    next="下一步",
    degraded="交接没写成,用的是降级的一份:细节可能丢了,新会话会先看现场。",
    document="交接书:{path}",
    verdict="判定 第 {round}/{rounds} 轮:{state}",
    unverifiable="目标的 {total} 条判定里有 {count} 条在这个环境里验不了,到判定时一定过不去,运行会停在那里:",
    goal_file="现在改还来得及:{path}",
    compacted="压缩({trigger}) {pre} → {post} tokens",
    compacted_little="微压缩({trigger}) {pre} → {post} tokens",
    conversation_reset="会话被清空了",
    api_retry="模型接口出错({error}),{seconds} 秒后第 {attempt}/{most} 次重试",
)

EN = TerminalTexts(
    woke="goes on (start no. {count})",
    context="context {size}",
    failed="this turn ended with an error{how}",
    left_out="({count} more characters are not shown)",
    no_words="failed without a word",
    cannot_show="(this {kind} cannot be shown: {error})",
    remaining="({count} more questions allowed)",
    queued="({count} asked earlier still wait; the oldest is answered first)",
    nobody='nobody answered: it goes on by its own judgement; the assumption goes into "Unknowns and assumptions"',
    over_budget="the budget of questions is used up: it goes on by its own judgement",
    declined="skipped",
    empty_question="the question was empty and was not asked",
    asked="(asked: {question})",
    no_option="(there are options 1 to {count} and no {number}: taken as the answer itself)",
    received="received (it will see this when it next looks into its inbox; {kept})",
    kept="added to the brief",
    not_kept="there is no brief to keep it in, so it may not outlive this step",
    delivered="it has read: {text}",
    doing="Doing now",
    decided="Decided",
    dead_ends="Dead ends",
    next="Next",
    degraded=(
        "The handover could not be written; a mechanical one stands in. Details may be lost: the new session looks at "
        "the scene first."
    ),
    document="handover: {path}",
    verdict="verdict, round {round} of {rounds}: {state}",
    unverifiable=(
        "{count} of the {total} check items cannot be verified here. They are bound to fail at the verdict and to stop "
        "the run:"
    ),
    goal_file="The goal can still be edited: {path}",
    compacted="compacted ({trigger}) {pre} → {post} tokens",
    compacted_little="compacted a little ({trigger}) {pre} → {post} tokens",
    conversation_reset="the conversation was reset",
    api_retry="the model's interface fails ({error}), retry {attempt} of {most} in {seconds} s",
)
