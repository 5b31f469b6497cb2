"""What goes out next, on a simulated platform: nothing lost, nothing twice, order kept, asks not behind edits."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge import texts
from bridge.cards import Slot, Urgency, slots
from bridge.model import Abilities, Card, PlaceRef, Platform, Posted, PostRef, RunId
from bridge.outbox import Edit, Job, Look, Outbox, Post, Wait, digest, jobs, settle
from tests.bridge.telling import ABILITIES, BOB, RUN, START, THREAD, Story, said_by, working

HERE = PlaceRef(Platform("anywhere"), "C1")


def slot(name: str, text: str = "", *, urgency: Urgency = Urgency.PROSE, final: bool = False, whole: str = "") -> Slot:
    return Slot(name=name, card=Card(summary=text or name), urgency=urgency, final=final, whole=whole)


def stands(wanted: Slot, *, shown: Slot | None = None) -> Posted:
    return Posted(
        name=wanted.name,
        once=wanted.name,
        post=PostRef(THREAD, wanted.name),
        digest=digest((shown or wanted).card),
        at=1.0,
    )


def known(*wanted: Slot) -> dict[str, Posted]:
    return {each.name: stands(each) for each in wanted}


def names(found: Sequence[Job]) -> list[tuple[str, str]]:
    return [(type(job).__name__, job.slot.name) for job in found]


CARD, SAY, ASK = slot("card", urgency=Urgency.ASK), slot("say:1:1", final=True), slot("ask:1:q1", urgency=Urgency.ASK)

# -- the difference ---------------------------------------------------------------------------------------------


def test_where_everything_stands_there_is_nothing_to_do() -> None:
    assert jobs(RUN, HERE, [CARD, SAY], known(CARD, SAY)) == ()
    assert jobs(RUN, HERE, [], {}) == ()


def test_posts_go_one_by_one_the_card_first() -> None:
    assert names(jobs(RUN, HERE, [CARD, SAY], {})) == [("Post", "card")]
    assert names(jobs(RUN, HERE, [CARD, SAY], known(CARD))) == [("Post", "say:1:1")]


def test_an_ask_waits_for_nothing_but_the_card_that_opens_its_thread() -> None:
    """Rulings R13: not even for the prose of its own run."""
    assert names(jobs(RUN, HERE, [CARD, SAY, ASK], {})) == [("Post", "card")]
    assert names(jobs(RUN, HERE, [CARD, SAY, ASK], known(CARD))) == [("Post", ASK.name)]
    assert names(jobs(RUN, HERE, [CARD, SAY, ASK], known(CARD, ASK))) == [("Post", "say:1:1")]


def test_while_a_post_is_under_way_none_follows_it() -> None:
    assert jobs(RUN, HERE, [CARD, SAY, ASK], known(CARD), in_flight={"say:1:1"}) == ()


def test_a_card_that_changed_is_edited_beside_the_next_post() -> None:
    changed = replace(CARD, card=Card(summary="new"))

    assert names(jobs(RUN, HERE, [changed, SAY], known(CARD))) == [("Post", "say:1:1"), ("Edit", "card")]


def test_an_edit_under_way_is_waited_for() -> None:
    changed = replace(CARD, card=Card(summary="new"))

    assert jobs(RUN, HERE, [changed], known(CARD), in_flight={"card"}) == ()


def test_a_settled_ask_is_edited_before_cards_and_activity() -> None:
    changed = [replace(each, card=Card(summary="new")) for each in (CARD, ASK)]

    assert [job.urgency for job in jobs(RUN, HERE, changed, known(CARD, ASK))] == [Urgency.EDIT, Urgency.PROSE]


@pytest.mark.case("ST-7")
def test_a_post_whose_outcome_is_not_known_is_looked_for_first() -> None:
    intended = {"card": Posted(name="card", once="k/card")}

    assert names(jobs(RUN, HERE, [CARD, SAY], intended)) == [("Look", "card")]
    (job,) = jobs(RUN, HERE, [CARD, SAY], intended, absent={"card"})
    assert (type(job), isinstance(job, Post) and job.again) == (Post, False)


def test_where_nobody_can_look_a_marked_repeat_is_better_than_a_loss() -> None:
    (job,) = jobs(RUN, HERE, [CARD], {"card": Posted(name="card", once="k/card")}, lookup=False)

    assert isinstance(job, Post)
    assert job.again


def test_what_is_no_longer_wanted_is_left_alone() -> None:
    assert jobs(RUN, HERE, [CARD], known(CARD, SAY)) == ()


# -- digests ----------------------------------------------------------------------------------------------------


def test_equal_cards_have_equal_digests_in_every_process() -> None:
    assert digest(Card(summary="x")) == digest(Card(summary="x")) != digest(Card(summary="y"))
    assert digest(Card(summary="\ud800")) != digest(Card(summary="\ud801"))
    assert digest(Card(summary="Done: primes", note="$0.21")) == "beed13e5139e8b3c131005b1"


# -- choosing ---------------------------------------------------------------------------------------------------


def job_of(run: str, wanted: Slot, urgency: Urgency | None = None, *, edit: bool = False) -> Job:
    urgency = wanted.urgency if urgency is None else urgency
    if edit:
        return Edit(run=RunId(run), place=HERE, slot=wanted, posted=stands(wanted), urgency=urgency)
    return Post(run=RunId(run), place=HERE, slot=wanted, urgency=urgency)


def test_nothing_to_do_is_none_and_too_early_is_a_wait() -> None:
    outbox = Outbox(ABILITIES)
    assert outbox.next([], 100.0) is None

    for _ in range(3):
        outbox.sent(job_of("a", SAY), 100.0)
    assert outbox.next([job_of("a", ASK)], 100.0) == Wait(until=101.0)


@pytest.mark.case("SS-1")
def test_the_most_urgent_goes_first() -> None:
    outbox = Outbox(ABILITIES)
    end = slot("end:9", urgency=Urgency.END)
    todo = [job_of("a", SAY), job_of("b", CARD, Urgency.EDIT, edit=True), job_of("c", end), job_of("d", ASK)]
    order = []
    now = 100.0
    while todo:
        step = outbox.next(todo, now)
        if isinstance(step, Wait):
            now = step.until
            continue
        assert step is not None
        outbox.sent(step, now)
        order.append(step.run)
        todo.remove(step)

    assert order == ["d", "c", "b", "a"]


def test_runs_that_share_a_place_take_turns() -> None:
    outbox = Outbox(ABILITIES)
    queues = {run: [slot(f"say:{n}:1") for n in range(20)] for run in ("loud", "soft", "low")}
    queues["soft"] = queues["soft"][:3]
    order: list[str] = []
    now = 100.0
    while any(queues.values()) and len(order) < 12:
        step = outbox.next([job_of(run, queue[0]) for run, queue in queues.items() if queue], now)
        if isinstance(step, Wait):
            now = step.until
            continue
        assert step is not None
        outbox.sent(step, now)
        order.append(step.run)
        queues[step.run].pop(0)

    assert [order.count(run) for run in ("soft", "loud", "low")] == [3, 5, 4]
    assert sorted(order[:3]) == ["loud", "low", "soft"]


def test_edits_take_turns_too() -> None:
    outbox = Outbox(ABILITIES)
    edits = [job_of(run, CARD, Urgency.EDIT, edit=True) for run in ("a", "b", "c")]
    order = []
    now = 100.0
    for _ in range(9):
        step = outbox.next(edits, now)
        while isinstance(step, Wait):
            now = step.until
            step = outbox.next(edits, now)
        assert step is not None
        outbox.sent(step, now)
        order.append(step.run)

    assert order == ["a", "b", "c"] * 3


def test_a_run_that_left_is_not_remembered() -> None:
    outbox = Outbox(ABILITIES)
    outbox.sent(job_of("a", SAY), 100.0)
    outbox.sent(job_of("a", CARD, Urgency.EDIT, edit=True), 100.0)
    outbox.forget(RunId("a"))

    assert (outbox._served, outbox._edited) == ({}, {})


# -- what stands for good ---------------------------------------------------------------------------------------


def test_parts_leave_together_when_all_of_them_stand() -> None:
    story = working()
    story.says("\n\n".join("word " * 200 for _ in range(20)))
    wanted = draw(story)
    parts = [each for each in wanted if each.name.startswith("say:")]
    assert len(parts) > 1

    half = known(*wanted)
    del half[parts[-1].name]
    view, gone = settle(story.view, wanted, half)
    assert view.says == story.view.says
    assert gone == {"line:4"}

    view, gone = settle(story.view, wanted, known(*wanted))
    assert not view.says
    assert gone == {"line:4", *(part.name for part in parts)}


def test_what_can_still_change_stays() -> None:
    story = working()
    story.asks("A or B?", "A", "B")
    story.calls("Agent", "look", id="t1")
    wanted = draw(story)
    view, gone = settle(story.view, wanted, known(*wanted))

    assert gone == {"line:4"}
    assert [each.name for each in draw_view(view)] == ["card", "ask:1:q1", "activity:6"]


def test_what_shows_an_older_card_stays_until_it_is_edited() -> None:
    story = working()
    story.asks("A or B?", "A", "B")
    before = draw(story)
    story.settles("A or B?", "answered", "A", by=said_by(BOB))
    view, gone = settle(story.view, draw(story), known(*before))

    assert "ask:1:q1" not in gone
    assert view.asks == story.view.asks


# -- a platform that fails --------------------------------------------------------------------------------------


def draw(story: Story) -> tuple[Slot, ...]:
    return draw_view(story.view)


def draw_view(view: object) -> tuple[Slot, ...]:
    return slots(view, texts=texts.of("en"), abilities=ABILITIES, now=START + 10, settlements={})  # type: ignore[arg-type]


@dataclass
class Shown:
    once: str
    cards: list[str]
    at: float


@dataclass
class Scene:
    """Keeps posts, and loses answers before or after the effect, as its dice say."""

    dice: random.Random
    losses: float
    threads: dict[RunId, list[Shown]] = field(default_factory=dict)
    calls: int = 0
    edits: int = 0

    def post(self, run: RunId, wanted: Slot, now: float) -> bool:
        """Returns whether an answer came."""
        self.calls += 1
        lost = self.dice.random() < self.losses
        if lost and self.dice.random() < 0.5:
            return False
        self.threads.setdefault(run, []).append(Shown(wanted.name, [wanted.card.summary], now))
        return not lost

    def edit(self, run: RunId, wanted: Slot) -> bool:
        self.calls += 1
        self.edits += 1
        lost = self.dice.random() < self.losses
        if lost and self.dice.random() < 0.5:
            return False
        (shown,) = (each for each in self.threads[run] if each.once == wanted.name)
        shown.cards.append(wanted.card.summary)
        return not lost

    def find(self, run: RunId, name: str) -> bool:
        self.calls += 1
        return any(each.once == name for each in self.threads.get(run, []))


@dataclass
class World:
    """Runs whose wanted slots grow with time, and an outbox that forgets everything now and then."""

    scene: Scene
    wanted: dict[RunId, list[tuple[float, Slot]]]
    posted: dict[RunId, dict[str, Posted]] = field(default_factory=dict)
    absent: set[tuple[RunId, str]] = field(default_factory=set)
    outbox: Outbox = field(default_factory=lambda: Outbox(ABILITIES))
    now: float = 0.0

    def due(self, run: RunId) -> list[Slot]:
        """The newest card of each slot, in the order in which the slots came."""
        found: dict[str, Slot] = {}
        for at, each in self.wanted[run]:
            if at <= self.now:
                found[each.name] = each
        return list(found.values())

    def todo(self) -> list[Job]:
        return [
            job
            for run in self.wanted
            for job in jobs(
                run,
                HERE,
                self.due(run),
                self.posted.setdefault(run, {}),
                absent={name for owner, name in self.absent if owner == run},
            )
        ]

    def settle_down(self, *, crash: float = 0.0) -> None:
        for _ in range(20_000):
            step = self.outbox.next(self.todo(), self.now)
            if step is None or isinstance(step, Wait):
                later = [at for items in self.wanted.values() for at, _ in items if at > self.now]
                if step is not None:
                    later.append(step.until)
                if not later:
                    return
                self.now = min(later)
                continue
            if self.scene.dice.random() < crash:
                self.outbox, self.absent = Outbox(ABILITIES), set()
            self.do(step)
        pytest.fail("it never comes to rest")

    def do(self, step: Job) -> None:
        run, name = step.run, step.slot.name
        posted = self.posted[run]
        self.outbox.sent(step, self.now)
        match step:
            case Post():
                posted[name] = Posted(name=name, once=name)  # intended, before the call
                self.absent.discard((run, name))
                if self.scene.post(run, step.slot, self.now):
                    posted[name] = stands(step.slot)
            case Look():
                if self.scene.find(run, name):
                    posted[name] = replace(stands(step.slot), digest="")
                else:
                    self.absent.add((run, name))
            case Edit():
                if self.scene.edit(run, step.slot):
                    posted[name] = stands(step.slot)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    dice = random.Random(draw(st.integers(0, 10**6)))  # noqa: S311 - a simulation
    wanted: dict[RunId, list[tuple[float, Slot]]] = {}
    for number in range(draw(st.integers(1, 4))):
        items: list[tuple[float, Slot]] = [(0.0, CARD)]
        for seq in range(draw(st.integers(0, 12))):
            at = items[-1][0] + dice.choice([0.0, 0.1, 1.0, 5.0])
            kind = dice.choice(["say", "ask", "card", "activity"])
            name = {"card": "card", "activity": "activity:1"}.get(kind, f"{kind}:{seq}")
            urgency = Urgency.ASK if kind in ("ask", "card") else Urgency.PROSE
            items.append((at, slot(name, f"{name} at {seq}", urgency=urgency)))
        wanted[RunId(f"run{number}")] = items
    return World(scene=Scene(dice=dice, losses=draw(st.sampled_from([0.0, 0.2, 0.6]))), wanted=wanted)


@settings(max_examples=150, deadline=None)
@given(worlds(), st.sampled_from([0.0, 0.3]))
def test_whatever_is_lost_on_the_way_each_slot_stands_once_in_order_with_its_newest_card(
    world: World, crash: float
) -> None:
    world.settle_down(crash=crash)

    for run in world.wanted:
        thread = world.scene.threads[run]
        wanted = world.due(run)
        assert sorted(each.once for each in thread) == sorted(each.name for each in wanted)
        assert {each.once: each.cards[-1] for each in thread} == {each.name: each.card.summary for each in wanted}
        for urgent in (True, False):  # asks may pass prose (R13); among themselves both keep the thread's order
            mine = [each.name for each in wanted if (each.urgency is Urgency.ASK) is urgent]
            assert [each.once for each in thread if each.once in mine] == mine


@pytest.mark.case("PR-3")
@settings(max_examples=60, deadline=None)
@given(worlds())
def test_a_card_never_goes_back_to_an_older_one(world: World) -> None:
    world.settle_down()

    for run, items in world.wanted.items():
        for shown in world.scene.threads[run]:
            drawn = [each.card.summary for _, each in items if each.name == shown.once]
            places = [drawn.index(card) for card in shown.cards]
            assert places == sorted(places)


@pytest.mark.case("PR-6")
def test_edits_that_were_overtaken_are_never_sent() -> None:
    updates = [(0.01 * number, slot("card", f"card {number}", urgency=Urgency.ASK)) for number in range(2_000)]
    world = World(scene=Scene(dice=random.Random(1), losses=0.0), wanted={RUN: updates})  # noqa: S311
    world.settle_down()

    (shown,) = world.scene.threads[RUN]
    assert shown.cards[-1] == "card 1999"
    assert world.scene.edits <= 5 + 20 / 1.2 + 1


def test_with_fifty_busy_runs_in_one_place_an_ask_shows_in_less_than_two_seconds() -> None:
    dice = random.Random(7)  # noqa: S311 - a simulation
    wanted: dict[RunId, list[tuple[float, Slot]]] = {}
    asked: dict[RunId, float] = {}
    for number in range(50):
        run = RunId(f"run{number}")
        items = [(0.0, CARD)]
        items += [(dice.uniform(60, 160), slot(f"say:{seq}", f"prose {seq}")) for seq in range(4)]
        items += [(dice.uniform(60, 160), slot("card", f"card {seq}", urgency=Urgency.ASK)) for seq in range(6)]
        wanted[run] = sorted(items, key=lambda item: item[0])
    # Asks come while scores of posts of other runs wait; these runs themselves have nothing else to say.
    for number in range(10):
        run = RunId(f"asker{number}")
        asked[run] = 110.0 + 8.5 * number
        wanted[run] = [(0.0, CARD), (asked[run], ASK)]
    world = World(scene=Scene(dice=dice, losses=0.0), wanted=wanted)
    world.settle_down()

    waited = [shown.at - asked[run] for run in asked for shown in world.scene.threads[run] if shown.once == ASK.name]
    assert len(waited) == 10
    assert max(waited) < 2.0


@pytest.mark.case("AS-3")
def test_asks_at_the_same_moment_show_one_a_second() -> None:
    wanted = {RunId(f"run{number}"): [(0.0, CARD), (100.0, ASK)] for number in range(10)}
    world = World(scene=Scene(dice=random.Random(1), losses=0.0), wanted=wanted)  # noqa: S311
    world.settle_down()

    shown = sorted(each.at for run in wanted for each in world.scene.threads[run] if each.once == ASK.name)
    assert max(shown) <= 100.0 + 10.0


def test_a_platform_may_have_no_limits() -> None:
    free: Abilities = replace(ABILITIES, post_every=0.0, edit_every=0.0)
    outbox = Outbox(free)
    for _ in range(100):
        outbox.sent(job_of("a", SAY), 100.0)

    assert isinstance(outbox.next([job_of("a", SAY)], 100.0), Post)
