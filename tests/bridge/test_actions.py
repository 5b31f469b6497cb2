"""Tokens of buttons: what encodes decodes, and nothing else does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.actions import Action, Choose, InWords, OnRun, PickAnswer, PickMail, Skip, decode, encode, note_of
from bridge.model import RunId

parts = st.text(alphabet="abcdefghijklmnopqrstuvwxyz0123456789", min_size=1, max_size=12)
runs = parts.map(RunId)
numbers = st.integers(0, 999_999_999)
actions = st.one_of(
    st.builds(OnRun, verb=st.sampled_from(["hold", "continue", "end", "oracle"]), run=runs),
    st.builds(Choose, run=runs, fence=numbers, ask=parts, option=numbers),
    st.builds(InWords, run=runs, fence=numbers, ask=parts),
    st.builds(Skip, run=runs, fence=numbers, ask=parts),
    st.builds(PickAnswer, run=runs, fence=numbers, ask=parts, note=parts),
    st.builds(PickMail, run=runs, note=parts),
)


@pytest.mark.parametrize(
    "token",
    [
        "",
        "hold",
        "hold:",
        "hold:k3f9qa:x",
        "dance:k3f9qa",
        "answer:k3f9qa:1:q1",
        "answer:k3f9qa:x:q1:0",
        "answer:k3f9qa:-1:q1:0",
        "answer:k3f9qa:1:q1:01",
        "answer:k3f9qa:1:q1:²",
        "answer:k3f9qa:1:q1:0:9",
        "words:k3f9qa:1",
        "skip:k3f9qa:1:q1:x",
        "mail:k3f9qa:a/b",
        "hold:" + "x" * 300,
        "hold:k3 f9",
        "\x00",
    ],
)
def test_garbage_is_no_action(token: str) -> None:
    assert decode(token) is None


@given(st.text(max_size=60))
def test_any_text_decodes_or_does_not(token: str) -> None:
    action = decode(token)

    assert action is None or decode(encode(action)) == action


@given(actions)
def test_what_encodes_decodes(action: Action) -> None:
    assert decode(encode(action)) == action


@given(actions)
def test_tokens_are_short(action: Action) -> None:
    assert len(encode(action)) <= 100


def test_tokens_that_stand_in_old_threads_are_still_read() -> None:
    run = RunId("k3f9qa")

    assert decode("stop:k3f9qa") == decode("hold:k3f9qa") == OnRun(verb="hold", run=run)
    assert decode("answer:k3f9qa:2:q1:0") == Choose(run=run, fence=2, ask="q1", option=0)
    assert decode("words:k3f9qa:2:q1") == InWords(run=run, fence=2, ask="q1")
    assert decode("skip:k3f9qa:2:q1") == Skip(run=run, fence=2, ask="q1")
    assert decode("pick:k3f9qa:2:q1:abc") == PickAnswer(run=run, fence=2, ask="q1", note="abc")
    assert decode("mail:k3f9qa:abc") == PickMail(run=run, note="abc")


@pytest.mark.parametrize("part", ["", "a:b", "a/b", "ä", "a\nb"])
def test_what_no_run_is_called_is_not_encoded(part: str) -> None:
    with pytest.raises(ValueError, match="not an action"):
        encode(PickMail(run=RunId("k3f9qa"), note=part))


def test_a_note_is_the_same_for_a_message_that_comes_again() -> None:
    assert note_of("T1/C1/1700000000.001700") == note_of("T1/C1/1700000000.001700") != note_of("T1/C1/1700000000.0017")
    assert decode(encode(PickMail(run=RunId("a"), note=note_of("T1/C1/1")))) is not None
