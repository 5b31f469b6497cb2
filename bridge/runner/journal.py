"""The run's own log on disk: every piece of news is written here before anybody else hears of it (rulings R9).

One file per attempt (`log/0003.ndjson`), so that an attempt which lost its lease, was frozen and thawed, can never
write between the lines of its successor. A thread does the writing: a sink must not wait for a disk (behaviour 5.2).
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from io import FileIO
from pathlib import Path

from bridge.errors import BadMessageError
from bridge.model import News
from bridge.wire import decode_news, encode_news

log = logging.getLogger(__name__)

BATCH = 500
"""Most items in one write."""

RETRY_SECONDS = 2.0
"""How long the writer waits before it tries a full or failing disk again."""


class Journal:
    """Appends news, in order, from any thread; reads back what is safely on disk.

    `on_written` is called on the writer's thread after each write; `on_trouble` with a text when the disk refuses, and
    with an empty text when it takes again. Nothing is dropped in between.
    """

    def __init__(
        self, folder: Path, fence: int, *, on_written: Callable[[], None], on_trouble: Callable[[str], None]
    ) -> None:
        self._path = folder / "log" / f"{fence:04d}.ndjson"
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._on_written, self._on_trouble = on_written, on_trouble
        self._todo: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._wake = threading.Event()
        self._file = FileIO(self._path, "a")  # unbuffered: after a failed write we know what stands there
        self._end = self._path.stat().st_size
        self._thread = threading.Thread(target=self._write_all, name="flower-journal", daemon=True)
        self._thread.start()

    def append(self, news: News) -> None:
        """Hand one piece of news to the writer. Never blocks."""
        self._todo.put(encode_news(news))

    def read(self, offset: int, *, count: int = 500) -> tuple[list[News], int]:
        """Return at most `count` items from a byte offset on, and the offset behind them. Whole lines only."""
        items: list[News] = []
        with self._path.open("rb") as file:
            file.seek(offset)
            for line in file:
                if len(items) >= count or not line.endswith(b"\n"):
                    break
                offset += len(line)
                items.append(decode_news(line))
        return items, offset

    def acknowledge(self, seq: int) -> None:
        """Remember that everything up to `seq` has been handed in. A hint: readers check it against the line."""
        mark = self._path.with_suffix(".acked")
        try:
            mark.write_text(str(seq))
        except OSError:
            log.warning("journal.mark_failed", exc_info=True)

    def close(self) -> None:
        """Write what is left and stop the writer. Blocks at most a few seconds."""
        self._wake.set()
        self._todo.put(None)
        self._thread.join(5)
        self._file.close()

    def _write_all(self) -> None:
        while (line := self._todo.get()) is not None:
            lines, last = [line], False
            with suppress(queue.Empty):  # what came meanwhile goes along in the same write
                while len(lines) < BATCH:
                    if (line := self._todo.get_nowait()) is None:
                        last = True
                        break
                    lines.append(line)
            self._write(b"".join(each + b"\n" for each in lines))
            self._on_written()
            if last:
                return

    def _write(self, data: bytes) -> None:
        failed = False
        while not self._try(data, tell=not failed):
            failed = True
            if self._wake.wait(RETRY_SECONDS):
                return
        if failed:
            self._on_trouble("")

    def _try(self, data: bytes, *, tell: bool) -> bool:
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[self._file.write(rest) or 0 :]
        except OSError as err:
            with suppress(OSError):
                self._file.truncate(self._end)  # take back the part of a line that a full disk let through
            if tell:
                self._on_trouble(f"{self._path.parent}: {err.strerror or err}")
            return False
        self._end += len(data)
        return True


def written_before(folder: Path, *, before: int, only_unacknowledged: bool = False) -> Iterator[News]:
    """Yield what earlier attempts (numbers below `before`) wrote down, oldest first.

    `only_unacknowledged` leaves out what is known to be handed in. An attempt may have died between handing in and
    noting it, so compare with the line before you use one. A last line that was cut off by a crash is passed over.
    """
    for path in sorted((folder / "log").glob("[0-9]*.ndjson")):
        if int(path.stem) >= before:
            continue
        acked = _acked(path) if only_unacknowledged else 0
        for line in path.read_bytes().splitlines():
            try:
                news = decode_news(line)
            except BadMessageError:
                log.warning("journal.torn_line", extra={"path": str(path)})
                continue
            if news.seq > acked:
                yield news


def _acked(path: Path) -> int:
    try:
        return int(path.with_suffix(".acked").read_text())
    except (OSError, ValueError):
        return 0
