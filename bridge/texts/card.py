"""The card: the root of a run's thread."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CardTexts:
    """State words (product 1.2), figures, buttons."""

    summary: str
    queued: str
    starting: str
    working: str
    waiting: str
    paused_by: str
    checking: str
    reconnecting: str
    stopping: str
    stopping_by: str
    restarting: str
    done: str
    not_reached: str
    failed: str
    stopped_by: str
    lost: str
    somebody: str
    itself: str

    step: str
    step_round: str
    step_rounds: str
    run: str
    workspace: str
    cost: str
    cost_of: str
    time: str
    context: str
    subagents: str
    one_subagent: str
    started_by: str
    open_asks: str
    open_ask: str
    consulting: str
    because: str
    quiet_calls: str
    quiet_subagent: str
    quiet: str
    plan: str
    plan_more: str
    nothing_more: str

    stop: str
    stop_price: str
    go_on: str
    end: str
    end_sure: str
    oracle: str
    oracle_prompt: str


EN = CardTexts(
    summary="{state}: {title}",
    queued="Queued",
    starting="Starting",
    working="Working",
    waiting="Waiting for you",
    paused_by="Paused by {who}",
    checking="Checking the result",
    reconnecting="Reconnecting to the model",
    stopping="Stopping",
    stopping_by="Stopping, as {who} asked",
    restarting="Shutting down for a restart",
    done="Done",
    not_reached="Goal not reached",
    failed="Failed",
    stopped_by="Stopped by {who}",
    lost="Lost",
    somebody="somebody",
    itself="the run itself",
    step="{step} {index}/{total}",
    step_round="{step}, round {round}",
    step_rounds="{step}, round {round} of {rounds}",
    run="run {run}",
    workspace="in {workspace}",
    cost="{cost}",
    cost_of="{cost} of {budget}",
    time="{time}",
    context="context {level}",
    subagents="{n} subagents busy",
    one_subagent="1 subagent busy",
    started_by="started by {who}",
    open_asks="{n} questions wait for an answer: {which}.",
    open_ask="A question waits for an answer: {which}.",
    consulting="The oracle is looking at a question.",
    because="Because: {why}",
    quiet_calls="Quiet for {time}; {tool} has been running since ",
    quiet_subagent="Quiet for {time}; a subagent has been working since ",
    quiet="Quiet for {time}, and nothing is known to be running.",
    plan="Plan",
    plan_more="… and {n} more",
    nothing_more="`!continue` starts it again where it was.",
    stop="Stop",
    stop_price="Stop now? Subagents that are at work lose what they have not finished. The run then waits for you.",
    go_on="Continue",
    end="End",
    end_sure="End this run? It can be continued later.",
    oracle="Ask the oracle",
    oracle_prompt="What do you want to know? The run is not disturbed.",
)

ZH = CardTexts(
    summary="{state}:{title}",
    queued="排队中",
    starting="正在启动",
    working="工作中",
    waiting="等你回答",
    paused_by="已被 {who} 暂停",
    checking="正在检查结果",
    reconnecting="正在重新连接模型",
    stopping="正在停止",
    stopping_by="正在停止({who} 要求的)",
    restarting="正在为重启收尾",
    done="完成",
    not_reached="没有达到目标",
    failed="失败",
    stopped_by="已被 {who} 结束",
    lost="失联",
    somebody="某人",
    itself="运行自身",
    step="{step} {index}/{total}",
    step_round="{step},第 {round} 轮",
    step_rounds="{step},第 {round} 轮,共 {rounds} 轮",
    run="运行 {run}",
    workspace="工作区 {workspace}",
    cost="{cost}",
    cost_of="{cost} / {budget}",
    time="{time}",
    context="上下文 {level}",
    subagents="{n} 个子代理在忙",
    one_subagent="1 个子代理在忙",
    started_by="由 {who} 发起",
    open_asks="有 {n} 个问题等待回答:{which}。",
    open_ask="有一个问题等待回答:{which}。",
    consulting="旁路正在查一个问题。",
    because="原因:{why}",
    quiet_calls="已安静 {time};{tool} 仍在运行,开始于 ",
    quiet_subagent="已安静 {time};一个子代理仍在工作,开始于 ",
    quiet="已安静 {time},并且没有已知的活动。",
    plan="计划",
    plan_more="……还有 {n} 项",
    nothing_more="`!continue` 可以从原处继续。",
    stop="停止",
    stop_price="现在停止?正在工作的子代理会丢掉没做完的部分。之后运行会等你。",
    go_on="继续",
    end="结束",
    end_sure="结束这次运行?之后还可以继续。",
    oracle="旁路提问",
    oracle_prompt="想知道什么?不会打扰运行。",
)
