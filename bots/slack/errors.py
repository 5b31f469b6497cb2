"""What the Slack library raises and Slack answers, as the chat errors of the bridge. Only this module knows the codes.

Slack answers most refusals with HTTP 200 and `{"ok": false, "error": CODE}`. What a code means for us is in `MEANING`;
an unknown code is a refusal, since sending the same thing again would be refused again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError

from bridge.errors import (
    BridgeError,
    ChatBusyError,
    ChatError,
    ChatGoneError,
    ChatRefusedError,
    ChatUnknownError,
    SettingsError,
)

Meaning = Literal["gone", "refused", "busy", "unknown"]

DEFAULT_RETRY_AFTER = 5.0
"""Seconds, where Slack says «later» and not when."""
BRIEF_RETRY_AFTER = 1.0
"""Seconds before a call that may be repeated is repeated after its answer was lost, or Slack could not be reached."""

REINSTALL = "install the app into the workspace again and set FLOWER_CHAT_SLACK_BOT_TOKEN to its new bot token"
RENEW_APP = "make a new app-level token with the scope connections:write and set FLOWER_CHAT_SLACK_APP_TOKEN to it"
_SCOPES = "add the missing scope on the app's page, OAuth & Permissions, and install the app again"
_INVITE = "invite the bot into the channel (/invite @its-name)"

MEANING: Mapping[str, tuple[Meaning, str]] = {
    # the account
    "invalid_auth": ("gone", f"Slack does not know this token; {REINSTALL}"),
    "not_authed": ("gone", f"no token was sent; {REINSTALL}"),
    "account_inactive": ("gone", f"the bot's account was deactivated; {REINSTALL}"),
    "token_revoked": ("gone", f"the token was revoked; {REINSTALL}"),
    "token_expired": ("gone", f"the token has expired; {REINSTALL}"),
    "app_uninstalled": ("gone", f"the app was uninstalled; {REINSTALL}"),
    "org_login_required": ("gone", "the workspace is being moved to an organisation; start again afterwards"),
    "team_access_not_granted": ("gone", "the app has no access to this workspace; ask an administrator to grant it"),
    "access_denied": ("gone", "ask an administrator of the workspace to allow the app"),
    "ekm_access_denied": ("gone", "an administrator has suspended posting here; ask them"),
    "missing_scope": ("gone", _SCOPES),
    "no_permission": ("gone", _SCOPES),
    "not_allowed_token_type": ("gone", "the tokens seem to be swapped: xoxb-… is the bot's, xapp-… the app's"),
    # the channel or the thread
    "not_in_channel": ("gone", _INVITE),
    "channel_not_found": ("gone", f"the channel was deleted, or is private and the bot is not in it; {_INVITE}"),
    "is_archived": ("gone", "the channel is archived; unarchive it, or continue the run in another"),
    "is_inactive": ("gone", "the channel is archived; unarchive it, or continue the run in another"),
    "restricted_action": ("gone", "a rule of the workspace forbids posting here; ask an administrator"),
    "restricted_action_read_only_channel": ("gone", "the channel is read-only; ask who administers it"),
    "restricted_action_thread_only_channel": ("gone", "this channel takes replies only; start the run in another"),
    "restricted_action_non_threadable_channel": ("gone", "this channel has no threads; start the run in another"),
    "restricted_action_thread_locked": ("gone", "the thread is locked; unlock it, or continue the run in another"),
    "cannot_reply_to_message": ("gone", "the thread takes no replies; continue the run in another"),
    "thread_not_found": ("gone", "the thread was deleted; continue the run in another"),
    "messages_tab_disabled": ("gone", "switch on the app's Messages tab (App Home) for direct messages"),
    "message_not_found": ("gone", "the message was deleted"),
    "cant_update_message": ("gone", "the message is not the bot's own"),
    "edit_window_closed": ("gone", "the workspace allows edits for a limited time only"),
    "user_not_in_channel": ("gone", "this person is not in the channel"),
    "user_not_found": ("gone", "this person is not in the workspace any more"),
    # later
    "ratelimited": ("busy", "Slack's limit for this call was reached"),
    "rate_limited": ("busy", "Slack's limit for this call was reached"),
    "message_limit_exceeded": ("busy", "the workspace sends too many messages"),
    "accesslimited": ("busy", "Slack limits access for now"),
    # it may have happened
    "fatal_error": ("unknown", "Slack failed, possibly after it had done it"),
    "internal_error": ("unknown", "Slack failed, possibly after it had done it"),
    "service_unavailable": ("unknown", "Slack is not available"),
    "request_timeout": ("unknown", "Slack took too long"),
}


ALREADY_SO = frozenset({"already_reacted"})


class AlreadySoError(ChatError):
    """The call asked for what is already so. Never leaves the adapter."""


def as_chat_error(err: Exception, *, call: str, repeatable: bool) -> ChatError:
    """Translate what a call raised.

    Args:
        err: from slack_sdk, aiohttp or a timeout.
        call: the method, for the message.
        repeatable: whether a repetition is harmless. Then a lost answer is «busy, again in a moment», else «unknown».
    """
    if isinstance(err, SlackApiError):
        return _of_answer(err, call=call, repeatable=repeatable)
    if isinstance(err, aiohttp.ClientConnectorError):
        # The connection was never made, hence nothing was done: safe to repeat even for a post.
        return ChatBusyError(f"{call}: Slack cannot be reached: {_reason(err)}", retry_after=BRIEF_RETRY_AFTER)
    if isinstance(err, (TimeoutError, OSError, aiohttp.ClientError, SlackClientError)):
        return _lost(f"{call}: no answer from Slack: {_reason(err)}", repeatable=repeatable)
    return ChatRefusedError(f"{call}: {type(err).__name__}")


def _of_answer(err: SlackApiError, *, call: str, repeatable: bool) -> ChatError:
    status, headers, code = answer_of(err)
    if status == 429:
        return ChatBusyError(f"{call}: too many calls", retry_after=retry_after(headers))
    if not code:
        said = f"{call}: HTTP {status} without an answer of the Web API"
        return _lost(said, repeatable=repeatable) if status >= 500 or status == 200 else ChatRefusedError(said)
    if code in ALREADY_SO:
        return AlreadySoError(f"{call}: {code}")
    meaning, what = MEANING.get(code, ("unknown" if status >= 500 else "refused", "Slack does not take this"))
    said = f"{call}: {code}: {what}"
    if meaning == "busy":
        return ChatBusyError(said, retry_after=retry_after(headers))
    if meaning == "unknown":
        return _lost(said, repeatable=repeatable)
    return ChatGoneError(said) if meaning == "gone" else ChatRefusedError(said)


def as_start_error(err: Exception, *, call: str, variable: str, api_url: str, cure: str) -> BridgeError:
    """Translate what one of the first calls raised into one line that says which setting is wrong and what to do."""
    where = f"FLOWER_CHAT_SLACK_API_URL ({api_url})"
    if isinstance(err, SlackApiError):
        status, headers, code = answer_of(err)
        if status == 429 or (code in MEANING and MEANING[code][0] == "busy"):
            return ChatBusyError(f"{call}: too many calls, try again later", retry_after=retry_after(headers))
        if not code or code == "unknown_method":
            return SettingsError(f"{where}: something answers there, but it is not Slack's Web API (HTTP {status})")
        return ChatGoneError(f"{variable}: Slack refuses it ({call}: {code}); {cure}")
    reason = _reason(err)
    return SettingsError(
        f"{where}: cannot be reached: {reason}. Is the network up, or the emulator running at that address?"
    )


def missing_scopes_error(missing: Iterable[str]) -> SettingsError:
    """Say which rights the app was installed without (SL-4)."""
    return SettingsError(
        f"the Slack app lacks the bot scopes {', '.join(sorted(missing))}: {_SCOPES}, "
        "then set FLOWER_CHAT_SLACK_BOT_TOKEN to the token that you get"
    )


def answer_of(err: SlackApiError) -> tuple[int, Mapping[str, Any], str]:
    """Return HTTP status, headers and error code (empty: the answer was not the Web API's)."""
    response: Any = err.response
    data = getattr(response, "data", None)
    code = data.get("error") if isinstance(data, Mapping) else None
    status = getattr(response, "status_code", None) or getattr(response, "status", None)
    return int(status or 0), getattr(response, "headers", None) or {}, str(code or "")


def retry_after(headers: Mapping[str, Any]) -> float:
    """Seconds that Slack asks to wait, at least one."""
    value = next((value for name, value in headers.items() if str(name).lower() == "retry-after"), None)
    try:
        return max(1.0, float(str(value)))
    except ValueError:
        return DEFAULT_RETRY_AFTER


def _lost(said: str, *, repeatable: bool) -> ChatError:
    return ChatBusyError(said, retry_after=BRIEF_RETRY_AFTER) if repeatable else ChatUnknownError(said)


def _reason(err: Exception) -> str:
    if isinstance(err, aiohttp.ClientConnectorError):
        return str(err.os_error.strerror or err.os_error or type(err).__name__)
    return "time is up" if isinstance(err, TimeoutError) else type(err).__name__
