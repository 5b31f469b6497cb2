"""Lines of a thread: step boundaries, verdicts, stops, losses, the oracle, the end."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadTexts:
    """One line for each thing that happens (product 1.3)."""

    step: str
    step_again: str
    step_failed: str
    compacted: str
    reset: str
    handoff: str
    achieved: str
    not_yet: str
    unreachable: str
    round_of: str
    missing: str
    unverifiable: str
    interrupting: str
    interrupting_now: str
    interrupt_words: str
    holding: str
    held: str
    held_how: str
    resumed: str
    resumed_words: str
    started_again: str
    stopping: str
    lost: str
    lost_how: str
    refused: str

    calls: str
    one_call: str
    subagents: str
    one_subagent: str
    now: str
    activity_now: str

    part: str
    oracle_asked: str
    oracle_answer: str
    oracle_answer_to: str
    oracle_cost: str
    oracle_failed: str

    end_done: str
    end_not_reached: str
    end_failed: str
    end_ended: str
    end_reason: str
    end_verdict: str
    end_unverified: str
    end_files: str
    end_more_files: str
    end_figures: str
    end_aside: str
    end_how: str


EN = ThreadTexts(
    step="Step {index}/{total}: {step}",
    step_again="Step {index}/{total}: {step}, taken up where it was",
    step_failed="Step {step} failed: {why}",
    compacted="The agent's context was summarised: {pre} to {post}.",
    reset="The agent's context was cleared.",
    handoff="The context is full; a fresh session takes over from a handoff note.",
    achieved="Verdict: goal achieved",
    not_yet="Verdict: not yet",
    unreachable="Verdict: the goal cannot be reached",
    round_of="round {round} of {rounds}",
    missing="Missing:",
    unverifiable="These points of the goal cannot be checked by looking at the result:",
    interrupting="{who} steps in. The run takes it up at its next message, at the latest in 10 seconds:",
    interrupting_now="{who} steps in, at once:",
    interrupt_words="{who} interrupts the run.",
    holding="Stop received from {who}. Cutting now; the run then waits.",
    held="Paused by {who}. It stays paused until somebody acts.",
    held_how="Reply to go on with your words, or `!continue`, or `!end`.",
    resumed="{who} let the run go on.",
    resumed_words="{who} let the run go on, with these words:",
    started_again="Started again by {who}: the run goes on where it was (start {attempt}).",
    stopping="The machine asked the run to stop; what it did is kept.",
    lost="The run has not been heard of for {time}. Its process is gone or cannot reach us.",
    lost_how="`!continue` starts it again where it was.",
    refused="Not done, {who}: {why}.",
    calls="{n} calls",
    one_call="1 call",
    subagents="{n} subagents",
    one_subagent="1 subagent",
    now="now: {what}",
    activity_now="Activity",
    part="(part {part} of {parts})",
    oracle_asked="{who} asks the oracle",
    oracle_answer="The oracle says",
    oracle_answer_to="The oracle, to {who}",
    oracle_cost="looked beside the run, cost {cost}",
    oracle_failed="The oracle could not answer: {why}",
    end_done="Done: {title}",
    end_not_reached="Goal not reached: {title}",
    end_failed="Failed: {title}",
    end_ended="Stopped by {who}: {title}",
    end_reason="Reason: {why}",
    end_verdict="Verdict: {verdict}",
    end_unverified="Not verified:",
    end_files="Files made or changed:",
    end_more_files="… and {n} more",
    end_figures="Cost {cost} · time {time}",
    end_aside="oracle {cost} besides",
    end_how="To go on from here: `!continue` and what you want next.",
)

ZH = ThreadTexts(
    step="第 {index}/{total} 步:{step}",
    step_again="第 {index}/{total} 步:{step},从原处接着做",
    step_failed="步骤 {step} 失败:{why}",
    compacted="代理的上下文已压缩:{pre} → {post}。",
    reset="代理的上下文已清空。",
    handoff="上下文满了,由新会话按交接文档接手。",
    achieved="判定:目标已达成",
    not_yet="判定:还没有达成",
    unreachable="判定:目标无法达成",
    round_of="第 {round} 轮,共 {rounds} 轮",
    missing="还缺:",
    unverifiable="目标中的这些点无法通过查看结果来验证:",
    interrupting="{who} 插话。运行会在下一条消息处接上,最迟 10 秒:",
    interrupting_now="{who} 插话,立即生效:",
    interrupt_words="{who} 打断了运行。",
    holding="收到 {who} 的停止。正在打断,之后运行会等待。",
    held="已被 {who} 暂停。在有人处理之前一直暂停。",
    held_how="直接回复就带着你的话继续,也可以用 `!continue` 或 `!end`。",
    resumed="{who} 让运行继续。",
    resumed_words="{who} 让运行带着这些话继续:",
    started_again="{who} 重新启动了运行,从原处继续(第 {attempt} 次启动)。",
    stopping="机器要求运行停下,已做的都保留着。",
    lost="已有 {time} 没有这次运行的消息。它的进程没了,或者联系不上我们。",
    lost_how="`!continue` 可以从原处继续。",
    refused="没有执行,{who}:{why}。",
    calls="{n} 次调用",
    one_call="1 次调用",
    subagents="{n} 个子代理",
    one_subagent="1 个子代理",
    now="正在:{what}",
    activity_now="活动",
    part="(第 {part} 部分,共 {parts} 部分)",
    oracle_asked="{who} 向旁路提问",
    oracle_answer="旁路回答",
    oracle_answer_to="旁路回答 {who}",
    oracle_cost="在运行之外查看,花费 {cost}",
    oracle_failed="旁路没能回答:{why}",
    end_done="完成:{title}",
    end_not_reached="没有达到目标:{title}",
    end_failed="失败:{title}",
    end_ended="已被 {who} 结束:{title}",
    end_reason="原因:{why}",
    end_verdict="判定:{verdict}",
    end_unverified="没有验证:",
    end_files="新建或改动的文件:",
    end_more_files="……还有 {n} 个",
    end_figures="花费 {cost} · 用时 {time}",
    end_aside="旁路另花 {cost}",
    end_how="要从这里接着做:`!continue` 加上你接下来想要的。",
)
