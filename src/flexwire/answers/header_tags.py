"""Tags in headers: which client sends which tag, in how many of its requests, with which value."""

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.answer import Answer
from flexwire.answers.tagged_fields import software
from flexwire.capture.pairing.state import WITHHELD_BYTES
from flexwire.columnar.record_columns import MOMENT
from flexwire.facts.answers import AnswerPicture
from flexwire.measures.conditions import OF_KAFKA
from flexwire.protocol.headers import first_with_tags
from flexwire.schema.spec import MessageType
from flexwire.tables.keys import connection_key
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.answer import AnalysisTables

_SOFTWARE: Final = ("client_software_name", "client_software_version")
_WHOSE: Final = ("sender", "client_id", *_SOFTWARE)
# The most bytes of a value that are shown: the length of a trace id in hexadecimal, and of a tap's
# tag.
_SHOWN_BYTES: Final = 256

COLUMNS: Final = (
    Column("tag", pa.int64(), "the tag", heading="Tag", kind="id", is_about=True),
    Column("sender", pa.string(), 'the sender: "client" or "broker"', heading="Sender"),
    Column("client_id", pa.string(),
           "the client id; for a broker, the client id of the client to which the broker responds",
           "if the client sent no client id", heading="Client id", is_about=True),
    Column("client_software_name", pa.string(), "the client's software",
           "if the software is unknown", heading="Client software"),
    Column("client_software_version", pa.string(), "its version", "if the software is unknown",
           heading="Version"),
    Column("messages", pa.int64(), "the number of requests or responses of the sender with the tag",
           heading="Messages"),
    Column("message_share", pa.float64(),
           "the share of these messages in all messages that could have the tag",
           heading="Of those that could"),
    Column("api_names", pa.list_(pa.string()), "their APIs, ascending", heading="APIs"),
    Column("values", pa.int64(), "the approximate number of different values",
           "if the values are withheld", heading="Values, about"),
    Column("value", pa.binary(), f"the smallest value; its first {_SHOWN_BYTES} bytes",
           "if the values are withheld", heading="One of them"),
    Column("value_bytes", pa.int64(), "the bytes of all values", "if the values are withheld"),
    Column("first_time", MOMENT, "when the first value was captured"),
    Column("last_time", MOMENT, "when the last value was captured"),
)  # fmt: skip


def header_tags(tables: AnalysisTables) -> DataFrame:
    """Return the tags in headers, and their senders: client id and software.

    Kafka itself puts no tags in headers. All tags come from other software, for example a trace id
    or the name of a forwarder. Only flexible versions can have tags in their headers, so
    ``message_share`` is a share of the messages with such versions. If a tap adds tags, a capture
    behind the tap shows them as if clients had sent them. The tap's own captures list the tags that
    it added.
    """
    is_request = F.col("direction") == "request"
    first = first_with_tags(MessageType.REQUEST), first_with_tags(MessageType.RESPONSE)
    fits = F.when(is_request, F.lit(first[0])).otherwise(first[1])
    # For a connection without tags, only a number is stored.
    key = connection_key(tables.frames.columns)
    of_kafka = tables.frames.where(OF_KAFKA.sql)
    frames = of_kafka.where(F.col("header_version") >= fits).select(
        *key,
        F.when(is_request, "client").otherwise("broker").alias("sender"),
        "client_id",
        "api_name",
        "time",
        F.col("header_unknown_tagged_fields").alias("tags"),
    )
    connections = frames.groupBy(*key, "sender", "client_id").agg(F.count("*").alias("each"))
    names_of_software = software(tables.frames)
    by_client = connections.join(names_of_software, [*key], "left").groupBy(*_WHOSE)
    every = by_client.agg(F.sum("each").alias("all_messages"))
    tagged = frames.where(F.size("tags") > 0).join(names_of_software, [*key], "left")
    each = tagged.select(*_WHOSE, "api_name", "time", F.inline("tags"))
    shown = F.when(F.col("data") != F.lit(WITHHELD_BYTES), F.col("data"))
    rows = each.groupBy("tag", *_WHOSE).agg(
        F.count("*").alias("messages"),
        F.sort_array(F.collect_set("api_name")).alias("api_names"),
        F.approx_count_distinct(shown).alias("values"),
        F.min(shown).alias("value"),
        F.sum(F.octet_length(shown)).cast("bigint").alias("value_bytes"),
        F.min("time").alias("first_time"),
        F.max("time").alias("last_time"),
    )
    # If nobody sent the tag, the value is null on both sides.
    same = [F.col(column).eqNullSafe(F.col(f"all_{column}")) for column in _WHOSE]
    every = every.select(
        *(F.col(column).alias(f"all_{column}") for column in _WHOSE), "all_messages"
    )
    rows = rows.join(F.broadcast(every), reduce(and_, same), "left")
    return rows.select(
        "tag",
        *_WHOSE,
        "messages",
        (F.col("messages") / F.col("all_messages")).alias("message_share"),
        "api_names",
        F.when(F.col("value").isNotNull(), F.col("values")).alias("values"),
        F.substring("value", 1, _SHOWN_BYTES).alias("value"),
        "value_bytes",
        "first_time",
        "last_time",
    )


ANSWER: Final = Answer(
    name="header_tags",
    place=70,
    question="Who sends tags in headers, such as a trace id or the name of a forwarder?",
    meaning="Each tag in the headers of requests and responses by client, with the share of the "
    "messages that could have it, and one of its values.",
    advice="A client with a share below 1 sends some requests without the tag. Find out which "
    "APIs these requests use. A later release of Kafka may give a meaning to a tag below "
    "10000.",
    row="a tag and sender",
    columns=COLUMNS,
    order=("tag", "sender", "-messages", "client_id", *_SOFTWARE),
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
)
