"""`python -m flower.testing`: the scripted model alone. No account, no key, no cost."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from flower.testing.server import PortTakenError, ScriptedModel
from flower.testing.story import StoryError
from flower.testing.story_file import load_story

STORY = Path(__file__).parent / "stories" / "first-light.yaml"
SPEEDS = {"fast": 0.0, "watch": 1.0}
EXIT_USAGE = 2


def main(argv: Sequence[str] | None = None, *, prog: str = "python -m flower.testing") -> int:
    """Serve a story until SIGINT or SIGTERM. Returns the exit code: 2 when it cannot be served."""
    args = _parser(prog).parse_args(argv)
    try:
        story = load_story(args.script)
    except StoryError as err:
        return _cannot(prog, str(err))
    model = ScriptedModel(
        story, speed=args.speed, host=args.host, port=args.port, token_log=args.token_log, strict=False
    )
    plays = f"{prog}: plays “{story.title}” ({STORY}); another one: --script FILE\n" if args.script == STORY else ""
    try:
        asyncio.run(_serve(model, plays))
    except PortTakenError as err:
        return _cannot(prog, f"{err}; end the other one, or choose another with --port")
    except OSError as err:
        return _cannot(prog, f"{err.filename or args.host}: {err.strerror or err}")
    except KeyboardInterrupt:
        return 0
    return 0


async def _serve(model: ScriptedModel, plays: str) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, stop.set)
    async with model:
        sys.stderr.write(plays)  # stdout is read by whoever starts this as a program: its first line is the address
        sys.stderr.flush()
        sys.stdout.write(f"ready {model.url}\n")
        sys.stdout.flush()
        await stop.wait()


def _parser(prog: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=prog, description="Serve a scripted model: no account, no key, no cost.")
    parser.add_argument("--port", type=_port, required=True, help="port to listen on; 0 picks a free one")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on; there is no password")
    parser.add_argument("--script", type=Path, default=STORY, help=f"story file (docs/story-format.md); else {STORY}")
    parser.add_argument("--token-log", type=Path, help="file to which the tokens of every answer are appended")
    parser.add_argument(
        "--speed", type=_speed, default=SPEEDS["fast"], help="fast (at once), watch (as people read), or a factor"
    )
    return parser


def _port(text: str) -> int:
    if text.isdecimal() and int(text) <= 65535:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no port (0 to 65535)")


def _speed(text: str) -> float:
    if text in SPEEDS:
        return SPEEDS[text]
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no speed: fast, watch, or a factor such as 2")
    return found


def _cannot(prog: str, why: str) -> int:
    sys.stderr.write(f"{prog}: {why}\n")
    return EXIT_USAGE


if __name__ == "__main__":
    sys.exit(main())
