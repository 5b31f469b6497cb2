"""The program `flower` in a real terminal (tmux), with the real SDK and its program, against a scripted model."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shlex
import signal
import sqlite3
import time
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.flower.cli.stories import ASK, BRIEF, CLARIFY, INBOX, parts, playing
from tests.flower.cli.tmux import MODES, PATIENCE, PROGRAM, RESTORED, ROOT, terminal

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]

SAY, ANSWER, WHY = r"\(type = add a wish", r"Your answer \(Enter = skip", r"Interrupted\. What do you want"
GO = ("primes",)
DONE = {"say": "All primes are printed."}


def manifest(workspace: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((workspace / "runs" / "manifest.json").read_text(encoding="utf-8"))
    return rows


def lineage(workspace: Path) -> dict[str, str]:
    steps: dict[str, str] = json.loads((workspace / "runs" / "lineage.json").read_text(encoding="utf-8"))["steps"]
    return steps


def pid_of(workspace: Path) -> int:
    """The program's process: the Python that runs in this workspace."""
    found = [
        int(place.name) for place in Path("/proc").iterdir() if place.name.isdigit() and _runs_in(place, workspace)
    ]
    assert len(found) == 1, found
    return found[0]


async def kept(workspace: Path, *, sessions: int) -> None:
    """Wait until the store knows so many sessions: it trails the model by a tenth of a second (SDK facts 9)."""
    until = time.monotonic() + PATIENCE
    with contextlib.closing(sqlite3.connect(workspace / "runs" / "sessions.db")) as store:
        while (known := store.execute("SELECT count(*) FROM summaries").fetchone()[0]) < sessions:
            assert time.monotonic() < until, f"{known} of {sessions} sessions are in the store after {PATIENCE:.0f} s"
            await asyncio.sleep(0.05)


async def gone(pid: int) -> None:
    """Wait until a process has ended."""
    until = time.monotonic() + PATIENCE
    with contextlib.suppress(ProcessLookupError):
        while True:
            os.kill(pid, 0)
            assert time.monotonic() < until, f"process {pid} still runs after {PATIENCE:.0f} s"
            await asyncio.sleep(0.05)


def _runs_in(place: Path, workspace: Path) -> bool:
    try:
        words = (place / "cmdline").read_bytes().split(b"\0")
        return words[1:3] == [b"-m", b"flower.cli"] and (place / "cwd").readlink() == workspace
    except OSError:
        return False


async def test_a_whole_run_answered_by_a_digit_with_mail_and_two_side_questions(tmp_path: Path) -> None:
    work = [
        {"name": "looks", "say": "I begin.", "call": {INBOX: {}}},
        {"name": "tells", "expect": {"result": "and sort them"}, "say": "All primes are printed, sorted."},
    ]
    async with playing(tmp_path, parts(work)) as play:
        with play.flower(*GO) as window:
            await window.wait_for(r"How many primes\?")
            await window.wait_for(ANSWER)
            async with play.model.paused("work.looks"):
                window.enter("2")
                await play.model.asked("work.looks", timeout=60)
                await window.wait_for(SAY)
                window.enter("and sort them")
                await window.wait_for(r"\+ ")
                window.enter("?how far")
                await window.wait_for(r"It has found seven primes so far")
                window.enter("？到哪了")
                await window.wait_for(r"It has found seven primes so far", times=2)
            shown = await window.wait_for(RESTORED)
        assert "exit: 0" in shown
        assert "Total cost $" in shown
        asked = [each.prompt for each in play.model.asked_of("aside")]
    assert [("Question: how far" in prompt, "Question: 到哪了" in prompt) for prompt in asked[:2]] == [
        (True, False),
        (False, True),
    ]
    notes = play.workspace / ".flower" / "notes"
    brief = (notes / "brief.md").read_text(encoding="utf-8")
    assert "Print a hundred primes" in brief
    assert "and sort them" in brief
    assert "how far" not in brief
    assert [row["step"] for row in manifest(play.workspace)][:4] == ["Clarify", "Goal", "Work", "Work·verdict#1"]
    assert len(json.loads((play.workspace / "runs" / "aside" / "manifest.json").read_text())) == 2
    assert "Aside" not in lineage(play.workspace)


async def test_what_is_typed_when_a_question_comes_stays_and_answers_it(tmp_path: Path) -> None:
    async with playing(tmp_path, parts([DONE])) as play:
        with play.flower(*GO, "--clarify-only") as window:
            async with play.model.paused("clarify.asks"):
                await window.wait_for(SAY)
                window.type("twenty-")
                await window.wait_for(r"> twenty-")
            await window.wait_for(r"How many primes\?")
            await window.wait_for(ANSWER + r".*> twenty-")
            window.enter("three")
            shown = await window.wait_for(RESTORED)
        assert "exit: 0" in shown
        (brief,) = play.model.asked_of("clarify.brief")
        assert brief.result == "twenty-three"


async def test_enter_alone_skips_the_question(tmp_path: Path) -> None:
    skipped = [
        {**parts([])["clarify"]["lines"][0]},
        {"expect": {"result": "skipped"}, "say": BRIEF, "take": {"result": r"/(?P<count>.)/"}},
    ]
    async with playing(tmp_path, parts([DONE], clarify=skipped)) as play:
        with play.flower(*GO, "--clarify-only") as window:
            await window.wait_for(ANSWER)
            window.press("Enter")
            assert "exit: 0" in await window.wait_for(RESTORED)


async def test_control_c_once_with_words_cuts_at_a_message_and_goes_on_in_the_session(tmp_path: Path) -> None:
    work = [
        {"name": "looks", "say": "I begin.", "call": {INBOX: {}}},
        {"name": "more", "say": "I go on.", "call": {INBOX: {}}},
        DONE,
    ]
    async with playing(tmp_path, parts(work)) as play:
        with play.flower(*GO) as window:
            await window.wait_for(ANSWER)
            async with play.model.paused("work.more"):
                window.enter("ten")
                await play.model.asked("work.more", timeout=60)
                window.press("C-c")
                await window.wait_for(WHY)
                window.enter("not the Makefile")
                await window.wait_for("This turn was interrupted")
            shown = await window.wait_for(RESTORED)
        assert "exit: 0" in shown
        heard = [each for each in play.model.asked_of("work") if "not the Makefile" in each.prompt]
        assert len(heard) == 1
    rows = [row for row in manifest(play.workspace) if row["step"] == "Work"]
    assert [(row["ok"], row["attempts"], row["resumed"]) for row in rows] == [(True, 1, True)]


async def test_words_of_an_interrupt_do_not_wait_for_a_question_to_be_answered(tmp_path: Path) -> None:
    story = parts([DONE])
    story["clarify"]["anytime"] = []  # it asks again
    async with playing(tmp_path, story) as play:
        with play.flower(*GO, "--clarify-only") as window:
            await window.wait_for(ANSWER)
            window.type("2")
            await window.wait_for(r"> 2")
            window.press("C-c")
            await window.wait_for(WHY)
            window.enter("make it odd")
            await window.wait_for("going on with your words")
            await window.wait_for(r"How many primes\?", times=2)
            await window.wait_for(ANSWER + ".*> 2")
            window.press("Enter")
            shown = await window.wait_for(RESTORED)
        assert "exit: 0" in shown
        assert "is withdrawn with this turn" in " ".join(shown.split())
        assert "ended with an error" not in shown
        heard = [each.prompt for each in play.model.asked_of("clarify") if "make it odd" in each.prompt]
        assert heard
        assert not any("2make it odd" in prompt for prompt in heard)
        (brief,) = play.model.asked_of("clarify.brief")
        assert brief.result == "a hundred"


async def test_a_clarification_that_was_ended_is_gone_on_with_by_enter_alone(tmp_path: Path) -> None:
    async with playing(tmp_path, parts([DONE]), strict=False) as play:
        with play.flower(*GO, "--clarify-only") as window:
            await window.wait_for(ANSWER)
            await kept(play.workspace, sessions=1)
            window.press("C-c")
            await window.wait_for(WHY)
            window.press("C-c")
            shown = await window.wait_for(RESTORED)
        assert "exit: 130" in shown
        assert "Ended. flower in this directory goes on where it was." in shown
        assert "ended with an error" not in shown
        session = lineage(play.workspace)["Clarify"]
        with play.flower("--clarify-only") as window:
            await window.wait_for(r"Go on\? Enter = carry on")
            window.press("Enter")
            await window.wait_for(ANSWER)
            window.enter("ten")
            shown = await window.wait_for(RESTORED)
        assert "exit: 0" in shown
        assert "still clarifying" in shown
        assert lineage(play.workspace)["Clarify"] == session


async def test_control_c_does_not_reach_the_program_while_its_tool_runs(tmp_path: Path) -> None:
    """The kernel would send it to both, and the turn would be over before a person has said why."""
    clarify = [
        {"name": "runs", "say": "I look.", "call": {"Read": {"file_path": "/etc/hostname"}}},
        {"name": "asks", "call": {ASK: {"question": "How many primes?"}}},
        {"name": "brief", "expect": {"result": r"/(?P<count>.+)/"}, "say": BRIEF},
    ]
    async with playing(tmp_path, parts([DONE], clarify=clarify)) as play:
        with play.flower(*GO, "--clarify-only") as window:
            await window.wait_for(ANSWER)
            window.press("C-c")
            await window.wait_for(WHY)
            # The question still waits: neither the run nor its program was touched.
            assert len(play.model.asked_of("clarify")) == 2
            window.press("Enter")
            await window.wait_for("1 questions? still waits?|questions still wait")
            await window.wait_for(ANSWER)
            window.enter("seven")
            shown = await window.wait_for(RESTORED)
        assert "exit: 0" in shown


async def test_control_c_twice_ends_with_130_and_the_next_start_goes_on(tmp_path: Path) -> None:
    work = [{"name": "looks", "say": "I begin.", "call": {INBOX: {}}}, {"name": "more", "say": "Done."}]
    async with playing(tmp_path, parts(work), strict=False) as play:
        with play.flower(*GO) as window:
            await window.wait_for(ANSWER)
            async with play.model.paused("work.more"):
                window.enter("ten")
                await play.model.asked("work.more", timeout=60)
                await kept(play.workspace, sessions=3)
                window.press("C-c")
                await window.wait_for(WHY)
                window.type("half a sen")
                window.press("C-c")
                shown = await window.wait_for(RESTORED)
        assert "exit: 130" in shown
        assert "Traceback" not in shown
        session = lineage(play.workspace)["Work"]
        with play.flower() as window:
            await window.wait_for(r"Go on\? Enter = carry on")
            window.press("Enter")
            shown = await window.wait_for(RESTORED)
        assert "exit: 0" in shown
        assert re.search(r"<- In .*going on requirement settled · goal of 2.* · start no\. 2", " ".join(shown.split()))
        assert lineage(play.workspace)["Work"] == session


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
async def test_a_signal_writes_the_accounts_and_the_next_start_goes_on(tmp_path: Path, number: signal.Signals) -> None:
    work = [{"name": "looks", "say": "I begin.", "call": {INBOX: {}}}, {"name": "more", "say": "Done."}]
    async with playing(tmp_path, parts(work), strict=False) as play:
        with play.flower(*GO) as window:
            await window.wait_for(ANSWER)
            async with play.model.paused("work.more"):
                window.enter("ten")
                await play.model.asked("work.more", timeout=60)
                await kept(play.workspace, sessions=3)
                os.kill(pid_of(play.workspace), number)
                shown = await window.wait_for(RESTORED)
        assert f"exit: {128 + number}" in shown
        assert [(row["step"], row["error"]) for row in manifest(play.workspace)][-1] == ("Work", "killed-by-signal")
        session = lineage(play.workspace)["Work"]
        with play.flower("go") as window:
            await window.wait_for(r"Go on\? Enter = carry on")
            window.press("Enter")
            shown = await window.wait_for(RESTORED)
        assert "exit: 0" in shown
        assert lineage(play.workspace)["Work"] == session


async def test_a_window_that_is_closed_ends_the_run_with_its_accounts_written(tmp_path: Path) -> None:
    async with playing(tmp_path, parts([DONE])) as play:
        with play.flower(*GO) as window:
            await window.wait_for(ANSWER)
            program = pid_of(play.workspace)
        with anyio.fail_after(20):
            await gone(program)
    assert [(row["step"], row["error"]) for row in manifest(play.workspace)] == [("Clarify", "killed-by-signal")]


async def test_suspended_the_terminal_is_given_back_and_taken_again(tmp_path: Path) -> None:
    async with playing(tmp_path, parts([DONE])) as play:
        shell = ["bash", "--norc", "--noprofile", "-i"]
        with terminal(shell, env=play.env, cwd=play.workspace) as window:
            window.enter(shlex.join([*PROGRAM, *GO, "--clarify-only"]))
            await window.wait_for(ANSWER)
            window.type("se")
            await window.wait_for("> se")
            window.press("C-z")
            await window.wait_for("Stopped")
            window.enter(MODES)
            await window.wait_for(RESTORED)
            window.enter("fg")
            await window.wait_for(ANSWER + ".*> se")
            window.enter("ven")
            await window.wait_for("Total cost")
            window.enter("exit")
            assert "exit: 0" in await window.wait_for("exit: ")
        (brief,) = play.model.asked_of("clarify.brief")
        assert brief.result == "seven"


async def test_control_d_declines_the_question_and_ends_the_reading(tmp_path: Path) -> None:
    skipped = [
        {**parts([])["clarify"]["lines"][0]},
        {"expect": {"result": "the input was closed"}, "say": BRIEF, "take": {"result": r"/(?P<count>.)/"}},
    ]
    async with playing(tmp_path, parts([DONE], clarify=skipped)) as play:
        with play.flower(*GO, "--clarify-only") as window:
            await window.wait_for(ANSWER)
            window.press("C-d")
            assert "exit: 0" in await window.wait_for(RESTORED)


async def test_wide_characters_are_typed_deleted_and_sent(tmp_path: Path) -> None:
    async with playing(tmp_path, parts([DONE])) as play:
        with play.flower(*GO, "--clarify-only") as window:
            await window.wait_for(ANSWER)
            window.type("一百个质数")
            window.press("BSpace", "BSpace", "Left")
            window.type("多")
            await window.wait_for("> 一百多个")
            window.press("Enter")
            assert "exit: 0" in await window.wait_for(RESTORED)
        (brief,) = play.model.asked_of("clarify.brief")
        assert brief.result == "一百多个"


async def test_at_fifty_columns_no_line_is_broken_by_the_terminal(tmp_path: Path) -> None:
    long = "This sentence is a good deal longer than fifty columns, so that it has to be broken somewhere. " * 3
    clarify = [
        {"name": "asks", "say": long, "call": {ASK: {"question": long, "options": [long, "ten"]}}},
        {"name": "brief", "expect": {"result": r"/(?P<count>.+)/"}, "say": BRIEF},
    ]
    async with playing(tmp_path, parts([DONE], clarify=clarify)) as play:
        with play.flower(*GO, "--clarify-only", columns=50) as window:
            await window.wait_for("Your answer")
            window.type("x" * 120)
            await window.wait_for("xxxxxxxxxx")
            # Joined again where the terminal itself broke a line, the text has the same lines: it broke none.
            assert window._tmux("capture-pane", "-p", "-J", "-t", "0").split() == window.screen().split()
            window.resize(100)
            window.resize(60)
            window.press("C-u")
            window.enter("2")
            assert "exit: 0" in await window.wait_for(RESTORED)
        (brief,) = play.model.asked_of("clarify.brief")
        assert brief.result == "ten"


async def test_escape_sequences_of_a_model_reach_no_terminal(tmp_path: Path) -> None:
    evil = "\x1b]0;OWNED\x07\x1b[2J\x1b[31mred\x1b[0m \x1b]52;c;ZXZpbA==\x07\x1b[999Bbelow\x00\x9b2Kend"
    clarify = [
        {"name": "asks", "say": evil, "call": {ASK: {"question": f"{evil}?", "options": [evil, "ten"]}}},
        {"name": "brief", "expect": {"result": r"/(?P<count>.+)/"}, "say": BRIEF},
    ]
    async with playing(tmp_path, parts([DONE], clarify=clarify)) as play:
        with play.flower(*GO, "--clarify-only") as window:
            before = window._tmux("display-message", "-p", "-t", "0", "#{pane_title}")
            await window.wait_for("Your answer")
            shown = window.screen()
            assert "red belowend" in shown
            assert "Clarify" in shown  # the screen was not cleared
            assert window._tmux("display-message", "-p", "-t", "0", "#{pane_title}") == before
            window.enter("2")
            assert "exit: 0" in await window.wait_for(RESTORED)


async def test_once_runs_one_agent_and_reads_nothing(tmp_path: Path) -> None:
    async with playing(tmp_path, {"main": {"lines": ["Hello from once."]}}) as play:
        with play.flower("once", "say hello", "-i", "Be brief.", "-t", "Read") as window:
            shown = await window.wait_for(RESTORED)
        assert "exit: 0" in shown
        assert "Hello from once." in shown
        assert "Total cost" not in shown
    assert [(row["step"], row["ok"]) for row in manifest(play.workspace)] == [("ad-hoc", True)]
    assert not (play.workspace / "runs" / "lineage.json").exists()


FLOW = """
from flower import AgentSpec, HumanChannel, Step, Workflow

def main():
    channel = HumanChannel()
    spec = AgentSpec("teller", "You tell.", mcp_servers=channel.mcp_servers(), allowed_tools=[channel.tool_name])
    return Workflow([Step("tell", spec, "Tell me.")], channel=channel)
"""


async def test_run_takes_a_flow_file(tmp_path: Path) -> None:
    lines = [{"call": {ASK: {"question": "Shall I?"}}}, {"expect": {"result": "please"}, "say": "Once upon a time."}]
    async with playing(tmp_path, {"main": {"lines": lines}}) as play:
        (play.workspace / "myflow.py").write_text(FLOW, encoding="utf-8")
        with play.flower("run", "myflow.py:main") as window:
            await window.wait_for(ANSWER)
            window.enter("please")
            shown = await window.wait_for(RESTORED)
        assert "exit: 0" in shown
        assert "Once upon a time." in shown
    assert list(lineage(play.workspace)) == ["tell"]


async def test_a_first_start_asks_for_credentials_and_never_shows_the_token(tmp_path: Path) -> None:
    async with playing(tmp_path, {"main": {"lines": ["Hello."]}}) as play:
        env = {key: play.env[key] for key in ("FLOWER_LANG", "FLOWER_NO_UPDATE")}
        home = tmp_path / "empty"
        home.mkdir()
        bare = type(play)(model=play.model, home=play.home, env={**env, "HOME": str(home)})
        with bare.flower("once", "hello") as window:
            await window.wait_for("First time here")
            await window.wait_for(r"API key or token \(not shown")
            window.enter("gateway-token-123")
            await window.wait_for("Address of the gateway")
            window.enter(play.model.url)
            await window.wait_for("Model")
            window.enter("claude-sonnet-5-5")
            await window.wait_for("Context window in tokens")
            window.enter("150000")
            shown = await window.wait_for(RESTORED)
        assert "exit: 0" in shown
        assert "+ Stored:" in shown
        assert "Hello." in shown
        assert "gateway-token-123" not in shown
    kept = home / ".config" / "flower" / ".env"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert kept.read_text(encoding="utf-8").splitlines() == [
        "ANTHROPIC_AUTH_TOKEN=gateway-token-123",
        "ANTHROPIC_API_KEY=",
        f"ANTHROPIC_BASE_URL={play.model.url}",
        "ANTHROPIC_MODEL=claude-sonnet-5-5",
        "ANTHROPIC_DEFAULT_OPUS_MODEL=claude-sonnet-5-5",
        "ANTHROPIC_DEFAULT_SONNET_MODEL=claude-sonnet-5-5",
        "FLOWER_WINDOW=150000",
    ]


async def test_without_a_network_it_starts_all_the_same_and_can_be_ended(tmp_path: Path) -> None:
    async with playing(tmp_path, parts([DONE])) as play:
        with play.flower(*GO, ANTHROPIC_BASE_URL="http://127.0.0.1:9", FLOWER_NO_PROBE="") as window:
            await window.wait_for(r"\(no answer to a first probe")
            await window.wait_for("cannot be reached, waiting for it")
            window.press("C-c")
            await window.wait_for(WHY)
            window.press("C-c")
            shown = await window.wait_for(RESTORED)
        assert "exit: 130" in shown
        assert "Traceback" not in shown
        assert "Fatal error" not in shown  # the SDK logs it, the event has told it
    assert [row["step"] for row in manifest(play.workspace)] == ["Clarify"]


async def test_a_credential_that_is_refused_on_the_way_is_asked_for_at_the_end(tmp_path: Path) -> None:
    refused = {"status": 401, "type": "authentication_error", "message": "invalid x-api-key", "times": "always"}
    clarify = [{"name": "asks", "say": "never said", "fail": refused}]
    async with playing(tmp_path, parts([DONE], clarify=clarify), strict=False) as play:
        with play.flower(*GO) as window:
            await window.wait_for(r"API key or token \(not shown")
            window.enter("another-token")
            for question in ("Address of the gateway", r"Model \(", "Context window"):
                await window.wait_for(question)
                window.press("Enter")
            shown = " ".join((await window.wait_for(RESTORED)).split())
        assert "Run the same command again" in shown
        assert "another-token" not in shown
        assert "Stopped at step 'Clarify' exit: 1" in shown
    kept = tmp_path / "home" / ".config" / "flower" / ".env"
    lines = kept.read_text(encoding="utf-8").splitlines()
    assert lines[:2] == ["ANTHROPIC_AUTH_TOKEN=another-token", "ANTHROPIC_API_KEY="]
    assert f"ANTHROPIC_BASE_URL={play.model.url}" in lines  # Enter keeps it


async def test_in_the_background_the_keys_belong_to_others(tmp_path: Path) -> None:
    async with playing(tmp_path, parts([DONE])) as play:
        shell = ["bash", "--norc", "--noprofile", "-i"]
        with terminal(shell, env=play.env, cwd=play.workspace) as window:
            window.enter(shlex.join([*PROGRAM, *GO, "--clarify-only"]) + " &")
            await window.wait_for(r"How many primes\?")
            window.enter("echo my-own-$((40+2))")
            await window.wait_for("my-own-42")
            assert len(play.model.asked_of("clarify")) == 1
            window.enter("fg")
            await window.wait_for(ANSWER)
            window.enter("2")
            await window.wait_for("Total cost")
            window.enter("exit")
            assert "exit: 0" in await window.wait_for("exit: ")
        (brief,) = play.model.asked_of("clarify.brief")
        assert brief.result == "a hundred"


async def test_two_runs_in_one_terminal_do_not_tear_each_others_lines(tmp_path: Path) -> None:
    lines = ["\n\n".join(f"{number} " + "=" * 60 for number in range(40))]
    async with playing(tmp_path, {"main": {"lines": lines}}) as play:
        one = shlex.join([*PROGRAM, "once", "tell", "-r"])
        with terminal(["bash", "-c", f"{one} a & {one} b & wait"], env=play.env, cwd=play.workspace) as window:
            shown = await window.wait_for(RESTORED)
        told = re.findall(r"^[* ] (\d+) ={60}$", shown, re.MULTILINE)
        assert sorted(told, key=int) == [str(number) for number in range(40) for _ in range(2)]


async def test_without_a_terminal_it_runs_through_and_says_so(tmp_path: Path) -> None:
    unasked = [
        CLARIFY[0],
        {"expect": {"result": "Nobody answered"}, "take": {"result": "/(?P<count>.)/"}, "say": BRIEF},
    ]
    async with playing(tmp_path, parts([DONE], clarify=unasked)) as play:
        done = await asyncio.create_subprocess_exec(
            *(*PROGRAM, *GO, "--timeout", "0"),
            env={**os.environ, "PYTHONPATH": str(ROOT), **play.env},
            cwd=play.workspace,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await done.communicate()
    assert (done.returncode, err) == (0, b"")
    assert b"Total cost $" in out
    assert b"\x1b" not in out


@pytest.mark.parametrize("piped", [b"", b"1\n2\n"])
async def test_where_the_input_ends_at_once_it_ends_by_itself(tmp_path: Path, piped: bytes) -> None:
    unasked = [
        CLARIFY[0],
        {"expect": {"result": "Nobody answered"}, "take": {"result": "/(?P<count>.)/"}, "say": BRIEF},
    ]
    async with playing(tmp_path, parts([DONE], clarify=unasked)) as play:
        done = await asyncio.create_subprocess_exec(
            *(*PROGRAM, *GO),
            env={**os.environ, "PYTHONPATH": str(ROOT), **play.env},
            cwd=play.workspace,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await done.communicate(piped)
    assert (done.returncode, err) == (0, b"")
    assert out.count(b"! The input is closed and nobody can answer any more") == 1


async def test_output_into_a_pipe_leaves_the_input_line_on_the_terminal(tmp_path: Path) -> None:
    async with playing(tmp_path, parts([DONE])) as play:
        piped = f"set -o pipefail; {shlex.join([*PROGRAM, *GO, '--clarify-only'])} | tee log; exit $?"
        with terminal(["bash", "-c", piped], env=play.env, cwd=play.workspace) as window:
            await window.wait_for(ANSWER)
            window.type("sev")
            await window.wait_for("> sev")
            window.enter("en")
            shown = await window.wait_for(RESTORED)
        assert "exit: 0" in shown
        log = (play.workspace / "log").read_text(encoding="utf-8")
        assert "How many primes?" in log
        assert "Your answer" not in log
        assert "\x1b" not in log
        (brief,) = play.model.asked_of("clarify.brief")
        assert brief.result == "seven"


async def test_killed_while_a_token_is_typed_the_echo_comes_back(tmp_path: Path) -> None:
    async with playing(tmp_path, {"main": {"lines": ["Hello."]}}) as play:
        with play.flower("setup") as window:
            await window.wait_for(r"API key or token \(not shown")
            window.type("secret")
            os.kill(pid_of(play.workspace), signal.SIGTERM)
            shown = await window.wait_for(RESTORED)
        assert "exit: 143" in " ".join(shown.split())
        assert not (tmp_path / "home" / ".config" / "flower").exists()
