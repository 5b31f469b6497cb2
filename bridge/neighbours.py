"""Other processes of the same user: what they may not look at (rulings R8)."""

from __future__ import annotations

import ctypes
import sys

PR_SET_DUMPABLE = 4


def close_to_neighbours() -> None:
    """Keep other processes of the same user from reading our memory, environment and descriptors.

    Works on Linux, against everybody but root; elsewhere it does nothing. Children are not covered: they begin anew.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
