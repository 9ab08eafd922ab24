"""Groups that no client has been seen to use for some time."""

from __future__ import annotations

from datetime import timedelta
from functools import reduce
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.answer import Answer, returns
from flexwire.answers.state import groups, last_commits, share_state
from flexwire.answers.state.log import elapsed_us, is_older
from flexwire.facts.answers import AnswerPicture
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from flexwire.answers.asking.answer import AnalysisTables

RECENT: Final = timedelta(days=1)
"""A group that was used within this time may still be in use, by a daily job or by a consumer that
is not a member.
"""

# The requests that clients send if they are members of a group or commit for a group. Monitoring
# tools send only requests that describe groups.
_USES: Final = (
    *("JoinGroupRequest", "SyncGroupRequest", "HeartbeatRequest", "OffsetCommitRequest"),
    *("TxnOffsetCommitRequest", "AddOffsetsToTxnRequest", "ConsumerGroupHeartbeatRequest"),
    *("ShareGroupHeartbeatRequest", "ShareFetchRequest", "ShareAcknowledgeRequest"),
    "StreamsGroupHeartbeatRequest",
)
_TIME: Final = pa.timestamp("us", "UTC")
_TOPIC: Final = InternalTopic.CONSUMER_OFFSETS
COLUMNS = (
    Column("group", pa.string(), "the group", heading="Group", is_about=True),
    Column("type", pa.string(), "classic, consumer, share or streams",
           "for a group that only commits offsets and has no record of its own", heading="Type"),
    Column("topics", pa.list_(pa.string()),
           "the topics for which the group has committed offsets or, if it is a share group, has "
           "state", heading="Topics"),
    Column("partitions", pa.int64(), "the number of partitions with such offsets or state",
           heading="Partitions"),
    Column("last_time", _TIME,
           "when the group last committed an offset or changed, by the coordinator's clock",
           "if no record contains this time", heading="Last used"),
    Column("idle_us", pa.int64(),
           "the time from ``last_time`` to the last record of any internal topic, or to the "
           "requested moment, in microseconds",
           "if ``last_time`` is null, or if no record has a time", heading="Idle"),
)  # fmt: skip


@returns(COLUMNS)
def unused_groups(tables: AnalysisTables, recent: timedelta = RECENT) -> DataFrame | None:
    """Return each group without members that was not used for ``recent``.

    Groups that may be in use are left out: groups about which something is unknown, and groups for
    which a transaction has a pending commit. Groups that committed less than ``recent`` ago are
    also left out, because a consumer that assigns its own partitions commits offsets but never
    appears as a member. Groups that a client uses according to the captures and request logs of
    this analysis are also left out. If no record shows when a group was last used, its ``idle_us``
    is null.

    A row does not prove that nobody needs a group: a group that is used once a quarter would look
    the same in this answer.
    """
    logs = tables.internal
    commits = None if logs is None else logs.view(_TOPIC, last_commits)
    every = None if logs is None else logs.view(_TOPIC, groups)
    if logs is None or commits is None or every is None:
        return None
    is_settled = F.col("is_known") & F.coalesce(F.size("pending") == 0, F.lit(False))
    places = commits.select(
        *("group", "topic", "partition", F.col("commit_time").alias("time")),
        is_settled.alias("is_settled"),
    )
    shared = logs.view(InternalTopic.SHARE_STATE, share_state)
    if shared is not None:
        named = shared.join(logs.topic_names(), "topic_id", "left")
        topic = F.coalesce("topic", "topic_id").alias("topic")
        time = F.col("write_time").alias("time")
        # If no group record contains the group, its members are unknown, unless all these logs were
        # read.
        is_named = F.col("of_group").isNotNull() | F.lit(logs.has_all(_TOPIC))
        settled = (F.col("is_known") & is_named).alias("is_settled")
        of_groups = every.select(F.col("group").alias("of_group"))
        named = named.join(of_groups, F.col("group_id") == F.col("of_group"), "left")
        share = named.select(F.col("group_id").alias("group"), topic, "partition", time, settled)
        places = places.unionByName(share)
    used = places.groupBy("group").agg(
        F.array_sort(F.collect_set("topic")).alias("topics"),
        F.count("*").alias("partitions"),
        F.max("time").alias("used_time"),
        F.bool_and("is_settled").alias("is_settled"),
    )
    both = every.join(used, "group", "full").na.fill(0, ["partitions"])
    is_known = F.coalesce("is_known", F.lit(True)) & F.coalesce("is_settled", F.lit(True))
    is_empty = F.coalesce(F.col("members") == 0, F.lit(True))
    last = F.greatest("used_time", "time")
    now = F.unix_micros(F.lit(logs.newest(_TOPIC)).cast("timestamp"))
    none = F.array().cast("array<string>")
    is_idle = F.coalesce(is_older(last, now, recent), F.lit(True))
    both = both.join(_groups_in_traffic(tables), "group", "left_anti")
    return both.where(is_known & is_empty & is_idle).withColumns(
        {
            "topics": F.coalesce("topics", none),
            "last_time": last,
            "idle_us": elapsed_us(last, now),
        }
    )


def _groups_in_traffic(tables: AnalysisTables) -> DataFrame:
    """Return the groups that have members or commits in the captured traffic."""
    tables_of_uses = [table for name in _USES if (table := tables.message(name)) is not None]
    none = tables.frames.where("false").select(F.lit(None).cast("string").alias("group"))
    named = [table.select(F.col("body.group_id").alias("group")) for table in tables_of_uses]
    return reduce(DataFrame.unionByName, named, none).where("group is not null").distinct()


ANSWER = Answer(
    name="unused_groups",
    place=240,
    question="Which groups seem to be unused?",
    meaning=(
        "Groups that have no members and were not used in the last day. The groups that have been "
        "idle the longest come first."
    ),
    advice="Ask the owners of groups that have been idle for months. If you delete a group, its "
    "offsets are lost permanently. First save the offsets: 'flexwire answers OUT group_offsets "
    "--reset-plan FILE' writes the offsets of consumer groups. Then delete the group with "
    "'kafka-consumer-groups --delete' or 'kafka-share-groups --delete'.",
    row="a group",
    columns=COLUMNS,
    order=("-idle_us", "group"),
    ask=unused_groups,
    picture=AnswerPicture("How long groups have been idle", "idle_us"),
    asks=(_TOPIC.topic,),
)
