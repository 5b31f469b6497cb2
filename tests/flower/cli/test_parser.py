"""The command line: wrong arguments first, then what is put in, and that help does not wait for the SDK."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

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
        (["x", "y"], "不认识的参数:y\n"),
        (["build", "me", "a", "thing"], '\n一句话有好几个词,就加引号:flower "build me a thing"\n'),
        (["once", "say", "hi"], 'flower once "say hi"\n'),
        (["x", "--windows", "5"], "\n是不是 --window?\n"),
        (["x", "--workspaces=/tmp"], "\n是不是 --workspace?\n"),
        (["once", "x", "--rounds", "3"], "\n--rounds 是 flower go 的开关。\n"),
        (["run"], "target"),
        (["once"], "prompt"),
        (["once", "x", "-p", "yolo"], "'acceptEdits'"),
        (["x", "--rounds", "many"], "--rounds: 'many'"),
        (["x", "--rounds", "-1"], "至少是 0"),
        (["x", "--window", "-1"], "--window: '-1'"),
        (["x", "--timeout", "nan"], "--timeout: 'nan'"),
        (["x", "--timeout", "inf"], "--timeout: 'inf'"),
        (["x", "--asks", "1.5"], "--asks: '1.5' 不行:要一个整数,例如 3\n"),
        (["x", "--timeout", "abc"], "--timeout: 'abc' 不行:要一个数,例如 1800\n"),
        (["once", "x", "-b", "0"], "至少是 0.01"),
        (["once", "x", "--fork"], "--resume"),
        (["setup", "now"], "不认识的参数:now\n"),
        (["-w"], "expected one argument"),
        (["--work", "/tmp", "x"], "--work"),  # no abbreviations: a new switch would change what they mean
    ],
)
def test_wrong_arguments_are_told_with_status_2(argv: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert told in refused(capsys, *argv)


def test_a_word_behind_an_unknown_switch_is_not_taken_for_one_of_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert "引号" not in refused(capsys, "x", "--windows", "5")


@pytest.mark.parametrize(
    "request_", ["flow.py:main", "flow.py", "none.py", "sub/flow.py:make.main", "flow:main", "sub.flow:main"]
)
def test_a_request_that_is_a_target_is_not_begun(
    request_: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    for place in ("flow.py", "sub/flow.py"):
        (tmp_path / place).touch()
    for argv in ([request_], ["go", request_]):
        assert f"flower run {request_}?" in refused(capsys, *argv)


@pytest.mark.parametrize(
    "request_", ["mend flow.py", "flow.py is broken:why", "none:main", "note: x", "a:b", "x\0.:y", ":x"]
)
def test_a_request_that_is_a_sentence_or_no_file_is_one(
    request_: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flow.py").touch()
    monkeypatch.setattr("flower.cli.parser._go", lambda args: 7)
    assert program([request_]) == 7


def test_the_headings_of_the_help_are_those_of_the_language(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for lang, words in (
        ("zh", ("用法:flower", "参数:", "开关:", "显示这份说明")),
        ("en", ("usage: flower", "switches:")),
    ):
        monkeypatch.setenv("FLOWER_LANG", lang)
        for command in ([], ["go"], ["run"], ["once"]):
            with pytest.raises(SystemExit):
                program([*command, "--help"])
            shown = capsys.readouterr().out
            assert [word for word in words if word not in shown] == []
            if lang == "zh":
                assert re.findall(r"usage|options|positional|show this", shown) == []


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
