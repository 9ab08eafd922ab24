"""Replicas of a partition whose logs differ: `diverging_replicas`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from flexwire.facts.answers import ShownColumn
from flexwire.logs.diverging import divergences
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.spark.answers.answer import Answer
from flexwire.spark.answers.nothing import no_rows
from flexwire.spark.tables import spark_schema
from flexwire.storage.filesystems import shown
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.spark.answers.reading import AnalysisTables

_LONG: Final = pa.int64()
COLUMNS = (
    Column("topic", pa.string(), "the topic"),
    Column("partition", pa.int32(), "the partition"),
    Column("first_difference", _LONG, "the first offset at which two replicas have records of "
           "different leader epochs"),
    Column("directories", pa.list_(pa.string()), "where each replica is; the first is the one that "
           "was read"),
    Column("brokers", pa.list_(pa.int32()), "the broker of each replica, by meta.properties; null "
           "in the list where that file is missing"),
    Column("ends", pa.list_(_LONG), "the offset after the last record of each replica"),
    Column("epochs", pa.list_(pa.int32()), "the leader epoch of the last record of each replica"),
    Column("beyond", _LONG, "how many offsets from the first difference on another replica has, at "
           "most: these records are in no table"),
)  # fmt: skip


def diverging_replicas(tables: AnalysisTables) -> DataFrame:
    """Return a row for each partition of which several replicas were given whose logs differ.

    The logs of a failed cluster do: a leader that died has records that nobody else had. Kafka cuts
    them off when that broker starts again. Of several replicas the leader's is read, or one of the
    ISR, as the log of the cluster's metadata says. Without that log, or where it is older than the
    replicas, the one with the higher leader epoch is read, and of two with one epoch the longer.

    Leader epochs are compared, not bytes. A replica that is only behind has no row.
    """
    logs = tables.internal
    if logs is None:
        return no_rows(tables.frames, COLUMNS)
    rows = [
        (
            *one.partition,
            one.first_difference,
            [shown(directory) for directory in one.directories],
            [*one.brokers],
            [tip.end for tip in one.tips],
            [tip.epoch for tip in one.tips],
            max(tip.end for tip in one.tips[1:]) - one.first_difference,
        )
        for one in divergences(logs.files)
    ]
    schema = pa.schema([(one.name, one.type) for one in COLUMNS])
    return logs.spark.createDataFrame(rows, spark_schema(schema))


ANSWER = Answer(
    "diverging_replicas",
    "Which partitions have replicas that differ?",
    "Partitions of which several replicas were given, and where their logs have different records "
    "at the same offset; the first replica is the one that was read.",
    "Look at what only another replica has before its broker starts again, as Kafka cuts it off "
    "then: read its directory alone.",
    "a partition",
    COLUMNS,
    ("-beyond", "topic", "partition"),
    (
        ShownColumn("topic", "Topic", is_about=True),
        ShownColumn("partition", "Partition", "id", is_about=True),
        ShownColumn("first_difference", "First difference", "count"),
        ShownColumn("beyond", "Only in another", "count"),
        ShownColumn("brokers", "Brokers"),
        ShownColumn("ends", "Ends"),
        ShownColumn("epochs", "Epochs"),
        ShownColumn("directories", "Directories"),
    ),
    diverging_replicas,
    asks=tuple(one.topic for one in InternalTopic),
)
