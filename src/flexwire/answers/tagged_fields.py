"""The tagged fields in the traffic, with their senders and sizes."""

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.answer import Answer, DaySums
from flexwire.answers.asking.day_sums import DAY, all_of, filled
from flexwire.answers.asking.software import (
    CONNECTION,
    OF_CONNECTION,
    SOFTWARE,
    connection_columns,
    software_of,
)
from flexwire.capture.pairing.state import WITHHELD_BYTES
from flexwire.facts.answers import AnswerPicture
from flexwire.measures.conditions import OF_KAFKA, READ
from flexwire.schema.catalog import catalog
from flexwire.tables.keys import connection_key
from flexwire.tables.message_schema import table_schema
from flexwire.tables.output import MESSAGES
from flexwire.tables.row_filter import FRAMES
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame

    from flexwire.answers.asking.answer import AnalysisTables

_USE: Final = ("message", "is_header", "sender", "path", "tag", "name")
_BODIES: Final = "tagged_fields"
_READ: Final = ("direction", "client_id", "time", "size", "body_version", _BODIES)
_MESSAGE_READ: Final = pa.struct(
    [("message", pa.string()), ("headers", pa.int64()), ("bodies", pa.int64())]
)
_KINDS: Final = {"is_header": pa.bool_(), "tag": pa.int64()}
_SUMS: Final = pa.schema(
    [
        *OF_CONNECTION,
        ("read", pa.list_(_MESSAGE_READ)),
        *((name, _KINDS.get(name, pa.string())) for name in (*_USE, "client_id")),
        *((name, pa.int64()) for name in ("messages", "times", "bytes", "message_bytes")),
        ("versions", pa.list_(pa.int32())),
    ]
)

COLUMNS: tuple[Column, ...] = (
    Column("message", pa.string(), 'the message, such as "FetchRequest"',
           heading="Message", is_about=True),
    Column("is_header", pa.bool_(), "whether the field is in the header of the message",
           heading="In the header"),
    Column("path", pa.string(),
           'the structure that contains the field, such as "topics[]"; "" for the message '
           'or header itself',
           heading="Structure"),
    Column("tag", pa.int64(), "the tag", heading="Tag", kind="id", is_about=True),
    Column("name", pa.string(), "the field's name", "if the catalog does not know the tag",
           heading="Field", is_about=True),
    Column("is_known", pa.bool_(), "whether the catalog knows the tag at this place"),
    Column("sender", pa.string(), 'the sender of the message: "client" or "broker"'),
    Column("client_software_name", pa.string(), "the client software on the connection",
           "if the software is unknown", heading="Client software"),
    Column("client_software_version", pa.string(),
           "the version of this software", "if the software is unknown",
           heading="Version"),
    Column("clients", pa.int64(),
           "the number of client ids with this software that sent or received the field"),
    Column("messages", pa.int64(), "the number of messages with the field", heading="Messages"),
    Column("message_share", pa.float64(),
           "these messages as a share of all messages of this kind on connections with this "
           "software",
           heading="Share of messages"),
    Column("times", pa.int64(),
           "the number of times that the field occurs, counted once for each structure"),
    Column("bytes", pa.int64(), "the total size of the field's values, in bytes",
           "if the field is known and decoded, or if its value is withheld",
           heading="Bytes"),
    Column("byte_share", pa.float64(),
           "``bytes`` as a share of ``message_bytes``",
           "if ``bytes`` is null", heading="Share of bytes"),
    Column("message_bytes", pa.int64(), "the total size of the messages with the field, in bytes"),
    Column("versions", pa.list_(pa.int32()), "the versions of these messages, in ascending order"),
)  # fmt: skip


def tagged_fields(tables: AnalysisTables) -> DataFrame:
    """Return each tagged field with its place and the client's software.

    A known field counts as sent if its value is not the default, because Kafka does not send
    default values. The column ``bytes`` counts only the bytes of values, and not the tag and the
    size. Tags that the catalog does not know come from newer releases, come from other software, or
    are incorrect. If a client sends its software name on a connection, all of its messages on this
    connection count for this software. Bodies that cannot be decoded are not counted, but the
    fields in their headers are.
    """
    return _total(_part(tables), tables)


def _part(tables: AnalysisTables) -> DataFrame:
    """Return sums by day and connection.

    A row with ``read`` contains the software name from the rows of frames, and the number of
    headers and bodies of each message that were read. Each of the remaining rows is a tagged field
    that a client id used.
    """
    frames = tables.frames
    uses_by_place = [_in_headers(frames.where(OF_KAFKA.sql))]
    with_uses = tables.of_messages(
        (*connection_key(frames.columns), *_READ), _with_uses, _uses_schema(frames)
    )
    if with_uses is not None:
        uses_by_place.append(_in_bodies(with_uses))
    uses = all_of(uses_by_place).groupBy(DAY, *CONNECTION, *_USE, "client_id")
    used = uses.agg(
        F.count("*").alias("messages"),
        *(F.sum(name).alias(name) for name in ("times", "bytes")),
        F.sum("size").alias("message_bytes"),
        F.collect_set("version").alias("versions"),
    )
    return filled([_messages_read(frames), used])


def _total(parts: DataFrame, tables: AnalysisTables) -> DataFrame:
    """Return the answer's rows, computed from sums."""
    of_connections = parts.where("read is not null")
    software = software_of(of_connections, tables)
    uses = parts.where("read is null").drop(*SOFTWARE).join(software, [*CONNECTION], "left")
    rows = uses.groupBy(*_USE, *SOFTWARE).agg(
        F.count_distinct(F.coalesce("client_id", F.lit(""))).alias("clients"),
        *(F.sum(name).alias(name) for name in ("messages", "times", "bytes", "message_bytes")),
        F.sort_array(F.array_distinct(F.flatten(F.collect_list("versions")))).alias("versions"),
    )
    each = of_connections.select(*CONNECTION, F.inline("read"))
    read = each.join(software, [*CONNECTION], "left").groupBy("message", *SOFTWARE)
    every = read.agg(F.sum("headers").alias("headers"), F.sum("bodies").alias("bodies"))
    every = every.select(*(F.col(name).alias(f"all_{name}") for name in every.columns))
    # If the software is unknown, the value is null on both sides.
    same = [F.col(column).eqNullSafe(F.col(f"all_{column}")) for column in ("message", *SOFTWARE)]
    rows = rows.join(F.broadcast(every), reduce(and_, same), "left")
    of_place = F.when(F.col("is_header"), F.col("all_headers")).otherwise(F.col("all_bodies"))
    rows = rows.withColumns(
        {
            "is_known": F.col("name").isNotNull(),
            "message_share": F.col("messages") / of_place,
            "byte_share": F.col("bytes") / F.col("message_bytes"),
        }
    )
    return rows.select(*(column.name for column in COLUMNS))


def _with_uses(message: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the few messages that contain tagged fields in their bodies."""
    for batch in batches:
        some = batch.filter(pc.greater(pc.list_value_length(batch[_BODIES]), 0))
        if some.num_rows:
            yield some.append_column("message", pa.repeat(message, some.num_rows))


def _uses_schema(frames: DataFrame) -> pa.Schema:
    # All message tables have these columns.
    table = table_schema(next(iter(catalog().names())))
    names = [(name, pa.string()) for name in connection_key(frames.columns)]
    return pa.schema([*names, *map(table.field, _READ), ("message", pa.string())])


def _in_bodies(table: DataFrame) -> DataFrame:
    """Return the uses of tagged fields in bodies, with one row for each message and field."""
    return _uses(table, _BODIES, "body_version", is_header=False)


def _in_headers(frames: DataFrame) -> DataFrame:
    """Return the uses of header tags, none of which are defined by any release of Kafka."""
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
        *connection_columns(rows),
        "client_id",
        "size",
        F.col(version).alias("version"),
        F.inline(uses),
    )


def _messages_read(frames: DataFrame) -> DataFrame:
    """Return how many headers and bodies were read, by day, connection and software."""
    is_header = F.col("header_version").isNotNull() & F.expr(OF_KAFKA.sql)
    is_body = F.expr(f"({READ.sql}) and ({OF_KAFKA.sql})")
    each = frames.groupBy(*connection_columns(frames), *SOFTWARE, "message").agg(
        F.count_if(is_header).alias("headers"), F.count_if(is_body).alias("bodies")
    )
    of_message = F.struct("message", "headers", "bodies")
    return each.groupBy(*OF_CONNECTION.names).agg(F.collect_list(of_message).alias("read"))


def _tables() -> list[str]:
    """Return the tables that `_part` reads."""
    return [FRAMES, *(f"{MESSAGES}/{name}" for name in catalog().names())]


ANSWER = Answer(
    name="tagged_fields",
    place=80,
    question="Which tagged fields are sent, and who sends unknown tags?",
    meaning="Each tagged field by message, place and client software, with the size of the field, "
    "and the number of messages that contain it. If a field has no name, the catalog does not know "
    "its tag.",
    advice="If a client sends unknown tags, ask the owners of the client what the tags mean. In "
    "a later release of Kafka, the same tag may have another meaning.",
    row="a combination of a tagged field and client software",
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
    sums=DaySums(version=1, tables=_tables, columns=_SUMS, part=_part, total=_total),
)
