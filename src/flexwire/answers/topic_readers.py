"""The clients that read each topic, based on fetches and commits in captures and request logs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.answer import Answer, DaySums, address, returns
from flexwire.answers.asking.day_sums import DAY, all_of, day_of_time, filled
from flexwire.answers.asking.messages import known_id, with_topic_names
from flexwire.columnar.record_columns import MOMENT
from flexwire.facts.answers import AnswerPicture
from flexwire.tables.output import MESSAGES
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.answer import AnalysisTables


class _TopicPlace(NamedTuple):
    """A place in a message that contains topic names.

    The place consists of an array in the body, and the field of the array that contains the topic.
    """

    message: str
    topics: str
    name: str | None
    counted: str
    group: str | None = None


_COUNTED: Final = ("requests", "responses", "commits")
# In a fetch session, a request lists only changes, and a response lists only partitions for which
# there is something new (KIP-227).
_PLACES: Final = (
    _TopicPlace("FetchRequest", "topics", "topic", "requests"),
    _TopicPlace("FetchResponse", "responses", "topic", "responses"),
    _TopicPlace("ShareFetchRequest", "topics", None, "requests", "group_id"),
    _TopicPlace("ShareFetchResponse", "responses", None, "responses"),
    _TopicPlace("OffsetCommitRequest", "topics", "name", "commits", "group_id"),
    _TopicPlace("TxnOffsetCommitRequest", "topics", "name", "commits", "group_id"),
)
_FOLLOWERS: Final = "FetchRequest"
_CLIENT: Final = ("client_id", "address")
_SUMS: Final = pa.schema(
    [
        pa.field(DAY, pa.date32()),
        pa.field("is_follower", pa.bool_()),
        *(pa.field(name, pa.string()) for name in (*_CLIENT, "group", "topic", "topic_id")),
        *(pa.field(name, pa.int64()) for name in _COUNTED),
        *(pa.field(name, MOMENT) for name in ("first_time", "last_time")),
    ]
)

COLUMNS: Final = (
    Column("topic", pa.string(), "the topic", "if only the id of the topic is known",
           heading="Topic", is_about=True),
    Column(
        "topic_id", pa.string(), "the id of the topic, if its name is unknown",
        "if the name of the topic is known",
    ),
    Column("client_id", pa.string(), "the client id", "if the client sent no client id",
           heading="Client id", is_about=True),
    Column("address", pa.string(), "the client's host", heading="Host"),
    Column(
        "is_follower", pa.bool_(),
           "whether the client is a broker that fetches as a follower; a follower fetches every "
           "topic for which it holds a replica",
    heading="Follower",
),
    Column("groups", pa.list_(pa.string()),
           "the groups for which the client fetched records or committed offsets",
           heading="Groups"),
    Column("requests", pa.int64(), "the number of the client's fetches that include the topic",
           heading="Fetches"),
    Column("responses", pa.int64(), "the number of fetch responses that contain a partition of "
           "the topic",
           heading="Responses"),
    Column("commits", pa.int64(),
           "the number of the client's requests that commit an offset for the topic",
           heading="Commits"),
    Column("first_time", MOMENT,
           "when the first of these requests or responses was captured or logged"),
    Column("last_time", MOMENT,
           "when the last of these requests or responses was captured or logged", heading="Last"),
)  # fmt: skip


@returns(COLUMNS)
def topic_readers(tables: AnalysisTables) -> DataFrame | None:
    """Return each topic with every client that fetches it or commits an offset for it.

    A topic without a row may still have readers: clients that were not captured, clients that read
    at another time, or clients whose fetch session began before the capture and received no new
    records.
    """
    parts = _part(tables)
    return None if parts is None else _total(parts, tables)


def _part(tables: AnalysisTables) -> DataFrame | None:
    """Return counts by day, client, group and topic, and the clients that are followers."""
    readers = [
        named_topics for place in _PLACES if (named_topics := _topics_of(tables, place)) is not None
    ]
    if not readers:
        return None
    each = all_of(readers).groupBy(DAY, *_CLIENT, "group", "topic", "topic_id")
    counted = each.agg(
        *(F.count_if(F.col("counted") == column).alias(column) for column in _COUNTED),
        F.min("time").alias("first_time"),
        F.max("time").alias("last_time"),
    ).withColumn("is_follower", F.lit(False))
    followers = _followers(tables)
    parts = [counted] if followers is None else [counted, followers]
    return filled(parts)


def _total(parts: DataFrame, tables: AnalysisTables) -> DataFrame:
    """Return the answer's rows, computed from the sums of all days."""
    every = with_topic_names(parts.where("not is_follower"), tables)
    each = every.groupBy("topic", "topic_id", *_CLIENT).agg(
        F.array_sort(F.collect_set("group")).alias("groups"),
        *(F.sum(column).alias(column) for column in _COUNTED),
        F.min("first_time").alias("first_time"),
        F.max("last_time").alias("last_time"),
    )
    # These columns need new names, because Spark confuses columns of the same table in a join.
    followers = parts.where("is_follower").select(
        F.col("client_id").alias("its_id"), F.col("address").alias("its_host"), "is_follower"
    )
    same = F.col("client_id").eqNullSafe(F.col("its_id")) & (F.col("address") == F.col("its_host"))
    both = each.join(F.broadcast(followers.distinct()), same, "left")
    return both.withColumn("is_follower", F.coalesce("is_follower", F.lit(False))).select(
        *(column.name for column in COLUMNS)
    )


def _topics_of(tables: AnalysisTables, place: _TopicPlace) -> DataFrame | None:
    """Return the topics in the table of a message, one per row, or None if there is no table."""
    table = tables.message(place.message)
    if table is None:
        return None
    at = f"body.{place.topics}"
    names = place.name or "topic_id"
    # With this expression, Spark reads only these columns of the topics, and not their partitions.
    pairs = F.arrays_zip(
        F.col(f"{at}.{names}").alias("named"), F.col(f"{at}.topic_id").alias("topic_id")
    )
    group = F.lit(None).cast("string") if place.group is None else F.col(f"body.{place.group}")
    rows = table.select(
        day_of_time().alias(DAY),
        *_who(),
        "time",
        group.alias("group"),
        F.explode(pairs).alias("one"),
    )
    name = F.col("one.named") if place.name else F.lit(None).cast("string")
    return rows.select(
        DAY,
        *_CLIENT,
        "time",
        "group",
        F.nullif(name, F.lit("")).alias("topic"),
        known_id(F.col("one.topic_id")).alias("topic_id"),
        F.lit(place.counted).alias("counted"),
    ).where("topic is not null or topic_id is not null")


def _followers(tables: AnalysisTables) -> DataFrame | None:
    """Return the clients whose fetches contain a replica id; consumers' fetches never do."""
    table = tables.message(_FOLLOWERS)
    if table is None:
        return None
    replica = F.greatest("body.replica_id", "body.replica_state.replica_id")
    followers = table.where(replica >= 0).select(day_of_time().alias(DAY), *_who()).distinct()
    return followers.withColumn("is_follower", F.lit(True))


def _who() -> tuple[SparkColumn, ...]:
    return (F.col("client_id"), address(F.substring_index("connection", ">", 1)))


ANSWER: Final = Answer(
    name="topic_readers",
    place=130,
    question="Which clients read each topic?",
    meaning="Each client that fetches a topic or commits an offset for it, with the client's "
    "groups. Brokers that follow leaders come last, because they also fetch topics that nobody "
    "else reads.",
    advice="Before you delete a topic, capture or log fetches for at least as long as any reader "
    "may pause, such as a month for a monthly job. A topic without a row may still have "
    "readers.",
    row="a combination of a topic and a client",
    columns=COLUMNS,
    order=("is_follower", "topic", "topic_id", "-requests", "-commits", "client_id", "address"),
    ask=topic_readers,
    picture=AnswerPicture("Fetches, by topic and client", "requests"),
    sums=DaySums(
        version=1,
        tables=lambda: [f"{MESSAGES}/{place.message}" for place in _PLACES],
        columns=_SUMS,
        part=_part,
        total=_total,
    ),
)
