"""`python -m flower.cli` is the program `flower`."""

from __future__ import annotations

import sys

from flower.cli.parser import main

if __name__ == "__main__":
    sys.exit(main())
