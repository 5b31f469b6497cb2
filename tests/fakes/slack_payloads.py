"""A judge of what our own fake delivers: the package `slack-events`, whose types follow Slack's documentation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slack_events.validation import ValidationError, validate_payload


def judge_payload(payload: Mapping[str, Any]) -> list[str]:
    """Say what is wrong with a payload of an envelope."""
    match payload.get("type"):
        case "event_callback":
            event = payload["event"]
            kind, subtype, judged = str(event["type"]), event.get("subtype"), event
        case None:
            kind, subtype, judged = "slash_command", None, payload
        case other:
            kind, subtype, judged = str(other), None, payload
    try:
        validate_payload(kind, subtype, judged)
    except ValidationError as err:
        return [f"{kind}: {error['loc']}: {error['msg']}" for error in err.errors()]
    return []
