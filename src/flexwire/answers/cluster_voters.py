"""The voters in the log of a cluster's metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.answer import Answer, returns
from flexwire.answers.asking.internal_logs import listeners
from flexwire.answers.state.cluster import CHANGE_COLUMNS, changed
from flexwire.answers.state.cluster_source import QUORUM
from flexwire.logs.metadata import KRAFT_VERSION, KRAFT_VOTERS, LEADER_CHANGE
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.answer import AnalysisTables
    from flexwire.answers.state.cluster import ClusterState


_OF_RECORD: Final = ("offset", "in_log", "timestamp", "is_committed")
_VOTER: Final = {field.name: field.type for field in QUORUM.field("voters").type.value_type}
_STATIC: Final = "for static voters, or if the kraft.version is unknown"
NOT_SAID: Final = (
    "no record lists the voters: with kraft.version 0, each controller lists them in its setting "
    "controller.quorum.voters"
)
VIEW_COLUMNS: Final = (
    Column("voter", pa.int32(), "the voter's id", "if the voters are unknown"),
    Column("directory_id", pa.string(), "the id of the controller's log directory", _STATIC),
    Column("endpoints", _VOTER["endpoints"], "its listeners", _STATIC),
    Column(
        "least_kraft_version",
        pa.int16(),
        "the lowest kraft.version that the controller supports",
        _STATIC,
    ),
    Column(
        "most_kraft_version",
        pa.int16(),
        "the highest kraft.version that the controller supports",
        _STATIC,
    ),
    Column(
        "kraft_version",
        pa.int16(),
        "the kraft.version of the quorum; with version 1 or later, records contain the voters "
        "(KIP-853)",
        "if the kraft.version is unknown",
    ),
    Column(
        "said_by",
        pa.string(),
        f'the record that contains the voter list: "{KRAFT_VOTERS}", or "{LEADER_CHANGE}" for '
        "static voters",
        "if the kraft.version is unknown",
    ),
    Column(
        "is_known",
        pa.bool_(),
        "whether this row describes a voter; if not, the answer has no other row, and ``reason`` "
        "explains why the voters are unknown",
    ),
    Column("reason", pa.string(), "why the voters are unknown", "if the voters are known"),
    *CHANGE_COLUMNS,
)


def voters(state: ClusterState) -> DataFrame:
    """Return a row for each voter in the last voters record of the state.

    If the voters are unknown, a single row states the reason. As in Kafka, a voters record is
    valid as soon as it is written, even if it is not committed.
    """
    last = state.quorum.agg(
        *(_last(F.col("kind") == kind).alias(kind) for kind in _KINDS),
        _last(F.col("error").isNotNull()).alias("unread"),
    )
    version = F.coalesce(f"{KRAFT_VERSION}.kraft_version", F.lit(0).cast("smallint"))
    is_static = F.col("version") == 0
    statement = F.when(is_static, F.col(LEADER_CHANGE)).otherwise(F.col(KRAFT_VOTERS))
    last = last.withColumn("version", version).withColumn("said", statement)
    # A record that cannot be read may contain anything, but a later record replaces it.
    unread, at = F.col("unread"), F.col(f"{KRAFT_VERSION}.at")
    is_read = (unread["at"] < at) & (unread["at"] < F.col("said.at"))
    is_unread = unread.isNotNull() & ~F.coalesce(is_read, F.lit(False))
    unreadable = F.format_string(
        "the record at offset %d cannot be read: %s", unread["offset"], unread["error"]
    )
    reason = F.when(is_unread, unreadable).when(F.col("said").isNull(), NOT_SAID)
    last = last.withColumn("reason", reason)
    is_known = F.col("reason").isNull()
    said_by = F.when(is_static, LEADER_CHANGE).otherwise(KRAFT_VOTERS)
    each = last.select(
        F.when(is_known, F.col("version")).alias("kraft_version"),
        F.when(is_known, said_by).alias("said_by"),
        is_known.alias("is_known"),
        "reason",
        *(F.when(is_known, F.col(f"said.{field}")).alias(field) for field in _OF_RECORD),
        F.explode_outer(F.when(is_known, F.col("said.voters"))).alias("one"),
    )
    return each.select(
        *(F.col(f"one.{name}") for name in _VOTER),
        *("kraft_version", "said_by", "is_known", "reason"),
        *changed(),
    )


_KINDS: Final = (KRAFT_VERSION, KRAFT_VOTERS, LEADER_CHANGE)


def _last(is_wanted: SparkColumn) -> SparkColumn:
    row = F.struct("at", "kraft_version", "voters", "error", *_OF_RECORD)
    return F.max_by(row, F.when(is_wanted, F.col("at")))


_TIME: Final = pa.timestamp("us", "UTC")
_NOT_SAID: Final = "for static voters, or if the voters are unknown"
COLUMNS = (
    Column("voter", pa.int32(), "the id of a controller that votes",
           "if the voters are unknown", heading="Voter", kind="id", is_about=True),
    Column("endpoints", pa.list_(pa.string()), "its listeners", _NOT_SAID, heading="Listeners"),
    Column("directory_id", pa.string(), "the id of the controller's log directory", _NOT_SAID),
    Column("kraft_version", pa.int16(), "the kraft.version of the quorum; with version 0, the "
           "voters are static",
           "if the kraft.version is unknown", heading="kraft.version"),
    Column("is_known", pa.bool_(), (
        "whether this row describes a voter; if not, ``reason`` explains why the voters are "
        "unknown"
    ), heading="Known"),
    Column("reason", pa.string(), "why the voters are unknown",
           "if the voters are known", heading="Why not"),
    Column("changed_time", _TIME, "when the voters last changed",
           "if the last change was before the snapshot on which the state is based, or if "
           "the time is unknown",
           heading="Changed"),
)  # fmt: skip


@returns(COLUMNS)
def cluster_voters(tables: AnalysisTables) -> DataFrame | None:
    """Return the voters of the quorum, according to its log.

    Since kraft.version 1, records list the voters. In earlier versions, the configuration of the
    controllers lists the voters, and records contain only the ids that the last leader used.
    """
    state = tables.cluster()
    if state is None:
        return None
    return voters(state).withColumn("endpoints", listeners("endpoints"))


ANSWER = Answer(
    name="cluster_voters",
    place=330,
    question="Which controllers vote on the cluster's metadata?",
    meaning=(
        "The voters of the quorum, according to its log. The quorum works only while a majority of "
        "the voters is running."
    ),
    advice=(
        "Run three or five voters. With kraft.version 1 or later, kafka-metadata-quorum can add "
        "and remove voters. Before you remove a voter, check that a majority of the other voters "
        "is running."
    ),
    row="a voter",
    columns=COLUMNS,
    order=("voter",),
    ask=cluster_voters,
    asks=(InternalTopic.METADATA.topic,),
)
