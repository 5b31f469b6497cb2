"""Memory and start-up of one runner process beside a bare import of the SDK (R12)."""

from __future__ import annotations

import asyncio
import statistics
import sys
import time

ROUNDS = 5
BARE = "import claude_agent_sdk"
OURS = "import bridge.runner.__main__, bridge.runner.host"
TELL = """
print(next(int(line.split()[1]) / 1024 for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


async def measure() -> dict[str, float]:
    """Return peak resident MiB of an imported runner (`runner_mib`) and of the bare SDK, and seconds to start."""
    bare, ours, seconds = [], [], []
    for _ in range(ROUNDS):
        bare.append((await _mib(BARE))[0])
        mib, took = await _mib(OURS)
        ours.append(mib)
        seconds.append(took)
    return {
        "runner_mib": round(statistics.median(ours), 1),
        "bare_mib": round(statistics.median(bare), 1),
        "above_bare_mib": round(statistics.median(ours) - statistics.median(bare), 1),
        "start_s": round(statistics.median(seconds), 2),
    }


async def _mib(code: str) -> tuple[float, float]:
    began = time.perf_counter()
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code + TELL, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    return float(out), time.perf_counter() - began
