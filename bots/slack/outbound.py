"""Cards of the bridge as Slack messages: `text` and Block Kit within every published limit. Pure.

The body is mrkdwn in `section` blocks (`mrkdwn.py`); `verbatim` keeps Slack from reading names out of plain text.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from bots.slack.inbound import WORDS_BLOCK, WORDS_INPUT, FormRequest
from bots.slack.mrkdwn import (
    Names,
    Pen,
    Piece,
    cut,
    cut_pieces,
    escape,
    is_user,
    literal,
    one_line,
    ring,
    sections,
    spans_in,
)
from bridge.errors import ChatRefusedError
from bridge.model import Abilities, Button, Card, PersonId, Sign
from bridge.rich import Block, Break, Mention, Paragraph, Text, coded

MESSAGE = 10_000
"""Slack refuses messages whose blocks together hold more than about 12,000 characters; it publishes no figure."""
BLOCKS = 50
ACTIONS = 25
LABEL = 75
VALUE = 2_000
SUMMARY = 300
NOTE = 1_000
PROMPT = 300
TYPED = 3_000
ONCE = 240
TITLE = 24

ABILITIES = Abilities(
    post_limit=6_000,
    edit_limit=6_000,
    buttons=ACTIONS + 2,
    label_limit=30,
    forms=True,
    whispers=True,
    signs=True,
    lookup=True,
    post_every=1.0,
    post_burst=3,
    edit_every=1.2,
    edit_burst=5,
)
"""One post a second and channel with short bursts; `chat.update` is Tier 3, fifty a minute in the whole workspace."""

RULES = 10
"""Most lines across a message that are drawn as such."""

SIGNS: Mapping[Sign, str] = {"received": "eyes", "delivered": "white_check_mark", "refused": "no_entry"}
EVENT_TYPE = "flower_post"


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrases:
    """The few words that the adapter itself says. All others come in cards."""

    received: str
    away: str
    away_words: str
    form_failed: str
    empty_form: str
    send: str
    cancel: str


EN = Phrases(
    received="Received: {text}",
    away="Could not take it: the state store does not answer. Nothing was started or changed; please try again.",
    away_words="Could not take your message: the state store does not answer. Nobody read it; please send it again.",
    form_failed="The form could not be opened. Please press the button again, or write in the thread.",
    empty_form="There is nothing in it yet.",
    send="Send",
    cancel="Cancel",
)
ZH = Phrases(
    received="已收到：{text}",
    away="没能收下：状态存储没有响应。什么都没有启动或改变，请再试一次。",
    away_words="没能收下你的消息：状态存储没有响应。没有人读到它，请再发一次。",
    form_failed="表单没能打开。请再按一次按钮，或者直接在消息列里回复。",
    empty_form="还没有填写内容。",
    send="发送",
    cancel="取消",
)
PHRASES: Mapping[str, Phrases] = {"en": EN, "zh": ZH}


# -- messages ---------------------------------------------------------------------------------------------------


def render(card: Card, *, once: str, names: Names | None = None, zones: bool = True) -> dict[str, Any]:
    """Make the arguments `text`, `blocks` and `metadata` of a message.

    Args:
        card: what should stand there.
        once: the post's key; carried in the metadata and in the first block's id, where `find` looks for it (R20).
        names: display names of those whom `people` lists.
        zones: show times in each reader's own zone; else in UTC (emulators know no dates).

    Raises:
        ChatRefusedError: it is over Slack's limits. Nothing can be sent but something shorter.
    """
    if not 0 < len(once) <= ONCE:
        raise ValueError(f"a key has 1 to {ONCE} characters, this one {len(once)}")
    pen = Pen(rings=frozenset(card.rings), names=names or {}, zones=zones)
    blocks = [*_body(card, pen), *_note(card), *_actions(card.buttons)]
    text = escape(cut(one_line(card.summary), SUMMARY)) or "…"
    revision = hashlib.sha256(json.dumps([text, blocks]).encode()).hexdigest()[:8]
    _number(blocks, once=once, revision=revision)
    if len(blocks) > BLOCKS or _size(blocks) > MESSAGE:
        raise ChatRefusedError(
            f"{len(blocks)} blocks, {_size(blocks)} characters: Slack takes {BLOCKS} and about {MESSAGE}"
        )
    metadata = {"event_type": EVENT_TYPE, "event_payload": {"once": once}}
    return {"text": text, "blocks": blocks, "metadata": metadata}


def measure(card: Card) -> int:
    """Count the characters that a card's blocks have as Slack counts them."""
    pen = Pen(rings=frozenset(card.rings), names={}, zones=True)
    return _size([*_body(card, pen), *_note(card), *_actions(card.buttons)])


def people(card: Card) -> frozenset[PersonId]:
    """Return who is shown by name without being rung, and whose name the card does not say."""
    mentions = (span for block in card.body for span in spans_in(block) if isinstance(span, Mention))
    wanted = frozenset(PersonId(mention.person) for mention in mentions if not mention.name)
    return frozenset(filter(is_user, wanted)) - frozenset(card.rings)


def carries(message: Mapping[str, Any], once: str) -> bool:
    """Whether a message of a channel's history was posted under this key."""
    metadata = message.get("metadata")
    payload = metadata.get("event_payload") if isinstance(metadata, Mapping) else None
    if isinstance(payload, Mapping) and payload.get("once") == once:
        return True
    blocks = message.get("blocks")
    first = blocks[0] if isinstance(blocks, list) and blocks else None
    return isinstance(first, Mapping) and str(first.get("block_id", "")).startswith(once + "/")


def whisper(text: str) -> dict[str, Any]:
    """Make the arguments of a message that one person sees.

    Raises:
        ChatRefusedError: it is over Slack's limits.
    """
    lines = [coded(line) for line in (text.strip() or "…").split("\n")]
    spans = tuple(span for at, line in enumerate(lines) for span in ((*([Break()] if at else []), *line)))
    pieces = cut_pieces(Pen(rings=frozenset(), names={}, zones=False).blocks([Paragraph(spans)]))
    blocks = [_section(section) for section in sections(pieces)]
    if _size(blocks) > MESSAGE:
        raise ChatRefusedError(f"{_size(blocks)} characters: Slack takes about {MESSAGE}")
    return {"text": escape(cut(one_line(text), SUMMARY)) or "…", "blocks": blocks}


def form(asked: FormRequest, phrases: Phrases) -> dict[str, Any]:
    """Make the view that a button with a form opens. What it is for travels in its private metadata."""
    return {
        "type": "modal",
        "callback_id": "words",
        "private_metadata": f"{asked.action}\n{asked.thread.key}",
        "title": _plain(asked.label, TITLE),
        "submit": _plain(phrases.send, TITLE),
        "close": _plain(phrases.cancel, TITLE),
        "blocks": [
            {
                "type": "input",
                "block_id": WORDS_BLOCK,
                "label": _plain(asked.prompt, VALUE),
                "element": {
                    "type": "plain_text_input",
                    "action_id": WORDS_INPUT,
                    "multiline": True,
                    "max_length": TYPED,
                    "focus_on_load": True,
                },
            }
        ],
    }


def form_error(said: str) -> dict[str, Any]:
    """Make the answer to a sent form that keeps it open and says why."""
    return {"response_action": "errors", "errors": {WORDS_BLOCK: said}}


def received(text: str, phrases: Phrases) -> dict[str, Any]:
    """Make the answer to a slash command that was taken: people do not see the command that they typed."""
    shown = literal(cut(one_line(text), SUMMARY)) or "…"
    return {"response_type": "ephemeral", "text": phrases.received.format(text=shown)}


def _body(card: Card, pen: Pen) -> list[dict[str, Any]]:
    body: Sequence[Block] = card.body or (Paragraph((Text(card.summary or "…"),)),)
    pieces = pen.blocks(body)
    rung = " ".join(ring(person) for person in card.rings if is_user(person) and person not in pen.mentioned)
    if rung:
        first = pieces[0] if pieces else Piece("")
        joint = " " if first.kind == "text" else "\n"
        head = Piece(f"{rung}{joint}{first.text}" if first.kind == "text" else rung)
        pieces = [head, *pieces[1:]] if first.kind == "text" else [head, *pieces]
    if sum(piece.kind == "rule" for piece in pieces) > RULES:  # each is a block, and a message has fifty
        pieces = [Piece("———") if piece.kind == "rule" else piece for piece in pieces]
    made: list[dict[str, Any]] = []
    for rule, run in groupby(cut_pieces(pieces), key=lambda piece: piece.kind == "rule"):
        made += [{"type": "divider"} for _ in run] if rule else [_section(text) for text in sections(run)]
    return made or [_section("…")]


def _section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text, "verbatim": True}, "expand": True}


def _note(card: Card) -> list[dict[str, Any]]:
    note = literal(cut(card.note.strip(), NOTE))
    return [{"type": "context", "elements": [{"type": "mrkdwn", "text": note, "verbatim": True}]}] if note else []


def _actions(buttons: Sequence[Button]) -> list[dict[str, Any]]:
    """Lay buttons out: the options of a question, and in a row of its own what is always beside them (R21)."""
    first_form = next((at for at, button in enumerate(buttons) if button.form), len(buttons))
    cut = first_form if first_form >= 2 else len(buttons)
    numbered = list(enumerate(buttons))
    parts = (numbered[:cut], numbered[cut:])
    rows = [part[at : at + ACTIONS] for part in parts for at in range(0, len(part), ACTIONS)]
    return [{"type": "actions", "elements": [_button(number, button) for number, button in row]} for row in rows]


def _button(number: int, button: Button) -> dict[str, Any]:
    value = f"{button.action}\n{cut(button.form, PROMPT)}" if button.form else button.action
    if not button.action or "\n" in button.action or len(value) > VALUE:
        raise ValueError(f"an action is one short line: {button.action[:80]!r}")
    made: dict[str, Any] = {
        "type": "button",
        "action_id": f"do-{number}",
        "text": _plain(button.label, LABEL),
        "value": value,
    }
    if button.style != "plain":
        made["style"] = button.style
    if button.confirm:
        made["confirm"] = {
            "title": _plain(button.label, 100),
            "text": _plain(button.confirm, 300),
            "confirm": _plain(button.label, 30),
            "deny": _plain("✕", 30),
        }
    return made


def _plain(text: str, most: int) -> dict[str, Any]:
    return {"type": "plain_text", "text": cut(one_line(text), most) or "…", "emoji": False}


def _number(blocks: list[dict[str, Any]], *, once: str, revision: str) -> None:
    """Give ids that change with the content: Slack wants new ones when a message is replaced."""
    for at, block in enumerate(blocks):
        block["block_id"] = f"{once}/{revision}" if at == 0 else f"{revision}/{at}"


def _size(blocks: Sequence[Mapping[str, Any]]) -> int:
    return sum(len(text) for block in blocks for text in _texts(block))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if name == "text" and isinstance(inner, str):
                yield inner
            elif name not in ("value", "block_id", "action_id"):
                yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
