"""Tool calls that were cut get a result, or every later resume would be refused (behaviour 13.4, point 5)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from claude_agent_sdk import SessionStoreEntry

from flower.stores.entries import blocks, call_of, changed, field, named

_COPIED = ("sessionId", "cwd", "gitBranch", "version", "agentId", "isSidechain", "userType", "entrypoint")


def heal_orphans(entries: Sequence[SessionStoreEntry], text: str) -> list[SessionStoreEntry]:
    """Give each `tool_use` without a `tool_result` one that says `text`.

    The result stands in a new `user` entry right behind the assistant's, and what pointed to the assistant points to
    the new entry. Healing rather than deleting: the same message may hold healthy blocks. The input stays as it is;
    healing what is healed changes nothing, and the same input always gets the same new ids.
    """
    answered = {call_of(block) for entry in entries for _, block in blocks(entry, "tool_result")}
    healed: list[SessionStoreEntry] = []
    moved: dict[str, str] = {}
    for entry in entries:
        parent = moved.get(named(entry, "parentUuid") or "")
        healed.append(entry if parent is None else changed(entry, parentUuid=parent))
        calls = [call for _, block in blocks(entry, "tool_use") if (call := call_of(block))]
        orphans = [call for call in dict.fromkeys(calls) if call not in answered]
        if orphans:
            answered.update(orphans)  # a second entry with the same call is answered by the same result
            result = _result(entry, orphans, text)
            healed.append(result)
            if name := named(entry, "uuid"):
                moved[name] = result["uuid"]
    return healed


def _result(assistant: SessionStoreEntry, orphans: list[str], text: str) -> SessionStoreEntry:
    seed = "\n".join([str(assistant.get("uuid")), *orphans]).encode(errors="surrogatepass")
    content = [{"type": "tool_result", "tool_use_id": call, "content": text, "is_error": False} for call in orphans]
    copied = {name: field(assistant, name) for name in _COPIED if name in assistant}
    return changed(
        {"type": "user", "uuid": f"heal-{hashlib.sha256(seed).hexdigest()[:12]}"},
        parentUuid=assistant.get("uuid"),
        message={"role": "user", "content": content},
        **copied,
    )
