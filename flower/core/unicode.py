"""Text that every encoder takes: models and tools send halves of surrogate pairs, which UTF-8 cannot hold."""

from __future__ import annotations

import re

_HALF = re.compile("[\ud800-\udfff]")


def well_formed(text: str) -> str:
    """Return the text with the replacement character for each lone surrogate."""
    return text if text.isascii() else _HALF.sub("\ufffd", text)
