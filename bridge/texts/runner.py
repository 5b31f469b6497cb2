"""What a runner says in its own news: why something was not done, and notes that it writes for the agent."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerTexts:
    """Fragments of a sentence where they are reasons: they stand behind a colon, and a full stop follows."""

    older_ask: str
    ask_over: str
    ask_over_kept: str
    no_words: str
    already_held: str
    not_held: str
    ending: str
    ended_first: str
    unread: str
    before_restart: str
    oracle_over: str
    no_answer: str
    broke: str
    late_answer: str
    """For the agent's inbox."""
    unknown_ask: str
    full_disk: str
    told_to_stop: str


EN = RunnerTexts(
    older_ask="the question was asked before the run was started again",
    ask_over="the question no longer waits",
    ask_over_kept="the question no longer waited, so the answer went to the agent's inbox",
    no_words="there were no words in it",
    already_held="the run is held already",
    not_held="the run is not held",
    ending="the run is ending",
    ended_first="the run ended before it could be taken up",
    unread="the run ended before the agent looked into its inbox; it reads this when the run is continued",
    before_restart="it was meant for the run before it was started again",
    oracle_over="the run ended before there was an answer",
    no_answer="no answer",
    broke="something went wrong in the runner ({error})",
    late_answer="(A late answer to “{question}”)\n{answer}",
    unknown_ask="an earlier question",
    full_disk="the run's log cannot be written: {trouble}",
    told_to_stop="the runner was told to stop",
)

ZH = RunnerTexts(
    older_ask="这个问题是运行重新启动之前问的",
    ask_over="这个问题已经不再等待",
    ask_over_kept="这个问题已经不再等待,回答已放进代理的收件箱",
    no_words="里面没有文字",
    already_held="运行已经暂停",
    not_held="运行没有暂停",
    ending="运行正在结束",
    ended_first="还没来得及处理,运行就结束了",
    unread="代理还没查看收件箱,运行就结束了;继续运行时它会读到",
    before_restart="这是针对重新启动之前的运行的",
    oracle_over="还没有答案,运行就结束了",
    no_answer="没有答案",
    broke="运行程序出错了({error})",
    late_answer="(对“{question}”的迟到回答)\n{answer}",
    unknown_ask="之前的一个问题",
    full_disk="运行的日志无法写入:{trouble}",
    told_to_stop="运行程序被要求停止",
)

_CATALOGUES = {"en": EN, "zh": ZH}


def of(language: str) -> RunnerTexts:
    """The texts of a language.

    Raises:
        ValueError: there are none in it.
    """
    try:
        return _CATALOGUES[language]
    except KeyError:
        raise ValueError(f"no texts in {language!r}") from None
