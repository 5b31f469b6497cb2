"""The Slack bot's own settings: `FLOWER_CHAT_SLACK_*`, and `[slack]` in the file (product 3). Tokens are masked."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self, cast
from urllib.parse import urlsplit

from pydantic import SecretStr

from bridge.errors import SettingsError

PREFIX = "FLOWER_CHAT_SLACK_"
CONFIG = "FLOWER_CHAT_CONFIG"
SLACK_API = "https://slack.com/api/"
_ADDRESSES = f"{SLACK_API} or http://127.0.0.1:3000/api/"
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
        """Read the settings from a mapping such as the process environment, and from the file that it names.

        The file's `[slack]` table has the same names in lower case; the environment wins. That the file can be read is
        the business of `bridge.settings`.

        Raises:
            SettingsError: names every problem at once, with its cure; never shows a token.
        """
        found = {**_of_file(env), **_of_environment(env)}
        values = {name: each.value for name, each in found.items()}
        api_url = values.get("API_URL", SLACK_API).rstrip("/") + "/"
        problems = [
            *_unknown(found),
            *_token("BOT_TOKEN", found, begins="xoxb-", cure=_BOT_CURE),
            *_token("APP_TOKEN", found, begins="xapp-", cure=_APP_CURE),
            *([] if _is_address(api_url) else [f"{found['API_URL'].where}: expected an address such as {_ADDRESSES}"]),
            *_mode(found.get("MODE")),
            *_language(found.get("LANGUAGE")),
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


@dataclass(frozen=True, slots=True)
class _Found:
    """A value and where it stands, for messages."""

    value: str
    where: str


def _of_environment(env: Mapping[str, str]) -> dict[str, _Found]:
    return {
        name.removeprefix(PREFIX): _Found(value.strip(), f"environment: {name}")
        for name, value in env.items()
        if name.startswith(PREFIX) and value.strip()
    }


def _of_file(env: Mapping[str, str]) -> dict[str, _Found]:
    path = Path(env.get(CONFIG) or "flower-chat.toml")
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8")).get("slack")
    except (OSError, ValueError):  # said by bridge.settings, which reads the rest of it
        return {}
    pairs = table.items() if isinstance(table, Mapping) else ()
    return {str(name).upper(): _Found(str(value).strip(), f"{path}: slack.{name}") for name, value in pairs}


def _unknown(found: Mapping[str, _Found]) -> list[str]:
    problems = []
    for name in sorted(found.keys() - set(KNOWN)):
        near = difflib.get_close_matches(name, KNOWN, n=1)
        hint = f"did you mean {PREFIX}{near[0]}?" if near else f"known: {', '.join(PREFIX + known for known in KNOWN)}"
        problems.append(f"{found[name].where}: no such setting; {hint}")
    return problems


def _token(name: str, found: Mapping[str, _Found], *, begins: str, cure: str) -> list[str]:
    if name not in found:
        return [f"environment: {PREFIX}{name}: not set; {cure}"]
    value, where = found[name].value, found[name].where
    if value.startswith(begins):
        return []
    kind = next((kind for start, kind in _KINDS.items() if value.startswith(start)), "no Slack token")
    swapped = "; the two tokens seem to be swapped" if kind in ("a bot token", "an app-level token") else ""
    return [f"{where}: this is {kind}{swapped}; {cure}"]


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return good and not (parts.query or parts.fragment or parts.username)


def _mode(mode: _Found | None) -> list[str]:
    if mode is None or mode.value == "socket":
        return []
    if mode.value == "http":
        return [f"{mode.where}: http comes with the Slack issue and is not built yet; leave it out (socket)"]
    return [f"{mode.where}: expected socket, found {mode.value!r}"]


def _language(language: _Found | None) -> list[str]:
    if language is None or language.value in LANGUAGES:
        return []
    return [f"{language.where}: expected one of {', '.join(LANGUAGES)}, found {language.value!r}"]
