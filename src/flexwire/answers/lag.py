"""Lag at commit: how far the offsets that groups commit lag behind the ends of partitions."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs
from pyspark.sql.window import Window

from flexwire.answers.asking.answer import Answer, address, returns
from flexwire.answers.asking.messages import known_id, with_topic_names
from flexwire.columnar.record_columns import MOMENT
from flexwire.facts.answers import AnswerPicture
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn

    from flexwire.answers.asking.answer import AnalysisTables

# The requests that commit offsets, and the responses that contain the end of a partition.
COMMITS: Final = "OffsetCommitRequest"
ENDS: Final = "FetchResponse"
# A commit in a transaction takes effect when the transaction ends (KIP-98).
IN_TRANSACTIONS: Final = "TxnOffsetCommitRequest"
OUTCOMES: Final = "EndTxnRequest"
FETCHES: Final = "FetchRequest"
_READ_COMMITTED: Final = 1
_TOPIC_IDS: Final = {
    COMMITS: [("body", "topics", "topic_id")],
    IN_TRANSACTIONS: [("body", "topics", "topic_id")],
    ENDS: [("body", "responses", "topic_id")],
}
_NO_END: Final = "if no such fetch was captured"

COLUMNS: Final = (
    Column("group_id", pa.string(), "the group", heading="Group", is_about=True),
    Column("client_id", pa.string(), "the id of the client that commits offsets",
           "if the client sent no client id",
           heading="Client id"),
    Column("address", pa.string(), "the client's host"),
    Column("topic", pa.string(), "the topic", "if only the id of the topic is known",
           heading="Topic", is_about=True),
    Column(
        "topic_id", pa.string(), "the id of the topic, if its name is unknown",
        "if the name of the topic is known",
    ),
    Column("partition", pa.int32(), "the partition", heading="Partition", is_about=True),
    Column("commits", pa.int64(),
           "the number of times that the client committed an offset for the partition; a commit "
           "in a transaction counts only if the transaction was seen to commit", heading="Commits"),
    Column("last_time", MOMENT, "when the client last committed an offset for the partition",
           "if ``committed_offset`` is null"),
    Column("committed_offset", pa.int64(), "the offset of the client's last commit",
           "if the client has only commits in transactions that were not seen to commit",
           heading="Committed"),
    Column(
        "high_watermark", pa.int64(),
           "the end offset of the partition, as returned by the client's last fetch before that "
           "commit; for a commit in a transaction, as returned by the last fetch of any client on "
           "the producer's host",
        _NO_END,
    heading="High watermark",
),
    Column(
        "lag", pa.int64(), "how many offsets the last commit was behind the end of the "
                           "partition",
           "if ``high_watermark`` is null"
    , heading="Lag"),
    Column(
        "max_lag", pa.int64(), (
            "the largest distance from one of the client's commits to the end of the partition"
        ),
        "if no such fetch was captured before any of these commits",
    heading="Largest lag",
),
    Column("is_transactional", pa.bool_(),
           "whether these commits are part of transactions; a producer sends such commits on "
           "behalf of the group"),
    Column("pending", pa.int64(),
           "the number of commits in transactions whose end was not captured; it is unknown "
           "whether these commits count", heading="Pending commits"),
    Column("pending_offset", pa.int64(), "the highest offset in these commits",
           "if there are no such commits"),
    Column("aborted", pa.int64(), "the number of commits in aborted transactions; "
           "such commits have no effect"),
    Column("last_stable_offset", pa.int64(),
           "the last stable offset, from the same response as the end offset of the partition; a "
           "read_committed client does not receive records beyond this offset",
           f"{_NO_END}, or if this fetch also requested uncommitted records"),
    Column("stable_lag", pa.int64(),
           "how many offsets the last commit was behind the last stable offset",
           "if ``last_stable_offset`` is null", heading="Lag to stable offset"),
    Column("reads_committed", pa.bool_(),
           "whether the client's last fetch requested only committed records; for commits in "
           "transactions, whether the last fetch of any client on the producer's host did",
           _NO_END, heading="Reads committed"),
)  # fmt: skip

_PLACE: Final = ("address", "topic", "topic_id", "partition")
_AT: Final = ("client_id", *_PLACE)
# The client whose fetch shows the end of the partition, or null if any client on the host counts.
_READER: Final = "reader"
_KNOWN: Final = ("high_watermark", "last_stable_offset")
_WHEN: Final = ("group_id", "committed_offset", "transactional_id", "is_transactional")


@returns(COLUMNS)
def lag(tables: AnalysisTables) -> DataFrame | None:
    """Return how far commits lag behind the ends of partitions, by group, client and partition.

    The end is the high watermark in the last Fetch response for the partition that was received
    before the commit by the same client (the same client id at the same host). Clients that read
    only committed records receive records up to the last stable offset, so their lag is
    ``stable_lag``. A commit in a transaction is sent by a producer, which fetches nothing, so the
    fetches of any client on the producer's host are used instead. A commit in a transaction counts
    if a later EndTxn request of the same transactional id commits the transaction.

    The capture does not show whether the broker accepted a commit or an EndTxn. If a client's
    fetches were not captured, as with an administrator's tool, the client's lag is also unknown.
    """
    reports = [
        fetched_and_committed
        for fetched_and_committed in (
            _commits(tables, COMMITS),
            _commits(tables, IN_TRANSACTIONS),
            *_ends(tables),
        )
        if fetched_and_committed is not None
    ]
    if tables.message(COMMITS) is None and tables.message(IN_TRANSACTIONS) is None:
        return None
    named = with_topic_names(reduce(DataFrame.unionByName, reports), tables, _TOPIC_IDS)
    # If a fetch and a commit have the same time, the fetch is considered earlier.
    order = ("time", F.col("committed_offset").isNotNull())
    before = Window.partitionBy(_READER, "is_transactional", *_PLACE).orderBy(*order)
    before = before.rowsBetween(Window.unboundedPreceding, -1)
    end = F.struct(*_KNOWN)
    seen = F.last(F.when(F.col("high_watermark").isNotNull(), end), ignorenulls=True).over(before)
    each = named.withColumn("seen", seen).where("committed_offset is not null")
    each = _with_outcome(each, tables)
    for name in _KNOWN:
        each = each.withColumn(name, F.col(f"seen.{name}"))
    each = each.withColumns({"lag": _short("high_watermark"), "stable_lag": _short(_KNOWN[1])})
    counts = F.col("outcome") == _COUNTS
    last = F.struct("time", "committed_offset", *_KNOWN, "lag", "stable_lag")
    is_pending = F.col("outcome") == _PENDING
    rows = each.groupBy("group_id", *_AT, "is_transactional").agg(
        F.count_if(counts).alias("commits"),
        F.max_by(last, F.when(counts, F.col("time"))).alias("last"),
        F.max(F.when(counts, F.col("lag"))).alias("max_lag"),
        F.count_if(is_pending).alias("pending"),
        F.max(F.when(is_pending, F.col("committed_offset"))).alias("pending_offset"),
        F.count_if(F.col("outcome") == _ABORTED).alias("aborted"),
    )
    rows = rows.select("*", "last.*").drop("last").withColumnRenamed("time", "last_time")
    return _with_isolation(rows, tables)


_COUNTS, _PENDING, _ABORTED = "counts", "pending", "aborted"


def _short(end: str) -> SparkColumn:
    """Return how far a commit lags behind an end, or 0 for a commit beyond the end."""
    short = F.try_subtract(end, "committed_offset")
    return F.when(short < 0, 0).otherwise(short)


def _with_outcome(commits: DataFrame, tables: AnalysisTables) -> DataFrame:
    """Add the outcome to each commit.

    The outcome of a commit in a transaction comes from a later EndTxn.
    """
    plain = commits.where("not is_transactional").withColumn("outcome", F.lit(_COUNTS))
    if tables.message(IN_TRANSACTIONS) is None:
        return plain
    of_transactions = commits.where("is_transactional")
    ends = tables.message(OUTCOMES)
    if ends is None:
        return plain.unionByName(of_transactions.withColumn("outcome", F.lit(_PENDING)))
    markers = ends.select(
        "time",
        F.col("body.transactional_id").alias("transactional_id"),
        F.when(F.col("body.committed"), _COUNTS).otherwise(_ABORTED).alias("ended"),
    )
    both = of_transactions.unionByName(markers, allowMissingColumns=True)
    # If a commit and the end of a transaction have the same time, the commit is considered earlier.
    order = ("time", F.col("ended").isNotNull())
    after = Window.partitionBy("transactional_id").orderBy(*order)
    after = after.rowsBetween(Window.currentRow, Window.unboundedFollowing)
    following = F.first("ended", ignorenulls=True).over(after)
    pending = both.withColumn("following", following).where(F.col("ended").isNull())
    outcome = F.coalesce("following", F.lit(_PENDING))
    return plain.unionByName(pending.withColumn("outcome", outcome).drop("ended", "following"))


def _with_isolation(rows: DataFrame, tables: AnalysisTables) -> DataFrame:
    """Add to each row whether the client, or a client on its host, reads only committed records."""
    fetches = tables.message(FETCHES)
    if fetches is None:
        return rows.withColumn("reads_committed", F.lit(None).cast("boolean"))
    level = F.max_by("body.isolation_level", "time") == _READ_COMMITTED
    requested = fetches.select("time", "body", *_who()[:2])
    # These columns need new names, because Spark confuses columns of the same table in a join.
    by_client = requested.groupBy(
        F.col("client_id").alias("its_id"), F.col("address").alias("its_host")
    ).agg(level.alias("of_client"))
    by_host = requested.groupBy(F.col("address").alias("at")).agg(level.alias("of_host"))
    same = F.col("client_id").eqNullSafe(F.col("its_id")) & (F.col("address") == F.col("its_host"))
    both = rows.join(F.broadcast(by_client), same, "left")
    both = both.join(F.broadcast(by_host), F.col("address") == F.col("at"), "left")
    isolation = F.when(F.col("is_transactional"), F.col("of_host")).otherwise(F.col("of_client"))
    return both.withColumn("reads_committed", isolation)


def _commits(tables: AnalysisTables, message: str) -> DataFrame | None:
    table = tables.message(message)
    if table is None:
        return None
    is_transactional = message == IN_TRANSACTIONS
    of = F.col("body.transactional_id") if is_transactional else F.lit(None).cast("string")
    topics = table.select(
        *_who(), F.col("body.group_id"), of.alias("transactional_id"), F.inline("body.topics")
    )
    partitions = topics.select(
        "client_id", "address", "time", "group_id", "transactional_id",
        F.col("name").alias("topic"),
        known_id(F.col("topic_id")).alias("topic_id"), F.inline("partitions"),
    )  # fmt: skip
    nobody = F.lit(None).cast("string")
    return partitions.select(
        "client_id", "address", "time", "topic", "topic_id",
        F.col("partition_index").alias("partition"),
        *(F.col(name) for name in _WHEN[:3]),
        F.lit(is_transactional).alias("is_transactional"),
        (nobody if is_transactional else F.col("client_id")).alias(_READER),
        *(F.lit(None).cast("bigint").alias(name) for name in _KNOWN),
    )  # fmt: skip


def _ends(tables: AnalysisTables) -> list[DataFrame]:
    """Return the ends in fetch responses, for commits outside and inside transactions."""
    table = tables.message(ENDS)
    if table is None:
        return []
    topics = table.select(*_who(), F.inline("body.responses"))
    partitions = topics.select(
        "client_id", "address", "time", "topic", known_id(F.col("topic_id")).alias("topic_id"),
        F.inline("partitions"),
    )  # fmt: skip
    stable = F.col("last_stable_offset")
    # The high watermark is -1 if the fetch failed, and the last stable offset is -1 if the fetch
    # reads uncommitted records.
    ends = partitions.where("high_watermark >= 0").select(
        "client_id", "address", "time", "topic", "topic_id",
        F.col("partition_index").alias("partition"),
        F.lit(None).cast("string").alias("group_id"),
        F.lit(None).cast("bigint").alias("committed_offset"),
        F.lit(None).cast("string").alias("transactional_id"),
        F.lit(False).alias("is_transactional"),
        F.col("client_id").alias(_READER),
        "high_watermark",
        F.when(stable >= 0, stable).alias("last_stable_offset"),
    )  # fmt: skip
    if tables.message(IN_TRANSACTIONS) is None:
        return [ends]
    nobody = F.lit(None).cast("string")
    of_hosts = ends.withColumns({"is_transactional": F.lit(True), _READER: nobody})
    return [ends, of_hosts]


def _who() -> tuple[SparkColumn, ...]:
    return (F.col("client_id"), address(F.substring_index("connection", ">", 1)), F.col("time"))


ANSWER: Final = Answer(
    name="lag",
    place=120,
    question="How far do committed offsets lag behind the ends of partitions?",
    meaning="The offset of each client's last commit, and the high watermark in the response to "
    "the client's last fetch before this commit. A commit in a transaction counts only if the "
    "transaction is committed.",
    advice="If the lag grows from capture to capture, add members to the group, or speed up record "
    "processing. If only one partition lags, check whether some keys in this partition occur much "
    "more often than others.",
    row="a combination of a group, a client and a partition",
    columns=COLUMNS,
    order=(
        "-lag",
        "-max_lag",
        "group_id",
        "topic",
        "topic_id",
        "partition",
        "client_id",
        "address",
        "is_transactional",
    ),
    shown=(
        "group_id",
        "client_id",
        "topic",
        "partition",
        "commits",
        "committed_offset",
        "high_watermark",
        "lag",
        "max_lag",
        "stable_lag",
        "reads_committed",
        "pending",
    ),
    ask=lag,
    of_state="group_offsets",
    picture=AnswerPicture("Lag at the last commit", "lag"),
)
