"""The pattern to copy: a workflow of your own in two steps. First ask until the request is clear, then have it done.

    flower run examples/trial.py:main       # with the terminal program
    python examples/trial.py                # without it: the loop at the end of this file is all that it needs

Without an account, against a model that plays examples/stories/trial.yaml:

    python -m flower.testing --port 8123 --speed watch --script examples/stories/trial.yaml &
    ANTHROPIC_BASE_URL=http://127.0.0.1:8123 ANTHROPIC_API_KEY=none flower run examples/trial.py:main

Both work in the current directory. `main` builds the workflow and starts nothing: whoever calls it also builds the
runtime, and gives it the workflow's own workbench. Stop it with Ctrl-C and start it again in the same directory: the
step that was cut goes on in its own session.

A line that you type answers the question that waits (an empty one skips it). Without a question it goes to the agent's
inbox.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path

from flower import Event, HumanChannel, Runtime, Step, Workbench, Workflow, clarify_step, coordinator, worker
from flower.texts import speaking

REQUEST = "Write a small program that prints the current phase of the moon."


def main() -> Workflow:
    """Return the workflow: what `flower run FILE:main` asks for."""
    with speaking("en"):
        workbench = Workbench(Path.cwd()).ensure()
        brief = workbench.notes / "需求.md"  # in the notes, so that the agents are shown it
        channel = HumanChannel(log_path=workbench.notes / "qa.md", amend_path=brief)
        programmer = worker("Writes and runs code.", "You write small programs. Run what you write before you report.")
        flow = Workflow(
            [
                clarify_step(channel, brief_path=brief, prompt=REQUEST, name="Clarify"),
                # No `resume_from`: this step reads the frozen brief and never carries the interview.
                Step(
                    "Work",
                    coordinator("Coordinator", "", {"programmer": programmer}, channel=channel),
                    lambda ctx: f"Have this carried out:\n\n{ctx['Clarify']}",
                    resume_prompt="Carry on where you left off.",
                ),
            ],
            name="trial",
            channel=channel,  # the same one, or nobody hears the questions
            workbench=workbench,
        )
        flow.language = "en"
        return flow


# -- the smallest front there is: print what comes, read what is typed ------------------------------------------------


def show(event: Event) -> None:
    """Print what the main agent says and asks. A sink: neither blocks for long nor raises."""
    if event.kind == "text" and not event.payload.get("subagent"):
        print(plain(event.text), flush=True)
    elif event.kind == "step":
        print(f"--- {plain(event.text)} ---", flush=True)
    elif event.kind == "ask" and event.payload.get("kind") == "mail":  # looked at first: mail has no options
        print(f"({event.payload['state']}: {plain(event.text)})", flush=True)
    elif event.kind == "ask" and event.payload["state"] == "asked":
        options = "".join(f"\n  {plain(option)}" for option in event.payload["options"])
        print(f"\n? {plain(event.text)}{options}\n(type the answer, or nothing to skip)", flush=True)


def plain(text: str) -> str:
    """Take out what would steer the terminal: what a model says is not to be trusted."""
    return "".join(each if each.isprintable() or each == "\n" else "\N{REPLACEMENT CHARACTER}" for each in text)


def listen(channel: HumanChannel) -> None:
    """Hand on what is typed until the input ends. Runs in a thread of its own: the channel may be called from any."""
    for line in sys.stdin:
        waiting, words = channel.pending(), line.strip()
        if waiting and words:
            channel.answer(waiting[0].id, words)
        elif waiting:
            channel.decline(waiting[0].id)
        else:
            channel.send(words)
    channel.timeout_s = 0  # nobody is there any more: what waits now, or is asked later, is for the agents to decide


async def run(flow: Workflow) -> int:
    """Run it here; the exit status."""
    runtime = Runtime(workspace=Path.cwd(), workbench=flow.workbench or False)
    if flow.channel is not None:
        # A daemon: an executor's thread would be waited for at the end, and with it one more Enter.
        threading.Thread(target=listen, args=(flow.channel,), daemon=True).start()
    try:
        ctx = await flow.run(runtime, on_event=show)
        print(f"${runtime.total_cost()}, accounts in {runtime.manifest_path}")
    finally:
        runtime.close()
    if failed := ctx.get("_failed_at"):
        why = ctx["_results"][failed].error or "what came of it was not accepted"
        print(f"stopped in step {failed!r}: {plain(why)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    try:
        sys.exit(asyncio.run(run(main())))
    except KeyboardInterrupt:
        sys.exit(130)
    except RuntimeError as err:  # no credential: one line says where it is looked for
        sys.exit(str(err))
