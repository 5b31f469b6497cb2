"""Credentials at a first use: asked for once, tried, and kept where only their owner can read them (API 17.4)."""

from __future__ import annotations

import getpass
import os
import secrets
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from flower import texts
from flower.cli.screen import standard
from flower.cli.terminal import ask_line, is_terminal
from flower.core.env import (
    PROBE_AUTH,
    PROBE_CONFIG,
    PROBE_NET,
    check_credentials,
    load_dotenv,
    probe_credentials,
    user_env_path,
)

_KEY, _TOKEN = "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"
_MODELS = ("ANTHROPIC_MODEL", "ANTHROPIC_DEFAULT_OPUS_MODEL", "ANTHROPIC_DEFAULT_SONNET_MODEL")

_environment = os.environ  # noqa: TID251 - two switches, and which values will stand above the file


def ensure_credentials(*, probe: bool = True) -> None:
    """See to it that there is a credential, and at a terminal that it works. Asks for one where it can.

    Blocks for a person, and for at most two probes of 20 seconds.

    Raises:
        SystemExit: there is none, or it was refused, and nobody could be asked. Its text says what to do.
    """
    named = _environment.get("FLOWER_ENV")
    try:
        load_dotenv()
        said = texts.current().commands  # a file may have set the language
    except ValueError as err:
        raise SystemExit(str(err)) from None
    if named and not Path(named).expanduser().exists():
        standard().say(said.no_env_file.format(path=named))
    missing = check_credentials()
    if missing and not run_setup(reason=said.first_use):
        raise SystemExit(missing)
    if probe and is_terminal() and not _environment.get("FLOWER_NO_PROBE"):
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
        if asked or not run_setup(reason=told.format(reason=reason)):
            raise SystemExit(f"{told.format(reason=reason)}\n{refusal}" if asked else refusal)


def run_setup(*, reason: str = "") -> bool:
    """Ask for token, address, model and window, and keep them. False where nothing was kept.

    Without a terminal it asks nothing. The token is not echoed. Blocks for a person.

    Raises:
        KeyboardInterrupt: Ctrl-C.
    """
    if not is_terminal():
        return False
    said, screen = texts.current().commands, standard()
    path = user_env_path()
    if reason:
        screen.say(reason)
    screen.say(said.setup_where.format(path=path))
    credential = _secret(said.ask_credential)
    if not credential:
        screen.write(said.no_credential)
        return False
    if not (credential.isascii() and credential.isprintable() and " " not in credential):
        screen.say(said.odd_credential)
        return False
    base, model, window = (_line(question) for question in (said.ask_base, said.ask_model, said.ask_window))
    if window and not _is_count(window):
        screen.say(said.odd_window.format(value=window))
    values = settings(credential, base=base, model=model, window=window)
    shadows = [key for key in values if _environment.get(key) and _environment[key] != values[key]]
    try:
        keep(path, values)
    except OSError as err:
        screen.say(said.not_stored.format(path=path, error=err.strerror or err))
        return False
    # The other kind of credential would win over the new one, or be sent to the new address.
    _environment.pop(_TOKEN if _KEY in values else _KEY, None)
    load_dotenv(path, override=True)
    screen.say(said.stored.format(path=path))
    for key in shadows:
        screen.say(said.shadowed.format(key=key))
    return True


def settings(credential: str, *, base: str = "", model: str = "", window: str = "") -> dict[str, str]:
    """The variables that answers stand for."""
    values = {_KEY if credential.startswith("sk-ant-") else _TOKEN: credential}
    if base:
        values["ANTHROPIC_BASE_URL"] = base
    if model:
        values |= dict.fromkeys(_MODELS, model)
    if _is_count(window):
        values["FLOWER_WINDOW"] = str(int(window))
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


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdecimal() and 0 < len(text) < 12 and int(text) > 0


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
