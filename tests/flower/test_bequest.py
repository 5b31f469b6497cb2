"""What a finished run leaves in the project's root (API 15.3)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flower import texts
from flower.core.bequest import (
    BEGIN,
    BEQUEST_PROMPT,
    DEGRADED,
    END,
    Bequest,
    mechanical,
    write_both,
    write_managed,
)

WHOLE = Bequest(what="A", acceptance="B", generated="C", deadends="D", workbench="E")
ZH_TEXT = (
    "好的,交接如下。\n\n## 这是什么\nA\n## 验收:达成与未达成\nB\n## 哪些文件是生成的、由什么生成\nC\n"
    "## 走不通的路\nD\n## 工作台在哪、怎么读\nE\n"
)
BLOCK = f"{BEGIN}\nnew\n{END}\n"


@pytest.fixture(autouse=True)
def chinese(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FLOWER_LANG", raising=False)


# The document.


@pytest.mark.parametrize(
    "text", ["", "  ", "Sure.", "```\n## 这是什么\nA", "## 这是什么\n(空)\n## 工作台\n(empty)", "\0\ud800"]
)
def test_a_text_without_sections_misses_the_two_that_are_required(text: str) -> None:
    bequest = Bequest.parse(text)
    assert bequest == Bequest()
    assert bequest.missing() == ["这是什么", "工作台在哪、怎么读"]
    assert not bequest.complete()
    assert not bequest.degraded


def test_the_five_sections_are_read_and_the_rest_is_dropped() -> None:
    bequest = Bequest.parse(ZH_TEXT)
    assert bequest == WHOLE
    assert bequest.complete()
    assert bequest.missing() == []


def test_two_sections_are_enough() -> None:
    assert Bequest(what="A", workbench="E").complete()
    with texts.speaking("en"):
        assert Bequest(acceptance="B").missing() == ["What this is", "Where the workbench is and how to read it"]


@pytest.mark.parametrize(
    ("key", "names"),
    [
        ("what", ["这是什么", "任务", "What this is", "Task"]),
        (
            "acceptance",
            [
                "验收:达成与未达成",
                "验收\uff1a达成与未达成",
                "达成与未达成",
                "验收",
                "还差什么",
                "Acceptance: reached and not reached",
                "Acceptance",
            ],
        ),
        (
            "generated",
            [
                "哪些文件是生成的、由什么生成",
                "生成物与来源",
                "哪些文件是生成的",
                "哪些是生成的",
                "生成物",
                "Which files are generated, and by what",
                "Generated files",
            ],
        ),
        ("deadends", ["走不通的路", "试过不行的", "Dead ends"]),
        (
            "workbench",
            [
                "工作台在哪、怎么读",
                "工作台在哪",
                "工作台",
                "怎么读",
                "Where the workbench is and how to read it",
                "Workbench",
            ],
        ),
    ],
)
def test_every_alias_is_understood_in_both_languages(key: str, names: list[str]) -> None:
    for name in names:
        bequest = Bequest.parse(f"## {name}\nX")
        assert getattr(bequest, key) == "X", name
        assert bequest.block_body().count("###") == 1, name


def test_the_block_read_again_is_the_same_document_in_either_language() -> None:
    assert Bequest.parse(WHOLE.block_body()) == WHOLE
    assert "### 验收:达成与未达成\n\nB" in WHOLE.block_body()
    with texts.speaking("en"):
        block = WHOLE.block_body()
    assert "### What this is\n\nA" in block
    assert Bequest.parse(block) == WHOLE


HOSTILE = [
    "## 这是什么",
    "## 任务 验收: x",
    "任务: 工作台: y",
    "**验收** 走不通的路:",
    "### 工作台",
    "生成物",
    "text",
    "",
    "---",
    "```",
    "~~~",
    "<!--",
    END,
    BEGIN,
    "- item",
    "\x00```",
    "任\x00务:",
    "a\rb",
    "(空)",
    "\x1b[31m\ud800",
    "x" * 9000,
]


@given(st.lists(st.sampled_from(HOSTILE), max_size=12).map("\n".join) | st.text(max_size=60))
def test_whatever_is_read_comes_back_the_same_from_the_block(text: str) -> None:
    bequest = Bequest.parse(text)
    block = bequest.block_body()
    assert Bequest.parse(block) == bequest
    assert "<!--" not in block
    assert not set(block) & {"\0", "\x1b", "\r", "\ud800"}


def test_a_made_up_document_of_50_megabytes_becomes_a_short_block() -> None:
    bequest = Bequest.parse("## 工作台\nE\n## 这是什么\n" + "garbage\n" * 6_250_000)
    assert len(bequest.block_body()) < 9000
    assert bequest.what.endswith("garbage\n\n(太长,后面截掉了)")
    assert bequest.workbench == "E"
    assert not Bequest.parse("\n" * 50_000_000 + "## 这是什么\nA").complete()


def test_a_line_that_would_open_a_section_is_told_as_an_item() -> None:
    made = Bequest(what="A\n验收: 不是标题\n```\ncode\n```", workbench="E")
    assert Bequest.parse(made.block_body()) == Bequest(what="A\n- 验收: 不是标题", workbench="E")


def test_it_is_written_and_loaded_with_its_empty_sections(tmp_path: Path) -> None:
    made = Bequest(what="A", workbench="E")
    path = made.write(tmp_path / "deep" / ".." / "收尾.md")
    assert path == made.path == (tmp_path / "收尾.md").resolve()
    assert "## 走不通的路\n\n(空)" in path.read_text(encoding="utf-8")
    loaded = Bequest.load(path)
    assert loaded == made
    assert loaded is not None
    assert loaded.path == path
    assert made.prompt_block() == "## 这是什么\nA\n\n## 工作台在哪、怎么读\nE"


def test_of_a_managed_file_the_block_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "CLAUDE.md").write_text("## 任务\nnot ours\n", encoding="utf-8")
    write_managed(tmp_path / "CLAUDE.md", WHOLE.block_body())
    assert Bequest.load(tmp_path / "CLAUDE.md") == WHOLE


def test_what_cannot_be_loaded_is_none(tmp_path: Path) -> None:
    (tmp_path / "broken.md").write_bytes(b"\xff\xff")
    assert [Bequest.load(tmp_path / name) for name in ("missing.md", "broken.md", "")] == [None] * 3


# The substitute.


def test_the_substitute_is_complete_and_says_what_it_is() -> None:
    made = mechanical(what="做一个 X", workbench_hint="/somewhere/.flower", why="模型没有\n回话")
    assert made.complete()
    assert made.degraded
    assert made.what == f"{DEGRADED}(模型没有 回话)\n\n> 做一个 X"
    assert "/somewhere/.flower" in made.workbench
    assert "notes" in made.workbench
    assert "别直接改" in made.generated
    assert Bequest.parse(made.block_body()) == made


@pytest.mark.parametrize("language", ["zh", "en"])
def test_the_substitute_needs_nothing(language: str) -> None:
    with texts.speaking(language):
        made = mechanical()
        assert made.complete()
        assert made.degraded
        assert Bequest.parse(made.block_body()) == made
        assert Bequest.parse(made.block_body()).degraded


@pytest.mark.parametrize(
    "what", ["目标: X\n验收: Y\n工作台: Z", "```\ncode", END, "a\0\ud800\x1b[2J", "  \n ", "x\n" * 20_000_000]
)
def test_a_request_that_looks_like_a_document_stays_a_request(what: str) -> None:
    made = mechanical(what=what, workbench_hint="x\n## 任务\ny", why="```")
    assert Bequest.parse(made.block_body()) == made
    assert made.acceptance.startswith("没有人逐条总结过")
    assert len(made.block_body().encode()) < 10_000


def test_a_request_of_several_lines_is_repeated_whole() -> None:
    assert mechanical(what="做一个 X\n\n```\ncode\n```").what == f"{DEGRADED}\n\n> 做一个 X\n>\n> ```\n> code\n> ```"


# The managed block.


def test_the_marks_are_the_specified_ones() -> None:
    assert BEGIN.startswith("<!-- flower:begin")
    assert BEGIN.endswith("-->")
    assert END == "<!-- flower:end -->"
    assert DEGRADED == "[降级:收尾交接没写成]"


def test_a_missing_file_is_made_of_the_block_alone(tmp_path: Path) -> None:
    path = write_managed(tmp_path / "deep" / "CLAUDE.md", "new")
    assert path == (tmp_path / "deep" / "CLAUDE.md").resolve()
    assert path.read_bytes() == BLOCK.encode()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", BLOCK),
        ("mine\n", f"mine\n\n{BLOCK}"),
        ("mine", f"mine\n\n{BLOCK}"),
        (f"top\n{BEGIN}\nold\nolder\n{END}\nbottom", f"top\n{BEGIN}\nnew\n{END}\nbottom"),
        (f"{BEGIN}\n{END}", f"{BEGIN}\nnew\n{END}"),
        (f"{BEGIN}old{END}\n", BLOCK),
        (f"\ufeff{BEGIN}\nold\n{END}\n", f"\ufeff{BLOCK}"),
        # Another language's words in the mark, or another version's, stay.
        (
            "<!-- flower:begin v0 -->\nold\n<!-- flower:end v0 -->",
            "<!-- flower:begin v0 -->\nnew\n<!-- flower:end v0 -->",
        ),
        ("<!-- flower:begin-->\nold\n<!-- flower:end-->", "<!-- flower:begin-->\nnew\n<!-- flower:end-->"),
    ],
)
def test_only_what_is_between_the_marks_is_replaced(tmp_path: Path, before: str, after: str) -> None:
    file = tmp_path / "CLAUDE.md"
    file.write_bytes(before.encode())
    write_managed(file, "new")
    assert file.read_bytes() == after.encode()


@pytest.mark.parametrize(
    "before",
    [
        f"{BEGIN}\nopen\n",
        f"only an end\n{END}\n",
        f"{END}\nwrong way round\n{BEGIN}\n",
        f"{BEGIN}\none\n{END}\n{BEGIN}\ntwo\n{END}\n",
        f"{BEGIN}\n{BEGIN}\nx\n{END}\n",
        f"{BEGIN}\nx\n{END}\n{END}\n",
        "text about `<!-- flower:begin -->` and\n`<!-- flower:end -->`\n",
        "<!-- flower:beginning -->\nx\n<!-- flower:ending -->\n",
    ],
)
def test_in_any_other_state_a_block_is_appended_and_nothing_is_touched(tmp_path: Path, before: str) -> None:
    file = tmp_path / "CLAUDE.md"
    file.write_text(before, encoding="utf-8")
    write_managed(file, "new")
    assert file.read_bytes() == f"{before}\n{BLOCK}".encode()
    write_managed(file, "new")
    assert file.read_bytes() == f"{before}\n{BLOCK}".encode()


LINES = [BEGIN, END, f" {BEGIN}", f"{END} ", "text", "", "\ufeff", f"`{END}`"]


@given(
    before=st.tuples(st.lists(st.sampled_from(LINES), max_size=6), st.sampled_from(["\n", "\r\n"])).map(
        lambda given: given[1].join(given[0]).encode()
    )
    | st.binary(max_size=40).filter(lambda data: data[:2] not in (b"\xff\xfe", b"\xfe\xff")),
    body=st.sampled_from(["", "new", "a\r\nb\n", f"x\n{END}\ny", BEGIN, "\ud800\0", "\n\n"]),
)
def test_nothing_existing_is_lost_and_twice_is_once(
    tmp_path_factory: pytest.TempPathFactory, before: bytes, body: str
) -> None:
    file = tmp_path_factory.mktemp("bequest") / "CLAUDE.md"
    file.write_bytes(before)
    once = write_managed(file, body).read_bytes()
    if not once.startswith(before):
        begin, end = before.find(b"<!-- flower:begin"), before.rfind(END.encode())
        assert once.startswith(before[:begin] + BEGIN.encode())
        assert once.endswith(before[end:])
    assert write_managed(file, body).read_bytes() == once


def test_the_same_body_again_does_not_even_write_the_file(tmp_path: Path) -> None:
    file = write_managed(tmp_path / "CLAUDE.md", "new")
    file.chmod(0o444)
    before = file.stat()
    write_managed(file, "new")
    assert (file.stat().st_mtime_ns, file.stat().st_ino) == (before.st_mtime_ns, before.st_ino)


def test_the_same_body_in_another_language_changes_nothing(tmp_path: Path) -> None:
    file = write_managed(tmp_path / "CLAUDE.md", "new")
    before = file.read_bytes()
    with texts.speaking("en"):
        write_managed(file, "new")
    assert file.read_bytes() == before


def test_line_endings_of_the_file_are_those_of_the_block(tmp_path: Path) -> None:
    file = tmp_path / "CLAUDE.md"
    file.write_bytes(b"one\r\ntwo\r\nthree\n")
    write_managed(file, "a\nb")
    assert file.read_bytes() == b"one\r\ntwo\r\nthree\n\r\n" + f"{BEGIN}\r\na\r\nb\r\n{END}\r\n".encode()
    write_managed(file, "c\r\nd")
    assert file.read_bytes() == b"one\r\ntwo\r\nthree\n\r\n" + f"{BEGIN}\r\nc\r\nd\r\n{END}\r\n".encode()


def test_broken_characters_of_the_file_stay_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "CLAUDE.md"
    file.write_bytes(b"caf\xe9 \xff\x00\n")
    write_managed(file, "new")
    assert file.read_bytes() == b"caf\xe9 \xff\x00\n\n" + BLOCK.encode()


@pytest.mark.parametrize("content", ["\ufeffmine".encode("utf-16-le"), "\ufeffmine".encode("utf-16-be")])
def test_a_file_in_utf_16_is_refused_and_stays(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "CLAUDE.md").write_bytes(content)
    with pytest.raises(ValueError, match="UTF-16"):
        write_managed(tmp_path / "CLAUDE.md", "new")
    assert (tmp_path / "CLAUDE.md").read_bytes() == content


def test_a_body_cannot_close_the_block_or_open_another(tmp_path: Path) -> None:
    file = write_managed(tmp_path / "CLAUDE.md", f"a\n{END}\n{BEGIN}\nb <!-- open")
    write_managed(file, "new")
    assert file.read_bytes() == BLOCK.encode()


def test_the_mode_is_kept_and_a_read_only_file_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "CLAUDE.md"
    file.write_text("mine\n")
    file.chmod(0o640)
    write_managed(file, "new")
    assert file.stat().st_mode & 0o777 == 0o640
    file.chmod(0o440)
    before = file.read_bytes()
    with pytest.raises(PermissionError, match=r"CLAUDE\.md 是只读的"):
        write_managed(file, "newer")
    assert file.read_bytes() == before


def test_a_folder_or_a_pipe_in_its_place_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("folder", "pipe"):
        with pytest.raises(OSError, match=r"directory|not a regular file"):
            write_managed(tmp_path / name, "new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "pipe"]


# Both files.


def test_both_files_are_made_alike(tmp_path: Path) -> None:
    paths = write_both(tmp_path, "new")
    assert paths == [(tmp_path / "CLAUDE.md").resolve(), (tmp_path / "AGENTS.md").resolve()]
    assert [path.read_bytes() for path in paths] == [BLOCK.encode()] * 2


def test_one_that_is_a_link_to_the_other_is_written_once(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("ours\n")
    (tmp_path / "CLAUDE.md").symlink_to("AGENTS.md")
    assert write_both(tmp_path, "new") == [(tmp_path / "AGENTS.md").resolve()] * 2
    assert (tmp_path / "CLAUDE.md").is_symlink()
    assert (tmp_path / "AGENTS.md").read_text(encoding="utf-8") == f"ours\n\n{BLOCK}"


def test_a_link_that_leads_out_is_not_followed_and_the_other_is_written(tmp_path: Path) -> None:
    (tmp_path / "profile").write_text("alias ls=ls\n")
    root = tmp_path / "project"
    root.mkdir()
    (root / "CLAUDE.md").symlink_to("../profile")
    with pytest.raises(OSError, match=r"CLAUDE\.md 是一个链接"):
        write_both(root, "new")
    assert (tmp_path / "profile").read_text() == "alias ls=ls\n"
    assert (root / "AGENTS.md").read_bytes() == BLOCK.encode()


def test_links_in_a_circle_are_an_error_of_the_disk(tmp_path: Path) -> None:
    (tmp_path / "CLAUDE.md").symlink_to("CLAUDE.md")
    with pytest.raises(OSError, match="symbolic links"):
        write_both(tmp_path, "new")
    assert (tmp_path / "AGENTS.md").read_bytes() == BLOCK.encode()


# The request.


def test_the_request_names_the_sections_that_the_parser_looks_for() -> None:
    assert texts.of("zh").bequest.prompt == BEQUEST_PROMPT
    for language in texts.LANGUAGES:
        spoken = texts.of(language).bequest
        for names in (spoken.what, spoken.acceptance, spoken.generated, spoken.deadends, spoken.workbench):
            assert f"\n## {names[0]}\n" in spoken.prompt
        assert Bequest.parse(spoken.prompt).complete()
