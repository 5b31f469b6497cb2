"""`make demo`: a run from slash command to its end, in a Slack-like page; `--headless` plays and checks it."""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import signal
import sys
import time
from pathlib import Path

from demo.emulator import EmulatorError
from demo.faults import FAULTS, Fault, fault_for
from demo.play import CHANNEL, CHECKS, REQUEST, CheckFailedError, Play
from demo.stage import STORY, Stage, StageError, stage

HOME = Path("var")
PATIENCE_SECONDS = 30.0

WELCOME = """
flower demo: a Slack-like page with the real bot, the real agent program, and a scripted model
(no account, no key, no cost; whatever you ask, the model plays one story)

  Open       {url}
  Go to      the channel #{channel}, and type
             /flower {request}
  Then       open the thread of the new message, answer with a tap, reply, and try
             ?Where do things stand?     ask the oracle, beside the run
             !stop No comments, please.  cut in; the same session goes on with your words
             !stop                       pause; Continue is a button on the card
             !help                       what else there is
  Logs       {home}
  End it     with Ctrl-C (ends the runs of the demo too)
"""


def main(argv: list[str] | None = None) -> int:
    """Run the demo; the exit code.

    0 ended in good order or every check held, 1 it could not start or a check failed, 128 and the number of the
    signal that ended the headless one before every check was made.
    """
    args = _parser().parse_args(argv)
    # A home for each demo that may run at the same time: nobody sweeps another's.
    home = (args.home or HOME / (f"demo-headless-{os.getpid()}" if args.headless else f"demo-{args.port}")).absolute()
    try:
        return asyncio.run(_headless(home, args) if args.headless else _watched(home, args))
    except (StageError, EmulatorError) as err:
        print(f"demo: {err}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0


async def _watched(home: Path, args: argparse.Namespace) -> int:
    until = asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(name, until.set)
    async with stage(home, port=args.port, speed="watch") as here:
        print(WELCOME.format(url=here.slack.url, channel=CHANNEL, request=REQUEST, home=home), flush=True)
        await _until_one_ends(here, until)
        print("ending: bot, runs, model, Redis and the page …", flush=True)
    return 0


async def _until_one_ends(here: Stage, until: asyncio.Event) -> None:
    """Wait for Ctrl-C, or for the bot to end by itself."""
    assert here.bot is not None  # noqa: S101 - the stage was started with one
    waits = [asyncio.create_task(until.wait()), asyncio.create_task(here.bot.process.wait())]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()
    if not until.is_set():
        raise StageError(f"the bot ended by itself; see {here.bot.log}")


async def _headless(home: Path, args: argparse.Namespace) -> int:
    """Play the story; a signal ends the parts of the demo too, which live in process groups of their own."""
    playing = asyncio.create_task(_played(home, args))
    came: list[signal.Signals] = []

    def end(name: signal.Signals) -> None:
        # Once: `timeout` and `make` both hand a signal on, and a second cancellation would leave the rest running.
        if not came:
            came.append(name)
            playing.cancel()

    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(name, end, name)
    try:
        return await playing
    except asyncio.CancelledError:
        if not came:
            raise
        say(f"ended by {came[0].name} before every check was made; logs: {home}")
        return 128 + came[0]


async def _played(home: Path, args: argparse.Namespace) -> int:
    fault = fault_for(args.fault, STORY) if args.fault else Fault("")
    story = STORY
    if fault.story is not None:
        home.parent.mkdir(parents=True, exist_ok=True)
        story = home.parent / f"{home.name}-story.yaml"
        story.write_text(fault.story, encoding="utf-8")
    began = time.monotonic()
    async with stage(home, speed="fast", story=story, lossy=fault.lost, env=fault.env) as here:
        print(f"playing the story (started in {time.monotonic() - began:.1f} s)", flush=True)
        play = Play(here, say, patience=args.patience, before=fault.before, clicker=fault.clicker)
        try:
            async with asyncio.timeout(args.limit):
                await play.run()
        except CheckFailedError as err:
            print(f"FAILED  {err}\n        logs: {home}", flush=True)
            return 1
        except TimeoutError:
            print(f"FAILED  the story took longer than {args.limit:.0f} s", flush=True)
            return 1
    if args.home is None:
        shutil.rmtree(home, ignore_errors=True)  # it is of interest only when something failed
    print(f"all {len(CHECKS)} checks held; the story took {time.monotonic() - began:.1f} s", flush=True)
    return 0


def say(text: str) -> None:
    """Print a line at once."""
    print(text, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m demo", description=__doc__)
    parser.add_argument("--port", type=int, default=3000, help="of the page (with a person watching)")
    parser.add_argument("--headless", action="store_true", help="play the story by itself and check it")
    parser.add_argument("--home", type=Path, help=f"where everything is written (default: below {HOME}; emptied first)")
    parser.add_argument("--patience", type=float, default=PATIENCE_SECONDS, help="seconds until a thing must be seen")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds that the whole story may take")
    parser.add_argument("--fault", choices=sorted(FAULTS), help="plant a fault: this check must turn red")
    return parser


if __name__ == "__main__":
    sys.exit(main())
