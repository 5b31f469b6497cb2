"""What stands in a thread: slots, their order, their words, their buttons, whom they ring."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge import texts
from bridge.cards import Slot, Urgency, reply, signs, slots
from bridge.hostile import HIDDEN
from bridge.model import Abilities, Card, Person, PersonId, Settled
from bridge.rich import Break, Code, Fence, Link, Mention, Quote, Text, When, line
from bridge.split import plain, size
from bridge.view import View
from tests.bridge.telling import ABILITIES, ALICE, BOB, START, Story, message, said_by, working

EN, ZH = texts.of("en"), texts.of("zh")


def draw(
    story: Story | View,
    *,
    now: float | None = None,
    catalogue: texts.Texts = EN,
    abilities: Abilities = ABILITIES,
    settlements: dict[str, Settled] | None = None,
    secrets: Collection[str] = (),
) -> tuple[Slot, ...]:
    view = story.view if isinstance(story, Story) else story
    return slots(
        view,
        texts=catalogue,
        abilities=abilities,
        now=view.heard if now is None else now,
        settlements=settlements,
        secrets=secrets,
    )


def card_of(story: Story, **how: Any) -> Card:
    return draw(story, **how)[0].card


def last(story: Story, **how: Any) -> Slot:
    return draw(story, **how)[-1]


def labels(card: Card) -> list[str]:
    return [button.label for button in card.buttons]


def everything(slot: Slot) -> str:
    """All that a person could read in a slot."""
    card = slot.card
    buttons = [text for button in card.buttons for text in (button.label, button.form, button.confirm)]
    return "\n".join([card.summary, plain(card.body), card.note, *buttons])


# -- hostile text -----------------------------------------------------------------------------------------------

TOKEN = "xoxb-1234567890-abcdefABCDEF"


def hostile(text: str) -> Story:
    """A story in which every text from outside is this one."""
    mallory = {"id": "T1/UM", "name": text}
    story = Story(request=text)
    story.run("starting", attempt=1, by=mallory, words=False)
    story.fence = 1
    story.run("working", attempt=1, resumed=False)
    story.step(text, 1)
    story.says(text)
    story.calls("Bash", text, id="t1")
    story.asks(text, text, text + "2")
    story.settles(text, "answered", text, by=mallory)
    story.asks(text, text, id="q3")
    story.tell("retry", text, step=text, attempt=1)
    story.tell("task", kind="verdict", step=text, round=1, rounds=3, state="not_yet", reason=text, failed=[text])
    story.tell("task", text, unverifiable=[text], total=1, path=text)
    story.run("interrupting", by=mallory, words=text, now=False, hold=False)
    story.tell("oracle", text, command="c1", state="asked", question=text, by=mallory)
    story.tell("oracle", text, command="c1", state="answered", question=text, by=mallory, cost_usd=0.01)
    story.tell("oracle", text, command="c2", state="failed", question=text, by=mallory)
    story.tell("receipt", text, command="c3", do="say", state="refused", by=mallory, message=None)
    story.tell("step_end", step=text, ok=False, error=text, cost_usd=0.0, num_turns=1, duration_s=1.0)
    story.run("held", text, by=mallory)
    story.run("working", attempt=1, resumed=True, by=mallory, words=text)
    story.run("lost", text, silent_s=20.0, attempt=1)
    verdict = {"state": "not_yet", "reason": text, "failed": [text]}
    story.ends("failed", text, verdict=verdict, unverifiable=[text], files=[text])
    return story


@pytest.mark.case("SE-4")
def test_secrets_are_hidden_wherever_they_could_be_shown() -> None:
    for secret, known in ((TOKEN, ()), ("hunter2hunter2", ("hunter2hunter2",))):
        for slot in draw(hostile(f"look: {secret} ok"), secrets=known):
            assert secret not in everything(slot), slot.name
            assert secret not in repr(slot.card), slot.name
    assert HIDDEN in everything(draw(hostile(TOKEN))[2])


def test_controls_and_direction_tricks_reach_no_card() -> None:
    for slot in draw(hostile("a\x1b[31m\u202eb\x00")):
        assert not set(everything(slot)) & set("\x1b\u202e\x00"), slot.name


def test_templates_are_not_read_out_of_what_people_say() -> None:
    text = "{who} {0} {title.mro} %s"
    drawn = draw(hostile(text))

    assert {slot.name for slot in drawn if text not in everything(slot)} == set()


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=60))
def test_any_text_gives_cards(text: str) -> None:
    for catalogue in (EN, ZH):
        for slot in draw(hostile(text), catalogue=catalogue):
            assert slot.card.summary
            assert "\n" not in slot.card.summary
            assert len(slot.card.summary) <= 150


@settings(max_examples=20, deadline=None)
@given(st.text(alphabet="ab \n`#*|-<&", min_size=0, max_size=12_000), st.integers(3_000, 6_000))
def test_no_post_is_over_the_platforms_limit(text: str, limit: int) -> None:
    abilities = replace(ABILITIES, post_limit=limit, edit_limit=limit)
    for slot in draw(hostile(text), abilities=abilities):
        assert size(slot.card.body) <= limit, slot.name


def test_text_from_a_model_rings_nobody() -> None:
    for slot in draw(hostile("@channel <!here> <@UALICE> @alice")):
        assert set(slot.card.rings) <= {PersonId("T1/UALICE")}
    assert [slot.name for slot in draw(hostile("x")) if slot.card.rings] == ["end:22"]


# -- the card ---------------------------------------------------------------------------------------------------


def test_the_card_of_a_new_run() -> None:
    card = card_of(Story(request="Write the first ten primes", budget=5.0))

    assert card.summary == "Queued: Write the first ten primes"
    assert plain(card.body) == "Write the first ten primes\nQueued"
    assert card.note == "under a minute · $0.00 of $5.00 · started by alice · in site · run k3f9qa"
    assert labels(card) == ["Stop"]
    assert card.rings == ()


def test_the_card_of_a_run_that_works() -> None:
    story = working()
    story.tell("task", kind="verdict", step="Work", round=1, rounds=3, state="not_yet", reason="no test", failed=[])
    story.says("again", label="Work#round2", context=34_000)
    story.calls("Agent", id="a1")
    story.tell("result", "success", session_id="s1", cost_usd=0.21)
    story.calls("Agent", id="a2")
    card = card_of(story, now=START + 120)

    assert plain(card.body) == "Write the first ten primes\nWorking · Work 3/3, round 2 of 3"
    assert card.note == "1 min · $0.21 · context 34K · 1 subagent busy · started by alice · in site · run k3f9qa"
    assert [(button.label, button.style, bool(button.form)) for button in card.buttons] == [
        ("Stop", "danger", False),
        ("Ask the oracle", "plain", True),
    ]


def test_stop_says_its_price_only_where_there_is_one() -> None:
    story = working()
    before = card_of(story).buttons[0].confirm
    story.calls("Agent", id="a1")

    assert before == ""
    assert card_of(story).buttons[0].confirm.startswith("Stop now? Subagents that are at work lose")


STATES = [
    ("held", "Paused by bob", ["Continue", "Ask the oracle", "End"]),
    ("lost", "Lost", ["Continue"]),
    ("done", "Done", []),
    ("not_reached", "Goal not reached", ["Continue"]),
    ("failed", "Failed", ["Continue"]),
    ("ended", "Stopped by bob", ["Continue"]),
    ("stopping", "Shutting down for a restart", []),
]


@pytest.mark.parametrize(("state", "word", "buttons"), STATES)
def test_each_state_has_its_word_and_its_buttons(state: str, word: str, buttons: list[str]) -> None:
    story = working()
    story.run(state, by=said_by(BOB))
    card = card_of(story)

    assert card.summary == f"{word}: Write the first ten primes"
    assert labels(card) == buttons


def test_a_stop_that_was_received_and_is_not_done_is_shown_as_such() -> None:
    story = working()
    story.run("interrupting", by=said_by(BOB), words="", now=True, hold=True)

    assert card_of(story).summary.startswith("Stopping, as bob asked:")
    assert labels(card_of(story)) == ["Ask the oracle"]


def test_checking_and_reconnecting_are_said() -> None:
    story = working()
    story.says("I look.", label="Work·verdict#1", judging=True)
    checking = card_of(story).summary
    story.tell("error", "connection lost", synthetic=True)

    assert checking.startswith("Checking the result:")
    assert card_of(story).summary.startswith("Reconnecting to the model:")


@pytest.mark.case("PR-4")
def test_waiting_points_at_the_open_asks() -> None:
    story = working()
    story.asks("A or B?", "A", "B")
    one = card_of(story)
    story.asks("Which size?", id="q3")
    two = card_of(story)

    assert one.summary.startswith("Waiting for you:")
    assert "A question waits for an answer: q1." in plain(one.body)
    assert "2 questions wait for an answer: q1, q2." in plain(two.body)


def test_an_ask_settled_from_chat_is_waited_for_no_longer() -> None:
    story = working()
    story.asks("A or B?", "A", "B")
    settled = Settled(ask="k3f9qa/1/q1", by=BOB, how="answered", text="A", at=START)

    assert card_of(story, settlements={settled.ask: settled}).summary.startswith("Working:")


@pytest.mark.case("PR-1")
@pytest.mark.case("PR-4")
def test_ten_quiet_minutes_say_what_has_been_running_since_when() -> None:
    story = working()
    called = story.calls("Bash", "make all", id="t1")
    quiet = card_of(story, now=START + 720)

    assert line("Quiet for 11 min; Bash has been running since ", When(called.at), ".") in quiet.body


def test_a_subagent_at_work_is_said_and_silence_with_nothing_running_too() -> None:
    busy, idle = working(), working()
    sent_off = busy.calls("Agent", id="a1")

    assert (
        line("Quiet for 11 min; a subagent has been working since ", When(sent_off.at), ".")
        in card_of(busy, now=START + 720).body
    )
    assert line("Quiet for 11 min, and nothing is known to be running.") in card_of(idle, now=START + 720).body


def test_a_moment_of_silence_is_not_worth_a_word() -> None:
    story = working()
    story.calls("Bash", "ls", id="t1")

    assert "Quiet" not in plain(card_of(story, now=START + 120).body)


@pytest.mark.case("PR-6")
def test_quiet_time_changes_a_card_once_a_minute_at_most() -> None:
    story = working()
    story.calls("Bash", "make all", id="t1")
    seen = [card_of(story, now=START + second) for second in range(60, 3_660)]
    changes = sum(one != two for one, two in pairwise(seen))

    assert 55 <= changes <= 60


def test_the_same_view_and_moment_give_the_same_slots() -> None:
    story = hostile("x")

    assert draw(story, now=START + 500) == draw(story, now=START + 519)


def test_after_the_end_time_stands_still() -> None:
    story = working()
    story.ends("done")

    assert card_of(story, now=START + 500) == card_of(story, now=START + 90_000)
    assert card_of(story).note.startswith("4 min 12 s · $0.42 ·")


def test_the_plan_is_a_check_list() -> None:
    story = working()
    todos = [
        {"content": "write", "status": "completed"},
        {"content": "test", "status": "in_progress"},
        *({"content": f"more {number}", "status": "pending"} for number in range(12)),
    ]
    story.calls("TodoWrite", id="t1", input={"todos": todos})
    said = plain(card_of(story).body)

    assert "Plan\n\n• [x] write\n• [ ] test\n• [ ] more 0" in said
    assert said.endswith("… and 2 more")


def test_a_platform_without_forms_has_no_button_for_the_oracle() -> None:
    assert labels(card_of(working(), abilities=replace(ABILITIES, forms=False))) == ["Stop"]
    assert labels(card_of(working(), abilities=replace(ABILITIES, buttons=0))) == []


# -- prose and activity -----------------------------------------------------------------------------------------


def test_prose_is_posted_as_it_was_written() -> None:
    story = working()
    said = story.says("I wrote `primes.py`, see [docs](https://a.io).")
    slot = last(story)

    assert (slot.name, slot.urgency, slot.final, slot.group) == (
        f"say:{said.seq}:1",
        Urgency.PROSE,
        True,
        f"say:{said.seq}",
    )
    assert slot.card.body == (line("I wrote ", Code("primes.py"), ", see ", Link("docs", "https://a.io"), "."),)
    assert slot.card.note == ""


@pytest.mark.case("RE-1")
def test_long_prose_comes_in_parts_that_say_so_and_hold_it_all() -> None:
    story = working()
    story.says("\n\n".join(f"Paragraph {number}. " + "word " * 100 for number in range(20)))
    parts = [slot for slot in draw(story) if slot.name.startswith("say")]

    assert [slot.name for slot in parts] == ["say:5:1", "say:5:2"]
    assert [slot.card.note for slot in parts] == ["(part 1 of 2)", "(part 2 of 2)"]
    assert {slot.group for slot in parts} == {"say:5"}
    said = "".join(plain(slot.card.body) for slot in parts)
    assert all(f"Paragraph {number}." in said for number in range(20))


def test_activity_is_one_line_that_changes_until_something_is_posted_below() -> None:
    story = working()
    story.calls("Agent", id="a1")
    for number in range(31):
        story.calls("Bash", "pytest -q", id=f"t{number}", subagent=True)
    busy = last(story)
    story.says("so")
    done = next(slot for slot in draw(story) if slot.name == "activity:5")

    assert (plain(busy.card.body), busy.final) == ("31 calls · 1 subagent · now: Bash pytest -q", False)
    assert (plain(done.card.body), done.final) == ("31 calls · 1 subagent", True)


def test_slots_stand_in_the_order_in_which_things_happened() -> None:
    story = working()
    story.says("a")
    story.calls("Agent", "look", id="t1")
    story.asks("A or B?", "A", "B")
    story.calls("Agent", "look", id="t2")
    story.says("b")
    story.ends("done")

    assert [slot.name for slot in draw(story)] == [
        "card",
        "line:4",
        "say:5:1",
        "activity:6",
        "ask:1:q1",
        "activity:8",
        "say:9:1",
        "end:10",
    ]


def test_one_or_two_looks_are_no_message_of_their_own() -> None:
    story = working()
    story.calls("Glob", "*.py", id="t1")
    story.calls("Read", "a.py", id="t2")
    assert [slot.name for slot in draw(story)] == ["card", "line:4"]

    story.calls("Read", "b.py", id="t3")
    assert [slot.name for slot in draw(story)] == ["card", "line:4", "activity:5"]


# -- lines ------------------------------------------------------------------------------------------------------


def line_of(kind: str, text: str = "", /, *, tool: str = "", **facts: Any) -> Slot:
    story = working()
    story.tell(kind, text, tool=tool, **facts)
    return last(story)


LINES: list[tuple[str, str, dict[str, Any], str, Urgency]] = [
    ("step", "Goal", {"index": 2, "total": 3, "resumed": False, "woke": 0}, "Step 2/3: Goal", Urgency.PROSE),
    (
        "step",
        "Work",
        {"index": 3, "total": 3, "resumed": True, "woke": 1},
        "Step 3/3: Work, taken up where it was",
        Urgency.PROSE,
    ),
    (
        "retry",
        "Attempt 1 failed (network), trying again",
        {},
        "Attempt 1 failed (network), trying again",
        Urgency.PROSE,
    ),
    (
        "reset",
        "x",
        {"pre_tokens": 150_000, "post_tokens": 22_000},
        "The agent's context was summarised: 150K to 22K.",
        Urgency.PROSE,
    ),
    ("reset", "x", {}, "The agent's context was cleared.", Urgency.PROSE),
    (
        "handoff",
        "x",
        {"phase": "done"},
        "The context is full; a fresh session takes over from a handoff note.",
        Urgency.PROSE,
    ),
    (
        "task",
        "",
        {
            "kind": "verdict",
            "state": "not_yet",
            "round": 1,
            "rounds": 3,
            "reason": "No test.",
            "failed": ["a test", "docs"],
        },
        "Verdict: not yet (round 1 of 3)\n\nNo test.\n\nMissing:\n\n• a test\n• docs",
        Urgency.PROSE,
    ),
    ("task", "", {"kind": "verdict", "state": "achieved", "reason": ""}, "Verdict: goal achieved", Urgency.PROSE),
    (
        "task",
        "",
        {"kind": "verdict", "state": "unreachable", "reason": "no"},
        "Verdict: the goal cannot be reached\n\nno",
        Urgency.PROSE,
    ),
    (
        "task",
        "x",
        {"unverifiable": ["taste"]},
        "These points of the goal cannot be checked by looking at the result:\n\n• taste",
        Urgency.PROSE,
    ),
    (
        "run",
        "",
        {"state": "interrupting", "by": said_by(BOB), "words": "use tabs", "now": False, "hold": False},
        "bob steps in. The run takes it up at its next message, at the latest in 10 seconds:\n\nuse tabs",
        Urgency.ASK,
    ),
    (
        "run",
        "",
        {"state": "interrupting", "by": said_by(BOB), "words": "use tabs", "now": True, "hold": False},
        "bob steps in, at once:\n\nuse tabs",
        Urgency.ASK,
    ),
    (
        "run",
        "",
        {"state": "interrupting", "by": said_by(BOB), "words": "", "now": True, "hold": True},
        "Stop received from bob. Cutting now; the run then waits.",
        Urgency.ASK,
    ),
    (
        "run",
        "",
        {"state": "held", "by": said_by(BOB)},
        "Paused by bob. It stays paused until somebody acts.\n\nReply to go on with your words, or !continue, or !end.",
        Urgency.ASK,
    ),
    (
        "run",
        "the disk is full",
        {"state": "held", "by": {"id": "", "name": "disk"}},
        "Paused by the run itself. It stays paused until somebody acts.\n\nBecause: the disk is full\n\n"
        "Reply to go on with your words, or !continue, or !end.",
        Urgency.ASK,
    ),
    (
        "run",
        "",
        {"state": "lost", "silent_s": 20.0, "attempt": 1},
        "The run has not been heard of for 20 s. Its process is gone or cannot reach us.\n\n"
        "!continue starts it again where it was.",
        Urgency.END,
    ),
    (
        "step_end",
        "",
        {"step": "Work", "ok": False, "error": "API error 529"},
        "Step Work failed: API error 529",
        Urgency.END,
    ),
    (
        "receipt",
        "the run is not held.",
        {"command": "c1", "do": "resume", "state": "refused", "by": said_by(BOB), "message": None},
        "Not done, bob: the run is not held.",
        Urgency.ASK,
    ),
]


@pytest.mark.case("SS-2")
@pytest.mark.parametrize(("kind", "text", "facts", "shown", "urgency"), LINES)
def test_what_happens_is_told_in_words_for_people(
    kind: str, text: str, facts: dict[str, Any], shown: str, urgency: Urgency
) -> None:
    slot = line_of(kind, text, **facts)

    assert plain(slot.card.body) == shown
    assert (slot.urgency, slot.final, slot.card.rings, slot.name) == (urgency, True, (), "line:5")


def test_a_run_that_was_held_and_goes_on_says_with_which_words() -> None:
    story = working()
    story.run("held", by=said_by(BOB))
    story.run("working", attempt=1, resumed=True, by=said_by(ALICE), words="use tabs")

    assert last(story).card.body == (
        line(Mention("T1/UALICE", "alice"), " let the run go on, with these words:"),
        Quote((line("use tabs"),)),
    )


def test_a_second_start_says_who_started_it() -> None:
    story = working()
    story.run("lost", silent_s=20.0, attempt=1)
    story.works(attempt=3)

    assert plain(last(story).card.body) == "Started again by alice: the run goes on where it was (start 2)."


def test_a_step_that_succeeds_needs_no_line() -> None:
    story = working()
    before = len(draw(story))
    story.tell("step_end", step="Work", ok=True, error=None, cost_usd=0.1, num_turns=1, duration_s=1.0)

    assert len(draw(story)) == before


# -- the oracle -------------------------------------------------------------------------------------------------


def test_the_oracles_answer_says_to_whom_to_what_and_what_it_cost() -> None:
    story = working()
    story.tell(
        "oracle", "**Half** way.", command="c1", state="answered", question="how far?", by=said_by(BOB), cost_usd=0.004
    )
    slot = last(story)

    assert slot.name == "oracle:5"
    assert slot.card.body == (
        line("The oracle, to ", Mention("T1/UBOB", "bob")),
        Quote((line("how far?"),)),
        line(Text("Half", strong=True), " way."),
    )
    assert (slot.card.note, slot.card.rings) == ("looked beside the run, cost ~$0.01", ())


def test_a_long_answer_of_the_oracle_comes_in_parts() -> None:
    story = working()
    story.tell(
        "oracle", "word " * 2_000, command="c1", state="answered", question="how far?", by=said_by(BOB), cost_usd=0.02
    )

    assert [slot.name for slot in draw(story)[2:]] == ["oracle:5", "oracle:5:2"]
    assert {slot.group for slot in draw(story)[2:]} == {"oracle:5"}


def test_an_oracle_that_failed_says_why() -> None:
    story = working()
    story.tell("oracle", "Aside failed: no credit", command="c1", state="failed", question="how far?", by=said_by(BOB))

    assert plain(last(story).card.body) == "The oracle could not answer: Aside failed: no credit\n\nhow far?"


# -- the end ----------------------------------------------------------------------------------------------------


@pytest.mark.case("PR-2")
def test_the_end_is_a_new_message_that_rings_the_starter_and_says_everything() -> None:
    story = working()
    verdict = {"state": "achieved", "reason": "All there.", "failed": []}
    story.ends("done", cost_usd=0.21, aside_usd=0.02, verdict=verdict, unverifiable=["taste"], files=["primes.py"])
    slot = last(story)

    assert (slot.name, slot.urgency, slot.final, slot.card.rings) == ("end:5", Urgency.END, True, (ALICE.id,))
    assert slot.card.summary == "Done: Write the first ten primes"
    assert plain(slot.card.body).split("\n\n") == [
        "Done: Write the first ten primes",
        "Verdict: goal achieved",
        "All there.",
        "Not verified:",
        "• taste",
        "Files made or changed:",
        "• primes.py",
        "Cost $0.21 · time 4 min 12 s · oracle $0.02 besides",
        "To go on from here: !continue and what you want next.",
    ]


@pytest.mark.case("SS-10")
@pytest.mark.parametrize(
    ("state", "head"),
    [
        ("not_reached", "Goal not reached: Write the first ten primes"),
        ("failed", "Failed: Write the first ten primes"),
        ("ended", "Stopped by bob: Write the first ten primes"),
    ],
)
def test_each_end_is_worded_for_itself_and_with_its_reason(state: str, head: str) -> None:
    story = working()
    story.ends(state, "enough", by=said_by(BOB))

    assert plain(last(story).card.body).split("\n\n")[:2] == [head, "Reason: enough"]


def test_many_files_are_counted() -> None:
    story = working()
    story.ends("done", files=[f"f{number}.py" for number in range(33)])

    assert "… and 13 more" in plain(last(story).card.body)


def test_a_run_of_nobody_rings_nobody() -> None:
    story = working()
    story.ends("done")
    view = replace(story.view, starter=Person(id=PersonId("")))

    assert all(slot.card.rings == () for slot in draw(view))


# -- the rest ---------------------------------------------------------------------------------------------------


def test_receipts_are_signs_on_peoples_messages() -> None:
    story = working()
    where = {"platform": "anywhere", "thread": message("m-1").thread.key, "key": "m-1"}
    story.tell("receipt", command="c1", do="say", state="taken", by=said_by(ALICE), message=where)

    assert signs(story.view) == ((message("m-1"), "received"),)


def test_a_reply_reads_code_and_nothing_else() -> None:
    card = reply("Use `!stop` now, *please*.\n`odd\n<b>")

    assert card.body == (line("Use ", Code("!stop"), " now, *please*.", Break(), "`odd", Break(), "<b>"),)
    assert card.summary == "Use !stop now, *please*. odd <b>"


def test_code_of_a_model_stays_code() -> None:
    story = working()
    story.says("```py\nx = 1\n```")

    assert last(story).card.body == (Fence("x = 1", "py"),)


def test_chinese_threads_speak_chinese() -> None:
    story = working()
    story.ends("done", cost_usd=0.21)
    drawn = draw(story, catalogue=ZH)

    assert drawn[0].card.summary == "完成:Write the first ten primes"
    assert "花费 $0.21 · 用时 4 分 12 秒" in plain(drawn[-1].card.body)
