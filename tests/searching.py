"""How long random tests search: long enough to find known mistakes, and longer in `make search`.

A test that fails because the machine is busy says nothing about the code, so no example has a
deadline, and no health check measures time. `make test` tries the same examples each time, so a
failure is due to a change. `make search` tries new examples.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

TIMES = int(os.environ.get("FLEXWIRE_SEARCH", "1"))
TIMED: Final = (HealthCheck.too_slow,)
"""The health checks that fail on a busy machine: tests that suppress others suppress these too."""

_NEW: Final[dict[str, Any]] = {} if TIMES > 1 else {"derandomize": True, "database": None}
settings.register_profile("flexwire", deadline=None, suppress_health_check=TIMED, **_NEW)
settings.load_profile("flexwire")


def times(few: int) -> int:
    """Return how many examples a search tries: ``few``, multiplied by the requested factor."""
    return few * TIMES


def in_make_long(*values: Any) -> list[Any]:
    """Return parameter values that only `make long` tries.

    `make test` tries one form of each case; these are further forms. A tuple contains the values of
    several parameters.
    """
    several = (value if isinstance(value, tuple) else (value,) for value in values)
    return [pytest.param(*value, marks=pytest.mark.long) for value in several]


def trying_few(
    values: Iterable[Any], few: Collection[str], *, name: Callable[[Any], str] = str
) -> list[Any]:
    """Return parameter values: `make test` tries those named in ``few``, `make long` the others.

    >>> [one if isinstance(one, str) else one.values for one in trying_few("abc", "b")]
    ['b', ('a',), ('c',)]
    """
    named = {name(one): one for one in values}
    assert named.keys() >= {*few}, f"expected names of {[*named]}, got {few}"
    others = [one for key, one in named.items() if key not in few]
    return [*(named[one] for one in named if one in few), *in_make_long(*others)]


def in_parts(parts: int) -> list[Any]:
    """Return the numbers of the parts of a law over many values; `make test` tries the first part.

    Part ``part`` is ``values[part::parts]``. Message names alternate between requests and
    responses, so ``parts`` must be odd: each part then contains both.
    """
    assert parts % 2, f"expected an odd number of parts, got {parts}"
    return [0, *in_make_long(*range(1, parts))]
