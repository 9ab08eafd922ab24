"""How long tests search at random: as long as has found anything, and longer in `make search`.

A test that fails because the machine is busy says nothing of the code. So no example has a
deadline, and no health check looks at the time. `make test` tries the same examples each time, so
that a change that fails there is to blame; `make search` tries new ones.
"""

from __future__ import annotations

import os
from typing import Any, Final

from hypothesis import HealthCheck, settings

TIMES = int(os.environ.get("FLEXWIRE_SEARCH", "1"))
TIMED: Final = (HealthCheck.too_slow,)
"""The health checks that a busy machine fails: who suppresses others suppresses these too."""

_NEW: Final[dict[str, Any]] = {} if TIMES > 1 else {"derandomize": True, "database": None}
settings.register_profile("flexwire", deadline=None, suppress_health_check=TIMED, **_NEW)
settings.load_profile("flexwire")


def times(few: int) -> int:
    """Return how many examples a search takes: ``few``, or so many times more as are asked for."""
    return few * TIMES
