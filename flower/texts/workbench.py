"""What the workbench's index says, on disk and in a system prompt (behaviour 12)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkbenchTexts:
    index_title: str
    index_note: str
    scripts: str
    """Placeholder: count. The same for the two below."""
    artifacts: str
    notes: str
    item: str
    """Placeholders: path, description, size."""
    undescribed: str
    empty: str

    block_title: str
    """Placeholder: root."""
    outside: str
    existing: str
    nothing: str
    more: str
    """Placeholder: count."""
    rules: str
    """Placeholders: scripts, artifacts, notes."""


ZH = WorkbenchTexts(
    index_title="工作台索引",
    index_note="自动生成,不要手改。文件开头几行里写 `# desc: …`,说明就会出现在这里。",
    scripts="可复用脚本({count})",
    artifacts="产出({count})",
    notes="决策记录({count})",
    item="- `{path}` — {description} ({size})",
    undescribed="(无说明)",
    empty="(空)",
    block_title="工作台:`{root}`",
    outside="它在仓库之外,读写都用绝对路径。",
    existing="下面是已有的东西,直接拿来用,不要重写:",
    nothing="(目前为空)",
    more="- 另有 {count} 个,见 INDEX.md",
    rules=(
        "三条规矩:\n"
        "1. 会跑第二次的脚本放进 `{scripts}`,第一行写 `# desc: 一句话说明`。\n"
        "2. 超过 2000 字符的输出写进 `{artifacts}`,对话里只说路径和结论。\n"
        "3. 关键决策连同理由写进 `{notes}`,一件事一个文件。"
    ),
)

EN = WorkbenchTexts(
    index_title="Workbench index",
    index_note="Generated, do not edit. A line `# desc: …` among the first lines of a file shows up here.",
    scripts="Reusable scripts ({count})",
    artifacts="Output ({count})",
    notes="Decisions ({count})",
    item="- `{path}` — {description} ({size})",
    undescribed="(no description)",
    empty="(empty)",
    block_title="Workbench: `{root}`",
    outside="It lies outside the repository: use absolute paths to read and to write.",
    existing="This exists already. Use it, do not write it again:",
    nothing="(nothing yet)",
    more="- and {count} more, see INDEX.md",
    rules=(
        "Three rules:\n"
        "1. A script that will run twice goes into `{scripts}`, with `# desc: what it does` as its first line.\n"
        "2. Output of more than 2000 characters goes into `{artifacts}`; say only the path and the conclusion.\n"
        "3. Key decisions go into `{notes}` with their reasons, one file each."
    ),
)
