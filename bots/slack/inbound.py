"""What Slack delivers, as values of the bridge. Pure: a payload in, a value out, or the reason why there is none.

Keys, made and read in this package only: a place is `TEAM/CHANNEL`, a thread `TEAM/CHANNEL/ROOT_TS`, a message
`TEAM/CHANNEL/TS`, a person `TEAM/USER`. A ts is text and never becomes a number, or its zeros are lost (TH-3).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from bridge.model import (
    Inbound,
    MessageRef,
    Person,
    PersonId,
    PlaceRef,
    Platform,
    Summons,
    Tap,
    ThreadRef,
    Words,
)

SLACK = Platform("slack")
SPOKEN = (None, "file_share", "thread_broadcast", "me_message")
"""Subtypes of messages that are a person's words; every other one reports something about a message or a channel."""
WORDS_BLOCK = "words"
WORDS_INPUT = "words"
"""Where the form that `outbound` makes has what was typed."""


class Silence(StrEnum):
    """Why a payload is nothing for the bridge. All of them are confirmed to Slack and forgotten."""

    OURSELVES = "our own message"
    BOT = "another bot"
    CHANGE = "a change of a message or channel, not words"
    ASIDE = "a channel message that does not begin with our name"
    STRANGER = "a person of another workspace"
    EMPTY = "a form sent with nothing in it"
    LINK = "a button that only opens an address, or none of ours"
    UNKNOWN = "a kind of payload that we do not use"


@dataclass(frozen=True, slots=True, kw_only=True)
class Me:
    """Who we are in the workspace: from `auth.test`."""

    team: str
    user: str
    bot: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormRequest:
    """A pressed button that wants a form opened. It does not reach the bridge; what is typed into the form does."""

    trigger: str
    thread: ThreadRef
    author: Person
    action: str
    prompt: str
    label: str


def place_ref(team: str, channel: str) -> PlaceRef:
    return PlaceRef(SLACK, f"{team}/{channel}")


def thread_ref(team: str, channel: str, root: str) -> ThreadRef:
    return ThreadRef(SLACK, f"{team}/{channel}/{root}")


def person(team: str, user: str, name: str = "") -> Person:
    return Person(id=PersonId(f"{team}/{user}"), name=name)


# -- events -----------------------------------------------------------------------------------------------------


def read_event(payload: Mapping[str, Any], me: Me) -> Inbound | Silence:
    """Read an `event_callback`.

    A message in a thread is `Words`. A message outside one is a `Summons` if it begins with our name, or stands in a
    direct conversation with us. A mention arrives twice, as `message` and as `app_mention`: both give the same `id`.
    """
    event = payload.get("event")
    if not isinstance(event, Mapping):
        return Silence.UNKNOWN
    match event.get("type"):
        case "message" if event.get("subtype") not in SPOKEN or event.get("hidden"):
            return Silence.BOT if event.get("subtype") == "bot_message" else Silence.CHANGE
        case "app_mention" if event.get("edited"):
            return Silence.CHANGE
        case "message" | "app_mention":
            return _spoken(event, me)
    return Silence.UNKNOWN


def _spoken(event: Mapping[str, Any], me: Me) -> Inbound | Silence:
    user, channel, ts = _text(event, "user"), _text(event, "channel"), _text(event, "ts")
    if user == me.user or (me.bot and event.get("bot_id") == me.bot):
        return Silence.OURSELVES
    if event.get("bot_id") or event.get("bot_profile") or not user:
        return Silence.BOT
    if not (channel and ts):
        return Silence.UNKNOWN
    if _text(event, "user_team") not in ("", me.team):
        return Silence.STRANGER
    said = read_text(_text(event, "text"), me.user)
    text = "\n".join((*(said.text and (said.text,)), *_files(event)))
    author, at, key = person(me.team, user), _seconds(ts), f"{me.team}/{channel}/{ts}"
    root = _text(event, "thread_ts")
    if root:
        thread = thread_ref(me.team, channel, root)
        return Words(
            id=key,
            thread=thread,
            message=MessageRef(thread, key),
            author=author,
            text=text,
            at=at,
            mentions_us=said.mentions_us,
            mentions_other=said.mentions_other,
        )
    if said.mentions_us or event.get("channel_type") == "im":
        return Summons(id=key, place=place_ref(me.team, channel), author=author, text=text, at=at)
    return Silence.ASIDE


def _files(event: Mapping[str, Any]) -> list[str]:
    """Say for each file that it did not come along, so that neither person nor agent takes it for read."""
    files = event.get("files")
    named = [file for file in files if isinstance(file, Mapping)] if isinstance(files, list) else []
    return [f"[file {_text(file, 'name') or 'without a name'}: files are not taken yet]" for file in named]


# -- commands, clicks, forms ------------------------------------------------------------------------------------


def read_command(payload: Mapping[str, Any], me: Me, *, now: float) -> Summons | Silence:
    """Read a slash command. It carries no time of its own: `now` is when it came."""
    user, channel, trigger = _text(payload, "user_id"), _text(payload, "channel_id"), _text(payload, "trigger_id")
    if not (user and channel and trigger):
        return Silence.UNKNOWN
    if _text(payload, "team_id") not in ("", me.team):
        return Silence.STRANGER
    return Summons(
        id=f"{me.team}/command/{trigger}",
        place=place_ref(me.team, channel),
        author=person(me.team, user, _text(payload, "user_name")),
        text=read_text(_text(payload, "text"), me.user, keep_mention=True).text,
        at=now,
        private=_text(payload, "response_url"),
    )


def read_interaction(payload: Mapping[str, Any], me: Me, *, now: float) -> Inbound | FormRequest | Silence:
    """Read a click or a sent form. Only our own buttons count: their `action_id` says so."""
    match payload.get("type"):
        case "block_actions":
            return _click(payload, me)
        case "view_submission":
            return _form(payload, me, now=now)
    return Silence.UNKNOWN


def _click(payload: Mapping[str, Any], me: Me) -> Tap | FormRequest | Silence:
    user, container, message = (_mapping(payload, name) for name in ("user", "container", "message"))
    actions = payload.get("actions")
    action = actions[0] if isinstance(actions, list) and actions and isinstance(actions[0], Mapping) else {}
    said = read_value(_text(action, "value"))
    channel = _text(container, "channel_id") or _text(_mapping(payload, "channel"), "id")
    ts = _text(container, "message_ts") or _text(message, "ts")
    if said is None or action.get("type") != "button" or not (channel and ts and _text(user, "id")):
        return Silence.LINK
    if _text(user, "team_id") not in ("", me.team):
        return Silence.STRANGER
    root = _text(container, "thread_ts") or _text(message, "thread_ts") or ts
    thread, author = thread_ref(me.team, channel, root), person(me.team, _text(user, "id"), _name(user))
    if said.prompt:
        label = _text(_mapping(action, "text"), "text")
        trigger = _text(payload, "trigger_id")
        return FormRequest(
            trigger=trigger, thread=thread, author=author, action=said.action, prompt=said.prompt, label=label
        )
    stamp = _text(action, "action_ts")
    key = f"{me.team}/{channel}/{ts}/{_text(user, 'id')}/{stamp or _text(payload, 'trigger_id')}"
    return Tap(id=key, thread=thread, author=author, action=said.action, at=_seconds(stamp))


def _form(payload: Mapping[str, Any], me: Me, *, now: float) -> Tap | Silence:
    user, view = _mapping(payload, "user"), _mapping(payload, "view")
    meant = read_private(_text(view, "private_metadata"))
    if meant is None or not _text(user, "id"):
        return Silence.UNKNOWN
    if _text(user, "team_id") not in ("", me.team):
        return Silence.STRANGER
    typed = _mapping(_mapping(_mapping(_mapping(view, "state"), "values"), WORDS_BLOCK), WORDS_INPUT)
    text = _text(typed, "value").strip()
    if not text:
        return Silence.EMPTY
    # A form that was refused stays open and can be sent again: each sending is a delivery of its own.
    key = f"{me.team}/form/{_text(view, 'id')}/{_text(payload, 'trigger_id') or _text(view, 'hash')}"
    author = person(me.team, _text(user, "id"), _name(user))
    return Tap(id=key, thread=ThreadRef(SLACK, meant.thread), author=author, action=meant.action, text=text, at=now)


# -- what our own buttons and forms carry -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Pressed:
    """What a button's `value` said. `prompt` is not empty where it opens a form."""

    action: str
    prompt: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Meant:
    """What a form was opened for."""

    action: str
    thread: str


def read_value(value: str) -> Pressed | None:
    """Read the `value` of a button that `outbound` made: the action, and behind a line break the prompt of its form."""
    action, _, prompt = value.partition("\n")
    return Pressed(action=action, prompt=prompt) if action else None


def read_private(text: str) -> Meant | None:
    """Read the `private_metadata` of a form that `outbound` made; None for any other."""
    action, _, thread = text.partition("\n")
    return Meant(action=action, thread=thread) if action and thread.count("/") == 2 else None


# -- text -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A person's text as they saw it when they typed it."""

    text: str
    mentions_us: bool
    mentions_other: bool


_MARK = re.compile(r"<((?:[@#!]|[A-Za-z][A-Za-z0-9+.-]*:)[^<>]*)>")
_ENTITY = re.compile(r"&(amp|lt|gt);")
_CHARACTER = {"amp": "&", "lt": "<", "gt": ">"}


def read_text(raw: str, me: str, *, keep_mention: bool = False) -> Said:
    """Undo Slack's mark-up: `&amp;`, `<@U…|name>`, `<https://…|label>`. Our own name at the start is taken off.

    Args:
        raw: as Slack delivered it.
        me: our own user id.
        keep_mention: leave our name in (a slash command is addressed to us anyway).
    """
    first = re.match(r"\s*<@([A-Z0-9]+)(?:\|[^<>]*)?>", raw)  # words *to* somebody begin with the name
    mentions_other = first is not None and first[1] != me
    ours = re.match(rf"\s*<@{re.escape(me)}(?:\|[^<>]*)?>[\s,:]*", raw)
    if ours and not keep_mention:
        raw = raw[ours.end() :]
    text = _ENTITY.sub(lambda found: _CHARACTER[found[1]], _MARK.sub(lambda found: _plain(found[1]), raw))
    return Said(text=text.strip(), mentions_us=ours is not None, mentions_other=mentions_other)


def _plain(mark: str) -> str:
    target, _, label = mark.partition("|")
    match target[:1]:
        case "@":
            return "@" + (label.removeprefix("@") or target[1:])
        case "#":
            return "#" + (label.removeprefix("#") or target[1:])
        case "!":
            return label or "@" + target[1:].partition("^")[0]
    address = target.removeprefix("mailto:")
    return address if not label or address in (label, f"http://{label}", f"https://{label}") else f"{label} ({address})"


# -- small readers ----------------------------------------------------------------------------------------------


def _text(source: Mapping[str, Any], name: str) -> str:
    value = source.get(name)
    return value if isinstance(value, str) else ""


def _mapping(source: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = source.get(name)
    return value if isinstance(value, Mapping) else {}


def _name(user: Mapping[str, Any]) -> str:
    return _text(user, "username") or _text(user, "name")


def _seconds(stamp: str) -> float:
    try:
        return float(stamp)
    except ValueError:
        return 0.0
