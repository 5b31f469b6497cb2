"""The handoff document (behaviour 16.4 to 16.6) and how it is kept (16.2)."""

from __future__ import annotations

from pathlib import Path

import pytest

from flower import texts
from flower.core import succession
from flower.core.handoff import DEGRADED, HANDOFF_PROMPT, Handoff, degraded, is_overflow

WRITTEN = """\
好的,这是交接。

## 现在在做什么
解析器写到一半

**已经定下的**
用递归下降,因为错误信息好写

走不通的路:正则,嵌套不了

## 下一步
1. 写 parse_list
2. 跑测试

## 现场
src/parser.py
"""


def test_the_five_sections_are_found_and_the_rest_is_dropped() -> None:
    handoff = Handoff.parse(WRITTEN, step="干活")
    assert handoff == Handoff(
        doing="解析器写到一半",
        decided="用递归下降,因为错误信息好写",
        deadends="正则,嵌套不了",
        next="1. 写 parse_list\n2. 跑测试",
        scene="src/parser.py",
        step="干活",
    )
    assert handoff.complete()
    assert not handoff.degraded


@pytest.mark.parametrize(
    ("heading", "field"),
    [
        *(("现在在做", "doing"), ("当前进度", "doing"), ("进度", "doing"), ("What I am doing", "doing")),
        *(("已定的事", "decided"), ("决策", "decided"), ("Decided", "decided")),
        *(("试过不行的", "deadends"), ("排除的路", "deadends"), ("Dead ends", "deadends")),
        *(("下一步", "next"), ("Next step", "next"), ("文件", "scene"), ("Scene", "scene")),
    ],
)
def test_aliases_are_understood_in_both_languages(heading: str, field: str) -> None:
    assert getattr(Handoff.parse(f"## {heading}\nx"), field) == "x"


@pytest.mark.parametrize("text", ["", "done!", "## 现在在做什么\nx", "## 下一步\n(空)\n## 现在在做什么\nx", "\0\ud800"])
def test_without_what_is_required_it_is_incomplete(text: str) -> None:
    handoff = Handoff.parse(text)
    assert not handoff.complete()
    assert "下一步" in handoff.missing()


def test_from_a_fence_that_is_never_closed_on_nothing_counts() -> None:
    assert Handoff.parse("## 现在在做什么\nx\n```\n## 下一步\ny").missing() == ["下一步"]


@pytest.mark.parametrize("language", ["zh", "en"])
def test_a_file_reads_back_as_it_was_written(tmp_path: Path, language: str) -> None:
    handoff = Handoff(doing="a", next="b", step="work")
    with texts.speaking(language):
        path = handoff.write(tmp_path / "deep" / "x.md")
    found = Handoff.load(path)
    assert found is not None
    assert (found.doing, found.next, found.decided, found.scene) == ("a", "b", "", "")
    assert found.path == path == handoff.path
    assert {"zh": "(空)", "en": "(empty)"}[language] in path.read_text(encoding="utf-8")
    assert Handoff.load(tmp_path / "missing.md") is None
    (tmp_path / "broken.md").write_bytes(b"\xff\xfe\x00")
    assert Handoff.load(tmp_path / "broken.md") is None


def test_the_successor_reads_only_what_is_there() -> None:
    block = Handoff(doing="a", next="b").prompt_block()
    assert block.startswith("你在接手一段还没干完的活")
    assert "## 现在在做什么\na\n\n## 下一步\nb" in block
    assert "走不通的路" not in block
    assert "notes/" in block


def test_a_substitute_is_complete_and_says_that_it_is_one() -> None:
    handoff = degraded("干活", "x" * 5000, why="boom")
    assert handoff.complete()
    assert handoff.degraded
    assert handoff.doing.startswith(DEGRADED)
    assert "干活" in handoff.doing
    assert "boom" in handoff.doing
    assert handoff.scene.count("x") == 1200
    assert Handoff.parse(handoff.to_markdown()).degraded
    with texts.speaking("en"):
        assert degraded("Work", "t").degraded


def test_the_prompt_asks_for_exactly_the_five_sections() -> None:
    said = HANDOFF_PROMPT.format(used=150_000, window=200_000)
    for heading in ("现在在做什么", "已经定下的", "走不通的路", "下一步", "现场"):
        assert f"## {heading}" in said
    assert "150000 / 200000" in said
    assert "为什么" in said


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        *((None, False), ("", False), ("too long", False), ("overloaded", False), ("window", False)),
        ("API Error: 400 prompt is too long: 210000 tokens > 200000 maximum", True),
        ("Prompt Is Too Long", True),
        *(("context length exceeded", True), ("context_length_exceeded", True), ("context-length-exceeded", True)),
        ("This model's maximum context length is 200000 tokens", True),
        *(
            ("exceeds the context window", True),
            ("exceed context limit", True),
            ("would exceed the context limit", True),
        ),
        ("too many total text bytes: 9437184", True),
        ("input length and `max_tokens` exceed context limit", True),
        ("input length and max_tokens exceed the window", True),
    ],
)
def test_what_counts_as_an_overflow(said: str | None, expected: bool) -> None:
    assert is_overflow(said) is expected
    assert is_overflow(None, "fine", said) is expected
    assert is_overflow() is False


# -- kept on disk -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "stem"),
    [
        *(("干活", "干活"), ("干活#round2", "干活#round2"), ('a/b\\c:*?"<>|d', "abcd"), ("", "step"), ("/", "step")),
        *(("..", "step"), ("../../etc/passwd", "etcpasswd"), ("a\0b\nc", "abc"), ("x" * 500, "x" * 150)),
    ],
)
def test_a_steps_name_becomes_a_files_name(step: str, stem: str) -> None:
    assert succession.file_stem(step) == stem


def test_the_one_before_moves_into_the_archive_and_none_is_overwritten(tmp_path: Path) -> None:
    for number in range(4):
        path = succession.keep(Handoff(doing=str(number), next="n", step="干活"), tmp_path)
    assert path == tmp_path / "交接-干活.md"
    kept = Handoff.load(path)
    assert kept is not None
    assert kept.doing == "3"
    archived = [Handoff.load(each) for each in (tmp_path / "archive" / "交接").iterdir()]
    assert sorted(each.doing for each in archived if each is not None) == ["0", "1", "2"]


def test_a_file_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("## 现在在做什么\nA\n## 下一步\nB", encoding="utf-8-sig")
    assert Handoff.load(path) == Handoff(doing="A", next="B")


def test_a_file_that_cannot_be_read_is_kept_when_a_handoff_is_written(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("## 现在在做什么\nA", encoding="gbk")
    before = path.read_bytes()
    Handoff(doing="A", next="B").write(path)
    assert Handoff.load(path) == Handoff(doing="A", next="B")
    assert [each.read_bytes() for each in tmp_path.iterdir() if each != path] == [before]


def test_in_english_the_files_have_english_names(tmp_path: Path) -> None:
    with texts.speaking("en"):
        succession.keep(Handoff(doing="a", next="b", step="Work"), tmp_path)
        path = succession.keep(Handoff(doing="c", next="d", step="Work"), tmp_path)
    assert path.name == "handoff-Work.md"
    assert len(list((tmp_path / "archive" / "handoffs").iterdir())) == 1
