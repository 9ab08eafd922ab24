"""Transactions that partitions have open by their logs, and how far committed records go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.answers.state.lag import WATERMARK, readable_end

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.internal_logs import InternalLogs
    from flexwire.protocol.internal_topics import InternalTopic

_PLACE: Final = ("topic", "partition")
_KEY: Final = (*_PLACE, "producer_id")


def opened(logs: InternalLogs, of: InternalTopic) -> DataFrame | None:
    """Return what partitions have open, by the headers of their batches: as `open_transactions`.

    It is as of the moment that the log of ``of`` is read up to. None where it is not known up to
    where other logs are to be read.
    """
    batches = logs.written(of)
    if batches is None:
        return None
    of_transactions = batches.where("is_transactional")
    is_end: SparkColumn = F.col("is_control")
    ends = of_transactions.where(is_end).groupBy(*_KEY).agg(F.max("base_offset").alias("last_end"))
    data = of_transactions.where(~is_end).join(ends, [*_KEY], "left")
    first = F.struct(
        "producer_epoch",
        F.col("base_offset").alias("first_offset"),
        F.col("max_timestamp").alias("first_time"),
    )
    is_open = F.col("last_end").isNull() | (F.col("base_offset") > F.col("last_end"))
    found = data.where(is_open).groupBy(*_KEY).agg(F.min_by(first, "base_offset").alias("first"))
    return found.select(*_KEY, "first.*")


def with_stable_lag(commits: DataFrame, logs: InternalLogs, of: InternalTopic) -> DataFrame:
    """Return commits with ``stable_offset`` and ``stable_lag``, null where that is not known.

    ``commits`` has ``topic``, ``partition``, ``offset`` and ``end_offset``, and may have
    `WATERMARK`. Consumers that read committed stop at the last stable offset: at the first offset
    of a transaction that is open, and at the latest where all consumers stop. The lag to it is 0
    for a consumer that is past it, as one that reads uncommitted may be. It is null for a commit
    beyond the end.
    """
    found = opened(logs, of)
    if found is None:
        unknown = F.lit(None).cast("bigint")
        return commits.withColumns({"stable_offset": unknown, "stable_lag": unknown})
    firsts = found.groupBy(*_PLACE).agg(F.min("first_offset").alias("first_open"))
    both = commits.join(firsts, [*_PLACE], "left")
    end = F.col("end_offset")
    until = readable_end(F.col("offset")) if WATERMARK[0] in commits.columns else end
    stable = F.when(end.isNotNull(), F.least(until, "first_open"))
    both = both.withColumn("stable_offset", stable)
    short = F.greatest(F.try_subtract("stable_offset", "offset"), F.lit(0).cast("bigint"))
    is_told = F.col("stable_offset").isNotNull() & (F.col("offset") <= end)
    return both.withColumn("stable_lag", F.when(is_told, short)).drop("first_open")
