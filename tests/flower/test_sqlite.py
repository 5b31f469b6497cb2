from __future__ import annotations

import asyncio
import multiprocessing
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from claude_agent_sdk import SessionKey, SessionStoreEntry
from claude_agent_sdk.testing import run_session_store_conformance
from hypothesis import given
from hypothesis import strategies as st

from flower import texts
from flower.stores import SqliteSessionStore
from flower.stores.prune import PruningSessionStore
from flower.stores.sqlite import SessionFileError

KEY: SessionKey = {"project_key": "p", "session_id": "s"}
SUB: SessionKey = {"project_key": "p", "session_id": "s", "subpath": "subagents/agent-1"}


def entry(**fields: Any) -> SessionStoreEntry:
    return cast("SessionStoreEntry", {"type": "user", **fields})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteSessionStore]:
    opened = SqliteSessionStore(tmp_path / "runs" / "sessions.db")
    yield opened
    opened.close()


def mtimes(store: SqliteSessionStore) -> dict[str, int]:
    with sqlite3.connect(store.path) as db:
        found = dict(db.execute("SELECT store_key, mtime FROM meta"))
    db.close()
    return found


def test_a_file_that_is_no_database_is_refused_in_words_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    path.write_bytes(b"no database" * 100)
    with pytest.raises(SessionFileError, match=r"sessions\.db 无法使用:file is not a database。这个文件已损坏"):
        SqliteSessionStore(path)
    with texts.speaking("en"), pytest.raises(SessionFileError, match=r"cannot be used: .* Move it away and run again"):
        PruningSessionStore(path, tmp_path)
    assert path.read_bytes() == b"no database" * 100
    assert list(tmp_path.iterdir()) == [path]


def test_a_path_that_is_no_file_is_refused_in_words(tmp_path: Path) -> None:
    with texts.speaking("en"), pytest.raises(SessionFileError, match="Check that the path is a file"):
        SqliteSessionStore(tmp_path)


def test_a_database_of_somebody_else_is_refused_and_keeps_what_it_has(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE entries (theirs TEXT)")
        db.execute("INSERT INTO entries VALUES ('kept')")
    db.close()
    with pytest.raises(SessionFileError, match="或者不是会话记录"):
        SqliteSessionStore(path)
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT * FROM entries").fetchall() == [("kept",)]
        assert db.execute("SELECT COUNT(*) FROM sqlite_master").fetchone() == (1,)
    db.close()


async def filled(path: Path) -> None:
    store = SqliteSessionStore(path)
    await store.append(KEY, [entry(n=number, text="x" * 500) for number in range(200)])
    store.close()


@pytest.mark.parametrize("part", [0.2, 0.5, 0.9])
async def test_a_file_of_which_half_is_lost_says_so_and_is_not_written_over(tmp_path: Path, part: float) -> None:
    path = tmp_path / "sessions.db"
    await filled(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * part)])
    cut = path.read_bytes()
    with texts.speaking("en"), pytest.raises(SessionFileError, match=r"sessions\.db.*damaged.*manifest\.json"):
        await resumed(path)
    assert path.read_bytes()[100:] == cut[100:]


async def resumed(path: Path) -> None:
    store = PruningSessionStore(path, path.parent)
    try:
        await store.load(KEY)
    finally:
        store.close()


async def test_pages_that_were_written_over_are_told_at_the_load(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    await filled(path)
    whole = bytearray(path.read_bytes())
    whole[8 * 4096 : 20 * 4096] = b"\xa5" * (12 * 4096)
    path.write_bytes(whole)
    with pytest.raises(SessionFileError, match="已损坏"):
        await resumed(path)


@pytest.mark.parametrize("payload", ['{"type": "us', "[]", "7", b"\xff\xfe", None])
async def test_an_entry_that_cannot_be_read_is_named(store: SqliteSessionStore, payload: Any) -> None:
    await store.append(KEY, [entry(n=1), entry(n=2)])
    with sqlite3.connect(store.path) as db:
        db.execute("DROP TABLE entries")
        db.execute("CREATE TABLE entries (store_key TEXT, seq INTEGER, uid TEXT, payload)")
        db.execute("INSERT INTO entries VALUES ('p/s', 1, NULL, ?)", (payload,))
    db.close()
    with texts.speaking("en"), pytest.raises(SessionFileError, match="entry 1 of session s cannot be read"):
        await store.load(KEY)
    assert store.last_context("p", "s") == 0


async def test_an_empty_file_is_a_new_one(tmp_path: Path) -> None:
    (tmp_path / "sessions.db").touch()
    store = SqliteSessionStore(tmp_path / "sessions.db")
    assert (store.projects(), await store.load(KEY)) == ([], None)
    store.close()


async def test_on_a_full_disk_a_batch_is_stored_whole_or_not_at_all(store: SqliteSessionStore) -> None:
    await store.append(KEY, [entry(n=1)])
    store.book_cost("s", 0.5)
    (pages,) = store._db.execute("PRAGMA page_count").fetchone()
    store._db.execute(f"PRAGMA max_page_count = {pages + 2}")
    batch = [entry(n=number, text="x" * 1000) for number in range(2, 50)]
    with pytest.raises(SessionFileError, match="磁盘满了"):
        await store.append(KEY, batch)
    assert await store.load(KEY) == [entry(n=1)]
    assert store.cost_of("s") == 0.5
    store._db.execute("PRAGMA max_page_count = 100000")
    await store.append(KEY, batch)
    assert await store.load(KEY) == [entry(n=1), *batch]


async def test_ids_that_are_no_text_are_no_ids(store: SqliteSessionStore) -> None:
    odd = [entry(uuid=["a"]), entry(uuid=7), entry(uuid="\ud83d"), entry(uuid="")]
    await store.append(KEY, [*odd, *odd])
    assert await store.load(KEY) == [*odd, *odd]


async def test_a_long_transcript_comes_whole_and_in_order(store: SqliteSessionStore) -> None:
    for count in (256, 512, 513):
        key: SessionKey = {"project_key": "p", "session_id": str(count)}
        entries = [entry(n=number) for number in range(count)]
        await store.append(key, entries)
        assert await store.load(key) == entries


async def test_the_suite_of_the_sdk_passes_in_memory_and_on_disk(tmp_path: Path) -> None:
    opened: list[SqliteSessionStore] = []

    def make(path: str | Path) -> SqliteSessionStore:
        opened.append(SqliteSessionStore(path))
        return opened[-1]

    await run_session_store_conformance(lambda: make(":memory:"))
    await run_session_store_conformance(lambda: make(tmp_path / f"{len(opened)}.db"))
    assert len(opened) > 14
    for store in opened:
        store.close()


async def test_the_tables_are_the_specified_ones(store: SqliteSessionStore) -> None:
    with sqlite3.connect(store.path) as db:
        tables = {
            name: [column[1] for column in db.execute(f"PRAGMA table_info({name})")]
            for name in ("entries", "meta", "summaries", "costs")
        }
        journal = db.execute("PRAGMA journal_mode").fetchone()
    db.close()
    assert tables == {
        "entries": ["store_key", "seq", "uid", "payload"],
        "meta": ["store_key", "mtime", "next_seq"],
        "summaries": ["project_key", "session_id", "mtime", "data"],
        "costs": ["session_id", "total"],
    }
    assert journal == ("wal",)


async def test_what_comes_again_is_stored_once_and_what_has_no_uuid_always(store: SqliteSessionStore) -> None:
    await store.append(KEY, [entry(uuid="a", n=1), entry(uuid="a", n=2), entry(n=3), entry(n=3)])
    await store.append(KEY, [entry(uuid="a", n=4), entry(uuid="b", n=5), entry(uuid=None, n=6)])
    loaded = await store.load(KEY)
    assert [cast("dict[str, Any]", one)["n"] for one in loaded or []] == [1, 3, 3, 5, 6]


async def test_the_same_uuid_in_a_subagent_is_another_entry(store: SqliteSessionStore) -> None:
    await store.append(KEY, [entry(uuid="a")])
    await store.append(SUB, [entry(uuid="a")])
    assert await store.load(SUB) == [entry(uuid="a")]


async def test_a_batch_that_is_all_replay_changes_nothing(store: SqliteSessionStore) -> None:
    batch = [entry(uuid="a", timestamp="2024-01-01T00:00:00.000Z", customTitle="first")]
    await store.append(KEY, batch)
    before, summaries = mtimes(store), await store.list_session_summaries("p")
    await store.append(KEY, [*batch, *batch])
    assert mtimes(store) == before
    assert await store.list_session_summaries("p") == summaries


class StoreWithAnOddClock(SqliteSessionStore):
    times: Sequence[int] = (2_000, 2_000, 1_000, 3_000)

    def _now(self) -> int:
        now, *self.times = self.times
        return now


async def test_time_stamps_only_grow_though_the_clock_stands_still_or_goes_back(tmp_path: Path) -> None:
    store = StoreWithAnOddClock(tmp_path / "sessions.db")
    for session in ("a", "b", "c", "d"):
        await store.append({"project_key": "p", "session_id": session}, [entry(n=1)])
    assert mtimes(store) == {"p/a": 2_000, "p/b": 2_001, "p/c": 2_002, "p/d": 3_000}
    store.close()


async def test_a_summary_has_the_time_stamp_of_its_session(store: SqliteSessionStore) -> None:
    await store.append(KEY, [entry(uuid="a", timestamp="2024-01-01T00:00:00.000Z", customTitle="first")])
    (summary,) = await store.list_session_summaries("p")
    assert summary["mtime"] == mtimes(store)["p/s"]
    await store.append(SUB, [entry(uuid="b", customTitle="subagent")])
    assert await store.list_session_summaries("p") == [summary]


async def test_deleting_knows_no_wildcards(store: SqliteSessionStore) -> None:
    others: list[SessionKey] = [
        {"project_key": "p", "session_id": "aXb"},
        {"project_key": "p", "session_id": "a_bc"},
        {"project_key": "p", "session_id": "a_", "subpath": "b"},
        {"project_key": "p", "session_id": "a%b", "subpath": "x"},
        {"project_key": "p_", "session_id": "a_b"},
    ]
    mine: list[SessionKey] = [
        {"project_key": "p", "session_id": "a_b"},
        {"project_key": "p", "session_id": "a_b", "subpath": "x/y"},
    ]
    for key in [*others, *mine]:
        await store.append(key, [entry(n=1)])
    await store.delete(mine[0])
    assert [await store.load(key) for key in mine] == [None, None]
    assert [await store.load(key) for key in others] == [[entry(n=1)]] * 5


async def test_deleting_a_subagent_leaves_its_session(store: SqliteSessionStore) -> None:
    store.book_cost("s", 1.5)
    for key in (KEY, SUB):
        await store.append(key, [entry(uuid="a", timestamp="2024-01-01T00:00:00.000Z")])
    await store.delete(SUB)
    assert await store.list_subkeys({"project_key": "p", "session_id": "s"}) == []
    assert len(await store.list_session_summaries("p")) == 1
    assert store.cost_of("s") == 1.5
    await store.delete(KEY)
    assert (await store.list_session_summaries("p"), store.cost_of("s")) == ([], 0.0)


async def test_projects_and_sessions_are_told_without_reading_them(store: SqliteSessionStore) -> None:
    await store.append({"project_key": "b", "session_id": "s"}, [entry(n=1)])
    await store.append({"project_key": "a", "session_id": "t", "subpath": "x"}, [entry(n=1)])
    assert store.projects() == ["a", "b"]
    assert store.has_session("b", "s")
    assert not store.has_session("a", "s")
    assert not store.has_session("a", "t")


async def test_the_context_is_that_of_the_newest_entry_with_a_usage(store: SqliteSessionStore) -> None:
    def used(**usage: Any) -> SessionStoreEntry:
        return entry(type="assistant", message={"usage": usage})

    assert store.last_context("p", "s") == 0
    await store.append(
        KEY,
        [
            used(input_tokens=1),
            used(input_tokens=10, cache_read_input_tokens=200, cache_creation_input_tokens=3_000, output_tokens=9),
            used(input_tokens=0),
            used(input_tokens=None),
            entry(message="text"),
            entry(message={"usage": []}),
        ],
    )
    assert store.last_context("p", "s") == 3210
    assert store.last_context("p", "s", scan=5) == 3210
    assert store.last_context("p", "s", scan=4) == 0
    assert store.last_context("p", "s", scan=0) == 0
    await store.append(KEY, [entry(n=number) for number in range(60)])
    assert store.last_context("p", "s") == 0


async def test_the_cost_of_a_session_is_the_last_total_also_where_it_fell(tmp_path: Path) -> None:
    first = SqliteSessionStore(tmp_path / "sessions.db")
    assert first.cost_of("s") == 0.0
    first.book_cost("s", 0.25)
    first.book_cost("t", 7.0)
    first.close()
    second = SqliteSessionStore(tmp_path / "sessions.db")
    assert second.cost_of("s") == 0.25
    second.book_cost("s", 0.1)
    assert (second.cost_of("s"), second.cost_of("t")) == (0.1, 7.0)
    second.close()


async def test_a_batch_that_fails_in_the_middle_leaves_nothing(store: SqliteSessionStore) -> None:
    await store.append(KEY, [entry(n=1)])
    with pytest.raises(TypeError):
        await store.append(KEY, [entry(n=2), entry(n=object())])
    assert await store.load(KEY) == [entry(n=1)]
    await store.append(KEY, [entry(n=3)])
    assert await store.load(KEY) == [entry(n=1), entry(n=3)]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(JSON, max_size=4))
async def test_whatever_is_appended_is_loaded(values: list[Any]) -> None:
    store = SqliteSessionStore(":memory:")
    try:
        entries = [entry(value=value) for value in values]
        await store.append(KEY, entries)
        assert await store.load(KEY) == (entries or None)
    finally:
        store.close()


async def test_half_a_surrogate_pair_is_no_reason_to_lose_a_batch(store: SqliteSessionStore) -> None:
    await store.append(KEY, [entry(text="cut \ud83d")])
    assert await store.load(KEY) == [entry(text="cut \ud83d")]


async def test_appends_keep_the_order_of_their_calls_though_nobody_waits(store: SqliteSessionStore) -> None:
    async with asyncio.TaskGroup() as group:
        for number in range(50):
            group.create_task(store.append(KEY, [entry(n=number)]))
    assert await store.load(KEY) == [entry(n=number) for number in range(50)]


async def test_the_loop_turns_while_another_process_holds_the_file(store: SqliteSessionStore) -> None:
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    waiting = asyncio.create_task(store.append(KEY, [entry(n=1)]))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not waiting.done()
    other.execute("ROLLBACK")
    other.close()
    await waiting
    assert await store.load(KEY) == [entry(n=1)]


async def test_plain_methods_may_be_called_from_any_thread_while_others_write(store: SqliteSessionStore) -> None:
    failures: list[BaseException] = []

    def book(name: str) -> None:
        try:
            for number in range(50):
                store.book_cost(name, float(number))
                store.has_session("p", "s")
        except BaseException as error:  # noqa: BLE001 - the test reports it
            failures.append(error)

    threads = [threading.Thread(target=book, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for number in range(50):
        await store.append(KEY, [entry(n=number)])
    for thread in threads:
        thread.join()
    assert failures == []
    assert [store.cost_of(name) for name in "abc"] == [49.0, 49.0, 49.0]
    assert len(await store.load(KEY) or []) == 50


async def test_closing_finishes_what_was_handed_in_and_twice_is_harmless(tmp_path: Path) -> None:
    store = SqliteSessionStore(tmp_path / "sessions.db")
    appended = asyncio.create_task(store.append(KEY, [entry(n=1)]))
    await asyncio.sleep(0)
    store.close()
    store.close()
    await appended
    with pytest.raises(RuntimeError):
        await store.append(KEY, [entry(n=2)])
    again = SqliteSessionStore(tmp_path / "sessions.db")
    assert await again.load(KEY) == [entry(n=1)]
    again.close()


def open_together(folder: str, barrier: Any, failures: Any) -> None:
    for number in range(25):
        barrier.wait(10)
        try:
            store = SqliteSessionStore(f"{folder}/{number}.db")
            store.book_cost("s", 1.0)
            store.close()
        except sqlite3.Error as error:
            failures.put(repr(error))
    failures.put(None)


def test_processes_that_open_a_new_file_at_once_all_get_it(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    barrier, failures = context.Barrier(3), context.Queue()
    processes = [context.Process(target=open_together, args=(str(tmp_path), barrier, failures)) for _ in range(3)]
    for process in processes:
        process.start()
    told: list[str | None] = []
    while told.count(None) < len(processes):
        told.append(failures.get(timeout=15))
    for process in processes:
        process.join()
    assert told == [None, None, None]


def test_what_was_appended_survives_a_killed_process(tmp_path: Path) -> None:
    script = (
        "import asyncio, sys\n"
        "from flower.stores import SqliteSessionStore\n"
        "store = SqliteSessionStore(sys.argv[1])\n"
        "asyncio.run(store.append({'project_key': 'p', 'session_id': 's'}, [{'type': 'user', 'n': 1}]))\n"
        "print('ready', flush=True)\n"
        "sys.stdin.read()\n"
    )
    path = tmp_path / "sessions.db"
    command = [sys.executable, "-c", script, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.kill()
    store = SqliteSessionStore(path)
    assert store.has_session("p", "s")
    store.close()
