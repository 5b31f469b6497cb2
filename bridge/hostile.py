"""Text from people, models and files, made harmless: controls, tricks with direction and width, secrets. Pure.

It takes nothing away that a reader needs: what cannot be shown as it is gets a visible mark in its place.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection

__all__ = ["HIDDEN", "clean", "clean_name", "mask", "one_line"]

HIDDEN = "[hidden]"
"""Stands where a secret stood."""

SHORTEST_SECRET = 6
"""A known secret below this length is not looked for: it would blot out ordinary words."""

_TOKENS = re.compile(
    r"\bx(?:ox[a-z]|app)-[A-Za-z0-9][A-Za-z0-9.-]{8,}"  # chat tokens
    r"|\bsk-(?:ant-|proj-)?[A-Za-z0-9_-]{16,}"  # model keys
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"  # cloud access keys
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bglpat-[A-Za-z0-9_-]{16,}"  # code hosts
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
)

_CONTROLS = {code: 0x2400 + code for code in range(0x20) if code not in (0x09, 0x0A)}
_CONTROLS |= {0x7F: 0x2421}
_CONTROLS |= dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
# Overrides, embeddings and isolates reorder what stands behind them, also outside the text they came with.
_DIRECTIONS = dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)], 0xFFFD)
# The tag characters and the deprecated formatting ones: text that a model reads and a person cannot see.
_UNSEEN = dict.fromkeys([*range(0xE0000, 0xE0080), *range(0x206A, 0x2070), *range(0xFFF9, 0xFFFC)], 0xFFFD)
_SURROGATES = dict.fromkeys(range(0xD800, 0xE000), 0xFFFD)
_SHOWN = _CONTROLS | _DIRECTIONS | _UNSEEN | _SURROGATES
_LINES = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_MARKS_IN_A_ROW = 3


def clean(text: str) -> str:
    """Show control characters and characters that reorder or hide text; line ends become `\\n`."""
    return _LINES.sub("\n", text).translate(_SHOWN)


def one_line(text: str, most: int) -> str:
    """Make one clean line of a text, cut at `most` characters with an ellipsis."""
    line = " ".join(clean(text).split())
    return line if len(line) <= most else line[: max(0, most - 1)].rstrip() + "…"


def clean_name(name: str, *, most: int = 60) -> str:
    """Make a display name that cannot pass for something else: one line, nothing invisible, no towers of marks."""
    kept: list[str] = []
    marks = 0
    for char in unicodedata.normalize("NFC", clean(name)):
        category = unicodedata.category(char)
        marks = marks + 1 if category in ("Mn", "Me") else 0
        if category in ("Cf", "Cc", "Co", "Cn", "Zl", "Zp") and not char.isspace():
            continue
        if char in "\u115f\u1160\u3164\uffa0\u034f\ufffd" or marks > _MARKS_IN_A_ROW:
            continue
        kept.append(char)
    return one_line("".join(kept), most)


def mask(text: str, secrets: Collection[str] = ()) -> str:
    """Hide known secrets, and whatever has the form of a well-known kind of token (product 4)."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= SHORTEST_SECRET:
            text = text.replace(secret, HIDDEN)
    return _TOKENS.sub(HIDDEN, text)
