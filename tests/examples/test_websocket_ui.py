"""examples/websocket_ui.py over real HTTP and WebSockets, its run on the real program."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import json
import re
import signal
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest

import flower.testing
from examples.websocket_ui import KEPT, MOST_CHARACTERS, PAGE, History, RefusedError, Room, policy, read, shortened
from flower import Event, HumanChannel, Runtime, Workflow
from flower.testing import ScriptedModel, cost, load_story, scripted_surroundings
from tests.examples.program import Program, ran, started, wrong

FIRST_LIGHT = Path(flower.testing.__file__).parent / "stories" / "first-light.yaml"
REQUEST = "Write a small program that prints the first ten primes"
real = pytest.mark.real

Json = dict[str, Any]


# -- without a run ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ("{", "that is no JSON"),
        ("[]", 'an object with "do" is expected'),
        ('{"text": "x"}', 'an object with "do" is expected'),
        ('{"do": "note", "text": {"a": 1}}', "'text' is to be a text, not a dict"),
        ("[" * 32_000, "that is nested too deep; an object of texts is expected"),
        *((f'{{"do": {"[" * deep}{"]" * deep}}}', 'an object with "do" is expected') for deep in (1, 900)),
        *((f'{{"do": "x", "a": {"[" * deep}{"]" * deep}}}', "'a' is to be a text, not a list") for deep in (1, 900)),
    ],
)
def test_what_a_browser_sends_is_read_with_care(message: str, why: str) -> None:
    with pytest.raises(RefusedError, match=re.escape(why)):
        read(message)


def test_the_history_is_bounded_and_says_what_is_gone() -> None:
    history = History(kept=2)
    for number in range(5):
        history.add({"text": str(number)})
    missed, entries = history.after(1)
    assert (missed, [json.loads(entry)["n"] for entry in entries]) == (2, [4, 5])
    assert history.after(5) == (0, [])
    full = History()
    for _ in range(KEPT + 1):
        full.add({})
    assert full.after(0)[0] == 1


def test_a_reader_hears_of_news_and_is_forgotten_when_it_leaves() -> None:
    history = History()
    with history.bell() as bell:
        history.add({})
        assert bell.is_set()
    bell.clear()
    history.add({})
    assert not bell.is_set()


def test_a_tool_result_of_fifty_megabytes_is_cut() -> None:
    cut = shortened({"text": "x" * 50_000_000, "many": [{"deep": "y" * 9000}] * 99})
    assert cut["text"] == "x" * MOST_CHARACTERS + " … (50000000 characters)"
    assert len(cut["many"]) == 50
    assert len(cut["many"][0]["deep"]) < 9000


def test_the_policy_lets_only_the_pages_own_script_and_style_run() -> None:
    page = PAGE.read_text(encoding="utf-8")
    script = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'sha256-" in policy(page)
    assert "unsafe" not in policy(page)
    assert policy(page) != policy(page.replace("use strict", "use anything"))
    assert not re.search(r"innerHTML|insertAdjacentHTML|outerHTML|document\.write|eval\(|\son\w+=|\sstyle=", page)


def test_whatever_an_event_holds_the_sink_takes_it(tmp_path: Path) -> None:
    with scripted_surroundings("http://127.0.0.1:9", tmp_path / "home"):
        runtime = Runtime(workspace=tmp_path / "work", run_dir=tmp_path / "runs")
    try:
        room = Room(Workflow([], channel=HumanChannel()), runtime)
        endless = dict[str, Any]()
        endless["again"] = endless
        room(Event("text", "never told", payload=endless))
        room(Event("text", "\x00\x1b[2J\udc80", payload={"odd": object()}))
        assert (room.lost, room.state()["lost"], room.history.last) == (1, 1, 1)
        assert json.loads(room.history.after(0)[1][0])["text"] == "\x00\x1b[2J\udc80"
        with pytest.raises(ValueError, match="the workflow needs a channel"):
            Room(Workflow([]), runtime)
    finally:
        runtime.close()


@real
@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((), "Say in one sentence what is wanted"),
        (("x", "--port", "70000"), "70000 is no port; 0 to 65535 are"),
        (("x", "--workspace", "file"), "cannot work in"),
    ],
    ids=["no request", "no port", "a file"],
)
async def test_what_cannot_begin_says_why(tmp_path: Path, args: tuple[str, ...], words: str) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "file").touch()
    async with ScriptedModel(load_story(FIRST_LIGHT)) as model:
        wrong(await ran("websocket_ui.py", *args, model=model, place=tmp_path), status=2, words=words)


@real
async def test_a_taken_port_and_a_missing_credential_are_one_line_each(tmp_path: Path) -> None:
    wrong(await ran("websocket_ui.py", "x", model=None, place=tmp_path), status=2, words="ANTHROPIC_API_KEY")
    async with ScriptedModel(load_story(FIRST_LIGHT)) as model:
        ended = await ran("websocket_ui.py", "x", "--port", str(model.port), model=model, place=tmp_path)
        wrong(ended, status=2, words="say another one with --port")
        assert model.requests == []


# -- with one -----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Tab:
    """One browser's socket, and what it was told."""

    socket: aiohttp.ClientWebSocketResponse
    entries: list[Json] = field(default_factory=list)
    hello: Json = field(default_factory=dict)
    others: list[Json] = field(default_factory=list)
    state: Json = field(default_factory=dict)

    async def hear(self) -> None:
        async with asyncio.timeout(60):
            said = json.loads(await self.socket.receive_str())
        if "n" in said:
            self.entries.append(said)
        elif "state" in said:
            self.state = said["state"]
        elif "room" in said:
            self.hello = said
        else:
            self.others.append(said)

    async def until(self, met: Callable[[Tab], bool]) -> None:
        while not met(self):
            await self.hear()

    async def question(self, beginning: str, *, but: str = "") -> Json:
        """Wait until a question is open; not the one with the id `but`."""

        def found() -> list[Json]:
            open_now = self.state.get("questions", [])
            return [each for each in open_now if each["question"].startswith(beginning) and each["id"] != but]

        await self.until(lambda _: bool(found()))
        return found()[0]

    async def tell(self, do: str, **said: Any) -> str:
        """Send something, and return the receipt or the refusal."""
        before = len(self.others)
        await self.socket.send_json({"do": do, **said})
        await self.until(lambda tab: len(tab.others) > before)
        answer = self.others[-1]
        return str(answer.get("receipt") or answer["refused"])

    def texts(self, *kinds: str) -> list[str]:
        return [entry["text"] for entry in self.entries if entry["kind"] in kinds]


@dataclass(frozen=True, slots=True)
class Stage:
    http: aiohttp.ClientSession
    url: str
    key: str
    program: Program

    @contextlib.asynccontextmanager
    async def tab(self, *, room: str = "", after: int = 0) -> AsyncIterator[Tab]:
        query = {"key": self.key, "room": room, "after": str(after)}
        async with self.http.ws_connect(f"{self.url}/socket", params=query, origin=self.url) as socket:
            yield Tab(socket)


@contextlib.asynccontextmanager
async def shown(model: ScriptedModel, place: Path) -> AsyncIterator[Stage]:
    async with started("websocket_ui.py", REQUEST, "-w", "site", "-p", "0", model=model, place=place) as program:
        url, _, key = (await program.line()).removeprefix("open ").strip().partition("/#")
        async with aiohttp.ClientSession() as http:
            yield Stage(http, url, key, program)


@real
@pytest.mark.timeout(90)
async def test_strangers_and_other_sites_are_turned_away_and_the_page_is_locked_down(tmp_path: Path) -> None:
    async with ScriptedModel(load_story(FIRST_LIGHT)) as model, shown(model, tmp_path) as stage:
        for address, headers, status, words in [
            ("/socket?key=wrong", {}, 403, "open the address that this program printed"),
            ("/socket", {}, 403, "the key is missing or wrong"),
            (f"/socket?key={stage.key}&after=-1", {}, 400, "the number of the last entry you know"),
            (f"/socket?key={stage.key}", {"Origin": "http://elsewhere.example"}, 403, "answers to http://127.0.0.1"),
            ("/", {"Host": "elsewhere.example"}, 403, "answers to http://127.0.0.1"),
        ]:
            async with stage.http.get(f"{stage.url}{address}", headers=headers) as answer:
                assert (answer.status, words in await answer.text()) == (status, True), address
        async with stage.http.get(stage.url) as answer:
            assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'sha256-")
            assert stage.key not in await answer.text()


@real
@pytest.mark.timeout(90)
async def test_what_makes_no_sense_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    async with (
        ScriptedModel(load_story(FIRST_LIGHT)) as model,
        shown(model, tmp_path) as stage,
        stage.tab() as tab,
    ):
        await tab.question("How should")
        assert "there is no 'dance'; there are answer, skip" in await tab.tell("dance")
        assert "question 'q9' waits no longer" in await tab.tell("answer", ask="q9", text="x")
        assert await tab.tell("answer", ask="q1", text=" ") == "an answer needs words"
        assert "'text' is to be a text, not 7" in await tab.tell("note", text=7)
        await tab.socket.send_str("[" * 32_000)
        await tab.until(lambda tab: "nested too deep" in str(tab.others[-1:]))
        assert "at most 32000 characters" in await tab.tell("note", text="x" * 33_000)
        await tab.socket.send_bytes(b"\xff")
        await tab.until(lambda tab: "a text of at most" in str(tab.others[-1]))
        assert [each["id"] for each in tab.state["questions"]] == ["q1"]


@real
@pytest.mark.timeout(120)
async def test_two_browsers_share_a_run_from_its_start_to_its_end(tmp_path: Path) -> None:
    async with (
        ScriptedModel(load_story(FIRST_LIGHT)) as model,
        shown(model, tmp_path) as stage,
        stage.tab() as one,
        stage.tab() as two,
    ):
        first = await one.question("How should")
        assert await two.question("How should") == first
        assert await two.tell("answer", ask=first["id"], text="As a JSON list") == "q1 answered."
        assert "somebody else was faster" in await one.tell("answer", ask=first["id"], text="All on one line")

        fork = await one.question("The program prints")
        assert "In the inbox" in await two.tell("note", text="please mention Eratosthenes")
        assert "oracle is looking" in await two.tell("ask", text="where are we?")
        await one.until(lambda tab: bool(tab.texts("aside")))
        assert "goes on with your words" in await one.tell("interrupt", text="keep it simple")
        # The question that was cut has no closing event; what is open is read from the channel all the same.
        again = await one.question("The program prints", but=fork["id"])
        assert [each["id"] for each in one.state["questions"]] == [again["id"]]
        await one.tell("answer", ask=again["id"], text="Keep it at ten")

        for tab in (one, two):
            await tab.until(lambda tab: bool(tab.state.get("over")))
            assert tab.state["over"] == "It is done."
            assert tab.texts("settled") == ["Clarify: done", "Goal: done", "Work: done"]
            assert any("You stopped me with: “keep it simple”" in text for text in tab.texts("text"))
            assert [entry["n"] for entry in tab.entries] == list(range(1, len(tab.entries) + 1))
        assert "the run is over" in await one.tell("interrupt", text="too late")
        (aside,) = [entry for entry in one.entries if entry["kind"] == "aside"]
        assert aside["payload"]["cost_usd"] == pytest.approx(cost([e for e in model.tokens if e.part == "oracle"]))
        assert "You asked: “where are we?”" in aside["text"]
        run = cost([entry for entry in model.tokens if entry.part != "oracle"])
        assert one.state["cost_usd"] == pytest.approx(run, abs=1e-4)
    assert (tmp_path / "here" / "site" / "primes.out").read_text(encoding="utf-8").startswith("[2, 3, 5")


@real
@pytest.mark.timeout(90)
async def test_who_comes_back_is_shown_what_was_missed_and_a_newcomer_everything(tmp_path: Path) -> None:
    async with ScriptedModel(load_story(FIRST_LIGHT)) as model, shown(model, tmp_path) as stage:
        async with stage.tab() as before:
            await before.question("How should")
            room, seen = before.hello["room"], before.entries[-1]["n"]
        async with stage.tab() as other:
            await other.question("How should")
            await other.tell("answer", ask="q1", text="As a JSON list")
            await other.question("The program prints")
            last = other.entries[-1]["n"]
        async with stage.tab(room=room, after=seen) as back, stage.tab(room="of another start", after=seen) as new:
            for tab, begin in ((back, seen), (new, 0)):
                await tab.question("The program prints")
                await tab.until(lambda tab: tab.entries[-1]["n"] >= last)
                assert tab.hello == {"room": room, "after": begin}
                assert [entry["n"] for entry in tab.entries][: last - begin] == list(range(begin + 1, last + 1))
        async with stage.tab() as tab:
            assert "It ends" in await tab.tell("end")
            await tab.until(lambda tab: bool(tab.state.get("over")))
            assert tab.state["over"] == "It stopped in step Work: ended-by-human"
        stage.program.process.send_signal(signal.SIGTERM)
        ended = await stage.program.end()
    assert (ended.status, ended.err) == (0, "")


@real
@pytest.mark.timeout(90)
async def test_a_browser_that_does_not_read_holds_up_nobody(tmp_path: Path) -> None:
    async with (
        ScriptedModel(load_story(FIRST_LIGHT)) as model,
        shown(model, tmp_path) as stage,
        stage.tab(),  # never reads
        stage.tab() as tab,
    ):
        for beginning in ("How should", "The program prints"):
            question = await tab.question(beginning)
            await tab.tell("answer", ask=question["id"], text=question["options"][0])
        await tab.until(lambda tab: bool(tab.state.get("over")))
        assert tab.state["over"] == "It is done."
        assert tab.state["lost"] == 0
