"""Names and words of the documents: brief, goal, verdict (behaviour 19 to 21).

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
)
