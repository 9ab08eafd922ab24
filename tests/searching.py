"""How long tests search at random: as long as has found anything, and longer in `make search`."""

from __future__ import annotations

import os

TIMES = int(os.environ.get("FLEXWIRE_SEARCH", "1"))


def times(few: int) -> int:
    """Give how many examples a search takes: ``few``, or so many times more as are asked for."""
    return few * TIMES
