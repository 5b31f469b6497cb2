"""Where transcripts are kept, and what a resume gets back of them."""

from flower.stores.sqlite import SqliteSessionStore
from flower.stores.trim import TrimmingSessionStore, TrimPolicy, trim_report

__all__ = ["SqliteSessionStore", "TrimPolicy", "TrimmingSessionStore", "trim_report"]
