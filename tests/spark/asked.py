"""Two answers as operators would write them, one that takes labels, and three that fail."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.columnar.record_columns import MOMENT
from flexwire.facts.answers import Picture, ShownColumn
from flexwire.spark.answers.answer import Answer
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame

    from flexwire.spark.answers.answer import Ask
    from flexwire.spark.answers.reading import AnalysisTables


def talkers(tables: AnalysisTables) -> DataFrame:
    """One row a client id, with its requests and their bytes."""
    requests = tables.frames.where("direction = 'request' and client_id is not null")
    bytes_sent = F.sum("size").alias("request_bytes")
    return requests.groupBy("client_id").agg(F.count("*").alias("requests"), bytes_sent)


def busy_seconds(tables: AnalysisTables) -> DataFrame:
    """One row a second and API, with its requests."""
    requests = tables.frames.where("direction = 'request' and api_name is not null")
    second = F.date_trunc("second", "time").alias("second")
    return requests.groupBy(second, "api_name").agg(F.count("*").alias("requests"))


TALKERS = Answer(
    "talkers",
    "Who sends most?",
    "Bytes of requests by client id.",
    "Ask the first of them to batch.",
    "One row a client id.",
    (
        Column("client_id", pa.string(), "the client id"),
        Column("requests", pa.int64(), "its requests"),
        Column("request_bytes", pa.int64(), "their bytes"),
    ),
    ("-request_bytes", "client_id"),
    (
        ShownColumn("client_id", "Client id", is_about=True),
        ShownColumn("requests", "Requests", "count"),
        ShownColumn("request_bytes", "Bytes", "bytes"),
    ),
    talkers,
    Picture("Bytes of requests by client id", "request_bytes"),
)
BUSY = Answer(
    "busy_seconds",
    "When is most asked?",
    "Requests by second and API.",
    "Nothing.",
    "One row a second and API.",
    (
        Column("second", MOMENT, "the second"),
        Column("api_name", pa.string(), "the API"),
        Column("requests", pa.int64(), "how many requests"),
    ),
    ("-requests", "second", "api_name"),
    (
        ShownColumn("second", "Second", "moment"),
        ShownColumn("api_name", "API", is_about=True),
        ShownColumn("requests", "Requests", "count"),
    ),
    busy_seconds,
    Picture("Requests over time", "requests", over="second"),
)


def _wrong(tables: AnalysisTables) -> DataFrame:
    return tables.frames.select("client_id")


def _dividing(tables: AnalysisTables) -> DataFrame:
    return talkers(tables).withColumn("requests", F.raise_error(F.lit("no such thing")))


def _broken(_tables: AnalysisTables) -> DataFrame:
    raise LookupError("nothing there")


WRONG = replace(TALKERS, name="wrong", ask=_wrong)
RAISING = replace(TALKERS, name="raising", ask=_dividing)
BROKEN = replace(TALKERS, name="broken", ask=_broken)


def _labelled(path: str | Path) -> Ask:
    team = F.lit(str(path)).alias("client_id")
    return lambda tables: talkers(tables).select(team, "requests", "request_bytes")


LABELLED = replace(TALKERS, name="labelled", labelled=_labelled)
