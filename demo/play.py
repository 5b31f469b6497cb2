"""Plays the demo's story as people would, through the emulator's control interface, and checks what they would see."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from demo.emulator import buttons, shown_text
from demo.stage import Stage
from demo.thread import NotSeenError, Thread, until, wait_for_thread
from flower.testing import TokenEntry, cost, read_log

CHANNEL = "runs"
REQUEST = "Write a small program that prints the first ten primes"
MAIL = "Please keep the program short."
WORDS = "No comments in the code, please."
QUESTION = "Where do things stand?"
PRIMES = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]

CHECKS = (
    "confirmation",
    "card",
    "ask",
    "click",
    "subagent",
    "inbox",
    "oracle",
    "stop-words",
    "withdrawn",
    "hold",
    "continue",
    "rejected",
    "passed",
    "cost",
)
"""Every check of the headless demo, in the order of the story."""

Hook = Callable[["Play", str], Awaitable[None]]


class CheckFailedError(Exception):
    """A check did not hold: which, and what was seen."""

    def __init__(self, check: str, why: str) -> None:
        super().__init__(f"{check}: {why}")
        self.check = check


async def nothing(_play: Play, _check: str) -> None:
    """The hook of a demo without a fault."""


@dataclass(slots=True)
class Play:
    """One playing of the story.

    Args:
        stage: where it is played.
        say: takes a line for the person who watches.
        patience: seconds that a single thing may take until it is seen.
        before: called before each check begins (faults are planted there).
        clicker: who presses the first answer.
    """

    stage: Stage
    say: Callable[[str], None]
    patience: float = 30.0
    before: Hook = nothing
    clicker: str = "alice"
    thread: Thread = field(init=False)
    asked: set[str] = field(default_factory=set)

    async def run(self) -> None:
        """Play everything.

        Raises:
            CheckFailedError: the first check that does not hold.
        """
        async with self._check("confirmation") as seen:
            await self.stage.slack.command("alice", CHANNEL, REQUEST)
            seen(await self._confirmed())
        async with self._check("card") as seen:
            self.thread = await wait_for_thread(self.stage.slack, CHANNEL, within=self.patience)
            await self._expect(REQUEST in await self.thread.card(), "the card carries the request")
            seen(f"run {self.thread.run}")
        first = await self._first_question()
        async with self._check("click") as seen:
            await self.thread.press(self.clicker, first, "One number per line")
            seen(await self._settled(first, "One number per line"))
        await self._work()
        await self._questions()
        await self._ends()

    # -- the story, part by part ----------------------------------------------------------------------------------

    async def _confirmed(self) -> str:
        async def look() -> str | None:
            for message in await self.stage.slack.messages(CHANNEL):
                if message.get("ephemeral_to") and REQUEST in shown_text(message):
                    return shown_text(message)
            return None

        return await until(look, within=min(self.patience, 5.0), what="a private confirmation of the request")

    async def _first_question(self) -> str:
        async with self._check("ask") as seen:
            slot, message = await self._next_ask()
            labels = [button["text"]["text"] for button in buttons(message)]
            options = ["One number per line", "All on one line", "As a JSON list"]
            await self._expect(labels[:3] == options, f"three options to tap, found {labels}")
            await self._expect(len(labels) == 5, f"beside them words and skip, found {labels[3:]}")
            seen(", ".join(labels))
        return slot

    async def _work(self) -> None:
        """The subagent is held in its tracks, so that a person's words reach the inbox while it works."""
        async with self._check("subagent") as seen:
            await self.stage.tell_model("pause", "coder-program.reply")
            await self._until(self._written, "primes.out in the workspace, with the first ten primes")
            asked = await self.stage.asked("coder-program")
            await self._expect(bool(asked) and all(each["agent"] for each in asked), "a subagent asked the model")
            seen("primes.py written and run by a subagent")
        async with self._check("inbox") as seen:
            ts = await self.thread.say("alice", MAIL)
            await self._until(lambda: self._signed(ts, "eyes"), "the receipt on the person's own message")
            await self.stage.tell_model("release", "coder-program.reply")
            await self._until(lambda: self._signed(ts, "white_check_mark"), "the receipt of delivery")
            await self._until(lambda: self._prose_with(MAIL), "the agent takes up the words")
            seen("received, delivered, taken up")

    async def _questions(self) -> None:
        async with self._check("oracle") as seen:
            slot, _ = await self._next_ask()
            manifest = self.run_folder / "flower" / "manifest.json"
            before = digest(manifest)
            await self.thread.say("alice", f"?{QUESTION}")
            answer = await self.thread.wait_for("The run is waiting for a person", within=self.patience)
            await self._expect(digest(manifest) == before, "the run's manifest is unchanged by a byte")
            await self._expect(bool(buttons((await self.thread.slots())[slot])), "the question is still open")
            seen(shown_text(answer).splitlines()[-1][:100])
        async with self._check("stop-words") as seen:
            await self.thread.say("alice", f"!stop {WORDS}")
            await self._until(lambda: self._prose_with(WORDS), "the agent takes up the words")
            sessions = {asked["session"] for asked in await self.stage.asked("work")}
            await self._expect(len(sessions) == 1, f"one session before and after, found {len(sessions)}")
            seen("the same session goes on with the words")
        async with self._check("withdrawn") as seen:
            seen(await self._withdrawn(slot))
        async with self._check("hold") as seen:
            await self._next_ask()
            await self.thread.say("alice", "!stop")
            await self._until(lambda: self._line_with("Paused by"), "a line that says who paused the run")
            await self._until(lambda: self._card_with("Paused by"), "the card says that it is paused")
            calls = len(await self.stage.asked())
            await asyncio.sleep(1.0)  # that nothing happens has no event
            await self._expect(len(await self.stage.asked()) == calls, "a held run asks the model nothing")
            seen("held until a person acts")
        async with self._check("continue") as seen:
            await self.thread.press("alice", "card", "Continue")
            slot, _ = await self._next_ask()
            await self.thread.say("alice", "1")
            await self._settled(slot, "Keep it at ten")
            seen("goes on where it was, asks again, and takes the number of an option for an answer")

    async def _ends(self) -> None:
        async with self._check("rejected") as seen:
            await self._until(lambda: self._line_with("round 1 of 3"), "the verdict of round 1")
            await self._expect(bool(await self._line_with("not yet")), "it says that the goal is not reached")
            seen("round 1: not yet")
        async with self._check("passed") as seen:
            await self._until(lambda: self._line_with("round 2 of 3"), "the verdict of round 2")
            await self._expect(bool(await self._line_with("goal achieved")), "it says that the goal is reached")
            seen("round 2: goal achieved")
        async with self._check("cost") as seen:
            seen(await self._cost())

    # -- what is looked at ----------------------------------------------------------------------------------------

    @property
    def run_folder(self) -> Path:
        """Folder of the run."""
        return self.stage.home / "runs" / self.thread.run

    async def _next_ask(self) -> tuple[str, dict[str, Any]]:
        slot, message = await self.thread.wait_for_ask(within=self.patience, besides=frozenset(self.asked))
        self.asked.add(slot)
        return slot, message

    async def _settled(self, slot: str, answer: str) -> str:
        async def look() -> str | None:
            message = (await self.thread.slots())[slot]
            return shown_text(message) if not buttons(message) and answer in shown_text(message) else None

        text: str = await self._until(look, f"the question shows the answer {answer!r} and its buttons are gone")
        await self._expect("answered" in text, "it says who answered")
        return text.splitlines()[-1]

    async def _withdrawn(self, slot: str) -> str:
        async def look() -> str | None:
            message = (await self.thread.slots())[slot]
            return shown_text(message) if not buttons(message) and "Withdrawn" in shown_text(message) else None

        text: str = await self._until(look, "the question that was open is shown as withdrawn")
        return text.splitlines()[-1]

    async def _written(self) -> bool:
        path = self.stage.workspace(self.run_folder) / "primes.out"
        return path.exists() and [int(word) for word in path.read_text().split()] == PRIMES

    async def _signed(self, ts: str, name: str) -> bool:
        return name in await self.thread.reactions(ts)

    async def _prose_with(self, words: str) -> bool:
        return any(
            words in shown_text(message)
            for slot, message in (await self.thread.slots()).items()
            if slot.startswith("say:")
        )

    async def _line_with(self, words: str) -> bool:
        return any(
            words in shown_text(message)
            for slot, message in (await self.thread.slots()).items()
            if slot.startswith("line:")
        )

    async def _card_with(self, words: str) -> bool:
        return words in await self.thread.card()

    async def _cost(self) -> str:
        async def look() -> str | None:
            ends = (m for slot, m in (await self.thread.slots()).items() if slot.startswith("end:"))
            return next((shown_text(message) for message in ends), None)

        end = await self._until(look, "the end message")
        ours = cost(entry for entry in self._tokens() if entry.part != "oracle")
        manifest = json.loads((self.run_folder / "flower" / "manifest.json").read_text())
        told = sum(row["cost_usd"] for row in manifest)
        await self._expect(abs(told - ours) < 1e-6, f"flower's accounts say ${told:.6f}, the model's log ${ours:.6f}")
        await self._expect(f"Cost ${ours:.2f}" in end, f"the end says ${ours:.2f}, found: {end!r}")
        await self._expect("goal achieved" in end, "the end carries the verdict")
        await self._expect("primes.py" in end, "the end names the files")
        return f"${ours:.4f} in the model server's log, ${ours:.2f} in the thread"

    def _tokens(self) -> list[TokenEntry]:
        return read_log(self.stage.tokens)

    # -- how it is looked at --------------------------------------------------------------------------------------

    async def _until(self, look: Callable[[], Awaitable[Any]], what: str) -> Any:
        return await until(look, within=self.patience, what=what)

    async def _expect(self, holds: bool, what: str) -> None:
        if not holds:
            raise NotSeenError(what)

    @asynccontextmanager
    async def _check(self, name: str) -> AsyncIterator[Callable[[str], None]]:
        await self.before(self, name)
        began, seen = time.monotonic(), [""]
        try:
            yield lambda text: seen.__setitem__(0, text)
        except (NotSeenError, LookupError) as err:
            raise CheckFailedError(name, str(err)) from err
        self.say(f"  ok  {name:<13} {seen[0]}  ({time.monotonic() - began:.1f} s)")


def digest(path: Path) -> str:
    """Name the bytes of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
