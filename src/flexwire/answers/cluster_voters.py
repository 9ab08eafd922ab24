"""Voters by the log of a cluster's metadata: `cluster_voters`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from flexwire.answers.asking.answer import Answer
from flexwire.answers.asking.internal_logs import listeners
from flexwire.answers.asking.nothing import returns
from flexwire.answers.state.cluster_voters import voters
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.reading import AnalysisTables

_TIME: Final = pa.timestamp("us", "UTC")
_NOT_SAID: Final = "of static voters, and where it is not known who votes"
COLUMNS = (
    Column("voter", pa.int32(), "the id of a controller that votes",
           "where it is not known who does", heading="Voter", kind="id", is_about=True),
    Column("endpoints", pa.list_(pa.string()), "its listeners", _NOT_SAID, heading="Listeners"),
    Column("directory_id", pa.string(), "the id of its log directory", _NOT_SAID),
    Column("kraft_version", pa.int16(), "the quorum's kraft.version; at 0 voters are static",
           "where it is not known", heading="kraft.version"),
    Column("is_known", pa.bool_(), "whether this is a voter; else ``reason`` says why it is not "
           "known who is one", heading="Known"),
    Column("reason", pa.string(), "why it is not known", "where it is", heading="Why not"),
    Column("changed_time", _TIME, "when the voters changed last",
           "where that was before the snapshot that the state begins with, and where not known",
           heading="Changed"),
)  # fmt: skip


@returns(COLUMNS)
def cluster_voters(tables: AnalysisTables) -> DataFrame | None:
    """Give a row for each voter of the quorum, as its log has it.

    From kraft.version 1 on records say it. Static voters are in the configuration of controllers,
    and records have the ids of those that the last leader took for voters.
    """
    state = tables.cluster()
    if state is None:
        return None
    return voters(state).withColumn("endpoints", listeners("endpoints"))


ANSWER = Answer(
    name="cluster_voters",
    place=330,
    question="Which controllers vote on the cluster's metadata?",
    meaning="The voters of the quorum by its log: a majority of them has to run.",
    advice="Have three or five. From kraft.version 1 on kafka-metadata-quorum adds and removes "
    "them: see first that a majority of those that are left runs.",
    row="a voter",
    columns=COLUMNS,
    order=("voter",),
    ask=cluster_voters,
    asks=(InternalTopic.METADATA.topic,),
)
