"""The commits and the lag of groups, and topics without commits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.state.log import HIDES, IS_LATER, InternalLog, moment
from flexwire.arguments import refuse

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import Column, DataFrame


# Kafka treats the second name, which clients from the time of Kafka 0.8 used, like the first.
RECORDS: Final = ("OffsetCommit", "LegacyOffsetCommit")
KEY: Final = ("group", "topic", "partition")
_KEYS: Final = ("key", "legacy_key")
VALUE: Final = ("offset", "leader_epoch", "metadata", "commit_timestamp")

_EXPIRES: Final = "expire_timestamp"
_FIELDS: Final = {
    record: [f"key.{name}" for name in KEY] + [f"value.{name}" for name in (*VALUE, *more)]
    for record, more in zip(RECORDS, ((_EXPIRES,), ()), strict=True)
}

COMMITTED, ABORTED, PENDING = "committed", "aborted", "pending"
# Coordinators of 3.x wrote values up to version 3 (`MetadataVersion.offsetCommitValueVersion`).
# Kafka 4.0 includes only the new coordinator, but still writes version 3. Later releases write
# version 4.
_OF_NEW_COORDINATOR: Final = 4
_FACTS: Final = ("producer_id", "producer_epoch", "is_transactional")


def last_commits(log: InternalLog) -> DataFrame:
    """Return the last commit of each group for each partition.

    Columns: ``group``, ``topic``, ``partition``; ``offset``, ``leader_epoch``, ``metadata``,
    ``commit_time``, ``expire_time``; ``log_partition`` and ``log_offset`` of the record;
    ``pending`` (the last commit of each transaction that has not ended, null if unknown);
    ``is_known`` (false if compaction may have removed a record, or if releases of Kafka disagree).
    Deleted and expired commits are left out.

    A commit in a transaction takes effect at the transaction's COMMIT marker. As in Kafka, the
    commit that was written last wins, even if its marker precedes another marker. A tombstone
    removes every commit of its key that was written before it, even if the transaction ends later
    (Kafka's `OffsetMetadataManager`, KAFKA-14505). Coordinators before 4.0 kept such a commit when
    they loaded the log, and usually dropped it while they ran. In this case, ``is_known`` is false.
    """
    plain = _commits(log).withColumns({"outcome": F.lit(None).cast("string"), "end": F.col("at")})
    events = plain
    if log.has_transactions:
        events = plain.where(~F.col("is_transactional")).unionByName(_with_outcome(log))
    is_before, is_plain = ~F.col(IS_LATER), F.col("outcome").isNull()
    is_legacy = F.col("is_legacy")
    is_committed, is_pending = (F.col("outcome") == kind for kind in (COMMITTED, PENDING))
    hides = F.col(HIDES)
    if log.holed:
        # The transaction may have ended before the log was compacted. Its commit may then have
        # replaced another commit.
        hides |= is_before & is_pending & F.col("commit.log_partition").isin(*log.holed)
    record = F.struct("commit", "at", "is_tombstone")
    pending = F.struct(
        F.col("at").alias("log_offset"),
        "commit.offset",
        "commit.metadata",
        "producer_id",
        "producer_epoch",
        "is_odd",
    )
    last = events.groupBy(*KEY).agg(
        F.max_by(record, F.when(is_before & (is_plain | is_committed), F.col("at"))).alias("last"),
        F.max(F.when(is_before & F.col("is_tombstone"), F.col("at"))).alias("deleted"),
        F.max(F.when(is_before & is_committed & F.col("is_odd"), F.col("end"))).alias("odd_end"),
        F.collect_list(F.when(is_before & is_pending, pending)).alias("pending"),
        F.max("commit.log_partition").alias("log_partition"),
        # Compaction treats the two keys as different keys, so records with either one may be
        # missing.
        *(
            F.coalesce(F.bool_or(hides & is_of_key), F.lit(False)).alias(f"{name}_{HIDES}")
            for name, is_of_key in zip(_KEYS, (~is_legacy, is_legacy), strict=True)
        ),
        *(
            F.max(F.when(is_before & (is_plain | is_committed) & is_of_key, F.col("at"))).alias(
                f"{name}_at"
            )
            for name, is_of_key in zip(_KEYS, (~is_legacy, is_legacy), strict=True)
        ),
    )
    return _without_deleted(last, log)


def _without_deleted(commits: DataFrame, log: InternalLog) -> DataFrame:
    """Omit deleted commits, and mark uncertain ones."""
    deleted = F.col("deleted")
    is_left = F.col("last.is_tombstone")
    commit = F.when(~is_left, F.col("last.commit"))
    commits = commits.withColumn("pending", _last_of_producers("pending"))
    waiting = F.filter(
        "pending",
        lambda pending_commit: deleted.isNull() | (pending_commit["log_offset"] > deleted),
    )
    # If the last record is a tombstone, all commits in transactions were written before it.
    is_odd = F.coalesce(is_left & (F.col("odd_end") > deleted), F.lit(False))
    may_wait = F.exists(
        "pending",
        lambda pending_commit: pending_commit["is_odd"] & (pending_commit["log_offset"] < deleted),
    )
    may_wait = F.coalesce(may_wait, F.lit(False))
    is_gone = F.lit(False)
    for name in _KEYS:
        is_gone |= F.col(f"{name}_{HIDES}") & F.col(f"{name}_at").isNull()
    is_known = ~(is_gone | is_odd | (may_wait & commit.isNull()))
    pending = F.when(~may_wait, F.array_sort(F.transform(waiting, _commit_columns)).cast(_PENDING))
    if not log.has_transactions:
        pending = F.lit(None).cast(_PENDING)
    elif log.holed:
        # The log does not show a transaction that was aborted later.
        pending = F.when(~F.col("log_partition").isin(*log.holed), pending)
    decided = commits.withColumns({"last": commit, "is_known": is_known})
    is_there = F.col("last").isNotNull() | (F.size("pending") > 0) | ~F.col("is_known")
    decided = decided.withColumn("pending", pending).where(is_there)
    return decided.select(
        *KEY,
        *(f"last.{name}" for name in VALUE[:3]),
        moment("last.commit_timestamp").alias("commit_time"),
        moment("last.expire_timestamp").alias("expire_time"),
        "log_partition",
        "last.log_offset",
        "pending",
        "is_known",
    )


def _last_of_producers(commits: str) -> Column:
    """Return each producer's last commit.

    The last commit replaces earlier commits of the same transaction.
    """
    producers = F.array_distinct(F.transform(commits, lambda commit: commit["producer_id"]))
    return F.transform(
        producers,
        lambda producer: F.array_max(
            F.filter(commits, lambda commit: commit["producer_id"] == producer)
        ),
    )


def _commit_columns(commit: Column) -> Column:
    names = ("log_offset", "offset", "metadata", "producer_id", "producer_epoch")
    return F.struct(*(commit[name].alias(name) for name in names))


_PENDING: Final = (
    "array<struct<log_offset: bigint, offset: bigint, metadata: string, producer_id: bigint, "
    "producer_epoch: smallint>>"
)


def transactional_commits(log: InternalLog) -> DataFrame:
    """Return the offsets that transactions committed or tried to commit, one row per record.

    ``outcome`` is "committed", "aborted", or "pending" if there is no marker yet. Compaction
    removes aborted commits and replaced commits.
    """
    rows = _with_outcome(log).where(~F.col(IS_LATER))
    return rows.select(
        *KEY,
        *(f"commit.{name}" for name in VALUE[:3]),
        moment("commit.commit_timestamp").alias("commit_time"),
        "producer_id",
        "producer_epoch",
        "outcome",
        "commit.log_partition",
        "commit.log_offset",
        F.col("end").alias("end_offset"),
    )


def _commits(log: InternalLog, *, of_transactions: bool = False) -> DataFrame:
    """Return all commits, or those in transactions, with key, values, and place in the log."""

    def of(side: str, name: str) -> Column:
        return F.coalesce(*(F.col(f"{record}.{side}.{name}") for record in RECORDS))

    commit = F.struct(
        *(of("value", name).alias(name) for name in VALUE),
        F.col(f"{RECORDS[0]}.value.{_EXPIRES}").alias(_EXPIRES),
        F.col("partition").alias("log_partition"),
        F.col("offset").alias("log_offset"),
    )
    # A tombstone takes effect immediately, even in a transaction.
    of_transaction = F.col("is_transactional") & ~F.col("is_tombstone")
    facts = [F.col("producer_id"), F.col("producer_epoch"), of_transaction]
    if not log.has_transactions:
        facts = [F.lit(None).cast("bigint"), F.lit(None).cast("smallint"), F.lit(False)]
    typed = log.typed(
        _FIELDS,
        ("is_tombstone", "version", *_FACTS),
        of_transactions=of_transactions if log.has_transactions else None,
        only_last=not of_transactions,
    )
    return typed.select(
        *(of("key", name).alias(name) for name in KEY),
        commit.alias("commit"),
        F.col("offset").alias("at"),
        "is_tombstone",
        (F.col("version") < _OF_NEW_COORDINATOR).alias("is_odd"),
        F.col(f"{RECORDS[1]}.key.{KEY[0]}").isNotNull().alias("is_legacy"),
        IS_LATER,
        HIDES,
        *(fact.alias(name) for fact, name in zip(facts, _FACTS, strict=True)),
    )


def _with_outcome(log: InternalLog) -> DataFrame:
    """Return commits in transactions, with their ``outcome`` and the marker's offset ``end``."""
    if log.ends is None:
        raise refuse("log", "a log with the ends of transactions", "none of it")
    commits = _commits(log, of_transactions=True).where("is_transactional")
    ends = log.ends.where(~log.is_later).select(
        F.col("partition").alias("log_partition"),
        F.col("offset").alias("at"),
        "producer_id",
        F.struct(F.col("offset").alias("end"), "is_commit").alias("marker"),
    )
    both = commits.withColumn("log_partition", F.col("commit.log_partition")).unionByName(
        ends, allowMissingColumns=True
    )
    # In descending order, the last marker read so far is the next marker in the log.
    place = Window.partitionBy("log_partition", "producer_id").orderBy(F.col("at").desc())
    before = place.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    following = F.last("marker", ignorenulls=True).over(before)
    unfinished = both.withColumn("following", following).where(F.col("marker").isNull())
    is_commit = F.col("following.is_commit")
    outcome = F.when(is_commit, COMMITTED).when(~is_commit, ABORTED).otherwise(PENDING)
    with_outcome = unfinished.withColumns({"outcome": outcome, "end": F.col("following.end")})
    return with_outcome.drop("marker", "following", "log_partition")


WATERMARK: Final = ("high_watermark", "is_watermark_exact")
"""The columns of a partition's end that state which offsets consumers can read."""


def lag(commits: DataFrame, ends: DataFrame) -> DataFrame:
    """Return the rows of `last_commits` with ``end_offset`` and ``lag``, or null if unknown.

    ``ends`` contains ``topic``, ``partition`` and ``end_offset``, as returned by `end_offsets`. If
    ``ends`` also contains `WATERMARK`, the lag is measured up to the high watermark, as in
    `kafka-consumer-groups`, and the result includes these columns. If a high watermark may be
    outdated, it counts as at least the committed offset, because no consumer reads beyond the real
    high watermark.

    A negative lag means that the topic was created again, or that its log was truncated. The lag is
    also null if the offset is so large that the difference does not fit in 64 bits.
    """
    shown = [column for column in WATERMARK if column in ends.columns]
    end_columns = ends.select("topic", "partition", "end_offset", *shown)
    both = commits.join(end_columns, ["topic", "partition"], "left")
    until = readable_end(F.col("offset")) if shown else F.col("end_offset")
    rows = both.withColumn("lag", F.try_subtract(until, F.col("offset")))
    return rows.select(*commits.columns, "end_offset", "lag", *shown)


def readable_end(read: Column) -> Column:
    """Return where consumers stop, given an end with `WATERMARK` and the last offset ``read``."""
    watermark, is_exact = (F.col(column) for column in WATERMARK)
    readable = F.when(is_exact, watermark).otherwise(F.greatest(watermark, read))
    end = F.col("end_offset")
    # Without a checkpoint file, consumers are assumed to stop at the end.
    return F.when(watermark.isNull(), end).otherwise(F.least(readable, end))


def unused_groups(groups: DataFrame, commits: DataFrame, since: datetime) -> DataFrame:
    """Return the groups without members that have committed nothing since a given time.

    Columns: ``group``, ``type``, ``last_commit_time``, and ``partitions``, which is the number of
    partitions with a commit. ``groups`` and ``commits`` are the results of `groups` and
    `last_commits`. A group is left out if something about it is unknown, or if it has a pending
    commit, because it may be in use.
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
    """Return the topics for which no group has committed anything since a given time.

    ``topics`` has a column ``topic``, and any other columns are kept. ``commits`` is the result
    of `last_commits`. New columns: ``groups`` (the number of groups with any commit) and
    ``last_commit_time``. A consumer that does not commit offsets is not seen; one example is Spark,
    which stores its offsets itself. Neither is a member that has not committed yet. The answer
    ``unused_topics`` also considers members and fetches, and marks topics that some software reads
    without commits.
    """
    is_pending = F.coalesce(F.size("pending") > 0, F.lit(True))
    used = commits.groupBy("topic").agg(
        F.max("commit_time").alias("last_commit_time"),
        F.count_distinct("group").alias("groups"),
        F.bool_and(F.col("is_known") & ~is_pending).alias("is_settled"),
    )
    is_old = F.coalesce(F.col("last_commit_time") < F.lit(since), F.col("is_settled").isNull())
    is_settled = F.coalesce("is_settled", F.lit(True))
    unused = topics.join(used, "topic", "left").where(is_old & is_settled)
    return unused.select(
        *topics.columns, F.coalesce("groups", F.lit(0)).alias("groups"), "last_commit_time"
    )
