"""What steps say to agents and to people: names, prompts, questions (behaviour 17 to 22)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowTexts:
    # Names: keys in ctx, manifest and lineage, and files in the workbench's notes.
    clarify: str
    set_goal: str
    work: str
    judge_label: str
    """Placeholder: step."""
    brief_name: str
    goal_name: str
    log_name: str
    coordinator: str

    # Workflow
    no_session: str
    """Placeholders: step, source."""
    bad_on_fail: str
    """Placeholders: step, value."""

    # Clarify
    clarify_resume: str

    # Goal
    goal_prompt: str
    """Placeholder: brief."""
    no_brief: str
    unverifiable: str
    """Placeholders: count, total, path, items."""
    verdict_prompt: str
    """Placeholders: goal, report."""
    no_goal: str
    no_report: str
    no_runtime: str
    """Placeholder: step."""
    unclear: str
    judge_failed: str
    """Placeholder: error."""
    unreachable: str
    """Placeholder: reason."""
    accept: str
    change: str
    wrong: str
    accept_prefix: str
    """An answer that begins like this, in any case, is the first option; the same for the second below."""
    change_prefix: str
    new_goal: str
    goal_changed: str
    """Placeholder: goal."""
    misjudged: str
    """Placeholder: words."""
    nobody: str
    """Placeholders: reason, path."""

    # Starter flow
    need_request: str
    clarify_prompt: str
    """Placeholder: request."""
    worker_description: str
    worker_prompt: str
    wake_label: str
    work_prompt: str
    """Placeholder: brief."""
    work_checks: str
    """Placeholder: goal."""
    work_resume: str
    """Placeholder: words."""
    work_go_on: str
    work_new_checks: str
    """Placeholder: goal."""


ZH = WorkflowTexts(
    clarify="确认需求",
    set_goal="设定目标",
    work="干活",
    judge_label="{step}·判定",
    brief_name="需求.md",
    goal_name="目标.md",
    log_name="问答记录.md",
    coordinator="协调者",
    no_session="步骤「{step}」要接着「{source}」的会话,但「{source}」没有产生 session。",
    bad_on_fail="步骤「{step}」的 on_fail 是 {value!r},只能是 stop、skip 或 continue。",
    clarify_resume=(
        "你在接着做一次没做完的需求确认,**不是重新开始**。问过什么、对方怎么答的,上面都有,别再问一遍。\n"
        "只补还缺的部分,然后给出完整的四段确认书:目标、验收标准、边界、未知与假设。\n"
        "上一次为什么断了不用管。"
    ),
    goal_prompt=(
        "差事 A:设定目标。把下面这份需求确认书变成一个可以当场判定的目标,"
        "先看清你在什么环境里,再给出「目标」和「判定清单」两段。\n\n"
        "--- 需求确认书 ---\n{brief}\n--- 完 ---"
    ),
    no_brief="(没有确认书)",
    unverifiable=(
        "目标的 {total} 条判定里有 {count} 条在这个环境里验不了,到判定时一定过不去,运行会停在那里。"
        "现在改还来得及:{path}。这几条是:{items}"
    ),
    verdict_prompt=(
        "差事 B:判定一轮。下面是目标和判定清单,还有干活的一方这一轮的回话。\n"
        "自己去看现场,一条一条对,不要凭回话下结论;没有证据的条目就是没通过。"
        "然后给出「结论」「理由」「未通过」三段。\n\n"
        "--- 目标 ---\n{goal}\n--- 完 ---\n\n"
        "--- 这一轮的回话(只供参考) ---\n{report}\n--- 完 ---"
    ),
    no_goal="(没有目标)",
    no_report="(这一轮没有回话)",
    no_runtime="步骤「{step}」要判定,但 ctx 里没有 Runtime,判定者跑不起来。没有判定就不能算通过。",
    unclear="判定者没给出明确结论,按未达成处理。",
    judge_failed="判定没跑完:{error}",
    unreachable="判定说这个目标无法达成,再来一轮也没用。理由:\n{reason}\n\n怎么办?",
    accept="接受这个结果,就这样往下走",
    change="修改目标",
    wrong="你判断错了,继续做",
    accept_prefix="接受这个",
    change_prefix="修改",
    new_goal="目标改成什么?写出要改的部分就行,原来的目标会留着。",
    goal_changed="目标改了,按新的来。新的目标:{goal}",
    misjudged="人认为判断有误,这个目标做得到。他的话:{words}",
    nobody=(
        "判定说目标无法达成,去问人时无人应答,所以停在这里。理由:{reason}\n目标在 {path},每一轮的账在 manifest.json。"
    ),
    need_request="要给一句诉求,例如 flower '帮我做一个 X'",
    clarify_prompt="诉求:\n{request}\n\n把它问清楚,然后交出四段的需求确认书。",
    worker_description="写代码与测试。要动手实现的活派给它。",
    worker_prompt="你负责实现。每改一处就跑一次验证,别攒到最后。",
    wake_label="唤醒时追加",
    work_prompt="把下面这份需求做出来。它是冻结的:要改需求,由人来改。\n\n{brief}",
    work_checks="做完以后会有人照着这份清单逐条判定,看的是产物:\n\n{goal}",
    work_resume="接着上次的干。人这次说:\n\n{words}",
    work_go_on="接着上次的干。先说一句你接下来要做什么,再动手。",
    work_new_checks="判定清单也换了新的,以后照这份判:\n\n{goal}",
)

EN = WorkflowTexts(
    clarify="Clarify",
    set_goal="Goal",
    work="Work",
    judge_label="{step}·verdict",
    brief_name="brief.md",
    goal_name="goal.md",
    log_name="qa.md",
    coordinator="Coordinator",
    no_session="Step {step!r} resumes the session of {source!r}, but {source!r} has produced no session.",
    bad_on_fail="on_fail of step {step!r} is {value!r}; it must be stop, skip or continue.",
    clarify_resume=(
        "You are going on with a clarification that was not finished. **This is not a new start.** What was asked and "
        "what was answered is above; do not ask it again.\n"
        "Fill in only what is still missing, then give the complete brief with its four sections: Goal, Acceptance "
        "criteria, Bounds, Unknowns and assumptions.\n"
        "Never mind why it broke off last time."
    ),
    goal_prompt=(
        "Job A: set the goal. Turn the brief below into a goal that can be judged on the spot. Look where you are "
        "first, then give the two sections Goal and Checklist.\n\n"
        "--- Brief ---\n{brief}\n--- End ---"
    ),
    no_brief="(no brief)",
    unverifiable=(
        "{count} of the {total} check items cannot be verified here. They are bound to fail at the verdict and to stop "
        "the run. The goal can still be edited: {path}. Items: {items}"
    ),
    verdict_prompt=(
        "Job B: judge a round. Below are the goal with its checklist, and what the working side reported.\n"
        "Look at the scene yourself, item by item; do not rely on the report. An item without evidence has failed. "
        "Then give the three sections Conclusion, Reason and Failed.\n\n"
        "--- Goal ---\n{goal}\n--- End ---\n\n"
        "--- Report of this round (for orientation only) ---\n{report}\n--- End ---"
    ),
    no_goal="(no goal)",
    no_report="(no report this round)",
    no_runtime=(
        "Step {step!r} is to be judged, but ctx holds no Runtime to run the judge. Without a verdict nothing passes."
    ),
    unclear="The judge gave no clear conclusion; this is treated as not achieved.",
    judge_failed=" The judging did not finish: {error}",
    unreachable=(
        "The verdict is that this goal is unreachable; another round would not help. Reason:\n{reason}\n\nWhat now?"
    ),
    accept="Accept this result and go on",
    change="Change the goal",
    wrong="You are wrong, carry on",
    accept_prefix="accept",
    change_prefix="change",
    new_goal="What is the goal to be? Write what changes; the old goal is kept.",
    goal_changed="The goal was changed, go by the new one. New goal: {goal}",
    misjudged="A person considers the verdict wrong and the goal reachable. In their words: {words}",
    nobody=(
        "The verdict is that the goal is unreachable, and nobody answered when asked what to do, so the run stops. "
        "Reason: {reason}\nThe goal is in {path}, the account of each round in manifest.json."
    ),
    need_request="Say in one sentence what is wanted, for example: flower 'build me an X'",
    clarify_prompt="Request:\n{request}\n\nClarify it, then hand in the brief with its four sections.",
    worker_description="Writes code and tests. Whatever has to be implemented goes to it.",
    worker_prompt="You implement. Verify after each change, do not save it up for the end.",
    wake_label="Added when woken",
    work_prompt="Carry out this brief. It is frozen: only a person changes the requirement.\n\n{brief}",
    work_checks="When you are done, somebody judges the artifacts item by item against this checklist:\n\n{goal}",
    work_resume="Carry on where you left off. The person now says:\n\n{words}",
    work_go_on="Carry on where you left off. First say in one sentence what you will do next, then do it.",
    work_new_checks="The checklist is a new one as well; from now on this is what will be judged:\n\n{goal}",
)
