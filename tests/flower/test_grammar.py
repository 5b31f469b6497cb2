from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flower.core import grammar
from flower.core.grammar import Grammar

GRAMMAR = Grammar(
    {
        "goal": ("目标", "Goal"),
        "accept": ("验收标准", "验收", "Acceptance criteria"),
        "unknowns": ("未知", "未知与假设", "Unknowns & assumptions"),
    }
)

# Texts in which headings, fences, rules and additions are frequent.
LINES = st.sampled_from(
    [
        "",
        "目标",
        "## 目标",
        "**Goal**: x",
        "# Acceptance criteria",
        "未知与假设:",
        "```",
        "```python",
        "~~~~",
        "---",
        "- a",
        "1. b",
        "## 运行中补充(12:00:00)",
        "running text",
        "(未填)",
        "\t",
        "   ",
    ]
)
TEXTS = st.one_of(st.text(), st.lists(st.one_of(LINES, st.text(max_size=12)), max_size=14).map("\n".join))


@pytest.mark.parametrize(
    "line",
    [
        "目标是做一个 X",
        "目标用户是学生",
        "## 目标用户",
        "**目标用户**",
        "1. 目标平台是 macOS",
        "- 目标: x",
        "> 目标: x",
        "目标 做一个 X",
        "####### 目标",
        "Goals are met",
        "## Goalposts",
        "Goal of this run",
        "1. Goal is reached when the tests pass",
        "**Goal reached when the tests pass",
        "the goal: x",
    ],
)
def test_a_line_that_merely_holds_a_name_opens_no_section(line: str) -> None:
    assert GRAMMAR.sections(f"## 验收标准\nB\n{line}") == {"accept": f"B\n{line}"}


@pytest.mark.parametrize(
    ("line", "rest"),
    [
        ("目标", ""),
        ("  目标  ", ""),
        ("# 目标", ""),
        ("###### 目标", ""),
        ("##目标", ""),
        ("## 目标 ##", ""),
        ("**目标**", ""),
        ("__目标__", ""),
        ("## **目标**", ""),
        ("**1. 目标**", ""),
        ("1. **目标**", ""),
        ("目标:", ""),
        ("目标\uff1a", ""),
        ("**目标:**", ""),
        ("**目标**:", ""),
        ("3. 目标", ""),
        ("3、目标", ""),
        ("3)目标", ""),
        ("3) 目标", ""),
        ("## 3. 目标", ""),
        ("目标: 做一个 X", "做一个 X"),
        ("目标\uff1a做一个 X", "做一个 X"),
        ("## 目标 做一个 X", "做一个 X"),
        ("3. 目标 做一个 X", "做一个 X"),
        ("**目标** 做一个 X", "做一个 X"),
        ("**目标:** 做一个 X", "做一个 X"),
        ("**目标: 做一个 X**", "做一个 X"),
        ("Goal", ""),
        ("## GOAL", ""),
        ("1. Goal", ""),
        ("1. Goal: build X", "build X"),
        ("## Goal build X", "build X"),
        ("**Goal:** build X", "build X"),
        ("**Goal** build X", "build X"),
    ],
)
def test_every_form_of_a_heading_opens_its_section(line: str, rest: str) -> None:
    assert GRAMMAR.sections(f"{line}\nA") == {"goal": f"{rest}\nA".strip()}


def test_the_longest_name_wins_whatever_the_order() -> None:
    assert GRAMMAR.sections("## 未知与假设\nD\n## 验收标准\nB") == {"unknowns": "D", "accept": "B"}


def test_signs_in_a_name_are_taken_literally() -> None:
    assert GRAMMAR.sections("## Unknowns & assumptions\nD") == {"unknowns": "D"}


def test_a_letter_that_only_looks_like_one_of_a_name_makes_no_heading_and_no_failure() -> None:
    assert GRAMMAR.sections("## Acceptance cr\u0130teria\nB") == {}


def test_what_stands_before_the_first_heading_is_dropped() -> None:
    assert GRAMMAR.sections("Sure, here it is.\n\n## 目标\nA") == {"goal": "A"}


def test_of_a_repeated_section_the_first_with_content_is_taken() -> None:
    assert GRAMMAR.sections("## 目标\n\n## 目标\nA\n## 目标\nB") == {"goal": "A"}


def test_a_section_without_content_is_there_and_empty() -> None:
    assert GRAMMAR.sections("## 目标\n---\n\n## 验收标准\nB") == {"goal": "", "accept": "B"}


def test_headings_in_a_fence_are_none() -> None:
    text = "## 目标\nA\n```\n## 验收标准\nwrong\n```\n## 验收标准\nB"
    assert GRAMMAR.sections(text) == {"goal": "A", "accept": "B"}


def test_a_fence_that_stays_open_swallows_the_rest() -> None:
    assert GRAMMAR.sections("## 目标\nA\n~~~\n## 验收标准\nB") == {"goal": "A"}


def test_bodies_keep_other_headings_and_lose_rules_and_runs_of_blank_lines() -> None:
    text = "## 目标\n\nA  \n***\n### Details\n\n\n\n- - -\nB\n"
    assert GRAMMAR.sections(text) == {"goal": "A\n### Details\n\nB"}


def test_line_ends_of_other_systems_are_line_ends() -> None:
    assert GRAMMAR.sections("## 目标\r\nA\r\n## 验收\rB") == {"goal": "A", "accept": "B"}


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a\n```\nb\n```\nc", "a\nc"),
        ("a\n  ~~~~ python\nb\n~~~\nc\n~~~~~\nd", "a\nd"),
        ("a\n```\nb\n```python\nc\n```\nd", "a\nd"),
        ("a\n```\nb\n~~~\nc\n```\nd", "a\nd"),
        ("a\n```x``` is code\nb", "a\n```x``` is code\nb"),
        ("a\n```\nb", "a"),
        ("~~~\nb", ""),
        ("a\n``\nb", "a\n``\nb"),
    ],
)
def test_fences_go_with_what_is_in_them(text: str, left: str) -> None:
    assert grammar.without_fences(text) == left


@pytest.mark.parametrize(
    ("line", "item"),
    [
        ("- a", "a"),
        ("* a", "a"),
        ("+ a", "a"),
        ("  - a  ", "a"),
        ("1. a", "a"),
        ("12) a", "a"),
        ("1、a", "a"),
        ("1.跑一遍", "跑一遍"),
        ("-跑一遍", "跑一遍"),
        ("- [ ] a", "a"),
        ("- [x] a", "a"),
        ("- 1. a", "1. a"),
        ("a", "a"),
        ("-v prints more", "-v prints more"),
        ("--flag works", "--flag works"),
        ("**bold** counts", "**bold** counts"),
        ("3.5 is out", "3.5 is out"),
        ("[screen] shows", "[screen] shows"),
    ],
)
def test_a_list_mark_is_taken_off_once_and_nothing_else_is(line: str, item: str) -> None:
    assert grammar.items(f"\n{line}\n\n") == [item]


@pytest.mark.parametrize(
    "heading",
    ["## 运行中补充(12:00:00)", "## 唤醒时追加\uff0809:30:01\uff09", "## Added while running(9:00:59) "],
)
def test_from_the_first_addition_on_everything_is_verbatim(heading: str) -> None:
    added = f"{heading}\n目标: something else\n```\nopen fence\n\n\n\n---"
    assert grammar.split_addenda(f"## 目标\nA\n\n{added}\n") == ("## 目标\nA\n", added)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 0),
        ("a\n```\nb\n```\nc", 0),
        ("a\n```\nb", 2),
        ("a\r\n\r\n~~~~ python\n```\n~~~\n", 3),
        ("```\na\n```\n```\nb", 4),
        ("```\na\n```\n``` `x` ```\n", 0),
    ],
)
def test_a_fence_that_is_never_closed_is_named_by_its_line(text: str, line: int) -> None:
    assert grammar.open_fence(text) == line


@pytest.mark.parametrize("line", ["### x(12:00:00)", "## x (12:00)", "## (12:00:00) x", "x(12:00:00)", "##(12:00:00)"])
def test_other_lines_with_a_time_begin_no_addition(line: str) -> None:
    assert grammar.split_addenda(f"a\n{line}") == (f"a\n{line}", "")


def test_additions_come_singly_with_their_headings() -> None:
    text = "a\n\n## x(12:00:00)\none\n\n## y(12:00:01)\ntwo\n\n## no time\nmore\n"
    assert grammar.addenda(text) == ["## x(12:00:00)\none", "## y(12:00:01)\ntwo\n\n## no time\nmore"]
    assert grammar.addenda("a") == []


@given(TEXTS)
def test_no_text_makes_the_parser_fail_and_sections_hold_no_heading(text: str) -> None:
    sections = GRAMMAR.sections(text)
    assert set(sections) <= {"goal", "accept", "unknowns"}
    for body in sections.values():
        # Whatever is a heading has opened a section: a body that is read again opens none. Only a line whose blanks
        # around it were trimmed, the first, may have been a text behind a heading.
        assert GRAMMAR.sections("\n".join(body.split("\n")[1:])) == {}


@given(TEXTS)
def test_document_and_additions_together_are_the_text(text: str) -> None:
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    document, added = grammar.split_addenda(text)
    assert "".join(f"{document}{added}".split()) == "".join(plain.split())


@given(st.lists(st.text(st.characters(exclude_categories=("C", "Z")), min_size=1).filter(lambda t: t[0].isalpha())))
def test_what_is_listed_is_read_back(items: list[str]) -> None:
    assert grammar.items("\n".join(f"- {item}" for item in items)) == items


@pytest.mark.parametrize("line", [" " * 200_000 + "x", "#" + " " * 200_000 + "x", "1" * 200_000, "- " * 100_000 + "x"])
def test_a_long_line_costs_no_more_than_its_length(line: str) -> None:
    began = time.process_time()
    GRAMMAR.sections(f"## 目标\n{line}")
    grammar.items(line)
    assert time.process_time() - began < 2
