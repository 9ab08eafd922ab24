"""The groups in the log of `__consumer_offsets`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.answer import Answer, returns
from flexwire.answers.asking.internal_logs import with_stable_lag
from flexwire.answers.state import groups, lag, last_commits
from flexwire.answers.state.log import elapsed_us
from flexwire.facts.answers import AnswerPicture
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.answer import AnalysisTables

_TIME: Final = pa.timestamp("us", "UTC")
_TOPIC: Final = InternalTopic.CONSUMER_OFFSETS
_NO_COMMIT: Final = "if the group has committed no offset"
COLUMNS = (
    Column("group", pa.string(), "the group", heading="Group", is_about=True),
    Column("type", pa.string(), "classic, consumer, share or streams",
           "for a group that only commits offsets and has no record of its own", heading="Type"),
    Column("members", pa.int64(),
           "the number of members in the group", "if ``type`` is null", heading="Members"),
    Column("topic", pa.string(), "a topic for which the group has committed offsets", _NO_COMMIT,
           heading="Topic", is_about=True),
    Column("partitions", pa.int64(),
           "the number of partitions of the topic for which the group has committed offsets",
           heading="Partitions"),
    Column("lag", pa.int64(),
           "the sum of the lags from the commits to the high watermarks of the logs that were "
           "read, or to the ends of the logs if the high watermarks are unknown",
           "if none of these logs was read, if there is no commit, or if the sum does not fit in "
           "64 bits",
           heading="Lag"),
    Column("max_lag", pa.int64(), "the largest lag of one partition", "if ``lag`` is null",
           heading="Largest lag"),
    Column("without_end", pa.int64(),
           "the number of partitions whose lag is unknown because their log was not read",
           heading="Unknown lags"),
    Column("pending", pa.int64(), "the number of commits in transactions that have not ended",
           heading="Pending"),
    Column("last_commit_time", _TIME, "when the group last committed, according to the "
           "coordinator's clock", _NO_COMMIT, heading="Last commit"),
    Column("idle_us", pa.int64(),
           "the time from the last commit or change of the group to the last record of any "
           "internal topic, in microseconds",
           "for a group with members, or if no time is known", heading="Idle"),
    Column("is_known", pa.bool_(),
           "false if compaction may have removed a record that existed at the requested earlier "
           "moment"),
    Column("stable_lag", pa.int64(),
           "the sum of the lags from the commits to the last stable offsets, at which "
           "read_committed consumers stop",
           "if ``lag`` is null, or if ``--as-of`` specifies offsets",
           heading="Lag to stable offsets"),
)  # fmt: skip


@returns(COLUMNS)
def group_state(tables: AnalysisTables) -> DataFrame | None:
    """Return each group's committed offsets and lag, by topic.

    The rows come from the log of `__consumer_offsets`. They are exact for each group whose
    partition of `__consumer_offsets` is among the logs; the logs of a single broker contain only
    some of these partitions. Commits that were deleted or have expired are not counted. A commit in
    a transaction counts once the transaction is committed. This log does not contain the offsets of
    share groups. A negative lag means that a topic was created again, or that its log was
    truncated.
    """
    logs = tables.internal
    commits = None if logs is None else logs.view(_TOPIC, last_commits)
    every = None if logs is None else logs.view(_TOPIC, groups)
    if logs is None or commits is None or every is None:
        return None
    each = with_stable_lag(lag(commits, logs.ends(_TOPIC)), logs, _TOPIC)
    has_commit = F.col("offset").isNotNull()
    committed = each.groupBy("group", "topic").agg(
        F.count_if(has_commit).alias("partitions"),
        F.try_sum("lag").alias("lag"),
        F.try_sum("stable_lag").alias("stable_lag"),
        F.max("lag").alias("max_lag"),
        F.count_if(has_commit & F.col("end_offset").isNull()).alias("without_end"),
        F.sum(F.size("pending")).cast("bigint").alias("pending"),
        F.max("commit_time").alias("last_commit_time"),
        F.max("log_partition").alias("commits_partition"),
        F.bool_and("is_known").alias("has_commits"),
    )
    rows = every.select(
        *("group", "type", F.col("members").cast("bigint"), "time", "log_partition"),
        F.col("is_known").alias("has_group"),
    )
    both = committed.join(rows, "group", "full").na.fill(
        0, ["partitions", "without_end", "pending"]
    )
    is_empty = F.coalesce(F.col("members") == 0, F.lit(True))
    now = logs.now(_TOPIC, F.coalesce("log_partition", "commits_partition"))
    idle = F.when(is_empty, elapsed_us(F.greatest("last_commit_time", "time"), now))
    is_known = F.coalesce("has_commits", F.lit(True)) & F.coalesce("has_group", F.lit(True))
    return both.withColumns({"is_known": is_known, "idle_us": idle})


ANSWER = Answer(
    name="group_state",
    place=200,
    question="How far has each group read, and which groups are not in use?",
    meaning="The commits of each group, as its coordinator recorded them in the log, and how far "
    "these commits are behind the ends of the logs that were read. Groups without members are "
    "idle.",
    advice="First look at groups that have members and a large lag. Add members, or find out why "
    "the members are slow. The answer unused_groups lists groups that have been idle for a "
    "long time, and explains what to check before you delete a group.",
    row="a combination of a group and a topic",
    columns=COLUMNS,
    order=("-lag", "-idle_us", "group", "topic"),
    shown=(
        "group",
        "type",
        "members",
        "topic",
        "partitions",
        "lag",
        "max_lag",
        "stable_lag",
        "without_end",
        "pending",
        "last_commit_time",
        "idle_us",
    ),
    ask=group_state,
    picture=AnswerPicture("Lag, by group and topic", "lag"),
    asks=(_TOPIC.topic,),
)
