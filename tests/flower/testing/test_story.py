"""Patterns, variables and conditions of stories."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flower.testing import Condition, Line, Part, Pattern, Story, StoryError, Usage
from flower.testing.conversation import read
from flower.testing.story import Sight, UnknownVariableError, filled
from tests.flower.testing.messages import body, gives, headers, user, uses


def sight(*, error: bool = False) -> Sight:
    request = body(user("Please build A (quickly)"), uses("Bash", "t1"), gives("t1", "built in 3 s", error=error))
    conversation = read(request, headers())
    return Sight(conversation=conversation, news=conversation.since(1))


@pytest.mark.parametrize("source", ["", "/(/", "/(?P<a>x)(?P<a>y)/"])
def test_a_bad_pattern_is_refused_at_once(source: str) -> None:
    with pytest.raises(StoryError):
        Pattern(source)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("please BUILD", {}),
        ("build b", None),
        ("a (quickly)", {}),
        (r"/build (?P<what>\w+)/", {"what": "A"}),
        (r"/^build/", None),
        ("/${word}/", None),
        ("${thing} (quickly)", {}),
    ],
)
def test_words_are_found_in_any_case_and_expressions_give_their_groups(
    source: str, found: dict[str, str] | None
) -> None:
    assert Pattern(source).search("Please build A (quickly)", {"word": "b.ild", "thing": "A"}) == found


def test_a_variable_without_a_value_is_an_error_and_not_an_empty_text() -> None:
    with pytest.raises(UnknownVariableError, match="name"):
        filled("Hello ${name}", {})


def test_a_doubled_dollar_is_a_literal_one() -> None:
    assert filled("echo $${HOME} $$ $HOME ${x}", {"x": "1"}) == "echo ${HOME} $$ $HOME 1"


@given(st.text(), st.text())
def test_values_of_variables_are_never_read_again(before: str, value: str) -> None:
    text = before.replace("$", "")
    assert filled(text + "${x}", {"x": value}) == text + value


@given(st.text(min_size=1))
def test_words_from_people_are_no_expression(words: str) -> None:
    assert Pattern("/^${words}$/").search(words.strip(), {"words": words.strip()}) == {}


@pytest.mark.parametrize(
    ("condition", "missing"),
    [
        (Condition(), ""),
        (Condition(result=(Pattern("built"),), error=False, agent="main"), ""),
        (Condition(result=(Pattern("failed"),)), "result does not hold 'failed'"),
        (Condition(result=(Pattern("built"), Pattern("twice"))), "result does not hold 'twice'"),
        (Condition(prompt=(Pattern("build"),)), "prompt does not hold 'build'"),
        (Condition(error=True), "error is False"),
        (Condition(interrupted=True), "interrupted is False"),
        (Condition(agent="sub"), "agent is main"),
        (Condition(over=True), "over is False"),
        (Condition(tools=("Bash", "Agent")), "not on offer: Agent"),
        (Condition(unless=Condition(opening=(Pattern("quickly"),))), "it holds what it must not hold"),
        (Condition(unless=Condition(opening=(Pattern("slowly"),))), ""),
    ],
)
def test_a_condition_says_what_it_misses(condition: Condition, missing: str) -> None:
    assert condition.check(sight(), {}).missing == missing


def test_an_error_among_the_results_is_seen() -> None:
    assert Condition(error=True).check(sight(error=True), {}).ok


def test_collecting_keeps_what_was_known_where_nothing_is_found() -> None:
    take = Condition(result=(Pattern(r"/in (?P<time>\d+) s/"), Pattern(r"/cost (?P<cost>\d+)/")))
    assert take.collect(sight(), {"cost": "7"}) == {"time": "3", "cost": "7"}


def test_usage_is_filled_from_outside_inwards() -> None:
    assert Usage(output=1).over(Usage(output=2, input=3)) == Usage(output=1, input=3)


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ((Line(say="x", then="nowhere"),), "`then` leads to 'nowhere'"),
        ((Line(say="x", name="a"), Line(say="y", name="a")), "two places are named 'a'"),
        ((Line(say="x", name="end"),), "'end' is no name for a line"),
    ],
)
def test_a_part_with_a_loose_end_is_refused(lines: tuple[Line, ...], says: str) -> None:
    with pytest.raises(StoryError, match=says):
        Part(name="main", lines=tuple((line,) for line in lines))


def test_a_line_of_anytime_needs_an_occasion() -> None:
    with pytest.raises(StoryError, match="needs `when`"):
        Part(name="main", anytime=(Line(say="x"),))


def test_a_variable_that_nothing_gives_is_found_before_anybody_plays() -> None:
    with pytest.raises(StoryError, match=r"variable \$\{who\} is given nowhere"):
        Story(parts=(Part(name="main", lines=((Line(say="Hello ${who}"),),)),))


def test_two_parts_cannot_have_one_name() -> None:
    part = Part(name="main", lines=((Line(say="x"),),))
    with pytest.raises(StoryError, match="two parts are named 'main'"):
        Story(parts=(part, part))
