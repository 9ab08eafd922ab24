"""Lag at commit: how far the offsets that groups commit are from the ends of their partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it
from pyspark.sql.window import Window

from flexwire.columnar.record_schema import MOMENT
from flexwire.report.answer_facts import Picture, ShownColumn
from flexwire.spark.answers.answer import Answer
from flexwire.spark.answers.clients import address
from flexwire.spark.answers.nothing import no_rows
from flexwire.spark.answers.topic_names import known_id, with_topic_names
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from flexwire.spark.answers.reading import AnalysisTables

# Where offsets are committed, and where a fetch tells the end of a partition.
COMMITS: Final = "OffsetCommitRequest"
ENDS: Final = "FetchResponse"
_TOPIC_IDS: Final = {
    COMMITS: [("body", "topics", "topic_id")],
    ENDS: [("body", "responses", "topic_id")],
}

COLUMNS: Final = (
    Column("group_id", pa.string(), "the group"),
    Column("client_id", pa.string(), "the client that commits", "where it sent no client id"),
    Column("address", pa.string(), "its host"),
    Column("topic", pa.string(), "the topic", "where only its id is known"),
    Column(
        "topic_id", pa.string(), "the topic's id, where its name is not known",
        "where the name is known",
    ),
    Column("partition", pa.int32(), "the partition"),
    Column("commits", pa.int64(), "how often the client committed an offset of it"),
    Column("last_time", MOMENT, "when it did so last"),
    Column("committed_offset", pa.int64(), "the offset of its last commit"),
    Column(
        "high_watermark", pa.int64(), "the end of the partition, as the client's last fetch before "
        "that commit was told", "where no such fetch was captured",
    ),
    Column(
        "lag", pa.int64(), "how many offsets the commit was short of that end", "with the above"
    ),
    Column(
        "max_lag", pa.int64(), "the same of the client's commit that was furthest from it",
        "where no such fetch was captured before any commit",
    ),
)  # fmt: skip

_AT: Final = ("client_id", "address", "topic", "topic_id", "partition")


def lag(tables: AnalysisTables) -> DataFrame:
    """How far commits are from the ends of partitions: a row a group, client and partition.

    The end is the high watermark of the last Fetch response for that partition that the same
    client (its id, at its host) was sent before the commit. Consumers of transactions may read
    no further than the last stable offset, so that theirs may be lower.

    It does not know whether the broker took the commit, nor the lag of commits by a client whose
    fetches were not captured, as those of an administrator.
    """
    commits, ends = tables.message(COMMITS), tables.message(ENDS)
    if commits is None:
        return no_rows(tables.frames, COLUMNS)
    told = _commits(commits)
    if ends is not None:
        told = told.unionByName(_ends(ends))
    named = with_topic_names(told, tables, _TOPIC_IDS)
    # In fetches and commits of the same moment, what was fetched came first.
    order = ("time", F.col("committed_offset").isNotNull())
    before = Window.partitionBy(*_AT).orderBy(*order).rowsBetween(Window.unboundedPreceding, -1)
    seen = F.last("high_watermark", ignorenulls=True).over(before)
    each = named.withColumn("high_watermark", seen).where("committed_offset is not null")
    # A client may commit any offset, one that is out of reach too.
    short = F.try_subtract("high_watermark", "committed_offset")
    each = each.withColumn("lag", F.when(short < 0, 0).otherwise(short))
    last = F.max_by(F.struct("time", "committed_offset", "high_watermark", "lag"), "time")
    rows = each.groupBy("group_id", *_AT).agg(
        F.count("*").alias("commits"), last.alias("last"), F.max("lag").alias("max_lag")
    )
    rows = rows.select("group_id", *_AT, "commits", "max_lag", "last.*")
    return rows.withColumnRenamed("time", "last_time").select(*(one.name for one in COLUMNS))


def _commits(table: DataFrame) -> DataFrame:
    topics = table.select(*_who(), F.col("body.group_id"), F.inline("body.topics"))
    partitions = topics.select(
        "client_id", "address", "time", "group_id", F.col("name").alias("topic"),
        known_id(F.col("topic_id")).alias("topic_id"), F.inline("partitions"),
    )  # fmt: skip
    return partitions.select(
        "client_id", "address", "time", "group_id", "topic", "topic_id",
        F.col("partition_index").alias("partition"),
        "committed_offset",
        F.lit(None).cast("bigint").alias("high_watermark"),
    )  # fmt: skip


def _ends(table: DataFrame) -> DataFrame:
    topics = table.select(*_who(), F.inline("body.responses"))
    partitions = topics.select(
        "client_id", "address", "time", "topic", known_id(F.col("topic_id")).alias("topic_id"),
        F.inline("partitions"),
    )  # fmt: skip
    # Where the fetch failed, it is -1.
    return partitions.where("high_watermark >= 0").select(
        "client_id", "address", "time",
        F.lit(None).cast("string").alias("group_id"),
        "topic", "topic_id",
        F.col("partition_index").alias("partition"),
        F.lit(None).cast("bigint").alias("committed_offset"),
        "high_watermark",
    )  # fmt: skip


def _who() -> tuple[SparkColumn, ...]:
    return (F.col("client_id"), address(F.substring_index("connection", ">", 1)), F.col("time"))


ANSWER: Final = Answer(
    "lag",
    question="How far from the ends of their partitions do groups commit?",
    meaning="The offset of each client's last commit, and the high watermark that its last fetch "
    "before that was told.",
    advice="Where the lag grows from capture to capture, the group needs more members or less "
    "work for each record; where only one partition has it, look at its keys.",
    row="a group, client and partition",
    columns=COLUMNS,
    order=(
        "-lag",
        "-max_lag",
        "group_id",
        "topic",
        "topic_id",
        "partition",
        "client_id",
        "address",
    ),
    shown=(
        ShownColumn("group_id", "Group", is_about=True),
        ShownColumn("client_id", "Client id"),
        ShownColumn("topic", "Topic", is_about=True),
        ShownColumn("partition", "Partition", "count", is_about=True),
        ShownColumn("commits", "Commits", "count"),
        ShownColumn("committed_offset", "Committed", "count"),
        ShownColumn("high_watermark", "High watermark", "count"),
        ShownColumn("lag", "Lag", "count"),
        ShownColumn("max_lag", "Largest", "count"),
    ),
    ask=lag,
    of_state="group_offsets",
    picture=Picture("Lag at the last commit", "lag"),
)
