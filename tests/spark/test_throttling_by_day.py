"""Daily sums of throttles equal the result from all rows, whatever crosses midnight."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from flexwire.answers.asking import throttled
from flexwire.answers.throttling import ANSWER, throttling
from flexwire.spark.settings import set_for_answers
from tests.searching import times
from tests.spark.test_latency_by_day import CONNECTIONS, connect, in_groups, in_order
from tests.spark.told import Told

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


def made(search: int) -> Told:
    told = Told()
    for number in range(CONNECTIONS):
        connect(told, search * CONNECTIONS + number)
    return told


def sums_of(told: Told, groups: int, spark: SparkSession) -> pa.Table:
    """Return the daily sums. Each day's rows are divided into this many groups."""
    sums = ANSWER.sums
    assert sums is not None
    parts = [sums.part(days.tables(spark)) for days in in_groups(told, groups)]
    return pa.concat_tables(
        part.select(*sums.columns.names).toArrow().cast(sums.columns)
        for part in parts
        if part is not None
    )


def total(told: Told, found: pa.Table, spark: SparkSession) -> list[Any]:
    sums = ANSWER.sums
    assert sums is not None
    rows = sums.total(spark.createDataFrame(found), told.tables(spark))
    return list(rows.toArrow().to_pylist())


@pytest.mark.long
@pytest.mark.parametrize("groups", [2, 5])
def test_the_sums_of_days_say_what_all_rows_say(spark: SparkSession, groups: int) -> None:
    """Neighboring days are read separately."""
    for search in range(times(1)):
        told = made(search)
        with set_for_answers(spark, is_small=True):
            expected = throttling(told.tables(spark)).toArrow().to_pylist()
            found = sums_of(told, groups, spark)
            assert in_order(total(told, found, spark)) == in_order(expected)
        for name in ("early_requests", "pipelined_requests", "waited_us"):
            assert sum(row[name] or 0 for row in expected) > 20, name
        # Each kind of kept entry occurs, and there are few entries.
        kept = [row for row in found["kept"].to_pylist() if row is not None]
        assert any(row["throttle_us"] is not None for row in kept)
        assert any(row["throttled_us"] is not None for row in kept)
        assert 0 < sum(row["asked"] is not None for row in kept) < len(told.frames) / 4


def test_without_a_throttle_there_is_no_row(spark: SparkSession) -> None:
    told = Told()
    told.exchange(("a", "10.0.0.9:1"), "Produce", 0, 1000, {}, {"throttle_time_ms": 0})
    with set_for_answers(spark, is_small=True):
        found = sums_of(told, 2, spark)
        assert sum(row or 0 for row in found["responses"].to_pylist()) == 1
        assert total(told, found, spark) == []


def forget(rows: DataFrame, *_: Any) -> DataFrame:
    empty = rows.where("false").select("connection", "frame_index")
    return empty.selectExpr(
        "*", "0L as throttled_us", "false as is_pipelined",
        "named_struct('api_name', '', 'client_id', '') as cause",
    )  # fmt: skip


@pytest.mark.long
def test_a_pause_over_midnight_that_is_forgotten_is_found(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = made(0)
    with set_for_answers(spark, is_small=True):
        expected = throttling(told.tables(spark)).toArrow().to_pylist()
        found = sums_of(told, 2, spark)
        monkeypatch.setattr(throttled, "earlier_waits", forget)
        monkeypatch.setattr(throttled, "connection_key", lambda _: ("connection",))
        assert in_order(total(told, found, spark)) != in_order(expected)
