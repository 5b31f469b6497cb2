"""Wall time of a scripted flow through flower's `Runtime` beside the bare SDK client, in one run, interleaved (R14).

Both ask the model the same: the same system prompt, the same tools on offer, the same answers. What differs is what
flower does: its start script, hooks, session store, accounts. The flow has three steps, a program start each on both
sides, and seven answers a step. `ratio` is with a model that takes a tenth of a second for an answer, which no real one
is as quick as; `instant_ratio` is with one that takes no time at all.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from claude_agent_sdk import AssistantMessage, ClaudeAgentOptions, ClaudeSDKClient, ResultMessage, TextBlock

from flower import AgentSpec, Runtime, Step, Workflow, normalize
from flower.core.agent import OFFERED
from flower.core.options import MANNERS, QUIET
from flower.testing import ScriptedModel, read_story, scripted_surroundings

PAIRS = 15
MESSAGES = 20_000
STEPS, CALLS = 3, 6
ANSWER_SECONDS = 0.1
MODEL = "claude-haiku-5-5"


async def measure() -> dict[str, float]:
    """Return `ratio` (median of the pairs, flower over bare) with its quartiles, `instant_ratio`, `normalize_us`."""
    low, middle, high = statistics.quantiles(await _ratios(ANSWER_SECONDS, PAIRS), n=4)
    return {
        "ratio": round(middle, 3),
        "ratio_q1": round(low, 3),
        "ratio_q3": round(high, 3),
        "pairs": PAIRS,
        "instant_ratio": round(statistics.median(await _ratios(0.0, PAIRS)), 3),
        "normalize_us": round(_normalize_us(), 2),
    }


def _story(delay: float) -> dict[str, Any]:
    calls = [{"call": {"Glob": {"pattern": f"*.{number}"}}} for number in range(CALLS)]
    return {"story": "overhead", "delay": delay, "parts": {"main": {"lines": [*calls, {"say": "Done."}]}}}


async def _ratios(delay: float, pairs: int) -> list[float]:
    ratios: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        async with ScriptedModel(read_story(_story(delay)), speed=1.0) as model:
            with scripted_surroundings(model, Path(folder) / "home"):
                for number in range(pairs):
                    place = Path(folder) / str(number)
                    bare, ours = await _bare(place / "bare"), await _flower(place / "ours")
                    ratios.append(ours / bare)
    return ratios


async def _bare(place: Path) -> float:
    place.mkdir(parents=True)
    began = time.perf_counter()
    for _ in range(STEPS):
        options = ClaudeAgentOptions(
            cwd=str(place),
            model=MODEL,
            allowed_tools=["Glob"],
            tools=sorted(OFFERED),
            setting_sources=[],
            system_prompt={"type": "preset", "preset": "claude_code", "append": "Be brief."},
            env={**QUIET, **MANNERS},
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
    spec = AgentSpec(name="main", instructions="Be brief.", allowed_tools=["Glob"], model=MODEL, workbench=False)
    runtime = Runtime(workspace=place, run_dir=place / "run", workbench=False)
    try:
        context = await Workflow([Step(str(number), spec, "Go.") for number in range(STEPS)]).run(runtime)
    finally:
        runtime.close()
    if failed := context.get("_failed_at"):
        raise RuntimeError(context["_results"][failed].error)
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
