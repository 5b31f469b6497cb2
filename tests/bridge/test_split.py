"""Long text in parts: each fits, together they are the whole."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.markup import blocks
from bridge.rich import (
    Break,
    Code,
    Fence,
    Heading,
    Item,
    Link,
    Listing,
    Mention,
    Paragraph,
    Quote,
    Rule,
    Table,
    Text,
    When,
    line,
)
from bridge.split import Blocks, plain, size, split


def squeezed(text: str) -> str:
    """A text without blanks and the marks of lists: those may move at a cut."""
    return "".join(char for char in text if not char.isspace() and char not in "•.")


# -- any tree ---------------------------------------------------------------------------------------------------

texts = st.text(alphabet="abc äß中&<", min_size=1, max_size=60)
spans = st.lists(
    st.one_of(
        st.builds(Text, texts, strong=st.booleans()),
        st.builds(Code, texts),
        st.builds(Link, texts, st.just("https://a.io")),
        st.just(Break()),
    ),
    min_size=1,
    max_size=5,
).map(tuple)
paragraphs = st.builds(Paragraph, spans)
rows = st.lists(st.tuples(spans, spans), max_size=4).map(tuple)
trees = st.recursive(
    st.one_of(
        paragraphs,
        st.builds(Heading, spans),
        st.builds(Fence, st.text(alphabet="ab\n ", max_size=150), st.sampled_from(["", "py"])),
        st.builds(Table, st.tuples(spans, spans), rows),
        st.just(Rule()),
    ),
    lambda inner: (
        st.builds(Quote, st.lists(inner, min_size=1, max_size=3).map(tuple))
        | st.builds(
            Listing,
            st.lists(st.builds(Item, st.lists(inner, min_size=1, max_size=2).map(tuple)), min_size=1, max_size=4).map(
                tuple
            ),
            ordered=st.just(False),
        )
    ),
    max_leaves=6,
)
wholes = st.lists(trees, max_size=6).map(tuple)


@settings(max_examples=80, deadline=None)
@given(wholes, st.integers(120, 600))
def test_every_part_fits(whole: Blocks, limit: int) -> None:
    assert all(size(part) <= limit for part in split(whole, limit=limit).parts)


@settings(max_examples=80, deadline=None)
@given(st.lists(trees.filter(lambda block: not has_table(block)), max_size=6).map(tuple), st.integers(120, 600))
def test_the_parts_together_are_the_whole(whole: Blocks, limit: int) -> None:
    parts = split(whole, limit=limit).parts

    assert squeezed("".join(plain(part) for part in parts)) == squeezed(plain(whole))


def has_table(block: object) -> bool:
    match block:
        case Table():
            return True
        case Quote(blocks=inner):
            return any(has_table(each) for each in inner)
        case Listing(items=items):
            return any(has_table(each) for item in items for each in item.blocks)
    return False


@settings(deadline=None)
@given(wholes)
def test_what_fits_is_not_cut(whole: Blocks) -> None:
    assert split(whole, limit=100_000).parts == ((whole,) if whole else ())


def test_a_limit_below_one_character_still_ends() -> None:
    parts = split((line("abc"),), limit=0).parts

    assert "".join(plain(part) for part in parts) == "abc"


# -- where it is cut --------------------------------------------------------------------------------------------


@pytest.mark.case("RE-1")
def test_nine_thousand_characters_come_whole_in_parts_cut_at_paragraphs() -> None:
    paragraph = "The quick brown fox jumps over the lazy dog. " * 20
    text = "\n\n".join([paragraph.strip()] * 10)

    parts = split(blocks(text), limit=3_000).parts

    assert "\n\n".join(plain(part) for part in parts) == text
    assert [len(part) for part in parts] == [3, 3, 3, 1]


@pytest.mark.case("RE-2")
def test_code_across_the_cut_has_its_own_fences_and_language_in_each_part() -> None:
    code = "\n".join(f"line_{number} = '**not bold**'" for number in range(300))

    parts = split(blocks(f"Look:\n\n```python\n{code}\n```\n\nDone."), limit=3_000).parts
    fences = [block for part in parts for block in part if isinstance(block, Fence)]

    assert len(fences) > 2
    assert {fence.language for fence in fences} == {"python"}
    assert "\n".join(fence.text for fence in fences) == code


def test_one_endless_line_of_code_is_cut_between_characters() -> None:
    parts = split((Fence("x" * 1_000, "py"),), limit=300).parts

    assert "".join(block.text for part in parts for block in part if isinstance(block, Fence)) == "x" * 1_000


def test_a_paragraph_is_cut_at_its_lines_first() -> None:
    whole = line("a" * 80, Break(), "b" * 80, Break(), "c" * 80)

    assert split((whole,), limit=190).parts == ((line("a" * 80, Break(), "b" * 80),), (line("c" * 80),))


def test_then_at_its_sentences() -> None:
    whole = line("One two three four. Five six seven eight. Nine ten eleven.")

    assert [plain(part) for part in split((whole,), limit=52).parts] == [
        "One two three four. Five six seven eight. ",
        "Nine ten eleven.",
    ]


def test_styles_go_on_behind_the_cut() -> None:
    parts = split((Paragraph((Text("very " * 40, strong=True),)),), limit=120).parts

    assert all(
        span.strong
        for part in parts
        for block in part
        if isinstance(block, Paragraph)
        for span in block.spans
        if isinstance(span, Text)
    )


def test_a_link_longer_than_a_part_is_said_in_words() -> None:
    url = "https://a.io/" + "x" * 300

    parts = split((line("see ", Link("docs", url), " now"),), limit=100).parts

    assert squeezed("".join(plain(part) for part in parts)) == squeezed(f"see docs ({url}) now")
    assert all(size(part) <= 100 for part in parts)


def test_a_heading_stays_with_what_it_heads() -> None:
    heading = Heading((Text("Second"),))

    parts = split((line("x" * 60), heading, line("y" * 60)), limit=100).parts

    assert parts == ((line("x" * 60),), (heading, line("y" * 60)))


def test_numbers_of_a_list_go_on_in_the_next_part() -> None:
    whole = Listing(tuple(Item((line(f"item {number} " + "x" * 40),)) for number in range(1, 9)), ordered=True)

    starts = [block.start for part in split((whole,), limit=250).parts for block in part if isinstance(block, Listing)]

    assert starts == [1, 4, 7]


def test_the_head_of_a_table_is_repeated() -> None:
    head = ((Text("name"),), (Text("size"),))
    whole = Table(head, tuple(((Text(f"file {number}"),), (Text("10"),)) for number in range(40)))

    tables = [block for part in split((whole,), limit=300).parts for block in part if isinstance(block, Table)]

    assert all(table.head == head for table in tables)
    assert sum((table.rows for table in tables), ()) == whole.rows


def test_a_row_that_no_table_can_hold_is_said_in_words() -> None:
    whole = Table(((Text("name"),), (Text("story"),)), (((Text("a"),), (Text("b " * 300),)),))

    parts = split((whole,), limit=400).parts

    assert plain(parts[0]).startswith("name: a")
    assert squeezed("".join(plain(part) for part in parts)) == "name:astory:" + "b" * 300


def test_more_parts_than_wanted_are_said_and_all_there() -> None:
    whole = tuple(line("x" * 90) for _ in range(10))

    cut = split(whole, limit=100, max_parts=4)

    assert (len(cut.parts), cut.over, cut.head) == (10, True, whole[:1])
    assert not split(whole[:4], limit=100, max_parts=4).over


def test_escapes_count() -> None:
    assert size((line("&" * 10),)) - size((line("x" * 10),)) == 40


def test_plain_words_of_every_block() -> None:
    whole = (
        Heading((Text("Head"),)),
        line("see ", Link("docs", "https://a.io"), Break(), Mention("T/U", "alice"), When(5.0), Code("x")),
        Listing((Item((line("a"),), ticked=True), Item((line("b"),), ticked=False)), ordered=True, start=2),
        Quote((line("q"),)),
        Table(((Text("h"),),), (((Text("c"),),),)),
        Fence("code"),
        Rule(),
    )

    assert plain(whole) == "Head\n\nsee docs (https://a.io)\nalicex\n\n2. [x] a\n3. [ ] b\n\nq\n\nh\nc\n\ncode\n\n—"
