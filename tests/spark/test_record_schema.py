"""All functions for columns return records with one schema, which Spark accepts unchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema

from flexwire.columnar import (
    BATCH_COLUMNS,
    RECORD_COLUMNS,
    RecordReader,
    RecordSelection,
    decode_records,
)
from flexwire.columnar.record_columns import OF_BATCH, OF_RECORD, schema_of
from flexwire.records import Record, encode_batch
from flexwire.tables.schema import RECORDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

ALL = (*RECORD_COLUMNS, *BATCH_COLUMNS)
DATA = b"".join(
    encode_batch(
        [
            Record(7, 1_700_000_000_123, b"order-7", None, [(b"trace", b"a1"), (b"\xff", None)]),
            Record(8, timestamp, None, b"paid", []),
        ],
        compression=compression,
    )
    for compression in ("none", "zstd")
    for timestamp in (-1, -62_135_596_800_000, 253_402_300_799_999, 253_402_300_800_000, 2**62)
)

pytestmark = pytest.mark.spark


def assert_same(found: pa.Table, expected: pa.Table) -> None:
    """Columns and values. PySpark 4.0 names list items differently from Spark."""
    assert found.column_names == expected.column_names
    for name in expected.column_names:
        assert found[name].to_pylist() == expected[name].to_pylist(), name


def test_spark_takes_decoded_records_as_they_are(spark: SparkSession) -> None:
    table = decode_records(DATA, columns=ALL)
    frame = spark.createDataFrame(table)
    assert frame.schema == from_arrow_schema(schema_of(ALL))
    assert_same(frame.toArrow(), table)


def test_a_task_of_spark_gives_decoded_records_as_they_are(spark: SparkSession) -> None:
    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for data in batch["data"].to_pylist():
                yield from RecordReader(data, RecordSelection(columns=ALL))

    rows = spark.createDataFrame([(DATA,)], "data binary")
    frame = rows.mapInArrow(task, from_arrow_schema(schema_of(ALL)))
    assert_same(frame.toArrow(), decode_records(DATA, columns=ALL))


def test_the_records_of_an_analysis_have_the_types_of_columns() -> None:
    shared = [name for name in RECORDS.names if name in ALL]
    assert pa.schema([RECORDS.field(name) for name in shared]).equals(schema_of(shared))
    assert {*ALL} - {*shared} == {"max_timestamp", "has_delete_horizon"}


def test_every_column_has_its_value_in_objects() -> None:
    assert sorted([*OF_RECORD, *OF_BATCH]) == sorted(ALL)
