"""The environment in which the bundled program talks to the scripted model and to nobody else."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, MutableMapping
from pathlib import Path
from typing import Protocol

_INHERITED = ("ANTHROPIC_", "CLAUDE", "AWS_", "GOOGLE_", "OTEL_", "FLOWER_", "MCP_", "DISABLE_")
_ENDINGS = ("_PROXY", "_proxy")
_NAMES = frozenset({"API_TIMEOUT_MS", "ENABLE_TOOL_SEARCH", "GCLOUD_PROJECT"})

QUIET: Mapping[str, str] = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_AUTOUPDATER": "1",
}
"""With these the program makes no request but those to the model."""

KEY = "scripted-model-no-key-needed"


class HasUrl(Protocol):
    """A server that listens."""

    @property
    def url(self) -> str: ...


def inherited(environ: Mapping[str, str]) -> list[str]:
    """The variables of an environment that would reach the program and change what it does."""
    return sorted(name for name in environ if name.startswith(_INHERITED) or name.endswith(_ENDINGS) or name in _NAMES)


def scripted_env(server: HasUrl | str, home: str | Path) -> dict[str, str]:
    """Variables that lead the program to `server` (a server, or its address), with a home of its own.

    They are to stand above an environment without the `inherited` ones. Makes the folder.
    """
    place = Path(home).resolve()
    (place / ".claude").mkdir(parents=True, exist_ok=True)
    return {
        **QUIET,
        "ANTHROPIC_BASE_URL": server if isinstance(server, str) else server.url,
        "ANTHROPIC_API_KEY": KEY,
        "HOME": str(place),
        "CLAUDE_CONFIG_DIR": str(place / ".claude"),
        # An own .env in there would be read else: flower looks into the configuration folder too.
        "XDG_CONFIG_HOME": str(place / ".config"),
    }


@contextlib.contextmanager
def scripted_surroundings(
    server: HasUrl | str, home: str | Path, *, environ: MutableMapping[str, str] | None = None
) -> Iterator[dict[str, str]]:
    """Put `scripted_env` into this process's environment (or into `environ`) and take it out again.

    flower and the SDK hand this process's environment on to the program, so this is all that a test needs.
    """
    here = os.environ if environ is None else environ  # noqa: TID251 - to change the environment is what this is for
    before = dict(here)
    added = scripted_env(server, home)
    for name in inherited(here):
        del here[name]
    here.update(added)
    try:
        yield added
    finally:
        here.clear()
        here.update(before)
