"""What a person sees of each event: whole, aligned, never wider than the window (API 16.10, behaviour 23.4)."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flower import texts
from flower.cli.render import Render, State, lines, render
from flower.cli.screen import Screen
from flower.cli.text import clean, plain, width
from flower.core.events import Event, EventKind

BEGAN = datetime(2026, 3, 1, 14, 0, tzinfo=UTC)
MAIN = {"subagent": False}


@pytest.fixture(autouse=True)
def _chinese() -> Iterator[None]:
    with texts.speaking("zh"):
        yield


class Watcher:
    """Somebody who looks at a run: `sees` gives the lines without colours, and without the line of figures."""

    def __init__(self, *, columns: int = 80, verbose: bool = False) -> None:
        self.state = State(began=BEGAN)
        self.now = BEGAN
        self.columns, self.verbose = columns, verbose

    def coloured(self, kind: Any, text: str = "", tool: str = "", /, **payload: Any) -> list[str]:
        event = Event(kind, text, tool, payload)
        return lines(event, self.state, now=self.now, columns=self.columns, verbose=self.verbose)

    def rows(self, kind: Any, text: str = "", tool: str = "", /, **payload: Any) -> list[str]:
        return [plain(row) for row in self.coloured(kind, text, tool, **payload)]

    def sees(self, kind: Any, text: str = "", tool: str = "", /, **payload: Any) -> list[str]:
        return [row for row in self.rows(kind, text, tool, **payload) if row and not row.startswith(". 14:")]

    def asked(self, ask: str, question: str, options: list[str] | None = None, remaining: int = -1) -> list[str]:
        payload = {"id": ask, "options": options or [], "state": "asked", "answer": "", "remaining": remaining}
        return self.sees("ask", question, **payload)

    def outcome(self, ask: str, state: str, answer: str = "", question: str = "哪个?") -> list[str]:
        return self.sees("ask", question, id=ask, options=[], state=state, answer=answer, remaining=-1)


@pytest.fixture
def watcher() -> Watcher:
    return Watcher()


def sub(call: str) -> dict[str, Any]:
    return {"subagent": True, "parent_tool_use_id": call}


# -- bad input --------------------------------------------------------------------------------------------------------


def test_kinds_from_tomorrow_and_unknown_messages_are_ignored(watcher: Watcher) -> None:
    assert watcher.rows("weather", "rain") == []
    assert watcher.rows("unknown", "StreamEvent") == []
    assert watcher.rows("system", "init", session_id="S") == []
    assert watcher.rows("task", kind="TaskStartedMessage") == []


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=60),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
KEYS = (
    *("subagent", "parent_tool_use_id", "context", "id", "input", "tool_use_id", "is_error", "kind", "unverifiable"),
    *("total", "path", "cost_usd", "trigger", "pre_tokens", "post_tokens", "subtype", "phase", "sections", "state"),
    *("options", "answer", "remaining", "amended", "round", "rounds", "reason", "failed", "retry_delay_ms", "index"),
)
EVENTS = st.builds(
    Event,
    st.sampled_from(get_args(EventKind)),
    st.text(st.characters(), max_size=200),
    st.text(st.characters(), max_size=20),
    st.dictionaries(st.sampled_from(KEYS), ANYTHING, max_size=8),
)


@given(st.lists(EVENTS, max_size=6), st.sampled_from([40, 50, 80, 110]), st.booleans())
def test_whatever_an_event_holds_no_line_is_too_wide_and_nothing_raises(
    events: list[Event], columns: int, verbose: bool
) -> None:
    stream = io.StringIO()
    with texts.speaking("zh"):
        shown = Render(verbose)
    shown.screen = Screen(stream, columns=columns)
    for event in events:
        for row in lines(event, shown.state, now=BEGAN, columns=columns, verbose=verbose):
            assert width(row) <= columns
            assert row == clean(row)
        shown(event)
    assert "显示不出来" not in stream.getvalue()


def test_hostile_text_never_reaches_the_terminal(watcher: Watcher) -> None:
    evil = "a\x1b[2J\x1b]0;t\x07\x00\ud800b"
    watcher.rows("text", "begin", **MAIN)
    assert watcher.sees("text", evil, **MAIN) == ["* ab"]
    assert watcher.sees("tool_call", evil, evil, id="1", input={}, **MAIN) == ["> ab     ab"]
    assert watcher.sees("tool_result", evil, tool_use_id="1", is_error=True, **MAIN) == ["x ab     ab"]
    assert watcher.asked("q1", evil, [evil]) == ["? ab", "  1) ab"]


def test_an_event_that_cannot_be_shown_is_said_and_does_not_end_the_run() -> None:
    class Odd(dict[str, Any]):
        def get(self, key: str, default: Any = None) -> Any:
            raise LookupError(key)

    shown, stream = Render(), io.StringIO()
    shown.screen = Screen(stream)
    shown(Event("text", "a", payload=Odd()))
    assert stream.getvalue() == "! (这条 text 显示不出来:LookupError)\n"


def test_fifty_million_characters_of_prose_are_shown_in_part() -> None:
    rows = Watcher().sees("text", "word " * 10_000_000, **MAIN)
    assert rows[-1] == "  (还有 49899999 个字符没有显示)"
    assert len(rows) < 2_000


# -- the main thread --------------------------------------------------------------------------------------------------


def test_prose_is_wrapped_and_whole_and_lists_hang_below_their_text() -> None:
    prose = "先看一遍测试,再决定留哪一个解析器。\n\n\n"
    prose += "1. read the whole of the module, and what it says\n- short\n    indented"
    assert Watcher(columns=40).sees("text", prose, **MAIN) == [
        "* 先看一遍测试,再决定留哪一个解析器。",
        "  1. read the whole of the module, and",
        "     what it says",
        "  - short",
        "      indented",
    ]


def test_reasoning_is_shown_and_what_is_blank_is_not(watcher: Watcher) -> None:
    assert watcher.sees("thinking", "which one?", **MAIN) == ["~ which one?"]
    assert watcher.rows("thinking", " \n", **MAIN) == []
    assert watcher.rows("text", "", **MAIN) == []


def test_the_line_of_figures_has_time_context_and_cost(watcher: Watcher) -> None:
    assert watcher.rows("text", "a", context=71_412, **MAIN) == [". 14:00 · 0m00s · 上下文 71.4K", "* a"]
    watcher.now += timedelta(minutes=64, seconds=3)
    rows = watcher.rows("result", "success", cost_usd=0.25, num_turns=3, is_error=False)
    assert rows == ["", ". 15:04 · 1h04m · 上下文 71.4K · $0.25"]
    rows = watcher.rows("result", "success", cost_usd=1.0, num_turns=3, is_error=False)
    assert rows[-1].endswith("· $1.25")


def test_figures_come_again_before_prose_that_changed_them_and_once_a_minute_at_most_before_calls(
    watcher: Watcher,
) -> None:
    def figures(kind: str, context: int) -> bool:
        return any(". 14:" in row for row in watcher.rows(kind, "a", "Bash", id="1", context=context, **MAIN))

    assert figures("text", 1_000)
    assert not figures("text", 1_000)
    assert not figures("tool_call", 2_000)
    assert figures("text", 2_000)
    watcher.now += timedelta(seconds=61)
    assert figures("tool_call", 2_000)
    assert not figures("thinking", 2_000)


def test_a_subagents_context_never_shows_as_ours(watcher: Watcher) -> None:
    watcher.rows("text", "a", context=5_000, **MAIN)
    watcher.rows("tool_call", "ls", "Bash", id="1", context=90_000, **sub("A"))
    assert watcher.state.context == 5_000


def test_a_cost_that_is_not_known_counts_nothing(watcher: Watcher) -> None:
    watcher.rows("result", "success", cost_usd=None, is_error=False)
    watcher.rows("result", "success", cost_usd=float("nan"), is_error=False)
    assert watcher.state.cost == 0


@pytest.mark.parametrize(
    ("tool", "text", "given", "shown"),
    [
        ("Bash", "pytest -q\n  tests", {}, "> Bash   pytest -q tests"),
        ("Read", "", {"file_path": "a/b.py"}, "> Read   a/b.py"),
        ("WebFetch", "", {"url": "https://e.org", "prompt": "p"}, "> WebFetch  https://e.org"),
        ("Agent", "", {"subagent_type": "coder", "description": "Fix it"}, "> Agent 1  coder · Fix it"),
        ("mcp__human__inbox", "", {}, "> human.inbox"),
        ("Odd", "", {"n": 3, "what": "this"}, "> Odd    this"),
        ("Odd", "", "no mapping", "> Odd"),
        (
            "TodoWrite",
            "",
            {"todos": [{"status": "completed"}, {"status": "in_progress", "content": "测试"}, "x"]},
            "> TodoWrite  1/2 · 测试",
        ),
    ],
)
def test_a_call_takes_one_line_with_what_it_is_about(tool: str, text: str, given: Any, shown: str) -> None:
    assert Watcher().sees("tool_call", text, tool, id="1", input=given, **MAIN) == [shown]


def test_a_long_command_keeps_its_beginning_and_a_long_path_its_end() -> None:
    watcher = Watcher(columns=40)
    assert watcher.sees("tool_call", "x" * 99, "Bash", id="1", **MAIN) == ["> Bash   " + "x" * 28 + "..."]
    path = "/home/someone/projects/a-long-name/tests/test_text.py"
    (row,) = watcher.sees("tool_call", path, "Read", id="1", input={"file_path": path}, **MAIN)
    assert row == "> Read   ...a-long-name/tests/test_text.py"[:9] + "..." + path[-28:]


def test_the_call_of_a_question_is_not_shown_beside_the_question(watcher: Watcher) -> None:
    assert watcher.rows("tool_call", "", "mcp__human__ask", id="1", input={"question": "q"}, **MAIN) == []


# -- results and subagents --------------------------------------------------------------------------------------------


def test_failed_results_are_always_shown_and_others_only_on_request() -> None:
    for verbose, shown in ((False, []), (True, ["- Bash   fine"])):
        watcher = Watcher(verbose=verbose)
        watcher.rows("tool_call", "ls", "Bash", id="1", **MAIN)
        assert watcher.sees("tool_result", "fine", tool_use_id="1", is_error=False, **MAIN) == shown
        watcher.rows("tool_call", "ls", "Bash", id="2", **MAIN)
        failed = "\x1b[31mExit code 1\x1b[0m\n\n" + "y" * 200 + "\nthird\nfourth"
        assert watcher.sees("tool_result", failed, tool_use_id="2", is_error=True, **MAIN) == [
            "x Bash   Exit code 1",
            "         " + "y" * 68 + "...",
            "         third",
        ]


def test_a_failure_without_words_and_without_a_known_call_is_shown(watcher: Watcher) -> None:
    assert watcher.sees("tool_result", "", tool_use_id="?", is_error=True, **MAIN) == ["x 失败了,没有说明"]


def test_subagents_show_their_calls_behind_a_bar_and_the_rest_only_on_request() -> None:
    for verbose in (False, True):
        watcher = Watcher(verbose=verbose, columns=40)
        watcher.rows("tool_call", "", "Agent", id="A", input={}, **MAIN)
        assert watcher.sees("tool_call", "ls", "Bash", id="1", **sub("A")) == ["| > Bash   ls"]
        assert watcher.sees("tool_result", "no", tool_use_id="1", is_error=True, **sub("A")) == ["| x Bash   no"]
        prose = watcher.sees("text", "some words that need more than one line", **sub("A"))
        prompt = watcher.sees("prompt", "do it", **sub("A"))
        thinking = watcher.sees("thinking", "hm", **sub("A"))
        shown = [["| * some words that need more than one", "|   line"], ["| <- do it"], ["| ~ hm"]]
        assert [prose, prompt, thinking] == (shown if verbose else [[], [], []])


def test_several_subagents_at_once_are_told_apart(watcher: Watcher) -> None:
    watcher.rows("tool_call", "", "Agent", id="A", input={}, **MAIN)
    watcher.rows("tool_call", "", "Agent", id="B", input={}, **MAIN)
    assert watcher.sees("tool_call", "ls", "Bash", id="1", **sub("A")) == ["| 1 > Bash   ls"]
    assert watcher.sees("tool_call", "ls", "Bash", id="2", **sub("B")) == ["| 2 > Bash   ls"]
    watcher.rows("tool_result", "done", tool_use_id="A", is_error=False, **MAIN)
    assert watcher.sees("tool_call", "ls", "Bash", id="3", **sub("B")) == ["| > Bash   ls"]


def test_the_prompt_of_the_main_thread_is_shown_on_request_only() -> None:
    assert Watcher().rows("prompt", "go on", **MAIN) == []
    assert Watcher(verbose=True).sees("prompt", "go on", **MAIN) == ["<- go on"]


# -- questions and mail -----------------------------------------------------------------------------------------------


def test_a_question_stands_apart_with_numbered_options(watcher: Watcher) -> None:
    watcher.rows("text", "a", **MAIN)
    payload = {"id": "q1", "options": ["CLI", "library"], "state": "asked", "answer": "", "remaining": 2}
    rows = watcher.rows("ask", "CLI or library?", **payload)
    assert rows == ["", "? CLI or library?", "  1) CLI", "  2) library", "  (还能问 2 次)", ""]
    assert watcher.coloured("ask", "x", **payload)[0] != "? x"


def test_how_many_questions_are_left_is_said_only_with_a_budget(watcher: Watcher) -> None:
    assert watcher.asked("q1", "a?", remaining=-1) == ["? a?"]
    assert Watcher().asked("q1", "a?", remaining=0) == ["? a?", "  (还能问 0 次)"]


@pytest.mark.parametrize(
    ("state", "shown"),
    [
        ("answered", "+ CLI"),
        ("timeout", "! 无人应答 —— 它按自己的判断继续,假设会写进「未知与假设」"),
        ("over_budget", "! 提问额度用完 —— 它按自己的判断继续"),
        ("declined", ". 已跳过"),
        ("invalid", "! 问题是空的,没有问出去"),
        ("withdrawn", ". withdrawn"),
    ],
)
def test_each_outcome_is_told_and_names_its_question_where_that_is_not_just_above(state: str, shown: str) -> None:
    watcher = Watcher()
    watcher.asked("q1", "哪个?")
    assert watcher.outcome("q1", state, "CLI") == [shown]
    watcher.asked("q2", "哪个?")
    watcher.rows("tool_call", "ls", "Bash", id="1", **sub("A"))
    assert watcher.outcome("q2", state, "CLI") == [shown, "  (问的是:哪个?)"]
    # Settled at once: there was no `asked`.
    assert watcher.outcome("q3", state, "CLI") == ["? 哪个?", shown]


def test_a_number_that_is_no_option_is_pointed_out(watcher: Watcher) -> None:
    watcher.asked("q1", "哪个?", ["CLI", "library"])
    assert watcher.outcome("q1", "answered", "9") == ["+ 9", "  (选项只有 1 到 2,没有 9:原样当作回答)"]
    watcher.asked("q2", "几个?", ["10", "100"])
    assert watcher.outcome("q2", "answered", "100") == ["+ 100"]
    watcher.asked("q3", "几个?")
    assert watcher.outcome("q3", "answered", "9") == ["+ 9"]


def test_the_question_to_answer_is_the_lowest_one_and_stays_in_sight(watcher: Watcher) -> None:
    watcher.asked("q1", "first?", ["a"], remaining=3)
    assert watcher.asked("q2", "second?", ["b"]) == [
        "? second?",
        "  (前面还有 1 个问题等着,先答最早的那个)",
        "? first?",
        "  1) a",
    ]
    again = [watcher.sees("tool_call", "ls", "Bash", id="1", **sub("A")) for _ in range(40)]
    assert [len(rows) for rows in again].count(3) == 2
    assert watcher.outcome("q1", "answered", "a")[-2:] == ["? second?", "  1) b"]
    assert watcher.outcome("q2", "answered", "b") == ["+ b"]
    assert all(len(watcher.sees("tool_call", "ls", "Bash", id="1", **sub("A"))) == 1 for _ in range(60))


@pytest.mark.parametrize("kind", ["retry", "step", "result"])
def test_a_question_that_was_cut_off_is_not_shown_again(kind: str, watcher: Watcher) -> None:
    watcher.asked("q1", "first?")
    watcher.rows(kind, "again")
    assert all(len(watcher.sees("tool_call", "ls", "Bash", id="1", **sub("A"))) == 1 for _ in range(60))


def test_mail_gets_a_receipt_that_says_whether_it_is_kept(watcher: Watcher) -> None:
    mail = {"kind": "mail", "id": "m1"}
    kept = watcher.sees("ask", "more", **mail, state="queued", amended="/b/需求.md")
    assert kept == ["+ 收到 (它下次查收件箱时会看到;已追加进确认书)", "  more"]
    lost = watcher.sees("ask", "more", **mail, state="queued", amended="")
    assert "".join(row.strip() for row in lost) == (
        "+ 收到 (它下次查收件箱时会看到;没有确认书可落盘 —— 它可能活不过下一个步骤)more"
    )
    assert watcher.sees("ask", "more", **mail, state="delivered", amended="") == [". 它看到了:more"]


# -- the course of a run ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [50, 80])
def test_a_step_is_a_ruled_line_with_the_wake_number_where_it_is_carried_over(columns: int) -> None:
    watcher = Watcher(columns=columns)
    (row,) = watcher.sees("step", "干活", index=3, total=3, resumed=True, woke=2)
    assert row.rstrip("=") == "== 3/3 干活 · 第 2 次唤醒 "
    assert width(row) == columns
    (row,) = watcher.sees("step", "干活", index=1, total=3, resumed=False, woke=2)
    assert row.rstrip("=") == "== 1/3 干活 "


def test_a_handover_is_a_block_with_its_sections(watcher: Watcher) -> None:
    assert watcher.sees("handoff", "上下文 131.0K/200K", phase="near") == ["! 上下文 131.0K/200K"]
    assert watcher.sees("handoff", "正在写交接…", phase="writing") == ["<- 正在写交接…"]
    sections = {"doing": "宽度\n- 还差测试", "decided": "算 2", "deadends": "", "next": "跑测试"}
    payload = {"phase": "done", "degraded": False, "path": "/n/交接-干活.md", "sections": sections}
    assert watcher.sees("handoff", "换新会话(干活)", **payload) == [
        "<- 换新会话(干活)",
        "   - 现在在做什么",
        "     宽度",
        "     - 还差测试",
        "   - 已经定下的",
        "     算 2",
        "   - 下一步",
        "     跑测试",
        "   交接书:/n/交接-干活.md",
    ]
    degraded = watcher.sees("handoff", "换", phase="done", degraded=True, path="", sections=None)
    assert degraded[0] == "<- 换"
    assert degraded[1].startswith("   ! 交接没写成")


@pytest.mark.parametrize(
    ("state", "head"),
    [
        ("achieved", "+ 判定 第 2/3 轮:达成"),
        ("not_yet", "x 判定 第 2/3 轮:未达成"),
        ("unreachable", "! 判定 第 2/3 轮:无法达成"),
        ("later", "! 判定 第 2/3 轮:later"),
    ],
)
def test_a_verdict_says_the_round_the_reason_and_what_failed(state: str, head: str) -> None:
    payload = {"kind": "verdict", "round": 2, "rounds": 3, "state": state, "reason": "看过了", "failed": ["README"]}
    assert Watcher().sees("task", **payload) == [head, "  看过了", "  - README"]


def test_checks_that_cannot_be_verified_here_are_a_warning(watcher: Watcher) -> None:
    shown = "".join(watcher.sees("task", "x", unverifiable=["看屏幕"], total=6, path="/n/目标.md"))
    assert shown.startswith("! 目标的 6 条判定里有 1 条在这个环境里验不了")
    assert shown.endswith("  - 看屏幕  现在改还来得及:/n/目标.md")


def test_resets_and_retries_and_errors_are_told(watcher: Watcher) -> None:
    compact = {"trigger": "auto", "pre_tokens": 160_000, "post_tokens": 30_000, "micro": False, "subtype": "x"}
    assert watcher.sees("reset", "", **compact) == ["- 压缩(auto) 160000 → 30000 tokens"]
    assert watcher.state.context == 30_000
    assert watcher.sees("reset", "", **{**compact, "micro": True})[0].startswith("- 微压缩(auto)")
    assert watcher.sees("reset", "conversation reset") == ["- 会话被清空了"]
    assert watcher.sees("retry", "第 1 次失败(transient),准备重试") == ["! 第 1 次失败(transient),准备重试"]
    assert watcher.sees("error", "API Error: 529", synthetic=True) == ["x API Error: 529"]
    assert watcher.sees("error", "配置的模型是 a", model_mismatch=True) == ["! 配置的模型是 a"]


def test_a_query_that_failed_says_so_also_where_its_subtype_is_success(watcher: Watcher) -> None:
    assert watcher.sees("result", "success", is_error=True) == ["x 这一轮出错了"]
    assert watcher.sees("result", "error_max_turns", is_error=True) == ["x 这一轮出错了 (error_max_turns)"]
    # A cut is no failure.
    assert watcher.sees("result", "error_during_execution", is_error=True, cut=True) == []


def test_a_long_wait_of_the_program_for_its_model_is_told_and_a_short_one_is_not(watcher: Watcher) -> None:
    wait = {"attempt": 4, "max_retries": 10, "error": "overloaded"}
    assert watcher.rows("system", "api_retry", retry_delay_ms=900, **wait) == []
    assert watcher.rows("system", "api_retry", retry_delay_ms=float("inf"), **wait) == []
    assert watcher.sees("system", "api_retry", retry_delay_ms=8_400, **wait) == [
        "! 模型接口出错(overloaded),8 秒后第 4/10 次重试"
    ]


# -- the whole --------------------------------------------------------------------------------------------------------


def test_events_that_went_through_json_look_the_same() -> None:
    payload = {"id": "q1", "options": ["a"], "state": "asked", "answer": "", "remaining": 1, "asked_at": 1.5}
    again = json.loads(json.dumps(payload))
    assert Watcher().rows("ask", "?", **again) == Watcher().rows("ask", "?", **payload)


def test_the_same_run_in_english_has_the_same_lines_in_other_words() -> None:
    with texts.speaking("en"):
        watcher = Watcher()
        watcher.asked("q1", "which?")
        assert watcher.outcome("q1", "declined") == [". skipped"]
        assert watcher.sees("task", kind="verdict", round=1, rounds=3, state="achieved") == [
            "+ verdict, round 1 of 3: ACHIEVED"
        ]


def test_render_writes_to_its_screen_and_the_short_form_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    shown, stream = Render(), io.StringIO()
    shown.screen = Screen(stream)
    shown(Event("retry", "again", payload={}))
    assert stream.getvalue() == "! again\n"
    shown(Event("ask", "which?", payload={"id": "q1", "state": "asked"}))
    assert stream.getvalue() == "! again\n\n? which?\n\n"
    render(Event("prompt", "go on", payload=dict(MAIN)))
    render(Event("prompt", "go on", payload=dict(MAIN)), verbose=True)
    assert capsys.readouterr().out.splitlines()[-1] == "<- go on"


def test_a_heading_of_prose_stands_out_without_its_marks(watcher: Watcher) -> None:
    said = "## Goal\nIt counts.\n#no heading\n### \x1b[31mRed"
    assert watcher.sees("text", said) == ["* Goal", "  It counts.", "  #no heading", "  Red"]
    shown = watcher.coloured("text", said)
    assert [row for row in shown if "\x1b[1m" in row] == [row for row in shown if "Goal" in row or "Red" in row]
    assert not any("[31m" in row for row in shown)
