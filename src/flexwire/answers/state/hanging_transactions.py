"""Transactions that hold up consumers: `hanging_transactions`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import Column, DataFrame

# States of a transaction that has not ended.
OPEN: Final = ("Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence")

PAST_TIMEOUT, NOT_OF_COORDINATOR = "past its timeout", "its coordinator has not this one"
NOW: Final = "now"
_PLACE: Final = ("topic", "partition")
_KEY: Final = ("producer_id", *_PLACE)


def hanging_transactions(
    transactions: DataFrame, at: datetime, opened: DataFrame | None = None
) -> DataFrame:
    """Transactions that should have ended by ``at``: a row for each, and each of its partitions.

    ``transactions`` is what the view of that name gives. ``opened`` is what `open_transactions`
    gives of the logs of other topics: then transactions are there too that a partition has open
    and no coordinator, which hold up consumers with ``read_committed`` until an operator aborts
    them; and ``first_offset`` is where one is open.

    ``transactional_id``, ``state``, ``timeout_ms``, null where no coordinator has it;
    ``producer_id``, ``producer_epoch``; ``topic``, ``partition``; ``first_offset``; ``open_since``;
    ``reason``.
    """
    return hanging_by(transactions.withColumn(NOW, F.lit(at)), opened).drop(NOW)


def hanging_by(transactions: DataFrame, opened: DataFrame | None) -> DataFrame:
    """The same by the ``now`` of each transaction, which is given too, null where nobody has it."""
    known = transactions.where(F.col("state").isin(*OPEN))
    ours = known.select("*", F.explode_outer("partitions").alias("one")).select(
        "transactional_id",
        "state",
        "timeout_ms",
        "producer_id",
        "producer_epoch",
        *(F.col(f"one.{name}").alias(name) for name in _PLACE),
        F.coalesce("start_time", "last_update_time").alias("open_since"),
        NOW,
    )
    no_offset = F.lit(None).cast("bigint")
    if opened is None:
        found = ours.withColumn("first_offset", no_offset)
        return _rows(found, _is_past())
    theirs = opened.select(
        *_KEY, "first_offset", F.col("first_time"), F.col("producer_epoch").alias("epoch")
    )
    both = ours.join(theirs, [*_KEY], "full")
    since = F.coalesce("open_since", "first_time")
    epoch = F.coalesce("producer_epoch", "epoch")
    both = both.withColumns({"open_since": since, "producer_epoch": epoch})
    is_nobodys = F.col("state").isNull() & F.col("first_offset").isNotNull()
    return _rows(both, _is_past() | is_nobodys)


def _is_past() -> Column:
    timeout = F.make_dt_interval(secs=F.col("timeout_ms") / 1000)
    return F.coalesce(F.col("open_since") + timeout < F.col(NOW), F.lit(False))


def _rows(found: DataFrame, is_hanging: Column) -> DataFrame:
    reason = F.when(F.col("state").isNull(), NOT_OF_COORDINATOR).otherwise(PAST_TIMEOUT)
    return found.where(is_hanging).select(
        "transactional_id",
        "state",
        "timeout_ms",
        *("producer_id", "producer_epoch"),
        *_PLACE,
        *("first_offset", "open_since"),
        reason.alias("reason"),
        NOW,
    )
