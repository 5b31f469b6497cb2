"""The Slack bot's own settings, from `FLOWER_CHAT_SLACK_*` (product 3). Tokens are masked everywhere."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Self, cast
from urllib.parse import urlsplit

from pydantic import SecretStr

from bridge.errors import SettingsError

PREFIX = "FLOWER_CHAT_SLACK_"
SLACK_API = "https://slack.com/api/"
LANGUAGES = ("en", "zh")
KNOWN = ("BOT_TOKEN", "APP_TOKEN", "API_URL", "MODE", "LANGUAGE", "SIGNING_SECRET", "PORT")
"""Names behind the prefix. `SIGNING_SECRET` and `PORT` belong to HTTP mode and mean nothing in Socket Mode."""

_KINDS = {
    "xoxb-": "a bot token",
    "xapp-": "an app-level token",
    "xoxp-": "a user token",
    "xoxe-": "a refresh token",
    "xoxe.": "a rotating token",
}
_BOT_CURE = "take the Bot User OAuth Token from the app's page, OAuth & Permissions (it begins with xoxb-)"
_APP_CURE = (
    "make one on the app's page, Basic Information, App-Level Tokens, scope connections:write (begins with xapp-)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackSettings:
    """What the bot needs to know of one Slack workspace."""

    bot_token: SecretStr
    app_token: SecretStr
    api_url: str = SLACK_API
    """Base address of the Web API, with a slash at its end. Another one than Slack's for emulators."""
    mode: Literal["socket"] = "socket"
    language: Literal["en", "zh"] = "en"
    """Of the few words that the adapter itself says; runs speak the language of their workspace."""

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> Self:
        """Read the settings from a mapping such as the process environment.

        Raises:
            SettingsError: names every problem at once, with its cure; never shows a token.
        """
        values = {name.removeprefix(PREFIX): value.strip() for name, value in env.items() if name.startswith(PREFIX)}
        values = {name: value for name, value in values.items() if value}
        api_url = values.get("API_URL", SLACK_API).rstrip("/") + "/"
        problems = [
            *_unknown(values),
            *_token("BOT_TOKEN", values, begins="xoxb-", cure=_BOT_CURE),
            *_token("APP_TOKEN", values, begins="xapp-", cure=_APP_CURE),
            *_address(api_url),
            *_mode(values.get("MODE", "socket")),
            *_language(values.get("LANGUAGE", "en")),
        ]
        if problems:
            raise SettingsError("\n".join(problems))
        return cls(
            bot_token=SecretStr(values["BOT_TOKEN"]),
            app_token=SecretStr(values["APP_TOKEN"]),
            api_url=api_url,
            language=cast(Literal["en", "zh"], values.get("LANGUAGE", "en")),
        )

    def secrets(self) -> tuple[str, ...]:
        """Return the texts that must never show up in a log (SE-4)."""
        return (self.bot_token.get_secret_value(), self.app_token.get_secret_value())


def _unknown(values: Mapping[str, str]) -> list[str]:
    problems = []
    for name in sorted(values.keys() - set(KNOWN)):
        near = difflib.get_close_matches(name, KNOWN, n=1)
        hint = f"did you mean {PREFIX}{near[0]}?" if near else f"known: {', '.join(PREFIX + known for known in KNOWN)}"
        problems.append(f"environment: {PREFIX}{name}: no such setting; {hint}")
    return problems


def _token(name: str, values: Mapping[str, str], *, begins: str, cure: str) -> list[str]:
    variable = f"environment: {PREFIX}{name}"
    if name not in values:
        return [f"{variable}: not set; {cure}"]
    value = values[name]
    if value.startswith(begins):
        return []
    kind = next((kind for start, kind in _KINDS.items() if value.startswith(start)), "no Slack token")
    swapped = "; the two tokens seem to be swapped" if kind in ("a bot token", "an app-level token") else ""
    return [f"{variable}: this is {kind}{swapped}; {cure}"]


def _address(url: str) -> list[str]:
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if good and not (parts.query or parts.fragment or parts.username):
        return []
    return [f"environment: {PREFIX}API_URL: expected an address such as {SLACK_API} or http://127.0.0.1:3000/api/"]


def _mode(mode: str) -> list[str]:
    if mode == "socket":
        return []
    if mode == "http":
        return [
            f"environment: {PREFIX}MODE=http comes with the Slack issue and is not built yet; leave it out (socket)"
        ]
    return [f"environment: {PREFIX}MODE: expected socket, found {mode!r}"]


def _language(language: str) -> list[str]:
    return (
        []
        if language in LANGUAGES
        else [f"environment: {PREFIX}LANGUAGE: expected one of {', '.join(LANGUAGES)}, found {language!r}"]
    )
