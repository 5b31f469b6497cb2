"""A question in the thread: everything can be read, something can be tapped, and its end is worded for itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bridge import texts
from bridge.actions import Choose, decode
from bridge.cards import Slot, Urgency, slots
from bridge.model import Abilities, Card, Settled
from bridge.rich import Mention, Quote, Text, When, line
from bridge.split import plain, size
from tests.bridge.telling import ABILITIES, ALICE, BOB, START, Story, said_by, working

EN = texts.of("en")


def drawn(story: Story, *, abilities: Abilities = ABILITIES, settled: Settled | None = None) -> tuple[Slot, ...]:
    found = slots(
        story.view,
        texts=EN,
        abilities=abilities,
        now=story.now,
        settlements={settled.ask: settled} if settled else {},
    )
    return tuple(slot for slot in found if slot.name.startswith("ask:"))


def card_of(story: Story, **how: Any) -> Card:
    (slot,) = drawn(story, **how)
    return slot.card


def asking(question: str, *options: str, **facts: Any) -> Story:
    story = working()
    story.asks(question, *options, **facts)
    return story


def buttons(card: Card) -> list[tuple[str, str]]:
    return [(button.label, button.action) for button in card.buttons]


def test_a_question_with_short_options_has_a_button_for_each_and_two_more() -> None:
    card = card_of(asking("Which **database**?", "SQLite", "Postgres"))

    assert card.summary == "Write the first ten primes: q1: Which **database**?"
    assert card.body == (
        line(Text("q1 · The agent asks", strong=True)),
        line("Which ", Text("database", strong=True), "?"),
        line("The run waits for this until somebody answers."),
    )
    assert buttons(card) == [
        ("SQLite", "answer:k3f9qa:1:q1:0"),
        ("Postgres", "answer:k3f9qa:1:q1:1"),
        ("Answer in words", "words:k3f9qa:1:q1"),
        ("Skip, let it decide", "skip:k3f9qa:1:q1"),
    ]
    assert card.buttons[2].form == "Your answer to q1: Which **database**?"
    assert card.rings == (ALICE.id,)


def test_the_slot_of_a_question_is_urgent_and_not_final_while_it_waits() -> None:
    (slot,) = drawn(asking("Which?"))

    assert (slot.name, slot.urgency, slot.final) == ("ask:1:q1", Urgency.ASK, False)


def test_it_says_until_when_it_waits() -> None:
    card = card_of(asking("Which?", until=START + 1_800))

    assert card.body[-1] == line(
        "The run waits for this. Without an answer it decides by itself at ", When(START + 1_800), "."
    )


def test_a_question_without_options_says_that_a_reply_answers() -> None:
    card = card_of(asking("Which colour?"))

    assert card.note == "Reply in this thread to answer."
    assert [label for label, _ in buttons(card)] == ["Answer in words", "Skip, let it decide"]


@pytest.mark.case("AS-9")
def test_long_options_that_differ_at_their_end_are_listed_in_full_and_numbered() -> None:
    options = ["Keep the present table layout and add an index on " + "x" * 60 + end for end in ("_id", "_name")]
    story = asking("Which?", *options)
    card = card_of(story)

    assert f"1. {options[0]}\n2. {options[1]}" in plain(card.body)
    assert [label for label, _ in buttons(card)][:2] == [
        "1. Keep the present table lay…",
        "2. Keep the present table lay…",
    ]
    assert all(len(button.label) <= 30 for button in card.buttons[:2])
    assert decode(card.buttons[1].action) == Choose(run=story.view.run, fence=1, ask="q1", option=1)
    assert card.note == "Tap, or reply with the number."


def test_options_that_look_the_same_are_numbered() -> None:
    assert [label for label, _ in buttons(card_of(asking("Which?", "Yes", "yes")))][:2] == ["1. Yes", "2. yes"]


def test_more_options_than_buttons_are_all_listed_and_answered_by_number() -> None:
    card = card_of(asking("Which?", *(f"Option {number}" for number in range(1, 41))))

    assert "40. Option 40" in plain(card.body)
    assert len(card.buttons) == 27
    assert card.note == "Only the first 25 have a button: reply with the number for any other."


def test_a_platform_without_buttons_lists_and_counts() -> None:
    card = card_of(asking("Which?", "A", "B"), abilities=replace(ABILITIES, buttons=0, forms=False))

    assert "1. A\n2. B" in plain(card.body)
    assert (card.buttons, card.note) == ((), "Tap, or reply with the number.")


def test_a_platform_without_forms_has_no_button_for_words() -> None:
    card = card_of(asking("Which?", "A"), abilities=replace(ABILITIES, forms=False))

    assert [label for label, _ in buttons(card)] == ["A", "Skip, let it decide"]


@pytest.mark.case("RE-8")
def test_a_long_command_is_shown_to_its_end_and_the_buttons_stand_below_it() -> None:
    command = "\n".join(f"step-{number} --with --many --words" for number in range(400)) + "\nrm -rf /data"
    story = asking(f"May I run this?\n\n```sh\n{command}\n```", "Yes", "No")
    found = drawn(story)

    assert [slot.name for slot in found] == ["ask:1:q1:1", "ask:1:q1:2", "ask:1:q1:3", "ask:1:q1"]
    assert {slot.group for slot in found} == {"ask:1:q1"}
    assert "rm -rf /data" in plain(found[-1].card.body)
    assert [bool(slot.card.buttons) for slot in found] == [False, False, False, True]
    assert [bool(slot.card.rings) for slot in found] == [False, False, False, True]
    assert all(f"step-{number} " in "".join(plain(slot.card.body) for slot in found) for number in range(400))


def test_settling_a_long_question_changes_its_last_card_only() -> None:
    story = asking("word " * 3_000, "Yes", "No")
    before = drawn(story)
    story.settles("word " * 3_000, "answered", "Yes, and " + "really " * 500, by=said_by(BOB))
    after = drawn(story)

    assert [slot.name for slot in before] == [slot.name for slot in after]
    assert [slot.card for slot in before[:-1]] == [slot.card for slot in after[:-1]]
    assert before[-1].card != after[-1].card
    assert all(size(slot.card.body) <= 6_000 for slot in after)


# -- how it ended -----------------------------------------------------------------------------------------------

ENDS = [
    ("answered", "SQLite", {"by": said_by(BOB)}, "bob answered", "q1: bob answered: SQLite"),
    ("declined", "decide", {"by": said_by(BOB)}, "bob skipped this; the agent decides", "q1: bob skipped this"),
    (
        "timeout",
        "decide",
        {},
        "Nobody answered in time. The agent went on with its own judgment.",
        "q1: Nobody answered",
    ),
    ("over_budget", "decide", {}, "Not waited for: the run has used up its questions.", "q1: Not waited for"),
    ("withdrawn", "", {}, "Withdrawn: the run was cut before an answer came. It may ask again.", "q1: Withdrawn"),
]


@pytest.mark.case("AS-6")
@pytest.mark.parametrize(("state", "answer", "facts", "outcome", "summary"), ENDS)
def test_a_settled_question_keeps_its_text_loses_its_buttons_and_says_how(
    state: str, answer: str, facts: dict[str, Any], outcome: str, summary: str
) -> None:
    story = asking("Which database?", "SQLite", "Postgres")
    story.settles("Which database?", state, answer, **facts)
    (slot,) = drawn(story)
    card = slot.card

    assert slot.final
    assert (card.buttons, card.rings, card.note) == ((), (), "")
    assert card.summary.startswith(summary)
    body = plain(card.body)
    assert "Which database?" in body
    assert outcome in body
    assert ("SQLite" in body) == (state == "answered")
    assert "decide\n" not in body


@pytest.mark.case("AS-6")
def test_the_outcome_says_who_what_and_when() -> None:
    story = asking("Which database?", "SQLite", "Postgres")
    settled = story.settles("Which database?", "answered", "SQLite", by=said_by(BOB))

    assert card_of(story).body[-2:] == (
        line(Mention("T1/UBOB", "bob"), " answered", " · ", When(settled.at)),
        Quote((line("SQLite"),)),
    )


@pytest.mark.case("AS-4")
def test_a_question_settled_from_chat_shows_it_before_the_run_says_so() -> None:
    settled = Settled(ask="k3f9qa/1/q1", by=BOB, how="answered", text="Postgres", at=START + 99)
    (slot,) = drawn(asking("Which database?", "SQLite", "Postgres"), settled=settled)

    assert slot.card.buttons == ()
    assert not slot.final
    assert "bob answered; on its way to the agent" in plain(slot.card.body)
    assert plain(slot.card.body).endswith("Postgres")


def test_the_runs_word_counts_more_than_the_chats() -> None:
    story = asking("Which database?", "SQLite", "Postgres")
    story.settles("Which database?", "timeout", "decide")
    settled = Settled(ask="k3f9qa/1/q1", by=BOB, how="answered", text="Postgres", at=START + 99)

    assert "Nobody answered in time." in plain(card_of(story, settled=settled).body)


def test_who_answered_is_known_from_chat_where_the_run_does_not_say() -> None:
    story = asking("Which database?", "SQLite")
    story.settles("Which database?", "answered", "SQLite")
    settled = Settled(ask="k3f9qa/1/q1", by=BOB, how="answered", text="SQLite", at=START + 99)

    assert "bob answered" in plain(card_of(story, settled=settled).body)


@pytest.mark.case("AS-7")
def test_three_open_questions_are_three_slots_and_none_hides_another() -> None:
    story = asking("One?", "A")
    story.asks("Two?", "B", id="q2")
    story.asks("Three?", id="q3")
    story.settles("Two?", "answered", "B", id="q2", by=said_by(BOB))

    assert [(slot.name, bool(slot.card.buttons)) for slot in drawn(story)] == [
        ("ask:1:q1", True),
        ("ask:1:q2", False),
        ("ask:1:q3", True),
    ]
