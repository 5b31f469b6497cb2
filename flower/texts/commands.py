"""What the terminal program says around a run: its help, questions at a start, receipts, and how it ends (API 16)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandTexts:
    # Help
    head_usage: str
    head_error: str
    head_arguments: str
    head_switches: str
    help_help: str
    about: str
    more: str
    help_go: str
    help_run: str
    help_once: str
    help_setup: str
    help_workspace: str
    help_run_dir: str
    help_verbose: str
    help_workbench: str
    help_trim: str
    help_ask: str
    help_asks: str
    help_rounds: str
    help_no_goal: str
    help_judge_can_run: str
    help_timeout: str
    help_isolate: str
    help_window: str
    help_no_handoff: str
    help_new: str
    help_clarify_only: str
    help_no_trim: str
    help_run_new: str
    help_target: str
    help_prompt: str
    help_instructions: str
    help_tools: str
    help_permission: str
    help_budget: str
    help_resume: str
    help_fork: str
    help_version: str
    bad_number: str
    """Placeholders: value, least."""
    not_number: str
    """Placeholder: value. The same for the one below."""
    not_whole: str
    unrecognized: str
    """Placeholder: arguments."""
    switch_meant: str
    """Placeholder: switch."""
    switch_of: str
    """Placeholders: switch, commands."""
    quotes_meant: str
    """Placeholder: line."""
    run_meant: str
    """Placeholder: target."""
    fork_alone: str

    # Asking for the request
    what_new: str
    what_next: str
    cancelled: str
    no_request: str
    nothing_to_clarify: str

    # The wake line
    wake: str
    """Placeholders: place, parts."""
    wake_brief: str
    wake_clarifying: str
    wake_checks: str
    """Placeholder: count."""
    wake_context: str
    """Placeholder: size."""
    wake_count: str
    """Placeholder: count."""

    # While it works
    answer_prompt: str
    say_prompt: str
    interrupt_prompt: str
    answer_short: str
    """This and the next two: the same prompts in a word, where the long ones do not fit."""
    say_short: str
    interrupt_short: str
    keys: str
    no_channel: str
    input_closed: str
    nobody_left: str
    interrupted: str
    still_asking: str
    """Placeholder: count."""
    withdrawn: str
    occupied: str
    """Placeholders: place, process."""
    run_goes_on: str
    put_away: str
    """Placeholder: path."""
    goes_on: str
    """Placeholder: command."""
    not_a_terminal: str

    # Side questions
    aside_head: str
    aside_cost: str
    """Placeholder: cost."""
    aside_failed: str
    """Placeholder: error."""
    aside_waiting: str
    """Placeholder: count."""
    aside_late: str
    """Placeholder: question."""

    # Loading a workflow
    target_form: str
    no_file: str
    """Placeholders: path, cwd."""
    import_failed: str
    """Placeholders: module, error."""
    no_attribute: str
    """Placeholders: module, attribute."""
    factory_failed: str
    """Placeholders: target, error."""
    not_a_workflow: str
    """Placeholders: target, kind."""
    at_line: str
    """Where in a flow file. Placeholders: file, line."""

    # Places and files
    made: str
    """Placeholder: path."""
    place_unusable: str
    """Placeholders: place, error."""
    not_utf8: str
    no_text: str
    broken_store: str
    """Placeholders: path, error."""
    broken_file: str
    """Placeholders: path, kept."""
    broken_lineage: str
    """Placeholder: path."""
    unreadable_document: str
    """Placeholders: path, error."""
    incomplete_document: str
    """A frozen document. Placeholders: path, missing, fence (`open_fence`, or empty)."""
    open_fence: str
    """Placeholder: line."""
    lacking: str
    """What a step should have written. Placeholder: missing."""
    no_env_file: str
    """Placeholder: path."""
    no_session: str
    """Placeholders: session, place."""
    failed: str
    """For a fault of our own, or of a library. Placeholders: kind, error."""

    # Credentials
    first_use: str
    configuration: str
    probing_net: str
    """Placeholder: reason."""
    auth_refused: str
    config_wrong: str
    auth_reason: str
    """Placeholder: reason."""
    config_reason: str
    """Placeholder: reason."""
    setup_where: str
    """Placeholder: path."""
    line_without_effect: str
    """Placeholders: line, key."""
    ask_credential: str
    ask_credential_again: str
    """Placeholder: present, masked."""
    ask_base: str
    """Placeholder: enter, what Enter does. The same for the two below."""
    ask_model: str
    ask_window: str
    enter_is: str
    """Placeholder: what."""
    enter_keeps: str
    """Placeholders: present, without."""
    official: str
    default_model: str
    automatic: str
    no_credential: str
    odd_credential: str
    odd_address: str
    """Placeholder: value."""
    odd_window: str
    """Placeholder: value."""
    tried: str
    """Placeholder: reason."""
    not_tried: str
    """Placeholder: reason."""
    set_up_anew: str
    stored: str
    """Placeholder: path."""
    not_stored: str
    """Placeholders: path, error."""
    shadowed: str
    """Placeholder: key. The same for the one below."""
    shadowed_here: str
    setup_needs_terminal: str

    # The address of a project, and a credential from elsewhere
    address_of_project: str
    """Placeholders: address, path. The same for the one below."""
    address_unasked: str
    address_declined: str
    """Placeholder: path."""
    ask_address: str
    yes: tuple[str, ...]

    # The end
    total: str
    """Placeholders: cost, path."""
    stopped_at: str
    """Placeholder: step."""
    why: str
    """Placeholder: reason."""
    again: str
    bequest: str
    bequest_done: str
    """Placeholder: names."""
    bequest_failed: str
    """Placeholder: error."""
    bequest_role: str
    bequest_workbench: str
    """Placeholder: path."""


ZH = CommandTexts(
    head_usage="用法:",
    head_error="错误:",
    head_arguments="参数",
    head_switches="开关",
    help_help="显示这份说明",
    about="在 claude-agent-sdk 上跑几个小时、几天的 agent:先确认需求,设定目标,干活,再判定。",
    more=(
        "不写子命令就是 go:\n"
        '  flower "帮我做一个 X"      在当前目录开始\n'
        "  flower                    接着上次\n"
        "  flower run flows.py:main  跑自己写的工作流\n"
        "每个子命令都有 --help。诉求本身是 run 这样的词时,写 flower go run。"
    ),
    help_go="整个流程:确认需求、设定目标、干活、判定",
    help_run="跑自己写的工作流",
    help_once="单个 agent 跑一次",
    help_setup="问凭证,存起来",
    help_workspace="agent 干活的目录(默认:当前目录)",
    help_run_dir="会话和账目放哪里,相对于当前目录(默认:runs)",
    help_verbose="也显示 subagent 的话、提示词和成功的工具结果;启动时打印生效的配置",
    help_workbench="给 runtime 一个工作台(用于 run 和 once)",
    help_trim="续跑时把旧的大段工具结果缩短(用于 run 和 once)",
    help_ask="诉求,一句话;不写就会问",
    help_asks="最多问几个问题;负数 = 不限,0 = 不问(默认:-1)",
    help_rounds="总共干几轮(默认:3)",
    help_no_goal="不设目标,也不判定",
    help_judge_can_run="判定者可以用 Bash",
    help_timeout="一个提问等多少秒;<= 0 = 完全无人值守(默认:1800)",
    help_isolate="每个 subagent 一份 git worktree",
    help_window="上下文窗口按多少 token 算;0 = 自动",
    help_no_handoff="不换代,用程序自带的压缩",
    help_new="把需求、目标和会话归档,重新开始",
    help_clarify_only="只确认需求,然后停",
    help_no_trim="不缩短旧的工具结果",
    help_run_new="把会话的记录归档,从新会话开始",
    help_target="模块:属性,或 路径/文件.py:属性",
    help_prompt="要它做的事",
    help_instructions="加在原生系统提示词后面的话",
    help_tools="可用的工具,逗号分隔(默认:Read,Glob,Grep)",
    help_permission="权限模式(默认:default)",
    help_budget="最多花多少美元",
    help_resume="接着哪个会话",
    help_fork="从那个会话分叉,不在原会话上接着写(要和 --resume 一起用)",
    help_version="显示版本",
    bad_number="{value!r} 不行:要一个数,至少是 {least}",
    not_number="{value!r} 不行:要一个数,例如 1800",
    not_whole="{value!r} 不行:要一个整数,例如 3",
    unrecognized="不认识的参数:{arguments}",
    switch_meant="是不是 {switch}?",
    switch_of="{switch} 是 {commands} 的开关。",
    quotes_meant="一句话有好几个词,就加引号:{line}",
    run_meant=(
        "诉求只有 {target!r} 这一个词,像是一个工作流。是不是要 flower run {target}?\n"
        "要是真想让 agent 处理这个文件,就说一句完整的话。"
    ),
    fork_alone="--fork 要和 --resume 一起用:没有会话就没有可分叉的东西",
    what_new="要做什么? 一句话就够,回车开始(Ctrl-C 退出)",
    what_next="接着上次? 直接回车 = 接着做;也可以说点新的;/new = 重开一件事(Ctrl-C 退出)",
    cancelled="已取消",
    no_request='诉求是空的。直接 `flower` 然后按提示输入,或者 flower "帮我做一个 X"。',
    nothing_to_clarify="需求已经确认过了,--clarify-only 没有可做的事。要重新确认就加 --new。",
    wake="<- 在 {place} 接上上次  {parts}",
    wake_brief="需求已确认",
    wake_clarifying="需求还在确认",
    wake_checks="目标 {count} 条",
    wake_context="干活上下文 {size}",
    wake_count="第 {count} 次唤醒",
    answer_prompt="你的回答 (回车=跳过,让它自己判断) > ",
    say_prompt="(直接说 = 加需求,下个检查点送达;? 开头 = 顺便问一句,不打扰它干活) > ",
    interrupt_prompt="打断了,要说什么? (直接回车 = 什么都不说,接着跑) > ",
    answer_short="回答> ",
    say_short="加需求> ",
    interrupt_short="打断> ",
    keys=(
        "没有提问时,一句话 = 加需求;有提问时 = 回答最早的那个,数字 = 选那一项,直接回车 = 跳过。\n"
        "? 加一句话 = 顺便问一句,不打扰它干活。\n"
        "Ctrl-C = 打断,再按一次 = 退出;Ctrl-D = 不再有人回答;Ctrl-Z = 挂起,fg 回来。"
    ),
    no_channel="! 这个工作流没有收件箱,这句话没有送出去。? 开头可以顺便问一句,Ctrl-C 可以打断。",
    input_closed="输入已关闭",
    nobody_left="! 输入已关闭,没人能回答了:从现在起,提问都由它自己判断。",
    interrupted="! 已打断这一轮。正在跑的 subagent 会丢掉半成品。",
    still_asking="(有 {count} 个提问还等着,打断不影响它们)",
    withdrawn="(等着的提问随这一轮收回了;还需要的话它会再问)",
    occupied="{place} 里已有一个运行在干活(进程 {process})。等它结束,或者用 -r 换一个运行目录。",
    run_goes_on="<- 接着上次的会话;要从头开始就加 --new",
    put_away="(上次会话的记录归档到 {path})",
    goes_on="退出了。在这里再跑 {command} 就接着做。",
    not_a_terminal="! 标准输入不是终端,没人能回答提问。想让它自己判断就加 --timeout 0",
    aside_head="# 旁路",
    aside_cost="(${cost:.4f},没有打扰正在跑的运行)",
    aside_failed="# 旁路问答失败:{error}",
    aside_waiting="(等 {count} 条旁路问答收尾…)",
    aside_late="# 旁路问答:运行已经结束,这一条没有回答:{question}",
    target_form="需要 模块:属性 形式,例如 flows:main",
    no_file="找不到 {path}(当前目录 {cwd})。给的是文件路径就要能对上;要按模块名导入就别带 .py",
    import_failed="导入 '{module}' 失败:{error}",
    no_attribute="'{module}' 里没有 '{attribute}'",
    factory_failed="'{target}' 没能造出工作流:{error}",
    not_a_workflow=(
        "'{target}' 给出的是 {kind},不是 Workflow。它要么是一个 Workflow,要么是一个不带参数、返回 Workflow 的函数。"
    ),
    at_line="({file} 第 {line} 行)",
    made="新建了 {path}",
    place_unusable="{place} 用不了:{error}。要一个能写的目录;用 -w 换工作目录,用 -r 换运行目录。",
    not_utf8="路径不是 UTF-8",
    no_text="不是 UTF-8 文本(原文件会改名留着)",
    broken_store="{path} 不是完好的会话库:{error}。把它挪开再跑:会话会从头开始,账目和文档都还在。",
    broken_file="! {path} 读不懂,原样留在 {kept},账目从新的文件接着记。",
    broken_lineage="! {path} 读不懂,接不上以前的会话,这次从新会话开始。",
    unreadable_document="! {path} 读不了:{error}。这一步会重做。",
    incomplete_document="! {path} 不完整,缺:{missing}。{fence}这一步会重做并盖掉它;要留着它,就先补好再跑。",
    open_fence="第 {line} 行的围栏没有关上,它后面的都不算。",
    lacking="写出来的东西不完整,缺:{missing}。",
    no_env_file="! FLOWER_ENV 指的 {path} 不存在,当作没有设。",
    no_session="没有会话 {session}(工作目录 {place})。会话只在它原来的工作目录和运行目录里找得到。",
    failed="出错了:{kind}: {error}",
    first_use="第一次用?给一次凭证就行。",
    configuration="配置:",
    probing_net="(探针没打通:{reason} —— 当作网络问题,照常开跑)",
    auth_refused="凭证被拒,且无法交互配置。跑 `flower setup` 重配。",
    config_wrong="网关地址或模型名不对,且无法交互配置。跑 `flower setup` 重配。",
    auth_reason="! 凭证被拒:{reason}",
    config_reason="! 网关地址或模型名不对:{reason}",
    setup_where="会存到 {path},只有你自己能读。Ctrl-C 退出。",
    line_without_effect="! ./.env 第 {line} 行没有起作用:要写成 {key}=值,前面不带 export,中间用等号。",
    ask_credential="API key 或 token(不会显示): ",
    ask_credential_again="API key 或 token(不会显示;输 = 保留现在的 {present}): ",
    ask_base="网关地址({enter}): ",
    ask_model="模型({enter}): ",
    ask_window="上下文窗口,token 数,例如 200k({enter}): ",
    enter_is="回车 = {what}",
    enter_keeps="回车 = {present},- = {without}",
    official="官方",
    default_model="默认",
    automatic="自动",
    no_credential="没给 token,取消。",
    odd_credential="这个 token 里有空格、控制字符或者非 ASCII 字符,多半是没贴对。没有存,取消。",
    odd_address="! {value} 不行:网关地址要以 http:// 或 https:// 开头,例如 https://gateway.example。再输一次。",
    odd_window="! {value} 不行:要一个正整数,也可以写 200k 或 1m。再输一次。",
    tried="+ 试过了,端点认这个凭证({reason})",
    not_tried="! 没能试出来:{reason}。存着的照样会用;网络好了再跑就行。",
    set_up_anew="! 存着的就是这个。要改,再跑一次 `flower setup`。",
    stored="+ 存好了:{path}",
    not_stored="! 没存成 {path}:{error}",
    shadowed="! 环境变量 {key} 里另有一个值,下次启动时它优先。要用刚存的,先 unset {key}。",
    shadowed_here="! 这个目录的 .env 里 {key} 另有一个值,下次在这里启动时它优先。要用刚存的,就把那一行去掉。",
    setup_needs_terminal="setup 要在终端里跑:它要问你几个问题。没有终端就写一个 .env,或者 export。",
    address_of_project=(
        "! {path} 把网关地址设成了 {address},而你的凭证不是从这个文件来的。\n"
        "  接着跑,你的凭证就会发到那里去。这个地址是你(或者你信得过的人)设的吗?"
    ),
    address_unasked=(
        "{path} 把网关地址设成了 {address},而凭证不是从这个文件来的:没有人能点头,所以没有发。\n"
        "信得过这个地址就设 FLOWER_TRUST_ADDRESS={address},或者在终端里跑一次 flower 并答应;"
        "信不过就把那一行从 {path} 里去掉。"
    ),
    address_declined="没有发。要用自己的地址,就把 ANTHROPIC_BASE_URL 那一行从 {path} 里去掉,或者 export 自己的。",
    ask_address="把凭证发到那里? (y = 发,并记住这个目录和地址;回车 = 不发) > ",
    yes=("y", "yes", "是", "发"),
    total="总花费 ${cost:.4f} · 清单 {path}",
    stopped_at="在步骤 '{step}' 中止",
    why="! {reason}",
    again="配好了。再跑一次刚才的命令 —— 同一目录会接着上次。",
    bequest="(写收尾交接…)",
    bequest_done="+ 收尾交接写进了 {names}",
    bequest_failed="! 收尾交接没写成:{error}",
    bequest_role="收尾交接",
    bequest_workbench="工作台在 {path};定下来的事在它的 notes/ 里。",
)

EN = CommandTexts(
    head_usage="usage: ",
    head_error="error: ",
    head_arguments="arguments",
    head_switches="switches",
    help_help="show this help",
    about="Agent runs of hours and days on claude-agent-sdk: clarify, set a goal, work, judge.",
    more=(
        "Without a subcommand it is go:\n"
        '  flower "build me an X"    begin in this directory\n'
        "  flower                    go on where you left off\n"
        "  flower run flows.py:main  run a workflow of your own\n"
        "Each subcommand has a --help. If the request itself is a word like run, write: flower go run"
    ),
    help_go="the whole flow: clarify, set a goal, work, judge",
    help_run="run a workflow of your own",
    help_once="run a single agent once",
    help_setup="ask for credentials and store them",
    help_workspace="where the agents work (default: the current directory)",
    help_run_dir="sessions and accounts, relative to the current directory (default: runs)",
    help_verbose="also show subagents' prose, prompts and successful tool results; begin with the configuration",
    help_workbench="give the runtime a workbench (for run and once)",
    help_trim="shorten old large tool results when resuming (for run and once)",
    help_ask="the request, one sentence; without it you are asked",
    help_asks="budget of questions; negative = unlimited, 0 = none (default: -1)",
    help_rounds="work rounds in total (default: 3)",
    help_no_goal="no goal, no judge",
    help_judge_can_run="the judge may use Bash",
    help_timeout="how many seconds a question waits; <= 0 = fully unattended (default: 1800)",
    help_isolate="a git worktree for each subagent",
    help_window="assumed context window in tokens; 0 = automatic",
    help_no_handoff="no handover to a fresh session: the program's own compaction instead",
    help_new="archive requirement, goal and sessions, and begin again",
    help_clarify_only="stop after clarifying",
    help_no_trim="do not shorten old tool results",
    help_run_new="archive the record of sessions, and begin with new ones",
    help_target="module:attribute, or path/to/file.py:attribute",
    help_prompt="what it is to do",
    help_instructions="appended to the native system prompt",
    help_tools="tools, separated by commas (default: Read,Glob,Grep)",
    help_permission="permission mode (default: default)",
    help_budget="US dollars at most",
    help_resume="session to go on with",
    help_fork="branch off from that session instead of going on in it (with --resume)",
    help_version="show the version",
    bad_number="{value!r} does not do: a number is needed, at least {least}",
    not_number="{value!r} does not do: a number is needed, for example 1800",
    not_whole="{value!r} does not do: a whole number is needed, for example 3",
    unrecognized="unrecognized arguments: {arguments}",
    switch_meant="Did you mean {switch}?",
    switch_of="{switch} is a switch of {commands}.",
    quotes_meant="A request of several words needs quotes: {line}",
    run_meant=(
        "The request is the one word {target!r}, which looks like a workflow. Did you mean: flower run {target}\n"
        "If an agent is to do something with that file, say so in a sentence."
    ),
    fork_alone="--fork goes with --resume: without a session there is nothing to branch off from",
    what_new="What is to be done? One sentence will do, Enter begins (Ctrl-C quits)",
    what_next="Go on? Enter = carry on; or say something new; /new = begin another matter (Ctrl-C quits)",
    cancelled="Cancelled",
    no_request='The request is empty. Run `flower` and type it in, or: flower "build me an X"',
    nothing_to_clarify="The requirement is settled already: nothing to do for --clarify-only. --new clarifies it anew.",
    wake="<- In {place}, going on  {parts}",
    wake_brief="requirement settled",
    wake_clarifying="still clarifying",
    wake_checks="goal of {count}",
    wake_context="work context {size}",
    wake_count="start no. {count}",
    answer_prompt="Your answer (Enter = skip, let it decide) > ",
    say_prompt="(type = add a wish, delivered at the next checkpoint; ? first = ask aside, it works on) > ",
    interrupt_prompt="Interrupted. What do you want to say? (Enter = nothing, go on) > ",
    answer_short="answer> ",
    say_short="wish> ",
    interrupt_short="interrupt> ",
    keys=(
        "A line is a wish; while a question waits it answers the oldest one: a number chooses an option, Enter alone "
        "skips it.\n"
        "? and some words ask aside; the run is not disturbed.\n"
        "Ctrl-C interrupts, once more quits; Ctrl-D: nobody answers any more; Ctrl-Z suspends, fg comes back."
    ),
    no_channel="! This workflow has no inbox; nothing was sent. ? first asks aside, Ctrl-C interrupts.",
    input_closed="the input was closed",
    nobody_left="! The input is closed and nobody can answer any more: from here on it decides questions by itself.",
    interrupted="! This turn was interrupted. Subagents at work lose what they had not finished.",
    still_asking="({count} questions still wait; the interrupt does not touch them)",
    withdrawn="(the question that waited is withdrawn with this turn; it asks again if it still needs to know)",
    occupied="A run is at work in {place} (process {process}). Wait for it, or use another run folder with -r.",
    run_goes_on="<- Going on in the sessions of the last start; --new begins with new ones",
    put_away="(the record of earlier sessions is now in {path})",
    goes_on="Ended. {command} in this directory goes on where it was.",
    not_a_terminal=(
        "! Standard input is no terminal, nobody can answer questions. Add --timeout 0 to let it decide by itself"
    ),
    aside_head="# Aside",
    aside_cost="(${cost:.4f}, the run was not disturbed)",
    aside_failed="# The side question failed: {error}",
    aside_waiting="(waiting for {count} side questions…)",
    aside_late="# Aside: the run is over, this was not answered: {question}",
    target_form="It must be module:attribute, for example flows:main",
    no_file=(
        "There is no {path} (current directory {cwd}). A path must lead to a file; to import by name leave out the .py"
    ),
    import_failed="Importing '{module}' failed: {error}",
    no_attribute="'{module}' has no '{attribute}'",
    factory_failed="'{target}' made no workflow: {error}",
    not_a_workflow=(
        "'{target}' is {kind}, not a Workflow. It must be a Workflow, or a function without arguments that returns one."
    ),
    at_line="({file}, line {line})",
    made="Made {path}",
    place_unusable=(
        "{place} cannot be used: {error}. A writable directory is needed; choose the workspace with -w and the run's "
        "folder with -r."
    ),
    not_utf8="the path is not UTF-8",
    no_text="it is not UTF-8 text (the file is kept under another name)",
    broken_store=(
        "{path} is no sound session store: {error}. Move it away and run again: sessions begin anew, accounts and "
        "documents stay."
    ),
    broken_file="! {path} makes no sense; it was kept as {kept}, and the accounts go on in a new file.",
    broken_lineage="! {path} makes no sense: earlier sessions cannot be taken up, this run begins with new ones.",
    unreadable_document="! {path} cannot be read: {error}. That step is done anew.",
    incomplete_document=(
        "! {path} is incomplete, it lacks: {missing}. {fence}That step is done anew and replaces it; to keep it, "
        "mend it first and run again."
    ),
    open_fence="The fence in line {line} is never closed, and what follows it does not count. ",
    lacking="What was written is incomplete, it lacks: {missing}.",
    no_env_file="! There is no {path}, which FLOWER_ENV names; going on as if it were not set.",
    no_session=(
        "There is no session {session} (workspace {place}). A session is found only with the workspace and run folder "
        "it was made in."
    ),
    failed="That went wrong: {kind}: {error}",
    first_use="First time here? Give your credentials once.",
    configuration="Configuration:",
    probing_net="(no answer to a first probe: {reason} - taken for a network problem, starting all the same)",
    auth_refused="The credentials were refused, and nobody can be asked for others. Run `flower setup`.",
    config_wrong="The gateway's address or the model's name is wrong, and nobody can be asked. Run `flower setup`.",
    auth_reason="! The credentials were refused: {reason}",
    config_reason="! The gateway's address or the model's name is wrong: {reason}",
    setup_where="It goes into {path}, which only you can read. Ctrl-C quits.",
    line_without_effect=(
        "! Line {line} of ./.env has no effect: it must be {key}=value, without export and with an equals sign."
    ),
    ask_credential="API key or token (not shown): ",
    ask_credential_again="API key or token (not shown; = keeps the present {present}): ",
    ask_base="Address of the gateway ({enter}): ",
    ask_model="Model ({enter}): ",
    ask_window="Context window in tokens, for example 200k ({enter}): ",
    enter_is="Enter = {what}",
    enter_keeps="Enter = {present}, - = {without}",
    official="official",
    default_model="default",
    automatic="automatic",
    no_credential="No token, nothing stored.",
    odd_credential="This token holds blanks, control or non-ASCII characters; probably pasted badly. Nothing stored.",
    odd_address="! {value} will not do: an address begins with http:// or https://, as in https://gateway.example",
    odd_window="! {value} will not do: a positive whole number is needed, or 200k, or 1m.",
    tried="+ Tried: the endpoint takes these credentials ({reason})",
    not_tried="! Could not be tried: {reason}. What is stored will be used; run again when the network is back.",
    set_up_anew="! That is what is stored now. To change it run `flower setup` again.",
    stored="+ Stored: {path}",
    not_stored="! {path} could not be written: {error}",
    shadowed="! The environment variable {key} holds another value, which wins at the next start. First: unset {key}",
    shadowed_here="! The .env of this folder holds another {key}, which wins at the next start here: take it out.",
    setup_needs_terminal="setup asks questions and needs a terminal. Without one, write a .env or export variables.",
    address_of_project=(
        "! {path} sets the gateway's address to {address}, and your credentials are not from that file.\n"
        "  Going on sends them there. Was this address set by you, or by somebody you trust?"
    ),
    address_unasked=(
        "{path} sets the gateway's address to {address}, and the credentials are not from that file: nobody can be "
        "asked, so nothing was sent.\n"
        "If you trust the address, set FLOWER_TRUST_ADDRESS={address}, or run flower at a terminal once and say yes. "
        "If not, take that line out of {path}."
    ),
    address_declined=(
        "Nothing was sent. To use an address of your own, take ANTHROPIC_BASE_URL out of {path}, or export yours."
    ),
    ask_address="Send the credentials there? (y = yes, remembered for this folder and address; Enter = no) > ",
    yes=("y", "yes"),
    total="Total cost ${cost:.4f} · accounts {path}",
    stopped_at="Stopped at step '{step}'",
    why="! {reason}",
    again="Done. Run the same command again - in the same directory it goes on where it was.",
    bequest="(writing the closing note…)",
    bequest_done="+ The closing note is in {names}",
    bequest_failed="! The closing note was not written: {error}",
    bequest_role="Closing note",
    bequest_workbench="The workbench is {path}; what was decided is in its notes/.",
)
