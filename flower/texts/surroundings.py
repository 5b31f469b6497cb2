"""What is said about the world around a run: credentials, endpoint, network (behaviour 14 and 24)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SurroundingTexts:
    # A .env that a person named
    env_unreadable: str
    """Placeholders: by, path, reason."""
    env_variable: str
    """Stands for `by` where FLOWER_ENV named the file."""
    env_folder: str
    env_no_permission: str
    env_not_utf8: str
    """Placeholder: byte, counted from 1."""
    env_nul: str
    """Placeholder: line."""
    env_barred: str
    """Goes on the log. Placeholders: path, names."""

    # Credentials
    no_credentials: str
    """Placeholder: path, the file that `flower setup` writes."""
    masked: str
    """Placeholders: head, count."""
    default_value: str
    """Placeholder: value."""
    probe_no_credential: str
    probe_refused: str
    """Placeholders: status, detail. The same for the two below."""
    probe_no_model: str
    probe_server: str
    probe_no_answer: str
    """Placeholder: detail."""
    probe_accepted: str
    """Placeholder: status."""

    # Network
    offline: str
    """Placeholders: host, port, limit."""
    online: str
    """Placeholders: host, port."""
    seconds: str
    """Placeholder: count."""
    minutes: str
    """Placeholder: count."""
    resume: str
    """Said to a session that goes on after a failure; holds no detail of it, on purpose."""


ZH = SurroundingTexts(
    env_unreadable="{by}{path} 读不了:{reason}。里面的值一个也没有用上。",
    env_variable="FLOWER_ENV 指的 ",
    env_folder="这是一个目录,要的是一个文件",
    env_no_permission="没有读的权限",
    env_not_utf8="不是 UTF-8(从第 {byte} 个字节起),另存成 UTF-8 再来",
    env_nul="第 {line} 行有 NUL 字符,这多半不是文本文件",
    env_barred="{path} 里的 {names} 没有用上:项目的 .env 不能设这些。要设就 export,或者写进 FLOWER_ENV 指的文件。",
    no_credentials=(
        "缺少凭证:需要 ANTHROPIC_API_KEY 或 ANTHROPIC_AUTH_TOKEN。\n"
        "两条路:\n"
        "  1. 跑 `flower setup`,它会写到 {path}\n"
        "  2. 在当前目录放一个 .env,或者 export 这两个变量之一\n"
        "也找过 Claude Code 的设置(~/.claude/settings.json 的 env),那里没有可以借用的 token。"
    ),
    masked="{head}***(共 {count} 位)",
    default_value="{value}(默认)",
    probe_no_credential="没有凭证",
    probe_refused="凭证被拒(HTTP {status}){detail}",
    probe_no_model="网关地址或模型名不对(HTTP {status}){detail}",
    probe_server="服务端出错(HTTP {status}){detail}",
    probe_no_answer="没有连上:{detail}",
    probe_accepted="HTTP {status}",
    offline="{host}:{port} 不可达,等待恢复(最多 {limit})",
    online="{host}:{port} 恢复,继续",
    seconds="{count} 秒",
    minutes="{count} 分钟",
    resume=("上一轮在中途被打断,没有跑完。检查一下工作台里已经落盘的东西,从中断处接着做,不要重头来过。"),
)

EN = SurroundingTexts(
    env_unreadable="{by}{path} cannot be read: {reason}. None of its values was used.",
    env_variable="The file that FLOWER_ENV names, ",
    env_folder="it is a folder, and a file is needed",
    env_no_permission="no permission to read it",
    env_not_utf8="it is not UTF-8 (from byte {byte} on); save it as UTF-8",
    env_nul="there is a NUL in line {line}, so it is hardly a text file",
    env_barred=(
        "{path} sets {names}, which the .env of a project may not: passed over. Export it, or put it into the file "
        "that FLOWER_ENV names."
    ),
    no_credentials=(
        "No credentials: ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN is needed.\n"
        "Two ways out:\n"
        "  1. run `flower setup`, which writes {path}\n"
        "  2. put a .env into the current directory, or export one of the two variables\n"
        "Claude Code's own settings (env in ~/.claude/settings.json) were searched too; there is no token to borrow."
    ),
    masked="{head}***({count} characters)",
    default_value="{value} (default)",
    probe_no_credential="there are no credentials",
    probe_refused="the credentials were refused (HTTP {status}){detail}",
    probe_no_model="the address of the gateway or the name of the model is wrong (HTTP {status}){detail}",
    probe_server="the server failed (HTTP {status}){detail}",
    probe_no_answer="no connection: {detail}",
    probe_accepted="HTTP {status}",
    offline="{host}:{port} cannot be reached, waiting for it (at most {limit})",
    online="{host}:{port} is back, going on",
    seconds="{count} seconds",
    minutes="{count} minutes",
    resume=(
        "The last turn was cut short and did not finish. Look at what is already in the workbench, "
        "go on from where it stopped, and do not start over."
    ),
)
