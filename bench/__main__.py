"""`python -m bench NAME [--json]`: run one benchmark; its last line is one JSON object of figures."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Callable, Coroutine

from bench import latency, overhead, runs, store

BENCHES: dict[str, Callable[[], Coroutine[None, None, dict[str, float]]]] = {
    "latency": latency.measure,
    "overhead": overhead.measure,
    "runs": runs.measure,
    "store": store.measure,
}


def main(argv: list[str] | None = None) -> int:
    """Run a benchmark."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("name", choices=sorted(BENCHES))
    parser.add_argument("--json", action="store_true", help="print the line of figures only")
    args = parser.parse_args(argv)
    figures = asyncio.run(BENCHES[args.name]())
    if not args.json:
        for name, value in figures.items():
            print(f"{name:<16} {value}")
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
