from __future__ import annotations

import resource
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
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    journal = Journal(tmp_path, 1, on_written=heard.written, on_trouble=heard.trouble)
    journal.append(news(1, text="x" * 100))
    heard.wait(lambda: heard.writes == 1)
    # A file-size limit makes the kernel refuse the write in the middle of a line, as a full disk does.
    import signal

    old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        size = (tmp_path / "log" / "0001.ndjson").stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, hard))
        journal.append(news(2, text="y" * 200))
        heard.wait(lambda: len(heard.troubles) == 1)
        assert heard.troubles[0].startswith(str(tmp_path / "log"))
        assert (tmp_path / "log" / "0001.ndjson").stat().st_size == size
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, old)
    heard.wait(lambda: heard.writes == 2)
    assert heard.troubles[1] == ""
    journal.close()
    assert [item.seq for item in journal.read(0)[0]] == [1, 2]
