"""What a finished run leaves in the project's root for the next agent, of whatever make (API 15.3).

A document of five sections, and the block of `CLAUDE.md` and `AGENTS.md` that it is written into. These files belong to
people: whatever else is in them stays, byte for byte.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from flower import texts
from flower.core import grammar
from flower.core.disk import read_whole, real, write_whole
from flower.texts import documents
from flower.texts.bequest import EN, ZH, BequestTexts

BEGIN = ZH.begin
END = ZH.end
DEGRADED = ZH.degraded
BEQUEST_PROMPT = ZH.prompt
"""What a read-only role is asked; `texts.current().bequest.prompt` is the one in the language spoken."""

NAMES = ("CLAUDE.md", "AGENTS.md")

_FIELDS = ("what", "acceptance", "generated", "deadends", "workbench")
_REQUIRED = ("what", "workbench")
_GRAMMAR = grammar.Grammar({name: (*getattr(ZH, name), *getattr(EN, name)) for name in _FIELDS})
_PLACEHOLDERS = (documents.ZH.empty, documents.EN.empty)
_LONGEST = 8000
"""Characters of a section. The next agent reads the block at every start, so it must not swallow a model's garbage."""
_READ = 1_000_000
"""Characters of a text that are looked at; a short document lies in fewer, and reading takes time."""

# One begins a line and the other ends one, or a text about these marks would be taken for them. The words behind are
# free: they differ by language and by version.
_BEGIN = re.compile(rb"^(?:\xef\xbb\xbf)?[ \t]*<!-- flower:begin(?:[ \t][^\r\n]*?)?-->", re.MULTILINE)
_END = re.compile(rb"<!-- flower:end(?:[ \t][^\r\n]*?)?-->(?=[ \t]*\r?$)", re.MULTILINE)
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_BYTE_ORDER = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


@dataclass
class Bequest:
    """The hand-off at the end of a run. Only what it is and where the workbench is are required."""

    what: str = ""
    acceptance: str = ""
    generated: str = ""
    deadends: str = ""
    workbench: str = ""
    path: Path | None = field(default=None, compare=False)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what a model wrote or a file holds, in either language; all but the five sections is dropped.

        Never raises. What would break the block is taken out: control characters, the beginnings of HTML comments.
        """
        sections = _GRAMMAR.sections(_printable(text[:_READ]))
        found = {name: "" if body in _PLACEHOLDERS else _plain(body) for name, body in sections.items()}
        return cls(
            what=found.get("what", ""),
            acceptance=found.get("acceptance", ""),
            generated=found.get("generated", ""),
            deadends=found.get("deadends", ""),
            workbench=found.get("workbench", ""),
        )

    @classmethod
    def load(cls, path: str | Path) -> Self | None:
        """The document in a file; of a file with a managed block, the one in the block. None if it cannot be read."""
        try:
            data = Path(path).read_bytes()
            inside = _inside(data)
            bequest = cls.parse((data if inside is None else data[slice(*inside)]).decode())
        except (OSError, ValueError):
            return None
        bequest.path = Path(path).resolve()
        return bequest

    @property
    def degraded(self) -> bool:
        """Whether no model wrote it."""
        return any(mark in getattr(self, name) for name in _FIELDS for mark in (ZH.degraded, EN.degraded))

    def missing(self) -> list[str]:
        """Names of the required sections that are empty, in the language spoken."""
        spoken = texts.current().bequest
        return [getattr(spoken, name)[0] for name in _REQUIRED if not getattr(self, name).strip()]

    def complete(self) -> bool:
        return not self.missing()

    def to_markdown(self) -> str:
        said = texts.current()
        parts = [f"# {said.bequest.title}", f"> {said.bequest.note}"]
        parts += [f"## {name}\n\n{_plain(body) or said.documents.empty}" for name, body in self._sections(said.bequest)]
        return "\n\n".join(parts) + "\n"

    def prompt_block(self) -> str:
        """The sections that are not empty, for the next model."""
        return "\n\n".join(f"## {name}\n{body}" for name, body in self._sections(texts.current().bequest) if body)

    def block_body(self) -> str:
        """The text of the managed block. Parsing it again gives the same document."""
        spoken = texts.current().bequest
        filled = [(name, _plain(body)) for name, body in self._sections(spoken)]
        return "\n\n".join([spoken.intro, *(f"### {name}\n\n{body}" for name, body in filled if body)])

    def write(self, path: str | Path) -> Path:
        """Write it into a file of its own; the block in people's files is written by `write_managed`.

        Raises:
            OSError: it could not be written.
        """
        self.path = write_whole(Path(path), self.to_markdown())
        return self.path

    def _sections(self, spoken: BequestTexts) -> Iterator[tuple[str, str]]:
        for name in _FIELDS:
            yield getattr(spoken, name)[0], getattr(self, name)


def mechanical(*, what: str = "", workbench_hint: str = "", why: str = "") -> Bequest:
    """The substitute that needs no model: complete, and `degraded`.

    Args:
        what: the request in its own words; repeated as a quotation, so that no line of it opens a section.
        workbench_hint: where the workbench is, as a person or a model would write it.
        why: why there is no better one.
    """
    spoken = texts.current().bequest
    reason = " ".join(why.split())
    mark = spoken.degraded_why.format(mark=spoken.degraded, why=reason) if reason else spoken.degraded
    request = _printable(what[:_READ]).strip()
    quoted = "\n".join(f"> {line}".rstrip() for line in request.split("\n")) if request else spoken.no_what
    return Bequest(
        what=_plain(f"{mark}\n\n{quoted}"),
        acceptance=spoken.mechanical_acceptance,
        generated=spoken.mechanical_generated,
        workbench=spoken.mechanical_workbench.format(place=" ".join(workbench_hint.split()) or spoken.some_workbench),
    )


def write_managed(path: str | Path, body: str) -> Path:
    """Put `body` into the managed block of a file, and touch nothing else in it; returns the resolved path.

    With exactly one pair of marks, in order, what stands between them is replaced. A missing file is created. In any
    other state a block is appended, unless the same one stands at the end already. Bytes that are no UTF-8, line
    endings, mode and symbolic links stay as they are; a file in which nothing changes is not written. Blocks until
    the disk has it.

    Raises:
        OSError: it cannot be read or written, or is read-only; it is as it was.
        ValueError: it is in UTF-16, where appended UTF-8 would be garbage; it is as it was.
    """
    file = Path(path)
    before = read_whole(file)
    if before is not None and (encoding := _BYTE_ORDER.get(before[:2])):
        raise ValueError(texts.current().bequest.not_utf8.format(path=file, encoding=encoding))
    after = _with_block(before or b"", body)
    if after == before:
        return file.resolve()
    if before is not None:
        _refuse_read_only(file)
    return write_whole(file, after)


def write_both(root: str | Path, body: str) -> list[Path]:
    """Put the same block into `CLAUDE.md` and `AGENTS.md` of a folder; returns their resolved paths.

    A link that leads out of the folder is not followed: the file there belongs to something else. If one of the two
    cannot be written the other is written all the same, and then the first error is raised.

    Raises:
        OSError, ValueError: as of `write_managed`.
    """
    written: list[Path] = []
    failed: list[OSError | ValueError] = []
    for name in NAMES:
        try:
            _refuse_to_leave(Path(root, name), Path(root).resolve())
            written.append(write_managed(Path(root, name), body))
        except (OSError, ValueError) as err:
            failed.append(err)
    if failed:
        raise failed[0]
    return written


def _with_block(before: bytes, body: str) -> bytes:
    eol = b"\r\n" if 2 * before.count(b"\r\n") > before.count(b"\n") else b"\n"
    inner = _encoded(body, eol)
    inside = _inside(before)
    if inside is not None:
        begin, end = inside
        return before[:begin] + eol + inner + eol + before[end:]
    block = texts.current().bequest.begin.encode() + eol + inner + eol + END.encode() + eol
    if not before:
        return block
    if _ends_with_block(before, inner, eol):
        return before
    ended = b"" if before.endswith(b"\n") else eol
    return before + ended + eol + block


def _inside(data: bytes) -> tuple[int, int] | None:
    """Where the inside of the one block begins and ends; None if there is not exactly one."""
    begins, ends = list(_BEGIN.finditer(data)), list(_END.finditer(data))
    if len(begins) != 1 or len(ends) != 1 or begins[0].end() > ends[0].start():
        return None
    return begins[0].end(), ends[0].start()


def _ends_with_block(data: bytes, inner: bytes, eol: bytes) -> bool:
    """In a file with broken marks each run would append one more."""
    *_, last = (None, *_BEGIN.finditer(data))
    tail = eol + inner + eol + END.encode()
    return last is not None and data[last.end() :].rstrip() == tail.rstrip()


def _encoded(body: str, eol: bytes) -> bytes:
    return _printable(_without_comments(body)).strip("\n").encode().replace(b"\n", eol)


def _printable(text: str) -> str:
    """Without what a file for people must not hold: escape sequences, NUL, halves of characters."""
    return _UNPRINTABLE.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def _without_comments(text: str) -> str:
    """An HTML comment could hold our own marks, or never end and hide what comes behind."""
    return text.replace("<!--", "&lt;!--")


def _plain(text: str) -> str:
    """A section's text such that a parser finds exactly it again. Doing it twice changes nothing."""
    lines = grammar.without_fences(_without_comments(_printable(text[: 4 * _LONGEST]))).split("\n")
    # A line that would open a section becomes an item of a list.
    plain = grammar.body([f"- {line.strip()}" if _GRAMMAR.sections(line) else line for line in lines])
    if len(plain) <= _LONGEST:
        return plain
    cut = texts.current().bequest.cut
    kept = plain[: _LONGEST - len(cut) - 2].rpartition("\n")[0] or plain[: _LONGEST - len(cut) - 2]
    return f"{kept.rstrip()}\n\n{cut}"


def _refuse_read_only(file: Path) -> None:
    """Replacing a file needs no right to write it, only its folder; but who marked it meant it."""
    # Root may write everything, so the mark itself is looked at as well.
    if file.stat().st_mode & 0o222 and os.access(file, os.W_OK):
        return
    words = texts.current().bequest.read_only.format(path=file)
    raise PermissionError(errno.EACCES, words)


def _refuse_to_leave(file: Path, root: Path) -> None:
    if not file.is_symlink():
        return
    target = real(file)
    if not target.is_relative_to(root):
        words = texts.current().bequest.leads_out.format(path=file, target=target, root=root)
        raise OSError(errno.EPERM, words)
