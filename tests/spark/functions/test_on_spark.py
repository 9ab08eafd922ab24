"""Functions are sent to Spark's workers with their caller's catalog, which only Spark can show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyspark
import pytest
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

import flexwire
from flexwire.errors import AnalysisError, ArgumentError, UnknownMessageError
from flexwire.schema.catalog import use_catalog
from flexwire.spark.functions import (
    from_kafka,
    from_kafka_variant,
    header,
    kafka_frame,
    kafka_headers,
    kafka_records,
    to_kafka,
)
from tests.schema.own import own_catalog

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
HAS_FUNCTIONS = tuple(map(int, pyspark.__version__.split(".")[:2])) >= (4, 1)


@pytest.mark.long
def test_a_function_takes_the_catalog_along_that_its_caller_had(
    spark: SparkSession, tmp_path: Path
) -> None:
    if not HAS_FUNCTIONS:
        with pytest.raises(AnalysisError, match=r"needs PySpark 4\.1 or later"):
            from_kafka(F.lit(b""), "MetadataRequest", 1)
        return
    use_catalog(own_catalog(tmp_path))
    try:
        ping = flexwire.message("PingRequest")(text="hello").encode(0)
        text = from_kafka(F.lit(ping), "PingRequest", 0).text
    finally:
        use_catalog(None)
    # Both columns are in the same query, and therefore in the same worker.
    bundled = from_kafka_variant(F.lit(b""), F.lit("PingRequest"), F.lit(0), {"mode": "permissive"})
    why = F.variant_get(bundled, "$._corrupt_record.reason", "string")
    (row,) = spark.range(1).select(text.alias("text"), why.alias("why")).collect()
    assert row.text == "hello"
    assert row.why.startswith("no message 'PingRequest'")


WRONG: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: from_kafka("v", "MetadataRequst", 1), UnknownMessageError, "MetadataRequest"),
    (lambda: from_kafka(b"v", "MetadataRequest", 1), ArgumentError, "data: expected a Column"),  # type: ignore[arg-type]
    (lambda: from_kafka("v", "MetadataRequest", 1.5), ArgumentError, "version: expected an int"),  # type: ignore[arg-type]
    (lambda: from_kafka("v", "MetadataRequest", True), ArgumentError, "version: expected an int"),
    (
        lambda: from_kafka("v", "MetadataRequest", 99),
        UnknownMessageError,
        "no version 99; released",
    ),
    (lambda: to_kafka("v", "MetadataRequest", -1), UnknownMessageError, "no version -1"),
    (lambda: from_kafka("v", "MetadataRequest", 1, {"fields": "x"}), ArgumentError, "fields"),
    (lambda: to_kafka("v", "MetadataRequest", 1, {"absent": "null"}), ArgumentError, "options"),
    (lambda: kafka_records("v", ["offse"]), ArgumentError, "columns: expected names of offset"),
    (lambda: kafka_records("v", ["key", "key"]), ArgumentError, "columns: expected each name once"),
    (lambda: kafka_headers("h", "none"), ArgumentError, "convention: expected one of"),
    (lambda: header("h", "k", "bigint"), ArgumentError, "type: expected 'boolean' or"),
    (lambda: header("h", 3, "long"), ArgumentError, "key: expected a str"),  # type: ignore[arg-type]
    (lambda: kafka_frame("f", "api_key"), ArgumentError, "api_version: expected a Column"),
]


@pytest.mark.parametrize(("call", "kind", "reason"), WRONG)
def test_what_a_function_does_not_take_is_refused_at_once(
    call: Callable[[], Any], kind: type[Exception], reason: str
) -> None:
    with pytest.raises(kind, match=reason):
        call()
