"""The first record after a moment is found, and the age of a record is computed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.state.log import elapsed_us, first_after
from tests.each import each

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BEGIN = datetime(2026, 11, 22, tzinfo=UTC)


@each("micros", [0, 1, 400, 499, 500, 501, 999, 1000, 1600, 10_600])
def test_a_record_is_later_from_the_next_whole_millisecond_on(micros: int) -> None:
    first = first_after(BEGIN + timedelta(microseconds=micros))
    begin_ms = int(BEGIN.timestamp()) * 1000
    assert (first - 1 - begin_ms) * 1000 <= micros < (first - begin_ms) * 1000


def test_a_time_of_any_zone_is_the_same_moment() -> None:
    there = BEGIN.astimezone(timezone(timedelta(hours=-9, minutes=-30)))
    assert first_after(there) == first_after(BEGIN)


@pytest.mark.spark
def test_nothing_is_said_to_have_passed_where_a_time_is_not_known(spark: SparkSession) -> None:
    rows = [(1, 3), (3, 1), (None, 3), (1, None), (None, None)]
    given = spark.createDataFrame(rows, "since long, now long")
    made = given.select(elapsed_us(F.timestamp_micros("since"), F.col("now")).alias("passed"))
    assert [row.passed for row in made.collect()] == [2, 0, None, None, None]
