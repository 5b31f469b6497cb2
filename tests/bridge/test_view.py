"""The fold: what a thread shows after each piece of news."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import reduce
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.model import News, Person, PersonId, RunId
from bridge.view import (
    KINDS,
    VERSION,
    Call,
    Receipt,
    Todo,
    View,
    ask_key,
    dump,
    fold,
    load,
    settle_sign,
    settle_slot,
)
from tests.bridge.telling import ALICE, BOB, RUN, START, THREAD, Story, message, said_by, working

# -- whatever comes ---------------------------------------------------------------------------------------------

words = st.text(max_size=12)
scraps = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**6) | st.floats(allow_nan=False, allow_infinity=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=5,
)
NAMES = (
    *("state", "kind", "id", "by", "label", "judging", "subagent", "context", "tool_use_id", "session_id", "cost_usd"),
    *("options", "answer", "until", "fence", "command", "message", "do", "attempt", "hold", "words", "round", "rounds"),
    *(
        "verdict",
        "failed",
        "unverifiable",
        "files",
        "phase",
        "step",
        "index",
        "total",
        "ok",
        "error",
        "input",
        "silent_s",
    ),
)
STATES = (
    *("queued", "starting", "working", "interrupting", "held", "stopping", "lost", "done", "not_reached", "failed"),
    *("ended", "asked", "answered", "declined", "timeout", "over_budget", "withdrawn", "invalid", "taken", "delivered"),
    *("refused", "queued", "not_yet"),
)
values = scraps | st.sampled_from(STATES) | st.sampled_from(["q1", "q2", "verdict", "mail", "T1/U1"])
payloads = st.dictionaries(st.sampled_from(NAMES), values, max_size=6) | st.builds(
    lambda state, id, extra: {**extra, "state": state, "id": id},  # noqa: A006
    st.sampled_from(STATES),
    st.sampled_from(["q1", "q2"]),
    st.dictionaries(st.sampled_from(NAMES), values, max_size=3),
)
kinds = st.sampled_from([*sorted(KINDS), "weather"])
tools = st.sampled_from(["", "Bash", "Agent", "TodoWrite", "mcp__human__ask"])


@st.composite
def streams(draw: st.DrawFn) -> list[News]:
    items = draw(st.lists(st.tuples(kinds, words, tools, payloads, st.integers(0, 3)), max_size=25))
    return [
        News(seq=seq, fence=fence, at=START + seq, kind=kind, text=text, tool=tool, payload=payload)
        for seq, (kind, text, tool, payload, fence) in enumerate(items, 1)
    ]


EMPTY = View(run=RUN)


@given(streams(), st.randoms(use_true_random=False))
def test_what_comes_twice_counts_once(stream: list[News], random: Any) -> None:
    noisy: list[News] = []
    for news in stream:
        noisy += [news, *random.sample(noisy, min(len(noisy), 2)), news]

    assert reduce(fold, noisy, EMPTY) == reduce(fold, stream, EMPTY)


@given(streams())
def test_a_view_can_be_put_away_at_any_point_and_taken_up_again(stream: list[News]) -> None:
    view = EMPTY
    for news in stream:
        view = fold(view, news)
        assert load(dump(view)) == view


@given(streams())
def test_whatever_happens_each_ask_is_settled_once_and_numbered_once(stream: list[News]) -> None:
    seen: dict[tuple[int, str], tuple[str, str]] = {}
    view = EMPTY
    for news in stream:
        view = fold(view, news)
        for ask in view.asks:
            state, label = seen.get((ask.fence, ask.id), ("asked", ask.label))
            assert label == ask.label
            assert state in ("asked", ask.state)
            seen[ask.fence, ask.id] = (ask.state, ask.label)
    assert len({label for _, label in seen.values()}) == len(seen) == view.asked


@given(streams())
def test_nothing_open_is_left_when_a_run_is_over(stream: list[News]) -> None:
    view = reduce(fold, stream, EMPTY)
    if not stream or not view.over or view.seq != stream[-1].seq or stream[-1].kind != "run":
        return
    assert view.open_asks == ()
    assert view.calls == ()


def test_a_kind_from_tomorrow_is_counted_and_changes_nothing() -> None:
    view = working().view
    news = News(seq=view.seq + 1, fence=9, at=9e9, kind="weather", payload={"state": "done"})

    assert fold(view, news) == replace(view, seq=view.seq + 1)


@pytest.mark.parametrize("data", [b"", b"{", b"null", b"[]", b'{"version":1}', b'{"version":1,"view":{}}', b"\xff"])
def test_a_checkpoint_that_cannot_be_read_is_none(data: bytes) -> None:
    assert load(data) is None


def test_a_checkpoint_of_another_version_is_none() -> None:
    body = json.loads(dump(working().view))

    assert load(json.dumps({**body, "version": VERSION + 1}).encode()) is None
    assert load(json.dumps(body).encode()) == working().view


# -- the run ----------------------------------------------------------------------------------------------------


def test_a_new_run_says_what_who_and_where() -> None:
    view = Story(request="Build it", budget=5.0).view

    assert (view.state, view.request, view.workspace, view.starter, view.budget) == (
        "queued",
        "Build it",
        "site",
        ALICE,
        5.0,
    )
    assert view.created == START + 10


def test_the_states_of_a_run_from_its_start_to_its_end() -> None:
    story = Story()
    seen = [story.view.state]
    story.run("starting", attempt=1, by=said_by(ALICE), words=False)
    seen.append(story.view.state)
    story.fence = 1
    story.run("working", attempt=1, resumed=False)
    seen.append(story.view.state)
    story.run("interrupting", by=said_by(BOB), words="", now=True, hold=True)
    seen.append(story.view.state)
    story.run("held", by=said_by(BOB))
    seen.append(story.view.state)
    story.run("working", attempt=1, resumed=True, by=said_by(ALICE), words="go on")
    seen.append(story.view.state)
    story.ends("done")
    seen.append(story.view.state)

    assert seen == ["queued", "starting", "working", "stopping", "held", "working", "done"]


def test_a_held_run_says_who_holds_it() -> None:
    story = working()
    story.run("held", by=said_by(BOB))

    assert (story.view.state, story.view.by) == ("held", BOB)


def test_a_held_run_that_goes_on_is_told_with_the_words_and_is_no_new_start() -> None:
    story = working()
    story.run("held", by=said_by(BOB))
    story.run("working", attempt=1, resumed=True, by=said_by(ALICE), words="go on")

    assert [(line.what, line.by) for line in story.view.lines[-1:]] == [("resumed", ALICE)]
    assert story.view.starts == 1


def test_a_second_start_is_told_with_who_started_it() -> None:
    story = working()
    story.run("lost", silent_s=20.0, attempt=1)
    story.run("starting", attempt=3, by=said_by(BOB), words=True)
    story.fence = 3
    story.run("working", attempt=3, resumed=True)

    (line,) = story.view.lines[-1:]
    assert (line.what, line.by, line.facts) == ("started_again", BOB, {"attempt": 2})
    assert (story.view.starts, story.view.fence) == (2, 3)


def test_a_lost_run_keeps_the_moment_when_it_was_last_heard() -> None:
    story = working()
    heard = story.says("hello").at
    story.run("lost", "the runner is gone", silent_s=20.0, attempt=1)

    assert (story.view.state, story.view.heard, story.view.reason) == ("lost", heard, "the runner is gone")


def test_a_run_that_was_taken_for_lost_and_speaks_again_works() -> None:
    story = working()
    story.run("lost", silent_s=20.0, attempt=1)
    story.says("I am still here")

    assert story.view.state == "working"


def test_a_line_of_an_older_attempt_does_not_bring_a_lost_run_back() -> None:
    story = working()
    story.fence = 2
    story.run("lost", silent_s=20.0, attempt=1)
    story.fence = 1
    story.says("too late")

    assert story.view.state == "lost"


def test_an_end_has_all_that_the_thread_must_say() -> None:
    story = working()
    verdict = {"state": "achieved", "reason": "all there", "failed": []}
    story.ends("done", cost_usd=0.25, aside_usd=0.01, verdict=verdict, unverifiable=["taste"], files=["a.py"])

    (end,) = story.view.ends
    assert (end.state, end.cost, end.aside, end.duration) == ("done", 0.25, 0.01, 252.4)
    assert (end.verdict, end.unverifiable, end.files) == ("achieved", ("taste",), ("a.py",))
    assert (story.view.cost, story.view.duration, story.view.over) == (0.25, 252.4, True)


def test_an_end_without_figures_keeps_those_that_are_known() -> None:
    story = working()
    story.tell("result", "success", session_id="s1", cost_usd=0.5)
    story.run("failed", "the runner did not start")

    (end,) = story.view.ends
    assert (end.cost, end.reason, end.duration) == (0.5, "the runner did not start", 50.0)


def test_a_run_that_is_continued_is_no_longer_over() -> None:
    story = working()
    story.ends("done")
    story.works(attempt=2)

    assert (story.view.over, story.view.duration, story.view.state) == (False, None, "working")
    assert len(story.view.ends) == 1


@pytest.mark.case("SS-10")
def test_a_step_that_people_cut_is_no_failed_step() -> None:
    story = working()
    story.tell("step_end", step="Work", ok=False, error="ended-by-human", cost_usd=0.0, num_turns=1, duration_s=1.0)
    story.tell("step_end", step="Work", ok=False, error="API error 529", cost_usd=0.0, num_turns=1, duration_s=1.0)

    assert [(line.what, line.text) for line in story.view.lines if line.what == "step_failed"] == [
        ("step_failed", "API error 529")
    ]


# -- where it is ------------------------------------------------------------------------------------------------


def test_the_step_and_the_round() -> None:
    story = working()
    assert (story.view.step, story.view.index, story.view.total, story.view.round) == ("Work", 3, 3, 0)

    story.tell(
        "task", kind="verdict", step="Work", round=1, rounds=3, state="not_yet", reason="no test", failed=["test"]
    )
    assert (story.view.round, story.view.rounds) == (1, 3)

    story.says("again", label="Work#round2")
    assert (story.view.round, story.view.rounds) == (2, 3)


def test_a_verdict_is_told_and_the_judges_prose_is_not() -> None:
    story = working()
    story.says("I look at the files.", label="Work·verdict#1", judging=True)
    judging = story.view.judging

    story.tell(
        "task", kind="verdict", step="Work", round=1, rounds=3, state="not_yet", reason="no test", failed=["test"]
    )

    assert story.view.says == ()
    (line,) = story.view.lines[-1:]
    assert (line.what, line.text, line.facts["failed"]) == ("verdict", "no test", ["test"])
    assert [judging, story.view.judging] == [True, False]


def test_prose_of_subagents_thoughts_and_prompts_are_not_posted() -> None:
    story = working()
    story.says("from a subagent", subagent=True)
    story.says("   ")
    story.tell("thinking", "hm", label="Work")
    story.tell("prompt", "do it", label="Work")
    story.says("from the main thread")

    assert [say.text for say in story.view.says] == ["from the main thread"]


def test_a_lost_connection_is_shown_until_something_comes() -> None:
    story = working()
    story.tell("error", "connection lost", synthetic=True)
    story.tell("retry", "waiting for the network", step="Work", attempt=2)
    before = story.view.reconnecting
    story.says("back")

    assert [before, story.view.reconnecting] == [True, False]


@pytest.mark.case("SS-2")
def test_an_interrupt_is_told_when_it_is_received_and_when_it_is_taken_up() -> None:
    story = working()
    story.run("interrupting", by=said_by(ALICE), words="use tabs", now=False, hold=False)
    before = story.view.cutting
    story.tell("retry", "Interrupted, going on with your words", step="Work", attempt=1)

    assert [before, story.view.cutting, story.view.reconnecting] == [True, False, False]
    assert [line.what for line in story.view.lines] == ["step", "interrupting", "retry"]


def test_the_retry_behind_a_hold_is_told_once_as_going_on() -> None:
    story = working()
    story.run("held", by=said_by(BOB))
    story.run("working", attempt=1, resumed=True, by=said_by(ALICE), words="go on")
    story.tell("retry", "Interrupted, going on with your words", step="Work", attempt=1)
    story.tell("retry", "Attempt 1 failed (network), trying again", step="Work", attempt=2)

    assert [line.what for line in story.view.lines] == ["step", "held", "resumed", "retry"]


def test_the_level_of_the_context_is_the_main_threads() -> None:
    story = working()
    story.says("a", context=34_000)
    story.says("b", context=90_000, subagent=True)
    story.calls("Bash", "ls", id="t1", context=35_000)

    assert story.view.context == 35_000


def test_what_the_turns_added_is_summed_over_sessions_and_attempts() -> None:
    story = working()
    story.tell("result", "success", session_id="s1", cost_usd=0.10)
    story.tell("result", "error_during_execution", session_id="s1", cost_usd=0.15)
    story.tell("result", "success", session_id="judge", cost_usd=0.05)
    story.tell("result", "success", session_id="s1", cost_usd=0.05)

    assert story.view.cost == pytest.approx(0.35)


def test_the_plan_is_the_newest_of_the_step() -> None:
    story = working()
    todos = [{"content": "write", "status": "completed"}, {"content": "test", "status": "in_progress"}, "garbage"]
    story.calls("TodoWrite", id="t1", input={"todos": todos})
    plan = story.view.plan
    story.step("More", 4)

    assert plan == (Todo(text="write", status="completed"), Todo(text="test", status="in_progress"))
    assert story.view.plan == ()


# -- activity ---------------------------------------------------------------------------------------------------


def test_calls_between_two_posts_are_one_stretch() -> None:
    story = working()
    first = story.calls("Bash", "pytest -q\nsecond line", id="t1")
    story.returns("t1")
    story.calls("Agent", "", id="a1")
    story.calls("Read", "a.py", id="t2", subagent=True)

    (stretch,) = story.view.activities
    assert (stretch.seq, stretch.calls, stretch.subagents, stretch.now, stretch.open) == (
        first.seq,
        2,
        1,
        "Read a.py",
        True,
    )
    assert story.view.subagents == 1


def test_prose_an_ask_and_a_step_end_a_stretch_and_a_later_call_opens_one_below() -> None:
    story = working()
    story.calls("Bash", "ls", id="t1")
    story.says("so")
    story.calls("Bash", "ls", id="t2")
    story.asks("Which?")
    story.calls("Bash", "ls", id="t3")
    story.step("More", 4)
    story.calls("Bash", "ls", id="t9")

    assert [(stretch.calls, stretch.open) for stretch in story.view.activities] == [
        (1, False),
        (1, False),
        (1, False),
        (1, True),
    ]


def test_talking_to_people_is_no_activity() -> None:
    story = working()
    story.calls("mcp__human__ask", id="t1")
    story.calls("mcp__human__inbox", id="t2")

    assert (story.view.activities, story.view.calls) == ((), ())


def test_a_call_is_open_until_it_returns() -> None:
    story = working()
    called = story.calls("Bash", "make", id="t1")
    before = story.view.calls
    story.returns("t1")

    assert before == (Call(id="t1", tool="Bash", text="make", at=called.at),)
    assert story.view.calls == ()


# -- asks -------------------------------------------------------------------------------------------------------


def test_an_ask_is_open_until_its_outcome() -> None:
    story = working()
    asked = story.asks("A or B?", "A", "B", until=START + 1_800)
    (ask,) = story.view.open_asks
    assert (ask.label, ask.fence, ask.id, ask.options, ask.until) == ("q1", 1, "q1", ("A", "B"), START + 1_800)

    settled = story.settles("A or B?", "answered", "A", by=said_by(BOB))
    (ask,) = story.view.asks
    assert (ask.seq, ask.state, ask.answer, ask.by, ask.settled) == (asked.seq, "answered", "A", BOB, settled.at)
    assert story.view.open_asks == ()


def test_the_first_outcome_stays() -> None:
    story = working()
    story.asks("A or B?", "A", "B")
    story.settles("A or B?", "answered", "A", by=said_by(BOB))
    story.settles("A or B?", "withdrawn")

    assert story.view.asks[0].state == "answered"


@pytest.mark.case("AS-7")
def test_several_asks_are_open_at_once_and_each_gets_its_own_outcome() -> None:
    story = working()
    for number in (1, 2, 3):
        story.asks(f"Question {number}?", id=f"q{number}")
    story.settles("Question 2?", "answered", "two", id="q2")
    story.settles("Question 1?", "answered", "one", id="q1")

    assert [(ask.label, ask.state, ask.answer) for ask in story.view.asks] == [
        ("q1", "answered", "one"),
        ("q2", "answered", "two"),
        ("q3", "asked", ""),
    ]


def test_people_count_questions_over_attempts_and_not_with_flowers_ids() -> None:
    story = working()
    story.asks("First?", id="q1")
    story.settles("First?", "timeout", "Nobody answered.", id="q1")
    story.asks("Second?", id="q3")  # m2 was mail
    story.works(attempt=2)
    story.asks("Third?", id="q1")

    assert [(ask.label, ask.fence, ask.id) for ask in story.view.asks] == [
        ("q1", 1, "q1"),
        ("q2", 1, "q3"),
        ("q3", 2, "q1"),
    ]


def test_what_an_older_attempt_left_open_is_withdrawn_when_a_newer_one_works() -> None:
    story = working()
    story.asks("A or B?", "A", "B")
    story.works(attempt=2)

    assert [ask.state for ask in story.view.asks] == ["withdrawn"]


def test_a_withdrawal_by_whoever_found_the_run_dead_names_the_attempt_that_asked() -> None:
    story = working()
    story.asks("A or B?", "A", "B")
    story.fence = 2
    story.run("lost", silent_s=20.0, attempt=1)
    story.settles("A or B?", "withdrawn", fence=1)

    assert [(ask.fence, ask.state) for ask in story.view.asks] == [(1, "withdrawn")]


@pytest.mark.parametrize("state", ["over_budget", "timeout"])
def test_a_question_that_nobody_waited_for_is_shown_as_settled(state: str) -> None:
    story = working()
    story.settles("A or B?", state, "decide yourself")

    assert [(ask.label, ask.state) for ask in story.view.asks] == [("q1", state)]


@pytest.mark.parametrize("state", ["invalid", "answered", "declined", "withdrawn", "tomorrow", ""])
def test_an_outcome_without_a_question_shows_nothing(state: str) -> None:
    story = working()
    story.settles("", state)

    assert (story.view.asks, story.view.asked) == ((), 0)


@pytest.mark.case("AS-12")
def test_open_asks_are_withdrawn_when_the_run_ends() -> None:
    story = working()
    story.asks("A or B?", "A", "B")
    story.ends("ended", by=said_by(BOB))

    assert [ask.state for ask in story.view.asks] == ["withdrawn"]


def test_an_ask_has_one_name_in_the_store() -> None:
    assert ask_key(RunId("k3f9qa"), 2, "q1") == "k3f9qa/2/q1"


# -- receipts and the oracle ------------------------------------------------------------------------------------


def receipt(story: Story, command: str, state: str, why: str = "", **facts: Any) -> None:
    where = {"platform": "anywhere", "thread": THREAD.key, "key": "m-1"}
    told: dict[str, Any] = {
        "command": command,
        "do": "say",
        "by": said_by(ALICE),
        "message": where,
        "state": state,
        **facts,
    }
    story.tell("receipt", why, **told)


def test_mail_is_received_and_then_delivered() -> None:
    story = working()
    receipt(story, "c1", "taken", position="1-0")
    assert story.view.receipts == (Receipt(command="c1", message=message("m-1"), sign="received"),)

    story.tell("ask", "and a test", kind="mail", state="queued", id="m2", amended="", command="c1")
    before = story.view.receipts[0].sign
    story.tell("ask", "and a test", kind="mail", state="delivered", id="m2", amended="", command="c1")
    assert [before, story.view.receipts[0].sign] == ["received", "delivered"]


def test_a_refusal_is_a_sign_and_a_line_with_its_reason() -> None:
    story = working()
    receipt(story, "c1", "taken")
    receipt(story, "c1", "refused", "the run is not held", do="resume")

    assert story.view.receipts[0].sign == "refused"
    (line,) = story.view.lines[-1:]
    assert (line.what, line.text, line.by) == ("refused", "the run is not held", ALICE)


def test_a_hold_that_is_refused_leaves_no_state_of_stopping() -> None:
    story = working()
    story.run("interrupting", by=said_by(ALICE), words="", now=True, hold=True)
    receipt(story, "c1", "refused", "too late", do="hold")

    assert story.view.state == "working"


def test_a_tap_has_no_message_to_sign() -> None:
    story = working()
    receipt(story, "c1", "taken", message=None)
    receipt(story, "c1", "done", message=None)

    assert story.view.receipts == ()


def test_a_receipt_that_says_its_last_word_can_be_forgotten() -> None:
    story = working()
    receipt(story, "c1", "taken")
    assert settle_sign(story.view, message("m-1"), "received") == story.view

    receipt(story, "c1", "delivered")
    assert settle_sign(story.view, message("m-1"), "delivered").receipts == ()


def test_an_oracle_question_from_the_thread_is_not_repeated_there() -> None:
    story = working()
    receipt(story, "c1", "taken", do="consult")
    story.tell("oracle", "how far?", command="c1", state="asked", question="how far?", by=said_by(BOB))
    assert (story.view.consulting, story.view.oracles) == (("c1",), ())

    story.tell(
        "oracle", "half way", command="c1", state="answered", question="how far?", by=said_by(BOB), cost_usd=0.02
    )
    (answer,) = story.view.oracles
    assert (answer.text, answer.question, answer.by, answer.cost) == ("half way", "how far?", BOB, 0.02)
    assert (story.view.consulting, story.view.aside, story.view.cost) == ((), 0.02, 0.0)


def test_an_oracle_question_from_a_form_is_shown() -> None:
    story = working()
    story.tell("oracle", "how far?", command="c1", state="asked", question="how far?", by=said_by(BOB))

    assert [(each.state, each.question) for each in story.view.oracles] == [("asked", "how far?")]


@pytest.mark.case("SS-8")
def test_the_oracle_does_not_end_a_stretch_of_activity() -> None:
    story = working()
    story.calls("Bash", "ls", id="t1")
    story.tell("oracle", "half way", command="c1", state="answered", question="how far?", cost_usd=0.02)
    story.calls("Bash", "ls", id="t2")

    assert [stretch.calls for stretch in story.view.activities] == [2]


# -- what leaves ------------------------------------------------------------------------------------------------


def test_what_stands_for_good_leaves_the_view() -> None:
    story = working()
    say = story.says("hello")
    story.calls("Bash", "ls", id="t1")
    step = story.step("More", 4)
    view = story.view
    for name in (f"say:{say.seq}:2", f"activity:{say.seq + 1}", f"line:{step.seq}", "line:4"):
        view = settle_slot(view, name)

    assert (view.says, view.activities, [line.seq for line in view.lines]) == ((), (), [])


@pytest.mark.parametrize(
    "name", ["card", "", "say", "say:", "say:x", "ask:1:q9", "ask", "weather:5", "line:999", "activity:²"]
)
def test_a_name_that_is_nobodys_changes_nothing(name: str) -> None:
    story = working()
    story.says("hello")

    assert settle_slot(story.view, name) == story.view


def test_what_is_open_stays() -> None:
    story = working()
    call = story.calls("Bash", "ls", id="t1")
    assert settle_slot(story.view, f"activity:{call.seq}") == story.view
    story.asks("A or B?", "A", "B")
    assert settle_slot(story.view, "ask:1:q1") == story.view


def test_a_settled_ask_that_leaves_is_known_to_whoever_comes_late() -> None:
    story = working()
    story.asks("A or B?", "A", "B")
    story.settles("A or B?", "answered", "A", by=said_by(BOB))
    view = settle_slot(story.view, "ask:1:q1")

    known = view.ask(1, "q1")
    assert view.asks == ()
    assert known is not None
    assert (known.label, known.state, known.answer, known.by) == ("q1", "answered", "A", BOB)


def test_an_outcome_repeated_after_it_left_is_no_new_ask() -> None:
    story = working()
    story.asks("A or B?", "A", "B")
    story.settles("A or B?", "timeout")
    story.view = settle_slot(story.view, "ask:1:q1")
    story.settles("A or B?", "timeout")

    assert (story.view.asks, story.view.asked) == ((), 1)


@pytest.mark.case("PR-6")
def test_fifty_thousand_events_keep_a_view_small() -> None:
    view = working().view
    largest = 0
    for seq in range(view.seq + 1, view.seq + 50_001):
        kind, tool, payload = MIX[seq % len(MIX)]
        told = {**payload, "id": f"q{seq // len(MIX)}" if kind == "ask" else f"t{seq}", "tool_use_id": f"t{seq - 1}"}
        view = fold(view, News(seq=seq, fence=1, at=START + seq, kind=kind, text="x" * 50, tool=tool, payload=told))
        if seq % 100 == 0:
            for name in posted_names(view):
                view = settle_slot(view, name)
            largest = max(largest, len(dump(view)))

    assert largest < 40_000
    assert (len(view.says), len(view.lines)) == (0, 0)
    assert view.asked == 2_500


MIX: list[tuple[str, str, dict[str, Any]]] = [
    *[("tool_call", "Bash", {"label": "Work"}), ("tool_result", "", {"label": "Work"})] * 8,
    ("text", "", {"label": "Work"}),
    ("ask", "", {"state": "asked", "options": ["A", "B"]}),
    ("ask", "", {"state": "answered", "answer": "A"}),
    ("retry", "", {}),
]


def posted_names(view: View) -> list[str]:
    return [
        *(f"say:{each.seq}" for each in view.says),
        *(f"line:{each.seq}" for each in view.lines),
        *(f"activity:{each.seq}" for each in view.activities),
        *(f"ask:{each.fence}:{each.id}" for each in view.asks),
    ]


def test_a_person_without_an_identity_in_a_payload_is_nobody() -> None:
    story = working()
    story.run("held", by={"name": "alice"})
    assert story.view.by is None

    story.run("held", by={"id": "T1/U9", "name": 7})
    assert story.view.by == Person(id=PersonId("T1/U9"), name="")
