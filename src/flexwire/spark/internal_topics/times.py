"""Times of records as timestamps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.kernels.records.columns_layout import LAST_MILLISECOND

if TYPE_CHECKING:
    from pyspark.sql import Column


def moment(milliseconds: str | Column) -> Column:
    """Give ms since 1970 as a timestamp; null for what is none, as -1, and after the year 9999."""
    given = F.col(milliseconds) if isinstance(milliseconds, str) else milliseconds
    return F.timestamp_millis(F.when(given.between(0, LAST_MILLISECOND), given))
