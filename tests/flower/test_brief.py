from __future__ import annotations

import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flower import texts
from flower.core import grammar
from flower.core.brief import Brief
from flower.core.human import HumanChannel

WHOLE = Brief(goal="A", accept="B", bounds="C", unknowns="D")


@pytest.fixture(autouse=True)
def chinese(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FLOWER_LANG", raising=False)


@pytest.mark.parametrize("text", ["", "   ", "Sure, I will do that.", "```\n## 目标\nA", "## 目标\n(未填)"])
def test_a_text_without_sections_is_a_brief_with_everything_missing(text: str) -> None:
    brief = Brief.parse(text)
    assert brief.missing() == ["目标", "验收标准", "边界", "未知与假设"]
    assert not brief.complete()


def test_the_four_forms_of_the_specified_sample() -> None:
    assert Brief.parse("## 目标\nA\n**验收标准**\nB\n边界:C\n4. 未知项与假设\nD") == WHOLE


@pytest.mark.parametrize(
    ("field", "names"),
    [
        ("goal", ["目标", "Goal", "Objective"]),
        ("accept", ["验收标准", "验收条件", "验收", "Acceptance criteria", "Acceptance"]),
        ("bounds", ["边界", "范围边界", "不做什么", "Bounds", "Boundaries", "Out of scope"]),
        (
            "unknowns",
            [
                "未知与假设",
                "未知项与假设",
                "未知项",
                "已知未知",
                "假设",
                "未知",
                "Unknowns and assumptions",
                "Assumptions",
            ],
        ),
    ],
)
def test_every_alias_is_understood_in_both_languages(field: str, names: list[str]) -> None:
    for name in names:
        assert getattr(Brief.parse(f"## {name}\nX"), field) == "X", name


def test_the_fourth_section_in_an_open_fence_is_missing() -> None:
    assert Brief.parse("## 目标\nA\n## 验收标准\nB\n## 边界\nC\n```\n## 未知与假设\nD").missing() == ["未知与假设"]


def test_a_fenced_section_before_the_real_one_is_not_taken() -> None:
    assert Brief.parse("```\n## 边界\nwrong\n```\n## 边界\nC").bounds == "C"


def test_of_two_goals_the_first_with_content_is_taken() -> None:
    assert Brief.parse("## 目标\n\n## 目标\nA").goal == "A"


def test_an_english_brief_is_read_while_chinese_is_spoken_and_the_other_way_round() -> None:
    english = "## Goal\nA\n## Acceptance criteria\nB\n## Bounds\nC\n## Unknowns and assumptions\nD"
    assert Brief.parse(english) == WHOLE
    with texts.speaking("en"):
        assert Brief.parse("## 目标\nA\n## 验收标准\nB\n## 边界\nC\n## 未知与假设\nD") == WHOLE


def test_missing_sections_are_named_in_the_language_spoken() -> None:
    with texts.speaking("en"):
        assert Brief(goal="A").missing() == ["Acceptance criteria", "Bounds", "Unknowns and assumptions"]


def test_the_file_has_title_note_and_sections_with_placeholders() -> None:
    assert Brief(goal="A\n\n- x", bounds="C").to_markdown() == (
        "# 需求确认书\n\n"
        "> 由需求确认生成,已冻结。要改需求就直接改这个文件;要重新确认,把它删掉再跑。\n\n"
        "## 目标\n\nA\n\n- x\n\n## 验收标准\n\n(未填)\n\n## 边界\n\nC\n\n## 未知与假设\n\n(未填)\n"
    )


def test_the_english_file_has_english_names() -> None:
    with texts.speaking("en"):
        headings = [line for line in WHOLE.to_markdown().split("\n") if line.startswith("#")]
    assert headings == ["# Brief", "## Goal", "## Acceptance criteria", "## Bounds", "## Unknowns and assumptions"]


def test_the_block_for_a_model_has_only_what_is_there() -> None:
    assert Brief(goal="A", bounds="C").prompt_block() == "## 目标\nA\n\n## 边界\nC"


def test_a_brief_that_was_written_is_loaded_as_it_was(tmp_path: Path) -> None:
    written = Brief(goal="A", accept="- x\n- y", bounds="C", unknowns="D")
    path = written.write(tmp_path / "notes" / "需求.md")
    loaded = Brief.load(path)
    assert loaded == written
    assert loaded is not None
    assert loaded.path == written.path == path == (tmp_path / "notes" / "需求.md").resolve()


@pytest.mark.parametrize("language", texts.LANGUAGES)
def test_placeholders_of_either_language_read_back_as_empty(tmp_path: Path, language: str) -> None:
    with texts.speaking(language):
        path = Brief(goal="A").write(tmp_path / "brief.md")
    loaded = Brief.load(path)
    assert loaded is not None
    assert loaded.missing() == ["验收标准", "边界", "未知与假设"]


def test_a_file_that_is_missing_or_no_text_is_none(tmp_path: Path) -> None:
    assert Brief.load(tmp_path / "no.md") is None
    assert Brief.load(tmp_path) is None
    (tmp_path / "bad.md").write_bytes(b"\xff\xfe\x00")
    assert Brief.load(tmp_path / "bad.md") is None


ADDED = "## 运行中补充(12:00:00)\n目标: not a heading here\n```\nopen"


def test_words_sent_while_clarifying_survive_the_freezing(tmp_path: Path) -> None:
    path = tmp_path / "需求.md"
    path.write_text(f"# 运行中的补充\n\n{ADDED}\n", encoding="utf-8")
    frozen = Brief(goal="A", accept="B", bounds="C", unknowns="D")
    frozen.write(path)
    assert frozen.unknowns == f"D\n\n{ADDED}"
    assert Brief.load(path) == frozen


def test_freezing_again_doubles_nothing_and_keeps_the_order(tmp_path: Path) -> None:
    path = tmp_path / "需求.md"
    Brief.parse("## 未知与假设\nold\n\n## x(12:00:00)\none\n\n## y(12:00:01)\ntwo").write(path)
    frozen = Brief(goal="A", accept="B", bounds="C", unknowns="D\n\n## y(12:00:01)\ntwo")
    frozen.write(path)
    frozen.write(path)
    assert frozen.unknowns == "D\n\n## y(12:00:01)\ntwo\n\n## x(12:00:00)\none"
    assert Brief.load(path) == frozen


def test_words_sent_while_it_is_being_frozen_are_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "需求.md"
    channel = HumanChannel(amend_path=path)
    words = [f"words {number}" for number in range(300)]

    def send() -> None:
        for each in words:
            channel.send(each)

    sender = threading.Thread(target=send)
    sender.start()
    Brief("A", "B", "C", "D").write(path)
    while sender.is_alive():
        Brief("A", "B", "C", "D").write(path)
    sender.join()
    assert all(channel._amended.values())
    kept = {added.split("\n", 1)[1] for added in grammar.addenda(path.read_text(encoding="utf-8"))}
    assert [each for each in words if each not in kept] == []


def test_words_that_begin_like_others_are_words_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "需求.md"
    path.write_text("## x(12:00:00)\nred\n", encoding="utf-8")
    frozen = Brief("A", "B", "C", "D\n\n## x(12:00:00)\nred and blue")
    frozen.write(path)
    assert grammar.addenda(frozen.unknowns) == ["## x(12:00:00)\nred and blue", "## x(12:00:00)\nred"]


def test_words_behind_what_cannot_be_read_are_taken_up_and_the_file_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "需求.md"
    path.write_bytes(WHOLE.to_markdown().encode("gbk"))
    HumanChannel(amend_path=path).send("也要 JSON")
    spoilt = path.read_bytes()
    frozen = Brief("A", "B", "C", "D")
    frozen.write(path)
    assert frozen.unknowns.startswith("D\n\n## ")
    assert frozen.unknowns.endswith("\n也要 JSON")
    assert [each.read_bytes() for each in tmp_path.iterdir() if each != path] == [spoilt]


def test_a_file_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    path = tmp_path / "需求.md"
    path.write_text("## 目标\nA\n## 验收标准\nB\n## 边界\nC\n## 未知与假设\nD", encoding="utf-8-sig")
    assert Brief.load(path) == WHOLE


def test_words_alone_complete_no_section(tmp_path: Path) -> None:
    brief = Brief.parse(f"# 运行中的补充\n\n{ADDED}\n")
    assert brief.unknowns == ADDED
    assert brief.missing() == ["目标", "验收标准", "边界", "未知与假设"]
    brief.goal, brief.accept, brief.bounds = "A", "B", "C"
    assert not brief.complete()
    brief.write(tmp_path / "需求.md")
    assert Brief.load(tmp_path / "需求.md") == brief


@pytest.mark.case("SE-3")
def test_a_line_of_an_addition_that_looks_like_a_heading_stays_where_it_is() -> None:
    brief = Brief.parse(f"## 目标\nA\n## 验收标准\nB\n## 边界\nC\n## 未知与假设\nD\n\n{ADDED}")
    assert (brief.goal, brief.unknowns) == ("A", f"D\n\n{ADDED}")
    assert brief.prompt_block().endswith(f"## 未知与假设\nD\n\n{ADDED}")


SECTION = st.lists(
    st.sampled_from(["word", "- item", "1. x", "### sub", "", "`code`", "目标是 X", "(未填)"]), max_size=6
)


@given(SECTION, SECTION, SECTION, SECTION, st.sampled_from(texts.LANGUAGES))
def test_whatever_was_parsed_is_parsed_again_from_its_file(
    goal: list[str], accept: list[str], bounds: list[str], unknowns: list[str], language: str
) -> None:
    parts = zip(["目标", "验收标准", "边界", "未知与假设"], [goal, accept, bounds, unknowns], strict=True)
    brief = Brief.parse("\n".join("\n".join([f"## {name}", *lines]) for name, lines in parts))
    with texts.speaking(language):
        assert Brief.parse(brief.to_markdown()) == brief
