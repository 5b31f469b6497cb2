"""What a runtime says to people and to the session that it runs: retries, interrupts, budget, side questions."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningTexts:
    # Retries
    retry: str
    """Placeholders: attempt, kind."""
    still_offline: str
    """Added to the error when the network did not come back. Placeholder: wait."""

    # Interrupts
    interrupted_with_words: str
    interrupted: str
    resume_with_words: str
    """Placeholder: words."""
    resume_plain: str
    interrupt_note: str

    held_back: str
    """To the model, for a call that was about to begin when a person interrupted or ended the run."""

    # Handover. Sizes are in thousands of tokens.
    near: str
    """Placeholders: context, window, left."""
    writing: str
    """Placeholders: context, window."""
    handed_over: str
    """Placeholder: step."""
    handoff_no_tools: str
    """To the model, for a tool call in the turn that writes the handoff."""
    handoff_name: str
    """The file in the workbench's notes. Placeholder: step."""
    handoff_archive: str
    """The folder below the archive for the ones before it."""
    degraded_note: str
    """In `StepResult.errors`. Placeholder: why."""
    handoff_unkept: str
    """In `StepResult.errors`, when the document could not be written to disk. Placeholder: error."""
    why_overflow: str
    why_missing: str
    """Placeholder: sections."""
    too_many_generations: str
    """Placeholders: count, at, window."""
    burning: str
    """Placeholders: window, headroom."""
    window_remembered: str
    """Added to both where the window is one that overflowed before. Placeholder: path."""

    # Limits and warnings
    workspace_gone: str
    mirror_lost: str
    """Placeholder: error."""
    silent: str
    """The error of an attempt in which nothing came for too long. Placeholder: minutes."""
    plugin_broken: str
    """Placeholder: errors."""
    no_plugin: str
    """Placeholder: path."""
    budget_spent: str
    """Placeholders: limit, spent. Holds the word `budget`, by which it is known as fatal."""
    no_wall: str
    """Placeholder: role."""
    model_mismatch: str
    """Placeholders: want, served."""
    child_said: str
    """Added to the error of a program that died. Placeholder: lines."""

    # Side questions
    aside: str
    """The name of the step."""
    aside_prompt: str
    """Placeholders: question, events, workbench."""
    aside_workbench: str
    """Placeholder: path. The index itself stands in the system prompt."""
    aside_no_workbench: str
    no_events: str
    main_thread: str
    subagent: str


ZH = RunningTexts(
    retry="第 {attempt} 次失败({kind}),准备重试",
    still_offline=" | 网络在 {wait} 内未恢复",
    interrupted_with_words="已打断,带着你的话续跑",
    interrupted="已打断,继续跑",
    resume_with_words="人打断了你,他说:\n\n{words}\n\n按这个调整,然后接着做。",
    resume_plain="人打断了你一下,没有别的要求,现在继续。",
    interrupt_note=(
        "说明:这次打断是在两条消息之间切断的,很干净。当时正在进行的工具调用(提问、收件箱、subagent 里的命令)"
        "可能会显示“被中断”或者 user doesn't want to take this action。这是打断的正常副作用,"
        "不是环境故障,也不代表人否决了那个操作。不要去查原因,不要改变策略,不要加防御性的规矩,"
        "结果还用得着的,重试一次就行。"
    ),
    held_back="人刚刚打断了这个运行,这次调用没有执行。",
    near="上下文 {context:.1f}K/{window:.0f}K · 还有约 {left:.0f}K 到换代",
    writing="上下文 {context:.1f}K/{window:.0f}K —— 正在写交接…",
    handed_over="上下文满了,写交接换新会话({step})",
    handoff_no_tools="这一轮只写交接,不再干活。不要调用工具,直接把五段写出来。",
    handoff_name="交接-{step}.md",
    handoff_archive="交接",
    degraded_note="交接降级({why})",
    handoff_unkept="交接没有落盘:{error}",
    why_overflow="上下文已经溢出,写不了交接",
    why_missing="缺了这几段:{sections}",
    too_many_generations=(
        "已经换代 {count} 次,到上限了,停在这里。换代阈值 {at} tokens(窗口按 {window} 算)。"
        "如果每个新会话一开始就越线,说明阈值低于角色的启动地板:把 window 调大,或者用 --no-handoff 关掉换代。"
    ),
    burning=(
        "连续两次换代都是降级的空交接,再换下去只是烧钱,停在这里。多半是窗口估错了或者余量不够:"
        "现在窗口按 {window} 算,余量 {headroom}。调 window 或 headroom,或者用 --no-handoff 关掉换代。"
    ),
    window_remembered=" 这个窗口是以前溢出时记下的:{path}。记错了就删掉这个文件。",
    workspace_gone="工作目录不见了,不会另建一个空的接着干",
    mirror_lost="有一段对话没能写进 sessions.db,以后接续时会缺这一段:{error}",
    silent="模型 {minutes} 分钟没有任何消息(timed out)",
    plugin_broken="插件没有装上:{errors}",
    no_plugin="{path} 不是插件目录:要有 .claude-plugin/plugin.json。",
    budget_spent="预算(budget)用完了:上限 ${limit:.2f},已花 ${spent:.2f}。提高上限以后可以接着跑。",
    no_wall=(
        "{role} 只许派活(delegate_only),但这个 Runtime 没有 workbench,所以没有任何 hook 拦在主线程和 "
        "Bash/Write/Edit 之间。把工作流的 workbench 传给 Runtime。"
    ),
    model_mismatch=(
        "配置的模型是 {want},实际应答的是 {served}。上下文窗口是按名字猜的,可能不对;用 FLOWER_WINDOW 指明。"
    ),
    child_said="程序最后说:{lines}",
    aside="旁路问答",
    aside_prompt=(
        "问题:{question}\n\n"
        "--- 运行里最近的事件,旧的在前 ---\n{events}\n--- 完 ---\n\n"
        "--- 工作台 ---\n{workbench}\n--- 完 ---\n\n"
        "先看,再答。要短。"
    ),
    aside_workbench="工作台在 {path},索引在你的说明里;里面的 notes/ 是定下来的事,artifacts/ 是产出。",
    aside_no_workbench="这个运行没有工作台。",
    no_events="(还没有事件)",
    main_thread="主线程",
    subagent="subagent",
)

EN = RunningTexts(
    retry="Attempt {attempt} failed ({kind}), trying again",
    still_offline=" | the network did not come back within {wait}",
    interrupted_with_words="Interrupted, going on with your words",
    interrupted="Interrupted, going on",
    resume_with_words="The human interrupted you and says:\n\n{words}\n\nAdjust to this and carry on.",
    resume_plain="The human interrupted you for a moment and asks for nothing else. Continue now.",
    interrupt_note=(
        "Note: you were cut cleanly, between two messages. Tool calls in flight at that moment (questions, the inbox, "
        "a subagent's commands) may report that they were interrupted, or that the user doesn't want to take this "
        "action. This is a normal side effect of the interrupt, no fault of the environment and no veto of that "
        "operation. Do not investigate, do not change your strategy, do not add defensive rules; simply retry what is "
        "still needed."
    ),
    held_back="The human has just interrupted this run; this call was not carried out.",
    near="context {context:.1f}K/{window:.0f}K · about {left:.0f}K to go until the handover",
    writing="context {context:.1f}K/{window:.0f}K, writing the handoff…",
    handed_over="The context is full: a fresh session takes over from a handoff ({step})",
    handoff_no_tools="This turn writes the handoff and nothing else. Call no tools; write the five sections.",
    handoff_name="handoff-{step}.md",
    handoff_archive="handoffs",
    degraded_note="handoff degraded ({why})",
    handoff_unkept="the handoff could not be written to disk: {error}",
    why_overflow="the context has overflowed, no handoff could be written",
    why_missing="sections are missing: {sections}",
    too_many_generations=(
        "This step was handed over {count} times, which is the limit, so it stops here. It hands over at {at} tokens "
        "(assumed window: {window}). If each new session crosses that line at once, it lies below what the role needs "
        "to begin: raise the window, or switch handing over off with --no-handoff."
    ),
    burning=(
        "Two handoffs in a row were degraded ones without content; going on would only burn money, so the step stops "
        "here. Most likely the window is guessed wrong or the headroom is too small: the window is taken as {window}, "
        "the headroom as {headroom}. Set window or headroom, or switch handing over off with --no-handoff."
    ),
    window_remembered=(
        " This window was remembered from an earlier overflow, in {path}; delete that file if it is wrong."
    ),
    workspace_gone="the workspace is gone; no empty one is made to go on in",
    mirror_lost=(
        "a part of the conversation could not be written into sessions.db and will be missing on a resume: {error}"
    ),
    silent="the model sent no message for {minutes} minutes (timed out)",
    plugin_broken="a plugin could not be loaded: {errors}",
    no_plugin="{path} is no plugin folder: it must hold .claude-plugin/plugin.json.",
    budget_spent="The budget is used up: limit ${limit:.2f}, spent ${spent:.2f}. Raise the limit to go on.",
    no_wall=(
        "{role} may only delegate, but this Runtime has no workbench, so no hook stands between the main thread and "
        "Bash/Write/Edit. Give the workflow's workbench to the Runtime."
    ),
    model_mismatch=(
        "The configured model is {want}, the one that answered is {served}. The context window is guessed from the "
        "name and may be wrong; set FLOWER_WINDOW."
    ),
    child_said="the program's last words: {lines}",
    aside="Aside",
    aside_prompt=(
        "Question: {question}\n\n"
        "--- Latest events of the run, oldest first ---\n{events}\n--- End ---\n\n"
        "--- Workbench ---\n{workbench}\n--- End ---\n\n"
        "Look first, then answer. Be brief."
    ),
    aside_workbench=(
        "The workbench is at {path}; its index is in your instructions. notes/ holds what was decided, artifacts/ what "
        "was made."
    ),
    aside_no_workbench="This run has no workbench.",
    no_events="(no events yet)",
    main_thread="main thread",
    subagent="subagent",
)
