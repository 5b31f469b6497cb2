from __future__ import annotations

import asyncio
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flower import texts
from flower.core import resilience
from flower.core.resilience import Resilience, classify, endpoint, reachable


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FLOWER_LANG", raising=False)
    monkeypatch.delenv("ANTHROPIC_BASE_URL", raising=False)


@pytest.fixture
def free_port() -> int:
    """A port of this machine where nobody listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


# Which kind


@pytest.mark.parametrize("text", [None, "", "something odd", "4001 files", "E500X", "budgie"])
def test_what_says_nothing_is_unknown(text: str | None) -> None:
    assert classify(text) == "unknown"


@pytest.mark.parametrize(
    "text",
    [
        "API Error: 400 bad",
        "401: connection refused",
        "HTTP 403",
        "status=404",
        "Invalid API key",
        "invalid_api_key",
        "invalid-api-key",
        "InvalidApiKey",
        "Authentication failed",
        "Unauthorized",
        "Permission denied",
        "invalid_request_error",
        "Your credit balance is too low",
        "quota exceeded",
        "error_max_budget_usd",
        "error_max_turns",
        "CLINotFoundError",
        "401 timeout",
        "Invalid URL",
        "TypeError: Invalid URL (timeout=5)",
    ],
)
def test_fatal_is_seen_first(text: str) -> None:
    assert classify(text) == "fatal"


@pytest.mark.parametrize(
    "text",
    [
        *("getaddrinfo ENOTFOUND x", "EAI_AGAIN", "read ECONNRESET", "ECONNREFUSED", "ETIMEDOUT", "EPIPE"),
        *("EHOSTUNREACH", "ENETDOWN", "socket hang up", "Fetch failed", "network error", "Connection error."),
        *("Can't reach the API server", "Can\u2019t reach the API server", "429", "HTTP 500", "502", "503", "504"),
        *("API Error: 529", "Overloaded", "rate limit", "rate_limit_error", "Too many requests", "timeout"),
        *("Request timed out", "temporarily unavailable", "Service Unavailable", "Internal Server Error"),
    ],
)
def test_what_passes_by_itself_is_transient(text: str) -> None:
    assert classify(text) == "transient"


# How long


def test_the_numbers_and_the_words_are_the_specified_ones() -> None:
    assert Resilience() == Resilience(
        enabled=True,
        max_attempts=6,
        base_delay=4.0,
        max_delay=120.0,
        probe_timeout=5.0,
        probe_interval=15.0,
        max_offline_wait=3600.0,
        retry_unknown=True,
        resume_prompt=("上一轮在中途被打断,没有跑完。检查一下工作台里已经落盘的东西,从中断处接着做,不要重头来过。"),
    )


def test_a_default_prompt_follows_the_language_spoken_and_a_chosen_one_does_not() -> None:
    built_before = Resilience()
    with texts.speaking("en"):
        assert Resilience().resume_prompt.startswith("The last turn was cut short")
        assert built_before.prompt_to_resume().startswith("The last turn was cut short")
        assert Resilience(resume_prompt="weiter").prompt_to_resume() == "weiter"
    assert built_before.prompt_to_resume().startswith("上一轮在中途被打断")


@given(st.integers(min_value=1, max_value=10**6))
def test_delays_stay_in_their_bounds(attempt: int) -> None:
    middle = {1: 4.0, 2: 8.0, 3: 16.0, 4: 32.0, 5: 64.0}.get(attempt, 120.0)
    assert 0.75 * middle <= Resilience().delay_for(attempt) <= 1.25 * middle


def test_delays_differ_so_that_runs_do_not_come_back_at_once() -> None:
    assert len({Resilience().delay_for(1) for _ in range(20)}) > 10


@pytest.mark.parametrize(
    ("kind", "retry_unknown", "again"),
    [
        ("fatal", True, False),
        ("fatal", False, False),
        ("transient", False, True),
        ("unknown", True, True),
        ("unknown", False, False),
    ],
)
def test_what_is_tried_again(kind: str, retry_unknown: bool, again: bool) -> None:
    assert Resilience(retry_unknown=retry_unknown).should_retry(kind) is again


# Is the endpoint there


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        (None, ("api.anthropic.com", 443)),
        ("", ("api.anthropic.com", 443)),
        ("https://gate.example/v1", ("gate.example", 443)),
        ("http://gate.example", ("gate.example", 80)),
        ("http://gate.example:8080", ("gate.example", 8080)),
        ("gate.example", ("gate.example", 443)),
        ("gate.example:8443/x", ("gate.example", 8443)),
        ("http://[::1]:9", ("::1", 9)),
        ("https://gate.example:none", ("gate.example", 443)),
    ],
)
def test_the_endpoint_is_that_of_the_gateway(
    monkeypatch: pytest.MonkeyPatch, base: str | None, expected: tuple[str, int]
) -> None:
    if base is not None:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", base)
    assert endpoint() == expected


@pytest.mark.parametrize(
    ("host", "port"), [("127.0.0.1", 70_000), ("127.0.0.1", -1), ("127.0.0.1\0", 80), ("a" * 70, 80)]
)
async def test_what_can_be_no_address_is_not_reachable(host: str, port: int) -> None:
    assert await reachable(host, port, 1.0) is False


async def test_a_port_where_nobody_listens_is_not_reachable(free_port: int) -> None:
    assert await reachable("127.0.0.1", free_port) is False


async def test_a_listener_is_reachable_and_hears_nothing() -> None:
    heard: asyncio.Queue[bytes] = asyncio.Queue()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.put_nowait(await reader.read())
        writer.close()

    async with await asyncio.start_server(listen, "127.0.0.1", 0) as server:
        assert await reachable("127.0.0.1", server.sockets[0].getsockname()[1]) is True
        assert await heard.get() == b""


async def test_a_handshake_that_takes_too_long_is_given_up() -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        # Nobody accepts: once the backlog is full, further handshakes are not answered.
        others = [socket.socket() for _ in range(3)]
        try:
            for other in others:
                other.setblocking(False)
                other.connect_ex(full.getsockname())
            assert await reachable("127.0.0.1", full.getsockname()[1], 0.05) is False
        finally:
            for other in others:
                other.close()


async def test_a_network_that_is_there_at_once_is_not_talked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    async with await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        assert await Resilience().wait_online(said.append) is True
    assert said == []


async def test_an_outage_is_told_once_and_its_end_once(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([False, False, False, True])
    probes: list[tuple[str, int, float]] = []

    async def scripted(host: str, port: int, timeout: float) -> bool:
        probes.append((host, port, timeout))
        return next(answers)

    monkeypatch.setattr(resilience, "reachable", scripted)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://gate")
    said: list[str] = []
    assert await Resilience(probe_interval=0, probe_timeout=2.5).wait_online(said.append) is True
    assert said == ["gate:80 不可达,等待恢复(最多 60 分钟)", "gate:80 恢复,继续"]
    assert probes == [("gate", 80, 2.5)] * 4


async def test_nobody_needs_to_listen(monkeypatch: pytest.MonkeyPatch, free_port: int) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", f"http://127.0.0.1:{free_port}")
    assert await Resilience(max_offline_wait=0).wait_online() is False


async def test_waiting_ends_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch, free_port: int) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", f"http://127.0.0.1:{free_port}")
    said: list[str] = []
    began = asyncio.get_running_loop().time()
    assert await Resilience(max_offline_wait=0.05, probe_interval=15).wait_online(said.append) is False
    assert asyncio.get_running_loop().time() - began < 5
    assert said == [f"127.0.0.1:{free_port} 不可达,等待恢复(最多 0 秒)"]
