"""The environment of the scripted model: nothing inherited, everything put back."""

from __future__ import annotations

from pathlib import Path

from flower.testing import inherited, scripted_env, scripted_surroundings

INHERITED = {
    "ANTHROPIC_API_KEY": "sk-real",
    "CLAUDECODE": "1",
    "CLAUDE_CONFIG_DIR": "/home/me/.claude",
    "AWS_PROFILE": "me",
    "GOOGLE_APPLICATION_CREDENTIALS": "x",
    "OTEL_EXPORTER": "x",
    "HTTPS_PROXY": "http://proxy",
    "no_proxy": "x",
    "MCP_TOOL_TIMEOUT": "3000",
    "FLOWER_LANG": "zh",
    "DISABLE_AUTO_COMPACT": "1",
}


def test_what_would_reach_the_program_is_named() -> None:
    assert inherited({**INHERITED, "PATH": "/bin", "LANG": "C"}) == sorted(INHERITED)


def test_the_program_gets_a_home_and_a_key_of_its_own(tmp_path: Path) -> None:
    env = scripted_env("http://127.0.0.1:1", tmp_path / "home")
    assert env["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:1"
    assert env["HOME"] == str(tmp_path / "home")
    assert env["CLAUDE_CONFIG_DIR"].startswith(env["HOME"])
    assert env["DISABLE_TELEMETRY"] == "1"
    assert not env["ANTHROPIC_API_KEY"].startswith("sk-")


def test_the_surroundings_are_put_back(tmp_path: Path) -> None:
    environ = {**INHERITED, "PATH": "/bin"}
    with scripted_surroundings("http://127.0.0.1:1", tmp_path, environ=environ) as added:
        assert environ == {"PATH": "/bin", **added}
        environ["LEFT"] = "behind"
    assert environ == {**INHERITED, "PATH": "/bin"}
