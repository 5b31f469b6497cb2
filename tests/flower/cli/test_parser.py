"""The command line: wrong arguments first, then what is put in, and that help does not wait for the SDK."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from flower.cli.parser import build_parser, program, with_default


def refused(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    with pytest.raises(SystemExit) as ending:
        program(argv)
    assert ending.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["--nonsense"], "--nonsense"),
        (["x", "--windows", "5"], "--windows"),
        (["x", "y"], "unrecognized arguments: y"),
        (["run"], "target"),
        (["once"], "prompt"),
        (["once", "x", "-p", "yolo"], "'acceptEdits'"),
        (["x", "--rounds", "many"], "--rounds: 'many'"),
        (["x", "--rounds", "-1"], "至少是 0"),
        (["x", "--window", "-1"], "--window: '-1'"),
        (["x", "--timeout", "nan"], "--timeout: 'nan'"),
        (["x", "--timeout", "inf"], "--timeout: 'inf'"),
        (["x", "--asks", "1.5"], "--asks: '1.5'"),
        (["once", "x", "-b", "0"], "至少是 0.01"),
        (["once", "x", "--fork"], "--resume"),
        (["setup", "now"], "unrecognized arguments: now"),
        (["-w"], "expected one argument"),
        (["--work", "/tmp", "x"], "--work"),  # no abbreviations: a new switch would change what they mean
    ],
)
def test_wrong_arguments_are_told_with_status_2(argv: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert told in refused(capsys, *argv)


def test_an_unknown_flower_lang_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOWER_LANG", "fr")
    with pytest.raises(SystemExit, match=r"flower: FLOWER_LANG: no texts in 'fr'; there are zh, en"):
        program(["--version"])


@pytest.mark.parametrize(
    ("argv", "completed"),
    [
        ([], ["go"]),
        (["build me an X"], ["go", "build me an X"]),
        (["go", "x"], ["go", "x"]),
        (["run", "flows:main"], ["run", "flows:main"]),
        (["once", "x"], ["once", "x"]),
        (["setup"], ["setup"]),
        (["go", "run"], ["go", "run"]),
        (["runs"], ["go", "runs"]),
        ([""], ["go", ""]),
        (["-w", "run"], ["-w", "run", "go"]),
        (["-w", "/x", "run", "a:b"], ["-w", "/x", "run", "a:b"]),
        (["--workspace=/x", "run", "a:b"], ["--workspace=/x", "run", "a:b"]),
        (["--workspace=/x", "hello"], ["--workspace=/x", "go", "hello"]),
        (["-w/x", "once", "a"], ["-w/x", "once", "a"]),
        (["-vW", "-r", "out", "hello"], ["-vW", "-r", "out", "go", "hello"]),
        (["-vr", "out"], ["-vr", "go", "out"]),  # argparse takes "out" for -r's value only behind a blank of its own
        (["-v"], ["-v", "go"]),
        (["--new"], ["go", "--new"]),
        (["--new", "run"], ["go", "--new", "run"]),
        (["--", "run"], ["go", "--", "run"]),
        (["-h"], ["-h"]),
        (["-v", "--help"], ["-v", "--help"]),
        (["--version"], ["--version"]),
        (["x", "--help"], ["go", "x", "--help"]),
        (["run", "--help"], ["run", "--help"]),
    ],
)
def test_go_is_put_in_where_no_subcommand_is(argv: list[str], completed: list[str]) -> None:
    assert with_default(argv, build_parser()) == completed


@pytest.mark.parametrize(
    "argv", [["-w", "a", "-v", "go", "x"], ["go", "-w", "a", "x", "-v"], ["-v", "go", "x", "--workspace=a"]]
)
def test_global_switches_stand_before_and_after(argv: list[str]) -> None:
    args = build_parser().parse_args(argv)
    assert (args.workspace, args.verbose, args.run_dir, args.ask) == ("a", True, "runs", "x")


def test_what_go_does_by_default() -> None:
    args = vars(build_parser().parse_args(["go"]))
    args.pop("fn")
    assert args == {
        "command": "go",
        "ask": None,
        "workspace": ".",
        "run_dir": "runs",
        "verbose": False,
        "workbench": False,
        "trim": False,
        "asks": -1,
        "rounds": 3,
        "no_goal": False,
        "judge_can_run": False,
        "timeout": 1800.0,
        "isolate": False,
        "window": None,
        "no_handoff": False,
        "new": False,
        "clarify_only": False,
        "no_trim": False,
    }


def test_what_once_does_by_default() -> None:
    args = build_parser().parse_args(["once", "x"])
    assert (args.instructions, args.tools, args.permission_mode) == ("", "Read,Glob,Grep", "default")
    assert (args.budget, args.resume, args.fork) == (None, None, False)


def test_negative_numbers_are_values() -> None:
    args = build_parser().parse_args(["go", "--asks", "-1", "--timeout", "-5"])
    assert (args.asks, args.timeout) == (-1, -5.0)


@pytest.mark.parametrize("lang", ["zh", "en"])
@pytest.mark.parametrize("command", [[], ["go"], ["run"], ["once"], ["setup"]])
def test_every_command_explains_every_argument(
    command: list[str], lang: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLOWER_LANG", lang)
    with pytest.raises(SystemExit) as ending:
        program([*command, "--help"])
    assert ending.value.code == 0
    shown = capsys.readouterr().out
    assert "--workspace DIR" in shown
    assert ("默认" in shown) == (lang == "zh")
    # An argument without help stands alone in the list, with nothing behind or below it.
    entries = re.split(r"\n(?=  \S)", shown.split("\n\n", 1)[1])
    assert [entry for entry in entries if re.match(r"  \S", entry) and len(entry.split("  ")) < 3] == []


def test_the_version_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ending:
        program(["--version"])
    assert ending.value.code == 0
    assert capsys.readouterr().out == "flower 0.1.0\n"


@pytest.mark.parametrize("argv", [["--help"], ["go", "--help"], ["--version"], ["--nonsense"]])
def test_help_does_not_wait_for_the_sdk(argv: list[str]) -> None:
    script = (
        "import sys\nfrom flower.cli import main\n"
        f"sys.argv = ['flower', *{argv!r}]\ntry:\n    main()\nexcept SystemExit:\n    pass\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('claude_agent_sdk', 'mcp', 'asyncio')])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
