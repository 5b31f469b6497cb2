from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bots.slack.inbound import SLACK, FormRequest, read_private, read_value
from bots.slack.outbound import (
    ABILITIES,
    EN,
    PHRASES,
    carries,
    form,
    form_error,
    measure,
    people,
    received,
    render,
    whisper,
)
from bridge.errors import ChatRefusedError
from bridge.markup import blocks as markdown
from bridge.model import Button, Card, Person, PersonId, ThreadRef
from bridge.rich import Block, Fence, Heading, Item, Listing, Mention, Paragraph, Quote, Rule, Table, Text, line
from bridge.split import size, split
from tests.fakes.slack_judges import judge_message, judge_view

ANNA, BEN = PersonId("T1/U1ANNA"), PersonId("T1/U2BEN")
ONCE = "k3f9qa/ask:1:q1"
ASK = Card(
    summary="Which database?",
    body=(line(Text("q1", strong=True), " Which database?"),),
    note="waits until 18:00",
    buttons=(
        Button(action="answer k3f9qa 1 q1 0", label="SQLite"),
        Button(action="answer k3f9qa 1 q1 1", label="PostgreSQL"),
        Button(action="words k3f9qa 1 q1", label="Answer in words", form="Which database?"),
        Button(action="skip k3f9qa 1 q1", label="Skip, let it decide"),
    ),
    rings=(ANNA,),
)


def judged(card: Card, *, once: str = ONCE) -> dict[str, Any]:
    made = render(card, once=once)
    assert judge_message(made, with_types=False) == []
    return made


def section(made: dict[str, Any], at: int = 0) -> str:
    return str(made["blocks"][at]["text"]["text"])


# -- what stands where ------------------------------------------------------------------------------------------


def test_an_ask_has_its_text_its_notification_and_its_rows_of_buttons() -> None:
    made = judged(ASK)
    assert made["text"] == "Which database?"
    assert [block["type"] for block in made["blocks"]] == ["section", "context", "actions", "actions"]
    assert section(made) == "<@U1ANNA> *q1* Which database?"
    rows = [[button["text"]["text"] for button in block["elements"]] for block in made["blocks"][2:]]
    assert rows == [["SQLite", "PostgreSQL"], ["Answer in words", "Skip, let it decide"]]


def test_a_card_with_a_stop_and_an_oracle_has_one_row() -> None:
    buttons = (Button(action="hold", label="Stop"), Button(action="oracle", label="Ask the oracle", form="What?"))
    made = judged(Card(summary="run", buttons=buttons))
    assert [block["type"] for block in made["blocks"]] == ["section", "actions"]


def test_a_card_without_a_body_shows_its_summary() -> None:
    made = judged(Card(summary="step 1 of 3 <b>"))
    assert (made["text"], section(made)) == ("step 1 of 3 &lt;b&gt;", "step 1 of 3 &lt;b&gt;")


@pytest.mark.parametrize("card", [Card(summary=""), Card(summary=" "), Card(summary="x", body=(Paragraph(()),))])
def test_an_empty_card_is_still_a_message(card: Card) -> None:
    judged(card)


def test_a_ring_stands_before_a_fence_and_a_rule() -> None:
    assert (
        section(judged(Card(summary="x", body=(Fence("code"),), rings=(ANNA, BEN))))
        == "<@U1ANNA> <@U2BEN>\n```\ncode\n```"
    )
    assert section(judged(Card(summary="x", body=(Rule(), line("y")), rings=(ANNA,)))) == "<@U1ANNA>"


def test_who_is_mentioned_in_the_text_is_rung_there_and_not_twice() -> None:
    made = judged(
        Card(summary="x", body=(line("for ", Mention(ANNA, "Anna"), " and ", Mention(BEN, "Ben")),), rings=(ANNA,))
    )
    assert section(made) == "for <@U1ANNA> and @Ben"


@pytest.mark.parametrize("person", ["T1/<!channel>", "T1/", "@here", "T1/C1GENERAL", "T1/U1 U2"])
def test_only_people_can_be_rung(person: str) -> None:
    made = judged(Card(summary="x", body=(line("hello"),), rings=(PersonId(person),)))
    assert section(made) == "hello"


def test_names_are_looked_up_for_those_who_are_shown_and_not_rung() -> None:
    body = (
        line(Mention(ANNA), Mention(BEN), Mention("T1/U3", "Carl")),
        Listing((Item((Quote((line(Mention("T1/U4")),)),)),)),
        Table(((Text("who"),),), (((Mention("T1/U5"),),),)),
    )
    assert people(Card(summary="x", body=body, rings=(ANNA,))) == {BEN, "T1/U4", "T1/U5"}
    made = render(Card(summary="x", body=(line(Mention(BEN)),)), once="k", names={BEN: "Ben"})
    assert section(made) == "@Ben"


# -- keys -------------------------------------------------------------------------------------------------------


def test_the_key_stands_in_the_metadata_and_in_the_first_block_each_is_enough_to_find_it() -> None:
    made = judged(ASK)
    assert made["metadata"] == {"event_type": "flower_post", "event_payload": {"once": ONCE}}
    assert made["blocks"][0]["block_id"].startswith(ONCE + "/")
    assert carries(made, ONCE)
    assert carries({"blocks": made["blocks"]}, ONCE)
    assert carries({"metadata": made["metadata"]}, ONCE)


@pytest.mark.parametrize(
    "message", [{}, {"blocks": []}, {"blocks": [{}]}, {"metadata": None}, {"metadata": {"event_payload": 3}}]
)
def test_other_messages_carry_no_key(message: dict[str, Any]) -> None:
    assert not carries(message, ONCE)


def test_a_key_that_only_begins_alike_is_another() -> None:
    assert not carries(render(ASK, once="k/line:17"), "k/line:1")


def test_ids_change_with_the_content_and_only_with_it() -> None:
    first, same, other = render(ASK, once=ONCE), render(ASK, once=ONCE), render(replace(ASK, note="later"), once=ONCE)
    ids = [[block["block_id"] for block in made["blocks"]] for made in (first, same, other)]
    assert ids[0] == ids[1]
    assert not set(ids[0]) & set(ids[2])


@pytest.mark.parametrize("once", ["", "k" * 241])
def test_a_key_that_does_not_fit_is_a_mistake(once: str) -> None:
    with pytest.raises(ValueError, match="1 to 240 characters"):
        render(ASK, once=once)


# -- buttons ----------------------------------------------------------------------------------------------------


@pytest.mark.case("SL-7")
def test_a_button_carries_what_it_stands_for_and_the_prompt_of_its_form() -> None:
    elements = [
        element for block in judged(ASK)["blocks"] if block["type"] == "actions" for element in block["elements"]
    ]
    said = [read_value(element["value"]) for element in elements]
    assert [(each.action, each.prompt) for each in said if each] == [
        ("answer k3f9qa 1 q1 0", ""),
        ("answer k3f9qa 1 q1 1", ""),
        ("words k3f9qa 1 q1", "Which database?"),
        ("skip k3f9qa 1 q1", ""),
    ]
    assert len({element["action_id"] for element in elements}) == 4


@pytest.mark.parametrize("action", ["", "two\nlines", "x" * 2001])
def test_an_action_is_one_short_line(action: str) -> None:
    with pytest.raises(ValueError, match="one short line"):
        render(Card(summary="x", buttons=(Button(action=action, label="a"),)), once="k")


def test_a_long_label_a_long_prompt_and_a_long_question_are_cut_and_still_taken() -> None:
    button = Button(action="end", label="End " * 60, form="Why? " * 300, confirm="Sure? " * 100, style="danger")
    made = judged(Card(summary="x" * 5_000, note="n" * 9_000, buttons=(button,)))
    (element,) = made["blocks"][-1]["elements"]
    assert len(element["text"]["text"]) == 75
    assert element["text"]["text"].endswith("…")
    assert (element["style"], element["confirm"]["text"]["type"]) == ("danger", "plain_text")
    assert len(made["text"]) == 300


def test_twenty_five_options_and_what_is_beside_them_fit() -> None:
    options = tuple(Button(action=f"answer {number}", label=f"Option {number}") for number in range(25))
    assert ABILITIES.buttons == 27
    made = judged(replace(ASK, buttons=(*options, *ASK.buttons[2:])))
    assert [len(block["elements"]) for block in made["blocks"][2:]] == [25, 2]


def test_more_buttons_than_a_row_takes_go_into_another_row() -> None:
    options = tuple(Button(action=f"answer {number}", label=f"Option {number}") for number in range(60))
    made = judged(Card(summary="x", buttons=options))
    assert [len(block["elements"]) for block in made["blocks"][1:]] == [25, 25, 10]


# -- sizes ------------------------------------------------------------------------------------------------------


@pytest.mark.case("RE-1")
def test_what_is_too_long_is_refused_before_it_is_sent() -> None:
    with pytest.raises(ChatRefusedError, match="10001 characters"):
        render(Card(summary="x", body=(line("y" * 10_001),)), once="k")


def test_too_many_blocks_are_refused_before_they_are_sent() -> None:
    body = tuple(Paragraph((Text("x" * 2_900),)) for _ in range(51))
    with pytest.raises(ChatRefusedError):
        render(Card(summary="x", body=body), once="k")


def test_many_lines_across_a_message_do_not_use_up_its_blocks() -> None:
    message = judged(Card(summary="x", body=tuple(each for n in range(60) for each in (line(f"w{n}"), Rule()))))
    assert len(message["blocks"]) < 50
    assert all(f"w{n}" in str(message["blocks"]) for n in range(60))


@pytest.mark.case("RE-1")
def test_nine_thousand_characters_in_parts_arrive_whole() -> None:
    text = "\n\n".join(" ".join(f"w{paragraph}x{word}" for word in range(60)) for paragraph in range(20))
    parts = split(markdown(text), limit=ABILITIES.post_limit).parts
    assert len(parts) >= 2
    said = " ".join(
        section(judged(Card(summary="x", body=part)), at) for part in parts for at in range(_sections_of(part))
    )
    assert said.split() == text.split()


def _sections_of(part: tuple[Any, ...]) -> int:
    return sum(block["type"] == "section" for block in render(Card(summary="x", body=part), once="k")["blocks"])


rough = st.text(st.sampled_from("<>&*_~`#-|[]()!> \nabc中"), max_size=4_000)


@given(rough)
def test_whatever_is_cut_to_the_stated_limit_is_taken(text: str) -> None:
    for part in split(markdown(text * 3), limit=ABILITIES.post_limit).parts:
        card = Card(summary="x", body=part)
        assert judge_message(render(card, once="k"), with_types=False) == []
        assert measure(card) <= 10_000


def test_the_stated_limit_leaves_room_for_a_note_a_ring_and_buttons() -> None:
    body: tuple[Block, ...] = (Fence("<&>" * 450 + "\n"),)
    while size((*body, *body)) <= ABILITIES.post_limit:
        body = (*body, *body)
    judged(replace(ASK, body=body, note="n" * 1_000))


# -- the other messages -----------------------------------------------------------------------------------------


def test_a_whisper_is_literal() -> None:
    made = whisper("no *such* option <!here>:\n  --budgt\n> did you mean --budget?")
    assert judge_message(made, with_types=False) == []
    assert "<!here>" not in json.dumps(made)
    assert made["text"].startswith("no *such* option &lt;!here&gt;: --budgt")


def test_a_long_whisper_goes_into_sections_and_a_longer_one_is_refused() -> None:
    made = whisper("word " * 1_900)
    assert judge_message(made, with_types=False) == []
    assert len(made["blocks"]) == 4
    with pytest.raises(ChatRefusedError):
        whisper("word " * 2_100)


def test_the_confirmation_of_a_command_says_what_was_typed() -> None:
    assert received("fix <the> *parser*", EN) == {
        "response_type": "ephemeral",
        "text": "Received: fix &lt;the&gt; *\u200aparser*",
    }


def test_a_form_asks_its_prompt_and_knows_what_for() -> None:
    asked = FormRequest(
        trigger="1.2.x",
        thread=ThreadRef(SLACK, "T1/C1/1700000000.001700"),
        author=Person(id=ANNA),
        action="words k3f9qa 1 q1",
        prompt="Which <database>?",
        label="Answer in words, as many as you like",
    )
    view = form(asked, EN)
    assert judge_view(view, with_types=False) == []
    assert view["title"]["text"] == "Answer in words, as man…"
    assert view["blocks"][0]["label"]["text"] == "Which <database>?"
    meant = read_private(view["private_metadata"])
    assert meant is not None
    assert (meant.action, meant.thread) == ("words k3f9qa 1 q1", "T1/C1/1700000000.001700")


def test_a_form_that_was_not_taken_says_why_at_its_field() -> None:
    assert form_error("later") == {"response_action": "errors", "errors": {"words": "later"}}


def test_both_catalogues_say_everything() -> None:
    assert set(PHRASES) == {"en", "zh"}
    for name in EN.__dataclass_fields__:
        assert all(getattr(phrases, name) for phrases in PHRASES.values())
        assert ("{text}" in getattr(PHRASES["zh"], name)) == ("{text}" in getattr(EN, name))


def test_headings_lists_tables_and_code_of_markdown_pass_every_judge() -> None:
    text = "# a\n\n---\n\n- b\n  1. c\n\n> d\n\n| e | f |\n|---|---|\n| 1 | 2 |\n\n```py\ng\n```\n"
    made = judged(Card(summary="x", body=(*markdown(text), Heading((Text("h"),)))))
    assert [block["type"] for block in made["blocks"]] == ["section", "divider", "section"]
