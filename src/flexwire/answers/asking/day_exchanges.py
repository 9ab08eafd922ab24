"""Exchanges for daily sums: whole exchanges from one day, and halves of those that span two days.

The sums of a day depend only on the rows of that day. If a request and its response occur on
different days, both are kept, and the total joins them (`joined_halves`). Only requests without a
response on the same day are kept: those that are in flight at midnight, and those that were never
answered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.day_sums import DAY, all_of, analysis_of, day_of_time, filled
from flexwire.answers.asking.messages import answered_frames, requests_of, responses_of
from flexwire.columnar.record_columns import MOMENT
from flexwire.tables.keys import ANALYSIS, connection_key, frame_key
from flexwire.tasks import spark_schema

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

    from flexwire.answers.asking.answer import AnalysisTables
    from flexwire.answers.asking.messages import ExchangeFilter

HALF: Final = "half"
"""The column of sums that identifies the exchange in the rows for its halves."""
_KEY: Final = pa.schema(
    [
        ("api_name", pa.string()),
        (ANALYSIS, pa.string()),
        ("connection", pa.string()),
        ("correlation_id", pa.int32()),
        ("asked", MOMENT),
        ("is_request", pa.bool_()),
    ]
)
OF_HALF: Final = pa.struct([*_KEY])
"""The type of `HALF`."""


def exchanges_of_days(
    tables: AnalysisTables,
    filters: Sequence[ExchangeFilter],
    request: DataType | str,
    response: DataType | str,
) -> DataFrame | None:
    """Return the exchanges of several APIs by day, or None if none of them has a table.

    ``request`` and ``response`` are the types of the columns of ``filters``. Each row contains
    `DAY`, `HALF`, ``client_id``, ``asked``, ``answered``, ``request`` and ``response``. `HALF` is
    null if both messages are from the same day. A request on its own lacks ``answered`` and
    ``response``, and a response on its own lacks ``client_id`` and ``request``.
    """
    requests = [rows for one in filters if (rows := requests_of(tables, one)) is not None]
    responses = [rows for one in filters if (rows := responses_of(tables, one)) is not None]
    frame = [*frame_key(tables.frames.columns)]
    answered = answered_frames(tables, [one.api_name for one in filters])
    answered = answered.withColumn(DAY, day_of_time("answered"))
    same = ["api_name", *connection_key(frame), "correlation_id", "asked", DAY]
    asked = all_of(requests).withColumn(DAY, day_of_time("asked")) if requests else None
    parts = []
    if responses:
        parts.append(_answers(all_of(responses).join(answered, frame), asked, same))
    if asked is not None:
        alone = asked.join(answered.select(*same), same, "left_anti")
        parts.append(alone.withColumn(HALF, _half(alone, is_request=True)))
    if not parts:
        return None
    kinds = {
        "client_id": "string", "asked": "timestamp", "answered": "timestamp",
        "request": request, "response": response,
    }  # fmt: skip
    rows = filled(parts)
    nothing = {name: F.lit(None).cast(kind) for name, kind in kinds.items()}
    lacking = {name: null for name, null in nothing.items() if name not in rows.columns}
    return rows.withColumns(lacking).select(DAY, HALF, *kinds)


def _answers(responses: DataFrame, asked: DataFrame | None, same: Sequence[str]) -> DataFrame:
    """Return the answered exchanges, with `HALF` if the request is from an earlier day."""
    half = _half(responses, is_request=False)
    is_later = day_of_time("asked") != F.col(DAY)
    if asked is None:
        return responses.where(is_later).withColumn(HALF, half)
    found = asked.withColumn("is_found", F.lit(col=True))
    both = responses.join(found, [*same], "left")
    # If the day of the request does not contain the request of this response, there is none.
    return both.where(F.col("is_found") | is_later).withColumn(
        HALF, F.when(F.col("is_found").isNull(), half)
    )


def joined_halves(
    sums: DataFrame, columns: Sequence[str], of_request: Collection[str]
) -> DataFrame:
    """Return these columns of the exchanges that span two days, based on sums with `HALF`.

    The columns in ``of_request`` come from the request, and all others from the response.
    """
    halves = sums.where(F.col(HALF).isNotNull())
    names = [name for name in halves.columns if name != HALF]
    key = [name for name in _KEY.names if name != "is_request"]
    rows = halves.select(
        *(F.col(f"{HALF}.{name}").alias(f"key_{name}") for name in _KEY.names),
        F.struct(*names).alias("row"),
    )
    same = [f"key_{name}" for name in key]
    requests = rows.where("key_is_request").withColumnRenamed("row", "of_request")
    responses = rows.where("not key_is_request").withColumnRenamed("row", "of_response")
    both = responses.select(*same, "of_response").join(requests.select(*same, "of_request"), same)
    halves_of = {True: "of_request", False: "of_response"}
    return both.select(
        *(F.col(f"{halves_of[name in of_request]}.{name}").alias(name) for name in columns)
    )


def no_half() -> Column:
    """Return a null value for `HALF`."""
    return F.lit(None).cast(spark_schema(pa.schema([(HALF, OF_HALF)]))[HALF].dataType)


def _half(rows: DataFrame, *, is_request: bool) -> Column:
    others = {"is_request": F.lit(is_request), ANALYSIS: analysis_of(rows)}
    return F.struct(*(others.get(name, F.col(name)).alias(name) for name in _KEY.names))
