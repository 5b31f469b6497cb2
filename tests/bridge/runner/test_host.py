"""One attempt of a run, from lease to closed books, on a store in memory and with a model that plays scripts."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from typing import Any

import pytest

from bridge.errors import StoreAwayError
from bridge.model import News
from bridge.runner import host as hosting
from bridge.runner.host import EXIT_AWAY, EXIT_DONE, EXIT_FAILED, EXIT_FENCED
from tests.bridge.runner.people import BEN, answer, consult, end, hold, interrupt, resume
from tests.bridge.runner.people import say as words
from tests.bridge.runner.rig import FLOWS, Rig, on_disk
from tests.contracts.values import RUN
from tests.fakes.client import Item, Own, Until, init, say

GOOD: list[Item] = [init(), say("I am done."), Own(total=0.25)]


async def ended(rig: Rig) -> News:
    """Return the last news."""
    return (await rig.news())[-1]


def waits() -> tuple[Until, list[Item]]:
    """A step that goes on when it is let to."""
    until = Until()
    return until, [init(), say("I begin."), until, say("I am done."), Own(total=0.25)]


# -- the plain way ----------------------------------------------------------------------------------------------------


async def test_a_run_is_told_from_its_beginning_to_its_end(rig: Rig) -> None:
    rig.scripts = [GOOD]
    async with rig.attempt() as running:
        assert await running.code() == EXIT_DONE
    news = await rig.news()
    assert [item.seq for item in news] == list(range(1, len(news) + 1))
    told = await rig.told()
    assert told.runs == ["queued", "starting", "working", "done"]
    end_ = news[-1].payload
    assert (end_["cost_usd"], end_["aside_usd"], end_["text"]) == (0.25, 0.0, "I am done.")
    assert end_["steps"] == [{"step": "Work", "ok": True, "cost_usd": 0.25, "num_turns": 1}]
    assert [item.text for item in news if item.kind == "text"] == ["I am done."]
    assert next(item for item in news if item.kind == "text").payload["label"] == "Work"
    standing = await rig.standing()
    assert (standing.status, standing.owner, standing.fence) == ("done", "", 1)
    assert rig.log()[-1]["payload"]["state"] == "done"
    assert rig.prompts == ["write a program"]


async def test_a_workflow_that_stands_in_a_module_is_run_as_it_is(rig: Rig) -> None:
    rig.scripts = [GOOD]
    async with rig.attempt(flow=f"{FLOWS}:ready") as running:
        assert await running.code() == EXIT_DONE
    assert rig.prompts == ["as it stands"]


async def test_files_that_the_run_made_are_named(rig: Rig) -> None:
    rig.workspace.mkdir()
    (rig.workspace / "old.txt").write_text("old")
    rig.scripts = [[init(), lambda: (rig.workspace / "new.txt").write_text("new"), say("ok"), Own()]]
    async with rig.attempt() as running:
        await running.code()
    assert (await ended(rig)).payload["files"] == ["new.txt"]


async def test_the_budget_of_the_order_is_the_runs(rig: Rig) -> None:
    rig.scripts = [GOOD]
    async with rig.attempt(options={"budget": 2.5}) as running:
        await running.code()
    assert rig.runtimes[0].budget_usd == 2.5


# -- what cannot be begun ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flow", "said"),
    [
        ("nowhere.at_all:flow", "flow 'nowhere.at_all:flow': ModuleNotFoundError: No module named 'nowhere'"),
        (f"{FLOWS}:missing", "AttributeError"),
        ("no-colon", "ModuleNotFoundError"),
        (":", "ValueError"),
        (f"{FLOWS}:number", "gave int, expected a flower Workflow"),
        (f"{FLOWS}:no_flow", "gave str, expected a flower Workflow"),
        (f"{FLOWS}:cannot_be_made", "no recipe for that"),
        (f"{FLOWS}:leaves_at_once", "usage: flows"),
    ],
)
async def test_a_flow_that_cannot_be_made_fails_the_run_and_says_why(rig: Rig, flow: str, said: str) -> None:
    async with rig.attempt(flow=flow) as running:
        assert await running.code() == EXIT_FAILED
    last = await ended(rig)
    assert last.payload["state"] == "failed"
    assert said in last.text
    standing = await rig.standing()
    assert (standing.status, standing.owner) == ("failed", "")


async def test_a_workspace_that_cannot_be_made_fails_the_run_and_names_it(rig: Rig) -> None:
    rig.workspace.write_text("in the way")
    async with rig.attempt() as running:
        assert await running.code() == EXIT_FAILED
    assert str(rig.workspace) in (await ended(rig)).text


async def test_a_budget_that_is_no_number_fails_the_run(rig: Rig) -> None:
    async with rig.attempt(options={"budget": "much"}) as running:
        assert await running.code() == EXIT_FAILED
    assert "much" in (await ended(rig)).text


async def test_a_folder_without_room_for_the_log_fails_the_run_and_says_so(rig: Rig) -> None:
    rig.folder.write_text("in the way")
    async with rig.attempt() as running:
        assert await running.code() == EXIT_FAILED
    last = await ended(rig)
    assert last.payload["state"] == "failed"
    assert last.text.startswith("the run's log cannot be written")
    assert (await rig.standing()).owner == ""


async def test_a_run_that_somebody_else_holds_is_left_alone(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosting, "START_PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(hosting, "LOOK_SECONDS", 0.02)
    await rig.store.runs.acquire(RUN, owner="another", ttl=60.0)
    async with rig.attempt(lease_ttl=0.1) as running:
        assert await running.code() == EXIT_FENCED
    assert (await rig.standing()).owner == "another"
    assert (await rig.told()).runs == ["queued", "starting"]


async def test_a_predecessors_lease_is_waited_for(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosting, "LOOK_SECONDS", 0.02)
    await rig.store.runs.acquire(RUN, owner="another", ttl=0.2)
    rig.scripts = [GOOD]
    async with rig.attempt() as running:
        assert await running.code() == EXIT_DONE
    assert (await rig.standing()).fence == 2


async def test_a_run_that_has_ended_is_not_begun_again_by_accident(rig: Rig) -> None:
    await rig.store.runs.finish(RUN, "ended", [rig.of_the_bot(3, "ended")], fence=0)
    async with rig.attempt() as running:
        assert await running.code() == EXIT_FENCED


async def test_a_run_that_nobody_knows_is_not_begun(rig: Rig) -> None:
    async with rig.attempt(run="unknown") as running:
        assert await running.code() == EXIT_FENCED


# -- how it goes wrong ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flow", "said"),
    [
        ("breaks", "KeyError: 'no such thing'"),
        ("leaves", "SystemExit: 3"),
        ("cancels_itself", "the flow cancelled itself"),
    ],
)
async def test_a_flow_that_raises_fails_the_run_and_says_what(rig: Rig, flow: str, said: str) -> None:
    rig.scripts = [GOOD]
    async with rig.attempt(flow=f"{FLOWS}:{flow}") as running:
        assert await running.code() == EXIT_DONE
    last = await ended(rig)
    assert (last.payload["state"], last.text) == ("failed", said)
    assert last.payload["cost_usd"] == 0.25


async def test_a_step_that_fails_fails_the_run_with_its_error(rig: Rig) -> None:
    bad = Own(is_error=True, subtype="error_during_execution", errors=("401 no such key",), status=401)
    rig.scripts = [[init(), bad]]
    async with rig.attempt() as running:
        assert await running.code() == EXIT_DONE
    last = await ended(rig)
    assert last.payload["state"] == "failed"
    assert "401 no such key" in last.text


async def test_a_broken_manifest_leaves_the_cost_out_instead_of_telling_nothing(rig: Rig) -> None:
    (rig.folder / "flower").mkdir(parents=True)
    (rig.folder / "flower" / "manifest.json").write_text("[1]")
    rig.folder.joinpath("flower", "manifest.json").chmod(0o600)
    async with rig.attempt(flow=f"{FLOWS}:cannot_be_made") as running:
        await running.code()
    assert "cost_usd" not in (await ended(rig)).payload


# -- steering ---------------------------------------------------------------------------------------------------------


@pytest.mark.case("SS-2")
async def test_a_held_run_waits_for_a_person_and_goes_on_in_the_same_session(rig: Rig) -> None:
    _, script = waits()
    rig.scripts = [script, [init(), say("Then B."), Own(total=0.5)]]
    async with rig.attempt() as running:
        await rig.until(lambda item: item.text == "I begin.")
        await rig.do(hold("c1", by=BEN))
        held = await rig.state("held")
        assert held.payload["by"]["name"] == "Ben"
        while (await rig.standing()).status != "held":
            await rig.store.events.rung(wait=0.02)
        await rig.do(resume("c2", "use B"))
        assert await running.code() == EXIT_DONE
    told = await rig.told()
    assert told.runs == ["queued", "starting", "working", "interrupting", "held", "working", "done"]
    assert told.receipts("c1") == told.receipts("c2") == [("taken", ""), ("done", "")]
    assert rig.runtimes[0].resumed == [None, "S"]
    assert "use B" in rig.prompts[1]
    assert (await rig.standing()).status == "done"


@pytest.mark.case("SS-1")
async def test_a_stop_before_there_is_a_session_is_kept_until_there_is_one(rig: Rig) -> None:
    starting = Until()
    rig.scripts = [[starting, init(), say("never told")], [init(), say("I heard it."), Own()]]
    async with rig.attempt() as running:
        await rig.until(lambda item: item.kind == "step")
        await rig.do(interrupt("c1", "use B"))
        await rig.receipt("c1", "taken")
        starting.event.set()
        assert await running.code() == EXIT_DONE
    assert "use B" in rig.prompts[1]
    assert (await rig.told()).receipts("c1") == [("taken", ""), ("done", "")]


async def test_an_end_before_there_is_a_session_ends(rig: Rig) -> None:
    starting = Until()
    rig.scripts = [[starting, init(), say("never told")]]
    async with rig.attempt() as running:
        await rig.until(lambda item: item.kind == "step")
        await rig.do(end("c1", "enough", by=BEN))
        await rig.receipt("c1", "done")
        starting.event.set()
        assert await running.code() == EXIT_DONE
    last = await ended(rig)
    assert (last.payload["state"], last.text, last.payload["by"]["name"]) == ("ended", "enough", "Ben")


@pytest.mark.parametrize("held", [False, True])
async def test_a_person_ends_a_run_at_work_or_held(rig: Rig, held: bool) -> None:
    _, script = waits()
    rig.scripts = [script]
    async with rig.attempt(flow=f"{FLOWS}:two") as running:
        await rig.until(lambda item: item.text == "I begin.")
        if held:
            await rig.do(hold("c1"))
            await rig.state("held")
        await rig.do(end("c2"))
        rig.runtimes[0].clients[0]._cut.set()  # a boundary: the program says something
        assert await running.code() == EXIT_DONE
    assert (await ended(rig)).payload["state"] == "ended"
    assert (await rig.standing()).status == "ended"
    assert len(rig.prompts) == 1  # the second step was not begun


async def test_a_flow_that_does_not_end_by_itself_is_cancelled(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosting, "END_GRACE_SECONDS", 0.1)
    rig.scripts = [GOOD]
    async with rig.attempt(flow=f"{FLOWS}:stubborn") as running:
        await rig.until(lambda item: item.kind == "result")
        await rig.do(end("c1", "enough"), end("c2"))
        assert await running.code() == EXIT_DONE
    last = await ended(rig)
    assert (last.payload["state"], last.text) == ("ended", "enough")
    assert last.payload["cost_usd"] == 0.25  # the accounts are written


UNREACHABLE = "## Conclusion\nUNREACHABLE\n\n## Reason\nThere is no such number.\n"


async def at_the_gate(rig: Rig, *more: Any) -> None:
    rig.scripts = [GOOD, [init("J"), say(UNREACHABLE, session_id="J"), Own(total=0.01, session="J")], *more]


async def test_end_while_the_gates_own_question_is_open_ends_the_run(rig: Rig) -> None:
    await at_the_gate(rig)
    async with rig.attempt(flow=f"{FLOWS}:judged") as running:
        await rig.until(lambda item: item.kind == "ask")
        await rig.do(end("c1", "enough"))
        assert await running.code() == EXIT_DONE
    told = await rig.told()
    assert told.asks == [("q1", "asked"), ("q1", "withdrawn")]
    last = await ended(rig)
    assert (last.payload["state"], last.text) == ("ended", "enough")
    assert last.payload["verdict"]["state"] == "unreachable"


async def test_hold_while_the_gates_own_question_is_open_stops_before_the_next_round(rig: Rig) -> None:
    again = [init(), say("Round two."), Own(total=0.3)]
    passed = [init("J2"), say("## Conclusion\nACHIEVED\n", session_id="J2"), Own(session="J2")]
    await at_the_gate(rig, [init(), say("never told")], again, passed)
    async with rig.attempt(flow=f"{FLOWS}:judged") as running:
        await rig.until(lambda item: item.kind == "ask")
        await rig.do(hold("c1"))
        await rig.state("held")
        await rig.do(answer("c2", "q1", "you are wrong, it is 7"))
        await rig.until(lambda item: item.payload.get("state") == "answered")
        while len(rig.prompts) < 3:  # the next round has begun, and is cut
            await rig.store.events.rung(wait=0.02)
        await rig.do(resume("c3", "look at 7 first"))
        assert await running.code() == EXIT_DONE
    told = await rig.told()
    assert told.runs == ["queued", "starting", "working", "interrupting", "held", "working", "done"]
    assert "look at 7 first" in rig.prompts[3]
    assert "never told" not in [item.text for item in told.news]


async def test_interrupt_while_the_gates_own_question_is_open_reaches_the_next_round(rig: Rig) -> None:
    again = [init(), say("Round two."), Own(total=0.3)]
    passed = [init("J2"), say("## Conclusion\nACHIEVED\n", session_id="J2"), Own(session="J2")]
    await at_the_gate(rig, [init(), say("never told")], again, passed)
    async with rig.attempt(flow=f"{FLOWS}:judged") as running:
        await rig.until(lambda item: item.kind == "ask")
        await rig.do(interrupt("c1", "use B"), answer("c2", "q1", "you are wrong"))
        assert await running.code() == EXIT_DONE
    assert "use B" in rig.prompts[3]
    assert (await rig.told()).receipts("c1") == [("taken", ""), ("done", "")]


@pytest.mark.case("SS-4")
async def test_a_stop_behind_which_nothing_comes_is_refused_and_the_run_is_done(rig: Rig) -> None:
    await at_the_gate(rig)
    async with rig.attempt(flow=f"{FLOWS}:judged") as running:
        await rig.until(lambda item: item.kind == "ask")
        await rig.do(interrupt("c1", "use B"), words("c2", "thanks"), answer("c3", "q1", "accept"))
        assert await running.code() == EXIT_DONE
    told = await rig.told()
    assert told.runs[-1] == "done"
    assert told.receipts("c1")[1:] == [("refused", "the run ended before it could be taken up")]
    assert [state for state, _ in told.receipts("c2")] == ["taken", "refused"]  # nobody read it


@pytest.mark.case("DL-1")
async def test_the_same_act_delivered_twice_has_one_effect(rig: Rig) -> None:
    until, script = waits()
    rig.scripts = [script]
    async with rig.attempt() as running:
        await rig.do(words("c1", "keep it short"))
        await rig.receipt("c1", "taken")
        line = rig.store._data.commands[RUN]  # what a line without a memory of ids would hold
        line.items.append(("0000000009", line.items[0][1]))
        await rig.do(words("c2", "please"))
        rig.store._data.change()
        await rig.receipt("c1", "taken")
        until.event.set()
        await running.code()
    told = await rig.told()
    assert [command for command, _, _ in told.mail].count("c1") == 1


@pytest.mark.case("SS-4")
async def test_what_comes_while_the_run_ends_is_answered_and_not_left_for_the_next_start(rig: Rig) -> None:
    """Commands that arrive between the end of the flow and the last news."""

    class Late(type(rig.store.commands)):  # type: ignore[misc]  # a line whose waiting reads see nothing
        async def read(self, run: Any, *, after: str = "", wait: float = 0.0) -> Any:
            if wait:
                await asyncio.Event().wait()
            return await super().read(run, after=after)

    rig.scripts = [GOOD]
    rig.store.commands = Late(rig.store._data)
    until, script = waits()
    rig.scripts = [script]
    async with rig.attempt() as running:
        await rig.until(lambda item: item.text == "I begin.")
        await rig.do(hold("c1"), end("c2"), consult("c3", "how far?"), words("c4", "thanks"))
        until.event.set()
        assert await running.code() == EXIT_DONE
    told = await rig.told()
    assert told.runs[-1] == "done"
    assert [state for state, _ in told.receipts("c1")] == ["taken", "refused"]
    assert [state for state, _ in told.receipts("c2")] == ["taken", "done"]
    assert [state for state, _ in told.receipts("c3")] == ["taken", "refused"]
    assert [state for state, _ in told.receipts("c4")] == ["taken", "refused"]


async def test_a_command_that_breaks_the_hands_is_refused_and_the_run_goes_on(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    until, script = waits()
    rig.scripts = [script]
    async with rig.attempt() as running:
        await rig.until(lambda item: item.text == "I begin.")
        monkeypatch.setattr(rig.runtimes[0], "interrupt", lambda *_a, **_k: 1 / 0)
        await rig.do(hold("c1"), words("c2", "still there?"))
        await rig.until(lambda item: item.payload.get("command") == "c2")
        until.event.set()
        assert await running.code() == EXIT_DONE
    assert (await rig.told()).receipts("c1")[1] == (
        "refused",
        "something went wrong in the runner (ZeroDivisionError)",
    )


# -- the oracle beside it ---------------------------------------------------------------------------------------------


async def test_the_end_waits_for_an_open_question_to_the_oracle(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    from flower import StepResult

    may_answer = asyncio.Event()

    async def ask(question: str, **_: Any) -> StepResult:
        await may_answer.wait()
        return StepResult(step="oracle", ok=True, text="half way", cost_usd=0.02)

    monkeypatch.setattr("bridge.runner.work.ask_aside", ask)
    until, script = waits()
    rig.scripts = [script]
    async with rig.attempt() as running:
        await rig.do(consult("c1", "how far?"), consult("c2", "how much?"))
        await rig.until(lambda item: item.kind == "oracle")
        until.event.set()
        await rig.until(lambda item: item.kind == "step_end")
        may_answer.set()
        assert await running.code() == EXIT_DONE
    news = await rig.news()
    assert [item.payload["state"] for item in news if item.kind == "oracle"].count("answered") == 2
    assert news[-1].payload["state"] == "done"


@pytest.mark.parametrize("how", ["time", "end", "term"])
async def test_an_oracle_that_does_not_answer_keeps_no_run_from_ending(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    async def ask(question: str, **_: Any) -> Any:
        await asyncio.Event().wait()

    monkeypatch.setattr("bridge.runner.work.ask_aside", ask)
    monkeypatch.setattr(hosting, "ORACLE_SECONDS", 0.1 if how == "time" else 60.0)
    until, script = waits()
    rig.scripts = [script]
    async with rig.attempt() as running:
        await rig.do(consult("c1", "how far?"))
        await rig.until(lambda item: item.kind == "oracle")
        until.event.set()
        await rig.until(lambda item: item.kind == "step_end")
        if how == "end":
            await rig.do(end("c2"))
        if how == "term":
            os.kill(os.getpid(), signal.SIGTERM)
        assert await running.code() == EXIT_DONE
    news = await rig.news()
    assert [item.payload["state"] for item in news if item.kind == "oracle"] == ["asked", "failed"]
    # It had ended by itself before anybody wanted it to.
    assert news[-1].payload["state"] == "done"


# -- told to stop -----------------------------------------------------------------------------------------------------


@pytest.mark.case("ST-1")
@pytest.mark.parametrize("held", [False, True])
async def test_sigterm_is_written_down_first_and_the_run_can_be_continued(rig: Rig, held: bool) -> None:
    _, script = waits()
    rig.scripts = [script]
    async with rig.attempt() as running:
        await rig.until(lambda item: item.text == "I begin.")
        if held:
            await rig.do(hold("c1"))
            await rig.state("held")
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
        assert await running.code() == EXIT_DONE
    told = await rig.told()
    assert told.runs[-2:] == ["stopping", "lost"]
    assert told.news[-1].text == "the runner was told to stop"
    standing = await rig.standing()
    assert (standing.status, standing.owner) == ("lost", "")
    assert rig.runtimes[0].manifest_path.exists()
    lineage = json.loads((rig.folder / "flower" / "lineage.json").read_text())
    assert "S" in json.dumps(lineage)
    rig.scripts = [[init(), say("Here I am again."), Own()]]
    await rig.starting()
    async with rig.attempt() as again:
        assert await again.code() == EXIT_DONE


async def test_a_signal_handler_does_not_outlive_the_attempt(rig: Rig) -> None:
    rig.scripts = [GOOD]
    async with rig.attempt() as running:
        await running.code()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


async def test_an_end_of_a_person_outweighs_a_sigterm(rig: Rig) -> None:
    """SS-5: a run that somebody ended is not one that the next process may take up."""
    rig.scripts = [GOOD]
    async with rig.attempt(flow=f"{FLOWS}:stubborn") as running:
        await rig.until(lambda item: item.kind == "result")
        await rig.do(end("c1", "enough"))
        await rig.receipt("c1", "done")
        os.kill(os.getpid(), signal.SIGTERM)
        assert await running.code() == EXIT_DONE
    assert (await ended(rig)).payload["state"] == "ended"


async def test_sigterm_while_the_store_is_away_leaves_the_rest_on_the_disk(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosting, "STOP_GRACE_SECONDS", 0.2)
    _, script = waits()
    rig.scripts = [script]
    async with rig.attempt() as running:
        await rig.until(lambda item: item.text == "I begin.")
        before = len(await rig.news())
        rig.store.away = True
        os.kill(os.getpid(), signal.SIGTERM)
        assert await running.code() == EXIT_AWAY
        rig.store.away = False
    assert len(await rig.news()) == before
    assert [item["payload"]["state"] for item in rig.log() if item["kind"] == "run"] == ["working", "stopping", "lost"]
    assert rig.log()[-1]["payload"]["state"] == "lost"

    rig.scripts = [[init(), say("Here I am again."), Own()]]
    await asyncio.sleep(0)
    rig.store._data.runs[RUN].lease = None  # it has run out
    await rig.starting()
    async with rig.attempt() as again:
        assert await again.code() == EXIT_DONE
    told = await rig.told()
    assert told.runs == ["queued", "starting", "working", "starting", "stopping", "lost", "working", "done"]
    assert [item.seq for item in told.news] == list(range(1, len(told.news) + 1))


async def test_sigterm_while_the_start_waits_for_the_store_ends_at_once(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosting, "STOP_GRACE_SECONDS", 0.1)
    looked = asyncio.Event()

    async def away(*_: Any, **__: Any) -> Any:
        looked.set()
        raise StoreAwayError("away")

    monkeypatch.setattr(rig.store.events, "read", away)
    async with rig.attempt() as running:
        await looked.wait()
        os.kill(os.getpid(), signal.SIGTERM)
        assert await running.code() == EXIT_AWAY
    assert rig.log() == []


# -- the store goes away ----------------------------------------------------------------------------------------------


async def test_a_store_that_is_away_at_the_start_is_waited_for(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosting, "LOOK_SECONDS", 0.02)
    rig.scripts = [GOOD]
    rig.store.away = True
    async with rig.attempt() as running:
        await asyncio.sleep(0.1)  # it has nothing to say and nobody to say it to
        rig.store.away = False
        assert await running.code() == EXIT_DONE


async def test_a_store_that_stays_away_at_the_start_is_an_error_and_begins_nothing(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosting, "START_PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(hosting, "LOOK_SECONDS", 0.02)
    rig.store.away = True
    with pytest.raises(ExceptionGroup) as caught:
        async with rig.attempt(lease_ttl=0.05) as running:
            await running.code()
    assert caught.group_contains(StoreAwayError)
    assert not rig.folder.exists()


async def test_a_run_goes_on_while_the_store_is_away_and_hands_in_everything_later(rig: Rig) -> None:
    until, script = waits()
    rig.scripts = [script]
    async with rig.attempt(lease_ttl=0.4) as running:
        await rig.until(lambda item: item.text == "I begin.")
        rig.store.away = True
        until.event.set()
        await on_disk(rig, lambda item: item["kind"] == "step_end")
        await asyncio.sleep(0.5)  # longer than the lease: only a newer attempt shuts it out
        assert not running.task.done()
        rig.store.away = False
        assert await running.code() == EXIT_DONE
    told = await rig.told()
    assert told.runs[-1] == "done"
    assert [item.seq for item in told.news] == list(range(1, len(told.news) + 1))


async def test_a_store_that_lost_its_newest_news_in_a_power_cut_gets_them_again(rig: Rig) -> None:
    until, script = waits()
    rig.scripts = [script]
    async with rig.attempt() as running:
        await rig.until(lambda item: item.text == "I begin.")
        line = rig.store._data.lines[RUN]
        line.last -= 2
        line.items = {seq: raw for seq, raw in line.items.items() if seq <= line.last}
        until.event.set()
        assert await running.code() == EXIT_DONE
    news = await rig.news()
    assert [item.seq for item in news] == list(range(1, len(news) + 1))
    assert [item.text for item in news if item.kind == "text"] == ["I begin.", "I am done."]


# -- somebody newer ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("held", [False, True])
async def test_a_fenced_runner_leaves_and_says_nothing_more(rig: Rig, held: bool) -> None:
    _, script = waits()
    rig.scripts = [script]
    async with rig.attempt(lease_ttl=0.2) as running:
        await rig.until(lambda item: item.text == "I begin.")
        if held:
            await rig.do(hold("c1"))
            await rig.state("held")
            await rig.receipt("c1", "done")
        rig.store._data.runs[RUN].lease = None
        await rig.store.runs.acquire(RUN, owner="another", ttl=60.0)
        before = len(await rig.news())
        assert await running.code() == EXIT_FENCED
    assert len(await rig.news()) == before
    assert len(rig.log()) == before - 2  # what the bot said is not in its log
    standing = await rig.standing()
    assert (standing.owner, standing.fence) == ("another", 2)


# -- what an earlier attempt left -------------------------------------------------------------------------------------


async def leave_behind(rig: Rig, items: list[News], *, acked: int = 0) -> None:
    """Write the log of an attempt 1 that died, and the number that it had."""
    from bridge.wire import encode_news

    fence = await rig.store.runs.acquire(RUN, owner="dead", ttl=60.0)
    assert fence == 1
    rig.store._data.runs[RUN].lease = None
    log = rig.folder / "log" / "0001.ndjson"
    log.parent.mkdir(parents=True)
    log.write_bytes(b"".join(encode_news(item) + b"\n" for item in items))
    log.with_suffix(".acked").write_text(str(acked))


def of_attempt_1(seq: int, kind_: str, text: str = "", **payload: Any) -> News:
    return News(seq=seq, fence=1, at=100.0 + seq, kind=kind_, text=text, payload=payload)


WORKING = of_attempt_1(3, "run", state="working", attempt=1)
ASKED = of_attempt_1(4, "ask", "Tabs or spaces?", id="q1", state="asked", options=["Tabs", "Spaces"], answer="")


async def test_what_was_never_handed_in_follows_under_new_numbers_although_somebody_took_the_old_ones(rig: Rig) -> None:
    late = [of_attempt_1(5, "text", "one"), of_attempt_1(6, "text", "two"), of_attempt_1(7, "text", "three")]
    await rig.store.events.append(RUN, [WORKING, ASKED], fence=0)
    await leave_behind(rig, [WORKING, ASKED, *late], acked=3)
    lost = [rig.of_the_bot(5, "lost", fence=1, at=200.0), rig.of_the_bot(6, "starting", fence=1, at=201.0)]
    await rig.store.events.append(RUN, lost, fence=1)
    rig.scripts = [GOOD]
    async with rig.attempt() as running:
        assert await running.code() == EXIT_DONE
    news = await rig.news()
    assert [item.seq for item in news] == list(range(1, len(news) + 1))
    assert [item.text for item in news if item.kind == "text"] == ["one", "two", "three", "I am done."]
    assert [item.fence for item in news if item.kind == "text"] == [1, 1, 1, 2]
    assert [(item.payload["state"], item.payload.get("fence")) for item in news if item.kind == "ask"] == [
        ("asked", None),
        ("withdrawn", 1),
    ]
    working = next(item for item in news if item.fence == 2 and item.payload.get("state") == "working")
    assert working.payload["resumed"] is True


@pytest.mark.case("ST-4")
async def test_words_that_nobody_read_reach_the_new_attempt_and_its_brief_once(rig: Rig) -> None:
    mail = of_attempt_1(4, "ask", "keep it short", kind="mail", id="m1", state="queued", command="c1", amended="")
    taken = of_attempt_1(5, "receipt", command="c1", do="say", state="taken", position="0000000001")
    await rig.do(words("c1", "keep it short"))
    await rig.store.events.append(RUN, [WORKING, mail, taken], fence=0)
    await leave_behind(rig, [WORKING, mail, taken], acked=5)
    await rig.starting()
    until, script = waits()
    rig.scripts = [script]
    async with rig.attempt() as running:
        await rig.until(lambda item: item.fence == 2 and item.payload.get("kind") == "mail")
        until.event.set()
        await running.code()
    told = await rig.told()
    assert [(command, state) for command, state, _ in told.mail] == [("c1", "queued"), ("c1", "queued")]
    assert [state for state, _ in told.receipts("c1")] == ["taken"]  # not taken a second time


async def test_a_stop_that_the_dead_attempt_never_took_does_not_stop_the_new_one(rig: Rig) -> None:
    await rig.store.events.append(RUN, [WORKING], fence=0)
    await leave_behind(rig, [WORKING], acked=3)
    await rig.do(end("c1", at=50.0), hold("c2", at=51.0), words("c3", "use B", at=52.0))
    await rig.starting(at=60.0)
    await rig.do(interrupt("c4", "and be quick", at=61.0))
    _, script = waits()
    rig.scripts = [script, [init(), say("Quick it is."), Own()]]
    async with rig.attempt() as running:
        assert await running.code() == EXIT_DONE
    told = await rig.told()
    before = "it was meant for the run before it was started again"
    assert told.receipts("c1") == told.receipts("c2") == [("taken", ""), ("refused", before)]
    assert told.mail[0] == ("c3", "queued", "use B")
    assert told.receipts("c4") == [("taken", ""), ("done", "")]
    assert told.runs[-1] == "done"


async def test_a_stop_while_the_first_start_is_under_way_counts(rig: Rig) -> None:
    await rig.do(end("c1", "a mistake", at=0.5))
    rig.scripts = [GOOD]
    async with rig.attempt() as running:
        assert await running.code() == EXIT_DONE
    assert (await ended(rig)).payload["state"] == "ended"
    assert rig.prompts == []


async def test_an_answer_to_the_dead_attempt_is_kept_for_the_agent(rig: Rig) -> None:
    await rig.store.events.append(RUN, [WORKING, ASKED], fence=0)
    await leave_behind(rig, [WORKING, ASKED], acked=4)
    await rig.do(answer("c1", "q1", "Spaces", fence=1, at=50.0))
    await rig.starting(at=60.0)
    rig.scripts = [GOOD]
    async with rig.attempt() as running:
        assert await running.code() == EXIT_DONE
    assert (await rig.told()).mail[0] == ("c1", "queued", "(A late answer to “Tabs or spaces?”)\nSpaces")


# -- the disk ---------------------------------------------------------------------------------------------------------


async def test_a_full_disk_holds_the_run_and_people_hear_of_it(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.bridge.runner.test_journal import file_size_limit

    monkeypatch.setattr("bridge.runner.journal.RETRY_SECONDS", 0.05)
    _, script = waits()
    rig.scripts = [script, [init(), say("There is room again."), Own()]]
    path = rig.folder / "log" / "0001.ndjson"
    async with rig.attempt() as running:
        await rig.until(lambda item: item.text == "I begin.")
        with file_size_limit(path.stat().st_size + 10):
            await rig.do(words("c1", "hello"))
            held = await rig.state("held")
            assert held.text.startswith("the run's log cannot be written: ")
            assert held.payload["by"] == {"id": "", "name": "flower"}
            assert "held" not in path.read_text()
        await rig.do(resume("c2"))
        assert await running.code() == EXIT_DONE
    news = await rig.news()
    assert [item.seq for item in news] == list(range(1, len(news) + 1))
    assert [item["seq"] for item in rig.log()] == [item.seq for item in news][2:]
