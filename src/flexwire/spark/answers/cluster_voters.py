"""Voters by the log of a cluster's metadata: `cluster_voters`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from flexwire.facts.answers import ShownColumn
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.spark.answers.answer import Answer
from flexwire.spark.answers.internal_logs import listeners
from flexwire.spark.answers.nothing import no_rows
from flexwire.spark.internal_topics.cluster_voters import voters
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.spark.answers.reading import AnalysisTables

_TIME: Final = pa.timestamp("us", "UTC")
_NOT_SAID: Final = "of static voters, and where it is not known who votes"
COLUMNS = (
    Column("voter", pa.int32(), "the id of a controller that votes",
           "where it is not known who does"),
    Column("endpoints", pa.list_(pa.string()), "its listeners", _NOT_SAID),
    Column("directory_id", pa.string(), "the id of its log directory", _NOT_SAID),
    Column("kraft_version", pa.int16(), "the quorum's kraft.version; at 0 voters are static",
           "where it is not known"),
    Column("is_known", pa.bool_(), "whether this is a voter; else ``reason`` says why it is not "
           "known who is one"),
    Column("reason", pa.string(), "why it is not known", "where it is"),
    Column("changed_time", _TIME, "when the voters changed last",
           "where that was before the snapshot that the state begins with, and where not known"),
)  # fmt: skip


def cluster_voters(tables: AnalysisTables) -> DataFrame:
    """Give a row for each voter of the quorum, as its log has it.

    From kraft.version 1 on records say it. Static voters are in the configuration of controllers,
    and records have the ids of those that the last leader took for voters.
    """
    state = None if tables.internal is None else tables.internal.cluster()
    if state is None:
        return no_rows(tables.frames, COLUMNS)
    found = voters(state).withColumn("endpoints", listeners("endpoints"))
    return found.select(*(one.name for one in COLUMNS))


ANSWER = Answer(
    "cluster_voters",
    "Which controllers vote on the cluster's metadata?",
    "The voters of the quorum by its log: a majority of them has to run.",
    "Have three or five. From kraft.version 1 on kafka-metadata-quorum adds and removes them: see "
    "first that a majority of those that are left runs.",
    "a voter",
    COLUMNS,
    ("voter",),
    (
        ShownColumn("voter", "Voter", "id", is_about=True),
        ShownColumn("endpoints", "Listeners"),
        ShownColumn("kraft_version", "kraft.version", "count"),
        ShownColumn("is_known", "Known", "flag"),
        ShownColumn("reason", "Why not"),
        ShownColumn("changed_time", "Changed", "moment"),
    ),
    cluster_voters,
    asks=(InternalTopic.METADATA.topic,),
)
