"""Worktrees for subagents: what stands in their way, and what a run with them is told (behaviour 22)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolationTexts:
    # Refusals, before money is spent. Each has the placeholder path.
    not_git: str
    no_git: str
    bare: str
    no_commit: str
    subfolder: str
    """Placeholder: root, the repository that the folder lies in."""
    refused: str
    """Placeholder: words, what git itself says."""
    silent: str
    """Placeholder: limit (seconds). Stands for git's own words in `refused`."""
    no_bench: str
    """Placeholder: error. Its path is that of the workbench."""

    # What the roles of the starter flow are told on top.
    coordinator: str
    worker: str
    merger_description: str
    merger: str


ZH = IsolationTexts(
    not_git="--isolate 要求 {path} 是 git 仓库(每个 subagent 要分一份 worktree)。先 git init,或者去掉 --isolate。",
    no_git=(
        "--isolate 要用 git 给每个 subagent 分一份 {path} 的 worktree,但 PATH 里找不到 git。"
        "先装 git,或者去掉 --isolate。"
    ),
    bare=(
        "--isolate 要求 {path} 是带工作区的 git 仓库,这里没有工作区(裸仓库,或者就在 .git 里面)。到克隆出来的目录里跑。"
    ),
    no_commit=(
        "--isolate 要求 {path} 至少有一个提交:worktree 从 HEAD 分出来,没有提交就没有东西可分。"
        "先 git add -A && git commit,或者去掉 --isolate。"
    ),
    subfolder=(
        "--isolate 要从仓库的根目录跑:{path} 只是仓库 {root} 里的一个子目录,"
        "worktree 分的是整个仓库,工作台也会落在仓库里面、谁都写不进去。换成 {root},或者去掉 --isolate。"
    ),
    refused="--isolate 要求 {path} 是 git 能用的仓库,但 git 拒绝了:{words}",
    silent="{limit} 秒没有回音",
    no_bench=(
        "用 --isolate 时工作台在仓库外面的 {path},但那里写不了:{error}。"
        "把仓库挪到一个上级目录可写的地方,或者去掉 --isolate。"
    ),
    coordinator="""\
## worktree

- 每个 `coder` 都在自己的 git worktree 里干活,从当前 HEAD 的提交分出来:没提交的改动它看不到,
  几个 `coder` 同时改同一个文件也不会撞上。
- 它的活不会自己回到主工作区。任务书里写明:干完就提交。回话末尾有 `worktreePath` 和 `worktreeBranch`,
  没动过任何东西的 worktree 会自己消失。
- 回话之后派 `merger`,告诉它要并哪几个分支。并进来之后,下一个 `coder` 才看得到,判定的人也才看得到。
- 给 `coder` 的路径一律写相对路径;只有工作台给绝对路径。它写不了主工作区里的文件。
""",
    worker=(
        "你在自己的 git worktree 里:只改当前目录里的文件,用相对路径。干完把该留的都提交到当前分支,"
        "没提交的、被 .gitignore 忽略的都传不回去。git 说没有提交者身份,就用 "
        "`git -c user.name=flower -c user.email=flower@localhost commit`。"
    ),
    merger_description="在主工作区里把 coder 的分支并进来、解决冲突、收拾用完的 worktree。每批 coder 回话之后派它。",
    merger=(
        "你在主工作区。按任务书把列出的分支并进当前分支,有冲突就按两边的意图解决,并完跑一次验证。"
        "主工作区里原来没提交的改动不是你的,不要动、不要提交、不要 stash,"
        "也不要 `git add -A`(会把 `.claude/worktrees` 加进去)。"
        "分支确实并进来了,才 `git worktree remove` 它的 worktree、`git branch -d` 它的分支,一律不加 --force。"
        "标着 locked、而写明的 pid 已经不在了的,先 `git worktree unlock`。"
    ),
)

EN = IsolationTexts(
    not_git=(
        "--isolate needs {path} to be a git repository (each subagent gets a worktree of its own). "
        "Run git init first, or leave out --isolate."
    ),
    no_git=(
        "--isolate gives each subagent a git worktree of its own, but there is no git on the PATH ({path}). "
        "Install git, or leave out --isolate."
    ),
    bare=(
        "--isolate needs {path} to be a git repository with a work tree, and there is none here "
        "(a bare repository, or the inside of .git). Run it in a clone."
    ),
    no_commit=(
        "--isolate needs at least one commit in {path}: worktrees branch off HEAD, and without a commit there is "
        "nothing to branch off. Run git add -A && git commit first, or leave out --isolate."
    ),
    subfolder=(
        "--isolate must be run in the root of a repository: {path} is a folder inside {root}. A worktree holds the "
        "whole repository, and the workbench would lie inside it, where no worker may write. "
        "Use {root}, or leave out --isolate."
    ),
    refused="--isolate needs {path} to be a repository that git can use, but git refuses: {words}",
    silent="no answer within {limit} seconds",
    no_bench=(
        "With --isolate the workbench is outside the repository, in {path}, and that cannot be written: {error}. "
        "Move the repository to where the folder above it can be written, or leave out --isolate."
    ),
    coordinator="""\
## Worktrees

- Each `coder` works in a git worktree of its own that branches off the commit at HEAD: it does not see changes that
  are not committed, and several coders may change the same file at once without getting in each other's way.
- Its work does not come back to the main checkout by itself. Say in the task brief that it must commit when done.
  `worktreePath` and `worktreeBranch` stand at the end of its reply; a worktree in which nothing changed goes by itself.
- Then send `merger` and tell it which branches to merge. Only what is merged is seen by the next `coder`, and by
  whoever judges the result.
- Give a `coder` relative paths, and an absolute one for the workbench only. It cannot write into the main checkout.
""",
    worker=(
        "You are in a git worktree of your own: change files in the current directory only, by relative paths. When "
        "you are done, commit whatever is to be kept to the current branch; what is not committed, or is ignored by "
        ".gitignore, does not get back. If git knows no committer, use "
        "`git -c user.name=flower -c user.email=flower@localhost commit`."
    ),
    merger_description=(
        "Merges the coders' branches in the main checkout, resolves conflicts, and clears away worktrees that are no "
        "longer needed. Send it whenever coders have reported."
    ),
    merger=(
        "You are in the main checkout. Merge the branches that the task brief names into the current branch, resolve "
        "conflicts by what both sides meant, and verify once at the end. Changes in the main checkout that were not "
        "committed before are not yours: do not touch, commit or stash them, and never "
        "`git add -A` there: it would add `.claude/worktrees`. Only when a branch really is merged, "
        "`git worktree remove` its worktree and `git branch -d` the branch, never with --force. "
        "`git worktree unlock` one first that is locked by a pid that is gone."
    ),
)
