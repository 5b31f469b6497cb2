from __future__ import annotations

from pathlib import Path

import pytest

from bridge.errors import SettingsError
from bridge.settings import RUNNER_ENVIRONMENT, Settings, read_settings

GOOD = """\
home = "/srv/flower"
default_workspace = "site"
may_steer = ["T01/U01"]

[workspaces.site]
path = "/srv/site"
budget = 5.0

[workspaces.docs]
path = "/srv/docs"
fresh = true
language = "zh"

[slack]
anything = "is read by the platform's own settings"
"""


def config(tmp_path: Path, text: str) -> dict[str, str]:
    path = tmp_path / "flower-chat.toml"
    path.write_text(text, encoding="utf-8")
    return {"FLOWER_CHAT_CONFIG": str(path)}


def complaint(tmp_path: Path, text: str, **env: str) -> str:
    with pytest.raises(SettingsError) as caught:
        read_settings({**config(tmp_path, text), **env})
    return str(caught.value).replace(str(tmp_path), "…")


def test_an_unknown_key_is_refused_with_file_line_and_the_nearest_right_one(tmp_path: Path) -> None:
    said = complaint(tmp_path, 'home = "/srv"\nmay_steeer = ["x"]\n')
    assert said == "…/flower-chat.toml:2: may_steeer: no such setting; did you mean 'may_steer'?"


def test_an_unknown_key_in_a_workspace_names_its_own_line(tmp_path: Path) -> None:
    said = complaint(tmp_path, '[workspaces.site]\npath = "/x"\n\n[workspaces.docs]\npath = "/y"\nbudgets = 3\n')
    assert said == "…/flower-chat.toml:6: workspaces.docs.budgets: no such setting; did you mean 'budget'?"


def test_every_bad_value_is_named_at_once(tmp_path: Path) -> None:
    said = complaint(tmp_path, 'lease_seconds = "long"\nlauncher = "slurm"\n')
    assert said.splitlines()[0].startswith("…/flower-chat.toml:2: launcher: Input should be 'local'")
    assert said.splitlines()[1].startswith("…/flower-chat.toml:1: lease_seconds: Input should be a valid number")


def test_text_that_is_not_toml_is_refused_with_its_line(tmp_path: Path) -> None:
    assert "not TOML" in complaint(tmp_path, "home = \n")
    assert "line 1" in complaint(tmp_path, "home = \n")


def test_a_named_file_that_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"no such file; FLOWER_CHAT_CONFIG names it"):
        read_settings({"FLOWER_CHAT_CONFIG": str(tmp_path / "nowhere.toml")})


def test_an_unknown_variable_is_refused_with_the_nearest_right_one(tmp_path: Path) -> None:
    said = complaint(tmp_path, "", FLOWER_CHAT_REDIS_ULR="redis://x")
    assert said == "environment: FLOWER_CHAT_REDIS_ULR: no such setting; did you mean FLOWER_CHAT_REDIS_URL?"


def test_a_default_workspace_that_is_not_there_is_named(tmp_path: Path) -> None:
    said = complaint(tmp_path, 'default_workspace = "sight"\n[workspaces.site]\npath = "/x"\n')
    assert said == (
        "…/flower-chat.toml:1: default_workspace = 'sight', but there is no [workspaces.sight]; known: site"
    )


@pytest.mark.parametrize("name", ["With Blank", "../up", "UPPER", "-x", "a" * 33])
def test_a_workspace_name_that_could_be_a_path_is_refused(tmp_path: Path, name: str) -> None:
    assert "expected lower-case letters" in complaint(tmp_path, f'[workspaces."{name}"]\npath = "/x"\n')


def test_a_secret_is_never_shown(tmp_path: Path) -> None:
    settings = read_settings(config(tmp_path, GOOD) | {"FLOWER_CHAT_REDIS_URL": "redis://user:hunter2@h/0"})
    assert "hunter2" not in repr(settings)
    assert "hunter2" not in str(settings)


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    env = config(tmp_path, GOOD) | {"FLOWER_CHAT_HOME": "/elsewhere", "FLOWER_CHAT_MAY_STEER": "T1/U1, T1/U2"}
    settings = read_settings(env)
    assert settings.home == Path("/elsewhere")
    assert settings.may_steer == ("T1/U1", "T1/U2")


def test_the_file_is_read(tmp_path: Path) -> None:
    settings = read_settings(config(tmp_path, GOOD))
    assert settings.workspace("").path == Path("/srv/site")
    assert settings.workspace("docs").fresh
    assert settings.workspace_name("") == "site"
    assert settings.lease_seconds == 20.0


def test_a_mistyped_workspace_gets_the_nearest(tmp_path: Path) -> None:
    settings = read_settings(config(tmp_path, GOOD))
    with pytest.raises(SettingsError, match=r"There is no workspace 'dosc'; did you mean 'docs'\? Known: docs, site\."):
        settings.workspace("dosc")


def test_the_default_home_is_a_folder_of_the_person_whatever_the_current_one_is() -> None:
    assert Settings().home == Path("~/.local/share/flower-chat").expanduser()


def test_without_any_workspace_the_error_says_so() -> None:
    with pytest.raises(SettingsError, match=r"there is no default\. Known: none is set up\."):
        Settings().workspace("")


def test_a_runner_inherits_no_chat_token_and_no_store() -> None:
    assert not [name for name in RUNNER_ENVIRONMENT if "SLACK" in name or "REDIS" in name or "FLOWER_CHAT" in name]
