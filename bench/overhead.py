"""Wall time of a scripted flow through flower's `Runtime` beside the bare SDK client, in one run, interleaved (R14).

Both ask the model the same: the same system prompt, the same tools on offer, the same answers. What differs is what
flower does: its start script, hooks, session store, accounts. `lean` is a bare client that offers one tool and a system
prompt of two words, for whoever wants to know what the program's own prompt costs.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from claude_agent_sdk import AssistantMessage, ClaudeAgentOptions, ClaudeSDKClient, ResultMessage, TextBlock

from flower import AgentSpec, Runtime, normalize
from flower.core.agent import OFFERED
from flower.core.outfit import MANNERS, QUIET
from flower.testing import ScriptedModel, read_story, scripted_surroundings

PAIRS = 15
MESSAGES = 20_000
CALLS = 6
MODEL = "claude-haiku-5-5"
STORY = {
    "story": "overhead",
    "parts": {
        "main": {
            "lines": [
                *({"call": {"Glob": {"pattern": f"*.{number}"}}} for number in range(CALLS)),
                {"say": "Done."},
            ]
        }
    },
}


async def measure() -> dict[str, float]:
    """Return `ratio` (median of the pairs, flower over bare), its quartiles, `lean_ratio`, and `normalize_us`."""
    ratios: list[float] = []
    lean: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        async with ScriptedModel(read_story(STORY)) as model:
            with scripted_surroundings(model, Path(folder) / "home"):
                for number in range(PAIRS):
                    place = Path(folder) / str(number)
                    bare, ours = await _bare(place / "bare", same=True), await _flower(place / "ours")
                    ratios.append(ours / bare)
                    lean.append(ours / await _bare(place / "lean", same=False))
    low, middle, high = statistics.quantiles(ratios, n=4)
    return {
        "ratio": round(middle, 3),
        "ratio_q1": round(low, 3),
        "ratio_q3": round(high, 3),
        "lean_ratio": round(statistics.median(lean), 3),
        "pairs": PAIRS,
        "normalize_us": round(_normalize_us(), 2),
    }


async def _bare(place: Path, *, same: bool) -> float:
    place.mkdir(parents=True)
    began = time.perf_counter()
    options = ClaudeAgentOptions(
        cwd=str(place),
        model=MODEL,
        allowed_tools=["Glob"],
        tools=sorted(OFFERED) if same else ["Glob"],
        setting_sources=[],
        system_prompt={"type": "preset", "preset": "claude_code", "append": "Be brief."} if same else "Be brief.",
        env={**QUIET, **MANNERS} if same else {},
    )
    async with ClaudeSDKClient(options) as client:
        await client.query("Go.")
        async for message in client.receive_response():
            if isinstance(message, ResultMessage) and message.is_error:
                raise RuntimeError(message.result)
    return time.perf_counter() - began


async def _flower(place: Path) -> float:
    place.mkdir(parents=True)
    began = time.perf_counter()
    runtime = Runtime(workspace=place, run_dir=place / "run", workbench=False)
    try:
        result = await runtime.run(
            AgentSpec(name="main", instructions="Be brief.", allowed_tools=["Glob"], model=MODEL, workbench=False),
            "Go.",
        )
    finally:
        runtime.close()
    if not result.ok:
        raise RuntimeError(result.error)
    return time.perf_counter() - began


def _normalize_us() -> float:
    message = AssistantMessage(
        content=[TextBlock(text="word " * 40)],
        model=MODEL,
        usage={"input_tokens": 10, "cache_read_input_tokens": 30_000},
    )
    began = time.perf_counter()
    for _ in range(MESSAGES):
        normalize(message)
    return (time.perf_counter() - began) / MESSAGES * 1e6
