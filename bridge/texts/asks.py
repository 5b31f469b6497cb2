"""Questions of the agent, and how they were settled."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AskTexts:
    """An ask while it is open, and each of its ends in words of its own (product 1.4)."""

    asks: str
    summary: str
    settled_summary: str
    continued: str
    waits_until: str
    waits: str
    typed_answer: str
    number_answer: str
    more_numbers: str
    words: str
    words_prompt: str
    skip: str
    answered: str
    sent: str
    declined: str
    declined_sent: str
    timeout: str
    over_budget: str
    withdrawn: str
    over: str
    pick_summary: str
    pick_body: str
    pick_quote: str
    pick_answer: str
    pick_mail: str


EN = AskTexts(
    asks="{number} · The agent asks",
    summary="{title}: {number}: {question}",
    settled_summary="{number}: {outcome}",
    continued="{number} · The agent asks (part {part} of {parts})",
    waits_until="The run waits for this. Without an answer it decides by itself at ",
    waits="The run waits for this until somebody answers.",
    typed_answer="Reply in this thread to answer.",
    number_answer="Tap, or reply with the number.",
    more_numbers="Only the first {shown} have a button: reply with the number for any other.",
    words="Answer in words",
    words_prompt="Your answer to {number}",
    skip="Skip, let it decide",
    answered="{who} answered",
    sent="{who} answered; on its way to the agent",
    declined="{who} skipped this; the agent decides",
    declined_sent="{who} skipped this; on its way to the agent",
    timeout="Nobody answered in time. The agent went on with its own judgment.",
    over_budget="Not waited for: the run has used up its questions. The agent went on with its own judgment.",
    withdrawn="Withdrawn: the run was cut before an answer came. It may ask again.",
    over="The run is over; this question no longer waits.",
    pick_summary="Is this an answer, or a note for the agent?",
    pick_body="Is this an answer, or a note for the agent? Nothing happens until you choose.",
    pick_quote="{who} wrote:",
    pick_answer="Answer to {number}",
    pick_mail="Note for the agent",
)

ZH = AskTexts(
    asks="{number} · 代理提问",
    summary="{title}:{number}:{question}",
    settled_summary="{number}:{outcome}",
    continued="{number} · 代理提问(第 {part} 部分,共 {parts} 部分)",
    waits_until="运行在等这个回答。没有回答的话,它会自己决定,时间:",
    waits="运行会一直等到有人回答。",
    typed_answer="在本消息列里回复即可作答。",
    number_answer="点按钮,或回复编号。",
    more_numbers="只有前 {shown} 项有按钮,其他的请回复编号。",
    words="用文字回答",
    words_prompt="对 {number} 的回答",
    skip="跳过,让它决定",
    answered="{who} 已回答",
    sent="{who} 已回答,正在送达",
    declined="{who} 跳过了,由代理决定",
    declined_sent="{who} 跳过了,正在送达",
    timeout="没有人及时回答。代理按自己的判断继续了。",
    over_budget="没有等待:这次运行的提问额度已用完。代理按自己的判断继续了。",
    withdrawn="已撤回:还没有回答,运行就被打断了。它可能会再问。",
    over="运行已结束,这个问题不再等待。",
    pick_summary="这是回答,还是给代理的留言?",
    pick_body="这是回答,还是给代理的留言?你选择之前什么都不会发生。",
    pick_quote="{who} 写道:",
    pick_answer="回答 {number}",
    pick_mail="给代理的留言",
)
