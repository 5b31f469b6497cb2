from __future__ import annotations

import errno
from collections.abc import Mapping

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError, SlackRequestError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bots.slack.errors import MEANING, AlreadySoError, as_chat_error, as_start_error, missing_scopes_error, retry_after
from bridge.errors import (
    ChatBusyError,
    ChatError,
    ChatGoneError,
    ChatRefusedError,
    ChatUnknownError,
    SettingsError,
)


def answer(code: str = "", *, status: int = 200, headers: Mapping[str, str] | None = None) -> SlackApiError:
    data: dict[str, object] = {"ok": False, "error": code} if code else {}
    response = AsyncSlackResponse(
        client=AsyncWebClient(token="xoxb-secret"),
        http_verb="POST",
        api_url="http://h/api/x",
        req_args={"headers": {"Authorization": "Bearer xoxb-secret"}},
        data=data,
        headers=dict(headers or {}),
        status_code=status,
    )
    return SlackApiError("The call failed.", response)  # type: ignore[no-untyped-call]  # the library's


def refused_connection() -> aiohttp.ClientConnectorError:
    key = aiohttp.client_reqrep.ConnectionKey("h", 80, False, True, None, None, None, None)
    return aiohttp.ClientConnectorError(key, OSError(errno.ECONNREFUSED, "Connection refused"))


@pytest.mark.parametrize(
    ("err", "kind"),
    [
        (answer("is_archived"), ChatGoneError),
        (answer("not_in_channel"), ChatGoneError),
        (answer("restricted_action_thread_locked"), ChatGoneError),
        (answer("message_not_found"), ChatGoneError),
        (answer("token_revoked"), ChatGoneError),
        (answer("missing_scope"), ChatGoneError),
        (answer("invalid_blocks"), ChatRefusedError),
        (answer("msg_blocks_too_long"), ChatRefusedError),
        (answer("a_code_from_tomorrow"), ChatRefusedError),
        (answer("ratelimited"), ChatBusyError),
        (answer("message_limit_exceeded"), ChatBusyError),
        (answer("ratelimited", status=429), ChatBusyError),
        (answer("fatal_error"), ChatUnknownError),
        (answer("a_code_from_tomorrow", status=503), ChatUnknownError),
        (answer(status=502), ChatUnknownError),
        (answer(status=200), ChatUnknownError),
        (answer(status=404), ChatRefusedError),
        (refused_connection(), ChatBusyError),
        (aiohttp.ServerDisconnectedError(), ChatUnknownError),
        (ConnectionResetError(), ChatUnknownError),
        (TimeoutError(), ChatUnknownError),
        (SlackRequestError("x"), ChatUnknownError),
    ],
    ids=lambda value: str(value)[-60:] if isinstance(value, Exception) else value.__name__,
)
def test_a_post_that_fails_is_one_of_four_things(err: Exception, kind: type[ChatError]) -> None:
    assert type(as_chat_error(err, call="chat.postMessage", repeatable=False)) is kind


@pytest.mark.parametrize("err", [answer("fatal_error"), answer(status=502), TimeoutError(), ConnectionResetError()])
def test_what_may_be_repeated_is_busy_instead_of_unknown(err: Exception) -> None:
    busy = as_chat_error(err, call="chat.update", repeatable=True)
    assert isinstance(busy, ChatBusyError)
    assert busy.retry_after == 1.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "30"}, 30.0),
        ({"retry-after": "7"}, 7.0),
        ({"Retry-After": "0"}, 1.0),
        ({"Retry-After": "soon"}, 5.0),
        ({}, 5.0),
    ],
)
def test_the_time_to_wait_is_slacks_and_never_nothing(headers: Mapping[str, str], seconds: float) -> None:
    busy = as_chat_error(answer("ratelimited", status=429, headers=headers), call="x", repeatable=False)
    assert isinstance(busy, ChatBusyError)
    assert busy.retry_after == seconds == retry_after(headers)


def test_what_is_already_so_is_told_apart() -> None:
    assert isinstance(as_chat_error(answer("already_reacted"), call="reactions.add", repeatable=True), AlreadySoError)


@pytest.mark.parametrize("code", sorted(MEANING))
def test_every_refusal_says_what_was_called_what_came_and_what_to_do(code: str) -> None:
    said = str(as_chat_error(answer(code), call="chat.postMessage", repeatable=False))
    assert said.startswith(f"chat.postMessage: {code}: ")
    assert len(said) > len(f"chat.postMessage: {code}: ") + 10
    assert "\n" not in said


@pytest.mark.parametrize("err", [answer("invalid_auth"), answer(status=404), refused_connection(), TimeoutError()])
def test_no_token_is_ever_said(err: Exception) -> None:
    assert "xoxb" not in str(as_chat_error(err, call="x", repeatable=False)).replace("xoxb-…", "")
    start = as_start_error(err, call="auth.test", variable="FLOWER_CHAT_SLACK_BOT_TOKEN", api_url="http://h/", cure="c")
    assert "secret" not in str(start)


def test_a_dead_token_at_the_start_names_its_setting_and_the_cure() -> None:
    start = as_start_error(
        answer("invalid_auth"),
        call="auth.test",
        variable="FLOWER_CHAT_SLACK_BOT_TOKEN",
        api_url="http://h/",
        cure="get a new one",
    )
    assert isinstance(start, ChatGoneError)
    assert str(start) == "FLOWER_CHAT_SLACK_BOT_TOKEN: Slack refuses it (auth.test: invalid_auth); get a new one"


def test_an_address_where_nobody_listens_or_somebody_else_does_is_a_wrong_setting() -> None:
    args = {"call": "auth.test", "variable": "V", "api_url": "http://h/api/", "cure": "c"}
    away, other = as_start_error(refused_connection(), **args), as_start_error(answer(status=404), **args)
    assert isinstance(away, SettingsError)
    assert isinstance(other, SettingsError)
    assert str(away) == (
        "FLOWER_CHAT_SLACK_API_URL (http://h/api/): cannot be reached: Connection refused. "
        "Is the network up, or the emulator running at that address?"
    )
    assert "it is not Slack's Web API (HTTP 404)" in str(other)


@pytest.mark.case("SL-4")
def test_missing_rights_are_named_with_the_step_to_take() -> None:
    said = str(missing_scopes_error({"users:read", "chat:write"}))
    assert said.startswith("the Slack app lacks the bot scopes chat:write, users:read: add the missing scope")
