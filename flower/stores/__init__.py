"""Where transcripts are kept, and what a resume gets back of them."""

from flower.stores.sqlite import SqliteSessionStore

__all__ = ["SqliteSessionStore"]
