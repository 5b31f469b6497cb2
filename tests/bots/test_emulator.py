"""The emulator of demo and tests: its starting, its faults, and a look at its page."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import aiohttp
import pytest

from bridge.markup import blocks as markdown
from bridge.model import Button, Card, Tap
from demo import emulator as module
from demo.emulator import EmulatorError, buttons, emulator, installed, shown_text
from demo.screenshot import browser
from tests.fakes.chat_worlds import Heard, emulator_world, listening

CARD = Card(
    summary="Fix the parser",
    body=markdown("**Fix the parser** & write <tests>\n\nWork 2/3"),
    note="4 min 12 s · $0.21",
    buttons=(
        Button(action="hold", label="Stop", style="danger"),
        Button(action="oracle", label="Ask the oracle", form="What do you want to know?"),
    ),
)


def test_without_its_program_the_install_line_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "NODE_MODULES", tmp_path)
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    with pytest.raises(EmulatorError, match=r"not installed: run `npm ci` in the folder demo"):
        installed()


def test_a_machine_for_which_there_is_none_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(platform, "machine", lambda: "arm64")
    with pytest.raises(EmulatorError, match="comes for Linux on x64 only; this is darwin on arm64"):
        installed()


@pytest.mark.real
async def test_a_port_that_is_taken_is_said_with_another() -> None:
    async with emulator() as first:
        port = int(first.url.rpartition(":")[2])
        with pytest.raises(EmulatorError, match=rf"port {port} is taken: choose another one"):
            async with emulator(port=port):
                pass


@pytest.mark.real
async def test_a_program_that_ends_at_once_is_quoted(tmp_path: Path) -> None:
    program = tmp_path / "local-slack"
    program.write_text("#!/bin/sh\necho no such switch >&2\nexit 3\n")
    program.chmod(0o755)
    with pytest.raises(EmulatorError, match="ended at once: no such switch"):
        async with emulator(binary=program):
            pass


@pytest.mark.real
async def test_nothing_is_left_of_it() -> None:
    async with emulator() as slack:
        pid, url = slack.pid, slack.url
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises(aiohttp.ClientError):
        async with aiohttp.ClientSession() as session, session.get(url):
            pass


@pytest.mark.real
async def test_a_button_that_is_not_there_is_named_with_those_that_are() -> None:
    async with emulator_world() as world:
        post, _ = await world.chat.post(world.place, CARD, once="k")
        with pytest.raises(LookupError, match=r"no button 'Go' .* there are: 'Stop', 'Ask the oracle'"):
            await world.slack.press("alice", "general", post.key.rpartition("/")[2], "Go")
        with pytest.raises(LookupError, match="no form is open"):
            await world.slack.submit("alice", "x")


@pytest.mark.real
async def test_a_form_that_nobody_opens_is_waited_for_in_vain() -> None:
    async with emulator() as slack:
        with pytest.raises(EmulatorError, match="no form was opened within 0 s"):
            await slack.wait_for_form(within=0.1)


@pytest.mark.real
async def test_a_form_that_was_not_kept_shows_why_and_can_be_sent_again() -> None:
    async with emulator_world() as world:
        heard = Heard()
        async with listening(world, heard):
            post, _ = await world.chat.post(world.place, CARD, once="k")
            await world.slack.press("bob", "general", post.key.rpartition("/")[2], "oracle")
            assert (await world.slack.wait_for_form())["blocks"][0]["label"]["text"] == "What do you want to know?"
            heard.keeps = False
            assert "the state store does not answer" in await world.slack.submit("bob", "how far?")
            heard.keeps = True
            assert await world.slack.submit("bob", "how far?") == ""
            (tap,) = await heard.wait_for(1)
    assert isinstance(tap, Tap)
    assert (tap.action, tap.text, tap.author.id) == ("oracle", "how far?", "T01DEMO/U02BOB")


@pytest.mark.real
async def test_what_a_reader_sees_can_be_asked() -> None:
    async with emulator_world() as world:
        post, _ = await world.chat.post(world.place, CARD, once="k")
        message = await world.slack.message("general", post.key.rpartition("/")[2])
        assert shown_text(message).startswith("*Fix the parser* & write <tests>")
        assert [button["text"]["text"] for button in buttons(message)] == ["Stop", "Ask the oracle"]
        (call,) = await world.slack.calls("chat.postMessage")
        assert call["metadata"]["event_payload"] == {"once": "k"}


@pytest.mark.real
@pytest.mark.timeout(60)
@pytest.mark.parametrize("phone", [False, True])
async def test_the_page_shows_a_thread_and_nothing_runs_over_its_edge(phone: bool) -> None:
    async with emulator_world() as world, browser() as chromium:
        post, _ = await world.chat.post(world.place, CARD, once="k/card")
        await world.chat.post(post.thread, Card(summary="step 1 of 3"), once="k/line")
        picture = await chromium.picture(world.slack.thread_url("general", post.key.rpartition("/")[2]), phone=phone)
    assert picture.png.startswith(b"\x89PNG")
    assert "Fix the parser" in picture.text
    assert "step 1 of 3" in picture.text
    assert "Ask the oracle" in picture.text
    assert picture.too_wide == ()


@pytest.mark.real
@pytest.mark.timeout(60)
async def test_what_runs_over_the_edge_of_the_page_is_seen() -> None:
    async with emulator_world() as world, browser() as chromium:
        post, _ = await world.chat.post(world.place, Card(summary="x" * 290), once="k/card")
        await world.chat.post(post.thread, Card(summary="step 1 of 3"), once="k/line")
        picture = await chromium.picture(world.slack.thread_url("general", post.key.rpartition("/")[2]), phone=True)
    assert picture.too_wide != ()
