"""What words and taps in a thread mean: the table of product 1.5, row by row, and the commands of 1.6."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge import texts
from bridge.actions import Choose, InWords, OnRun, PickAnswer, PickMail, Skip, encode, note_of
from bridge.commands import Answer, Command, Consult, Decline, End, Hold, Interrupt, Resume, Say
from bridge.model import Person, PersonId, PlaceRef, RunRecord, RunStatus, Settled, Tap, Words
from bridge.ports import Standing
from bridge.rights import Rights
from bridge.routing import Decision, Ignore, Kill, Pick, Place, Relaunch, Reply, Send, Whisper, late_word, route
from bridge.typed import LATER
from bridge.view import settle_slot
from tests.bridge.telling import ABILITIES, ALICE, BOB, RUN, THREAD, Story, message, said_by, working

EN = texts.of("en")
CAROL = Person(id=PersonId("T1/UCAROL"), name="carol")
LATE = 1_800_000_000.0

RECORD = RunRecord(
    run=RUN,
    thread=THREAD,
    place=PlaceRef(THREAD.platform, "T1/C1"),
    request="Write the first ten primes",
    workspace="site",
    folder="/runs/k3f9qa",
    starter=ALICE,
    created=0.0,
)


def place_of(story: Story, **changes: Any) -> Place:
    """Everything as it should be: the story's view, and each of its asks posted long ago."""
    posted = {f"{RUN}/{ask.fence}/{ask.id}": ask.at for ask in story.view.asks}
    place = Place(
        texts=EN,
        rights=Rights(may_steer=frozenset({BOB.id})),
        abilities=ABILITIES,
        now=story.now,
        record=RECORD,
        view=story.view,
        posted=posted,
    )
    return replace(place, **changes)


def words(text: str, *, by: Person = ALICE, at: float = LATE, **facts: Any) -> Words:
    return Words(id="m-1", thread=THREAD, message=message("m-1"), author=by, text=text, at=at, **facts)


def tap(action: str, *, by: Person = ALICE, text: str = "") -> Tap:
    return Tap(id="t-1", thread=THREAD, author=by, action=action, text=text, at=LATE)


def sent(decision: Decision) -> Command:
    match decision:
        case Send(command=command):
            return command
        case _:
            pytest.fail(f"nothing was sent: {decision}")


def said(decision: Decision) -> str:
    match decision:
        case Reply(text=text) | Whisper(text=text):
            return text
        case _:
            pytest.fail(f"nothing was said: {decision}")


def act(text: str = "", **facts: Any) -> dict[str, Any]:
    """The fields that every command of alice's message has."""
    told = {"id": "m-1", "by": ALICE, "at": LATE, "message": message("m-1"), **facts}
    return {**told, "text": text} if text else told


def asking(*options: str) -> Story:
    story = working()
    story.asks("Which one?", *options)
    return story


def ended(state: RunStatus = "done") -> Story:
    story = working()
    story.ends(state, by=said_by(BOB))
    return story


def lost() -> Story:
    story = working()
    story.run("lost", silent_s=20.0, attempt=1)
    return story


def held() -> Story:
    story = working()
    story.run("held", by=said_by(BOB))
    return story


# -- who, and where ---------------------------------------------------------------------------------------------

EVERYTHING = [
    "hello",
    "!stop",
    "!stop now",
    "!end",
    "!kill yes",
    "!continue",
    "?how far",
    "A",
    "1",
    "!answer q1 A",
    "!skip",
]


@pytest.mark.case("SE-1")
@pytest.mark.case("SE-2")
@pytest.mark.parametrize("text", EVERYTHING)
def test_a_stranger_is_told_in_private_and_nothing_happens(text: str) -> None:
    decision = route(words(text, by=CAROL), place_of(asking("A", "B")))

    assert decision == Whisper("Only alice and people on the allow-list may steer this run. Nothing was done.")


@pytest.mark.case("SE-1")
@pytest.mark.parametrize("story", [working(), held(), ended(), lost(), asking("A", "B")])
@pytest.mark.parametrize(
    "action",
    ["hold:k3f9qa", "continue:k3f9qa", "end:k3f9qa", "oracle:k3f9qa", "answer:k3f9qa:1:q1:0", "skip:k3f9qa:1:q1"],
)
def test_a_strangers_tap_changes_nothing(story: Story, action: str) -> None:
    decision = route(tap(action, by=CAROL, text="words"), place_of(story))

    assert decision == Whisper("Only alice and people on the allow-list may steer this run. Nothing was done.")


@pytest.mark.case("SE-8")
@pytest.mark.parametrize("text", [*EVERYTHING, "!status", "!help"])
def test_a_person_who_is_not_known_is_refused(text: str) -> None:
    nobody = Person(id=PersonId(""))
    record = replace(RECORD, starter=nobody)

    assert route(words(text, by=nobody), place_of(working(), record=record)) == Whisper(EN.replies.unknown_person)


def test_somebody_on_the_list_may_steer() -> None:
    assert sent(route(words("hello", by=BOB), place_of(working()))) == Say(**act("hello", by=BOB))


@pytest.mark.parametrize("text", ["!status", "!help"])
def test_everybody_may_look(text: str) -> None:
    assert isinstance(route(words(text, by=CAROL), place_of(working())), Reply)


@pytest.mark.case("TH-6")
@pytest.mark.parametrize("text", ["hello", "!stop", "?how far", "A"])
def test_where_no_run_is_nothing_is_taken(text: str) -> None:
    nowhere = place_of(working(), record=None, view=None)

    assert isinstance(route(words(text), nowhere), Ignore)
    assert said(route(words(text, mentions_us=True), nowhere)).startswith("There is no run in this thread.")
    assert said(route(tap("hold:k3f9qa"), nowhere)) == EN.replies.stale_button


# -- 1.5: an aside ----------------------------------------------------------------------------------------------


@pytest.mark.case("TH-7")
@pytest.mark.parametrize("by", [ALICE, CAROL])
@pytest.mark.parametrize(
    "said_aside", [words("// lunch?"), words("//stop"), words("  // x"), words("look at this", mentions_other=True)]
)
def test_an_aside_is_left_alone_whoever_says_it(said_aside: Words, by: Person) -> None:
    decision = route(replace(said_aside, author=by), place_of(asking()))

    assert decision == Ignore(why="aside", tell=EN.replies.ignored)


@pytest.mark.case("TH-1")
def test_a_message_that_names_the_bot_and_somebody_else_is_for_the_run() -> None:
    decision = route(words("ask bob for it", mentions_us=True, mentions_other=True), place_of(working()))

    assert sent(decision) == Say(**act("ask bob for it"))


def test_an_empty_message_is_nothing() -> None:
    assert route(words("  \n"), place_of(asking())) == Ignore(why="empty")


# -- 1.5: a question for the oracle -----------------------------------------------------------------------------


@pytest.mark.case("SS-7")
@pytest.mark.parametrize("text", ["?how far are you", "？how far are you", "? how far are you", "??  how far are you"])
def test_a_question_mark_with_words_is_for_the_oracle_also_while_an_ask_is_open(text: str) -> None:
    assert sent(route(words(text), place_of(asking()))) == Consult(**act(), question="how far are you")


@pytest.mark.parametrize("text", ["?", "？", "???", "?!", "? …"])
def test_a_question_mark_alone_is_ordinary_words(text: str) -> None:
    assert sent(route(words(text), place_of(working()))) == Say(**act(text))


@pytest.mark.parametrize("story", [ended(), lost()])
def test_the_oracle_looks_only_while_the_run_runs(story: Story) -> None:
    assert said(route(words("?how far"), place_of(story))) == EN.replies.oracle_over


# -- 1.5: an answer ---------------------------------------------------------------------------------------------


def test_words_answer_the_only_ask_open_when_it_has_no_options() -> None:
    decision = route(words("  make it blue\nplease "), place_of(asking()))

    assert decision == Send(
        command=Answer(**act("make it blue\nplease"), fence=1, ask="q1"),
        settled=Settled(ask="k3f9qa/1/q1", by=ALICE, how="answered", text="make it blue\nplease", at=LATE),
    )


@pytest.mark.parametrize(
    ("text", "option"),
    [
        ("2", "Don't split"),
        ("2.", "Don't split"),
        ("2)", "Don't split"),
        ("#2", "Don't split"),
        ("２", "Don't split"),
        ("option 2", "Don't split"),
        ("Don't split", "Don't split"),
        ("don’t SPLIT", "Don't split"),
        (" Don't  split. ", "Don't split"),
        ("A – B", "A - B"),
        ("“quoted”", '"quoted"'),
    ],
)
def test_the_number_or_label_of_an_option_answers_with_the_full_option(text: str, option: str) -> None:
    story = asking("A - B", "Don't split", '"quoted"')

    assert sent(route(words(text), place_of(story))) == Answer(**act(option), fence=1, ask="q1")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("A", "B"), "0"),
        (("A", "B"), "3"),
        (("A", "B"), "12"),
        (("A", "B"), "A or B?"),
        (("Yes", "yes"), "yes"),
        (("2", "1"), "1"),
        (("A", "B"), "-1"),
        (("A", "B"), "²"),
    ],
)
def test_what_names_no_option_or_two_is_asked_back(options: tuple[str, ...], text: str) -> None:
    assert isinstance(route(words(text), place_of(asking(*options))), Pick)


def test_a_number_that_is_a_label_in_its_place_is_no_doubt() -> None:
    assert sent(route(words("2"), place_of(asking("1", "2")))) == Answer(**act("2"), fence=1, ask="q1")


def test_an_answer_sent_before_the_ask_was_posted_is_mail() -> None:
    story = asking()
    key = "k3f9qa/1/q1"

    assert sent(route(words("blue", at=50.0), place_of(story, posted={key: 60.0}))) == Say(**act("blue", at=50.0))
    assert sent(route(words("blue", at=60.0), place_of(story, posted={key: 60.0}))) == Say(**act("blue", at=60.0))
    assert sent(route(words("blue"), place_of(story, posted={}))) == Say(**act("blue"))
    assert isinstance(sent(route(words("blue", at=60.5), place_of(story, posted={key: 60.0}))), Answer)


def test_of_two_asks_only_those_that_could_be_seen_count() -> None:
    story = asking()
    story.asks("And which size?", id="q2")
    place = place_of(story, posted={"k3f9qa/1/q1": 10.0, "k3f9qa/1/q2": 90.0})

    assert sent(route(words("blue", at=50.0), place)) == Answer(**act("blue", at=50.0), fence=1, ask="q1")


@pytest.mark.case("AS-4")
def test_an_ask_that_was_settled_from_chat_a_moment_ago_is_no_longer_open() -> None:
    settled = Settled(ask="k3f9qa/1/q1", by=BOB, how="answered", text="red", at=LATE - 1)

    assert sent(route(words("blue"), place_of(asking(), settlements={settled.ask: settled}))) == Say(**act("blue"))


# -- 1.5: ambiguous ---------------------------------------------------------------------------------------------


@pytest.mark.case("AS-7")
def test_words_while_two_asks_are_open_are_asked_back_with_a_button_for_each() -> None:
    story = asking("A", "B")
    story.asks("And which size?", id="q3")
    decision = route(words("hm, A"), place_of(story))

    assert isinstance(decision, Pick)
    assert decision.note == note_of("m-1")
    assert [(button.label, button.action) for button in decision.card.buttons] == [
        ("Answer to q1", f"pick:k3f9qa:1:q1:{decision.note}"),
        ("Answer to q2", f"pick:k3f9qa:1:q3:{decision.note}"),
        ("Note for the agent", f"mail:k3f9qa:{decision.note}"),
    ]


def test_words_that_are_no_option_are_asked_back() -> None:
    decision = route(words("neither, use Rust"), place_of(asking("A", "B")))

    assert isinstance(decision, Pick)
    assert [button.label for button in decision.card.buttons] == ["Answer to q1", "Note for the agent"]


def test_more_asks_than_buttons_still_leave_the_note() -> None:
    story = asking("A", "B")
    for number in range(2, 9):
        story.asks("More?", id=f"q{number}")
    decision = route(words("hm"), place_of(story, abilities=replace(ABILITIES, buttons=3)))

    assert isinstance(decision, Pick)
    assert [button.label for button in decision.card.buttons] == ["Answer to q1", "Answer to q2", "Note for the agent"]


def picked(story: Story, **changes: Any) -> Place:
    return place_of(story, pending={note_of("m-1"): words("hm, A", by=BOB)}, **changes)


def test_choosing_answer_settles_that_ask_with_the_words_as_they_were() -> None:
    action = encode(PickAnswer(run=RUN, fence=1, ask="q1", note=note_of("m-1")))
    decision = route(tap(action), picked(asking("A", "B")))

    assert decision == Send(
        command=Answer(id="t-1", by=ALICE, at=LATE, message=message("m-1"), fence=1, ask="q1", text="hm, A"),
        settled=Settled(ask="k3f9qa/1/q1", by=ALICE, how="answered", text="hm, A", at=LATE),
        note=note_of("m-1"),
    )


def test_choosing_note_sends_the_words_as_mail_of_who_wrote_them() -> None:
    action = encode(PickMail(run=RUN, note=note_of("m-1")))
    decision = route(tap(action), picked(asking("A", "B")))

    assert decision == Send(
        command=Say(id="t-1", by=BOB, at=LATE, message=message("m-1"), text="hm, A"), note=note_of("m-1")
    )


def test_choosing_for_words_that_are_not_pending_does_nothing() -> None:
    for action in (PickMail(run=RUN, note="gone"), PickAnswer(run=RUN, fence=1, ask="q1", note="gone")):
        assert said(route(tap(encode(action)), picked(asking("A", "B")))) == EN.replies.stale_button


def test_choosing_an_ask_that_was_settled_meanwhile_says_so_and_keeps_the_words() -> None:
    story = asking("A", "B")
    story.settles("Which one?", "answered", "B", by=said_by(BOB))
    action = encode(PickAnswer(run=RUN, fence=1, ask="q1", note=note_of("m-1")))

    assert route(tap(action), picked(story)) == Whisper("q1 was already answered by bob: B")


# -- 1.5: mail --------------------------------------------------------------------------------------------------


@pytest.mark.case("SS-6")
@pytest.mark.parametrize("text", ["and add a test", "stop", "yes", "2", "/clear", "@file", "!nice work"])
def test_everything_else_is_mail(text: str) -> None:
    assert sent(route(words(text), place_of(working()))) == Say(**act(text))


def test_mail_is_accepted_before_the_runner_works() -> None:
    assert sent(route(words("also in Dutch"), place_of(Story()))) == Say(**act("also in Dutch"))
    assert sent(route(words("also in Dutch"), place_of(Story(), view=None))) == Say(**act("also in Dutch"))


def test_mail_without_end_is_refused() -> None:
    assert said(route(words("x" * 12_001), place_of(working()))).startswith("That is 12001 characters; at most 12000")
    assert isinstance(sent(route(words("x" * 12_000), place_of(working()))), Say)


def test_words_to_a_held_run_let_it_go_on_with_them() -> None:
    assert sent(route(words("use tabs"), place_of(held()))) == Resume(**act("use tabs"))


@pytest.mark.case("SS-5")
@pytest.mark.parametrize("state", ["done", "not_reached", "failed", "ended"])
def test_words_to_a_run_that_is_over_start_nothing_and_are_offered_a_way(state: RunStatus) -> None:
    text = said(route(words("and add a test"), place_of(ended(state))))

    assert "write `!continue` and the words." in text


def test_words_to_a_lost_run_are_offered_a_way() -> None:
    assert said(route(words("hello"), place_of(lost()))) == EN.replies.lost_mail


@pytest.mark.parametrize("status", ["done", "not_reached", "failed", "ended"])
def test_a_run_that_the_store_knows_to_be_over_is_over(status: RunStatus) -> None:
    standing = Standing(status=status, fence=1, owner="", since=0.0)

    assert isinstance(route(words("hello"), place_of(working(), standing=standing)), Reply)
    assert said(route(words("!stop"), place_of(working(), standing=standing))).startswith("The run is over already")


def test_a_run_that_the_store_knows_to_be_lost_is_lost() -> None:
    standing = Standing(status="lost", fence=1, owner="", since=0.0)

    assert said(route(words("!stop"), place_of(working(), standing=standing))) == EN.replies.lost_stop


# -- 1.6: commands ----------------------------------------------------------------------------------------------


@pytest.mark.case("SS-1")
@pytest.mark.parametrize("story", [working(), asking("A", "B"), Story()])
def test_stop_with_words_interrupts_and_a_bare_stop_holds(story: Story) -> None:
    assert sent(route(words("!stop use tabs"), place_of(story))) == Interrupt(**act("use tabs"))
    assert sent(route(words("!stop"), place_of(story))) == Hold(**act())
    assert sent(route(tap("hold:k3f9qa"), place_of(story))) == Hold(id="t-1", by=ALICE, at=LATE)


def test_stop_on_a_held_run_goes_on_with_words_and_says_who_holds_it_without() -> None:
    assert sent(route(words("!stop use tabs"), place_of(held()))) == Resume(**act("use tabs"))
    assert said(route(words("!stop"), place_of(held()))).startswith("The run is paused already, by bob.")
    assert said(route(tap("hold:k3f9qa"), place_of(held()))).startswith("The run is paused already, by bob.")


@pytest.mark.case("SS-4")
@pytest.mark.parametrize("text", ["!stop", "!stop use tabs", "!end", "!end enough"])
def test_there_is_nothing_to_stop_in_a_run_that_is_over(text: str) -> None:
    for _ in range(3):
        assert said(route(words(text), place_of(ended("ended")))) == (
            "The run is over already: Stopped by bob. `!continue` starts it again where it was."
        )
    assert said(route(words(text), place_of(lost()))) == EN.replies.lost_stop


@pytest.mark.parametrize("action", ["hold:k3f9qa", "end:k3f9qa"])
def test_a_tap_finds_nothing_to_stop_either(action: str) -> None:
    assert said(route(tap(action), place_of(ended()))).startswith("The run is over already: Done.")
    assert said(route(tap(action), place_of(lost()))) == EN.replies.lost_stop


def test_end_ends() -> None:
    assert sent(route(words("!end enough for today"), place_of(held()))) == End(**act(), reason="enough for today")
    assert sent(route(tap("end:k3f9qa"), place_of(held()))) == End(id="t-1", by=ALICE, at=LATE)


def test_kill_wants_a_yes() -> None:
    assert said(route(words("!kill"), place_of(working()))) == EN.replies.kill_sure
    assert said(route(words("!kill it"), place_of(working()))) == EN.replies.kill_sure
    assert route(words("!kill YES."), place_of(working())) == Kill(by=ALICE)
    assert route(words("!kill yes"), place_of(lost())) == Kill(by=ALICE)
    assert said(route(words("!kill yes"), place_of(ended()))).startswith("The run is over already: Done.")


def test_continue_lets_a_held_run_go_on() -> None:
    assert sent(route(words("!continue"), place_of(held()))) == Resume(**act())
    assert sent(route(words("!continue use tabs"), place_of(held()))) == Resume(**act("use tabs"))
    assert sent(route(tap("continue:k3f9qa"), place_of(held()))) == Resume(id="t-1", by=ALICE, at=LATE)


@pytest.mark.parametrize("story", [ended("done"), ended("failed"), ended("not_reached"), ended("ended"), lost()])
def test_continue_starts_a_run_again_that_is_over_or_lost(story: Story) -> None:
    assert route(words("!continue with tests"), place_of(story)) == Relaunch(
        words="with tests", by=ALICE, message=message("m-1")
    )
    assert route(tap("continue:k3f9qa"), place_of(story)) == Relaunch(words="", by=ALICE)


def test_continue_on_a_run_that_works_says_so() -> None:
    assert said(route(words("!continue"), place_of(working()))).startswith("The run is not paused: Working.")
    assert said(route(tap("continue:k3f9qa"), place_of(working()))).startswith("The run is not paused: Working.")


def test_status_says_where_the_run_stands() -> None:
    story = asking("A", "B")

    assert said(route(words("!status"), place_of(story))).split("\n") == [
        "Waiting for you: Write the first ten primes",
        "Step: Work 3/3",
        "Cost $0.00, time 40 s, run k3f9qa, start 1",
        "q1 waits since 0 s: Which one?",
    ]


def test_help_is_for_the_threads_state() -> None:
    assert "`!stop words`" in said(route(words("!help"), place_of(working())))
    assert "`!continue` go on" in said(route(words("!help"), place_of(held())))
    over = said(route(words("!help"), place_of(ended())))
    assert "`!continue words`" in over
    assert "`!stop" not in over


def test_answer_by_name() -> None:
    story = asking("Use A", "Use B")
    story.asks("Which size?", id="q3")

    assert sent(route(words("!answer q2 huge"), place_of(story))) == Answer(**act("huge"), fence=1, ask="q3")
    assert sent(route(words("!answer Q1: 2"), place_of(story))) == Answer(**act("Use B"), fence=1, ask="q1")
    assert sent(route(words("!answer 2 huge"), place_of(story))) == Answer(**act("huge"), fence=1, ask="q3")
    assert sent(route(words("!answer q1 something else"), place_of(story))) == Answer(
        **act("something else"), fence=1, ask="q1"
    )


def test_answer_without_a_name_needs_a_single_ask() -> None:
    story = asking()
    assert sent(route(words("!answer blue"), place_of(story))) == Answer(**act("blue"), fence=1, ask="q1")

    story.asks("Which size?", id="q3")
    assert said(route(words("!answer blue"), place_of(story))) == (
        "Several questions wait: q1, q2. Say which, for instance `!answer q1 …`."
    )
    assert said(route(words("!answer blue"), place_of(working()))) == "No question is waiting for an answer."


def test_answer_needs_an_answer() -> None:
    assert said(route(words("!answer q1"), place_of(asking()))) == "What is the answer? `!answer q1 your words`."
    assert said(route(words("!answer"), place_of(asking()))) == "What is the answer? `!answer q1 your words`."


def test_answer_to_a_question_that_does_not_wait_says_why() -> None:
    story = asking()
    story.settles("Which one?", "answered", "red", by=said_by(BOB))
    story.asks("Which size?", id="q3")

    assert said(route(words("!answer q1 blue"), place_of(story))) == "q1 was already answered by bob: red"
    assert said(route(words("!answer q7 blue"), place_of(story))) == "There is no question q7 waiting. Open now: q2."
    assert said(route(words("!skip q7"), place_of(working()))) == "No question is waiting for an answer."


def test_skip_by_name() -> None:
    story = asking()
    assert route(words("!skip"), place_of(story)) == Send(
        command=Decline(**act(), fence=1, ask="q1", reason=""),
        settled=Settled(ask="k3f9qa/1/q1", by=ALICE, how="declined", text="", at=LATE),
    )

    story.asks("Which size?", id="q3")
    assert sent(route(words("!skip q2 not mine"), place_of(story))) == Decline(
        **act(), fence=1, ask="q3", reason="not mine"
    )
    assert said(route(words("!skip"), place_of(story))) == (
        "Several questions wait: q1, q2. Say which, for instance `!skip q1`."
    )
    assert said(route(words("!skip"), place_of(working()))) == "No question is waiting for an answer."


@pytest.mark.parametrize("name", LATER)
def test_commands_that_are_not_built_yet_say_so_by_name(name: str) -> None:
    assert said(route(words(f"!{name} x"), place_of(working()))).startswith(f"`!{name}` is not built yet.")


@pytest.mark.parametrize("text", ["!stopp", "!stopp use tabs"])
def test_a_slip_is_asked_about_and_never_mail(text: str) -> None:
    assert "Did you mean `!stop`? Nothing was done." in said(route(words(text), place_of(working())))


# -- taps on asks -----------------------------------------------------------------------------------------------

CHOOSE_B = encode(Choose(run=RUN, fence=1, ask="q1", option=1))
IN_WORDS = encode(InWords(run=RUN, fence=1, ask="q1"))
SKIP = encode(Skip(run=RUN, fence=1, ask="q1"))


def test_a_tapped_option_answers_with_its_full_text() -> None:
    story = asking("A", "B " + "x" * 200)

    assert route(tap(CHOOSE_B), place_of(story)) == Send(
        command=Answer(id="t-1", by=ALICE, at=LATE, fence=1, ask="q1", text="B " + "x" * 200),
        settled=Settled(ask="k3f9qa/1/q1", by=ALICE, how="answered", text="B " + "x" * 200, at=LATE),
    )


@pytest.mark.case("AS-8")
def test_a_tap_counts_although_the_platforms_time_of_the_post_is_not_known_yet() -> None:
    assert isinstance(sent(route(tap(CHOOSE_B), place_of(asking("A", "B"), posted={}))), Answer)


def test_a_sent_form_answers_in_words_and_a_tapped_skip_declines() -> None:
    story = asking("A", "B")

    assert sent(route(tap(IN_WORDS, text=" both "), place_of(story))) == Answer(
        id="t-1", by=ALICE, at=LATE, fence=1, ask="q1", text="both"
    )
    assert sent(route(tap(SKIP), place_of(story))) == Decline(id="t-1", by=ALICE, at=LATE, fence=1, ask="q1")


@pytest.mark.case("AS-13")
@pytest.mark.parametrize("text", ["", "  ", "\n"])
def test_an_empty_form_is_no_answer(text: str) -> None:
    assert said(route(tap(IN_WORDS, text=text), place_of(asking()))) == EN.replies.form_empty
    assert (
        said(route(tap(encode(OnRun(verb="oracle", run=RUN)), text=text), place_of(working()))) == EN.replies.form_empty
    )


def test_the_oracles_form() -> None:
    action = encode(OnRun(verb="oracle", run=RUN))

    assert sent(route(tap(action, text=" how far? "), place_of(working()))) == Consult(
        id="t-1", by=ALICE, at=LATE, question="how far?"
    )
    assert said(route(tap(action, text="how far?"), place_of(ended()))) == EN.replies.oracle_over


LATE_WORDS = [
    ("answered", {"answer": "A", "by": said_by(BOB)}, "q1 was already answered by bob: A"),
    ("declined", {"by": said_by(BOB)}, "q1 was already skipped by bob."),
    ("timeout", {"answer": "decide yourself"}, "q1 timed out; the agent went on with its own judgment."),
    ("withdrawn", {}, "q1 was withdrawn because the run was cut. It may ask again."),
]


@pytest.mark.case("AS-4")
@pytest.mark.parametrize("action", [CHOOSE_B, IN_WORDS, SKIP])
@pytest.mark.parametrize("gone", [False, True])
@pytest.mark.parametrize(("state", "facts", "word"), LATE_WORDS)
def test_a_late_tap_reads_in_private_what_became_of_the_ask(
    action: str, gone: bool, state: str, facts: dict[str, Any], word: str
) -> None:
    story = asking("A", "B")
    story.settles("Which one?", state, **facts)
    view = settle_slot(story.view, "ask:1:q1") if gone else story.view
    decision = route(tap(action, text="both"), place_of(story, view=view))

    assert isinstance(decision, Whisper)
    assert decision.text.startswith(word)


@pytest.mark.case("AS-4")
def test_of_two_taps_the_second_reads_who_was_first() -> None:
    settled = Settled(ask="k3f9qa/1/q1", by=BOB, how="answered", text="A", at=LATE)
    place = place_of(asking("A", "B"), settlements={settled.ask: settled})

    assert route(tap(CHOOSE_B), place) == Whisper("q1 was already answered by bob: A")


@pytest.mark.case("AS-5")
def test_a_button_of_an_older_attempt_never_hits_the_open_ask_of_a_newer_one() -> None:
    story = asking("A", "B")
    story.works(attempt=2)
    story.asks("Delete everything?", "no", "yes", id="q1")

    decision = route(tap(CHOOSE_B), place_of(story))
    assert decision == Whisper("q1 was withdrawn because the run was cut. It may ask again.")

    forgotten = replace(story.view, asks=story.view.asks[1:])
    assert route(tap(CHOOSE_B), place_of(story, view=forgotten)) == Whisper(EN.replies.late_attempt)
    assert sent(route(tap(encode(Choose(run=RUN, fence=2, ask="q1", option=0))), place_of(story))) == Answer(
        id="t-1", by=ALICE, at=LATE, fence=2, ask="q1", text="no"
    )


@pytest.mark.case("AS-12")
def test_a_tap_after_the_end_says_that_the_run_is_over() -> None:
    standing = Standing(status="failed", fence=1, owner="", since=0.0)

    assert (
        said(route(tap(CHOOSE_B), place_of(asking("A", "B"), standing=standing)))
        == "The run is over; q1 no longer waits."
    )


@pytest.mark.parametrize(
    "action",
    [
        "",
        "garbage",
        "hold:otherrun",
        "answer:otherrun:1:q1:0",
        "answer:k3f9qa:1:q1:7",
        "answer:k3f9qa:1:q9:0",
        "skip:k3f9qa:5:q1",
    ],
)
def test_a_button_that_belongs_to_nothing_here_does_nothing(action: str) -> None:
    assert route(tap(action), place_of(asking("A", "B"))) == Whisper(EN.replies.stale_button)


# -- whatever comes ---------------------------------------------------------------------------------------------

anything = st.text(max_size=30) | st.sampled_from(EVERYTHING)
stories = st.sampled_from([Story(), working(), asking(), asking("A", "B"), held(), ended(), lost()])


@given(anything, stories, st.booleans(), st.booleans())
def test_a_stranger_never_sends_a_command(text: str, story: Story, ours: bool, others: bool) -> None:
    decision = route(words(text, by=CAROL, mentions_us=ours, mentions_other=others), place_of(story))

    assert isinstance(decision, Whisper | Ignore | Reply)
    if isinstance(decision, Reply):
        assert text.strip().casefold().startswith(("!status", "!help", "！status", "！help"))


@given(anything, stories)
def test_words_have_exactly_one_meaning_and_are_never_lost(text: str, story: Story) -> None:
    decision = route(words(text), place_of(story))

    if isinstance(decision, Ignore):
        assert not text.strip() or text.strip().startswith(("//", "／／"))
    if isinstance(decision, Send) and isinstance(decision.command, Say):
        assert decision.command.text == text.strip()


def test_a_late_word_without_an_ask_says_that_the_button_is_old() -> None:
    assert late_word(None, None, EN) == EN.replies.stale_button


def test_before_anything_was_told_the_run_is_queued() -> None:
    assert route(words("!status"), place_of(Story(), view=None)) == Reply(
        "Queued: k3f9qa\nCost $0.00, time 0 s, run k3f9qa, start 1\nNo question is waiting."
    )
