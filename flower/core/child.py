"""How the bundled program is started: with an environment from an allow-list, and dying with its parent. Pure.

The SDK hands its whole environment to the child, and the agent's Bash sees all of it; and a child whose parent was
killed works on alone. Both are cured by a small script between the SDK and the program (rulings R8, R26).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable

GENERAL = [
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR", "TERM"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"),
]
"""What any program needs to find its way about: no secrets, but for a password in a proxy's address."""

GIT = [
    *("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "EMAIL"),
    *("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "XDG_CONFIG_HOME"),
    *("GIT_EXEC_PATH", "GIT_TEMPLATE_DIR", "GIT_SSL_CAINFO", "GIT_DISCOVERY_ACROSS_FILESYSTEM"),
]
"""Who commits, and where git finds its files: subagents commit in their worktrees.

Left out on purpose: what leads to another repository (`GIT_DIR` and its like, set where a git hook starts us), what may
hold a secret (`GIT_CONFIG_PARAMETERS`, `GIT_CONFIG_VALUE_*`, `GIT_ASKPASS`, `SSH_AUTH_SOCK`), what makes git run
something (`GIT_SSH_COMMAND`, `GIT_EXTERNAL_DIFF`, `GIT_PROXY_COMMAND`). A spec's `env` may name them."""

MODEL = ["ANTHROPIC_*"]
"""Credentials and addresses of the model."""

PROVIDERS = {
    "CLAUDE_CODE_USE_BEDROCK": ["CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_SKIP_BEDROCK_AUTH", "AWS_*"],
    "CLAUDE_CODE_USE_VERTEX": [
        "CLAUDE_CODE_USE_VERTEX",
        "CLAUDE_CODE_SKIP_VERTEX_AUTH",
        "CLOUD_ML_REGION",
        "VERTEX_*",
        "GOOGLE_*",
        "GCLOUD_PROJECT",
    ],
}
"""Families of variables that are needed only where their switch is set."""

SDK = [
    "PWD",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_AGENT_SDK_VERSION",
    "CLAUDE_AGENT_SDK_CLIENT_APP",
    "CLAUDE_AGENT_SDK_DERIVED_CLIENT_APP",
    "CLAUDE_CODE_SDK_READS_SESSION_STATE",
    "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING",
    "TRACEPARENT",
    "TRACESTATE",
    "BAGGAGE",
]
"""What the SDK itself sets for its child (0.2.189)."""

NOTE = "FLOWER_ATTEMPT_NOTE"
"""Names the file into which the script writes number and place of the program, which itself does not see it."""

MARKERS = ("FLOWER_RUN", "FLOWER_RUN_FOLDER", "FLOWER_ATTEMPT")
"""Mark every process of a run, so that a new owner finds what an old one left behind (rulings R26)."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\*?")


def allowed(given: Iterable[str], *, known: Iterable[str] = (), parent: Collection[str] = ()) -> tuple[str, ...]:
    """Return the names that a child may see, sorted. A trailing `*` stands for any ending.

    Args:
        given: names in the options' own environment.
        known: further keys of the model's configuration.
        parent: names that are set in this process; they switch the families of `PROVIDERS` on.
    """
    given = set(given)
    names = {*GENERAL, *GIT, *MODEL, *SDK, *MARKERS, *given, *known}
    for switch, family in PROVIDERS.items():
        if switch in parent or switch in given:
            names.update(family)
    return tuple(sorted(names))


def wrapper(program: str, names: Iterable[str], setpriv: str | None) -> str:
    """Return the script that stands in for the program: drops every other variable, then becomes the program.

    No value is written into the script, nor ever stands on a command line, where other users could read it; that is
    why the variables to drop are named to `env` instead of the ones to keep. Fails closed: without a list of what is
    set, nothing is started. With `setpriv` the kernel sends SIGTERM to the program when its parent dies.

    Raises:
        ValueError: a name that cannot be the name of a variable.
    """
    kept = sorted(set(names))
    for name in kept:
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not the name of an environment variable")
    # Without setpriv a shell stands first, or `env` would take a program with "=" in its path for a variable.
    start = [setpriv, "--pdeathsig", "TERM", "--"] if setpriv else ["/bin/sh", "-c", 'exec "$0" "$@"']
    return f"""\
#!/bin/sh
# Starts the program with these variables only: written by flower, made anew when it is missing.
set -f
if [ -n "${{{NOTE}}}" ]; then
    # Number, folder, and start of this process: numbers are used again.
    read -r stat </proc/$$/stat || stat=
    started() {{ [ $# -lt 20 ] || {{ shift 19; started=$1; }}; }}
    started=
    started ${{stat##*) }}
    printf '%s\\n%s\\n%s\\n' "$$" "${{CLAUDE_CONFIG_DIR}}" "${{started}}" >"${{{NOTE}}}"
fi
names=$(awk 'BEGIN {{ for (name in ENVIRON) print name }}') && [ -n "$names" ] || exit 126
IFS='
'
set -- {shlex.join([*start, program])} "$@"
for name in $names; do
    case "$name" in
    {"|".join(kept)}) ;;
    *) set -- -u "$name" "$@" ;;
    esac
done
exec env "$@"
"""
