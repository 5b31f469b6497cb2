"""Credentials at a first use: asked for once, tried, and kept where only their owner can read them (API 17.4)."""

from __future__ import annotations

import getpass
import os
import re
import secrets
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

from flower import texts
from flower.cli.screen import standard
from flower.cli.terminal import ask_line, is_terminal
from flower.cli.trust import ensure_trusted
from flower.core.env import (
    PROBE_AUTH,
    PROBE_CONFIG,
    PROBE_NET,
    PROBE_OK,
    check_credentials,
    from_project,
    lines_without_effect,
    load_dotenv,
    masked,
    probe_credentials,
    stored,
    user_env_path,
    variable,
)

_KEY, _TOKEN = "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"
_BASE, _WINDOW = "ANTHROPIC_BASE_URL", "FLOWER_WINDOW"
_MODELS = ("ANTHROPIC_MODEL", "ANTHROPIC_DEFAULT_OPUS_MODEL", "ANTHROPIC_DEFAULT_SONNET_MODEL")
_SAME, _NONE = "=", "-"
"""What is typed to keep the present credential, which Enter does not (API 17.4), and to do without a present value."""


def ensure_credentials(*, probe: bool = True) -> None:
    """See to it that there is a credential, and at a terminal that it works. Asks for one where it can.

    Blocks for a person, and for at most two probes of 20 seconds.

    Raises:
        SystemExit: there is none, or it was refused, and nobody could be asked. Its text says what to do.
    """
    named = variable("FLOWER_ENV")
    try:
        load_dotenv()
        said = texts.current().commands  # a file may have set the language
    except ValueError as err:
        raise SystemExit(str(err)) from None
    if named and not Path(named).expanduser().exists():
        standard().say(said.no_env_file.format(path=named))
    if missing := check_credentials():
        hints = [said.line_without_effect.format(line=line, key=key) for line, key in lines_without_effect()]
        if not _asked("\n".join([*hints, said.first_use])):
            raise SystemExit("\n".join([missing, *hints]))
    ensure_trusted()
    if probe and is_terminal() and not variable("FLOWER_NO_PROBE"):
        _probe()


def _probe() -> None:
    said, screen = texts.current().commands, standard()
    for asked in (False, True):
        verdict, reason = probe_credentials()
        if verdict == PROBE_NET:
            # A bad network must never make anyone enter a good token again.
            screen.say(said.probing_net.format(reason=reason))
        if verdict not in (PROBE_AUTH, PROBE_CONFIG):
            return
        told, refusal = (
            (said.auth_reason, said.auth_refused) if verdict == PROBE_AUTH else (said.config_reason, said.config_wrong)
        )
        if asked or not _asked(told.format(reason=reason)):
            raise SystemExit(f"{told.format(reason=reason)}\n{refusal}" if asked else refusal)


def run_setup(*, reason: str = "") -> bool:
    """Ask for token, address, model and window, keep them, and try them. False where nothing was kept.

    Without a terminal it asks nothing. The token is not echoed. Blocks for a person, and for a probe of 20 seconds.

    Raises:
        KeyboardInterrupt: Ctrl-C.
    """
    if not _asked(reason):
        return False
    if not variable("FLOWER_NO_PROBE"):
        said = texts.current().commands
        verdict, why = probe_credentials()
        told = {PROBE_OK: said.tried, PROBE_AUTH: said.auth_reason, PROBE_CONFIG: said.config_reason}
        standard().say(told.get(verdict, said.not_tried).format(reason=why))
        if verdict in (PROBE_AUTH, PROBE_CONFIG):
            standard().say(said.set_up_anew)
    return True


def _asked(reason: str) -> bool:
    """Ask and keep, as `run_setup`, but try nothing."""
    if not is_terminal():
        return False
    said, screen = texts.current().commands, standard()
    path, present = user_env_path(), _present()
    if reason:
        screen.say(reason)
    screen.say(said.setup_where.format(path=path))
    kind, credential = _credential(present)
    if not credential:
        screen.write(said.no_credential)
        return False
    if not (credential.isascii() and credential.isprintable() and " " not in credential):
        screen.say(said.odd_credential)
        return False
    base = _answer(said.ask_base, said.official, present[_BASE], _bad_address)
    model = _answer(said.ask_model, said.default_model, present[_MODELS[0]])
    window = _answer(said.ask_window, said.automatic, present[_WINDOW], _bad_window)
    # The other kind of credential would win over the new one, or be sent to the new address. An empty value counts as
    # set, so neither another file nor Claude Code's settings bring it back.
    values = {kind: credential, _TOKEN if kind == _KEY else _KEY: ""}
    values |= settings("", base=base, model=model, window=window)
    if variable(_BASE):
        values.setdefault(_BASE, "")  # also where a project has set it: the new token is not meant for that
    for asked, keys in ((_MODELS[0], _MODELS), (_WINDOW, (_WINDOW,))):
        if present[asked]:
            values |= {key: "" for key in keys if key not in values}
    old = stored()
    shadows = [
        (said.shadowed_here if from_project(key) else said.shadowed).format(key=key)
        for key in values
        if variable(key) and variable(key) not in (values[key], old.get(key))
    ]
    try:
        keep(path, values)
    except OSError as err:
        screen.say(said.not_stored.format(path=path, error=err.strerror or err))
        return False
    load_dotenv(path, override=True)
    screen.say(said.stored.format(path=path))
    for each in shadows:
        screen.say(each)
    return True


def settings(credential: str, *, base: str = "", model: str = "", window: str = "") -> dict[str, str]:
    """The variables that answers stand for."""
    values = {_kind(credential): credential} if credential else {}
    if base:
        values[_BASE] = base
    if model:
        values |= dict.fromkeys(_MODELS, model)
    if count := _count(window):
        values[_WINDOW] = str(count)
    return values


def keep(path: Path, values: Mapping[str, str]) -> None:
    """Write a .env as a whole, readable by its owner only from its first byte on.

    Raises:
        OSError: it could not be written; an old one is as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f".env.{secrets.token_hex(4)}")
    try:
        draft.touch(mode=0o600, exist_ok=False)
        with draft.open("w", encoding="utf-8") as file:
            file.writelines(f"{key}={value}\n" for key, value in values.items())
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def _present() -> dict[str, str]:
    """What is set now and may be offered again: the stored file, else what is set, but for what a project has set."""
    keys = (_KEY, _TOKEN, _BASE, _MODELS[0], _WINDOW)
    old = stored()
    return {key: old.get(key) or ("" if from_project(key) else variable(key).strip()) for key in keys}


def _kind(credential: str) -> str:
    return _KEY if credential.startswith("sk-ant-") else _TOKEN


def _credential(present: Mapping[str, str]) -> tuple[str, str]:
    """Ask for the credential; the variable that it goes into, and what was typed. Enter is no answer."""
    said = texts.current().commands
    kind = next((key for key in (_KEY, _TOKEN) if present[key]), "")
    if not kind:
        typed = _secret(said.ask_credential)
        return _kind(typed), typed
    typed = _secret(said.ask_credential_again.format(present=masked(present[kind])))
    return (kind, present[kind]) if typed == _SAME else (_kind(typed), typed)


def _answer(question: str, without: str, present: str, wrong: Callable[[str], str] = lambda _answer: "") -> str:
    """Ask until the answer will do. Enter, or the end of input, keeps what is present; `-` does without it.

    Args:
        question: with a place for what Enter does.
        without: what it is without an answer, in words.
        wrong: why an answer will not do; empty if it will.
    """
    said, screen = texts.current().commands, standard()
    enter = said.enter_keeps.format(present=present, without=without) if present else said.enter_is.format(what=without)
    while True:
        answer = _line(question.format(enter=enter))
        if not answer:
            return present
        if answer == _NONE:
            return ""
        if not (reason := wrong(answer)):
            return answer
        screen.say(reason)


def _bad_address(text: str) -> str:
    try:
        parts = urlsplit(text)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and " " not in text
    except ValueError:
        good = False
    return "" if good else texts.current().commands.odd_address.format(value=text)


def _bad_window(text: str) -> str:
    return "" if _count(text) else texts.current().commands.odd_window.format(value=text)


def _count(text: str) -> int:
    """A number of tokens, also as 200k or 1m; 0 where it is none."""
    found = re.fullmatch(r"([0-9]{1,11})([kKmM]?)", text)
    return int(found[1]) * {"": 1, "k": 1_000, "m": 1_000_000}[found[2].lower()] if found else 0


def _secret(question: str) -> str:
    """Read without echo. A signal that ends us is an exception meanwhile, so that the echo is switched on again."""
    numbers = [signal.SIGTERM, *([signal.SIGHUP] if sys.platform != "win32" else [])]
    before = {number: signal.signal(number, _leave) for number in numbers}
    try:
        return getpass.getpass(question).strip()
    except EOFError:
        return ""
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _leave(number: int, _frame: object) -> NoReturn:
    raise SystemExit(128 + number)


def _line(question: str) -> str:
    return "".join(each for each in ask_line(question) or "" if each.isprintable()).strip()
