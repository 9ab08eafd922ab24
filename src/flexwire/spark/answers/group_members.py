"""Who is in groups, and what each member has: `group_members`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.facts.answers import Picture, ShownColumn
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.spark.answers.answer import Answer
from flexwire.spark.answers.nothing import no_rows
from flexwire.spark.internal_topics import group_members as members_of
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.spark.answers.reading import AnalysisTables

_TOPIC: Final = InternalTopic.CONSUMER_OFFSETS
_KEY: Final = ("group", "type", "member_id")
_NOT_SAID: Final = "where the member did not say it"
COLUMNS = (
    Column("group", pa.string(), "the group"),
    Column("type", pa.string(), "classic, consumer, share or streams"),
    Column("member_id", pa.string(), "the member's id",
           "where it is not known who was in a classic group"),
    Column("instance_id", pa.string(), "its group.instance.id", "of a dynamic member"),
    Column("client_id", pa.string(), "its client id", "where it is not known"),
    Column("client_host", pa.string(), "where it connected from", "where it is not known"),
    Column("rack_id", pa.string(), "its rack", _NOT_SAID),
    Column("topics", pa.list_(pa.string()), "the topics that it wants",
           "of streams, where a pattern says it, and of a classic group that is not of consumers"),
    Column("topic_regex", pa.string(), "the pattern of topics that it wants", _NOT_SAID),
    Column("partitions", pa.int64(), "how many partitions it has, of streams active tasks",
           "where it is not known"),
    Column("assigned", pa.list_(pa.string()), "which, by topic, topic id or subtopology: orders-0",
           "with ``partitions``"),
    Column("member_epoch", pa.int32(), "its epoch; in a classic group the generation",
           "where it has none yet"),
    Column("rebalance_timeout_ms", pa.int32(), "its rebalance timeout", "where it is not known"),
    Column("session_timeout_ms", pa.int32(), "its session timeout",
           "but in classic groups, as it is the group's"),
    Column("is_known", pa.bool_(), "false where compaction removed something of it at an earlier "
           "moment, or what would tell whether there was one"),
)  # fmt: skip


def group_members(tables: AnalysisTables) -> DataFrame:
    """Give a row for each member of a group, as coordinators had it.

    What a member of a classic group wants and has is known where they are consumers and say it as
    Kafka's do. Where the log of the cluster's metadata is there, topic ids have their names.
    """
    logs = tables.internal
    members = None if logs is None else logs.view(_TOPIC, members_of)
    if logs is None or members is None:
        return no_rows(tables.frames, COLUMNS)
    names = logs.topic_names()
    flat = members.select(*_KEY, F.explode("assigned").alias("one")).select(*_KEY, "one.*")
    named = flat.join(names.withColumnRenamed("topic", "named"), "topic_id", "left")
    topic = F.coalesce("topic", "named", "topic_id", "subtopology_id")
    pair = F.concat_ws("-", topic, F.col("partition").cast("string"))
    lists = named.groupBy(*_KEY).agg(F.array_sort(F.collect_list(pair)).alias("pairs"))
    count = F.when(F.col("assigned").isNotNull(), F.size("assigned")).cast("bigint")
    none = F.array().cast("array<string>")
    pairs = F.when(F.col("assigned").isNotNull(), F.coalesce("pairs", none))
    made = members.join(lists, [*_KEY], "left")
    made = made.withColumns({"partitions": count, "assigned": pairs})
    return made.select(*(one.name for one in COLUMNS))


ANSWER = Answer(
    "group_members",
    "Who is in which group, and who has how much?",
    "The members of groups as their coordinators had them, those with the most partitions first.",
    "Where one member has far more than the others, look at the assignor and at the number of "
    "partitions; members without one are more than the group can use.",
    "a member",
    COLUMNS,
    ("is_known", "-partitions", "group", "member_id"),
    (
        ShownColumn("group", "Group", is_about=True),
        ShownColumn("type", "Type"),
        ShownColumn("client_id", "Client id", is_about=True),
        ShownColumn("client_host", "Host", is_about=True),
        ShownColumn("instance_id", "Instance"),
        ShownColumn("rack_id", "Rack"),
        ShownColumn("topics", "Topics"),
        ShownColumn("topic_regex", "Pattern"),
        ShownColumn("partitions", "Partitions", "count"),
        ShownColumn("assigned", "Assigned"),
        ShownColumn("member_epoch", "Epoch", "count"),
        ShownColumn("is_known", "Known", "flag"),
    ),
    group_members,
    Picture("Partitions, by member", "partitions"),
    asks=(_TOPIC.topic,),
)
