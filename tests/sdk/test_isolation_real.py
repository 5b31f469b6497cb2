"""Subagents in git worktrees, with the real program and a real repository (behaviour 11 and 22)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions

from flower import AgentSpec, Runtime, StepResult, Workbench, coordinator, starter_flow, worker
from flower.core import attempt
from flower.testing import RecordingSink
from tests.fakes.repository import Repository, git, repository
from tests.sdk.stage import LOOP, Stage, cut, stage

pytestmark = [pytest.mark.real, pytest.mark.timeout(60)]

MODEL = "claude-haiku-5-5"


class Bare(Runtime):
    """A runtime that keeps the setting of `worktrees` to itself."""

    def _client(self, options: ClaudeAgentOptions) -> attempt.Client:
        options.settings = None
        return super()._client(options)


@dataclass(frozen=True, slots=True)
class Scene:
    here: Stage
    runtime: Runtime
    bench: Workbench

    async def run(self, spec: AgentSpec | None = None) -> StepResult:
        self.runtime.model = MODEL
        result = await self.runtime.run(spec or crew(), "go")
        assert result.ok, result.error
        return result

    def results(self, part: str) -> list[str]:
        """What the tools of a part gave back, in order."""
        return [result.text for asked in self.here.model.asked_of(part) for result in asked.results]


def crew(**more: Any) -> AgentSpec:
    return coordinator("协调者", "", {"coder": worker("d", "p", isolate=True), **more})


def send(brief: str, role: str = "coder", tool: str = "Agent") -> dict[str, Any]:
    return {tool: {"description": "d", "prompt": f"BRIEF-{brief}-", "subagent_type": role}}


def sub(brief: str, *calls: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a subagent: these calls, one a message, then a report."""
    return {
        "match": {"agent": "sub", "opening": f"BRIEF-{brief}-"},
        "lines": [*({"call": call} for call in calls), f"{brief} reported"],
    }


def bash(command: str) -> dict[str, Any]:
    return {"Bash": {"command": command}}


def main(*messages: Any) -> dict[str, Any]:
    return {"match": {"agent": "main"}, "lines": [*({"call": calls} for calls in messages), "The end."]}


@asynccontextmanager
async def scene(home: Path, runtime: type[Runtime] = Runtime, /, **parts: Any) -> AsyncIterator[Scene]:
    bench = Workbench(home / "ws", home=home / ".flower-ws").ensure()
    async with stage(home, speed=1.0, **parts) as here:
        rt = runtime(workspace=bench.workspace, run_dir=here.run_dir, workbench=bench)
        try:
            yield Scene(here, rt, bench)
        finally:
            rt.close()


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    return repository(tmp_path / "ws")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path.resolve()


# Together.


async def test_two_at_once_work_in_worktrees_of_their_own_and_share_the_workbench(home: Path, repo: Repository) -> None:
    notes = home / ".flower-ws" / "notes"
    looking = bash("pwd && git worktree list && git branch --show-current")
    parts = {
        name: sub(
            name,
            looking,
            {"Write": {"file_path": "same.txt", "content": name}},
            {"Write": {"file_path": str(notes / f"{name}.md"), "content": f"# desc: by {name}\n"}},
            # Until the other one has written too, so that a file of both would be seen.
            bash(f"for i in $(seq 100); do [ -e {notes}/{other}.md ] && break; sleep 0.1; done; cat same.txt; ls"),
        )
        for name, other in (("first", "second"), ("second", "first"))
    }
    parts["main"] = main([send("first"), send("second", tool="Task")], bash("git worktree list && git status --short"))
    async with scene(home, **parts) as here:
        await here.run()
        places = {name: here.results(name)[0].splitlines()[0] for name in ("first", "second")}
        seen = {name: here.results(name)[-1] for name in ("first", "second")}
        reports, after = here.results("main")[:2], here.results("main")[2]
    assert seen == {"first": "firstbase.txt\nsame.txt", "second": "secondbase.txt\nsame.txt"}
    kept = repo.worktrees()
    assert sorted(kept.values()) == sorted(places.values())
    for name, place in places.items():
        assert Path(place).parent == repo.path.resolve() / ".claude" / "worktrees"
        assert (Path(place) / "same.txt").read_text() == name
    for branch, place in kept.items():
        assert branch == f"worktree-{Path(place).name}"
        assert any(f"worktreePath: {place}\nworktreeBranch: {branch}" in report for report in reports)
        assert place in after
    assert sorted(path.name for path in notes.iterdir()) == ["first.md", "second.md"]
    assert "by second" in (home / ".flower-ws" / "INDEX.md").read_text(encoding="utf-8")
    assert after.splitlines()[-1] == "?? .claude/"
    assert repo.git("branch", "--list", "main").startswith("* main")
    assert not (repo.path / "same.txt").exists()


async def test_ten_at_once_do_not_trip_over_each_other(home: Path, repo: Repository) -> None:
    """Without their turns in the guard some of ten fail in every second run."""
    names = [f"n{number}" for number in range(10)]
    parts = {name: sub(name) for name in names}
    async with scene(home, **parts, main=main([send(name) for name in names])) as here:
        await here.run()
        reports = here.results("main")
    assert sorted(name for name in names for report in reports if f"{name} reported" in report) == names
    assert repo.worktrees() == {}


async def test_what_was_changed_stays_and_what_was_not_goes(home: Path, repo: Repository) -> None:
    repo.commit(".gitignore", "out/\n")
    work = {
        "nothing": bash("cat base.txt"),
        "undone": bash("echo x > x && rm x"),
        "ignored": bash("mkdir out && echo x > out/x"),
        "new": bash("echo x > x"),
        "changed": bash("echo x > base.txt"),
        "committed": bash("echo x > x && git add x && git commit -qm x"),
    }
    parts = {name: sub(name, call) for name, call in work.items()}
    async with scene(home, **parts, main=main(*([send(name)] for name in work))) as here:
        await here.run()
        kept = [name for name, report in zip(work, here.results("main"), strict=True) if "worktreePath:" in report]
    assert kept == ["new", "changed", "committed"]
    assert len(repo.worktrees()) == 3
    assert "locked" not in repo.git("worktree", "list", "--porcelain")
    assert len(repo.git("branch", "--list", "worktree-agent-*").splitlines()) == 3


async def test_from_a_worktree_the_main_checkout_is_out_of_reach_for_files_and_for_git(
    home: Path, repo: Repository
) -> None:
    target = repo.path.resolve() / "direct.txt"
    parts = {
        "apart": sub(
            "apart",
            {"Write": {"file_path": str(target), "content": "x"}},
            bash(f"cd {repo.path.resolve()} && git commit --allow-empty -qm x"),
        ),
        "main": main(send("apart")),
    }
    async with scene(home, **parts) as here:
        await here.run()
        refusals = here.results("apart")
    assert ["isolated in the worktree" in refusal for refusal in refusals] == [True, True]
    assert not target.exists()
    assert repo.git("rev-list", "--count", "HEAD") == "1"


@pytest.mark.parametrize("name", ["Coder", " CODER ", "co_der", "\uff43oder"])
async def test_another_way_to_write_the_name_is_no_way_around(home: Path, repo: Repository, name: str) -> None:
    """The program takes these names for `coder`: when this fails, `guard._bare` may have become too narrow."""
    parts = {"spelt": sub("spelt", bash("pwd")), "main": main(send("spelt", role=name))}
    async with scene(home, **parts) as here:
        await here.run()
        (place,) = here.results("spelt")
    assert "/.claude/worktrees/agent-" in place


async def test_an_unmarked_role_and_a_call_without_a_role_stay_in_the_main_checkout(
    home: Path, repo: Repository
) -> None:
    nameless = {"Agent": {"description": "d", "prompt": "BRIEF-nameless-"}}
    parts = {
        "plain": sub("plain", bash("pwd")),
        "nameless": sub("nameless", bash("pwd")),
        "main": main(send("plain", role="reader"), nameless),
    }
    async with scene(home, **parts) as here:
        await here.run(crew(reader=worker("d", "p")))
        assert here.results("plain") + here.results("nameless") == [str(repo.path.resolve())] * 2


# What they branch off.


@pytest.mark.parametrize(("runtime", "newest"), [(Bare, "theirs.txt"), (Runtime, "mine.txt")])
async def test_with_the_setting_a_worktree_branches_off_head_and_without_off_the_remote(
    home: Path, repo: Repository, runtime: type[Runtime], newest: str
) -> None:
    git(home, "init", "--quiet", "--bare", "--initial-branch", "main", "origin.git")
    repo.git("remote", "add", "origin", str(home / "origin.git"))
    base = repo.git("rev-parse", "HEAD")
    repo.commit("theirs.txt", "x")
    repo.git("push", "--quiet", "--set-upstream", "origin", "main")
    repo.git("reset", "--quiet", "--hard", base)
    repo.git("update-ref", "refs/remotes/origin/main", base)
    repo.commit("mine.txt", "x")
    parts = {"base": sub("base", bash("ls")), "main": main(send("base"))}
    async with scene(home, runtime, **parts) as here:
        await here.run()
        assert here.results("base")[0].split() == sorted(["base.txt", newest])
    # Without it the program has also asked the remote.
    assert (repo.git("rev-parse", "origin/main") != base) is (runtime is Bare)


async def test_changes_that_are_not_committed_are_not_in_a_worktree(home: Path, repo: Repository) -> None:
    (repo.path / "base.txt").write_text("changed")
    (repo.path / "new.txt").write_text("new")
    parts = {"base": sub("base", bash("cat *")), "main": main(send("base"))}
    async with scene(home, **parts) as here:
        await here.run()
        assert here.results("base") == ["base"]


async def test_a_git_hook_that_started_us_does_not_lead_the_program_away(
    home: Path, repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(home / "nowhere"))
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Somebody Else")
    parts = {
        "base": sub("base", bash("git commit --allow-empty -qm x && git log -1 --format='%an <%ae>'")),
        "main": main(send("base")),
    }
    async with scene(home, **parts) as here:
        await here.run()
        assert here.results("base") == ["Somebody Else <tester@localhost>"]


# When things go wrong.


async def test_an_interrupt_leaves_half_done_work_where_the_next_can_find_it(home: Path, repo: Repository) -> None:
    half = sub("half", {"Write": {"file_path": "half.txt", "content": "half"}}, bash(LOOP))
    half["lines"][1]["name"] = "long"
    looked = {**cut("another way", answered=False), "call": bash("git worktree list"), "then": "after"}
    talk = {
        "match": {"agent": "main"},
        "lines": [{"call": [send("half")]}, {"name": "after", "say": "Seen."}],
        "anytime": [looked],
    }
    async with scene(home, half=half, main=talk) as here:
        here.runtime.model = MODEL
        sink = RecordingSink()
        running = asyncio.create_task(here.runtime.run(crew(), "go", on_event=sink))
        await here.here.model.asked("half.long")
        await sink.wait_for(lambda event: event.kind == "tool_call" and event.tool == "Bash")
        assert "locked" in repo.git("worktree", "list", "--porcelain")
        here.runtime.interrupt("another way", now=True)
        result = await running
        assert (result.ok, result.text.splitlines()[-1]) == (True, "Seen.")
        (place,) = repo.worktrees().values()
        assert place in here.results("main")[-1]
    assert sorted(git(Path(place), "ls-files", "--cached", "--others").split()) == ["base.txt", "half.txt"]
    # Whether it is still locked is left open: the program may not have come to it.


async def test_outside_a_repository_the_tools_own_error_reaches_the_model_and_the_run_goes_on(home: Path) -> None:
    (home / "ws").mkdir()
    parts = {
        "plain": sub("plain", bash("pwd")),
        "main": main(send("apart"), send("plain", role="reader")),
    }
    async with scene(home, **parts) as here:
        result = await here.run(crew(reader=worker("d", "p")))
        refused, reported = here.results("main")
    assert "not in a git repository" in refused
    assert "plain reported" in reported
    assert result.text == "The end."


async def test_a_repository_without_a_commit_is_no_silent_fallback(home: Path) -> None:
    repository(home / "ws", committed=False)
    async with scene(home, main=main(send("apart"))) as here:
        await here.run()
        assert "no commit for HEAD" in here.results("main")[0]


# The starter flow.


async def test_the_crew_of_the_starter_flow_brings_the_work_of_two_back_into_the_main_checkout(
    home: Path, repo: Repository
) -> None:
    flow = starter_flow("make it", workspace=repo.path, run_dir=home / "run", isolate=True, lang="en")
    assert flow.workbench is not None
    spec = flow.steps[-1].spec

    def coding(name: str) -> dict[str, Any]:
        return sub(name, bash(f"echo {name} > {name}.txt && git add {name}.txt && git commit -qm {name}"))

    clear = (
        "git worktree list --porcelain | sed -n 's/^worktree //p' | tail -n +2 | xargs -n 1 git worktree remove && "
        "git branch --list 'worktree-agent-*' --format '%(refname:short)' | xargs git branch -d"
    )
    parts = {
        "left": coding("left"),
        "right": coding("right"),
        "merging": sub(
            "merging",
            bash("git branch --list 'worktree-agent-*' --format '%(refname:short)' | xargs git merge -q"),
            bash(clear),
        ),
        "next": sub("next", bash("ls")),
        "main": main([send("left"), send("right")], send("merging", role="merger"), send("next")),
    }
    async with scene(home, **parts) as here:
        await here.run(spec)
        assert here.results("next") == ["base.txt\nleft.txt\nright.txt"]
    assert sorted(path.name for path in repo.path.iterdir()) == [".claude", ".git", "base.txt", "left.txt", "right.txt"]
    assert repo.worktrees() == {}
    assert repo.git("branch", "--list") == "* main"
