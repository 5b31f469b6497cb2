"""The document that a finished run leaves in the project's root (API 15.3): names, words, and the request for it.

The names are what the parser looks for, so both catalogues are read whatever is spoken.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BequestTexts:
    """Tuples of names: the first is the one that is written, the others are understood as well."""

    title: str
    note: str
    what: tuple[str, ...]
    acceptance: tuple[str, ...]
    generated: tuple[str, ...]
    deadends: tuple[str, ...]
    workbench: tuple[str, ...]

    begin: str
    """The line before the managed block; what is before the blank is the mark."""
    end: str
    intro: str
    """Stands in the block above its sections."""
    cut: str
    """Stands at the end of a section that was too long."""

    degraded: str
    """The mark of a document that no model wrote."""
    degraded_why: str
    """Placeholders: mark, why. Stands in the mark's place where there is a reason."""
    no_what: str
    mechanical_acceptance: str
    mechanical_generated: str
    mechanical_workbench: str
    """Placeholder: place."""
    some_workbench: str
    """Names the workbench where the caller gave no hint."""

    # Refusals. Each has the placeholder path.
    read_only: str
    not_utf8: str
    """Placeholder: encoding."""
    leads_out: str
    """Placeholders: target, root."""

    prompt: str


ZH = BequestTexts(
    title="收尾交接",
    note="由 flower 在运行结束时写下,留给下一个接手的人或 agent。可以手改。",
    what=("这是什么", "任务"),
    acceptance=(
        "验收:达成与未达成",
        "验收\uff1a达成与未达成",
        "达成与未达成",
        "验收",
        "还差什么",
    ),
    generated=("哪些文件是生成的、由什么生成", "生成物与来源", "哪些文件是生成的", "哪些是生成的", "生成物"),
    deadends=("走不通的路", "试过不行的"),
    workbench=("工作台在哪、怎么读", "工作台在哪", "工作台", "怎么读"),
    begin="<!-- flower:begin 由 flower 写入,每次运行结束都会重写到 flower:end 为止;要手写的放在这一段外面 -->",
    end="<!-- flower:end -->",
    intro="这个目录是一次 flower 运行做出来的。动手之前先读完这一段。",
    cut="(太长,后面截掉了)",
    degraded="[降级:收尾交接没写成]",
    degraded_why="{mark}({why})",
    no_what="没有留下任务的原话,看工作台里的需求。",
    mechanical_acceptance="没有人逐条总结过。验收标准和判定清单在工作台的 notes/ 里,对着它们自己查一遍。",
    mechanical_generated=(
        "没有记录。凡是看起来由脚本、构建或工具生成的文件,别直接改:先找到生成它的东西,改那里,再重新生成。"
    ),
    mechanical_workbench=(
        "工作台在 {place}。先读 INDEX.md,再读 notes/:需求、目标、每个决定和理由都在那里,一件一个文件。"
        "scripts/ 是会重复用的脚本,artifacts/ 是长输出。"
    ),
    some_workbench="这个目录下的 .flower/(用 --isolate 跑的在上一级目录的 .flower-<目录名>/)",
    read_only="{path} 是只读的,没有写收尾交接。要让 flower 写,先 chmod u+w。",
    not_utf8="{path} 是 {encoding} 编码的,没有往里写,免得弄坏。先转成 UTF-8。",
    leads_out="{path} 是一个链接,指到项目 {root} 外面的 {target},没有往那里写。",
    prompt="""\
这次运行做完了。给下一个接手的人或 agent 留一份简短的交接,他可能用的是别的工具,看不到你们说过的话,只看得到这个目录。
你只读不写:文件由程序来写,你只管给出文字。

先看现场:工作台的 `notes/`(需求、目标、决定)、`INDEX.md`、产物本身。只写查得到的,不要编。
最后一条消息恰好是下面五段,总共不超过 60 行,能给路径就不贴内容:

## 这是什么
这个目录里做成了一个什么东西,为谁、怎么跑起来,三五句话。

## 验收:达成与未达成
一行一条:验收标准里的哪一条,达成还是没达成,看什么能证明。没验证过的直说。

## 哪些文件是生成的、由什么生成
一行一条:文件或目录 —— 由哪个命令或脚本生成。这些文件别直接改。没有就写“无”。

## 走不通的路
试过、不行、为什么,免得再走一遍。没有就写“无”。

## 工作台在哪、怎么读
工作台的路径,先读哪几个文件,各是什么。
""",
)

EN = BequestTexts(
    title="Closing hand-off",
    note="Written by flower at the end of a run, for whoever takes over next. May be edited by hand.",
    what=("What this is", "What is this", "Task"),
    acceptance=(
        "Acceptance: reached and not reached",
        "Reached and not reached",
        "Acceptance",
        "What is missing",
    ),
    generated=(
        "Which files are generated, and by what",
        "Which files are generated and by what",
        "Generated files and their sources",
        "Which files are generated",
        "Generated files",
        "Generated",
    ),
    deadends=("Dead ends", "Tried without success"),
    workbench=(
        "Where the workbench is and how to read it",
        "Where the workbench is, and how to read it",
        "Where the workbench is",
        "Workbench",
        "How to read it",
    ),
    begin=(
        "<!-- flower:begin written by flower and rewritten up to flower:end after each run; "
        "your own words belong outside -->"
    ),
    end="<!-- flower:end -->",
    intro="What is in this folder was made by a run of flower. Read this section before you change anything.",
    cut="(too long, the rest was left out)",
    degraded="[degraded: no closing hand-off was written]",
    degraded_why="{mark} ({why})",
    no_what="The request itself was not kept here; see the brief in the workbench.",
    mechanical_acceptance=(
        "Nobody has summed it up item by item. The acceptance criteria and the checklist are in notes/ of the "
        "workbench: check against them yourself."
    ),
    mechanical_generated=(
        "There is no record. Whatever looks as if a script, a build or a tool had generated it, do not edit directly: "
        "find what generates it, change that, and generate it again."
    ),
    mechanical_workbench=(
        "The workbench is in {place}. Read INDEX.md first, then notes/: brief, goal, and every decision with its "
        "reasons, one file each. scripts/ holds scripts that are used again, artifacts/ long output."
    ),
    some_workbench=".flower/ in this folder (with --isolate: .flower-<name of this folder>/ in the folder above)",
    read_only="{path} is read-only, so no closing hand-off was written. To let flower write it: chmod u+w.",
    not_utf8="{path} is in {encoding}; nothing was written, so that it does not break. Convert it to UTF-8 first.",
    leads_out="{path} is a link to {target}, outside the project {root}; nothing was written there.",
    prompt="""\
This run is done. Leave a short hand-off for whoever takes over next, a person or an agent of another make: they see
nothing of what was said here, only this folder. You read and do not write: the program writes the files, you give the
text.

Look first: the workbench's `notes/` (brief, goal, decisions), its `INDEX.md`, the artifacts themselves. Write only what
can be found there, and invent nothing. Your last message is exactly these five sections, at most 60 lines in all, with
paths rather than content:

## What this is
What was made in this folder, for whom, and how to run it, in three to five sentences.

## Acceptance: reached and not reached
One line each: which acceptance criterion, reached or not, and what shows it. Say plainly what was not verified.

## Which files are generated, and by what
One line each: file or folder, and the command or script that generates it. These are not to be edited directly.
Write "none" if there are none.

## Dead ends
What was tried and does not work, and why, so that nobody tries it again. Write "none" if there are none.

## Where the workbench is and how to read it
The workbench's path, which files to read first, and what each of them is.
""",
)
