"""A first test of a workflow, from nothing: no account, no network, no cost. Copy it and put your own workflow in.

pip install '.[testing]' pytest         # in a checkout of flower
pytest examples/test_greeting.py
"""

from pathlib import Path

import pytest

from flower import AgentSpec, HumanChannel, Runtime, Step, Workflow
from flower.testing import ScriptedModel, play, read_story, scripted_surroundings


def greeting() -> Workflow:
    """Return what is tested. Yours lives in a module of its own."""
    channel = HumanChannel()
    greeter = AgentSpec(
        "Greeter",
        "You greet people.",
        allowed_tools=["Write", channel.tool_name],
        mcp_servers=channel.mcp_servers(),
    )
    return Workflow([Step("Greet", greeter, "Ask for a name and write a greeting into hello.txt.")], channel=channel)


# What the model will say, line by line. Its tools really run, in the real program.
STORY = {
    "story": "A greeting",
    "parts": {
        "main": {
            "lines": [
                {"call": {"mcp__human__ask": {"question": "Whom do I greet?"}}},
                {
                    "take": {"result": "/(?P<name>.+)/"},
                    "call": {"Write": {"file_path": "${workspace}/hello.txt", "content": "Hello, ${name}!"}},
                },
                {"expect": {"error": False}, "say": "It is written."},
            ]
        }
    },
}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.anyio  # anyio's pytest plugin comes with the SDK
async def test_it_greets_whoever_was_named(tmp_path: Path) -> None:
    async with ScriptedModel(read_story(STORY)) as model:  # fails at its end if the story did not fit
        with scripted_surroundings(model, tmp_path / "home"):
            runtime = Runtime(workspace=tmp_path / "work", run_dir=tmp_path / "runs")
            try:
                played = await play(greeting(), runtime, answers=["Ada"])
            finally:
                runtime.close()
    assert played.ok
    assert [ask.state for ask in played.asks] == ["answered"]
    assert (tmp_path / "work" / "hello.txt").read_text(encoding="utf-8") == "Hello, Ada!"
