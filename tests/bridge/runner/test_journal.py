from __future__ import annotations

import contextlib
import resource
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bridge.model import News
from bridge.runner.journal import Journal, written_before


def news(seq: int, *, fence: int = 1, kind: str = "text", text: str = "") -> News:
    return News(seq=seq, fence=fence, at=1000.0 + seq, kind=kind, text=text)


class Heard:
    """Collects what the journal says on its own thread."""

    def __init__(self) -> None:
        self.troubles: list[str] = []
        self.changed = threading.Condition()
        self.writes = 0

    def written(self) -> None:
        with self.changed:
            self.writes += 1
            self.changed.notify_all()

    def trouble(self, text: str) -> None:
        with self.changed:
            self.troubles.append(text)
            self.changed.notify_all()

    def wait(self, condition: object) -> None:
        with self.changed:
            assert callable(condition)
            assert self.changed.wait_for(condition, timeout=10)


@contextlib.contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Have the kernel refuse what goes beyond a size, in the middle of a line, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, old)


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def journal(tmp_path: Path, heard: Heard) -> Iterator[Journal]:
    journal = Journal(tmp_path, 1, on_written=heard.written, on_trouble=heard.trouble)
    yield journal
    journal.close()


def test_what_was_appended_comes_back_in_order(tmp_path: Path, journal: Journal, heard: Heard) -> None:
    for seq in range(1, 1201):
        journal.append(news(seq, text="ünïcode\nwith a line break"))
    journal.close()
    first, offset = journal.read(0, count=500)
    second, offset = journal.read(offset, count=500)
    third, end = journal.read(offset, count=500)
    assert [item.seq for item in first + second + third] == list(range(1, 1201))
    assert first[0].text == "ünïcode\nwith a line break"
    assert journal.read(end) == ([], end)


def test_a_line_cut_off_by_a_crash_is_passed_over(tmp_path: Path, journal: Journal) -> None:
    journal.append(news(1))
    journal.close()
    with (tmp_path / "log" / "0001.ndjson").open("ab") as file:
        file.write(b'{"v": 1, "seq": 2, "kin')
    assert [item.seq for item in written_before(tmp_path, before=2)] == [1]
    assert [item.seq for item in journal.read(0)[0]] == [1]


def test_only_earlier_attempts_and_only_what_was_not_handed_in(tmp_path: Path, heard: Heard) -> None:
    for fence, seqs in ((1, (1, 2)), (2, (3, 4, 5)), (3, (6,))):
        attempt = Journal(tmp_path, fence, on_written=heard.written, on_trouble=heard.trouble)
        for seq in seqs:
            attempt.append(news(seq, fence=fence))
        attempt.acknowledge({1: 2, 2: 3, 3: 0}[fence])
        attempt.close()
    assert [item.seq for item in written_before(tmp_path, before=3)] == [1, 2, 3, 4, 5]
    assert [item.seq for item in written_before(tmp_path, before=3, only_unacknowledged=True)] == [4, 5]


def test_a_disk_that_refuses_holds_the_writer_says_so_once_and_loses_nothing(
    tmp_path: Path, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridge.runner.journal.RETRY_SECONDS", 0.05)
    journal = Journal(tmp_path, 1, on_written=heard.written, on_trouble=heard.trouble)
    journal.append(news(1, text="x" * 100))
    heard.wait(lambda: heard.writes == 1)
    size = (tmp_path / "log" / "0001.ndjson").stat().st_size
    with file_size_limit(size + 20):
        journal.append(news(2, text="y" * 200))
        heard.wait(lambda: len(heard.troubles) == 1)
        assert heard.troubles[0].startswith(str(tmp_path / "log"))
        assert (tmp_path / "log" / "0001.ndjson").stat().st_size == size
        writes = heard.writes
        journal.append(news(3))
        heard.wait(lambda: heard.writes > writes)  # there is something new, though not on the disk
        assert [item.seq for item in journal.stuck()] == [2, 3]
    heard.wait(lambda: len(heard.troubles) == 2)
    assert heard.troubles[1] == ""
    journal.close()
    assert journal.stuck() == []
    assert [item.seq for item in journal.read(0)[0]] == [1, 2, 3]


def test_a_journal_that_is_closed_while_its_disk_refuses_does_not_hang(
    tmp_path: Path, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridge.runner.journal.RETRY_SECONDS", 60.0)
    journal = Journal(tmp_path, 1, on_written=heard.written, on_trouble=heard.trouble)
    with file_size_limit(0):
        journal.append(news(1))
        heard.wait(lambda: len(heard.troubles) == 1)
        journal.close()
    assert journal.read(0) == ([], 0)


def test_a_folder_that_cannot_be_made_is_the_callers_to_see(tmp_path: Path, heard: Heard) -> None:
    (tmp_path / "log").write_text("in the way")
    with pytest.raises(FileExistsError):
        Journal(tmp_path, 1, on_written=heard.written, on_trouble=heard.trouble)
