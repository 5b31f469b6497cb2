"""Credentials at a first use: refusals first; a pseudo-terminal where somebody types, a server that judges."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import pty
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from flower.cli import setup
from flower.cli.setup import ensure_credentials, keep, run_setup, settings
from flower.core.env import load_dotenv

KEYS = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_MODEL",
    "FLOWER_ENV",
    "FLOWER_WINDOW",
)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home and an empty directory; what a test sets in the environment is gone after it."""
    for name in [*KEYS, *setup._MODELS, "XDG_CONFIG_HOME", "FLOWER_NO_PROBE", "FLOWER_LANG"]:
        monkeypatch.setenv(name, "to be forgotten")  # so that it is put back, whatever sets it meanwhile
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


@dataclass
class Gateway:
    """Answers the probe with one status after another, and keeps what it was sent."""

    statuses: list[int]
    credentials: list[str] = field(default_factory=list)
    url: str = ""


@contextlib.contextmanager
def gateway(*statuses: int) -> Iterator[Gateway]:
    seen = Gateway(list(statuses))

    class Answers(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            seen.credentials.append(self.headers.get("x-api-key") or self.headers.get("authorization") or "")
            self.send_response(seen.statuses.pop(0))
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    seen.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextlib.contextmanager
def typed(monkeypatch: pytest.MonkeyPatch, *lines: str) -> Iterator[list[str]]:
    """A terminal on which these lines are typed, first the token; gives what the token was asked for with."""
    keyboard, program = pty.openpty()
    with open(program, closefd=False, encoding="utf-8") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        asked, questions = iter(lines[:1]), []

        def getpass(question: str) -> str:
            questions.append(question)
            return next(asked)

        monkeypatch.setattr("getpass.getpass", getpass)
        os.write(keyboard, "".join(f"{line}\n" for line in lines[1:]).encode())
        yield questions
    os.close(keyboard)
    os.close(program)


def test_without_a_terminal_nothing_is_asked_and_the_missing_credential_is_told() -> None:
    assert run_setup(reason="why") is False
    with pytest.raises(SystemExit) as ending:
        ensure_credentials()
    assert str(ending.value.code).startswith("缺少凭证:需要 ANTHROPIC_API_KEY 或 ANTHROPIC_AUTH_TOKEN。")


@pytest.mark.parametrize("made", ["folder", b"\xff\xfe\x00"])
def test_a_named_env_file_that_cannot_be_read_is_told(
    made: str | bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = tmp_path / "named.env"
    if isinstance(made, bytes):
        named.write_bytes(made)
    else:
        named.mkdir()
    monkeypatch.setenv("FLOWER_ENV", str(named))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "there")
    with pytest.raises(SystemExit) as ending:
        ensure_credentials()
    assert f"{named} 读不了:" in str(ending.value.code)


def test_a_named_env_file_that_is_not_there_is_told_and_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FLOWER_ENV", str(tmp_path / "none.env"))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "there")
    ensure_credentials()
    assert "none.env 不存在" in "".join(capsys.readouterr().out.split("\n"))


@pytest.mark.parametrize(
    ("token", "told"),
    [
        ("", "没给 token,取消。"),
        ("two words", "没有存,取消。"),
        ("\x1b[Atoken", "没有存,取消。"),
        ("tökén", "没有存,取消。"),
    ],
)
def test_a_token_that_is_none_is_not_kept(
    token: str, told: str, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with typed(monkeypatch, token):
        assert run_setup() is False
    assert told in capsys.readouterr().out
    assert list(home.iterdir()) == []


def test_a_file_that_cannot_be_written_is_told(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / ".config").write_text("in the way", encoding="utf-8")
    with typed(monkeypatch, "token", "", "", ""):
        assert run_setup() is False
    assert "没存成" in capsys.readouterr().out
    assert "ANTHROPIC_AUTH_TOKEN" not in os.environ


def kept(home: Path) -> list[str]:
    return (home / ".config" / "flower" / ".env").read_text(encoding="utf-8").splitlines()


def test_what_was_typed_is_kept_for_its_owner_only_and_counts_at_once(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FLOWER_NO_PROBE", "1")
    with typed(monkeypatch, "sk-ant-new", " https://gate.example ", "", ""):
        assert run_setup(reason="第一次用?") is True
    file = home / ".config" / "flower" / ".env"
    assert kept(home) == [
        "ANTHROPIC_API_KEY=sk-ant-new",
        "ANTHROPIC_AUTH_TOKEN=",
        "ANTHROPIC_BASE_URL=https://gate.example",
    ]
    assert file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in file.parent.iterdir()] == [".env"]
    assert os.environ["ANTHROPIC_BASE_URL"] == "https://gate.example"
    assert "sk-ant-new" not in capsys.readouterr().out


@pytest.mark.parametrize("place", [".env", "home/.claude/settings.json", "home/.config/flower/.env"])
def test_the_other_kind_of_credential_does_not_come_back(
    place: str, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old key would be sent to the new address: `Runtime` reads the files again."""
    monkeypatch.setenv("FLOWER_NO_PROBE", "1")
    file = tmp_path / place
    file.parent.mkdir(parents=True, exist_ok=True)
    old = {"ANTHROPIC_API_KEY": "sk-ant-old"}
    file.write_text(json.dumps({"env": old}) if file.suffix == ".json" else "ANTHROPIC_API_KEY=sk-ant-old\n")
    load_dotenv()
    assert os.environ["ANTHROPIC_API_KEY"] == "sk-ant-old"
    with typed(monkeypatch, "token", "https://gate.example", "", ""):
        assert run_setup() is True
    load_dotenv()
    assert (os.environ["ANTHROPIC_API_KEY"], os.environ["ANTHROPIC_AUTH_TOKEN"]) == ("", "token")
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)
    (tmp_path / ".env").unlink(missing_ok=True)
    load_dotenv()  # the next process
    assert (os.environ["ANTHROPIC_API_KEY"], os.environ["ANTHROPIC_AUTH_TOKEN"]) == ("", "token")


def test_a_new_token_does_not_go_to_the_address_of_a_project(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FLOWER_NO_PROBE", "1")
    (tmp_path / ".env").write_text("ANTHROPIC_BASE_URL=https://evil.example\n", encoding="utf-8")
    load_dotenv()
    with typed(monkeypatch, "token", "", "", ""):
        assert run_setup() is True
    assert os.environ["ANTHROPIC_BASE_URL"] == ""
    shown = "".join(capsys.readouterr().out.split("\n"))
    assert "回车 = 官方" in shown
    assert "这个目录的 .env 里 ANTHROPIC_BASE_URL 另有一个值" in shown
    assert "unset" not in shown


def test_what_is_not_an_answer_is_asked_for_again_with_the_reason(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FLOWER_NO_PROBE", "1")
    addresses = ["gate.example", "ftp://gate.example", "https://", "https://[", "http://gate.example:99x"]
    windows = ["many", "0", "-5", "200kk", "9" * 50, "200k"]
    with typed(monkeypatch, "token", *addresses, "http://gate.example", "", *windows):
        assert run_setup() is True
    shown = capsys.readouterr().out
    assert [each for each in (*addresses, *windows[:-1]) if f"! {each} 不行:" not in "".join(shown.split("\n"))] == []
    assert kept(home)[2:] == ["ANTHROPIC_BASE_URL=http://gate.example", "FLOWER_WINDOW=200000"]


def test_what_is_there_is_offered_and_the_token_only_masked(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FLOWER_NO_PROBE", "1")
    with typed(monkeypatch, "gateway-token", "https://gate.example", "opus", "1m") as questions:
        assert run_setup() is True
    assert questions == ["API key 或 token(不会显示): "]
    before = kept(home)
    assert before[-1] == "FLOWER_WINDOW=1000000"
    capsys.readouterr()
    with typed(monkeypatch, "=", "", "", "") as questions:
        assert run_setup() is True
    assert kept(home) == before
    shown = capsys.readouterr().out
    assert questions == ["API key 或 token(不会显示;输 = 保留现在的 gate***(共 13 位)): "]
    assert "gateway-token" not in shown
    for present in ("回车 = https://gate.example,- = 官方", "回车 = opus,- = 默认", "回车 = 1000000,- = 自动"):
        assert present in shown
    with typed(monkeypatch, "=", "-", "-", "-"):
        assert run_setup() is True
    assert kept(home)[2:] == ["ANTHROPIC_BASE_URL=", *(f"{name}=" for name in setup._MODELS), "FLOWER_WINDOW="]
    assert "unset" not in capsys.readouterr().out  # the old values were those of the file


def test_a_key_that_is_kept_stays_of_its_kind(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOWER_NO_PROBE", "1")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "of-a-gateway")
    with typed(monkeypatch, "=", "", "", ""):
        assert run_setup() is True
    assert kept(home) == ["ANTHROPIC_API_KEY=of-a-gateway", "ANTHROPIC_AUTH_TOKEN="]


@pytest.mark.parametrize(
    ("status", "told"),
    [(200, "+ 试过了"), (401, "! 凭证被拒:"), (404, "! 网关地址或模型名不对:"), (500, "! 没能试出来:")],
)
def test_what_was_set_up_is_tried_and_what_came_of_it_is_told(
    status: int, told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with gateway(status) as server, typed(monkeypatch, "token", server.url, "", ""):
        assert run_setup() is True
    assert server.credentials == ["Bearer token"]
    assert told in capsys.readouterr().out


def test_a_value_that_will_win_at_the_next_start_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FLOWER_NO_PROBE", "1")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "exported")
    with typed(monkeypatch, "mine", "", "", ""):
        assert run_setup() is True
    assert "unset ANTHROPIC_AUTH_TOKEN" in capsys.readouterr().out
    assert os.environ["ANTHROPIC_AUTH_TOKEN"] == "mine"


def test_lines_of_the_env_file_that_have_no_effect_are_named_without_their_value(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("# mine\nANTHROPIC_API_KEY: sk-ant-1234\n", encoding="utf-8")
    with pytest.raises(SystemExit) as ending:
        ensure_credentials()
    assert "! ./.env 第 2 行没有起作用:要写成 ANTHROPIC_API_KEY=值" in str(ending.value.code)
    assert "1234" not in str(ending.value.code)


@pytest.mark.parametrize(
    ("answers", "values"),
    [
        ({"credential": "sk-ant-x"}, {"ANTHROPIC_API_KEY": "sk-ant-x"}),
        ({"credential": "abc", "base": "http://g"}, {"ANTHROPIC_AUTH_TOKEN": "abc", "ANTHROPIC_BASE_URL": "http://g"}),
        (
            {"credential": "abc", "model": "m"},
            {
                "ANTHROPIC_AUTH_TOKEN": "abc",
                "ANTHROPIC_MODEL": "m",
                "ANTHROPIC_DEFAULT_OPUS_MODEL": "m",
                "ANTHROPIC_DEFAULT_SONNET_MODEL": "m",
            },
        ),
        ({"credential": "abc", "window": "0200000"}, {"ANTHROPIC_AUTH_TOKEN": "abc", "FLOWER_WINDOW": "200000"}),
        ({"credential": "abc", "window": "200K"}, {"ANTHROPIC_AUTH_TOKEN": "abc", "FLOWER_WINDOW": "200000"}),
        ({"credential": "abc", "window": "0"}, {"ANTHROPIC_AUTH_TOKEN": "abc"}),
        ({"credential": "abc", "window": "-5"}, {"ANTHROPIC_AUTH_TOKEN": "abc"}),
        ({"credential": "abc", "window": "²"}, {"ANTHROPIC_AUTH_TOKEN": "abc"}),
        ({"credential": "abc", "window": "9" * 5000}, {"ANTHROPIC_AUTH_TOKEN": "abc"}),
    ],
)
def test_what_answers_stand_for(answers: dict[str, str], values: dict[str, str]) -> None:
    assert settings(**answers) == values


def test_keeping_replaces_the_whole_file_and_closes_an_open_one(tmp_path: Path) -> None:
    path = tmp_path / "deep" / ".env"
    path.parent.mkdir()
    path.write_text("OLD=1\n", encoding="utf-8")
    path.chmod(0o644)
    keep(path, {"A": "1", "B": "2"})
    assert path.read_text(encoding="utf-8") == "A=1\nB=2\n"
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("statuses", "told", "refusal"),
    [
        ([401], "", "凭证被拒,且无法交互配置。跑 `flower setup` 重配。"),
        ([404], "", "网关地址或模型名不对,且无法交互配置。跑 `flower setup` 重配。"),
    ],
)
def test_a_refused_credential_that_nobody_replaces_ends_the_program(
    statuses: list[int], told: str, refusal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with gateway(*statuses) as server, typed(monkeypatch, ""):
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "wrong")
        with pytest.raises(SystemExit) as ending:
            ensure_credentials()
    assert str(ending.value.code) == told + refusal


def test_a_refused_credential_is_asked_for_once_and_tried_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with gateway(401, 200) as server, typed(monkeypatch, "right", "", "", ""):
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "wrong")
        ensure_credentials()
    assert server.credentials == ["Bearer wrong", "Bearer right"]
    assert "! 凭证被拒:" in capsys.readouterr().out


def test_two_refusals_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    with gateway(401, 403) as server, typed(monkeypatch, "wrong too", "", "", ""):
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "wrong")
        with pytest.raises(SystemExit, match="凭证被拒"):
            ensure_credentials()
    assert len(server.credentials) <= 2


@pytest.mark.parametrize("status", [500, 529])
def test_a_bad_network_asks_nobody_for_a_good_token(
    status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with gateway(status) as server, typed(monkeypatch):
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "good")
        ensure_credentials()
    assert "(探针没打通:" in capsys.readouterr().out


def test_a_language_that_there_is_not_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "good")
    (tmp_path / ".env").write_text("FLOWER_LANG=fr\n", encoding="utf-8")
    with pytest.raises(SystemExit, match="FLOWER_LANG: no texts in 'fr'"):
        ensure_credentials()


def test_no_probe_is_made_where_it_is_not_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    with gateway() as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "good")
        ensure_credentials()  # no terminal
        with typed(monkeypatch):
            ensure_credentials(probe=False)
            monkeypatch.setenv("FLOWER_NO_PROBE", "1")
            ensure_credentials()
    assert server.credentials == []
