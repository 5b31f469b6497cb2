"""What would mislead or stop a resumed session: old denials, errors of the API, what cuts left behind (behaviour 13.4).

A transcript is one chain by `parentUuid`, and every call needs its result: calls go together with their results, and
who hung on an entry that goes is attached to its nearest surviving ancestor. Pure functions on entries and the
runtime's store above them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from claude_agent_sdk import SessionKey, SessionStoreEntry

from flower import texts
from flower.stores.entries import (
    Block,
    blocks,
    call_of,
    changed,
    content_of,
    field,
    is_api_error,
    is_denial,
    named,
    text_of,
    untouchable,
    with_content,
)
from flower.stores.heal import heal_orphans
from flower.stores.trim import EphemeralPolicy, TrimmingSessionStore, TrimPolicy

__all__ = ["PrunePolicy", "PruningSessionStore", "heal_orphans", "is_api_error", "is_denial", "relink"]

INTERRUPTED = texts.of("zh").stores.interrupted
ORPHAN = texts.of("zh").stores.orphan

_RESIDUE = "[Request interrupted"


@dataclass
class PrunePolicy:
    """What goes, and what is said in its place (API 10.7). Texts left as they are are said in the language spoken.

    Args:
        keep_denials: so many of the newest denied calls stay. One, because it keeps the model from making the same
            call at once; more teach it that everything is refused.
    """

    drop_api_errors: bool = True
    neutralize_interrupts: bool = True
    interrupt_text: str = INTERRUPTED
    heal_orphans: bool = True
    orphan_text: str = ORPHAN
    keep_denials: int = 1


class PruningSessionStore(TrimmingSessionStore):
    """The runtime's store: what a resume gets back is expired, trimmed, pruned, and healed.

    The fourth argument is `prune`, where the class above has `ephemeral`: pass both by keyword.

    Raises:
        ValueError: the trim policy's folder leads out of the workspace.
        SessionFileError: the file cannot be used.
    """

    def __init__(
        self,
        path: str | Path,
        workspace: str | Path,
        policy: TrimPolicy | None = None,
        prune: PrunePolicy | None = None,
        ephemeral: EphemeralPolicy | None = None,
    ) -> None:
        self.prune_policy = PrunePolicy() if prune is None else prune
        self.pruned = 0
        """Entries that the newest pruning removed."""
        self.denials_dropped = 0
        """Denied calls that it took out, whether or not something else was left of their entries."""
        self.carried: dict[str, float] = {}
        """US dollars from which the program goes on counting, for each session that was loaded."""
        super().__init__(path, workspace, policy=policy, ephemeral=ephemeral)

    def _load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        self.pruned = self.denials_dropped = 0
        entries = super()._load(key)
        if entries is None:
            return None
        if not key.get("subpath"):
            self.carried[key["session_id"]] = _carried(entries)
        return self.prune(entries)

    def prune(self, entries: Sequence[SessionStoreEntry]) -> list[SessionStoreEntry]:
        """A copy that can be resumed; linear in its length."""
        policy, spoken = self.prune_policy, texts.current().stores
        denied = _old_denials(entries, policy.keep_denials)
        errors = _errors(entries) if policy.drop_api_errors else frozenset()
        # Made-up entries with calls were never seen; their results would be refused without them.
        gone = denied | {call for number in errors for call in _calls(entries[number])}
        if policy.heal_orphans:
            gone |= _unasked(entries)
        instead = None
        if policy.neutralize_interrupts:
            instead = spoken.interrupted if policy.interrupt_text == INTERRUPTED else policy.interrupt_text
        cleaned = [_cleaned(entry, gone, instead) for entry in entries]
        dropped = {number for number, entry in enumerate(cleaned) if entry is None} | errors
        kept = _relinked([new or old for new, old in zip(cleaned, entries, strict=True)], dropped)
        self.pruned, self.denials_dropped = len(dropped), len(denied)
        if not policy.heal_orphans:
            return kept
        return heal_orphans(kept, spoken.orphan if policy.orphan_text == ORPHAN else policy.orphan_text)


def relink(entries: Sequence[SessionStoreEntry], drop: set[str]) -> list[SessionStoreEntry]:
    """Leave out the entries named in `drop` and attach what hung on them to the nearest surviving ancestor.

    Needs the complete list, those to drop included, or the ancestors could not be found. In what comes back every
    `parentUuid` names an entry of it or is None. An entry whose ancestors are in no entry, because a part of the
    transcript could not be written, hangs on the one before it: else a resume would lose all that was said before.
    """
    return _relinked(entries, {number for number, entry in enumerate(entries) if named(entry, "uuid") in drop})


def _relinked(entries: Sequence[SessionStoreEntry], dropped: Collection[int]) -> list[SessionStoreEntry]:
    above = _Above(entries, dropped)
    return [above.attached(number, entry) for number, entry in enumerate(entries) if number not in dropped]


class _Above:
    """Who stands nearest above an entry, among those that stay. Every step up is taken once, without recursion."""

    def __init__(self, entries: Sequence[SessionStoreEntry], dropped: Collection[int]) -> None:
        self._staying: set[str] = set()
        self._up: dict[str, str | None] = {}
        self._found: dict[str, str | None] = {}
        parents = _parents(entries, dropped)
        self._parents = parents
        for number, entry in enumerate(entries):
            name = named(entry, "uuid")
            if name is not None and number not in dropped:
                self._staying.add(name)
            elif name is not None:
                self._up.setdefault(name, parents[number])

    def attached(self, number: int, entry: SessionStoreEntry) -> SessionStoreEntry:
        given = field(entry, "parentUuid")
        parent = self._ancestor(self._parents[number])
        links: dict[str, Any] = {}
        if given is not None and (parent != given or parent == entry.get("uuid")):
            links["parentUuid"] = None if parent == entry.get("uuid") else parent
        # A compaction's boundary and the note of the last prompt name an entry too. They are only led past what was
        # dropped: an empty leaf would mean a conversation that was cleared.
        for link in ("logicalParentUuid", "leafUuid"):
            name = named(entry, link)
            if name in self._up and name not in self._staying and (ancestor := self._ancestor(name)):
                links[link] = ancestor
        return changed(entry, **links) if links else entry

    def _ancestor(self, name: str | None) -> str | None:
        passed: list[str] = []
        while name is not None and name not in self._staying:
            if name in self._found:
                name = self._found[name]
                break
            self._found[name] = None  # coming here again means a circle
            passed.append(name)
            name = self._up.get(name)
        for each in passed:
            self._found[each] = name
        return name


def _parents(entries: Sequence[SessionStoreEntry], dropped: Collection[int]) -> list[str | None]:
    """What each entry hangs on; where that is lost, the one before it that stays."""
    known = {name for entry in entries if (name := named(entry, "uuid")) is not None}
    bridged = _in_order(entries, known)  # else an entry might come to hang on one that hangs on it
    found: list[str | None] = []
    last: str | None = None
    for number, entry in enumerate(entries):
        parent = named(entry, "parentUuid")
        found.append(last if bridged and parent is not None and parent not in known else parent)
        if number not in dropped and (name := named(entry, "uuid")) is not None:
            last = name
    return found


def _in_order(entries: Sequence[SessionStoreEntry], known: Collection[str]) -> bool:
    """Whether each entry stands behind the one that it hangs on, as the program writes them, and no name twice."""
    seen: set[str] = set()
    for entry in entries:
        name, parent = named(entry, "uuid"), named(entry, "parentUuid")
        if (parent in known and parent not in seen) or name in seen:
            return False
        if name is not None:
            seen.add(name)
    return True


# -- what goes --------------------------------------------------------------------------------------------------------


def _old_denials(entries: Sequence[SessionStoreEntry], keep: int) -> frozenset[str]:
    """Denied calls but the newest; none that an untouchable entry has a part in."""
    touchable = [entry for entry in entries if not untouchable(entry)]
    denied = dict.fromkeys(call for entry in touchable if (call := is_denial(entry)))
    if not denied:
        return frozenset()
    bound = _bound(entries)
    old = [call for call in denied if call not in bound]
    return frozenset(old[: max(0, len(old) - max(0, keep))])


def _errors(entries: Sequence[SessionStoreEntry]) -> frozenset[int]:
    errors = {number for number, entry in enumerate(entries) if is_api_error(entry) and not untouchable(entry)}
    if not any(_calls(entries[number]) for number in errors):
        return frozenset(errors)
    bound = _bound(entries)
    return frozenset(number for number in errors if bound.isdisjoint(_calls(entries[number])))


def _bound(entries: Sequence[SessionStoreEntry]) -> set[str]:
    """Calls that cannot go, because an untouchable entry makes or answers them."""
    found: set[str] = set()
    for entry in entries:
        if untouchable(entry):
            found.update(_calls(entry))
            found.update(call for _, block in blocks(entry, "tool_result") if (call := call_of(block)))
    return found


def _unasked(entries: Sequence[SessionStoreEntry]) -> frozenset[str]:
    """Results of calls that stand in no entry: the API refuses them, and their call was lost with a part of the
    transcript."""
    asked = {call for entry in entries for call in _calls(entry)}
    return frozenset(
        call
        for entry in entries
        if not untouchable(entry)
        for _, block in blocks(entry, "tool_result")
        if (call := call_of(block)) and call not in asked
    )


def _calls(entry: SessionStoreEntry) -> list[str]:
    return [call for _, block in blocks(entry, "tool_use") if (call := call_of(block))]


def _cleaned(entry: SessionStoreEntry, gone: Collection[str], instead: str | None) -> SessionStoreEntry | None:
    """The entry without these calls and without the residue of cuts; None if nothing is left of it."""
    if untouchable(entry):
        return entry
    kind = "tool_use" if entry.get("type") == "assistant" else "tool_result"
    leaving = {place for place, block in blocks(entry, kind) if call_of(block) in gone}
    if leaving:
        content = [block for place, block in enumerate(content_of(entry)) if place not in leaving]
        if not content:
            return None
        # The copy of the refusal goes with it, and the mark, which would point at what is left.
        entry = with_content(entry, content, "toolUseResult", "toolDenialKind")
    residue = set(_residue(entry)) if instead is not None else set()
    if not residue:
        return entry
    content = [_neutral(block, instead) if place in residue else block for place, block in enumerate(content_of(entry))]
    return with_content(entry, content)


def _residue(entry: SessionStoreEntry) -> Iterator[int]:
    for place, block in blocks(entry, "tool_result"):
        if block.get("is_error") and _RESIDUE in (text_of(block.get("content")) or ""):
            yield place


def _neutral(block: Block, text: str | None) -> Block:
    return {**block, "content": text, "is_error": False}


def _carried(entries: Sequence[SessionStoreEntry]) -> float:
    """What the transcript's newest `cost-state` says; the program counts on from there (decision 0009)."""
    states = [entry for entry in entries if entry.get("type") == "cost-state"]
    total = field(states[-1], "totalCostUSD") if states else 0.0
    return float(total) if isinstance(total, int | float) else 0.0
