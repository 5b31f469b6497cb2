"""How a run is put together and what is said when it cannot be: bad input first. No model, no terminal."""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from flower import HandoffPolicy, HumanChannel, Workflow
from flower.cli import go
from flower.cli.go import ask_for_prompt, credentials_refused, policies, readable
from flower.cli.occupied import Occupied
from flower.cli.parser import build_parser, program
from flower.core.lineage import Lineage
from flower.workflow.request import recall_request, remember_request

BRIEF = "## 目标\n质数\n\n## 验收标准\n- 看\n\n## 边界\n无\n\n## 未知与假设\n无\n"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of one's own, a credential, no terminal, and an endpoint that nobody hears."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    for name in ("FLOWER_LANG", "FLOWER_ENV", "ANTHROPIC_AUTH_TOKEN", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "ws").mkdir()
    monkeypatch.chdir(tmp_path / "ws")
    monkeypatch.setattr("sys.stdin", io.StringIO())
    return tmp_path / "ws"


def told(*argv: str) -> str:
    """The text with which the program ends."""
    with pytest.raises(SystemExit) as ending:
        program(argv)
    assert isinstance(ending.value.code, str)
    return ending.value.code


def test_no_credential_and_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    for argv in (["x"], ["once", "x"], ["run", "a:b"]):
        assert told(*argv).startswith("缺少凭证:")


def test_a_target_that_is_not_there_is_told_before_anybody_is_asked_for_credentials(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    assert told("run", "nosuch.py:main").startswith("找不到 nosuch.py")
    assert told("run", "flows").startswith("需要 模块:属性")


def test_a_workspace_that_is_made_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for said in (True, False):
        told("-w", str(tmp_path / "new"), "once", "x", "--resume", "no-such-id")
        shown = "".join(capsys.readouterr().out.split("\n"))
        assert (f"新建了 {tmp_path / 'new'}" in shown) is said


def test_setup_without_a_terminal() -> None:
    assert told("setup").startswith("setup 要在终端里跑")


@pytest.mark.parametrize("ask", ["", "   ", "\t\n"])
def test_an_empty_request_in_a_new_directory(ask: str) -> None:
    assert told("go", ask) == '诉求是空的。直接 `flower` 然后按提示输入,或者 flower "帮我做一个 X"。'


def test_a_run_dir_that_is_a_file(place: Path) -> None:
    (place / "out").write_text("in the way", encoding="utf-8")
    assert f"{place / 'out'} 用不了:" in told("-r", "out", "--no-trim", "x")
    assert f"{place / 'out'} 用不了:" in told("-r", "out", "once", "x")


def test_a_workspace_that_cannot_be_made() -> None:
    assert "/dev/null" in told("-w", "/dev/null/ws", "--no-trim", "x")


def test_a_session_store_that_is_none(place: Path) -> None:
    (place / "runs").mkdir()
    (place / "runs" / "sessions.db").write_bytes(b"this is no database" * 1000)
    words = told("--no-trim", "x")
    assert words.count("sessions.db") == 1  # the store's own words, and none around them
    assert (place / "runs" / "sessions.db").read_bytes().startswith(b"this is no database")


def test_isolation_outside_a_repository(place: Path) -> None:
    assert told("--isolate", "--no-trim", "x").startswith(f"--isolate 要求 {place} 是 git 仓库")


def test_a_session_that_nobody_knows(place: Path) -> None:
    assert told("once", "x", "--resume", "no-such-id").startswith(f"没有会话 no-such-id(工作目录 {place})")


def test_a_target_that_is_none() -> None:
    assert told("run", "flows") == "需要 模块:属性 形式,例如 flows:main"


def test_what_a_flow_file_says_cannot_act_on_the_terminal(place: Path) -> None:
    (place / "evil.py").write_text(r"raise ValueError('\x1b[2Jred\x07 \ud800')", encoding="utf-8")
    assert told("run", "evil.py:main") == "导入 'evil' 失败:ValueError: red  (evil.py 第 1 行)"


def test_accounts_that_make_no_sense_are_kept_and_told(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "runs").mkdir()
    (place / "runs" / "manifest.json").write_text("{", encoding="utf-8")
    told("once", "x", "--resume", "no-such-id")
    assert "manifest.json 读不懂" in capsys.readouterr().out
    assert [path.read_text() for path in (place / "runs").glob("manifest.json.*.broken")] == ["{"]


def test_a_request_of_bytes_that_are_no_text() -> None:
    assert readable(os.fsdecode(b"  caf\xe9 \0x ")) == "caf� x"


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("API Error: 401 {...}", True),
        ("Invalid API key · Please run /login", True),
        ("authentication_error", True),
        ("Unauthorized", True),
        ("无效的 token", True),
        ("无效的密钥", True),
        ("无效的参数", False),
        ("port 4010 refused", False),
        ("", False),
    ],
)
def test_which_errors_look_like_a_refused_credential(text: str, refused: bool) -> None:
    assert credentials_refused(["something else", text]) is refused


def parsed(*argv: str) -> argparse.Namespace:
    return build_parser().parse_args(argv)


@pytest.mark.parametrize(
    ("argv", "wanted"),
    [
        (["go"], {"trim": True, "handoff": True}),
        (["go", "-T", "-W"], {"trim": True, "handoff": True}),
        (["go", "--no-trim", "--no-handoff"], {"trim": False, "handoff": False}),
        (["go", "--window", "0"], {"trim": True, "handoff": True}),
        (["go", "--window", "5", "--no-handoff"], {"trim": True, "handoff": False}),
        (["run", "a:b"], {"trim": False}),
        (["-T", "run", "a:b"], {"trim": True}),
        (["once", "x", "-T"], {"trim": True}),
    ],
)
def test_which_policies_switches_stand_for(argv: list[str], wanted: dict[str, Any]) -> None:
    assert policies(parsed(*argv)) == wanted


class Typed(io.StringIO):
    """A standard input that says it is a terminal; its lines come through a pipe."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self._out, into = os.pipe()
        os.write(into, data)
        os.close(into)

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._out

    def close(self) -> None:
        if not self.closed:
            os.close(self._out)
        super().close()


@pytest.mark.parametrize(
    ("waking", "head"),
    [
        (False, "要做什么? 一句话就够,回车开始(Ctrl-C 退出)\n> "),
        (True, "接着上次? 直接回车 = 接着做;也可以说点新的;/new = 重开一件事(Ctrl-C 退出)\n> "),
    ],
)
def test_the_request_is_asked_for_at_a_terminal(
    waking: bool, head: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with Typed("""它说 "it's $HOME"  \nsecond\n""".encode()) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        assert ask_for_prompt(waking=waking) == """它说 "it's $HOME\""""
        assert os.read(stdin.fileno(), 100) == b"second\n"  # stays for the thread
    assert capsys.readouterr().out == head


def test_control_d_at_the_prompt_cancels(monkeypatch: pytest.MonkeyPatch) -> None:
    with Typed(b"") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        with pytest.raises(SystemExit, match="已取消"):
            ask_for_prompt()


def test_without_a_terminal_there_is_no_heading(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with Typed(b"from a pipe\n") as stdin:
        monkeypatch.setattr(stdin, "isatty", lambda: False)
        monkeypatch.setattr("sys.stdin", stdin)
        assert ask_for_prompt() == "from a pipe"
    assert capsys.readouterr().out == ""


def test_new_at_the_prompt_archives_and_asks_again(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    notes = place / ".flower" / "notes"
    notes.mkdir(parents=True)
    (notes / "需求.md").write_text(BRIEF, encoding="utf-8")
    args = parsed("go", "--no-trim")
    with Typed(b"/new\nanother matter\n") as stdin, Occupied("runs") as occupied:
        monkeypatch.setattr("sys.stdin", stdin)
        flow, runtime, request = go._starter(args, occupied)
    runtime.close()
    assert (request, args.new, flow.name) == ("another matter", True, "starter")
    assert not (notes / "需求.md").exists()
    assert len(list((notes / "archive").glob("*/需求.md"))) == 1
    shown = capsys.readouterr().out
    assert "接着上次?" in shown
    assert "要做什么?" in shown
    assert "<- 在" not in shown


def test_the_wake_line_says_what_is_known(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    notes = place / ".flower" / "notes"
    notes.mkdir(parents=True)
    (notes / "需求.md").write_text(BRIEF, encoding="utf-8")
    (notes / "目标.md").write_text("## 目标\n质数\n\n## 判定清单\n- 一\n- 二\n", encoding="utf-8")
    (place / "runs").mkdir()
    lineage = {"workspace": str(place), "woke": 2, "steps": {"干活": "gone"}}
    (place / "runs" / "lineage.json").write_text(json.dumps(lineage), encoding="utf-8")
    with Occupied("runs") as occupied:
        _, runtime, request = go._starter(parsed("go", "--no-trim", "--clarify-only"), occupied)
    runtime.close()
    shown = "".join(capsys.readouterr().out.split())
    assert request == ""
    assert f"<-在{place}接上上次需求已确认·目标2条·第3次唤醒" in shown
    assert "--clarify-only没有可做的事" in shown


@pytest.mark.parametrize(("tokens", "size"), [(0, "0"), (999, "999"), (71_400, "71.4K"), (1_000_000, "1000.0K")])
def test_sizes_for_the_wake_line(tokens: int, size: str) -> None:
    assert go._size(tokens) == size


def test_a_workflow_that_raises_is_told_in_one_line_and_with_verbose_as_it_is() -> None:
    async def fails() -> Any:
        raise LookupError("of their own")

    with pytest.raises(SystemExit, match="出错了:LookupError: of their own"):
        go._carried_out(fails(), verbose=False)
    with pytest.raises(LookupError):
        go._carried_out(fails(), verbose=True)


def test_a_run_without_steps_ends_with_its_accounts(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "empty.py").write_text("from flower import Workflow\nmain = Workflow([])\n", encoding="utf-8")
    assert program(["run", "empty.py:main"]) == 0
    assert capsys.readouterr().out == f"总花费 $0.0000 · 清单 {place / 'runs' / 'manifest.json'}\n"


def test_nobody_to_answer_is_told_once(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = (
        "from flower import HumanChannel, Workflow\ndef main():\n    return Workflow([], channel=HumanChannel({}))\n"
    )
    (place / "asks.py").write_text(source.format(""), encoding="utf-8")
    (place / "alone.py").write_text(source.format("timeout_s=0"), encoding="utf-8")
    assert program(["run", "asks.py:main"]) == 0
    assert "! 标准输入不是终端,没人能回答提问。想让它自己判断就加 --timeout 0" in capsys.readouterr().out
    assert program(["run", "alone.py:main"]) == 0
    assert "标准输入不是终端" not in capsys.readouterr().out


def test_a_plugin_folder_beside_the_flow_goes_with_it(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "plugin" / ".claude-plugin").mkdir(parents=True)
    (place / "plugin" / ".claude-plugin" / "plugin.json").write_text('{"name": "p"}', encoding="utf-8")
    (place / "flowp.py").write_text("from flower import Workflow\nmain = Workflow([])\n", encoding="utf-8")
    seen: list[Any] = []

    async def driven(flow: Workflow, runtime: Any, *, verbose: bool) -> dict[str, Any]:
        await asyncio.sleep(0)
        seen.extend(runtime.plugin_dirs)
        return {}

    monkeypatch.setattr(go, "_driven", driven)
    assert program(["run", "flowp.py:main"]) == 0
    assert seen == [place / "plugin"]


def test_a_folder_called_plugin_that_is_none_is_told(place: Path) -> None:
    (place / "plugin").mkdir()
    (place / "flowq.py").write_text("from flower import Workflow\nmain = Workflow([])\n", encoding="utf-8")
    assert told("run", "flowq.py:main") == f"{place / 'plugin'} 不是插件目录:要有 .claude-plugin/plugin.json。"


def test_a_window_makes_a_policy() -> None:
    assert policies(parsed("go", "--window", "150000"))["handoff"] == HandoffPolicy(window=150_000)


def test_verbose_begins_with_the_configuration_and_hides_the_credential(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-secret-0123456789")
    told("-v", "once", "x", "--resume", "no-such-id")
    shown = capsys.readouterr().out
    assert "ANTHROPIC_API_KEY = sk-a***(共 24 位)" in shown
    assert "secret" not in shown


def test_sessions_that_cannot_be_read_leave_brief_and_lineage_where_they_are(place: Path) -> None:
    notes, runs = place / ".flower" / "notes", place / "runs"
    notes.mkdir(parents=True)
    runs.mkdir()
    (notes / "需求.md").write_text(BRIEF, encoding="utf-8")
    (runs / "lineage.json").write_text(json.dumps({"workspace": str(place), "steps": {"干活": "s"}}), encoding="utf-8")
    (runs / "sessions.db").write_bytes(b"this is no database" * 1000)
    (place / "flown.py").write_text("from flower import Workflow\nmain = Workflow([])\n", encoding="utf-8")
    assert "sessions.db" in told("--new", "--no-trim", "another")
    assert "sessions.db" in told("run", "flown.py:main", "--new")
    assert (notes / "需求.md").read_text(encoding="utf-8") == BRIEF
    assert (runs / "lineage.json").exists()


def test_a_run_is_begun_with_new_sessions_when_it_is_wanted(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "flowm.py").write_text("from flower import Workflow\nmain = Workflow([])\n", encoding="utf-8")
    runs = place / "runs"
    runs.mkdir()
    stored = json.dumps({"workspace": str(place), "woke": 4, "steps": {"tell": "s"}})
    (runs / "lineage.json").write_text(stored, encoding="utf-8")
    assert program(["run", "flowm.py:main"]) == 0
    assert "<- 接着上次的会话;要从头开始就加 --new" in capsys.readouterr().out
    assert program(["run", "--new", "flowm.py:main"]) == 0
    assert "上次会话的记录归档到" in capsys.readouterr().out
    (kept,) = runs.glob("archive/*/lineage.json")
    assert json.loads(kept.read_text(encoding="utf-8"))["steps"] == {"tell": "s"}
    assert json.loads((runs / "lineage.json").read_text(encoding="utf-8"))["steps"] == {}


def test_ended_while_it_was_clarified_enter_alone_goes_on(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with Occupied("runs") as occupied:
        go._starter(parsed("go", "--no-trim", "a hundred primes"), occupied)[1].close()
    lineage = {"workspace": str(place), "woke": 1, "steps": {"确认需求": "S"}}
    (place / "runs" / "lineage.json").write_text(json.dumps(lineage), encoding="utf-8")
    capsys.readouterr()
    with Typed(b"\n") as stdin, Occupied("runs") as occupied:
        monkeypatch.setattr("sys.stdin", stdin)
        _, runtime, request = go._starter(parsed("go", "--no-trim"), occupied)
    runtime.close()
    shown = "".join(capsys.readouterr().out.split())
    assert request == "a hundred primes"
    assert "接着上次?" in shown
    assert "需求还在确认·第2次唤醒" in shown
    # They were said already: they are no addition to a brief that is still to be written.
    assert not (place / ".flower" / "notes" / "需求.md").exists()


def test_the_request_of_another_workspace_is_not_taken_up(place: Path) -> None:
    remember_request("runs", place / "other", "another matter")
    assert recall_request("runs", place / "other") == "another matter"
    assert recall_request("runs", place) == ""
    (place / "runs" / "request.json").write_text("[" * 100_000, encoding="utf-8")
    assert recall_request("runs", place / "other") == ""


def test_where_a_run_is_at_work_there_is_no_second_one(place: Path) -> None:
    (place / "flowl.py").write_text("from flower import Workflow\nmain = Workflow([])\n", encoding="utf-8")
    starts = (["--no-trim", "x"], ["run", "flowl.py:main"], ["once", "x"])
    with Occupied("runs") as occupied:
        occupied.claim()
        for argv in starts:
            assert told(*argv) == (
                f"{place / 'runs'} 里已有一个运行在干活(进程 {os.getpid()})。等它结束,或者用 -r 换一个运行目录。"
            )
        assert program(["-r", "others", "run", "flowl.py:main"]) == 0
    assert program(["run", "flowl.py:main"]) == 0


def test_a_process_that_was_killed_holds_nothing(place: Path) -> None:
    script = "import sys, time; from flower.cli.occupied import Occupied; Occupied('runs').claim(); print(); input()"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=place
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with pytest.raises(SystemExit, match=str(other.pid)), Occupied("runs") as occupied:
            occupied.look()
        other.kill()
    with Occupied("runs") as occupied:
        occupied.claim()


def test_looking_for_another_run_makes_nothing(place: Path) -> None:
    with Occupied("runs") as occupied:
        occupied.look()
    assert list(place.iterdir()) == []


def test_control_c_in_the_setup_that_is_offered_at_the_end_still_says_where_it_stopped(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "flowk.py").write_text("from flower import Workflow\nmain = Workflow([])\n", encoding="utf-8")

    async def driven(*_: Any, **__: Any) -> dict[str, Any]:
        await asyncio.sleep(0)
        return {"_failed_at": "tell", "_aborted": "401 invalid api key"}

    def cancelled() -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(go, "_driven", driven)
    monkeypatch.setattr(go, "is_terminal", lambda: True)
    monkeypatch.setattr(go, "run_setup", cancelled)
    assert told("run", "flowk.py:main") == "在步骤 'tell' 中止"


def test_control_c_twice_says_how_to_go_on(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "flowj.py").write_text("from flower import Workflow\nmain = Workflow([])\n", encoding="utf-8")

    async def driven(_flow: Workflow, runtime: Any, **__: Any) -> dict[str, Any]:
        await asyncio.sleep(0)
        if "my" in runtime.run_dir.name:
            Lineage.open(runtime.run_dir, runtime.workspace).remember("tell", "s")
        raise KeyboardInterrupt

    monkeypatch.setattr(go, "_driven", driven)
    assert program(["-r", "my runs", "run", "flowj.py:main"]) == 130
    assert "退出了。在这里再跑 flower run flowj.py:main -r 'my runs' 就接着做。" in capsys.readouterr().out
    assert program(["run", "flowj.py:main"]) == 130
    assert "退出了" not in capsys.readouterr().out  # nothing had begun


def test_after_the_end_of_input_nobody_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    channel = HumanChannel()
    go._leave_alone(channel)
    go._leave_alone(channel)
    assert channel.timeout_s == 0.0
    assert capsys.readouterr().out == "! 输入已关闭,没人能回答了:从现在起,提问都由它自己判断。\n"
    go._leave_alone(None)
