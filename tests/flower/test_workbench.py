from __future__ import annotations

import os
from pathlib import Path

import pytest

from flower import texts
from flower.core.workbench import Workbench


@pytest.fixture(autouse=True)
def chinese(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FLOWER_LANG", raising=False)


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    return Workbench(tmp_path / "ws").ensure()


def described(bench: Workbench, content: str | bytes) -> str:
    path = bench.scripts / "x"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return bench.scan(bench.scripts)[0][1]


def test_a_directory_that_is_missing_or_a_file_has_no_entries(bench: Workbench) -> None:
    (bench.root / "plain").write_text("x")
    assert bench.scan(bench.root / "nowhere") == []
    assert bench.scan(bench.root / "plain") == []


def test_the_default_place_is_in_the_workspace_and_resolved(tmp_path: Path) -> None:
    bench = Workbench(tmp_path / "x" / ".." / "ws")
    assert bench.workspace == (tmp_path / "ws").resolve()
    assert bench.root == bench.workspace / ".flower"
    assert (bench.scripts, bench.artifacts, bench.notes, bench.index_path) == (
        bench.root / "scripts",
        bench.root / "artifacts",
        bench.root / "notes",
        bench.root / "INDEX.md",
    )
    assert not bench.external


def test_a_home_wins_over_the_dirname_and_may_be_external(tmp_path: Path) -> None:
    inside = Workbench(tmp_path, dirname="other", home=tmp_path / "in")
    outside = Workbench(tmp_path / "ws", home=tmp_path / "x" / ".." / ".flower-ws")
    assert (inside.root, inside.external) == ((tmp_path / "in").resolve(), False)
    assert (outside.root, outside.external) == ((tmp_path / ".flower-ws").resolve(), True)


def test_paths_are_shown_relative_inside_and_absolute_outside(tmp_path: Path) -> None:
    inside = Workbench(tmp_path / "ws")
    outside = Workbench(tmp_path / "ws", home=tmp_path / "home")
    assert inside.show(inside.scripts / "a.sh") == ".flower/scripts/a.sh"
    assert outside.show(outside.scripts / "a.sh") == str((tmp_path / "home" / "scripts" / "a.sh").resolve())
    assert outside.show(tmp_path / "ws" / "a.txt") == str((tmp_path / "ws" / "a.txt").resolve())
    assert inside.show(tmp_path / "else.txt") == str(tmp_path / "else.txt")


def test_ensure_makes_the_three_directories_and_returns_the_bench(tmp_path: Path) -> None:
    bench = Workbench(tmp_path / "ws")
    assert bench.ensure() is bench.ensure() is bench
    assert sorted(path.name for path in bench.root.iterdir()) == ["artifacts", "notes", "scripts"]


def test_files_are_found_in_depth_and_in_order_and_dotted_names_are_skipped(bench: Workbench) -> None:
    for name in ("b.txt", "a/z.txt", ".hidden", ".dir/inside", "a/.draft"):
        path = bench.artifacts / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("four")
    assert bench.scan(bench.artifacts) == [
        (".flower/artifacts/a/z.txt", "", 4),
        (".flower/artifacts/b.txt", "", 4),
    ]


def test_what_is_no_file_is_not_opened(bench: Workbench) -> None:
    os.mkfifo(bench.artifacts / "pipe")
    (bench.artifacts / "dangling").symlink_to("nowhere")
    assert bench.scan(bench.artifacts) == []


@pytest.mark.parametrize(
    ("content", "description"),
    [
        ("", ""),
        ("print(1)\n", ""),
        ("# desc: runs the tests\n", "runs the tests"),
        ("#!/bin/sh\n#DESC\uff1a 跑测试\n", "跑测试"),
        ("// desc: a\n", "a"),
        ("-- desc: a\n", "a"),
        ("#!/bin/sh\n# a remark\n\n\n\n\n\n# desc: in line eight\n", "in line eight"),
        ("\n\n\n\n\n\n\n\n# desc: in line nine\n", ""),
        ("#!/bin/sh\n# -*- coding: utf-8 -*-\n# ab\n# counts words\n", "counts words"),
        ("## 决策:用 sqlite\n", "决策:用 sqlite"),
        ("// counts words\n", "counts words"),
        ("---\n--- \nselect 1;\n", ""),
        ('"""Counts words.\n\nLong."""\n', "Counts words."),
        ("'''Counts words.'''\n", "Counts words."),
        ('"""\nCounts words.\n"""\n', "Counts words."),
        ('r"""Counts words."""\n', "Counts words."),
        ("# " + "x" * 150 + "\n", "x" * 100),
        ("# desc: " + "x" * 150 + "\n", "x" * 100),
        (b"# desc: a\x00b\n", ""),
        (b"\xff\xfe\n# desc: a\n", "a"),
        ("# desc: one line without an end" + " " * 5000, "one line without an end"),
    ],
)
def test_the_head_of_a_file_describes_it(bench: Workbench, content: str | bytes, description: str) -> None:
    assert described(bench, content) == description


def test_the_index_lists_everything_with_counts_descriptions_and_sizes(bench: Workbench) -> None:
    (bench.scripts / "t.sh").write_text("# desc: runs the tests\n" + "x" * 489)
    (bench.artifacts / "log.txt").write_bytes(b"x" * 2048)
    (bench.artifacts / "big.bin").write_bytes(b"\0" * (3 * 1024 * 1024 + 300_000))
    text = bench.refresh()
    assert text == (
        "# 工作台索引\n\n"
        "> 自动生成,不要手改。文件开头几行里写 `# desc: …`,说明就会出现在这里。\n\n"
        "## 可复用脚本(1)\n\n- `.flower/scripts/t.sh` — runs the tests (512B)\n\n"
        "## 产出(2)\n\n- `.flower/artifacts/big.bin` — (无说明) (3.3M)\n"
        "- `.flower/artifacts/log.txt` — (无说明) (2.0K)\n\n"
        "## 决策记录(0)\n\n- (空)\n"
    )
    assert bench.index_path.read_text(encoding="utf-8") == text


def test_the_index_makes_the_bench_where_there_is_none_and_has_no_limit(tmp_path: Path) -> None:
    bench = Workbench(tmp_path, max_index_entries=2)
    bench.refresh()
    for number in range(5):
        (bench.notes / f"{number}.md").write_text("x")
    assert bench.refresh().count(".flower/notes/") == 5


def test_an_unchanged_index_is_not_written_again(bench: Workbench) -> None:
    bench.refresh()
    before = bench.index_path.stat().st_ino
    bench.refresh()
    assert bench.index_path.stat().st_ino == before
    (bench.notes / "a.md").write_text("x")
    bench.refresh()
    assert bench.index_path.stat().st_ino != before


RULES = (
    "三条规矩:\n"
    "1. 会跑第二次的脚本放进 `{0}scripts`,第一行写 `# desc: 一句话说明`。\n"
    "2. 超过 2000 字符的输出写进 `{0}artifacts`,对话里只说路径和结论。\n"
    "3. 关键决策连同理由写进 `{0}notes`,一件事一个文件。"
)


def test_the_block_of_an_empty_bench_says_so_and_gives_the_rules(bench: Workbench) -> None:
    assert bench.prompt_block() == f"## 工作台:`.flower`\n\n(目前为空)\n\n{RULES.format('.flower/')}"


def test_the_block_shows_so_many_entries_a_category_and_the_number_of_the_rest(tmp_path: Path) -> None:
    bench = Workbench(tmp_path, max_index_entries=2).ensure()
    for number in range(5):
        (bench.notes / f"{number}.md").write_text("x")
    (bench.scripts / "t.sh").write_text("# desc: tests\n")
    assert bench.prompt_block() == (
        "## 工作台:`.flower`\n\n下面是已有的东西,直接拿来用,不要重写:\n\n"
        "### 可复用脚本(1)\n- `.flower/scripts/t.sh` — tests (14B)\n\n"
        "### 决策记录(5)\n- `.flower/notes/0.md` — (无说明) (1B)\n- `.flower/notes/1.md` — (无说明) (1B)\n"
        f"- 另有 3 个,见 INDEX.md\n\n{RULES.format('.flower/')}"
    )


def test_an_external_bench_says_so_and_gives_absolute_paths_also_with_a_rest(tmp_path: Path) -> None:
    home = (tmp_path / "home").resolve()
    bench = Workbench(tmp_path / "ws", max_index_entries=1, home=home).ensure()
    for number in range(2):
        (bench.notes / f"{number}.md").write_text("x")
    assert bench.prompt_block() == (
        f"## 工作台:`{home}`\n\n它在仓库之外,读写都用绝对路径。\n\n下面是已有的东西,直接拿来用,不要重写:\n\n"
        f"### 决策记录(2)\n- `{home}/notes/0.md` — (无说明) (1B)\n- 另有 1 个,见 INDEX.md\n\n{RULES.format(f'{home}/')}"
    )


def test_a_name_with_a_line_end_stays_one_item(bench: Workbench) -> None:
    (bench.notes / "a\n- b").write_text("x")
    assert "- `.flower/notes/a - b` — (无说明) (1B)" in bench.prompt_block().split("\n")


def test_the_bench_speaks_the_language_of_the_moment(bench: Workbench) -> None:
    with texts.speaking("en"):
        assert bench.refresh().startswith("# Workbench index\n")
        assert bench.prompt_block().startswith("## Workbench: `.flower`\n\n(nothing yet)\n\nThree rules:\n")
