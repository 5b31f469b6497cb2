from __future__ import annotations

from pathlib import Path

import pytest

from bots.slack.settings import SlackSettings
from bridge.errors import SettingsError

GOOD = {"FLOWER_CHAT_SLACK_BOT_TOKEN": "xoxb-1-secret", "FLOWER_CHAT_SLACK_APP_TOKEN": "xapp-1-secret"}


def complaint(**env: str) -> str:
    with pytest.raises(SettingsError) as caught:
        SlackSettings.from_env({**GOOD, **{f"FLOWER_CHAT_SLACK_{name}": value for name, value in env.items()}})
    return str(caught.value)


def test_every_missing_token_is_named_at_once_with_where_to_get_it() -> None:
    with pytest.raises(SettingsError) as caught:
        SlackSettings.from_env({"FLOWER_CHAT_SLACK_BOT_TOKEN": "  "})
    first, second = str(caught.value).splitlines()
    assert first == (
        "environment: FLOWER_CHAT_SLACK_BOT_TOKEN: not set; take the Bot User OAuth Token from the app's page, "
        "OAuth & Permissions (it begins with xoxb-)"
    )
    assert second.startswith("environment: FLOWER_CHAT_SLACK_APP_TOKEN: not set; make one on the app's page")


def test_swapped_tokens_are_seen_and_not_shown() -> None:
    said = complaint(BOT_TOKEN="xapp-1-secret", APP_TOKEN="xoxb-1-secret")
    first, second = said.splitlines()
    assert "FLOWER_CHAT_SLACK_BOT_TOKEN: this is an app-level token; the two tokens seem to be swapped" in first
    assert "FLOWER_CHAT_SLACK_APP_TOKEN: this is a bot token; the two tokens seem to be swapped" in second
    assert "secret" not in said


@pytest.mark.parametrize(
    ("token", "kind"),
    [("xoxp-1-secret", "a user token"), ("xoxe.xoxb-1-secret", "a rotating token"), ("abc", "no Slack token")],
)
def test_a_token_of_another_kind_is_called_by_its_name(token: str, kind: str) -> None:
    said = complaint(BOT_TOKEN=token)
    assert f"this is {kind};" in said
    assert "secret" not in said


@pytest.mark.parametrize(
    "url", ["slack.com/api", "ftp://slack.com/api/", "http://", "https://u:p@host/api/", "http://h/?a=b"]
)
def test_an_address_that_is_none_is_refused_with_examples(url: str) -> None:
    assert complaint(API_URL=url) == (
        "environment: FLOWER_CHAT_SLACK_API_URL: expected an address such as https://slack.com/api/ "
        "or http://127.0.0.1:3000/api/"
    )


def test_http_mode_says_that_it_is_not_built_yet() -> None:
    assert complaint(MODE="http") == (
        "environment: FLOWER_CHAT_SLACK_MODE: http comes with the Slack issue and is not built yet; "
        "leave it out (socket)"
    )


def test_an_unknown_mode_or_language_is_refused() -> None:
    assert "expected socket, found 'rtm'" in complaint(MODE="rtm")
    assert "expected one of en, zh, found 'de'" in complaint(LANGUAGE="de")


def test_an_unknown_name_gets_the_nearest() -> None:
    said = complaint(BOT_TOKN="x")
    assert said == (
        "environment: FLOWER_CHAT_SLACK_BOT_TOKN: no such setting; did you mean FLOWER_CHAT_SLACK_BOT_TOKEN?"
    )
    assert "known: FLOWER_CHAT_SLACK_BOT_TOKEN, " in complaint(XYZ="1")


def test_names_of_http_mode_mean_nothing_and_harm_nothing() -> None:
    SlackSettings.from_env({**GOOD, "FLOWER_CHAT_SLACK_PORT": "3000", "FLOWER_CHAT_SLACK_SIGNING_SECRET": "s"})


def test_names_of_others_are_not_looked_at() -> None:
    SlackSettings.from_env({**GOOD, "FLOWER_CHAT_HOME": "/srv", "SLACK_BOT_TOKEN": "xoxb-other"})


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:3000/api", "http://127.0.0.1:3000/api/", "http://127.0.0.1:3000/api//"]
)
def test_an_address_ends_with_one_slash(url: str) -> None:
    assert SlackSettings.from_env({**GOOD, "FLOWER_CHAT_SLACK_API_URL": url}).api_url == "http://127.0.0.1:3000/api/"


def test_slack_itself_is_the_default() -> None:
    settings = SlackSettings.from_env(GOOD)
    assert (settings.api_url, settings.mode, settings.language) == ("https://slack.com/api/", "socket", "en")


def test_tokens_are_masked_and_known_to_the_log() -> None:
    settings = SlackSettings.from_env(GOOD)
    assert "secret" not in repr(settings)
    assert "secret" not in str(settings)
    assert settings.secrets() == ("xoxb-1-secret", "xapp-1-secret")


FILE = """\
home = "/srv"
[slack]
bot_token = "xoxb-file-secret"
app_token = "xapp-file-secret"
api_url = "http://127.0.0.1:3000/api"
"""


def of_file(tmp_path: Path, text: str, **env: str) -> SlackSettings:
    path = tmp_path / "flower-chat.toml"
    path.write_text(text, encoding="utf-8")
    return SlackSettings.from_env({"FLOWER_CHAT_CONFIG": str(path), **env})


def test_the_file_has_a_table_for_it_and_the_environment_wins(tmp_path: Path) -> None:
    settings = of_file(tmp_path, FILE, FLOWER_CHAT_SLACK_APP_TOKEN="xapp-1-secret")
    assert settings.secrets() == ("xoxb-file-secret", "xapp-1-secret")
    assert settings.api_url == "http://127.0.0.1:3000/api/"


def test_what_is_wrong_in_the_file_is_named_there(tmp_path: Path) -> None:
    text = FILE.replace("xoxb-", "xapp-").replace("api_url", "api_uri")
    with pytest.raises(SettingsError) as caught:
        of_file(tmp_path, text)
    unknown, token = str(caught.value).replace(str(tmp_path), "…").splitlines()
    assert unknown == "…/flower-chat.toml: slack.api_uri: no such setting; did you mean FLOWER_CHAT_SLACK_API_URL?"
    assert token.startswith("…/flower-chat.toml: slack.bot_token: this is an app-level token; the two tokens seem")
    assert "secret" not in token


@pytest.mark.parametrize("text", ["home = ", "slack = 3", "[slack]\nbot_token = 7\n"])
def test_a_file_that_is_none_leaves_the_environment(tmp_path: Path, text: str) -> None:
    settings = of_file(tmp_path, text, **GOOD)
    assert settings.secrets() == ("xoxb-1-secret", "xapp-1-secret")
