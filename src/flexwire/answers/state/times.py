"""Times of records as timestamps."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.kernels.records.columns_layout import LAST_MILLISECOND

if TYPE_CHECKING:
    from pyspark.sql import Column


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def first_after(time: datetime) -> int:
    """The first time of a record, in ms since 1970, that is later than a time with a time zone.

    >>> first_after(datetime(1970, 1, 1, 0, 0, 0, 10_600, tzinfo=UTC))
    11
    >>> first_after(datetime(1970, 1, 1, 0, 0, 0, 10_000, tzinfo=UTC))
    11
    """
    return (time - _EPOCH) // timedelta(milliseconds=1) + 1


def passed(since: str | Column, now: Column) -> Column:
    """How many µs have passed, 0 at least; null where one of the two is not known."""
    elapsed = now - F.unix_micros(since)
    return F.when(elapsed.isNotNull(), F.greatest(elapsed, F.lit(0).cast("bigint")))


def is_older(since: str | Column, now: Column, than: timedelta) -> Column:
    """Return whether more than some time has passed; null where one of the two is not known."""
    return passed(since, now) > than // timedelta(microseconds=1)


def moment(milliseconds: str | Column) -> Column:
    """Give ms since 1970 as a timestamp; null for what is none, as -1, and after the year 9999."""
    given = F.col(milliseconds) if isinstance(milliseconds, str) else milliseconds
    return F.timestamp_millis(F.when(given.between(0, LAST_MILLISECOND), given))
