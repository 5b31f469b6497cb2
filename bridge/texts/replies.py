"""What the bot says back to people: refusals, late taps, problems with a start."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyTexts:
    """Answers of routing. Each says what was wrong and what to do."""

    may_not_steer: str
    may_not_start: str
    unknown_person: str
    no_run_here: str
    not_built: str
    no_such_command_near: str
    needs_answer: str
    no_open_ask: str
    which_ask: str
    no_such_ask: str
    late_answered: str
    late_declined: str
    late_timeout: str
    late_withdrawn: str
    late_over_budget: str
    late_over: str
    late_attempt: str
    already_over: str
    lost_stop: str
    already_held: str
    not_held: str
    ended_mail: str
    lost_mail: str
    kill_sure: str
    nothing_to_kill: str
    ignored: str
    stale_button: str
    form_empty: str
    too_long: str
    oracle_over: str
    fault: str
    not_done: str
    not_here: str

    start_help: str
    start_later: str
    start_empty: str
    start_unknown: str
    start_unknown_near: str
    start_not_built: str
    start_needs_value: str
    start_bad_value: str
    start_twice: str
    start_too_long: str
    expected_name: str
    expected_budget: str
    expected_asks: str
    expected_timeout: str


EN = ReplyTexts(
    may_not_steer="Only {starter} and people on the allow-list may steer this run. Nothing was done.",
    may_not_start="You are not on the list of people who may start runs here. Nothing was started.",
    unknown_person="It is not known who you are, so nothing was done. Please try again.",
    no_run_here="There is no run in this thread. Start one with `/flower` and what you want done.",
    not_built="`!{command}` is not built yet. Nothing was done; `!help` shows what there is.",
    no_such_command_near="There is no command `!{command}`. Did you mean `!{near}`? Nothing was done.",
    needs_answer="What is the answer? `!answer {number} your words`.",
    no_open_ask="No question is waiting for an answer.",
    which_ask="Several questions wait: {numbers}. Say which, for instance `!{command} {first}{tail}`.",
    no_such_ask="There is no question {number} waiting. Open now: {numbers}.",
    late_answered="{number} was already answered by {who}: {answer}",
    late_declined="{number} was already skipped by {who}.",
    late_timeout="{number} timed out; the agent went on with its own judgment. You can still reply in the thread.",
    late_withdrawn="{number} was withdrawn because the run was cut. It may ask again.",
    late_over_budget="{number} was not waited for: the run has used up its questions.",
    late_over="The run is over; {number} no longer waits.",
    late_attempt="This question was asked before the run was started again. If it still matters, it will ask again.",
    already_over="The run is over already: {state}. `!continue` starts it again where it was.",
    lost_stop="The run is lost: nothing runs that could be stopped. `!continue` starts it again where it was.",
    already_held="The run is paused already, by {who}. Reply to go on with your words, or `!continue`, or `!end`.",
    not_held="The run is not paused: {state}. Plain words reach the agent; `!stop words` cuts in.",
    ended_mail="The run is over ({state}). To go on where it was with these words, write `!continue` and the words.",
    lost_mail="The run is lost. To start it again where it was with these words, write `!continue` and the words.",
    kill_sure="`!kill` ends the run's processes at once; unfinished work and accounts may be lost. `!end` ends it in "
    "order. If you are sure: `!kill yes`.",
    nothing_to_kill="The run is over already: {state}. There is nothing to kill.",
    ignored="Not for the run: messages that begin with `//` or address somebody else are left alone.",
    stale_button="This button is from an older state of the run and does nothing now.",
    form_empty="There were no words in it. Nothing was done.",
    too_long="That is {n} characters; at most {most} are taken. Nothing was done. Put it into a file in the workspace.",
    oracle_over="The run is over; the oracle looks only while it runs. See the messages above, or `!status`.",
    fault="That was not done, because of a fault in the bot: its log says more. Please try again, or ask who runs it.",
    not_done="That could not be done: {why}",
    not_here="No process of this run was found on this machine. If its runner is dead, this thread says so within a "
    "minute; then `!continue` starts it again.",
    start_help="`/flower` and what you want done starts a run in this channel; its thread has everything else: tap, "
    "reply, `!stop`, `?question`, `!help`.\n"
    "Options: `--workspace NAME`, `--flow NAME`, `--budget USD`, `--asks N` (most questions), `--timeout 45m` (how "
    "long a question waits, 0: not at all), `--new` (do not go on with what was done in the workspace).",
    start_later="`/flower {word}` is not built yet. Nothing was started. To start a run about it, say more.",
    start_empty="What should be done? For example: `/flower write a small program that prints the first ten primes`",
    start_unknown="There is no option `--{option}`. Known: {known}. Nothing was started; to write it as "
    "part of the request, put it in quotes or a bare `--` in front of the request.",
    start_unknown_near="There is no option `--{option}`. Did you mean `--{near}`? Nothing was started.",
    start_not_built="`--{option}` is not built yet. Nothing was started.",
    start_needs_value="`--{option}` needs a value, for instance `--{option} {example}`. Nothing was started.",
    start_bad_value="`--{option} {value}`: expected {expected}. Nothing was started.",
    start_twice="`--{option}` is there twice. Nothing was started.",
    start_too_long="The request has {n} characters; at most {most} are taken. Nothing was started.",
    expected_name="a name",
    expected_budget="US dollars above 0, such as 5 or 2.50",
    expected_asks="a whole number from 0, such as 3",
    expected_timeout="a time such as 45m, 2h or 90s, or 0 for not waiting",
)

ZH = ReplyTexts(
    may_not_steer="只有 {starter} 和名单上的人可以操作这次运行。什么都没有做。",
    may_not_start="你不在这里可以启动运行的名单上。什么都没有启动。",
    unknown_person="无法确定你是谁,所以什么都没有做。请再试一次。",
    no_run_here="这个消息列里没有运行。用 `/flower` 加上要做的事来启动。",
    not_built="`!{command}` 还没有做好。什么都没有做;`!help` 列出现有的命令。",
    no_such_command_near="没有命令 `!{command}`。是不是 `!{near}`?什么都没有做。",
    needs_answer="回答是什么?`!answer {number} 你的话`。",
    no_open_ask="没有问题在等待回答。",
    which_ask="有几个问题在等:{numbers}。请说明是哪个,例如 `!{command} {first}{tail}`。",
    no_such_ask="没有等待中的问题 {number}。现在开着的:{numbers}。",
    late_answered="{number} 已由 {who} 回答:{answer}",
    late_declined="{number} 已被 {who} 跳过。",
    late_timeout="{number} 已超时,代理按自己的判断继续了。你仍可以在消息列里回复。",
    late_withdrawn="{number} 因运行被打断而撤回。它可能会再问。",
    late_over_budget="{number} 没有等待:这次运行的提问额度已用完。",
    late_over="运行已结束,{number} 不再等待。",
    late_attempt="这个问题是运行重新启动之前问的。如果还重要,它会再问。",
    already_over="运行已经结束:{state}。`!continue` 可以从原处继续。",
    lost_stop="运行已失联,没有可以停止的东西。`!continue` 可以从原处继续。",
    already_held="运行已被 {who} 暂停。直接回复就带着你的话继续,也可以用 `!continue` 或 `!end`。",
    not_held="运行没有暂停:{state}。普通的话会送到代理;`!stop 话` 会打断它。",
    ended_mail="运行已结束({state})。要带着这些话从原处继续,请写 `!continue` 加上这些话。",
    lost_mail="运行已失联。要带着这些话从原处重新启动,请写 `!continue` 加上这些话。",
    kill_sure="`!kill` 会立即结束运行的进程,没做完的工作和账目可能丢失。`!end` 会有序地结束。确定的话:`!kill yes`。",
    nothing_to_kill="运行已经结束:{state}。没有可以杀掉的进程。",
    ignored="不是给运行的:以 `//` 开头或写给别人的消息不作处理。",
    stale_button="这个按钮属于运行的旧状态,现在不起作用。",
    form_empty="里面没有文字。什么都没有做。",
    too_long="有 {n} 个字符,最多接受 {most} 个。什么都没有做。请把它放进工作区的文件里。",
    oracle_over="运行已结束,旁路只在运行期间可用。请看上面的消息,或 `!status`。",
    fault="因为机器人自身的故障,这件事没有做成:日志里有更多内容。请再试一次,或问负责运维的人。",
    not_done="没能做成:{why}",
    not_here="这台机器上没有找到这次运行的进程。如果它的进程已经死了,这个消息列一分钟之内会说明;"
    "然后 `!continue` 可以重新启动。",
    start_help="`/flower` 加上要做的事,就在这个频道启动一次运行;其余都在它的消息列里:点按钮、回复、`!stop`、`?问题`、"
    "`!help`。\n"
    "选项:`--workspace 名称`、`--flow 名称`、`--budget 美元`、`--asks N`(最多提问数)、`--timeout 45m`"
    "(问题等多久,0 表示不等)、`--new`(不接着工作区里已有的事做)。",
    start_later="`/flower {word}` 还没有做好。什么都没有启动。要启动与此有关的运行,请多说几个字。",
    start_empty="要做什么?例如:`/flower 写一个小程序,打印前十个质数`",
    start_unknown="没有选项 `--{option}`。可用的:{known}。什么都没有启动;如果它是要求的一部分,请加引号,"
    "或在要求前面写单独的 `--`。",
    start_unknown_near="没有选项 `--{option}`。是不是 `--{near}`?什么都没有启动。",
    start_not_built="`--{option}` 还没有做好。什么都没有启动。",
    start_needs_value="`--{option}` 需要一个值,例如 `--{option} {example}`。什么都没有启动。",
    start_bad_value="`--{option} {value}`:应为 {expected}。什么都没有启动。",
    start_twice="`--{option}` 出现了两次。什么都没有启动。",
    start_too_long="要求有 {n} 个字符,最多接受 {most} 个。什么都没有启动。",
    expected_name="一个名称",
    expected_budget="大于 0 的美元数,例如 5 或 2.50",
    expected_asks="从 0 开始的整数,例如 3",
    expected_timeout="时间,例如 45m、2h 或 90s;0 表示不等待",
)
