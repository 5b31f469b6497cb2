"""Behaviour 28.8, each item a test:

*Continuity:* second process resumes the same id; dead ids ignored; wrong workspace, broken JSON → fresh; kill between
id and step end (subprocess + SIGKILL) still continues; judge ids never in `lineage.json`; `resume_prompt` used;
archive moves three files; `wake_state` leaves the directory untouched (compare snapshots).
"""

from __future__ import annotations

import json
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from flower.core.agent import AgentSpec
from flower.core.events import Event
from flower.core.human import HumanChannel
from flower.core.lineage import Lineage
from flower.workflow.base import Ctx, Step, Workflow
from flower.workflow.goal import with_goal
from flower.workflow.starter import starter_flow, wake_state
from tests.fakes.client import Own, init, say
from tests.fakes.runtime import LastingRuntime, Said
from tests.fakes.starter import ACHIEVED, NOT_YET, WHOLE, files, flow, notes, runtime, workspace
from tests.flower.scene import SPEC, Make

__all__ = ["workspace"]


def step(name: str = "a", prompt: str | Callable[[Ctx], str] = "go", **kw: Any) -> Step:
    return Step(name, AgentSpec("role", "Do it."), prompt, **kw)


def lineage(runtime: LastingRuntime) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((runtime.run_dir / "lineage.json").read_text(encoding="utf-8"))
    return content


# -- second process resumes the same id ---------------------------------------------------------------------------


async def test_second_process_resumes_the_same_id(tmp_path: Path) -> None:
    await Workflow([step()]).run(LastingRuntime(["one"], workspace=tmp_path))
    again = LastingRuntime(["two"], workspace=tmp_path)
    seen: list[Event] = []
    await Workflow([step(resume_prompt=lambda _ctx: "carry on")]).run(again, on_event=seen.append)
    assert [(call.prompt, call.resume) for call in again.calls] == [("carry on", "s1")]
    assert seen[0].payload == {"index": 1, "total": 1, "resumed": True, "woke": 2}


async def test_second_process_resumes_the_same_id_out_of_the_store(make: Make) -> None:
    """With the real runtime and its store: `has_session` confirms the recorded id."""
    first = make([init(), say("one"), Own()])
    await Workflow([Step("a", SPEC, "go")]).run(first)
    await first.store.append({"project_key": first.project_key, "session_id": "S"}, [{"type": "user", "uuid": "u"}])
    first.close()
    second = make([init(), say("two"), Own()])
    ctx = await Workflow([Step("a", SPEC, "go")]).run(second)
    assert second.resumed == ["S"]
    assert (ctx["_woke"], ctx["_lineage"].steps) == (2, {"a": "S"})


# -- dead ids ignored ---------------------------------------------------------------------------------------------


async def test_dead_ids_ignored(tmp_path: Path) -> None:
    await Workflow([step()]).run(LastingRuntime(["one"], workspace=tmp_path))
    again = LastingRuntime([Said("two", session="s9")], workspace=tmp_path, known={"another"})
    await Workflow([step(resume_prompt="carry on")]).run(again)
    assert [(call.prompt, call.resume) for call in again.calls] == [("go", None)]
    assert lineage(again) == {"workspace": str(again.workspace), "woke": 2, "steps": {"a": "s9"}}


async def test_dead_ids_ignored_when_the_store_was_deleted(make: Make) -> None:
    first = make([init(), Own()])
    await Workflow([Step("a", SPEC, "go")]).run(first)
    await first.store.append({"project_key": first.project_key, "session_id": "S"}, [{"type": "user", "uuid": "u"}])
    first.close()
    for file in first.run_dir.glob("sessions.db*"):
        file.unlink()
    second = make([init("T"), Own(session="T")])
    await Workflow([Step("a", SPEC, "go", resume_prompt="carry on")]).run(second)
    assert (second.resumed, second.prompts) == ([None], ["go"])


# -- wrong workspace, broken JSON → fresh -------------------------------------------------------------------------


async def test_wrong_workspace_is_fresh(tmp_path: Path) -> None:
    """A copied project starts afresh, without a word."""
    (tmp_path / "one").mkdir()
    await Workflow([step()]).run(LastingRuntime(["one"], workspace=tmp_path / "one"))
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    again = LastingRuntime(["two"], workspace=tmp_path / "two")
    ctx = await Workflow([step(resume_prompt="carry on")]).run(again)
    assert [(call.prompt, call.resume) for call in again.calls] == [("go", None)]
    assert (ctx["_woke"], lineage(again)["workspace"]) == (1, str((tmp_path / "two").resolve()))


@pytest.mark.parametrize("broken", [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000])
async def test_broken_json_is_fresh(tmp_path: Path, broken: bytes) -> None:
    again = LastingRuntime(["two"], workspace=tmp_path)
    (again.run_dir / "lineage.json").write_bytes(broken)
    ctx = await Workflow([step(resume_prompt="carry on")]).run(again)
    assert [(call.prompt, call.resume) for call in again.calls] == [("go", None)]
    assert (ctx["_woke"], lineage(again)["steps"]) == (1, {"a": "s1"})


# -- kill between id and step end (subprocess + SIGKILL) still continues ------------------------------------------


KILLED_IN_ITS_FIRST_STEP = """
import asyncio, os, signal, sys
from pathlib import Path
from flower import AgentSpec, Step, Workflow

class Dies:
    on_session = None
    def __init__(self, place):
        self.workspace, self.run_dir = place, place / "runs"
        self.run_dir.mkdir()
    async def run(self, spec, prompt, **kw):
        self.on_session("s1")
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(Workflow([Step("a", AgentSpec("role", "Do it."), "go")]).run(Dies(Path(sys.argv[1]))))
"""


async def test_kill_between_id_and_step_end_still_continues(tmp_path: Path) -> None:
    killed = await anyio.run_process([sys.executable, "-c", KILLED_IN_ITS_FIRST_STEP, str(tmp_path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    again = LastingRuntime(["one"], workspace=tmp_path)
    await Workflow([step()]).run(again)
    assert again.calls[0].resume == "s1"


# -- judge ids never in `lineage.json` ----------------------------------------------------------------------------


async def test_judge_ids_never_in_lineage_json(tmp_path: Path) -> None:
    """Looked at while the judge runs and after each round; the judge is told by nobody (behaviour 17.2, 5)."""
    seen: list[dict[str, str]] = []

    class Looks(LastingRuntime):
        async def run(self, *args: Any, **kw: Any) -> Any:
            result = await super().run(*args, **kw)
            seen.append(lineage(self)["steps"])
            return result

    rt = Looks(["一", NOT_YET, "二", ACHIEVED], workspace=tmp_path)
    judged = with_goal(step("干活"), HumanChannel(), goal_path=tmp_path / "goal.md")
    await Workflow([judged]).run(rt)
    assert rt.steps == ["干活", "干活·判定#1", "干活#round2", "干活·判定#2"]
    assert [call.heard for call in rt.calls] == [True, False, True, False]
    assert [call.resume for call in rt.calls] == [None, None, "s1", None]
    assert seen == [{"干活": "s1"}] * 4


# -- `resume_prompt` used -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", ["carry on", lambda ctx: f"carry on, wake {ctx['_woke']}"])
async def test_resume_prompt_used(tmp_path: Path, words: Any) -> None:
    await Workflow([step(resume_prompt=words)]).run(LastingRuntime(["one"], workspace=tmp_path))
    again = LastingRuntime(["two"], workspace=tmp_path)
    seen: list[Event] = []
    await Workflow([step(resume_prompt=words)]).run(again, on_event=seen.append)
    expected = words if isinstance(words, str) else "carry on, wake 2"
    assert [(call.prompt, call.resume) for call in again.calls] == [(expected, "s1")]
    assert seen[0].payload == {"index": 1, "total": 1, "resumed": True, "woke": 2}


async def test_resume_prompt_left_out_repeats_the_prompt(tmp_path: Path) -> None:
    await Workflow([step()]).run(LastingRuntime(["one"], workspace=tmp_path))
    again = LastingRuntime(["two"], workspace=tmp_path)
    await Workflow([step()]).run(again)
    assert [(call.prompt, call.resume) for call in again.calls] == [("go", "s1")]


# -- archive moves three files ------------------------------------------------------------------------------------


async def test_archive_moves_three_files(workspace: Path) -> None:
    await flow(workspace, "做一个 X").run(runtime(workspace, *WHOLE))
    with pytest.raises(ValueError, match="诉求"):
        flow(workspace, new=True)
    (stamp,) = (notes(workspace) / "archive").iterdir()
    assert sorted(file.name for file in stamp.iterdir()) == ["lineage.json", "目标.md", "需求.md"]
    rt = runtime(workspace, *WHOLE)
    await flow(workspace, "做一个 Y", new=True).run(rt)
    assert [(call.step, call.resume) for call in rt.calls][:2] == [("确认需求", None), ("设定目标", None)]


async def test_archive_moves_three_files_byte_for_byte_and_leaves_store_and_manifest(workspace: Path) -> None:
    await flow(workspace, "做一个 X").run(runtime(workspace, *WHOLE))
    run_dir = workspace / "runs"
    for name in ("sessions.db", "manifest.json"):
        (run_dir / name).write_bytes(b"stays")
    before = {place.name: place.read_bytes() for place in (run_dir / "lineage.json", *notes(workspace).glob("*标.md"))}
    starter_flow("做一个 Y", workspace=workspace, run_dir=run_dir, new=True)
    (stamp,) = (notes(workspace) / "archive").iterdir()
    assert {name: (stamp / name).read_bytes() for name in before} == before
    assert not (run_dir / "lineage.json").exists()
    assert sorted(path.name for path in run_dir.iterdir()) == ["manifest.json", "sessions.db"]
    assert Lineage.open(run_dir, workspace).woke == 0


# -- `wake_state` leaves the directory untouched (compare snapshots) ----------------------------------------------


async def test_wake_state_leaves_the_directory_untouched(workspace: Path) -> None:
    await flow(workspace, "做一个 X").run(runtime(workspace, *WHOLE))
    before = files(workspace)
    state = wake_state(workspace, run_dir=workspace / "runs")
    assert (state["waking"], state["checks"], state["woke"]) == (True, 1, 1)
    assert state["steps"] == {"确认需求": "s1", "设定目标": "s2", "干活": "s3"}
    assert files(workspace) == before


def test_wake_state_leaves_an_empty_directory_empty(workspace: Path) -> None:
    assert wake_state(workspace, run_dir=workspace / "runs") == {
        "waking": False,
        "brief": notes(workspace).resolve() / "需求.md",
        "goal": notes(workspace).resolve() / "目标.md",
        "checks": 0,
        "woke": 0,
        "steps": {},
    }
    assert list(workspace.iterdir()) == []
