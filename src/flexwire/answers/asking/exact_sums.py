"""Exact sums of doubles, as strings, regardless of how the numbers are ordered or split.

A sum of doubles is rounded after each addition. The last digits of a total of daily sums would
therefore differ from those of the sum over all rows. An exact sum is a fraction ("3/8"), or "nan",
"inf" or "-inf".
"""

from __future__ import annotations

from fractions import Fraction
from math import copysign, inf, isfinite
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def sum_exactly(numbers: Iterable[float | str | None]) -> str | None:
    """Return the exact sum of doubles and of exact sums, or None if all of them are null.

    >>> sum_exactly([0.1, sum_exactly([0.2, None])]), sum_exactly([None])
    ('10808639105689191/36028797018963968', None)
    >>> sum_exactly([1e308, float("inf")])
    'inf'
    """
    whole, others, is_any = Fraction(0), 0.0, False
    for number in numbers:
        if number is None:
            continue
        is_any = True
        exact = _read(number)
        if isinstance(exact, Fraction):
            whole += exact
        else:
            # Infinity minus infinity is NaN.
            others += exact
    if not is_any:
        return None
    return str(whole) if others == 0 else str(others)


def divided(total: str | None, count: int | None) -> float | None:
    """Return an exact sum divided by a count and rounded once, or null if the count is 0.

    >>> divided("10808639105689191/36028797018963968", 3)
    0.1
    >>> divided("3", 0)
    """
    if total is None or not count:
        return None
    exact = _read(total)
    if not isinstance(exact, Fraction):
        return exact
    try:
        return float(exact / count)
    except OverflowError:
        return copysign(inf, exact)


def _read(number: float | str) -> Fraction | float:
    if isinstance(number, str):
        return float(number) if number in {"nan", "inf", "-inf"} else Fraction(number)
    return Fraction(number) if isfinite(number) else number
