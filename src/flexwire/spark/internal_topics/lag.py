"""How far groups are from the ends of their partitions: `lag`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def lag(commits: DataFrame, ends: DataFrame) -> DataFrame:
    """The rows of `last_commits` with ``end_offset`` and ``lag``, both null where not known.

    ``ends`` has ``topic``, ``partition`` and ``end_offset``, as `end_offsets` gives them of logs.
    A lag below 0 is of a topic that was made anew, or whose log was truncated; it is null too of an
    offset so far out of reach that no number says it.
    """
    both = commits.join(
        ends.select("topic", "partition", "end_offset"), ["topic", "partition"], "left"
    )
    rows = both.withColumn("lag", F.try_subtract("end_offset", "offset"))
    return rows.select(*commits.columns, "end_offset", "lag")
