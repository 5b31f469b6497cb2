"""A run with nobody there: no question waits, and the exit status says what came of it.

    python examples/unattended.py "Write a program that prints the first ten primes" --workspace site --budget 5

    0   done and judged to be done       1   not done; stderr says in which step, why, and how to go on
    2   it could not begin

`timeout_s=0` settles every question at once: the agent is told to decide by itself and to write down what it assumed.
These assumptions are what to look at afterwards, so they are printed last. One of them is wrong? Say so in a sentence,
in the same directories: the sentence goes into the brief, the goal is set anew, and the work goes on where it was.

    python examples/unattended.py "Not one number per line: print them as a JSON list" --workspace site

SIGTERM and Ctrl-C end the run in order: the accounts are written, and the next start goes on.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import signal
import sys
from itertools import takewhile
from pathlib import Path
from typing import Any

from flower import BRIEF_KEY, Runtime, Step, StepResult, Workflow, starter_flow

DONE, NOT_DONE, NOT_BEGUN = 0, 1, 2


def main(argv: list[str] | None = None) -> int:
    """Run it; the exit status."""
    args = arguments(argv)
    try:
        flow = starter_flow(args.request, workspace=args.workspace, run_dir=args.run_dir, timeout_s=0, lang="en")
        runtime = Runtime(workspace=args.workspace, run_dir=args.run_dir, workbench=flow.workbench or False)
    except (ValueError, RuntimeError) as err:  # no request in a new directory, no credential
        print(err, file=sys.stderr)
        return NOT_BEGUN
    except OSError as err:
        print(f"cannot work in {err.filename}: {err.strerror}", file=sys.stderr)
        return NOT_BEGUN
    runtime.budget_usd = args.budget
    try:
        ctx = asyncio.run(run(flow, runtime))
    finally:
        runtime.close()
    return report(ctx, runtime)


def arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A run with nobody there.")
    parser.add_argument("request", nargs="?", default="", help="one sentence; may be left out to go on with a run")
    parser.add_argument("-w", "--workspace", type=Path, default=Path(), help="where the agents work (here)")
    parser.add_argument("-r", "--run-dir", type=Path, default=Path("runs"), help="sessions and accounts (runs)")
    parser.add_argument("-b", "--budget", type=dollars, default=None, help="US dollars for this start; no limit")
    return parser.parse_args(argv)


def dollars(text: str) -> float:
    """Parse an amount; argparse puts the error below its usage line."""
    try:
        amount = float(text)
    except ValueError:
        amount = math.nan
    if not (math.isfinite(amount) and amount > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is no amount; a number above 0 is expected, for instance 2.50")
    return amount


async def run(flow: Workflow, runtime: Runtime) -> dict[str, Any]:
    """Run the workflow; a signal ends it in order. No `on_event`: nobody looks."""
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, runtime.end)
    return await flow.run(runtime, on_step=account)


def account(step: Step, result: StepResult) -> None:
    """One line a step, for the log of whatever started this."""
    print(f"{step.name}: {'ok' if result.ok else 'failed'}, ${result.cost_usd:.4f}, {result.duration_s} s", flush=True)


def report(ctx: dict[str, Any], runtime: Runtime) -> int:
    """Say what came of it; the exit status."""
    # More than the lines above come to: a step's line is its last round, and each round was judged.
    print(f"${runtime.total_cost()} in all, verdicts and rejected rounds included; accounts in {runtime.manifest_path}")
    brief = ctx.get(BRIEF_KEY)
    if brief is not None:
        print(f"\nAssumed, because nobody could be asked ({brief.path}):\n{plain(assumed(brief.unknowns))}")
    failed = ctx.get("_failed_at")
    if failed is None:
        return DONE
    # A gate's own reason first: after an unreachable verdict it is the whole explanation.
    why = ctx.get("_aborted") or ctx["_results"][failed].error or "what came of it was not accepted"
    print(f"\nstopped in step {failed!r}: {plain(why)}\nThe same command goes on from there.", file=sys.stderr)
    return NOT_DONE


def assumed(unknowns: str) -> str:
    """Leave out what people have said since: it stands below, each sentence under a heading of its own."""
    return "\n".join(takewhile(lambda line: not line.startswith("## "), unknowns.splitlines())).rstrip()


def plain(text: str) -> str:
    """Take out what would steer a terminal: what a model says is not to be trusted."""
    return "".join(each if each.isprintable() or each == "\n" else "\N{REPLACEMENT CHARACTER}" for each in text)


if __name__ == "__main__":
    sys.exit(main())
