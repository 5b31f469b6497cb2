"""Figures for people: money, durations, counts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitTexts:
    """Templates of durations; the formatting itself is language-free."""

    moment: str
    """What has lasted less than a minute."""
    seconds: str
    minutes: str
    minutes_seconds: str
    hours: str
    hours_minutes: str
    days_hours: str

    def duration(self, seconds: float) -> str:
        """Say a duration: `12 s`, `4 min 12 s`, `2 h 05 min`, `3 d 4 h`. Below zero counts as zero."""
        whole = max(0, round(seconds))
        minutes, rest = divmod(whole, 60)
        hours, over = divmod(minutes, 60)
        if minutes == 0:
            return self.seconds.format(s=rest)
        if hours == 0:
            return self.minutes_seconds.format(m=minutes, s=rest)
        if hours < 48:
            return self.hours_minutes.format(h=hours, m=f"{over:02d}")
        return self.days_hours.format(d=hours // 24, h=hours % 24)

    def coarse(self, seconds: float) -> str:
        """Say a duration that is still growing, in whole minutes, so that it changes once a minute at most."""
        minutes = max(0, int(seconds // 60))
        if minutes < 1:
            return self.moment
        if minutes < 60:
            return self.minutes.format(m=minutes)
        return self.duration(minutes * 60)


def money(usd: float) -> str:
    """Say an amount of US dollars: `$0.21`; what is above nothing and below a cent is `<$0.01`."""
    if 0 < usd < 0.005:
        return "~$0.01"
    return f"${usd:,.2f}"


def thousands(tokens: int) -> str:
    """Say a number of tokens: `870`, `34K`, `1.2M`."""
    if tokens < 1_000:
        return str(tokens)
    if tokens < 999_500:
        return f"{tokens / 1_000:.0f}K"
    return f"{tokens / 1_000_000:.1f}M"


EN = UnitTexts(
    moment="under a minute",
    seconds="{s} s",
    minutes="{m} min",
    minutes_seconds="{m} min {s} s",
    hours="{h} h",
    hours_minutes="{h} h {m} min",
    days_hours="{d} d {h} h",
)

ZH = UnitTexts(
    moment="不到一分钟",
    seconds="{s} 秒",
    minutes="{m} 分钟",
    minutes_seconds="{m} 分 {s} 秒",
    hours="{h} 小时",
    hours_minutes="{h} 小时 {m} 分",
    days_hours="{d} 天 {h} 小时",
)
