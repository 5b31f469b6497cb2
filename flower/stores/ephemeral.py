"""Which shell commands only look (behaviour 13.3): one function, two uses.

It decides what a coordinator may run itself and which results go stale, so the two sets are the same. It leans to
"no": quotes are not parsed when the line is split, so a separator inside quotes makes the answer False.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence

# Nobody looks with more; the patterns below take their time with what was made to keep them busy.
_LONGEST = 4000

_SUBSTITUTION = re.compile(r"\$\(|`|<\(|>\(")

# Forms that change something, wherever they stand.
_CHANGING = re.compile(
    r"""
      \b(?:xargs|exec|execdir|eval|source|tee)\b
    | (?<!\w)-(?:delete|okdir|ok\b|fprint|fls\b|execdir|newer)
    | --out
    | \bsystem\s*\( | \bprintf?\b[^|;&\n]*> | \bENVIRON\b
    | \bgit\b[^|;&\n]*\s--(?:force|hard|prune|ext-diff)
    """,
    re.VERBOSE,
)

# Nothing may follow the target, or ">/dev/null'x'" would be a file.
_HARMLESS = re.compile(r"(?:2>&1|(?:&|2)?>\s*/dev/null)(?=\s|$|[;&|])")
_SEPARATOR = re.compile(r"&&|\|\||[;|\n]")
_DEFINES_FUNCTION = re.compile(r"\s*[\w-]+\s*\(\s*\)")
# A NUL is left out or ends the argument, depending on who gets it, so the text is not what will be run.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def is_ephemeral(cmd: str) -> bool:
    """Does this command only look, so that its result goes stale?"""
    line = cmd.strip()
    if not line or len(line) > _LONGEST or _CONTROL.search(line):
        return False
    if _SUBSTITUTION.search(line) or _CHANGING.search(line):
        return False
    line = _HARMLESS.sub(" ", line)
    if "<" in line or ">" in line:
        return False
    return all(_only_looks(part) for part in _SEPARATOR.split(line))


def _only_looks(part: str) -> bool:
    if "&" in part or _DEFINES_FUNCTION.match(part):
        return False
    try:
        words = shlex.split(part)
    except ValueError:  # an open quote
        return False
    # Again without quotes and backslashes, for a form that was written `-del""ete`.
    if not words or _CHANGING.search(" ".join(words)):
        return False
    verb, args = words[0].lower(), words[1:]
    if verb in _ANY_ARGUMENTS:
        return True
    # These have arguments that change something, and an expansion could make one: `find . -d{elete,}`.
    return verb in _CHECKED and not _expands(part) and _CHECKED[verb](args)


def _expands(part: str) -> bool:
    """Does the shell put in something here that the text does not show: a variable, a brace, a `$'...'`?"""
    quoted = ""
    escaped = False
    for place, char in enumerate(part):
        if escaped:
            escaped = False
        elif quoted == "'":
            quoted = "" if char == "'" else quoted
        elif char == "\\":
            escaped = True
        elif char == "$" and _EXPANSION.match(part, place):
            return True
        elif char in "'\"":
            quoted = "" if char == quoted else (quoted or char)
        elif char == "{" and not quoted and _BRACE.match(part, place):
            return True
    return False


_EXPANSION = re.compile(r"\$[\w{'\"@*#?!$\[(-]")
_BRACE = re.compile(r"\{[^\s}]*(?:,|\.\.)")


Check = Callable[[Sequence[str]], bool]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _without(pattern: str) -> Check:
    """No argument matches from its beginning on."""
    compiled = re.compile(pattern)
    return lambda args: not any(compiled.match(arg) for arg in args)


def _only(pattern: str) -> Check:
    """Every argument matches as a whole."""
    compiled = re.compile(pattern)
    return lambda args: all(compiled.fullmatch(arg) for arg in args)


def _begins(*words: str) -> Check:
    return lambda args: bool(args) and args[0].lower() in words


def _positional(args: Sequence[str], *, taking: str = "") -> list[str]:
    """Arguments that are neither options nor the value of an option named in `taking` (single letters).

    A lone "-" is one: it stands for a file.
    """
    found: list[str] = []
    before = ""
    for arg in args:
        option = arg.startswith("-") and arg != "-"
        if not option and not (len(before) == 2 and before[1] in taking):
            found.append(arg)
        before = arg if option else ""
    return found


def _date(args: Sequence[str]) -> bool:
    """Reading the clock: no -s, and no bare digits, which would set it (unless -j says not to)."""
    if any(re.match(r"-[uR]*s|--s", arg) for arg in args):
        return False
    return "-j" in args or all(arg.startswith("+") for arg in _positional(args, taking="drf"))


def _top(args: Sequence[str]) -> bool:
    """Only a batch that ends by itself."""
    options = "".join(arg for arg in args if arg.startswith("-"))
    return ("b" in options and "n" in options) or any(arg.startswith("-l") for arg in args)


def _type(args: Sequence[str]) -> bool:
    """The form that asks about one name."""
    names = args[1:] if args and args[0] in ("-a", "-p", "-t", "-P") else args
    return len(names) == 1 and not names[0].startswith("-")


_SED_ADDRESS = r"(?:\d+(?:~\d+)?|\$|/(?:[^/\\]|\\.)*/I?)"
_SED_COMMAND = re.compile(
    rf"\s*(?:{_SED_ADDRESS}(?:\s*,\s*(?:{_SED_ADDRESS}|[+~]\d+))?\s*)?(?:!\s*)?"
    r"(?:[pPdDqQ=lnNgGhHxzF]|s(?P<mark>[^\w\s\\])(?:\\.|(?!(?P=mark))[^\\\n])*(?P=mark)(?:\\.|(?!(?P=mark))[^\\\n])*(?P=mark)[gpiIMm\d]*"
    r"|y(?P<sign>[^\w\s\\])(?:\\.|(?!(?P=sign))[^\\\n])*(?P=sign)(?:\\.|(?!(?P=sign))[^\\\n])*(?P=sign))\s*"
)
_SED_OPTION = re.compile(
    r"-(?P<flags>[nErsuz]*)(?:e(?P<short>.*))?|--(?:quiet|silent|regexp-extended|separate|unbuffered|null-data|posix)"
    r"|--expression(?:=(?P<long>.*))?"
)


def _sed(args: Sequence[str]) -> bool:
    """Known options, and scripts of one command that neither writes (w) nor runs (e) anything."""
    scripts: list[str] = []
    words: list[str] = []
    rest = iter(args)
    for arg in rest:
        option = _SED_OPTION.fullmatch(arg) if arg.startswith("-") and arg != "-" else None
        if option is None:
            if arg.startswith("-") and arg != "-":
                return False
            words.append(arg)
        elif (inline := option["short"] or option["long"]) is not None and inline != "":
            scripts.append(inline)
        elif option["short"] is not None or arg == "--expression":
            scripts.append(next(rest, ""))
    scripts = scripts or words[:1]
    return bool(scripts) and all(_SED_COMMAND.fullmatch(script) for script in scripts)


_BRANCH_OPTION = re.compile(
    r"-[arvlqi]+|--(?:all|remotes|list|verbose|quiet|ignore-case|show-current|no-color|no-column|no-abbrev)"
    r"|--(?:color|column|sort|format|abbrev|merged|no-merged|contains|no-contains|points-at)(?:=.*)?"
)
_BRANCH_FILTER = re.compile(r"-[arvqi]*l[arvqi]*|--(?:list|merged|no-merged|contains|no-contains|points-at)")


def _git_branch(args: Sequence[str]) -> bool:
    """Listing: a name without a filter would make a branch."""
    options = [arg for arg in args if arg.startswith("-")]
    listing = any(_BRANCH_FILTER.fullmatch(option) for option in options)
    return all(_BRANCH_OPTION.fullmatch(option) for option in options) and (listing or len(options) == len(args))


def _git_remote(args: Sequence[str]) -> bool:
    rest = [arg for arg in args if arg not in ("-v", "--verbose")]
    return not rest or rest[0] in ("show", "get-url")


def _git_symbolic_ref(args: Sequence[str]) -> bool:
    return _without(r"-\w*[dm]|--d")(args) and len(_positional(args)) < 2


_GIT: dict[str, Check] = {
    "branch": _git_branch,
    "remote": _git_remote,
    "reflog": lambda args: not any(arg in ("expire", "delete", "drop", "write") for arg in args[:1]),
    "symbolic-ref": _git_symbolic_ref,
    "hash-object": _without(r"-\w*w"),
    "stash": _begins("list"),
    "worktree": _begins("list"),
    "config": lambda args: bool(args) and args[0].startswith("--get"),  # a second action is refused by git
}
_GIT_ANY_ARGUMENTS = _words(
    "status diff log show rev-parse describe ls-files blame shortlog cherry for-each-ref whatchanged cat-file "
    "count-objects check-ignore var"
)


def _git(args: Sequence[str]) -> bool:
    if not args:
        return False
    sub = args[0].lower()
    return sub in _GIT_ANY_ARGUMENTS or (sub in _GIT and _GIT[sub](args[1:]))


_ANY_ARGUMENTS = _words(
    "ls ll dir pwd df du free uptime whoami id ps htop lsof netstat pgrep cat head wc stat echo "
    "which whereis uname locale nproc getconf sw_vers grep egrep fgrep cut tr column jq nl rev comm diff"
)
_CHECKED: dict[str, Check] = {
    "git": _git,
    "date": _date,
    "hostname": _only(r"-[aAdfiIsyv]+|--(?:alias|all-fqdns|all-ip-addresses|domain|fqdn|long|ip-address|short|yp|nis)"),
    "env": _only(r"[A-Za-z_]\w*=.*"),
    "printenv": _only(r"-0|--null|[A-Z_][A-Z0-9_]*|[a-z]+_proxy"),
    "top": _top,
    "jobs": _without(r"-\w*x"),
    "ss": _without(r"-\w*K|--kill"),
    "systemctl": _begins("status"),
    "docker": _begins("ps", "images", "stats"),
    "kubectl": lambda args: _begins("get")(args) and _without(r"-\w*w|--watch")(args),
    "tail": _without(r"-\w*[fF]|--f|--r"),
    "file": _without(r"-\w*C|--co"),
    "find": lambda args: True,
    # -R writes a 00Tree.html into every folder that it comes to.
    "tree": _without(r"-\w*[oR]"),
    # On macOS `arch -x86_64 program` runs the program.
    "arch": lambda args: not args,
    "command": lambda args: bool(args) and args[0] in ("-v", "-V"),
    "type": _type,
    "rg": _without(r"--pre(?:=|$)|--hostname-bin"),
    "sort": _without(r"-[A-Za-z]*o|--o|--co"),
    "uniq": lambda args: len(_positional(args, taking="fsw")) < 2,
    # An @ includes a file, loads a library, or calls what a variable names.
    "awk": lambda args: _without(r"-(?![Fv]|$)")(args) and not any("@" in arg for arg in args),
    "sed": _sed,
}
