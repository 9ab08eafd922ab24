"""Percentiles that depend on the values alone, and not on how tables are split into tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

if TYPE_CHECKING:
    from pyspark.sql import Column

EXACT_BELOW: Final = 100_000
"""Smaller numbers count as they are. Of others the first five digits count, so that a task holds
few different numbers."""


def percentile(column: str, share: float) -> Column:
    """Return the least value of an integer column that this share of the values does not exceed.

    Nulls do not count; without values the percentile is null. ``share`` is from 0 to 1. A value of
    `EXACT_BELOW` or more is rounded down to five digits, so it is too small by less than 0.01 %.
    """
    digits = f"cast(pow(10, floor(log10({column})) - 4) as bigint)"
    rounded = f"if({column} < {EXACT_BELOW}, {column}, {column} - {column} % {digits})"
    found = F.expr(f"percentile_disc({share}) within group (order by {rounded})")
    # Spark makes a double of it, which has room for five digits and more.
    return found.cast("bigint")
