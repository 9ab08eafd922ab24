"""The members of groups and their partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.answer import Answer, returns
from flexwire.answers.state import group_members as members_of
from flexwire.facts.answers import AnswerPicture
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.answer import AnalysisTables

_TOPIC: Final = InternalTopic.CONSUMER_OFFSETS
_KEY: Final = ("group", "type", "member_id")
_NOT_SAID: Final = "if the member did not send this value"
COLUMNS = (
    Column("group", pa.string(), "the group", heading="Group", is_about=True),
    Column("type", pa.string(), "classic, consumer, share or streams", heading="Type"),
    Column("member_id", pa.string(), "the member's id",
           "if the members of a classic group are unknown"),
    Column("instance_id", pa.string(), "its group.instance.id", "for a dynamic member",
           heading="Instance"),
    Column("client_id", pa.string(), "its client id", "if the client id is unknown",
           heading="Client id", is_about=True),
    Column("client_host", pa.string(), "the host from which the member connected",
           "if the host is unknown",
           heading="Host", is_about=True),
    Column("rack_id", pa.string(), "its rack", _NOT_SAID, heading="Rack"),
    Column("topics", pa.list_(pa.string()), "the topics that the member subscribes to",
           "for streams groups, for members that subscribe by a pattern, and for classic groups "
           "whose members are not consumers",
           heading="Topics"),
    Column("topic_regex", pa.string(), "the pattern of topic names that the member subscribes to",
           _NOT_SAID,
           heading="Pattern"),
    Column("partitions", pa.int64(),
           "the number of partitions assigned to the member; for streams, the number of active "
           "tasks",
           "if this number is unknown", heading="Partitions"),
    Column("assigned", pa.list_(pa.string()),
           "the partitions assigned to the member, each with its topic, topic id or subtopology: "
           "orders-0",
           "if ``partitions`` is null", heading="Assigned"),
    Column("member_epoch", pa.int32(), "the epoch of the member; in a classic group, the "
           "generation of the group",
           "if the member has no epoch yet", heading="Epoch"),
    Column("rebalance_timeout_ms", pa.int32(), "its rebalance timeout",
           "if the timeout is unknown"),
    Column("session_timeout_ms", pa.int32(), "its session timeout",
           "for groups that are not classic"),
    Column("is_known", pa.bool_(),
           "false if compaction may have removed records of the member; the member's state at "
           "the requested earlier moment is then unknown", heading="Known"),
)  # fmt: skip


@returns(COLUMNS)
def group_members(tables: AnalysisTables) -> DataFrame | None:
    """Return the members of groups, as group coordinators recorded them.

    The subscription and the assignment of a member of a classic group are known if the member is a
    consumer that writes them in Kafka's format. If the log of the cluster's metadata is given,
    topics are shown by name instead of by id.
    """
    logs = tables.internal
    members = None if logs is None else logs.view(_TOPIC, members_of)
    if logs is None or members is None:
        return None
    names = logs.topic_names()
    flat = members.select(*_KEY, F.explode("assigned").alias("one")).select(*_KEY, "one.*")
    named = flat.join(names.withColumnRenamed("topic", "named"), "topic_id", "left")
    topic = F.coalesce("topic", "named", "topic_id", "subtopology_id")
    pair = F.concat_ws("-", topic, F.col("partition").cast("string"))
    lists = named.groupBy(*_KEY).agg(F.array_sort(F.collect_list(pair)).alias("pairs"))
    count = F.when(F.col("assigned").isNotNull(), F.size("assigned")).cast("bigint")
    none = F.array().cast("array<string>")
    pairs = F.when(F.col("assigned").isNotNull(), F.coalesce("pairs", none))
    rows = members.join(lists, [*_KEY], "left")
    return rows.withColumns({"partitions": count, "assigned": pairs})


ANSWER = Answer(
    name="group_members",
    place=220,
    question="Which members does each group have, and which partitions are assigned to them?",
    meaning=(
        "The members of groups, as coordinators recorded them in the log. Members with the most "
        "partitions come first."
    ),
    advice="If one member has far more partitions than the others, check the assignor and the "
    "number of partitions. A member without partitions processes no records.",
    row="a member",
    columns=COLUMNS,
    order=("is_known", "-partitions", "group", "member_id"),
    shown=(
        "group",
        "type",
        "client_id",
        "client_host",
        "instance_id",
        "rack_id",
        "topics",
        "topic_regex",
        "partitions",
        "assigned",
        "member_epoch",
        "is_known",
    ),
    ask=group_members,
    picture=AnswerPicture("Partitions, by member", "partitions"),
    asks=(_TOPIC.topic,),
)
