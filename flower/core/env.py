"""Where values come from: environment, .env files, what Claude Code has stored; and whether the credential works.

Rules: API 17.1 and 15.1. This is the one place in `core` that reads and writes the environment.
"""

from __future__ import annotations

import functools
import json
import logging
import os
import re
import urllib.error
import urllib.request
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from flower.core.disk import read_whole
from flower.texts import current

KNOWN = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_MODEL",
    "ANTHROPIC_DEFAULT_OPUS_MODEL",
    "ANTHROPIC_DEFAULT_SONNET_MODEL",
    "ANTHROPIC_DEFAULT_HAIKU_MODEL",
    "CLAUDE_CODE_SUBAGENT_MODEL",
    "CLAUDE_CODE_EFFORT_LEVEL",
)

PROBE_OK = "ok"
PROBE_AUTH = "auth"
PROBE_CONFIG = "config"
PROBE_NET = "net"
# A limit of 1 makes models that reason answer many times more slowly.
PROBE_MAX_TOKENS = 16

# What steers programs that we start, and where secrets lie (docs/decisions/0018).
_NOT_FROM_A_PROJECT = re.compile(
    r"(?:GIT_|PIP_|PIPX_|UV_|LD_|DYLD_|PYTHON).*"
    r"|PATH|HOME|XDG_CONFIG_HOME|FLOWER_ENV|FLOWER_UPDATE_FROM|FLOWER_TRUST_ADDRESS",
    re.DOTALL,
)

_OFFICIAL = "https://api.anthropic.com"
_PROBE_MODEL = "claude-3-5-haiku-20241022"
_UNKNOWN_MODEL = re.compile(
    r"not_found|not found|does not exist|unknown model|no such model|invalid model", re.IGNORECASE
)

_environment = os.environ  # noqa: TID251 - this module is the door (house style 31)
_from_project: dict[str, str] = {}
"""What the `.env` of the current folder has put into the environment: as much of the process as that is."""

_log = logging.getLogger(__name__)


def user_env_path() -> Path:
    """The file that `flower setup` writes."""
    return Path(_environment.get("XDG_CONFIG_HOME") or _home() / ".config") / "flower" / ".env"


def load_dotenv(path: str | Path | None = None, *, override: bool = False) -> dict[str, str]:
    """Put values from files into the environment, and return what was set.

    Without `path` the usual places are asked, and for each key the first that has it wins (an empty value has it).
    With `path` only that file is read. What the environment has already stays, unless `override`. A file that is only
    looked for is passed over where it cannot be read; one that a person named, by `path` or in FLOWER_ENV, may be
    missing and nothing else. The `.env` of the current folder belongs to the project: what would steer programs that
    flower starts, or say where secrets lie, is passed over there, with a line on the log.

    Raises:
        ValueError: the named file is a folder, cannot be read, is not UTF-8, or holds a NUL; nothing was set.
    """
    found = _found(path)
    wanted = {key: value for key, (value, _) in found.items() if override or key not in _environment}
    for key, value in wanted.items():
        _from_project.pop(key, None)
        if found[key][1]:
            _from_project[key] = value
    _environment.update(wanted)
    return wanted


def from_project(name: str) -> bool:
    """Whether a variable has its value from the `.env` of the folder that was the current one."""
    return name in _from_project and _from_project[name] == _environment.get(name)


def stored() -> dict[str, str]:
    """What the file that `flower setup` writes holds now; empty where it cannot be read."""
    return _looked_for(user_env_path())


def address_of_a_project() -> str:
    """The base address that the project has set, where a credential from elsewhere would go to it; else empty."""
    credentials = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
    address = _environment.get("ANTHROPIC_BASE_URL", "").strip()
    strange = any(_environment.get(key, "").strip() and not from_project(key) for key in credentials)
    return address if strange and from_project("ANTHROPIC_BASE_URL") else ""


def lines_without_effect() -> list[tuple[int, str]]:
    """Number (from 1) and key of the lines in `./.env` that are meant to set a known key and do not."""
    keys = "|".join(KNOWN)
    meant = re.compile(rf"\s*(?:export\s+|set\s+)?({keys})(?!\w)(?!\s*=)|\s*(?:export|set)\s+({keys})\s*=")
    found = []
    for number, line in enumerate(_text_of(Path(".env")).splitlines(), 1):
        if match := meant.match(line):
            found.append((number, match[1] or match[2]))
    return found


def check_credentials() -> str | None:
    """None if there is a credential, else what to tell a person. The usual places are not searched by this."""
    if _credential() is not None:
        return None
    return current().surroundings.no_credentials.format(path=user_env_path())


def describe() -> dict[str, str]:
    """The known keys that have a value, fit to be shown: secrets masked, the base address always."""
    spoken = current().surroundings
    shown: dict[str, str] = {}
    for key in KNOWN:
        value = _environment.get(key, "")
        if value and ("TOKEN" in key or "KEY" in key):
            shown[key] = masked(value)
        elif key == "ANTHROPIC_BASE_URL":
            shown[key] = without_password(value) if value else spoken.default_value.format(value=_OFFICIAL)
        elif value:
            shown[key] = value
    return shown


def masked(secret: str) -> str:
    """A secret as it may be shown: its first four characters and how long it is."""
    return current().surroundings.masked.format(head=secret[:4], count=len(secret))


def variable(name: str) -> str:
    """The value of a variable now; empty if it is not set."""
    return _environment.get(name, "")


def without(names: Collection[str]) -> dict[str, str]:
    """A copy of the environment for a program that we start: without these names, and without a project's values."""
    return {name: value for name, value in _environment.items() if name not in names and not from_project(name)}


def base_address() -> str:
    """Where the model is asked, with a scheme and without a slash at the end."""
    base = _environment.get("ANTHROPIC_BASE_URL", "").strip().rstrip("/") or _OFFICIAL
    return base if "://" in base else f"https://{base}"


def given_base_address() -> str:
    """The base address as it is set, without a password in it; empty where none is."""
    return without_password(_environment.get("ANTHROPIC_BASE_URL", "").strip())


def main_model() -> str:
    """Name of the main model as the environment has it; empty where it names none."""
    return _environment.get("ANTHROPIC_MODEL") or _environment.get("ANTHROPIC_DEFAULT_OPUS_MODEL") or ""


def window() -> int | None:
    """FLOWER_WINDOW in tokens; None where it is unset or no positive whole number."""
    given = _environment.get("FLOWER_WINDOW", "").strip()
    return int(given) if given.isascii() and given.isdecimal() and 0 < len(given) < 16 and int(given) > 0 else None


def probe_credentials(timeout: float = 20.0) -> tuple[str, str]:
    """Ask the endpoint one tiny question; returns a verdict (`PROBE_…`) and its reason for people.

    Blocks for at most `timeout` seconds per network operation. Never raises.
    """
    spoken = current().surroundings
    credential = _credential()
    if credential is None:
        return PROBE_AUTH, spoken.probe_no_credential
    try:
        with urllib.request.urlopen(_question(credential), timeout=timeout) as answer:  # noqa: S310 - checked there
            return PROBE_OK, spoken.probe_accepted.format(status=answer.status)
    except urllib.error.HTTPError as refusal:
        with refusal:
            return _judged(refusal.code, _body(refusal))
    except Exception as error:  # noqa: BLE001 - boundary: whatever it is, the answer did not come
        return PROBE_NET, spoken.probe_no_answer.format(detail=_masked(str(error) or type(error).__name__))


def _found(path: str | Path | None) -> dict[str, tuple[str, bool]]:
    """For each key its value, and whether it comes from the `.env` of the current folder, looked for as such."""
    found: dict[str, tuple[str, bool]] = {}
    for source, is_project in ((_named(str(path), ""), False),) if path is not None else _sources():
        fresh = {key: value for key, value in source.items() if key not in found}
        barred = {key for key in fresh if is_project and _NOT_FROM_A_PROJECT.fullmatch(key)}
        if ignored := sorted(key for key in barred if key not in _environment):
            _tell_once(str(Path(".env").absolute()), tuple(ignored))
        found |= {key: (value, is_project) for key, value in fresh.items() if key not in barred}
    return found


@functools.cache
def _tell_once(path: str, names: tuple[str, ...]) -> None:
    _log.warning("%s", current().surroundings.env_barred.format(path=path, names=", ".join(names)))


def _sources() -> Iterator[tuple[Mapping[str, str], bool]]:
    """The usual places in their order, and whether each is the project's."""
    if named := _environment.get("FLOWER_ENV"):
        yield _named(named, current().surroundings.env_variable), False
    yield _looked_for(Path(".env")), True
    yield _looked_for(user_env_path()), False
    yield _looked_for(Path(__file__).resolve().parents[2] / ".env"), False
    for name in ("settings.json", "settings.local.json"):
        yield _read_claude_settings(_home() / ".claude" / name), False


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:  # no HOME, and a user without a name: containers have such
        return Path("/")


def _looked_for(path: Path) -> dict[str, str]:
    # A NUL byte cannot stand in an environment.
    return _values(line for line in _text_of(path).splitlines() if "\0" not in line)


def _text_of(path: Path) -> str:
    """What a file says that was only looked for; nothing where it cannot be read."""
    try:
        return (read_whole(path) or b"").decode("utf-8-sig")
    except (OSError, ValueError):
        return ""


def _named(name: str, by: str) -> dict[str, str]:
    """What a file holds that a person named, a pipe as well. `by` stands before its path in the words of a refusal."""
    spoken = current().surroundings
    try:
        text = Path(name).expanduser().read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        return {}
    except IsADirectoryError:
        reason = spoken.env_folder
    except PermissionError:
        reason = spoken.env_no_permission
    except UnicodeDecodeError as err:
        reason = spoken.env_not_utf8.format(byte=err.start + 1)
    except (OSError, ValueError, RuntimeError) as err:
        reason = (err.strerror if isinstance(err, OSError) else None) or str(err)
    else:
        if "\0" not in text:
            return _values(text.splitlines())
        reason = spoken.env_nul.format(line=text[: text.index("\0")].count("\n") + 1)
    raise ValueError(spoken.env_unreadable.format(by=by, path=name.replace("\0", "\\0"), reason=reason))


def _values(lines: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in map(str.strip, lines):
        key, sign, value = line.partition("=")
        key = key.strip()
        if key and sign and not line.startswith("#"):
            found[key] = value.strip().strip("\"'")
    return found


def _read_claude_settings(path: Path) -> dict[str, str]:
    """Only the nine known keys, only where they have a value."""
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    values = stored.get("env") if isinstance(stored, dict) else None
    if not isinstance(values, dict):
        return {}
    return {key: values[key] for key in KNOWN if isinstance(values.get(key), str) and values[key]}


def _credential() -> tuple[str, str] | None:
    """Header and value; the key before the token, where both are set."""
    if key := _environment.get("ANTHROPIC_API_KEY", "").strip():
        return "x-api-key", key
    if token := _environment.get("ANTHROPIC_AUTH_TOKEN", "").strip():
        return "Authorization", f"Bearer {token}"
    return None


def _question(credential: tuple[str, str]) -> urllib.request.Request:
    base = base_address()
    if not base.startswith(("http://", "https://")):
        raise ValueError(f"ANTHROPIC_BASE_URL: {without_password(base)}")
    model = _environment.get("ANTHROPIC_DEFAULT_HAIKU_MODEL") or _environment.get("ANTHROPIC_MODEL") or _PROBE_MODEL
    question = {"model": model, "max_tokens": PROBE_MAX_TOKENS, "messages": [{"role": "user", "content": "hi"}]}
    header, value = credential
    return urllib.request.Request(  # noqa: S310 - the scheme is checked above
        f"{base}/v1/messages",
        data=json.dumps(question).encode(),
        headers={"content-type": "application/json", "anthropic-version": "2023-06-01", header: value},
        method="POST",
    )


def _judged(status: int, text: str) -> tuple[str, str]:
    spoken = current().surroundings
    told = {"status": status, "detail": f": {_masked(text)}" if text else ""}
    if status in (401, 403):
        return PROBE_AUTH, spoken.probe_refused.format(**told)
    if status == 404 or (status == 400 and _UNKNOWN_MODEL.search(text)):
        return PROBE_CONFIG, spoken.probe_no_model.format(**told)
    if status >= 500:
        return PROBE_NET, spoken.probe_server.format(**told)
    return PROBE_OK, spoken.probe_accepted.format(status=status)


def _body(refusal: urllib.error.HTTPError) -> str:
    try:
        return refusal.read(4000).decode("utf-8", "replace").strip()
    except (OSError, ValueError):
        return ""


def _masked(text: str) -> str:
    """One short line without the credentials, which a gateway may well repeat."""
    for key in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        if secret := _environment.get(key, "").strip():
            text = text.replace(secret, "***")
    return without_password(" ".join(text.split()))[:200]


def without_password(text: str) -> str:
    """The text with what stands before the host of each address masked."""
    return re.sub(r"//[^/@\s]+@", "//***@", text)
