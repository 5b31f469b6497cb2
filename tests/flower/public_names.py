"""The specification's table of names, typed by hand: API 4 to 16, and the additions of rulings R5 and product 6.

Stubs in the form in which the specification prints them. Nothing here is taken from the code; `test_public_names.py`
compares. A module-level value is a literal of the specification; a bare `name: type` only has to exist with that type.
A field's `[]` or `{}` means a fresh one for each instance, a call in its place the factory that is called.
"""

from __future__ import annotations

from typing import Any

import flower

SPECIFIED: dict[str, str] = {
    "flower.core.agent": """
@dataclass
class AgentSpec:
    name: str
    instructions: str
    allowed_tools: list[str] = ["Read", "Glob", "Grep"]
    disallowed_tools: list[str] = []
    model: str | None = None
    effort: str | None = None
    max_turns: int | None = None
    max_budget_usd: float | None = None
    permission_mode: str = "default"
    agents: dict[str, Any] | None = None
    mcp_servers: dict[str, Any] = {}
    hooks: dict[str, Any] | None = None
    compact: CompactPolicy | None = None
    env: dict[str, str] = {}
    glance: bool = False
    workbench: bool = True
    delegate_only: bool = False

def build_options(
    spec: AgentSpec, *,
    cwd: str | Path | None = None,
    session_store: SessionStore | None = None,
    resume: str | None = None,
    fork: bool = False,
    resume_at: str | None = None,
    use_plugin: bool = True,
    portable: bool = True,
    add_dirs: list[str] | None = None,
    flush: str = "eager",
    prelude: str = "",
) -> ClaudeAgentOptions: ...

@dataclass
class CompactPolicy:
    mode: str = "auto"
    window: int | None = None
    def env(self) -> dict[str, str]: ...

@dataclass
class HandoffPolicy:
    enabled: bool = True
    window: int = default_window()
    headroom: int = 0
    max_generations: int = 8

    HEADROOM_FRACTION: ClassVar = 0.25
    HEADROOM_FLOOR: ClassVar = 50_000

    @property
    def room(self) -> int: ...
    @property
    def at(self) -> int: ...
    @property
    def warn_at(self) -> int: ...

def default_window() -> int: ...
def calib_path() -> Path: ...
def calibrated_window() -> int | None: ...
def remember_overflow(context: int) -> None: ...
PLUGIN_DIR: Path
""",
    "flower.core.runtime": """
class Runtime:
    def __init__(
        self,
        *,
        workspace: str | Path,
        run_dir: str | Path = "runs",
        portable: bool = True,
        trim: TrimPolicy | bool = False,
        ephemeral: EphemeralPolicy | bool = True,
        keep_denials: int = 1,
        workbench: Workbench | bool = False,
        spill_threshold: int | None = 4000,
        resilience: Resilience | bool = True,
        handoff: HandoffPolicy | bool = True,
    ) -> None: ...

    INTERRUPTED: ClassVar = "interrupted-by-human"
    HANDOFF_DUE: ClassVar = "context-full-handoff"
    INTERRUPT_NOTE: ClassVar[str]

    async def run(
        self, spec, prompt, *, step_name=None, resume=None, fork=False, resume_at=None, on_event=None
    ) -> StepResult: ...
    def rescue(self) -> None: ...
    @property
    def manifest_path(self) -> Path: ...
    @property
    def project_key(self) -> str: ...
    def has_session(self, session_id: str) -> bool: ...
    def context_of(self, session_id: str) -> int: ...
    def total_cost(self) -> float: ...
    def close(self) -> None: ...

@dataclass
class StepResult:
    step: str
    session_id: str | None = None
    ok: bool = False
    cost_usd: float = 0.0
    num_turns: int = 0
    text: str = ""
    error: str | None = None
    started_at: float = 0.0
    ended_at: float = 0.0
    attempts: int = 1
    errors: list[str] = []
    resumed: bool = False
    retired: list[str] = []
    context: int = 0
    @property
    def duration_s(self) -> float: ...
""",
    "flower.core.roles": """
COORDINATOR_TOOLS = ["Agent", "TodoWrite", "Read"]
WEB_TOOLS = ["WebFetch", "WebSearch"]
WORKER_TOOLS = ["Read", "Write", "Edit", "Bash", "Glob", "Grep", "WebFetch", "WebSearch"]
COORDINATOR_RULES: str
WORKER_RULES: str
CLARIFIER_RULES: str
JUDGE_RULES: str
ORACLE_RULES: str

def coordinator(
    name: str,
    instructions: str,
    workers: dict[str, AgentDefinition],
    *,
    channel: Any = None,
    can_read: bool = True,
    glance: bool = True,
    model: str | None = None,
    effort: str | None = None,
    max_turns: int | None = None,
    max_budget_usd: float | None = None,
    permission_mode: str = "acceptEdits",
    compact: Any = None,
    hooks: dict[str, Any] | None = None,
    env: dict[str, str] | None = None,
) -> AgentSpec: ...

def worker(
    description: str,
    prompt: str,
    *,
    tools: list[str] | None = None,
    model: str = "inherit",
    effort: str | int | None = None,
    max_turns: int | None = None,
    permission_mode: str | None = None,
    skills: list[str] | None = None,
    discipline: bool = True,
    isolate: bool = False,
) -> AgentDefinition: ...

def clarify(
    name: str, channel: Any, *,
    instructions: str = "", can_read: bool = True,
    model: str | None = None, effort: str | None = None,
    max_turns: int | None = None, max_budget_usd: float | None = None,
) -> AgentSpec: ...

def judge(
    name: str, channel: Any, *,
    instructions: str = "", can_run: bool = False,
    model: str | None = None, effort: str | None = None,
    max_turns: int | None = None, max_budget_usd: float | None = None,
) -> AgentSpec: ...

def oracle(
    name: str = "旁路问答", *,
    instructions: str = "",
    model: str | None = None, effort: str | None = None,
    max_turns: int | None = 12, max_budget_usd: float | None = 0.5,
) -> AgentSpec: ...
""",
    "flower.core.brief": """
@dataclass
class Brief:
    goal: str = ""
    accept: str = ""
    bounds: str = ""
    unknowns: str = ""
    path: Path | None = field(default=None, compare=False)
    @classmethod
    def parse(cls, text: str) -> Brief: ...
    def missing(self) -> list[str]: ...
    def complete(self) -> bool: ...
    def to_markdown(self) -> str: ...
    def prompt_block(self) -> str: ...
    def write(self, path: str | Path) -> Path: ...
    @classmethod
    def load(cls, path: str | Path) -> Brief | None: ...
""",
    "flower.core.handoff": """
@dataclass
class Handoff:
    doing: str = ""
    decided: str = ""
    deadends: str = ""
    next: str = ""
    scene: str = ""
    step: str = ""
    path: Path | None = field(default=None, compare=False)
    @classmethod
    def parse(cls, text: str, *, step: str = "") -> Handoff: ...
    @property
    def degraded(self) -> bool: ...
    def missing(self) -> list[str]: ...
    def complete(self) -> bool: ...
    def to_markdown(self) -> str: ...
    def prompt_block(self) -> str: ...
    def write(self, path: str | Path) -> Path: ...
    @classmethod
    def load(cls, path: str | Path) -> Handoff | None: ...

DEGRADED = "[降级:交接没写成]"
HANDOFF_PROMPT: str
def is_overflow(*texts: str | None) -> bool: ...
def degraded(step: str, prompt: str, *, why: str = "") -> Handoff: ...
""",
    "flower.core.goal": """
@dataclass
class Goal:
    statement: str = ""
    checks: list[str] = []
    path: Path | None = None
    @classmethod
    def parse(cls, text: str) -> Goal: ...
    @property
    def unverifiable(self) -> list[str]: ...
    def missing(self) -> list[str]: ...
    def complete(self) -> bool: ...
    def to_markdown(self) -> str: ...
    def prompt_block(self) -> str: ...
    def amend(self, extra: str) -> Goal: ...
    def write(self, path: str | Path) -> Path: ...
    @classmethod
    def load(cls, path: str | Path) -> Goal | None: ...

@dataclass
class Verdict:
    state: str = ""
    reason: str = ""
    failed: list[str] = []
    @classmethod
    def parse(cls, text: str) -> Verdict: ...
    @property
    def achieved(self) -> bool: ...
    @property
    def unreachable(self) -> bool: ...
    @property
    def ok(self) -> bool: ...
    def feedback(self) -> str: ...

ACHIEVED = "achieved"
NOT_YET = "not_yet"
UNREACHABLE = "unreachable"
""",
    "flower.core.guard": """
HANDS_ON = "Bash|Write|Edit|NotebookEdit"
WRITE_ONLY = "Write|Edit|NotebookEdit"
BULKY = "Bash|Read|Grep|Glob|WebFetch|WebSearch"

def whitelist_guard(allowed: list[str] | None, *, role: str = "这个角色") -> HookMatcher | None: ...
def delegate_guard(*, tools: str = "Bash|Write|Edit|NotebookEdit", allow_glance: bool = False) -> HookMatcher: ...
def spill_guard(
    workbench: Workbench, *,
    threshold: int = 4000,
    tools: str = "Bash|Read|Grep|Glob|WebFetch|WebSearch",
    main_only: bool = False,
) -> HookMatcher: ...
def index_guard(workbench: Workbench) -> HookMatcher: ...
def isolate_guard(agents: dict[str, AgentDefinition], *, on_inject: Any = None) -> HookMatcher: ...
def isolated(agent: AgentDefinition, flag: bool = True) -> AgentDefinition: ...
def wants_isolation(agent: AgentDefinition | None) -> bool: ...
def workbench_hooks(
    workbench: Workbench, *,
    delegate_only: bool = True,
    spill_threshold: int | None = 4000,
    agents: dict[str, AgentDefinition] | None = None,
    allow_glance: bool = False,
) -> dict[str, list[HookMatcher]]: ...
def merge_hooks(*groups: dict[str, list[Any]] | None) -> dict[str, list[Any]]: ...
""",
    "flower.core.workbench": """
@dataclass
class Workbench:
    workspace: Path
    dirname: str = ".flower"
    max_index_entries: int = 40
    home: Path | None = None
    @property
    def root(self) -> Path: ...
    @property
    def external(self) -> bool: ...
    @property
    def scripts(self) -> Path: ...
    @property
    def artifacts(self) -> Path: ...
    @property
    def notes(self) -> Path: ...
    @property
    def index_path(self) -> Path: ...
    def show(self, p: Path) -> str: ...
    def ensure(self) -> Workbench: ...
    def scan(self, d: Path) -> list[tuple[str, str, int]]: ...
    def refresh(self) -> str: ...
    def prompt_block(self) -> str: ...
""",
    "flower.core.events": """
@dataclass
class Event:
    kind: EventKind
    text: str = ""
    tool: str = ""
    payload: dict[str, Any] = {}
    raw: Any = None
    def __str__(self) -> str: ...

def normalize(message: Any) -> list[Event]: ...
""",
    "flower.core.human": """
@dataclass
class Ask:
    id: str
    question: str
    options: list[str] = []
    asked_at: float = time()
    state: str = "asked"
    answer: str = ""
    @property
    def waited_s(self) -> float: ...
    def event(self, remaining: int = 0) -> Event: ...

@dataclass
class Mail:
    id: str
    text: str
    sent_at: float = time()
    taken: bool = False

class HumanChannel:
    def __init__(
        self,
        *,
        on_event: Callable[[Event], None] | None = None,
        max_asks: int | None = None,
        timeout_s: float | None = 1800.0,
        log_path: str | Path | None = None,
        amend_path: str | Path | None = None,
        over_budget_text: str = "提问额度已用完。不要再问了 —— "
        "把剩下的不确定项写进「未知与假设」那一段,按你自己的判断继续。",
        timeout_text: str = "无人应答。按你自己的判断继续,并把这个问题和你采用的假设写进「未知与假设」那一段。"
        "不要重复提问,也不要停在这里。",
        declined_text: str = "对方跳过了这个问题。按你自己的判断继续,并把假设写进「未知与假设」。",
    ) -> None: ...
    @property
    def tool_name(self) -> str: ...
    @property
    def inbox_name(self) -> str: ...
    def mcp_servers(self) -> dict[str, Any]: ...
    async def ask(self, question: str, options: list[str] | None = None) -> Ask: ...
    def answer(self, ask_id: str, text: str) -> bool: ...
    def decline(self, ask_id: str, reason: str = "") -> bool: ...
    def pending(self) -> list[Ask]: ...
    async def next_ask(self, timeout: float | None = None) -> Ask | None: ...
    def send(self, text: str) -> Mail | None: ...
    def amend(self, text: str, *, label: str = "运行中补充") -> bool: ...
    def pending_mail(self) -> list[Mail]: ...
    @property
    def remaining(self) -> int: ...
    def transcript(self) -> str: ...

SERVER = "human"
TOOL = "ask"
TOOL_NAME = "mcp__human__ask"
INBOX = "inbox"
INBOX_NAME = "mcp__human__inbox"
OVER_BUDGET = "提问额度已用完。不要再问了 —— 把剩下的不确定项写进「未知与假设」那一段,按你自己的判断继续。"
TIMEOUT = (
    "无人应答。按你自己的判断继续,并把这个问题和你采用的假设写进「未知与假设」那一段。"
    "不要重复提问,也不要停在这里。"
)
DECLINED = "对方跳过了这个问题。按你自己的判断继续,并把假设写进「未知与假设」。"
NO_MAIL = "收件箱是空的。继续干活,不用理会。"
""",
    "flower.core.lineage": """
@dataclass
class Lineage:
    path: Path
    workspace: str
    steps: dict[str, str] = {}
    woke: int = 0
    @classmethod
    def open(cls, run_dir: str | Path, workspace: str | Path) -> Lineage: ...
    def remember(self, step: str, session_id: str) -> None: ...
    def bump(self) -> int: ...
    def archive(self, into: Path, *, extra: list[Path] | None = None) -> Path: ...
""",
    "flower.core.resilience": """
@dataclass
class Resilience:
    enabled: bool = True
    max_attempts: int = 6
    base_delay: float = 4.0
    max_delay: float = 120.0
    probe_timeout: float = 5.0
    probe_interval: float = 15.0
    max_offline_wait: float = 3600.0
    retry_unknown: bool = True
    resume_prompt: str = "上一轮在中途被打断,没有跑完。检查一下工作台里已经落盘的东西,从中断处接着做,不要重头来过。"
    def delay_for(self, attempt: int) -> float: ...
    def should_retry(self, kind: str) -> bool: ...
    async def wait_online(self, notify: Callable[[str], object] | None = None) -> bool: ...

def classify(text: str | None) -> str: ...
def endpoint() -> tuple[str, int]: ...
async def reachable(host: str, port: int, timeout: float = 5.0) -> bool: ...
""",
    "flower.core.env": """
KNOWN = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_MODEL",
    "ANTHROPIC_DEFAULT_OPUS_MODEL",
    "ANTHROPIC_DEFAULT_SONNET_MODEL",
    "ANTHROPIC_DEFAULT_HAIKU_MODEL",
    "CLAUDE_CODE_SUBAGENT_MODEL",
    "CLAUDE_CODE_EFFORT_LEVEL",
)
PROBE_OK = "ok"
PROBE_AUTH = "auth"
PROBE_CONFIG = "config"
PROBE_NET = "net"
PROBE_MAX_TOKENS = 16

def user_env_path() -> Path: ...
def load_dotenv(path: str | Path | None = None, *, override: bool = False) -> dict[str, str]: ...
def check_credentials() -> str | None: ...
def probe_credentials(timeout: float = 20.0) -> tuple[str, str]: ...
def describe() -> dict[str, str]: ...
""",
    "flower.core.update": """
INTERVAL = 86400

def state_path() -> Path: ...
def local_head() -> str | None: ...
def remote_head(timeout: float = 6.0) -> str | None: ...
def maybe_update(note: Callable[[str], None] | None = None) -> Thread | None: ...
""",
    "flower.core.bequest": """
@dataclass
class Bequest:
    what: str = ""
    acceptance: str = ""
    generated: str = ""
    deadends: str = ""
    workbench: str = ""
    path: Path | None = field(default=None, compare=False)
    @classmethod
    def parse(cls, text: str) -> Bequest: ...
    @property
    def degraded(self) -> bool: ...
    def missing(self) -> list[str]: ...
    def complete(self) -> bool: ...
    def to_markdown(self) -> str: ...
    def prompt_block(self) -> str: ...
    def block_body(self) -> str: ...
    def write(self, path: str | Path) -> Path: ...
    @classmethod
    def load(cls, path: str | Path) -> Bequest | None: ...

BEGIN: str
END: str
DEGRADED = "[降级:收尾交接没写成]"
BEQUEST_PROMPT: str
def mechanical(*, what: str = "", workbench_hint: str = "", why: str = "") -> Bequest: ...
def write_managed(path: str | Path, body: str) -> Path: ...
def write_both(root: str | Path, body: str) -> list[Path]: ...
""",
    "flower.stores.sqlite": """
class SqliteSessionStore:
    def __init__(self, path: str | Path) -> None: ...
    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None: ...
    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None: ...
    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]: ...
    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]: ...
    async def delete(self, key: SessionKey) -> None: ...
    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]: ...
    def projects(self) -> list[str]: ...
    def has_session(self, project_key: str, session_id: str) -> bool: ...
    def last_context(self, project_key: str, session_id: str, *, scan: int = 60) -> int: ...
    def close(self) -> None: ...
""",
    "flower.stores.trim": """
@dataclass
class TrimPolicy:
    keep_recent: int = 20
    min_chars: int = 2000
    spill_dirname: str = ".flower/spill"
    enabled: bool = True
    def placeholder(self, path: str, n: int) -> str: ...

@dataclass
class EphemeralPolicy:
    enabled: bool = True
    keep_recent: int = 6
    max_chars: int = 2000
    text: str = "[{cmd} 的结果已过期(第 {age} 轮前),当前状态可能已变。需要请重新执行]"
    def placeholder(self, cmd: str, age: int) -> str: ...

def is_ephemeral(cmd: str) -> bool: ...

class TrimmingSessionStore:
    def __init__(
        self,
        path: str | Path,
        workspace: str | Path,
        policy: TrimPolicy | None = None,
        ephemeral: EphemeralPolicy | None = None,
    ) -> None: ...
    def expire(self, entries: list[SessionStoreEntry]) -> list[SessionStoreEntry]: ...
    def trim(self, entries: list[SessionStoreEntry]) -> list[SessionStoreEntry]: ...

def trim_report(store: TrimmingSessionStore) -> str: ...
""",
    "flower.stores.prune": """
@dataclass
class PrunePolicy:
    drop_api_errors: bool = True
    neutralize_interrupts: bool = True
    interrupt_text: str = "[上一轮在此处被中断,该工具结果未产生]"
    heal_orphans: bool = True
    orphan_text: str = "[这一步被打断了,没有结果。需要的话重做。]"
    keep_denials: int = 1

class PruningSessionStore:
    def __init__(
        self,
        path: str | Path,
        workspace: str | Path,
        policy: TrimPolicy | None = None,
        prune: PrunePolicy | None = None,
        ephemeral: EphemeralPolicy | None = None,
    ) -> None: ...
    def prune(self, entries: list[SessionStoreEntry]) -> list[SessionStoreEntry]: ...

def is_api_error(entry: SessionStoreEntry) -> bool: ...
def is_denial(entry: SessionStoreEntry) -> str | None: ...
def relink(entries: list[SessionStoreEntry], drop: set[str]) -> list[SessionStoreEntry]: ...
def heal_orphans(entries: list[SessionStoreEntry], text: str) -> list[SessionStoreEntry]: ...
""",
    "flower.workflow.base": """
@dataclass
class Step:
    name: str
    spec: AgentSpec
    prompt: str | Callable[[Ctx], str]
    resume_from: str | None = None
    fork: bool = False
    retries: int = 0
    gate: Callable[[StepResult, Ctx], bool] | None = None
    on_fail: str = "stop"
    when: Callable[[Ctx], bool] | None = None
    on_reject: Callable[[StepResult, Ctx], str] | None = None
    resume_prompt: str | Callable[[Ctx], str] | None = None
    reduce: Callable[[StepResult, Ctx], str] | None = None
    def render(self, ctx: Ctx, *, resuming: bool = False) -> str: ...

class StepAbort: ...

@dataclass
class Workflow:
    steps: list[Step]
    name: str = "workflow"
    context: dict[str, Any] = {}
    channel: HumanChannel | None = None
    workbench: Workbench | None = None
    continuous: bool = True
    async def run(self, runtime, *, on_event=None, on_step=None) -> dict[str, Any]: ...
""",
    "flower.workflow.clarify": """
BRIEF_KEY = "_brief"
MISSING_KEY = "_brief_missing"
CLARIFY_RESUME: str

def clarify_step(
    channel: HumanChannel, *,
    brief_path: str | Path,
    prompt: str | Callable[[Ctx], str],
    name: str = "确认需求",
    spec: AgentSpec | None = None,
    instructions: str = "",
    always_ask: bool = False,
    on_fail: str = "stop",
    retries: int = 0,
    **spec_kw,
) -> Step: ...
""",
    "flower.workflow.goal": """
GOAL_KEY = "_goal"
VERDICT_KEY = "_verdict"
ROUND_KEY = "_goal_rounds"

def goal_step(
    channel: HumanChannel, *,
    goal_path: str | Path,
    brief_key: str = "确认需求",
    name: str = "设定目标",
    spec: AgentSpec | None = None,
    instructions: str = "",
    always_set: bool = False,
    on_fail: str = "stop",
    retries: int = 0,
    **spec_kw,
) -> Step: ...

def with_goal(
    step: Step, channel: HumanChannel, *,
    goal_path: str | Path,
    spec: AgentSpec | None = None,
    rounds: int = 3,
    instructions: str = "",
    can_run: bool = False,
    name: str | None = None,
    **spec_kw,
) -> Step: ...
""",
    "flower.workflow.starter": """
def wake_state(
    workspace: str | Path = ".", *,
    run_dir: str | Path = "runs",
    isolate: bool = False,
    brief_name: str = "需求.md",
    goal_name: str = "目标.md",
) -> dict: ...
""",
    "flower.cli": """
def main(): ...
def build_parser(): ...
class Render:
    def __init__(self, verbose: bool = False) -> None: ...
    def __call__(self, ev: Event) -> None: ...
def render(ev, *, verbose=False): ...
class Recent:
    def __init__(self, size: int = 60) -> None: ...
    def add(self, ev): ...
    def render(self) -> str: ...
class LineEditor:
    def feed(self, data: bytes) -> str | None: ...
    def reset(self): ...
def answer_from_stdin(channel, *, on_aside=None, on_interrupt=None, interrupt_req=None) -> Event: ...
async def ask_aside(question, rt, recent, *, verbose=False): ...
ASIDE_PROMPT: str
def ask_for_prompt(*, waking=False) -> str: ...
def ensure_credentials(*, probe=True) -> None: ...
def run_setup(*, reason="") -> bool: ...
""",
}
"""API 4 to 16, by the module in which each name lives (API 1). What R5 changes stands in `ADDITIONS` only."""

ADDITIONS: dict[str, str] = {
    "flower.core.runtime": """
class Runtime:
    def interrupt(self, message: str = "", *, now: bool = False) -> None: ...
    def end(self) -> None: ...
""",
    "flower.workflow.starter": """
def starter_flow(
    ask: str, *,
    workspace: str | Path = ".",
    run_dir: str | Path = "runs",
    new: bool = False,
    isolate: bool = False,
    clarify_only: bool = False,
    goal: bool = True,
    rounds: int = 3,
    judge_can_run: bool = False,
    max_asks: int | None = None,
    timeout_s: float | None = 1800.0,
    instructions: str = "",
    worker_prompt: str = "你负责实现。每改一处就跑一次验证,别攒到最后。",
    brief_name: str = "需求.md",
    goal_name: str = "目标.md",
    log_name: str = "问答记录.md",
    lang: str | None = None,
) -> Workflow: ...
""",
}
"""Rulings R5 and product 6: signatures that differ from the specification's, and what is added to it."""

ATTRIBUTES: dict[str, list[str]] = {
    "Runtime": [
        *("workspace", "run_dir", "portable", "store", "resilience", "handoff", "workbench", "spill_threshold"),
        *("results", "run_id", "on_session"),
        *("on_interrupted", "budget_usd", "model"),  # rulings R5
    ],
    "HumanChannel": [
        *("on_event", "max_asks", "timeout_s", "log_path", "amend_path"),
        *("over_budget_text", "timeout_text", "declined_text"),
        *("asks", "mail", "ui_errors"),
    ],
    "TrimmingSessionStore": ["workspace", "policy", "ephemeral", "last_report"],
    "PruningSessionStore": [
        "workspace",
        "policy",
        "ephemeral",
        "last_report",
        "prune_policy",
        "pruned",
        "denials_dropped",
    ],
    "LineEditor": ["buf", "pos"],
}
"""What instances have beside their methods (API 4.1, 10.5, 10.8, 12.5, 16.10; behaviour 6.4)."""

WRITABLE: dict[str, dict[str, object]] = {
    "Runtime": {"budget_usd": 2.5, "model": "claude-haiku-5-5", "on_session": None, "on_interrupted": None},
    "HumanChannel": {
        "timeout_s": 3.0,
        "max_asks": 7,
        "on_event": None,
        "over_budget_text": "a",
        "timeout_text": "b",
        "declined_text": "c",
    },
}
"""What may be set while it runs (API 4.1; behaviour 6.4; rulings R5)."""

OWN: dict[str, set[str]] = {
    # What a session cost so far is kept with the session, so that another process can go on counting (API 2).
    "SqliteSessionStore": {"book_cost", "cost_of"},
    # docs/decisions/0006: the sentinel that `on_interrupted` answers, and the error of a run that a person ended.
    # Rulings R25: the plugins that travel with a workspace.
    "Runtime": {"END", "ENDED", "current", "plugin_dirs"},
    # The language that `starter_flow(lang=)` gives to its workflow; the names of attempts in the manifest.
    "Workflow": {"language"},
    "Step": {"label"},
    # What a default of `resume_prompt` is in the language spoken now.
    "Resilience": {"prompt_to_resume"},
}
"""Public members that no page names, each with its reason. A new one belongs here, on purpose."""


def promised(name: str) -> Any:
    """A public name that may not be built yet: then whoever needs it fails, and not the whole module."""
    return getattr(flower, name)
