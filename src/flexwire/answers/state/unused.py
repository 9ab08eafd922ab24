"""What nobody committed for since a time, which is no proof: `unused_groups`, `unused_topics`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame


def unused_groups(groups: DataFrame, commits: DataFrame, since: datetime) -> DataFrame:
    """Return the groups without members that have committed nothing since a time: a row for each.

    ``group``, ``type``, ``last_commit_time``, ``partitions``: how many have a commit. ``groups``
    and ``commits`` are what the views `groups` and `last_commits` give. A group of which something
    is not known, or with a commit that is pending, is not there: it may be in use.
    """
    is_pending = F.coalesce(F.size("pending") > 0, F.lit(True))
    committed = commits.groupBy("group").agg(
        F.max("commit_time").alias("last_commit_time"),
        F.count("offset").alias("partitions"),
        F.bool_and(F.col("is_known") & ~is_pending).alias("is_settled"),
    )
    both = groups.join(committed, "group", "full")
    is_known = F.coalesce("is_known", F.lit(True)) & F.coalesce("is_settled", F.lit(True))
    has_members = F.coalesce(F.col("members") > 0, F.lit(False))
    is_old = F.coalesce(F.greatest("last_commit_time", "time") < F.lit(since), F.lit(False))
    return both.where(is_known & ~has_members & is_old).select(
        "group", "type", "last_commit_time", F.coalesce("partitions", F.lit(0)).alias("partitions")
    )


def unused_topics(topics: DataFrame, commits: DataFrame, since: datetime) -> DataFrame:
    """Return the topics for which no group has committed anything since a time: a row for each.

    ``topics`` has a column ``topic``, and what else it has stays; ``commits`` is what
    `last_commits` gives. ``groups``: how many have a commit at all; ``last_commit_time``. A
    consumer that commits nothing, as one of Spark that keeps its offsets itself, is not seen, nor
    a member that has not committed yet. The answer ``unused_topics`` knows of members and fetches,
    and sets apart what software reads without commits.
    """
    is_pending = F.coalesce(F.size("pending") > 0, F.lit(True))
    used = commits.groupBy("topic").agg(
        F.max("commit_time").alias("last_commit_time"),
        F.count_distinct("group").alias("groups"),
        F.bool_and(F.col("is_known") & ~is_pending).alias("is_settled"),
    )
    is_old = F.coalesce(F.col("last_commit_time") < F.lit(since), F.col("is_settled").isNull())
    is_settled = F.coalesce("is_settled", F.lit(True))
    found = topics.join(used, "topic", "left").where(is_old & is_settled)
    return found.select(
        *topics.columns, F.coalesce("groups", F.lit(0)).alias("groups"), "last_commit_time"
    )
