"""Answers about a time span read only rows from that time, and no files from other days."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.time_span import TimeSpan
from flexwire.answers.batches import ANSWER as BATCHES
from flexwire.answers.chargeback import ANSWER as CHARGEBACK
from flexwire.errors import ArgumentError
from flexwire.facts.units import moment_at
from flexwire.spark.analyze import analyze
from flexwire.spark.answers.outputs import open_tables, stored_answers
from tests.spark.test_grown_tables import produced
from tests.spark.traffic import TOPIC_ID, Traffic, made, nested

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from flexwire.answers.asking.answer import AnalysisTables

pytestmark = pytest.mark.spark

DAY_US = 86_400_000_000
MIDNIGHT = datetime(2026, 11, 22, tzinfo=UTC)
BEGINS_US = int(MIDNIGHT.timestamp() * 1_000_000) - 5_000_000


def captures(directory: Path) -> list[Path]:
    """Write a capture for each of three days, with connections that continue on the next day.

    Only the first capture names a topic.
    """
    traffic = Traffic(directory)
    traffic.now_us = BEGINS_US
    connection = traffic.connect()
    topic = nested("MetadataResponse", "MetadataResponseTopic", name="orders", topic_id=TOPIC_ID)
    answer = made("MetadataResponse", topics=[topic])
    traffic.exchange(connection, made("MetadataRequest"), answer, 12, 1)
    for day in range(3):
        traffic.now_us = max(traffic.now_us, BEGINS_US + day * DAY_US)
        if day:
            traffic.rotate()
        produced(traffic, connection)
    traffic.close()
    return sorted(directory.glob("*.pcapng"))


@pytest.fixture(scope="module")
def outputs(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("span")
    files = captures(root / "captures")
    assert len(files) == 3
    for file in files:
        for form in ("delta", "iceberg"):
            analyze([file], root / form, spark=spark, answers=[], format=form, append=True)
    analyze(files, root / "parquet", spark=spark, answers=["chargeback"])
    return root


def sums(tables: AnalysisTables) -> dict[str, int]:
    rows = tables.frames.groupBy("direction").agg(F.sum("size")).collect()
    return {row[0]: row[1] for row in rows}


def charged(tables: AnalysisTables) -> int:
    return sum(row.bytes for row in CHARGEBACK.ask(tables).collect())


@pytest.mark.long
@pytest.mark.parametrize("form", ["delta", "iceberg", "parquet"])
def test_spans_that_follow_one_another_have_everything_once(
    form: str, spark: SparkSession, outputs: Path
) -> None:
    whole = open_tables(spark, outputs / form)
    cuts = [None, MIDNIGHT, MIDNIGHT + timedelta(days=1), None]
    parts = [
        open_tables(spark, outputs / form, since=since, until=until)
        for since, until in pairwise(cuts)
    ]
    for table in ("frames", "records"):
        counts = [getattr(one, table).count() for one in parts]
        assert sum(counts) == getattr(whole, table).count()
        assert min(counts) > 0
    assert sum(sums(one)["request"] for one in parts) == sums(whole)["request"]
    assert sum(map(charged, parts)) == charged(whole)
    for one in parts:
        assert charged(one) == sum(sums(one).values())
        message = one.message("ProduceRequest")
        assert message is not None
        assert message.count() == 2


@pytest.mark.long
def test_a_topic_has_the_name_that_another_day_gave(spark: SparkSession, outputs: Path) -> None:
    last = open_tables(spark, outputs / "delta", since=MIDNIGHT + timedelta(days=1))
    assert {row.topic for row in BATCHES.ask(last).collect()} == {"orders"}


@pytest.mark.long
@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_no_file_of_another_day_is_read(form: str, spark: SparkSession, outputs: Path) -> None:
    out = outputs / form
    assert len({file.parent.name for file in out.glob("tables/frames/*/day=*/*.parquet")}) == 3
    hidden = [
        file
        for table in ("frames", "records")
        for file in out.glob(f"tables/{table}/*/day=2026-11-2[12]/*.parquet")
    ]
    assert hidden
    for file in hidden:
        file.rename(file.with_suffix(".hidden"))
    try:
        tables = open_tables(spark, out, since="2026-11-23", until="2026-11-25")
        assert tables.frames.count() > 0
        assert charged(tables) == sum(sums(tables).values())
    finally:
        for file in hidden:
            file.with_suffix(".hidden").rename(file)


@pytest.mark.long
def test_stored_answers_are_not_those_of_a_span(outputs: Path) -> None:
    [whole] = stored_answers(outputs / "parquet", ["chargeback"])
    later = TimeSpan.parse(MIDNIGHT, None)
    [part] = stored_answers(outputs / "parquet", ["chargeback"], span=later)
    assert sum(whole.rows["bytes"].to_pylist()) > sum(part.rows["bytes"].to_pylist()) > 0


@pytest.mark.parametrize(
    ("since", "until"),
    [("yesterday", None), (datetime(2026, 1, 1), None), (5, None), ("2026-02-01", "2026-02-01")],  # noqa: DTZ001 - what is refused
)
def test_other_times_are_refused(since: Any, until: Any) -> None:
    with pytest.raises(ArgumentError):
        TimeSpan.parse(since, until)


def test_days_are_those_in_which_a_moment_is() -> None:
    span = TimeSpan.parse("2026-11-22T23:30-02:00", "2026-11-25")
    days = [moment_at(BEGINS_US + day * DAY_US).date().isoformat() for day in range(6)]
    assert [day for day in days if span.has_day(day)] == ["2026-11-23", "2026-11-24"]
    assert not TimeSpan.parse(None, None)
    assert all(map(TimeSpan().has_day, days))
