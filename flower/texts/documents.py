"""Names and words of the documents: brief, goal, verdict, handoff (behaviour 16, 19 to 21).

The names are what the parsers look for, so both catalogues are read whatever is spoken; only writing depends on it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentTexts:
    """Tuples of names: the first is the one that is written, the others are understood as well."""

    brief_title: str
    brief_note: str
    brief_goal: tuple[str, ...]
    brief_accept: tuple[str, ...]
    brief_bounds: tuple[str, ...]
    brief_unknowns: tuple[str, ...]
    unfilled: str
    """Stands for an empty section of a brief, and reads back as empty."""

    goal_statement: tuple[str, ...]
    goal_checks: tuple[str, ...]
    empty: str
    """Stands for an empty list of a goal, and reads back as empty."""
    amended: str
    """Before what a person changed in a goal afterwards."""
    unverifiable: str
    """The mark at the end of a check that cannot be verified where the run is."""

    verdict_conclusion: tuple[str, ...]
    verdict_reason: tuple[str, ...]
    verdict_failed: tuple[str, ...]
    achieved: str
    not_achieved: str
    unreachable: str
    feedback: str
    """Placeholder: reason."""
    no_reason: str
    feedback_failed: str
    feedback_go_on: str

    handoff_title: str
    handoff_title_of: str
    """Placeholder: step."""
    handoff_note: str
    handoff_doing: tuple[str, ...]
    handoff_decided: tuple[str, ...]
    handoff_deadends: tuple[str, ...]
    handoff_next: tuple[str, ...]
    handoff_scene: tuple[str, ...]
    handoff_opening: str
    """To the session that takes over, before the sections."""
    handoff_closing: str
    handoff_prompt: str
    """To the session that is full. Placeholders: used, window (tokens)."""
    degraded: str
    """Marks a handoff that no model wrote."""
    degraded_doing: str
    """Placeholders: mark, step, why."""
    degraded_why: str
    """Placeholder: why."""
    degraded_next: str
    degraded_scene: str
    """Placeholder: task, the beginning of the original one."""


ZH = DocumentTexts(
    brief_title="需求确认书",
    brief_note="由需求确认生成,已冻结。要改需求就直接改这个文件;要重新确认,把它删掉再跑。",
    brief_goal=("目标",),
    brief_accept=("验收标准", "验收条件", "验收"),
    brief_bounds=("边界", "范围边界", "不做什么"),
    brief_unknowns=("未知与假设", "未知项与假设", "未知项", "已知未知", "假设", "未知"),
    unfilled="(未填)",
    goal_statement=("目标", "完成标志"),
    goal_checks=("判定清单", "判定条件", "验收清单", "检查项", "判定"),
    empty="(空)",
    amended="(已修改)",
    unverifiable="[此环境无法验证:原因]",
    verdict_conclusion=("结论", "判定"),
    verdict_reason=("理由", "依据"),
    verdict_failed=("未通过",),
    achieved="达成",
    not_achieved="未达成",
    unreachable="无法达成",
    feedback="上一轮没有达成目标。理由:{reason}",
    no_reason="(没给理由)",
    feedback_failed="没有通过的检查项:",
    feedback_go_on="接着做:只补这些缺口,不要从头再来,也不要扩大范围。",
    handoff_title="交接书",
    handoff_title_of="交接书({step})",
    handoff_note="上一个会话的上下文满了,这是它写给下一个会话的。可以看,也**可以改**:接手的会话只读它。",
    handoff_doing=("现在在做什么", "现在在做", "当前进度", "进度"),
    handoff_decided=("已经定下的", "已定的事", "决策"),
    handoff_deadends=("走不通的路", "试过不行的", "排除的路"),
    handoff_next=("下一步",),
    handoff_scene=("现场", "文件"),
    handoff_opening=(
        "你在接手一段还没干完的活。上一个会话的上下文满了,它的对话你看不到:"
        "你手里只有这份交接和磁盘上的东西。需求和目标是冻结的,在工作台的 notes/ 里。"
    ),
    handoff_closing="从「下一步」接着做。不要从头再来,也不要回头去问人要背景。",
    handoff_prompt=(
        "你的上下文快满了(约 {used} / {window} tokens)。这个会话到此为止,一个全新的会话会接着干。"
        "它看不到这里的任何对话,只有你现在写的这份交接,和磁盘上的东西。\n\n"
        "不要再调用工具,现在就写。恰好五段,标题照抄:\n\n"
        "## 现在在做什么\n做到哪一步了,手上的这件事是什么。\n\n"
        "## 已经定下的\n每个决定连同**为什么**。没有理由的决定,接手的人会推翻它。\n\n"
        "## 走不通的路\n试过、不行的,以及为什么不行。这一段最贵,也最容易忘:漏一条,下一个会话就要把那几个小时再赔一遍。"
        "但没有就写(空),不要编。\n\n"
        "## 下一步\n具体到可以直接动手。\n\n"
        "## 现场\n相关的文件和目录,给路径。\n\n"
        "要自足:读的人什么都不知道。给路径,不要贴内容;需求和目标已经冻结在 notes/ 里,不要复述。"
    ),
    degraded="[降级:交接没写成]",
    degraded_doing="{mark} 正在做步骤「{step}」。上一个会话的上下文满了,没来得及写交接{why}。",
    degraded_why="(原因:{why})",
    degraded_next=(
        "先看现场再动手:读工作台的 notes/ 和已有的产出,看 git status 和 git log,弄清做到哪里了。"
        "不要以为什么都没做,也不要从头再来。"
    ),
    degraded_scene="原来的任务(开头部分):\n\n{task}",
)

EN = DocumentTexts(
    brief_title="Brief",
    brief_note=(
        "Written by the clarification and frozen. To change the requirement, edit this file; "
        "to clarify again, delete it and start once more."
    ),
    brief_goal=("Goal", "Goals", "Objective"),
    brief_accept=("Acceptance criteria", "Acceptance criterion", "Acceptance conditions", "Acceptance"),
    brief_bounds=("Bounds", "Boundaries", "Scope and bounds", "Out of scope"),
    brief_unknowns=(
        "Unknowns and assumptions",
        "Unknowns & assumptions",
        "Known unknowns",
        "Assumptions",
        "Unknowns",
    ),
    unfilled="(not filled in)",
    goal_statement=("Goal", "Done when"),
    goal_checks=("Checklist", "Check list", "Acceptance checklist", "Checks"),
    empty="(empty)",
    amended="(amended) ",
    unverifiable="[cannot be verified here: reason]",
    verdict_conclusion=("Conclusion", "Verdict"),
    verdict_reason=("Reason", "Reasons", "Grounds"),
    verdict_failed=("Failed", "Failed items", "Failed checks", "Not passed"),
    achieved="ACHIEVED",
    not_achieved="NOT ACHIEVED",
    unreachable="UNREACHABLE",
    feedback="The last round did not reach the goal. Reason: {reason}",
    no_reason="(no reason given)",
    feedback_failed="Checks that failed:",
    feedback_go_on="Go on from here: only close these gaps, do not start over, and do not widen the scope.",
    handoff_title="Handoff",
    handoff_title_of="Handoff ({step})",
    handoff_note=(
        "The context of the previous session was full; this is what it left to the next one. "
        "Read it, and **edit** it if need be: the session that takes over reads nothing else."
    ),
    handoff_doing=("What I am doing", "What is being done", "In progress", "Progress"),
    handoff_decided=("Decided", "Decisions", "What is decided"),
    handoff_deadends=("Dead ends", "Ways that do not work", "Ruled out"),
    handoff_next=("Next step", "Next steps", "Next"),
    handoff_scene=("Scene", "Files", "Where things are"),
    handoff_opening=(
        "You are taking over work that is not finished. The context of the session before you was full, and you cannot "
        "see its conversation: all you have is this document and what is on disk. The requirement and the goal are "
        "frozen, in the notes/ of the workbench."
    ),
    handoff_closing=("Carry on from the next step. Do not start over, and do not go back to a human for background."),
    handoff_prompt=(
        "Your context is nearly full (about {used} of {window} tokens). This session ends here; a fresh one carries "
        "on. It sees nothing of this conversation: it has the handoff that you write now, and what is on disk.\n\n"
        "Call no more tools, write it now. Exactly five sections, with these headings:\n\n"
        "## What I am doing\nHow far it is, and what is in hand.\n\n"
        "## Decided\nEach decision together with **why**. A decision without its reason will be overturned.\n\n"
        "## Dead ends\nWhat was tried and does not work, and why not. This is the dearest section and the one most "
        "often forgotten: each line that is missing costs the next session those hours once more. If there is none, "
        "write (empty); invent nothing.\n\n"
        "## Next step\nConcrete enough to begin with at once.\n\n"
        "## Scene\nThe files and directories that matter, as paths.\n\n"
        "It must stand alone: its reader knows nothing. Give paths, not contents. The requirement and the goal are "
        "frozen in notes/; do not repeat them."
    ),
    degraded="[degraded: no handoff was written]",
    degraded_doing=(
        "{mark} In the middle of step {step!r}. The context of the previous session was full, and it left no "
        "handoff{why}."
    ),
    degraded_why=" (reason: {why})",
    degraded_next=(
        "Look before you act: read the notes/ of the workbench and what was made so far, see git status and git log, "
        "and find out how far the work is. Do not assume that nothing was done, and do not start over."
    ),
    degraded_scene="The original task (its beginning):\n\n{task}",
)
