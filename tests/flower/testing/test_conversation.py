"""A request of the bundled program, evened out."""

from __future__ import annotations

from flower.testing.conversation import read, without_reminders
from tests.flower.testing.messages import body, gives, headers, says, user, uses

REMINDER = "<system-reminder>\nas of today\n</system-reminder>"


def test_reminders_are_no_words_of_anybody() -> None:
    conversation = read(body(user(REMINDER, "do it"), uses("Bash", "t1"), gives("t1", f"out\n{REMINDER}")), headers())
    assert conversation.opening == "do it"
    assert conversation.since(1).result == "out"
    assert without_reminders(f"a {REMINDER} b") == "a  b"


def test_consecutive_messages_of_one_role_are_one_turn() -> None:
    split = read(body(user("hi"), says("I run it"), uses("Bash", "t1"), gives("t1", "out"), user("go")), headers())
    assert [(turn.role, turn.texts, turn.calls) for turn in split.turns] == [
        ("user", ("hi",), ()),
        ("assistant", ("I run it",), ("t1",)),
        ("user", ("go",), ()),
    ]
    assert [result.text for result in split.turns[2].results] == ["out"]


def test_system_messages_among_the_others_are_system_text() -> None:
    aside = {
        "role": "system",
        "content": "# Environment\n - Primary working directory: /srv/my work\n - Platform: linux",
    }
    conversation = read(body(user("hi"), aside, says("x"), user("on"), system="You are Main."), headers())
    assert "You are Main." in conversation.system
    assert conversation.workspace == "/srv/my work"
    assert len(conversation.turns) == 3


def test_a_cut_is_seen_and_is_not_part_of_what_was_said() -> None:
    cut = read(body(user("hi"), says("I beg"), user("[Request interrupted by user]"), user("now this")), headers())
    assert cut.since(1).interrupted
    assert cut.since(1).prompt == "now this"


def test_answers_that_the_program_made_up_are_no_answers() -> None:
    turn = read(body(user("hi"), says("No response requested."), user("on")), headers()).turns[1]
    assert not turn.is_answer


def test_results_of_tools_that_were_stopped_are_known() -> None:
    texts = [
        "The user doesn't want to proceed with this tool use.",
        "[Request interrupted by user for tool use]",
        "[This step was cut and has no result. Do it again if it is needed.]",
        "[这一步被打断了,没有结果。需要的话重做。]",
    ]
    for text in texts:
        news = read(body(user("hi"), uses("Bash", "t1"), gives("t1", text)), headers()).since(1)
        assert [result.cut for result in news.results] == [True], text
    fine = read(body(user("hi"), uses("Bash", "t1"), gives("t1", "No such file", error=True)), headers()).since(1)
    assert [(result.cut, result.error) for result in fine.results] == [(False, True)]


def test_a_subagent_is_known_by_its_header() -> None:
    assert read(body(user("hi")), headers(agent="a1")).agent == "a1"
    assert read(body(user("hi")), headers()).agent == ""
