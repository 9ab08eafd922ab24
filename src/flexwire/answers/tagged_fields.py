"""The tagged fields in the traffic: which ones, who sends them, and how many bytes they take."""

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.answer import Answer
from flexwire.capture.pairing.state import WITHHELD_BYTES
from flexwire.facts.answers import AnswerPicture
from flexwire.measures.conditions import OF_KAFKA, READ
from flexwire.schema.catalog import catalog
from flexwire.tables.keys import connection_key
from flexwire.tables.message_schema import table_schema
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from flexwire.answers.asking.answer import AnalysisTables

_SOFTWARE: Final = ("client_software_name", "client_software_version")
_FIELD: Final = ("path", "tag", "name")
_BODIES: Final = "tagged_fields"
_READ: Final = ("direction", "client_id", "size", "body_version", _BODIES)

COLUMNS: tuple[Column, ...] = (
    Column("message", pa.string(), 'the message: "FetchRequest"', heading="Message", is_about=True),
    Column("is_header", pa.bool_(), "whether the field is in the header of the message",
           heading="In the header"),
    Column("path", pa.string(),
           'the structure with the field: "topics[]"; "" for the message or header itself',
           heading="In"),
    Column("tag", pa.int64(), "the tag", heading="Tag", kind="id", is_about=True),
    Column("name", pa.string(), "the field's name", "if the catalog does not know the tag",
           heading="Field", is_about=True),
    Column("is_known", pa.bool_(), "whether the catalog knows the tag at this place"),
    Column("sender", pa.string(), '"client" or "broker": who sends the message'),
    Column("client_software_name", pa.string(), "the software of the client on the connection",
           "if the software is unknown", heading="Client software"),
    Column("client_software_version", pa.string(), "its version", "if the software is unknown",
           heading="Version"),
    Column("clients", pa.int64(),
           "the number of client ids of this software that were seen with the field"),
    Column("messages", pa.int64(), "the number of messages with the field", heading="Messages"),
    Column("message_share", pa.float64(),
           "the share of these messages in all messages of this kind and software",
           heading="Of these"),
    Column("times", pa.int64(), "how often the field occurs: once for each structure"),
    Column("bytes", pa.int64(), "its values' bytes",
           "if the field is known and decoded, or if its value is withheld",
           heading="Bytes"),
    Column("byte_share", pa.float64(),
           "the share of these bytes in all bytes of the messages with the field",
           "if ``bytes`` is null", heading="Of the messages"),
    Column("message_bytes", pa.int64(), "all bytes of the messages with the field"),
    Column("versions", pa.list_(pa.int32()), "the versions of these messages, ascending"),
)  # fmt: skip


def tagged_fields(tables: AnalysisTables) -> DataFrame:
    """Return each tagged field with its place and the software of the client.

    A known field counts as sent if its value is not the default, because Kafka does not send
    defaults. ``bytes`` are the bytes of values, without tag and size. Tags that the catalog does
    not know come from newer releases or other software, or are wrong. If a client sends its
    software name on a connection, all of its messages on this connection count for this software.
    Bodies that do not decode are missing, but fields in their headers count.
    """
    frames = tables.frames.where(OF_KAFKA.sql)
    key = connection_key(frames.columns)
    uses_by_place = [_in_headers(frames)]
    with_uses = tables.of_messages((*key, *_READ), _with_uses, _uses_schema(key))
    if with_uses is not None:
        uses_by_place.append(_in_bodies(with_uses))
    software_names = software(tables.frames)
    uses = reduce(DataFrame.unionByName, uses_by_place).join(software_names, [*key], "left")
    rows = uses.groupBy("message", "is_header", "sender", *_FIELD, *_SOFTWARE).agg(
        F.count_distinct(F.coalesce("client_id", F.lit(""))).alias("clients"),
        F.count("*").alias("messages"),
        F.sum("times").alias("times"),
        F.sum("bytes").alias("bytes"),
        F.sum("size").alias("message_bytes"),
        F.sort_array(F.collect_set("version")).alias("versions"),
    )
    # If nobody named the software, the value is null on both sides.
    same = [F.col(column).eqNullSafe(F.col(f"all_{column}")) for column in ("message", *_SOFTWARE)]
    rows = rows.join(
        F.broadcast(_messages_read(frames, software_names)), reduce(and_, same), "left"
    )
    every = F.when(F.col("is_header"), F.col("all_headers")).otherwise(F.col("all_bodies"))
    rows = rows.withColumns(
        {
            "is_known": F.col("name").isNotNull(),
            "message_share": F.col("messages") / every,
            "byte_share": F.col("bytes") / F.col("message_bytes"),
        }
    )
    return rows.select(*(column.name for column in COLUMNS))


def _with_uses(message: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the messages with tagged fields in their bodies. There are few of them."""
    for batch in batches:
        some = batch.filter(pc.greater(pc.list_value_length(batch[_BODIES]), 0))
        if some.num_rows:
            yield some.append_column("message", pa.repeat(message, some.num_rows))


def _uses_schema(key: tuple[str, ...]) -> pa.Schema:
    # All tables of messages have these columns.
    table = table_schema(next(iter(catalog().names())))
    names = [(name, pa.string()) for name in key]
    return pa.schema([*names, *map(table.field, _READ), ("message", pa.string())])


def _in_bodies(table: DataFrame) -> DataFrame:
    """Return the uses of tagged fields in bodies, with one row for each message and field."""
    return _uses(table, _BODIES, "body_version", is_header=False)


def _in_headers(frames: DataFrame) -> DataFrame:
    """Return the uses in headers, whose tags have no meaning in any release."""
    each = _uses(frames, "header_unknown_tagged_fields", "api_version", is_header=True)
    shown = F.when(F.col("data") != F.lit(WITHHELD_BYTES), F.octet_length("data"))
    return each.select(
        *(column for column in each.columns if column not in {"tag", "data"}),
        F.lit("").alias("path"),
        "tag",
        F.lit(None).cast("string").alias("name"),
        F.lit(1).cast("bigint").alias("times"),
        shown.cast("bigint").alias("bytes"),
    )


def _uses(rows: DataFrame, uses: str, version: str, *, is_header: bool) -> DataFrame:
    is_request = F.col("direction") == "request"
    return rows.where(F.size(uses) > 0).select(
        "message",
        F.lit(is_header).alias("is_header"),
        F.when(is_request, "client").otherwise("broker").alias("sender"),
        *connection_key(rows.columns),
        "client_id",
        "size",
        F.col(version).alias("version"),
        F.inline(uses),
    )


def software(frames: DataFrame) -> DataFrame:
    """Return the software of the client of each connection."""
    with_names = frames.where("client_software_name is not null")
    key = connection_key(frames.columns)
    names = with_names.groupBy(*key).agg(F.max(F.struct(*_SOFTWARE)).alias("one"))
    return F.broadcast(names.select(*key, "one.*"))


def _messages_read(frames: DataFrame, software_names: DataFrame) -> DataFrame:
    """Return how many headers and bodies were read, by message and software."""
    key = connection_key(frames.columns)
    each = frames.groupBy(*key, "message").agg(
        F.count("header_version").alias("headers"), F.count_if(F.expr(READ.sql)).alias("bodies")
    )
    each = each.join(software_names, [*key], "left")
    counted = each.groupBy("message", *_SOFTWARE).agg(
        F.sum("headers").alias("headers"), F.sum("bodies").alias("bodies")
    )
    return counted.select(*(F.col(column).alias(f"all_{column}") for column in counted.columns))


ANSWER = Answer(
    name="tagged_fields",
    place=80,
    question="Which tagged fields are sent, and who sends unknown tags?",
    meaning="Each tagged field by message, place and client software, with the number of messages "
    "that have it, and its size. A field without a name has a tag that the catalog does "
    "not know.",
    advice="If a client sends unknown tags, ask its owners what the tags mean. A later release of "
    "Kafka may give the same tag another meaning.",
    row="a tagged field and client software",
    columns=COLUMNS,
    order=(
        "is_known",
        "-bytes",
        "-messages",
        "message",
        "is_header",
        "path",
        "tag",
        "name",
        "client_software_name",
        "client_software_version",
    ),
    ask=tagged_fields,
    picture=AnswerPicture("Messages with a tagged field", "messages"),
)
