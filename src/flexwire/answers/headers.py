"""Record headers: which keys records contain, how large the values are, and how to read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.answer import Answer, DaySums
from flexwire.answers.asking.day_sums import DAY, day_task
from flexwire.answers.asking.messages import is_grown, with_topic_names
from flexwire.answers.asking.told_names import with_learned_names
from flexwire.facts.answers import AnswerPicture
from flexwire.measures.headers import ADDED, MARKERS, READ, SUMS, add_up
from flexwire.records.conventions import CONVENTIONS
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.answer import AnalysisTables
    from flexwire.records.conventions.convention import BulkCondition

_OF: Final = ("topic", "source", "client_id")
# The conventions in the order in which they are tried. The first one that fits all judged values is
# reported.
_JUDGED: Final = {
    name: condition for name, convention in CONVENTIONS.items() if (condition := convention.in_bulk)
}
_READS_AS: Final = "the convention that all of these values follow: " + "; ".join(
    f'"{name}" ({judgement.meaning})' for name, judgement in _JUDGED.items()
)
_SUMS: Final = pa.schema(
    [
        pa.field(DAY, pa.date32()),
        *(pa.field(name, pa.string()) for name in _OF),
        pa.field("header", pa.binary()),
        *(pa.field(name, pa.int64()) for name in (*SUMS, "least", "most", "judged", *_JUDGED)),
    ]
)

COLUMNS: tuple[Column, ...] = (
    Column("topic", pa.string(), "the topic's name, or its id if the name is unknown",
           "if neither the name nor the id is known", heading="Topic", is_about=True),
    Column("source", pa.string(), 'the message that carried the records: "produce", "fetch" or '
           '"share_fetch"', heading="Carried by"),
    Column("client_id", pa.string(), "the client that produced or fetched the records",
           "if the client id is unknown", heading="Client id", is_about=True),
    Column("key", pa.string(), "the record header's key, with \"�\" for bytes that are not UTF-8",
           heading="Key", is_about=True),
    Column("records", pa.int64(), "the number of records with this header", heading="Records"),
    Column("record_share", pa.float64(),
           "these records as a share of all records of this client and topic",
           heading="Share of records"),
    Column("headers", pa.int64(),
           "the number of these headers; a record may contain the same key twice"),
    Column("null_values", pa.int64(), "the number of values that are null"),
    Column("least_bytes", pa.int64(), "the size of the smallest value, in bytes",
           "if all values are null"),
    Column("mean_bytes", pa.float64(), "the mean size of the values, in bytes",
           "if all values are null",
           heading="Value"),
    Column("most_bytes", pa.int64(), "the size of the largest value, in bytes",
           "if all values are null"),
    Column("total_bytes", pa.int64(),
           "the total size of all keys and values of these headers, in bytes, without lengths",
           heading="Total bytes"),
    Column("payload_share", pa.float64(),
           "this size as a share of the payload of this client and topic: the keys, values and "
           "headers of the records", "if the payload is empty",
           heading="Share of payload"),
    Column("judged", pa.int64(),
           "the number of values that were checked for the convention in the next column"),
    Column("reads_as", pa.string(), _READS_AS, "if no convention fits, or if several fit",
           heading="Reads as"),
)  # fmt: skip


def headers(tables: AnalysisTables) -> DataFrame:
    """Return every record header key by topic and client, with counts, sizes and value types.

    A record that was both produced and fetched is counted for the client that produced it and for
    the client that fetched it. Sizes are in bytes and exclude the varints that precede keys and
    values. The counts include all headers. Spark's built-in functions check the types of values in
    the first record of each batch, and in one of every 64 other records. The bytes of a value may
    match a convention by chance. The values of Kafka Connect's headers are text and are reported as
    "utf-8". Control records and records that could not be read are not counted.
    """
    return _total(_part(tables), tables)


def _part(tables: AnalysisTables) -> DataFrame:
    """Return sums by day, topic, client and record header."""
    added = tables.of_records(*day_task(add_up, READ, ADDED))
    sized = added.withColumn("size", F.octet_length("value"))
    return sized.groupBy(DAY, *_OF, "header").agg(*_sums())


def _total(parts: DataFrame, tables: AnalysisTables) -> DataFrame:
    """Return the answer's rows, computed from the sums of all days."""
    if is_grown(tables):
        unnamed = parts.withColumns({"topic_id": F.col("topic"), "topic": F.lit(None)})
        named = with_topic_names(with_learned_names(unnamed, tables), tables)
        parts = named.withColumn("topic", F.coalesce("topic", "topic_id")).drop("topic_id")
    rows = parts.groupBy(*_OF, "header").agg(
        *(F.sum(name).alias(name) for name in (*SUMS, "judged", *_JUDGED)),
        F.min("least").alias("least"),
        F.max("most").alias("most"),
    )
    key_bytes = F.octet_length("header").cast("bigint") * F.col("headers")
    rows = rows.withColumns(
        {
            "null_values": F.col("headers") - F.col("values"),
            "least_bytes": F.col("least").cast("bigint"),
            "mean_bytes": F.try_divide("value_bytes", "values"),
            "most_bytes": F.col("most").cast("bigint"),
            "total_bytes": key_bytes + F.coalesce("value_bytes", F.lit(0)),
        }
    )
    whole = Window.partitionBy(*_OF)
    payload = F.sum(F.coalesce("record_bytes", F.lit(0)) + F.coalesce("total_bytes", F.lit(0)))
    rows = rows.withColumns(
        {
            "record_share": F.col("records") / F.sum("all_records").over(whole),
            "payload": payload.over(whole),
        }
    ).where("header is not null")
    rows = rows.withColumns(
        {
            # If a batch contains zero bytes, the share is unknown.
            "payload_share": F.try_divide("total_bytes", "payload"),
            "key": F.make_valid_utf8(F.col("header").cast("string")),
            "reads_as": _reads_as(),
        }
    )
    return rows.select(*(column.name for column in COLUMNS))


def _sums() -> list[SparkColumn]:
    """Return the totals of the sums, and how many of the judged values match each convention."""
    return [
        *(F.sum(name).alias(name) for name in SUMS),
        F.min("least").alias("least"),
        F.max("most").alias("most"),
        F.coalesce(F.sum("judged"), F.lit(0)).alias("judged"),
        *(
            F.sum(F.when(_is_read_by(name, judge), F.col("judged"))).alias(name)
            for name, judge in _JUDGED.items()
        ),
    ]


def _is_read_by(name: str, judge: BulkCondition) -> SparkColumn:
    """Return whether a convention can read a value, with its marker if it requires one."""
    condition, marker = F.expr(judge.condition), CONVENTIONS[name].marker
    if marker is None:
        return condition
    return condition & (F.col("markers").bitwiseAND(1 << MARKERS.index(marker)) != 0)


def _reads_as() -> SparkColumn:
    verdict = F.when(F.col("judged") == 0, F.lit(None).cast("string"))
    for name in _JUDGED:
        verdict = verdict.when(F.col(name) == F.col("judged"), name)
    return verdict


ANSWER = Answer(
    name="headers",
    place=60,
    question="Which record headers are sent, and what do they cost?",
    meaning="Each record header key by topic and client: how many records contain this key, how "
    "large its values are, and what share of the payload these headers make up.",
    advice="If headers are a large part of the payload, shorten keys or write numbers in binary. "
    "If the share of records that have a header is just below 1, look for a producer that omits "
    "the header.",
    row="a combination of a topic, a client and a record header key",
    columns=COLUMNS,
    order=("-total_bytes", "topic", "source", "client_id", "key"),
    ask=headers,
    elsewhere="'flexwire records dump --deep' shows record headers, and the Spark data source "
    "kafka-log reads record headers",
    picture=AnswerPicture("Size of record headers", "total_bytes"),
    sums=DaySums(version=1, tables=lambda: ["records"], columns=_SUMS, part=_part, total=_total),
)
