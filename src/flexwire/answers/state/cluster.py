"""`__cluster_metadata` in Spark: its records, and the state of the cluster at an offset or a time.

The state at an offset is computed from the newest snapshot at or before it, and from the records in
the log after that snapshot. Without a snapshot, the state comes from the log alone, which must
begin at offset 0. Records of metadata transactions that were aborted or had not ended are not part
of the state. Each view of a state is defined in the module of an answer, such as
``cluster_topics``.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest
from typing import TYPE_CHECKING, Final, TypeAlias

import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.state.cluster_source import extent, log_records, quorum_rows, snapshot_records
from flexwire.answers.state.log import first_after
from flexwire.answers.state.records import internal_records
from flexwire.arguments import refuse, to_flag, to_int
from flexwire.errors import ArgumentError
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.protocol.record_types import framed_messages
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

    from flexwire.logs.metadata import SnapshotName
    from flexwire.tables.typed_records import Records


TIME: Final = pa.timestamp("us", "UTC")
ENDPOINTS: Final = pa.list_(
    pa.struct(
        {
            "name": pa.string(),
            "host": pa.string(),
            "port": pa.int32(),
            "security_protocol": pa.string(),
        }
    )
)
FEATURES: Final = pa.list_(
    pa.struct({"name": pa.string(), "least": pa.int16(), "most": pa.int16()})
)
# Enumerations that exist only in Kafka's Java code, and in no spec.
SECURITY_PROTOCOLS: Final = {0: "PLAINTEXT", 1: "SSL", 2: "SASL_PLAINTEXT", 3: "SASL_SSL"}
ORDER: Final = ("in_log", "offset")
"""The order of a state's records: first those in the snapshot, then those in the log."""
RECORD: Final = (*ORDER, "timestamp", "is_committed")
"""The columns that all records share."""
CHANGE_COLUMNS: Final = (
    Column(
        "changed_offset",
        pa.int64(),
        "the offset of the last record that changed this row",
        "if the row has not changed since the snapshot on which the state is based",
    ),
    Column(
        "changed_time",
        TIME,
        "that record's timestamp",
        "as for ``changed_offset``",
        heading="Changed",
    ),
    Column(
        "is_committed",
        pa.bool_(),
        "whether that record is committed, which means that a majority of the quorum has stored "
        "the record",
        "if the files do not show this and ``committed_to`` was not given",
    ),
)
"""The last columns of most views."""


def changed() -> list[SparkColumn]:
    """Return the columns `CHANGE_COLUMNS`, which are computed from the columns of a record."""
    return [
        F.when(F.col("in_log"), F.col("offset")).alias("changed_offset"),
        F.when(F.col("in_log"), F.col("timestamp")).alias("changed_time"),
        F.col("is_committed"),
    ]


def latest(rows: DataFrame, *keys: str) -> DataFrame:
    """Return the last row for each combination of keys."""
    following = Window.partitionBy(*keys).orderBy(*ORDER)
    return (
        rows.withColumn("next", F.lead("offset").over(following)).where("next is null").drop("next")
    )


def folded(rows: DataFrame, keys: Sequence[str], begins: str, fields: Sequence[str]) -> DataFrame:
    """Fill nulls in ``fields`` from earlier rows, so that each row contains a complete state.

    Where ``begins`` is true, all fields start afresh; ``life`` counts these starts. Rows before
    the first start are left out.
    """
    ordered = Window.partitionBy(*keys).orderBy(*ORDER)
    lives = rows.withColumn("life", F.sum(F.col(begins).cast("int")).over(ordered)).where(
        "life > 0"
    )
    living = Window.partitionBy(*keys, "life").orderBy(*ORDER)
    values = {name: F.last(name, ignorenulls=True).over(living) for name in fields}
    return lives.withColumns(values)


def named(number: SparkColumn, names: Mapping[int, str]) -> SparkColumn:
    """Return the name of a number, or the number as a string if it has no name."""
    pairs = [F.lit(item) for pair in names.items() for item in pair]
    name = F.element_at(F.create_map(*pairs), number.cast("int"))
    return F.coalesce(name, number.cast("string"))


def endpoints(columns: SparkColumn) -> SparkColumn:
    """Return the endpoints of a broker or controller, by name, as the type `ENDPOINTS`."""
    endpoint_structs = F.transform(
        columns,
        lambda endpoint: F.struct(
            endpoint["name"].alias("name"),
            endpoint["host"].alias("host"),
            endpoint["port"].alias("port"),
            named(endpoint["security_protocol"], SECURITY_PROTOCOLS).alias("security_protocol"),
        ),
    )
    return F.array_sort(endpoint_structs)


def supported(columns: SparkColumn) -> SparkColumn:
    """Return the features that a broker or controller supports, by name, as the type `FEATURES`."""
    # The snapshot and the log list the features in different orders.
    feature_structs = F.transform(
        columns,
        lambda feature: F.struct(
            feature["name"].alias("name"),
            feature["min_supported_version"].alias("least"),
            feature["max_supported_version"].alias("most"),
        ),
    )
    return F.array_sort(feature_structs)


TOPIC: Final = InternalTopic.METADATA
BEGIN, END, ABORT = "BeginTransactionRecord", "EndTransactionRecord", "AbortTransactionRecord"
CLEAR: Final = "ClearElrRecord"
Between: TypeAlias = tuple[int, int | None]


@dataclass(frozen=True, slots=True)
class ClusterState:
    """The records from which the views of a state are computed.

    Attributes:
        records: the records in ``snapshot``, followed by the records in the log after it.
            ``in_log`` is false for the records in ``snapshot``. ``is_committed`` is another column.
            Records of transactions that were aborted or had not ended are missing.
        unended: the records of a transaction that had not ended.
        quorum: the control records about the quorum: `cluster_source.QUORUM` with ``in_log``,
            ``is_committed``, and ``at``, by which the records are ordered. Records in the log from
            before the snapshot are included and marked with ``is_older``.
        offset: the state is computed from all records before this offset.
        start: the offset of the snapshot, or the offset at which the log begins.
        snapshot: the name of the snapshot, or None if the state is computed from the log alone.
        committed_to: all records below this offset are known to be committed.
        clears_elr: whether a record clears the ELR of partitions that the record does not name.
    """

    records: DataFrame
    unended: DataFrame
    quorum: DataFrame
    offset: int
    start: int
    snapshot: SnapshotName | None
    committed_to: int
    clears_elr: bool

    def typed(self, reads: Mapping[str, Sequence[str]]) -> DataFrame:
        """Return the records of some types, with a struct column of requested fields for each type.

        There are also the columns ``in_log``, ``offset``, ``timestamp`` and ``is_committed``.
        """
        names = list(reads)
        rows = _decoded(_of_types(self.records, names), reads)
        chosen = [
            F.when(
                F.col("message") == name,
                F.struct(*(F.col(f"{name}.{field}").alias(field) for field in fields)),
            ).alias(name)
            for name, fields in reads.items()
        ]
        is_read = F.col("message").isin(names) & F.col("error").isNull()
        return rows.where(is_read).select(*RECORD, *chosen)

    def unread(self) -> DataFrame:
        """Return the records that no bundled release can read. The state may lack their content."""
        # The only way to find out whether a message decodes is to decode it.
        every = [names[0] for names in framed_messages(TOPIC.module).values()]
        rows = _decoded(self.records, every)
        controls = self.quorum.withColumns(
            {"type": F.lit(None).cast("int"), "version": F.lit(None).cast("int")}
        )
        named = ("offset", "in_log", "timestamp", "type", "version", "error")
        both = rows.select(*named).unionByName(controls.select(*named))
        return both.where("error is not null")


def metadata_records(spark: SparkSession, log_dir: str | Path) -> DataFrame:
    """Return the undecoded records in the log of ``__cluster_metadata`` and in its snapshots.

    ``log_dir`` is ``__cluster_metadata-0``, or a directory above it, by path or URL. The columns
    are those of Spark's Kafka source, plus ``partition_leader_epoch``. Records of a snapshot also
    contain the offset and the epoch in the snapshot's name, as ``snapshot_offset`` and
    ``snapshot_epoch``. The ``offset`` of these records begins at 0. Values contain configurations,
    and SCRAM salts and keys. Control records are left out, and so are files and bytes that a broker
    would remove at startup (``.deleted``, ``.part``, a torn end).
    """
    log_extent = extent(spark, log_dir)
    names = [snapshot.name for snapshot in log_extent.covered.snapshots]
    if not names:
        return log_records(spark, log_extent.directory)
    snapshots = snapshot_records(spark, log_extent.directory, names)
    if not log_extent.has_log:
        return snapshots
    return log_records(spark, log_extent.directory).unionByName(snapshots)


def cluster_state(
    spark: SparkSession,
    log_dir: str | Path,
    *,
    offset: int | None = None,
    time: datetime | None = None,
    committed_to: int | None = None,
    oldest: bool = False,
) -> ClusterState:
    """Read the records that make up a cluster's state, for use in the views.

    Args:
        spark: a session, classic or of Spark Connect.
        log_dir: as in `metadata_records`.
        offset: the offset before which records count, as in a snapshot. Default: the log's end.
        time: an alternative to ``offset``: records count if they precede the first record whose
            timestamp is later than this time. The time must include a time zone.
        committed_to: the high watermark, if it is known (from ``kafka-metadata-quorum``; no file
            contains it). Records at or after this offset are marked. Without it, only records in a
            snapshot are known to be committed, or all records if the quorum has one voter.
        oldest: begin with the oldest snapshot or record from which the state can be computed, for
            views of history. Default: the newest.

    Raises `ArgumentError`, and `CaptureError` with the first offset at which the state is known.
    """
    at = None if offset is None else to_int(offset, "offset", least=0)
    watermark = None if committed_to is None else to_int(committed_to, "committed_to", least=0)
    if time is not None and at is not None:
        raise ArgumentError("expected either offset or time, got both")
    milliseconds = None if time is None else _milliseconds(time)
    log_extent = extent(spark, log_dir, milliseconds)
    covered = log_extent.covered
    if at is None:
        at = covered.end if milliseconds is None else covered.at_time(milliseconds)
    base = covered.base(at, oldest=to_flag(oldest, "oldest"))
    proven = covered.committed()
    if watermark is not None and watermark < proven:
        raise refuse("committed_to", f"at least {proven}, the committed offset", watermark)
    parts = []
    if base.snapshot is not None:
        parts.append(snapshot_records(spark, log_extent.directory, [base.snapshot]))
    if log_extent.has_log:
        parts.append(log_records(spark, log_extent.directory, base.start, at))
    records = parts[0] if len(parts) == 1 else parts[0].unionByName(parts[1])
    quorum = quorum_rows(spark, log_extent.directory, base, covered.run_start(base.start))
    records, quorum = (
        _marked(table, max(proven, watermark or 0), watermark) for table in (records, quorum)
    )
    marks = _marks(records)
    aborted, unended = transactions([(mark, at) for mark, at in marks if mark != CLEAR])
    return ClusterState(
        records.where(~_within([*aborted, *unended])),
        records.where(_within(unended)),
        _in_order(quorum, base.start),
        at,
        base.start,
        base.snapshot,
        max(proven, watermark or 0),
        any(mark == CLEAR for mark, _ in marks),
    )


def _milliseconds(time: datetime) -> int:
    if not isinstance(time, datetime) or time.tzinfo is None:
        raise refuse("time", "a datetime with a time zone", time)
    return first_after(time) - 1


def _marked(rows: DataFrame, proven: int, committed_offset: int | None) -> DataFrame:
    rows = rows.withColumn("in_log", F.col("snapshot_offset").isNull())
    return rows.withColumn("is_committed", _committed(proven, committed_offset))


def _in_order(quorum: DataFrame, start: int) -> DataFrame:
    """Add ``at``, which places a snapshot's records before its offset, to control records."""
    at = F.struct(F.coalesce("snapshot_offset", "offset"), "in_log", "offset")
    is_older = F.col("in_log") & (F.col("offset") < start)
    quorum = quorum.withColumns({"at": at, "is_older": is_older})
    return quorum.where(~is_older | F.col("error").isNull())


def _committed(proven: int, committed_offset: int | None) -> SparkColumn:
    is_below = ~F.col("in_log") | (F.col("offset") < proven)
    return F.when(is_below, True).when(F.lit(committed_offset is not None), False)


def _marks(records: DataFrame) -> list[tuple[str, int]]:
    """Return, in order, the few records that determine whether other records count.

    This requires one small Spark job.
    """
    names = {record_type(type_name): type_name for type_name in (BEGIN, END, ABORT, CLEAR)}
    rows = records.where("in_log").select(_type().alias("type"), "offset")
    marks = rows.where(F.col("type").isin(list(names))).collect()
    return [(names[kind], at) for kind, at in sorted(marks, key=lambda row: row.offset)]


def transactions(marks: Sequence[tuple[str, int]]) -> tuple[list[Between], list[Between]]:
    """Return the offset ranges of aborted transactions and of transactions without an end."""
    aborted: list[Between] = []
    unended: list[Between] = []
    for (mark, at), following in zip_longest(marks, marks[1:]):
        if mark == BEGIN and following is None:
            unended.append((at, None))
        elif mark == BEGIN and following[0] != END:
            (aborted if following[0] == ABORT else unended).append((at, following[1]))
    return aborted, unended


def _within(spans: Sequence[Between]) -> SparkColumn:
    is_within = F.lit(False)
    for first, last in spans:
        is_after = F.col("in_log") & (F.col("offset") > first)
        is_within |= is_after if last is None else is_after & (F.col("offset") < last)
    return is_within


def _decoded(records: DataFrame, requested: Records) -> DataFrame:
    needed = records.select("key", "value", "topic", "partition", *RECORD)
    return internal_records(needed, TOPIC, requested)


def record_type(message: str) -> int:
    """Return the type of a record, from the name of its message."""
    for number, names in framed_messages(TOPIC.module).items():
        if message in names:
            return number
    raise refuse("message", f"a message of {TOPIC.topic}", message)


def _type() -> SparkColumn:
    """Return the type of a record: its second byte, because all types are below 128."""
    second = F.conv(F.hex(F.substring("value", 2, 1)), 16, 10).cast("int")
    return F.when(F.hex(F.substring("value", 1, 1)) == "01", second)


def _of_types(records: DataFrame, names: Sequence[str]) -> DataFrame:
    """Omit records of other types before Spark sends the rows to Python."""
    return records.where(_type().isin([record_type(name) for name in names]))


BLOCK: Final = "ProducerIdsRecord"
READS: Final = {BLOCK: ("broker_id", "broker_epoch", "next_producer_id")}
COLUMNS: Final = (
    Column("next_producer_id", pa.int64(), "the first producer id that no broker has received"),
    Column(
        "broker",
        pa.int32(),
        "the broker that received the last block of ids",
        "if no record contains the broker's id",
    ),
    Column(
        "broker_epoch",
        pa.int64(),
        "the epoch of this broker when it received that block",
        "if ``broker`` is null",
    ),
    *CHANGE_COLUMNS,
)


def producer_ids(state: ClusterState) -> DataFrame:
    """Return one row with the next producer ids, or no row if none have been assigned."""
    last = latest(state.typed(READS).withColumn("cluster", F.lit(0)), "cluster")
    ids = (f"nullif({BLOCK}.broker_id, -1)", f"nullif({BLOCK}.broker_epoch, -1)")
    return last.selectExpr(
        "*", f"{BLOCK}.next_producer_id", f"{ids[0]} as broker", f"{ids[1]} as broker_epoch"
    ).select(*(column.name for column in COLUMNS[:3]), *changed())
