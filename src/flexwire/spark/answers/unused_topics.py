"""Topics that no group seems to read any more: `unused_topics`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.errors import CaptureError
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.report.answer_facts import Picture, ShownColumn
from flexwire.spark.answers.answer import Answer
from flexwire.spark.answers.internal_logs import TOPICS
from flexwire.spark.answers.nothing import no_rows
from flexwire.spark.internal_topics import group_members, groups, last_commits
from flexwire.spark.internal_topics.times import passed
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.spark.answers.internal_logs import InternalLogs
    from flexwire.spark.answers.reading import AnalysisTables

_TIME: Final = pa.timestamp("us", "UTC")
_TOPIC: Final = InternalTopic.CONSUMER_OFFSETS
_NOT_READ: Final = "where no log of it was read, and as of an offset"
COLUMNS = (
    Column("topic", pa.string(), "the topic"),
    Column("partitions", pa.int64(), "its partitions, or those whose log was read where the "
           "cluster's metadata was not"),
    Column("bytes", pa.int64(), "the bytes of its logs that were read", _NOT_READ),
    Column("last_record_time", _TIME, "the latest timestamp of its records",
           f"{_NOT_READ}, or has none"),
    Column("groups", pa.int64(), "the groups that have committed an offset of it, without members "
           "all of them"),
    Column("last_commit_time", _TIME, "when one of these did last", "where none has"),
    Column("unread_us", pa.int64(), "how long that was before the last record of any internal "
           "topic, or the moment that is asked for, in microseconds",
           "with ``last_commit_time``, or where no record says when that is"),
    Column("is_known", pa.bool_(), "whether surely no group reads it: false where not all "
           "partitions of __consumer_offsets were read, or not known to be"),
)  # fmt: skip


# What the batches of a topic say of it.
_WRITTEN: Final = {"bytes": "sum(size)", "last_record_time": "max(newest_time)"}


def unused_topics(tables: AnalysisTables) -> DataFrame:
    """Give a row for each topic that no group with members reads, and no commit is pending for.

    A group reads what it has committed an offset of, what one of its members wants by name, and
    what one has. A consumer without a group, or that commits nothing, as one of Spark that keeps
    its offsets itself, is not seen; nor is a group of streams before its first commit. Internal
    topics are left out.
    """
    logs = tables.internal
    commits = None if logs is None else logs.view(_TOPIC, last_commits)
    every = None if logs is None else logs.view(_TOPIC, groups)
    if logs is None or commits is None or every is None:
        return no_rows(tables.frames, COLUMNS)
    alive = F.coalesce(F.col("members") > 0, F.lit(False)) | ~F.coalesce("is_alive", F.lit(True))
    states = every.select("group", "members", F.col("is_known").alias("is_alive"))
    is_settled = F.col("is_known") & F.coalesce(F.size("pending") == 0, F.lit(False))
    used = commits.join(states, "group", "left").groupBy("topic")
    found = used.agg(
        F.count_distinct("group").alias("groups"),
        F.max("commit_time").alias("last_commit_time"),
        F.bool_or(alive | ~is_settled).alias("is_used"),
    )
    wanted = _wanted(logs).withColumn("is_wanted", F.lit(True))
    now = F.unix_micros(F.lit(logs.newest(_TOPIC)).cast("timestamp"))
    made = _topics(logs).join(found, "topic", "left").join(wanted, "topic", "left")
    made = made.where("not coalesce(is_used, false) and is_wanted is null").withColumns(
        {
            "groups": F.coalesce("groups", F.lit(0).cast("bigint")),
            "unread_us": passed("last_commit_time", now),
            "is_known": F.lit(logs.has_all(_TOPIC)),
        }
    )
    return made.select(*(one.name for one in COLUMNS))


def _wanted(logs: InternalLogs) -> DataFrame:
    """The topics that members want or have."""
    members = logs.view(_TOPIC, group_members)
    if members is None:
        return logs.topic_names().select("topic").where("false")
    wanted = members.select(F.explode("topics").alias("topic"))
    held = members.select(F.explode("assigned").alias("one")).select("one.topic", "one.topic_id")
    names = logs.topic_names().withColumnRenamed("topic", "named")
    named = held.join(names, "topic_id", "left").select(F.coalesce("topic", "named").alias("topic"))
    return wanted.unionByName(named).where("topic is not null").distinct()


def _topics(logs: InternalLogs) -> DataFrame:
    """All topics: those of the cluster's metadata, and those whose logs were read."""
    batches = logs.written(_TOPIC)
    is_known = batches is not None
    batches = logs.batches if batches is None else batches
    of_logs = batches.groupBy("topic").agg(
        F.count_distinct("partition").alias("read"),
        *(F.when(F.lit(is_known), F.expr(one)).alias(name) for name, one in _WRITTEN.items()),
    )
    try:
        placed = logs.partitions()
    except CaptureError:
        # Which there were at that moment is not known.
        placed = None
    if placed is None:
        every = of_logs.withColumnRenamed("read", "partitions")
    else:
        counts = placed.groupBy("topic").agg(F.count("*").alias("partitions"))
        # A topic that was deleted may have its logs for a while.
        every = counts.join(of_logs.drop("read"), "topic", "left")
    return every.where(~F.col("topic").isin(*TOPICS))


ANSWER = Answer(
    "unused_topics",
    "Which topics does no group read?",
    "Topics that no group with members has committed an offset of, nor wants: those that surely "
    "nobody reads first, and of these the largest.",
    "Ask their owners before anything: a consumer that commits nothing is not seen. Then stop "
    "what still writes to them, shorten retention.ms, and delete them.",
    "a topic",
    COLUMNS,
    ("-is_known", "-bytes", "-unread_us", "topic"),
    (
        ShownColumn("topic", "Topic", is_about=True),
        ShownColumn("partitions", "Partitions", "count"),
        ShownColumn("bytes", "Bytes", "bytes"),
        ShownColumn("last_record_time", "Last record", "moment"),
        ShownColumn("groups", "Groups", "count"),
        ShownColumn("last_commit_time", "Last commit", "moment"),
        ShownColumn("unread_us", "Not read for", "us"),
        ShownColumn("is_known", "Certain", "flag"),
    ),
    unused_topics,
    Picture("Bytes of topics that no group reads", "bytes"),
    asks=(_TOPIC.topic,),
)
