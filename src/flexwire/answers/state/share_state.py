"""The state of share groups, by partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.state.log import HIDES, IS_LATER, moment
from flexwire.wire.limits import INT64_MAX

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from flexwire.answers.state.log import InternalLog

SNAPSHOT, UPDATE = RECORDS = ("ShareSnapshot", "ShareUpdate")
KEY: Final = ("group_id", "topic_id", "partition")
BATCH: Final = ("first_offset", "last_offset", "delivery_state", "delivery_count")
# Kafka chooses between two batches by their delivery counts, and then by their delivery states.
_RANK: Final = ("delivery_count", "delivery_state")
_BOTH: Final = ("snapshot_epoch", "leader_epoch", "start_offset", "delivery_complete_count")
_OF_BOTH: Final = (
    *(f"key.{name}" for name in KEY),
    *(f"value.{name}" for name in _BOTH),
    *(f"value.state_batches.{name}" for name in BATCH),
)
_FIELDS: Final = {
    SNAPSHOT: (*_OF_BOTH, "value.state_epoch", "value.write_timestamp"),
    UPDATE: _OF_BOTH,
}
# In an update, this value means that the start offset did not change.
_UNCHANGED: Final = -1


def share_state(log: InternalLog) -> DataFrame:
    """Return the share coordinator's state of each partition of each share group.

    Columns: ``group_id``, ``topic_id``, ``partition``; ``start_offset``, ``snapshot_epoch``,
    ``state_epoch``, ``leader_epoch``; ``delivery_complete_count``, -1 if the last record lacks it;
    ``write_time`` of the snapshot; ``state_batches``: those of the last snapshot, then those of
    later updates, in the order in which they were written (`combined_batches` combines overlapping
    ones); ``updates``: their number; ``log_partition``, ``log_offset`` of the last record;
    ``is_known``. ``is_known`` is false if compaction removed a record, if the snapshot of an update
    is missing (as snapshot epochs show), or if an update moved the start offset back, which no
    leader does. Deleted state is left out.
    """
    rows = _rows(log)
    is_before = ~F.col(IS_LATER)
    at = F.col("at")
    record = F.struct("at", "value")
    by_key = rows.groupBy(*KEY).agg(
        F.max_by(record, F.when(is_before & F.col("is_snapshot"), at)).alias("snapshot"),
        F.collect_list(F.when(is_before & ~F.col("is_snapshot"), record)).alias("updates"),
        F.max("log_partition").alias("log_partition"),
        F.bool_or(HIDES).alias(HIDES),
    )
    by_key = by_key.withColumn(
        "since",
        F.filter(
            F.array_sort(F.col("updates")),
            lambda record: record["at"] > F.coalesce("snapshot.at", F.lit(-1)),
        ),
    )
    snapshot = F.col("snapshot.value")
    described = by_key.withColumn("is_known", ~_is_in_doubt(snapshot))
    described = described.where(snapshot.isNotNull() | ~F.col("is_known"))
    return described.select(
        *KEY,
        _last("start_offset", _UNCHANGED).alias("start_offset"),
        snapshot["snapshot_epoch"].alias("snapshot_epoch"),
        snapshot["state_epoch"].alias("state_epoch"),
        _last("leader_epoch", _UNCHANGED).alias("leader_epoch"),
        # An update from a release before 4.2 does not contain this number. After such an update,
        # every release considers the number unknown.
        F.coalesce(
            _of_last("since", "value")["delivery_complete_count"],
            snapshot["delivery_complete_count"],
        ).alias("delivery_complete_count"),
        moment(snapshot["write_timestamp"]).alias("write_time"),
        F.concat(
            snapshot["state_batches"],
            F.flatten(F.transform("since", lambda record: record["value"]["state_batches"])),
        ).alias("state_batches"),
        F.size("since").alias("updates"),
        "log_partition",
        F.coalesce(_of_last("since", "at"), "snapshot.at").alias("log_offset"),
        "is_known",
    )


def _is_in_doubt(snapshot: Column) -> Column:
    """Return whether records are missing or appear in an order that coordinators never write."""
    has_updates = F.size("since") > 0
    is_gone = (F.col("snapshot.at").isNull() & F.col(HIDES)) | has_updates
    is_of_other = F.exists(
        "since", lambda value: value["value"]["snapshot_epoch"] != snapshot["snapshot_epoch"]
    )
    starts = F.filter(
        F.concat(
            F.array(snapshot["start_offset"]),
            F.transform("since", lambda value: value["value"]["start_offset"]),
        ),
        lambda value: value > _UNCHANGED,
    )
    # Kafka immediately drops batches below a new start, so a later, lower start does not restore
    # them.
    is_back = starts != F.array_sort(starts)
    return F.when(snapshot.isNull(), is_gone).otherwise(is_of_other | is_back)


def _of_last(records: str, name: str) -> Column:
    """Return a field of the last record, or null if there are no records."""
    return F.get(records, F.size(records) - 1)[name]


def combined_batches(batches: Column, start: Column) -> Column:
    """Combine ``state_batches``: in order, with at most one batch for each offset.

    If two batches overlap, the batch with the higher delivery count is kept. If the counts are
    equal, the batch with the higher delivery state is kept, regardless of which batch was written
    first. Kafka's share coordinator combines batches in the same way (PersisterStateBatchCombiner).
    All records below ``start`` have been processed. Adjacent batches that are otherwise equal are
    merged into one. Batches that a broker never writes, such as a batch that ends before it begins,
    are left out. The result is null if ``batches`` is null.
    """
    is_batch = F.filter(
        batches,
        lambda batch: (
            (batch["first_offset"] >= 0)
            & (batch["first_offset"] <= batch["last_offset"])
            & (batch["last_offset"] < INT64_MAX)
        ),
    )
    rising = F.array_sort(
        F.transform(
            is_batch, lambda batch: F.struct(*(batch[name] for name in _RANK), batch.alias("batch"))
        )
    )
    combined = F.aggregate(
        F.transform(rising, lambda batch: batch["batch"]),
        F.array().cast(_BATCHES),
        lambda before, batch: F.concat(
            F.filter(F.flatten(F.transform(before, lambda old: _beside(old, batch))), _is_left),
            F.array(_part(batch, batch["first_offset"], batch["last_offset"])),
        ),
    )
    cut = F.transform(
        combined,
        lambda batch: _part(batch, F.greatest(batch["first_offset"], start), batch["last_offset"]),
    )
    ordered = F.array_sort(F.filter(cut, _is_left))
    return F.aggregate(ordered, F.array().cast(_BATCHES), _joined)


def _beside(old: Column, batch: Column) -> Column:
    """Return the parts of an old batch before and after a new batch.

    Offsets that the new batch covers are left out.
    """
    first, last = old["first_offset"], old["last_offset"]
    return F.array(
        _part(old, first, F.least(last, batch["first_offset"] - 1)),
        _part(old, F.greatest(first, batch["last_offset"] + 1), last),
    )


def _joined(before: Column, batch: Column) -> Column:
    """Append the next batch, or extend the last batch if the next batch continues it."""
    last = F.get(before, F.size(before) - 1)
    goes_on = last["last_offset"] + 1 == batch["first_offset"]
    for name in BATCH[2:]:
        goes_on &= last[name] == batch[name]
    joined = F.array(_part(last, last["first_offset"], batch["last_offset"]))
    rest = F.slice(before, 1, F.greatest(F.size(before) - 1, F.lit(0)))
    return F.when(goes_on, F.concat(rest, joined)).otherwise(F.concat(before, F.array(batch)))


def _part(of: Column, first: Column, last: Column) -> Column:
    ends = (first.alias(BATCH[0]), last.alias(BATCH[1]))
    return F.struct(*ends, *(of[name].alias(name) for name in BATCH[2:]))


def _is_left(batch: Column) -> Column:
    return batch["first_offset"] <= batch["last_offset"]


def _last(name: str, unchanged: int) -> Column:
    """Return a field from the last update that contains it, or else from the snapshot."""
    values = F.transform("since", lambda value: value["value"][name])
    values = F.filter(values, lambda value: value > unchanged)
    return F.coalesce(F.get(values, F.size(values) - 1), F.col("snapshot.value")[name])


def _rows(log: InternalLog) -> DataFrame:
    """Return snapshots and updates with the same columns; a missing value is null."""

    def either(side: str, name: str) -> Column:
        return F.coalesce(F.col(f"{SNAPSHOT}.{side}.{name}"), F.col(f"{UPDATE}.{side}.{name}"))

    batches = F.transform(
        either("value", "state_batches"), lambda batch: F.struct(*(batch[name] for name in BATCH))
    )
    value = F.struct(
        *(either("value", name).alias(name) for name in _BOTH),
        F.col(f"{SNAPSHOT}.value.state_epoch").alias("state_epoch"),
        F.col(f"{SNAPSHOT}.value.write_timestamp").alias("write_timestamp"),
        batches.cast(_BATCHES).alias("state_batches"),
    )
    return log.typed(_FIELDS, ("message", "is_tombstone")).select(
        *(either("key", name).alias(name) for name in KEY),
        F.col("partition").alias("log_partition"),
        F.col("offset").alias("at"),
        (F.col("message") == SNAPSHOT).alias("is_snapshot"),
        F.when(~F.col("is_tombstone"), value).alias("value"),
        IS_LATER,
        HIDES,
    )


_BATCHES: Final = (
    "array<struct<first_offset: bigint, last_offset: bigint, delivery_state: tinyint, "
    "delivery_count: smallint>>"
)
