"""The run's own log on disk: every piece of news is written here before anybody else hears of it (rulings R9).

One file per attempt (`log/0003.ndjson`), so that an attempt which lost its lease, was frozen and thawed, can never
write between the lines of its successor. A thread does the writing: a sink must not wait for a disk (behaviour 5.2).
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from io import FileIO
from itertools import islice
from pathlib import Path

from bridge.errors import BadMessageError
from bridge.model import News
from bridge.wire import decode_news, encode_news

log = logging.getLogger(__name__)

BATCH = 500
"""Most items in one write."""

RETRY_SECONDS = 2.0
"""How long the writer waits before it tries a full or failing disk again."""

CLOSE_SECONDS = 5.0


class Journal:
    """Appends news, in order, from any thread; reads back what is safely on disk.

    `on_written` is called after each write, and whenever `stuck` has something new; `on_trouble` with a text when the
    disk refuses, and with an empty text when it takes again. Both on the writer's thread or on that of `append`.
    Nothing is dropped in between.

    Raises:
        OSError: the log cannot be opened.
    """

    def __init__(
        self, folder: Path, fence: int, *, on_written: Callable[[], None], on_trouble: Callable[[str], None]
    ) -> None:
        self._path = folder / "log" / f"{fence:04d}.ndjson"
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._on_written, self._on_trouble = on_written, on_trouble
        self._todo: deque[bytes] = deque()
        """What is not on the disk yet; guarded by `_changed`, as the two flags are."""
        self._failing = self._closing = False
        self._changed = threading.Condition()
        self._file = FileIO(self._path, "a")  # unbuffered: after a failed write we know what stands there
        self._end = self._path.stat().st_size
        self._thread = threading.Thread(target=self._write_all, name="flower-journal", daemon=True)
        self._thread.start()

    def append(self, news: News) -> None:
        """Hand one piece of news to the writer. Never blocks."""
        with self._changed:
            self._todo.append(encode_news(news))
            failing = self._failing
            if not failing:  # a writer that waits for its disk is not hurried
                self._changed.notify_all()
        if failing:
            self._on_written()

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

    def stuck(self) -> list[News]:
        """Return what the disk does not take, oldest first; nothing while it takes what it gets."""
        with self._changed:
            lines = list(self._todo) if self._failing else []
        return [decode_news(line) for line in lines]

    def acknowledge(self, seq: int) -> None:
        """Remember that everything up to `seq` has been handed in. A hint: readers check it against the line."""
        mark = self._path.with_suffix(".acked")
        try:
            mark.write_text(str(seq))
        except OSError:
            log.warning("journal.mark_failed", exc_info=True)

    def close(self) -> None:
        """Write what is left and stop the writer. Blocks at most a few seconds."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join(CLOSE_SECONDS)
        self._file.close()

    def _write_all(self) -> None:
        while batch := self._next_batch():
            if not self._write(b"".join(line + b"\n" for line in batch)):
                return
            with self._changed:
                for _ in batch:
                    self._todo.popleft()
            self._on_written()

    def _next_batch(self) -> list[bytes]:
        """Wait for lines; none: the journal is closed and all of it is written."""
        with self._changed:
            self._changed.wait_for(lambda: self._todo or self._closing)
            return list(islice(self._todo, BATCH))

    def _write(self, data: bytes) -> bool:
        """Write, for as long as it takes. False: the journal was closed before the disk took it."""
        while (trouble := self._try(data)) is not None:
            with self._changed:
                new, self._failing = not self._failing, True
            if new:
                self._on_trouble(trouble)
                self._on_written()
            with self._changed:
                if self._changed.wait_for(lambda: self._closing, timeout=RETRY_SECONDS):
                    return self._try(data) is None
        with self._changed:
            again, self._failing = self._failing, False
        if again:
            self._on_trouble("")
        return True

    def _try(self, data: bytes) -> str | None:
        """Write once; returns what was wrong, and then nothing of it stands in the file."""
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[self._file.write(rest) or 0 :]
        except OSError as err:
            with suppress(OSError):
                self._file.truncate(self._end)  # take back the part of a line that a full disk let through
            return f"{self._path.parent}: {err.strerror or err}"
        self._end += len(data)
        return None


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
