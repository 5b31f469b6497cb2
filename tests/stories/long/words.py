"""What the long story says in each language. Everything else about it is the same."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """One language's texts; the fields below the line are names that flower's catalogue gives."""

    request: str
    library: str
    """The answer to the first question."""
    brief: str
    goal: str
    rejected: str
    achieved: str
    handoff: str
    """Placeholders: generation, next."""
    mail: str
    # -- names and words of flower, typed from the specification
    clarify: str
    set_goal: str
    work: str
    verdict: str
    brief_name: str
    goal_name: str
    log_name: str
    handoff_name: str
    handoff_archive: str
    clarifier_is: str
    job_a: str
    job_b: str
    coordinator_is: str
    takes_over: str
    write_it_down: str
    interrupted: str
    feedback: str
    carry_on: str
    resumed: str
    degraded_mark: str


ZH = Words(
    request="做一个数行数的小程序",
    library="做成命令行",
    brief="""\
## 目标
一个数行数的命令行程序。

## 验收标准
- 跑起来会打印行数。

## 边界
- 只用标准库。

## 未知与假设
- 颜色:没有人答,不用颜色。
- 许可证:无人应答,先用 MIT。""",
    goal="""\
## 目标
程序能数行数。

## 判定清单
- 跑 `count`,看见行数。
- 有测试,而且通过。""",
    rejected="""\
## 结论
未达成

## 理由
没有测试。

## 未通过
- 有测试,而且通过。""",
    achieved="""\
## 结论
达成

## 理由
两条都看到了。

## 未通过
(无)""",
    handoff="""\
## 现在在做什么
第 {generation} 代接手的活。

## 已经定下的
命令行,因为人是这么答的。

## 走不通的路
GEN-{generation} 以前试过网页,太慢。

## 下一步
{next}

## 现场
count.py""",
    mail="也数一下空行",
    clarify="确认需求",
    set_goal="设定目标",
    work="干活",
    verdict="干活·判定#{round}",
    brief_name="需求.md",
    goal_name="目标.md",
    log_name="问答记录.md",
    handoff_name="交接-干活.md",
    handoff_archive="交接",
    clarifier_is="你是确认者",
    job_a="差事 A:设定目标",
    job_b="差事 B:判定一轮",
    coordinator_is="你是协调者",
    takes_over="你在接手一段还没干完的活",
    write_it_down="你的上下文快满了",
    interrupted="人打断了你,他说",
    feedback="上一轮没有达成目标",
    carry_on="接着上次的干",
    resumed="上一轮在中途被打断",
    degraded_mark="[降级:交接没写成]",
)

EN = Words(
    request="Write a small program that counts lines",
    library="A command line",
    brief="""\
## Goal
A command line program that counts lines.

## Acceptance criteria
- It prints the number of lines.

## Bounds
- Standard library only.

## Unknowns and assumptions
- Colour: nobody said, so none.
- Licence: nobody answered, MIT for now.""",
    goal="""\
## Goal
The program counts lines.

## Checklist
- Run `count`, see the number.
- There are tests and they pass.""",
    rejected="""\
## Conclusion
NOT ACHIEVED

## Reason
There are no tests.

## Failed
- There are tests and they pass.""",
    achieved="""\
## Conclusion
ACHIEVED

## Reason
Both were seen.

## Failed
(none)""",
    handoff="""\
## What I am doing
The work that generation {generation} takes over.

## Decided
A command line, because the person said so.

## Dead ends
Before GEN-{generation} a web page was tried: too slow.

## Next step
{next}

## Scene
count.py""",
    mail="count the empty lines as well",
    clarify="Clarify",
    set_goal="Goal",
    work="Work",
    verdict="Work·verdict#{round}",
    brief_name="brief.md",
    goal_name="goal.md",
    log_name="qa.md",
    handoff_name="handoff-Work.md",
    handoff_archive="handoffs",
    clarifier_is="You are the clarifier",
    job_a="Job A: set the goal",
    job_b="Job B: judge a round",
    coordinator_is="You are the coordinator",
    takes_over="You are taking over work that is not finished",
    write_it_down="Your context is nearly full",
    interrupted="The human interrupted you and says",
    feedback="The last round did not reach the goal",
    carry_on="Carry on where you left off",
    resumed="The last turn was cut short",
    degraded_mark="[degraded: no handoff was written]",
)

OF = {"zh": ZH, "en": EN}
