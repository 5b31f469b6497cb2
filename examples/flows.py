"""A workflow of your own with everything that a step can have: release notes for the repository you stand in.

    python examples/flows.py                # in the directory to describe
    flower run examples/flows.py:main

Without an account, against a model that plays examples/stories/flows.yaml (its gate rejects once):

    python -m flower.testing --port 8123 --speed watch --script examples/stories/flows.yaml &
    ANTHROPIC_BASE_URL=http://127.0.0.1:8123 ANTHROPIC_API_KEY=none flower run examples/flows.py:main

    Survey      looks around; `reduce` lets only its list pass on to the next step
    Write       a coordinator with a `worker`; the gate looks at the file on disk, `on_reject` says what is missing and
                sends the same session back, three rounds at most
    Critique    forked from the session of Write: it knows all that was done, and what it says never gets into Write

The step names are this workflow's own. They are the keys in ctx, in manifest.json and in lineage.json: whoever renames
a step cuts its continuity. Nobody is asked anything, so there is no channel.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from flower import AgentSpec, Runtime, Step, StepAbort, StepResult, Workbench, Workflow, coordinator, worker
from flower.texts import speaking

NOTES = "RELEASE.md"
SECTIONS = ("## New", "## Changed", "## Upgrading")
_BULLETS = ("- ", "* ")

Ctx = dict[str, Any]


def main() -> Workflow:
    """Return the workflow. Nothing runs yet."""
    with speaking("en"):
        flow = Workflow([survey(), write(), critique()], name="release notes", workbench=Workbench(Path.cwd()).ensure())
        flow.language = "en"
        return flow


def survey() -> Step:
    reader = AgentSpec(
        name="Surveyor",
        instructions="You look and report. You change nothing.",
        allowed_tools=["Read", "Glob", "Grep"],
        max_turns=30,
    )
    return Step(
        "Survey",
        reader,
        "List what is new or changed in this project for its users, one bullet each. Look into the changelog first.",
        gate=lambda result, _ctx: bool(bullets(result)),
        retries=1,  # no `on_reject`: an empty list begins again in a fresh session
        reduce=lambda result, _ctx: "\n".join(bullets(result)),
    )


def write() -> Step:
    writer = worker("Writes prose for users.", "You write short, exact release notes. You invent nothing.")
    return Step(
        "Write",
        coordinator("Editor", "", {"writer": writer}),
        lambda ctx: (
            f"Have release notes written into {NOTES}, with the sections {', '.join(SECTIONS)}. "
            f"This is what changed:\n\n{ctx['Survey']}"
        ),
        resume_prompt="Carry on where you left off; the list of changes is still the one you know.",
        gate=complete,
        on_reject=lambda done, ctx: f"{NOTES} is not done: {done.error or ctx['missing']}. Have just that put right.",
        retries=2,
    )


def critique() -> Step:
    critic = AgentSpec(
        name="Critic",
        instructions="You criticise. You change nothing.",
        # A fork resumes the editor's session, so it is on offer what the editor had; this list is what passes.
        allowed_tools=["Read"],
        workbench=False,
    )
    return Step(
        "Critique",
        critic,
        f"Leave your role for a moment. As a user who reads {NOTES} for the first time: what is unclear? Three lines.",
        resume_from="Write",
        fork=True,
        on_fail="skip",  # an opinion that did not come is no reason to fail
    )


def bullets(result: StepResult) -> list[str]:
    """Keep the list of a survey and drop the talk around it."""
    return [line.strip() for line in result.text.splitlines() if line.strip().startswith(_BULLETS)]


def complete(_result: StepResult, ctx: Ctx) -> bool:
    """Accept by what lies on disk, never by what the report says.

    Raises:
        StepAbort: another round would not help.
    """
    notes = ctx["_runtime"].workspace / NOTES
    if notes.is_dir():
        raise StepAbort(f"{notes} is a directory; move it away and start again")
    try:
        text = notes.read_text(encoding="utf-8")
    except FileNotFoundError:
        missing = ["the file"]
    except (OSError, ValueError) as err:
        missing = [f"readable text ({err})"]
    else:
        missing = [section for section in SECTIONS if section not in text]
    ctx["missing"] = "missing " + ", ".join(missing)
    return not missing


def account(step: Step, result: StepResult) -> None:
    """Print what a step came to. Results come from here; prose events are chopped up by retries and handoffs."""
    print(
        f"{step.name:10} {'ok' if result.ok else 'FAILED'}  ${result.cost_usd:.4f}  {result.duration_s} s", flush=True
    )


async def run(flow: Workflow) -> int:
    """Run it here; the exit status."""
    runtime = Runtime(workspace=Path.cwd(), workbench=flow.workbench or False)
    try:
        ctx = await flow.run(runtime, on_step=account)
    finally:
        runtime.close()
    if failed := ctx.get("_failed_at"):
        why = ctx.get("_aborted") or ctx["_results"][failed].error or ctx.get("missing", "nothing came of it")
        print(f"stopped in step {failed!r}: {plain(why)}", file=sys.stderr)
        return 1
    print(f"wrote {NOTES}")
    print(plain(ctx.get("Critique", "(no critique)")))
    return 0


def plain(text: str) -> str:
    """Take out what would steer a terminal: what a model says is not to be trusted."""
    return "".join(each if each.isprintable() or each == "\n" else "\N{REPLACEMENT CHARACTER}" for each in text)


if __name__ == "__main__":
    try:
        sys.exit(asyncio.run(run(main())))
    except KeyboardInterrupt:
        sys.exit(130)
    except RuntimeError as err:
        sys.exit(str(err))
