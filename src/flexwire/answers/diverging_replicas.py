"""Partition replicas whose logs differ: `diverging_replicas`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from flexwire.answers.asking.answer import Answer, returns
from flexwire.logs.divergence import divergences
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.storage.filesystems import shown
from flexwire.tables.schema import Column
from flexwire.tasks import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.answer import AnalysisTables

_LONG: Final = pa.int64()
COLUMNS = (
    Column("topic", pa.string(), "the topic", heading="Topic", is_about=True),
    Column("partition", pa.int32(), "the partition", heading="Partition", kind="id", is_about=True),
    Column("first_difference", _LONG,
           "the first offset at which two replicas have records with different leader epochs",
           heading="First difference"),
    Column("directories", pa.list_(pa.string()), (
        "the directory of each replica; the analysis read only the first directory"
    ), heading="Directories"),
    Column("brokers", pa.list_(pa.int32()),
           "the broker of each replica, from meta.properties; null in the list if this file is "
           "missing", heading="Brokers"),
    Column("ends", pa.list_(_LONG), "the offset after the last record of each replica",
           heading="Ends"),
    Column("epochs", pa.list_(pa.int32()), "the leader epoch of the last record of each replica",
           heading="Epochs"),
    Column("beyond", _LONG,
           "the highest number of offsets that another replica contains at or after the first "
           "difference; no table contains the records at these offsets", heading="Only in another"),
)  # fmt: skip


@returns(COLUMNS)
def diverging_replicas(tables: AnalysisTables) -> DataFrame | None:
    """Return each partition for which the input contains several replicas with different logs.

    In a failed cluster, logs often differ: a leader that died has records that no other replica
    contains, and Kafka removes these records when that broker starts again. If there are several
    replicas, flexwire reads the leader's replica or another replica in the ISR, according to the
    log of the cluster's metadata. Without that log, or if it is older than the replicas, flexwire
    reads the replica with the higher leader epoch. If two replicas have the same epoch, flexwire
    reads the longer one.

    flexwire compares leader epochs instead of bytes. A replica that merely lags behind is not
    listed.
    """
    logs = tables.internal
    if logs is None:
        return None
    rows = [
        (
            *divergence.partition,
            divergence.first_difference,
            [shown(directory) for directory in divergence.directories],
            [*divergence.brokers],
            [tip.end for tip in divergence.tips],
            [tip.epoch for tip in divergence.tips],
            max(tip.end for tip in divergence.tips[1:]) - divergence.first_difference,
        )
        for divergence in divergences(logs.files)
    ]
    schema = pa.schema([(column.name, column.type) for column in COLUMNS])
    return logs.spark.createDataFrame(rows, spark_schema(schema))


ANSWER = Answer(
    name="diverging_replicas",
    place=390,
    question="Which partitions have replicas that differ?",
    meaning=(
        "Partitions whose replicas contain different records at the same offset. The input "
        "contains several replicas of each of these partitions. The analysis read only the replica "
        "that is listed first."
    ),
    advice=(
        "Before you restart a broker, look at the records that only its replica contains. Kafka "
        "removes these records when the broker starts. To read these records, analyze the "
        "directory of this replica alone."
    ),
    row="a partition",
    columns=COLUMNS,
    order=("-beyond", "topic", "partition"),
    shown=(
        "topic",
        "partition",
        "first_difference",
        "beyond",
        "brokers",
        "ends",
        "epochs",
        "directories",
    ),
    ask=diverging_replicas,
    asks=tuple(topic.topic for topic in InternalTopic),
)
