"""The worked traces of behaviour 30, with the real SDK and its bundled program against a scripted model.

One test a trace, named after it; 30.11, a table for parsers, is in tests/flower/catalogue.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import project_key_for_directory

from flower.core import resilience
from flower.core.agent import HandoffPolicy
from flower.core.events import Event
from flower.core.goal import Goal
from flower.core.human import (
    DECLINED,
    INBOX_NAME,
    NO_MAIL,
    OVER_BUDGET,
    TIMEOUT,
    TOOL_NAME,
    HumanChannel,
)
from flower.core.resilience import Resilience
from flower.core.runtime import Runtime
from flower.core.workbench import Workbench
from flower.stores.sqlite import SqliteSessionStore
from flower.testing import RecordingSink, cost, play, same_session
from flower.workflow.base import Step, Workflow
from flower.workflow.clarify import CLARIFY_RESUME
from flower.workflow.goal import with_goal
from flower.workflow.starter import starter_flow, wake_state
from tests.sdk.stage import Stage, marked, spec, stage

pytestmark = [pytest.mark.real, pytest.mark.timeout(90)]

RESUME = "上一轮在中途被打断,没有跑完。检查一下工作台里已经落盘的东西,从中断处接着做,不要重头来过。"
EMPTY = "问题是空的。把问题写清楚再问。"
CLOCK = re.compile(r"\d\d:\d\d:\d\d")


def asking(channel: HumanChannel, **kw: Any) -> Any:
    tools = [TOOL_NAME, INBOX_NAME, "Bash"]
    return spec(**{"allowed_tools": tools, "mcp_servers": channel.mcp_servers(), **kw})


def told(sink: RecordingSink, *kinds: str) -> list[str]:
    return [event.kind for event in sink.events if event.kind in kinds]


def rows(place: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((place / "manifest.json").read_text(encoding="utf-8"))
    return found


def lineage(place: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((place / "lineage.json").read_text(encoding="utf-8"))
    return found


def text_of(path: Path) -> str:
    return CLOCK.sub("HH:MM:SS", path.read_text(encoding="utf-8"))


def tokens(level: int) -> dict[str, int]:
    return {"input": 10, "output": 50, "cache_read": level - 10}


# -- 30.1 ---------------------------------------------------------------------------------------------------------


async def test_30_1_a_question_that_waits_and_is_answered_from_another_thread(tmp_path: Path) -> None:
    lines = [
        {"call": {TOOL_NAME: {"question": "CLI or library?", "options": ["CLI", " ", "library"]}}},
        {"expect": {"result": "CLI", "error": False}, "say": "Then a CLI."},
    ]
    async with stage(tmp_path, lines) as here, here.runtime() as runtime:
        sink = RecordingSink()
        channel = HumanChannel(on_event=sink, log_path=tmp_path / "log.md")
        running = asyncio.create_task(runtime.run(asking(channel), "go", on_event=sink))
        asked = await sink.wait_for("ask")

        def web_thread() -> list[Any]:
            ids = [ask.id for ask in channel.pending()]
            return [ids, channel.answer("q1", "CLI"), channel.pending()]

        assert await asyncio.to_thread(web_thread) == [["q1"], True, []]
        step = await running
        assert await asyncio.to_thread(channel.answer, "q1", "library") is False
        assert here.model.asked_of()[1].result == "CLI"
        assert step.cost_usd == pytest.approx(cost(here.model.tokens))
    assert (step.ok, step.text, step.attempts) == (True, "Then a CLI.", 1)
    assert told(sink, "tool_call", "ask", "tool_result", "text", "result") == [
        *("tool_call", "ask", "ask", "tool_result", "text", "result")
    ]
    payload = {"id": "q1", "options": ["CLI", "library"], "remaining": -1, "asked_at": asked.payload["asked_at"]}
    assert [(event.text, event.payload) for event in sink.of("ask")] == [
        ("CLI or library?", {**payload, "state": "asked", "answer": ""}),
        ("CLI or library?", {**payload, "state": "answered", "answer": "CLI"}),
    ]
    assert text_of(tmp_path / "log.md").endswith(
        "\n- **Q**(q1) CLI or library?\n  - 选项:CLI / library\n  - **A**[answered] CLI\n"
    )


# -- 30.2 ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "question", "states", "answer"),
    [
        ({"timeout_s": 0}, "Q?", ["timeout"], TIMEOUT),
        ({"timeout_s": -5}, "Q?", ["timeout"], TIMEOUT),
        ({"max_asks": 0}, "Q?", ["over_budget"], OVER_BUDGET),
        ({"max_asks": 0, "timeout_s": 0}, "Q?", ["over_budget"], OVER_BUDGET),
        ({}, "  ", ["invalid"], EMPTY),
        ({"timeout_s": 0.05}, "Q?", ["asked", "timeout"], TIMEOUT),
    ],
)
async def test_30_2_questions_that_do_not_wait(
    tmp_path: Path, settings: dict[str, Any], question: str, states: list[str], answer: str
) -> None:
    lines = [{"call": {TOOL_NAME: {"question": question}}}, {"expect": {"error": False}, "say": "On my own then."}]
    async with stage(tmp_path, lines) as here, here.runtime() as runtime:
        sink = RecordingSink()
        waiting: list[list[str]] = []

        def hear(event: Event) -> None:
            sink(event)
            waiting.append([ask.id for ask in channel.pending()])

        channel = HumanChannel(on_event=hear, log_path=tmp_path / "log.md", **settings)
        step = await runtime.run(asking(channel), "go", on_event=sink)
        assert here.model.asked_of()[1].result == answer
    assert (step.ok, step.text) == (True, "On my own then.")
    assert [event.payload["state"] for event in sink.of("ask")] == states
    assert waiting == ([["q1"], []] if len(states) == 2 else [[]])
    assert [(ask.state, ask.answer) for ask in channel.asks] == [(states[-1], answer)]
    assert await channel.next_ask(timeout=0) is None
    assert text_of(tmp_path / "log.md").count("**A**") == 1


async def test_30_2_the_third_question_of_two(tmp_path: Path) -> None:
    lines = [
        *({"call": {TOOL_NAME: {"question": f"number {n}?"}}} for n in (1, 2, 3)),
        {"expect": {"error": False}, "say": "On."},
    ]
    async with stage(tmp_path, lines) as here, here.runtime() as runtime:
        sink = RecordingSink()

        def person(event: Event) -> None:
            sink(event)
            if event.payload["state"] == "asked":
                assert (
                    channel.answer(event.payload["id"], "yes") if event.payload["id"] == "q1" else channel.decline("q2")
                )

        channel = HumanChannel(on_event=person, max_asks=2, log_path=tmp_path / "log.md")
        assert channel.remaining == 2
        assert (await runtime.run(asking(channel), "go", on_event=sink)).ok
        assert [asked.result for asked in here.model.asked_of()[1:]] == ["yes", DECLINED, OVER_BUDGET]
    assert [(e.payload["id"], e.payload["state"], e.payload["remaining"]) for e in sink.of("ask")] == [
        *(("q1", "asked", 1), ("q1", "answered", 1)),
        *(("q2", "asked", 0), ("q2", "declined", 0)),
        ("q3", "over_budget", 0),
    ]
    assert text_of(tmp_path / "log.md").count("**A**") == 3


async def test_30_2_the_task_that_waits_is_cancelled(tmp_path: Path) -> None:
    lines = [{"call": {TOOL_NAME: {"question": "Q?"}}}]
    async with stage(tmp_path, lines) as here, here.runtime() as runtime:
        sink = RecordingSink()
        channel = HumanChannel(on_event=sink, timeout_s=None, log_path=tmp_path / "log.md")
        running = asyncio.create_task(runtime.run(asking(channel), "go", on_event=sink))
        await sink.wait_for("ask")
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert [event.payload["state"] for event in sink.of("ask")] == ["asked"]
    assert [ask.state for ask in channel.asks] == ["asked"]
    assert channel.pending() == []
    assert await channel.next_ask(timeout=0) is None
    assert not (tmp_path / "log.md").exists()


# -- 30.3 ---------------------------------------------------------------------------------------------------------


@pytest.mark.case("SS-6")
async def test_30_3_mail_during_work(tmp_path: Path) -> None:
    lines = [
        {"call": {TOOL_NAME: {"question": "Anything else?"}}},
        {"name": "work", "call": {"Bash": {"command": "echo built"}}},
        {"call": {INBOX_NAME: {}}},
        {"call": {INBOX_NAME: {}}},
        "Done.",
    ]
    async with stage(tmp_path, lines) as here, here.runtime() as runtime:
        sink = RecordingSink()
        brief = here.workspace / "notes" / "需求.md"
        brief.parent.mkdir()
        brief.write_text("# 需求确认书\n", encoding="utf-8")
        channel = HumanChannel(on_event=sink, timeout_s=0, log_path=tmp_path / "log.md", amend_path=brief)
        running = asyncio.create_task(runtime.run(asking(channel), "go", on_event=sink))
        async with here.model.paused("main.work"):
            await here.model.asked("main.work")
            mail = await asyncio.to_thread(channel.send, "also report total bytes")
            assert mail is not None
            assert (mail.id, mail.taken, channel.pending_mail()) == ("m2", False, [mail])
        assert (await running).ok
        first, second = here.model.asked_of()[3:5]
        assert first.result == (
            "人在运行中说了这些,按时间先后:\n\n1. also report total bytes\n\n"
            "这些话已经追加进需求确认书,后面的步骤读得到。"
        )
        assert second.result == NO_MAIL
    mailed = [event for event in sink.of("ask") if event.payload.get("kind") == "mail"]
    assert [(event.text, event.payload) for event in mailed] == [
        ("also report total bytes", {"kind": "mail", "state": state, "id": "m2", "amended": str(brief)})
        for state in ("queued", "delivered")
    ]
    assert (mail.taken, channel.pending_mail()) == (True, [])
    assert text_of(brief) == "# 需求确认书\n\n## 运行中补充(HH:MM:SS)\nalso report total bytes\n"
    assert text_of(tmp_path / "log.md").endswith("\n\n- **人主动说**(m2) also report total bytes\n")


async def test_30_3_mail_that_no_agent_with_an_inbox_takes_is_in_the_brief_already(tmp_path: Path) -> None:
    async with stage(tmp_path, [{"name": "only", "say": "Done."}]) as here, here.runtime() as runtime:
        channel = HumanChannel(amend_path=tmp_path / "需求.md")
        running = asyncio.create_task(runtime.run(spec(), "go"))
        async with here.model.paused("main.only"):
            await here.model.asked("main.only")
            channel.send("also report total bytes")
        assert (await running).ok
    assert [mail.text for mail in channel.pending_mail()] == ["also report total bytes"]
    assert text_of(tmp_path / "需求.md").endswith("## 运行中补充(HH:MM:SS)\nalso report total bytes\n")


# -- 30.4 ---------------------------------------------------------------------------------------------------------


@pytest.mark.case("CO-5")
async def test_30_4_lost_network_in_the_middle_of_a_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    probes: list[str] = []
    reachable = resilience.reachable

    async def counted(host: str, port: int, timeout: float = 5.0) -> bool:
        probes.append(host)
        return await reachable(host, port, timeout)

    monkeypatch.setattr(resilience, "reachable", counted)
    lines = [
        {"say": "Looking.", "call": {"Bash": {"command": "echo made >> made.txt; echo made"}}},
        {"name": "second", "expect": {"history": "made", "session": "same"}, "say": "Done."},
    ]
    quick = Resilience(base_delay=0.0, probe_interval=0.1)
    async with stage(tmp_path, lines) as here, here.runtime(resilience=quick) as runtime:
        sink = RecordingSink()
        async with here.model.paused("main.second"):
            running = asyncio.create_task(runtime.run(spec(), "go", step_name="干活", on_event=sink))
            await here.model.asked("main.second")
            async with here.model.away():
                await sink.wait_for(lambda event: "不可达" in event.text, timeout=30)
                before = len(probes)
                async with asyncio.timeout(30):
                    while len(probes) < before + 3:  # noqa: ASYNC110 - of further probes nothing is told
                        await asyncio.sleep(0.02)
        step = await running
        asked = here.model.asked_of()
        (error,) = sink.of("error")
        address = here.model.url.removeprefix("http://")
        assert [(event.text, event.payload) for event in sink.of("retry")] == [
            (text, {"step": "干活", "attempt": 1})
            for text in (
                "第 1 次失败(transient),准备重试",
                f"{address} 不可达,等待恢复(最多 60 分钟)",
                f"{address} 恢复,继续",
            )
        ]
        assert told(sink, "text", "error", "retry") == ["text", "error", "retry", "retry", "retry", "text"]
        assert asked[-1].prompt == RESUME
        assert same_session(*asked)
        assert error.text not in asked[-1].conversation.history
        assert "API Error" not in asked[-1].conversation.history
        assert step.cost_usd == pytest.approx(cost(here.model.tokens))
    assert error.payload == {"synthetic": True}
    assert (step.ok, step.attempts, step.resumed, step.errors) == (True, 2, True, [error.text])
    assert (step.text, step.session_id) == ("Done.", asked[0].session)
    assert (tmp_path / "ws" / "made.txt").read_text(encoding="utf-8") == "made\n"  # done once
    (row,) = rows(here.run_dir)
    assert (row["step"], row["attempts"], row["errors"]) == ("干活", 2, [error.text])


async def test_30_4_what_the_error_left_is_kept_on_disk_and_out_of_what_a_resume_loads(tmp_path: Path) -> None:
    lines = [
        {"say": "Looking.", "call": {"Bash": {"command": "echo made"}}},
        {"fail": {"status": 529, "times": 3}, "say": "Done."},
    ]
    async with stage(tmp_path, lines) as here, here.runtime() as runtime:
        step = await runtime.run(spec(), "go")
        assert (step.ok, step.attempts, len(step.errors)) == (True, 2, 1)
        key: Any = {"project_key": runtime.project_key, "session_id": step.session_id}
        loaded: list[Any] = await runtime.store.load(key) or []
        written = SqliteSessionStore(here.run_dir / "sessions.db")
        stored: list[Any] = await written.load(key) or []
        written.close()
    marks = [entry["uuid"] for entry in stored if entry.get("isApiErrorMessage")]
    assert marks
    assert [entry["uuid"] for entry in loaded if entry.get("isApiErrorMessage")] == []
    kept = {entry["uuid"] for entry in loaded if "uuid" in entry}
    assert {entry["parentUuid"] for entry in loaded if entry.get("parentUuid")} <= kept


# -- 30.5 ---------------------------------------------------------------------------------------------------------


async def test_30_5_interrupt(tmp_path: Path) -> None:
    slow = "for i in $(seq 1 10); do sleep 0.1; done; echo half"
    main = {
        "lines": [{"name": "first", "say": "Running it.", "call": {"Bash": {"command": slow}}}],
        "anytime": [{"when": {"prompt": "do not touch the Makefile"}, "say": "I will not.", "then": "end"}],
    }
    async with stage(tmp_path, main=main) as here, here.runtime() as runtime:
        sink = RecordingSink()
        running = asyncio.create_task(runtime.run(spec(), "go", step_name="干活", on_event=sink))
        await sink.wait_for("tool_call")
        await asyncio.to_thread(runtime.interrupt, "do not touch the Makefile")
        step = await running
        first, second = here.model.asked_of()
        assert second.prompt == (
            "人打断了你,他说:\n\ndo not touch the Makefile\n\n按这个调整,然后接着做。\n\n" + Runtime.INTERRUPT_NOTE
        )
        assert same_session(first, second)
        (call,) = [call for turn in second.conversation.turns for call in turn.calls]
        assert call in [result.call for turn in second.conversation.turns for result in turn.results] + [
            result.call for result in second.results
        ]
        assert step.cost_usd == pytest.approx(cost(here.model.tokens), abs=3e-5)
    assert [(event.text, event.payload) for event in sink.of("retry")] == [
        ("已打断,带着你的话续跑", {"step": "干活", "attempt": 1})
    ]
    assert told(sink, "text", "tool_call", "tool_result", "retry") == ["text", "tool_call", "retry", "text"]
    assert (step.ok, step.attempts, step.resumed, step.session_id) == (True, 1, True, first.session)
    assert (step.text, step.error) == ("I will not.", None)
    assert [(row["attempts"], row["resumed"]) for row in rows(here.run_dir)] == [(1, True)]


# -- 30.6 ---------------------------------------------------------------------------------------------------------

DOCUMENT = """\
## 现在在做什么
第二步

## 已经定下的
用 A,因为快

## 走不通的路
B,太慢

## 下一步
写 two.txt

## 现场
one.txt"""


def successor(opening: str) -> dict[str, Any]:
    return {
        "match": {"opening": opening},
        "lines": [{"say": "接手。", "call": {"Bash": {"command": "echo two > two.txt"}}}, "写好了。"],
        "usage": tokens(30_000),
    }


async def test_30_6_handoff(tmp_path: Path) -> None:
    parts: dict[str, Any] = {
        "successor": successor("你在接手一段还没干完的活"),
        "main": {
            "lines": [
                {"say": "开始。", "call": {"Bash": {"command": "echo one > one.txt"}}, "usage": tokens(131_000)},
                {"say": "很多输出。", "call": {"Bash": {"command": "echo big"}}, "usage": tokens(152_000)},
                {"name": "document", "say": DOCUMENT, "usage": tokens(153_000)},
            ]
        },
    }
    async with stage(tmp_path, **parts) as here:
        bench, sink = Workbench(here.workspace).ensure(), RecordingSink()
        (bench.notes / "交接-干活.md").write_text("an earlier one", encoding="utf-8")
        remembered: list[tuple[str, str | None]] = []

        def hear(event: Event) -> None:
            sink(event)
            if event.kind in ("handoff", "text"):
                remembered.append((event.text, lineage(here.run_dir)["steps"].get("干活")))

        async with here.runtime(workbench=bench, handoff=HandoffPolicy(window=200_000)) as runtime:
            flow = Workflow([Step("干活", spec(), "写两个文件")])
            context = await flow.run(runtime, on_event=hear)
        step = context["_results"]["干活"]
        asked = here.model.asked_of()
        first, second = asked[0].session, asked[-1].session
        assert [(each.part, each.session) for each in asked] == [("main", first)] * 3 + [("successor", second)] * 2
        assert first != second
        assert "写两个文件" not in asked[-1].conversation.history
        assert "交接" in asked[2].prompt
        assert step.cost_usd == pytest.approx(cost(here.model.tokens))
    size = {"step": "干活", "window": 200_000}
    sections = {"doing": "第二步", "decided": "用 A,因为快", "deadends": "B,太慢", "next": "写 two.txt"}
    assert [(event.text, event.payload) for event in sink.of("handoff")] == [
        (
            "上下文 131.0K/200K · 还有约 19K 到换代",
            {"phase": "near", **size, "context": 131_000, "at": 150_000},
        ),
        ("上下文 152.0K/200K —— 正在写交接…", {"phase": "writing", **size, "context": 152_000}),
        (
            "上下文满了,写交接换新会话(干活)",
            {
                "phase": "done",
                **size,
                "context": 152_000,
                "degraded": False,
                "path": str(bench.notes / "交接-干活.md"),
                "sections": sections,
            },
        ),
    ]
    assert told(sink, "text", "handoff") == ["text", "handoff", "text", "handoff", "handoff", "text", "text"]
    assert [session for text, session in remembered if text == "上下文满了,写交接换新会话(干活)"] == [first]
    # The successor is remembered as soon as the store knows it: until then only the first can be gone on with.
    assert {session for text, session in remembered if text in ("接手。", "写好了。")} <= {first, second}
    assert (step.ok, step.session_id, step.retired, step.attempts) == (True, second, [first], 1)
    assert (step.errors, step.text, step.context) == ([], "接手。\n写好了。", 30_000)
    assert lineage(here.run_dir)["steps"] == {"干活": second}
    assert "B,太慢" in text_of(bench.notes / "交接-干活.md")
    (archived,) = (bench.notes / "archive" / "交接").iterdir()
    assert re.fullmatch(r"干活-\d{8}-\d{6}\.md", archived.name)
    assert text_of(archived) == "an earlier one"
    assert [(row["session_id"], row["retired"]) for row in rows(here.run_dir)] == [(second, [first])]


async def test_30_6_overflow_instead_of_level(tmp_path: Path) -> None:
    parts: dict[str, Any] = {
        "successor": successor("降级:交接没写成"),
        "main": {
            "lines": [
                {"say": "开始。", "call": {"Bash": {"command": "echo one > one.txt"}}, "usage": tokens(120_000)},
                {
                    "say": "never",
                    "fail": {
                        "status": 400,
                        "type": "invalid_request_error",
                        "message": "prompt is too long: 210000 tokens > 200000 maximum",
                        "times": "always",
                    },
                },
            ]
        },
    }
    async with stage(tmp_path, **parts) as here:
        bench, sink = Workbench(here.workspace), RecordingSink()
        async with here.runtime(workbench=bench, handoff=HandoffPolicy(window=1_000_000)) as runtime:
            step = await runtime.run(spec(), "写两个文件", step_name="干活", on_event=sink)
        asked = here.model.asked_of()
        assert [each.part for each in asked] == ["main", "main", "successor", "successor"]  # no silent round
        assert "写两个文件" in asked[-1].conversation.opening  # the substitute quotes the task
        assert step.cost_usd == pytest.approx(cost(here.model.tokens))
    assert [event.payload["phase"] for event in sink.of("handoff")] == ["writing", "done"]
    (done,) = [event for event in sink.of("handoff") if event.payload["phase"] == "done"]
    assert done.payload["degraded"] is True
    assert (step.ok, step.session_id, step.retired, step.attempts) == (True, asked[-1].session, [asked[0].session], 1)
    assert step.errors[-1].startswith("交接降级(")
    assert "[降级:交接没写成]" in text_of(bench.notes / "交接-干活.md")


# -- 30.7 and 30.8 ------------------------------------------------------------------------------------------------

NOT_YET = "## 结论\n未达成\n\n## 理由\n少了测试\n\n## 未通过\n- 跑 b,看到 c"
ACHIEVED = "## 结论\n达成\n\n## 理由\n都看到了\n\n## 未通过\n(无)"
UNREACHABLE = "## 结论\n无法达成\n\n## 理由\n没有显示器\n\n## 未通过\n- 看屏幕"
ACCEPT, CHANGE, WRONG = "接受这个结果,就这样往下走", "修改目标", "你判断错了,继续做"


def judged(first: str, *, again: dict[str, Any] | None = None) -> dict[str, Any]:
    """A worker, sent back once if need be, and a judge that finds the second round good."""
    return {
        "judge": {
            "match": {"system": "你是判定者"},
            "lines": [{"either": [{"when": {"opening": "第二轮"}, "say": ACHIEVED}, {"say": first}]}],
        },
        "work": {
            "match": {"system": "MAIN"},
            "lines": ["第一轮", {"say": "第二轮", "expect": {"session": "same", **(again or {})}}],
        },
    }


def guarded(here: Stage, channel: HumanChannel) -> tuple[Workflow, Path]:
    path = here.workspace / "目标.md"
    Goal("做出 X", ["跑 a,看到 b", "跑 b,看到 c"]).write(path)
    model = spec().model
    step = with_goal(Step("干活", spec(), "go"), channel, goal_path=path, model=model)
    return Workflow([step], channel=channel), path


async def test_30_7_goal_loop_manifest_rows(tmp_path: Path) -> None:
    async with stage(tmp_path, **judged(NOT_YET)) as here, here.runtime() as runtime:
        flow, _ = guarded(here, HumanChannel())
        sink = RecordingSink()
        reported: list[str] = []
        context = await flow.run(runtime, on_event=sink, on_step=lambda _step, result: reported.append(result.step))
        work, judge = here.model.asked_of("work"), here.model.asked_of("judge")
        session = work[0].session
        assert [each.session for each in work] == [session, session]
        assert len({session, *(each.session for each in judge)}) == 3  # each verdict a fresh session
        assert work[1].prompt == (
            "上一轮没有达成目标。理由:少了测试\n\n没有通过的检查项:\n- 跑 b,看到 c\n\n"
            "接着做:只补这些缺口,不要从头再来,也不要扩大范围。"
        )
        for part in ("做出 X", "跑 a,看到 b", "第一轮"):
            assert part in judge[0].prompt
        found = rows(here.run_dir)
        spent = {each.line: cost([each]) for each in here.model.tokens if each.part == "work"}
        assert [row["cost_usd"] for row in found[::2]] == pytest.approx(list(spent.values()))
        assert sum(row["cost_usd"] for row in found) == pytest.approx(cost(here.model.tokens))
    assert [(row["step"], row["session_id"]) for row in found] == [
        ("干活", session),
        ("干活·判定#1", judge[0].session),
        ("干活#round2", session),
        ("干活·判定#2", judge[1].session),
    ]
    assert lineage(here.run_dir)["steps"] == {"干活": session}
    assert reported == ["干活#round2"]
    assert (context["_goal_rounds"], context["_verdict"].achieved, context.get("_failed_at")) == (2, True, None)
    assert context["干活"] == "第二轮"
    assert told(sink, "step") == ["step"]


@pytest.mark.parametrize("answer", [ACCEPT, CHANGE, WRONG, "装个虚拟显示器就行"])
async def test_30_8_unreachable(tmp_path: Path, answer: str) -> None:
    answers = {ACCEPT: [ACCEPT], CHANGE: [CHANGE, "skip the screenshot"]}.get(answer, [answer])
    feedback = {CHANGE: "skip the screenshot"}.get(answer, answer)
    async with stage(tmp_path, **judged(UNREACHABLE, again={"prompt": feedback})) as here, here.runtime() as runtime:
        flow, path = guarded(here, HumanChannel())
        played = await play(flow, runtime, answers=answers)
        work, judge = here.model.asked_of("work"), here.model.asked_of("judge")
        if answer == CHANGE:
            assert "(已修改)skip the screenshot" in judge[1].prompt
    context = played.context
    assert played.asks[0].options == [ACCEPT, CHANGE, WRONG]
    assert "没有显示器" in played.asks[0].question
    assert played.ok
    if answer == ACCEPT:
        assert (len(work), len(judge)) == (1, 1)
        assert (context["干活"], context["_verdict"].reason) == ("第一轮", "没有显示器")
    else:
        assert (len(work), len(judge)) == (2, 2)
        assert same_session(*work)
        assert context["干活"] == "第二轮"
    assert ("(已修改)skip the screenshot" in text_of(path)) is (answer == CHANGE)


@pytest.mark.parametrize("settings", [{"timeout_s": 0.05}, {"max_asks": 0}], ids=["timeout", "over quota"])
async def test_30_8_unreachable_and_nobody_there(tmp_path: Path, settings: dict[str, Any]) -> None:
    async with stage(tmp_path, **judged(UNREACHABLE)) as here, here.runtime() as runtime:
        flow, path = guarded(here, HumanChannel(**settings))
        context = await flow.run(runtime)
        assert (len(here.model.asked_of("work")), len(here.model.asked_of("judge"))) == (1, 1)
    assert context["_failed_at"] == "干活"
    assert "没有显示器" in context["_aborted"]
    assert str(path) in context["_aborted"]
    assert [row["step"] for row in rows(here.run_dir)] == ["干活", "干活·判定#1"]


# -- 30.9 ---------------------------------------------------------------------------------------------------------

BRIEF = "## 目标\n做一个 X\n\n## 验收标准\n- 跑 x,看到 y\n\n## 边界\n不碰 z\n\n## 未知与假设\n无"
CHECKS = "".join(f"\n- 看第 {n} 项" for n in range(1, 8))
GOAL = f"## 目标\n做出 X\n\n## 判定清单{CHECKS}"
NEW_GOAL = f"{GOAL}\n- 看代码块高亮"

STARTER: dict[str, Any] = {
    "clarify": {"match": {"system": "你是确认者"}, "lines": [BRIEF]},
    "goal": {"match": {"system": "你是判定者", "opening": "差事 A"}, "lines": [GOAL, NEW_GOAL]},
    "judge": {"match": {"system": "你是判定者"}, "lines": [ACHIEVED]},
    "work": {"match": {"system": "你是协调者"}, "lines": ["做完了", "又做了", "第三次"]},
}

PROCESS = """
import asyncio, sys
from flower import Runtime, starter_flow

async def main():
    workspace, run_dir, ask = sys.argv[1:]
    flow = starter_flow(ask, workspace=workspace, run_dir=run_dir, timeout_s=0)
    runtime = Runtime(workspace=workspace, run_dir=run_dir, workbench=flow.workbench)
    context = await flow.run(runtime, on_event=lambda event: print(event.kind, event.text.split("\\n")[0], flush=True))
    runtime.close()
    sys.exit(context.get("_failed_at") is not None)

asyncio.run(main())
"""


async def process(here: Stage, ask: str, *, stop: Callable[[], Any] | None = None, **env: str) -> tuple[int, list[str]]:
    """Run the starter flow in a process of its own; its exit status, and its events.

    Args:
        stop: awaited beside it; when it returns, the process is killed.
    """
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PROCESS, str(here.workspace), str(here.run_dir), ask),
        env={**os.environ, **env},
        stdout=asyncio.subprocess.PIPE,
    )
    if stop is not None:
        await stop()
        child.send_signal(signal.SIGKILL)
    said, _ = await child.communicate()
    assert child.returncode is not None
    return child.returncode, said.decode().splitlines()


def models(flow: Workflow) -> None:
    """The steps of the starter flow name no model; the model server's prices want one."""
    for step in flow.steps:
        step.spec.model = spec().model


async def test_30_9_second_process_with_words(tmp_path: Path) -> None:
    words = "also highlight code blocks"
    async with stage(tmp_path, **STARTER) as here:
        notes = here.workspace / ".flower" / "notes"
        assert (await process(here, "做一个 X"))[0] == 0
        carried_on = here.model.asked_of()
        code, events = await process(here, "")
        assert code == 0
        assert [event for event in events if event.startswith("step")] == ["step 干活"]
        without = here.model.asked_of("work")[1]
        assert without.prompt == "接着上次的干。先说一句你接下来要做什么,再动手。"
        state = wake_state(here.workspace, run_dir=here.run_dir)
        assert (state["waking"], state["checks"], state["woke"]) == (True, 7, 2)

        flow = starter_flow(words, workspace=here.workspace, run_dir=here.run_dir, timeout_s=0)
        brief = text_of(notes / "需求.md")
        assert brief.endswith(f"\n\n## 唤醒时追加(HH:MM:SS)\n{words}\n")
        async with here.runtime(workbench=flow.workbench) as runtime:
            played = await play(flow, runtime)
        assert played.ok
        assert [(event.text, event.payload) for event in played.sink.of("step")] == [
            ("设定目标", {"index": 2, "total": 3, "resumed": True, "woke": 3}),
            ("干活", {"index": 3, "total": 3, "resumed": True, "woke": 3}),
        ]
        assert played.context["确认需求"].endswith(words)
        assert played.context["_brief"].unknowns.endswith(words)
        goal, work = here.model.asked_of("goal"), here.model.asked_of("work")
        assert same_session(*goal)
        assert same_session(*work)
        assert goal[1].prompt.startswith("差事 A:设定目标。")
        for part in ("做一个 X", "不碰 z", words):  # the full brief again
            assert part in goal[1].prompt
        assert work[2].prompt == (
            f"接着上次的干。人这次说:\n\n{words}\n\n---\n\n判定清单也换了新的,以后照这份判:\n\n{NEW_GOAL}"
        )
        assert text_of(notes / "目标.md").endswith("\n- 看第 7 项\n- 看代码块高亮\n")
        assert [each.part for each in carried_on] == ["clarify", "goal", "work", "judge"]
        assert [each.part for each in here.model.asked_of()[4:]] == ["work", "judge", "goal", "work", "judge"]
        assert len({each.session for each in here.model.asked_of("judge")}) == 3
    assert lineage(here.run_dir) == {
        "workspace": str(here.workspace.resolve()),
        "woke": 3,
        "steps": {
            "确认需求": carried_on[0].session,
            "设定目标": goal[0].session,
            "干活": work[0].session,
        },
    }
    assert [row["step"] for row in rows(here.run_dir)] == [
        *("确认需求", "设定目标", "干活", "干活·判定#1"),
        *("干活", "干活·判定#1"),
        *("设定目标", "干活", "干活·判定#1"),
    ]


# -- 30.10 --------------------------------------------------------------------------------------------------------


@pytest.mark.case("ST-4")
async def test_30_10_killed_in_the_first_step(tmp_path: Path) -> None:
    marker = f"trace-{os.getpid()}"
    look = {"name": "look", "say": "先看一眼。", "call": {"Glob": {"pattern": "*"}}}
    brief = {"name": "brief", "say": BRIEF, "expect": {"session": "same", "history": "做一个 X"}}
    anytime = [{"when": {"prompt": "没做完的需求确认"}, "say": "接着确认。", "then": "due"}]
    clarify = {"match": {"system": "你是确认者"}, "lines": [look, brief], "anytime": anytime}
    async with stage(tmp_path, **{**STARTER, "clarify": clarify}) as here:
        here.model.pause("clarify.brief")

        async def stop() -> None:
            await here.model.asked("clarify.brief", timeout=30)
            session = here.model.asked_of()[0].session
            assert lineage(here.run_dir)["steps"] == {"确认需求": session}
            # The program mirrors its transcript about a tenth of a second later (SDK facts 9).
            store = SqliteSessionStore(here.run_dir / "sessions.db")
            async with asyncio.timeout(10):
                while not store.last_context(project_key_for_directory(str(here.workspace)), session):  # noqa: ASYNC110 - the store of another process tells nobody
                    await asyncio.sleep(0.02)
            store.close()

        code, events = await process(here, "做一个 X", stop=stop, FLOWER_RUN=marker)
        assert code == -signal.SIGKILL
        assert [event for event in events if event.startswith("step")] == ["step 确认需求"]
        async with asyncio.timeout(10):
            while marked(marker):  # noqa: ASYNC110 - nothing tells us when somebody else's child is gone
                await asyncio.sleep(0.05)
        await here.model.settled()  # the request that waited has gone with its program
        here.model.release("clarify.brief")
        before = len(here.model.asked_of())
        assert not (here.run_dir / "manifest.json").exists()
        session = here.model.asked_of()[0].session

        places: dict[str, Any] = {"workspace": here.workspace, "run_dir": here.run_dir}
        assert wake_state(**places)["waking"] is False
        with pytest.raises(ValueError, match="要给一句诉求"):
            starter_flow("", **places)
        flow = starter_flow("做一个 X", **places, clarify_only=True, timeout_s=0)
        async with here.runtime(workbench=flow.workbench) as runtime:
            played = await play(flow, runtime)
        assert played.ok
        assert [(event.text, event.payload) for event in played.sink.of("step")] == [
            ("确认需求", {"index": 1, "total": 1, "resumed": True, "woke": 2})
        ]
        assert here.model.asked_of()[before].prompt == CLARIFY_RESUME
        spent = sum(row["cost_usd"] for row in rows(here.run_dir))
        assert spent == pytest.approx(cost(here.model.tokens), abs=3e-5)  # the killed process's too
        assert same_session(*here.model.asked_of())
    assert played.context["_brief"].goal == "做一个 X"
    assert lineage(here.run_dir)["steps"] == {"确认需求": session}
    assert wake_state(**places)["waking"] is True
