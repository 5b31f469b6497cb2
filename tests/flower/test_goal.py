from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flower import texts
from flower.core.goal import Goal


@pytest.fixture(autouse=True)
def chinese(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FLOWER_LANG", raising=False)


@pytest.mark.parametrize("text", ["", "好的。", "```\n# 目标\nA", "# 目标\n(空)\n# 判定清单\n- (空)"])
def test_a_text_without_sections_is_a_goal_with_everything_missing(text: str) -> None:
    goal = Goal.parse(text)
    assert goal.missing() == ["目标", "判定清单"]
    assert not goal.complete()


def test_a_goal_without_checks_is_incomplete_and_one_without_statement_too() -> None:
    assert Goal(statement="A").missing() == ["判定清单"]
    assert Goal(statement=" ", checks=["x"]).missing() == ["目标"]
    assert Goal(statement="A", checks=["x"]).complete()


@pytest.mark.parametrize("name", ["目标", "完成标志", "Goal", "Done when"])
@pytest.mark.parametrize("checks", ["判定清单", "判定条件", "验收清单", "检查项", "判定", "Checklist", "Checks"])
def test_every_alias_is_understood_in_both_languages(name: str, checks: str) -> None:
    assert Goal.parse(f"## {name}\nA\n## {checks}\n1. x\n2. y") == Goal(statement="A", checks=["x", "y"])


def test_missing_sections_are_named_in_the_language_spoken() -> None:
    with texts.speaking("en"):
        assert Goal().missing() == ["Goal", "Checklist"]


def test_checks_that_say_they_cannot_be_verified_are_found_in_all_their_forms() -> None:
    marked = [
        "look at the screen [此环境无法验证:no display]",
        "a [无法验证\uff1ano display]",
        "b [ 此环境 无法验证]",
        "c [cannot be verified here: no display]",
        "d [Unverifiable]",
    ]
    assert Goal(checks=["run it", *marked, "无法验证 without a mark"]).unverifiable == marked


def test_the_file_is_the_specified_one() -> None:
    assert Goal(statement="A", checks=["x", "y"]).to_markdown() == "# 目标\n\nA\n\n# 判定清单\n\n- x\n- y\n"
    assert Goal(statement="A").to_markdown() == "# 目标\n\nA\n\n# 判定清单\n\n(空)\n"


def test_the_block_for_a_model_leaves_an_empty_list_out() -> None:
    assert Goal(statement="A", checks=["x"]).prompt_block() == "## 目标\nA\n\n## 判定清单\n- x"
    assert Goal(statement="A").prompt_block() == "## 目标\nA"


def test_english_is_written_where_english_is_spoken() -> None:
    with texts.speaking("en"):
        assert Goal(statement="A", checks=["x"]).to_markdown() == "# Goal\n\nA\n\n# Checklist\n\n- x\n"


def test_a_goal_that_was_written_is_loaded_as_it_was(tmp_path: Path) -> None:
    written = Goal(statement="A", checks=["x [此环境无法验证:y]"]).amend("B")
    path = written.write(tmp_path / "notes" / "目标.md")
    assert path == (tmp_path / "notes" / "目标.md").resolve()
    assert Goal.load(path) == written


@pytest.mark.parametrize("language", texts.LANGUAGES)
def test_placeholders_of_either_language_read_back_as_empty(tmp_path: Path, language: str) -> None:
    with texts.speaking(language):
        path = Goal(statement="A").write(tmp_path / "goal.md")
    loaded = Goal.load(path)
    assert loaded is not None
    assert (loaded.statement, loaded.checks) == ("A", [])


def test_a_file_that_is_missing_or_no_text_is_none(tmp_path: Path) -> None:
    assert Goal.load(tmp_path / "no.md") is None
    (tmp_path / "bad.md").write_bytes(b"\xff\xfe\x00")
    assert Goal.load(tmp_path / "bad.md") is None


def test_a_file_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    path = Goal("A", ["x", "y"]).write(tmp_path / "目标.md")
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert Goal.load(path) == Goal("A", ["x", "y"], path)


def test_a_file_that_cannot_be_read_is_kept_when_a_goal_is_frozen(tmp_path: Path) -> None:
    path = tmp_path / "目标.md"
    path.write_text(Goal("A", ["x"]).to_markdown(), encoding="utf-16")
    before = path.read_bytes()
    Goal("B", ["y"]).write(path)
    assert Goal.load(path) == Goal("B", ["y"], path)
    assert [each.read_bytes() for each in tmp_path.iterdir() if each != path] == [before]


@given(
    st.lists(st.sampled_from(["run x", "1. x", "[a] b", "3.5 is out", "目标是 X", "- dash"])),
    st.sampled_from(["zh", "en"]),
)
def test_whatever_was_parsed_is_parsed_again_from_its_file(checks: list[str], language: str) -> None:
    goal = Goal.parse("\n".join(["# 目标", "A", "# 判定清单", *checks]))
    with texts.speaking(language):
        assert Goal.parse(goal.to_markdown()) == goal
