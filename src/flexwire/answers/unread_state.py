"""The internal-topic records that cannot be decoded and are therefore not part of any state."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.answer import Answer, returns
from flexwire.answers.state import unreadable
from flexwire.answers.state.commits import RECORDS as OF_COMMITS
from flexwire.answers.state.groups import RECORDS as OF_GROUPS
from flexwire.answers.state.partitions import RECORD as OF_TRANSACTIONS
from flexwire.answers.state.remote_segments import RECORDS as OF_SEGMENTS
from flexwire.answers.state.share_state import RECORDS as OF_SHARES
from flexwire.errors import CaptureError
from flexwire.facts.answers import AnswerPicture
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.answer import AnalysisTables
    from flexwire.answers.asking.internal_logs import InternalLogs

# The records from which each state is computed.
_READS: Final = {
    InternalTopic.CONSUMER_OFFSETS: (*OF_COMMITS, *OF_GROUPS),
    InternalTopic.TRANSACTIONS: (OF_TRANSACTIONS,),
    InternalTopic.SHARE_STATE: OF_SHARES,
    InternalTopic.REMOTE_LOG: OF_SEGMENTS,
}
_GAPS: Final = "topic string, partition int, first_offset bigint, error string"
_FIRST: Final = ("first_offset", "error")
_MISSING: Final = "compacted or pruned: records up to offset {} are missing"
_ROW: Final = ("topic", "partition", "offset", "type", "version", "error")
COLUMNS = (
    Column("topic", pa.string(), "the internal topic", heading="Topic", is_about=True),
    Column("partition", pa.int32(), "the partition", heading="Partition", is_about=True),
    Column("type", pa.int32(), "the record's type", "if the bytes do not show the type",
           heading="Type", kind="id", is_about=True),
    Column("version", pa.int32(), "the version of the record's value",
           "if ``type`` is null, or for a tombstone",
           heading="Version"),
    Column("records", pa.int64(), "the number of records that cannot be decoded",
           "for missing records, because their number is unknown", heading="Records"),
    Column("first_offset", pa.int64(),
           "the offset of the first record; for missing records, the offset of the requested "
           "moment",
           heading="First offset"),
    Column("error", pa.string(),
           "the reason why the first record cannot be decoded", heading="Why"),
)  # fmt: skip


@returns(COLUMNS)
def unread_state(tables: AnalysisTables) -> DataFrame | None:
    """Return the internal-topic records that could not be read.

    The answer contains one row for each partition, type and version of these records.

    These records are damaged, or were written by a Kafka release that this release of flexwire does
    not know. The other answers about internal topics ignore these records, and are exact for all
    other records. If an earlier moment is requested, partitions whose records were compacted or
    pruned after that moment are also listed, because an object that existed at that moment is
    missing from all answers if its records were removed. If records are missing from the log of
    tiered segments, that log is listed for any moment.
    """
    logs = tables.internal
    if logs is None:
        return None
    unread_tables = []
    for topic, records in _READS.items():
        log = logs.log(topic)
        if log is not None:
            named = unreadable(log, records).withColumn("topic", F.lit(topic.topic))
            unread_tables.append(named.select(*_ROW))
    gaps = _gaps(logs)
    try:
        state = logs.cluster()
    except CaptureError as error:
        state = None
        gaps.append((InternalTopic.METADATA.topic, 0, None, str(error)))
    if state is not None:
        place = {"topic": F.lit(InternalTopic.METADATA.topic), "partition": F.lit(0)}
        unread_tables.append(state.unread().withColumns(place).select(*_ROW))
    lacking = logs.spark.createDataFrame(gaps, _GAPS).select(
        "topic", "partition", *_nulls(), F.lit(None).cast("bigint").alias("records"), *_FIRST
    )
    if not unread_tables:
        return lacking
    every = reduce(lambda table, next_table: table.unionByName(next_table), unread_tables)
    first = F.min_by(F.struct("offset", "error"), "offset").alias("first")
    each = every.groupBy("topic", "partition", "type", "version")
    counts = each.agg(F.count("*").alias("records"), first)
    unread = counts.select(
        *("topic", "partition"),
        *(F.col(name).cast("int").alias(name) for name in ("type", "version")),
        "records",
        F.col("first.offset").alias("first_offset"),
        "first.error",
    )
    return unread.unionByName(lacking) if gaps else unread


def _nulls() -> list[SparkColumn]:
    return [F.lit(None).cast("int").alias(name) for name in ("type", "version")]


def _gaps(logs: InternalLogs) -> list[tuple[str, int, int | None, str]]:
    """Return the places where a missing record may have been the last one of its key."""
    return [
        (topic.topic, partition, log.until.get(partition), _MISSING.format(log.cleaned[partition]))
        for topic in _READS
        if (log := logs.log(topic)) is not None
        for partition in log.incomplete
    ]


ANSWER = Answer(
    name="unread_state",
    place=400,
    question="Which internal-topic records could not be read?",
    meaning=(
        "Internal-topic records that are missing from the answers about groups, transactions, "
        "tiered storage and the cluster. These records are damaged, or were written by a Kafka "
        "release that is newer than this release of flexwire."
    ),
    advice="If a log is damaged, use another replica. If flexwire does not know the type or "
    "version of a record, upgrade flexwire.",
    row="a combination of a partition, a type and a version",
    columns=COLUMNS,
    order=("-records", "topic", "partition", "type", "version"),
    ask=unread_state,
    picture=AnswerPicture("Records that could not be read", "records"),
    asks=tuple(topic.topic for topic in (*_READS, InternalTopic.METADATA)),
)
