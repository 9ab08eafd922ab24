"""Header tags: which client sends which tag, in how many of its requests, and with which value."""

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.answer import Answer, DaySums
from flexwire.answers.asking.day_sums import DAY, filled
from flexwire.answers.asking.distinct import (
    HASH,
    HASHES,
    MOST,
    estimate,
    hash_of,
    sketched,
    unsketched,
)
from flexwire.answers.asking.software import (
    CONNECTION,
    OF_CONNECTION,
    SOFTWARE,
    connection_columns,
    software_of,
)
from flexwire.capture.pairing.state import WITHHELD_BYTES
from flexwire.columnar.record_columns import MOMENT
from flexwire.facts.answers import AnswerPicture
from flexwire.measures.conditions import OF_KAFKA
from flexwire.protocol.headers import first_with_tags
from flexwire.schema.spec import MessageType
from flexwire.tables.row_filter import FRAMES
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.answer import AnalysisTables

_SENDER: Final = ("sender", "client_id")
_WHOSE: Final = (*_SENDER, *SOFTWARE)
# The maximum number of bytes of a value that are shown: the length of a hexadecimal trace id and of
# a tap's tag.
_SHOWN_BYTES: Final = 256
_COULD: Final = pa.struct(
    [("sender", pa.string()), ("client_id", pa.string()), ("messages", pa.int64())]
)
_SUMS: Final = pa.schema(
    [
        *OF_CONNECTION,
        ("could", pa.list_(_COULD)),
        *((name, pa.string()) for name in _SENDER),
        *((name, pa.int64()) for name in ("tag", "messages")),
        ("api_names", pa.list_(pa.string())),
        ("value", pa.binary()),
        ("value_bytes", pa.int64()),
        ("first_time", MOMENT),
        ("last_time", MOMENT),
        (HASHES, pa.list_(pa.int64())),
    ]
)

COLUMNS: Final = (
    Column("tag", pa.int64(), "the tag", heading="Tag", kind="id", is_about=True),
    Column("sender", pa.string(), 'the sender: "client" or "broker"', heading="Sender"),
    Column("client_id", pa.string(),
           "the client id; for a broker, the client id of the client to which the broker responds",
           "if the client sent no client id", heading="Client id", is_about=True),
    Column("client_software_name", pa.string(), "the client's software",
           "if the software is unknown", heading="Client software"),
    Column("client_software_version", pa.string(),
           "the version of this software", "if the software is unknown",
           heading="Version"),
    Column("messages", pa.int64(),
           "the number of the sender's requests or responses that contain the tag",
           heading="Messages"),
    Column("message_share", pa.float64(),
           "these messages as a share of all messages that could contain the tag",
           heading="Share of messages"),
    Column("api_names", pa.list_(pa.string()),
           "the APIs of these messages, in alphabetical order", heading="APIs"),
    Column("values", pa.int64(),
           f"the number of different values; approximate if it is {MOST:,} or more",
           "if the values are withheld", heading="Distinct values"),
    Column("value", pa.binary(), f"the smallest value, or its first {_SHOWN_BYTES} bytes",
           "if the values are withheld", heading="Smallest value"),
    Column("value_bytes", pa.int64(), "the total size of all values, in bytes",
           "if the values are withheld"),
    Column("first_time", MOMENT, "when the first value was captured"),
    Column("last_time", MOMENT, "when the last value was captured"),
)  # fmt: skip


def header_tags(tables: AnalysisTables) -> DataFrame:
    """Return the tags in request and response headers, with each sender's client id and software.

    Kafka itself does not put tags in headers. All header tags come from other software; examples
    are a trace id and the name of a forwarder. Only flexible versions allow tags in headers, so
    ``message_share`` is a share of the messages in such versions. If a tap adds tags, a capture
    made between the tap and the brokers shows them as if clients had sent them. The tap's own
    captures list the tags that the tap added.
    """
    return _total(_part(tables), tables)


def _part(tables: AnalysisTables) -> DataFrame:
    """Return sums by day and connection.

    A row with ``could`` contains the software name from the rows of frames, and the number of
    frames that could contain a tag, by sender and client id. Each of the remaining rows is a tag
    that a sender used.
    """
    frames = tables.frames
    is_request = F.col("direction") == "request"
    first = first_with_tags(MessageType.REQUEST), first_with_tags(MessageType.RESPONSE)
    fits = F.when(is_request, F.lit(first[0])).otherwise(first[1])
    could = F.expr(OF_KAFKA.sql) & (F.col("header_version") >= fits)
    each = frames.select(
        *connection_columns(frames),
        *SOFTWARE,
        F.when(is_request, "client").otherwise("broker").alias("sender"),
        "client_id",
        "api_name",
        "time",
        could.alias("could"),
        F.col("header_unknown_tagged_fields").alias("tags"),
    )
    # For a connection without tags, only a count is kept.
    counted = each.groupBy(*OF_CONNECTION.names, *_SENDER).agg(F.count_if("could").alias("could"))
    of_sender = F.struct(*_SENDER, F.col("could").alias("messages"))
    could_have = counted.groupBy(*OF_CONNECTION.names).agg(F.collect_list(of_sender).alias("could"))
    by = (DAY, *CONNECTION, *_SENDER)
    tagged = each.where(F.col("could") & (F.size("tags") > 0))
    of_tags = tagged.select(*by, "api_name", "time", F.inline("tags"))
    shown = F.when(F.col("data") != F.lit(WITHHELD_BYTES), F.col("data"))
    values = of_tags.select(
        *by,
        "tag",
        F.lit(1).cast("bigint").alias("messages"),
        F.array_compact(F.array("api_name")).alias("api_names"),
        # The smallest value also has the smallest beginning.
        F.substring(shown, 1, _SHOWN_BYTES).alias("value"),
        F.octet_length(shown).cast("bigint").alias("value_bytes"),
        *(F.col("time").alias(name) for name in ("first_time", "last_time")),
        hash_of(shown).alias(HASH),
    )
    return filled([could_have, sketched(values, (*by, "tag"), _summed())])


def _summed() -> dict[str, SparkColumn]:
    """Return the sums of a tag, as aggregates of values or of sums."""
    return {
        "messages": F.sum("messages"),
        "api_names": F.array_distinct(F.flatten(F.collect_list("api_names"))),
        "value": F.min("value"),
        "value_bytes": F.sum("value_bytes"),
        "first_time": F.min("first_time"),
        "last_time": F.max("last_time"),
    }


def _total(parts: DataFrame, tables: AnalysisTables) -> DataFrame:
    """Return the answer's rows, computed from sums."""
    of_connections = parts.where("could is not null")
    names_of_software = software_of(of_connections, tables)
    could = of_connections.select(*CONNECTION, F.inline("could")).join(
        names_of_software, [*CONNECTION], "left"
    )
    every = could.groupBy(*_WHOSE).agg(F.sum("messages").alias("messages"))
    tagged = parts.where("could is null").drop(*SOFTWARE)
    with_names = tagged.join(names_of_software, [*CONNECTION], "left")
    values = unsketched(with_names.select("tag", *_WHOSE, *_summed(), HASHES), [*_summed()])
    rows = sketched(values, ("tag", *_WHOSE), _summed())
    # If nobody sent the tag, the value is null on both sides.
    same = [F.col(column).eqNullSafe(F.col(f"all_{column}")) for column in _WHOSE]
    every = every.select(*(F.col(name).alias(f"all_{name}") for name in every.columns))
    rows = rows.join(F.broadcast(every), reduce(and_, same), "left")
    return rows.select(
        "tag",
        *_WHOSE,
        "messages",
        (F.col("messages") / F.col("all_messages")).alias("message_share"),
        F.sort_array("api_names").alias("api_names"),
        F.when(F.col("value").isNotNull(), estimate(HASHES)).alias("values"),
        "value",
        "value_bytes",
        "first_time",
        "last_time",
    )


ANSWER: Final = Answer(
    name="header_tags",
    place=70,
    question="Who sends tags in headers, such as a trace id or the name of a forwarder?",
    meaning="Each tag in request and response headers by client, with the share of messages that "
    "contain the tag, and an example value.",
    advice="A client with a share below 1 sends some requests without the tag. Find out which "
    "APIs these requests use. A later release of Kafka may give a tag below 10000 another "
    "meaning.",
    row="a combination of a tag and a sender",
    columns=COLUMNS,
    order=("tag", "sender", "-messages", "client_id", *SOFTWARE),
    shown=(
        "tag",
        "sender",
        "client_id",
        "client_software_name",
        "client_software_version",
        "messages",
        "message_share",
        "values",
        "value",
        "api_names",
    ),
    ask=header_tags,
    picture=AnswerPicture("Messages with a tag in the header", "messages"),
    sums=DaySums(version=1, tables=lambda: [FRAMES], columns=_SUMS, part=_part, total=_total),
)
