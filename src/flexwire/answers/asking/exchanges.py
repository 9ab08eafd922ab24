"""Requests with their responses, as the tables of messages have them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.tables.keys import connection_key, frame_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column

    from flexwire.answers.asking.reading import AnalysisTables


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which exchanges of an API are wanted, by conditions on their tables, and what of them."""

    api_name: str
    asked: Column
    told: Column
    request: Column | None = None
    response: Column | None = None


def exchanges(tables: AnalysisTables, api_name: str) -> DataFrame | None:
    """The requests of an API that were answered, with their responses; None where there are none.

    A row has the key of its connection, ``client_id``, the times ``asked`` and ``answered``, and
    the bodies as ``request`` and ``response``.
    """
    return exchanges_of(tables, [Wanted(api_name, F.col("body"), F.col("body"))])


def exchanges_of(tables: AnalysisTables, wanted: Sequence[Wanted]) -> DataFrame | None:
    """The same of several APIs, each table read once; what is wanted of them has the same types."""
    connection, frame = connection_key(tables.frames.columns), frame_key(tables.frames.columns)
    requests, responses, names = [], [], []
    for one in wanted:
        request = tables.message(f"{one.api_name}Request")
        response = tables.message(f"{one.api_name}Response")
        if request is None or response is None:
            continue
        if one.request is not None:
            request = request.where(one.request)
        if one.response is not None:
            response = response.where(one.response)
        names.append(one.api_name)
        requests.append(
            request.select(
                F.lit(one.api_name).alias("api_name"),
                *connection,
                "correlation_id",
                F.col("time").alias("asked"),
                "client_id",
                one.asked.alias("request"),
            )
        )
        responses.append(response.select(*frame, one.told.alias("response")))
    if not names:
        return None
    is_answer = (F.col("direction") == "response") & F.col("latency_us").isNotNull()
    frames = tables.frames.where(is_answer & F.col("api_name").isin(names))
    # A correlation id may come again on a connection; at that moment it does not.
    pairs = frames.select(
        "api_name",
        *frame,
        "correlation_id",
        F.timestamp_micros(F.unix_micros("time") - F.col("latency_us")).alias("asked"),
        F.col("time").alias("answered"),
    )
    answers = reduce(DataFrame.unionByName, responses)
    found = answers.join(pairs, [*frame])
    asked = reduce(DataFrame.unionByName, requests)
    found = found.join(asked, ["api_name", *connection, "correlation_id", "asked"])
    return found.select(*connection, "client_id", "asked", "answered", "request", "response")
