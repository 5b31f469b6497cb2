"""What is said about a newer version of the program (API 15.2)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateTexts:
    updated: str
    """Placeholder: revision."""
    failed: str
    """Placeholders: installer, reason."""
    bad_source: str
    """Placeholder: source."""
    timed_out: str
    """Placeholder: limit (seconds). Stands for the reason in `failed`."""


ZH = UpdateTexts(
    updated="有新版本,已经装好了({revision}),下次启动生效。这一次照旧用现在的。",
    failed="有新版本,但 {installer} 没装成:{reason}。现在的版本照常用。",
    bad_source=(
        "FLOWER_UPDATE_FROM 不是能用的 git 地址:{source}。要写成 https://、ssh:// 或 file:// 开头的;"
        "不想检查更新就去掉它。"
    ),
    timed_out="{limit} 秒还没装完",
)

EN = UpdateTexts(
    updated="There is a newer version and it has been installed ({revision}). It takes effect at the next start.",
    failed="There is a newer version, but {installer} could not install it: {reason}. This one goes on working.",
    bad_source=(
        "FLOWER_UPDATE_FROM is no git address that can be used: {source}. It must begin with https://, ssh:// or "
        "file://. Unset it to look for no updates."
    ),
    timed_out="not done after {limit} seconds",
)
