"""The process of the long story: flower with its starter flow, and a person who behaves as the story says.

Arguments: language, workspace, run folder, the file that those who wait wait for, the request.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from flower import Event, HandoffPolicy, HumanChannel, Resilience, Runtime, starter_flow
from tests.stories.long.words import OF, Words

PATIENCE = 60.0


class Person:
    """Answers, skips, lets one question time out, interrupts twice, and says one thing unasked."""

    def __init__(self, words: Words, runtime: Runtime, channel: HumanChannel, go: Path, log: Path) -> None:
        self.words, self.runtime, self.channel, self.go, self.log = words, runtime, channel, go, log
        self.calls: dict[str, str] = {}
        self.done: set[str] = set()

    def once(self, what: str) -> bool:
        new = what not in self.done
        self.done.add(what)
        return new

    def hear(self, event: Event) -> None:
        with self.log.open("a", encoding="utf-8") as file:
            shown = {name: event.payload.get(name) for name in ("state", "phase", "kind", "subagent", "round")}
            told = {name: value for name, value in shown.items() if value not in (None, False)}
            file.write(json.dumps([event.kind, event.tool, told], ensure_ascii=False) + "\n")
        match event.kind:
            case "ask" if event.payload.get("kind") != "mail":
                self.asked(event.payload["id"], event.payload["state"], event.text)
            case "tool_call":
                self.called(event)
            case "tool_result" if "[TASK-C]" in self.calls.get(event.payload["tool_use_id"], ""):
                # Between a result and the next request: the cut costs nothing.
                if self.once("second interrupt"):
                    self.runtime.interrupt("mind the tests")
            case "handoff" if event.payload["phase"] == "done" and self.once("mail"):
                self.channel.send(self.words.mail)

    def asked(self, name: str, state: str, question: str) -> None:
        if "[Q3]" in question:
            self.channel.timeout_s = 0.5 if state == "asked" else PATIENCE
        elif state == "asked" and "[Q2]" in question:
            self.channel.decline(name)
        elif state == "asked":
            self.channel.answer(name, self.words.library if "[Q1]" in question else "yes")

    def called(self, event: Event) -> None:
        self.calls[event.payload["id"]] = str(event.payload["input"])
        if str(self.go) in event.text and not event.payload.get("subagent") and self.once("first interrupt"):
            asyncio.get_running_loop().call_later(0.5, self.cut)

    def cut(self) -> None:
        self.go.touch()
        self.runtime.interrupt("look quickly", now=True)


async def main(language: str, workspace: str, run_dir: str, go: str, request: str) -> None:
    flow = starter_flow(
        request,
        workspace=workspace,
        run_dir=run_dir,
        isolate=True,
        judge_can_run=True,
        timeout_s=PATIENCE,
        lang=language,
    )
    runtime = Runtime(
        workspace=workspace,
        run_dir=run_dir,
        workbench=flow.workbench or False,
        trim=True,
        handoff=HandoffPolicy(window=200_000),
        resilience=Resilience(base_delay=0.1),
    )
    assert flow.channel is not None
    person = Person(OF[language], runtime, flow.channel, Path(go), Path(run_dir) / "events.jsonl")
    try:
        context: dict[str, Any] = await flow.run(runtime, on_event=person.hear)
    finally:
        runtime.close()
    failed = context.get("_failed_at")
    sys.exit(f"failed at {failed}: {context['_results'][failed].error}" if failed else 0)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
