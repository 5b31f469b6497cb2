"""What a resumed session reads in place of what was left out of it, and what is said about that (behaviour 13)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreTexts:
    # In place of a result
    archived: str
    """Placeholders: count (characters), path."""
    expired: str
    """Placeholders: cmd (in backquotes), age. Also the default of `EphemeralPolicy.text`, which people may change."""
    interrupted: str
    orphan: str

    # Said to people
    untrimmed: str
    only_expired: str
    """Placeholder: count."""
    trimmed: str
    """Placeholders: cleared, kept, tokens."""
    unwritten: str
    """Follows one of the three above. Placeholders: count, reason."""
    outside: str
    """Placeholders: folder, workspace."""
    outside_link: str
    """Placeholder: path."""

    # The file of transcripts
    not_usable: str
    """Placeholders: path, detail, advice."""
    damaged: str
    full: str
    busy: str
    unreachable: str
    bad_row: str
    """Placeholders: number, session."""


ZH = StoreTexts(
    archived="[工具结果已归档:{count} 字符。完整内容在 {path},需要时用 Read 读取]",
    expired="[{cmd} 的结果已过期(第 {age} 轮前),当前状态可能已变。需要请重新执行]",
    interrupted="[上一轮在此处被中断,该工具结果未产生]",
    orphan="[这一步被打断了,没有结果。需要的话重做。]",
    untrimmed="未裁剪",
    only_expired="{count} 个时效性结果标记为过期",
    trimmed="裁掉 {cleared} 个工具结果(保留最近 {kept} 个),省下 ~{tokens} tokens",
    unwritten=";另有 {count} 个结果无法归档,全文保留:{reason}",
    outside="TrimPolicy.spill_dirname:{folder!r} 在工作区 {workspace} 之外,agent 读不到那里。请写工作区内的一个目录。",
    outside_link="{path} 经链接指到工作区之外",
    not_usable="会话记录 {path} 无法使用:{detail}。{advice}",
    damaged=(
        "这个文件已损坏,或者不是会话记录,因此没有动它。manifest.json 和 lineage.json 是单独的文件,不受影响。"
        "把它移走再重新运行,会从新的会话开始;或者换一个 run_dir。"
    ),
    full="磁盘满了,这一批没有写入,之前的都还在。腾出空间后可以继续。",
    busy="另一个进程一直占用着它。等那个进程结束,或者换一个 run_dir。",
    unreachable="请检查这个路径是不是一个可以读写的文件,以及它所在目录的权限。",
    bad_row="会话 {session} 的第 {number} 条读不出来",
)

EN = StoreTexts(
    archived="[Tool result archived: {count} characters. The whole of it is in {path}; use Read if you need it]",
    expired="[The result of {cmd} is out of date ({age} rounds ago); things may have changed. Run it again if needed]",
    interrupted="[The last turn was interrupted here; this tool gave no result]",
    orphan="[This step was cut and has no result. Do it again if it is needed.]",
    untrimmed="nothing was trimmed",
    only_expired="{count} results marked as out of date",
    trimmed="trimmed {cleared} tool results (the newest {kept} were kept), saving ~{tokens} tokens",
    unwritten="; {count} more could not be archived and were kept whole: {reason}",
    outside=(
        "TrimPolicy.spill_dirname: {folder!r} lies outside the workspace {workspace}, where the agents cannot read. "
        "Name a folder inside it."
    ),
    outside_link="{path} leads out of the workspace by a link",
    not_usable="The transcripts in {path} cannot be used: {detail}. {advice}",
    damaged=(
        "The file is damaged, or it holds no transcripts; it was left as it is. manifest.json and lineage.json are "
        "files of their own and are not affected. Move it away and run again to begin with fresh sessions, or name "
        "another run_dir."
    ),
    full="The disk is full: this batch was not stored, everything before it is. Free some space and go on.",
    busy="Another process keeps it busy. Wait until that one ends, or name another run_dir.",
    unreachable="Check that the path is a file that can be read and written, and the rights on its folder.",
    bad_row="entry {number} of session {session} cannot be read",
)
