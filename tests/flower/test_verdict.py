from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flower import texts
from flower.core.goal import ACHIEVED, NOT_YET, UNREACHABLE, Verdict


@pytest.fixture(autouse=True)
def chinese(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FLOWER_LANG", raising=False)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "看起来可以",
        "looks good to me",
        "```\n结论:达成\n```",
        "结论:\n理由:每一项都达成了",
        "## 结论\n看起来可以\n## 理由\n已达成",
        "1. 编译通过\n2. 测试通过",
        "1/5 通过",
        "1 项通过",
        "10",
        "v1",
        "1%",
        "trueish",
    ],
)
def test_without_a_clear_conclusion_nothing_is_recognised_and_nothing_passes(text: str) -> None:
    verdict = Verdict.parse(text)
    assert (verdict.state, verdict.ok, verdict.achieved, verdict.unreachable) == ("", False, False, False)


@pytest.mark.parametrize("name", ["结论", "判定", "Conclusion", "Verdict"])
@pytest.mark.parametrize(
    ("words", "state"),
    [
        ("达成", ACHIEVED),
        ("已达成", ACHIEVED),
        ("ACHIEVED", ACHIEVED),
        ("Yes.", ACHIEVED),
        ("1", ACHIEVED),
        ("true", ACHIEVED),
        ("achieved, and now it runs", ACHIEVED),
        ("达成。没有遗漏", ACHIEVED),
        ("未达成", NOT_YET),
        ("没达成", NOT_YET),
        ("没有达成", NOT_YET),
        ("尚未达成", NOT_YET),
        ("还不能算达成", NOT_YET),
        ("未完全达成", NOT_YET),
        ("not_yet", NOT_YET),
        ("not yet", NOT_YET),
        ("NOT ACHIEVED", NOT_YET),
        ("**Not** achieved", NOT_YET),
        ("it isn't achieved", NOT_YET),
        ("it isn\u2019t achieved", NOT_YET),
        ("partially achieved", NOT_YET),
        ("not every check was achieved", NOT_YET),
        ("never achieved", NOT_YET),
        ("No", NOT_YET),
        ("0", NOT_YET),
        ("False", NOT_YET),
        ("0, 1", NOT_YET),
        ("无法验证", UNREACHABLE),
        ("没法验证", UNREACHABLE),
        ("验证不了", UNREACHABLE),
        ("无法判定", UNREACHABLE),
        ("无法达成", UNREACHABLE),
        ("不可达成", UNREACHABLE),
        ("做不到", UNREACHABLE),
        ("Unverifiable", UNREACHABLE),
        ("UNREACHABLE", UNREACHABLE),
        ("impossible", UNREACHABLE),
        ("this cannot be verified here", UNREACHABLE),
        ("it can't be achieved", UNREACHABLE),
        ("unachievable", UNREACHABLE),
        ("部分达成,其余在这里无法验证", UNREACHABLE),
    ],
)
def test_the_words_of_a_conclusion(name: str, words: str, state: str) -> None:
    assert Verdict.parse(f"## {name}\n{words}\n## 理由\n…").state == state
    assert Verdict.parse(f"**{name}:** {words}").state == state


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("1", ACHIEVED),
        ("0", NOT_YET),
        (" TRUE ", ACHIEVED),
        ("false", NOT_YET),
        ("结果是 1", ACHIEVED),
        ("结果:0", NOT_YET),
        ("在这个环境里无法验证", UNREACHABLE),
        ("The goal is achieved.", ACHIEVED),
        ("The goal is not achieved.", NOT_YET),
        ("```\n未达成\n```\n达成", ACHIEVED),
    ],
)
def test_without_the_section_the_whole_text_is_searched(text: str, state: str) -> None:
    assert Verdict.parse(text).state == state


def test_reason_and_failed_checks_are_read() -> None:
    verdict = Verdict.parse("结论:未达成\n理由:产物是 ELF\n未通过\n- x\n- y")
    assert verdict == Verdict(state=NOT_YET, reason="产物是 ELF", failed=["x", "y"])


def test_an_english_verdict_is_read_while_chinese_is_spoken() -> None:
    verdict = Verdict.parse("## Conclusion\nNOT ACHIEVED\n## Reason\nit is an ELF\n## Failed\n- x")
    assert verdict == Verdict(state=NOT_YET, reason="it is an ELF", failed=["x"])


def test_the_words_of_the_reason_do_not_decide() -> None:
    assert Verdict.parse("结论:达成\n理由:没有一项是无法验证的").state == ACHIEVED


@pytest.mark.parametrize("nothing", ["(无)", "无", "- (无)", "\uff08无\uff09", "(空)", "None", "(none)", ""])
def test_a_list_that_says_nothing_failed_is_empty(nothing: str) -> None:
    assert Verdict.parse(f"结论:达成\n未通过:{nothing}").failed == []


@given(
    st.sampled_from(
        ["not ", "NOT ", "未", "没有", "isn't ", "never ", "cannot be ", "无法", "unreachable:", "hardly? no:"]
    ),
    st.sampled_from(["", " ", " yet "]),
    st.sampled_from(["achieved", "ACHIEVED", "达成", "已达成"]),
    st.sampled_from(["", "结论:", "## Conclusion\n", "**Verdict:** "]),
)
def test_a_denied_success_never_reads_as_success(denial: str, gap: str, success: str, heading: str) -> None:
    verdict = Verdict.parse(f"{heading}{denial}{gap}{success}")
    assert verdict.state in (NOT_YET, UNREACHABLE)


@given(st.text())
def test_no_text_makes_the_parser_fail(text: str) -> None:
    assert Verdict.parse(text).state in (ACHIEVED, NOT_YET, UNREACHABLE, "")


def test_feedback_names_the_gaps_and_tells_to_go_on() -> None:
    assert Verdict(state=NOT_YET, reason="产物是 ELF", failed=["x"]).feedback() == (
        "上一轮没有达成目标。理由:产物是 ELF\n\n没有通过的检查项:\n- x\n\n"
        "接着做:只补这些缺口,不要从头再来,也不要扩大范围。"
    )


def test_feedback_says_that_no_reason_was_given_and_leaves_an_empty_list_out() -> None:
    assert Verdict().feedback() == (
        "上一轮没有达成目标。理由:(没给理由)\n\n接着做:只补这些缺口,不要从头再来,也不要扩大范围。"
    )


def test_feedback_is_english_where_english_is_spoken() -> None:
    with texts.speaking("en"):
        assert (
            Verdict(reason="it is an ELF")
            .feedback()
            .startswith("The last round did not reach the goal. Reason: it is an ELF")
        )
