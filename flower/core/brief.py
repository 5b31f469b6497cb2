"""The brief: the frozen requirement in four sections (behaviour 20.1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from flower import texts
from flower.core import grammar
from flower.core.disk import freeze
from flower.texts.documents import EN, ZH, DocumentTexts

_FIELDS = ("goal", "accept", "bounds", "unknowns")
_GRAMMAR = grammar.Grammar({name: (*getattr(ZH, f"brief_{name}"), *getattr(EN, f"brief_{name}")) for name in _FIELDS})
_PLACEHOLDERS = (ZH.unfilled, EN.unfilled)


@dataclass
class Brief:
    """What was agreed before the work began. The file is the truth once it is written, and a person may edit it.

    What was said while the run went on stands at the end of `unknowns`, verbatim and with its headings (D18).
    """

    goal: str = ""
    accept: str = ""
    bounds: str = ""
    unknowns: str = ""
    path: Path | None = field(default=None, compare=False)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what a model wrote or a file holds, in either language; all but the four sections is dropped."""
        document, added = grammar.split_addenda(text)
        found = {key: _filled(body) for key, body in _GRAMMAR.sections(document).items()}
        return cls(
            goal=found.get("goal", ""),
            accept=found.get("accept", ""),
            bounds=found.get("bounds", ""),
            unknowns=_joined(found.get("unknowns", ""), added),
        )

    @classmethod
    def load(cls, path: str | Path) -> Self | None:
        """The brief in a file; None if it is missing or cannot be read."""
        try:
            brief = cls.parse(Path(path).read_text(encoding="utf-8-sig"))
        except (OSError, ValueError):
            return None
        brief.path = Path(path).resolve()
        return brief

    def missing(self) -> list[str]:
        """Names of the empty sections, in the language spoken."""
        return [name for name, body in self._sections(texts.current().documents) if not _own(body)]

    def complete(self) -> bool:
        return all(_own(getattr(self, name)) for name in _FIELDS)

    def to_markdown(self) -> str:
        spoken = texts.current().documents
        parts = [f"# {spoken.brief_title}", f"> {spoken.brief_note}"]
        for name, body in self._sections(spoken):
            parts.append(f"## {name}\n\n{_joined(_own(body) or spoken.unfilled, grammar.split_addenda(body)[1])}")
        return "\n\n".join(parts) + "\n"

    def prompt_block(self) -> str:
        """The sections that are not empty, for the next model."""
        return "\n\n".join(f"## {name}\n{body}" for name, body in self._sections(texts.current().documents) if body)

    def write(self, path: str | Path) -> Path:
        """Freeze it, with what was added to the file meanwhile: words sent while clarifying are not lost (D18).

        Raises:
            OSError: it could not be written.
        """
        self.path = freeze(Path(path), self._with_additions)
        return self.path

    def _with_additions(self, before: str) -> str:
        known = grammar.addenda(self.unknowns)
        for added in grammar.addenda(before):
            if added not in known:
                self.unknowns = _joined(self.unknowns, added)
        return self.to_markdown()

    def _sections(self, spoken: DocumentTexts) -> Iterator[tuple[str, str]]:
        for name in _FIELDS:
            yield getattr(spoken, f"brief_{name}")[0], getattr(self, name)


def _filled(body: str) -> str:
    return "" if body in _PLACEHOLDERS else body


def _own(body: str) -> str:
    """A section without what was added later."""
    return grammar.split_addenda(body)[0].strip()


def _joined(body: str, added: str) -> str:
    return "\n\n".join(part for part in (body, added) if part)
