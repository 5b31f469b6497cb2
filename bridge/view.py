"""What a thread shows, folded from the news of its run (product 2, rule 1). Pure: no clock, no words for people.

A `View` keeps what can still change or is not posted yet; `settle_slot` takes out what stands in the thread for good,
so that a run of fifty thousand events has a view of a few kilobytes. The values are in `bridge.picture`, the fold in
`bridge.folding`.
"""

from __future__ import annotations

import json
from dataclasses import replace

from bridge.errors import BadMessageError
from bridge.folding import KINDS, MOST_PAST, fold
from bridge.model import MessageRef, Sign
from bridge.picture import (
    Activity,
    AskState,
    AskView,
    Call,
    End,
    Line,
    Oracle,
    Receipt,
    Say,
    State,
    Todo,
    View,
    ask_key,
    sends_off,
)
from bridge.wire import plain, read_as

__all__ = [
    "KINDS",
    "VERSION",
    "Activity",
    "AskState",
    "AskView",
    "Call",
    "End",
    "Line",
    "Oracle",
    "Receipt",
    "Say",
    "State",
    "Todo",
    "View",
    "ask_key",
    "dump",
    "fold",
    "load",
    "sends_off",
    "settle_sign",
    "settle_slot",
]

VERSION = 1
"""Of the dumped form; raised when an older one cannot be read any more (rulings R10)."""


# -- what stands for good leaves --------------------------------------------------------------------------------


def settle_slot(view: View, name: str) -> View:
    """Forget a slot that stands in the thread as it should and can never change again.

    A part's name (`say:12:2`) stands for the whole. What is still open stays, and so do the card and unknown names.
    """
    kind, _, rest = name.partition(":")
    if kind == "ask":
        fence, _, ask = rest.partition(":")
        return _settle_ask_slot(view, fence, ask.partition(":")[0])
    number = rest.partition(":")[0]
    if not number.isdecimal():
        return view
    seq = int(number)
    match kind:
        case "say":
            return replace(view, says=tuple(each for each in view.says if each.seq != seq))
        case "line":
            return replace(view, lines=tuple(each for each in view.lines if each.seq != seq))
        case "activity":
            kept = tuple(each for each in view.activities if each.seq != seq or each.open)
            return replace(view, activities=kept)
        case "oracle":
            return replace(view, oracles=tuple(each for each in view.oracles if each.seq != seq))
        case "end":
            return replace(view, ends=tuple(each for each in view.ends if each.seq != seq))
        case _:
            return view


def _settle_ask_slot(view: View, fence: str, ask: str) -> View:
    done = next((each for each in view.asks if not each.open and (str(each.fence), each.id) == (fence, ask)), None)
    if done is None:
        return view
    short = replace(done, question=done.question[:120], answer=done.answer[:200], options=())
    return replace(
        view, asks=tuple(each for each in view.asks if each is not done), past=(*view.past, short)[-MOST_PAST:]
    )


def settle_sign(view: View, message: MessageRef, sign: Sign) -> View:
    """Forget a receipt that stands on its message and says its last word."""
    if sign == "received":
        return view
    kept = tuple(each for each in view.receipts if (each.message, each.sign) != (message, sign))
    return replace(view, receipts=kept)


# -- checkpoints ------------------------------------------------------------------------------------------------


def dump(view: View) -> bytes:
    """Return a view as bytes for a checkpoint."""
    return json.dumps({"version": VERSION, "view": plain(view)}, separators=(",", ":")).encode()


def load(data: bytes) -> View | None:
    """Read a dumped view; None: it cannot be read here, fold again from the news (rulings R10)."""
    try:
        body = json.loads(data)
        if not isinstance(body, dict) or body.get("version") != VERSION or not isinstance(body.get("view"), dict):
            return None
        return read_as(View, body["view"])
    except (ValueError, RecursionError, BadMessageError):
        return None
