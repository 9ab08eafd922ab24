"""Which offsets groups have committed: `last_commits`, and those of transactions one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.arguments import refuse
from flexwire.spark.internal_topics.log import HIDES, IS_LATER
from flexwire.spark.internal_topics.times import moment

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

from flexwire.spark.internal_topics.log import InternalLog

# Kafka reads the second as the first; clients of 0.8 wrote it.
RECORDS: Final = ("OffsetCommit", "LegacyOffsetCommit")
KEY: Final = ("group", "topic", "partition")
VALUE: Final = ("offset", "leader_epoch", "metadata", "commit_timestamp")

_EXPIRES: Final = "expire_timestamp"
_FIELDS: Final = {
    one: [f"key.{name}" for name in KEY] + [f"value.{name}" for name in (*VALUE, *more)]
    for one, more in zip(RECORDS, ((_EXPIRES,), ()), strict=True)
}

COMMITTED, ABORTED, PENDING = "committed", "aborted", "pending"
_FACTS: Final = ("producer_id", "producer_epoch", "is_transactional")


def last_commits(log: InternalLog) -> DataFrame:
    """What each group has committed for each partition: a row for each that it has, or may have.

    ``group``, ``topic``, ``partition``; ``offset``, ``leader_epoch``, ``metadata``,
    ``commit_time``, ``expire_time``; ``log_partition`` and ``log_offset`` of the record;
    ``pending``: commits of transactions that have not ended, null where that is not known;
    ``is_known``: false where compaction removed what was there, if anything was. Deleted and
    expired commits are not there.

    A commit of a transaction counts from its COMMIT marker on. As in Kafka the one that was written
    last is the last, also if its marker came before that of another.
    """
    plain = _commits(log).withColumns({"outcome": F.lit(None).cast("string"), "end": F.col("at")})
    events = plain
    if log.has_transactions:
        events = plain.where(~F.col("is_transactional")).unionByName(_with_outcome(log))
    is_before, is_plain = ~F.col(IS_LATER), F.col("outcome").isNull()
    is_committed, is_pending = (F.col("outcome") == one for one in (COMMITTED, PENDING))
    hides = F.col(HIDES)
    if log.incomplete:
        # It may have ended before the log was compacted, and then taken what it replaced.
        hides |= is_before & is_pending & F.col("commit.log_partition").isin(*log.incomplete)
    record = F.struct("commit", "at", "end", "is_tombstone")
    pending = F.struct(
        F.col("at").alias("log_offset"),
        "commit.offset",
        "commit.metadata",
        "producer_id",
        "producer_epoch",
    )
    found = events.groupBy(*KEY).agg(
        F.max_by(record, F.when(is_before & is_plain, F.col("at"))).alias("plain"),
        F.max_by(record, F.when(is_before & is_committed, F.col("at"))).alias("written"),
        F.max_by(record, F.when(is_before & is_committed, F.col("end"))).alias("ended"),
        F.collect_list(F.when(is_before & is_pending, pending)).alias("pending"),
        F.max("commit.log_partition").alias("log_partition"),
        F.bool_or(hides).alias(HIDES),
    )
    return _decided(found, log)


def _decided(found: DataFrame, log: InternalLog) -> DataFrame:
    """Choose among the last commit of no transaction and those of transactions."""
    deleted_at = F.when(F.col("plain.is_tombstone"), F.col("plain.at"))
    is_deleted = deleted_at.isNotNull()
    # A tombstone takes what was committed when it was written, and no more.
    commit = (
        F.when(is_deleted, F.when(F.col("written.end") > deleted_at, F.col("written.commit")))
        .when(F.col("written.at") > F.col("plain.at"), F.col("written.commit"))
        .otherwise(F.coalesce("plain.commit", "written.commit"))
    )
    # Of transactions that overlap with it one is left then, and it is not known which.
    is_odd = is_deleted & commit.isNull() & (F.col("ended.end") > deleted_at)
    is_gone = F.col(HIDES) & F.col("plain").isNull() & F.col("written").isNull()
    is_known = ~(is_gone | F.coalesce(is_odd, F.lit(False)))
    pending = F.array_sort(F.col("pending")).cast(_PENDING)
    if not log.has_transactions:
        pending = F.lit(None).cast(_PENDING)
    elif log.incomplete:
        pending = F.when(~F.col("log_partition").isin(*log.incomplete), pending)
    made = found.withColumns({"last": commit, "is_known": is_known})
    is_there = F.col("last").isNotNull() | (F.size("pending") > 0) | ~F.col("is_known")
    return made.where(is_there).select(
        *KEY,
        *(f"last.{name}" for name in VALUE[:3]),
        moment("last.commit_timestamp").alias("commit_time"),
        moment("last.expire_timestamp").alias("expire_time"),
        "log_partition",
        "last.log_offset",
        pending.alias("pending"),
        "is_known",
    )


_PENDING: Final = (
    "array<struct<log_offset: bigint, offset: bigint, metadata: string, producer_id: bigint, "
    "producer_epoch: smallint>>"
)


def transactional_commits(log: InternalLog) -> DataFrame:
    """The offsets that transactions committed, or tried to: a row for each record that there is.

    ``outcome`` is "committed", "aborted", or "pending" where there is no marker yet. Compaction
    removes what was aborted, and what was committed anew.
    """
    found = _with_outcome(log).where(~F.col(IS_LATER))
    return found.select(
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
    """All commits, or those of transactions: their key, what was committed, and where."""

    def of(side: str, name: str) -> Column:
        return F.coalesce(*(F.col(f"{record}.{side}.{name}") for record in RECORDS))

    commit = F.struct(
        *(of("value", name).alias(name) for name in VALUE),
        F.col(f"{RECORDS[0]}.value.{_EXPIRES}").alias(_EXPIRES),
        F.col("partition").alias("log_partition"),
        F.col("offset").alias("log_offset"),
    )
    # A tombstone counts at once, whatever it is written in.
    of_transaction = F.col("is_transactional") & ~F.col("is_tombstone")
    facts = [F.col("producer_id"), F.col("producer_epoch"), of_transaction]
    if not log.has_transactions:
        facts = [F.lit(None).cast("bigint"), F.lit(None).cast("smallint"), F.lit(False)]
    columns = ("is_tombstone", *_FACTS)
    return log.typed(_FIELDS, columns, of_transactions=of_transactions).select(
        *(of("key", name).alias(name) for name in KEY),
        commit.alias("commit"),
        F.col("offset").alias("at"),
        "is_tombstone",
        IS_LATER,
        HIDES,
        *(one.alias(name) for one, name in zip(facts, _FACTS, strict=True)),
    )


def _with_outcome(log: InternalLog) -> DataFrame:
    """The commits of transactions, with ``outcome`` and the offset ``end`` of the marker."""
    if log.ends is None:
        raise refuse("log", "one that says how transactions ended", "none of it")
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
    # From the end back, so that the last marker seen is the next one.
    place = Window.partitionBy("log_partition", "producer_id").orderBy(F.col("at").desc())
    before = place.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    following = F.last("marker", ignorenulls=True).over(before)
    found = both.withColumn("following", following).where(F.col("marker").isNull())
    is_commit = F.col("following.is_commit")
    outcome = F.when(is_commit, COMMITTED).when(~is_commit, ABORTED).otherwise(PENDING)
    made = found.withColumns({"outcome": outcome, "end": F.col("following.end")})
    return made.drop("marker", "following", "log_partition")
