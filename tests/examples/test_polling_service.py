"""examples/polling_service.py over real HTTP, its runs on the real program."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

import flower.testing
from examples.polling_service import MOST_CHARACTERS, Numbered, RefusedError, Service, seconds
from flower import Event
from flower.testing import ScriptedModel, cost, load_story
from tests.examples.program import Program, ran, started, wrong

FIRST_LIGHT = Path(flower.testing.__file__).parent / "stories" / "first-light.yaml"
REQUEST = "Write a small program that prints the first ten primes"
real = pytest.mark.real

Json = dict[str, Any]


# -- the numbered events ------------------------------------------------------------------------------------------


def test_who_asks_for_an_event_that_is_yet_to_come_is_told_so() -> None:
    with pytest.raises(RefusedError, match="after=1: the newest event is 0; begin with after=0"):
        Numbered().after(1)


def test_who_asks_for_events_that_have_fallen_out_is_told_how_many_are_missing() -> None:
    events = Numbered(kept=3)
    for number in range(1, 6):
        events(Event("text", f"event {number}"))
    behind = events.after(1)
    assert (behind["missing"], behind["last"]) == (1, 5)
    assert behind["note"] == "events 2 to 2 are no longer kept; the newest 3 are"
    assert [(event["n"], event["text"]) for event in behind["events"]] == [
        (3, "event 3"),
        (4, "event 4"),
        (5, "event 5"),
    ]
    assert events.after(2)["missing"] == 0
    assert [event["n"] for event in events.after(4)["events"]] == [5]
    assert events.after(5)["events"] == []


def test_the_newest_two_thousand_are_kept() -> None:
    events = Numbered()
    for _ in range(2001):
        events(Event("text", "x"))
    assert events.after(0)["missing"] == 1
    assert len(events.after(0)["events"]) == 2000


def test_whatever_an_event_holds_the_sink_takes_it_and_the_client_gets_json() -> None:
    events, endless = Numbered(), dict[str, Any]()
    endless["again"] = endless
    payload = {"odd": object(), "many": list(range(10_000))}
    events(Event("text", "\x00\x1b[2J\udc80" + "x" * 50_000_000, payload=payload))
    events(Event("text", "never told", payload=endless))
    events(Event("text", "and on"))
    first, second = json.loads(json.dumps(events.after(0)))["events"]
    assert len(first["text"]) < MOST_CHARACTERS + 40
    assert first["text"].endswith("(50000006 characters)")
    assert len(first["payload"]["many"]) == 50
    assert (second["n"], second["text"], events.lost) == (2, "and on", 1)


@pytest.mark.parametrize("text", ["inf", "nan", "-1", "soon"])
def test_a_question_never_waits_for_ever(text: str) -> None:
    with pytest.raises(Exception, match="is no finite time in seconds; 0 lets no question wait"):
        seconds(text)


async def test_a_fault_of_the_service_itself_is_answered_as_json_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Faulty(Service):
        async def overview(self, _: web.Request) -> web.Response:
            raise LookupError("our own fault")

    runner = web.AppRunner(Faulty(tmp_path, "key", timeout_s=1).app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        address = f"http://127.0.0.1:{runner.addresses[0][1]}/runs"
        async with (
            aiohttp.ClientSession() as http,
            http.get(address, headers={"Authorization": "Bearer key"}) as answer,
        ):
            status, said = answer.status, await answer.json()
    finally:
        await runner.cleanup()
    assert (status, said["error"]) == (
        500,
        "the service failed (LookupError); its own output says where. The runs go on",
    )
    assert "our own fault" in capsys.readouterr().err


# -- the program --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Client:
    """Somebody who asks now and then."""

    http: aiohttp.ClientSession
    url: str
    key: str
    program: Program

    async def ask(self, method: str, path: str, body: Any = None, *, key: str | None = None) -> tuple[int, Json]:
        headers = {"Authorization": f"Bearer {self.key if key is None else key}"}
        data = body if isinstance(body, bytes | None) else json.dumps(body)
        async with self.http.request(method, f"{self.url}{path}", data=data, headers=headers) as answer:
            return answer.status, await answer.json()

    async def get(self, path: str) -> Json:
        status, said = await self.ask("GET", path)
        assert status == 200, said
        return said

    async def post(self, path: str, body: Any = None) -> Json:
        status, said = await self.ask("POST", path, body)
        assert status in (200, 201), said
        return said

    async def begin(self, **more: Any) -> str:
        return f"/runs/{(await self.post('/runs', {'request': REQUEST, **more}))['run']}"

    async def question(self, run: str, beginning: str, *, but: str = "") -> Json:
        """Poll until a question waits; not the one with the id `but`."""
        async with asyncio.timeout(60):
            while True:
                for each in (await self.get(f"{run}/questions"))["questions"]:
                    if each["question"].startswith(beginning) and each["id"] != but:
                        return dict(each)
                await asyncio.sleep(0.05)  # this is what polling is

    async def over(self, run: str) -> Json:
        async with asyncio.timeout(60):
            while True:
                if (state := await self.get(run))["over"]:
                    return state
                await asyncio.sleep(0.05)


@contextlib.asynccontextmanager
async def serving(model: ScriptedModel, place: Path, *args: str) -> AsyncIterator[Client]:
    async with started("polling_service.py", "--port", "0", *args, model=model, place=place) as program:
        url, _, key = (await program.line()).strip().partition(" key ")
        assert url.startswith("http://127.0.0.1:")
        async with aiohttp.ClientSession() as http:
            yield Client(http, url, key, program)


@contextlib.contextmanager
def taken_port() -> Any:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield taken.getsockname()[1]


@real
@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--timeout", "inf"), "'inf' is no finite time"),
        (("--port", "70000"), "70000 is no port; 0 to 65535 are"),
        (("--port", "TAKEN"), "say another one with --port"),
        (("--root", "file"), "cannot use file"),
    ],
    ids=["for ever", "no port", "taken", "a file"],
)
async def test_what_cannot_begin_says_why(tmp_path: Path, args: tuple[str, ...], words: str) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "file").touch()
    with taken_port() as taken:
        given = [str(taken) if each == "TAKEN" else each for each in args]
        wrong(await ran("polling_service.py", *given, model=None, place=tmp_path), status=2, words=words)


@real
@pytest.mark.timeout(90)
async def test_requests_that_make_no_sense_get_clear_words(tmp_path: Path) -> None:
    async with (
        ScriptedModel(load_story(FIRST_LIGHT)) as model,
        serving(model, tmp_path) as client,
    ):
        run = await client.begin(budget_usd=5)
        await client.question(run, "How should")
        answer = f"{run}/questions/q1/answer"
        for method, path, body, status, words in [
            ("POST", "/runs", b"{nonsense", 400, "the body is no JSON"),
            ("POST", "/runs", b"\xff\xfe", 400, "the body is no JSON"),
            ("POST", "/runs", [1], 400, "the body is to be an object with request, budget_usd"),
            ("POST", "/runs", {}, 400, "'request' is missing or empty"),
            ("POST", "/runs", {"request": 7}, 400, "'request' is to be a text"),
            ("POST", "/runs", {"request": "x", "budget": 3}, 400, "'budget' is not known here"),
            ("POST", "/runs", {"request": "x", "budget_usd": -1}, 400, "a number of US dollars above 0"),
            ("POST", "/runs", {"request": "x", "budget_usd": True}, 400, "a number of US dollars above 0"),
            ("POST", "/runs", {"request": "x", "budget_usd": 10**400}, 400, "a number of US dollars above 0"),
            ("POST", "/runs", b"[" * 60_000, 400, "the body is nested too deep; an object with request, budget_usd"),
            ("POST", "/runs", {"request": "x" * 100_000}, 413, "a body has at most 65536 bytes"),
            ("GET", "/runs/nobody", None, 404, "there is no run 'nobody'; GET /runs lists them"),
            ("GET", "/nothing", None, 404, "no GET /nothing; there are GET /runs; GET /runs/{run};"),
            ("DELETE", "/runs", None, 405, "no DELETE /runs; there are"),
            ("GET", f"{run}/events?after=x", None, 400, "the number of the last event you know is expected"),
            ("GET", f"{run}/events?after=-1", None, 400, "the number of the last event you know is expected"),
            ("GET", f"{run}/events?after=99999", None, 409, "begin with after=0"),
            ("POST", f"{run}/questions/q9/answer", {"text": "x"}, 409, "question 'q9' does not wait"),
            ("POST", answer, {"text": " "}, 400, "'text' is missing or empty"),
            ("POST", answer, None, 400, "'text' is missing or empty"),
            ("POST", f"{run}/mail", {"text": ""}, 400, "'text' is missing or empty"),
            ("POST", f"{run}/interrupt", {"words": "x"}, 400, "'words' is not known here; there are text"),
        ]:
            got, said = await client.ask(method, path, body)
            assert (got, words in said["error"]) == (status, True), (method, path, said)
        for key in ("", "wrong", "schlüssel"):
            got, said = await client.ask("GET", "/runs", key=key)
            assert (got, said["error"][:32]) == (401, "the key is missing or wrong; sen")
        assert len((await client.get("/runs"))["runs"]) == 1
        assert [ask["id"] for ask in (await client.get(f"{run}/questions"))["questions"]] == ["q1"]


@real
async def test_a_service_without_a_credential_says_so_when_a_run_is_wanted(tmp_path: Path) -> None:
    async with (
        started("polling_service.py", "--port", "0", model=None, place=tmp_path) as program,
        aiohttp.ClientSession() as http,
    ):
        url, _, key = (await program.line()).strip().partition(" key ")
        status, said = await Client(http, url, key, program).ask("POST", "/runs", {"request": REQUEST})
    assert (status, "ANTHROPIC_API_KEY" in said["error"]) == (503, True)


@real
@pytest.mark.timeout(120)
async def test_a_run_from_its_start_to_its_end_by_asking_now_and_then(tmp_path: Path) -> None:
    async with (
        ScriptedModel(load_story(FIRST_LIGHT)) as model,
        serving(model, tmp_path) as client,
    ):
        run = await client.begin()
        first = await client.question(run, "How should")
        assert first["options"] == ["One number per line", "All on one line", "As a JSON list"]
        assert first["waited_s"] >= 0
        mark = (await client.get(f"{run}/events"))["last"]
        await client.post(f"{run}/mail", {"text": "please mention Eratosthenes"})
        await client.post(f"{run}/questions/{first['id']}/answer", {"text": "As a JSON list"})
        assert (await client.ask("POST", f"{run}/questions/{first['id']}/answer", {"text": "late"}))[0] == 409

        fork = await client.question(run, "The program prints")
        await client.post(f"{run}/interrupt", {"text": "keep it simple"})
        again = await client.question(run, "The program prints", but=fork["id"])
        await client.post(f"{run}/questions/{again['id']}/decline", {"reason": "no opinion"})

        state = await client.over(run)
        told = await client.get(f"{run}/events?after={mark}")
        assert (await client.ask("POST", f"{run}/mail", {"text": "too late"}))[0] == 409
    assert (state["end"], state["questions"], state["lost_events"]) == ("done", 0, 0)
    assert [(step["step"], step["ok"]) for step in state["steps"]] == [
        ("Clarify", True),
        ("Goal", True),
        ("Work", True),
    ]
    assert state["cost_usd"] == pytest.approx(cost(model.tokens), abs=1e-4)
    assert [event["n"] for event in told["events"]] == list(range(mark + 1, told["last"] + 1))
    texts = "\n".join(event["text"] for event in told["events"] if event["kind"] == "text")
    assert "You stopped me with: “keep it simple”" in texts
    assert "please mention Eratosthenes" in texts
    settled = [event["payload"]["state"] for event in told["events"] if event["text"] == again["question"]]
    assert settled[-1] == "declined"
    work = tmp_path / "here" / run.replace("/runs", "service", 1) / "work"
    assert (work / "primes.out").read_text(encoding="utf-8").startswith("[2, 3, 5")


@real
@pytest.mark.timeout(90)
async def test_runs_have_folders_of_their_own_and_end_with_the_service_in_order(tmp_path: Path) -> None:
    async with ScriptedModel(load_story(FIRST_LIGHT)) as model, serving(model, tmp_path) as client:
        one, two = await client.begin(), await client.begin()
        await client.question(one, "How should")
        await client.question(two, "How should")
        await client.post(f"{one}/end")
        state = await client.over(one)
        assert state["end"] == "stopped in step Clarify: ended-by-human"
        client.program.process.send_signal(signal.SIGTERM)
        ended = await client.program.end()
    assert (ended.status, ended.err) == (0, "")
    for run in (one, two):
        books = tmp_path / "here" / run.replace("/runs", "service", 1) / "run"
        (row,) = json.loads((books / "manifest.json").read_text(encoding="utf-8"))
        assert row["step"] == "Clarify"
        assert "Clarify" in json.loads((books / "lineage.json").read_text(encoding="utf-8"))["steps"]


@real
@pytest.mark.timeout(90)
async def test_a_question_that_nobody_answers_is_settled_when_its_time_is_over(tmp_path: Path) -> None:
    async with ScriptedModel(load_story(FIRST_LIGHT)) as model, serving(model, tmp_path, "--timeout", "0.2") as client:
        run = await client.begin()
        state = await client.over(run)
        told = await client.get(f"{run}/events")
    assert state["end"] == "done"
    states = [event["payload"]["state"] for event in told["events"] if event["kind"] == "ask"]
    assert states == ["asked", "timeout", "asked", "timeout"]
