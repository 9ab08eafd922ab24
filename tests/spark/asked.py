"""Two answers as operators would write them, one of them with labels, and three failing answers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.answer import Answer
from flexwire.columnar.record_columns import MOMENT
from flexwire.facts.answers import AnswerPicture
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame

    from flexwire.answers.asking.answer import AnalysisTables, Ask


def talkers(tables: AnalysisTables) -> DataFrame:
    """Return one row for each client id, with its number of requests and their total size."""
    requests = tables.frames.where("direction = 'request' and client_id is not null")
    bytes_sent = F.sum("size").alias("request_bytes")
    return requests.groupBy("client_id").agg(F.count("*").alias("requests"), bytes_sent)


def busy_seconds(tables: AnalysisTables) -> DataFrame:
    """Return one row for each second and API, with the number of requests."""
    requests = tables.frames.where("direction = 'request' and api_name is not null")
    second = F.date_trunc("second", "time").alias("second")
    return requests.groupBy(second, "api_name").agg(F.count("*").alias("requests"))


TALKERS = Answer(
    name="talkers",
    question="Who sends most?",
    meaning="Bytes of requests by client id.",
    advice="Ask the first of them to batch.",
    row="One row a client id.",
    columns=(
        Column("client_id", pa.string(), "the client id", heading="Client id", is_about=True),
        Column("requests", pa.int64(), "its requests", heading="Requests"),
        Column("request_bytes", pa.int64(), "their bytes", heading="Bytes"),
    ),
    order=("-request_bytes", "client_id"),
    ask=talkers,
    picture=AnswerPicture("Bytes of requests by client id", "request_bytes"),
)
BUSY = Answer(
    name="busy_seconds",
    question="When is most asked?",
    meaning="Requests by second and API.",
    advice="Nothing.",
    row="One row a second and API.",
    columns=(
        Column("second", MOMENT, "the second", heading="Second"),
        Column("api_name", pa.string(), "the API", heading="API", is_about=True),
        Column("requests", pa.int64(), "how many requests", heading="Requests"),
    ),
    order=("-requests", "second", "api_name"),
    ask=busy_seconds,
    picture=AnswerPicture("Requests over time", "requests", over="second"),
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
