"""The commands: put a run together, drive it at the terminal, and say how it ended (API 16.3 to 16.11)."""

from __future__ import annotations

import argparse
import asyncio
import re
import shlex
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from flower import texts
from flower.cli.aside import asides
from flower.cli.farewell import bequeath
from flower.cli.interrupts import Interrupts
from flower.cli.loading import TargetError, load_workflow
from flower.cli.occupied import Occupied
from flower.cli.places import STORE, look_into, look_over, shown, usable
from flower.cli.render import Render
from flower.cli.screen import Screen, standard
from flower.cli.setup import ensure_credentials, run_setup
from flower.cli.signals import handled
from flower.cli.stdin import Reader, reading
from flower.cli.terminal import ask_line, is_terminal
from flower.core import update
from flower.core.agent import AgentSpec, HandoffPolicy
from flower.core.env import describe
from flower.core.events import Event
from flower.core.goal import Goal
from flower.core.human import HumanChannel
from flower.core.lineage import Lineage
from flower.core.plugins import beside
from flower.core.runtime import Runtime, StepResult
from flower.stores.sqlite import SqliteSessionStore
from flower.workflow.aside import Recent
from flower.workflow.base import Ctx, Workflow
from flower.workflow.clarify import MISSING_KEY
from flower.workflow.request import recall_request, remember_request
from flower.workflow.starter import starter_flow, wake_state

AD_HOC = "ad-hoc"
NEW = "/new"
_LONGEST = 1000
"""Characters of a reason that are shown: a gateway may have answered with a whole page."""

_REFUSED = re.compile(
    r"\b401\b|invalid api key|authentication|unauthorized|无效.{0,20}?(?:key|token|密钥)", re.IGNORECASE
)

_T = TypeVar("_T")
After = Callable[[Ctx], Awaitable[None]]


def go(args: argparse.Namespace) -> int:
    """The whole flow. Blocks until it is over; returns 0.

    Raises:
        SystemExit: it did not succeed; its text is for stderr.
        KeyboardInterrupt: the second Ctrl-C.
    """
    _begin(args)
    with Occupied(args.run_dir) as place:
        with usable(workspace=args.workspace, run_dir=args.run_dir):
            flow, runtime, request = _starter(args, place)
        after = None if args.clarify_only else lambda _ctx: bequeath(runtime, request)
        work = _driven(flow, runtime, verbose=args.verbose, after=after)
        return _finished(runtime, work, verbose=args.verbose, again=_command(args))


def run(args: argparse.Namespace) -> int:
    """A workflow of one's own. As `go`."""
    _begin(args)
    try:
        flow, source = load_workflow(args.target)
    except TargetError as err:
        raise SystemExit(str(err)) from None
    with Occupied(args.run_dir) as place:
        with usable(workspace=args.workspace, run_dir=args.run_dir):
            place.claim()
            _look_at_store(args.run_dir)
            _afresh_or_on(args)
            runtime = _runtime(args, workbench=flow.workbench or args.workbench)
        try:
            runtime.plugin_dirs = beside(source)  # rulings R25
        except ValueError as err:
            runtime.close()
            raise SystemExit(str(err)) from None
        work = _driven(flow, runtime, verbose=args.verbose)
        return _finished(runtime, work, verbose=args.verbose, again=_command(args, "run", args.target))


def once(args: argparse.Namespace) -> int:
    """A single agent, once: nobody is asked, nothing is read. As `go`."""
    _begin(args)
    spec = AgentSpec(
        name=AD_HOC,
        instructions=args.instructions,
        allowed_tools=[name for each in args.tools.split(",") if (name := each.strip())],
        permission_mode=args.permission_mode,
        max_budget_usd=args.budget,
    )
    with Occupied(args.run_dir) as place:
        with usable(workspace=args.workspace, run_dir=args.run_dir):
            place.claim()
            runtime = _runtime(args, workbench=args.workbench)
        return _asked_once(args, spec, runtime)


def _asked_once(args: argparse.Namespace, spec: AgentSpec, runtime: Runtime) -> int:
    said = texts.current().commands
    try:
        if args.resume and not runtime.has_session(args.resume):
            raise SystemExit(said.no_session.format(session=args.resume, place=runtime.workspace))
        work = runtime.run(
            spec,
            readable(args.prompt),
            step_name=AD_HOC,
            resume=args.resume,
            fork=args.fork,
            on_event=Render(args.verbose),
        )
        result = _carried_out(work, verbose=args.verbose)
    finally:
        runtime.close()
    if not result.ok:
        raise SystemExit(f"{_reason(result)}\n{said.stopped_at.format(step=AD_HOC)}".strip())
    return 0


def setup() -> int:
    """Ask for credentials and keep them.

    Raises:
        SystemExit: nothing was kept.
    """
    said = texts.current().commands
    if not is_terminal():
        raise SystemExit(said.setup_needs_terminal)
    try:
        return 0 if run_setup() else 1
    except KeyboardInterrupt:
        raise SystemExit(said.cancelled) from None


def ask_for_prompt(*, waking: bool = False) -> str:
    """Read the request from standard input, as it stands there. Blocks for a person.

    Args:
        waking: there is something to go on with.

    Raises:
        SystemExit: Ctrl-C or Ctrl-D.
    """
    said, at_terminal = texts.current().commands, is_terminal()
    if at_terminal:
        standard().say(said.what_next if waking else said.what_new)
    try:
        line = ask_line("> " if at_terminal else "")
    except KeyboardInterrupt:
        line = None
    if line is None and at_terminal:
        standard().write("")
        raise SystemExit(said.cancelled)
    return readable(line or "")


def policies(args: argparse.Namespace) -> dict[str, Any]:
    """The runtime's policies that switches stand for."""
    if args.command != "go":
        return {"trim": args.trim}
    handoff: Any = not args.no_handoff
    if args.window and handoff:
        handoff = HandoffPolicy(window=args.window)
    return {"trim": not args.no_trim, "handoff": handoff}


def readable(text: str) -> str:
    """What a person wrote, as text that can be stored: bytes that were no text are marked."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace").replace("\0", "").strip()


def credentials_refused(said: Iterable[str]) -> bool:
    """Whether errors look as if the credential was not accepted."""
    return any(_REFUSED.search(text) for text in said)


# -- a beginning ------------------------------------------------------------------------------------------------------


def _begin(args: argparse.Namespace) -> None:
    try:
        ensure_credentials()
    except KeyboardInterrupt:
        raise SystemExit(texts.current().commands.cancelled) from None
    # After the files are read: one of them may forbid it.
    update.maybe_update(standard().say)
    for note in look_over(args.run_dir):
        standard().say(note)
    if args.verbose:
        standard().write(texts.current().commands.configuration)
        for key, value in describe().items():
            standard().write(f"  {key} = {value}")


def _command(args: argparse.Namespace, *words: str) -> str:
    """The command that goes on with this run in this directory."""
    places = (
        (flag, given)
        for flag, given, usual in (("-w", args.workspace, "."), ("-r", args.run_dir, "runs"))
        if given != usual
    )
    return shlex.join(["flower", *words, *(word for place in places for word in place)])


def _look_at_store(run_dir: str | Path) -> None:
    """Find out whether sessions can be read before anything is asked, or put away.

    Raises:
        SessionFileError: they cannot.
    """
    path = Path(run_dir) / STORE
    if path.exists():
        SqliteSessionStore(path).close()


def _afresh_or_on(args: argparse.Namespace) -> None:
    """Put the old sessions of `run` out of the way, or say that it goes on in them."""
    said, lineage = texts.current().commands, Lineage.open(args.run_dir, args.workspace)
    if not args.new:
        if lineage.steps:
            standard().say(said.run_goes_on)
    elif lineage.path.exists():
        place = lineage.archive(lineage.path.parent / "archive")
        standard().say(said.put_away.format(path=shown(place)))


def _starter(args: argparse.Namespace, place: Occupied) -> tuple[Workflow, Runtime, str]:
    """Build the flow of `go` and its runtime; also returns the request. Claims the run folder once it is known."""
    said = texts.current().commands
    place.look()
    _look_at_store(args.run_dir)
    state = wake_state(args.workspace, run_dir=args.run_dir, isolate=args.isolate)
    waking = state["waking"] and not args.new
    for note in () if args.new else look_into(state["brief"], state["goal"]):
        standard().say(note)
    # Ended while it was clarified: no document says yet what it was about.
    begun = recall_request(args.run_dir, args.workspace) if state["steps"] and not args.new else ""
    request = readable(args.ask or "") or _asked(args, waking=waking or bool(begun))
    if args.new:
        waking, begun = False, ""
    if not waking:
        request = request or begun
    if not waking and not request:
        raise SystemExit(said.no_request)
    place.claim()
    if waking and args.clarify_only:
        standard().say(said.nothing_to_clarify)
    try:
        flow = starter_flow(
            request,
            workspace=args.workspace,
            run_dir=args.run_dir,
            new=args.new,
            isolate=args.isolate,
            clarify_only=args.clarify_only,
            goal=not args.no_goal,
            rounds=args.rounds,
            judge_can_run=args.judge_can_run,
            max_asks=None if args.asks < 0 else args.asks,
            timeout_s=max(0.0, args.timeout),
        )
    except ValueError as err:
        raise SystemExit(str(err)) from None
    runtime = _runtime(args, workbench=flow.workbench or False)
    if waking or begun:
        standard().say(_wake_line(state, runtime, settled=waking))
    else:
        remember_request(args.run_dir, args.workspace, request)
    return flow, runtime, request


def _asked(args: argparse.Namespace, *, waking: bool) -> str:
    request = ask_for_prompt(waking=waking)
    if request == NEW:
        args.new = True
        request = ask_for_prompt()
    return request


def _runtime(args: argparse.Namespace, **more: Any) -> Runtime:
    try:
        return Runtime(workspace=args.workspace, run_dir=args.run_dir, **policies(args), **more)
    except (ValueError, RuntimeError) as err:
        raise SystemExit(str(err)) from None


def _wake_line(state: dict[str, Any], runtime: Runtime, *, settled: bool) -> str:
    words = texts.current()
    said = words.commands
    parts = [said.wake_brief if settled else said.wake_clarifying]
    if state["checks"]:
        parts.append(said.wake_checks.format(count=state["checks"]))
    session = state["steps"].get(words.workflow.work)
    if session and (context := runtime.context_of(session)):
        parts.append(said.wake_context.format(size=_size(context)))
    parts.append(said.wake_count.format(count=state["woke"] + 1))
    return said.wake.format(place=shown(runtime.workspace), parts=" · ".join(parts))


def _size(tokens: int) -> str:
    return f"{tokens / 1000:.1f}K" if tokens >= 1000 else str(tokens)


# -- a run at the terminal --------------------------------------------------------------------------------------------


async def _driven(flow: Workflow, runtime: Runtime, *, verbose: bool, after: After | None = None) -> Ctx:
    """Run the workflow with everything that a person can do meanwhile."""
    show, recent, requested = Render(verbose), Recent(), threading.Event()
    interrupts = Interrupts(runtime.interrupt)

    def sink(event: Event) -> None:
        recent.add(event)
        interrupts.see(event)
        show(event)

    _warn_if_nobody(flow.channel)
    async with asides(runtime, recent, verbose=verbose) as questions:
        reader = Reader(
            flow.channel,
            on_aside=questions.ask,
            on_interrupt=interrupts,
            requested=requested,
            on_end=lambda: _leave_alone(flow.channel),
            screen=show.screen,
            # What goes into a file or a pipe shows nobody what is typed.
            line=show.screen if sys.stdout.isatty() else Screen(sys.stderr),
        )
        with reading(reader), handled(reader, rescue=runtime.rescue, requested=requested):
            ctx = await flow.run(runtime, on_event=sink)
            if after is not None and ctx.get("_failed_at") is None:
                await after(ctx)
    return ctx


def _warn_if_nobody(channel: HumanChannel | None) -> None:
    if channel is None or is_terminal():
        return
    if channel.timeout_s is None or channel.timeout_s > 0:
        standard().say(texts.current().commands.not_a_terminal)


def _leave_alone(channel: HumanChannel | None) -> None:
    """Have nobody asked any more: the input is closed, and each question would wait its whole time for nobody."""
    if channel is None or (channel.timeout_s is not None and channel.timeout_s <= 0):
        return
    channel.timeout_s = 0.0
    standard().say(texts.current().commands.nobody_left)


def _finished(runtime: Runtime, work: Coroutine[Any, Any, Ctx], *, verbose: bool, again: str) -> int:
    """Carry the run out, close its books, and say how it ended.

    Args:
        again: the command that goes on with this run.
    """
    said, screen, quits = texts.current().commands, standard(), False
    try:
        ctx = _carried_out(work, verbose=verbose)
    except KeyboardInterrupt:
        quits = True
        raise
    finally:
        runtime.close()
        if quits and Lineage.open(runtime.run_dir, runtime.workspace).steps:
            screen.say(said.goes_on.format(command=again))
        screen.say(said.total.format(cost=runtime.total_cost(), path=runtime.manifest_path))
    step = ctx.get("_failed_at")
    if step is None:
        return 0
    result = ctx.get("_results", {}).get(step)
    reason = str(ctx.get("_aborted") or _reason(result) or _lacking(ctx, step))
    if reason:
        screen.say(said.why.format(reason=reason))
    if credentials_refused([reason, *_errors(result)]) and is_terminal() and _set_up_again():
        screen.say(said.again)
    raise SystemExit(said.stopped_at.format(step=step))


def _set_up_again() -> bool:
    try:
        return run_setup()  # asks nobody where there is no terminal
    except KeyboardInterrupt:
        return False


def _carried_out(work: Coroutine[Any, Any, _T], *, verbose: bool) -> _T:
    """Run it in a loop of its own. What it raises is a text for a person, and with `verbose` a traceback."""
    try:
        return asyncio.run(work)
    except Exception as err:
        if verbose:
            raise
        raise SystemExit(texts.current().commands.failed.format(kind=type(err).__name__, error=err)) from None


def _reason(result: StepResult | None) -> str:
    if result is None:
        return ""
    return " ".join((result.error or " ".join(_errors(result)[-1:]))[:_LONGEST].split())


def _lacking(ctx: Ctx, step: str) -> str:
    """Why a step failed whose result was to be a document."""
    words = texts.current()
    result = ctx.get("_results", {}).get(step)
    missing = ctx.get(MISSING_KEY, [])
    if step == words.workflow.set_goal and result is not None:
        missing = Goal.parse(result.text).missing()
    return words.commands.lacking.format(missing=", ".join(missing)) if missing else ""


def _errors(result: StepResult | None) -> Sequence[str]:
    return [] if result is None else result.errors
