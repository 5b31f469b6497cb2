"""The command line: what can be written, what is put in when no subcommand is, and the door to it all (API 16.1).

Imports nothing of the SDK, so that help and wrong arguments are answered at once.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import io
import math
import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from flower import __version__, texts
from flower.cli.text import clean, plain

PROG = "flower"
DEFAULT = "go"
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130

Command = Callable[[argparse.Namespace], int]


def main() -> int:
    """Run the program with the process's arguments, and return its exit status. As `program`."""
    return program(sys.argv[1:])


def program(argv: Sequence[str]) -> int:
    """Run the program and return its exit status: 0, or 130 after Ctrl-C. Blocks until it is over.

    Args:
        argv: the arguments without the program's name.

    Raises:
        SystemExit: help and version (0), wrong arguments (2); with a text that says what went wrong (1).
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Whatever a model or a file says: writing it must not fail.
            stream.reconfigure(errors="backslashreplace")
    try:
        parser = build_parser()
    except ValueError as err:  # FLOWER_LANG
        raise SystemExit(f"{PROG}: {err}") from None
    try:
        args = _parsed(parser, argv)
        from flower.cli.noise import told

        with told(logs=args.verbose):
            status: int = args.fn(args)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except SystemExit as end:
        if isinstance(end.code, str):  # may hold what a model, a gateway or a flow file said
            raise SystemExit(plain(clean(end.code))) from None
        raise
    return status


class _Parser(argparse.ArgumentParser):
    """Speaks the language that is spoken; its own words are English where argparse leaves no room for others."""

    def __init__(self, **given: Any) -> None:
        said = texts.current().commands
        super().__init__(allow_abbrev=False, formatter_class=_Help, **given)
        # The two groups that every parser has; argparse offers no other way to name them.
        self._positionals.title, self._optionals.title = said.head_arguments, said.head_switches
        if self.add_help:
            self._option_string_actions["-h"].help = said.help_help

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(EXIT_USAGE, f"{self.prog}: {texts.current().commands.head_error}{message}\n")


class _Help(argparse.RawDescriptionHelpFormatter):
    def add_usage(self, usage: Any, actions: Any, groups: Any, prefix: str | None = None) -> None:
        super().add_usage(usage, actions, groups, texts.current().commands.head_usage if prefix is None else prefix)


def _parsed(parser: argparse.ArgumentParser, argv: Sequence[str]) -> argparse.Namespace:
    """Parse, and say what was probably meant by arguments that make no sense."""
    said = texts.current().commands
    args, rest = parser.parse_known_args(with_default(argv, parser))
    if rest:
        hints = [*_switches_meant(parser, args.command, rest), *_quotes_meant(args, rest)]
        parser.error("\n".join([said.unrecognized.format(arguments=" ".join(map(shlex.quote, rest))), *hints]))
    if args.command == DEFAULT and _is_target(args.ask or ""):
        parser.error(said.run_meant.format(target=args.ask))
    return args


def _switches_meant(parser: argparse.ArgumentParser, command: str, rest: Sequence[str]) -> Iterable[str]:
    said = texts.current().commands
    known = {name: list(each._option_string_actions) for name, each in _commands(parser).items()}  # noqa: SLF001 - as below
    for word in rest:
        name = word.partition("=")[0]
        if not name.startswith("--"):
            continue
        if owners := [owner for owner, switches in known.items() if name in switches]:
            yield said.switch_of.format(switch=name, commands=", ".join(f"{PROG} {owner}" for owner in owners))
        elif near := difflib.get_close_matches(name, known[command], n=1):
            yield said.switch_meant.format(switch=near[0])


def _quotes_meant(args: argparse.Namespace, rest: Sequence[str]) -> Iterable[str]:
    first = getattr(args, "ask", None) or getattr(args, "prompt", None)
    if first and not any(word.startswith("-") for word in rest):  # or a word may be the value of such a switch
        command = PROG if args.command == DEFAULT else f"{PROG} {args.command}"
        yield texts.current().commands.quotes_meant.format(line=f'{command} "{" ".join([first, *rest])}"')


def _is_target(request: str) -> bool:
    """Whether a request is the target of `run` in truth: one word that names a Python file."""
    if request.endswith(".py"):
        return len(request.split()) == 1
    place, _, attribute = request.rpartition(":")
    if len(request.split()) != 1 or not place or not all(map(str.isidentifier, attribute.split("."))):
        return False
    with contextlib.suppress(OSError, ValueError):
        return any(Path(each).is_file() for each in (place, f"{place.replace('.', '/')}.py"))
    return False


def _commands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    action = next(each for each in parser._actions if isinstance(each, argparse._SubParsersAction))  # noqa: SLF001 - argparse has no other way to ask
    commands: dict[str, argparse.ArgumentParser] = action.choices
    return commands


def build_parser() -> argparse.ArgumentParser:
    """Build the parser; each subcommand sets `fn`, which takes the parsed arguments and returns the exit status."""
    said = texts.current().commands
    parser = _Parser(prog=PROG, description=said.about, epilog=said.more)
    parser.add_argument("--version", action="version", version=f"{PROG} {__version__}", help=said.help_version)
    _switches(parser, kept=False)
    # With a default of their own the subcommands would undo what stood before them.
    shared = _Parser(add_help=False)
    _switches(shared, kept=True)
    commands = parser.add_subparsers(dest="command", required=True, metavar="{go,run,once,setup}")

    def command(name: str, about: str, fn: Command) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=about, description=about, parents=[shared])
        made.set_defaults(fn=fn)
        return made

    _go_arguments(command("go", said.help_go, _go))
    own = command("run", said.help_run, _run)
    own.add_argument("target", help=said.help_target)
    own.add_argument("--new", action="store_true", help=said.help_run_new)
    _once_arguments(command("once", said.help_once, _once))
    command("setup", said.help_setup, _setup)
    return parser


def with_default(argv: Sequence[str], parser: argparse.ArgumentParser) -> list[str]:
    """Put `go` in where no subcommand is written. The parser says which switches may stand before it."""
    takes = {name: action.nargs != 0 for action in parser._actions for name in action.option_strings}  # noqa: SLF001 - argparse has no other way to ask
    names = _commands(parser)
    place = 0
    while place < len(argv):
        token = argv[place]
        if token in takes:
            place += 2 if takes[token] else 1
        elif _carries_value(token, takes):
            place += 1
        else:
            break
    else:
        left_alone = place > len(argv) or {"-h", "--help", "--version"} & {*argv}
        return [*argv] if left_alone else [*argv, DEFAULT]
    return [*argv] if argv[place] in names else [*argv[:place], DEFAULT, *argv[place:]]


def _carries_value(token: str, takes: dict[str, bool]) -> bool:
    """`--name=value`, `-wDIR`, or several short switches in one."""
    if token.startswith("--"):
        return takes.get(token.partition("=")[0], False) and "=" in token
    if len(token) < 3 or not token.startswith("-"):
        return False
    for letter in token[1:]:
        if f"-{letter}" not in takes:
            return False
        if takes[f"-{letter}"]:
            return True
    return True


def _switches(parser: argparse.ArgumentParser, *, kept: bool) -> None:
    said = texts.current().commands

    def default(value: Any) -> Any:
        return argparse.SUPPRESS if kept else value

    add = parser.add_argument
    add("-w", "--workspace", metavar="DIR", default=default("."), help=said.help_workspace)
    add("-r", "--run-dir", metavar="DIR", default=default("runs"), help=said.help_run_dir)
    add("-v", "--verbose", action="store_true", default=default(False), help=said.help_verbose)
    add("-W", "--workbench", action="store_true", default=default(False), help=said.help_workbench)
    add("-T", "--trim", action="store_true", default=default(False), help=said.help_trim)


def _go_arguments(parser: argparse.ArgumentParser) -> None:
    said, add = texts.current().commands, parser.add_argument
    add("ask", nargs="?", help=said.help_ask)
    add("--asks", metavar="N", type=_whole, default=-1, help=said.help_asks)
    add("--rounds", metavar="N", type=_count, default=3, help=said.help_rounds)
    add("--no-goal", action="store_true", help=said.help_no_goal)
    add("--judge-can-run", action="store_true", help=said.help_judge_can_run)
    add("--timeout", metavar="SECONDS", type=_seconds, default=1800.0, help=said.help_timeout)
    add("--isolate", action="store_true", help=said.help_isolate)
    add("--window", metavar="N", type=_count, default=None, help=said.help_window)
    add("--no-handoff", action="store_true", help=said.help_no_handoff)
    add("--new", action="store_true", help=said.help_new)
    add("--clarify-only", action="store_true", help=said.help_clarify_only)
    add("--no-trim", action="store_true", help=said.help_no_trim)


def _once_arguments(parser: argparse.ArgumentParser) -> None:
    said, add = texts.current().commands, parser.add_argument
    modes = ("default", "acceptEdits", "plan", "bypassPermissions")
    add("prompt", help=said.help_prompt)
    add("-i", "--instructions", metavar="TEXT", default="", help=said.help_instructions)
    add("-t", "--tools", metavar="NAMES", default="Read,Glob,Grep", help=said.help_tools)
    add("-p", "--permission-mode", choices=modes, default="default", help=said.help_permission)
    add("-b", "--budget", metavar="DOLLARS", type=_dollars, default=None, help=said.help_budget)
    add("--resume", metavar="ID", default=None, help=said.help_resume)
    add("--fork", action="store_true", help=said.help_fork)

    def checked(args: argparse.Namespace) -> int:
        if args.fork and not args.resume:
            parser.error(said.fork_alone)
        return _once(args)

    parser.set_defaults(fn=checked)


def _number(text: str, least: float, read: Callable[[str], float]) -> Any:
    with contextlib.suppress(ValueError, OverflowError):
        value = read(text)
        if value >= least and not math.isinf(value):
            return value
    said = texts.current().commands
    if least == -math.inf:
        raise argparse.ArgumentTypeError((said.not_whole if read is int else said.not_number).format(value=text))
    raise argparse.ArgumentTypeError(said.bad_number.format(value=text, least=f"{least:g}"))


def _whole(text: str) -> Any:
    return _number(text, -math.inf, int)


def _count(text: str) -> Any:
    return _number(text, 0, int)


def _seconds(text: str) -> Any:
    return _number(text, -math.inf, float)


def _dollars(text: str) -> Any:
    return _number(text, 0.01, float)


# The commands themselves are imported when they are run: they bring the SDK along.


def _go(args: argparse.Namespace) -> int:
    from flower.cli.go import go

    return go(args)


def _run(args: argparse.Namespace) -> int:
    from flower.cli.go import run
    from flower.cli.loading import TargetError, check_target

    try:
        check_target(args.target)  # before anybody is asked for credentials
    except TargetError as err:
        raise SystemExit(str(err)) from None
    return run(args)


def _once(args: argparse.Namespace) -> int:
    from flower.cli.go import once

    return once(args)


def _setup(_args: argparse.Namespace) -> int:
    from flower.cli.go import setup

    return setup()
