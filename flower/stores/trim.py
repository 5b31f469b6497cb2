"""What a resume need not read again: stale results of commands that only look, and old large results (behaviour 13.2).

The decisions are pure functions on entries; the store writes what it takes out into files that the agents can read,
and gives back a changed copy. A result that cannot be written stays whole.
"""

from __future__ import annotations

import functools
import hashlib
import re
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from string import Formatter
from typing import TypeVar

from claude_agent_sdk import SessionKey, SessionStoreEntry

from flower import texts
from flower.stores.entries import (
    Block,
    blocks,
    call_of,
    content_of,
    is_denial,
    text_of,
    untouchable,
    with_content,
)
from flower.stores.ephemeral import is_ephemeral
from flower.stores.sqlite import SqliteSessionStore

__all__ = ["EphemeralPolicy", "TrimPolicy", "TrimmingSessionStore", "is_ephemeral", "trim_report"]

EXPIRED = texts.of("zh").stores.expired

_SHOWN = 60
_LONGEST_NOTE = 4096
_PIECE = 1 << 20

T = TypeVar("T")

Place = tuple[int, int]
"""Where a block stands: number of the entry, number of the block in it."""


@dataclass
class TrimPolicy:
    """When an old result goes to a file (API 10.2).

    Args:
        keep_recent: so many of the newest eligible results stay; 0 spares none.
        min_chars: shorter results are not worth it.
        spill_dirname: folder of the files, in the workspace: elsewhere the agents could not read them.
    """

    keep_recent: int = 20
    min_chars: int = 2000
    spill_dirname: str = ".flower/spill"
    enabled: bool = True

    def placeholder(self, path: str, n: int) -> str:
        """What stands for a result of `n` characters that is in `path` now, in the language spoken."""
        return texts.current().stores.archived.format(path=path, count=n)


@dataclass
class EphemeralPolicy:
    """When the result of a command that only looks is stale (API 10.3).

    Args:
        keep_recent: so many of the newest results stay; 0 spares none.
        max_chars: longer ones are left to trimming.
        text: what stands for a stale one, with `{cmd}` and `{age}`. Left as it is, it is said in the language spoken.

    Raises:
        ValueError: `text` has other placeholders than these.
    """

    enabled: bool = True
    keep_recent: int = 6
    max_chars: int = 2000
    text: str = EXPIRED

    def __post_init__(self) -> None:
        try:
            self.text.format(cmd="", age=0)
        except (LookupError, AttributeError, TypeError, ValueError) as err:
            raise ValueError(
                f"EphemeralPolicy.text: {self.text!r} may hold {{cmd}} and {{age}} and no other braces ({err})"
            ) from None

    def placeholder(self, cmd: str, age: int) -> str:
        """What stands for the stale result of `cmd`; `age` counts such results from the newest back."""
        text = texts.current().stores.expired if self.text == EXPIRED else self.text
        first_line = cmd.strip().partition("\n")[0]
        return text.format(cmd=f"`{first_line[:_SHOWN]}`", age=age)


class TrimmingSessionStore(SqliteSessionStore):
    """Gives a resume less than was stored; what is stored never changes.

    Args:
        path: the SQLite file, or `":memory:"`.
        workspace: where the agents read; relative paths in placeholders start there.

    Raises:
        ValueError: the policy's folder leads out of the workspace.
        SessionFileError: the file cannot be used.
    """

    def __init__(
        self,
        path: str | Path,
        workspace: str | Path,
        policy: TrimPolicy | None = None,
        ephemeral: EphemeralPolicy | None = None,
    ) -> None:
        self.workspace = Path(workspace).resolve()
        self.policy = TrimPolicy() if policy is None else policy
        self.ephemeral = EphemeralPolicy() if ephemeral is None else ephemeral
        self.last_report: dict[str, int] = {}
        """Of the newest load, what each layer did: `expired`; `cleared`, `kept`, `chars_saved`; `unwritten` where
        results could not be written."""
        self.spill_trouble = ""
        """Why results could not be written at the newest load, else empty."""
        _inside(self.workspace, self.policy.spill_dirname)
        super().__init__(path)

    def _load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        self.last_report, self.spill_trouble = {}, ""
        entries = super()._load(key)
        if entries is not None and self.ephemeral.enabled:
            entries = self.expire(entries)
        if entries is not None and self.policy.enabled:
            entries = self.trim(entries)
        return entries

    def expire(self, entries: Sequence[SessionStoreEntry]) -> list[SessionStoreEntry]:
        """A copy with a note for all but the newest results of commands that only look. Writes nothing.

        What stands for a denied call is no result of a command and stays.
        """
        policy = self.ephemeral
        found = list(_looks(entries, policy))
        notes = [
            (place, policy.placeholder(command, len(found) - position))
            for position, (place, command) in enumerate(_older(found, policy.keep_recent))
        ]
        self.last_report["expired"] = len(notes)
        return _replaced(entries, notes)

    def trim(self, entries: Sequence[SessionStoreEntry]) -> list[SessionStoreEntry]:
        """A copy with a pointer for all but the newest large results. Writes these to files; blocks.

        Never raises for a file that cannot be written: from there on results stay whole, and `spill_trouble` says why.
        """
        found = list(_large(entries, self.policy, self.ephemeral))
        old = _older(found, self.policy.keep_recent)
        pointers: list[tuple[Place, str]] = []
        saved = 0
        spill = _Spill(self.workspace, self.policy.spill_dirname)
        for place in old:
            text = text_of(_block(entries, place).get("content")) or ""
            try:
                pointer = self.policy.placeholder(spill.put(text), len(text))
            except (OSError, ValueError) as err:  # a disk that is full would only be asked again and again
                self.spill_trouble = str(err)
                self.last_report["unwritten"] = len(old) - len(pointers)
                break
            pointers.append((place, pointer))
            saved += len(text) - len(pointer)
        self.last_report |= {
            "cleared": len(pointers),
            "kept": len(found) - len(old),
            "chars_saved": max(0, saved),
        }
        return _replaced(entries, pointers)


def trim_report(store: TrimmingSessionStore) -> str:
    """Say in one line what the newest load left out, in the language spoken."""
    spoken, report = texts.current().stores, store.last_report
    if report.get("cleared"):
        tokens = report["chars_saved"] // 4
        said = spoken.trimmed.format(cleared=report["cleared"], kept=report["kept"], tokens=tokens)
    elif report.get("expired"):
        said = spoken.only_expired.format(count=report["expired"])
    else:
        said = spoken.untrimmed
    if report.get("unwritten"):
        said += spoken.unwritten.format(count=report["unwritten"], reason=store.spill_trouble)
    return said


# -- what may be left out ---------------------------------------------------------------------------------------------


def _looks(entries: Sequence[SessionStoreEntry], policy: EphemeralPolicy) -> Iterator[tuple[Place, str]]:
    """Results of commands that only look, short enough, with the command."""
    commands: dict[str, str] = {}
    for entry in entries:
        for _, block in blocks(entry, "tool_use"):
            given = block.get("input")
            command = given.get("command") if isinstance(given, dict) else None
            if (call := call_of(block)) and block.get("name") == "Bash" and isinstance(command, str):
                commands[call] = command
    ours = _notes(policy.text)
    for place, block in _results(entries):
        call = call_of(block)
        if call not in commands or is_denial(entries[place[0]]) == call:
            continue
        text = text_of(block.get("content"))
        if text is None or len(text) > policy.max_chars or _matches(ours, text):
            continue
        if is_ephemeral(commands[call]):
            yield place, commands[call]


def _large(entries: Sequence[SessionStoreEntry], policy: TrimPolicy, ephemeral: EphemeralPolicy) -> Iterator[Place]:
    """Results that are worth a file. What was put in place of one, in any language, is no result."""
    ours = _notes(ephemeral.text)
    for place, block in _results(entries):
        text = text_of(block.get("content"))
        if text is not None and len(text) >= policy.min_chars and not _matches(ours, text):
            yield place


def _results(entries: Sequence[SessionStoreEntry]) -> Iterator[tuple[Place, Block]]:
    for number, entry in enumerate(entries):
        if not untouchable(entry):
            for position, block in blocks(entry, "tool_result"):
                yield (number, position), block


def _older(found: Sequence[T], keep: int) -> Sequence[T]:
    """All but the newest `keep`."""
    return found[: max(0, len(found) - max(0, keep))]


def _block(entries: Sequence[SessionStoreEntry], place: Place) -> Block:
    block: Block = content_of(entries[place[0]])[place[1]]
    return block


def _replaced(entries: Sequence[SessionStoreEntry], notes: Iterable[tuple[Place, str]]) -> list[SessionStoreEntry]:
    """A copy whose results at these places say something else; the blocks stay (API 10)."""
    rewritten = list(entries)
    for number, here in groupby(notes, key=lambda note: note[0][0]):
        content = list(content_of(entries[number]))
        for (_, position), text in here:
            content[position] = {**content[position], "content": text}
        rewritten[number] = with_content(entries[number], content)
    return rewritten


# -- what we wrote ourselves ------------------------------------------------------------------------------------------


_FILLED = {"cmd": r"`[^\n]*`", "age": r"\d+", "count": r"\d+", "path": r"[^\n]*"}


@functools.lru_cache(maxsize=16)
def _notes(own: str) -> re.Pattern[str]:
    """Everything that the stores put in place of a result, in every language: a fork keeps it as its own history."""
    spoken = [texts.of(language).stores for language in texts.LANGUAGES]
    said = [text for each in spoken for text in (each.archived, each.expired, each.interrupted, each.orphan)]
    patterns = [pattern for text in [*said, own] if (pattern := _pattern(text))]
    return re.compile("|".join(patterns))


def _pattern(template: str) -> str:
    """Empty where the text has no letter of its own, so that any result might be taken for it."""
    parts = [(text, _FILLED.get(name or "", "")) for text, name, _, _ in Formatter().parse(template)]
    if not any(letter.isalpha() for text, _ in parts for letter in text):
        return ""
    return "".join(re.escape(text) + filled for text, filled in parts)


def _matches(ours: re.Pattern[str], text: str) -> bool:
    return len(text) <= _LONGEST_NOTE and ours.fullmatch(text) is not None


# -- files ------------------------------------------------------------------------------------------------------------


def _inside(workspace: Path, dirname: str) -> Path:
    """The folder, links not followed.

    Raises:
        ValueError: it leads out of the workspace.
    """
    spoken = texts.current().stores
    trouble = spoken.outside.format(folder=dirname, workspace=workspace)
    try:
        folder = workspace / dirname
        parts = folder.relative_to(workspace).parts
    except (TypeError, ValueError):
        raise ValueError(trouble) from None
    if ".." in parts or "\0" in dirname:
        raise ValueError(trouble)
    return folder


class _Spill:
    """A folder of texts, each under the name of its content; made when the first one comes."""

    def __init__(self, workspace: Path, dirname: str) -> None:
        self._workspace = workspace
        self._dirname = dirname
        self._ready: Path | None = None

    def put(self, text: str) -> str:
        """Write the text unless it is there already; its path as an agent is to use it.

        Raises:
            OSError, ValueError: it cannot be written.
        """
        folder = self._ready = self._ready or self._folder()
        digest, size = hashlib.sha256(), 0
        for piece in _pieces(text):
            digest.update(piece)
            size += len(piece)
        path = folder / f"{digest.hexdigest()[:16]}.txt"
        if not _holds(path, size):
            _write(path, text)
        return path.relative_to(self._workspace).as_posix()

    def _folder(self) -> Path:
        folder = _inside(self._workspace, self._dirname)
        folder.mkdir(parents=True, exist_ok=True)
        # An agent may have put a link there; what a model says must not land outside of its workspace.
        if not folder.resolve().is_relative_to(self._workspace):
            raise OSError(texts.current().stores.outside_link.format(path=folder))
        return folder


def _write(path: Path, text: str) -> None:
    """In one step, so that a full disk leaves no half of it. Not synced: the store has it still."""
    draft = path.parent / f".{secrets.token_hex(8)}.tmp"
    try:
        with draft.open("xb") as file:
            file.writelines(_pieces(text))
        draft.replace(path)
    except BaseException:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise


def _pieces(text: str) -> Iterator[bytes]:
    """A result may have 50 MB: never all of it twice. Half a surrogate pair is kept, as the spill hook does."""
    for start in range(0, len(text), _PIECE):
        yield text[start : start + _PIECE].encode(errors="surrogatepass")


def _holds(path: Path, size: int) -> bool:
    return path.is_file() and not path.is_symlink() and path.stat().st_size == size
