"""Transcripts in one SQLite file, append-only (behaviour 13.1), and what each session has cost so far.

Writing is always complete and unchanged; what a resume may leave out is the business of the classes above this one.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from pathlib import Path
from typing import Any, TypeVar, cast

from claude_agent_sdk import (
    SessionKey,
    SessionListSubkeysKey,
    SessionStore,
    SessionStoreEntry,
    SessionStoreListEntry,
    SessionSummaryEntry,
    fold_session_summary,
)

from flower import texts
from flower.stores.entries import field

T = TypeVar("T")

# How long a writer waits for the other process that shares the file.
BUSY_SECONDS = 30.0

# So many entries are read at a time, so that the plain methods get their turn while a long transcript is loaded.
_BATCH = 256

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS entries (store_key TEXT NOT NULL, seq INTEGER NOT NULL, uid TEXT, "
    "payload TEXT NOT NULL, PRIMARY KEY (store_key, seq))",
    "CREATE UNIQUE INDEX IF NOT EXISTS entries_uid ON entries(store_key, uid) WHERE uid IS NOT NULL",
    "CREATE TABLE IF NOT EXISTS meta (store_key TEXT PRIMARY KEY, mtime INTEGER NOT NULL, next_seq INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS summaries (project_key TEXT NOT NULL, session_id TEXT NOT NULL, "
    "mtime INTEGER NOT NULL, data TEXT NOT NULL, PRIMARY KEY (project_key, session_id))",
    "CREATE TABLE IF NOT EXISTS costs (session_id TEXT PRIMARY KEY, total REAL NOT NULL)",
)

_USAGE = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


class SessionFileError(sqlite3.DatabaseError):
    """The file of transcripts cannot be used; the text says which, why, and what to do."""


class SqliteSessionStore(SessionStore):
    """A session store of the SDK in one file; `":memory:"` works too.

    The async methods do their work in a thread of the store's own, in the order of the calls, so the event loop never
    waits for the disk. The plain methods block for one small query and may be called from any thread. Several
    processes may share the file.

    Raises:
        SessionFileError: the file is damaged, of another kind, or cannot be opened. Any method may raise it too: when
            damage shows later, or when the disk is full; then nothing of the call was stored.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = path if str(path) == ":memory:" else Path(path)
        if isinstance(self.path, Path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.RLock()
        with self._plainly():
            # One connection for all threads, guarded by the lock; transactions are begun by hand.
            self._db = sqlite3.connect(str(path), timeout=BUSY_SECONDS, check_same_thread=False, isolation_level=None)
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="flower-store")
        try:
            with self._plainly():
                _share(self._db)
            with self._writing() as db:
                for statement in _SCHEMA:
                    db.execute(statement)
        except BaseException:
            self.close()
            raise

    # What the SDK calls

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Store what is new of a batch, in one transaction.

        Entries whose `uuid` is stored already, or came earlier in the batch, are dropped; entries without one are
        always stored. A batch without anything new changes nothing, not even the time stamp.
        """
        await self._in_order(lambda: self._append(key, entries))

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        return await self._in_order(lambda: self._load(key))

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """Main transcripts only."""
        return await self._in_order(lambda: self._list_sessions(project_key))

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        return await self._in_order(lambda: self._list_summaries(project_key))

    async def delete(self, key: SessionKey) -> None:
        """A main transcript takes its subagents, its summary and its cost with it."""
        await self._in_order(lambda: self._delete(key))

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        head = f"{key['project_key']}/{key['session_id']}"
        return await self._in_order(lambda: [name for name, _ in self._below(head)])

    # What flower asks

    def projects(self) -> list[str]:
        """Project keys that have a transcript, sorted."""
        rows = self._all("SELECT store_key FROM meta")
        return sorted({str(store_key).partition("/")[0] for (store_key,) in rows})

    def has_session(self, project_key: str, session_id: str) -> bool:
        return bool(self._all("SELECT 1 FROM meta WHERE store_key = ?", f"{project_key}/{session_id}"))

    def last_context(self, project_key: str, session_id: str, *, scan: int = 60) -> int:
        """Tokens that the newest request with a usage sent, among the last `scan` entries; 0 if there is none."""
        rows = self._all(
            "SELECT payload FROM entries WHERE store_key = ? ORDER BY seq DESC LIMIT ?",
            f"{project_key}/{session_id}",
            max(0, scan),
        )
        return next(filter(None, (_level(_entry(payload)) for (payload,) in rows)), 0)

    def cost_of(self, session_id: str) -> float:
        """US dollars that this session had cost in all when it was last booked; 0.0 if it never was.

        The SDK's `total_cost_usd` is cumulative over a session, also in another process, so a run books differences
        to this figure (SDK facts 3, trap 1).
        """
        rows = self._all("SELECT total FROM costs WHERE session_id = ?", session_id)
        return float(rows[0][0]) if rows else 0.0

    def book_cost(self, session_id: str, total: float) -> None:
        """Remember the session's cumulative cost. It may be lower than before: `/clear` begins anew."""
        with self._writing() as db:
            db.execute(
                "INSERT INTO costs VALUES (?, ?) ON CONFLICT(session_id) DO UPDATE SET total = excluded.total",
                (session_id, total),
            )

    def close(self) -> None:
        """Finish what was handed in, then let go of the file. Twice is harmless."""
        self._worker.shutdown(wait=True)
        with self._lock:
            self._db.close()

    # How

    async def _in_order(self, work: Callable[[], T]) -> T:
        """In the store's own thread, where the same language is spoken."""
        context = copy_context()
        return await asyncio.get_running_loop().run_in_executor(self._worker, lambda: context.run(work))

    @contextmanager
    def _plainly(self) -> Iterator[None]:
        """What SQLite says, in words that a person can act on."""
        try:
            yield
        except (sqlite3.OperationalError, sqlite3.InternalError) as err:
            raise self._unusable(str(err), _ADVICE.get(_code(err), "damaged")) from err
        except sqlite3.DatabaseError as err:
            if type(err) is not sqlite3.DatabaseError:  # our own mistake, or what we have put into words already
                raise
            raise self._unusable(str(err), "damaged") from err

    def _unusable(self, detail: str, advice: str) -> SessionFileError:
        spoken = texts.current().stores
        return SessionFileError(spoken.not_usable.format(path=self.path, detail=detail, advice=getattr(spoken, advice)))

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._lock, self._plainly():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:  # a full disk may have ended it already
                    self._db.execute("ROLLBACK")
                raise

    def _all(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._lock, self._plainly():
            return self._db.execute(query, values).fetchall()

    def _append(self, key: SessionKey, entries: Sequence[SessionStoreEntry]) -> None:
        if not entries:
            return
        store_key = _store_key(key)
        with self._writing() as db:
            row = db.execute("SELECT next_seq FROM meta WHERE store_key = ?", (store_key,)).fetchone()
            seq = int(row[0]) if row else 0
            fresh: list[SessionStoreEntry] = []
            for entry in entries:
                added = db.execute(
                    "INSERT INTO entries VALUES (?, ?, ?, ?) "
                    "ON CONFLICT(store_key, uid) WHERE uid IS NOT NULL DO NOTHING",
                    # Escaped, because a transcript may hold half of a surrogate pair, which UTF-8 cannot.
                    (store_key, seq, _uid(entry), json.dumps(entry)),
                ).rowcount
                if added:
                    fresh.append(entry)
                    seq += 1
            if not fresh:
                return
            now = self._stamp(db)
            db.execute(
                "INSERT INTO meta VALUES (?, ?, ?) "
                "ON CONFLICT(store_key) DO UPDATE SET mtime = excluded.mtime, next_seq = excluded.next_seq",
                (store_key, now, seq),
            )
            if not key.get("subpath"):
                self._fold(db, key, fresh, now)

    def _fold(self, db: sqlite3.Connection, key: SessionKey, fresh: list[SessionStoreEntry], now: int) -> None:
        project, session = key["project_key"], key["session_id"]
        row = db.execute(
            "SELECT mtime, data FROM summaries WHERE project_key = ? AND session_id = ?", (project, session)
        ).fetchone()
        before: SessionSummaryEntry | None = (
            {"session_id": session, "mtime": row[0], "data": json.loads(row[1])} if row else None
        )
        summary = fold_session_summary(before, key, fresh)
        db.execute(
            "INSERT INTO summaries VALUES (?, ?, ?, ?) "
            "ON CONFLICT(project_key, session_id) DO UPDATE SET mtime = excluded.mtime, data = excluded.data",
            (project, session, now, json.dumps(summary["data"])),
        )

    def _stamp(self, db: sqlite3.Connection) -> int:
        """Milliseconds, and later than every stamp in the store, whatever the clock says."""
        newest = db.execute(
            "SELECT MAX(t) FROM (SELECT MAX(mtime) AS t FROM meta UNION ALL SELECT MAX(mtime) FROM summaries)"
        ).fetchone()[0]
        return max(self._now(), (newest or 0) + 1)

    def _now(self) -> int:
        return int(time.time() * 1000)

    def _load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """Row by row, so that the whole transcript is never in memory a second time as text."""
        query = "SELECT seq, payload FROM entries WHERE store_key = ? AND seq > ? ORDER BY seq LIMIT ?"
        entries: list[SessionStoreEntry] = []
        last, full = -1, True
        while full:
            before = len(entries)
            with self._lock, self._plainly():
                for seq, payload in self._db.execute(query, (_store_key(key), last, _BATCH)):
                    entry = _entry(payload)
                    if entry is None:
                        detail = texts.current().stores.bad_row.format(number=seq, session=key["session_id"])
                        raise self._unusable(detail, "damaged")
                    entries.append(entry)
                    last = seq
            full = len(entries) - before == _BATCH
        return entries or None

    def _list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        return [{"session_id": name, "mtime": mtime} for name, mtime in self._below(project_key) if "/" not in name]

    def _list_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        rows = self._all("SELECT session_id, mtime, data FROM summaries WHERE project_key = ?", project_key)
        return [{"session_id": session, "mtime": mtime, "data": json.loads(data)} for session, mtime, data in rows]

    def _delete(self, key: SessionKey) -> None:
        store_key = _store_key(key)
        with self._writing() as db:
            for table in ("entries", "meta"):
                db.execute(f"DELETE FROM {table} WHERE store_key = ?", (store_key,))  # noqa: S608 - our own two names
                if not key.get("subpath"):
                    below = f"DELETE FROM {table} WHERE store_key >= ? AND store_key < ?"  # noqa: S608 - as above
                    db.execute(below, _range_below(store_key))
            if not key.get("subpath"):
                db.execute(
                    "DELETE FROM summaries WHERE project_key = ? AND session_id = ?",
                    (key["project_key"], key["session_id"]),
                )
                db.execute("DELETE FROM costs WHERE session_id = ?", (key["session_id"],))

    def _below(self, head: str) -> list[tuple[str, int]]:
        rows = self._all(
            "SELECT store_key, mtime FROM meta WHERE store_key >= ? AND store_key < ? ORDER BY store_key",
            *_range_below(head),
        )
        return [(str(store_key)[len(head) + 1 :], int(mtime)) for store_key, mtime in rows]


def _share(db: sqlite3.Connection) -> None:
    """Write ahead: readers beside a writer; a crash of the machine costs the last moments, never the file."""
    give_up = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            db.execute("PRAGMA journal_mode=WAL")
            break
        except sqlite3.OperationalError as error:
            # Of several processes that open a new file at once, one makes the change, and SQLite does not wait here.
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > give_up:
                raise
            time.sleep(0.01)
    db.execute("PRAGMA synchronous=NORMAL")


# The result codes of SQLite that something else than a new file helps against.
_ADVICE = {
    sqlite3.SQLITE_FULL: "full",
    **dict.fromkeys((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED), "busy"),
    **dict.fromkeys(
        (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR), "unreachable"
    ),
}


def _code(err: sqlite3.Error) -> int:
    """The primary code; the upper bits say more than we want to know."""
    return int(getattr(err, "sqlite_errorcode", sqlite3.SQLITE_ERROR)) & 0xFF


def _entry(payload: Any) -> SessionStoreEntry | None:
    """What was stored; None if it cannot be read."""
    try:
        entry = json.loads(payload)
    except (TypeError, ValueError):
        return None
    return cast("SessionStoreEntry", entry) if isinstance(entry, dict) else None


def _uid(entry: SessionStoreEntry) -> str | None:
    """The key against doubles; an id that is no text, or not one for UTF-8, is none."""
    name = entry.get("uuid")
    if not isinstance(name, str) or not name:
        return None
    return None if any("\ud800" <= letter <= "\udfff" for letter in name) else name


def _store_key(key: SessionKey) -> str:
    parts = [key["project_key"], key["session_id"]]
    if key.get("subpath"):
        parts.append(key["subpath"])
    return "/".join(parts)


def _range_below(head: str) -> tuple[str, str]:
    """Bounds of all keys that begin with `head/`; unlike LIKE it knows no wildcards. "0" is the character after "/"."""
    return f"{head}/", f"{head}0"


def _level(entry: SessionStoreEntry | None) -> int:
    message = field(entry, "message") if entry else None
    usage = message.get("usage") if isinstance(message, dict) else None
    if not isinstance(usage, dict):
        return 0
    return sum(count for count in map(usage.get, _USAGE) if isinstance(count, int))
