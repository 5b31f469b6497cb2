"""Behaviour 28.4, each item a test:

*Interrupt:* same session resumed, words and note in the prompt, `attempts` unchanged, blank message, no session id →
stop, from another thread, before start, together with handoff due.

One point is read with rulings R3: a stop before a session id exists is kept and acts when there is one. "No session
id → stop" is left for an attempt that ends without ever having had one.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from claude_agent_sdk import ProcessError, UserMessage

from flower.core.events import Event
from flower.core.next_move import Ending, Finish, GoOn, after
from flower.core.resilience import classify
from flower.core.runtime import Runtime
from tests.fakes.client import Item, Own, Until, init, say
from tests.flower.scene import SPEC, Calm, Make, call, rows, told, windowed

WAIT = 5.0
NOTE = Runtime.INTERRUPT_NOTE
WITH_WORDS = "人打断了你,他说:\n\n{words}\n\n按这个调整,然后接着做。\n\n" + NOTE
PLAIN = f"人打断了你一下,没有别的要求,现在继续。\n\n{NOTE}"


# -- same session resumed -----------------------------------------------------------------------------------------


async def test_same_session_resumed(make: Make) -> None:
    cutting: list[Item] = [
        init(),
        say("seen"),
        lambda: runtime.interrupt("x"),
        say("the boundary"),
        say("unseen"),
        Until(),
    ]
    runtime = make(cutting, [init(), say("went on"), Own()])
    events: list[Event] = []
    step = await runtime.run(SPEC, "go", on_event=events.append)
    assert runtime.resumed == [None, "S"]
    assert [client.options.fork_session for client in runtime.clients] == [False, False]
    assert (step.ok, step.session_id, step.resumed, step.error) == (True, "S", True, None)
    assert told(events, "text") == ["seen", "went on"]  # the boundary message itself is not told (behaviour 7.5)
    assert step.text == "went on"


# -- words and note in the prompt ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "line", "prompt"),
    [
        ("not the Makefile", "已打断,带着你的话续跑", WITH_WORDS.format(words="not the Makefile")),
        ("", "已打断,继续跑", PLAIN),
    ],
)
async def test_words_and_note_in_the_prompt(make: Make, words: str, line: str, prompt: str) -> None:
    runtime = make([init(), say("seen"), lambda: runtime.interrupt(words), say("unseen"), Until()], [init(), Own()])
    events: list[Event] = []
    step = await runtime.run(SPEC, "go", on_event=events.append)
    assert runtime.resumed == [None, "S"]
    assert runtime.prompts == ["go", prompt]
    assert runtime.clients[0].interrupts == 1
    assert told(events, "text") == ["seen"]
    assert told(events, "retry") == [line]
    assert (step.ok, step.attempts, step.resumed, step.error) == (True, 1, True, None)


@pytest.mark.parametrize("mark", ["副作用", "不是环境故障", "重试", "防御"])
def test_note_says_what_it_must(mark: str) -> None:
    assert mark in NOTE


# -- `attempts` unchanged -----------------------------------------------------------------------------------------


async def test_attempts_unchanged_and_not_limited_by_max_attempts(make: Make) -> None:
    cutting: list[Item] = [init(), lambda: runtime.interrupt("x", now=True), Until()]
    runtime = make(*([cutting] * 8), [init(), Own()], resilience=Calm(max_attempts=1))
    async with asyncio.timeout(WAIT):
        step = await runtime.run(SPEC, "go")
    assert (step.ok, step.attempts) == (True, 1)
    assert runtime.resumed == [None, *["S"] * 8]
    assert [row["attempts"] for row in rows(runtime)] == [1]


async def test_attempts_unchanged_and_nothing_waits_for_the_network(make: Make) -> None:
    runtime = make([init(), lambda: runtime.interrupt("x", now=True), Until()], [init(), Own()], resilience=False)
    async with asyncio.timeout(WAIT):
        assert (await runtime.run(SPEC, "go")).ok


# -- blank message ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("message", ["", "  ", "\n"])
async def test_blank_message(make: Make, message: str) -> None:
    runtime = make([init(), lambda: runtime.interrupt(message, now=True), Until()], [init(), Own()])
    events: list[Event] = []
    assert (await runtime.run(SPEC, "go", on_event=events.append)).ok
    assert runtime.prompts == ["go", PLAIN]
    (retry,) = [event for event in events if event.kind == "retry"]
    assert (retry.text, retry.payload) == ("已打断,继续跑", {"step": "coder", "attempt": 1})


# -- no session id → stop -----------------------------------------------------------------------------------------


def test_no_session_id_stops() -> None:
    cut = Ending(ok=False, error=Runtime.INTERRUPTED)
    rest: dict[str, Any] = {"classify": classify, "retryable": lambda _kind: True, "hands_over": True}
    assert after(cut, session=None, tried=1, limit=6, **rest) == Finish()
    assert after(cut, session="S", tried=6, limit=6, **rest) == GoOn()


async def test_no_session_id_yet_keeps_the_words_and_never_fails_the_step(make: Make) -> None:
    """Rulings R3; the attempt that died before it had a session is tried again, and the words arrive after all."""
    dying: list[Item] = [lambda: runtime.interrupt("early", now=True), ProcessError("ECONNREFUSED", exit_code=1)]
    runtime = make(dying, [init(), Until()], [init(), Own()])
    async with asyncio.timeout(WAIT):
        step = await runtime.run(SPEC, "go")
    assert (step.ok, step.attempts) == (True, 2)
    assert runtime.prompts == ["go", "go", WITH_WORDS.format(words="early")]


# -- from another thread ------------------------------------------------------------------------------------------


async def test_from_another_thread(make: Make) -> None:
    runtime = make([init(), Until()], [init(), Own()])

    def person(event: Event) -> None:
        if event.kind == "system" and len(runtime.clients) == 1:
            asyncio.get_running_loop().run_in_executor(None, lambda: runtime.interrupt("x", now=True))

    async with asyncio.timeout(WAIT):
        assert (await runtime.run(SPEC, "go", on_event=person)).ok


async def test_from_another_thread_at_the_boundary(make: Make) -> None:
    said = asyncio.Event()
    runtime = make([init(), said.set, Until(), say("boundary"), Until()], [init(), Own()])
    running = asyncio.create_task(runtime.run(SPEC, "go"))
    async with asyncio.timeout(WAIT):
        await said.wait()
        (client,) = runtime.clients
        await asyncio.to_thread(runtime.interrupt, "x")
        assert client.interrupts == 0  # cooperative: nothing is cut before the next message
        (gate,) = [item for item in client.script[:3] if isinstance(item, Until)]
        gate.event.set()
        assert (await running).ok
    assert client.interrupts == 1
    assert runtime.prompts[1] == WITH_WORDS.format(words="x")


# -- before start -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("now", [False, True])
async def test_before_start(make: Make, now: bool) -> None:
    runtime = make([UserMessage(content="no session yet"), init(), Until()], [init(), Own()])
    runtime.interrupt("early", now=now)
    events: list[Event] = []
    async with asyncio.timeout(WAIT):
        step = await runtime.run(SPEC, "go", on_event=events.append)
    assert (step.ok, step.session_id) == (True, "S")
    assert told(events, "prompt") == ["no session yet"]
    assert runtime.prompts[1] == WITH_WORDS.format(words="early")


async def test_before_start_the_flag_is_consumed_once(make: Make) -> None:
    """Behaviour 7.8."""
    runtime = make([init(), Until()], [init(), Own()], [init("T"), Own(session="T")])
    runtime.interrupt("early", now=True)
    async with asyncio.timeout(WAIT):
        await runtime.run(SPEC, "one")
        await runtime.run(SPEC, "two")
    assert runtime.prompts == ["one", WITH_WORDS.format(words="early"), "two"]


# -- together with handoff due ------------------------------------------------------------------------------------


async def test_together_with_handoff_due(make: Make) -> None:
    """Behaviour 7.4: handoff-due comes first; the words are not lost and reach the successor."""
    level = {"input_tokens": 160_000}
    full: list[Item] = [init(), say("x", usage=level), lambda: runtime.interrupt("words"), say("boundary"), Until()]
    document: list[Item] = [init(), say("## 现在在做什么\n1\n## 下一步\n2"), Own()]
    successor: list[Item] = [init("T"), say("taken over"), Own(session="T")]
    runtime = make(full, document, successor, [init("T"), say("done"), Own(session="T")], handoff=windowed())
    events: list[Event] = []
    async with asyncio.timeout(WAIT):
        step = await runtime.run(SPEC, "go", on_event=events.append)
    assert (step.ok, step.session_id, step.retired, step.attempts) == (True, "T", ["S"], 1)
    assert [event.payload["phase"] for event in events if event.kind == "handoff"] == ["near", "writing", "done"]
    assert runtime.resumed[0] is None
    assert runtime.resumed[1] == "S"
    assert any("words" in prompt for prompt in runtime.prompts[2:])


# -- words that meet a result (D7) --------------------------------------------------------------------------------


async def test_words_win_over_a_result_in_the_same_instant(make: Make) -> None:
    runtime = make([init(), lambda: runtime.interrupt("more"), Own(total=0.5)], [init(), Own(total=0.5)])
    events: list[Event] = []
    step = await runtime.run(SPEC, "go", on_event=events.append)
    assert runtime.prompts[1] == WITH_WORDS.format(words="more")
    assert step.cost_usd == 0.5
    assert told(events, "result") == ["success", "success"]
    assert runtime.clients[0].interrupts == 0


async def test_an_ask_that_waits_delays_the_interrupt_and_is_not_lost(make: Make) -> None:
    """Behaviour 7.3: while a tool call waits no message comes, so nothing is cut."""
    runtime = make([init(), call("mcp__human__ask"), lambda: runtime.interrupt("x"), Until(), Own()])
    running = asyncio.create_task(runtime.run(SPEC, "go"))
    async with asyncio.timeout(WAIT):
        while not runtime.clients or not runtime._steering.interrupted:  # noqa: ASYNC110 - a turn of the loop
            await asyncio.sleep(0)
        for _ in range(50):
            await asyncio.sleep(0)
    assert runtime.clients[0].interrupts == 0
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
