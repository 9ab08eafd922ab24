"""What coordinators know of transactions: `transactions`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.answers.state.log import HIDES, IS_LATER
from flexwire.answers.state.times import moment
from flexwire.protocol.internal_topics import state_names

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.answers.state.log import InternalLog

RECORD: Final = "TransactionLog"
VALUE: Final = f"{RECORD}Value"
KEY: Final = "transactional_id"
_FIELDS: Final = (
    f"key.{KEY}",
    "value.producer_id",
    "value.producer_epoch",
    "value.transaction_timeout_ms",
    "value.transaction_status",
    "value.transaction_partitions.topic",
    "value.transaction_partitions.partition_ids",
    "value.transaction_last_update_timestamp_ms",
    "value.transaction_start_timestamp_ms",
)
_PARTITIONS: Final = "array<struct<topic: string, partition: int>>"


def transactions(log: InternalLog) -> DataFrame:
    """Return the state of each transactional id, as its coordinator wrote it last: a row for each.

    ``transactional_id``; ``state`` as Kafka names it; ``producer_id``, ``producer_epoch``;
    ``timeout_ms``; ``start_time``, null in a state that has none; ``last_update_time``;
    ``partitions``: topic and partition of all that take part, none in the state Empty;
    ``log_partition``, ``log_offset``; ``is_known``: false where compaction removed what was there,
    if anything was. Ids that have expired are not there.
    """
    value, is_before = F.col(f"{RECORD}.value"), ~F.col(IS_LATER)
    place = (F.col("partition").alias("log_partition"), F.col("offset").alias("log_offset"))
    record = F.struct(value.alias("value"), *place)
    rows = log.typed({RECORD: _FIELDS}, (), only_last=True).withColumn(
        KEY, F.col(f"{RECORD}.key.{KEY}")
    )
    found = rows.groupBy(KEY).agg(
        F.max_by(record, F.when(is_before, F.col("offset"))).alias("last"),
        F.bool_or(HIDES).alias(HIDES),
    )
    is_known = F.col("last").isNotNull() | ~F.col(HIDES)
    made = found.withColumns({"value": F.col("last.value"), "is_known": is_known})
    made = made.where(F.col("value").isNotNull() | ~F.col("is_known"))
    by_number = F.array(*map(F.lit, state_names(VALUE)))
    status = F.col("value.transaction_status")
    state = F.coalesce(F.get(by_number, status.cast("int")), status.cast("string"))
    topics = F.transform(
        "value.transaction_partitions",
        lambda one: F.transform(
            one["partition_ids"],
            lambda number: F.struct(one["topic"].alias("topic"), number.alias("partition")),
        ),
    )
    none = F.when(F.col("is_known"), F.array().cast(_PARTITIONS))
    return made.select(
        KEY,
        state.alias("state"),
        "value.producer_id",
        "value.producer_epoch",
        F.col("value.transaction_timeout_ms").alias("timeout_ms"),
        moment("value.transaction_start_timestamp_ms").alias("start_time"),
        moment("value.transaction_last_update_timestamp_ms").alias("last_update_time"),
        F.coalesce(F.array_sort(F.flatten(topics)), none).alias("partitions"),
        "last.log_partition",
        "last.log_offset",
        "is_known",
    )
