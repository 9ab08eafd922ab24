"""Groups by the log of `__consumer_offsets`: `group_state`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

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
_NO_COMMIT: Final = "where the group has committed nothing"
COLUMNS = (
    Column("group", pa.string(), "the group", heading="Group", is_about=True),
    Column("type", pa.string(), "classic, consumer, share or streams",
           "of a group that only commits, and has no record of its own", heading="Type"),
    Column("members", pa.int64(), "its members", "with ``type``", heading="Members"),
    Column("topic", pa.string(), "a topic that it has committed offsets of", _NO_COMMIT,
           heading="Topic", is_about=True),
    Column("partitions", pa.int64(), "how many of its partitions have a commit",
           heading="Partitions"),
    Column("lag", pa.int64(), "from the commits to the high watermarks of the logs that were read, "
           "or to their ends where these are not known, together",
           "where none of these logs was read, without a commit, and of offsets far out of reach",
           heading="Lag"),
    Column("max_lag", pa.int64(), "the largest of one partition", "with ``lag``",
           heading="Of one partition"),
    Column("without_end", pa.int64(), "of how many partitions the log was not read, and so the lag "
           "is not known", heading="Ends not read"),
    Column("pending", pa.int64(), "commits of transactions that have not ended", heading="Pending"),
    Column("last_commit_time", _TIME, "when it committed last, by the coordinator's clock",
           _NO_COMMIT, heading="Last commit"),
    Column("idle_us", pa.int64(), "how long before the last record of any internal topic it "
           "committed or changed last, in microseconds",
           "of a group with members, and where no time is known", heading="Idle"),
    Column("is_known", pa.bool_(), "whether all of it is known: false where compaction removed "
           "what was there at an earlier moment, if anything was"),
    Column("stable_lag", pa.int64(), "from the commits to the last stable offsets, where consumers "
           "that read committed stop, together", "with ``lag``, and as of an offset",
           heading="To the stable offsets"),
)  # fmt: skip


@returns(COLUMNS)
def group_state(tables: AnalysisTables) -> DataFrame | None:
    """Give a row for each group and topic, as coordinators had it.

    It is read from the log of `__consumer_offsets`, and exact for each group whose partition of
    that is among the logs: of one broker alone these are some of them. Commits that were deleted
    or have expired are not there, and those of transactions count from their end on. What share
    groups have is not in this log. A lag below 0 is of a topic that was made anew, or cut off.
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
    question="Where are groups, and which are not in use?",
    meaning="Groups as their coordinators had them: commits, and the lag to the ends of the logs "
    "that were read; idle are those without members.",
    advice="Look at a large lag of a group with members first: add members, or see why they are "
    "slow; groups that have been idle for long are in unused_groups, which says what to ask "
    "before one is deleted.",
    row="a group and topic",
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
