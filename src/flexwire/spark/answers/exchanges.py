"""Requests with their responses, as the tables of messages have them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from flexwire.spark.answers.reading import AnalysisTables


def exchanges(
    tables: AnalysisTables,
    api_name: str,
    request: Column | None = None,
    response: Column | None = None,
) -> DataFrame | None:
    """The requests of an API that were answered, with their responses; None where there are none.

    ``request`` and ``response`` are conditions on the rows of their tables, which are asked first.
    A row has ``connection``, ``client_id``, ``asked`` and ``answered`` (when), and the bodies as
    ``request`` and ``response``.
    """
    requests, responses = (
        tables.message(f"{api_name}Request"),
        tables.message(f"{api_name}Response"),
    )
    if requests is None or responses is None:
        return None
    if request is not None:
        requests = requests.where(request)
    if response is not None:
        responses = responses.where(response)
    is_answer = (F.col("direction") == "response") & F.col("latency_us").isNotNull()
    frames = tables.frames.where(is_answer & (F.col("api_name") == api_name))
    # A correlation id may come again on a connection; at that moment it does not.
    pairs = frames.select(
        "connection",
        "frame_index",
        "correlation_id",
        F.timestamp_micros(F.unix_micros("time") - F.col("latency_us")).alias("asked"),
        F.col("time").alias("answered"),
    )
    answers = responses.select("connection", "frame_index", F.col("body").alias("response"))
    asked = requests.select(
        "connection",
        "correlation_id",
        F.col("time").alias("asked"),
        "client_id",
        F.col("body").alias("request"),
    )
    found = answers.join(pairs, ["connection", "frame_index"])
    found = found.join(asked, ["connection", "correlation_id", "asked"])
    return found.select("connection", "client_id", "asked", "answered", "request", "response")
