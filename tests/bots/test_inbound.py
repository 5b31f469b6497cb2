"""Recorded payloads (ids and tokens replaced) and what they mean; kept in tests/payloads/slack."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bots.slack.inbound import (
    FormRequest,
    Me,
    Silence,
    read_command,
    read_event,
    read_interaction,
    read_text,
)
from bridge.model import Inbound, Summons, Words
from tests.fakes.slack_payloads import judge_payload

FOLDER = Path(__file__).parents[1] / "payloads" / "slack"
ME = Me(team="T0TEAM", user="U0BOT", bot="B0BOT")
NOW = 1_700_000_100.5


def cases() -> list[Any]:
    return [pytest.param(json.loads(path.read_text()), id=path.stem) for path in sorted(FOLDER.glob("*.json"))]


def payload(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())["payload"]
    return found


def read(body: Mapping[str, Any]) -> Inbound | FormRequest | Silence:
    if body.get("type") == "event_callback":
        return read_event(body, ME)
    return read_command(body, ME, now=NOW) if "command" in body else read_interaction(body, ME, now=NOW)


def told(heard: Inbound | FormRequest | Silence) -> dict[str, Any]:
    """The value as flat data, for the files."""
    if isinstance(heard, Silence):
        return {"kind": "Silence", "why": heard.name}
    flat: dict[str, Any] = {"kind": type(heard).__name__}
    for field in dataclasses.fields(heard):
        value = getattr(heard, field.name)
        if field.name == "author":
            flat |= {"author": value.id} | ({} if isinstance(heard, Words) else {"name": value.name})
        else:
            flat[field.name] = getattr(value, "key", value)
    return flat


@pytest.mark.parametrize("case", cases())
def test_a_payload_means_what_its_file_says(case: dict[str, Any]) -> None:
    assert told(read(case["payload"])) == case["heard"]


@pytest.mark.parametrize("case", cases())
def test_an_independent_judge_takes_the_payload_for_slacks(case: dict[str, Any]) -> None:
    assert judge_payload(case["payload"]) == []


@pytest.mark.case("DL-5")
@pytest.mark.parametrize("name", ["edited", "unfurled", "deleted", "edited_mention"])
def test_a_change_of_a_message_is_nothing_said(name: str) -> None:
    assert read(payload(name)) is Silence.CHANGE


@pytest.mark.case("DL-6")
def test_a_reply_that_is_also_shown_in_the_channel_is_the_same_reply() -> None:
    broadcast, plain = payload("reply_also_in_channel"), payload("reply")
    plain["event"]["text"] = "done?"
    assert read(broadcast) == read(plain)


@pytest.mark.parametrize("name", ["mention_in_channel", "reply_with_our_name"])
def test_a_mention_that_comes_as_two_events_has_one_id(name: str) -> None:
    message = payload(name)
    mention = {**message, "event_id": "Ev2", "event": {**message["event"], "type": "app_mention"}}
    for field in ("channel_type", "team", "client_msg_id", "blocks"):
        mention["event"].pop(field, None)
    assert read(mention) == read(message)


@pytest.mark.case("TH-6")
def test_a_message_at_the_top_level_belongs_to_no_thread() -> None:
    assert read(payload("channel_talk")) is Silence.ASIDE
    assert isinstance(read(payload("mention_in_channel")), Summons)


@pytest.mark.case("TH-3")
@given(st.from_regex(r"1[0-9]{9}\.[0-9]{6}", fullmatch=True))
def test_the_digits_of_a_thread_come_back_as_they_were(ts: str) -> None:
    body = payload("reply")
    body["event"] |= {"thread_ts": ts}
    heard = read(body)
    assert isinstance(heard, Words)
    assert heard.thread.key == f"T0TEAM/C1GENERAL/{ts}"


@pytest.mark.case("DL-1")
def test_a_redelivery_has_the_same_id_whatever_else_differs() -> None:
    first, again = payload("reply"), payload("reply")
    again |= {"event_id": "Ev9", "event_time": 1_700_000_099}
    one, two = read(first), read(again)
    assert isinstance(one, Words)
    assert isinstance(two, Words)
    assert one.id == two.id


def test_two_messages_in_one_second_have_two_ids() -> None:
    first, second = payload("reply"), payload("reply")
    second["event"]["ts"] = "1700000060.000300"
    one, two = read(first), read(second)
    assert isinstance(one, Words)
    assert isinstance(two, Words)
    assert one.id != two.id


def test_a_form_that_is_sent_again_is_another_delivery() -> None:
    first, second = payload("form"), payload("form")
    second["trigger_id"] = "7.8.jkl"
    ids = {heard.id for heard in (read(first), read(second)) if not isinstance(heard, (Silence, FormRequest))}
    assert len(ids) == 2


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("a <b> c", "a <b> c"),
        ("&amp;lt;tag&amp;gt;", "&lt;tag&gt;"),
        ("&lt;!channel&gt;", "<!channel>"),
        ("<!channel>", "@channel"),
        ("<!subteam^S1|@admins> <!subteam^S2>", "@admins @subteam"),
        ("<!date^1700000000^{date}|14 Nov>", "14 Nov"),
        ("<https://a.example|a.example> <http://b.example>", "https://a.example http://b.example"),
        ("<https://evil.example|https://good.example>", "https://good.example (https://evil.example)"),
        ("<#C1>", "#C1"),
        ("1 < 2 and <@U9>", "1 < 2 and @U9"),
    ],
)
def test_mark_up_becomes_what_its_author_saw(raw: str, text: str) -> None:
    assert read_text(raw, "U0BOT").text == text


plain = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@given(plain)
def test_what_slack_escapes_comes_back(text: str) -> None:
    raw = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert read_text(raw, "U0BOT").text == text.strip()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)


@settings(max_examples=400)
@given(st.sampled_from(cases()), st.data())
def test_no_garbage_in_any_field_ever_raises(case: Any, data: st.DataObject) -> None:
    body = json.loads(json.dumps(case.values[0]["payload"]))
    spots = list(places(body))
    for holder, name in data.draw(st.lists(st.sampled_from(spots), min_size=1, max_size=3)):
        holder[name] = data.draw(json_values)
    heard = read(body)
    assert isinstance(heard, (Silence, FormRequest)) or heard.id


def places(node: Any) -> list[tuple[Any, Any]]:
    if isinstance(node, dict):
        return [spot for name, value in node.items() for spot in [(node, name), *places(value)]]
    if isinstance(node, list):
        return [spot for at, value in enumerate(node) for spot in [(node, at), *places(value)]]
    return []
