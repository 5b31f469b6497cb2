"""Bytes and values: what encodes decodes, and what cannot be explained is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.commands import NAMES, Answer, Command, Hold, Interrupt, Say
from bridge.errors import BadMessageError
from bridge.model import (
    Inbound,
    MessageRef,
    News,
    Person,
    PersonId,
    PlaceRef,
    Platform,
    Posted,
    PostRef,
    RunId,
    RunRecord,
    Settled,
    Summons,
    Tap,
    ThreadRef,
    Words,
)
from bridge.wire import (
    INBOUNDS,
    decode_command,
    decode_inbound,
    decode_news,
    decode_posted,
    decode_record,
    decode_settled,
    encode_command,
    encode_inbound,
    encode_news,
    encode_posted,
    encode_record,
    encode_settled,
)

SAMPLES = Path(__file__).parent.parent / "payloads" / "wire"

# -- any value --------------------------------------------------------------------------------------------------

words = st.text(max_size=40)
floats = st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | floats | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)
payloads = st.dictionaries(words, json_values, max_size=4)
people = st.builds(Person, id=words.map(PersonId), name=words)
threads = st.builds(ThreadRef, words.map(Platform), words)
places = st.builds(PlaceRef, words.map(Platform), words)
messages = st.builds(MessageRef, threads, words)
posts = st.builds(PostRef, threads, words)

BY_NAME: dict[str, st.SearchStrategy[Any]] = {
    "id": words,
    "by": people,
    "at": floats,
    "message": st.none() | messages,
    "fence": st.integers(0, 2**40),
    "ask": words,
    "text": words,
    "reason": words,
    "question": words,
}
commands = st.one_of(
    *(st.builds(cls, **{each.name: BY_NAME[each.name] for each in fields(cls)}) for cls in get_args(Command))
)
inbounds = (
    st.builds(
        Words,
        id=words,
        thread=threads,
        message=messages,
        author=people,
        text=words,
        at=floats,
        mentions_us=st.booleans(),
        mentions_other=st.booleans(),
    )
    | st.builds(Tap, id=words, thread=threads, author=people, action=words, text=words, at=floats)
    | st.builds(Summons, id=words, place=places, author=people, text=words, at=floats, private=words)
)
news_items = st.builds(
    News,
    seq=st.integers(1, 2**53),
    fence=st.integers(0, 2**40),
    at=floats,
    kind=st.text(min_size=1, max_size=10),
    text=words,
    tool=words,
    payload=payloads,
)
records = st.builds(
    RunRecord,
    run=words.map(RunId),
    thread=st.none() | threads,
    place=places,
    request=words,
    workspace=words,
    folder=words,
    starter=people,
    created=floats,
    options=payloads,
)
posteds = st.builds(Posted, name=words, once=words, post=st.none() | posts, digest=words, at=floats)
settleds = st.builds(
    Settled, ask=words, by=people, how=st.sampled_from(["answered", "declined"]), text=words, at=floats
)


@given(news_items)
def test_news_come_back_as_they_were(news: News) -> None:
    assert decode_news(encode_news(news)) == news


@given(commands)
def test_commands_come_back_as_they_were(command: Command) -> None:
    assert decode_command(encode_command(command)) == command


@given(inbounds)
def test_what_people_do_comes_back_as_it_was(inbound: Inbound) -> None:
    assert decode_inbound(encode_inbound(inbound)) == inbound


@given(records)
def test_records_come_back_as_they_were(record: RunRecord) -> None:
    assert decode_record(encode_record(record)) == record


@given(posteds, settleds)
def test_slots_and_settlements_come_back_as_they_were(posted: Posted, settled: Settled) -> None:
    assert decode_posted(encode_posted(posted)) == posted
    assert decode_settled(encode_settled(settled)) == settled


@pytest.mark.case("TH-3")
def test_a_thread_key_that_ends_in_zeros_keeps_them() -> None:
    thread = ThreadRef(Platform("chat"), "T1/C1/1700000000.001700")
    posted = Posted(name="card", once="x", post=PostRef(thread, "1700000000.100000"))

    back = decode_posted(encode_posted(posted))

    assert back.post is not None
    assert (back.post.thread.key, back.post.key) == ("T1/C1/1700000000.001700", "1700000000.100000")


# -- what is refused --------------------------------------------------------------------------------------------

DECODERS: list[Callable[[bytes], Any]] = [
    decode_news,
    decode_command,
    decode_inbound,
    decode_record,
    decode_posted,
    decode_settled,
]

SAY = {"v": 1, "do": "say", "id": "m1", "by": {"id": "T1/U1"}, "at": 5.0, "text": "hello"}
NEWS = {"v": 1, "seq": 3, "fence": 1, "at": 5.0, "kind": "text"}


@pytest.mark.parametrize("decode", DECODERS)
@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"null",
        b"[]",
        b"7",
        b'"x"',
        b"{",
        b"\xff\xfe",
        b"{}",
        b'{"v":1}',
        b'{"v":true}',
        b"[" * 100_000,
        b'{"v":1e999}',
    ],
    ids=repr,
)
def test_garbage_is_a_bad_message(decode: Callable[[bytes], Any], raw: bytes) -> None:
    with pytest.raises(BadMessageError):
        decode(raw)


@given(st.binary(max_size=60) | payloads.map(lambda body: json.dumps({"v": 1, **body}).encode()))
def test_nothing_but_a_bad_message_comes_of_garbage(raw: bytes) -> None:
    for decode in DECODERS:
        with pytest.raises(BadMessageError):
            decode(raw)


@pytest.mark.parametrize("version", [0, 2, 99, "1", None, True, 1.5])
def test_a_version_that_we_do_not_speak_is_refused(version: object) -> None:
    with pytest.raises(BadMessageError, match="wire version"):
        decode_command(json.dumps({**SAY, "v": version}).encode())


def test_a_command_that_we_do_not_know_is_refused() -> None:
    with pytest.raises(BadMessageError, match="'dance' is unknown"):
        decode_command(json.dumps({**SAY, "do": "dance"}).encode())


@pytest.mark.parametrize("name", ["id", "by", "at", "text", "do"])
def test_who_and_what_have_no_default(name: str) -> None:
    body = {key: value for key, value in SAY.items() if key != name}

    with pytest.raises(BadMessageError):
        decode_command(json.dumps(body).encode())


def test_a_person_without_identity_is_refused() -> None:
    with pytest.raises(BadMessageError, match="by: id is missing"):
        decode_command(json.dumps({**SAY, "by": {"name": "alice"}}).encode())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("by", "T1/U1"),
        ("by", None),
        ("at", "soon"),
        ("at", True),
        ("text", 7),
        ("text", None),
        ("id", ["m1"]),
        ("message", "m"),
    ],
)
def test_a_field_of_another_type_is_refused(name: str, value: object) -> None:
    with pytest.raises(BadMessageError, match=name):
        decode_command(json.dumps({**SAY, name: value}).encode())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("seq", 0),
        ("seq", -1),
        ("seq", 1.5),
        ("seq", True),
        ("fence", -1),
        ("kind", ""),
        ("payload", []),
        ("at", 10**400),
    ],
)
def test_news_with_an_impossible_field_are_refused(name: str, value: object) -> None:
    with pytest.raises(BadMessageError):
        decode_news(json.dumps({**NEWS, name: value}).encode())


def test_an_error_repeats_nothing_that_was_said() -> None:
    raw = json.dumps({**SAY, "by": None, "text": "my password is swordfish"}).encode()

    with pytest.raises(BadMessageError) as caught:
        decode_command(raw)

    assert "swordfish" not in str(caught.value)


# -- what is let through ----------------------------------------------------------------------------------------


def test_fields_from_tomorrow_are_dropped() -> None:
    raw = json.dumps({**SAY, "mood": "sunny", "by": {"id": "T1/U1", "name": "u", "shoe": 44}}).encode()

    assert decode_command(raw) == Say(id="m1", by=Person(id=PersonId("T1/U1"), name="u"), at=5.0, text="hello")


def test_a_kind_from_tomorrow_is_news_all_the_same() -> None:
    assert decode_news(json.dumps({**NEWS, "kind": "weather"}).encode()).kind == "weather"


def test_half_a_surrogate_pair_survives() -> None:
    news = News(seq=1, fence=1, at=0.0, kind="text", text="\ud83d!", payload={"name": "\udc00"})

    assert decode_news(encode_news(news)) == news


def test_a_figure_that_is_none_becomes_null_deep_in_a_payload() -> None:
    news = News(seq=1, fence=1, at=0.0, kind="x", payload={"a": [float("nan"), {"b": float("inf")}]})

    assert decode_news(encode_news(news)).payload == {"a": [None, {"b": None}]}


def test_every_command_and_every_inbound_has_a_name() -> None:
    assert sorted(NAMES) == ["answer", "consult", "decline", "end", "hold", "interrupt", "resume", "say"]
    assert sorted(INBOUNDS) == ["summons", "tap", "words"]


# -- stored samples ---------------------------------------------------------------------------------------------

ALICE = Person(id=PersonId("T1/UALICE"), name="alice")
THREAD = ThreadRef(Platform("slack"), "T1/C1/1700000000.001700")
STORED: dict[str, Any] = {
    "v1-news-text": News(
        seq=7,
        fence=2,
        at=1700000000.5,
        kind="text",
        text="Räuber — 你好",
        payload={"label": "Work#round2", "subagent": False, "context": 34000},
    ),
    "v1-command-answer": Answer(
        id="T1/C1/1700000001.000100",
        by=ALICE,
        at=1700000001.0001,
        message=MessageRef(THREAD, "T1/C1/1700000001.000100"),
        fence=2,
        ask="q1",
        text="SQLite",
    ),
    "v1-command-hold": Hold(id="tap-1", by=ALICE, at=1700000002.0),
    "v1-command-interrupt": Interrupt(id="m-2", by=ALICE, at=1700000003.0, text="use tabs"),
    "v1-inbound-words": Words(
        id="T1/C1/1700000001.000100",
        thread=THREAD,
        message=MessageRef(THREAD, "T1/C1/1700000001.000100"),
        author=ALICE,
        text="and add a test",
        at=1700000001.0001,
    ),
    "v1-inbound-tap": Tap(id="tap-1", thread=THREAD, author=ALICE, action="answer:k3f9qa:2:q1:0", at=1700000002.0),
    "v1-inbound-summons": Summons(
        id="T1/command/1.2.3",
        place=PlaceRef(Platform("slack"), "T1/C1"),
        author=ALICE,
        text="write primes",
        at=1700000000.0,
    ),
    "v1-record": RunRecord(
        run=RunId("k3f9qa"),
        thread=THREAD,
        place=PlaceRef(Platform("slack"), "T1/C1"),
        request="write primes",
        workspace="site",
        folder="/data/runs/k3f9qa",
        starter=ALICE,
        created=1700000000.0,
        options={"budget": 5.0, "new": True},
    ),
    "v1-posted": Posted(
        name="card", once="k3f9qa/card", post=PostRef(THREAD, "1700000000.001700"), digest="abc", at=1700000000.0017
    ),
    "v1-settled": Settled(ask="k3f9qa/2/q1", by=ALICE, how="answered", text="SQLite", at=1700000002.0),
}


def decoder_of(name: str) -> Callable[[bytes], Any]:
    kind = name.split("-")[1]
    return {
        "news": decode_news,
        "command": decode_command,
        "inbound": decode_inbound,
        "record": decode_record,
        "posted": decode_posted,
        "settled": decode_settled,
    }[kind]


@pytest.mark.parametrize("name", sorted(STORED))
def test_stored_samples_of_every_released_version_still_decode(name: str) -> None:
    assert decoder_of(name)((SAMPLES / f"{name}.json").read_bytes()) == STORED[name]


def test_every_stored_sample_is_looked_at() -> None:
    assert sorted(path.stem for path in SAMPLES.glob("*.json")) == sorted(STORED)
