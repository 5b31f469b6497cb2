from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bots.slack.mrkdwn import HAIR, SECTION, ZERO_WIDTH, Pen, Piece, cut_pieces, escape, literal, sections
from bridge.model import PersonId
from bridge.rich import (
    Block,
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
    Span,
    Table,
    Text,
    When,
    line,
)

ANNA = PersonId("T1/U1ANNA")


def shown(*blocks: Block, rings: frozenset[PersonId] = frozenset(), zones: bool = True) -> list[str]:
    pieces = cut_pieces(Pen(rings=rings, names={ANNA: "Anna"}, zones=zones).blocks(blocks))
    return list(sections(piece for piece in pieces if piece.kind != "rule"))


def text_of(*spans: Span, zones: bool = True) -> str:
    (text,) = shown(Paragraph(spans), zones=zones)
    return text


# -- nothing foreign is ever mark-up ----------------------------------------------------------------------------


@pytest.mark.case("RE-4")
@pytest.mark.parametrize(
    "span", [Text, lambda text: Text(text, strong=True), Code, lambda text: Link(text, "https://a.example")]
)
@pytest.mark.parametrize(
    "text",
    ["<!channel>", "<!here|x>", "<!everyone>", "<!subteam^S1>", "<@U1ANNA>", "<#C1>", "<https://evil|https://good>"],
)
def test_mark_up_in_foreign_text_is_shown_and_never_read(span: type[Text], text: str) -> None:
    for mark in re.findall(r"<([^>]*)>", text_of(span(text))):
        target, _, label = mark.partition("|")
        assert target in ("https://a.example", "https://evil", "https://good")
        assert not label or (target == "https://a.example" and "good" not in label)


hostile = st.text(st.sampled_from("<>&!@#|*_~`:/ \nahttpsU1"), max_size=60)


@given(
    st.lists(
        st.builds(Text, hostile, st.booleans(), st.booleans(), st.booleans()) | st.builds(Code, hostile), max_size=4
    )
)
def test_no_text_ever_rings_anybody_or_names_a_channel(spans: list[Span]) -> None:
    for text in shown(
        Paragraph(tuple(spans)), Quote((Paragraph(tuple(spans)),)), Fence("".join(str(s) for s in spans))
    ):
        assert not re.search(r"<[!@#]", text)
        for target in re.findall(r"<([^>]*)>", text):
            assert re.match(r"https?://[^|]+$", target)


@given(hostile)
def test_literal_text_comes_back_when_escapes_and_helpers_are_taken_out(text: str) -> None:
    written = literal(text, links=False).replace(HAIR, "").replace(ZERO_WIDTH, "")
    assert written.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&") == text


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("2 * 3 * 4", "2 * 3 * 4"),
        ("snake_case_name", "snake_case_name"),
        ("*not bold*", f"*{HAIR}not bold*"),
        ("__init__", f"_{HAIR}_{HAIR}init__"),
        ("a `b` c", f"a `{HAIR}b` c"),
        ("a lone *star", "a lone *star"),
        ("> no quote", f"{ZERO_WIDTH}&gt; no quote"),
        ("a > b", "a &gt; b"),
        ("see https://a.example/x_y_z?a=1&b=2.", "see <https://a.example/x_y_z?a=1&amp;b=2>."),
        ("(https://a.example)", "(<https://a.example>)"),
        ("https:// is no address", "https:// is no address"),
    ],
)
def test_plain_text_stays_plain(text: str, written: str) -> None:
    assert text_of(Text(text)) == written


# -- inside a line ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spans", "written"),
    [
        ((Text("a "), Text("b", strong=True), Text(" c")), "a *b* c"),
        ((Text("b", strong=True, emphasis=True, struck=True),), "*_~b~_*"),
        ((Text(" padded ", strong=True),), " *padded* "),
        ((Text("re"), Text("mark", emphasis=True), Text("able")), f"re{ZERO_WIDTH}_mark_{ZERO_WIDTH}able"),
        ((Text("这是"), Text("重点", strong=True), Text("内容")), f"这是{ZERO_WIDTH}*重点*{ZERO_WIDTH}内容"),
        ((Text("a", strong=True), Text("b", emphasis=True)), f"*a*{ZERO_WIDTH}_b_"),
        ((Text("one\ntwo", strong=True),), "*one*\n*two*"),
        ((Text("  ", strong=True), Text("x")), "  x"),
        ((Code("a < b"),), "`a &lt; b`"),
        ((Code("with `ticks`"),), "`with ˋticksˋ`"),
        ((Text("a"), Break(), Text("b")), "a\nb"),
        ((Mention(ANNA),), "@Anna"),
        ((Mention("T1/U9", "Mallory <!here>"),), "@Mallory &lt;!here&gt;"),
        ((Mention("T1/U9"),), "@U9"),
        ((Link("the page", "https://a.example/?q=a|b c&d"),), "<https://a.example/?q=a%7Cb%20c&amp;d|the page>"),
        ((Link("https://a.example", "https://a.example"),), "<https://a.example>"),
        ((Link("", "https://a.example"),), "<https://a.example>"),
        ((Link("mail", "mailto:a@b.example"),), "<mailto:a@b.example|mail>"),
        ((Link("a|b", "https://a.example"),), "<https://a.example|a¦b>"),
        ((Link("run", "javascript:alert(1)"),), "run (javascript:alert(1))"),
        ((Link("https://good.example", "https://evil.example"),), "https://good.example (<https://evil.example>)"),
        ((Link("www.good.example/x", "https://evil.example"),), "www.good.example/x (<https://evil.example>)"),
        ((Link("good.example", "https://evil.example"),), "good.example (<https://evil.example>)"),
        ((When(1_700_000_000.9),), "<!date^1700000000^{date_short_pretty} {time}|2023-11-14 22:13 UTC>"),
    ],
)
def test_a_span_is_written_so(spans: tuple[Span, ...], written: str) -> None:
    assert text_of(*spans) == written


def test_a_time_is_in_utc_where_dates_are_not_known() -> None:
    assert text_of(When(1_700_000_000.0), zones=False) == "2023-11-14 22:13 UTC"


def test_a_mention_rings_only_those_who_are_rung() -> None:
    paragraph = line(Mention(ANNA), " and ", Mention("T1/U2BEN", "Ben"))
    pen = Pen(rings=frozenset({ANNA}), names={}, zones=True)
    assert [piece.text for piece in pen.blocks([paragraph])] == ["<@U1ANNA> and @Ben"]
    assert pen.mentioned == {ANNA}


# -- blocks -----------------------------------------------------------------------------------------------------


def test_a_heading_is_a_bold_line_close_to_what_it_heads() -> None:
    assert shown(line("before"), Heading((Text("Find"), Code("x"))), line("after")) == [
        f"before\n\n*Find*{ZERO_WIDTH}`x`\nafter"
    ]


def test_code_is_fenced_without_a_language_and_cannot_leave_its_fence() -> None:
    (text,) = shown(Fence('print("<b>")\n```\n<!here>', language="python"))
    assert text == f'```\nprint("&lt;b&gt;")\n`{ZERO_WIDTH}`{ZERO_WIDTH}`\n&lt;!here&gt;\n```'
    assert text.count("```") == 2


def test_lists_are_nested_by_indent_and_mark() -> None:
    inner = Listing((Item((line("b"),)), Item((line("c"), line("more of c")), ticked=True)))
    outer = Listing((Item((line("a"), inner)), Item((line("d"),), ticked=False)), ordered=True, start=3)
    pad = "\u00a0" * 4
    assert shown(outer) == [f"3. a\n{pad}◦ b\n{pad}◦ ☑ c\n{pad}{pad}more of c\n4. ☐ d"]


def test_code_in_a_list_keeps_its_fence() -> None:
    (text,) = shown(Listing((Item((line("run"), Fence("make"))), Item((Fence("test"),)))))
    assert text == "• run\n```\nmake\n```\n•\n```\ntest\n```"


def test_a_quote_has_a_mark_on_every_line() -> None:
    (text,) = shown(Quote((Paragraph((Text("a"), Break(), Text("b"))), line("c"))))
    assert text == "> a\n> b\n> \n> c"


@pytest.mark.case("RE-3")
def test_a_table_is_aligned_by_what_is_seen_not_by_what_is_counted() -> None:
    table = Table(
        ((Text("名称"),), (Text("state"),)),
        (
            ((Code("解析器.py"),), (Text("ok", strong=True),)),
            ((Text("x"),), (Link("log", "https://a.example"),)),
            ((Text("y"),),),
        ),
    )
    (text,) = shown(table)
    assert text.split("\n") == [
        "```",
        "名称       state",
        "---------  -----------------------",
        "解析器.py  ok",
        "x          log (https://a.example)",
        "y",
        "```",
    ]


def test_a_rule_is_a_piece_of_its_own() -> None:
    assert [piece.kind for piece in Pen(rings=frozenset(), names={}, zones=True).blocks([line("a"), Rule()])] == [
        "text",
        "rule",
    ]


# -- cutting ----------------------------------------------------------------------------------------------------


@pytest.mark.case("RE-2")
def test_a_long_fence_is_closed_and_opened_again_at_every_cut() -> None:
    code = "\n".join(f"line {number} of <code>" for number in range(400))
    texts = shown(Fence(code))
    assert len(texts) == 4
    assert all(text.startswith("```\n") and text.endswith("\n```") and len(text) <= SECTION for text in texts)
    assert "\n".join(text[4:-4] for text in texts) == escape(code)


@pytest.mark.case("RE-1")
def test_a_long_paragraph_is_cut_at_lines_and_blanks_and_nothing_is_lost() -> None:
    text = " ".join(f"word{number}" for number in range(1500))
    texts = shown(line(text))
    assert all(len(part) <= SECTION for part in texts)
    assert " ".join(texts) == text


@given(st.text(st.sampled_from("&<>ab \n"), min_size=SECTION, max_size=SECTION * 3))
def test_no_cut_is_inside_an_escape(text: str) -> None:
    for part in shown(line(text)):
        assert len(part) <= SECTION
        assert re.fullmatch(r"(?:[^&<>]|&(?:amp|lt|gt);)*", part)


rich = st.recursive(
    st.builds(line, st.text(max_size=200)) | st.builds(Fence, st.text(max_size=300)) | st.just(Rule()),
    lambda inner: (
        st.builds(Quote, st.lists(inner, max_size=3).map(tuple))
        | st.builds(Listing, st.lists(st.builds(Item, st.lists(inner, max_size=3).map(tuple)), max_size=4).map(tuple))
    ),
    max_leaves=20,
)


@given(st.lists(rich, max_size=6))
def test_every_tree_gives_sections_that_fit(blocks: list[Block]) -> None:
    assert all(0 < len(text) <= SECTION for text in shown(*blocks))


def test_pieces_are_packed_in_order() -> None:
    pieces = [Piece("a" * 1000), Piece("b" * 1000), Piece("c" * 1000), Piece("d")]
    assert [text[0] for text in sections(pieces)] == ["a", "c"]
    assert "".join(sections(pieces)).replace("\n", "") == "".join(piece.text for piece in pieces)
