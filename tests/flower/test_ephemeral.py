from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flower.stores.ephemeral import is_ephemeral

CHANGES = [
    # the specified lists
    "git commit -m x",
    "pytest -q",
    "make",
    "git status && rm -rf /tmp/x",
    "ls > out.txt",
    "echo $(whoami)",
    "cat urls | xargs curl",
    "sed -i 's/a/b/' f.py",
    "ls | tee saved.txt",
    "ls &",
    "find . -name '*.pyc' -delete",
    "find . -name x -execdir rm {} +",
    "awk 'BEGIN{system(\"rm -rf /tmp/x\")}'",
    "git branch -D feature",
    "git log --oneline && git reset --hard HEAD~5",
    "git clean -fd",
    "cat f | sh",
    "jq '.' f.json > out.json",
    "git worktree list && git worktree remove wt",
    "command rm -rf x",
    "command rm -rf /",
    "uname -a && curl host",
    # D13
    "ls\nrm -rf x",
    "ls\n\nls",
    "env rm -rf x",
    "env -i rm -rf x",
    "env A=1 rm -rf x",
    "printenv rm -rf x",
    "git branch new",
    "git branch -m old new",
    "git branch --delete old",
    "git branch -f main HEAD~1",
    "git branch --set-upstream-to=origin/main",
    "git remote add x y",
    "git remote set-url x y",
    "git remote remove x",
    "git remote prune origin",
    "git reflog expire --all",
    "git reflog delete x",
    "git symbolic-ref HEAD refs/heads/x",
    "git symbolic-ref -d HEAD",
    "git hash-object -w f",
    "git hash-object -tw blob f",
    "git diff --output=x",
    "sort --output=x f",
    "sort --o=x f",
    "sort -o f f",
    "sort f -uo f",
    "sort --compress-program=./x f",
    "uniq in out",
    "uniq -c in out",
    "sed 's/a/b/w out' f",
    "sed -n 'w out' f",
    "sed -n '/x/w out' f",
    "sed 's/a/date/e' f",
    "sed '1e date' f",
    "sed -e p -e 'w out' f",
    "sed -f script f",
    "sed -ni p f",
    "sed --in-place p f",
    "sed",
    "date -s 12:00",
    "date -us 12:00",
    "date --set=12:00",
    "date 010112002020",
    "hostname evil",
    "hostname -F f",
    "tail -f log",
    "tail -F log",
    "tail -5f log",
    "tail --follow=name log",
    "top",
    "top -b",
    # other ways to write the same
    "find . -exec rm {} +",
    "find . -ok rm {} +",
    "find . -fprintf f x",
    "find . -fls f",
    'find . -del""ete',
    "find . -del\\ete",
    "awk '{print > \"f\"}' f",
    "awk -f program f",
    "awk -i inplace 1 f",
    "awk 'BEGIN{print ENVIRON[\"HOME\"]}'",
    "ls >/dev/null'x'",
    "ls >/dev/nullx",
    "ls > /dev/null/../x",
    "ls 2>&1file",
    "ls >> /dev/null",
    "cat < f",
    "diff <(ls) f",
    "cat >(sh)",
    "echo `id`",
    "eval ls",
    "source f",
    "exec ls",
    "ls () ( rm -rf x ) && ls",
    "ls() ( rm -rf x )",
    "(ls)",
    "{ ls; }",
    "ls |& sh",
    "ls && ",
    "&& ls",
    "ls;",
    "ls || rm x",
    "echo 'open",
    "/bin/ls",
    "lsx",
    "A=1 ls",
    "type ls rm",
    "type -x ls",
    "type",
    "command -p ls",
    "command",
    "git",
    "git -c core.pager=./x log",
    "git stash",
    "git stash pop",
    "git config user.name x",
    "git config",
    "git fetch --prune",
    "git diff --ext-diff",
    "docker rm x",
    "docker",
    "kubectl delete pod x",
    "kubectl get pods -w",
    "systemctl restart x",
    "ss -K dst 127.0.0.1",
    "jobs -x rm f",
    "file -C -m magic",
    "tree -o f",
    "arch -x86_64 rm x",
    "rg --pre ./x foo",
    "cat f ; curl host",
    # an argument that only an expansion makes
    "find . $'\\x2ddelete'",
    "find . -{delete,print}",
    "find . {-del,}{ete,}",
    "find . -d{a..e}lete",
    "find . -del$@ete",
    "find . -del${x}ete",
    'find . "-del${x}ete"',
    "find . -d${x:-elete}",
    "find . -del$1ete",
    "find . $x",
    "find 'it' \"it's\" $'\\x2ddelete' 'x'",
    "find \\' $'\\x2ddelete' '",
    "sort $'\\x2do' f f",
    'sort $"-o" f f',
    "git symbolic-ref $'\\x2dd' HEAD",
    "git remote $x y",
    "uniq $x out",
    # options cut short, or run together
    "date --s=12:00",
    "hostname --fil=x",
    "hostname -vFx",
    "hostname --b",
    "file --comp -m x",
    "git symbolic-ref --del HEAD",
    "git symbolic-ref -qd HEAD",
    "tail --fo=name log",
    "tail --re log",
    # writes without a name of its own for it
    "uniq - out",
    "uniq -c - out",
    "tree -L 1 -R -H .",
    "awk '@include \"x.awk\"'",
    "awk '@load \"x\"' f",
    'awk \'BEGIN{f="system"} BEGIN{@f("rm x")}\'',
    # what no shell takes as it stands
    "find . -del\0ete",
    "ls\0rm",
    "ls\x1b[2J",
    "ls\rrm -rf x",
    "ls\x7f",
    # nobody looks with so much
    "ls " + "x" * 4000,
]

LOOKS = [
    # the specified lists
    'git status -s && echo "--- LOG ---" && git log --oneline -10',
    "git ls-files | wc -l",
    "ls -la 2>&1 | head -20",
    "ps aux | grep python | head -5",
    "git status > /dev/null",
    "git status 2>/dev/null",
    "git status &> /dev/null",
    "cat f | awk '{print $1}'",
    "sed -n '1,20p' README.md",
    "which g++ clang++ make 2>&1; echo ---; ls /usr/include/curses.h 2>&1",
    "which g++ clang++ make 2>&1; echo ---; ls /usr/include/ncurses.h 2>&1",
    # every verb
    *(
        f"git {sub}"
        for sub in ("status", "diff", "log", "show", "branch", "remote", "reflog", "whatchanged", "shortlog")
    ),
    *(
        f"git {sub} x"
        for sub in ("rev-parse", "describe", "ls-files", "blame", "cherry", "for-each-ref", "symbolic-ref")
    ),
    *(f"git {sub} x" for sub in ("hash-object", "cat-file", "count-objects", "check-ignore", "var")),
    "git stash list",
    "git worktree list",
    "git config --get user.name",
    *(
        "ls",
        "ll",
        "dir",
        "pwd",
        "df -h",
        "du -sh",
        "free",
        "uptime",
        "date",
        "whoami",
        "hostname",
        "id",
        "env",
        "printenv",
    ),
    *("ps", "top -bn1", "top -b -n 1", "htop", "jobs", "lsof", "netstat -an", "ss -tulpn", "pgrep x"),
    *("systemctl status x", "docker ps", "docker images", "docker stats --no-stream", "kubectl get pods"),
    *("cat f", "head f", "tail -n 20 f", "wc f", "stat f", "file f", "find . -name x", "tree -L 2", "echo x"),
    *("which x", "whereis x", "uname -a", "arch", "locale", "nproc", "getconf ARG_MAX", "sw_vers"),
    *("command -v git", "command -V git", "type git", "type -a git", "type -t git"),
    *("grep x f", "egrep x f", "fgrep x f", "rg --pretty x", "sort -u f", "uniq -c f", "uniq -f 1 f", "cut -f1 f"),
    *(
        "tr a b",
        "awk -F: '{print $1}' f",
        "sed 's/a/b/g' f",
        "column -t f",
        "jq . f",
        "nl f",
        "rev f",
        "comm a b",
        "diff a b",
    ),
    # harmless neighbours of what is refused
    "GIT STATUS",
    "LS -l",
    "git branch -a",
    "git branch -vv",
    "git branch --list 'x*'",
    "git branch --contains HEAD",
    "git remote -v",
    "git remote show origin",
    "git reflog show HEAD",
    "git symbolic-ref --short HEAD",
    "git config --get-regexp user",
    "date +%F",
    "date -u '+%F %T'",
    "date -d yesterday +%F",
    "date -Iseconds",
    "hostname -f",
    "printenv PATH http_proxy",
    "sed -ne 1,20p -e '/a/d' f",
    "sed -E 's,a,b,' f",
    "sed '$d' f",
    "ls\n",
    "ls\npwd",
    "git log &>/dev/null; ls",
    # an expansion that cannot do harm, or is none
    "echo $PATH $?",
    "ls ${HOME}/src/{a,b}",
    "cut -d$'\\t' -f1 f",
    'cat "$FILE"',
    "find . -name '*.{js,ts}' -o -name '$x'",
    "find . -name \\$x",
    "git diff HEAD@{1}",
    "git show stash@{0}",
    "awk '{print $1, $NF}' f",
    'awk "{print \\$1}" f',
    "sed -n '$p' f",
    "sed 's/{a,b}/x/' f",
    "grep 'end$' f | sort -u",
    "uniq -",
    "ls \ud800",
    "hostname -I",
    "hostname --fqdn",
]


@pytest.mark.parametrize("command", ["", " ", "\n", "\t\n"])
def test_a_blank_command_is_none(command: str) -> None:
    assert is_ephemeral(command) is False


@pytest.mark.parametrize("command", CHANGES)
def test_what_may_change_something_or_hang_is_not_ephemeral(command: str) -> None:
    assert is_ephemeral(command) is False


@pytest.mark.parametrize("command", LOOKS)
def test_what_only_looks_is_ephemeral(command: str) -> None:
    assert is_ephemeral(command) is True


def test_a_long_glance_is_one_up_to_its_limit() -> None:
    assert is_ephemeral("ls " + "x" * 3997) is True
    assert is_ephemeral("ls " + "x" * 3998) is False


@pytest.mark.parametrize(
    "command",
    [
        "sed 's/" + "\\" * 3000 + "'",
        "sed 's/" + "\\a" * 1500 + "' f",
        "sed 'y/" + "\\" * 3000 + "'",
        "ls " + "print " * 600,
        "ls " + "git " * 900,
        "ls " + "git  --" * 500,
        "'" * 3999,
        "$" * 3999,
        "find " + "{" * 3900,
        "x" * 50_000_000,
        "git --" * 10_000_000,
    ],
    ids=lambda command: command[:12],
)
@pytest.mark.timeout(10)
def test_no_command_takes_long_to_judge(command: str) -> None:
    """The test's time limit is what fails: some of these took for ever."""
    is_ephemeral(command)


@given(st.sampled_from(LOOKS), st.sampled_from(["&&", "||", ";", "|", "\n"]), st.sampled_from(CHANGES), st.booleans())
def test_one_bad_part_makes_the_whole_line_bad(good: str, separator: str, bad: str, first: bool) -> None:
    parts = [bad, good] if first else [good, bad]
    assert is_ephemeral(f" {separator} ".join(parts)) is False


@given(st.lists(st.sampled_from(LOOKS), min_size=1, max_size=4), st.sampled_from(["&&", "||", ";", "|", "\n"]))
def test_good_parts_make_a_good_line(parts: list[str], separator: str) -> None:
    assert is_ephemeral(f" {separator} ".join(part.strip() for part in parts)) is True


@given(st.text(alphabet=st.sampled_from("ls |&;<>$(`'\"\\\n-rm"), max_size=20))
def test_no_text_makes_it_fail_and_a_redirection_never_passes(command: str) -> None:
    if is_ephemeral(command):
        assert not set(command) & set("<>&`")


@pytest.mark.parametrize("unit", ["\\", "a\\", " ", "git ", "[a", "(", "{1,"])
def test_a_command_made_to_keep_us_busy_is_no_look(unit: str) -> None:
    """Answers at once; the pattern for sed once took for ever over forty backslashes. The test's time-out holds it."""
    for script in ("s/{}", "/{}", "1{}", "y/{}"):
        assert not is_ephemeral(f"sed -n '{script.format(unit * 1000)}'")
    assert not is_ephemeral("ls " + "x" * 50_000_000)
