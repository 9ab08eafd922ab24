"""Spark's workers use the catalog of the process that planned the analysis, and only for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import flexwire
from flexwire.schema.catalog import catalog, use_catalog
from flexwire.spark.analyze import Analysis, analyze
from tests.schema.own import own_catalog
from tests.spark.traffic import Traffic, made, request, response

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return own_catalog(tmp_path)


@pytest.fixture
def capture(tmp_path: Path, own: Path) -> Path:
    """Return a Metadata exchange, and a Ping exchange, which only the invented release knows."""
    traffic = Traffic(tmp_path / "capture")
    connection = traffic.connect(("10.0.0.7", 7000))
    traffic.exchange(connection, made("MetadataRequest"), made("MetadataResponse"), 12, 1)
    use_catalog(own)
    try:
        ping, pong = flexwire.message("PingRequest")(text="hello"), made("PingResponse")
        traffic.send(connection, "request", request(ping, 0, 2))
        traffic.send(connection, "response", response(pong, 0, 2))
    finally:
        use_catalog(None)
    traffic.close()
    return traffic.directory


def requests(spark: SparkSession, analysis: Analysis) -> list[tuple[str | None, str]]:
    frames = spark.read.parquet(str(analysis.tables.frames)).where("direction = 'request'")
    return [(row.message, row.outcome) for row in frames.orderBy("time").collect()]


def uses_the_catalog(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        yield pa.record_batch({"api_keys": [len(catalog().api_keys())]})


@pytest.mark.long
def test_workers_that_are_used_again_take_the_catalog_of_each_analysis(
    spark: SparkSession, capture: Path, own: Path, tmp_path: Path
) -> None:
    spark.range(4).mapInArrow(uses_the_catalog, "api_keys bigint").collect()
    use_catalog(own)
    try:
        analysis = analyze([capture], tmp_path / "during", spark=spark)
        during = requests(spark, analysis)
        rows = spark.read.parquet(str(analysis.tables.message("PingRequest"))).collect()
    finally:
        use_catalog(None)
    after = requests(spark, analyze([capture], tmp_path / "after", spark=spark))
    assert during == [("MetadataRequest", "decoded"), ("PingRequest", "decoded")]
    assert [row.body.text for row in rows] == ["hello"]
    assert after == [during[0], (None, "failed")]
