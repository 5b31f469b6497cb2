"""A stage for each story: scripted model, Slack emulator, bot, Redis, runners, all of them real."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from demo.stage import Stage, stage
from tests.fakes.chat_worlds import complaints_of

OnStage = Callable[..., AbstractAsyncContextManager[Stage]]


@pytest.fixture
def on_stage() -> Iterator[OnStage]:
    """Open a stage in a short folder of its own: `async with on_stage(lease=5) as here`."""
    homes: list[Path] = []

    @contextlib.asynccontextmanager
    async def opened(**how: Any) -> AsyncIterator[Stage]:
        home = Path(tempfile.mkdtemp(prefix="fl-")) / "s"
        homes.append(home.parent)
        async with stage(home, **how) as here:
            yield here
            assert await complaints_of(here.slack) == []  # every payload of every story is judged (product 8)

    yield opened
    for home in homes:
        shutil.rmtree(home, ignore_errors=True)
