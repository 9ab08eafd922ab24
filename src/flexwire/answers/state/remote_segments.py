"""The segments of topics in tiered storage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.state.log import HIDES, IS_LATER, moment
from flexwire.protocol.internal_topics import state_names

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from flexwire.answers.state.log import InternalLog

SEGMENT, UPDATE = RECORDS = (
    "RemoteLogSegmentMetadataRecord",
    "RemoteLogSegmentMetadataUpdateRecord",
)
ID: Final = "remote_log_segment_id"
STATE: Final = "remote_log_segment_state"
_BOTH: Final = (
    f"{ID}.topic_id_partition.name",
    f"{ID}.topic_id_partition.id",
    f"{ID}.topic_id_partition.partition",
    f"{ID}.id",
    STATE,
    "broker_id",
    "event_timestamp_ms",
)
_FIELDS: Final = {
    SEGMENT: (
        *_BOTH,
        "start_offset",
        "end_offset",
        "segment_size_in_bytes",
        "max_timestamp_ms",
        "segment_leader_epochs.leader_epoch",
        "segment_leader_epochs.offset",
    ),
    UPDATE: _BOTH,
}
# A broker no longer tracks a segment in this state.
_GONE: Final = "DELETE_SEGMENT_FINISHED"


def remote_segments(log: InternalLog) -> DataFrame:
    """Return the segments in tiered storage, including those that are being copied or deleted.

    Columns: ``topic``, ``topic_id``, ``partition``, ``segment_id``; ``state`` in Kafka's words;
    ``start_offset``, ``end_offset``, ``size_bytes``, ``max_time``; ``leader_epochs``: the first
    offset of each epoch; ``broker_id`` and ``event_time`` of the last record; its ``log_partition``
    and ``log_offset``; ``is_known``: false for an update whose segment is not in the log. Segments
    whose deletion has finished are left out.
    """
    rows = _rows(log).where(~F.col(IS_LATER))
    record = F.struct("at", "segment", "update", "log_partition")
    is_update = F.col("update").isNotNull()
    by_segment = rows.groupBy("segment_id").agg(
        F.max_by(record, F.when(~is_update, F.col("at"))).alias("first"),
        F.max_by(record, F.col("at")).alias("last"),
    )
    numbers = F.array(*map(F.lit, state_names(SEGMENT)))

    def last(name: str) -> Column:
        return F.coalesce(f"last.update.{name}", f"last.segment.{name}")

    number = last(STATE)
    state = F.coalesce(F.get(numbers, number.cast("int")), number.cast("string"))
    segment, place = F.col("first.segment"), "topic_id_partition"
    described = by_segment.withColumns({"state": state, "id": last(ID)})
    return described.where(F.col("state") != _GONE).select(
        F.col(f"id.{place}.name").alias("topic"),
        F.col(f"id.{place}.id").alias("topic_id"),
        f"id.{place}.partition",
        "segment_id",
        "state",
        segment["start_offset"].alias("start_offset"),
        segment["end_offset"].alias("end_offset"),
        segment["segment_size_in_bytes"].alias("size_bytes"),
        moment(segment["max_timestamp_ms"]).alias("max_time"),
        F.transform(
            segment["segment_leader_epochs"],
            lambda epoch: F.struct(epoch["leader_epoch"], epoch["offset"]),
        )
        .cast("array<struct<leader_epoch: int, offset: bigint>>")
        .alias("leader_epochs"),
        last("broker_id").alias("broker_id"),
        moment(last("event_timestamp_ms")).alias("event_time"),
        "last.log_partition",
        F.col("last.at").alias("log_offset"),
        F.col("first").isNotNull().alias("is_known"),
    )


def _rows(log: InternalLog) -> DataFrame:
    ids = (F.col(f"{name}.{ID}.id") for name in RECORDS)
    return log.typed(_FIELDS, ()).select(
        F.coalesce(*ids).alias("segment_id"),
        F.col(SEGMENT).alias("segment"),
        F.col(UPDATE).alias("update"),
        F.col("offset").alias("at"),
        F.col("partition").alias("log_partition"),
        IS_LATER,
        HIDES,
    )
