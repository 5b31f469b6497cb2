"""A key goes to no address that its owner has not chosen: that of a project's own .env is asked about first.

API 17.1 lets the `.env` of the current folder name the gateway before the person's own file does, and whoever wrote the
project wrote that file (docs/decisions/0018).
"""

from __future__ import annotations

import json
from pathlib import Path

from flower import texts
from flower.cli.screen import standard
from flower.cli.terminal import ask_line, is_terminal
from flower.core.disk import read_object, write_whole
from flower.core.env import address_of_a_project, given_base_address, user_env_path, variable


def ensure_trusted() -> None:
    """Ask whether the address of `./.env` may have a credential from elsewhere. A yes is remembered, a no is not.

    Blocks for a person.

    Raises:
        SystemExit: it may not, or nobody could be asked. Its text says what to do.
    """
    address, shown = address_of_a_project(), given_base_address()
    if not address or variable("FLOWER_TRUST_ADDRESS").strip() in (address, shown):
        return
    said, here = texts.current().commands, str(Path.cwd())
    trusted = _trusted()
    if shown in trusted.get(here, []):
        return
    if not is_terminal():
        raise SystemExit(said.address_unasked.format(address=shown, path=Path(here, ".env")))
    standard().say(said.address_of_project.format(address=shown, path=Path(here, ".env")))
    if (ask_line(said.ask_address) or "").strip().casefold() not in said.yes:
        raise SystemExit(said.address_declined.format(path=Path(here, ".env")))
    trusted[here] = [*trusted.get(here, []), shown]
    try:
        write_whole(_place(), json.dumps(trusted, ensure_ascii=False, indent=1) + "\n")
    except OSError as err:
        standard().say(said.not_stored.format(path=_place(), error=err.strerror or err))


def _place() -> Path:
    return user_env_path().with_name(".addresses")


def _trusted() -> dict[str, list[str]]:
    """For each folder the addresses that were agreed to. A file that makes no sense holds none."""
    return {folder: addresses for folder, addresses in read_object(_place()).items() if isinstance(addresses, list)}
