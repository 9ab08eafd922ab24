"""How far groups are from the ends of their partitions: `lag`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

WATERMARK: Final = ("high_watermark", "is_watermark_exact")
"""The columns of a partition's end that say what consumers may read of it."""


def lag(commits: DataFrame, ends: DataFrame) -> DataFrame:
    """Return the rows of `last_commits` with ``end_offset`` and ``lag``, null where not known.

    ``ends`` has ``topic``, ``partition`` and ``end_offset``, as `end_offsets` gives them of logs.
    Where ``ends`` has `WATERMARK` too, the lag is up to the high watermark, as
    `kafka-consumer-groups` says it, and these columns are in the result. A high watermark that may
    be old is taken to be at least what was committed, as no consumer reads beyond the real one.

    A lag below 0 is of a topic that was made anew, or whose log was truncated; it is null too of an
    offset so far out of reach that no number says it.
    """
    shown = [one for one in WATERMARK if one in ends.columns]
    wanted = ends.select("topic", "partition", "end_offset", *shown)
    both = commits.join(wanted, ["topic", "partition"], "left")
    until = readable_end(F.col("offset")) if shown else F.col("end_offset")
    rows = both.withColumn("lag", F.try_subtract(until, F.col("offset")))
    return rows.select(*commits.columns, "end_offset", "lag", *shown)


def readable_end(read: Column) -> Column:
    """Return where consumers stop, of an end with `WATERMARK` up to which somebody has ``read``."""
    watermark, is_exact = (F.col(one) for one in WATERMARK)
    known = F.when(is_exact, watermark).otherwise(F.greatest(watermark, read))
    end = F.col("end_offset")
    # Where no file says it, it is the end.
    return F.when(watermark.isNull(), end).otherwise(F.least(known, end))
