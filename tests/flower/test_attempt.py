"""One attempt: the fold of its messages, and what people want of it. No program, no clock."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable
from typing import Any

import pytest
from claude_agent_sdk import (
    AssistantMessage,
    ResultMessage,
    SystemMessage,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)
from hypothesis import given
from hypothesis import strategies as st

from flower.core.attempt import Fold
from flower.core.gates import tool_gate, turn_stop
from flower.core.next_move import INTERRUPTED, Ending
from flower.core.steering import Steering


def fold(**kw: Any) -> Fold:
    return Fold(prompt="mine", price=kw.pop("price", lambda session, total: total), **kw)


def assistant(*blocks: Any, **kw: Any) -> AssistantMessage:
    return AssistantMessage(content=list(blocks), model=kw.pop("model", "m"), **kw)


def result(**kw: Any) -> ResultMessage:
    facts = {"subtype": "success", "duration_ms": 1, "duration_api_ms": 1, "is_error": False, "num_turns": 2}
    return ResultMessage(**{**facts, "session_id": "S", "total_cost_usd": 0.25, **kw})


def took(*messages: Any, **kw: Any) -> Fold:
    folded = fold(**kw)
    for message in messages:
        folded.take(message)
    return folded


# -- sessions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "message",
    [
        SystemMessage(subtype="init", data={"session_id": "S"}),
        assistant(TextBlock("a"), session_id="S"),
        result(),
    ],
    ids=lambda message: type(message).__name__,
)
def test_a_session_is_known_by_the_first_message_that_names_it(message: Any) -> None:
    folded = fold()
    assert folded.new_session(UserMessage(content="go")) is None
    assert folded.new_session(message) == "S"
    assert folded.new_session(message) is None


def test_another_session_is_news_again() -> None:
    folded = fold(session="S")
    assert folded.new_session(assistant(session_id="T")) == "T"
    assert folded.session == "T"


# -- text, errors, level ------------------------------------------------------------------------------------------


def test_only_the_main_threads_prose_is_collected() -> None:
    folded = took(
        UserMessage(content="a prompt"),
        assistant(TextBlock("one")),
        assistant(TextBlock("of a subagent"), parent_tool_use_id="t"),
        assistant(TextBlock("lost"), model="<synthetic>"),
        assistant(TextBlock("two")),
    )
    assert folded.texts == ["one", "two"]
    assert folded.errors == ["lost"]


def test_the_level_is_the_main_threads_highest() -> None:
    folded = took(
        assistant(TextBlock("a"), usage={"input_tokens": 10}),
        assistant(TextBlock("b"), usage={"input_tokens": 7}),
        assistant(TextBlock("c"), usage={"input_tokens": 90}, parent_tool_use_id="t"),
    )
    assert folded.level.tokens == 10


def test_it_is_busy_while_a_call_of_the_main_thread_has_no_result() -> None:
    folded = took(
        assistant(ToolUseBlock("t1", "Bash", {}), ToolUseBlock("t2", "Bash", {})),
        assistant(ToolUseBlock("t3", "Bash", {}), parent_tool_use_id="t1"),
        UserMessage(content=[ToolResultBlock("t1", "x")]),
    )
    assert folded.calls == {"t2"}
    folded.take(result())
    assert folded.calls == set()


# -- results ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "own"),
    [
        ({"user_message_uuids": ["other", "mine"]}, True),
        ({"user_message_uuid": "mine"}, True),
        ({"user_message_uuids": ["other"]}, False),
        ({"user_message_uuids": []}, True),
        ({}, True),
        ({"origin": {"kind": "task-notification"}}, False),
        ({"origin": {"kind": "task-notification"}, "user_message_uuids": ["mine"]}, True),
    ],
)
def test_the_attempt_ends_with_the_result_of_its_own_prompt_and_books_the_others(
    facts: dict[str, Any], own: bool
) -> None:
    folded = took(result(**facts))
    assert (folded.result is not None) is own
    assert (folded.cost_usd, folded.num_turns) == (0.25, 2)


def test_a_result_is_told_with_what_it_cost_and_not_with_the_sum_of_its_session() -> None:
    (event,) = fold(price=lambda session, total: total - 0.2).take(result())
    assert event.payload["cost_usd"] == pytest.approx(0.05)


def test_a_result_without_a_cost_books_none() -> None:
    def price(session: str, total: float) -> float:
        raise AssertionError("there is nothing to price")

    assert took(result(total_cost_usd=None), price=price).cost_usd == 0.0


def test_after_a_cut_only_results_are_told() -> None:
    folded = fold(cut=True)
    assert folded.take(assistant(TextBlock("partial"))) == []
    assert folded.take(UserMessage(content=[TextBlock("[Request interrupted by user]")])) == []
    assert [event.kind for event in folded.take(result(is_error=True))] == ["result"]
    assert folded.texts == []


@pytest.mark.parametrize(
    ("messages", "ending"),
    [
        ([result()], Ending(ok=True)),
        ([], Ending(ok=False, error="the program ended without a result")),
        ([assistant(TextBlock("gone"), model="<synthetic>")], Ending(ok=False, error="gone", errors=("gone",))),
        (
            [
                assistant(TextBlock("API Error: 529"), model="<synthetic>", error="server_error"),
                result(is_error=True, api_error_status=529, terminal_reason="api_error"),
            ],
            Ending(
                ok=False,
                error="API Error: 529",
                status=529,
                kind="server_error",
                reason="api_error",
                errors=("API Error: 529",),
            ),
        ),
        (
            [result(is_error=True, subtype="error_max_turns", errors=["Reached maximum number of turns (3)"])],
            Ending(ok=False, error="Reached maximum number of turns (3) [error_max_turns]", kind="error_max_turns"),
        ),
        (
            [result(is_error=True, subtype="success", result="Not logged in")],
            Ending(ok=False, error="Not logged in [success]", kind="success"),
        ),
        (
            [assistant(TextBlock("one hiccup"), model="<synthetic>"), result()],
            Ending(ok=True),
        ),
    ],
)
def test_how_an_attempt_ended_is_read_from_its_messages(messages: list[Any], ending: Ending) -> None:
    assert took(*messages).ending() == ending


def test_the_first_exception_is_how_it_ended_whatever_the_result_says() -> None:
    folded = took(result())
    folded.fail(ValueError("sink"))
    folded.fail(OSError("later"))
    assert folded.ending() == Ending(ok=False, error="ValueError: sink")


messages = st.one_of(
    st.builds(lambda text: assistant(TextBlock(text)), st.text()),
    st.builds(lambda text: assistant(TextBlock(text), parent_tool_use_id="t"), st.text()),
    st.builds(lambda text: assistant(TextBlock(text), model="<synthetic>"), st.text()),
    st.builds(lambda total: result(total_cost_usd=total, user_message_uuids=["other"]), st.floats(0, 10)),
    st.builds(lambda name: assistant(ToolUseBlock(name, "Bash", {})), st.sampled_from("abc")),
    st.builds(lambda name: UserMessage(content=[ToolResultBlock(name, "")]), st.sampled_from("abc")),
)


@given(st.lists(messages), st.lists(messages))
def test_a_cut_freezes_what_was_said_but_not_what_it_cost(before: list[Any], after: list[Any]) -> None:
    whole, cut = took(*before), took(*before)
    cut.cut = INTERRUPTED
    for message in after:
        whole.take(message)
        cut.take(message)
    reference = took(*before)
    assert (cut.texts, cut.errors, cut.level) == (reference.texts, reference.errors, reference.level)
    assert (cut.cost_usd, cut.num_turns) == (whole.cost_usd, whole.num_turns)


# -- the tool_gate ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ask", "held"),
    [
        (lambda steering: None, False),
        (lambda steering: steering.interrupt("x", now=False), True),
        (lambda steering: steering.end(), True),
        (lambda steering: (steering.interrupt("x", now=True), steering.take()), False),
    ],
    ids=["nothing", "an interrupt", "an end", "an interrupt that was taken up"],
)
@pytest.mark.case("SS-3")
async def test_no_tool_begins_once_people_want_a_cut(ask: Callable[[Steering], object], held: bool) -> None:
    steering = Steering()
    (matcher,) = tool_gate(lambda: steering.wanted, "interrupted")["PreToolUse"]
    ask(steering)
    (hook,) = matcher.hooks
    anything: Any = {}
    output: Any = await hook(anything, "t1", {"signal": None})
    denied = {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": "interrupted",
    }
    assert output == ({"hookSpecificOutput": denied} if held else {})


@pytest.mark.parametrize(
    ("tool", "held"),
    [
        *(("Bash", True), ("Write", True), ("Agent", True), ("mcp__human__inbox", True), ("NotebookRead", True)),
        *(("Read", False), ("Glob", False), ("Grep", False), ("TodoWrite", False)),
    ],
)
def test_what_only_looks_is_not_held_back(tool: str, held: bool) -> None:
    (matcher,) = tool_gate(lambda: True, "x")["PreToolUse"]
    assert matcher.matcher is not None
    assert bool(re.search(matcher.matcher, tool)) is held
    (strict,) = tool_gate(lambda: True, "x", lookers=True)["PreToolUse"]
    assert strict.matcher is None


async def test_a_turn_is_ended_behind_the_results_that_were_read() -> None:
    answered: set[str] = set()
    (matcher,) = turn_stop(lambda: "t1" in answered, answered, "why")["PostToolBatch"]
    (hook,) = matcher.hooks
    batch: Any = {"tool_calls": [{"tool_use_id": "t1"}]}
    asyncio.get_running_loop().call_soon(answered.add, "t1")
    assert await hook(batch, None, {"signal": None}) == {"continue_": False, "stopReason": "why"}
    assert await hook({**batch, "agent_id": "a"}, None, {"signal": None}) == {}
    nothing: Any = {"tool_calls": None}
    assert await hook(nothing, None, {"signal": None}) == {"continue_": False, "stopReason": "why"}


# -- steering -----------------------------------------------------------------------------------------------------


def test_nothing_asked_for_means_no_cut() -> None:
    steering = Steering()
    assert not steering.wants_cut(boundary=True, busy=True)
    assert steering.take() is None


@pytest.mark.parametrize(
    ("now", "boundary", "cut"), [(False, False, False), (False, True, True), (True, False, True), (True, True, True)]
)
def test_an_interrupt_waits_for_a_boundary_unless_it_is_to_be_now(now: bool, boundary: bool, cut: bool) -> None:
    steering = Steering()
    steering.interrupt("words", now=now)
    assert steering.wants_cut(boundary=boundary, busy=False) is cut


@pytest.mark.parametrize(("boundary", "busy", "cut"), [(False, False, False), (True, False, True), (False, True, True)])
def test_an_end_waits_for_a_boundary_unless_a_tool_is_waited_for(boundary: bool, busy: bool, cut: bool) -> None:
    steering = Steering()
    steering.end()
    assert steering.wants_cut(boundary=boundary, busy=busy) is cut


def test_an_interrupt_is_taken_once() -> None:
    steering = Steering()
    steering.interrupt("words", now=True)
    assert steering.take() == "words"
    assert steering.take() is None
    assert not steering.wants_cut(boundary=True, busy=True)


def test_words_that_come_before_the_cut_are_kept_together_and_none_twice() -> None:
    steering = Steering()
    for words, now in (("one", False), ("two", False), (" one ", True), ("", False)):
        steering.interrupt(words, now=now)
    assert steering.wants_cut(boundary=False, busy=False)
    assert steering.take() == "one\n\ntwo"


def test_a_stop_without_words_has_none() -> None:
    steering = Steering()
    steering.interrupt("", now=False)
    assert steering.interrupted
    assert steering.take() == ""


async def test_who_listens_hears_of_it_on_the_loops_thread() -> None:
    steering, heard = Steering(), asyncio.Event()
    threads: list[int] = []

    def listen() -> None:
        threads.append(threading.get_ident())
        heard.set()

    with steering.heard(listen):
        await asyncio.to_thread(steering.interrupt, "words", now=True)
        async with asyncio.timeout(5):
            await heard.wait()
    steering.end()
    await asyncio.sleep(0)
    assert threads == [threading.get_ident()]


async def test_a_listener_of_a_closed_loop_disturbs_nobody() -> None:
    steering = Steering()

    async def listen_and_leave() -> None:
        steering._listeners.append((asyncio.get_running_loop(), list))

    await asyncio.to_thread(asyncio.run, listen_and_leave())
    steering.end()
    assert steering.ended
