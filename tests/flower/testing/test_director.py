"""What the model says next is decided by the conversation: retries, cuts, resumes and other runs included."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flower.testing import Story, read_story
from flower.testing.conversation import read
from flower.testing.director import Memory, Plan, Refusal, Served, direct
from tests.flower.testing.messages import Message, body, gives, headers, says, user, uses

CUT = "The user doesn't want to proceed with this tool use."


class Stage:
    """A story with its memory, as the server keeps them."""

    def __init__(self, *lines: Any, **part: Any) -> None:
        self.story: Story = read_story({"parts": {"main": {"lines": list(lines), **part}}})
        self.memory = Memory()
        self.served = 0

    def ask(self, *messages: Message, session: str = "s1", agent: str = "", **more: Any) -> Plan | Refusal:
        decision = direct(self.story, read(body(*messages, **more), headers(session, agent)), self.memory)
        if isinstance(decision, Plan):
            self.served += 1
            calls = tuple(f"t{self.served}.{n}" for n in range(len(decision.call)))
            self.memory.keep(Served(number=self.served, plan=decision, calls=calls, session=session, agent=agent))
        return decision

    def plan(self, *messages: Message, **more: Any) -> Plan:
        decision = self.ask(*messages, **more)
        assert isinstance(decision, Plan), decision
        return decision

    def refusal(self, *messages: Message, **more: Any) -> Refusal:
        decision = self.ask(*messages, **more)
        assert isinstance(decision, Refusal), decision
        return decision


RUN = {"say": "I run it.", "call": {"Bash": {"command": "ls"}}}


# -- what is refused ------------------------------------------------------------------------------------------------


def test_a_request_that_no_part_recognises_is_refused() -> None:
    stage = Stage("Hello.", match={"system": "You are somebody else"})
    assert stage.refusal(user("hi")) == Refusal(why="no part of the story recognises this request")


def test_an_answer_that_was_never_given_is_refused() -> None:
    stage = Stage("Hello.", "Again.")
    stage.plan(user("hi"))
    refused = stage.refusal(user("hi"), says("I never said that"), user("go on"))
    assert refused.why == "the conversation holds an answer that this server never gave: 'I never said that'"


def test_more_than_the_part_has_is_refused() -> None:
    stage = Stage("Hello.")
    stage.plan(user("hi"))
    assert stage.refusal(user("hi"), says("Hello."), user("and?")) == Refusal(
        why="the part has no line left", part="main"
    )


def test_what_a_line_expects_must_be_so() -> None:
    stage = Stage({"name": "start", "expect": {"prompt": "Carry out"}, "say": "Yes."})
    refused = stage.refusal(user("The last round did not reach the goal"))
    assert refused == Refusal(why="expected otherwise: prompt does not hold 'Carry out'", part="main", line="start")


def test_where_no_alternative_fits_each_reason_is_told() -> None:
    stage = Stage(
        {"name": "fork", "either": [{"when": {"prompt": "a"}, "say": "A"}, {"when": {"prompt": "b"}, "say": "B"}]}
    )
    refused = stage.refusal(user("xyz"))
    assert refused.why == "no line fits here (prompt does not hold 'a'; prompt does not hold 'b')"


def test_a_variable_that_was_not_found_is_refused() -> None:
    stage = Stage({"take": {"prompt": "/for (?P<who>.+)/"}, "say": "For ${who}."})
    assert stage.plan(user("for you")).say == "For you."
    assert stage.refusal(user("nothing"), session="s2").why == "variable ${who} has no value yet"


# -- where a part stands --------------------------------------------------------------------------------------------


def test_lines_follow_the_conversation() -> None:
    stage = Stage(RUN, {"expect": {"result": "file"}, "say": "Done."}, "More.")
    assert stage.plan(user("hi")).say == "I run it."
    told = (user("hi"), uses("Bash", "t1.0", text="I run it."), gives("t1.0", "a file"))
    assert stage.plan(*told).say == "Done."
    assert stage.plan(*told, says("Done."), user("and?")).say == "More."


def test_a_retried_request_gets_the_same_line() -> None:
    stage = Stage("One.", "Two.", "Three.")
    assert [stage.plan(user("hi")).say for _ in range(3)] == ["One.", "One.", "One."]
    again = (user("hi"), says("One."), user("go"))
    assert [stage.plan(*again).say for _ in range(3)] == ["Two.", "Two.", "Two."]


def test_each_run_begins_at_the_start() -> None:
    stage = Stage("One.", "Two.")
    stage.plan(user("hi"))
    stage.plan(user("hi"), says("One."), user("go"))
    assert stage.plan(user("hi"), session="s2").say == "One."
    assert stage.plan(user("hi"), agent="a1").say == "One."


def test_a_fork_goes_on_where_the_other_session_was() -> None:
    stage = Stage("One.", {"say": "Two."}, {"expect": {"session": "same"}, "say": "Three."})
    stage.plan(user("hi"))
    assert stage.plan(user("hi"), says("One."), user("go"), session="s2").say == "Two."
    three = (user("hi"), says("One."), user("go"), says("Two."), user("go"))
    assert stage.plan(*three, session="s2").say == "Three."
    assert stage.refusal(*three, session="s3").why == "expected otherwise: session is another"


def test_the_part_that_began_a_conversation_keeps_it() -> None:
    story = {
        "parts": {
            "judge": {"match": {"prompt": "Job A"}, "lines": ["A1.", "A2."]},
            "other": {"match": {"prompt": "Job B"}, "lines": ["B1."]},
        }
    }
    stage = Stage("unused")
    stage.story = read_story(story)
    assert stage.plan(user("Job A")).label == "judge.1"
    assert stage.plan(user("Job A"), says("A1."), user("now Job B")).label == "judge.2"


def test_what_was_said_twice_is_told_apart_by_its_place() -> None:
    stage = Stage("Same.", "Same.", "Other.")
    stage.plan(user("hi"))
    stage.plan(user("hi"), says("Same."), user("go"))
    # Back at the first of the two, as a resume at an earlier message does.
    assert stage.plan(user("hi"), says("Same."), user("go")).line == "2"
    assert stage.plan(user("hi"), says("Same."), user("go"), says("Same."), user("go")).line == "3"


def test_a_line_can_lead_back_to_a_named_one() -> None:
    stage = Stage({"name": "look", "say": "Looking."}, {"say": "Again.", "then": "look"})
    stage.plan(user("hi"))
    stage.plan(user("hi"), says("Looking."), user("go"))
    assert stage.plan(user("hi"), says("Looking."), user("go"), says("Again."), user("go")).line == "look"


# -- cuts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "after",
    [
        # The tool was stopped, as the program reports it and as flower heals it.
        [
            uses("Bash", "t2.0", text="I run it."),
            gives("t2.0", CUT, error=True, then="[Request interrupted by user for tool use]"),
        ],
        [
            uses("Bash", "t2.0", text="I run it."),
            gives("t2.0", "[This step was cut and has no result. Do it again if it is needed.]"),
        ],
        # Only the beginning of the text came through.
        [says("I ru"), user("[Request interrupted by user]")],
        # The stream broke behind the text, which the program keeps.
        [says("I run it."), user("<system-reminder>\nYour response above was cut off mid-stream.\n</system-reminder>")],
    ],
    ids=["stopped", "healed", "half a text", "broken stream"],
)
def test_a_line_that_was_cut_is_said_again(after: Sequence[Message]) -> None:
    stage = Stage("Hello.", {**RUN, "name": "run", "expect": {"prompt": "go"}}, "Done.")
    begun = (user("hi"), says("Hello."), user("go"))
    stage.plan(user("hi"))
    stage.plan(*begun)
    # What it expected then is not asked for again: nobody says «go» a second time.
    assert stage.plan(*begun, *after, says("No response requested."), user("carry on")).line == "run"


def test_a_text_that_came_whole_before_its_stream_broke_is_said_again() -> None:
    stage = Stage("One.", "Two.")
    stage.plan(user("hi"))
    reminder = "<system-reminder>\nYour response above was cut off mid-stream. Resume directly.\n</system-reminder>"
    assert stage.plan(user("hi"), says("One."), user(reminder)).say == "One."


def test_a_request_that_was_cut_before_its_answer_came_gets_the_line_that_was_due() -> None:
    stage = Stage("Hello.", "Two.")
    stage.plan(user("hi"))
    stage.plan(user("hi"), says("Hello."), user("go"))
    cut = (user("hi"), says("Hello."), user("go", "[Request interrupted by user]"), says("No response requested."))
    assert stage.plan(*cut, user("carry on")).say == "Two."


def test_a_tool_that_had_finished_before_the_cut_is_not_called_again() -> None:
    stage = Stage(RUN, "Done.")
    stage.plan(user("hi"))
    told = (
        user("hi"),
        uses("Bash", "t1.0", text="I run it."),
        gives("t1.0", "out", then="[Request interrupted by user]"),
    )
    assert stage.plan(*told, says("No response requested."), user("carry on")).say == "Done."


def test_an_alternative_that_was_cut_is_the_one_that_is_said_again() -> None:
    fork = {"name": "fork", "either": [{"when": {"prompt": "left"}, "call": {"Bash": {"command": "l"}}}, RUN]}
    stage = Stage(fork, "Done.")
    stage.plan(user("left, please"))
    told = (user("left, please"), uses("Bash", "t1.0"), gives("t1.0", CUT, error=True, then="carry on"))
    assert stage.plan(*told).call[0].input == {"command": "l"}


# -- anytime --------------------------------------------------------------------------------------------------------

STOP = {"when": {"prompt": "/stopped you: (?P<words>.+)/"}, "say": "You said: ${words}."}


def test_words_at_a_stop_come_before_the_line_that_was_cut_in_one_message() -> None:
    stage = Stage(RUN, "Done.", anytime=[STOP])
    stage.plan(user("hi"))
    told = (
        user("hi"),
        uses("Bash", "t1.0", text="I run it."),
        gives("t1.0", CUT, error=True, then="stopped you: be quick"),
    )
    plan = stage.plan(*told)
    assert plan.say == "You said: be quick.\n\nI run it."
    assert [call.tool for call in plan.call] == ["Bash"]
    assert plan.line == "anytime-1+1"
    # And the story goes on behind it.
    more = (*told, uses("Bash", "t2.0", text=plan.say), gives("t2.0", "out"))
    assert stage.plan(*more).say == "Done."


def test_words_are_remembered_for_later_lines() -> None:
    stage = Stage(RUN, "As you said: ${words}.", anytime=[STOP])
    stage.plan(user("hi"))
    told = (
        user("hi"),
        uses("Bash", "t1.0", text="I run it."),
        gives("t1.0", CUT, error=True, then="stopped you: be quick"),
    )
    plan = stage.plan(*told)
    assert stage.plan(*told, uses("Bash", "t2.0", text=plan.say), gives("t2.0", "out")).say == "As you said: be quick."


def test_a_line_of_anytime_with_a_tool_of_its_own_leaves_the_other_one_due() -> None:
    look = {"when": {"prompt": "look"}, "say": "I look.", "call": {"Bash": {"command": "ls"}}}
    stage = Stage("Hello.", "Two.", anytime=[look])
    stage.plan(user("hi"))
    told = (user("hi"), says("Hello."), user("look"))
    assert stage.plan(*told).say == "I look."
    assert stage.plan(*told, uses("Bash", "t2.0", text="I look."), gives("t2.0", "out")).say == "Two."


def test_behind_the_end_anytime_can_still_lead_somewhere() -> None:
    further = {"when": {"over": True, "prompt": "more"}, "say": "Something new.", "then": "extra"}
    stage = Stage({"say": "Done.", "then": "end"}, {"name": "extra", "say": "Extra."}, anytime=[further])
    stage.plan(user("hi"))
    told = (user("hi"), says("Done."), user("more"))
    assert stage.plan(*told).say == "Something new."
    assert stage.plan(*told, says("Something new."), user("go")).say == "Extra."


# -- figures --------------------------------------------------------------------------------------------------------


def test_the_cache_grows_with_the_answers_in_the_conversation() -> None:
    stage = Stage("One.", "Two.", "Three.", usage={"cache_read": 1000, "growth": 10})
    reads = [
        stage.plan(user("hi")).usage.cache_read,
        stage.plan(user("hi"), says("One."), user("go")).usage.cache_read,
        stage.plan(user("hi"), says("One."), user("go"), says("Two."), user("go")).usage.cache_read,
    ]
    assert reads == [1000, 1010, 1020]


@given(st.lists(st.sampled_from(["retry", "cut", "next"]), max_size=12))
def test_whatever_is_retried_or_cut_no_line_is_skipped_or_said_out_of_turn(events: list[str]) -> None:
    lines = [
        {"name": f"line-{n}", "say": f"Line number {n}.", "call": {"Bash": {"command": str(n)}}} for n in range(13)
    ]
    stage = Stage(*lines)
    told: list[Message] = [user("begin")]
    for event in events:
        plan = stage.plan(*told)
        assert plan.line == f"line-{sum(message is not None for message in _done(told))}"
        call = f"t{stage.served}.0"
        match event:
            case "cut":
                told += [uses("Bash", call, text=plan.say), gives(call, CUT, error=True), user("carry on")]
            case "next":
                told += [uses("Bash", call, text=plan.say), gives(call, "fine")]


def _done(told: Sequence[Message]) -> list[Message]:
    """The tool results of lines that came to their end."""
    return [
        message
        for message in told
        if any(block.get("type") == "tool_result" and block["content"] == "fine" for block in message["content"])
    ]
