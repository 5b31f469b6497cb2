"""Markdown as models write it, bad input first; whatever comes, nothing of it is lost."""

from __future__ import annotations

import time
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.markup import blocks, literal, spans
from bridge.rich import (
    Block,
    Break,
    Code,
    Fence,
    Heading,
    Item,
    Link,
    Listing,
    Paragraph,
    Quote,
    Rule,
    Table,
    Text,
    line,
)
from bridge.split import plain


def one(text: str) -> Block:
    (block,) = blocks(text)
    return block


# -- hostile and broken -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", " ", "\n\n\n", "\t"])
def test_nothing_gives_no_blocks(text: str) -> None:
    assert blocks(text) == ()


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "docs/a.md",
        "//evil.com",
        "ftp://x.org",
        "vbscript:x",
    ],
)
def test_a_link_to_anything_but_web_and_mail_stays_literal(url: str) -> None:
    assert one(f"see [here]({url}) now") == line(f"see [here]({url}) now")


def test_raw_html_is_literal_text() -> None:
    assert one("a <b>bold</b> <script>alert(1)</script>") == line("a <b>bold</b> <script>alert(1)</script>")
    assert one("<div>\nx\n</div>") == Paragraph((Text("<div>"), Break(), Text("x"), Break(), Text("</div>")))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[https://good.com](https://evil.com/x)", "https://good.com → https://evil.com/x"),
        ("[good.com](https://good.com@evil.com)", "good.com → https://good.com@evil.com"),
        ("[good.com/login](https://good.com/logout)", "good.com/login → https://good.com/logout"),
        ("[a@good.com](mailto:a@evil.com)", "a@good.com → mailto:a@evil.com"),
        ("[**good.com**](https://evil.com)", "good.com → https://evil.com"),
        ("[GOOD.com](https://good.com/docs)", "GOOD.com"),
        ("[https://good.com/](https://good.com)", "https://good.com/"),
        ("[the docs](https://good.com/docs)", "the docs"),
        ("[](https://good.com)", "https://good.com"),
        ("<https://good.com/a>", "https://good.com/a"),
    ],
)
def test_a_link_never_looks_as_if_it_led_elsewhere(text: str, shown: str) -> None:
    match one(text):
        case Paragraph(spans=(Link(text=said),)):
            assert said == shown
        case other:
            pytest.fail(f"no link: {other}")


def test_a_definition_of_a_reference_is_content_and_stays() -> None:
    assert one("[foo]: https://x.org 'the title'") == line("[foo]: https://x.org 'the title'")


def test_a_title_of_a_link_is_shown() -> None:
    assert one('[a](https://x.org "more")') == line(Link("a", "https://x.org"), " (more)")


def test_an_image_is_a_link_that_says_what_it_shows() -> None:
    assert one("![a cat](https://x.org/c.png)") == line(Link("a cat", "https://x.org/c.png"))


def test_a_table_row_with_cells_too_many_shows_the_source() -> None:
    source = "| a | b |\n|---|---|\n| 1 | 2 | 3 |"

    assert one(source) == Fence(source)


def test_deeper_nesting_than_is_parsed_is_shown_as_it_is() -> None:
    assert one(">" * 80 + " deep") == line(">" * 80 + " deep")


def test_an_escape_sequence_in_code_is_made_visible() -> None:
    assert one("```\n\x1b[2J\n```") == Fence("␛[2J")


@pytest.mark.parametrize(
    "text",
    [
        "*" * 20_000,
        "[" * 20_000,
        "`" * 5_000 + "a",
        "> " * 3_000,
        "_a " * 8_000,
        "|a" * 5_000 + "\n" + "|-" * 5_000,
        "![" * 9_000,
    ],
    ids=lambda text: text[:4],
)
def test_a_text_made_to_be_slow_is_read_in_time(text: str) -> None:
    begun = time.process_time()
    blocks(text)

    assert time.process_time() - begun < 5


def test_a_book_is_shown_and_not_parsed() -> None:
    assert blocks("*x* " * 200_000) == literal("*x* " * 200_000)


# -- what models write ------------------------------------------------------------------------------------------


def test_the_usual_marks() -> None:
    assert one("a **b** *c* ~~d~~ `e` ***f***") == line(
        "a ",
        Text("b", strong=True),
        " ",
        Text("c", emphasis=True),
        " ",
        Text("d", struck=True),
        " ",
        Code("e"),
        " ",
        Text("f", strong=True, emphasis=True),
    )


def test_lines_of_a_paragraph_stay_lines() -> None:
    assert one("a\nb  \nc") == line("a", Break(), "b", Break(), "c")


def test_headings_rules_and_quotes() -> None:
    assert blocks("## Plan\n\n---\n\n> said\n> twice") == (
        Heading((Text("Plan"),), level=2),
        Rule(),
        Quote((line("said", Break(), "twice"),)),
    )


def test_fences_keep_their_language_and_their_text_to_the_character() -> None:
    assert one("```python title=x\nif a:\n    *b*\n\n```") == Fence("if a:\n    *b*\n", language="python title=x")


def test_a_fence_that_never_ends_is_a_fence() -> None:
    assert one("```py\nx = 1") == Fence("x = 1", language="py")


def test_lists_nest_and_keep_their_first_number() -> None:
    assert one("3. a\n4. b\n   - c") == Listing(
        (Item((line("a"),)), Item((line("b"), Listing((Item((line("c"),)),))))), ordered=True, start=3
    )


def test_a_list_from_nought_starts_at_nought() -> None:
    assert one("0. a") == Listing((Item((line("a"),)),), ordered=True, start=0)


def test_check_lists_have_boxes() -> None:
    assert one("- [x] done\n- [ ] open\n- [y] neither") == Listing(
        (
            Item((line("done"),), ticked=True),
            Item((line("open"),), ticked=False),
            Item((line("[y] neither"),)),
        )
    )


@pytest.mark.case("RE-3")
def test_two_tables_are_tables_and_the_one_in_a_fence_stays_a_fence() -> None:
    table = "| a | b |\n|---|--:|\n| 1 | `x` |\n"
    read = Table(((Text("a"),), (Text("b"),)), (((Text("1"),), (Code("x"),)),))

    assert blocks(f"{table}\n{table}\n```\n{table}```") == (read, read, Fence(table.removesuffix("\n")))


def test_a_cell_may_hold_an_escaped_bar() -> None:
    assert one("| a |\n|---|\n| x \\| y |") == Table(((Text("a"),),), (((Text("x | y"),),),))


def test_one_line_reads_no_blocks() -> None:
    assert spans("# **a**") == (Text("# "), Text("a", strong=True))


# -- whatever comes ---------------------------------------------------------------------------------------------

pieces = st.sampled_from(
    [
        *"#*_~`>|-+.[]()!\\&<=:",
        "\n",
        "\n\n",
        "    ",
        "  ",
        "```",
        "~~~",
        "1. ",
        "- ",
        "> ",
        "| ",
        "|---|",
        "https://a.io/",
        "[x] ",
    ]
)
markdown = st.lists(pieces | st.text(alphabet="abcXYZ019äß中 ", max_size=6), max_size=40).map("".join)


def letters(text: str) -> Counter[str]:
    return Counter(char for char in text if char.isalpha())


@given(markdown)
def test_no_letter_is_ever_lost(text: str) -> None:
    shown = plain(blocks(text)) + "".join(block.language for block in fences(blocks(text)))

    missing = letters(text) - letters(shown)
    assert not missing - letters("x" * text.lower().count("[x]"))


@given(st.text(max_size=200))
def test_any_text_gives_blocks(text: str) -> None:
    assert isinstance(blocks(text), tuple)


def fences(tree: tuple[Block, ...]) -> list[Fence]:
    found: list[Fence] = []
    for block in tree:
        match block:
            case Fence():
                found.append(block)
            case Listing():
                found += [fence for item in block.items for fence in fences(item.blocks)]
            case Quote():
                found += fences(block.blocks)
    return found
