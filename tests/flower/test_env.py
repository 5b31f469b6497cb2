from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from flower import texts
from flower.core import env

SECRET = "sk-ant-0123456789"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment without credentials, and folders of its own; restored afterwards."""
    for key in list(os.environ):
        if (
            key in env.KNOWN
            or key in ("FLOWER_ENV", "FLOWER_LANG", "XDG_CONFIG_HOME")
            or key.lower().endswith("_proxy")
        ):
            monkeypatch.delenv(key)
    for key in (
        *env.KNOWN,
        "ONLY_HERE",
        "export A",
        "FLOWER_UPDATE_FROM",
    ):  # restored even where the code under test sets them
        monkeypatch.setenv(key, "x")
        monkeypatch.delenv(key)
    folder = tmp_path / "home"
    (folder / "cwd").mkdir(parents=True)
    (folder / ".claude").mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.chdir(folder / "cwd")
    return folder


def put(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return path


# Files


@pytest.mark.parametrize("content", [b"", b"no sign\n=no key\n# A=1\n"])
def test_a_file_without_a_readable_line_sets_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ".env").write_bytes(content)
    assert env.load_dotenv(tmp_path / ".env") == {}


def test_a_missing_file_sets_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert env.load_dotenv(tmp_path / "no.env") == {}
    monkeypatch.setenv("FLOWER_ENV", str(tmp_path / "no.env"))
    assert env.load_dotenv() == {}


UNREADABLE = [
    (None, "这是一个目录"),
    (b"ONLY_HERE=1\ncaf\xe9=1", "不是 UTF-8(从第 16 个字节起)"),
    ("ONLY_HERE=1".encode("utf-16"), "不是 UTF-8(从第 1 个字节起)"),
    (b"ONLY_HERE=1\nA\x00B=1", "第 2 行有 NUL"),
]


def unreadable(path: Path, content: bytes | None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir() if content is None else path.write_bytes(content)
    return path


@pytest.mark.parametrize(("content", "why"), UNREADABLE)
def test_a_named_file_that_cannot_be_read_is_explained_and_sets_nothing(
    tmp_path: Path, content: bytes | None, why: str
) -> None:
    path = unreadable(tmp_path / "named.env", content)
    with pytest.raises(ValueError, match=re.escape(f"{path} 读不了:{why}")):
        env.load_dotenv(path)
    assert "ONLY_HERE" not in os.environ


@pytest.mark.parametrize(("content", "why"), UNREADABLE)
def test_of_flower_env_the_variable_is_named_too(
    home: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None, why: str
) -> None:
    unreadable(home / "named.env", content)
    put(home / "cwd" / ".env", "ANTHROPIC_MODEL=cwd\n")
    monkeypatch.setenv("FLOWER_ENV", "~/named.env")
    with pytest.raises(ValueError, match=re.escape(f"FLOWER_ENV 指的 ~/named.env 读不了:{why}")):
        env.load_dotenv()
    assert "ANTHROPIC_MODEL" not in os.environ


@pytest.mark.parametrize(("content", "why"), UNREADABLE)
def test_a_file_that_was_only_looked_for_is_passed_over(home: Path, content: bytes | None, why: str) -> None:
    for place in (home / "cwd", home / ".config" / "flower"):
        unreadable(place / ".env", content)
    put(home / ".claude" / "settings.json", json.dumps({"env": {"ANTHROPIC_MODEL": "claude"}}))
    expected = {"ANTHROPIC_MODEL": "claude"} | ({"ONLY_HERE": "1"} if "NUL" in why else {})
    assert env.load_dotenv() == expected


def test_a_file_without_the_right_to_read_it_is_explained_or_passed_over(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests may run as root, who may read everything: so it is the reading that is broken here."""
    path = put(home / "cwd" / ".env", "ONLY_HERE=1\n")

    def refused(_path: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refused)
    assert env.load_dotenv() == {}
    with pytest.raises(ValueError, match="没有读的权限"):
        env.load_dotenv(path)


@pytest.mark.parametrize("name", ["a\0b", "~no-such-user/x", "x" * 5000])
def test_a_name_that_can_be_no_file_is_no_traceback(name: str) -> None:
    with pytest.raises(ValueError, match="读不了"):
        env.load_dotenv(name)


def test_in_english_it_says_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOWER_ENV", str(tmp_path))
    with texts.speaking("en"), pytest.raises(ValueError, match=r"file that FLOWER_ENV names, .* it is a folder"):
        env.load_dotenv()


def test_a_pipe_is_not_waited_for_but_where_it_was_named(home: Path) -> None:
    os.mkfifo(home / "cwd" / ".env")
    assert env.load_dotenv() == {}
    os.mkfifo(home / "named")
    writing = threading.Thread(target=lambda: (home / "named").write_text("ONLY_HERE=piped\n"))
    writing.start()
    assert env.load_dotenv(home / "named") == {"ONLY_HERE": "piped"}
    writing.join()


def test_a_user_without_a_home_is_no_reason_to_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    assert env.user_env_path() == Path("/.config/flower/.env")
    assert env.load_dotenv() == {}


# The project's own file

STEERING = [
    *("GIT_SSH_COMMAND", "GIT_CONFIG_COUNT", "PIP_INDEX_URL", "PIPX_DEFAULT_PYTHON", "UV_INDEX", "LD_PRELOAD"),
    *("DYLD_INSERT_LIBRARIES", "PYTHONPATH", "XDG_CONFIG_HOME", "FLOWER_ENV", "FLOWER_UPDATE_FROM"),
    "FLOWER_TRUST_ADDRESS",
]


@pytest.fixture
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*STEERING, "PATH"):
        monkeypatch.setenv(name, "x")  # so that it is put back, whatever sets it meanwhile
        monkeypatch.delenv(name)


@pytest.mark.usefixtures("unset")
def test_a_project_cannot_steer_what_flower_starts_nor_where_secrets_lie(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    here = put(home / "cwd" / ".env", "".join(f"{name}=evil\n" for name in (*STEERING, "PATH")) + "ONLY_HERE=1\n")
    assert env.load_dotenv() == {"ONLY_HERE": "1"}
    assert env.load_dotenv() == {}
    (record,) = caplog.records  # once, though it is read twice
    assert (record.levelname, str(here) in record.message) == ("WARNING", True)
    assert [name for name in (*STEERING, "PATH") if name not in record.message] == []


@pytest.mark.usefixtures("unset")
@pytest.mark.parametrize("by", ["FLOWER_ENV", "user", "path"])
def test_a_file_that_the_person_chose_may_set_all_of_it(by: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(home / "cwd" / ".env", "PIP_INDEX_URL=https://evil.example/x\n")
    place = (
        home / ".config" / "flower" / ".env" if by == "user" else home / "cwd" / ".env" if by == "path" else home / "n"
    )
    put(place, "PIP_INDEX_URL=https://mine.example/x\nGIT_SSH_COMMAND=ssh -4\n")
    if by == "FLOWER_ENV":
        monkeypatch.setenv(by, str(place))
    assert env.load_dotenv(place if by == "path" else None) == {
        "PIP_INDEX_URL": "https://mine.example/x",
        "GIT_SSH_COMMAND": "ssh -4",
    }
    assert not env.from_project("PIP_INDEX_URL")


def test_what_a_project_has_set_does_not_reach_the_programs_that_flower_starts(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(home / "cwd" / ".env", "ONLY_HERE=project\nANTHROPIC_MODEL=project\n")
    monkeypatch.setenv("ANTHROPIC_MODEL", "mine")
    env.load_dotenv()
    assert os.environ["ONLY_HERE"] == "project"
    handed_on = env.without(("HOME",))
    assert ("ONLY_HERE" in handed_on, handed_on["ANTHROPIC_MODEL"], "HOME" in handed_on) == (False, "mine", False)
    monkeypatch.setenv("ONLY_HERE", "set by somebody else since")
    assert "ONLY_HERE" in env.without(())


@pytest.mark.parametrize(
    ("project", "person", "told"),
    [
        ("ANTHROPIC_BASE_URL=https://gate.example\n", "ANTHROPIC_API_KEY=k\n", "https://gate.example"),
        (
            "ANTHROPIC_BASE_URL=https://gate.example\nANTHROPIC_AUTH_TOKEN=t\n",
            "ANTHROPIC_API_KEY=k\n",
            "https://gate.example",
        ),
        ("ANTHROPIC_BASE_URL=https://gate.example\nANTHROPIC_AUTH_TOKEN=t\n", "", ""),
        ("ANTHROPIC_BASE_URL=https://gate.example\n", "", ""),
        ("ANTHROPIC_BASE_URL=\n", "ANTHROPIC_API_KEY=k\n", ""),
        ("", "ANTHROPIC_API_KEY=k\nANTHROPIC_BASE_URL=https://gate.example\n", ""),
    ],
)
def test_a_credential_from_elsewhere_at_the_address_of_a_project_is_noticed(
    project: str, person: str, told: str, home: Path
) -> None:
    put(home / "cwd" / ".env", project)
    put(home / ".config" / "flower" / ".env", person)
    env.load_dotenv()
    assert env.address_of_a_project() == told


def test_lines_that_were_meant_and_have_no_effect_are_found(home: Path) -> None:
    put(
        home / "cwd" / ".env",
        "ANTHROPIC_API_KEY: sk-1\n# ANTHROPIC_API_KEY x\nANTHROPIC_API_KEY = fine\nexport ANTHROPIC_BASE_URL=x\n"
        "  ANTHROPIC_AUTH_TOKEN t\nANTHROPIC_MODEL\nANTHROPIC_MODELS\nOTHER: 1\n",
    )
    assert env.lines_without_effect() == [
        (1, "ANTHROPIC_API_KEY"),
        (4, "ANTHROPIC_BASE_URL"),
        (5, "ANTHROPIC_AUTH_TOKEN"),
        (6, "ANTHROPIC_MODEL"),
    ]


def test_the_syntax_of_a_line(tmp_path: Path) -> None:
    path = put(
        tmp_path / ".env",
        "\ufeffONLY_HERE = \"a=b # c\" \n\n  # remark\nANTHROPIC_MODEL='m'\nexport A=1\nANTHROPIC_BASE_URL=\nno sign\n",
    )
    assert env.load_dotenv(path) == {
        "ONLY_HERE": "a=b # c",
        "ANTHROPIC_MODEL": "m",
        "export A": "1",
        "ANTHROPIC_BASE_URL": "",
    }
    assert os.environ["ONLY_HERE"] == "a=b # c"


def test_what_the_environment_has_stays_unless_it_is_overridden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(tmp_path / ".env", "ANTHROPIC_MODEL=file\nONLY_HERE=file\n")
    monkeypatch.setenv("ANTHROPIC_MODEL", "process")
    assert env.load_dotenv(path) == {"ONLY_HERE": "file"}
    assert os.environ["ANTHROPIC_MODEL"] == "process"
    assert env.load_dotenv(path, override=True) == {"ANTHROPIC_MODEL": "file", "ONLY_HERE": "file"}
    assert os.environ["ANTHROPIC_MODEL"] == "file"


def test_an_empty_variable_of_the_environment_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_MODEL", "")
    assert env.load_dotenv(put(tmp_path / ".env", "ANTHROPIC_MODEL=file")) == {}


# The lookup


def test_each_place_is_asked_in_its_turn_and_each_key_has_a_first(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOWER_ENV", str(put(home / "named.env", "ANTHROPIC_API_KEY=1-named\n")))
    put(home / "cwd" / ".env", "ANTHROPIC_API_KEY=2-cwd\nANTHROPIC_AUTH_TOKEN=2-cwd\n")
    put(
        home / ".config" / "flower" / ".env",
        "ANTHROPIC_API_KEY=3-user\nANTHROPIC_AUTH_TOKEN=3-user\nANTHROPIC_MODEL=3-user\n",
    )
    claude = {"ANTHROPIC_MODEL": "5-claude", "CLAUDE_CODE_EFFORT_LEVEL": "5-claude"}
    put(home / ".claude" / "settings.json", json.dumps({"env": claude}))
    local = {"CLAUDE_CODE_EFFORT_LEVEL": "6-local", "CLAUDE_CODE_SUBAGENT_MODEL": "6-local"}
    put(home / ".claude" / "settings.local.json", json.dumps({"env": local}))
    assert env.load_dotenv() == {
        "ANTHROPIC_API_KEY": "1-named",
        "ANTHROPIC_AUTH_TOKEN": "2-cwd",
        "ANTHROPIC_MODEL": "3-user",
        "CLAUDE_CODE_EFFORT_LEVEL": "5-claude",
        "CLAUDE_CODE_SUBAGENT_MODEL": "6-local",
    }


def test_the_root_of_the_source_tree_is_a_place(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(home / "tree" / ".env", "ONLY_HERE=source root\n")
    monkeypatch.setattr(env, "__file__", str(home / "tree" / "flower" / "core" / "env.py"))
    assert env.load_dotenv() == {"ONLY_HERE": "source root"}


def test_an_empty_value_claims_its_key(home: Path) -> None:
    put(home / "cwd" / ".env", "ANTHROPIC_MODEL=\n")
    put(home / ".config" / "flower" / ".env", "ANTHROPIC_MODEL=later\n")
    assert env.load_dotenv() == {"ANTHROPIC_MODEL": ""}


def test_a_named_file_is_read_alone(home: Path, tmp_path: Path) -> None:
    put(home / "cwd" / ".env", "ANTHROPIC_MODEL=cwd\n")
    put(home / ".claude" / "settings.json", json.dumps({"env": {"ANTHROPIC_API_KEY": "claude"}}))
    assert env.load_dotenv(put(tmp_path / "one.env", "ONLY_HERE=1")) == {"ONLY_HERE": "1"}


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"env": []}', '{"env": {"ANTHROPIC_API_KEY": ""}}', '{"env": {"ANTHROPIC_API_KEY": 1}}']
)
def test_settings_without_a_usable_value_are_passed_over(home: Path, content: str) -> None:
    put(home / ".claude" / "settings.json", content)
    assert env.load_dotenv() == {}


def test_of_the_settings_only_the_nine_known_keys_are_borrowed(home: Path) -> None:
    borrowed = {"ANTHROPIC_AUTH_TOKEN": "t", "ONLY_HERE": "no", "PATH": "no"}
    put(home / ".claude" / "settings.json", json.dumps({"env": borrowed}))
    assert env.load_dotenv() == {"ANTHROPIC_AUTH_TOKEN": "t"}


def test_the_file_of_the_user_follows_xdg(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert env.user_env_path() == home / ".config" / "flower" / ".env"
    monkeypatch.setenv("XDG_CONFIG_HOME", "/elsewhere")
    assert env.user_env_path() == Path("/elsewhere/flower/.env")


# Credentials


def test_without_credentials_a_person_is_told_the_ways_out(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", " ")
    told = env.check_credentials()
    assert told is not None
    assert told.split("\n")[0] == "缺少凭证:需要 ANTHROPIC_API_KEY 或 ANTHROPIC_AUTH_TOKEN。"
    for part in ("flower setup", str(home / ".config" / "flower" / ".env"), "export", "Claude Code"):
        assert part in told


def test_the_ways_out_are_told_in_english_too() -> None:
    with texts.speaking("en"):
        told = env.check_credentials()
    assert told is not None
    assert told.startswith("No credentials: ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN is needed.\n")


@pytest.mark.parametrize("key", ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"])
def test_one_of_the_two_is_enough(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv(key, SECRET)
    assert env.check_credentials() is None


def test_what_is_shown_hides_secrets_and_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    monkeypatch.setenv("ANTHROPIC_MODEL", "opus")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "https://me:hush@gate.example/x")
    assert env.describe() == {
        "ANTHROPIC_API_KEY": "sk-a***(共 17 位)",
        "ANTHROPIC_BASE_URL": "https://***@gate.example/x",
        "ANTHROPIC_MODEL": "opus",
    }


def test_the_default_address_is_shown() -> None:
    assert env.describe() == {"ANTHROPIC_BASE_URL": "https://api.anthropic.com(默认)"}


@pytest.mark.parametrize(
    ("value", "base"),
    [
        ("", "https://api.anthropic.com"),
        ("gate.example/", "https://gate.example"),
        ("http://gate:8080/v//", "http://gate:8080/v"),
    ],
)
def test_the_base_address_has_a_scheme_and_no_slash_at_its_end(
    monkeypatch: pytest.MonkeyPatch, value: str, base: str
) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", value)
    assert env.base_address() == base


# The probe


@dataclass
class Gateway:
    """A model endpoint that gives one answer to everything, and remembers the questions."""

    status: int = 200
    body: str = "{}"
    asked: list[tuple[str, dict[str, str], dict[str, Any]]] = field(default_factory=list)


@contextmanager
def serving(gateway: Gateway) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            gateway.asked.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            self.send_response(gateway.status)
            self.end_headers()
            self.wfile.write(gateway.body.encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the base class
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def probed(monkeypatch: pytest.MonkeyPatch, gateway: Gateway) -> tuple[str, str]:
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    with serving(gateway) as base:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", f"{base}/x/")
        return env.probe_credentials(timeout=5)


def test_without_a_credential_nobody_is_asked() -> None:
    assert env.probe_credentials() == ("auth", "没有凭证")


@pytest.mark.parametrize(
    ("status", "body", "verdict"),
    [
        (200, "{}", "ok"),
        (429, "slow down", "ok"),
        (400, "max_tokens too small", "ok"),
        (402, "", "ok"),
        (401, "", "auth"),
        (403, "", "auth"),
        (404, "", "config"),
        (400, '{"error": {"type": "not_found_error"}}', "config"),
        (400, "The model DOES NOT EXIST", "config"),
        (400, "no such model", "config"),
        (400, "Unknown model", "config"),
        (400, "invalid model: x", "config"),
        (500, "not found", "net"),
        (529, "", "net"),
    ],
)
def test_the_answer_decides(monkeypatch: pytest.MonkeyPatch, status: int, body: str, verdict: str) -> None:
    assert probed(monkeypatch, Gateway(status, body))[0] == verdict


def test_the_question_is_one_small_message(monkeypatch: pytest.MonkeyPatch) -> None:
    gateway = Gateway()
    monkeypatch.setenv("ANTHROPIC_MODEL", "main")
    assert probed(monkeypatch, gateway) == ("ok", "HTTP 200")
    ((path, headers, body),) = gateway.asked
    assert path == "/x/v1/messages"
    assert headers["anthropic-version"] == "2023-06-01"
    assert headers["x-api-key"] == SECRET
    assert "authorization" not in headers
    assert (body["model"], body["max_tokens"]) == ("main", 16)


@pytest.mark.parametrize(
    ("variables", "model"),
    [
        ({}, "claude-3-5-haiku-20241022"),
        ({"ANTHROPIC_MODEL": "main"}, "main"),
        ({"ANTHROPIC_MODEL": "main", "ANTHROPIC_DEFAULT_HAIKU_MODEL": "small"}, "small"),
    ],
)
def test_the_smallest_model_that_is_named_is_asked(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], model: str
) -> None:
    gateway = Gateway()
    for key, value in variables.items():
        monkeypatch.setenv(key, value)
    probed(monkeypatch, gateway)
    assert gateway.asked[0][2]["model"] == model


def test_a_token_is_sent_as_bearer(monkeypatch: pytest.MonkeyPatch) -> None:
    gateway = Gateway()
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", SECRET)
    with serving(gateway) as base:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", base)
        env.probe_credentials(timeout=5)
    assert gateway.asked[0][1]["authorization"] == f"Bearer {SECRET}"
    assert "x-api-key" not in gateway.asked[0][1]


@pytest.mark.parametrize("base", ["http://127.0.0.1:1", "http://127.0.0.1:none", "ftp://x:hush@127.0.0.1"])
def test_no_connection_is_a_matter_of_the_network(monkeypatch: pytest.MonkeyPatch, base: str) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", base)
    verdict, reason = env.probe_credentials(timeout=5)
    assert verdict == "net"
    assert reason.startswith("没有连上:")
    assert "hush" not in reason


@pytest.mark.case("SE-4")
def test_a_gateway_that_repeats_the_credential_does_not_make_us_say_it(monkeypatch: pytest.MonkeyPatch) -> None:
    verdict, reason = probed(monkeypatch, Gateway(401, f"bad key\n {SECRET}" + "x" * 500))
    assert verdict == "auth"
    assert SECRET not in reason
    assert reason.startswith("凭证被拒(HTTP 401): bad key ***xxx")
    assert len(reason) < 250
