"""Topics that no group has been seen to read for some time."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.answer import Answer, returns
from flexwire.answers.asking.internal_logs import TOPICS
from flexwire.answers.cluster_configs import configs
from flexwire.answers.state import group_members, groups, last_commits
from flexwire.answers.state.log import elapsed_us, is_older
from flexwire.answers.topic_readers import topic_readers
from flexwire.errors import CaptureError
from flexwire.facts.answers import AnswerPicture
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.protocol.software_topics import SOFTWARE_TOPICS
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.answer import AnalysisTables
    from flexwire.answers.asking.internal_logs import InternalLogs
    from flexwire.answers.state.cluster import ClusterState

RECENT: Final = timedelta(days=7)
"""A client that has committed within this time counts as still reading the topic, so that even a
weekly job counts as a reader.
"""

_TIME: Final = pa.timestamp("us", "UTC")
_TOPIC: Final = InternalTopic.CONSUMER_OFFSETS
_NOT_READ: Final = "if no log of the topic was read, or if ``--as-of`` specifies offsets"
COLUMNS = (
    Column("topic", pa.string(), "the topic", heading="Topic", is_about=True),
    Column("partitions", pa.int64(),
           "the number of partitions of the topic; if the cluster's metadata was not read, the "
           "number of partitions whose log was read",
           heading="Partitions"),
    Column("bytes", pa.int64(), "how many bytes of the topic's logs were read",
           _NOT_READ, heading="Bytes"),
    Column("last_record_time", _TIME, "the latest timestamp of the topic's records",
           f"{_NOT_READ}, or if no record has a timestamp", heading="Last record"),
    Column("groups", pa.int64(),
           "the number of groups that have committed an offset for the topic; none of these groups "
           "has members or has committed an offset recently", heading="Groups"),
    Column("last_commit_time", _TIME, "when one of these groups last committed",
           "if there are no such groups", heading="Last commit"),
    Column("unread_us", pa.int64(),
           "the time from the last commit to the last record of any internal topic, or to the "
           "requested moment, in microseconds",
           "if ``last_commit_time`` is null, or if no record has a time",
           heading="Not read for"),
    Column("is_known", pa.bool_(),
           "whether all partitions of __consumer_offsets were read. If not, this answer may have "
           "missed a group that reads the topic. The value true does not prove that nobody reads "
           "the "
           "topic, because a reader that commits no offsets is not seen",
           heading="All group logs read"),
    Column("software", pa.string(),
           "the software that uses topics with this name, such as Kafka Connect; readers of such "
           "topics commit no offsets",
           "if the name belongs to no known software", heading="Software"),
    Column("is_compacted", pa.bool_(),
           "whether the cleanup.policy of the topic includes compact; readers often read such a "
           "topic as a whole, without committing offsets",
           "if the metadata of the cluster was not read",
           heading="Compacted"),
    Column("is_apart", pa.bool_(),
           "whether ``software`` or ``is_compacted`` indicates that the topic is read without "
           "commits; in this case, committed offsets do not show whether anybody needs the topic"),
)  # fmt: skip


# The facts about a topic that come from its batches.
_WRITTEN: Final = {"bytes": "sum(size)", "last_record_time": "max(newest_time)"}


@returns(COLUMNS)
def unused_topics(tables: AnalysisTables, recent: timedelta = RECENT) -> DataFrame | None:
    """Return each topic that no group was seen to read within ``recent``.

    A group with members reads the topics for which it has committed offsets, the topics that its
    members subscribe to by name, and the topics assigned to its members. A group that committed an
    offset less than ``recent`` ago also counts as a reader, with or without members, because a
    consumer that assigns its own partitions is not a member. So does a client that fetches the
    topic in the captures and request logs of this analysis (`topic_readers`).

    A row does not prove that nobody reads a topic. A consumer that does not commit offsets is not
    seen; one example is Spark, which stores its offsets itself. A topic that is read once a quarter
    also appears unused. Kafka's own internal topics are not listed.
    """
    logs = tables.internal
    commits = None if logs is None else logs.view(_TOPIC, last_commits)
    every = None if logs is None else logs.view(_TOPIC, groups)
    if logs is None or commits is None or every is None:
        return None
    alive = F.coalesce(F.col("members") > 0, F.lit(False)) | ~F.coalesce("is_alive", F.lit(True))
    states = every.select("group", "members", F.col("is_known").alias("is_alive"))
    is_settled = F.col("is_known") & F.coalesce(F.size("pending") == 0, F.lit(False))
    now = F.unix_micros(F.lit(logs.newest(_TOPIC)).cast("timestamp"))
    # If no record contains the time, the topic may have been used only just now.
    is_recent = ~F.coalesce(is_older("commit_time", now, recent), F.lit(False))
    used = commits.join(states, "group", "left").groupBy("topic")
    uses = used.agg(
        F.count_distinct("group").alias("groups"),
        F.max("commit_time").alias("last_commit_time"),
        F.bool_or(alive | ~is_settled | is_recent).alias("is_used"),
    )
    expected = _expected_topics(logs).unionByName(_fetched(tables, logs)).distinct()
    expected = expected.withColumn("is_wanted", F.lit(True))
    rows = _topics(logs).join(uses, "topic", "left").join(expected, "topic", "left")
    rows = rows.join(_compacted_topics(logs), "topic", "left")
    rows = rows.where("not coalesce(is_used, false) and is_wanted is null").withColumns(
        {
            "groups": F.coalesce("groups", F.lit(0).cast("bigint")),
            "unread_us": elapsed_us("last_commit_time", now),
            "is_known": F.lit(logs.has_all(_TOPIC)),
            "software": _software(F.col("topic")),
            "is_compacted": _if_known(logs, F.coalesce("is_compacted", F.lit(False))),
        }
    )
    is_apart = F.col("software").isNotNull() | F.coalesce("is_compacted", F.lit(False))
    return rows.withColumn("is_apart", is_apart)


def _software(topic: SparkColumn) -> SparkColumn:
    """Return the software that owns a topic, or null if the topic's name does not indicate it."""
    software = F.lit(None).cast("string")
    for topic_kind in reversed(SOFTWARE_TOPICS):
        software = F.when(
            topic.rlike(f"^(?:{topic_kind.pattern})$"), topic_kind.software
        ).otherwise(software)
    return software


def _fetched(tables: AnalysisTables, logs: InternalLogs) -> DataFrame:
    """Return the topics that clients in captures and request logs fetch or commit offsets for."""
    readers = topic_readers(tables).where("not is_follower").select("topic", "topic_id")
    names = logs.topic_names().withColumnRenamed("topic", "named")
    named = readers.join(names, "topic_id", "left")
    topics = named.select(F.coalesce("topic", "named").alias("topic"))
    return topics.where("topic is not null").distinct()


def _compacted_topics(logs: InternalLogs) -> DataFrame:
    """Return the topics that are compacted according to their own configuration."""
    state = _state(logs)
    if state is None:
        return logs.topic_names().select("topic", F.lit(False).alias("is_compacted")).where("false")
    policies = configs(state).where("resource_type = 'topic' and name = 'cleanup.policy'")
    return policies.where(F.col("value").contains("compact")).select(
        F.col("resource_name").alias("topic"), F.lit(True).alias("is_compacted")
    )


def _if_known(logs: InternalLogs, value: SparkColumn) -> SparkColumn:
    return value if _state(logs) is not None else F.lit(None).cast("boolean")


def _state(logs: InternalLogs) -> ClusterState | None:
    try:
        return logs.cluster()
    except CaptureError:
        # The configuration at the requested moment is unknown.
        return None


def _expected_topics(logs: InternalLogs) -> DataFrame:
    """Return the topics to which members subscribe, and those assigned to members."""
    members = logs.view(_TOPIC, group_members)
    if members is None:
        return logs.topic_names().select("topic").where("false")
    subscribed = members.select(F.explode("topics").alias("topic"))
    assigned = members.select(F.explode("assigned").alias("one")).select(
        "one.topic", "one.topic_id"
    )
    names = logs.topic_names().withColumnRenamed("topic", "named")
    named = assigned.join(names, "topic_id", "left").select(
        F.coalesce("topic", "named").alias("topic")
    )
    return subscribed.unionByName(named).where("topic is not null").distinct()


def _topics(logs: InternalLogs) -> DataFrame:
    """Return all topics: those in the cluster's metadata, and those whose logs were read."""
    batches = logs.written(_TOPIC)
    is_known = batches is not None
    batches = logs.batches if batches is None else batches
    of_logs = batches.groupBy("topic").agg(
        F.count_distinct("partition").alias("read"),
        *(
            F.when(F.lit(is_known), F.expr(expression)).alias(name)
            for name, expression in _WRITTEN.items()
        ),
    )
    try:
        placed = logs.partitions()
    except CaptureError:
        # It is unknown which topics existed at the requested moment.
        placed = None
    if placed is None:
        every = of_logs.withColumnRenamed("read", "partitions")
    else:
        counts = placed.groupBy("topic").agg(F.count("*").alias("partitions"))
        # The logs of a deleted topic may remain for a while.
        every = counts.join(of_logs.drop("read"), "topic", "left")
    return every.where(~F.col("topic").isin(*TOPICS))


ANSWER = Answer(
    name="unused_topics",
    place=250,
    question="Which topics does no group seem to read?",
    meaning="Topics without a known reader: no group with members reads them, nobody committed an "
    "offset for them in the last 7 days, and no client in this analysis fetched them. Topics that "
    "are probably read without commits, judging by their name or their cleanup.policy, come last.",
    advice=(
        "Do not delete a topic only because it has a row here: readers that commit no offsets are "
        "not seen. Ask the owners of the topic, and look for fetches over several weeks "
        "(topic_readers, from a capture or a request log). Then deny access to the topic with an "
        "ACL, which you can undo, and wait. A shorter retention.ms also deletes records "
        "permanently."
    ),
    row="a topic",
    columns=COLUMNS,
    order=("is_apart", "-is_known", "-bytes", "-unread_us", "topic"),
    ask=unused_topics,
    picture=AnswerPicture("Size of topics that no group was seen to read", "bytes"),
    asks=(_TOPIC.topic,),
)
