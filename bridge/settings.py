"""The one typed `Settings` of the chat front: from a TOML file and from the environment (product 3).

A value has a name in the file (`home = …`, `[workspaces.site] path = …`) and one in the environment
(`FLOWER_CHAT_HOME`), which wins. An unknown key or a bad value stops the start; the error names all of them at once,
each with file, line, what was expected and the cure.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator

from bridge.errors import SettingsError

PREFIX = "FLOWER_CHAT_"
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")

RUNNER_ENVIRONMENT: tuple[str, ...] = tuple(
    name
    for names in (
        "PATH HOME USER LOGNAME SHELL LANG LC_ALL LC_CTYPE TZ TMPDIR TERM PYTHONPATH XDG_CONFIG_HOME",
        "HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy all_proxy no_proxy",
        "SSL_CERT_FILE SSL_CERT_DIR NODE_EXTRA_CA_CERTS FLOWER_ENV FLOWER_WINDOW",
        "ANTHROPIC_API_KEY ANTHROPIC_AUTH_TOKEN ANTHROPIC_BASE_URL ANTHROPIC_MODEL",
        "ANTHROPIC_DEFAULT_OPUS_MODEL ANTHROPIC_DEFAULT_SONNET_MODEL ANTHROPIC_DEFAULT_HAIKU_MODEL",
        "CLAUDE_CODE_SUBAGENT_MODEL CLAUDE_CODE_EFFORT_LEVEL",
    )
    for name in names.split()
)
"""The only variables that a runner inherits (rulings R8): where things are, the model's credential; no chat token."""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)


class WorkspaceSettings(_Strict):
    """A place where runs work."""

    path: Path = Field(description="Folder of the workspace; made when it does not exist.")
    fresh: bool = Field(default=False, description="Whether each run gets a new folder of its own below `path`.")
    flow: str = Field(default="starter", description="`starter`, or `module:attr` of a flower workflow.")
    language: Literal["en", "zh"] = Field(default="en", description="Language of the agents and of the thread.")
    budget: float | None = Field(
        default=None, gt=0, description="US dollars a run may spend when the start names none."
    )
    judge_can_run: bool = Field(default=True, description="Whether the judge may run commands to check the result.")

    @field_validator("path")
    @classmethod
    def _absolute(cls, path: Path) -> Path:
        return path.expanduser().absolute()

    @field_validator("flow")
    @classmethod
    def _flow(cls, flow: str) -> str:
        if flow != "starter" and not re.fullmatch(r"[\w.]+:\w+", flow):
            raise ValueError("expected 'starter' or 'module:attr'")
        return flow


class Settings(_Strict):
    """Everything that the bridge itself needs to know. Platforms have settings of their own."""

    home: Path = Field(default=Path("~/.local/share/flower-chat"), description="Data folder: Redis, runs, logs.")
    redis_url: SecretStr | None = Field(
        default=None, description="Address of a Redis >= 7; without it a server of our own is started in `home`."
    )
    default_workspace: str = Field(default="", description="Workspace of a start that names none.")
    workspaces: dict[str, WorkspaceSettings] = Field(default_factory=dict, description="Named workspaces.")
    flows: dict[str, str] = Field(default_factory=dict, description='Named flows: `name = "module:attr"`.')
    may_start: tuple[str, ...] = Field(default=(), description="Full ids of who may start runs; empty: everybody.")
    may_steer: tuple[str, ...] = Field(
        default=(), description="Full ids of who may steer every run, beside its starter."
    )
    launcher: Literal["local"] = Field(default="local", description="What starts runners.")
    lease_seconds: float = Field(default=20.0, ge=1.0, le=120.0, description="After this silence a runner is lost.")
    accept_seconds: float = Field(
        default=2.2, gt=0, lt=3.0, description="Deadline for keeping what a person did before it is confirmed (R15)."
    )

    @field_validator("home")
    @classmethod
    def _absolute(cls, path: Path) -> Path:
        return path.expanduser().absolute()

    @field_validator("workspaces")
    @classmethod
    def _names(cls, found: dict[str, WorkspaceSettings]) -> dict[str, WorkspaceSettings]:
        for name in found:
            if not NAME.fullmatch(name):
                raise ValueError(
                    f"workspace name {name!r}: expected lower-case letters, digits, '-' and '_', at most 32"
                )
        return found

    def workspace(self, name: str) -> WorkspaceSettings:
        """Return the named workspace, or the default one for an empty name.

        Raises:
            SettingsError: there is none of that name; names the nearest, or all.
        """
        wanted = name or self.default_workspace or (next(iter(self.workspaces)) if len(self.workspaces) == 1 else "")
        if wanted in self.workspaces:
            return self.workspaces[wanted]
        known = ", ".join(sorted(self.workspaces)) or "none is set up"
        near = difflib.get_close_matches(wanted, self.workspaces, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        if not wanted:
            raise SettingsError(f"No workspace was named, and there is no default. Known: {known}.")
        raise SettingsError(f"There is no workspace {wanted!r}{hint} Known: {known}.")

    def flow(self, name: str) -> str:
        """Return what a flow's name stands for; nothing for an empty name.

        Only names are taken from chat, never `module:attr`: who writes in a channel must not choose what is imported.

        Raises:
            SettingsError: there is none of that name.
        """
        if not name:
            return ""
        known = {"starter": "starter", **self.flows}
        if name in known:
            return known[name]
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        raise SettingsError(f"There is no flow {name!r}{hint} Known: {', '.join(sorted(known))}.")

    def workspace_name(self, name: str) -> str:
        """Return the name that `workspace(name)` stands for."""
        chosen = self.workspace(name)
        return next(key for key, value in self.workspaces.items() if value is chosen)


OWN_ENVIRONMENT = frozenset({"CONFIG", "LOG_LEVEL"})
"""Names behind `FLOWER_CHAT_` that are not settings of this class but read beside it."""
TABLES = frozenset({"workspaces", "flows"})
PLATFORM_PREFIXES = ("SLACK_", "MATRIX_", "WEB_")


def read_settings(env: Mapping[str, str], *, config: Path | None = None) -> Settings:
    """Read settings from the file that `FLOWER_CHAT_CONFIG` (or `config`) names, and from the environment, which wins.

    Without either, `flower-chat.toml` in the current folder is read if it is there.

    Raises:
        SettingsError: names every problem at once: where, what was found, what was expected.
    """
    path = config or (Path(env[PREFIX + "CONFIG"]) if env.get(PREFIX + "CONFIG") else None)
    explicit = path is not None
    path = path or Path("flower-chat.toml")
    text = _text_of(path, explicit=explicit)
    values = _tables_of(path, text)
    problems = _overlay(values, env)
    try:
        settings = Settings(**values)
    except ValidationError as err:
        problems += [_problem(path, text, env, each) for each in err.errors()]
        settings = None
    if problems or settings is None:
        raise SettingsError("\n".join(problems))
    if settings.default_workspace and settings.default_workspace not in settings.workspaces:
        where = _line_of(text, ("default_workspace",))
        raise SettingsError(
            f"{path}{where}: default_workspace = {settings.default_workspace!r}, but there is no [workspaces."
            f"{settings.default_workspace}]; known: {', '.join(settings.workspaces) or 'none'}"
        )
    return settings


def _text_of(path: Path, *, explicit: bool) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        if explicit:
            raise SettingsError(f"{path}: no such file; FLOWER_CHAT_CONFIG names it") from None
        return ""
    except (OSError, UnicodeDecodeError) as err:
        raise SettingsError(f"{path}: cannot be read: {err}") from err


def _tables_of(path: Path, text: str) -> dict[str, Any]:
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as err:
        raise SettingsError(f"{path}: not TOML: {err}") from err
    for platform in ("slack", "matrix", "web"):
        values.pop(platform, None)  # read by the platform's own settings
    return values


def _overlay(values: dict[str, Any], env: Mapping[str, str]) -> list[str]:
    """Lay the environment over the file's values; returns what is wrong with it."""
    problems: list[str] = []
    simple = {name.upper(): name for name in Settings.model_fields if name not in TABLES}
    for variable, value in env.items():
        if not variable.startswith(PREFIX) or not value:
            continue
        name = variable.removeprefix(PREFIX)
        if name in OWN_ENVIRONMENT or name.startswith(PLATFORM_PREFIXES):
            continue
        if name not in simple:
            near = difflib.get_close_matches(name, [*simple, *OWN_ENVIRONMENT], n=1)
            hint = f"; did you mean {PREFIX}{near[0]}?" if near else ""
            problems.append(f"environment: {variable}: no such setting{hint}")
            continue
        field = simple[name]
        values[field] = (
            [part.strip() for part in value.split(",") if part.strip()] if field.startswith("may_") else value
        )
    return problems


def _problem(path: Path, text: str, env: Mapping[str, str], error: Any) -> str:
    loc = tuple(str(part) for part in error["loc"])
    name = ".".join(loc)
    variable = PREFIX + loc[0].upper()
    where = (
        f"environment: {variable}" if len(loc) == 1 and env.get(variable) else f"{path}{_line_of(text, loc)}: {name}"
    )
    if error["type"] == "extra_forbidden":
        known = list(
            WorkspaceSettings.model_fields if loc[0] == "workspaces" and len(loc) > 2 else Settings.model_fields
        )
        near = difflib.get_close_matches(loc[-1], known, n=1)
        return (
            f"{where}: no such setting{f'; did you mean {near[0]!r}?' if near else f'; known: {chr(44).join(known)}'}"
        )
    shown = "" if "url" in name or "token" in name else f" (found {error.get('input')!r})"
    return f"{where}: {error['msg']}{shown}"


def _line_of(text: str, loc: tuple[str, ...]) -> str:
    """Return `:<line>` of a key in a TOML text, or nothing where it cannot be told. For messages only."""
    table, key = ".".join(loc[:-1]), loc[-1]
    current = ""
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[([^\[\]]+)\]", line):
            current = header[1].strip().replace('"', "")
            if current == ".".join(loc):
                return f":{number}"
        elif current == table and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=", line):
            return f":{number}"
    return ""
