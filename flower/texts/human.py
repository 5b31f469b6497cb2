"""What an agent and a person read of each other: questions, mail, the record (behaviour 6.9 to 6.11)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanTexts:
    # Tools
    ask_tool: str
    ask_question: str
    ask_options: str
    inbox_tool: str

    # Answers where no person answered
    timeout: str
    over_budget: str
    declined: str
    declined_reason: str
    """Follows `declined` where a reason was given. Placeholder: reason."""
    empty_question: str

    # Inbox
    no_mail: str
    mail_lead: str
    mail_kept: str
    """After the mail, when it was written into the brief as well."""
    mail_not_kept: str

    # Record and amendments
    log_head: str
    log_note: str
    log_options: str
    """Placeholder: options."""
    log_said: str
    amend_head: str
    amend_label: str
    amend_heading: str
    """Placeholders: label, time."""


ZH = HumanTexts(
    ask_tool=(
        "向人提一个问题,等他回答,回答就是这次调用的结果。一次只问一个问题;"
        "能列出选项就列出来。可能没有人在:等不到回答时会告诉你,那就按自己的判断决定,不要重复问。"
    ),
    ask_question="问题本身,一句话说清楚在问什么、为什么要问。",
    ask_options="可选。几个互斥的选项,每个一行之内。",
    inbox_tool="看一眼人在运行中有没有主动说什么。不会等待,没有就马上返回。每完成一个阶段看一次。",
    timeout=(
        "无人应答。按你自己的判断继续,并把这个问题和你采用的假设写进「未知与假设」那一段。不要重复提问,也不要停在这里。"
    ),
    over_budget="提问额度已用完。不要再问了 —— 把剩下的不确定项写进「未知与假设」那一段,按你自己的判断继续。",
    declined="对方跳过了这个问题。按你自己的判断继续,并把假设写进「未知与假设」。",
    declined_reason="(对方说:{reason})",
    empty_question="问题是空的。把问题写清楚再问。",
    no_mail="收件箱是空的。继续干活,不用理会。",
    mail_lead="人在运行中说了这些,按时间先后:",
    mail_kept="这些话已经追加进需求确认书,后面的步骤读得到。",
    mail_not_kept="注意:这些话没有落盘。后面的步骤读不到,要你自己把它们带过步骤的边界。",
    log_head="# 需求问答记录",
    log_note="> 自动追加,不进任何上下文,只是留个记录。",
    log_options="选项:{options}",
    log_said="人主动说",
    amend_head="# 运行中的补充",
    amend_label="运行中补充",
    amend_heading="## {label}({time})",
)

EN = HumanTexts(
    ask_tool=(
        "Ask the human one question and wait; the answer is the result of this call. One question at a time, with "
        "options where there are some. Nobody may be there: if no answer comes you are told so; then decide by "
        "yourself and do not ask again."
    ),
    ask_question="The question in one sentence: what you need to know and why.",
    ask_options="Optional. A few options that exclude each other, each shorter than a line.",
    inbox_tool=(
        "Look whether the human has said something during the run. Does not wait: returns at once when there is "
        "nothing. Look after each milestone."
    ),
    timeout=(
        "Nobody answered. Carry on by your own judgement, and put this question and the assumption you made into the "
        'section "Unknowns and assumptions". Do not ask again and do not stop here.'
    ),
    over_budget=(
        "The budget of questions is used up. Ask no more: put what is still uncertain into the section "
        '"Unknowns and assumptions" and carry on by your own judgement.'
    ),
    declined=(
        "The human skipped this question. Carry on by your own judgement, and put the assumption into "
        '"Unknowns and assumptions".'
    ),
    declined_reason=" (They said: {reason})",
    empty_question="The question is empty. Write it out, then ask.",
    no_mail="The inbox is empty. Carry on with the work.",
    mail_lead="The human said this during the run, in order of time:",
    mail_kept="These words have been added to the brief; later steps can read them.",
    mail_not_kept=(
        "Note: these words are not on disk. Later steps cannot read them, so pass them on yourself when the step ends."
    ),
    log_head="# Questions and answers",
    log_note="> Appended automatically; enters no context, it is a record only.",
    log_options="Options: {options}",
    log_said="The human said",
    amend_head="# Added during the run",
    amend_label="Added during the run",
    amend_heading="## {label} ({time})",
)
