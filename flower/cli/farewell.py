"""The closing note of a run that succeeded: for the next agent in this directory, of whatever make (API 15.3)."""

from __future__ import annotations

from flower import texts
from flower.cli.screen import standard
from flower.core.bequest import Bequest, mechanical, write_both
from flower.core.roles import oracle
from flower.core.runtime import Runtime


async def bequeath(runtime: Runtime, request: str) -> None:
    """Have a read-only role write the note, and put it into the project's root. Never raises but a cancellation.

    Args:
        request: what the run was about, for the substitute where the role's note is incomplete.
    """
    said, screen = texts.current().commands, standard()
    screen.write(said.bequest)
    try:
        names = await _written(runtime, request)
    except Exception as err:  # noqa: BLE001 - boundary: a run that succeeded must not fail for its last words
        screen.say(said.bequest_failed.format(error=f"{type(err).__name__}: {err}"))
    else:
        screen.say(said.bequest_done.format(names=", ".join(names)))


async def _written(runtime: Runtime, request: str) -> list[str]:
    words, bench = texts.current(), runtime.workbench
    said = words.commands
    hint = "" if bench is None else said.bequest_workbench.format(path=bench.show(bench.root))
    prompt = f"{words.bequest.prompt}\n\n{hint}".strip()
    result = await runtime.run(oracle(said.bequest_role), prompt, step_name=said.bequest_role)
    note = Bequest.parse(result.text)
    if not result.ok or not note.complete():
        why = result.error or ", ".join(note.missing())
        note = mechanical(what=request, workbench_hint=hint, why=why)
    return [path.name for path in write_both(runtime.workspace, note.block_body())]
