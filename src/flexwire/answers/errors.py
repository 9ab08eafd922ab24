"""The error codes in responses, by client, API and topic, over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.answer import Answer, DaySums, returns
from flexwire.answers.asking.day_sums import DAY, all_of, day_of_time
from flexwire.answers.asking.messages import (
    body_of,
    columns_of,
    kafka_error_is_retriable,
    kafka_error_name,
    with_topic_names,
)
from flexwire.arguments import to_int
from flexwire.columnar.record_columns import MOMENT
from flexwire.facts.answers import AnswerPicture
from flexwire.protocol.error_codes import NO_ERROR
from flexwire.schema.catalog import catalog
from flexwire.tables.keys import frame_key
from flexwire.tables.output import MESSAGES
from flexwire.tables.schema import Column
from flexwire.tables.spec_places import error_places

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.answer import AnalysisTables

COLUMNS: Final = (
    Column("time", MOMENT, (
        "the start of the time span in which the errors were counted"
    ), heading="From"),
    Column("client_id", pa.string(), "the client id", "if the client sent no client id",
           heading="Client id", is_about=True),
    Column("api_name", pa.string(), 'the API: "Fetch"', heading="API", is_about=True),
    Column(
        "topic", pa.string(), "the topic that the error concerns",
        "if the error concerns no topic, or if only the id of the topic is known",
    heading="Topic",
),
    Column(
        "topic_id", pa.string(), "the id of the topic, if its name is unknown",
        "if the name of the topic is known, or if the error concerns no topic",
    ),
    Column("error_code", pa.int32(), "the error code", heading="Code"),
    Column("error_name", pa.string(),
           "the name of the error code", "if Kafka 4.4 does not define this code",
           heading="Error", is_about=True),
    Column(
        "is_retriable", pa.bool_(), "whether a retry may succeed", "if the error code has no name"
    , heading="Retriable"),
    Column("field", pa.string(),
           'the field that contains the error code, for example '
           '"topics[].partitions[].error_code"'),
    Column("errors", pa.int64(),
           "the number of times that the error code occurs; a response may contain the code many "
           "times",
           heading="Errors"),
    Column("responses", pa.int64(), "the number of responses that contain the error code",
           heading="Responses"),
)  # fmt: skip

_MINUTE_US: Final = 60_000_000
_ABOUT: Final = ("us", "client_id", "api_name", "code", "field")
_TOPIC: Final = ("topic", "topic_id")
_SUMS: Final = pa.schema(
    [
        (DAY, pa.date32()),
        ("us", pa.int64()),
        ("client_id", pa.string()),
        ("api_name", pa.string()),
        ("code", pa.int32()),
        ("field", pa.string()),
        (
            "topics",
            pa.list_(
                pa.struct(
                    [("topic", pa.string()), ("topic_id", pa.string()), ("times", pa.int64())]
                )
            ),
        ),
        ("responses", pa.int64()),
    ]
)


def _tables() -> list[str]:
    """Return the names of the tables for messages that contain error codes."""
    return [f"{MESSAGES}/{name}" for name in catalog().names() if error_places(name)]


@returns(COLUMNS)
def errors(tables: AnalysisTables, seconds: int = 60) -> DataFrame | None:
    """Return the error codes other than 0 in responses, counted in intervals of ``seconds``.

    The specs define which fields contain error codes, and all these fields are read. The topic of
    an error comes from the structure that contains the error code, or from the nearest outer
    structure that contains a topic.

    Errors that do not result in a response are not counted, for example if a broker closes the
    connection. Neither are error codes in responses that cannot be decoded. An error code does not
    always mean that something is wrong. For example, a client that joins a group first receives
    MEMBER_ID_REQUIRED.
    """
    width = to_int(seconds, "seconds", least=1) * 1_000_000
    parts = _part(tables, width)
    return None if parts is None else _total(parts, tables)


def _part(tables: AnalysisTables, width: int = _MINUTE_US) -> DataFrame | None:
    """Return the responses by day, time, client, code and field, or None if there are no errors.

    ``topics`` lists the topics of a response that have this code, and how often the code occurs for
    each topic. A name and an id may refer to the same topic, so only the total can detect responses
    that contain a topic twice.
    """
    parts = {
        name: part
        for name in catalog().names()
        if _may_have_errors(tables, name) and (part := _errors_of(tables, name, width)) is not None
    }
    if not parts:
        return None
    rows = all_of(parts.values())
    key = frame_key(rows.columns)
    by_topic = rows.groupBy(*key, DAY, *_ABOUT, *_TOPIC).agg(F.count("*").alias("times"))
    topics = F.array_sort(F.collect_list(F.struct(*_TOPIC, "times")))
    by_response = by_topic.groupBy(*key, DAY, *_ABOUT).agg(topics.alias("topics"))
    return by_response.groupBy(DAY, *_ABOUT, "topics").agg(F.count("*").alias("responses"))


def _total(parts: DataFrame, tables: AnalysisTables) -> DataFrame:
    """Return the answer's rows, computed from the sums of all days."""
    alike = (*_ABOUT, "topics")
    # An interval may cover parts of two days.
    counted = parts.groupBy(*alike).agg(F.sum("responses").alias("alike"))
    each = counted.select(*alike, "alike", F.inline("topics"))
    ids = {
        name: [("body", *place.topic_id) for place in error_places(name) if place.topic_id]
        for name in catalog().names()
    }
    named = with_topic_names(each, tables, ids)
    by_response = named.groupBy(*alike, "alike", *_TOPIC).agg(F.sum("times").alias("times"))
    summed = by_response.groupBy(*_ABOUT, *_TOPIC).agg(
        F.sum(F.col("times") * F.col("alike")).alias("errors"),
        F.sum("alike").alias("responses"),
    )
    return summed.select(
        F.timestamp_micros("us").alias("time"),
        "client_id",
        "api_name",
        "topic",
        "topic_id",
        F.col("code").alias("error_code"),
        kafka_error_name("code").alias("error_name"),
        kafka_error_is_retriable("code").alias("is_retriable"),
        "field",
        "errors",
        "responses",
    )


def _may_have_errors(tables: AnalysisTables, message: str) -> bool:
    """Return whether the table of a message may contain an error code other than 0."""
    codes = [("body", *place.path) for place in error_places(message)]
    return not tables.hold_only(message, codes, NO_ERROR)


def _errors_of(tables: AnalysisTables, message: str, width: int) -> DataFrame | None:
    """Return the errors in the responses of one message, or None if it has no table."""
    whole = tables.message(message)
    if whole is None:
        return None
    key = frame_key(whole.columns)
    table = tables.narrowed(message, columns_of(whole, message, (*key, "client_id", "time")))
    if table is None:
        return None
    body = body_of(table, message)
    # Nearly all responses are free of errors, so this expression builds nothing for them. A filter
    # would not help, because it would run after the filter that Spark derives from `inline`, which
    # evaluates the errors in each row.
    error_list = F.when(body.has_error(), body.errors())
    api_name = catalog().entry(message).type.api_name(message)
    return table.select(
        *key,
        day_of_time().alias(DAY),
        "client_id",
        (F.floor(F.unix_micros("time") / width) * width).alias("us"),
        F.lit(api_name).alias("api_name"),
        F.inline(error_list),
    )


ANSWER: Final = Answer(
    name="errors",
    place=40,
    question="Which errors did brokers return, to which clients, and when?",
    meaning=(
        "This answer counts the error codes in responses, by client, API and topic. A response "
        "contains one error code for each partition or topic that failed."
    ),
    advice=(
        "Look for error codes that still occur although their cause is gone, and for error codes "
        "that a retry does not resolve. Some error codes are normal when a client starts, such as "
        "MEMBER_ID_REQUIRED. 'flexwire schema errors CODE' explains an error code."
    ),
    row="a combination of a time span, a client, an API, a topic, an error code and a field",
    columns=COLUMNS,
    order=("-errors", "time", "client_id", "api_name", "topic", "topic_id", "error_code", "field"),
    shown=(
        "time",
        "client_id",
        "api_name",
        "topic",
        "error_name",
        "error_code",
        "is_retriable",
        "errors",
        "responses",
    ),
    ask=errors,
    picture=AnswerPicture("Errors over time", "errors", over="time"),
    sums=DaySums(version=1, tables=_tables, columns=_SUMS, part=_part, total=_total),
)
