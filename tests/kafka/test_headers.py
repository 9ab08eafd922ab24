"""Rows of Spark's own Kafka source, read from a broker, contain the headers and messages that were
sent.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyspark
import pytest
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own custom

from tests.kafka.filling import Broker, message, typed, write_typed

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, Row, SparkSession

HAS_FUNCTIONS = tuple(map(int, re.findall(r"\d+", pyspark.__version__)[:2])) >= (4, 1)
pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]


def decoded(source: DataFrame) -> DataFrame:
    """Return the results of the column functions for the rows of a source."""
    from flexwire.spark.functions import from_kafka, header, kafka_headers  # noqa: PLC0415 - 4.1

    version = F.col("key").cast("string").cast("int")
    every = kafka_headers("headers", "kip-82")
    return source.select(
        "offset",
        header("headers", "user", "long").alias("user"),
        header("headers", "tag", "string").alias("tag"),
        header("headers", "even", "boolean").alias("even"),
        header("headers", "trace", "binary").alias("trace"),
        F.transform(every, lambda one: one["key"]).alias("keys"),
        F.to_json(F.element_at(every, 1)["value"]).alias("first"),
        from_kafka("value", "MetadataRequest", version).alias("message"),
    )


def holds(found: list[Row]) -> None:
    """Check that the columns equal the records that were sent, which are written here by hand."""
    assert found
    for row in found:
        number = int(row.message.topics[0].name.removeprefix("topic "))
        _, value = message(number)
        sent = typed(number)
        assert f"topic {number}".encode() in value
        if number % 10 == 9:
            assert (row.user, row.tag, row.even, row.trace) == (None,) * 4
            assert not row["keys"]
            continue
        said = (row.user, row.tag, row.even, bytes(row.trace))
        assert said == tuple(sent.get(key)[-1] for key in ("user", "tag", "even", "trace"))
        assert row["keys"] == sent.keys()
        assert row.first == str(number)


def test_in_a_query(spark: SparkSession, kafka: Broker) -> None:
    asked = {"kafka.bootstrap.servers": kafka.address, "subscribe": "typed"}
    source = spark.read.format("kafka").options(includeHeaders="true", **asked).load()
    holds(decoded(source).collect())


def test_in_a_stream(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    write_typed(kafka, 200, 10)
    taken: list[Row] = []

    def keep(found: DataFrame, number: int) -> None:
        del number
        taken.extend(found.collect())

    asked = {"kafka.bootstrap.servers": kafka.address, "subscribe": "typed"}
    asked |= {"startingOffsets": "earliest", "maxOffsetsPerTrigger": "25"}
    source = spark.readStream.format("kafka").options(includeHeaders="true", **asked).load()
    writer = decoded(source).writeStream.foreachBatch(keep).trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(tmp_path)).start()
    assert query.awaitTermination(120)
    assert [row.offset for row in taken] == [*range(len(taken))]
    assert len(taken) >= 70
    holds(taken)
